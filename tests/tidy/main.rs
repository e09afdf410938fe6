//! What the repository promises about itself, held by tests: the direction of dependencies, the
//! purity of the pure crates, the sizes of files and functions, and that docs name what exists.
#![forbid(unsafe_code)]
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says what is wrong by a panic"
)]

mod dependencies;
mod documents;
mod sizes;
mod sources;
