//! Sends the deliveries of the trials in sequence, and records responses and actions.

use std::time::{Duration, Instant};

use time::OffsetDateTime;
use tokio::time::sleep;

use super::{
    Attempt, HandlerOutcome,
    delivery::{DeliveryKey, Secrets},
    judge::rows,
    results::{HandlerResponse, SentDelivery, TrialResult, ids, is_selected},
    trials::{TRIALS, Trial, TrialContext},
};
use conformance_model::verdict::Verdict;
use conformance_probe::{Connections, HttpClient};
use conformance_receiver::SecretRedaction;

const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The interval between queries of the witness while the handler is expected to act.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The objects of a trial, for the commands of the operator.
#[derive(Clone, Debug)]
pub struct Order {
    /// The name of the trial.
    pub trial: &'static str,
    /// The code of the charge, which is also in its metadata under `order`.
    pub charge: String,
    /// The code of the invoice, used by one trial.
    pub invoice: String,
}

/// Counts the actions of the handler.
pub trait Witness {
    /// Prepares a trial, for example by creating the order in the shop.
    ///
    /// # Errors
    ///
    /// The reason of the failure, as a sentence.
    fn prepare(&mut self, order: &Order) -> Result<(), String>;
    /// Returns the number of the handler's actions on the order so far.
    ///
    /// # Errors
    ///
    /// The reason why it is unknown, as a sentence.
    fn action_count(&mut self, order: &Order) -> Result<u64, String>;
}

/// Receives the progress of the trials.
pub trait Progress {
    /// Called at the start of a trial.
    fn on_trial(&mut self, name: &str, number: usize, of: usize);
}

/// Tests a handler. Needs a Tokio runtime with I/O and time. After an interrupt, no more deliveries are sent, and the
/// current trial has no result.
pub async fn attempt(
    attempt: &Attempt,
    mut witness: Option<&mut dyn Witness>,
    progress: &mut dyn Progress,
) -> HandlerOutcome {
    let (url, limit, ca_pem) = (&attempt.url, attempt.time_limit, attempt.ca_pem.as_deref());
    let client = HttpClient::new(url, Connections::Fresh, limit, ANSWER_BYTES_MAX, ca_pem);
    // The first trial is always run, because it is the precondition of all others.
    let chosen: Vec<&Trial> = TRIALS
        .iter()
        .enumerate()
        .filter(|(n, trial)| *n == 0 || has_selected_statement(attempt, trial))
        .map(|numbered| numbered.1)
        .collect();
    let mut took: Vec<TrialResult> = Vec::new();
    let mut unreachable = None;
    for (n, trial) in chosen.iter().enumerate() {
        progress.on_trial(trial.name, n + 1, chosen.len());
        // A reborrow per iteration: `as_deref_mut` would borrow it for the whole loop.
        let lent: Option<&mut dyn Witness> = match &mut witness {
            Some(witness) => Some(&mut **witness),
            None => None,
        };
        let result = tokio::select! {
            biased;
            () = attempt.interrupt.wait_until_raised() => break,
            result = run(attempt, trial, &client, lent) => result,
        };
        if n == 0
            && let [SentDelivery { response: HandlerResponse::Nothing(why), .. }] = result.sent.as_slice()
        {
            unreachable = Some(why.clone());
            break;
        }
        took.push(result);
    }
    let posts = took.iter().map(|trial| trial.sent.len()).sum();
    let expected = TRIALS.iter().flat_map(ids).filter(|id| is_selected(attempt, id)).count();
    let mut rows = if unreachable.is_some() { Vec::new() } else { rows(attempt, &took) };
    for row in rows.iter_mut().filter(|_| attempt.strict) {
        if let Verdict::Warn(finding) = &row.verdict {
            row.verdict = Verdict::Fail(finding.clone());
        }
    }
    HandlerOutcome {
        url: display_url(attempt),
        seed: attempt.seed,
        posts,
        expected,
        unreachable,
        interrupted: attempt.interrupt.is_raised(),
        rows,
    }
}

/// Returns the address without user name and password.
fn display_url(attempt: &Attempt) -> String {
    let mut url = attempt.url.clone();
    // Neither fails for an address with a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn has_selected_statement(attempt: &Attempt, trial: &Trial) -> bool {
    ids(trial).any(|id| is_selected(attempt, id))
}

async fn run(
    attempt: &Attempt,
    trial: &Trial,
    client: &HttpClient,
    mut witness: Option<&mut dyn Witness>,
) -> TrialResult {
    let now = OffsetDateTime::now_utc();
    let created_at = conformance_receiver::timestamp(now);
    let scene = TrialContext {
        draw: DeliveryKey { seed: attempt.seed },
        trial: trial.name,
        mode: attempt.mode,
        created_at: &created_at,
        sample: attempt.sample.as_ref(),
    };
    let order = Order { trial: trial.name, charge: scene.charge_code(), invoice: scene.invoice_code() };
    let mut took = TrialResult { trial: trial.name, sent: Vec::new(), actions: None };
    if let Some(witness) = &mut witness
        && let Err(why) = witness.prepare(&order)
    {
        took.actions = Some(Err(why));
    }
    let secrets = Secrets { own: &attempt.secret, other_mode: attempt.other_mode_secret.as_ref() };
    let redaction = SecretRedaction::new(secrets.iter());
    for wave in (trial.batches)(&scene) {
        let posts: Vec<_> = wave
            .into_iter()
            .map(|delivery| {
                let now = OffsetDateTime::now_utc().unix_timestamp();
                let (headers, body) = delivery.headers_and_body(now, &attempt.names, &secrets);
                let (client, address, redaction) =
                    (client.clone(), attempt.url.to_string(), redaction.clone());
                let post = async move {
                    HandlerResponse::from_ending(
                        client.send("POST", &address, &headers, body).await,
                        &redaction,
                    )
                };
                (delivery.kind, tokio::spawn(post))
            })
            .collect();
        for (kind, post) in posts {
            let response = post.await.unwrap_or_else(|error| HandlerResponse::Nothing(error.to_string()));
            took.sent.push(SentDelivery { kind, response });
        }
    }
    if let (Some(witness), None, Some((_, times))) = (witness, &took.actions, &trial.actions) {
        took.actions = Some(wait_for_actions(witness, &order, *times, attempt.settle).await);
    }
    took
}

/// Waits until the handler has acted as often as expected, and then for a surplus action.
async fn wait_for_actions(
    witness: &mut dyn Witness,
    order: &Order,
    times: u64,
    settle: Duration,
) -> Result<u64, String> {
    let began = Instant::now();
    while witness.action_count(order)? < times && began.elapsed() < settle {
        sleep(POLL_INTERVAL).await;
    }
    // A surplus action may be late: a second worker of a queue, a second thread.
    sleep(settle / 4).await;
    witness.action_count(order)
}
