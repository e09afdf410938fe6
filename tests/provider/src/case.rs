//! Recorded cases, replayed byte for byte with their pauses.
//!
//! A case is a folder with `upstream-response.txt` (`-2`, `-3`… for later attempts): the raw
//! HTTP/1.1 answer; and perhaps `delivery.json`: where to pause while writing it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::delivery::{Delivery, Ending, Mark, Step};

/// Why a case cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    #[error("case `{0}`: the provider was started without --cases-dir")]
    NoFolder(String),
    #[error("case `{name}`: not in {}", dir.display())]
    Unknown { name: String, dir: PathBuf },
    #[error("{}: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {source}", path.display())]
    BadDelivery {
        path: PathBuf,
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
struct Pauses {
    file: String,
    writes: Vec<Until>,
}

#[derive(Deserialize)]
struct Until {
    write_up_to: usize,
    then_pause_ms: u64,
}

/// The recorded answer of case `name` to attempt number `attempt` (from 1): the last file holds
/// for all later attempts.
pub fn load(dir: Option<&Path>, name: &str, attempt: u64) -> Result<Delivery, CaseError> {
    let dir = dir.ok_or_else(|| CaseError::NoFolder(name.to_owned()))?;
    let folder = find(dir, name)?;
    let mut file = "upstream-response.txt".to_owned();
    for n in 2..=attempt.min(99) {
        let next = format!("upstream-response-{n}.txt");
        if !folder.join(&next).exists() {
            break;
        }
        file = next;
    }
    let path = folder.join(&file);
    let bytes = fs::read(&path).map_err(|source| CaseError::Unreadable { path, source })?;
    let pauses = pauses(&folder.join("delivery.json"), &file)?;
    Ok(plan(&bytes, &pauses))
}

/// The folder of that name, or of that number.
fn find(dir: &Path, name: &str) -> Result<PathBuf, CaseError> {
    let unknown = || CaseError::Unknown {
        name: name.to_owned(),
        dir: dir.to_owned(),
    };
    let entries = fs::read_dir(dir).map_err(|_| unknown())?;
    let numbered = format!("{name}-");
    let mut folders = entries.flatten().map(|entry| entry.path());
    let fits = |folder: &PathBuf| {
        let folder = folder.file_name().unwrap_or_default().to_string_lossy();
        folder == name || folder.starts_with(&numbered)
    };
    folders.find(fits).ok_or_else(unknown)
}

fn pauses(path: &Path, file: &str) -> Result<Vec<Until>, CaseError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let unreadable = |source| CaseError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let bad = |source| CaseError::BadDelivery {
        path: path.to_owned(),
        source,
    };
    let pauses: Pauses = serde_json::from_str(&text).map_err(bad)?;
    Ok(if pauses.file == file {
        pauses.writes
    } else {
        Vec::new()
    })
}

fn plan(bytes: &[u8], pauses: &[Until]) -> Delivery {
    let ending = if has_length(bytes) {
        Ending::KeepAlive
    } else {
        Ending::Close
    };
    let mut delivery = Delivery {
        steps: Vec::new(),
        ending,
    };
    let mut from = 0;
    for until in pauses {
        let to = until.write_up_to.clamp(from, bytes.len());
        delivery.steps.push(Step::Write(
            bytes.get(from..to).unwrap_or_default().to_vec(),
        ));
        delivery.pause(until.then_pause_ms);
        from = to;
    }
    if from < bytes.len() {
        delivery
            .steps
            .push(Step::Write(bytes.get(from..).unwrap_or_default().to_vec()));
    }
    delivery.steps.push(Step::Mark(Mark {
        events: 1,
        usage: None,
    }));
    delivery
}

fn has_length(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let head = text
        .split("\r\n\r\n")
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    head.contains("\r\ncontent-length:") || head.contains("\r\ntransfer-encoding:")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    fn cases(name: &str) -> Folder {
        let dir =
            std::env::temp_dir().join(format!("turnpike-cases-{}-{name}", std::process::id()));
        let case = dir.join("02-cut");
        fs::create_dir_all(&case).expect("created");
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef";
        fs::write(case.join("upstream-response.txt"), answer).expect("written");
        fs::write(
            case.join("upstream-response-2.txt"),
            "HTTP/1.1 200 OK\r\n\r\nsecond",
        )
        .expect("written");
        let delivery = r#"{"file": "upstream-response.txt", "note": "x", "writes":
            [{"write_up_to": 40, "then_pause_ms": 60}, {"write_up_to": 44, "then_pause_ms": 0}]}"#;
        fs::write(case.join("delivery.json"), delivery).expect("written");
        Folder(dir)
    }

    fn text(delivery: &Delivery) -> String {
        let writes = delivery.steps.iter().filter_map(|step| match step {
            Step::Write(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        });
        writes.collect()
    }

    #[test]
    fn a_case_is_written_byte_for_byte_with_its_pauses() {
        let dir = cases("pauses");
        let delivery = load(Some(&dir.0), "02", 1).expect("loaded");
        assert!(text(&delivery).ends_with("\r\n\r\nabcdef"));
        let pauses = delivery
            .steps
            .iter()
            .filter(|step| matches!(step, Step::Pause(_)))
            .count();
        assert_eq!(pauses, 1);
        assert_eq!(delivery.ending, Ending::KeepAlive);
    }

    #[test]
    fn later_attempts_get_later_files_and_a_body_without_length_ends_by_close() {
        let dir = cases("attempts");
        for attempt in [2, 3] {
            let delivery = load(Some(&dir.0), "02-cut", attempt).expect("loaded");
            assert!(text(&delivery).ends_with("second"));
            assert_eq!(delivery.ending, Ending::Close);
        }
    }

    #[test]
    fn an_unknown_case_is_named() {
        let dir = cases("unknown");
        let error = load(Some(&dir.0), "99", 1).expect_err("unknown");
        assert!(error.to_string().contains("`99`"), "{error}");
        assert!(load(None, "02", 1).is_err());
    }
}
