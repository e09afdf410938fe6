//! The recorded cases of `tests/golden/cases` that concern streams of this dialect, replayed at
//! every cut of the payload.

#[cfg(test)]
#[path = "golden/cases.rs"]
mod cases;

#[cfg(test)]
mod golden {
    use filter_llm::api::Api;
    use filter_llm::meter::{PlainMeter, StreamMeter, UsageMembers};
    use filter_llm::reading::Reading;
    use filter_llm::request::{PathFacts, Request};
    use filter_llm::splice::Splices;
    use filter_llm::translate::{self, AnswerTerms, Quirks, Terms};
    use serde_json::Value;

    use super::cases::Case;

    const MAX_EVENT_BYTES: usize = 16 << 20;

    fn meter(usage_members: UsageMembers, chunks: &[&[u8]]) -> (Vec<u8>, Reading) {
        meter_of(Api::ChatCompletions, usage_members, chunks)
    }

    fn meter_of(api: Api, usage_members: UsageMembers, chunks: &[&[u8]]) -> (Vec<u8>, Reading) {
        let mut meter = StreamMeter::new(api, usage_members, MAX_EVENT_BYTES);
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

    const TERMS: Terms<'static> = Terms {
        upstream_model: "claude-test",
        max_output_tokens: None,
        default_max_output_tokens: 4096,
        quirks: &Quirks {
            max_tokens_member: false,
            no_stream_options: false,
            no_json_schema: false,
            no_reasoning: false,
            no_parallel_tool_calls: false,
            tool_choice_any: false,
            no_links: false,
            is_vertex: false,
            no_responses: false,
            wants_reasoning_back: false,
        },
    };

    /// What an OpenAI client gets for a recorded answer of Anthropic's.
    fn as_chat(case: &Case) -> Value {
        let terms = AnswerTerms {
            request_id: "id-1",
            model: "claude-test",
            created_at_s: 0,
            shows_usage: true,
        };
        let (provider, client) = (Api::Messages, Api::ChatCompletions);
        let printed = translate::answer(provider, client, &case.payload, &terms).unwrap();
        serde_json::from_slice(&printed).unwrap()
    }

    /// What Anthropic gets for a recorded request of an OpenAI client.
    fn as_messages(body: &[u8]) -> Value {
        let (client, provider) = (Api::ChatCompletions, Api::Messages);
        let path = PathFacts::default();
        let printed = translate::request(client, provider, path, body, &TERMS).unwrap();
        serde_json::from_slice(&printed.body).unwrap()
    }

    fn assert_plainly_metered(case: &Case) {
        let mut meter = PlainMeter::new(Api::Messages);
        meter.observe(&case.payload);
        meter.finish();
        let usage = meter.reading().usage.unwrap();
        let expected = &case.expect["metering"];
        assert_eq!(expected["prompt_total"], usage.input);
        assert_eq!(expected["output"], usage.output);
    }

    #[test]
    fn case_01_output_is_told_cumulatively_and_never_added() {
        let case = Case::load("01-anthropic-cumulative-output");
        at_every_cut(&case, |chunks| {
            let (out, reading) = meter_of(Api::Messages, UsageMembers::Keep, chunks);
            assert_metered(&case, &reading);
            assert!(!reading.is_output_early);
            assert!(out == case.payload, "identical to the upstream payload");
        });
    }

    #[test]
    fn case_01_of_two_totals_the_later_counts() {
        let case = Case::load("01-anthropic-cumulative-output");
        let payload = String::from_utf8(case.payload.clone()).unwrap();
        let end = payload.find("event: message_delta").expect("an end");
        let (head, tail) = payload.split_at(end);
        let early = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\
                     \"usage\":{\"output_tokens\":7}}\n\n";
        let chunks = [head, early, tail].map(str::as_bytes);
        let (_, reading) = meter_of(Api::Messages, UsageMembers::Keep, &chunks);
        assert_metered(&case, &reading);
        let (_, reading) = meter_of(Api::Messages, UsageMembers::Keep, &chunks[..2]);
        assert_eq!(reading.usage.map(|usage| usage.output), Some(7));
    }

