//! Small worlds, exhausted: they keep every law, and a planted bug comes out as a shortest path.

use simulator::{
    demo::DemoFault,
    exhaust::{Exploration, Extent, Path, Scope},
    law::Breach,
    script::Script,
    shrink::shrink,
    sweep::Runner,
};

/// Tries every sequence up to a length; stops where a law breaks.
fn exhaust(runner: &Runner<'_>, search: &mut Exploration, depth: usize) -> Option<(Path, Breach)> {
    for _ in 0..=depth {
        let tried = search.next_paths().into_iter().map(|path| {
            let tried = search.attempt(runner, &path);
            (path, tried)
        });
        let tried: Vec<_> = tried.collect();
        if let Some(broken) = search.take_in(tried) {
            return Some(broken);
        }
    }
    None
}

fn search(name: &str) -> Exploration {
    Exploration::new(Scope::find(name).expect("it is one of them"))
}

/// Every scope, the sequences of up to three inputs that are tried, and the states that they come to. More states than
/// these would be the same one twice; fewer, two that are not the same.
const FIGURES: [(&str, u64, u64); 5] = [
    ("charge", 489, 279),
    ("invoice", 312, 241),
    ("endpoint", 375, 162),
    ("limit", 365, 325),
    ("paging", 237, 161),
];

#[test]
fn every_scope_keeps_every_law() {
    let figures = Scope::ALL.iter().map(|scope| {
        let mut search = Exploration::new(scope);
        if let Some((path, breach)) = exhaust(&Runner::default(), &mut search, 3) {
            panic!("{}: {}: {breach}", scope.name, search.words(&path));
        }
        let Extent { sequences, states, .. } = search.extent;
        (scope.name, sequences, states)
    });
    assert_eq!(figures.collect::<Vec<_>>(), FIGURES);
}

/// A planted bug is found by a path that is no longer than this, and its scenario shows it.
#[track_caller]
fn check(fault: &str, scope: &str, length_max: usize) {
    let fault = DemoFault::find(fault).expect("it is one of them");
    let runner = Runner::with_fault(Some(fault));
    let mut search = search(scope);
    let (path, breach) =
        exhaust(&runner, &mut search, length_max).unwrap_or_else(|| panic!("{scope}: not found"));
    let shrunk = shrink(&runner, &search.script(&path), &breach);
    let text = shrunk.script.to_yaml();
    let again = Script::parse("found.yaml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(!runner.try_script(&again).findings.breaches.is_empty(), "{text}");
    assert!(Runner::default().try_script(&again).findings.breaches.is_empty(), "{text}");
}

#[test]
fn a_planted_bug_comes_out_as_a_shortest_path() {
    check("vanished-unheard", "charge", 2);
    check("one-confirmation-more", "charge", 2);
    check("retry-renamed", "endpoint", 2);
    check("restart-forgets", "endpoint", 2);
    check("page-gap", "paging", 2);
}

#[test]
fn a_walk_that_the_limit_of_requests_ends_breaks_no_law() {
    let walk = "  - walk: { path: /v1/charges, per_page: 1, insert: 1 }\n";
    let text =
        format!("title: walks\npace: 0s\nsteps:\n  - open: {{ charge: c1, asset: BTC }}\n{}", walk.repeat(8));
    let script = Script::parse("walks.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let breaches = Runner::default().try_script(&script).findings.breaches;
    assert!(breaches.is_empty(), "{breaches:?}");
}
