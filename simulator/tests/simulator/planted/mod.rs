//! Planted faults: each must be found by the invariants in a sweep.
//!
//! Each is the correct service with a change to its input or output. `BLESS=1 cargo test -p simulator --test simulator
//! planted` rewrites the table with the number of worlds until each was found (the median of three searches).

mod attempts;
mod fields;
mod http;
mod sightings;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use simulator::{
    demo::DemoFault,
    invariant::{Invariant, Violation},
    sweep::Runner,
    tamper::Tamper,
};

/// A fault that a tamper plants in the correct service.
struct PlantedFault {
    /// The description of the fault.
    name: &'static str,
    /// The invariants of which one must be the first to be violated in a sweep.
    invariants: &'static [Invariant],
    /// Creates the tamper.
    make: fn() -> Box<dyn Tamper>,
}

impl PlantedFault {
    const fn new(
        name: &'static str,
        invariants: &'static [Invariant],
        make: fn() -> Box<dyn Tamper>,
    ) -> PlantedFault {
        PlantedFault { name, invariants, make }
    }
}

/// Creates the tamper of a demo fault.
fn demo_fault(name: &str) -> Box<dyn Tamper> {
    (DemoFault::find(name).unwrap_or_else(|| panic!("no fault is called `{name}`")).make)()
}

/// Returns every planted fault.
fn faults() -> impl Iterator<Item = &'static PlantedFault> {
    [sightings::FAULTS, attempts::FAULTS, http::FAULTS, fields::FAULTS].into_iter().flatten()
}

/// The first seeds of the searches.
const START_SEEDS: [u64; 3] = [0, 1_000, 2_000];
/// The number of worlds until the first violation, and the violation; `None` if the fault was missed.
type FirstViolation = Option<(u64, Violation)>;

/// The maximum number of worlds until a fault must be found.
const WORLDS_MAX: u64 = 600;

/// Returns the number of worlds from a start seed to the first violation. `baseline` is a runner of
/// the correct service, whose wallets are reused.
fn find_violation(baseline: &Runner<'_>, fault: &PlantedFault, start: u64) -> FirstViolation {
    let runner = Runner { tamper: Some(&fault.make), ..baseline.clone() };
    (0..WORLDS_MAX).find_map(|index| {
        let verdict = runner.try_seed(start + index);
        verdict.findings.violations.first().map(|violation| (index + 1, violation.clone()))
    })
}

/// Returns the first violation of each fault from each start seed. Two threads share the searches.
fn find_all(faults: &[&PlantedFault]) -> Vec<[FirstViolation; START_SEEDS.len()]> {
    let searches: Vec<_> = faults.iter().flat_map(|fault| START_SEEDS.map(|start| (*fault, start))).collect();
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let baseline = Runner::default();
                while let Some((fault, start)) = searches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = find_violation(&baseline, fault, *start);
                    results.lock().expect("no search panics").insert((fault.name, *start), found);
                }
            });
        }
    });
    let results = results.into_inner().expect("no search panics");
    let found = |fault: &PlantedFault| START_SEEDS.map(|start| results[&(fault.name, start)].clone());
    faults.iter().map(|fault| found(fault)).collect()
}

#[test]
fn every_planted_fault_is_found_by_its_invariants() {
    let faults: Vec<&PlantedFault> = faults().collect();
    assert!(faults.len() >= 30, "{} planted faults", faults.len());
    let mut table = String::from("worlds  invariant       planted fault\n");
    let mut failures = Vec::new();
    for (fault, finds) in faults.iter().zip(find_all(&faults)) {
        let mut worlds = Vec::new();
        let mut first_invariant = None;
        for (start, found) in START_SEEDS.into_iter().zip(finds) {
            match found {
                None => failures.push(format!("{}: not found from seed {start}", fault.name)),
                Some((_, violation)) if !fault.invariants.contains(&violation.invariant) => {
                    failures.push(format!("{}: found from seed {start} by {violation}", fault.name));
                }
                Some((count, violation)) => {
                    first_invariant = first_invariant.or(Some(violation.invariant));
                    worlds.push(count);
                }
            }
        }
        worlds.sort_unstable();
        let median = worlds.get(worlds.len() / 2).copied().unwrap_or_default();
        table.push_str(&format!(
            "{median:>6}  {:<14}  {}\n",
            first_invariant.map_or("-", Invariant::as_str),
            fault.name
        ));
    }
    assert!(failures.is_empty(), "{}\n{table}", failures.join("\n"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simulator/planted/found.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, &table).expect("the table can be written");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, table, "BLESS=1 rewrites it");
}
