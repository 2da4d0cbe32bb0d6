//! HAR files: the statements that can be judged from them, the removal of keys and cookies, entries that are skipped,
//! and files that are refused.

use ::mutants::fake::{FakeServer, LIVE_KEY, TEST_KEY, block_on, http_server, ids_with_verdicts, plan};
use conformance::{Outcome, Secret, Silent, check as check_plan, report};
use serde_json::{Value, json};

/// The prefix of the keys of the fake server, which a HAR file does not name.
const KEY_PREFIX: &str = "svc";

/// Returns a run of the suite as a HAR file of a browser.
fn har(server: FakeServer) -> Value {
    let outcome = block_on(async {
        let mut clock = server.clock.clone();
        let mut plan = plan(&http_server::serve(server).await);
        plan.quick = true;
        plan.revoked_key = Some(Secret::new("svc_live_oldOLDoldOLDoldOLD99"));
        check_plan(plan, &mut clock, &mut Silent).await
    });
    let base = outcome.recording.base.trim_end_matches('/').to_owned();
    let headers = |all: &[(String, String)]| -> Vec<Value> {
        all.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    let entries: Vec<_> = outcome
        .recording
        .exchanges
        .iter()
        .filter_map(|exchange| {
            let response = exchange.response()?;
            let key = match format!("{:?}", exchange.caller).as_str() {
                "Own(Live)" => vec![("Authorization".to_owned(), format!("Bearer {LIVE_KEY}"))],
                "Own(Test)" => vec![("Authorization".to_owned(), format!("Bearer {TEST_KEY}"))],
                "NoKey" => vec![],
                _ => return None,
            };
            Some(json!({
                "startedDateTime": format!("2026-01-05T09:00:00.{:03}Z", exchange.number % 1000),
                "time": 12.5,
                "request": {
                    "method": exchange.method(), "url": format!("{base}{}", exchange.target), "headers": headers(&key),
                },
                "response": {
                    "status": response.status,
                    "headers": headers(&response.headers),
                    "content": { "mimeType": "application/json", "text": response.body },
                },
            }))
        })
        .collect();
    json!({ "log": { "version": "1.2", "entries": entries } })
}

#[track_caller]
fn judge_har(har: &Value) -> Outcome {
    let text = har.to_string();
    assert!(Outcome::is_har(&text));
    Outcome::from_har(&text, KEY_PREFIX).expect("the HAR file has usable entries").0
}

#[test]
fn a_har_file_of_a_correct_service_is_judged_in_part_without_a_violation() {
    let outcome = judge_har(&har(FakeServer::default()));
    let text = report::text(&outcome, report::Style::Plain);
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new(), "{text}");
    assert_eq!(outcome.exit_code(), 3, "an incomplete run does not succeed: {text}");
    let passed = ids_with_verdicts(&outcome, &["pass"]);
    for id in ["account.mode", "events.id", "paging.length", "paging.joined", "filters.type", "auth.message"]
    {
        assert!(passed.contains(&id.to_owned()), "{id} in {text}");
    }
    for id in ["limits.refused", "isolation.not_found", "filters.total"] {
        assert!(!passed.contains(&id.to_owned()), "{id} in {text}");
    }
}

#[test]
fn a_har_file_of_a_faulty_service_has_a_violation() {
    let mut server = FakeServer::default();
    server.rewrite_responses(|request, response| {
        if request.path == "/v1/account" && response.status == 200 {
            response.body["meta"]["accepted_assets"] = json!("BTC");
        }
        for row in response.body["data"].as_array_mut().into_iter().flatten() {
            if row["details"].is_object() {
                row["details"] = json!([]);
            }
        }
    });
    let failed = ids_with_verdicts(&judge_har(&har(server)), &["fail"]);
    assert_eq!(failed, ["account.accepted_assets", "events.details"]);
}

#[test]
fn keys_and_cookies_are_removed() {
    let mut file = har(FakeServer::default());
    for entry in file["log"]["entries"].as_array_mut().expect("entries") {
        let cookie = json!({ "name": "Set-Cookie", "value": "session=s3cr3ts3cr3t" });
        let echo = json!({ "name": "X-Echo", "value": format!("{TEST_KEY} {LIVE_KEY}") });
        entry["response"]["headers"].as_array_mut().expect("headers").extend([cookie, echo]);
    }
    let outcome = judge_har(&file);
    let written = outcome.to_file() + &report::html(&outcome);
    for part in [&TEST_KEY["svc_test_".len()..], &LIVE_KEY["svc_live_".len()..], "s3cr3ts3cr3t"] {
        assert!(!written.contains(part), "a secret is in the file or the report");
    }
}

#[track_caller]
fn check_refused(file: &Value, expected: &str) {
    let err =
        Outcome::from_har(&file.to_string(), KEY_PREFIX).expect_err("the HAR file is refused").to_string();
    assert!(err.contains(expected), "{err}");
}

#[test]
fn a_file_without_usable_entries_is_refused_with_the_reason() {
    check_refused(&json!({ "log": { "entries": [] } }), "without requests for paths under /v1");
    check_refused(&json!({ "log": {} }), "not a HAR file");
    let mut file = har(FakeServer::default());
    let entries = file["log"]["entries"].as_array_mut().expect("entries");
    entries.retain(|entry| entry["response"]["status"] == 200);
    for entry in entries {
        entry["request"]["headers"] = json!([]);
    }
    check_refused(&file, "with their Authorization headers");
}

#[test]
fn a_run_file_and_text_without_json_are_not_har_files() {
    assert!(!Outcome::is_har("{\"recording\":{}}") && !Outcome::is_har("Milk"));
}

#[test]
fn unusable_entries_are_skipped() {
    let usable_count = |file: &Value| {
        let (_, summary) =
            Outcome::from_har(&file.to_string(), KEY_PREFIX).expect("the HAR file has usable entries");
        summary.split(' ').next().map(str::to_owned)
    };
    let mut file = har(FakeServer::default());
    let before = usable_count(&file);
    let entries = file["log"]["entries"].as_array_mut().expect("entries");
    // A browser writes 0 for a request that failed. A 429 can be judged in a burst only.
    let unusable =
        [("status", json!(0)), ("status", json!(304)), ("status", json!(-1)), ("status", json!(429))];
    for (name, value) in unusable {
        let mut entry = entries[0].clone();
        entry["response"][name] = value;
        entries.push(entry);
    }
    for (name, value) in
        [("url", "about:blank"), ("method", "DELETE"), ("url", "https://other.example/v1/account")]
    {
        let mut entry = entries[0].clone();
        entry["request"][name] = json!(value);
        entries.push(entry);
    }
    let mut entry = entries[0].clone();
    (entry["time"], entry["startedDateTime"]) = (json!(-1e300), json!("yesterday"));
    entries.push(entry);
    assert_eq!(usable_count(&file), before);
}
