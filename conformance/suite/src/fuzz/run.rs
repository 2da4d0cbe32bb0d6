//! A run: asks what the seed says, and shrinks what breaks a law.

use super::{
    Found, Outcome, Plan,
    draw::Draw,
    known::Known,
    shrink,
    talk::{Judged, Progress, Talk},
};
use conformance_model::recording::Ending;
use conformance_probe::Waiter;

/// Asks what the plan's seed says, and shrinks what breaks a law.
pub async fn fuzz(plan: &Plan, waiter: &mut dyn Waiter, progress: &mut dyn Progress) -> Outcome {
    let mut talk = Talk::new(plan, waiter, progress);
    let mut outcome = talk.outcome();
    if let Err(stop) = talk.ground().await {
        stop.tell(&mut outcome);
        outcome.requests = talk.requests;
        return outcome;
    }
    let mut draw = Draw::new(plan.seed, plan.allow_writes);
    let mut known = Known::default();
    let (mut asks, mut sent) = (Vec::new(), Vec::new());
    let mut found = Vec::<Found>::new();
    for _ in 0..plan.requests {
        let ask = draw.next();
        asks.push(ask.clone());
        let Judged { went_out, ending, breaches } = talk.judged(&ask, &mut known).await;
        sent.push(went_out);
        count(&mut outcome, &ending);
        for breach in breaches {
            if found.iter().all(|it| it.breach.law != breach.law) {
                found.push(Found { breach, asks: asks.clone(), sent: sent.clone(), repeats: false });
            }
        }
        talk.progress.asked(talk.requests, plan.requests, found.len());
    }
    for first in found {
        outcome.found.push(shrink::shrink(&mut talk, first).await);
    }
    outcome.requests = talk.requests;
    outcome
}

/// Asks kept sequences again. What no longer breaks its law is left out of the outcome.
pub async fn replay(
    plan: &Plan,
    kept: &[Found],
    waiter: &mut dyn Waiter,
    progress: &mut dyn Progress,
) -> Outcome {
    let mut talk = Talk::new(plan, waiter, progress);
    let mut outcome = talk.outcome();
    if let Err(stop) = talk.ground().await {
        stop.tell(&mut outcome);
        outcome.requests = talk.requests;
        return outcome;
    }
    for found in kept {
        outcome.found.extend(talk.breaks(&found.breach.law, &found.asks).await);
    }
    outcome.requests = talk.requests;
    outcome
}

fn count(outcome: &mut Outcome, ending: &Ending) {
    let word = match ending {
        Ending::Answered(answer) => answer.status.to_string(),
        Ending::Lost(_) => "lost".to_owned(),
    };
    *outcome.statuses.entry(word).or_default() += 1;
}
