//! The client of a fuzz run: sends requests within the rate limit and judges the responses.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{
    Outcome, Plan, Reproduction,
    judge::{self, Violation},
    known_ids::KnownIds,
    request_template::{Keys, RequestKey, RequestTemplate, ResolvedRequest, SentRequest, address},
};
use conformance_model::reading::retry_after;
use conformance_model::recording::ExchangeOutcome;
use conformance_model::secret::{KEY_PLACEHOLDER, Redactor};
use conformance_probe::{Connections, HttpClient, TargetClock};

const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
const MINUTE: Duration = Duration::from_secs(60);
/// The pause before a retry after a transient failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// The longest `Retry-After` that the client obeys. A 429 with a longer one is judged as the response.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(90);

/// Receives the progress of a fuzz run.
pub trait Progress {
    /// Called after each request.
    fn on_request(&mut self, requests: u32, total: u32, violations: usize);
    /// Called before a wait.
    fn on_wait(&mut self, duration: Duration, why: &str);
}

/// The judged response to a request.
pub(super) struct JudgedResponse {
    pub(super) sent: SentRequest,
    pub(super) outcome: ExchangeOutcome,
    pub(super) violations: Vec<Violation>,
}

/// The reason why the run cannot start.
pub(super) enum StartError {
    Unreachable(String),
    WrongKey(String),
}

impl StartError {
    /// Stores the reason in the outcome of the run.
    pub(super) fn record(self, outcome: &mut Outcome) {
        match self {
            StartError::Unreachable(why) => outcome.unreachable = Some(why),
            StartError::WrongKey(why) => outcome.wrong_key = Some(why),
        }
    }
}

/// The client of a fuzz run.
pub(super) struct FuzzClient<'a> {
    plan: &'a Plan,
    client: HttpClient,
    redactor: Redactor,
    pub(super) clock: &'a mut dyn TargetClock,
    pub(super) progress: &'a mut dyn Progress,
    /// The times of requests in the last minute, by key.
    sent: BTreeMap<&'static str, VecDeque<Duration>>,
    /// The number of sent requests.
    pub(super) requests: u32,
}

