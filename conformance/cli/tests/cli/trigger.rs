//! `trigger` makes every type of event happen in a served world.

use reference_core::event::EventType;
use serde_json::Value;

use crate::support::{Running, json, program, run, said};

#[test]
fn every_type_of_event_happens_in_both_modes() {
    let directory = tempfile::tempdir().unwrap();
    let served = Running::serve(directory.path(), &[]);
    for mode in ["live", "test"] {
        for kind in EventType::ALL {
            let kind = kind.as_str();
            let arguments = ["trigger", kind, "--mode", mode, "--to", served.word("url"), "--format", "json"];
            let output = run(directory.path(), &arguments);
            assert_eq!(output.status.code(), Some(0), "{kind} in {mode}: {}", said(&output));
            let made = json(&output);
            let is_it = |it: &Value| it["type"] == kind && it["what"] == "event" && it["mode"] == mode;
            let happened = made["happened"].as_array().expect("a list");
            assert!(happened.iter().any(is_it), "{kind} in {mode}: {made}");
            let place = made["dashboard"].as_str().expect("an address").strip_prefix(served.word("url"));
            let page = served.ask("GET", place.expect("of this server"), None, "");
            assert!(page.starts_with("HTTP/1.1 200"), "{kind} in {mode}: {page}");
        }
    }
    let keys = served.ask("GET", "/sandbox/keys", None, "");
    assert_eq!(keys.matches("\"revoked_at\":null").count(), 2, "its own keys are revoked: {keys}");
}

#[test]
fn what_it_made_happen_is_told_in_lines() {
    let directory = tempfile::tempdir().unwrap();
    let served = Running::serve(directory.path(), &[]);
    let mut program = program(directory.path());
    let output = program
        .env("CHARGEPROOF_URL", served.word("url"))
        .args(["trigger", "invoice.paid"])
        .output()
        .unwrap();
    let text = said(&output);
    for kind in ["invoice.created", "invoice.viewed", "charge.paid", "invoice.paid"] {
        assert!(text.lines().any(|line| line.starts_with(kind)), "{kind} in {text}");
    }
    assert!(text.lines().any(|line| line.contains("/dashboard/acme/live/invoices/")), "{text}");
}

#[track_caller]
fn check_refused(arguments: &[&str], code: i32, part: &str) {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &[&["trigger"], arguments].concat());
    assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    assert!(said(&output).contains(part), "{part:?} in {}", said(&output));
}

#[test]
fn a_mistake_is_answered_with_what_is_possible() {
    check_refused(&["charge.payed"], 2, "'charge.paid'");
    check_refused(&["nothing"], 2, "invoice.voided");
    check_refused(&[], 2, "<EVENT>");
    check_refused(&["charge.paid", "--mode", "prod"], 2, "[possible values: live, test]");
    check_refused(&["charge.paid", "--to", "shop"], 2, "`shop` is not an address");
    check_refused(
        &["charge.paid", "--to", "http://127.0.0.1:9"],
        4,
        "start a server with `chargeproof serve`",
    );
    check_refused(&["charge.paid", "--sandbox-token-env", "NONE"], 2, "export NONE=…");
}
