//! Posts the trials one after the other, and records responses and actions.

use std::time::{Duration, Instant};

use time::OffsetDateTime;
use tokio::time::sleep;

use super::{
    Attempt, HandlerOutcome,
    delivery::{DeliveryKey, Secrets},
    heard::{Heard, Sent, Took, ids, wants},
    judge::rows,
    trials::{Scene, TRIALS, Trial},
};
use conformance_model::verdict::Verdict;
use conformance_probe::{Connections, HttpClient};
use conformance_receiver::Withheld;

const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The interval at which the witness is asked while the handler is expected to act.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The order of a trial, for commands of the operator.
#[derive(Clone, Debug)]
pub struct Order {
    /// The trial's name.
    pub trial: &'static str,
    /// The code of the charge. It also stands in the charge's metadata, under `order`.
    pub charge: String,
    /// The code of the invoice, for the trial that has one.
    pub invoice: String,
}

/// Knows what the handler did.
pub trait Witness {
    /// Makes ready for a trial, such as by putting the order into the shop.
    ///
    /// # Errors
    ///
    /// Why the shop could not be made ready, as a sentence.
    fn prepare(&mut self, order: &Order) -> Result<(), String>;
    /// Returns the number of the handler's actions on the order so far.
    ///
    /// # Errors
    ///
    /// The reason why it is unknown, as a sentence.
    fn acts(&mut self, order: &Order) -> Result<u64, String>;
}

/// Is told how far the trials are.
pub trait Progress {
    /// A trial begins.
    fn trying(&mut self, name: &str, number: usize, of: usize);
}

/// Tries a handler. Needs a Tokio runtime with I/O and time. Once the operator interrupts it, nothing more is posted, and
/// the trial that was under way says nothing.
pub async fn attempt(
    attempt: &Attempt,
    mut witness: Option<&mut dyn Witness>,
    progress: &mut dyn Progress,
) -> HandlerOutcome {
    let (url, limit, ca_pem) = (&attempt.url, attempt.time_limit, attempt.ca_pem.as_deref());
    let client = HttpClient::new(url, Connections::Fresh, limit, ANSWER_BYTES_MAX, ca_pem);
    // All other trials are judged by the first, whatever was asked for.
    let chosen: Vec<&Trial> = TRIALS
        .iter()
        .enumerate()
        .filter(|(n, trial)| *n == 0 || is_wanted(attempt, trial))
        .map(|it| it.1)
        .collect();
    let mut took: Vec<Took> = Vec::new();
    let mut unreachable = None;
    for (n, trial) in chosen.iter().enumerate() {
        progress.trying(trial.name, n + 1, chosen.len());
        // Lent anew each time: `as_deref_mut` would lend it for good.
        let lent: Option<&mut dyn Witness> = match &mut witness {
            Some(witness) => Some(&mut **witness),
            None => None,
        };
        let result = tokio::select! {
            biased;
            () = attempt.interrupt.raised() => break,
            result = run(attempt, trial, &client, lent) => result,
        };
        if n == 0
            && let [Sent { heard: Heard::Nothing(why), .. }] = result.sent.as_slice()
        {
            unreachable = Some(why.clone());
            break;
        }
        took.push(result);
    }
    let posts = took.iter().map(|it| it.sent.len()).sum();
    let expected = TRIALS.iter().flat_map(ids).filter(|id| wants(attempt, id)).count();
    let mut rows = if unreachable.is_some() { Vec::new() } else { rows(attempt, &took) };
    for row in rows.iter_mut().filter(|_| attempt.strict) {
        if let Verdict::Warn(finding) = &row.verdict {
            row.verdict = Verdict::Fail(finding.clone());
        }
    }
    HandlerOutcome {
        url: shown(attempt),
        seed: attempt.seed,
        posts,
        expected,
        unreachable,
        interrupted: attempt.interrupt.is_raised(),
        rows,
    }
}

/// The address without what could be a secret in it.
fn shown(attempt: &Attempt) -> String {
    let mut url = attempt.url.clone();
    // Neither fails on an address that can be posted to.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn is_wanted(attempt: &Attempt, trial: &Trial) -> bool {
    ids(trial).any(|id| wants(attempt, id))
}

async fn run(
    attempt: &Attempt,
    trial: &Trial,
    client: &HttpClient,
    mut witness: Option<&mut dyn Witness>,
) -> Took {
    let now = OffsetDateTime::now_utc();
    let created_at = conformance_receiver::stamp(now);
    let scene = Scene {
        draw: DeliveryKey { seed: attempt.seed },
        trial: trial.name,
        mode: attempt.mode,
        created_at: &created_at,
        sample: attempt.sample.as_ref(),
    };
    let order = Order { trial: trial.name, charge: scene.charge_code(), invoice: scene.invoice_code() };
    let mut took = Took { trial: trial.name, sent: Vec::new(), acts: None };
    if let Some(witness) = &mut witness
        && let Err(why) = witness.prepare(&order)
    {
        took.acts = Some(Err(why));
    }
    let secrets = Secrets { own: &attempt.secret, other_mode: attempt.other_mode_secret.as_ref() };
    let withheld = Withheld::new(secrets.all());
    for wave in (trial.waves)(&scene) {
        let posts: Vec<_> = wave
            .into_iter()
            .map(|delivery| {
                let now = OffsetDateTime::now_utc().unix_timestamp();
                let (headers, body) = delivery.sealed(now, &attempt.names, &secrets);
                let (client, address, withheld) = (client.clone(), attempt.url.to_string(), withheld.clone());
                let post =
                    async move { Heard::of(client.send("POST", &address, &headers, body).await, &withheld) };
                (delivery.kind, tokio::spawn(post))
            })
            .collect();
        for (kind, post) in posts {
            let heard = post.await.unwrap_or_else(|error| Heard::Nothing(error.to_string()));
            took.sent.push(Sent { kind, heard });
        }
    }
    if let (Some(witness), None, Some((_, times))) = (witness, &took.acts, &trial.acts) {
        took.acts = Some(settled(witness, &order, *times, attempt.settle).await);
    }
    took
}

/// Waits until the handler has acted as often as it should, and then whether it acts once more.
async fn settled(
    witness: &mut dyn Witness,
    order: &Order,
    times: u64,
    settle: Duration,
) -> Result<u64, String> {
    let began = Instant::now();
    while witness.acts(order)? < times && began.elapsed() < settle {
        sleep(LOOK_EVERY).await;
    }
    // One act too many comes late: a queue's second worker, a second thread.
    sleep(settle / 4).await;
    witness.acts(order)
}
