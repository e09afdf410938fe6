//! Lists that come page by page.

use crate::output::Output;

/// Entries asked for at a time.
const PAGE_SIZE: i32 = 500;

/// What was listed.
pub(crate) struct Listed<T> {
    pub(crate) entries: Vec<T>,
    /// There are more than were asked for.
    pub(crate) is_cut: bool,
}

/// Asks for pages until there are no more, or `limit` (0: all) entries. `page` gets how many to ask
/// for and the page's token; it gives the entries and the next page's token, empty at the end.
pub(crate) async fn collect<T, E>(
    limit: usize,
    mut page: impl AsyncFnMut(i32, String) -> Result<(Vec<T>, String), E>,
) -> Result<Listed<T>, E> {
    let mut entries = Vec::new();
    let mut token = String::new();
    loop {
        let (some, next) = page(page_size(limit, entries.len()), token).await?;
        entries.extend(some);
        if limit > 0 && entries.len() >= limit {
            let is_cut = entries.len() > limit || !next.is_empty();
            entries.truncate(limit);
            return Ok(Listed { entries, is_cut });
        }
        if next.is_empty() {
            let is_cut = false;
            return Ok(Listed { entries, is_cut });
        }
        token = next;
    }
}

impl<T> Listed<T> {
    /// The entries of a list that begins with the newest; says so if there are more.
    pub(crate) fn newest(self, output: &mut Output<'_>) -> anyhow::Result<Vec<T>> {
        if self.is_cut {
            let shown = self.entries.len();
            output.note(format_args!("the newest {shown} are shown; all: --limit 0"))?;
        }
        Ok(self.entries)
    }
}

/// How many to ask for when `have` of `limit` (0: all) are there.
fn page_size(limit: usize, have: usize) -> i32 {
    match limit {
        0 => PAGE_SIZE,
        limit => i32::try_from(limit.saturating_sub(have))
            .unwrap_or(PAGE_SIZE)
            .min(PAGE_SIZE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0, in pages of at most two; what was listed, and the sizes that were asked for.
    async fn list(all: usize, limit: usize) -> (Listed<usize>, Vec<i32>) {
        let mut sizes = Vec::new();
        let listed = collect(limit, async |size: i32, token: String| {
            sizes.push(size);
            let from: usize = token.parse().unwrap_or(0);
            let to = all.min(from + 2.min(usize::try_from(size).unwrap()));
            let next = if to < all {
                to.to_string()
            } else {
                String::new()
            };
            Ok::<_, ()>(((from..to).collect(), next))
        });
        (listed.await.unwrap(), sizes)
    }

    #[tokio::test]
    async fn pages_are_put_together_up_to_the_limit_and_more_of_them_are_told() {
        for (all, limit, entries, is_cut) in [
            (5, 0, 5, false),
            (5, 3, 3, true),
            (5, 5, 5, false),
            (0, 3, 0, false),
        ] {
            let (listed, _) = list(all, limit).await;
            assert_eq!((listed.entries.len(), listed.is_cut), (entries, is_cut));
        }
        let (_, sizes) = list(5, 3).await;
        assert_eq!(sizes, [3, 1]);
    }
}
