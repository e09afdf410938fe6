use super::*;

fn read<'a>(headers: &'a [(&'a [u8], &'a [u8])]) -> RequestHead<'a> {
    RequestHead::read(&Head {
        headers,
        end_of_stream: false,
    })
}

#[test]
fn the_same_key_twice_is_one_key() {
    let head = read(&[
        (b"authorization", b"Bearer k"),
        (b"x-api-key", b"k"),
        (b":path", b"/?key=k"),
    ]);
    assert_eq!(head.key().unwrap(), b"k");
}

#[test]
fn a_query_keeps_everything_but_the_key() {
    for (path, stripped) in [
        ("/p?key=k", "/p"),
        ("/p?key=k&a=1", "/p?a=1"),
        ("/p?a=1&key=k", "/p?a=1"),
        ("/p?a=1&key=k&b=2&key=k", "/p?a=1&b=2"),
        ("/p?keys=1&key", "/p?keys=1"),
        ("/p?a=1", "/p?a=1"),
        ("/p?", "/p?"),
        ("/p", "/p"),
    ] {
        let headers = [(&b":path"[..], path.as_bytes())];
        let strip = read(&headers).into_strip();
        assert_eq!(
            std::str::from_utf8(&strip.path).unwrap(),
            stripped,
            "{path}"
        );
    }
}

#[test]
fn attributes_are_decoded_and_may_be_empty() {
    let header = b"team=red , region=eu%2Cwest,empty=,caf%C3%A9=1,".as_slice();
    let headers = [(&b"x-turnpike-attributes"[..], header)];
    let attributes = read(&headers).attributes().unwrap();
    let pairs: Vec<(&str, &str)> = attributes
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("team", "red"),
            ("region", "eu,west"),
            ("empty", ""),
            ("café", "1")
        ]
    );
    assert!(read(&[]).attributes().unwrap().is_empty());
}

#[test]
fn a_made_request_id_is_a_version_4_uuid() {
    let id = uuid(&[0xff; 16]);
    assert_eq!(id, "ffffffff-ffff-4fff-bfff-ffffffffffff");
}
