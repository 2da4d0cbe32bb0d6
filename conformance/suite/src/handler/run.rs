//! Runs the trials one after another: sends their deliveries, and records responses and actions.

use std::time::{Duration, Instant};

use time::OffsetDateTime;
use tokio::time::sleep;

use super::{
    HandlerOutcome, HandlerPlan,
    delivery::{IdGenerator, Secrets},
    judge::judge_results,
    results::{HandlerResponse, SentDelivery, TrialResult, is_selected, statement_ids},
    trials::{TRIALS, Trial, TrialContext},
};
use conformance_model::verdict::Verdict;
use conformance_probe::{Connections, HttpClient};
use conformance_receiver::SecretRedaction;

const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// The interval between counts of actions while the handler is expected to act.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The objects of a trial, for the commands of the operator.
#[derive(Clone, Debug)]
pub struct TrialObjects {
    /// The name of the trial.
    pub trial: &'static str,
    /// The code of the charge, which is also in its metadata under `order`.
    pub charge: String,
    /// The code of the invoice, used by one trial.
    pub invoice: String,
}

/// Counts the actions of the handler.
pub trait ActionCounter {
    /// Prepares a trial, for example by creating an order in the shop that the charge pays.
    ///
    /// # Errors
    ///
    /// The reason of the failure, as a sentence.
    fn prepare(&mut self, objects: &TrialObjects) -> Result<(), String>;
    /// Returns the number of the handler's actions for the trial's charge so far.
    ///
    /// # Errors
    ///
    /// The reason why it is unknown, as a sentence.
    fn action_count(&mut self, objects: &TrialObjects) -> Result<u64, String>;
}

/// Receives the progress of the trials.
pub trait Progress {
    /// Called at the start of a trial.
    fn on_trial(&mut self, name: &str, number: usize, total: usize);
}

/// Tests a handler. Needs a Tokio runtime with I/O and time. After an interrupt, no more deliveries are sent, and the
/// current trial has no result.
pub async fn test_handler(
    plan: &HandlerPlan,
    mut action_counter: Option<&mut dyn ActionCounter>,
    progress: &mut dyn Progress,
) -> HandlerOutcome {
    let (url, timeout, ca_pem) = (&plan.url, plan.time_limit, plan.ca_pem.as_deref());
    let client = HttpClient::new(url, Connections::PerRequest, timeout, RESPONSE_BYTES_MAX, ca_pem);
    // The first trial is always run, because it is the precondition of all others.
    let selected: Vec<&Trial> = TRIALS
        .iter()
        .enumerate()
        .filter(|(index, trial)| *index == 0 || has_selected_statement(plan, trial))
        .map(|(_, trial)| trial)
        .collect();
    let mut results: Vec<TrialResult> = Vec::new();
    let mut unreachable = None;
    for (index, trial) in selected.iter().enumerate() {
        progress.on_trial(trial.name, index + 1, selected.len());
        // A new borrow per iteration: `as_deref_mut` would borrow it for the whole loop.
        let counter_ref: Option<&mut dyn ActionCounter> = match &mut action_counter {
            Some(action_counter) => Some(&mut **action_counter),
            None => None,
        };
        let result = tokio::select! {
            biased;
            () = plan.interrupt.wait_until_raised() => break,
            result = run_trial(plan, trial, &client, counter_ref) => result,
        };
        if index == 0
            && let [SentDelivery { response: HandlerResponse::NoResponse(why), .. }] = result.sent.as_slice()
        {
            unreachable = Some(why.clone());
            break;
        }
        results.push(result);
    }
    let sent_count = results.iter().map(|trial| trial.sent.len()).sum();
    let expected = TRIALS.iter().flat_map(statement_ids).filter(|id| is_selected(plan, id)).count();
    let mut rows = if unreachable.is_some() { Vec::new() } else { judge_results(plan, &results) };
    for row in rows.iter_mut().filter(|_| plan.strict) {
        if let Verdict::Warn(finding) = &row.verdict {
            row.verdict = Verdict::Fail(finding.clone());
        }
    }
    HandlerOutcome {
        url: display_url(plan),
        seed: plan.seed,
        delivery_count: sent_count,
        expected,
        unreachable,
        interrupted: plan.interrupt.is_raised(),
        rows,
    }
}

/// Returns the address without user name and password.
fn display_url(plan: &HandlerPlan) -> String {
    let mut url = plan.url.clone();
    // These fail only for an address without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn has_selected_statement(plan: &HandlerPlan, trial: &Trial) -> bool {
    statement_ids(trial).any(|id| is_selected(plan, id))
}

async fn run_trial(
    plan: &HandlerPlan,
    trial: &Trial,
    client: &HttpClient,
    mut action_counter: Option<&mut dyn ActionCounter>,
) -> TrialResult {
    let now = OffsetDateTime::now_utc();
    let created_at = conformance_receiver::timestamp(now);
    let context = TrialContext {
        ids: IdGenerator { seed: plan.seed },
        trial: trial.name,
        mode: plan.mode,
        created_at: &created_at,
        sample: plan.sample_charge.as_ref(),
    };
    let objects =
        TrialObjects { trial: trial.name, charge: context.charge_code(), invoice: context.invoice_code() };
    let mut result = TrialResult { trial: trial.name, sent: Vec::new(), actions: None };
    if let Some(action_counter) = &mut action_counter
        && let Err(why) = action_counter.prepare(&objects)
    {
        result.actions = Some(Err(why));
    }
    let secrets = Secrets { own: &plan.secret, other_mode: plan.other_mode_secret.as_ref() };
    let redaction = SecretRedaction::new(secrets.iter());
    for batch in (trial.batches)(&context) {
        let pending: Vec<_> = batch
            .into_iter()
            .map(|delivery| {
                let now = OffsetDateTime::now_utc().unix_timestamp();
                let (headers, body) = delivery.headers_and_body(now, &plan.names, &secrets);
                let (client, address, redaction) = (client.clone(), plan.url.to_string(), redaction.clone());
                let request = async move {
                    HandlerResponse::from_outcome(
                        client.send("POST", &address, &headers, body).await,
                        &redaction,
                    )
                };
                (delivery.event_type, tokio::spawn(request))
            })
            .collect();
        for (event_type, request) in pending {
            let response =
                request.await.unwrap_or_else(|error| HandlerResponse::NoResponse(error.to_string()));
            result.sent.push(SentDelivery { event_type, response });
        }
    }
    if let (Some(action_counter), None, Some((_, expected))) =
        (action_counter, &result.actions, &trial.actions)
    {
        result.actions = Some(wait_for_actions(action_counter, &objects, *expected, plan.settle_time).await);
    }
    result
}

/// Waits until the handler has acted as often as expected, at most for `settle_time`, then a quarter of that time
/// for a surplus action. Returns the number of actions.
async fn wait_for_actions(
    action_counter: &mut dyn ActionCounter,
    objects: &TrialObjects,
    expected: u64,
    settle_time: Duration,
) -> Result<u64, String> {
    let started_at = Instant::now();
    while action_counter.action_count(objects)? < expected && started_at.elapsed() < settle_time {
        sleep(POLL_INTERVAL).await;
    }
    // A surplus action may be late, for example if a second queue worker or thread performs it.
    sleep(settle_time / 4).await;
    action_counter.action_count(objects)
}
