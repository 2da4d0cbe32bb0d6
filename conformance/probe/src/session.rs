//! The session of a run: adds keys to requests, counts them in the ledger, and redacts and records responses.

use conformance_model::budget::{Budget, Ledger};
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{Page, page_request, retry_after};
use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, FORMAT_VERSION, FollowedLink, Inserts, List, NOT_SENT_PREFIX,
    PageRequest, Purpose, ReceivedResponse, Recording,
};
use conformance_model::secret::{KEY_PLACEHOLDER, Redactor};

use crate::authorization::{authorization, unused_id};
use crate::http_client::{Connections, HttpClient};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::request_paths::{accepts_gzip, page_path};
use crate::target_clock::TargetClock;

use std::time::Duration;

use url::Url;

/// The number of consecutive requests without a response after which no more are sent.
const CONSECUTIVE_LOST_MAX: u32 = 3;
/// The largest accepted body, far above a page of 100 events.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The largest total of recorded bodies in a run. A typical run has less than a tenth of it.
const RECORDED_BYTES_MAX: usize = 48 * 1024 * 1024;
/// The most retries in a run.
pub(crate) const RETRIES_MAX: u32 = 4;
/// The most requests of a run with the two keys, without bursts, single objects and retries.
const KEYED_MAX: u32 = 110;
/// The most requests of a run with the two keys and `--thorough`.
const KEYED_MAX_THOROUGH: u32 = 119;

/// Returns the most requests of a plan with the two keys.
pub(crate) fn keyed_requests_max(plan: &Plan) -> u32 {
    if plan.thorough { KEYED_MAX_THOROUGH } else { KEYED_MAX }
}

/// The shortest pause before a retry.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The time of an idle window: one second more than the window of the limit, for servers that count whole seconds.
pub(crate) const IDLE_WINDOW: Duration = Duration::from_secs(61);
/// The longest single wait. A longer `Retry-After` is not waited for.
pub(crate) const SINGLE_WAIT_MAX: Duration = Duration::from_secs(90);

/// The reason for a request that was not sent because of an interrupt.
const INTERRUPTED: &str = "not asked: the run was interrupted";
/// The reason for a request that was not sent because the server stopped responding.
const UNRESPONSIVE: &str = "not asked: the server had stopped responding";
/// The reason for a request that was not sent because it exceeds the budget.
const OVER_BUDGET: &str = "not asked: the announced number of requests has been reached";

/// A position in a recording.
pub(crate) struct RecordingPosition {
    /// The number of exchanges.
    length: usize,
    /// The recording without exchanges.
    rest: Recording,
}

