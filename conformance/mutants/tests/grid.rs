//! The grid of known faults: those that one run detects, and their equivalence to faulty servers.

use std::collections::BTreeSet;

use conformance::judged_statements;
use conformance_faults::{FaultEffect, InjectionPoint, faults};
use mutants::fake::{ids_with_verdicts, run};
use mutants::{grid, grid_table, inject, server_with_long_lists};

#[test]
fn one_run_notices_the_same_known_faults_as_before() {
    let now = grid_table(&grid());
    let golden = include_str!("../grid.txt");
    let changed = now.lines().find(|line| !golden.lines().any(|known| known == *line));
    assert!(
        now == golden,
        "{changed:?}; `cargo xtask mutants --grid` shows the differences, --bless accepts them"
    );
}

#[test]
fn known_faults_have_judged_statements_and_unique_names() {
    let (known, all) = (judged_statements(), faults());
    for fault in &all {
        assert!(!fault.breaks.is_empty(), "{fault} breaks nothing");
        assert!(fault.breaks.iter().all(|id| known.contains_key(*id)), "{fault} names no statement");
    }
    let names: BTreeSet<_> = all.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), all.len());
}

/// A fault injected into a recording and the same fault in a server have the same effect.
#[test]
fn a_server_with_a_known_fault_is_caught() {
    let shown = |point: InjectionPoint| {
        matches!(
            point,
            InjectionPoint::Account
                | InjectionPoint::Page(_)
                | InjectionPoint::Event(_)
                | InjectionPoint::Filtered(_)
        )
    };
    let noticed = grid().into_iter().filter(|trial| {
        shown(trial.fault.point) && matches!(trial.effect, FaultEffect::Noticed(_) | FaultEffect::Warned(_))
    });
    let mut trials = 0;
    for one in noticed.step_by(41) {
        let (name, breaks) = (one.fault.to_string(), one.fault.breaks.clone());
        let mut server = server_with_long_lists();
        inject(one.fault, &mut server);
        let broken = ids_with_verdicts(&run(server), &["fail", "warn"]);
        assert!(breaks.iter().any(|id| broken.iter().any(|reported| reported == id)), "{name}: {broken:?}");
        trials += 1;
    }
    assert!(trials >= 8, "only {trials} were tried");
}
