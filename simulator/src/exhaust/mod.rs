//! Exhaustive search of small worlds: every sequence of inputs from a small alphabet, up to a length, with all
//! invariants checked after each.
//!
//! An [`Exploration`] tries the sequences by length, so the first violation found is a shortest one. Sequences that reach
//! a known state are not extended. Two states are equal if everything around the service (chains, watchers, network, the
//! current time), all events that follow without further input, and the final content of the API are equal. Differences
//! that affect none of these for four days are ignored.
//!
//! Example: in the scope `charge`, the inputs are `pay half`, `a block`, `cancel` and others, and one sequence is
//! `pay half, a block, refund`.
//!
//! Must not contain threads: the caller runs the sequences of [`Exploration::next_paths`] in any order with
//! [`Exploration::run`], and passes the results to [`Exploration::record_results`].

mod scope;

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

pub use self::scope::Scope;
use crate::{
    invariant::Violation,
    script::{At, Script, parse_steps, step::Step, without_unknown_names},
    sweep::{Runner, Trace},
};

/// The maximum number of known states; sequences that reach others are not extended.
const STATES_MAX: usize = 2_000_000;

/// A sequence of inputs, as indexes into [`Scope::inputs`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<u8>);

/// The hash of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StateHash([u8; 16]);

/// The result of one sequence.
#[derive(Clone, Debug)]
pub struct PathResult {
    state: StateHash,
    /// The first violation.
    pub violation: Option<Violation>,
    /// The number of invariant checks.
    pub checks: u64,
}

/// A search through all sequences of a scope.
pub struct Exploration {
    scope: &'static Scope,
    setup: Vec<At<Step>>,
    inputs: Vec<Vec<At<Step>>>,
    /// The sequences that reached new states in the last round.
    frontier: Vec<Path>,
    known_states: BTreeSet<StateHash>,
    /// The extent of the search.
    pub extent: Extent,
}

/// The extent of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of sequences tried.
    pub sequences: u64,
    /// The number of different states.
    pub states: u64,
    /// The number of invariant checks.
    pub checks: u64,
    /// The length up to which every sequence was tried.
    pub depth: usize,
    /// `true` if longer sequences would reach no new state.
    pub is_exhausted: bool,
}

impl Exploration {
    /// Creates a search.
    ///
    /// # Panics
    ///
    /// If a step of the scope is invalid. The scopes are constants, and a test parses them all.
    pub fn new(scope: &'static Scope) -> Exploration {
        let parse = |steps| {
            parse_steps(steps).unwrap_or_else(|error| panic!("scope `{}`: {error}: {steps}", scope.name))
        };
        Exploration {
            scope,
            setup: parse(scope.setup),
            inputs: scope.inputs.iter().map(|(_, steps)| parse(steps)).collect(),
            frontier: Vec::new(),
            known_states: BTreeSet::new(),
            extent: Extent::default(),
        }
    }

    /// Returns the scope of the search.
    pub fn scope(&self) -> &'static Scope {
        self.scope
    }

    /// Returns the sequences of the next length: those of the last length that reached new states, each extended by every
    /// input. The first call returns the empty sequence; an empty list ends the search.
    pub fn next_paths(&mut self) -> Vec<Path> {
        if self.extent.sequences == 0 {
            return vec![Path::default()];
        }
        let frontier = std::mem::take(&mut self.frontier);
        let inputs = 0..u8::try_from(self.inputs.len()).expect("a scope has at most 255 inputs");
        let extended = |path: &Path, input| Path(path.0.iter().copied().chain([input]).collect());
        let all = frontier.iter().flat_map(|path| inputs.clone().map(move |input| extended(path, input)));
        let paths: Vec<Path> = all.filter(|path| self.has_valid_names(path)).collect();
        self.extent.is_exhausted = paths.is_empty();
        paths
    }

    /// Returns `true` if a sequence defines every name before it uses it, and none twice.
    fn has_valid_names(&self, path: &Path) -> bool {
        let steps = self.steps(path);
        let count = steps.len();
        without_unknown_names(steps).len() == count
    }

    /// Returns the steps of the setup and of a sequence.
    fn steps(&self, path: &Path) -> Vec<At<Step>> {
        let inputs = path.0.iter().flat_map(|input| &self.inputs[usize::from(*input)]);
        self.setup.iter().chain(inputs).cloned().collect()
    }

    /// Returns the scenario of a sequence.
    pub fn script(&self, path: &Path) -> Script {
        let title = format!("{}: {}", self.scope.name, self.input_names(path));
        Script::from_steps(&title, self.steps(path))
    }

    /// Returns the names of the inputs of a sequence; `nothing` for the empty one.
    pub fn input_names(&self, path: &Path) -> String {
        let names: Vec<&str> = path.0.iter().map(|input| self.scope.inputs[usize::from(*input)].0).collect();
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    }

    /// Plays a sequence, checks the invariants, and hashes the state that it reaches.
    pub fn run(&self, runner: &Runner<'_>, path: &Path) -> PathResult {
        let script = self.script(path);
        let dry_run = runner.dry_run(&script);
        let mut hash = Sha256::new();
        let (now, record_len) = (dry_run.sandbox.now(), dry_run.sandbox.record_len());
        hash.update(now.0.to_be_bytes());
        hash.update(dry_run.sandbox.environment_state());
        if self.scope.distinguishes_rate_limit {
            hash.update(dry_run.sandbox.calls_of_last_minute());
        }
        if self.scope.has_hidden_state {
            hash.update(&path.0);
        }
        let mut run = runner.heal_and_settle(dry_run);
        let verdict = runner.judge(&script, &mut run, self.scope.read_depth);
        hash.update(Trace::from_index(&run.record, record_len).digest());
        hash.update(runner.final_api_state(&mut run));
        let digest = hash.finalize();
        let mut state = StateHash([0; 16]);
        state.0.copy_from_slice(&digest[..16]);
        PathResult {
            state,
            checks: verdict.findings.total_checks(),
            violation: verdict.findings.violations.into_iter().next(),
        }
    }

    /// Records the results of the sequences of one length, in the order of [`Exploration::next_paths`]. Returns the first
    /// violation, which ends the search.
    pub fn record_results(&mut self, tried: Vec<(Path, PathResult)>) -> Option<(Path, Violation)> {
        let mut first = None;
        for (path, PathResult { state, violation, checks }) in tried {
            self.extent.sequences += 1;
            self.extent.checks += checks;
            self.extent.depth = path.0.len();
            if let Some(violation) = violation {
                first.get_or_insert((path, violation));
            } else if self.known_states.len() < STATES_MAX && self.known_states.insert(state) {
                self.frontier.push(path);
            }
        }
        self.extent.states = self.known_states.len() as u64;
        first
    }
}
