//! Writes `proto/src/generated/` from `proto/turnpike/**/*.proto`, without protoc.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use prost::Message as _;

use crate::layout::{root, target};

const FILES: [&str; 6] = [
    "turnpike/config/v1/config.proto",
    "turnpike/metering/v1/metering.proto",
    "turnpike/admin/v1/tenant.proto",
    "turnpike/admin/v1/routing.proto",
    "turnpike/admin/v1/operate.proto",
    "turnpike/admin/v1/limit.proto",
];

/// Generates into `proto/src/generated`.
pub fn run() -> Result<()> {
    generate(&committed())
}

/// Fails, naming the files, when what is committed is not what the protos give.
pub fn check() -> Result<()> {
    let fresh = target().join("codegen-check");
    if fresh.exists() {
        fs::remove_dir_all(&fresh)?;
    }
    generate(&fresh)?;
    let (old, new) = (read(&committed())?, read(&fresh)?);
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    names.retain(|name| old.get(*name) != new.get(*name));
    if !names.is_empty() {
        bail!("generated code is out of date: {names:?}; run `cargo xtask codegen`");
    }
    Ok(())
}

fn committed() -> PathBuf {
    root().join("proto/src/generated")
}

fn read(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).with_context(|| format!("reading {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.insert(name, fs::read(entry.path())?);
    }
    Ok(files)
}

fn generate(out: &Path) -> Result<()> {
    fs::create_dir_all(out)?;
    let files = protox::compile(FILES, [root().join("proto")])?;
    fs::write(out.join("descriptors.binpb"), files.encode_to_vec())?;
    tonic_prost_build::configure()
        .out_dir(out)
        .client_mod_attribute(".", "#[cfg(feature = \"grpc\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"grpc\")]")
        .btree_map(".")
        // Messages that carry secrets must not be printable by accident.
        .skip_debug([
            "turnpike.config.v1.Credential",
            "turnpike.admin.v1.Plaintext",
            "turnpike.admin.v1.CreateVirtualKeyRequest",
            "turnpike.admin.v1.CreateVirtualKeyResponse",
        ])
        .compile_fds(files)?;
    Ok(())
}
