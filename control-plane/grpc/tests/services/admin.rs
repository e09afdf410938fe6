//! The admin API: what each service does, and how it refuses.

mod limits;
mod operations;
mod routing;
mod tenants;

use prost_types::FieldMask;
use tonic::{Code, Response, Status};

fn refused<T: std::fmt::Debug>(
    result: Result<Response<T>, Status>,
    code: Code,
    start: &str,
) -> String {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status.message().starts_with(start), "{status:?}");
    status.message().to_owned()
}

fn mask() -> FieldMask {
    FieldMask {
        paths: vec!["disabled".into()],
    }
}
