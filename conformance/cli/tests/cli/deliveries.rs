//! Judging deliveries of a served reference: at a receiver during the run, or from a file.

use std::{env, fs, path::Path, process::Output};

use serde_json::json;

use testkit::{Request, RunningProgram};

use crate::{
    cases::check_cases,
    support::{self, program, serve, start, text},
};

/// A served reference with a frozen clock.
struct Served(RunningProgram);

impl Served {
    fn start(directory: &Path, forward: &str) -> Served {
        Served(serve(directory, &["--clock", "frozen", "--seed", "1", "--forward", forward]))
    }

    fn check(&self, directory: &Path, secrets: [&str; 2], arguments: &[&str]) -> Output {
        program(directory)
            .env("CHARGEPROOF_LIVE_KEY", self.0.value("live_key"))
            .env("CHARGEPROOF_TEST_KEY", self.0.value("test_key"))
            .env("CHARGEPROOF_LIVE_WEBHOOK_SECRET", secrets[0])
            .env("CHARGEPROOF_TEST_WEBHOOK_SECRET", secrets[1])
            .args(["check", self.0.value("url"), "--quick", "--format", "json"])
            .args(arguments)
            .output()
            .unwrap()
    }

    /// Adds an endpoint and returns its secret.
    fn add(&self, url: &str, mode: &str) -> String {
        let answer = self.0.post("/sandbox/endpoints", None, &json!({ "url": url, "mode": mode }));
        answer["endpoint"]["secret"].as_str().unwrap().to_owned()
    }
}

/// Returns the verdict on a statement.
fn verdict_of(output: &Output, id: &str) -> String {
    let report = support::json(output);
    let statements = report["statements"].as_array().unwrap();
    let statement =
        statements.iter().find(|statement| statement["id"] == id).unwrap_or_else(|| panic!("no {id}"));
    statement["verdict"].as_str().unwrap().to_owned()
}

#[test]
fn captured_deliveries_are_judged_and_no_secret_is_stored() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let mut receiver = program(here);
    receiver.args(["receiver", "listen", "--port", "0", "--format", "json", "--record", "deliveries.jsonl"]);
    let mut receiver = start(receiver);
    let forward = format!("https://shop.example={}", receiver.value("url"));
    let served = Served::start(here, &forward);
    let live = served.add("https://shop.example/live", "live");
    let test = served.add("https://shop.example/test", "test");
    for key in ["live_key", "test_key"] {
        let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
        served.0.post("/v1/charges", Some(served.0.value(key)), &charge);
    }
    served.0.post("/sandbox/advance", None, &json!({ "by": "1s" }));
    // A line for each of the two, printed once it is recorded.
    for _ in 0..2 {
        receiver.line();
    }
    drop(receiver);

    let arguments = ["--deliveries", "deliveries.jsonl", "--record", "run.json"];
    let output = served.check(here, [&live, &test], &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    for id in ["webhooks.signed", "webhooks.event_id", "webhooks.mode_endpoints", "charges.asset_amount"] {
        assert_eq!(verdict_of(&output, id), "pass", "{id}");
    }
    for id in ["webhooks.pushed", "webhooks.redirects", "invoices.fields", "endpoints.address"] {
        assert_eq!(verdict_of(&output, id), "not_judged", "{id}");
    }
    let kept = fs::read_to_string(here.join("run.json")).unwrap();
    for secret in [&live, &test] {
        assert!(!kept.contains(&secret["whsec_".len()..]), "a secret is kept");
    }

    let swapped = served.check(here, [&test, &live], &["--deliveries", "deliveries.jsonl"]);
    assert_eq!(
        (swapped.status.code(), verdict_of(&swapped, "webhooks.signed")),
        (Some(1), "fail".to_owned())
    );
}

const ADDRESS: &str = "SERVED_ADDRESS";
const KEYS: &str = "SERVED_KEYS";

/// The command of `check --register`, run by that test only: adds an endpoint and fails if it is refused. On the first
/// run it also causes an event, because the receiver is listening by then.
#[test]
fn the_command_that_adds_an_endpoint() {
    let Ok(url) = env::var("CHARGEPROOF_ENDPOINT_URL") else { return };
    let address = env::var(ADDRESS).unwrap();
    let post = |path: &str, key: Option<&str>, body: serde_json::Value| {
        let request = Request { method: "POST", key, body: &body.to_string(), ..Request::get(path) };
        testkit::call(&address, request).unwrap().success().unwrap();
    };
    post("/sandbox/endpoints", None, json!({ "url": url, "mode": "test" }));
    for key in env::var(KEYS).unwrap().split(',') {
        post("/v1/charges", Some(key), json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" }));
    }
    // A delivery that got a redirect is retried.
    post("/sandbox/advance", None, json!({ "by": "2m" }));
}

#[test]
fn a_receiver_judges_deliveries_and_a_command_adds_endpoints() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let address = testkit::free_address().unwrap().to_string();
    let served = Served::start(here, &format!("https://shop.example=http://{address}"));
    let live = served.add("https://shop.example/live", "live");
    let test = served.add("https://shop.example/test", "test");
    // This test program is the command.
    let command = format!(
        "{ADDRESS}={} {KEYS}={},{} '{}' --exact deliveries::the_command_that_adds_an_endpoint",
        served.0.value("address"),
        served.0.value("live_key"),
        served.0.value("test_key"),
        env::current_exe().unwrap().display(),
    );
    let arguments = [
        "--receiver",
        &address,
        "--public-url",
        "https://shop.example",
        "--receive-for",
        "0s",
        "--redirect-trial",
        "--register",
        &command,
        "--only",
        "webhooks.*,endpoints.*,charges.fields",
    ];
    let output = served.check(here, [&live, &test], &arguments);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{shown}{}", text(&output.stderr));
    for id in [
        "endpoints.address",
        "webhooks.redirects",
        "webhooks.signed",
        "webhooks.mode_endpoints",
        "charges.fields",
    ] {
        assert_eq!(verdict_of(&output, id), "pass", "{id} in {shown}");
    }
    assert!(shown.contains("after a 302 it was delivered again"), "{shown}");
    assert!(!shown.contains("\"fail\""), "{shown}");
}

#[test]
fn wrong_usage_is_reported_before_the_first_request() {
    check_cases("deliveries");
}
