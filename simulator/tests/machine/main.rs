//! The service beside a model of it: the same deeds are done in both, and after each everything that can be seen must
//! be what the model says.
//!
//! Proptest draws the deeds, and leaves out of a failing list whatever can be left out. `PROPTEST_CASES` says how many
//! lists, `PROPTEST_RNG_SEED` which. What is wrong on purpose must be found: see `planted`.

mod acts;
#[path = "../sweep_planted/answers.rs"]
mod answers;
mod chain;
mod check;
mod deed;
mod doors;
mod draw;
mod facts;
#[path = "../sweep_planted/notices.rs"]
mod notices;
mod planted;
mod post;
#[path = "../sweep_planted/posts.rs"]
mod posts;
mod rules;
mod stage;
mod world;

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
use reference_core::{draw::Seed, event::EventType, wallet::Vault};
use simulator::tamper::Tamper;

pub(crate) use crate::planted::Bug;
use crate::{deed::Deed, draw::Machine, stage::Stage, world::World};

/// Lists of deeds, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 200;
/// Deeds in a list.
const DEEDS: std::ops::Range<usize> = 1..48;
/// So many attempts to make a failing list shorter.
const SHRINKS_MAX: u32 = 4_000;

/// Two at once are left out of lists up to this long.
const PAIRS_MAX: usize = 12;

/// Addresses are derived once.
static VAULT: LazyLock<Vault> = LazyLock::new(|| Vault::new(Seed(1)));

/// A list of deeds after which something was not as it must be.
#[derive(Debug)]
struct Failure {
    deeds: Vec<Deed>,
    why: String,
}

impl Failure {
    /// A line for each deed, and what was wrong after the last.
    fn report(&self) -> String {
        let mut text = String::new();
        for (no, deed) in self.deeds.iter().enumerate() {
            writeln!(text, "  {:>2}. {deed:?}", no + 1).expect("memory");
        }
        format!("after these {} deeds\n{text}\n{}", self.deeds.len(), self.why)
    }

    /// Without every deed that can be left out, and with plainer ones. Proptest tries each deed once; some can go only
    /// after others have gone.
    fn shortened(mut self, make: fn() -> Box<dyn Tamper>) -> Failure {
        let mut is_shorter = true;
        while is_shorter {
            is_shorter = false;
            for fewer in self.shorter() {
                if can_be_done(&fewer)
                    && let Err((done, why)) = play(&fewer, make())
                {
                    self = Failure { deeds: fewer[..done].to_vec(), why };
                    is_shorter = true;
                    break;
                }
            }
        }
        self
    }

    /// The same with one thing less, from the end; and with two less where lists are short, because one deed may only
    /// undo another.
    fn shorter(&self) -> Vec<Vec<Deed>> {
        let mut all = Vec::new();
        for no in (0..self.deeds.len()).rev() {
            let mut fewer = self.deeds.clone();
            fewer.remove(no);
            all.push(fewer);
            for plainer in self.deeds[no].plainer() {
                let mut deeds = self.deeds.clone();
                deeds[no] = plainer;
                all.push(deeds);
            }
        }
        if self.deeds.len() <= PAIRS_MAX {
            let pairs =
                (0..self.deeds.len()).rev().flat_map(|no| (0..no).rev().map(move |earlier| (no, earlier)));
            all.extend(pairs.map(|(no, earlier)| {
                let mut fewer = self.deeds.clone();
                fewer.remove(no);
                fewer.remove(earlier);
                fewer
            }));
        }
        all
    }
}

fn can_be_done(deeds: &[Deed]) -> bool {
    let mut world = World::new();
    deeds.iter().all(|deed| {
        let may = world.allows(deed);
        if may {
            world.apply(deed);
        }
        may
    })
}

