//! Writes `proto/src/generated/` from `proto/turnpike/**/*.proto`, without protoc.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use prost::Message as _;

const FILES: [&str; 5] = [
    "turnpike/config/v1/config.proto",
    "turnpike/metering/v1/metering.proto",
    "turnpike/admin/v1/tenant.proto",
    "turnpike/admin/v1/routing.proto",
    "turnpike/admin/v1/operate.proto",
];

/// Generates into `<root>/proto/src/generated`.
pub(crate) fn run() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    let out = root.join("proto/src/generated");
    fs::create_dir_all(&out)?;
    let files = protox::compile(FILES, [root.join("proto")])?;
    fs::write(out.join("descriptors.binpb"), files.encode_to_vec())?;
    tonic_prost_build::configure()
        .out_dir(&out)
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
