//! Runs against correct services: requests, budgets and reports. The variants of the package `mutants` cover their
//! different choices.

use std::time::Duration;

use ::mutants::fake::book::Book;
use ::mutants::fake::{
    EditableResponse, FakeServer, LIVE_KEY, Limiter, OTHER_KEY, REVOKED_KEY, Request, SECOND_KEY, TEST_KEY,
    block_on, http_server, ids_with_verdicts, plan, run, run_with,
};
use ::mutants::set_choices;
use conformance::{
    Budget, Caller, Ledger, Mode, Outcome, Part, Plan, Progress, Purpose, RealClock, Recording, Silent,
    StatementResult, Verdict, check as check_plan, judge, report,
};
use serde_json::json;

/// Checks that a run has this exit code, reports no failure or warning, and stays within its budget.
#[track_caller]
fn check_with(server: FakeServer, change: impl FnOnce(&mut Plan), exit: u8) {
    let outcome = run_with(server, change);
    let report = report::text(&outcome, report::Style::Plain);
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new(), "{report}");
    assert_eq!(outcome.exit_code(), exit, "{report}");
    check_within_budget(&outcome);
}

/// A bound on the budget of requests with the two keys outside bursts, so that it does not grow unnoticed.
const KEYED_REQUESTS_MAX: u32 = 110;
/// The most requests with the live key in bursts: ten in each of two.
const LIVE_IN_BURSTS_MAX: u32 = 20;

#[track_caller]
fn check_within_budget(outcome: &Outcome) {
    let (spent, allowed) = (&outcome.ledger, &outcome.budget);
    assert!(spent.outside_bursts() <= allowed.outside_bursts(), "{spent:?}");
    let keyed = allowed.functional.total - allowed.functional.other;
    assert!(keyed <= KEYED_REQUESTS_MAX, "{allowed:?}");
    assert!(spent.writes <= allowed.writes, "{spent:?}");
    assert!(spent.in_bursts <= allowed.burst, "{spent:?}");
    assert!(
        spent.live <= allowed.functional.live + allowed.objects + spent.repeats + LIVE_IN_BURSTS_MAX,
        "{spent:?}"
    );
    assert!(spent.repeats <= allowed.repeats, "{spent:?}");
}

#[track_caller]
fn check(change: impl FnOnce(&mut FakeServer)) {
    let mut server = FakeServer::default();
    change(&mut server);
    check_with(server, |_| {}, 0);
}

#[test]
fn a_conforming_service_passes_everything() {
    check(|_| {});
}

#[test]
fn a_burst_that_spans_two_windows_is_repeated() {
    let mut server = FakeServer {
        limiter: Limiter::AlignedWindow,
        response_time: Duration::from_millis(20),
        ..FakeServer::default()
    };
    server.clock.advance(Duration::from_secs(59));
    // Without a `Date`, the end of the minute is unknown.
    server.rewrite_responses(|_, response| response.set_header("date", "Thu, 01 Jan 2026 00:00:30 GMT"));
    let outcome = run(server);
    let report = report::text(&outcome, report::Style::Plain);
    assert!(report.contains("aligned window: the 160th request"), "{report}");
    assert_eq!(outcome.exit_code(), 0, "{report}");
}

#[test]
fn a_key_that_another_client_used_gets_a_second_burst() {
    let mut server = FakeServer::default();
    server.hits.insert(format!("Bearer {TEST_KEY}"), vec![0; 30]);
    let outcome = run(server);
    let report = report::text(&outcome, report::Style::Plain);
    assert!(report.contains("exact: the 121st request, once the key was idle"), "{report}");
    assert_eq!(outcome.exit_code(), 0, "{report}");
}

#[test]
fn a_transient_failure_is_retried() {
    for failing_request in [1, 2, 60, 121, 150, 170, 190] {
        let mut request_number = 0;
        check(move |server| {
            server.rewrite_responses(move |_, response| {
                request_number += 1;
                if request_number == failing_request {
                    *response = EditableResponse::json(503, json!({ "message": "Come back in a moment." }));
                }
            });
        });
    }
}

#[test]
fn an_empty_account_makes_the_run_incomplete() {
    for last_page in [0, 1] {
        let mut server = FakeServer { live: Book::empty(), test: Book::empty(), ..FakeServer::default() };
        set_choices(&mut server, |choices| choices.empty_last_page = last_page);
        check_with(server, |_| {}, 3);
    }
}

#[test]
fn the_report_on_an_empty_account_names_the_objects_to_create() {
    let server = FakeServer { live: Book::empty(), test: Book::empty(), ..FakeServer::default() };
    let report = report::text(&run(server), report::Style::Plain);
    assert!(
        report.contains("remedy      open a charge, an invoice and a payment link in live and in test mode")
    );
    assert!(
        report.contains("remedy      open and cancel a few charges with the test key's account"),
        "{report}"
    );
}

#[test]
fn records_created_during_the_run_are_not_a_violation() {
    let mut server = FakeServer::default();
    let mut requests = 0;
    server.rewrite_responses(move |request, response| {
        if request.path == "/v1/events" && request.mode == Some(Mode::Live) && response.status == 200 {
            requests += 1;
            // A record was created between two requests.
            if requests > 4 && request.query.get("type").is_none_or(|kind| kind == "invoice.sent") {
                add_event(request, response);
            }
        }
    });
    let outcome = run(server);
    let report = report::text(&outcome, report::Style::Plain);
    assert_eq!(ids_with_verdicts(&outcome, &["fail"]), Vec::<String>::new(), "{report}");
}