/// Does the deeds in both, until something differs: says after how many, and what.
fn play(deeds: &[Deed], tamper: Box<dyn Tamper>) -> Result<(), (usize, String)> {
    let mut world = World::new();
    let mut stage = Stage::new(&VAULT, tamper);
    for (no, deed) in deeds.iter().enumerate() {
        world.apply(deed);
        let mut both = || stage.play(deed, &world).and_then(|()| stage.check(&world));
        // A service that panics is wrong as well, and its story is worth as much.
        let verdict = panic::catch_unwind(AssertUnwindSafe(&mut both)).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied());
            Err(format!("it panics: {}", said.unwrap_or("without a word")))
        });
        verdict.map_err(|why| (no + 1, why))?;
    }
    stage.check_at_the_end(&world).map_err(|why| (deeds.len(), why))
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
    let outcome = runner.run(&Machine::sequential_strategy(DEEDS), |(_, deeds, seen)| {
        play(&deeds, make()).map_err(|(done, why)| {
            // What comes after the failing deed need not be tried to be left out one by one.
            if let Some(seen) = seen.filter(|_| shrinks > 0) {
                seen.store(done, std::sync::atomic::Ordering::SeqCst);
            }
            TestCaseError::fail(why)
        })
    });
    match outcome {
        Ok(()) => Ok(()),
        Err(TestError::Fail(_, (_, deeds, _))) => {
            let (done, why) = play(&deeds, make()).expect_err("the list that failed fails again");
            let failure = Failure { deeds: deeds[..done].to_vec(), why };
            Err(if shrinks > 0 { failure.shortened(make) } else { failure })
        }
        Err(TestError::Abort(why)) => panic!("no lists can be drawn: {why}"),
    }
}

#[test]
fn the_service_does_what_the_model_does() {
    let config = Config::default();
    #[expect(clippy::disallowed_methods, reason = "proptest reads it too, and cannot say whether it was set")]
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { config.cases } else { CASES };
    // The same lists each time, unless `PROPTEST_RNG_SEED` asks for others.
    let seed = if let RngSeed::Fixed(seed) = config.rng_seed { seed } else { 1 };
    if let Err(failure) = search(cases, RngSeed::Fixed(seed), SHRINKS_MAX, || Box::new(stage::Honest)) {
        let again =
            format!("PROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo test -p simulator --test machine");
        panic!("{}\n\nagain  {again}", failure.report());
    }
}

/// What the lists of the test above come to, in the model.
#[test]
fn the_lists_reach_what_they_are_for() {
    let mut reached = BTreeSet::new();
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() });
    for _ in 0..CASES {
        let list = Machine::sequential_strategy(DEEDS).new_tree(&mut runner).expect("a list");
        let mut world = World::new();
        for deed in list.current().1 {
            world.apply(&deed);
            reached.insert(format!("{:?}", world.due));
            let is_in_page = |reading: &world::Reading| reading.page > 1;
            reached.extend(world.readings.values().any(is_in_page).then(|| "a second page".to_owned()));
        }
        for book in &world.books {
            reached.extend(book.events.iter().map(|event| event.kind.to_owned()));
            reached.extend(book.events.iter().map(|event| match &event.details {
                world::Details::Reason(why) => format!("because {why}"),
                _ => String::new(),
            }));
            reached.extend(book.deliveries.iter().map(|it| match it.standing {
                world::Standing::Waiting(_) => "Waiting".to_owned(),
                other => format!("{other:?}"),
            }));
            reached.extend(book.charges.iter().map(|charge| charge.it.status.as_str().to_owned()));
            reached
                .extend(book.charges.iter().filter(|it| it.link.is_some()).map(|_| "from a link".to_owned()));
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
        "pending",
        "underpaid",
        "paid",
        "expired",
        "canceled",
        "Waiting",
        "Flying",
        "Delivered",
        "Failed",
        "Canceled",
    ];
    let kinds = EventType::ALL.map(EventType::as_str);
    let wanted = words.into_iter().chain(kinds).map(str::to_owned).chain(statuses);
    let missed: Vec<String> = wanted.filter(|it| !reached.contains(it)).collect();
    assert!(missed.is_empty(), "no list comes to {missed:?}");
}
