//! A run stays within its budget, with every combination of options.

use std::time::Duration;

use ::mutants::fake::{EditableResponse, FakeServer, run_with};
use conformance::{Exchange, ExchangeOutcome, Hook, ObjectPaths, Outcome, Plan, Profile};
use serde_json::json;

/// The options that change the requests. A combination is a bit set of their indexes.
const OPTIONS: [fn(&mut Plan); 7] = [
    |plan| plan.quick = true,
    |plan| plan.thorough = true,
    |plan| plan.profile = Profile::Extended,
    |plan| plan.paths = ObjectPaths::default(),
    |plan| {
        (plan.second_key, plan.other_account_key, plan.revoked_key) = (None, None, None);
    },
    |plan| plan.create_request = None,
    |plan| plan.hook = Some(Hook { command: "true".into(), time_limit: Duration::from_secs(10) }),
];

/// Returns a server that causes retries: every fifth request gets a 503 or a 429.
fn unstable_server() -> FakeServer {
    let mut server = FakeServer::default();
    let mut request = 0;
    server.rewrite_responses(move |_, response| {
        request += 1;
        if request % 5 == 0 {
            let status = if request % 10 == 0 { 429 } else { 503 };
            *response = EditableResponse::json(status, json!({ "message": "Come back in a moment." }));
            response.set_header("retry-after", "1");
        }
    });
    server
}

#[track_caller]
fn check(options: usize) {
    let outcome = run_with(unstable_server(), |plan| {
        let selected = (0..OPTIONS.len()).filter(|index| options & (1 << index) != 0);
        selected.for_each(|index| OPTIONS[index](plan));
    });
    let Outcome { ledger: spent, budget, .. } = &outcome;
    let context = format!("options {options:07b}: {spent:?} of {budget:?}");
    assert!(
        spent.outside_bursts() <= budget.outside_bursts() && spent.in_bursts <= budget.burst,
        "{context}"
    );
    assert!(spent.writes <= budget.writes && spent.repeats <= budget.repeats, "{context}");
    // The ledger refuses requests beyond the budget. The probes must stay within it without that.
    let refused = |exchange: &Exchange| matches!(&exchange.outcome, ExchangeOutcome::NoResponse(why) if why.contains("announced"));
    assert!(!outcome.recording.exchanges.iter().any(refused), "{context}");
    let announcement = budget.to_string();
    assert!(announcement.starts_with(&format!("at most {} requests", budget.outside_bursts())), "{context}");
    assert!(announcement.lines().count() <= 3, "{announcement}");
}

#[test]
fn no_combination_of_options_exceeds_its_budget() {
    let combinations = 0..1 << OPTIONS.len();
    // `--quick` and `--thorough` exclude each other.
    for options in combinations.filter(|options| options & 0b11 != 0b11) {
        check(options);
    }
}

#[test]
fn the_readme_shows_the_budget_of_a_check_with_two_keys() {
    let outcome = run_with(FakeServer::default(), |plan| {
        *plan = Plan::new(plan.base.clone(), plan.live_key.clone(), plan.test_key.clone());
    });
    let budget = outcome.budget.to_string();
    let line = budget.lines().next().expect("a line");
    assert!(include_str!("../../../../README.md").contains(line), "README.md should show: {line}");
}
