//! Exhaustive searches of small worlds: no invariant is violated, and planted faults are found by short paths.

use simulator::{
    demo::DemoFault,
    exhaust::{Exploration, Extent, Path, Scope},
    invariant::Violation,
    script::Script,
    shrink::shrink,
    sweep::Runner,
};

/// Tries every sequence of inputs up to a length. Returns the first violation with its path.
fn exhaust(runner: &Runner<'_>, search: &mut Exploration, depth: usize) -> Option<(Path, Violation)> {
    for _ in 0..=depth {
        let results = search.next_paths().into_iter().map(|path| {
            let result = search.run(runner, &path);
            (path, result)
        });
        let results: Vec<_> = results.collect();
        if let Some(violated) = search.record_results(results) {
            return Some(violated);
        }
    }
    None
}

fn exploration(scope: &str) -> Exploration {
    Exploration::new(Scope::find(scope).expect("the scope exists"))
}

/// The scopes, with the numbers of tried sequences and of reached states. The sequences have up to
/// three inputs, or two in scopes with hidden state. More states would mean that equal states are not
/// recognized; fewer, that different ones are merged.
const SEARCH_SIZES: [(&str, u64, u64); 10] = [
    ("charge", 529, 292),
    ("invoice", 341, 259),
    ("endpoint", 375, 162),
    ("limit", 365, 325),
    ("paging", 237, 161),
    ("idempotency", 183, 183),
    ("filters", 132, 132),
    ("wallet", 73, 73),
    ("link", 133, 133),
    ("restart", 486, 359),
];

#[test]
fn every_scope_satisfies_every_invariant() {
    let sizes = Scope::ALL.iter().map(|scope| {
        let mut search = Exploration::new(scope);
        let depth = if scope.has_hidden_state { 2 } else { 3 };
        if let Some((path, violation)) = exhaust(&Runner::default(), &mut search, depth) {
            panic!("{}: {}: {violation}", scope.name, search.input_names(&path));
        }
        let Extent { sequences, states, .. } = search.extent;
        (scope.name, sequences, states)
    });
    assert_eq!(sizes.collect::<Vec<_>>(), SEARCH_SIZES);
}

/// Checks that a planted fault is found by a path of at most this length, and that the shrunk
/// scenario violates an invariant with the fault and none without it.
#[track_caller]
fn check_fault_is_found(fault: &str, scope: &str, length_max: usize) {
    let fault = DemoFault::find(fault).expect("the fault exists");
    let runner = Runner::with_fault(Some(fault));
    let mut search = exploration(scope);
    let (path, violation) =
        exhaust(&runner, &mut search, length_max).unwrap_or_else(|| panic!("{scope}: not found"));
    let shrunk = shrink(&runner, &search.script(&path), &violation);
    let text = shrunk.script.to_yaml();
    let again = Script::parse("found.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(!runner.try_script(&again).findings.violations.is_empty(), "{text}");
    assert!(Runner::default().try_script(&again).findings.violations.is_empty(), "{text}");
}

#[test]
fn planted_faults_are_found_by_at_most_two_inputs() {
    check_fault_is_found("vanished-unheard", "charge", 2);
    check_fault_is_found("one-confirmation-more", "charge", 2);
    check_fault_is_found("retry-renamed", "endpoint", 2);
    check_fault_is_found("restart-forgets", "endpoint", 2);
    check_fault_is_found("page-gap", "paging", 2);
}

#[test]
fn a_walk_above_the_rate_limit_violates_no_invariant() {
    let walk = "  - walk: { path: /v1/charges, per_page: 1, insert: 1 }\n";
    let text =
        format!("title: walks\npace: 0s\nsteps:\n  - open: {{ charge: c1, asset: BTC }}\n{}", walk.repeat(8));
    let script = Script::parse("walks.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let violations = Runner::default().try_script(&script).findings.violations;
    assert!(violations.is_empty(), "{violations:?}");
}
