//! Paging while records are created, and reports if none are created or pages shift.

use std::time::Duration;

use ::mutants::fake::{FakeServer, TEST_KEY, assert_run, ids_with_verdicts};
use conformance::{Caller, CreateRequest, Hook, Mode, Plan, report};

fn hook(command: &str) -> Option<Hook> {
    Some(Hook { command: command.into(), time_limit: Duration::from_secs(20) })
}

#[test]
fn without_a_source_of_records_stability_is_not_judged() {
    let parts = ["nothing was created while the suite paged", "pass --allow-writes"];
    let outcome = assert_run(FakeServer::default(), |plan| plan.create_request = None, 3, &parts);
    assert_eq!(outcome.ledger.writes, 0, "no write is sent unless writes are allowed");
    assert!(outcome.recording.exchanges.iter().all(|exchange| matches!(exchange.method(), "GET" | "HEAD")));
}

#[test]
fn two_charges_are_created_and_both_ways_of_paging_are_reported() {
    let parts = ["charges by links: literally", "events by page number: literally"];
    let outcome = assert_run(FakeServer::default(), |_| {}, 0, &parts);
    assert_eq!(outcome.ledger.writes, 2);
    let posts = outcome.recording.exchanges.iter().filter(|exchange| exchange.method() == "POST");
    let callers: Vec<_> = posts.map(|exchange| (exchange.caller, exchange.status())).collect();
    let test = (Caller::Own(Mode::Test), Some(201));
    assert_eq!(callers, [test, test, (Caller::NoKey, Some(401))], "charges are created in test mode only");
}

#[test]
fn repeated_records_are_reported_as_shifted() {
    let mut server = FakeServer::default();
    server.test.choices.has_stable_pages = false;
    let parts = ["events by page number: records repeat", "as if nothing had been created"];
    let outcome = assert_run(server, |_| {}, 1, &parts);
    assert_eq!(ids_with_verdicts(&outcome, &["fail", "warn"]), ["paging.stable_literal"]);
}

#[test]
fn one_stable_way_of_paging_suffices() {
    let mut server = FakeServer::default();
    server.test.choices.has_stable_pages = false;
    // Links with an anchor are stable; a page number refers to the current list.
    let book = server.test.clone();
    server.rewrite_responses(move |request, response| {
        if request.method == "GET" && request.is_list() && request.query.contains_key("from") {
            let mut without_anchor = request.clone();
            without_anchor.query.remove("from");
            *response = book.respond(&without_anchor, Mode::Test, "");
        }
        for rel in ["first", "last", "prev", "next"] {
            if let Some(link) = response.body["links"][rel].as_str() {
                response.body["links"][rel] = serde_json::json!(format!("{link}&from=1"));
            }
        }
    });
    let outcome =
        assert_run(server, |plan| plan.only = vec!["paging.stable*".into()], 0, &["charges by links"]);
    assert_eq!(ids_with_verdicts(&outcome, &["warn"]), Vec::<String>::new());
}

#[test]
fn a_refused_create_request_is_reported_with_the_remedy() {
    let invalid = CreateRequest { path: "/v1/payments".into(), ..CreateRequest::default() };
    let parts = ["POST /v1/payments: 404", "set `check.create`"];
    assert_run(FakeServer::default(), |plan| plan.create_request = Some(invalid), 3, &parts);
    let invalid = CreateRequest { path: "v1/payments".into(), ..CreateRequest::default() };
    assert_run(
        FakeServer::default(),
        |plan| plan.create_request = Some(invalid),
        2,
        &["such as /v1/charges"],
    );
    let invalid = CreateRequest { body: "{".into(), ..CreateRequest::default() };
    assert_run(FakeServer::default(), |plan| plan.create_request = Some(invalid), 2, &["is not JSON"]);
}

#[test]
fn a_failed_hook_is_reported_without_the_key() {
    let broken = "echo no luck with $CHARGEPROOF_TEST_KEY at $CHARGEPROOF_URL; exit 7";
    let change = |plan: &mut Plan| (plan.create_request, plan.hook) = (None, hook(broken));
    let outcome = assert_run(
        FakeServer::default(),
        change,
        3,
        &["exit status: 7 and printed: no luck with", "fix the hook"],
    );
    let written = report::text(&outcome, report::Style::Plain) + &outcome.to_file();
    assert!(!written.contains(&TEST_KEY["svc_test_".len()..]), "the key is in the report or the file");
}

#[test]
fn a_hook_that_creates_nothing_is_reported() {
    let change = |plan: &mut Plan| (plan.create_request, plan.hook) = (None, hook("true"));
    assert_run(
        FakeServer::default(),
        change,
        3,
        &["no list grew, although --hook should have created a record"],
    );
}

#[test]
fn records_of_other_clients_between_two_pages_count() {
    let server_with_other_clients = |has_stable_pages: bool| {
        let mut server = FakeServer::default();
        server.live.choices.has_stable_pages = false;
        // Enough records for a full second page.
        for _ in 0..30 {
            server.live.create_charge();
        }
        let old_book = server.live.clone();
        let mut book = server.live.clone();
        let mut has_grown = false;
        server.rewrite_responses(move |request, response| {
            if request.path != "/v1/events" || request.mode != Some(Mode::Live) || response.status != 200 {
                return;
            }
            let page = request.number("page").unwrap_or(1);
            // Another client opens a charge after the first page was read.
            if page == 2 && !has_grown {
                book.create_charge();
                has_grown = true;
            }
            let base = response.body["links"]["first"].as_str().expect("a link");
            let base = base.split("/v1/").next().expect("split returns at least one part").to_owned();
            let total = book.events.len();
            *response = if has_stable_pages && page > 1 { &old_book } else { &book }.respond(
                request,
                Mode::Live,
                &base,
            );
            if page == 2 {
                response.body["meta"]["total"] = serde_json::json!(total);
            }
        });
        server
    };
    let only_paging = |plan: &mut Plan| {
        plan.create_request = None;
        plan.only = vec!["paging.stable*".into()];
    };
    assert_run(server_with_other_clients(false), only_paging, 1, &["events by page number: records repeat"]);
    assert_run(server_with_other_clients(true), only_paging, 0, &["events by page number: literally"]);
}
