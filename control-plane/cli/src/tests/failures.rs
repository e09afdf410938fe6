//! What goes wrong is one line that says what, where, and what to do; secrets are not in it.

use std::fs;

use clap::Parser;
use tokio::io::AsyncWriteExt;
use tonic::Status;

use super::fake::Fake;
use super::{run, turnpike};
use crate::args::Cli;

#[tokio::test]
async fn an_unreachable_control_plane_is_named_with_a_hint() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let run = run(&address, "admin-test", &["teams", "list"]).await;
    let error = run.error();
    assert_eq!(
        error,
        format!(
            "cannot reach the control plane at http://{address}: Connection refused (os error 111) \
             (is it running? set --admin-addr or TURNPIKE_ADMIN_ADDR)"
        )
    );
    assert!(
        !error.contains("admin-test") && !error.contains('\n'),
        "{error}"
    );
}

#[tokio::test]
async fn a_certificate_authority_that_cannot_be_read_is_named() {
    let list = ["teams", "list", "--admin-ca-file", "no-such.pem"];
    let run = run("https://127.0.0.1:9", "admin-test", &list).await;
    let error = run.error();
    assert!(
        error.starts_with("--admin-ca-file no-such.pem: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_token_in_the_clear_is_warned_about_beyond_loopback() {
    let run = run("0.0.0.0:9", "admin-test", &["teams", "list"]).await;
    assert!(
        run.notes
            .starts_with("warning: the admin token travels to http://0.0.0.0:9"),
        "{}",
        run.notes
    );
    assert!(run.result.is_err());
}

#[tokio::test]
async fn a_port_that_does_not_speak_grpc_is_told_apart() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        // A TLS alert, as an https port gives for plain HTTP/2; then an HTTP/1.1 server's answer.
        let answers: [&[u8]; 2] = [
            &[0x15, 3, 3, 0, 2, 2, 0x46],
            b"HTTP/1.1 505 HTTP Version Not Supported\r\n\r\n",
        ];
        for answer in answers.into_iter().cycle() {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
        }
    });
    for _ in 0..2 {
        let run = run(&address, "admin-test", &["teams", "list"]).await;
        let error = run.error();
        let expected = format!(
            "list every team: what answers at http://{address} does not speak gRPC there: --admin-addr"
        );
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_is_given_up() {
    let fake = Fake::start().await;
    fake.state().is_silent = true;
    let run = turnpike(&fake, &["nodes", "list"]).await;
    assert_eq!(
        run.error(),
        "list nodes: cancelled: Timeout expired \
         (the control plane is reached but does not answer in time)"
    );
}

#[tokio::test]
async fn a_missing_token_and_a_wrong_one_are_told_apart() {
    let fake = Fake::start().await;
    let missing = run(&fake.address, "", &["teams", "list"]).await;
    assert_eq!(
        missing.error(),
        "list every team: unauthenticated: admin token \
         (no admin token was given: set TURNPIKE_ADMIN_TOKEN or --admin-token-file)"
    );
    let wrong = run(&fake.address, "admin-wrong", &["keys", "get", "k"]).await;
    assert!(
        wrong.error().contains("the admin token was refused"),
        "{}",
        wrong.error()
    );
    assert!(!wrong.error().contains("admin-wrong"));
}

#[tokio::test]
async fn a_token_file_wins_over_the_token() {
    let fake = Fake::start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "admin-test\n").unwrap();
    let list = [
        "teams",
        "list",
        "--admin-token-file",
        file.to_str().unwrap(),
    ];
    run(&fake.address, "admin-wrong", &list).await.ok();
    let gone = ["teams", "list", "--admin-token-file", "no-such-file"];
    let run = run(&fake.address, "admin-test", &gone).await;
    assert!(
        run.error().starts_with("admin token: open no-such-file: "),
        "{}",
        run.error()
    );
}

#[tokio::test]
async fn the_words_of_the_control_plane_are_passed_on_in_one_line() {
    let fake = Fake::start().await;
    let run = turnpike(&fake, &["models", "get", "org/x"]).await;
    assert_eq!(run.error(), "get model org/x: not found: models/org/x");
    turnpike(&fake, &["teams", "create", "a"]).await.ok();
    let run = turnpike(&fake, &["teams", "create", "a"]).await;
    assert_eq!(run.error(), "create team a: already exists: teams/a");
    fake.state().refuse = Some((
        "delete_team",
        Status::failed_precondition("teams/a has keys:\n  virtualKeys/k"),
    ));
    let run = turnpike(&fake, &["teams", "delete", "a"]).await;
    assert_eq!(
        run.error(),
        "delete team a: failed precondition: teams/a has keys: virtualKeys/k"
    );
}

#[test]
fn wrong_usage_exits_with_2_and_help_with_0() {
    let code = |args: &[&str]| {
        let args = ["turnpike"].iter().chain(args);
        Cli::try_parse_from(args).unwrap_err().exit_code()
    };
    assert_eq!(code(&["teams", "--help"]), 0);
    assert_eq!(code(&["--version"]), 0);
    let wrong: &[&[&str]] = &[
        &["teams"],
        &["tame"],
        &["teams", "update", "a"],
        &["teams", "update", "a", "--models", "m", "--all-models"],
        &["teams", "list", "--wait"],
        &["keys", "create"],
        &["keys", "create", "--team", "t", "--expires", "soon"],
        &["keys", "create", "--team", "t", "--wait=0"],
        &["keys", "create", "--team", "t", "--wait=61"],
        &["keys", "create", "--team", "t", "--secret", "sk-test-1"],
        &["credentials", "create", "--provider", "p"],
        &[
            "credentials",
            "create",
            "--provider",
            "p",
            "--env",
            "A",
            "--file",
            "b",
        ],
        &[
            "credentials",
            "create",
            "--provider",
            "p",
            "--env",
            "A",
            "--weight",
            "0",
        ],
        &[
            "credentials",
            "create",
            "--provider",
            "p",
            "--env",
            "A",
            "--team",
            "t",
            "--key",
            "k",
        ],
        &["models", "create", "m"],
        &[
            "models",
            "create",
            "m",
            "--target",
            "p",
            "--capability",
            "flying",
        ],
        &["usage", "query", "--by", "mood"],
        &["apply"],
        &["teams", "list", "--admin-addr", "ftp://cp:9090"],
    ];
    for args in wrong {
        assert_eq!(code(args), 2, "{args:?}");
    }
}
