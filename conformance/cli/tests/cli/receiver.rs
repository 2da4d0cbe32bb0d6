//! `chargeproof receiver`: deliveries over a socket, and the lines printed for them.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use testkit::{Connection, Request, RunningProgram, serve_status};

use crate::{cases::check_cases, support};

const SECRET: &str = "whsec_0123456789abcdefghijklmnopqrstuv";
const TEST_SECRET: &str = "whsec_vutsrqponmlkjihgfedcba9876543210";
const BODY: &str = r#"{"id":"01a0be42-2100-7000-8000-01e7e4f1ca48","event_id":"01a0be42-2100-7000-8000-014aeed46937","event":"charge.paid","mode":"live","created_at":"2026-01-05T09:00:00.000000Z","data":{"charge":{"code":"kanwf93se5yn"}}}"#;

/// A running receiver with its own directory.
struct RunningReceiver {
    program: RunningProgram,
    directory: tempfile::TempDir,
}

fn program(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = support::program(directory);
    command.arg("receiver").args(arguments).env("SHOP_SECRET", SECRET).env("SHOP_TEST_SECRET", TEST_SECRET);
    command
}

fn start(arguments: &[&str]) -> RunningReceiver {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path(), &["listen", "--port", "0"]);
    command.args(arguments).args(["--format", "json", "--ready-file", "ready.json"]);
    let program = support::start(command);
    assert_eq!(program.first_line_json["kind"], "ready");
    let file: Value = serde_json::from_str(&support::read(directory.path(), "ready.json")).unwrap();
    assert_eq!(file["address"], program.first_line_json["address"]);
    RunningReceiver { program, directory }
}

impl RunningReceiver {
    /// Sends a delivery with this signature header and returns the status of the response.
    fn send(&self, signature: &str, body: &str) -> u16 {
        let header_lines = &format!(
            "User-Agent: Service-Webhooks/1.0\r\nX-Service-Event: charge.paid\r\n\
             X-Service-Delivery: 01a0be42-2100-7000-8000-01e7e4f1ca48\r\nX-Service-Signature: {signature}\r\n"
        );
        let request = Request { method: "POST", header_lines, body, ..Request::get("/hooks") };
        let mut connection = Connection::open(self.program.value("address")).unwrap();
        connection.send(request.to_string()).unwrap();
        connection.message().unwrap().status
    }

    /// Returns the next line of the output, which must not contain `SECRET`.
    fn line(&mut self) -> Value {
        let line = self.program.read_json_line();
        assert!(!line.to_string().contains(&SECRET[6..]), "{line}");
        line
    }

    /// Stops the receiver; returns the last line and the exit code.
    fn stop(mut self) -> (Value, Option<i32>) {
        self.program.signal("TERM").unwrap();
        let summary = self.line();
        (summary, self.program.child.wait().unwrap().code())
    }
}

/// Returns the signature header of the reference server. The receiver verifies it with a separate implementation.
fn sign(secret: &str, body: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    reference_core::signature::Signer::new(secret).sign(now, body.as_bytes())
}

/// Returns the names of reasons or notes.
fn reason_names(reasons: &Value) -> Vec<&str> {
    reasons.as_array().unwrap().iter().map(|reason| reason["name"].as_str().unwrap()).collect()
}

#[test]
fn a_signed_delivery_is_verified_and_the_exit_code_is_0() {
    let mut receiver = start(&["--secret-env", "SHOP_TEST_SECRET,SHOP_SECRET"]);
    assert_eq!(receiver.send(&sign(SECRET, BODY), BODY), 200);
    let line = receiver.line();
    assert_eq!((&line["kind"], &line["verdict"]), (&"delivery".into(), &"verified".into()));
    assert_eq!((&line["secret"], &line["try"]), (&"SHOP_SECRET".into(), &1.into()));
    assert_eq!((&line["event"], &line["mode"]), (&"charge.paid".into(), &"live".into()));
    assert_eq!((&line["subject"], &line["answer"]), (&"kanwf93se5yn".into(), &"200".into()));
    assert_eq!((&line["bytes"], reason_names(&line["notes"])), (&BODY.len().into(), vec![]));
    let (summary, code) = receiver.stop();
    assert_eq!((&summary["kind"], &summary["verified"]), (&"summary".into(), &1.into()));
    assert_eq!(code, Some(0));
}

