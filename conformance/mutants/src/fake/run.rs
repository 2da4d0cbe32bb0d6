//! Checks the fake server, as the command `check` does.

use conformance::{CreateRequest, Outcome, Part, Plan, Secret, Silent, check, report};

use super::{FakeServer, LIVE_KEY, OTHER_KEY, REVOKED_KEY, SECOND_KEY, TEST_KEY, http_server, sender};

/// Returns a plan that checks the server at `base` with all keys and creates charges, but receives no deliveries.
pub fn plan(base: &str) -> Plan {
    let mut plan =
        Plan::new(base.parse().expect("the base is a URL"), Secret::new(LIVE_KEY), Secret::new(TEST_KEY));
    plan.second_key = Some(Secret::new(SECOND_KEY));
    plan.other_account_key = Some(Secret::new(OTHER_KEY));
    plan.revoked_key = Some(Secret::new(REVOKED_KEY));
    plan.create_request = Some(CreateRequest::default());
    plan.paths.charge = Some("/v1/charges/{id}".into());
    plan.paths.invoice = Some("/v1/invoices/{id}".into());
    plan.seed = 42;
    plan.without = [Part::Webhooks].into();
    plan
}

/// Runs a future on a new runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built")
        .block_on(future)
}

/// Runs a check of the fake server, with a changed plan. If the server sends deliveries, a receiver is set up.
///
/// # Panics
///
/// If the fake server panicked, which does not count as a detected fault.
pub fn run_with(server: FakeServer, change: impl FnOnce(&mut Plan)) -> Outcome {
    block_on(async {
        let mut clock = server.clock.clone();
        let sender_uses_quick_check = server.sender.as_ref().map(|sender| sender.uses_quick_check);
        let (base, server) = http_server::serve_shared(server).await;
        let mut plan = plan(&base);
        if let Some(is_quick) = sender_uses_quick_check {
            plan.without.remove(&Part::Webhooks);
            plan.webhooks = Some(sender::start_receiver(&server).await);
            plan.quick = is_quick;
        }
        change(&mut plan);
        let outcome = check(plan, &mut clock, &mut Silent).await;
        assert!(!server.is_poisoned(), "the fake server crashed; a crash does not count as a detected fault");
        outcome
    })
}

/// Runs a check with a changed plan, and asserts its exit code and parts of its report.
///
/// # Panics
///
/// If an assertion fails.
#[track_caller]
pub fn assert_run(
    server: FakeServer,
    change: impl FnOnce(&mut Plan),
    exit_code: u8,
    report_parts: &[&str],
) -> Outcome {
    let outcome = run_with(server, change);
    let report = report::text(&outcome, report::Style::Plain);
    assert_eq!(outcome.exit_code(), exit_code, "{report}");
    for part in report_parts {
        assert!(report.contains(part), "{part:?} is not in {report}");
    }
    outcome
}

/// Runs a check of the fake server with the plan of [`plan`].
pub fn run(server: FakeServer) -> Outcome {
    run_with(server, |_| {})
}

/// Returns the ids of the statements with one of these verdicts, sorted.
pub fn ids_with_verdicts(outcome: &Outcome, verdicts: &[&str]) -> Vec<String> {
    let matching = outcome.rows.iter().filter(|row| verdicts.contains(&row.verdict.as_str()));
    let mut ids: Vec<_> = matching.map(|row| row.id.clone()).collect();
    ids.sort();
    ids
}
