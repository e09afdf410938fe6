//! Prints frames, for those who stand in for a provider.

use super::{FrameFault, HeaderValue};

/// Appends a frame. A name beyond 255 bytes or a value beyond 65,535 is a fault, and nothing is
/// appended.
pub fn write_frame(
    headers: &[(&str, HeaderValue<'_>)],
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FrameFault> {
    let mut printed = Vec::new();
    for (name, value) in headers {
        write_header(name, value, &mut printed).ok_or(FrameFault::Headers)?;
    }
    let lengths = (printed.len() + payload.len() + 16, printed.len());
    let fault = FrameFault::Lengths {
        frame: lengths.0,
        headers: lengths.1,
    };
    let (Ok(frame_bytes), Ok(header_bytes)) = (u32::try_from(lengths.0), u32::try_from(lengths.1))
    else {
        return Err(fault);
    };
    let mut frame = Vec::with_capacity(lengths.0);
    frame.extend_from_slice(&frame_bytes.to_be_bytes());
    frame.extend_from_slice(&header_bytes.to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&printed);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    out.extend_from_slice(&frame);
    Ok(())
}

/// Appends an event with its JSON.
pub fn write_event(name: &str, json: &[u8], out: &mut Vec<u8>) -> Result<(), FrameFault> {
    write_message("event", ":event-type", name, json, out)
}

/// Appends an exception, which ends a stream, with its JSON.
pub fn write_exception(name: &str, json: &[u8], out: &mut Vec<u8>) -> Result<(), FrameFault> {
    write_message("exception", ":exception-type", name, json, out)
}

/// Appends an error that the service's model does not name; it ends a stream.
pub fn write_error(code: &str, message: &str, out: &mut Vec<u8>) -> Result<(), FrameFault> {
    let headers = [
        (":message-type", HeaderValue::Text("error")),
        (":error-code", HeaderValue::Text(code)),
        (":error-message", HeaderValue::Text(message)),
    ];
    write_frame(&headers, b"", out)
}

fn write_message(
    kind: &str,
    name_header: &str,
    name: &str,
    json: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), FrameFault> {
    let headers = [
        (name_header, HeaderValue::Text(name)),
        (":content-type", HeaderValue::Text("application/json")),
        (":message-type", HeaderValue::Text(kind)),
    ];
    write_frame(&headers, json, out)
}

fn write_header(name: &str, value: &HeaderValue<'_>, out: &mut Vec<u8>) -> Option<()> {
    out.push(u8::try_from(name.len()).ok()?);
    out.extend_from_slice(name.as_bytes());
    match value {
        HeaderValue::Bool(is_true) => out.push(u8::from(!is_true)),
        HeaderValue::Byte(number) => write_number(2, &number.to_be_bytes(), out),
        HeaderValue::Short(number) => write_number(3, &number.to_be_bytes(), out),
        HeaderValue::Int(number) => write_number(4, &number.to_be_bytes(), out),
        HeaderValue::Long(number) => write_number(5, &number.to_be_bytes(), out),
        HeaderValue::Bytes(bytes) => write_bytes(6, bytes, out)?,
        HeaderValue::Text(text) => write_bytes(7, text.as_bytes(), out)?,
        HeaderValue::Timestamp(number) => write_number(8, &number.to_be_bytes(), out),
        HeaderValue::Uuid(bytes) => write_number(9, bytes, out),
    }
    Some(())
}

fn write_number(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(bytes);
}

fn write_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let len = u16::try_from(bytes.len()).ok()?;
    out.push(kind);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}
