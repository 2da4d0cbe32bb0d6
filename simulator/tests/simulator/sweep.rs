//! Random worlds: all invariants hold, runs are deterministic, and failures are shrunk.

use std::{collections::BTreeSet, fs, path::Path};

use reference_core::event::EventType;
use simulator::{
    demo::DemoFault,
    invariant::{Invariant, Violation},
    play::{LocalStage, play},
    script::Script,
    shrink::shrink,
    sweep::{Matrix, Runner},
    tamper::{AttemptFate, Tamper},
    workload::{self, Fault},
};

use crate::scenarios::scenarios;

/// The number of worlds with a fingerprint in the golden file.
const GOLDEN_WORLDS: u64 = 100;

/// Returns the first two violations of each seed, and checks that two runs of its world are equal.
fn violations(runner: &Runner<'_>, seeds: std::ops::Range<u64>) -> Vec<String> {
    let mut violated = Vec::new();
    for seed in seeds {
        let verdict = runner.try_seed(seed);
        assert_eq!(verdict.run_difference, None, "seed {seed} played twice");
        violated.extend(
            verdict.findings.violations.iter().take(2).map(|violation| format!("seed {seed}: {violation}")),
        );
    }
    violated
}

#[test]
fn random_worlds_satisfy_every_invariant() {
    let violated = violations(&Runner::default(), 100..140);
    assert!(violated.is_empty(), "{}", violated.join("\n"));
}

#[test]
fn a_few_worlds_check_every_invariant() {
    // Worlds that are compared with a variant (remainder 5), and worlds of which all events are read (remainder 8).
    let mut checks = [0; Invariant::ALL.len()];
    for seed in (0..120).filter(|seed| seed % 16 == 5 || seed % 16 == 8) {
        let verdict = Runner::default().try_seed(seed);
        checks.iter_mut().zip(verdict.findings.checks).for_each(|(sum, n)| *sum += n);
    }
    let untried: Vec<&str> = Invariant::ALL
        .into_iter()
        .filter(|invariant| checks[*invariant as usize] == 0)
        .map(Invariant::as_str)
        .collect();
    assert!(untried.is_empty(), "never checked: {}", untried.join(", "));
}

/// A fault that is never active at an event would be missing in every coverage table.
#[test]
fn every_fault_has_events_in_the_coverage_matrix() {
    let fault_count = Fault::ALL.len() as u64;
    // The world of a seed has many faults of the kind `seed % fault_count`.
    let is_reached = |fault: Fault| {
        let seeds = (fault as u64..).step_by(fault_count as usize).take(12);
        seeds
            .map(|seed| Runner::default().try_seed(seed))
            .any(|verdict| verdict.cells.iter().any(|cell| cell.fault == Some(fault)))
    };
    let missing: Vec<&str> =
        Matrix::columns().filter(|fault| !is_reached(*fault)).map(Fault::as_str).collect();
    assert!(missing.is_empty(), "active in no world: {}", missing.join(", "));
}

/// An event type without a row in the coverage table would be judged by no invariant.
#[test]
fn worlds_record_every_event_type() {
    let mut missing: BTreeSet<&str> = EventType::ALL.into_iter().map(EventType::as_str).collect();
    for seed in 0..60 {
        for cell in Runner::default().try_seed(seed).cells {
            missing.remove(cell.kind);
        }
        if missing.is_empty() {
            return;
        }
    }
    panic!("recorded in no world: {missing:?}");
}

#[test]
fn the_world_of_a_seed_never_changes() {
    let runner = Runner::default();
    let digests: String =
        (0..GOLDEN_WORLDS).map(|seed| format!("{seed} {}\n", runner.digest(seed))).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/sweep_digests.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &digests).expect("the digests can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let difference = golden.lines().zip(digests.lines()).find(|(expected, actual)| expected != actual);
    assert_eq!(difference, None, "BLESS=1 rewrites them");
    assert_eq!(golden.lines().count(), digests.lines().count(), "BLESS=1 rewrites them");
}

#[test]
fn the_canary_violation_is_reported() {
    let runner = Runner { canary: true, ..Runner::default() };
    let verdict = runner.try_seed(1);
    assert!(verdict.findings.violations.iter().any(|violation| violation.shape == "the canary"));
}

/// A fault: `charge.expired` is never sent, but counts as delivered.
struct ExpiredNeverSent;

impl Tamper for ExpiredNeverSent {
    fn on_attempt(
        &mut self,
        _: reference_core::time::Timestamp,
        _: reference_core::mode::Mode,
        attempt: &mut reference_wire::AttemptRequest,
    ) -> AttemptFate {
        if attempt.kind.as_str() == "charge.expired" { AttemptFate::Dropped } else { AttemptFate::Unchanged }
    }
}

/// Checks that the first violation with a fault is shrunk to a scenario of at most `steps_max` steps.
#[track_caller]
fn check_shrinking(make: fn() -> Box<dyn Tamper>, steps_max: usize) {
    let tamper: &dyn Fn() -> Box<dyn Tamper> = &make;
    let runner = Runner { tamper: Some(tamper), ..Runner::default() };
    let (script, violation): (Script, Violation) = (0..60)
        .find_map(|seed| {
            let script = workload::draw(seed).script;
            let violation = runner.try_script(&script).findings.violations.into_iter().next()?;
            Some((script, violation))
        })
        .expect("a world violates the invariant");
    let shrunk = shrink(&runner, &script, &violation);
    assert!(shrunk.script.steps.len() <= steps_max, "{}", shrunk.script.to_yaml());
    // The result is a scenario: it parses back, violates the same invariant, and passes on the correct service.
    let text = shrunk.script.to_yaml();
    let reparsed = Script::parse("shrunk.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let found = runner.try_script(&reparsed).findings.violations;
    assert!(
        found.iter().any(|other| (other.invariant, &other.shape) == (violation.invariant, &violation.shape)),
        "{violation}\n{text}"
    );
    assert!(Runner::default().try_script(&reparsed).findings.violations.is_empty(), "{text}");
    play(&reparsed, None, &mut LocalStage::new()).unwrap_or_else(|error| panic!("{error}\n{text}"));
}

#[test]
fn a_failure_is_shrunk_to_a_short_scenario() {
    let fault = DemoFault::find("vanished-unheard").expect("the demo fault exists");
    check_shrinking(fault.make, 8);
    check_shrinking(|| Box::new(ExpiredNeverSent), 4);
}

/// The scenarios and their transcripts were reviewed by hand, so they test the model.
#[test]
fn every_scenario_satisfies_every_invariant() {
    let runner = Runner::default();
    let mut violated = Vec::new();
    for (path, text) in scenarios() {
        let script = Script::parse(&path.to_string_lossy(), &text).unwrap_or_else(|error| panic!("{error}"));
        let verdict = runner.try_script(&script);
        violated.extend(
            verdict
                .findings
                .violations
                .iter()
                .take(2)
                .map(|violation| format!("{}: {violation}", path.display())),
        );
    }
    assert!(violated.is_empty(), "{}", violated.join("\n"));
}
