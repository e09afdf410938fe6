//! A gzip wrapper that stores instead of compressing: enough to test that a reader of bytes copes
//! with `content-encoding: gzip` (RFC 1952 around stored blocks of RFC 1951).

/// Wraps `plain` into one gzip member.
pub fn store(plain: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = plain.chunks(usize::from(u16::MAX)).peekable();
    if blocks.peek().is_none() {
        stored_block(&mut out, &[], true);
    }
    while let Some(block) = blocks.next() {
        stored_block(&mut out, block, blocks.peek().is_none());
    }
    out.extend(crc32(plain).to_le_bytes());
    let length = u64::try_from(plain.len()).unwrap_or_default() & 0xffff_ffff;
    out.extend(length.to_le_bytes().iter().take(4));
    out
}

fn stored_block(out: &mut Vec<u8>, block: &[u8], last: bool) {
    let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
    out.push(u8::from(last));
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(block);
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let mask = 0u32.wrapping_sub(crc & 1);
            crc = (crc >> 1) ^ (0xedb8_8320 & mask);
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn gzip_itself_reads_it_back() {
        use std::{
            io::Write as _,
            process::{Command, Stdio},
        };
        for plain in [Vec::new(), b"tea".to_vec(), vec![7u8; 200_000]] {
            let mut gzip = Command::new("gzip")
                .arg("-dc")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("gzip is installed");
            let packed = store(&plain);
            let mut stdin = gzip.stdin.take().expect("piped");
            let feeder = std::thread::spawn(move || stdin.write_all(&packed));
            let output = gzip.wait_with_output().expect("gzip ran");
            feeder
                .join()
                .expect("no panic")
                .expect("gzip read everything");
            assert!(output.status.success());
            assert_eq!(output.stdout, plain);
        }
    }
}
