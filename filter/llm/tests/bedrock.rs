//! `tests/golden/bedrock`: what botocore reads of Bedrock's frames and answers, clients get; what is
//! sent there, botocore would send.

#[cfg(test)]
mod bedrock {
    use std::fs;
    use std::path::{Path, PathBuf};

    use filter_llm::api::Api;
    use filter_llm::bedrock::frames::{write_event, write_exception};
    use filter_llm::meter::{StreamMeter, UsageMembers};
    use filter_llm::reading::Reading;
    use filter_llm::request::PathFacts;
    use filter_llm::translate::{self, AnswerTerms, Quirks, StreamTranslator, Terms};
    use serde_json::{Value, json};

    const TERMS: AnswerTerms<'static> = AnswerTerms {
        request_id: "req-1",
        model: "alias",
        created_at_s: 0,
        shows_usage: true,
    };

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/bedrock")
    }

    fn read(file: &str) -> Vec<u8> {
        fs::read(folder().join(file)).unwrap()
    }

    fn read_json(file: &str) -> Value {
        serde_json::from_slice(&read(file)).unwrap()
    }

    /// What an OpenAI client gets for a stream in these pieces, and what is metered of it.
    fn as_chat(pieces: &[&[u8]]) -> (Vec<Value>, Reading) {
        let client = Api::ChatCompletions;
        let mut meter = StreamMeter::new(Api::Converse, UsageMembers::Keep, 1 << 20);
        let mut translator = StreamTranslator::new(Api::Converse, client, &TERMS).unwrap();
        let mut out = Vec::new();
        for piece in pieces {
            meter.read_each(piece, &mut |name, data| {
                translator.event(name, data, b"", &mut out);
            });
        }
        translator.finish(&mut out);
        let events = String::from_utf8(out).unwrap();
        let chunks = events
            .split_terminator("\n\n")
            .map(|event| event.strip_prefix("data: ").unwrap())
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap());
        (chunks.collect(), meter.reading().clone())
    }

    /// The texts at `path` in each of `values`, put together.
    fn joined(values: &[Value], path: &str) -> String {
        let texts = values.iter().filter_map(|value| value.pointer(path));
        texts.filter_map(Value::as_str).collect()
    }

    fn assert_usage(usage: &Value, told: &Value) {
        let count = |name: &str| told[name].as_u64().unwrap();
        let cached = count("cacheReadInputTokens");
        let prompt = count("inputTokens") + cached + count("cacheWriteInputTokens");
        assert_eq!(usage["prompt_tokens"], prompt);
        assert_eq!(usage["completion_tokens"], told["outputTokens"]);
        assert_eq!(usage["total_tokens"], told["totalTokens"]);
        assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], cached);
    }

    #[test]
    fn our_frames_are_those_that_botocore_reads() {
        let stream = read("stream.bin");
        let (mut told, mut printed) = (Vec::new(), Vec::new());
        let mut meter = StreamMeter::new(Api::Converse, UsageMembers::Keep, 1 << 20);
        meter.read_each(&stream, &mut |name, data| {
            let name = std::str::from_utf8(name).unwrap();
            write_event(name, data, &mut printed).unwrap();
            let data: Value = serde_json::from_slice(data).unwrap();
            told.push(json!([name, data]));
        });
        assert!(printed == stream, "the same bytes");
        assert_eq!(json!(told), read_json("events.json"));
        let message = read_json("botocore.json")["exception"][6]["error"]["Message"].to_string();
        let json = format!(r#"{{"message":{message}}}"#);
        let mut printed = Vec::new();
        write_exception("throttlingException", json.as_bytes(), &mut printed).unwrap();
        assert!(read("exception.bin").ends_with(&printed));
    }

    #[test]
    fn a_client_gets_what_botocore_reads_of_a_stream_wherever_it_is_cut() {
        let stream = read("stream.bin");
        let read = read_json("botocore.json");
        let told = read["stream"].as_array().unwrap();
        let (whole, reading) = as_chat(&[&stream]);
        let delta = "/choices/0/delta";
        let text = joined(told, "/contentBlockDelta/delta/text");
        assert_eq!(joined(&whole, &format!("{delta}/content")), text);
        let thought = joined(told, "/contentBlockDelta/delta/reasoningContent/text");
        assert_eq!(
            joined(&whole, &format!("{delta}/reasoning_content")),
            thought
        );
        let call = format!("{delta}/tool_calls/0");
        let ids = joined(told, "/contentBlockStart/start/toolUse/toolUseId");
        assert_eq!(joined(&whole, &format!("{call}/id")), ids);
        // A call without input is one of nothing.
        let input = joined(told, "/contentBlockDelta/delta/toolUse/input") + "{}";
        assert_eq!(joined(&whole, &format!("{call}/function/arguments")), input);
        assert_eq!(joined(&whole, "/choices/0/finish_reason"), "tool_calls");
        let last = &told.last().unwrap()["metadata"]["usage"];
        assert_usage(&whole.last().unwrap()["usage"], last);
        let usage = reading.usage.unwrap();
        assert_eq!((usage.cache_write, usage.cache_write_1h), (1536, 1024));
        assert!(reading.is_done && reading.unreadable_events == 0);
        for cut in 0..stream.len() {
            let (head, tail) = stream.split_at(cut);
            assert_eq!(as_chat(&[head, tail]), (whole.clone(), reading.clone()));
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(as_chat(&bytes), (whole, reading));
    }

    #[test]
    fn an_exception_that_botocore_raises_is_an_error_in_the_clients_stream() {
        let read_by_botocore = read_json("botocore.json");
        let raised = &read_by_botocore["exception"][6]["error"];
        let (chunks, reading) = as_chat(&[&read("exception.bin")]);
        let error = &chunks.last().unwrap()["error"];
        assert_eq!(error["message"], raised["Message"]);
        assert_eq!(raised["Code"], "throttlingException");
        assert_eq!(error["type"], "ThrottlingException");
        assert!(reading.error.is_some() && !reading.is_done);
    }

    #[test]
    fn a_client_gets_what_botocore_reads_of_an_answer() {
        let told = &read_json("botocore.json")["answer"];
        let (provider, client) = (Api::Converse, Api::ChatCompletions);
        let printed = translate::answer(provider, client, &read("answer.json"), &TERMS).unwrap();
        let printed: Value = serde_json::from_slice(&printed).unwrap();
        let (message, blocks) = (
            &printed["choices"][0]["message"],
            &told["output"]["message"],
        );
        assert_eq!(message["content"], blocks["content"][1]["text"]);
        let thought = &blocks["content"][0]["reasoningContent"]["reasoningText"]["text"];
        assert_eq!(message["reasoning_content"], *thought);
        let (made, call) = (&message["tool_calls"][0], &blocks["content"][2]["toolUse"]);
        assert_eq!(
            (&made["id"], &made["function"]["name"]),
            (&call["toolUseId"], &call["name"])
        );
        let arguments = made["function"]["arguments"].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(arguments).unwrap(),
            call["input"]
        );
        assert_usage(&printed["usage"], &told["usage"]);
    }

    #[test]
    fn requests_become_what_botocore_would_send() {
        let mut files = 0;
        for file in fs::read_dir(folder().join("requests")).unwrap() {
            let path = file.unwrap().path();
            let mut case: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let name = |api: &Api| case["client"] == api.as_str();
            let client = Api::ALL.into_iter().find(name).unwrap();
            let terms = Terms {
                upstream_model: case["model"].as_str().unwrap(),
                max_output_tokens: None,
                default_max_output_tokens: 4096,
                quirks: &Quirks::default(),
            };
            let body = case["body"].to_string();
            let path_facts = PathFacts {
                model: Some("m"),
                ..PathFacts::default()
            };
            let printed =
                translate::request(client, Api::Converse, path_facts, body.as_bytes(), &terms);
            let printed = printed.unwrap();
            let converse: Value = serde_json::from_slice(&printed.body).unwrap();
            if std::env::var_os("TURNPIKE_KEEP_GOLDEN").is_some() {
                case["converse"] = converse.clone();
                case["left_out"] = json!(printed.left_out);
                fs::write(&path, format!("{case:#}\n")).unwrap();
            }
            assert_eq!(converse, case["converse"], "{}", path.display());
            assert_eq!(
                json!(printed.left_out),
                case["left_out"],
                "{}",
                path.display()
            );
            files += 1;
        }
        assert_eq!(files, 4);
    }
}
