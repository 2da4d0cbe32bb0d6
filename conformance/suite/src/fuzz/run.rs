//! A fuzz run: sends the requests of a seed, and shrinks sequences that violate an invariant.

use super::{
    Outcome, Plan, Reproduction,
    client::{FuzzClient, JudgedResponse, Progress},
    draw::RequestGenerator,
    known::KnownIds,
    shrink,
};
use conformance_model::recording::Ending;
use conformance_probe::{Interrupt, Waiter};

/// Sends the requests of the plan's seed, and shrinks sequences that violate an invariant. After an interrupt, sends no
/// more requests.
pub async fn fuzz(plan: &Plan, waiter: &mut dyn Waiter, progress: &mut dyn Progress) -> Outcome {
    let mut client = FuzzClient::new(plan, waiter, progress);
    let mut outcome = client.outcome();
    if !check_target(plan, &mut client, &mut outcome).await {
        return outcome;
    }
    let mut draw = RequestGenerator::new(plan.seed, plan.allow_writes);
    let mut known = KnownIds::default();
    let (mut templates, mut sent) = (Vec::new(), Vec::new());
    let mut found = Vec::<Reproduction>::new();
    let begun = client.waiter.now();
    for _ in 0..plan.requests {
        if plan.lasting.is_some_and(|lasting| client.waiter.now().saturating_sub(begun) >= lasting) {
            break;
        }
        let template = draw.next();
        let Some(judged) =
            unless_interrupted(&plan.interrupt, client.send_and_judge(&template, &mut known)).await
        else {
            break;
        };
        let JudgedResponse { sent: went_out, ending, violations } = judged;
        templates.push(template);
        sent.push(went_out);
        count(&mut outcome, &ending);
        for violation in violations {
            if found.iter().all(|earlier| earlier.violation.statement != violation.statement) {
                found.push(Reproduction {
                    violation,
                    templates: templates.clone(),
                    sent: sent.clone(),
                    repeats: false,
                });
            }
        }
        client.progress.on_request(client.requests, plan.requests, found.len());
    }
    for first in found {
        let shrunk = unless_interrupted(&plan.interrupt, shrink::shrink(&mut client, first.clone())).await;
        outcome.found.push(shrunk.unwrap_or(first));
    }
    outcome.requests = client.requests;
    outcome.interrupted = plan.interrupt.is_raised();
    outcome
}

/// Replays sequences. The outcome has those that still violate their invariant. After an interrupt, sends no more
/// requests.
pub async fn replay(
    plan: &Plan,
    kept: &[Reproduction],
    waiter: &mut dyn Waiter,
    progress: &mut dyn Progress,
) -> Outcome {
    let mut client = FuzzClient::new(plan, waiter, progress);
    let mut outcome = client.outcome();
    if !check_target(plan, &mut client, &mut outcome).await {
        return outcome;
    }
    for found in kept {
        let reproduction = client.reproduce(&found.violation.statement, &found.templates);
        let Some(reproduction) = unless_interrupted(&plan.interrupt, reproduction).await else { break };
        outcome.found.extend(reproduction);
    }
    outcome.requests = client.requests;
    outcome.interrupted = plan.interrupt.is_raised();
    outcome
}

/// Checks that the target responds to both keys. Otherwise sets the reason in the outcome.
async fn check_target(plan: &Plan, client: &mut FuzzClient<'_>, outcome: &mut Outcome) -> bool {
    let checked = unless_interrupted(&plan.interrupt, client.check_server()).await;
    let is_usable = matches!(checked, Some(Ok(())));
    if let Some(Err(stop)) = checked {
        stop.record(outcome);
    }
    outcome.requests = client.requests;
    outcome.interrupted = plan.interrupt.is_raised();
    is_usable
}

/// Returns the result of a future; `None` if the operator interrupts it.
async fn unless_interrupted<T>(interrupt: &Interrupt, work: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = interrupt.wait_until_raised() => None,
        done = work => Some(done),
    }
}

fn count(outcome: &mut Outcome, ending: &Ending) {
    let word = match ending {
        Ending::Answered(answer) => answer.status.to_string(),
        Ending::Lost(_) => "lost".to_owned(),
    };
    *outcome.statuses.entry(word).or_default() += 1;
}
