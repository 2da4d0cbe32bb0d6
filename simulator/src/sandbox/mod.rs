//! A world and its API: the one thing that every host owns.
//!
//! - `world` is its state, `step` what happens next, `observe` who watches, `route` the calls under `/sandbox`.
//! - Time moves only forward, and only when a host says so. On the way everything that is due happens,
//!   in order of time; at the same microsecond rate locks end first, then the chains are seen, then
//!   answers to posts arrive, then new posts leave.

mod chains;
mod held;
mod history;
mod journal;
mod market;
mod money;
mod observe;
mod recall;
mod route;
mod state;
mod step;
mod watcher;
mod world;

use std::{collections::BTreeMap, net::IpAddr};

use reference_core::{
    account::{AccountKind, Settings},
    asset::Asset,
    dialect::Dialect,
    error::ApiError,
    id::AccountNo,
    mode::Mode,
    outbox::AttemptReport,
    rng::Seed,
    service::{Admission, Quota, Service},
    time::{Span, Timestamp},
    wallet::WalletCache,
};
use reference_wire::{AttemptRequest, Request, Response, bearer};
use serde::{Deserialize, Serialize};

pub use self::held::WORLD_BYTES;
pub(crate) use self::route::EVENTS_MAX;
use self::{
    history::{Caller, History},
    observe::Observers,
    step::Slice,
    world::World,
};
pub use self::{
    observe::{EndedAttempt, WorldLog},
    recall::{AdmittedRecord, PendingRecord},
    route::{
        ANY, DeliveryFilter, PendingAdvance, Progress, ROUTES, Route, RouteMethod, RouteReach, judge_head,
    },
};
use crate::{
    chain::{Chain, Congestion},
    tamper::Tamper,
    witness::{Detail, Observation, Record},
};

/// The setup of a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The seed of every random draw of this world.
    pub seed: Seed,
    /// The start of the service clock.
    pub start: Timestamp,
    /// The address under which hosted pages are reached, without a slash at the end.
    pub public_url: String,
    /// Requests per minute and key; `None` for no limit.
    pub rate_limit: Option<u32>,
    /// The names in keys and headers.
    pub dialect: Dialect,
    /// Keep all inputs, so that the service can be restarted.
    pub journal: bool,
    /// The reach of deliveries: inside the simulated network only, or outside too.
    pub reach: Reach,
    /// Wallets that many worlds share; from the seed if `None`.
    #[serde(skip)]
    pub wallet_cache: Option<WalletCache>,
    /// The tag that every key has after its mode, so that a key alone names its world; empty for none.
    pub key_tag: String,
}

/// The reach of a world's deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// Hosts named `*.sim` only: nothing leaves the process, and an endpoint elsewhere is refused.
    Simulated,
    /// The host posts what goes elsewhere, and says how it ended.
    Network,
}

/// An attempt to post a delivery, for the host to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutgoingAttempt {
    /// Under what its end is reported, by [`Sandbox::on_attempt_result`].
    pub id: AttemptId,
    /// The account of the delivery.
    pub account: AccountNo,
    /// In which mode.
    pub mode: Mode,
    /// The post.
    pub post: AttemptRequest,
}

/// Names one attempt of one world. An attempt of a world that is no more is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptId(u64);

/// The keys that a new world starts with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FirstKeys {
    /// A key of mode live.
    pub live: String,
    /// A key of mode test.
    pub test: String,
}

/// A key that a world let in.
#[derive(Clone, Copy, Debug)]
pub struct Admitted {
    admission: Admission,
    era: u64,
}

impl Admitted {
    /// Returns the account of the key.
    pub fn account(&self) -> AccountNo {
        self.admission.principal.account
    }

    /// The key's mode.
    pub fn mode(&self) -> Mode {
        self.admission.principal.mode
    }

    /// The key's place in its limit; `None` without a limit.
    pub fn quota(&self) -> Option<Quota> {
        self.admission.quota
    }
}

