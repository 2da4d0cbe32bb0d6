//! Serving, playing and fuzzing.

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
    let served = serve(directory.path(), &["--seed", "7", "--ready-file", "ready.json"]);
    let written: Value = serde_json::from_str(&fs::read_to_string(ready_file).unwrap()).unwrap();
    assert_eq!(written, served.ready, "the file says what the line says");
    let key = Some(served.value("live_key"));

    let answer =
        served.call("POST", "/v1/charges", key, r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#);
    assert_eq!(answer.status, 201, "{answer:?}");
    let body = answer.json();
    let code = body["data"]["id"].as_str().unwrap();
    served.call("POST", "/sandbox/pay", None, &format!(r#"{{"charge":"{code}"}}"#));
    served.call("POST", "/sandbox/mine", None, r#"{"mode":"live","asset":"BTC","blocks":2}"#);
    let charge = served.call("GET", &format!("/v1/charges/{code}"), key, "").body;
    assert!(charge.contains(r#""status":"paid""#), "{charge}");
    let events = served.call("GET", &format!("/v1/events?charge={code}"), key, "").body;
    for kind in ["charge.created", "charge.payment_detected", "charge.paid"] {
        assert!(events.contains(kind), "{kind} in {events}");
    }
}

#[test]
fn the_same_seed_and_calls_give_the_same_bytes_in_another_process() {
    let bodies = |environment: &str| {
        let directory = tempfile::tempdir().unwrap();
        // The directory and the environment must have no effect.
        let mut program = program(directory.path());
        program.env("TZ", environment).env("LANG", environment);
        let start = ["--seed", "11", "--clock", "frozen", "--start", "2026-01-05T09:00:00Z"];
        let public = ["--public-url", "https://pay.example", "--trust-loopback"];
        let served = serve_as(program, &[&start[..], &public[..]].concat());
        let live = served.value("live_key").to_owned();
        let mut bodies = vec![live.clone(), served.value("test_key").to_owned()];
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
            bodies.push(served.call(method, path, Some(&live), body).body);
        }
        bodies
    };
    let (first, second) = (bodies("UTC"), bodies("Pacific/Chatham"));
    assert_eq!(first, second);
    assert!(first.iter().any(|body| body.contains("charge.expired")), "something happened: {first:?}");
}

#[test]
fn a_served_reference_is_stopped_by_sigterm() {
    let directory = tempfile::tempdir().unwrap();
    let mut served = serve(directory.path(), &[]);
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn a_second_signal_does_not_wait_for_running_requests() {
    let directory = tempfile::tempdir().unwrap();
    let mut program = program(directory.path());
    program.stderr(Stdio::piped());
    let mut served = serve_as(program, &[]);
    let mut lines = BufReader::new(served.child.stderr.take().expect("the stream is piped"));
    let address = served.value("address").to_owned();
    let mut connection = Connection::open(&address).expect("it listens");
    // After `100 Continue` the server waits for the body, which never comes.
    let request = format!(
        "POST /sandbox/mine HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    );
    connection.send(request).expect("the server reads the request");
    assert_eq!(connection.message().expect("the server responds").status, 100);

    let mut line = String::new();
    for expected in ["stopping;", "stopped at once"] {
        served.signal("INT").unwrap();
        line.clear();
        lines.read_line(&mut line).unwrap();
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn keys_are_written_where_only_their_owner_can_read_them() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, directory.path().join("ready.json.part")).unwrap();
    fs::write(directory.path().join("old.json.part"), "left over").unwrap();
    for name in ["ready.json", "old.json"] {
        let _served = serve(directory.path(), &["--ready-file", name]);
        let metadata = fs::symlink_metadata(directory.path().join(name)).unwrap();
        assert!(metadata.is_file(), "{name}");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600, "{name}");
    }
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "mine");
}

#[test]
fn every_scenario_leaves_the_same_transcript_over_http() {
    let directory = tempfile::tempdir().unwrap();
    let in_process = json(&run(directory.path(), &["play", "--format", "json"]));
    let served = serve(directory.path(), &["--clock", "frozen"]);
    let over_http = run(directory.path(), &["play", "--format", "json", "--against", served.value("url")]);
    assert_eq!(over_http.status.code(), Some(0), "{}", text(&over_http.stdout));
    assert_eq!(json(&over_http)["digest"], in_process["digest"]);
    let count = in_process["scenarios"].as_array().unwrap().len();
    assert!(count >= 40, "{count} scenarios came with the program");
}

#[test]
fn a_world_is_not_restarted_while_its_clock_runs() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &[]);
    let played = run(directory.path(), &["play", "--against", served.value("url")]);
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
    let spoiled = fs::read_to_string(&golden).unwrap().replace("charge.created", "charge.invented");
    fs::write(&golden, spoiled).unwrap();
    let differs = run(directory.path(), &["play", "one.yaml"]);
    assert_eq!(differs.status.code(), Some(1));
    let shown = text(&differs.stdout);
    let (gone, new) = (shown.find("charge.invented"), shown.find("charge.created"));
    assert!(gone.is_some() && gone < new, "{shown}");
    assert_eq!(run(directory.path(), &["play", "one.yaml", "--seed", "2"]).status.code(), Some(0));
}

#[test]
fn an_unreachable_target_has_its_own_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let output = program(directory.path())
        .env("CHARGEPROOF_LIVE_KEY", "svc_live_0123456789abcdef0123456789abcdef01234567")
        .env("CHARGEPROOF_TEST_KEY", "svc_test_0123456789abcdef0123456789abcdef01234567")
        // Nothing listens on port 9: only root may bind ports below 1024.
        .args(["check", "http://127.0.0.1:9"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains("0123456789abcdef"), "no key is ever shown");
}

#[test]
fn the_served_reference_withstands_random_requests() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &["--seed", "1", "--rate-limit", "off"]);
    let fuzz = |key: &str| {
        program(directory.path())
            .env("CHARGEPROOF_LIVE_KEY", key)
            .env("CHARGEPROOF_TEST_KEY", served.value("test_key"))
            .args(["fuzz", served.value("url"), "--rate", "off", "--allow-writes", "--seed", "1"])
            .args(["--requests", "600", "--format", "json", "--save", "found.json"])
            .output()
            .unwrap()
    };
    let output = fuzz(served.value("live_key"));
    let report = json(&output);
    assert_eq!((output.status.code(), &report["found"]), (Some(0), &Value::Array(Vec::new())), "{report}");
    assert!(!directory.path().join("found.json").exists(), "nothing was found, so nothing is kept");
    let output = fuzz("svc_live_nobodysKeyAtAll");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}