impl<'a> FuzzClient<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        clock: &'a mut dyn TargetClock,
        progress: &'a mut dyn Progress,
    ) -> FuzzClient<'a> {
        let (timeout, ca_pem) = (plan.time_limit, plan.ca_pem.as_deref());
        let client = HttpClient::new(&plan.base, Connections::Reused, timeout, BODY_BYTES_MAX, ca_pem);
        let tails = [&plan.live_key, &plan.test_key].map(|key| key.secret_part(&plan.key_prefix));
        let redactor = Redactor::new(tails, KEY_PLACEHOLDER);
        FuzzClient { plan, client, redactor, clock, progress, sent: BTreeMap::new(), requests: 0 }
    }

    /// Returns the outcome of a run that has not yet sent a request.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            base: self.plan.base.to_string(),
            key_prefix: self.plan.key_prefix.clone(),
            seed: self.plan.seed,
            requests: 0,
            statuses: BTreeMap::new(),
            unreachable: None,
            wrong_key: None,
            interrupted: false,
            found: Vec::new(),
        }
    }

    /// Checks that the server accepts each key, and that it reports the key's mode.
    pub(super) async fn check_server(&mut self) -> Result<(), StartError> {
        for (key, mode_name) in [(RequestKey::Live, "live"), (RequestKey::Test, "test")] {
            let template = RequestTemplate::get(key, "/v1/account");
            let resolved = template.resolve(&KnownIds::default());
            match self.send(&template, &resolved).await {
                ExchangeOutcome::NoResponse(why) => return Err(StartError::Unreachable(why)),
                ExchangeOutcome::Answered(response) if response.status != 200 => {
                    return Err(StartError::WrongKey(format!(
                        "GET /v1/account with the {mode_name} key returned {}; 200 is required",
                        response.status
                    )));
                }
                outcome => {
                    if let Some(violation) =
                        judge::judge(&template, &resolved, &outcome, &KnownIds::default())
                            .into_iter()
                            .find(|violation| violation.statement == "account.mode")
                    {
                        return Err(StartError::WrongKey(format!(
                            "the {mode_name} key: {}",
                            violation.actual
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends a request, judges the response and adds its ids to the known ones. A request that changes nothing is
    /// repeated once after a transient failure.
    pub(super) async fn send_and_judge(
        &mut self,
        template: &RequestTemplate,
        known: &mut KnownIds,
    ) -> JudgedResponse {
        let resolved = template.resolve(known);
        let mut outcome = self.send(template, &resolved).await;
        if judge::is_retryable(&outcome) && !template.writes() {
            self.pause(RETRY_DELAY, "repeated after an unusable response").await;
            outcome = self.send(template, &resolved).await;
        }
        let mut violations = judge::judge(template, &resolved, &outcome, known);
        if let ExchangeOutcome::Answered(response) = &outcome
            && judge::is_retryable(&outcome)
        {
            violations.push(Violation {
                statement: "answers.no_server_error".to_owned(),
                expected: "a usable response to the repeated request".to_owned(),
                actual: response.status.to_string(),
            });
        }
        for violation in &mut violations {
            violation.actual = self.redactor.redact(&violation.actual);
            violation.expected = self.redactor.redact(&violation.expected);
        }
        judge::record_ids(template, &resolved, &outcome, known);
        JudgedResponse { sent: resolved.sent, outcome, violations }
    }

    /// Sends a sequence. Returns the reproduction if its last response violates this statement.
    pub(super) async fn reproduce(
        &mut self,
        statement: &str,
        templates: &[RequestTemplate],
    ) -> Option<Reproduction> {
        let mut known = KnownIds::default();
        let (mut sent, mut last_violations) = (Vec::new(), Vec::new());
        for template in templates {
            let judged = self.send_and_judge(template, &mut known).await;
            sent.push(judged.sent);
            last_violations = judged.violations;
        }
        let violation = last_violations.into_iter().find(|violation| violation.statement == statement)?;
        Some(Reproduction { violation, templates: templates.to_vec(), sent, is_reproducible: true })
    }

    async fn send(&mut self, template: &RequestTemplate, resolved: &ResolvedRequest) -> ExchangeOutcome {
        let keys =
            Keys { live: &self.plan.live_key, test: &self.plan.test_key, prefix: &self.plan.key_prefix };
        let mut headers: Vec<(String, String)> =
            vec![("user-agent".to_owned(), concat!("chargeproof/", env!("CARGO_PKG_VERSION")).to_owned())];
        if !template.headers.iter().any(|(name, _)| name == "accept") {
            headers.push(("accept".to_owned(), "application/json".to_owned()));
        }
        headers.extend(keys.authorization(template.key).map(|value| ("authorization".to_owned(), value)));
        headers.extend(template.headers.iter().cloned());
        let address = address(&self.plan.base, &resolved.sent.target);
        let body = resolved.sent.body.clone().unwrap_or_default().into_bytes();
        loop {
            self.wait_for_rate_limit(template.key).await;
            self.requests += 1;
            let outcome = self.client.send(&template.method, &address, &headers, body.clone()).await;
            let wait = match &outcome {
                ExchangeOutcome::Answered(response) if response.status == 429 => retry_after(response),
                _ => None,
            };
            // A 429 without `Retry-After`, or with too long a one, is judged as the response.
            match wait.filter(|wait| *wait <= RETRY_AFTER_MAX) {
                None => return outcome,
                Some(wait) => self.pause(wait.max(RETRY_DELAY), "the server sent a Retry-After").await,
            }
        }
    }

    async fn pause(&mut self, duration: Duration, why: &str) {
        self.progress.on_wait(duration, why);
        // If the wait fails, the next response shows it.
        let _ = self.clock.wait(duration).await;
    }

    /// Waits until the key may send a request. Requests without a valid key count for the test key, because a server
    /// may count them.
    async fn wait_for_rate_limit(&mut self, key: RequestKey) {
        let Some(rate) = self.plan.rate else { return };
        let key_name = if key == RequestKey::Live { "live" } else { "test" };
        let now = self.clock.now();
        let sent = self.sent.entry(key_name).or_default();
        while sent.front().is_some_and(|sent_at| *sent_at + MINUTE < now) {
            sent.pop_front();
        }
        let wait = match sent.front() {
            Some(first) if sent.len() >= rate as usize => Some(*first + MINUTE - now),
            _ => None,
        };
        if let Some(wait) = wait {
            self.pause(wait, "waiting for the rate limit").await;
        }
        let now = self.clock.now();
        self.sent.entry(key_name).or_default().push_back(now);
    }
}
