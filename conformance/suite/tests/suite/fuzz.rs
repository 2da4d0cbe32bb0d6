//! Fuzz runs against the correct and the faulty fake server, over real sockets.

use std::time::Duration;

use ::mutants::fake::{FakeServer, LIVE_KEY, TEST_KEY, http_server::serve};
use conformance::{
    Mode, Secret, TargetClock,
    fuzz::{Outcome, Plan, Progress, Reproduction, SavedFindings, fuzz, replay, saved_findings, text},
    report::Style,
};

struct NoProgress;

impl Progress for NoProgress {
    fn on_request(&mut self, _: u32, _: u32, _: usize) {}
    fn on_wait(&mut self, _: Duration, _: &str) {}
}

fn plan(base: &str, seed: u64) -> Plan {
    Plan {
        base: base.parse().expect("an address"),
        live_key: Secret::new(LIVE_KEY),
        test_key: Secret::new(TEST_KEY),
        key_prefix: "svc".to_owned(),
        seed,
        requests: 300,
        duration_max: None,
        rate: Some(110),
        allow_writes: false,
        time_limit: Duration::from_secs(5),
        ca_pem: None,
        interrupt: Default::default(),
    }
}

fn run(add_fault: impl FnOnce(&mut FakeServer)) -> Outcome {
    let mut server = FakeServer::default();
    add_fault(&mut server);
    let mut clock = server.clock.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let base = serve(server).await;
        fuzz(&plan(&base, 1), &mut clock as &mut dyn TargetClock, &mut NoProgress).await
    })
}

#[test]
fn a_correct_service_violates_no_invariant() {
    let outcome = run(|_| {});
    assert_eq!(
        (outcome.exit_code(), &outcome.found),
        (0, &Vec::new()),
        "{}",
        text(&outcome, Style::Plain, None)
    );
    assert!(
        outcome.statuses.keys().any(|key| key == "404") && outcome.statuses.keys().any(|key| key == "401")
    );
    assert!(!outcome.statuses.contains_key("429"), "{:?}", outcome.statuses);
}

/// Checks that a fault violates an invariant, and that the sequence is shrunk to at most `requests_max` requests.
#[track_caller]
fn check(add_fault: impl FnOnce(&mut FakeServer), statement: &str, requests_max: usize) {
    let outcome = run(add_fault);
    let report = text(&outcome, Style::Plain, Some("saved.json"));
    let found: &Reproduction = outcome
        .found
        .iter()
        .find(|found| found.violation.statement == statement)
        .unwrap_or_else(|| panic!("{report}"));
    assert!(found.is_reproducible && found.templates.len() <= requests_max, "{report}");
    assert_eq!(outcome.exit_code(), 1);
    assert!(report.contains("request   curl -i -H \"Authorization: Bearer $CHARGEPROOF_"), "{report}");
    assert!(report.contains("--replay saved.json"), "{report}");
    assert_eq!(
        SavedFindings::read(&saved_findings(&outcome)).map(|saved| saved.found),
        Ok(outcome.found.clone())
    );
}

#[test]
fn a_crash_on_an_invalid_value_is_shrunk_to_one_request() {
    let crash = |server: &mut FakeServer| {
        server.rewrite_responses(|request, response| {
            if request.query.get("page").is_some_and(|page| page.parse::<i32>().is_err()) {
                response.status = 500;
            }
        });
    };
    check(crash, "answers.no_server_error", 1);
}

#[test]
fn a_leak_through_one_filter_is_found_and_shrunk() {
    // The filter selects from both modes.
    let leak = |server: &mut FakeServer| {
        let rows = server.test.events.clone();
        server.rewrite_responses(move |request, response| {
            let leaks = request.mode == Some(Mode::Live) && response.status == 200;
            if let Some(row) = rows.iter().find(|row| {
                leaks && request.query.get("charge").is_some_and(|code| row["charge"]["code"] == **code)
            }) {
                response.body["data"] = serde_json::json!([row]);
                response.body["meta"]["total"] = 1.into();
            }
        });
    };
    check(leak, "isolation.filters", 2);
}

#[test]
fn a_stored_sequence_can_be_replayed() {
    let fail_accounts = |server: &mut FakeServer| {
        server.rewrite_responses(|request, response| {
            if request.path.ends_with("/account") {
                response.status = 500
            }
        })
    };
    let fail_sorted_lists = |server: &mut FakeServer| {
        server.rewrite_responses(|request, response| {
            if request.is_list() && request.query.contains_key("sort") {
                response.status = 501;
            }
        });
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let found = run(fail_sorted_lists).found;
    assert_eq!(found.len(), 1);
    // A fixed server has no violation. A server that does not accept the keys is a configuration error.
    let correct = |_: &mut FakeServer| {};
    let faults: [fn(&mut FakeServer); 3] = [correct, fail_sorted_lists, fail_accounts];
    for (add_fault, exit) in faults.into_iter().zip([0, 1, 2]) {
        let mut server = FakeServer::default();
        add_fault(&mut server);
        let mut clock = server.clock.clone();
        let outcome = runtime.block_on(async {
            let base = serve(server).await;
            replay(&plan(&base, 1), &found, &mut clock, &mut NoProgress).await
        });
        assert_eq!(outcome.exit_code(), exit, "{outcome:?}");
    }
}

#[test]
fn a_missing_server_is_unreachable() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut clock = FakeServer::default().clock.clone();
    let outcome = runtime.block_on(fuzz(&plan("http://127.0.0.1:9/", 1), &mut clock, &mut NoProgress));
    assert_eq!((outcome.exit_code(), outcome.requests), (4, 1));
}