/// A world, who watches it, and its API.
///
/// ```
/// use reference_core::{dialect::Dialect, rng::Seed, time::{Span, Timestamp}};
/// use simulator::sandbox::{Reach, Sandbox, Setup};
///
/// let start = Timestamp::parse("2026-01-05T09:00:00Z").unwrap();
/// let mut sandbox = Sandbox::new(&Setup {
///     seed: Seed(1),
///     start,
///     public_url: "https://pay.example".to_owned(),
///     rate_limit: Some(120),
///     dialect: Dialect::default(),
///     journal: false,
///     reach: Reach::Simulated,
///     wallet_cache: None,
///     key_tag: String::new(),
/// });
/// sandbox.advance_to(start.plus(Span::hours(1)));
/// assert_eq!(sandbox.now().to_string(), "2026-01-05T10:00:00.000000Z");
/// ```
#[derive(Serialize, Deserialize)]
pub struct Sandbox {
    world: World,
    observers: Observers,
    /// Worlds before this one. A call that began in one of them is over.
    era: u64,
    first_keys: FirstKeys,
    /// A host serves others while much is happening.
    #[serde(skip)]
    in_slices: bool,
    /// The history, if it is kept.
    #[serde(skip)]
    history: Option<History>,
}

impl Sandbox {
    /// The name of the account that every world starts with.
    pub const FIRST_ACCOUNT: &str = "acme";

    /// A new world: one account with wallets and a key in each mode, and a market.
    pub fn new(setup: &Setup) -> Sandbox {
        Sandbox::with_account(setup, Sandbox::first_settings())
    }

    /// The settings of the first account, if nobody says otherwise.
    pub(crate) fn first_settings() -> Settings {
        let mut settings = Settings::new("Acme");
        settings.members = vec!["owner@acme.example".to_owned()];
        settings
    }

    /// A new world whose account has these settings.
    pub(crate) fn with_account(setup: &Setup, settings: Settings) -> Sandbox {
        let mut world = World::new(setup);
        let account = world
            .service
            .open_account(setup.start, Sandbox::FIRST_ACCOUNT, AccountKind::Organization, settings)
            .expect("the first account's name is free");
        let first_keys = world.create_keys(account);
        Sandbox {
            world,
            observers: Observers::default(),
            era: 0,
            first_keys,
            in_slices: false,
            history: None,
        }
    }

    /// Returns the time on the service clock.
    pub fn now(&self) -> Timestamp {
        self.world.now
    }

    /// Returns the setup of this world.
    pub fn setup(&self) -> &Setup {
        &self.world.setup
    }

    /// The keys that this world started with.
    pub fn first_keys(&self) -> FirstKeys {
        self.first_keys.clone()
    }

    /// A key more for each mode, for somebody who only looks.
    pub(crate) fn create_lookers(&mut self) -> BTreeMap<Mode, String> {
        let account = self.service().find_account(Sandbox::FIRST_ACCOUNT).expect("the first account stays");
        let keys = self.world.create_keys(account);
        BTreeMap::from([(Mode::Live, keys.live), (Mode::Test, keys.test)])
    }

    /// The chain of a coin in a mode.
    pub fn chain(&self, mode: Mode, asset: Asset) -> &Chain {
        self.world.chains.get(mode, asset)
    }

    /// The heights of all chains.
    pub(crate) fn heights(&self) -> BTreeMap<(Mode, Asset), u64> {
        let all = self.world.chains.values();
        all.map(|chain| ((chain.mode(), chain.asset()), chain.height(self.now()))).collect()
    }

    /// Returns the time at which an attempt ends or the service wants to be woken; `None` if all its queues are
    /// empty.
    pub(crate) fn next_of_service(&self) -> Option<Timestamp> {
        self.world.network.next_due().into_iter().chain(self.service().next_tick()).min()
    }

