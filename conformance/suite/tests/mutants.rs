//! Lies that the suite must notice: each breaks one rule of the mini service or warps its answers on
//! the wire, and must break exactly the statements it names.

use std::collections::BTreeSet;
use std::thread;

use conformance::{judged, report};
use mutants::mini::{Mini, run};
use mutants::{foreign, mutants, trials, warp};

#[test]
fn each_mutant_breaks_what_it_names_and_nothing_else() {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let trials = trials(&mutants(), threads, |_| {});
    let wrong: Vec<_> =
        trials.iter().filter_map(|it| Some(format!("{}: {}", it.name, it.wrong.as_ref()?))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_statement_that_can_be_broken_has_a_mutant() {
    let named: BTreeSet<_> = mutants().into_iter().flat_map(|mutant| mutant.breaks.iter().copied()).collect();
    for (id, requirement) in judged() {
        let open = requirement.level.word() == "open";
        assert!(open || named.contains(id.as_str()), "no mutant breaks {id}");
    }
}

#[test]
fn a_failure_ends_with_what_to_type() {
    let mut mini = Mini::default();
    warp(&mut mini, 404, foreign, |_, reply| reply.status = 403);
    let outcome = run(mini);
    let text = report::text(&outcome, report::Style::Plain);
    let base = &outcome.recording.base;
    let asked =
        format!("asked     curl -i -H \"Authorization: Bearer $CHARGEPROOF_LIVE_KEY\" '{base}v1/events/");
    assert!(text.contains(&asked), "{text}");
    assert!(text.contains("--only isolation.not_found"), "{text}");
    assert!(text.ends_with("exit 1\n"), "{text}");
}
