//! `trigger` causes events of every type in a running reference server.

use reference_core::event::EventType;
use serde_json::Value;

use crate::{
    cases::check_cases,
    support::{json, output_of, program, run, serve},
};

#[test]
fn every_event_type_is_triggered_in_both_modes() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &[]);
    for mode in ["live", "test"] {
        for event_type in EventType::ALL {
            let event_type = event_type.as_str();
            let arguments =
                ["trigger", event_type, "--mode", mode, "--to", server.value("url"), "--format", "json"];
            let output = run(directory.path(), &arguments);
            assert_eq!(output.status.code(), Some(0), "{event_type} in {mode}: {}", output_of(&output));
            let result = json(&output);
            let is_triggered = |value: &Value| {
                value["type"] == event_type && value["what"] == "event" && value["mode"] == mode
            };
            let happened = result["happened"].as_array().expect("`happened` is an array");
            assert!(happened.iter().any(is_triggered), "{event_type} in {mode}: {result}");
            let path =
                result["dashboard"].as_str().expect("`dashboard` is a URL").strip_prefix(server.value("url"));
            let page = server.call("GET", path.expect("the URL starts with that of the server"), None, "");
            assert_eq!(page.status, 200, "{event_type} in {mode}: {page:?}");
        }
    }
    let keys = server.call("GET", "/sandbox/keys", None, "").body;
    assert_eq!(
        keys.matches("\"revoked_at\":null").count(),
        2,
        "only the first two keys of the server are valid, because `trigger` revokes its own: {keys}"
    );
}

#[test]
fn each_event_and_the_dashboard_page_are_printed_on_lines() {
    let directory = tempfile::tempdir().unwrap();
    let server = serve(directory.path(), &[]);
    let mut command = program(directory.path());
    let output = command
        .env("CHARGEPROOF_URL", server.value("url"))
        .args(["trigger", "invoice.paid"])
        .output()
        .unwrap();
    let text = output_of(&output);
    for event_type in ["invoice.created", "invoice.viewed", "charge.paid", "invoice.paid"] {
        assert!(text.lines().any(|line| line.starts_with(event_type)), "{event_type} in {text}");
    }
    assert!(text.lines().any(|line| line.contains("/dashboard/acme/test/invoices/")), "{text}");
}

#[test]
fn errors_say_what_is_allowed_or_what_to_do() {
    check_cases("trigger");
}
