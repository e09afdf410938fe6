//! Reads a recorded case: what the client sent, the provider's bytes, what is to come of them.

use std::fs;
use std::path::{Path, PathBuf};

use filter_llm::api::Api;
use filter_llm::request::{PathFacts, Request};
use serde_json::Value;

pub(crate) struct Case {
    pub(crate) body: Vec<u8>,
    pub(crate) expect: Value,
    /// The answer's body without its chunked framing.
    pub(crate) payload: Vec<u8>,
    /// Where the recorded delivery paused, in bytes of the payload.
    cuts: Vec<usize>,
}

impl Case {
    pub(crate) fn load(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../tests/golden/cases")
            .join(name);
        let json = |file: &str| -> Value { serde_json::from_slice(&read(&folder, file)).unwrap() };
        let answer = read(&folder, "upstream-response.txt");
        let (payload, file_offsets) = without_framing(&answer);
        let delivery = folder.join("delivery.json");
        let writes = match delivery.exists() {
            true => json("delivery.json")["writes"].as_array().unwrap().clone(),
            false => Vec::new(),
        };
        let cuts = writes
            .iter()
            .map(|write| usize::try_from(write["write_up_to"].as_u64().unwrap()).unwrap())
            .map(|end| file_offsets.partition_point(|offset| *offset < end))
            .collect();
        Self {
            body: json("request.json")["body"].to_string().into_bytes(),
            expect: json("expect.json"),
            payload,
            cuts,
        }
    }

    pub(crate) fn request(&self) -> Request<'_> {
        Request::parse(Api::ChatCompletions, PathFacts::default(), &self.body).unwrap()
    }

    /// The payload in the pieces that it was recorded to arrive in.
    pub(crate) fn recorded_chunks(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.cuts.iter().copied());
        let ends = self.cuts.iter().copied().chain([self.payload.len()]);
        starts
            .zip(ends)
            .map(|(start, end)| &self.payload[start..end])
            .filter(|chunk| !chunk.is_empty())
            .collect()
    }
}

fn read(folder: &Path, file: &str) -> Vec<u8> {
    let path: PathBuf = folder.join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The payload of an HTTP/1.1 answer, chunked or of a stated length, and where in the file each of its bytes stands.
fn without_framing(answer: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let find = |from: usize, what: &[u8]| {
        let place = answer[from..]
            .windows(what.len())
            .position(|bytes| bytes == what);
        from + place.expect("framing")
    };
    let mut at = find(0, b"\r\n\r\n") + 4;
    let is_chunked = answer[..at].windows(7).any(|bytes| bytes == b"chunked");
    if !is_chunked {
        return (answer[at..].to_vec(), (at..answer.len()).collect());
    }
    let mut offsets = Vec::new();
    loop {
        let line_end = find(at, b"\r\n");
        let size = std::str::from_utf8(&answer[at..line_end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let start = line_end + 2;
        if size == 0 {
            return (
                offsets.iter().map(|offset| answer[*offset]).collect(),
                offsets,
            );
        }
        offsets.extend(start..start + size);
        at = start + size + 2;
    }
}
