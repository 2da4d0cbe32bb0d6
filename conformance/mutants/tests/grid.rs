//! Tests of the grid of known faults: its golden table, and that a server with a known fault fails a statement of it.

use std::collections::BTreeSet;

use conformance::judged_statements;
use conformance_faults::{FaultEffect, InjectionPoint, faults};
use mutants::fake::{ids_with_verdicts, run};
use mutants::{grid, grid_table, inject, server_with_long_lists};

#[test]
fn the_grid_matches_its_golden_table() {
    let table = grid_table(&grid());
    let golden = include_str!("../grid.txt");
    let changed = table.lines().find(|line| !golden.lines().any(|golden_line| golden_line == *line));
    assert!(
        table == golden,
        "{changed:?}; `cargo xtask mutants --grid` shows the differences, --bless accepts them"
    );
}

#[test]
fn known_faults_have_judged_statements_and_unique_names() {
    let (judged, faults) = (judged_statements(), faults());
    for fault in &faults {
        assert!(!fault.violates.is_empty(), "{fault} violates no statement");
        assert!(
            fault.violates.iter().all(|id| judged.contains_key(*id)),
            "{fault} violates an unknown statement"
        );
    }
    let names: BTreeSet<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(names.len(), faults.len());
}

#[test]
fn a_server_with_a_known_fault_fails_a_statement_of_the_fault() {
    let is_in_responses = |point: InjectionPoint| {
        matches!(
            point,
            InjectionPoint::Account
                | InjectionPoint::Page(_)
                | InjectionPoint::Event(_)
                | InjectionPoint::Filtered(_)
        )
    };
    let noticed = grid().into_iter().filter(|trial| {
        is_in_responses(trial.fault.point)
            && matches!(trial.effect, FaultEffect::Noticed(_) | FaultEffect::Warned(_))
    });
    let mut trials = 0;
    // Each trial needs a run, so only some faults are tried.
    for trial in noticed.step_by(41) {
        let (name, violates) = (trial.fault.to_string(), trial.fault.violates.clone());
        let mut server = server_with_long_lists();
        inject(trial.fault, &mut server);
        let broken = ids_with_verdicts(&run(server), &["fail", "warn"]);
        assert!(violates.iter().any(|id| broken.iter().any(|reported| reported == id)), "{name}: {broken:?}");
        trials += 1;
    }
    assert!(trials >= 8, "only {trials} faults were tried");
}
