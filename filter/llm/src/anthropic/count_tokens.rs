//! `POST /v1/messages/count_tokens`: a message's request that asks for its length alone, and costs
//! nothing.

use crate::json::{Leaf, Reader};
use crate::meter::ReadAnswer;
use crate::provider_error::ProviderError;
use crate::reading::Reading;

use super::error;

/// What meters read of the count: that it came. It is no usage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    reading: Reading,
}

impl ReadAnswer for Count {
    fn begin_document(&mut self) {}

    fn reading(&self) -> &Reading {
        &self.reading
    }

    fn reading_mut(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn parse_error(document: &[u8]) -> Option<ProviderError> {
        error::parse(document)
    }
}

impl Reader for Count {
    type Name = ();
    const UNKNOWN: () = ();
    const ITEM: () = ();

    fn name(_key: &[u8]) {}

    fn text_bytes_wanted(&self, _path: &[()]) -> usize {
        0
    }

    fn leaf(&mut self, _path: &[()], _leaf: Leaf<'_>) {}
}
