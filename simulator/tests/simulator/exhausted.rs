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

#[test]
fn every_scope_keeps_every_law() {
    for scope in Scope::ALL {
        let mut search = Exploration::new(scope);
        if let Some((path, breach)) = exhaust(&Runner::default(), &mut search, 3) {
            panic!("{}: {}: {breach}", scope.name, search.words(&path));
        }
        let Extent { sequences, states, depth, .. } = search.extent;
        assert!(depth == 3 && states > 100, "{}: {:?}", scope.name, search.extent);
        // Inputs that change nothing, and inputs whose order does not matter, come to a state that is known.
        assert!(states < sequences, "{}: {:?}", scope.name, search.extent);
    }
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

#[test]
fn the_same_search_comes_to_the_same_figures() {
    let tallies = [(), ()].map(|()| {
        let mut search = search("limit");
        assert!(exhaust(&Runner::default(), &mut search, 2).is_none());
        search.extent
    });
    assert_eq!(tallies[0], tallies[1]);
}
