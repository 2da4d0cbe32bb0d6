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
struct Listening {
    running: RunningProgram,
    directory: tempfile::TempDir,
}

fn program(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = support::program(directory);
    command.arg("receiver").args(arguments).env("SHOP_SECRET", SECRET).env("SHOP_TEST_SECRET", TEST_SECRET);
    command
}

fn start(arguments: &[&str]) -> Listening {
    let directory = tempfile::tempdir().unwrap();
    let mut command = program(directory.path(), &["listen", "--port", "0"]);
    command.args(arguments).args(["--format", "json", "--ready-file", "ready.json"]);
    let running = support::start(command);
    assert_eq!(running.ready["kind"], "ready");
    let file: Value = serde_json::from_str(&support::read(directory.path(), "ready.json")).unwrap();
    assert_eq!(file["address"], running.ready["address"]);
    Listening { running, directory }
}

impl Listening {
    fn post(&self, signature: &str, body: &str) -> u16 {
        let lines = &format!(
            "User-Agent: Service-Webhooks/1.0\r\nX-Service-Event: charge.paid\r\n\
             X-Service-Delivery: 01a0be42-2100-7000-8000-01e7e4f1ca48\r\nX-Service-Signature: {signature}\r\n"
        );
        let request = Request { method: "POST", header_lines: lines, body, ..Request::get("/hooks") };
        let mut connection = Connection::open(self.running.value("address")).unwrap();
        connection.send(request.to_string()).unwrap();
        connection.message().unwrap().status
    }

    fn line(&mut self) -> Value {
        let line = self.running.line();
        assert!(!line.to_string().contains(&SECRET[6..]), "{line}");
        line
    }

    /// Stops the receiver; returns the last line and the exit code.
    fn stop(mut self) -> (Value, Option<i32>) {
        self.running.signal("TERM").unwrap();
        let summary = self.line();
        (summary, self.running.child.wait().unwrap().code())
    }
}

/// Signs as the reference server does: the receiver has a separate implementation, and both must agree.
fn sign(secret: &str, body: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    reference_core::signature::Signer::new(secret).sign(now, body.as_bytes())
}

fn reason_names(words: &Value) -> Vec<&str> {
    words.as_array().unwrap().iter().map(|word| word["name"].as_str().unwrap()).collect()
}

#[test]
fn a_signed_delivery_is_verified_and_the_exit_code_is_0() {
    let mut running = start(&["--secret-env", "SHOP_TEST_SECRET,SHOP_SECRET"]);
    assert_eq!(running.post(&sign(SECRET, BODY), BODY), 200);
    let line = running.line();
    assert_eq!((&line["kind"], &line["verdict"]), (&"delivery".into(), &"verified".into()));
    assert_eq!((&line["secret"], &line["try"]), (&"SHOP_SECRET".into(), &1.into()));
    assert_eq!((&line["event"], &line["mode"]), (&"charge.paid".into(), &"live".into()));
    assert_eq!((&line["subject"], &line["answer"]), (&"kanwf93se5yn".into(), &"200".into()));
    assert_eq!((&line["bytes"], reason_names(&line["notes"])), (&BODY.len().into(), vec![]));
    let (summary, code) = running.stop();
    assert_eq!((&summary["kind"], &summary["verified"]), (&"summary".into(), &1.into()));
    assert_eq!(code, Some(0));
}

#[test]
fn invalid_deliveries_are_explained_and_the_exit_code_is_1() {
    let mut running = start(&[
        "--secret-env",
        "SHOP_SECRET",
        "--other-mode-secret-env",
        "SHOP_TEST_SECRET",
        "--answer",
        "500,200",
    ]);
    assert_eq!(running.post(&sign(TEST_SECRET, BODY), BODY), 500);
    let line = running.line();
    assert_eq!(
        (&line["verdict"], reason_names(&line["reasons"])),
        (&"not verified".into(), vec!["other_mode"])
    );
    assert_eq!(line["answer"], "500");

    assert_eq!(running.post(&sign(SECRET, BODY), &format!("{BODY} ")), 200);
    let line = running.line();
    assert_eq!(reason_names(&line["reasons"]), ["body_rewritten"]);
    assert_eq!((&line["try"], reason_names(&line["notes"])), (&2.into(), vec!["retry"]));

    // A sender that leaks the secret in the body.
    running.post(SECRET, &format!("{{\"secret\":\"{SECRET}\"}}"));
    let line = running.line();
    assert!(reason_names(&line["notes"]).contains(&"secret_quoted"), "{line}");

    let (summary, code) = running.stop();
    assert_eq!((&summary["received"], &summary["not_verified"]), (&3.into(), &3.into()));
    assert_eq!((&summary["duplicates"], code), (&2.into(), Some(1)));
}

