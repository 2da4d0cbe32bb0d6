//! The service against its model: the same operations are performed on both, and after each everything visible must be
//! equal.
//!
//! Proptest draws the operations, and shrinks a failing list. `PROPTEST_CASES` is the number of lists,
//! `PROPTEST_RNG_SEED` the seed. Planted faults must be found: see `planted`.

mod draw;
mod driver;
mod op;
mod planted;
mod requests;
mod sightings;
mod state;

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    panic::{self, AssertUnwindSafe},
    sync::LazyLock,
};

use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner},
};
use proptest_state_machine::ReferenceStateMachine as _;
use reference_core::{event::EventType, rng::Seed, wallet::WalletCache};
use simulator::{
    model::{DeliveryState, Details, Reading},
    tamper::Tamper,
};

use self::{
    draw::Machine,
    driver::{Driver, NoTamper},
    op::Op,
    state::{BOOKS, State},
};

/// The number of lists of operations, unless `PROPTEST_CASES` is set.
const CASES: u32 = 200;
/// The number of operations in a list.
const OPS: std::ops::Range<usize> = 1..48;
/// The maximum number of attempts to shrink a failing list.
const SHRINKS_MAX: u32 = 4_000;

/// The maximum length of lists from which pairs of operations are removed.
const PAIRS_MAX: usize = 12;

/// Shared wallets, so that addresses are derived once.
static WALLETS: LazyLock<WalletCache> = LazyLock::new(|| WalletCache::new(Seed(1)));

/// A failing list of operations.
#[derive(Debug)]
struct Failure {
    operations: Vec<Op>,
    why: String,
}

impl Failure {
    /// Returns a line for each operation, and the difference after the last.
    fn report(&self) -> String {
        let mut text = String::new();
        for (no, op) in self.operations.iter().enumerate() {
            writeln!(text, "  {:>2}. {op:?}", no + 1).expect("memory");
        }
        format!("after these {} operations\n{text}\n{}", self.operations.len(), self.why)
    }

    /// Removes every operation that is not needed, and simplifies others. Proptest tries to remove each operation
    /// once; some can be removed only after others.
    fn shortened(mut self, make: fn() -> Box<dyn Tamper>) -> Failure {
        let mut is_shorter = true;
        while is_shorter {
            is_shorter = false;
            for fewer in self.shorter() {
                if can_be_done(&fewer)
                    && let Err((done, why)) = play(&fewer, make())
                {
                    self = Failure { operations: fewer[..done].to_vec(), why };
                    is_shorter = true;
                    break;
                }
            }
        }
        self
    }

    /// Returns the list with one operation less, from the end; for short lists also with two less, because one
    /// operation may undo another.
    fn shorter(&self) -> Vec<Vec<Op>> {
        let mut all = Vec::new();
        for no in (0..self.operations.len()).rev() {
            let mut fewer = self.operations.clone();
            fewer.remove(no);
            all.push(fewer);
            for plainer in self.operations[no].plainer() {
                let mut operations = self.operations.clone();
                operations[no] = plainer;
                all.push(operations);
            }
        }
        if self.operations.len() <= PAIRS_MAX {
            let pairs = (0..self.operations.len())
                .rev()
                .flat_map(|no| (0..no).rev().map(move |earlier| (no, earlier)));
            all.extend(pairs.map(|(no, earlier)| {
                let mut fewer = self.operations.clone();
                fewer.remove(no);
                fewer.remove(earlier);
                fewer
            }));
        }
        all
    }
}

fn can_be_done(operations: &[Op]) -> bool {
    let mut state = State::new();
    operations.iter().all(|op| {
        let may = state.allows(op);
        if may {
            state.apply(op);
        }
        may
    })
}

/// Performs the operations on both; returns the number performed and the difference at the first one.
fn play(operations: &[Op], tamper: Box<dyn Tamper>) -> Result<(), (usize, String)> {
    let mut state = State::new();
    let mut driver = Driver::new(&WALLETS, tamper);
    for (no, op) in operations.iter().enumerate() {
        state.apply(op);
        let mut both = || driver.play(op, &state).and_then(|()| driver.check(&state));
        // A panic of the service is a failure too, and is shrunk as well.
        let verdict = panic::catch_unwind(AssertUnwindSafe(&mut both)).unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or(panic.downcast_ref::<&str>().copied());
            Err(format!("it panics: {}", message.unwrap_or("without a word")))
        });
        verdict.map_err(|why| (no + 1, why))?;
    }
    driver.check_at_the_end(&state).map_err(|why| (operations.len(), why))
}

