//! Planted faults that the state-machine test must find, and the length of the shrunk lists.

use proptest::test_runner::RngSeed;

use super::{SHRINKS_MAX, search};
use crate::planted::{PlantedFault, faults};

/// The maximum number of lists until a fault must be found.
const LISTS_MAX: u32 = 400;
/// Fixed, so that the results are reproducible.
const SEED: RngSeed = RngSeed::Fixed(1);
/// The maximum length of shrunk lists; drawn ones have forty operations and more.
const OPS_MAX: usize = 6;
/// Faults whose lists are shrunk completely, which takes longer than finding them.
const SHRUNK_COMPLETELY: [&str; 9] = [
    "one confirmation too few",
    "what vanishes is not noticed",
    "late money is lost",
    "every event goes to one endpoint twice",
    "nothing is tried a third time",
    "an invoice that is over is withdrawn",
    "an isolation leak through one filter",
    "an idempotency key is ignored",
    "a later page lacks its first record",
];

#[test]
fn every_planted_fault_is_found() {
    let seen: Vec<&PlantedFault> = faults().filter(|fault| fault.unseen_by_machine.is_none()).collect();
    let half = |part: usize| -> Vec<&str> {
        let own = seen.iter().enumerate().filter(|(place, _)| place % 2 == part).map(|(_, fault)| fault);
        own.filter(|fault| search(LISTS_MAX, SEED, 0, fault.make).is_ok()).map(|fault| fault.name).collect()
    };
    let missed = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        [half(0), other.join().expect("the other half ends")].concat()
    });
    assert!(missed.is_empty(), "missed in {LISTS_MAX} lists: {missed:#?}");
}

#[test]
fn failing_lists_are_shrunk_to_few_operations() {
    for name in SHRUNK_COMPLETELY {
        let fault = faults().find(|fault| fault.name == name).expect("a bug with this name");
        let failure = search(LISTS_MAX, SEED, SHRINKS_MAX, fault.make).expect_err(name);
        assert!(failure.operations.len() <= OPS_MAX, "{name}: {}", failure.report());
    }
}
