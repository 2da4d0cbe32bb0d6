//! Small worlds, exhausted: every sequence of inputs from a small alphabet, up to a length, and the laws after each.
//!
//! Sequences are tried by length, so the first that breaks a law is a shortest one. Two sequences that come to the same
//! state are gone on from once. A state is known by all that stands around the service (chains, watchers, network, the
//! moment), by all that happens when the world is left alone from then on, and by what the API shows in the end: what
//! is still hidden from all of these for four days counts as the same.
//!
//! Owns no threads: a host takes the sequences of a length, judges them in any order, and hands the results back.

mod scope;

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

pub use self::scope::Scope;
use crate::{
    law::Breach,
    script::{At, Script, read_steps, step::Step, without_strangers},
    sweep::{Runner, Trace},
};

/// More states than this are not kept.
const STATES_MAX: usize = 2_000_000;

/// A sequence of inputs, by their places in the alphabet.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<u8>);

/// The fingerprint of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State([u8; 16]);

/// The result of one sequence.
#[derive(Clone, Debug)]
pub struct Tried {
    state: State,
    /// The first breach.
    pub breach: Option<Breach>,
    /// The number of checks of each invariant.
    pub checks: u64,
}

/// A search through all sequences of a scope.
pub struct Exploration {
    scope: &'static Scope,
    setup: Vec<At<Step>>,
    inputs: Vec<Vec<At<Step>>>,
    /// Sequences that came to new states last.
    frontier: Vec<Path>,
    seen: BTreeSet<State>,
    /// The extent of the search.
    pub extent: Extent,
}

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Sequences that were tried.
    pub sequences: u64,
    /// Different states that they came to.
    pub states: u64,
    /// Tests of laws.
    pub checks: u64,
    /// The length up to which every sequence was tried.
    pub depth: usize,
    /// No longer sequence comes to a new state.
    pub is_exhausted: bool,
}

impl Exploration {
    /// A search that has tried nothing yet.
    ///
    /// # Panics
    ///
    /// If a step of the scope cannot be read; the scopes are constants, and a test reads them all.
    pub fn new(scope: &'static Scope) -> Exploration {
        let read =
            |text| read_steps(text).unwrap_or_else(|why| panic!("scope `{}`: {why}: {text}", scope.name));
        Exploration {
            scope,
            setup: read(scope.setup),
            inputs: scope.inputs.iter().map(|(_, steps)| read(steps)).collect(),
            frontier: Vec::new(),
            seen: BTreeSet::new(),
            extent: Extent::default(),
        }
    }

    /// Returns the scope of the search.
    pub fn scope(&self) -> &'static Scope {
        self.scope
    }

    /// Every sequence of the next length that goes on from a new state; none if there are no more. The first is empty.
    pub fn next_paths(&mut self) -> Vec<Path> {
        if self.extent.sequences == 0 {
            return vec![Path::default()];
        }
        let frontier = std::mem::take(&mut self.frontier);
        let letters = 0..u8::try_from(self.inputs.len()).expect("an alphabet is small");
        let longer = |path: &Path, letter| Path(path.0.iter().copied().chain([letter]).collect());
        let all = frontier.iter().flat_map(|path| letters.clone().map(move |letter| longer(path, letter)));
        let paths: Vec<Path> = all.filter(|path| self.is_sound(path)).collect();
        self.extent.is_exhausted = paths.is_empty();
        paths
    }

    /// Returns `true` if every name that a sequence needs is given before, and none is given twice.
    fn is_sound(&self, path: &Path) -> bool {
        let steps = self.steps(path);
        let count = steps.len();
        without_strangers(steps).len() == count
    }

    fn steps(&self, path: &Path) -> Vec<At<Step>> {
        let inputs = path.0.iter().flat_map(|letter| &self.inputs[usize::from(*letter)]);
        self.setup.iter().chain(inputs).cloned().collect()
    }

    /// The scenario of a sequence.
    pub fn script(&self, path: &Path) -> Script {
        let title = format!("{}: {}", self.scope.name, self.words(path));
        Script::plain(&title, self.steps(path))
    }

    /// A sequence in words.
    pub fn words(&self, path: &Path) -> String {
        let words: Vec<&str> =
            path.0.iter().map(|letter| self.scope.inputs[usize::from(*letter)].0).collect();
        if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
    }

    /// Plays a sequence and judges it.
    pub fn attempt(&self, runner: &Runner<'_>, path: &Path) -> Tried {
        let script = self.script(path);
        let rehearsal = runner.rehearse(&script);
        let mut hash = Sha256::new();
        let (now, place) = (rehearsal.sandbox.now(), rehearsal.sandbox.recorded());
        hash.update(now.0.to_be_bytes());
        hash.update(rehearsal.sandbox.surroundings());
        if self.scope.is_limited {
            hash.update(rehearsal.sandbox.calls_of_last_minute());
        }
        let mut run = runner.leave_alone(rehearsal);
        let verdict = runner.judge(&script, &mut run, self.scope.look);
        hash.update(Trace::since(&run.record, place).digest());
        hash.update(runner.shown_in_the_end(&mut run));
        let digest = hash.finalize();
        let mut state = State([0; 16]);
        state.0.copy_from_slice(&digest[..16]);
        Tried {
            state,
            checks: verdict.findings.total(),
            breach: verdict.findings.breaches.into_iter().next(),
        }
    }

    /// Takes what came of the sequences of one length, in the order in which they were handed out. Gives back the
    /// first that broke a law; the search then ends.
    pub fn take_in(&mut self, tried: Vec<(Path, Tried)>) -> Option<(Path, Breach)> {
        let mut broken = None;
        for (path, Tried { state, breach, checks }) in tried {
            self.extent.sequences += 1;
            self.extent.checks += checks;
            self.extent.depth = path.0.len();
            if let Some(breach) = breach {
                broken.get_or_insert((path, breach));
            } else if self.seen.len() < STATES_MAX && self.seen.insert(state) {
                self.frontier.push(path);
            }
        }
        self.extent.states = self.seen.len() as u64;
        broken
    }
}
