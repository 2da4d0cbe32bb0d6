//! Faulty servers must fail exactly the statements that they violate, and correct servers none.

use std::collections::BTreeSet;
use std::thread;

use ::mutants::fake::{FakeServer, run};
use ::mutants::{
    Subject, combinations, is_foreign_event, kill_table, mutants, rewrite_matching, run_trials, variants,
};
use conformance::{judged_statements, report};

/// Returns the kill table (the statements that each server fails), and the deviations from the expected verdicts.
fn results(subjects: &[Subject]) -> (String, String) {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let trials = run_trials(subjects, threads, |_| {});
    let deviations =
        trials.iter().filter_map(|trial| Some(format!("{}: {}\n", trial.name, trial.deviation.as_ref()?)));
    (kill_table(&trials), deviations.collect())
}

#[test]
fn mutants_fail_their_statements_and_correct_servers_fail_none() {
    let (mutant_kills, mutant_deviations) = results(&mutants());
    let (variant_kills, variant_deviations) = results(&variants());
    assert!(
        mutant_deviations.is_empty() && variant_deviations.is_empty(),
        "{mutant_deviations}{variant_deviations}"
    );
    let stored = include_str!("../../../mutants/kills.txt");
    let current = format!("{mutant_kills}\n{variant_kills}");
    let changed = current.lines().find(|line| !stored.lines().any(|known| known == *line));
    assert!(
        current == stored,
        "{changed:?}; `cargo xtask mutants` shows the differences, --bless stores them"
    );
}

/// A few combinations. The weekly workflow tries several hundred with another seed.
#[test]
fn live_traffic_and_infrastructure_cause_no_violation() {
    let (_, deviations) = results(&combinations(1, 60));
    assert!(deviations.is_empty(), "{deviations}");
}

#[test]
fn names_are_unique_and_mutants_violate_known_statements() {
    let names: Vec<_> = mutants().into_iter().chain(variants()).map(|subject| subject.name).collect();
    assert_eq!(BTreeSet::from_iter(&names).len(), names.len());
    let known = judged_statements();
    for mutant in mutants() {
        assert!(!mutant.violates.is_empty(), "{} violates nothing", mutant.name);
        let statements = mutant.violates.iter().chain(mutant.may_fail);
        assert!(
            statements.clone().all(|id| known.contains_key(*id)),
            "{} names an unknown statement",
            mutant.name
        );
        for list in [mutant.violates, mutant.may_fail] {
            assert_eq!(
                BTreeSet::from_iter(list).len(),
                list.len(),
                "{} names a statement twice",
                mutant.name
            );
        }
    }
}

#[test]
fn every_statement_that_is_not_open_has_a_mutant() {
    let violated: BTreeSet<_> =
        mutants().into_iter().flat_map(|mutant| mutant.violates.iter().copied()).collect();
    for (id, requirement) in judged_statements() {
        let is_open = requirement.level.as_str() == "open";
        assert!(is_open || violated.contains(id.as_str()), "no mutant violates {id}");
    }
}

#[test]
fn a_failure_is_reported_with_commands_that_reproduce_it() {
    let mut server = FakeServer::default();
    rewrite_matching(&mut server, 404, is_foreign_event, |_, response| response.status = 403);
    let outcome = run(server);
    let text = report::text(&outcome, report::Style::Plain);
    let base = &outcome.recording.base;
    let command =
        format!("request     curl -i -H \"Authorization: Bearer $CHARGEPROOF_LIVE_KEY\" '{base}v1/events/");
    assert!(text.contains(&command), "{text}");
    assert!(text.contains("--only isolation.not_found"), "{text}");
    assert!(text.ends_with("exit 1\n"), "{text}");
}
