//! The client of a fuzz run: sends requests within the rate limit and judges the responses.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use super::{
    Outcome, Plan, Reproduction,
    judge::{self, Violation},
    known::KnownIds,
    request_template::{Keys, RequestKey, RequestTemplate, ResolvedRequest, SentRequest, address},
};
use conformance_model::reading::retry_after;
use conformance_model::recording::Ending;
use conformance_model::secret::{KEY_BLANK, Redactor};
use conformance_probe::{Connections, HttpClient, Waiter};

const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
const MINUTE: Duration = Duration::from_secs(60);
/// The pause before a retry after a transient failure.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest `Retry-After` that is waited for.
const TIMEOUT: Duration = Duration::from_secs(90);

/// Receives the progress of a fuzz run.
pub trait Progress {
    /// Called after each request.
    fn on_request(&mut self, requests: u32, of: u32, found: usize);
    /// Called before a wait.
    fn on_wait(&mut self, span: Duration, why: &str);
}

/// The judged response to a request.
pub(super) struct JudgedResponse {
    pub(super) sent: SentRequest,
    pub(super) ending: Ending,
    pub(super) violations: Vec<Violation>,
}

/// The reason why no request was sent.
pub(super) enum StartError {
    Unreachable(String),
    WrongKey(String),
}

impl StartError {
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
    pub(super) waiter: &'a mut dyn Waiter,
    pub(super) progress: &'a mut dyn Progress,
    /// The times of requests in the last minute, by key.
    sent: BTreeMap<&'static str, VecDeque<Duration>>,
    pub(super) requests: u32,
}

impl<'a> FuzzClient<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        waiter: &'a mut dyn Waiter,
        progress: &'a mut dyn Progress,
    ) -> FuzzClient<'a> {
        let (limit, ca_pem) = (plan.time_limit, plan.ca_pem.as_deref());
        let client = HttpClient::new(&plan.base, Connections::Kept, limit, BODY_BYTES_MAX, ca_pem);
        let tails = [&plan.live_key, &plan.test_key].map(|key| key.tail(&plan.key_prefix));
        let redactor = Redactor::new(tails, KEY_BLANK);
        FuzzClient { plan, client, redactor, waiter, progress, sent: BTreeMap::new(), requests: 0 }
    }

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

    /// Checks that the server responds, and that each key has its mode.
    pub(super) async fn check_server(&mut self) -> Result<(), StartError> {
        for (by, name) in [(RequestKey::Live, "live"), (RequestKey::Test, "test")] {
            let template = RequestTemplate::get(by, "/v1/account");
            let filled = template.resolve(&KnownIds::default());
            match self.send(&template, &filled).await {
                Ending::Lost(why) => return Err(StartError::Unreachable(why)),
                Ending::Answered(answer) if answer.status != 200 => {
                    return Err(StartError::WrongKey(format!(
                        "the {name} key gets {} from /v1/account, and 200 is needed",
                        answer.status
                    )));
                }
                ending => {
                    if let Some(violation) = judge::judge(&template, &filled, &ending, &KnownIds::default())
                        .into_iter()
                        .find(|violation| violation.statement == "account.mode")
                    {
                        return Err(StartError::WrongKey(format!("the {name} key: {}", violation.actual)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends a request, judges the response and adds its objects to the known ones.
    pub(super) async fn send_and_judge(
        &mut self,
        template: &RequestTemplate,
        known: &mut KnownIds,
    ) -> JudgedResponse {
        let filled = template.resolve(known);
        let mut ending = self.send(template, &filled).await;
        if judge::may_pass(&ending) && !template.writes() {
            self.pause(PAUSE, "repeated after an unusable response").await;
            ending = self.send(template, &filled).await;
        }
        let mut violations = judge::judge(template, &filled, &ending, known);
        if let Ending::Answered(answer) = &ending
            && judge::may_pass(&ending)
        {
            violations.push(Violation {
                statement: "answers.no_server_error".to_owned(),
                expected: "a usable response to the repeated request".to_owned(),
                actual: answer.status.to_string(),
            });
        }
        for violation in &mut violations {
            violation.actual = self.redactor.redact(&violation.actual);
            violation.expected = self.redactor.redact(&violation.expected);
        }
        judge::learn(template, &filled, &ending, known);
        JudgedResponse { sent: filled.sent, ending, violations }
    }

    /// Sends a sequence. Returns the violation if its last response violates this invariant.
    pub(super) async fn reproduce(
        &mut self,
        statement: &str,
        templates: &[RequestTemplate],
    ) -> Option<Reproduction> {
        let mut known = KnownIds::default();
        let (mut sent, mut last) = (Vec::new(), Vec::new());
        for template in templates {
            let judged = self.send_and_judge(template, &mut known).await;
            sent.push(judged.sent);
            last = judged.violations;
        }
        let violation = last.into_iter().find(|violation| violation.statement == statement)?;
        Some(Reproduction { violation, templates: templates.to_vec(), sent, repeats: true })
    }

    async fn send(&mut self, template: &RequestTemplate, filled: &ResolvedRequest) -> Ending {
        let keys =
            Keys { live: &self.plan.live_key, test: &self.plan.test_key, prefix: &self.plan.key_prefix };
        let mut headers: Vec<(String, String)> =
            vec![("user-agent".to_owned(), concat!("chargeproof/", env!("CARGO_PKG_VERSION")).to_owned())];
        if !template.headers.iter().any(|(name, _)| name == "accept") {
            headers.push(("accept".to_owned(), "application/json".to_owned()));
        }
        headers.extend(keys.authorization(template.by).map(|value| ("authorization".to_owned(), value)));
        headers.extend(template.headers.iter().cloned());
        let address = address(&self.plan.base, &filled.sent.target);
        let body = filled.sent.body.clone().unwrap_or_default().into_bytes();
        loop {
            self.keep_pace(template.by).await;
            self.requests += 1;
            let ending = self.client.send(&template.method, &address, &headers, body.clone()).await;
            let wait = match &ending {
                Ending::Answered(answer) if answer.status == 429 => retry_after(answer),
                _ => None,
            };
            // A refusal without Retry-After is judged as the response.
            match wait.filter(|wait| *wait <= TIMEOUT) {
                None => return ending,
                Some(wait) => self.pause(wait.max(PAUSE), "the server sent a Retry-After").await,
            }
        }
    }

    async fn pause(&mut self, span: Duration, why: &str) {
        self.progress.on_wait(span, why);
        // If the clock cannot be advanced, the next response shows it.
        let _ = self.waiter.wait(span).await;
    }

    /// Waits until the key may send a request. Requests without a valid key count for the test key, because a server
    /// may count them.
    async fn keep_pace(&mut self, by: RequestKey) {
        let Some(rate) = self.plan.rate else { return };
        let whose = if by == RequestKey::Live { "live" } else { "test" };
        let now = self.waiter.now();
        let sent = self.sent.entry(whose).or_default();
        while sent.front().is_some_and(|at| *at + MINUTE < now) {
            sent.pop_front();
        }
        let wait = match sent.front() {
            Some(first) if sent.len() >= rate as usize => Some(*first + MINUTE - now),
            _ => None,
        };
        if let Some(wait) = wait {
            self.pause(wait, "keeping within the limit").await;
        }
        let now = self.waiter.now();
        self.sent.entry(whose).or_default().push_back(now);
    }
}
