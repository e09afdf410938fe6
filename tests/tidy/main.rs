//! What the repository promises about itself, held by tests: the direction of dependencies, the
//! purity of the pure crates, the sizes of files and functions, and that docs name what exists.
#![forbid(unsafe_code)]

mod dependencies;
mod documents;
mod sizes;
mod sources;
