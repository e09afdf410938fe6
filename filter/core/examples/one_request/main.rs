//! Runs requests of 1 KB through the core, with a scripted host and a config of 1,000 keys:
//! `one_request [COUNT] [plain|stream|stripped] [EVENTS] [LIMITS]`. A stream has 100 events if
//! nothing else is said, and no limits apply. For counting instructions: two runs under callgrind with different counts differ by
//! the requests alone.

use std::io::{self, Write as _};

mod script;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| match arguments.get(at) {
        None => Ok(default),
        Some(text) => text.parse().map_err(io::Error::other),
    };
    let (count, events) = (number(0, 1)?, number(2, 100)?);
    let kind = arguments.get(1).map_or("plain", String::as_str);
    let mut script = match number(3, 0)? {
        0 => script::Script::new(),
        limits => script::Script::with_limits(limits),
    };
    let mut tokens = 0;
    for _ in 0..count {
        tokens += match kind {
            "plain" => script.plain_request(),
            "stream" => script.stream_request(true, events),
            "stripped" => script.stream_request(false, events),
            other => return Err(io::Error::other(format!("no such request: {other}"))),
        };
    }
    writeln!(io::stdout(), "{count} requests, {tokens} tokens")
}
