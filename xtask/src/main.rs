//! `cargo xtask`: the project's task runner.
mod codegen;

fn main() -> anyhow::Result<()> {
    codegen::run()
}
