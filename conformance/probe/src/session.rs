//! The session of a run: adds keys to requests, counts them in the ledger, redacts and records responses.

use conformance_model::budget::{Budget, Ledger};
use conformance_model::reading::{Page, page_ask, retry_after, twin_of};
use conformance_model::recording::{
    Answer, Caller, Ending, Exchange, FORMAT, Forgery, Inserts, Link, List, NOT_ASKED, PageAsk, Purpose,
    Recording,
};
use conformance_model::secret::{KEY_BLANK, Redactor};
use conformance_model::words::{ACCOUNT_PATH, Mode};

use crate::http_client::{Connections, HttpClient};
use crate::plan::Plan;
use crate::progress::Progress;
use crate::waiter::Waiter;

use std::time::Duration;

use url::Url;
use url::form_urlencoded::Serializer;

/// A server that is silent this often in a row is not asked any further.
const SILENCES_MAX: u32 = 3;
/// A page of 100 events is far below this.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bodies of a whole run together. An ordinary run has less than a tenth of it.
const KEPT_BYTES_MAX: usize = 48 * 1024 * 1024;
/// A retry is a request. So many in a whole run, and no more.
pub(crate) const REPEATS_MAX: u32 = 4;
/// All requests of a run with the two keys, bursts, single objects and repeats left aside, stay within this.
const KEYED_MAX: u32 = 77;
/// The same with `--thorough`.
const KEYED_MAX_THOROUGH: u32 = 110;
/// The most requests of a plan with the two keys.
pub(crate) fn keyed_max(plan: &Plan) -> u32 {
    if plan.thorough { KEYED_MAX_THOROUGH } else { KEYED_MAX }
}

/// The number of characters that a shortened key lacks.
const SHORTER_BY: usize = 4;
/// The pause before a repeat when nothing asks for more.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// One second more than the window, for servers that count in whole seconds.
pub(crate) const IDLE_WINDOW: Duration = Duration::from_secs(61);
/// No single wait lasts longer than this, whatever the server asks for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// The reason why an exchange has no answer after an interrupt.
const INTERRUPTED: &str = "not asked: the run was interrupted";
/// The reason of an exchange after the server has stopped answering.
const SILENT: &str = "not asked: the server had fallen silent";
/// The reason of an exchange beyond the announced requests.
const OVER_BUDGET: &str = "not asked: all requests that were announced have been sent";

/// A place in a recording.
pub(crate) struct Mark {
    length: usize,
    rest: Recording,
}

/// A run in progress.
pub(crate) struct Session<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) waiter: &'a mut dyn Waiter,
    pub(crate) progress: &'a mut dyn Progress,
    pub(crate) recording: Recording,
    pub(crate) ledger: Ledger,
    /// The requests that were announced: none beyond them is sent.
    budget: Budget,
    /// Repeats with the two keys, which do not use up what these may ask.
    keyed_repeats: u32,
    client: HttpClient,
    /// For HEAD requests: a body that follows such an answer would spoil the next one on the connection.
    head_client: HttpClient,
    pub(crate) redactor: Redactor,
    /// The requests in a row without an answer.
    silences: u32,
    /// The server did not answer the live key either.
    has_died: bool,
    /// `true` if a window of the test key ended during the run, so that a last burst shows the end of the next one.
    pub(crate) is_renewed: bool,
    /// Bytes of bodies in the recording.
    kept_bytes: usize,
    /// `true` if a second idle window was waited for.
    has_rested: bool,
    /// Requests of the two keys that are kept for the groups to come, so that each of their statements is judged.
    pub(crate) reserved: u32,
    /// The rest of the longest time that the run may wait.
    wait_left: Duration,
    /// Until then the test key is not used, so that it has a window of its own.
    idle_until: Duration,
    /// Since when deliveries count, if somebody receives them.
    pub(crate) receiving_since: Option<Duration>,
}