    /// Returns the time of the next event that happens by itself; `None` if the world is at rest.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.world.next_due()
    }

    /// Lets everything happen that is due up to `now`, each at its own time. In slices only a bounded part of it: the
    /// clock then shows less than `now`, and what is left stays due.
    pub fn advance_to(&mut self, now: Timestamp) {
        let mut slice = self.slice();
        self.world.advance_to(now, &mut self.observers, &mut slice);
    }

    /// From now on no call takes long, however much is due: for hosts that serve many at once. A call that moves the
    /// clock then stops again and again, see [`PendingAdvance::awaits_attempt`].
    pub fn work_in_slices(&mut self) {
        self.in_slices = true;
    }

    /// Until [`Sandbox::answer_again`], what calls answer has no body: for calls that were answered before.
    pub fn answer_nobody(&mut self) {
        self.world.service.set_unread(true);
    }

    /// Writes answers again: they are read from now on.
    pub fn answer_again(&mut self) {
        self.world.service.set_unread(false);
    }

    /// From now on what is done is kept, up to a bound, so that `GET /sandbox/scenario` can tell it.
    pub fn keep_history(&mut self) {
        self.history = Some(History::default());
    }

    /// A call was answered: what it changed is held, and part of the history.
    fn note_done(
        &mut self,
        caller: impl FnOnce(&Sandbox) -> Caller,
        request: &Request<'_>,
        progress: &Progress,
    ) {
        let Progress::Done(response) = progress else { return };
        self.world.told_bytes += held::bytes_of(request, response);
        if self.history.is_none() || !history::tells(request, response) {
            return;
        }
        let (caller, keys) = (caller(self), self.service().keys().iter().count());
        // No call that is told moves the clock, and another world begins at its own time.
        let at = self.now();
        if let Some(history) = &mut self.history {
            history.note(at, caller, request, response, keys);
        }
    }

    fn slice(&self) -> Slice {
        if self.in_slices { Slice::short() } else { Slice::whole() }
    }

    /// Everything around the service that is broken is mended: merchants, watchers, full blocks.
    pub(crate) fn heal(&mut self) {
        self.work();
        let world = &mut self.world;
        world.network.heal();
        for (mode, asset) in world.watchers.faulty() {
            if world.watchers.change((mode, asset), None) {
                world.chains.get_mut(mode, asset).rescan(world.now);
            }
        }
        for chain in world.chains.values_mut() {
            chain.congest(world.now, Congestion::default()).expect("room for everyone is never refused");
        }
        self.work();
    }

    /// Returns the log.
    pub fn log(&self) -> &WorldLog {
        self.observers.log()
    }

    /// From now on everything that an outsider could see is written down.
    pub(crate) fn keep_record(&mut self, detail: Detail) {
        self.observers.record = Some(Record::new(detail));
    }

    /// Returns the length of the record.
    pub(crate) fn recorded(&self) -> usize {
        self.observers.record.as_ref().map_or(0, |record| record.seen.len())
    }

    /// Returns the state around the service as text: two worlds are the same around it if the texts are equal.
    pub(crate) fn surroundings(&self) -> String {
        let chains: Vec<_> = self.world.chains.values().map(Chain::state).collect();
        format!("{chains:?} {:?} {:?}", self.world.watchers, self.world.network)
    }

    /// The requests of the last minute, which count for the limit: when, and with which key.
    pub(crate) fn calls_of_last_minute(&self) -> String {
        let seen = self.observers.record.iter().flat_map(|record| record.seen.iter().rev());
        let recent = seen.take_while(|entry| self.now().since(entry.at) < Span::secs(60));
        let calls: Vec<_> = recent
            .filter_map(|entry| match &entry.what {
                Observation::Call(call) => Some(format!("{} {:?}", entry.at, call.bearer)),
                Observation::Restarted => Some(format!("{} restart", entry.at)),
                _ => None,
            })
            .collect();
        calls.join("\n")
    }

    /// Takes the record. Recording stops until [`Sandbox::keep_record`].
    pub(crate) fn take_record(&mut self) -> Record {
        self.observers.record.take().unwrap_or_default()
    }

    /// From now on the log stays as it is, and answers to calls under `/sandbox` leave out what the call caused:
    /// both take time to write. What a script can name all the same is told by [`Sandbox::take_ended`].
    pub(crate) fn be_terse(&mut self) {
        self.observers.be_terse();
    }

    /// The attempts of a terse world whose end became known since the last time, in order.
    pub(crate) fn take_ended(&mut self) -> Vec<EndedAttempt> {
        self.observers.take_ended()
    }

    /// Puts somebody between the service and the world: for tests of those who judge.
    pub(crate) fn tamper_with(&mut self, tamper: Box<dyn Tamper>) {
        self.observers.tamper_with(tamper);
    }

    /// Answers a request to `/v1` or `/sandbox`, whatever is under way outside. For worlds whose deliveries stay
    /// inside.
    pub fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        match self.call(now, request) {
            Progress::Done(response) => response,
            Progress::Waiting(pending) => self.hurry(pending),
        }
    }

    /// Answers a request to `/v1` or `/sandbox`. Who may use `/sandbox` is the host's to say.
    ///
    /// A call that moves the clock stops wherever something goes outside: the host waits for an attempt to end and
    /// then calls [`Sandbox::go_on`]. In slices it stops more often, see [`PendingAdvance::awaits_attempt`].
    pub fn call(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        self.advance_to(now);
        let at = self.now();
        // What a call that moves the clock causes is written down by what happens on it.
        let place = self.observers.record.as_ref().map(|record| record.seen.len());
        let progress = self.answer(request);
        if let (Some(place), Progress::Done(response), Some(record)) =
            (place, &progress, &mut self.observers.record)
        {
            observe::note_call(record, (place, at), request, response);
        }
        let caller = |sandbox: &Sandbox| Caller {
            key: bearer(request.authorization).and_then(|text| sandbox.service().keys().find(text)),
            within: None,
        };
        self.note_done(caller, request, &progress);
        progress
    }

    fn answer(&mut self, request: &Request<'_>) -> Progress {
        let mut progress = if is_sandbox(request.path) {
            route::respond(self, request, None)
        } else {
            let other = self.observers.asks(self.now(), request);
            let response = match other {
                Some(other) => self.world.service.request(self.world.now, &other.borrow()),
                None => self.world.service.request(self.world.now, request),
            };
            self.follow(request);
            Progress::Done(response)
        };
        if let Progress::Done(response) = &mut progress {
            self.observers.answers(self.world.now, request, response);
        }
        progress
    }

    /// Advances the world through the events that a request caused, which belong to its own moment. A request that
    /// only reads causes none, unless the service is tampered with.
    fn follow(&mut self, request: &Request<'_>) {
        if self.observers.is_tampered() || !matches!(request.method, "GET" | "HEAD") {
            self.work();
        }
    }

    /// Authenticates a request that is answered by [`Sandbox::call_as`].
    ///
    /// # Errors
    ///
    /// The refusal as it goes back: 401 for an unknown key, 429 above the rate limit.
    pub fn admit(&mut self, now: Timestamp, authorization: Option<&[u8]>) -> Result<Admitted, Response> {
        self.advance_to(now);
        let admission = self.world.service.admit(self.world.now, authorization)?;
        Ok(Admitted { admission, era: self.era })
    }

    /// Returns `true` if this world created the key of a request, revoked or not. Does not count towards the rate
    /// limit.
    pub fn knows_key(&self, authorization: &[u8]) -> bool {
        bearer(Some(authorization)).is_some_and(|text| self.service().keys().has_made(text))
    }

    /// The same for a request to the API whose body has not come yet: it is answered by [`Sandbox::call_as`] then.
    ///
    /// # Errors
    ///
    /// The refusal as it goes back: 401 and 429 as for [`Sandbox::admit`], and what no body could change: 404 and 405.
    pub fn admit_head(
        &mut self,
        now: Timestamp,
        method: &str,
        path: &str,
        authorization: Option<&[u8]>,
    ) -> Result<Admitted, Response> {
        let admitted = self.admit(now, authorization)?;
        self.world.service.judge_head(&admitted.admission, method, path)?;
        Ok(admitted)
    }

    /// Answers a request of a key that was admitted, which does not count again. Of `/sandbox` it reaches what
    /// belongs to the key's account and mode, and the clock.
    pub fn call_as(&mut self, now: Timestamp, admitted: &Admitted, request: &Request<'_>) -> Progress {
        self.advance_to(now);
        if admitted.era != self.era {
            // Numbers of an earlier world name others in this one, or nobody.
            let gone = ApiError::conflict("Another world began, and the key is gone with its own.");
            return Progress::Done(Response::refusal(&gone));
        }
        let who = admitted.admission.principal;
        let progress = if is_sandbox(request.path) {
            route::respond(self, request, Some((who.account, who.mode)))
        } else {
            let response = self.world.service.request_of(self.world.now, &admitted.admission, request);
            self.follow(request);
            Progress::Done(response)
        };
        let caller = |sandbox: &Sandbox| Caller {
            key: Some(who.key),
            within: Some((sandbox.service().account(who.account).id.to_string(), who.mode)),
        };
        self.note_done(caller, request, &progress);
        progress
    }

    /// Attempts that go outside the simulated network: the host makes each once.
    pub fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        let outgoing = self.world.external.take_outgoing();
        outgoing.into_iter().map(|attempt| self.with_body(attempt)).collect()
    }

    fn with_body(&self, mut attempt: OutgoingAttempt) -> OutgoingAttempt {
        let OutgoingAttempt { account, mode, post, .. } = &mut attempt;
        // It has one already where somebody changed it.
        if post.body.is_empty() {
            post.body = self.world.service.delivery_body((*account, *mode), post.delivery);
        }
        attempt
    }

    /// An attempt that the host made has ended. One of an earlier world, or from before a restart,
    /// is forgotten.
    pub fn on_attempt_result(&mut self, now: Timestamp, id: AttemptId, report: AttemptReport) {
        self.advance_to(now);
        if let Some((account, mode, post)) = self.world.external.open.remove(&id) {
            self.world.told_bytes +=
                report.trace.as_ref().map_or(0, |trace| trace.response_body.len() as u64);
            self.world.end_attempt((account, mode), &post, report, &mut self.observers);
            self.work();
        }
    }

    /// The host looked a name up: an endpoint's address is judged by it when it is saved.
    pub fn learn_name(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.world.learn_name(host, addresses);
    }

    /// The host has a way of its own to this name, so nobody is asked what it resolves to.
    pub fn vouch_for(&mut self, host: &str) {
        self.world.vouch_for(host);
    }

    /// A new world begins in place of this one, with the same observers.
    fn begin_again(&mut self, setup: &Setup, settings: Settings) {
        let mut new = Sandbox::with_account(setup, settings);
        // Attempts go on counting, so that one of the old world can't end in the new one.
        new.world.external.count = self.world.external.count;
        new.era = self.era + 1;
        new.observers = self.observers.of_new_world();
        new.in_slices = self.in_slices;
        new.world.service.set_unread(self.world.service.is_unread());
        new.history = self.history.is_some().then(History::default);
        *self = new;
    }

    /// Returns the service.
    pub fn service(&self) -> &Service {
        self.world.service()
    }

    fn work(&mut self) {
        let mut slice = self.slice();
        self.world.work(&mut self.observers, &mut slice);
    }
}

fn is_sandbox(path: &str) -> bool {
    path == "/sandbox" || path.starts_with("/sandbox/")
}
