//! Runs requests of 1 KB through the core, with a scripted host and a config of 1,000 keys:
//! `one_request [COUNT] [plain|stream|stripped]`. A stream has 100 events. For counting
//! instructions: two runs under callgrind with different counts differ by the requests alone.

use std::io::{self, Write as _};

mod script;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1);
    let kind = arguments.next();
    let mut script = script::Script::new();
    let mut tokens = 0;
    for _ in 0..count {
        tokens += match kind.as_deref() {
            Some("stream") => script.stream_request(true, 100),
            Some("stripped") => script.stream_request(false, 100),
            _ => script.plain_request(),
        };
    }
    writeln!(io::stdout(), "{count} requests, {tokens} tokens")
}
