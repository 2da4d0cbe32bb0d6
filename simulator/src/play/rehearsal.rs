//! A rehearsal: a script is played without a transcript, and whatever is refused is noted and passed over.
//!
//! For scripts that nobody wrote by hand, so that nobody could say beforehand what the world would refuse. The
//! world and the order of things are the same as in a play.

use std::collections::BTreeMap;

use reference_core::{mode::Mode, time::Span};

use super::{Cause, LocalStage, Player};
use crate::{
    sandbox::{EndedAttempt, Sandbox},
    script::{Kind, Script, step::Step},
    witness::BookId,
};

/// The result of a dry run.
pub struct Rehearsal {
    /// The world as it stands at the end.
    pub sandbox: Sandbox,
    /// A key of each account and mode for looking at it, whose limit nobody used up.
    pub observers: BTreeMap<BookId, String>,
    /// The statuses of refused calls, by the number of the step.
    pub refusals: BTreeMap<usize, u16>,
    /// Steps that could not be taken, or that came out wrong.
    pub troubles: Vec<Trouble>,
    /// The codes and ids behind the names that the script gives.
    pub names: BTreeMap<String, String>,
    /// The length of the record when each step began, and at the end.
    pub began: Vec<usize>,
}

/// A step that could not be taken, or that came out wrong.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The place of the step.
    pub place: usize,
    /// The party at fault.
    pub cause: Cause,
    /// The expected and the actual value.
    pub what: String,
}

/// Plays a script in a world that is as the script says: its seed, its start, its settings.
pub fn rehearse(script: &Script, sandbox: Sandbox) -> Rehearsal {
    let mut stage = LocalStage::around(sandbox);
    let (mut troubles, mut began) = (Vec::new(), Vec::new());
    let mut player = Player::new(script, &mut stage);
    player.refusals = Some(BTreeMap::new());
    player.names_deliveries = script.steps.iter().any(|step| names_deliveries(&step.value));
    player.move_in();
    for (place, step) in script.steps.iter().enumerate() {
        (player.here, player.place) = (step.span, place);
        began.push(player.recorded());
        let taken = match &step.value {
            Step::Expect(_) => Ok(()),
            Step::Wait(span) => player.advance_to(player.now.plus(span.0)),
            Step::Until(until) => player.until(until),
            act => {
                let paced =
                    place > 0 && !matches!(script.steps[place - 1].value, Step::Wait(_) | Step::Until(_));
                let pace = if paced { script.pace } else { Span(0) };
                player.advance_to(player.now.plus(pace)).and_then(|()| player.act(act))
            }
        };
        if let Err(stop) = taken {
            troubles.push(Trouble { place, cause: stop.cause, what: stop.brief() });
        }
        player.hear();
    }
    began.push(player.recorded());
    let (observers, refusals) = (player.observers, player.refusals.unwrap_or_default());
    let names = player.aliases.given();
    Rehearsal { sandbox: stage.into_sandbox(), observers, refusals, troubles, names, began }
}

/// Steps that need to know which posts have landed.
fn names_deliveries(step: &Step) -> bool {
    matches!(step, Step::Resend(_)) || matches!(step, Step::Until(until) if until.attempt.is_some())
}

impl Player<'_> {
    /// Takes the keys of a world that is there already, and makes the player's own.
    fn move_in(&mut self) {
        let now = self.script.start;
        let sandbox = self.stage.quick().expect("a rehearsal is in this process");
        sandbox.advance_to(now);
        let first = sandbox.first_keys();
        let observers = sandbox.create_lookers();
        self.accounts = vec![Sandbox::FIRST_ACCOUNT.to_owned()];
        self.own_keys = BTreeMap::from([((0, Mode::Live), first.live), ((0, Mode::Test), first.test)]);
        self.keys = self.own_keys.iter().map(|((_, mode), key)| (mode.to_string(), key.clone())).collect();
        self.observers = observers.into_iter().map(|(mode, key)| ((0, mode), key)).collect();
    }

    fn recorded(&mut self) -> usize {
        self.stage.quick().map_or(0, |sandbox| sandbox.recorded())
    }

    /// Names what has appeared, as far as steps can name it without being told its name.
    fn hear(&mut self) {
        let Some(sandbox) = self.stage.quick() else { return };
        // A step that moves the clock moved the world's only.
        self.now = sandbox.now();
        let landed = sandbox.take_ended();
        if !self.names_deliveries {
            return;
        }
        for EndedAttempt { mode, delivery, endpoint, next_at } in landed {
            let delivery = delivery.to_string();
            self.aliases.name(Kind::Delivery, mode, &delivery);
            self.tally.next_at.insert(delivery, (endpoint.to_string(), next_at));
        }
    }
}
