//! Planted bugs: services that are wrong on purpose, each of which the laws must find in a sweep, the state-machine test in
//! its lists of operations, or both.
//!
//! Every one is the right service with something spoilt on the way in or out. `BLESS=1 cargo test -p simulator --test
//! simulator planted` writes the table of how many worlds it took anew.

mod answers;
mod doors;
mod fields;
mod notices;
mod posts;

use std::{fs, path::Path};

use simulator::{
    demo::DemoFault,
    law::{Breach, Law},
    sweep::Runner,
    tamper::Tamper,
};

/// A service that is wrong in one way.
pub(crate) struct Bug {
    /// The description of the fault.
    pub(crate) name: &'static str,
    /// The laws that a sweep may see broken first; none if it need not see it.
    laws: &'static [Law],
    /// Makes it.
    pub(crate) make: fn() -> Box<dyn Tamper>,
    /// The reason why the state-machine test cannot detect it, if there is one.
    pub(crate) unseen_by_machine: Option<&'static str>,
}

impl Bug {
    const fn new(name: &'static str, laws: &'static [Law], make: fn() -> Box<dyn Tamper>) -> Bug {
        Bug { name, laws, make, unseen_by_machine: None }
    }

    const fn by_sweeps_only(mut self, why: &'static str) -> Bug {
        self.unseen_by_machine = Some(why);
        self
    }
}

/// A fault that the program lets its users switch on.
fn demo(name: &str) -> Box<dyn Tamper> {
    (DemoFault::find(name).unwrap_or_else(|| panic!("no fault is called `{name}`")).make)()
}

/// Every planted bug.
pub(crate) fn bugs() -> impl Iterator<Item = &'static Bug> {
    [notices::BUGS, posts::BUGS, answers::BUGS, doors::BUGS, fields::BUGS].into_iter().flatten()
}

/// The search begins in so many places.
const STARTS: [u64; 3] = [0, 1_000, 2_000];
/// The number of worlds until the first breach, and the breach; `None` if the fault was missed.
type Found = Option<(u64, Breach)>;

/// A bug that so many worlds do not show is missed.
const WORLDS_MAX: u64 = 600;

/// Returns the number of worlds from a start to the first breach, and its law. `right` shares its wallets.
fn find(right: &Runner<'_>, bug: &Bug, start: u64) -> Found {
    let runner = Runner { wrong: Some(&bug.make), ..right.clone() };
    (0..WORLDS_MAX).find_map(|n| {
        let verdict = runner.try_seed(start + n);
        verdict.findings.breaches.first().map(|breach| (n + 1, breach.clone()))
    })
}

/// Returns the number of worlds for each fault from each start, on two threads.
fn find_all(bugs: &[&Bug]) -> Vec<Vec<Found>> {
    let half = |part: usize| -> Vec<(usize, Vec<Found>)> {
        let right = Runner::default();
        let own = bugs.iter().enumerate().filter(|(place, _)| place % 2 == part);
        let all = |bug: &Bug| STARTS.iter().map(|start| find(&right, bug, *start)).collect();
        own.map(|(place, bug)| (place, all(bug))).collect()
    };
    let mut found = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut found = half(0);
        found.extend(other.join().expect("the other half ends"));
        found
    });
    found.sort_by_key(|(place, _)| *place);
    found.into_iter().map(|(_, finds)| finds).collect()
}

#[test]
fn every_planted_bug_is_found_by_a_law_that_is_about_it() {
    let bugs: Vec<&Bug> = bugs().filter(|bug| !bug.laws.is_empty()).collect();
    assert!(bugs.len() >= 30, "{} planted bugs", bugs.len());
    let mut table = String::from("worlds  law             planted bug\n");
    let mut missed = Vec::new();
    for (bug, finds) in bugs.iter().zip(find_all(&bugs)) {
        let mut worlds = Vec::new();
        let mut first = None;
        for (start, found) in STARTS.into_iter().zip(finds) {
            match found {
                None => missed.push(format!("{}: not found from seed {start}", bug.name)),
                Some((_, breach)) if !bug.laws.contains(&breach.law) => {
                    missed.push(format!("{}: found from seed {start} by {breach}", bug.name));
                }
                Some((n, breach)) => {
                    first = first.or(Some(breach.law));
                    worlds.push(n);
                }
            }
        }
        worlds.sort_unstable();
        let median = worlds.get(worlds.len() / 2).copied().unwrap_or_default();
        table.push_str(&format!("{median:>6}  {:<14}  {}\n", first.map_or("-", Law::as_str), bug.name));
    }
    assert!(missed.is_empty(), "{}\n{table}", missed.join("\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/planted/found.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &table).expect("the table can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, table, "BLESS=1 writes it anew");
}
