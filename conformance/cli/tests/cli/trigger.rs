//! `trigger` causes every event type in a served world.

use reference_core::event::EventType;
use serde_json::Value;

use crate::{
    cases::check_cases,
    support::{json, printed, program, run, serve},
};

#[test]
fn every_type_of_event_happens_in_both_modes() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &[]);
    for mode in ["live", "test"] {
        for kind in EventType::ALL {
            let kind = kind.as_str();
            let arguments =
                ["trigger", kind, "--mode", mode, "--to", served.value("url"), "--format", "json"];
            let output = run(directory.path(), &arguments);
            assert_eq!(output.status.code(), Some(0), "{kind} in {mode}: {}", printed(&output));
            let made = json(&output);
            let is_it =
                |value: &Value| value["type"] == kind && value["what"] == "event" && value["mode"] == mode;
            let happened = made["happened"].as_array().expect("an array");
            assert!(happened.iter().any(is_it), "{kind} in {mode}: {made}");
            let path = made["dashboard"].as_str().expect("an address").strip_prefix(served.value("url"));
            let page = served.call("GET", path.expect("the URL starts with that of the server"), None, "");
            assert_eq!(page.status, 200, "{kind} in {mode}: {page:?}");
        }
    }
    let keys = served.call("GET", "/sandbox/keys", None, "").body;
    assert_eq!(keys.matches("\"revoked_at\":null").count(), 2, "its own keys are revoked: {keys}");
}

#[test]
fn the_events_are_printed_in_lines() {
    let directory = tempfile::tempdir().unwrap();
    let served = serve(directory.path(), &[]);
    let mut program = program(directory.path());
    let output = program
        .env("CHARGEPROOF_URL", served.value("url"))
        .args(["trigger", "invoice.paid"])
        .output()
        .unwrap();
    let text = printed(&output);
    for kind in ["invoice.created", "invoice.viewed", "charge.paid", "invoice.paid"] {
        assert!(text.lines().any(|line| line.starts_with(kind)), "{kind} in {text}");
    }
    assert!(text.lines().any(|line| line.contains("/dashboard/acme/test/invoices/")), "{text}");
}

#[test]
fn an_error_lists_the_allowed_values() {
    check_cases("trigger");
}
