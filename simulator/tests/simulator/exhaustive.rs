//! Exhaustive searches of small worlds: no invariant is violated, and a planted fault is found by a shortest path.

use simulator::{
    demo::DemoFault,
    exhaust::{Exploration, Extent, Path, Scope},
    invariant::Violation,
    script::Script,
    shrink::shrink,
    sweep::Runner,
};

/// Tries every sequence up to a length; stops at the first violation.
fn exhaust(runner: &Runner<'_>, search: &mut Exploration, depth: usize) -> Option<(Path, Violation)> {
    for _ in 0..=depth {
        let tried = search.next_paths().into_iter().map(|path| {
            let tried = search.attempt(runner, &path);
            (path, tried)
        });
        let tried: Vec<_> = tried.collect();
        if let Some(broken) = search.record_results(tried) {
            return Some(broken);
        }
    }
    None
}

fn search(name: &str) -> Exploration {
    Exploration::new(Scope::find(name).expect("the name is known"))
}

/// The scopes, with the numbers of sequences of up to three inputs and of reached states; two inputs where every sequence
/// is a state. More states would mean that equal states are not recognized; fewer, that different ones are merged.
const FIGURES: [(&str, u64, u64); 10] = [
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
    let figures = Scope::ALL.iter().map(|scope| {
        let mut search = Exploration::new(scope);
        let depth = if scope.is_hidden { 2 } else { 3 };
        if let Some((path, violation)) = exhaust(&Runner::default(), &mut search, depth) {
            panic!("{}: {}: {violation}", scope.name, search.input_names(&path));
        }
        let Extent { sequences, states, .. } = search.extent;
        (scope.name, sequences, states)
    });
    assert_eq!(figures.collect::<Vec<_>>(), FIGURES);
}

/// Checks that a planted fault is found by a path of at most this length, and that its scenario shows it.
#[track_caller]
fn check(fault: &str, scope: &str, length_max: usize) {
    let fault = DemoFault::find(fault).expect("the name is known");
    let runner = Runner::with_fault(Some(fault));
    let mut search = search(scope);
    let (path, violation) =
        exhaust(&runner, &mut search, length_max).unwrap_or_else(|| panic!("{scope}: not found"));
    let shrunk = shrink(&runner, &search.script(&path), &violation);
    let text = shrunk.script.to_yaml();
    let again = Script::parse("found.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(!runner.try_script(&again).findings.violations.is_empty(), "{text}");
    assert!(Runner::default().try_script(&again).findings.violations.is_empty(), "{text}");
}

#[test]
fn a_planted_fault_is_found_by_a_shortest_path() {
    check("vanished-unheard", "charge", 2);
    check("one-confirmation-more", "charge", 2);
    check("retry-renamed", "endpoint", 2);
    check("restart-forgets", "endpoint", 2);
    check("page-gap", "paging", 2);
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