/// Returns the first failing list among this number of lists, shrunk.
fn search(cases: u32, seed: RngSeed, shrinks: u32, make: fn() -> Box<dyn Tamper>) -> Result<(), Failure> {
    let config = Config {
        cases,
        rng_seed: seed,
        max_shrink_iters: shrinks,
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&Machine::sequential_strategy(OPS), |(_, operations, seen)| {
        play(&operations, make()).map_err(|(done, why)| {
            // Operations after the failing one need not be removed one by one.
            if let Some(seen) = seen.filter(|_| shrinks > 0) {
                seen.store(done, std::sync::atomic::Ordering::SeqCst);
            }
            TestCaseError::fail(why)
        })
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(_, (_, operations, _))) => {
            let (done, why) = play(&operations, make()).expect_err("the list that failed fails again");
            let failure = Failure { operations: operations[..done].to_vec(), why };
            Err(if shrinks > 0 { failure.shortened(make) } else { failure })
        }
        Err(TestError::Abort(why)) => panic!("no lists can be drawn: {why}"),
    }
}

#[test]
fn the_service_equals_the_model() {
    let config = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { CASES };
    // The same lists each time, unless `PROPTEST_RNG_SEED` is set.
    let seed = if let RngSeed::Fixed(seed) = config.rng_seed { seed } else { 1 };
    if let Err(failure) = search(cases, RngSeed::Fixed(seed), SHRINKS_MAX, || Box::new(NoTamper)) {
        let again = format!(
            "PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo test -p simulator --test simulator machine"
        );
        panic!("{}\n\nrerun  {again}", failure.report());
    }
}

/// Checks which states the lists of the test above reach in the model.
#[test]
fn the_lists_reach_all_relevant_states() {
    let mut reached = BTreeSet::new();
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() });
    for _ in 0..CASES {
        let list = Machine::sequential_strategy(OPS).new_tree(&mut runner).expect("a list");
        let mut state = State::new();
        for op in list.current().1 {
            state.apply(&op);
            reached.insert(format!("{:?}", state.due));
            let is_in_page = |reading: &Reading| reading.page > 1;
            let is_later = state.pages.followed.values().any(is_in_page);
            reached.extend(is_later.then(|| "a second page".to_owned()));
        }
        for book in BOOKS.map(|id| state.book(id)) {
            reached.extend(book.events.iter().map(|event| event.kind.to_owned()));
            reached.extend(book.events.iter().filter_map(|event| match &event.details {
                Details::Reason(why) => Some(format!("because {why}")),
                _ => None,
            }));
            reached.extend(book.deliveries.iter().map(|delivery| match delivery.state {
                DeliveryState::Waiting(_) => "Waiting".to_owned(),
                other => format!("{other:?}"),
            }));
            reached.extend(book.charges.iter().map(|charge| charge.status.as_str().to_owned()));
            let by_link = book.charges.iter().any(|charge| charge.terms.link.is_some());
            reached.extend(by_link.then(|| "from a link".to_owned()));
        }
    }
    let statuses =
        ["200", "201", "404", "409", "422", "429", "503"].map(|status| format!("Status({status})"));
    let words = [
        "Replay(0)",
        "a second page",
        "from a link",
        "because dashboard",
        "because asset_switched",
        "because invoice_voided",
        "because invoice_paid",
        "because max_payments_reached",
        "pending",
        "underpaid",
        "paid",
        "expired",
        "canceled",
        "Waiting",
        "InFlight",
        "Delivered",
        "Failed",
        "Canceled",
    ];
    let kinds = EventType::ALL.map(EventType::as_str);
    let wanted = words.into_iter().chain(kinds).map(str::to_owned).chain(statuses);
    let missed: Vec<String> = wanted.filter(|name| !reached.contains(name)).collect();
    assert!(missed.is_empty(), "no list comes to {missed:?}");
}