#[test]
fn invalid_deliveries_are_explained_and_the_exit_code_is_1() {
    let mut receiver = start(&[
        "--secret-env",
        "SHOP_SECRET",
        "--other-mode-secret-env",
        "SHOP_TEST_SECRET",
        "--answer",
        "500,200",
    ]);
    assert_eq!(receiver.send(&sign(TEST_SECRET, BODY), BODY), 500);
    let line = receiver.line();
    assert_eq!(
        (&line["verdict"], reason_names(&line["reasons"])),
        (&"not verified".into(), vec!["other_mode"])
    );
    assert_eq!(line["answer"], "500");

    assert_eq!(receiver.send(&sign(SECRET, BODY), &format!("{BODY} ")), 200);
    let line = receiver.line();
    assert_eq!(reason_names(&line["reasons"]), ["body_rewritten"]);
    assert_eq!((&line["try"], reason_names(&line["notes"])), (&2.into(), vec!["retry"]));

    // A sender that leaks the secret in the body.
    receiver.send(SECRET, &format!("{{\"secret\":\"{SECRET}\"}}"));
    let line = receiver.line();
    assert!(reason_names(&line["notes"]).contains(&"secret_quoted"), "{line}");

    let (summary, code) = receiver.stop();
    assert_eq!((&summary["received"], &summary["not_verified"]), (&3.into(), &3.into()));
    assert_eq!((&summary["duplicates"], code), (&2.into(), Some(1)));
}

fn judge(record: &Path, options: &[&str]) -> Output {
    program(Path::new("."), &["judge", record.to_str().unwrap()]).args(options).output().unwrap()
}

#[test]
fn recorded_deliveries_can_be_judged() {
    let mut receiver = start(&["--record", "deliveries.jsonl"]);
    receiver.send(&sign(SECRET, BODY), BODY);
    assert_eq!(receiver.line()["verdict"], "not judged");
    let record = receiver.directory.path().join("deliveries.jsonl");
    let text = fs::read_to_string(&record).unwrap();
    assert_eq!(text.lines().count(), 1);

    let output = judge(&record, &["--secret-env", "SHOP_SECRET"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("verified") && stdout.contains("charge.paid"), "{stdout}");
    assert!(stdout.contains("1 received: 1 verified, 0 not verified"), "{stdout}");
    assert_eq!(output.status.code(), Some(0));

    let output = judge(&record, &["--secret-env", "SHOP_TEST_SECRET"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("the signature matches none of the secrets: SHOP_TEST_SECRET"), "{stdout}");
    assert_eq!(output.status.code(), Some(1));

    let output = judge(&record, &[]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("1 received: 0 verified, 0 not verified, 1 not judged"), "{stdout}");
    assert_eq!(output.status.code(), Some(3), "a run without a verdict is not a success");

    let empty = receiver.directory.path().join("nothing.jsonl");
    fs::write(&empty, "").unwrap();
    assert_eq!(judge(&empty, &["--secret-env", "SHOP_SECRET"]).status.code(), Some(3));

    fs::write(&record, format!("{text}{{}}\n")).unwrap();
    let output = judge(&record, &[]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("line 2 is not a recorded request"), "{error}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn invalid_usage_lists_the_allowed_values() {
    check_cases("receiver");
}

/// Starts a handler that responds to every request with a status, and returns its URL.
fn start_handler(status: u16) -> String {
    serve_status(status, |_| String::new()).unwrap() + "/hooks"
}

#[test]
fn a_handler_is_tested_and_the_exit_code_is_the_result() {
    #[track_caller]
    fn check_try(arguments: &[&str], code: i32, expected_part: &str) -> Output {
        let output = program(Path::new("."), &["try", "--settle", "1"]).args(arguments).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), text.contains(expected_part)), (Some(code), true), "{text}");
        assert!(!text.contains(&SECRET[6..]), "{text}");
        output
    }
    let secret = ["--secret-env", "SHOP_SECRET"];
    let accepting_handler = start_handler(204);
    check_try(&[&accepting_handler, secret[0], secret[1]], 1, "fail  answers.tampered");
    check_try(&[&accepting_handler, secret[0], secret[1], "--only", "answers.retry"], 0, "1 pass");
    check_try(&[&accepting_handler, secret[0], secret[1], "--only", "acts.retry"], 3, "--acted COMMAND");
    check_try(
        &[&accepting_handler, secret[0], secret[1], "--only", "acts.retry", "--acted", "echo 1"],
        0,
        "1 pass",
    );
    check_try(
        &[&accepting_handler, secret[0], secret[1], "--only", "acts.retry", "--acted", "echo one"],
        3,
        "--acted printed `one`",
    );
    check_try(
        &[&accepting_handler, secret[0], secret[1], "--only", "acts.retry", "--acted", "exit 3"],
        3,
        "--acted ended with",
    );
    check_try(
        &[&accepting_handler, secret[0], secret[1], "--only", "nothing.*"],
        2,
        "no statement matches `nothing.*`",
    );
    check_try(&[&accepting_handler, "--secret-env", "NOT_SET"], 2, "`NOT_SET` is not set");
    check_try(
        &[&start_handler(500), secret[0], secret[1], "--only", "answers.retry"],
        3,
        "refuses valid deliveries",
    );
    check_try(&["http://127.0.0.1:1/", secret[0], secret[1]], 4, "does not respond");
    let output = check_try(
        &[&accepting_handler, secret[0], secret[1], "--only", "answers.types", "--format", "json"],
        0,
        "\"exit_code\": 0",
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rows"][0]["verdict"], "pass");
}
