//! Dry runs: a script is played without a transcript, and refused steps are recorded and skipped. They serve
//! generated scripts, whose refusals are not known beforehand. The world and the order of events are the same
//! as in [`super::play`].

use std::{collections::BTreeMap, hash::Hasher};

use fnv::FnvHasher;
use reference_core::{mode::Mode, time::Span};

use super::{Cause, LocalStage, Player};
use crate::{
    record::BookId,
    sandbox::{EndedAttempt, Sandbox},
    script::{Kind, Script, step::Step},
};

/// On average, the world is stored and restored before one step in this number. Waits do not count.
const RELOAD_EVERY: u64 = 30;

/// The result of a dry run.
pub struct DryRun {
    /// The world at the end.
    pub sandbox: Sandbox,
    /// A key of each account and mode for reading state, whose rate limit no step uses.
    pub observers: BTreeMap<BookId, String>,
    /// The statuses of refused actions, by the index of the step.
    pub refusals: BTreeMap<usize, u16>,
    /// The steps that could not be performed, or whose expectation is not met.
    pub errors: Vec<DryRunError>,
    /// The codes and ids of the objects that the script names, by name.
    pub names: BTreeMap<String, String>,
    /// The length of the record at the start of each step, and at the end.
    pub step_starts: Vec<usize>,
}

/// A step that could not be performed, or whose expectation is not met.
#[derive(Clone, Debug)]
pub struct DryRunError {
    /// The index of the step.
    pub step: usize,
    /// The cause.
    pub cause: Cause,
    /// The message in one line.
    pub message: String,
}

/// Plays a script without a transcript. The world must have the script's seed, start and settings.
pub fn dry_run(script: &Script, sandbox: Sandbox) -> DryRun {
    let mut stage = LocalStage::for_dry_run(sandbox);
    let (mut errors, mut step_starts) = (Vec::new(), Vec::new());
    let mut player = Player::new(script, &mut stage);
    player.refusals = Some(BTreeMap::new());
    player.names_deliveries = script.steps.iter().any(|step| refers_to_delivery(&step.value));
    player.adopt_world();
    for (index, step) in script.steps.iter().enumerate() {
        // Storing and restoring must not change a world; the invariants would find a loss.
        if is_reloaded_before(&step.value, script.seed)
            && let Some(sandbox) = player.stage.local_world()
        {
            sandbox.reload();
        }
        (player.step_span, player.step_index) = (step.span, index);
        step_starts.push(player.record_len());
        let result = match &step.value {
            Step::Expect(_) => Ok(()),
            Step::Wait(span) => player.advance_to(player.now.plus(span.0)),
            Step::Until(until) => player.wait_until(until),
            action => {
                let is_paced =
                    index > 0 && !matches!(script.steps[index - 1].value, Step::Wait(_) | Step::Until(_));
                let pace = if is_paced { script.pace } else { Span(0) };
                player.advance_to(player.now.plus(pace)).and_then(|()| player.perform_step(action))
            }
        };
        if let Err(error) = result {
            errors.push(DryRunError { step: index, cause: error.cause, message: error.summary() });
        }
        player.read_world();
    }
    step_starts.push(player.record_len());
    let (observers, refusals) = (player.observers, player.refusals.unwrap_or_default());
    let names = player.aliases.script_objects();
    DryRun { sandbox: stage.into_sandbox(), observers, refusals, errors, names, step_starts }
}

/// Returns `true` if the world is stored and restored before a step. It depends on the step and the seed alone, so that
/// it stays the same while shrinking removes other steps.
fn is_reloaded_before(step: &Step, seed: u64) -> bool {
    if matches!(step, Step::Wait(_)) {
        return false;
    }
    // A cryptographic hash of every step would be a noticeable part of the run time. The hash of no bytes is
    // FNV's start value; the low bits of FNV are less random than the high ones.
    let mut hasher = FnvHasher::with_key(seed ^ FnvHasher::default().finish());
    hasher.write(&serde_json::to_vec(step).unwrap_or_default());
    (hasher.finish() >> 32).is_multiple_of(RELOAD_EVERY)
}

/// Returns `true` if a step refers to a delivery by name.
fn refers_to_delivery(step: &Step) -> bool {
    matches!(step, Step::Resend(_)) || matches!(step, Step::Until(until) if until.attempt.is_some())
}

impl Player<'_> {
    /// Advances an existing world to the script's start, reads its keys, and creates observer keys.
    fn adopt_world(&mut self) {
        let start = self.script.start;
        let sandbox = self.stage.local_world().expect("a dry run has a local world");
        sandbox.advance_to(start);
        let first_keys = sandbox.first_keys();
        let observers = sandbox.create_observer_keys();
        self.accounts = vec![Sandbox::FIRST_ACCOUNT.to_owned()];
        self.own_keys =
            BTreeMap::from([((0, Mode::Live), first_keys.live), ((0, Mode::Test), first_keys.test)]);
        self.keys = self.own_keys.iter().map(|((_, mode), key)| (mode.to_string(), key.clone())).collect();
        self.observers = observers.into_iter().map(|(mode, key)| ((0, mode), key)).collect();
    }

    fn record_len(&mut self) -> usize {
        self.stage.local_world().map_or(0, |sandbox| sandbox.record_len())
    }

    /// Reads the clock of the world, and names the deliveries of ended attempts, to which later steps may
    /// refer as `d1`.
    fn read_world(&mut self) {
        let Some(sandbox) = self.stage.local_world() else { return };
        // A step such as `mine` moves the clock of the world, but not the player's.
        self.now = sandbox.now();
        let ended = sandbox.take_ended();
        if !self.names_deliveries {
            return;
        }
        for EndedAttempt { mode, delivery, endpoint, next_at } in ended {
            let delivery = delivery.to_string();
            self.aliases.name_or_assign(Kind::Delivery, mode, &delivery);
            self.tally.next_at.insert(delivery, (endpoint.to_string(), next_at));
        }
    }
}
