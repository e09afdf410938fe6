//! The recorded cases of `tests/golden/cases` that concern streams of this dialect, replayed at
//! every cut of the payload.

#[cfg(test)]
#[path = "golden/cases.rs"]
mod cases;

#[cfg(test)]
mod golden {
    use filter_llm::api::Api;
    use filter_llm::meter::{StreamMeter, UsageMembers};
    use filter_llm::reading::Reading;
    use filter_llm::request::{PathFacts, Request};
    use filter_llm::splice::Splices;
    use serde_json::Value;

    use super::cases::Case;

    const MAX_EVENT_BYTES: usize = 16 << 20;

    fn meter(usage_members: UsageMembers, chunks: &[&[u8]]) -> (Vec<u8>, Reading) {
        let mut meter = StreamMeter::new(Api::ChatCompletions, usage_members, MAX_EVENT_BYTES);
        let mut out = Vec::new();
        for chunk in chunks {
            meter.transform(chunk, &mut out);
        }
        meter.finish(&mut out);
        (out, meter.reading().clone())
    }

    /// Every single cut, every pair of cuts a few bytes apart, one byte at a time, and the cuts
    /// that were recorded.
    fn at_every_cut(case: &Case, mut check: impl FnMut(&[&[u8]])) {
        let payload = case.payload.as_slice();
        for cut in 0..=payload.len() {
            let (head, tail) = payload.split_at(cut);
            check(&[head, tail]);
            let (middle, tail) = tail.split_at(tail.len().min(3));
            check(&[head, middle, tail]);
        }
        check(&payload.chunks(1).collect::<Vec<_>>());
        check(&case.recorded_chunks());
    }

    fn assert_metered(case: &Case, reading: &Reading) {
        let expected = &case.expect["metering"];
        let usage = reading.usage.expect("reported usage");
        assert_eq!(expected["prompt_total"], usage.input);
        assert_eq!(
            expected["uncached_input"],
            usage.input - usage.cached_input - usage.cache_write
        );
        assert_eq!(expected["cache_read"], usage.cached_input);
        assert_eq!(expected["cache_write"], usage.cache_write);
        assert_eq!(expected["output"], usage.output);
        assert_eq!(expected["total"], usage.total());
        assert!(reading.is_done && reading.has_content);
        assert_eq!(reading.finish.map(|finish| finish.as_str()), Some("stop"));
        assert_eq!(
            (reading.unreadable_events, reading.oversized_events),
            (0, 0)
        );
    }

    /// The chunks that a client parses out of a stream, up to the end marker.
    fn chunks_of(stream: &[u8]) -> Vec<Value> {
        let stream = std::str::from_utf8(stream).unwrap();
        let (chunks, rest) = stream
            .split_once("data: [DONE]\n\n")
            .expect("an end marker");
        assert_eq!(rest, "");
        chunks
            .split_terminator("\n\n")
            .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
            .collect()
    }

    fn text_of(chunks: &[Value]) -> String {
        let content = |chunk: &Value| {
            let content = chunk["choices"][0]["delta"]["content"].as_str();
            content.map(str::to_owned)
        };
        chunks.iter().filter_map(content).collect()
    }

    #[test]
    fn case_02_the_last_usage_wins_and_events_wait_for_their_rest() {
        let case = Case::load("02-usage-in-every-chunk-cut-mid-json");
        assert!(case.request().asks_usage);
        at_every_cut(&case, |chunks| {
            let (out, reading) = meter(UsageMembers::Keep, chunks);
            assert_metered(&case, &reading);
            assert!(out == case.payload, "identical to the upstream payload");
        });
    }

    #[test]
    fn case_03_a_character_cut_in_two_stays_itself() {
        let case = Case::load("03-utf8-cut-inside-character");
        at_every_cut(&case, |chunks| {
            let (out, reading) = meter(UsageMembers::Keep, chunks);
            assert_metered(&case, &reading);
            assert!(out == case.payload, "identical to the upstream payload");
            assert!(!out.windows(3).any(|bytes| bytes == b"\xef\xbf\xbd"));
            assert_eq!(case.expect["client"]["text"], text_of(&chunks_of(&out)));
        });
    }

    #[test]
    fn case_04_the_usage_we_asked_for_is_metered_and_hidden() {
        let case = Case::load("04-usage-chunk-without-choices");
        assert!(!case.request().asks_usage);
        let (whole, _) = meter(UsageMembers::Strip, &[&case.payload]);
        at_every_cut(&case, |chunks| {
            let (out, reading) = meter(UsageMembers::Strip, chunks);
            assert_metered(&case, &reading);
            assert!(out == whole, "the same at every cut");
        });
        let chunks = chunks_of(&whole);
        assert_eq!(case.expect["client"]["text"], text_of(&chunks));
        for chunk in &chunks {
            assert!(
                chunk["choices"]
                    .as_array()
                    .is_some_and(|choices| !choices.is_empty())
            );
            assert!(chunk.get("usage").is_none());
        }
    }

    #[test]
    fn case_04_a_client_that_asked_gets_the_same_bytes() {
        let case = Case::load("04-usage-chunk-without-choices");
        at_every_cut(&case, |chunks| {
            let (out, reading) = meter(UsageMembers::Keep, chunks);
            assert_metered(&case, &reading);
            assert!(out == case.payload);
        });
    }

    #[test]
    fn case_04_the_provider_is_asked_for_usage() {
        let case = Case::load("04-usage-chunk-without-choices");
        let mut explicit: Value = serde_json::from_slice(&case.body).unwrap();
        explicit["stream_options"] = serde_json::json!({"include_usage": false});
        for body in [case.body.clone(), explicit.to_string().into_bytes()] {
            let request =
                Request::parse(Api::ChatCompletions, PathFacts::default(), &body).unwrap();
            let splices: Splices = request.edits.include_usage().into_iter().collect();
            let sent: Value = serde_json::from_slice(&splices.apply(&body)).unwrap();
            let wanted = &case.expect["upstream_seen"][0]["body_has"]["stream_options"];
            assert_eq!(&sent["stream_options"], wanted);
        }
    }
}
