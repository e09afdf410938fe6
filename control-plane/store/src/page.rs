//! Paging by key: a token names the last row of a page, so that rows added or removed meanwhile
//! neither repeat nor hide others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;

/// A page as asked for on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// 0: 100; at most 1000.
    pub size: i32,
    /// Empty: the first page.
    pub token: String,
}

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Empty on the last page.
    pub next_page_token: String,
}

const DEFAULT_SIZE: i32 = 100;
const MAX_SIZE: i32 = 1000;

impl PageRequest {
    /// Rows to fetch: one more than the page holds, which tells whether there is a next one.
    pub(crate) fn limit(&self) -> i64 {
        i64::from(self.size()) + 1
    }

    /// The key to go on after; none: from the start. `method` keeps tokens of different lists
    /// apart.
    pub(crate) fn after<K: DeserializeOwned>(&self, method: &str) -> Result<Option<K>, Error> {
        if self.token.is_empty() {
            return Ok(None);
        }
        let json = URL_SAFE_NO_PAD
            .decode(&self.token)
            .map_err(|_| Error::BadPageToken)?;
        let (of, key): (String, K) =
            serde_json::from_slice(&json).map_err(|_| Error::BadPageToken)?;
        if of == method {
            Ok(Some(key))
        } else {
            Err(Error::BadPageToken)
        }
    }

    /// Makes a page of the rows that were fetched.
    pub(crate) fn page<T, K: Serialize>(
        &self,
        method: &str,
        mut items: Vec<T>,
        key_of: impl Fn(&T) -> K,
    ) -> Page<T> {
        let size = usize::try_from(self.size()).unwrap_or(usize::MAX);
        let more = items.len() > size;
        items.truncate(size);
        let next_page_token = match items.last() {
            Some(last) if more => {
                let json = serde_json::to_vec(&(method, key_of(last))).unwrap_or_default();
                URL_SAFE_NO_PAD.encode(json)
            }
            _ => String::new(),
        };
        Page {
            items,
            next_page_token,
        }
    }

    fn size(&self) -> i32 {
        match self.size {
            ..=0 => DEFAULT_SIZE,
            size => size.min(MAX_SIZE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_to_the_row_after_the_last_one() {
        let first = PageRequest {
            size: 2,
            token: String::new(),
        };
        assert_eq!(first.limit(), 3);
        let page = first.page("teams", vec!["a", "b", "c"], |id| (*id).to_owned());
        assert_eq!(page.items, ["a", "b"]);
        let second = PageRequest {
            size: 2,
            token: page.next_page_token,
        };
        assert_eq!(
            second.after::<String>("teams").unwrap().as_deref(),
            Some("b")
        );
        assert!(matches!(
            second.after::<String>("models"),
            Err(Error::BadPageToken)
        ));
        assert_eq!(
            second
                .page("teams", vec!["c"], |id| (*id).to_owned())
                .next_page_token,
            ""
        );
    }

    #[test]
    fn sizes_have_a_default_and_a_limit() {
        for (size, limit) in [(0, 101), (-5, 101), (1, 2), (5000, 1001)] {
            assert_eq!(
                PageRequest {
                    size,
                    token: String::new()
                }
                .limit(),
                limit
            );
        }
        for token in ["x", "!!", "bm90IGpzb24"] {
            let request = PageRequest {
                size: 0,
                token: token.into(),
            };
            assert!(matches!(
                request.after::<String>("teams"),
                Err(Error::BadPageToken)
            ));
        }
    }
}
