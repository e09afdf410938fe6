use super::super::read_answer;
use super::*;
use crate::conversation::{Finish, ToolCall};
use crate::usage::Usage;

#[test]
fn what_is_printed_reads_as_the_answer_it_was() {
    let answer = Answer {
        id: "r-1".into(),
        model: "public".into(),
        parts: vec![
            Said::Thinking(Thinking::Shown {
                text: "hm".into(),
                signature: Some("czE=".into()),
            }),
            Said::Text {
                text: "I \"look\".".into(),
                cache: None,
            },
            Said::ToolCall(ToolCall {
                id: "c-1".into(),
                name: "f".into(),
                arguments: r#"{"a":1}"#.into(),
                signature: Some("czI=".into()),
                cache: None,
            }),
        ],
        finish: Some(Finish::ToolCalls),
        stop_sequence: None,
        usage: Some(Usage {
            input: 9,
            cached_input: 4,
            output: 8,
            reasoning: 3,
            ..Usage::default()
        }),
    };
    let terms = AnswerTerms {
        request_id: "id-1",
        model: "public",
        created_at_s: 0,
        shows_usage: true,
    };
    let printed = print_answer(&answer, &terms);
    assert_eq!(read_answer(&printed), Some(answer));
}