/// Replaces the page by one of a list with one more event.
fn add_event(request: &Request, response: &mut EditableResponse) {
    let mut book = Book::with_objects(1, 9, 3);
    let mut newest = book.events[0].clone();
    // An invoice may be sent several times, but has one first view.
    newest["type"] = json!("invoice.sent");
    newest["id"] = json!("0190a5c4-7f3e-7abf-8def-00000000ffff");
    book.events.insert(0, newest);
    *response = book.respond(request, Mode::Live, "");
}

#[test]
fn parts_may_be_excluded() {
    check_with(
        FakeServer::default(),
        |plan| {
            plan.revoked_key = None;
            plan.second_key = None;
            plan.other_account_key = None;
            plan.without.extend([Part::Revoked, Part::SecondKey, Part::OtherAccount]);
        },
        0,
    );
}

#[test]
fn a_missing_revoked_or_second_key_leaves_a_gap() {
    check_with(FakeServer::default(), |plan| plan.revoked_key = None, 3);
    check_with(FakeServer::default(), |plan| plan.second_key = None, 3);
    check_with(FakeServer::default(), |plan| plan.other_account_key = None, 0);
}

#[test]
fn a_quick_check_excludes_the_burst_and_reports_it() {
    let with_many_records = FakeServer {
        live: Book::with_many_records(1),
        test: Book::with_many_records(2),
        ..FakeServer::default()
    };
    for server in [FakeServer::default(), with_many_records] {
        let outcome = run_with(server, |plan| plan.quick = true);
        let report = report::text(&outcome, report::Style::Plain);
        assert_eq!(outcome.exit_code(), 0, "{report}");
        assert_eq!(outcome.budget.burst, 0);
        check_within_budget(&outcome);
        let by_quick = |row: &&StatementResult| row.verdict == Verdict::LeftOut { by: "--quick".to_owned() };
        let left_out: Vec<_> = outcome.rows.iter().filter(by_quick).map(|row| row.id.as_str()).collect();
        assert!(left_out.iter().all(|id| id.starts_with("limits.")), "{report}");
        assert!(left_out.contains(&"limits.second_key"), "{report}");
        assert!(report.contains("--quick: the burst is left out"), "{report}");
    }
}

#[test]
fn a_single_statement_can_be_checked() {
    let only = |pattern: &str| {
        let pattern = pattern.to_owned();
        run_with(FakeServer::default(), move |plan| plan.only = vec![pattern])
    };
    let outcome = only("auth.no_header");
    assert_eq!(outcome.exit_code(), 0);
    assert_eq!(outcome.rows.len(), 1);
    assert_eq!(outcome.ledger.in_bursts, 0, "no burst for a statement that needs none");
    assert_eq!(only("isolation.*").exit_code(), 0);
}

#[test]
fn the_budget_is_reported_before_the_first_request() {
    struct ProgressLines(Vec<String>);
    impl Progress for ProgressLines {
        fn on_budget(&mut self, budget: &Budget) {
            self.0.push(budget.to_string());
        }
        fn on_request(&mut self, ledger: &Ledger) {
            self.0.push(format!("{} sent", ledger.total()));
        }
    }
    let mut progress = ProgressLines(Vec::new());
    let server = FakeServer::default();
    let mut clock = server.clock.clone();
    block_on(async { check_plan(plan(&http_server::serve(server).await), &mut clock, &mut progress).await });
    let expected = "at most 229 requests: 180 with the two keys, 45 with other keys or none, 4 repeats; \
                    2 of them create records\n\
                    in addition, bursts of about 140 requests with the test key (at most 915)\n\
                    waits up to 65 s (247 s if the key was in use, or its limit requires more than a minute)";
    assert_eq!(progress.0[..2], [expected, "1 sent"]);
}

#[test]
fn a_quick_check_runs_in_real_time() {
    let outcome = block_on(async {
        let mut plan = plan(&http_server::serve(FakeServer::default()).await);
        plan.quick = true;
        check_plan(plan, &mut RealClock::start(), &mut Silent).await
    });
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), Vec::<String>::new());
}

#[test]
fn the_live_key_sends_only_ten_requests_in_bursts() {
    let outcome = run(FakeServer::default());
    let live =
        outcome.recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(Mode::Live));
    let in_burst = live.filter(|exchange| matches!(exchange.purpose, Purpose::Burst(_))).count();
    assert_eq!(
        in_burst, 10,
        "nine at the same moment as the test key, and one while the test key is refused"
    );
}

#[test]
fn a_recording_contains_no_key_and_can_be_judged_again() {
    let mut server = FakeServer::default();
    server.rewrite_responses(|request, response| {
        // The worst case: the server echoes all input.
        let sent_authorization = request.authorization.clone().unwrap_or_default();
        response.set_header("x-you-sent", &sent_authorization);
        if response.status == 401 {
            response.body = json!({ "message": format!("no such key: {sent_authorization}") });
        }
    });
    let outcome = run(server);
    let text = serde_json::to_string(&outcome.recording).unwrap();
    let report = report::text(&outcome, report::Style::Plain) + &report::json(&outcome);
    for key in [LIVE_KEY, TEST_KEY, REVOKED_KEY, SECOND_KEY, OTHER_KEY] {
        let tail = &key["svc_live_".len()..];
        for part in [tail, &tail[..12], &tail[8..]] {
            assert!(
                !text.contains(part) && !report.contains(part),
                "a part of a key is in the recording or a report"
            );
        }
    }
    let parsed: Recording = serde_json::from_str(&text).unwrap();
    let verdicts =
        |rows: Vec<conformance::StatementResult>| rows.into_iter().map(|row| row.verdict).collect::<Vec<_>>();
    assert_eq!(verdicts(judge(&parsed)), verdicts(outcome.rows));
}
