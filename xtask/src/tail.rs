//! The logs of several processes on one screen.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::PathBuf,
};

use crate::steps::say;

/// Shows what log files gain from now on, line by line, under the name of each.
#[derive(Debug)]
pub struct Tail {
    files: Vec<Followed>,
}

#[derive(Debug)]
struct Followed {
    name: String,
    path: PathBuf,
    offset: u64,
    partial: Vec<u8>,
}

impl Tail {
    /// Follows the files, each with the name to show it under, from their present end.
    pub fn new(files: impl IntoIterator<Item = (String, PathBuf)>) -> Self {
        let follow = |(name, path): (String, PathBuf)| {
            let offset = path.metadata().map_or(0, |found| found.len());
            Followed {
                name,
                path,
                offset,
                partial: Vec::new(),
            }
        };
        Self {
            files: files.into_iter().map(follow).collect(),
        }
    }

    /// Shows what is new.
    pub fn show(&mut self) {
        for file in &mut self.files {
            for line in file.new_lines() {
                say(&format!("{} | {line}", file.name));
            }
        }
    }
}

impl Followed {
    fn new_lines(&mut self) -> Vec<String> {
        let mut bytes = std::mem::take(&mut self.partial);
        let before = bytes.len();
        if let Ok(mut file) = File::open(&self.path)
            && file.seek(SeekFrom::Start(self.offset)).is_ok()
            && file.read_to_end(&mut bytes).is_ok()
        {
            self.offset += u64::try_from(bytes.len() - before).unwrap_or_default();
        }
        let end = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        self.partial = bytes.split_off(end);
        String::from_utf8_lossy(&bytes)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::OpenOptions, io::Write as _};

    use super::*;

    #[test]
    fn only_whole_new_lines_are_shown() {
        let dir = tempfile::tempdir().expect("made");
        let path = dir.path().join("log");
        std::fs::write(&path, "old\n").expect("written");
        let mut tail = Tail::new([("a".to_owned(), path.clone())]);
        let mut file = OpenOptions::new().append(true).open(&path).expect("opened");
        file.write_all(b"one\ntwo\nthr").expect("written");
        assert_eq!(tail.files[0].new_lines(), ["one", "two"]);
        file.write_all(b"ee\n").expect("written");
        assert_eq!(tail.files[0].new_lines(), ["three"]);
        assert!(tail.files[0].new_lines().is_empty());
    }
}
