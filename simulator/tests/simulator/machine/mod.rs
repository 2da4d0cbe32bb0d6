//! The service beside the model of it: the same operations are done in both, and after each everything that can be seen
//! must be what the model says.
//!
//! Proptest draws the operations, and leaves out of a failing list whatever can be left out. `PROPTEST_CASES` says how many
//! lists, `PROPTEST_RNG_SEED` which. What is wrong on purpose must be found: see `planted`.

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
    driver::{Driver, Honest},
    op::Op,
    state::{BOOKS, State},
};

/// Lists of operations, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 200;
/// Ops in a list.
const OPS: std::ops::Range<usize> = 1..48;
/// So many attempts to make a failing list shorter.
const SHRINKS_MAX: u32 = 4_000;

/// Two at once are left out of lists up to this long.
const PAIRS_MAX: usize = 12;

/// Addresses are derived once.
static WALLETS: LazyLock<WalletCache> = LazyLock::new(|| WalletCache::new(Seed(1)));

/// A list of operations after which something was not as it must be.
#[derive(Debug)]
struct Failure {
    operations: Vec<Op>,
    why: String,
}

impl Failure {
    /// A line for each op, and what was wrong after the last.
    fn report(&self) -> String {
        let mut text = String::new();
        for (no, op) in self.operations.iter().enumerate() {
            writeln!(text, "  {:>2}. {op:?}", no + 1).expect("memory");
        }
        format!("after these {} operations\n{text}\n{}", self.operations.len(), self.why)
    }

    /// Without every op that can be left out, and with plainer ones. Proptest tries each op once; some can go only
    /// after others have gone.
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

    /// The same with one thing less, from the end; and with two less where lists are short, because one op may only
    /// undo another.
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

/// Does the operations in both, until something differs: says after how many, and what.
fn play(operations: &[Op], tamper: Box<dyn Tamper>) -> Result<(), (usize, String)> {
    let mut state = State::new();
    let mut driver = Driver::new(&WALLETS, tamper);
    for (no, op) in operations.iter().enumerate() {
        state.apply(op);
        let mut both = || driver.play(op, &state).and_then(|()| driver.check(&state));
        // A service that panics is wrong as well, and its story is worth as much.
        let verdict = panic::catch_unwind(AssertUnwindSafe(&mut both)).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied());
            Err(format!("it panics: {}", said.unwrap_or("without a word")))
        });
        verdict.map_err(|why| (no + 1, why))?;
    }
    driver.check_at_the_end(&state).map_err(|why| (operations.len(), why))
}

/// The first failing list among so many, as short as it could be made.
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
            // What comes after the failing op need not be tried to be left out one by one.
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
fn the_service_does_what_the_model_does() {
    let config = Config::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { CASES };
    // The same lists each time, unless `PROPTEST_RNG_SEED` asks for others.
    let seed = if let RngSeed::Fixed(seed) = config.rng_seed { seed } else { 1 };
    if let Err(failure) = search(cases, RngSeed::Fixed(seed), SHRINKS_MAX, || Box::new(Honest)) {
        let again = format!(
            "PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo test -p simulator --test simulator machine"
        );
        panic!("{}\n\nagain  {again}", failure.report());
    }
}

/// What the lists of the test above come to, in the model.
#[test]
fn the_lists_reach_what_they_are_for() {
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
            reached.extend(book.deliveries.iter().map(|it| match it.state {
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
    let missed: Vec<String> = wanted.filter(|it| !reached.contains(it)).collect();
    assert!(missed.is_empty(), "no list comes to {missed:?}");
}
