//! Counts what the hot path asks of the allocator.

#![expect(unsafe_code, reason = "only an allocator can count allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    // Per thread, so that tests that run side by side do not count each other.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps `realloc`'s contract.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

#[cfg(test)]
mod allocations {
    use super::allocations_of;
    use filter_llm::api::Api;
    use filter_llm::meter::{PlainMeter, StreamMeter, UsageMembers};
    use filter_llm::request::{PathFacts, Request};

    const EVENTS: &[u8] = b": keep-alive\n\n\
        data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\
        \"service_tier\":\"default\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\\n\\u8336\
        \"},\"logprobs\":{\"content\":[{\"token\":\"a\",\"top_logprobs\":[{\"bytes\":[1]}]}]},\
        \"finish_reason\":null}],\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":3,\
        \"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n\
        data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\
        \"{\\\"a\\\":1}\"}}]},\"finish_reason\":\"tool_calls\"}],\"usage\":null}\r\n\r\n\
        data: [DONE]\n\n";

    #[test]
    fn the_counter_counts() {
        assert_eq!(
            allocations_of(|| drop(std::hint::black_box(Box::new(7)))),
            1
        );
    }

    #[test]
    fn an_event_that_passes_costs_no_allocation_after_warm_up() {
        let mut meter = StreamMeter::new(Api::ChatCompletions, UsageMembers::Keep, 1 << 20);
        meter.observe(EVENTS);
        let whole = allocations_of(|| (0..1_000).for_each(|_| meter.observe(EVENTS)));
        assert_eq!(whole, 0, "events that lie within a chunk");
        for step in [1, 7, 100] {
            EVENTS.chunks(step).for_each(|chunk| meter.observe(chunk));
            let cut = allocations_of(|| EVENTS.chunks(step).for_each(|chunk| meter.observe(chunk)));
            assert_eq!(cut, 0, "events in chunks of {step} bytes");
        }
        assert_eq!(meter.reading().unreadable_events, 0);
        assert_eq!(meter.reading().usage.map(|usage| usage.output), Some(3));
    }

    #[test]
    fn stripping_costs_no_allocation_but_the_output_buffers() {
        let mut meter = StreamMeter::new(Api::ChatCompletions, UsageMembers::Strip, 1 << 20);
        let mut out = Vec::with_capacity(EVENTS.len() * 2);
        meter.transform(EVENTS, &mut out);
        let stripped = allocations_of(|| {
            for _ in 0..1_000 {
                out.clear();
                meter.transform(EVENTS, &mut out);
            }
        });
        assert_eq!(stripped, 0);
        assert!(!out.is_empty() && out.len() < EVENTS.len());
    }