    #[test]
    fn case_09_empty_text_does_not_reach_anthropic_and_system_texts_keep_their_order() {
        let case = Case::load("09-empty-text-with-tool-calls");
        let sent = as_messages(&case.body);
        let expected = &case.expect["upstream_seen"][0];
        let texts: Vec<&Value> = sent["system"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| &it["text"])
            .collect();
        assert_eq!(serde_json::json!(texts), expected["system_text_in_order"]);
        let messages = sent["messages"].as_array().unwrap();
        let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(serde_json::json!(roles), expected["roles"]);
        assert_eq!(
            messages[1]["content"],
            expected["must_have"][0]["messages[1].content"]
        );
        assert_eq!(messages[2]["content"][0]["type"], "tool_result");
        assert_eq!(messages[2]["content"][0]["tool_use_id"], "call_w1");
        assert!(!sent.to_string().contains(r#""text":"""#), "{sent}");
        let seen = as_chat(&case);
        let choice = &seen["choices"][0];
        assert_eq!(choice["message"]["content"], case.expect["client"]["text"]);
        assert_eq!(
            choice["finish_reason"],
            case.expect["client"]["finish_reason"]
        );
        assert_plainly_metered(&case);
    }

    #[test]
    fn case_09_blank_or_missing_content_and_arguments_are_as_good_as_none() {
        let case = Case::load("09-empty-text-with-tool-calls");
        let body = String::from_utf8(case.body).unwrap();
        for content in ["null", "[]", r#"" \n ""#] {
            let body = body.replacen(
                r#""content":"","role":"assistant""#,
                &format!(r#""content":{content},"role":"assistant""#),
                1,
            );
            assert!(body.contains(content), "{body}");
            let sent = as_messages(body.as_bytes());
            assert_eq!(
                sent["messages"][1]["content"].as_array().unwrap().len(),
                1,
                "{sent}"
            );
        }
        let body = body.replace(r#"{\"city\":\"Oslo\"}"#, "");
        let sent = as_messages(body.as_bytes());
        assert_eq!(
            sent["messages"][1]["content"][0]["input"],
            serde_json::json!({})
        );
    }

    #[test]
    fn case_10_text_and_every_call_reach_the_client() {
        let case = Case::load("10-tool-use-block-kept");
        let seen = as_chat(&case);
        let (choice, expected) = (&seen["choices"][0], &case.expect["client"]);
        assert_eq!(choice["message"]["content"], expected["text"]);
        assert_eq!(choice["finish_reason"], expected["finish_reason"]);
        let calls = choice["message"]["tool_calls"].as_array().unwrap();
        let expected = expected["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), expected.len());
        for (call, expected) in calls.iter().zip(expected) {
            assert_eq!(
                (&call["id"], &call["type"]),
                (&expected["id"], &expected["type"])
            );
            assert_eq!(call["function"]["name"], expected["name"]);
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(arguments).unwrap();
            assert_eq!(arguments, expected["arguments_json"]);
        }
        assert_plainly_metered(&case);
    }

    #[test]
    fn case_10_an_answer_of_calls_alone_has_no_content_but_names_it() {
        let mut case = Case::load("10-tool-use-block-kept");
        let payload = String::from_utf8(case.payload.clone()).unwrap();
        let text = r#"{"type":"text","text":"Doing both."},"#;
        assert!(payload.contains(text));
        case.payload = payload.replace(text, "").into_bytes();
        let message = &as_chat(&case)["choices"][0]["message"];
        assert_eq!(message.get("content"), Some(&Value::Null));
        assert_eq!(message["tool_calls"].as_array().map(Vec::len), Some(2));
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