fn judge(record: &Path, more: &[&str]) -> Output {
    program(Path::new("."), &["judge", record.to_str().unwrap()]).args(more).output().unwrap()
}

#[test]
fn a_record_can_be_judged_again() {
    let mut running = start(&["--record", "deliveries.jsonl"]);
    running.post(&sign(SECRET, BODY), BODY);
    assert_eq!(running.line()["verdict"], "not judged");
    let record = running.directory.path().join("deliveries.jsonl");
    let text = fs::read_to_string(&record).unwrap();
    assert_eq!(text.lines().count(), 1);

    let output = judge(&record, &["--secret-env", "SHOP_SECRET"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("verified") && shown.contains("charge.paid"), "{shown}");
    assert!(shown.contains("1 received: 1 verified, 0 not verified"), "{shown}");
    assert_eq!(output.status.code(), Some(0));

    let output = judge(&record, &["--secret-env", "SHOP_TEST_SECRET"]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("the signature matches none of the secrets: SHOP_TEST_SECRET"), "{shown}");
    assert_eq!(output.status.code(), Some(1));

    let output = judge(&record, &[]);
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("1 received: 0 verified, 0 not verified, 1 not judged"), "{shown}");
    assert_eq!(output.status.code(), Some(3), "a run without a verdict is not a success");

    let nothing = running.directory.path().join("nothing.jsonl");
    fs::write(&nothing, "").unwrap();
    assert_eq!(judge(&nothing, &["--secret-env", "SHOP_SECRET"]).status.code(), Some(3));

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

/// Starts a handler that answers every request with one status.
fn handler(status: u16) -> String {
    serve_status(status, |_| String::new()).unwrap() + "/hooks"
}

#[test]
fn a_handler_is_tested_and_the_exit_code_states_the_result() {
    #[track_caller]
    fn check(arguments: &[&str], code: i32, says: &str) -> Output {
        let output = program(Path::new("."), &["try", "--settle", "1"]).args(arguments).output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), text.contains(says)), (Some(code), true), "{text}");
        assert!(!text.contains(&SECRET[6..]), "{text}");
        output
    }
    let own = ["--secret-env", "SHOP_SECRET"];
    let takes_all = handler(204);
    check(&[&takes_all, own[0], own[1]], 1, "fail  answers.tampered");
    check(&[&takes_all, own[0], own[1], "--only", "answers.retry"], 0, "1 pass");
    check(&[&takes_all, own[0], own[1], "--only", "acts.retry"], 3, "--acted COMMAND");
    check(&[&takes_all, own[0], own[1], "--only", "acts.retry", "--acted", "echo 1"], 0, "1 pass");
    check(
        &[&takes_all, own[0], own[1], "--only", "acts.retry", "--acted", "echo one"],
        3,
        "--acted printed `one`",
    );
    check(
        &[&takes_all, own[0], own[1], "--only", "acts.retry", "--acted", "exit 3"],
        3,
        "--acted ended with",
    );
    check(&[&takes_all, own[0], own[1], "--only", "nothing.*"], 2, "no statement matches `nothing.*`");
    check(&[&takes_all, "--secret-env", "NOT_THERE"], 2, "`NOT_THERE` is not set");
    check(&[&handler(500), own[0], own[1], "--only", "answers.retry"], 3, "refuses valid deliveries");
    check(&["http://127.0.0.1:1/", own[0], own[1]], 4, "does not respond");
    let output = check(
        &[&takes_all, own[0], own[1], "--only", "answers.types", "--format", "json"],
        0,
        "\"exit_code\": 0",
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["rows"][0]["verdict"], "pass");
}