    #[test]
    fn a_plain_answer_of_any_size_costs_only_its_warm_up() {
        let mut meter = PlainMeter::new(Api::ChatCompletions);
        meter.observe(br#"{"choices":[{"message":{"content":""#);
        let frame = [b'x'; 16 * 1024];
        let frames = allocations_of(|| (0..1_000).for_each(|_| meter.observe(&frame)));
        assert_eq!(frames, 0);
        let rest = br#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}"#;
        let end = allocations_of(|| rest.chunks(3).for_each(|chunk| meter.observe(chunk)));
        assert!(end <= 4, "{end}");
        assert!(meter.reading().is_done);
    }

    #[test]
    fn reading_a_request_costs_few_allocations_whatever_its_size() {
        let message = r#"{"role":"user","content":[{"type":"text","text":"a\nb"}]},"#;
        for messages in [1, 1_000] {
            let body = format!(
                r#"{{"model":"m","stream":true,"user":"u","metadata":{{"action_id":"a"}},
                "messages":[{}{{"role":"user","content":"x"}}]}}"#,
                message.repeat(messages)
            );
            let parsing = allocations_of(|| {
                let request =
                    Request::parse(Api::ChatCompletions, PathFacts::default(), body.as_bytes())
                        .expect("a request");
                assert_eq!(request.action_id(), Some("a"));
            });
            assert!(
                parsing <= 4,
                "{parsing} allocations for {messages} messages"
            );
        }
    }

    const MESSAGE_EVENTS: &[u8] = b"event: content_block_start\n\
        data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\
        \"thinking\":\"\",\"signature\":\"\"}}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
        \"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"a\\nb\"}}\n\n\
        event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
        event: ping\ndata: {\"type\": \"ping\"}\n\n\
        event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\
        \"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\": 1}\"}}\n\n\
        event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\
        \"tool_use\",\"stop_sequence\":null},\"usage\":{\"input_tokens\":9,\"output_tokens\":3}}\n\n\
        event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

    #[test]
    fn an_event_of_messages_that_passes_costs_no_allocation_after_warm_up() {
        let mut meter = StreamMeter::new(Api::Messages, UsageMembers::Keep, 1 << 20);
        for step in [MESSAGE_EVENTS.len(), 1, 7, 100] {
            let mut pass = || {
                let chunks = MESSAGE_EVENTS.chunks(step);
                chunks.for_each(|chunk| meter.observe(chunk));
            };
            pass();
            assert_eq!(allocations_of(pass), 0, "events in chunks of {step} bytes");
        }
        let reading = meter.reading();
        assert!(reading.is_done && reading.unreadable_events == 0);
        assert_eq!(reading.usage.map(|usage| usage.output), Some(3));
    }

    /// A request of `bytes` or more as coding agents make them: cached instructions, 60 tools, and
    /// turns of thinking, calls and results.
    fn agents_request(bytes: usize) -> String {
        let tool = |index: usize| {
            format!(
                r#"{{"name":"tool_{index}","description":"Does {index}.\nNo more.","input_schema":
                {{"type":"object","properties":{{"path":{{"type":"string","description":"A \"path\"."}}}},
                "required":["path"]}}}}"#
            )
        };
        let tools: Vec<String> = (0..60).map(tool).collect();
        let turn = format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"Let me look.","signature":"{sig}"}},
            {{"type":"text","text":"Looking."}},{{"type":"tool_use","id":"t","name":"tool_1","input":{{"path":"a.rs"}}}}]}},
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"text","text":"{file}"}}]}},
            {{"type":"text","text":"Go on.","cache_control":{{"type":"ephemeral"}}}}]}},"#,
            sig = "EqQB".repeat(100),
            file = r#"let it = \"be\";\n"#.repeat(500),
        );
        let turns = turn.repeat(bytes.div_ceil(turn.len()));
        format!(
            r#"{{"model":"claude","max_tokens":32000,"stream":true,"metadata":{{"user_id":"u"}},
            "system":[{{"type":"text","text":"Be brief.","cache_control":{{"type":"ephemeral","ttl":"1h"}}}}],
            "tools":[{}],"thinking":{{"type":"enabled","budget_tokens":31999}},
            "messages":[{{"role":"user","content":"Hello"}},{turns}{{"role":"user","content":"x"}}]}}"#,
            tools.join(",")
        )
    }

    #[test]
    fn reading_an_agents_request_costs_few_allocations_whatever_its_size() {
        for bytes in [0, 200 << 10, 2 << 20] {
            let body = agents_request(bytes);
            assert!(body.len() > bytes);
            for api in [Api::Messages, Api::CountTokens] {
                let parsing = allocations_of(|| {
                    let request = Request::parse(api, PathFacts::default(), body.as_bytes())
                        .expect("a request");
                    assert_eq!(request.user.as_deref(), Some("u"));
                    assert!(request.needs.tools && request.text_bytes > bytes as u64 / 2);
                });
                assert!(parsing <= 4, "{parsing} allocations for {bytes} bytes");
            }
        }
    }
    const RESPONSE_EVENTS: &[u8] = b"event: response.created\n\
        data: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\
        \"status\":\"in_progress\",\"output\":[],\"service_tier\":\"auto\",\"usage\":null}}\n\n\
        event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\
        \"sequence_number\":1,\"item_id\":\"msg_1\",\"delta\":\"a\\n\\u8336\"}\n\n\
        event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\
        \"response\":{\"id\":\"resp_1\",\"status\":\"completed\",\"service_tier\":\"default\",\
        \"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]}],\
        \"usage\":{\"input_tokens\":12,\"output_tokens\":3}}}\n\n";

    #[test]
    fn an_event_of_a_response_costs_no_allocation_after_warm_up() {
        let mut meter = StreamMeter::new(Api::Responses, UsageMembers::Keep, 1 << 20);
        meter.observe(RESPONSE_EVENTS);
        let whole = allocations_of(|| (0..1_000).for_each(|_| meter.observe(RESPONSE_EVENTS)));
        assert_eq!(whole, 0);
        assert_eq!(meter.reading().unreadable_events, 0);
        assert_eq!(meter.reading().usage.map(|usage| usage.output), Some(3));
    }
}