impl<'a> Session<'a> {
    pub(crate) fn open(
        plan: &'a Plan,
        waiter: &'a mut dyn Waiter,
        progress: &'a mut dyn Progress,
        budget: Budget,
        wait_max: Duration,
    ) -> Session<'a> {
        let recording = Recording {
            format: FORMAT,
            base: plan.shown_base().to_string(),
            key_prefix: plan.key_prefix.clone(),
            without: plan.left_out(),
            no_burst: None,
            inserts: Inserts::default(),
            exchanges: Vec::new(),
            deliveries: None,
        };
        let ca_pem = plan.ca_pem.as_deref();
        let client =
            |connections| HttpClient::new(&plan.base, connections, plan.time_limit, BODY_BYTES_MAX, ca_pem);
        let redactor = Redactor::new(plan.key_tails(), KEY_BLANK);
        Session {
            plan,
            waiter,
            progress,
            recording,
            ledger: Ledger::default(),
            budget,
            keyed_repeats: 0,
            client: client(Connections::Kept),
            head_client: client(Connections::Fresh),
            redactor,
            silences: 0,
            has_died: false,
            is_renewed: false,
            kept_bytes: 0,
            has_rested: false,
            reserved: 0,
            wait_left: wait_max,
            idle_until: Duration::ZERO,
            receiving_since: None,
        }
    }

    /// Marks the present end of the recording, to go back to.
    pub(crate) fn mark(&mut self) -> Mark {
        // What was exchanged is only added to, and may be large.
        let exchanges = std::mem::take(&mut self.recording.exchanges);
        let mark = Mark { length: exchanges.len(), rest: self.recording.clone() };
        self.recording.exchanges = exchanges;
        mark
    }

    /// Takes back what was recorded since.
    pub(crate) fn go_back(&mut self, mark: Mark) {
        let mut exchanges = std::mem::take(&mut self.recording.exchanges);
        exchanges.truncate(mark.length);
        self.recording = Recording { exchanges, ..mark.rest };
    }

    /// Removes the exchanges that an interrupt prevented.
    pub(crate) fn forget_unasked(&mut self) {
        self.recording.exchanges.retain(|it| !matches!(&it.ending, Ending::Lost(why) if why == INTERRUPTED));
    }

    /// Leaves the test key idle until then. The other keys may be used meanwhile.
    pub(crate) fn idle_until(&mut self, then: Duration) {
        self.idle_until = then;
    }

    /// Waits as long as a key has to be idle.
    pub(crate) async fn rest(&mut self, caller: Caller) {
        let left = self.idle_until.saturating_sub(self.waiter.now());
        if caller == Caller::Own(Mode::Test) && !left.is_zero() {
            self.idle_until = Duration::ZERO;
            self.pause(left, "the next window gives the test key new requests").await;
        }
    }

    /// Asks once, whatever comes back. `path` lies below the base address.
    pub(crate) async fn ask_once(&mut self, caller: Caller, purpose: Purpose, path: &str) -> Exchange {
        self.rest(caller).await;
        let target = self.target_of(path);
        let sent = self.waiter.now();
        if self.is_silent() {
            self.ask_whether_silent().await;
        }
        if let Err(why) = self.admit(caller, &purpose) {
            return self.write_down(caller, purpose, &target, sent, Ending::Lost(why.into()));
        }
        let (address, headers) = (self.address_of(&target), self.headers(caller));
        let client = if purpose.method() == "HEAD" { &self.head_client } else { &self.client };
        let ending = tokio::select! {
            ending = client.send(purpose.method(), &address, &headers, Vec::new()) => ending,
            () = self.plan.interrupt.raised() => Ending::Lost(INTERRUPTED.into()),
        };
        self.progress.asked(&self.ledger);
        self.write_down(caller, purpose, &target, sent, ending)
    }

    /// Counts a request that is about to be sent. The error says why it is not sent.
    fn admit(&mut self, caller: Caller, purpose: &Purpose) -> Result<(), &'static str> {
        if self.is_silent() {
            return Err(if self.plan.interrupt.is_raised() { INTERRUPTED } else { SILENT });
        }
        self.ledger.admit(caller, purpose, &self.budget).then_some(()).ok_or(OVER_BUDGET)
    }

    /// Asks for the account with the live key after several requests in a row had no answer. If that is answered,
    /// silence is how the server answers the others, and the run goes on.
    async fn ask_whether_silent(&mut self) {
        let (caller, purpose) = (Caller::Own(Mode::Live), Purpose::Account);
        let is_over = self.plan.interrupt.is_raised() || self.has_died;
        if is_over
            || self.ledger.repeats >= self.budget.repeats
            || !self.ledger.admit(caller, &purpose, &self.budget)
        {
            return;
        }
        self.ledger.repeats += 1;
        self.keyed_repeats += 1;
        let (target, sent) = (self.target_of(ACCOUNT_PATH), self.waiter.now());
        let (address, headers) = (self.address_of(&target), self.headers(caller));
        let ending = self.client.send(purpose.method(), &address, &headers, Vec::new()).await;
        self.progress.asked(&self.ledger);
        self.has_died = self.write_down(caller, purpose, &target, sent, ending).answer().is_none();
    }

    /// Posts once, whatever comes back: a write is never repeated.
    pub(crate) async fn post(&mut self, caller: Caller, path: &str, body: &str) -> Exchange {
        self.rest(caller).await;
        let target = self.target_of(path);
        let sent = self.waiter.now();
        if let Err(why) = self.admit(caller, &Purpose::Create) {
            return self.write_down(caller, Purpose::Create, &target, sent, Ending::Lost(why.into()));
        }
        let mut headers = self.headers(caller);
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let ending = self.client.send("POST", &self.address_of(&target), &headers, body.into()).await;
        self.progress.asked(&self.ledger);
        self.write_down(caller, Purpose::Create, &target, sent, ending)
    }

    /// Sends several requests at a time, and writes them down in the order given.
    pub(crate) async fn ask_together(&mut self, asks: &[(Caller, Purpose, String)]) -> Vec<Exchange> {
        let sent = self.waiter.now();
        let mut tasks = Vec::new();
        for (caller, purpose, path) in asks {
            let target = self.target_of(path);
            let (client, address, headers) =
                (self.client.clone(), self.address_of(&target), self.headers(*caller));
            let ask = async move { client.send("GET", &address, &headers, Vec::new()).await };
            let task = self.admit(*caller, purpose).map(|()| tokio::spawn(ask));
            tasks.push((*caller, purpose, target, task));
        }
        let mut exchanges = Vec::new();
        for (caller, purpose, target, task) in tasks {
            let ending = match task {
                Ok(task) => task.await.unwrap_or_else(|err| Ending::Lost(err.to_string())),
                Err(why) => Ending::Lost(why.into()),
            };
            self.progress.asked(&self.ledger);
            exchanges.push(self.write_down(caller, purpose.clone(), &target, sent, ending));
        }
        exchanges
    }

    /// The answer of 200 that a burst got for a page.
    pub(crate) fn shown(&self, mode: Mode, ask: &PageAsk) -> Option<&Exchange> {
        self.recording.last(|it| {
            matches!(it.purpose, Purpose::Burst(_))
                && it.caller == Caller::Own(mode)
                && it.status() == Some(200)
                && page_ask(it).as_ref() == Some(ask)
        })
    }

    /// Returns `true` if a burst has read a page.
    pub(crate) fn has_shown(&self, mode: Mode, ask: &PageAsk) -> bool {
        self.shown(mode, ask).is_some()
    }

    /// Returns `true` if the two keys have a request left.
    pub(crate) fn has_room(&self) -> bool {
        self.has_room_for(1)
    }

    /// Returns `true` if the two keys have so many requests left, beside the needs of later groups. Bursts, single
    /// objects, inserts and deliveries are not counted.
    pub(crate) fn has_room_for(&self, asks: u32) -> bool {
        let counts = |it: &&Exchange| {
            matches!(it.caller, Caller::Own(_))
                && !matches!(
                    it.purpose,
                    Purpose::Burst(_) | Purpose::Object { .. } | Purpose::BeforeDeliveries
                )
        };
        let keyed = self.recording.exchanges.iter().filter(counts).count() as u32;
        keyed + asks + self.reserved <= keyed_max(self.plan) + self.keyed_repeats
    }

    fn target_of(&self, path: &str) -> String {
        format!("{}{path}", self.plan.base.path().trim_end_matches('/'))
    }

    fn address_of(&self, target: &str) -> String {
        format!("{}{target}", self.plan.base.origin().ascii_serialization())
    }

    fn headers(&self, caller: Caller) -> Vec<(String, String)> {
        let agent = concat!("chargeproof/", env!("CARGO_PKG_VERSION"));
        let always = [("accept", "application/json".to_owned()), ("user-agent", agent.to_owned())];
        let authorization = self.authorization(caller).map(|value| ("authorization", value));
        always.into_iter().chain(authorization).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    fn write_down(
        &mut self,
        caller: Caller,
        purpose: Purpose,
        target: &str,
        sent: Duration,
        ending: Ending,
    ) -> Exchange {
        let ending = self.bounded(ending);
        match &ending {
            Ending::Lost(why) if why.starts_with(NOT_ASKED) => {}
            Ending::Lost(_) => self.silences += 1,
            Ending::Answered(_) => self.silences = 0,
        }
        let number = self.recording.exchanges.len() as u32 + 1;
        let (target, ending) = (self.redactor.clean(target), self.clean(ending));
        let ended = self.waiter.now();
        let exchange = Exchange { number, caller, purpose, target, sent, ended, ending };
        self.recording.exchanges.push(exchange.clone());
        exchange
    }

    /// Replaces an answer that is too large to keep by a lost one.
    fn bounded(&mut self, ending: Ending) -> Ending {
        let Ending::Answered(answer) = &ending else { return ending };
        self.kept_bytes += answer.body.len();
        match self.kept_bytes > KEPT_BYTES_MAX {
            false => ending,
            true => Ending::Lost(format!(
                "{} with a body of {} bytes: all answers together exceed {} MiB",
                answer.status,
                answer.body.len(),
                KEPT_BYTES_MAX / (1024 * 1024)
            )),
        }
    }

    /// Asks, and once more if the limit or a passing weakness came in between.
    pub(crate) async fn ask(&mut self, caller: Caller, purpose: Purpose, path: &str) -> Exchange {
        let first = self.ask_once(caller, purpose.clone(), path).await;
        self.repeat(first, |answer| pause_after_refusal(answer).or_else(|| pause_after_weakness(answer)))
            .await
    }

    /// Asks, and once more after a passing weakness, but not after a refusal: that may be the answer.
    pub(crate) async fn ask_past_weakness(
        &mut self,
        caller: Caller,
        purpose: Purpose,
        path: &str,
    ) -> Exchange {
        let first = self.ask_once(caller, purpose, path).await;
        self.repeat(first, pause_after_weakness).await
    }

    async fn repeat(&mut self, first: Exchange, pause: impl Fn(&Answer) -> Option<Duration>) -> Exchange {
        let Some(pause) = first.answer().and_then(pause) else { return first };
        if self.ledger.repeats >= self.budget.repeats || pause > PATIENCE {
            return first;
        }
        // A limiter that counts a share of the minute before still counts the burst: who waits only as long as it
        // says is refused again at once.
        let after_burst = self.ledger.in_bursts > 0 && !matches!(first.purpose, Purpose::Burst(_));
        let pause = if first.status() == Some(429) && after_burst && !self.has_rested {
            self.has_rested = true;
            pause.max(IDLE_WINDOW)
        } else {
            pause
        };
        if !self.pause(pause, "the server asked to wait").await {
            return first;
        }
        self.ledger.repeats += 1;
        self.keyed_repeats += u32::from(matches!(first.caller, Caller::Own(_)));
        let below = self.plan.base.path().trim_end_matches('/').len();
        let path = first.target[below..].to_owned();
        self.ask_once(first.caller, first.purpose, &path).await
    }

    /// Asks for a page and tells its exchange and content.
    pub(crate) async fn page(&mut self, mode: Mode, ask: PageAsk) -> (Exchange, Option<Page>) {
        let path = path_of(&ask);
        let exchange = self.ask(Caller::Own(mode), Purpose::Page(ask), &path).await;
        let page = Page::of(&exchange);
        (exchange, page)
    }

    /// Follows a link of a page, if there is one that leads into the same list. The base address stays.
    pub(crate) async fn follow(
        &mut self,
        mode: Mode,
        from: &Exchange,
        rel: &str,
    ) -> Option<(Exchange, Page)> {
        let Purpose::Page(PageAsk { list, filters, .. }) = &from.purpose else { return None };
        let path = self.linked(from, *list, rel)?;
        let link = Some(Link { of: from.number, rel: rel.to_owned() });
        let ask = PageAsk { list: *list, filters: filters.clone(), page: None, per_page: None, link };
        let exchange = self.ask(Caller::Own(mode), Purpose::Page(ask), &path).await;
        Page::of(&exchange).map(|page| (exchange, page))
    }

    /// The path below the base address that a link of a page leads to, if it leads into that list.
    pub(crate) fn linked(&self, from: &Exchange, list: List, rel: &str) -> Option<String> {
        self.path_behind(Page::of(from)?.link(rel)?, list)
    }

    /// The text without what it shares with a key.
    pub(crate) fn cleaned(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    /// Lets time pass, and tells whether it did: not if the run has waited as long as it may.
    pub(crate) async fn pause(&mut self, span: Duration, why: &str) -> bool {
        let Some(left) = self.wait_left.checked_sub(span) else { return false };
        self.wait_left = left;
        self.listen(span, why).await
    }

    /// Lets time pass for what the target sends.
    pub(crate) async fn listen(&mut self, span: Duration, why: &str) -> bool {
        self.progress.waiting(span, why);
        tokio::select! {
            waited = self.waiter.wait(span) => waited.is_ok(),
            () = self.plan.interrupt.raised() => false,
        }
    }

    /// Returns `true` if no more requests are sent: the server has stopped answering, or the operator has
    /// interrupted the run.
    pub(crate) fn is_silent(&self) -> bool {
        self.silences >= SILENCES_MAX || self.plan.interrupt.is_raised()
    }

    /// Sends requests again although the server was silent: the other key is answered.
    pub(crate) fn revive(&mut self) {
        self.silences = 0;
    }

    /// An identifier like this one that nobody has. `which` tells several apart.
    pub(crate) fn absent_twin(&self, id: &str, which: u64) -> String {
        twin_of(id, self.plan.seed.wrapping_add(which.wrapping_mul(0x5851_f42d_4c95_7f2d)))
    }

    /// The path below the base address that a link leads to, if it is one of that list. A proxy may
    /// have put a prefix before the path, or taken it away.
    fn path_behind(&self, link: &str, list: List) -> Option<String> {
        let base = self.plan.base.join(list.path()).ok()?;
        let address: Url = base.join(link).ok()?;
        let path = match address.path().rfind(list.path()) {
            Some(at) => &address.path()[at..],
            // Another path of this server may be the same list: the answer tells.
            None if address.origin() == base.origin() => {
                let prefix = self.plan.base.path().trim_end_matches('/');
                address.path().strip_prefix(prefix).unwrap_or(address.path())
            }
            None => return None,
        };
        Some(address.query().map_or(path.to_owned(), |query| format!("{path}?{query}")))
    }

    fn authorization(&self, caller: Caller) -> Option<String> {
        let plan = self.plan;
        let bearer = |key: &str| Some(format!("Bearer {key}"));
        let test_key = plan.test_key.expose();
        let test_tail = plan.test_key.tail(&plan.key_prefix);
        let prefix = |mode| plan.prefix(mode);
        match caller {
            Caller::Own(mode) => bearer(plan.key(mode).expose()),
            Caller::Second => bearer(plan.second_key.as_ref()?.expose()),
            Caller::OtherAccount => bearer(plan.other_account_key.as_ref()?.expose()),
            Caller::Revoked => bearer(plan.revoked_key.as_ref()?.expose()),
            Caller::Nobody => None,
            Caller::Forged(Forgery::EmptyBearer) => Some("Bearer".into()),
            Caller::Forged(Forgery::NoScheme) => Some(test_key.to_owned()),
            Caller::Forged(Forgery::OtherScheme) => Some(format!("Token {test_key}")),
            Caller::Forged(Forgery::BasicScheme) => Some(format!("Basic {test_key}")),
            Caller::Forged(Forgery::WordAppended) => bearer(&format!("{test_key} x")),
            Caller::Forged(Forgery::ListAppended) => bearer(&format!("{test_key},x")),
            Caller::Forged(Forgery::Encoded) => bearer(&test_key.replace('_', "%5F")),
            Caller::Forged(Forgery::Unknown) => {
                bearer(&format!("{}{}", prefix(Mode::Test), self.absent_twin(test_tail, 0)))
            }
            Caller::Forged(Forgery::LastCharacter) => bearer(&format!(
                "{}{}",
                &test_key[..test_key.len() - 1],
                other_last_character(test_key.ends_with('a'))
            )),
            Caller::Forged(Forgery::Shortened) => {
                bearer(&test_key[..test_key.len() - SHORTER_BY.min(test_tail.len())])
            }
            Caller::Forged(Forgery::LetterCase) => {
                bearer(&format!("{}{}", prefix(Mode::Test), swap_case(test_tail)))
            }
            Caller::Forged(Forgery::Appended) => bearer(&format!("{test_key}0")),
            Caller::Forged(Forgery::OtherPrefix) => bearer(&format!("{}{test_tail}", prefix(Mode::Live))),
        }
    }

    fn clean(&self, ending: Ending) -> Ending {
        match ending {
            Ending::Lost(why) => Ending::Lost(self.redactor.clean(&why)),
            Ending::Answered(answer) => Ending::Answered(Answer {
                status: answer.status,
                headers: answer
                    .headers
                    .into_iter()
                    .map(|(name, value)| (name, self.redactor.clean(&value)))
                    .collect(),
                body: self.redactor.clean(&answer.body).into(),
            }),
        }
    }
}

/// Another character than the key's own last one.
pub(crate) fn other_last_character(ends_with_a: bool) -> char {
    if ends_with_a { 'b' } else { 'a' }
}

fn swap_case(text: &str) -> String {
    let swap =
        |it: char| if it.is_ascii_lowercase() { it.to_ascii_uppercase() } else { it.to_ascii_lowercase() };
    text.chars().map(swap).collect()
}

fn pause_after_refusal(answer: &Answer) -> Option<Duration> {
    (answer.status == 429).then(|| retry_after(answer))?.map(|span| span.max(PAUSE_MIN))
}

fn pause_after_weakness(answer: &Answer) -> Option<Duration> {
    matches!(answer.status, 502..=504).then(|| retry_after(answer).unwrap_or(PAUSE_MIN))
}

pub(crate) fn path_of(ask: &PageAsk) -> String {
    let mut query = Serializer::new(String::new());
    for (name, value) in &ask.filters {
        query.append_pair(name, value);
    }
    for (name, value) in [("per_page", ask.per_page), ("page", ask.page)] {
        if let Some(value) = value {
            query.append_pair(name, &value.to_string());
        }
    }
    let query = query.finish();
    if query.is_empty() { ask.list.path().to_owned() } else { format!("{}?{query}", ask.list.path()) }
}

/// The path of one event.
pub(crate) fn event_path(id: &str) -> String {
    format!("{}/{}", List::Events.path(), encoded(id))
}

/// A text as it stands in a path or a query.
pub(crate) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
