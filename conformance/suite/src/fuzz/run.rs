//! A fuzz run: sends the requests of a seed, and shrinks sequences that violate an invariant.

use super::{
    Outcome, Plan, Reproduction,
    client::{FuzzClient, JudgedResponse, Progress},
    generator::RequestGenerator,
    known_ids::KnownIds,
    shrink,
};
use conformance_model::recording::ExchangeOutcome;
use conformance_probe::{Interrupt, TargetClock};

/// Sends the requests of the plan's seed, and shrinks sequences that violate an invariant. After an interrupt, sends no
/// more requests.
pub async fn fuzz(plan: &Plan, clock: &mut dyn TargetClock, progress: &mut dyn Progress) -> Outcome {
    let mut client = FuzzClient::new(plan, clock, progress);
    let mut outcome = client.outcome();
    if !check_target(plan, &mut client, &mut outcome).await {
        return outcome;
    }
    let mut generator = RequestGenerator::new(plan.seed, plan.allow_writes);
    let mut known = KnownIds::default();
    let (mut templates, mut sent) = (Vec::new(), Vec::new());
    let mut reproductions = Vec::<Reproduction>::new();
    let started_at = client.clock.now();
    for _ in 0..plan.requests {
        if plan.duration_max.is_some_and(|duration| client.clock.now().saturating_sub(started_at) >= duration)
        {
            break;
        }
        let template = generator.next();
        let Some(judged) =
            unless_interrupted(&plan.interrupt, client.send_and_judge(&template, &mut known)).await
        else {
            break;
        };
        let JudgedResponse { sent: sent_request, outcome: exchange_outcome, violations } = judged;
        templates.push(template);
        sent.push(sent_request);
        count_status(&mut outcome, &exchange_outcome);
        for violation in violations {
            if reproductions.iter().all(|earlier| earlier.violation.statement != violation.statement) {
                reproductions.push(Reproduction {
                    violation,
                    templates: templates.clone(),
                    sent: sent.clone(),
                    is_reproducible: false,
                });
            }
        }
        client.progress.on_request(client.requests, plan.requests, reproductions.len());
    }
    for reproduction in reproductions {
        let shrunk =
            unless_interrupted(&plan.interrupt, shrink::shrink(&mut client, reproduction.clone())).await;
        outcome.found.push(shrunk.unwrap_or(reproduction));
    }
    outcome.requests = client.requests;
    outcome.interrupted = plan.interrupt.is_raised();
    outcome
}

/// Replays sequences. The outcome contains those that still violate their invariant. After an interrupt, sends no more
/// requests.
pub async fn replay(
    plan: &Plan,
    saved: &[Reproduction],
    clock: &mut dyn TargetClock,
    progress: &mut dyn Progress,
) -> Outcome {
    let mut client = FuzzClient::new(plan, clock, progress);
    let mut outcome = client.outcome();
    if !check_target(plan, &mut client, &mut outcome).await {
        return outcome;
    }
    for finding in saved {
        let reproduction = client.reproduce(&finding.violation.statement, &finding.templates);
        let Some(reproduction) = unless_interrupted(&plan.interrupt, reproduction).await else { break };
        outcome.found.extend(reproduction);
    }
    outcome.requests = client.requests;
    outcome.interrupted = plan.interrupt.is_raised();
    outcome
}

/// Returns `true` if the target accepts both keys. Otherwise sets the reason in the outcome.
async fn check_target(plan: &Plan, client: &mut FuzzClient<'_>, outcome: &mut Outcome) -> bool {
    let checked = unless_interrupted(&plan.interrupt, client.check_server()).await;
    let is_usable = matches!(checked, Some(Ok(())));
    if let Some(Err(error)) = checked {
        error.record(outcome);
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
        output = work => Some(output),
    }
}

fn count_status(outcome: &mut Outcome, exchange_outcome: &ExchangeOutcome) {
    let status = match exchange_outcome {
        ExchangeOutcome::Answered(response) => response.status.to_string(),
        ExchangeOutcome::NoResponse(_) => "lost".to_owned(),
    };
    *outcome.statuses.entry(status).or_default() += 1;
}