/// A run in progress.
pub(crate) struct Session<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) clock: &'a mut dyn TargetClock,
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) recording: Recording,
    pub(crate) ledger: Ledger,
    /// The request budget, which is never exceeded.
    budget: Budget,
    /// The retries with the two keys, which do not count against their requests.
    keyed_repeats: u32,
    client: HttpClient,
    /// For HEAD requests, without connection reuse: an invalid body of a response would corrupt the next one.
    head_client: HttpClient,
    pub(crate) redactor: Redactor,
    /// The number of consecutive requests without a response.
    consecutive_lost: u32,
    /// `true` if the server is considered down: the live key got no response either.
    is_down: bool,
    /// `true` if a new window of the test key started during the run, so that a closing burst can measure it.
    pub(crate) has_new_window: bool,
    /// The total size of recorded bodies.
    recorded_bytes: usize,
    /// `true` after the wait for a second idle window.
    has_waited_idle_window: bool,
    /// The number of requests with the two keys that are reserved for later groups.
    pub(crate) reserved: u32,
    /// The remaining time that the run may wait.
    remaining_wait: Duration,
    /// The time until which the test key stays idle, so that it has a new window.
    idle_until: Duration,
    /// The time at which the reception of deliveries started.
    pub(crate) receiving_since: Option<Duration>,
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        clock: &'a mut dyn TargetClock,
        progress: &'a mut dyn Progress,
        budget: Budget,
        wait_max: Duration,
    ) -> Session<'a> {
        let recording = Recording {
            format: FORMAT_VERSION,
            base: plan.base_without_secrets().to_string(),
            key_prefix: plan.key_prefix.clone(),
            without: plan.excluded_parts(),
            no_burst: None,
            inserts: Inserts::default(),
            exact_amounts: true,
            exchanges: Vec::new(),
            deliveries: None,
        };
        let ca_pem = plan.ca_pem.as_deref();
        let client =
            |connections| HttpClient::new(&plan.base, connections, plan.time_limit, BODY_BYTES_MAX, ca_pem);
        let redactor = Redactor::new(plan.key_secret_parts(), KEY_PLACEHOLDER);
        Session {
            plan,
            clock,
            progress,
            recording,
            ledger: Ledger::default(),
            budget,
            keyed_repeats: 0,
            client: client(Connections::Reused),
            head_client: client(Connections::PerRequest),
            redactor,
            consecutive_lost: 0,
            is_down: false,
            has_new_window: false,
            recorded_bytes: 0,
            has_waited_idle_window: false,
            reserved: 0,
            remaining_wait: wait_max,
            idle_until: Duration::ZERO,
            receiving_since: None,
        }
    }

    /// Returns the current position of the recording, for [`Self::roll_back`].
    pub(crate) fn position(&mut self) -> RecordingPosition {
        // Exchanges are only appended and may be large, so they are not cloned.
        let exchanges = std::mem::take(&mut self.recording.exchanges);
        let position = RecordingPosition { length: exchanges.len(), rest: self.recording.clone() };
        self.recording.exchanges = exchanges;
        position
    }

    /// Removes the recorded data since a position.
    pub(crate) fn roll_back(&mut self, position: RecordingPosition) {
        let mut exchanges = std::mem::take(&mut self.recording.exchanges);
        exchanges.truncate(position.length);
        self.recording = Recording { exchanges, ..position.rest };
    }

    /// Removes the exchanges that were not sent because of an interrupt.
    pub(crate) fn remove_unsent(&mut self) {
        self.recording.exchanges.retain(
            |exchange| !matches!(&exchange.outcome, ExchangeOutcome::NoResponse(why) if why == INTERRUPTED),
        );
    }

    /// Leaves the test key idle until a time. The other keys may be used meanwhile.
    pub(crate) fn keep_idle_until(&mut self, until: Duration) {
        self.idle_until = until;
    }

    /// Waits until a key may be used. Only the test key has idle times.
    pub(crate) async fn wait_for_key(&mut self, caller: Caller) {
        let left = self.idle_until.saturating_sub(self.clock.now());
        if caller == Caller::Own(Mode::Test) && !left.is_zero() {
            self.idle_until = Duration::ZERO;
            self.pause(left, "the next window gives the test key new requests").await;
        }
    }

    /// Sends a GET or HEAD request without retries. `path`: below the base address.
    pub(crate) async fn send_once(&mut self, caller: Caller, purpose: Purpose, path: &str) -> Exchange {
        self.wait_for_key(caller).await;
        let target = self.target_of(path);
        let sent = self.clock.now();
        if self.has_stopped() {
            self.continue_if_live_key_is_served().await;
        }
        if let Err(why) = self.admit(caller, &purpose) {
            return self.record_exchange(
                caller,
                purpose,
                &target,
                sent,
                ExchangeOutcome::NoResponse(why.into()),
            );
        }
        let (address, mut headers) = (self.address_of(&target), self.headers(caller));
        if accepts_gzip(caller, &purpose) {
            headers.push(("accept-encoding".to_owned(), "gzip".to_owned()));
        }
        let client = if purpose.method() == "HEAD" { &self.head_client } else { &self.client };
        let outcome = tokio::select! {
            outcome = client.send(purpose.method(), &address, &headers, Vec::new()) => outcome,
            () = self.plan.interrupt.wait_until_raised() => ExchangeOutcome::NoResponse(INTERRUPTED.into()),
        };
        self.progress.on_request(&self.ledger);
        self.record_exchange(caller, purpose, &target, sent, outcome)
    }

    /// Counts a request before it is sent, if it may be sent. The error is the reason why it must not be sent.
    fn admit(&mut self, caller: Caller, purpose: &Purpose) -> Result<(), &'static str> {
        if self.has_stopped() {
            return Err(if self.plan.interrupt.is_raised() { INTERRUPTED } else { UNRESPONSIVE });
        }
        self.ledger.admit(caller, purpose, &self.budget).then_some(()).ok_or(OVER_BUDGET)
    }

    /// Requests the account with the live key after several consecutive requests without a response. The run
    /// continues if there is a response, because the server is not down.
    async fn continue_if_live_key_is_served(&mut self) {
        let (caller, purpose) = (Caller::Own(Mode::Live), Purpose::Account);
        let is_final = self.plan.interrupt.is_raised() || self.is_down;
        if is_final
            || self.ledger.repeats >= self.budget.repeats
            || !self.ledger.admit(caller, &purpose, &self.budget)
        {
            return;
        }
        self.ledger.repeats += 1;
        self.keyed_repeats += 1;
        let (target, sent) = (self.target_of(ACCOUNT_PATH), self.clock.now());
        let (address, headers) = (self.address_of(&target), self.headers(caller));
        let outcome = self.client.send(purpose.method(), &address, &headers, Vec::new()).await;
        self.progress.on_request(&self.ledger);
        self.is_down = self.record_exchange(caller, purpose, &target, sent, outcome).response().is_none();
    }

    /// Sends a POST request. Writes are never retried.
    pub(crate) async fn post(&mut self, caller: Caller, path: &str, body: &str) -> Exchange {
        self.wait_for_key(caller).await;
        let target = self.target_of(path);
        let sent = self.clock.now();
        if let Err(why) = self.admit(caller, &Purpose::Create) {
            return self.record_exchange(
                caller,
                Purpose::Create,
                &target,
                sent,
                ExchangeOutcome::NoResponse(why.into()),
            );
        }
        let mut headers = self.headers(caller);
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let outcome = self.client.send("POST", &self.address_of(&target), &headers, body.into()).await;
        self.progress.on_request(&self.ledger);
        self.record_exchange(caller, Purpose::Create, &target, sent, outcome)
    }

    /// Sends several GET requests concurrently, and records them in the given order.
    pub(crate) async fn send_together(&mut self, requests: &[(Caller, Purpose, String)]) -> Vec<Exchange> {
        let sent = self.clock.now();
        let mut tasks = Vec::new();
        for (caller, purpose, path) in requests {
            let target = self.target_of(path);
            let (client, address, headers) =
                (self.client.clone(), self.address_of(&target), self.headers(*caller));
            let send = async move { client.send("GET", &address, &headers, Vec::new()).await };
            let task = self.admit(*caller, purpose).map(|()| tokio::spawn(send));
            tasks.push((*caller, purpose, target, task));
        }
        let mut exchanges = Vec::new();
        for (caller, purpose, target, task) in tasks {
            let outcome = match task {
                Ok(task) => task.await.unwrap_or_else(|err| ExchangeOutcome::NoResponse(err.to_string())),
                Err(why) => ExchangeOutcome::NoResponse(why.into()),
            };
            self.progress.on_request(&self.ledger);
            exchanges.push(self.record_exchange(caller, purpose.clone(), &target, sent, outcome));
        }
        exchanges
    }

    /// Returns the 200 response of a burst for a page.
    pub(crate) fn burst_page(&self, mode: Mode, request: &PageRequest) -> Option<&Exchange> {
        self.recording.find_last(|exchange| {
            matches!(exchange.purpose, Purpose::Burst(_))
                && exchange.caller == Caller::Own(mode)
                && exchange.status() == Some(200)
                && page_request(exchange).as_ref() == Some(request)
        })
    }

    /// Returns `true` if a burst has read a page.
    pub(crate) fn has_burst_page(&self, mode: Mode, request: &PageRequest) -> bool {
        self.burst_page(mode, request).is_some()
    }

    /// Returns `true` if the two keys together have a request left.
    pub(crate) fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    /// Returns `true` if the two keys together have this number of requests left, without those reserved for later
    /// groups. Bursts, single objects and the events before deliveries are not counted.
    pub(crate) fn has_room_for(&self, requests: u32) -> bool {
        let is_counted = |exchange: &&Exchange| {
            matches!(exchange.caller, Caller::Own(_))
                && !matches!(
                    exchange.purpose,
                    Purpose::Burst(_) | Purpose::Object { .. } | Purpose::BeforeDeliveries
                )
        };
        let keyed = self.recording.exchanges.iter().filter(is_counted).count() as u32;
        keyed + requests + self.reserved <= keyed_requests_max(self.plan) + self.keyed_repeats
    }

    fn target_of(&self, path: &str) -> String {
        format!("{}{path}", self.plan.base.path().trim_end_matches('/'))
    }

    fn address_of(&self, target: &str) -> String {
        format!("{}{target}", self.plan.base.origin().ascii_serialization())
    }

    fn headers(&self, caller: Caller) -> Vec<(String, String)> {
        let agent = concat!("chargeproof/", env!("CARGO_PKG_VERSION"));
        let common = [("accept", "application/json".to_owned()), ("user-agent", agent.to_owned())];
        let authorization = authorization(self.plan, caller).map(|value| ("authorization", value));
        common.into_iter().chain(authorization).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn record_exchange(
        &mut self,
        caller: Caller,
        purpose: Purpose,
        target: &str,
        sent: Duration,
        outcome: ExchangeOutcome,
    ) -> Exchange {
        let outcome = self.limit_recorded_bytes(outcome);
        match &outcome {
            ExchangeOutcome::NoResponse(why) if why.starts_with(NOT_SENT_PREFIX) => {}
            ExchangeOutcome::NoResponse(_) => self.consecutive_lost += 1,
            ExchangeOutcome::Answered(_) => self.consecutive_lost = 0,
        }
        let number = self.recording.exchanges.len() as u32 + 1;
        let (target, outcome) = (self.redactor.redact(target), self.redact(outcome));
        let ended = self.clock.now();
        let exchange = Exchange { number, caller, purpose, target, sent, ended, outcome };
        self.recording.exchanges.push(exchange.clone());
        exchange
    }

    /// Replaces a response that exceeds the limit of recorded bytes by the reason.
    fn limit_recorded_bytes(&mut self, outcome: ExchangeOutcome) -> ExchangeOutcome {
        let ExchangeOutcome::Answered(response) = &outcome else { return outcome };
        self.recorded_bytes += response.body.len();
        match self.recorded_bytes > RECORDED_BYTES_MAX {
            false => outcome,
            true => ExchangeOutcome::NoResponse(format!(
                "{} with a body of {} bytes: all responses together exceed {} MiB",
                response.status,
                response.body.len(),
                RECORDED_BYTES_MAX / (1024 * 1024)
            )),
        }
    }

    /// Sends a request, and retries once after a 502 to 504, or a 429 with a `Retry-After`.
    pub(crate) async fn send(&mut self, caller: Caller, purpose: Purpose, path: &str) -> Exchange {
        let first = self.send_once(caller, purpose.clone(), path).await;
        self.retry(first, |response| pause_after_refusal(response).or_else(|| pause_after_5xx(response)))
            .await
    }

    /// Sends a request, and retries once after a 502 to 504, but not after a 429, which may be the expected response.
    pub(crate) async fn send_retrying_5xx(
        &mut self,
        caller: Caller,
        purpose: Purpose,
        path: &str,
    ) -> Exchange {
        let first = self.send_once(caller, purpose, path).await;
        self.retry(first, pause_after_5xx).await
    }

    /// Repeats a request after a pause, if its response requires one.
    async fn retry(
        &mut self,
        first: Exchange,
        pause_after: impl Fn(&ReceivedResponse) -> Option<Duration>,
    ) -> Exchange {
        let Some(pause) = first.response().and_then(pause_after) else { return first };
        self.retry_after_pause(first, pause).await
    }

    /// Repeats a request after the shortest pause, whatever its response was.
    pub(crate) async fn send_again(&mut self, first: Exchange) -> Exchange {
        self.retry_after_pause(first, PAUSE_MIN).await
    }

    /// Repeats a request after a pause. Returns the first exchange if no retry or no wait is left.
    async fn retry_after_pause(&mut self, first: Exchange, pause: Duration) -> Exchange {
        if self.ledger.repeats >= self.budget.repeats || pause > SINGLE_WAIT_MAX {
            return first;
        }
        // A sliding window still counts part of the burst, so after the stated wait alone the key would be refused
        // again.
        let is_after_burst = self.ledger.in_bursts > 0 && !matches!(first.purpose, Purpose::Burst(_));
        let pause = if first.status() == Some(429) && is_after_burst && !self.has_waited_idle_window {
            self.has_waited_idle_window = true;
            pause.max(IDLE_WINDOW)
        } else {
            pause
        };
        if !self.pause(pause, "the server sent a Retry-After").await {
            return first;
        }
        self.ledger.repeats += 1;
        self.keyed_repeats += u32::from(matches!(first.caller, Caller::Own(_)));
        let prefix_len = self.plan.base.path().trim_end_matches('/').len();
        let path = first.target[prefix_len..].to_owned();
        self.send_once(first.caller, first.purpose, &path).await
    }

    /// Requests a page.
    pub(crate) async fn read_page(&mut self, mode: Mode, request: PageRequest) -> Exchange {
        let path = page_path(&request);
        self.send(Caller::Own(mode), Purpose::Page(request), &path).await
    }

    /// Follows a link of a page, if it leads into the same list. The request goes to the base address in any case.
    pub(crate) async fn follow_link(&mut self, mode: Mode, from: &Exchange, rel: &str) {
        let Purpose::Page(PageRequest { list, filters, .. }) = &from.purpose else { return };
        let Some(path) = self.link_path(from, *list, rel) else { return };
        let link = Some(FollowedLink { exchange: from.number, rel: rel.to_owned() });
        let request = PageRequest { list: *list, filters: filters.clone(), page: None, per_page: None, link };
        self.send(Caller::Own(mode), Purpose::Page(request), &path).await;
    }

    /// Returns the path of a page's link below the base address, if it leads into the list.
    pub(crate) fn link_path(&self, from: &Exchange, list: List, rel: &str) -> Option<String> {
        self.path_of_link(Page::from_exchange(from)?.link(rel)?, list)
    }

    /// Returns the text with keys redacted.
    pub(crate) fn redact_text(&self, text: &str) -> String {
        self.redactor.redact(text)
    }

    /// Waits, within the time that the run may wait in total. Returns `false` if the wait exceeds it or was
    /// interrupted.
    pub(crate) async fn pause(&mut self, duration: Duration, why: &str) -> bool {
        let Some(left) = self.remaining_wait.checked_sub(duration) else { return false };
        self.remaining_wait = left;
        self.wait_uncounted(duration, why).await
    }

    /// Waits, without counting the time as part of the time that the run may wait. Returns `false` if the wait was
    /// interrupted.
    pub(crate) async fn wait_uncounted(&mut self, duration: Duration, why: &str) -> bool {
        self.progress.on_wait(duration, why);
        tokio::select! {
            waited = self.clock.wait(duration) => waited.is_ok(),
            () = self.plan.interrupt.wait_until_raised() => false,
        }
    }

    /// Returns `true` if no more requests are sent: the server stopped responding, or the operator interrupted the run.
    pub(crate) fn has_stopped(&self) -> bool {
        self.consecutive_lost >= CONSECUTIVE_LOST_MAX || self.plan.interrupt.is_raised()
    }

    /// Resets the count of missing responses, because the other key got one.
    pub(crate) fn reset_lost_count(&mut self) {
        self.consecutive_lost = 0;
    }

    /// Returns a nonexistent identifier of the same format. Different values of `variant` give different ones.
    pub(crate) fn unused_id_like(&self, id: &str, variant: u64) -> String {
        unused_id(self.plan, id, variant)
    }

    /// Returns the path of a link below the base address, if it leads into the list. A proxy may have added or
    /// removed a prefix.
    fn path_of_link(&self, link: &str, list: List) -> Option<String> {
        let base = self.plan.base.join(list.path()).ok()?;
        let address: Url = base.join(link).ok()?;
        let path = match address.path().rfind(list.path()) {
            Some(start) => &address.path()[start..],
            // Another path of this server may be an alias of the list; the response shows it.
            None if address.origin() == base.origin() => {
                let prefix = self.plan.base.path().trim_end_matches('/');
                address.path().strip_prefix(prefix).unwrap_or(address.path())
            }
            None => return None,
        };
        Some(address.query().map_or(path.to_owned(), |query| format!("{path}?{query}")))
    }

    fn redact(&self, outcome: ExchangeOutcome) -> ExchangeOutcome {
        match outcome {
            ExchangeOutcome::NoResponse(why) => ExchangeOutcome::NoResponse(self.redactor.redact(&why)),
            ExchangeOutcome::Answered(response) => ExchangeOutcome::Answered(ReceivedResponse {
                status: response.status,
                headers: response
                    .headers
                    .into_iter()
                    .map(|(name, value)| (name, self.redactor.redact(&value)))
                    .collect(),
                body: response.body.with_text(self.redactor.redact(&response.body)),
            }),
        }
    }
}

/// Returns the pause before a retry if a response is a 429 with a `Retry-After`.
fn pause_after_refusal(response: &ReceivedResponse) -> Option<Duration> {
    (response.status == 429).then(|| retry_after(response))?.map(|delay| delay.max(PAUSE_MIN))
}

/// Returns the pause before a retry if a response is a 502, 503 or 504.
fn pause_after_5xx(response: &ReceivedResponse) -> Option<Duration> {
    matches!(response.status, 502..=504).then(|| retry_after(response).unwrap_or(PAUSE_MIN))
}
