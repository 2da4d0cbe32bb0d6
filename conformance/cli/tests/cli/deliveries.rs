//! `check` with webhooks of a reference server: received during the run, or read from a file.

use std::{env, fs, path::Path, process::Output};

use serde_json::json;

use testkit::{Request, RunningProgram};

use crate::{
    cases::check_cases,
    support::{self, program, serve, start, text},
};

/// A running reference server with a frozen clock.
struct FrozenServer(RunningProgram);

impl FrozenServer {
    fn start(directory: &Path, forward: &str) -> FrozenServer {
        FrozenServer(serve(directory, &["--clock", "frozen", "--seed", "1", "--forward", forward]))
    }

    /// Runs `check` with the keys of the server and the secrets of the live and the test endpoint.
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
    fn add_endpoint(&self, url: &str, mode: &str) -> String {
        let response = self.0.post("/sandbox/endpoints", None, &json!({ "url": url, "mode": mode }));
        response["endpoint"]["secret"].as_str().unwrap().to_owned()
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
fn captured_deliveries_are_judged_and_no_secret_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let mut receiver = program(dir);
    receiver.args(["receiver", "listen", "--port", "0", "--format", "json", "--record", "deliveries.jsonl"]);
    let mut receiver = start(receiver);
    let forward = format!("https://shop.example={}", receiver.value("url"));
    let server = FrozenServer::start(dir, &forward);
    let live = server.add_endpoint("https://shop.example/live", "live");
    let test = server.add_endpoint("https://shop.example/test", "test");
    for key in ["live_key", "test_key"] {
        let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
        server.0.post("/v1/charges", Some(server.0.value(key)), &charge);
    }
    server.0.post("/sandbox/advance", None, &json!({ "by": "1s" }));
    // The receiver prints a line for each of the two deliveries after it has recorded it.
    for _ in 0..2 {
        receiver.read_json_line();
    }
    drop(receiver);

    let arguments = ["--deliveries", "deliveries.jsonl", "--record", "run.json"];
    let output = server.check(dir, [&live, &test], &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    for id in ["webhooks.signed", "webhooks.event_id", "webhooks.mode_endpoints", "charges.asset_amount"] {
        assert_eq!(verdict_of(&output, id), "pass", "{id}");
    }
    for id in ["webhooks.pushed", "webhooks.redirects", "invoices.fields", "endpoints.address"] {
        assert_eq!(verdict_of(&output, id), "not_judged", "{id}");
    }
    let recording = fs::read_to_string(dir.join("run.json")).unwrap();
    for secret in [&live, &test] {
        assert!(!recording.contains(&secret["whsec_".len()..]), "the recording contains a secret");
    }

    let with_swapped_secrets = server.check(dir, [&test, &live], &["--deliveries", "deliveries.jsonl"]);
    assert_eq!(
        (with_swapped_secrets.status.code(), verdict_of(&with_swapped_secrets, "webhooks.signed")),
        (Some(1), "fail".to_owned())
    );
}

/// The names of environment variables for [`register_command`].
const ADDRESS: &str = "SERVED_ADDRESS";
const KEYS: &str = "SERVED_KEYS";

/// The `--register` command of the next test, and no test if it is run otherwise: registers an endpoint and panics if
/// it is refused. Then it causes events, because the receiver is listening by now.
#[test]
fn register_command() {
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
    // Advances the clock until the deliveries that were redirected are retried.
    post("/sandbox/advance", None, json!({ "by": "2m" }));
}

#[test]
fn check_receives_webhooks_and_registers_endpoints_with_a_command() {
    let directory = tempfile::tempdir().unwrap();
    let dir = directory.path();
    let address = testkit::free_address().unwrap().to_string();
    let server = FrozenServer::start(dir, &format!("https://shop.example=http://{address}"));
    let live = server.add_endpoint("https://shop.example/live", "live");
    let test = server.add_endpoint("https://shop.example/test", "test");
    // The command is a function of this test program.
    let command = format!(
        "{ADDRESS}={} {KEYS}={},{} '{}' --exact deliveries::register_command",
        server.0.value("address"),
        server.0.value("live_key"),
        server.0.value("test_key"),
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
    let output = server.check(dir, [&live, &test], &arguments);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{stdout}{}", text(&output.stderr));
    for id in [
        "endpoints.address",
        "webhooks.redirects",
        "webhooks.signed",
        "webhooks.mode_endpoints",
        "charges.fields",
    ] {
        assert_eq!(verdict_of(&output, id), "pass", "{id} in {stdout}");
    }
    assert!(stdout.contains("after a 302 it was delivered again"), "{stdout}");
    assert!(!stdout.contains("\"fail\""), "{stdout}");
}

#[test]
fn wrong_usage_is_reported_before_the_first_request() {
    check_cases("deliveries");
}
