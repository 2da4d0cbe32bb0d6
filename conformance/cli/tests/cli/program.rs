//! Basic runs of `serve`, `play`, `check` and `fuzz`.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;
use testkit::Connection;

use crate::support::{json, program, run, serve, serve_as, text};

#[test]
fn a_charge_is_served_paid_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let ready_file = directory.path().join("ready.json");
    let server = serve(directory.path(), &["--seed", "7", "--ready-file", "ready.json"]);
    let file: Value = serde_json::from_str(&fs::read_to_string(ready_file).unwrap()).unwrap();
    assert_eq!(file, server.first_line_json, "the file has the content of the line");
    let key = Some(server.value("live_key"));

    let response =
        server.call("POST", "/v1/charges", key, r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#);
    assert_eq!(response.status, 201, "{response:?}");
    let body = response.json();
    let id = body["data"]["id"].as_str().unwrap();
    server.call("POST", "/sandbox/pay", None, &format!(r#"{{"charge":"{id}"}}"#));
    server.call("POST", "/sandbox/mine", None, r#"{"mode":"live","asset":"BTC","blocks":2}"#);
    let charge = server.call("GET", &format!("/v1/charges/{id}"), key, "").body;
    assert!(charge.contains(r#""status":"paid""#), "{charge}");
    let events = server.call("GET", &format!("/v1/events?charge={id}"), key, "").body;
    for event_type in ["charge.created", "charge.payment_detected", "charge.paid"] {
        assert!(events.contains(event_type), "{event_type} in {events}");
    }
}

#[test]
fn the_same_seed_and_calls_give_the_same_bytes_in_another_process() {
    let bodies = |environment: &str| {
        let directory = tempfile::tempdir().unwrap();
        // The directory and the environment must have no effect.
        let mut program = program(directory.path());
        program.env("TZ", environment).env("LANG", environment);
        let seed_and_clock = ["--seed", "11", "--clock", "frozen", "--start", "2026-01-05T09:00:00Z"];
        let public = ["--public-url", "https://pay.example", "--trust-loopback"];
        let server = serve_as(program, &[&seed_and_clock[..], &public[..]].concat());
        let live = server.value("live_key").to_owned();
        let mut bodies = vec![live.clone(), server.value("test_key").to_owned()];
        for (method, path, body) in [
            ("POST", "/v1/charges", r#"{"asset":"ETH","amount":"10","currency":"USD"}"#),
            ("POST", "/sandbox/endpoints", r#"{"mode":"live","url":"https://shop.sim/hooks"}"#),
            (
                "POST",
                "/v1/invoices",
                r#"{"amount":"99.00","customer_email":"ann@example.com","send_email":true}"#,
            ),
            ("POST", "/sandbox/advance", r#"{"by":"2h"}"#),
            ("GET", "/v1/events", ""),
            ("GET", "/sandbox/deliveries", ""),
            ("GET", "/sandbox", ""),
        ] {
            bodies.push(server.call(method, path, Some(&live), body).body);
        }
        bodies
    };
    let (first, second) = (bodies("UTC"), bodies("Pacific/Chatham"));
    assert_eq!(first, second);
    assert!(first.iter().any(|body| body.contains("charge.expired")), "the calls cause events: {first:?}");
}

#[test]
fn sigterm_stops_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = serve(directory.path(), &[]);
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn a_second_signal_does_not_wait_for_running_requests() {
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.stderr(Stdio::piped());
    let mut server = serve_as(program, &[]);
    let mut lines = BufReader::new(server.child.stderr.take().expect("the stream is piped"));
    let address = server.value("address").to_owned();
    let mut connection = Connection::open(&address).expect("the server listens");
    // After `100 Continue` the server waits for the body, which never comes.
    let request = format!(
        "POST /sandbox/mine HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    );
    connection.send(request).expect("the server reads the request");
    assert_eq!(connection.message().expect("the server responds").status, 100);

    let mut line = String::new();
    for expected in ["stopping;", "stopped at once"] {
        server.signal("INT").unwrap();
        line.clear();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn only_the_owner_can_read_the_ready_file() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    // Existing files must not be opened as temporary files, nor links to other files followed.
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, "unchanged").unwrap();
    symlink(&elsewhere, directory.path().join("ready.json.part")).unwrap();
    fs::write(directory.path().join("old.json.part"), "old content").unwrap();
    for name in ["ready.json", "old.json"] {
        let _server = serve(directory.path(), &["--ready-file", name]);
        let metadata = fs::symlink_metadata(directory.path().join(name)).unwrap();
        assert!(metadata.is_file(), "{name}");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "unchanged");
}

#[test]
fn every_scenario_has_the_same_transcript_over_http() {
    let directory = tempfile::tempdir().unwrap();
    let in_process = json(&run(directory.path(), &["play", "--format", "json"]));
    let server = serve(directory.path(), &["--clock", "frozen"]);
    let over_http = run(directory.path(), &["play", "--format", "json", "--against", server.value("url")]);
    assert_eq!(over_http.status.code(), Some(0), "{}", text(&over_http.stdout));
    assert_eq!(json(&over_http)["digest"], in_process["digest"]);
    let count = in_process["scenarios"].as_array().unwrap().len();
    assert!(count >= 40, "only {count} scenarios are built in");
}

#[test]
fn scenarios_are_refused_by_a_server_whose_clock_runs() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &[]);
    let played = run(directory.path(), &["play", "--against", server.value("url")]);
    assert_eq!(played.status.code(), Some(2), "{}", text(&played.stdout));
    assert!(text(&played.stdout).contains("frozen"), "{}", text(&played.stdout));
}

#[test]
fn the_built_in_server_passes_every_check() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["check", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
    let report = text(&output.stdout);
    assert!(!report.contains("\"not_judged\"") && !report.contains("\"fail\""), "{report}");
}

const SCENARIO: &str = "title: One charge\nsteps:\n  - open: { charge: c1, asset: BTC, amount: 10.00 EUR }\n";

#[test]
fn a_difference_is_shown_and_sets_the_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.yaml");
    fs::write(&path, SCENARIO).unwrap();
    let missing = run(directory.path(), &["play", "one.yaml"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stdout).contains("--bless"), "{}", text(&missing.stdout));

    assert_eq!(run(directory.path(), &["play", "one.yaml", "--bless"]).status.code(), Some(0));
    assert_eq!(run(directory.path(), &["play", "."]).status.code(), Some(0));

    let golden = directory.path().join("one.transcript");
    let changed_transcript =
        fs::read_to_string(&golden).unwrap().replace("charge.created", "charge.invented");
    fs::write(&golden, changed_transcript).unwrap();
    let differs = run(directory.path(), &["play", "one.yaml"]);
    assert_eq!(differs.status.code(), Some(1));
    let stdout = text(&differs.stdout);
    let (removed, added) = (stdout.find("charge.invented"), stdout.find("charge.created"));
    assert!(removed.is_some() && removed < added, "{stdout}");
    assert_eq!(run(directory.path(), &["play", "one.yaml", "--seed", "2"]).status.code(), Some(0));
}

#[test]
fn an_unreachable_target_has_its_own_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let output = program(directory.path())
        .env("CHARGEPROOF_LIVE_KEY", "svc_live_0123456789abcdef0123456789abcdef01234567")
        .env("CHARGEPROOF_TEST_KEY", "svc_test_0123456789abcdef0123456789abcdef01234567")
        // No server listens on port 9, because only root may bind ports below 1024.
        .args(["check", "http://127.0.0.1:9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains("0123456789abcdef"), "the output contains no key");
}

#[test]
fn random_requests_find_no_violation_in_the_reference_server() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &["--seed", "1", "--rate-limit", "off"]);
    let fuzz = |key: &str| {
        program(directory.path())
            .env("CHARGEPROOF_LIVE_KEY", key)
            .env("CHARGEPROOF_TEST_KEY", server.value("test_key"))
            .args(["fuzz", server.value("url"), "--rate", "off", "--allow-writes", "--seed", "1"])
            .args(["--requests", "600", "--format", "json", "--save", "found.json"])
            .output()
            .unwrap()
    };
    let output = fuzz(server.value("live_key"));
    let report = json(&output);
    assert_eq!((output.status.code(), &report["found"]), (Some(0), &Value::Array(Vec::new())), "{report}");
    assert!(!directory.path().join("found.json").exists(), "no file is written without findings");
    let output = fuzz("svc_live_unknownKey00000");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}
