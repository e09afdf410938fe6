//! Runs N plain requests of 1 KB (the first argument, 1 unless given) through the core, with a
//! scripted host and a config of 1,000 keys, and prints the tokens that they cost. For counting
//! instructions: two runs under callgrind with different N differ by the requests alone.

mod script;

fn main() {
    let count = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(1);
    let mut script = script::Script::new();
    let tokens: u64 = (0..count).map(|_| script.plain_request()).sum();
    println!("{count} requests, {tokens} tokens");
}
