//! A world and its API. The main type is [`Sandbox`]; each host (the server, the player, a sweep) owns one for each
//! world.
//!
//! - `world` is its state, `step` performs the next due event, `observe` has the observers, `route` the calls under
//!   `/sandbox`.
//! - Only a host moves the clock, and only forward. Events that become due on the way happen in order of time. In the
//!   same microsecond the order is: rate locks expire, chain events are observed, results of attempts arrive, new
//!   attempts are sent.

mod chains;
mod history;
mod journal;
mod journal_types;
mod market;
mod memory_estimate;
mod money;
mod observe;
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

pub use self::memory_estimate::WORLD_BYTES;
pub(crate) use self::route::EVENTS_MAX;
use self::{
    history::{Caller, History},
    observe::Observers,
    step::WorkBudget,
    world::World,
};
pub use self::{
    journal_types::{AdmittedRecord, PendingRecord},
    observe::{EndedAttempt, WorldLog},
    route::{
        ANY, DeliveryFilter, PendingAdvance, Progress, ROUTES, Route, RouteMethod, RouteReach, check_head,
    },
};
use crate::{
    api::NoticePolicy,
    chain::{Chain, Congestion},
    record::{Detail, Observation, Record},
    tamper::Tamper,
};

/// The setup of a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The seed of all random draws in this world.
    pub seed: Seed,
    /// The start of the service clock.
    pub start: Timestamp,
    /// The base URL of hosted pages, without a slash at the end.
    pub public_url: String,
    /// Requests per minute and key; `None` for no limit.
    pub rate_limit: Option<u32>,
    /// The names in keys and headers.
    pub dialect: Dialect,
    /// Record all inputs, so that the service can be restarted.
    pub journal: bool,
    /// The reach of deliveries: inside the simulated network only, or outside too.
    pub reach: Reach,
    /// Deposit wallets shared between worlds; derived from the seed if `None`.
    #[serde(skip)]
    pub wallet_cache: Option<WalletCache>,
    /// The tag that follows the mode in each key, so that a key identifies its world; empty for none.
    pub key_tag: String,
    /// The mode of `/sandbox` calls that name none: test, except in worlds stored before that was the default.
    pub default_mode: Mode,
}

impl Setup {
    /// Creates the setup of a world without a rate limit or a journal, whose deliveries stay inside the simulated network.
    /// `public_url` has no slash at the end.
    pub fn new(seed: Seed, start: Timestamp, public_url: impl Into<String>) -> Setup {
        Setup {
            seed,
            start,
            public_url: public_url.into(),
            rate_limit: None,
            dialect: Dialect::default(),
            journal: false,
            reach: Reach::Simulated,
            wallet_cache: None,
            key_tag: String::new(),
            default_mode: Mode::Test,
        }
    }
}

/// The reach of a world's deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reach {
    /// Only hosts named `*.sim`: nothing leaves the process, and endpoints elsewhere are refused.
    Simulated,
    /// The host makes the attempts to other addresses, and reports their results.
    Network,
}

/// An attempt that the host makes over the real network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutgoingAttempt {
    /// The id under which the result is reported, by [`Sandbox::on_attempt_result`].
    pub id: AttemptId,
    /// The account of the delivery.
    pub account: AccountNo,
    /// The mode of the delivery.
    pub mode: Mode,
    /// The request.
    pub request: AttemptRequest,
}

/// The id of one attempt of one world. Results for attempts of a replaced world are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AttemptId(u64);

/// The keys that a new world starts with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FirstKeys {
    /// A live key.
    pub live: String,
    /// A test key.
    pub test: String,
}

/// The authentication of a request, from [`Sandbox::admit`] or [`Sandbox::admit_head`].
#[derive(Clone, Copy, Debug)]
pub struct AdmittedRequest {
    admission: Admission,
    /// The number of worlds before the one that authenticated the request.
    era: u64,
}

impl AdmittedRequest {
    /// Returns the account of the key.
    pub fn account(&self) -> AccountNo {
        self.admission.principal.account
    }

    /// Returns the mode of the key.
    pub fn mode(&self) -> Mode {
        self.admission.principal.mode
    }

    /// Returns the key's rate limit and the remaining requests; `None` without a limit.
    pub fn quota(&self) -> Option<Quota> {
        self.admission.quota
    }
}

/// A world with its observers and its API.
///
/// ```
/// use reference_core::{rng::Seed, time::{Span, Timestamp}};
/// use simulator::sandbox::{Sandbox, Setup};
///
/// let start = Timestamp::parse("2026-01-05T09:00:00Z").unwrap();
/// let mut sandbox = Sandbox::new(&Setup {
///     rate_limit: Some(120),
///     ..Setup::new(Seed(1), start, "https://pay.example")
/// });
/// sandbox.advance_to(start.plus(Span::hours(1)));
/// assert_eq!(sandbox.now().to_string(), "2026-01-05T10:00:00.000000Z");
/// ```
#[derive(Serialize, Deserialize)]
pub struct Sandbox {
    world: World,
    observers: Observers,
    /// The number of worlds before this one. Calls that started in one of them are refused.
    era: u64,
    first_keys: FirstKeys,
    /// `true` to bound the work of each call, see [`Sandbox::work_in_slices`].
    #[serde(skip)]
    is_budgeted: bool,
    /// The history of calls; `None` if it is not recorded.
    #[serde(skip)]
    history: Option<History>,
}

impl Sandbox {
    /// The name of the account that every world starts with.
    pub const FIRST_ACCOUNT: &str = "acme";

    /// Creates a world with one account, wallets and a key in each mode, and a market.
    pub fn new(setup: &Setup) -> Sandbox {
        Sandbox::with_account(setup, Sandbox::first_settings())
    }

    /// Returns the default settings of the first account.
    pub(crate) fn first_settings() -> Settings {
        let mut settings = Settings::new("Acme");
        settings.members = vec!["owner@acme.example".to_owned()];
        settings
    }

    /// Creates a world whose first account has these settings.
    pub(crate) fn with_account(setup: &Setup, settings: Settings) -> Sandbox {
        let mut world = World::new(setup);
        let account = world
            .service
            .open_account(setup.start, Sandbox::FIRST_ACCOUNT, AccountKind::Organization, settings)
            .expect("no account has the first account's id");
        let first_keys = world.create_keys(account);
        Sandbox {
            world,
            observers: Observers::default(),
            era: 0,
            first_keys,
            is_budgeted: false,
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

    /// Returns the keys that this world started with.
    pub fn first_keys(&self) -> FirstKeys {
        self.first_keys.clone()
    }

    /// Creates one more key of the first account for each mode, for read-only use by observers.
    pub(crate) fn create_observer_keys(&mut self) -> BTreeMap<Mode, String> {
        let account =
            self.service().find_account(Sandbox::FIRST_ACCOUNT).expect("the first account is never removed");
        let keys = self.world.create_keys(account);
        BTreeMap::from([(Mode::Live, keys.live), (Mode::Test, keys.test)])
    }

    /// Returns the chain of a coin in a mode.
    pub fn chain(&self, mode: Mode, asset: Asset) -> &Chain {
        self.world.chains.get(mode, asset)
    }

    /// Returns the heights of all chains.
    pub(crate) fn heights(&self) -> BTreeMap<(Mode, Asset), u64> {
        let all = self.world.chains.values();
        all.map(|chain| ((chain.mode(), chain.asset()), chain.height(self.now()))).collect()
    }

    /// Returns the time of the next attempt result or timer of the service; `None` if there is none.
    pub(crate) fn next_service_due(&self) -> Option<Timestamp> {
        self.world.network.next_due().into_iter().chain(self.service().next_tick()).min()
    }

    /// Returns the time of the next event that is due without a call; `None` if there is none.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.world.next_due()
    }

    /// Performs all events due up to `now`, each at its own time. After [`Sandbox::work_in_slices`] only a bounded
    /// number of them: the clock may then stay before `now`, and the rest stays due.
    pub fn advance_to(&mut self, now: Timestamp) {
        let mut budget = self.budget();
        self.world.advance_to(now, &mut self.observers, &mut budget);
    }

    /// Bounds the work of each call, for hosts that serve several clients. A call that moves the clock then pauses
    /// several times before it completes, see [`PendingAdvance::awaits_attempt`].
    pub fn work_in_slices(&mut self) {
        self.is_budgeted = true;
    }

    /// Starts recording calls, up to a bound, for `GET /sandbox/scenario`.
    pub fn enable_history(&mut self) {
        self.history = Some(History::default());
    }

    /// Adds a completed call to the memory estimate and to the history.
    fn record_call(
        &mut self,
        caller: impl FnOnce(&Sandbox) -> Caller,
        request: &Request<'_>,
        progress: &Progress,
    ) {
        let Progress::Done(response) = progress else { return };
        self.world.input_bytes += memory_estimate::bytes_added(request, response);
        if self.history.is_none() || !history::is_recorded(request, response) {
            return;
        }
        let (caller, keys) = (caller(self), self.service().keys().iter().count());
        // The time after the call is also the time before it: calls that only move the clock are not recorded.
        let at = self.now();
        if let Some(history) = &mut self.history {
            history.record(at, caller, request, response, keys);
        }
    }

    fn budget(&self) -> WorkBudget {
        if self.is_budgeted { WorkBudget::limited() } else { WorkBudget::unlimited() }
    }

    /// Removes all faults around the service: those of merchants and watchers, and full blocks.
    pub(crate) fn heal(&mut self) {
        self.perform_due();
        let world = &mut self.world;
        world.network.heal();
        for (mode, asset) in world.watchers.faulty_chains() {
            if world.watchers.set_fault((mode, asset), NoticePolicy::Up) {
                world.chains.get_mut(mode, asset).rescan(world.now);
            }
        }
        for chain in world.chains.values_mut() {
            chain.congest(world.now, Congestion::default()).expect("no congestion is always allowed");
        }
        self.perform_due();
    }

    /// Returns the log.
    pub fn log(&self) -> &WorldLog {
        self.observers.log()
    }

    /// Starts recording everything that is observable from outside the service.
    pub(crate) fn start_recording(&mut self, detail: Detail) {
        self.observers.record = Some(Record::new(detail));
    }

    /// Returns the length of the record.
    pub(crate) fn record_len(&self) -> usize {
        self.observers.record.as_ref().map_or(0, |record| record.entries.len())
    }

    /// Returns the state around the service as text, for comparisons between worlds.
    pub(crate) fn environment_state(&self) -> String {
        let chains: Vec<_> = self.world.chains.values().map(Chain::state).collect();
        format!("{chains:?} {:?} {:?}", self.world.watchers, self.world.network)
    }

    /// Returns the recorded calls and restarts of the last minute, newest first, with times and keys. The
    /// state of the rate limits depends on them.
    pub(crate) fn calls_of_last_minute(&self) -> String {
        let newest_first = self.observers.record.iter().flat_map(|record| record.entries.iter().rev());
        let recent = newest_first.take_while(|entry| self.now().since(entry.at) < Span::secs(60));
        let calls: Vec<_> = recent
            .filter_map(|entry| match &entry.observation {
                Observation::Call(call) => Some(format!("{} {:?}", entry.at, call.bearer)),
                Observation::Restart => Some(format!("{} restart", entry.at)),
                _ => None,
            })
            .collect();
        calls.join("\n")
    }

    /// Takes the record. Recording stops until the next [`Sandbox::start_recording`].
    pub(crate) fn take_record(&mut self) -> Record {
        self.observers.record.take().unwrap_or_default()
    }

    /// Stops writing the log, and omits events from responses under `/sandbox`, to save time. [`Sandbox::take_ended`]
    /// still returns the ended attempts, to which scripts can refer.
    pub(crate) fn disable_log(&mut self) {
        self.observers.disable_log();
    }

    /// Returns the attempts of a world without log that ended since the last call, in order.
    pub(crate) fn take_ended(&mut self) -> Vec<EndedAttempt> {
        self.observers.take_ended()
    }

    /// Installs a tamper between the service and the world, for tests of the invariants.
    pub(crate) fn install_tamper(&mut self, tamper: Box<dyn Tamper>) {
        self.observers.install_tamper(tamper);
    }

    /// Responds to a request to `/v1` or `/sandbox` without waiting for outside attempts, for worlds whose deliveries
    /// stay inside the simulated network.
    pub fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        match self.call(now, request) {
            Progress::Done(response) => response,
            Progress::Waiting(pending) => self.run_to_end(pending),
        }
    }

    /// Responds to a request to `/v1` or `/sandbox`. The host checks the access to `/sandbox`.
    ///
    /// A call that moves the clock pauses whenever an outside attempt is in flight: the host waits for its result and
    /// then calls [`Sandbox::continue_call`]. With sliced work it pauses more often, see
    /// [`PendingAdvance::awaits_attempt`].
    pub fn call(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        self.advance_to(now);
        let at = self.now();
        // A call is recorded before the events that it causes.
        let index = self.observers.record.as_ref().map(|record| record.entries.len());
        let progress = self.handle(request);
        if let (Some(index), Progress::Done(response), Some(record)) =
            (index, &progress, &mut self.observers.record)
        {
            observe::insert_call(record, (index, at), request, response);
        }
        let caller = |sandbox: &Sandbox| Caller {
            key: bearer(request.authorization).and_then(|text| sandbox.service().keys().find(text)),
            within: None,
        };
        self.record_call(caller, request, &progress);
        progress
    }

    fn handle(&mut self, request: &Request<'_>) -> Progress {
        let mut progress = if is_sandbox(request.path) {
            route::respond(self, request, None)
        } else {
            let replacement = self.observers.tamper_request(self.now(), request);
            let response = match replacement {
                Some(replacement) => self.world.service.request(self.world.now, &replacement.borrow()),
                None => self.world.service.request(self.world.now, request),
            };
            self.perform_caused_events(request);
            Progress::Done(response)
        };
        if let Progress::Done(response) = &mut progress {
            self.observers.tamper_response(self.world.now, request, response);
        }
        progress
    }

    /// Performs the events that a request caused at its own time. A request that only reads causes none, unless a
    /// tamper is installed.
    fn perform_caused_events(&mut self, request: &Request<'_>) {
        if self.observers.is_tampered() || !matches!(request.method, "GET" | "HEAD") {
            self.perform_due();
        }
    }

    /// Authenticates a request; [`Sandbox::call_as`] then responds to it.
    ///
    /// # Errors
    ///
    /// The error response: 401 for an unknown key, 429 above the rate limit.
    pub fn admit(
        &mut self,
        now: Timestamp,
        authorization: Option<&[u8]>,
    ) -> Result<AdmittedRequest, Response> {
        self.advance_to(now);
        let admission = self.world.service.admit(self.world.now, authorization)?;
        Ok(AdmittedRequest { admission, era: self.era })
    }

    /// Returns `true` if this world created the key of a request, revoked or not. Does not count towards the rate
    /// limit.
    pub fn knows_key(&self, authorization: &[u8]) -> bool {
        bearer(Some(authorization)).is_some_and(|text| self.service().keys().has_created(text))
    }

    /// Authenticates an API request before its body has arrived; [`Sandbox::call_as`] then responds to it.
    ///
    /// # Errors
    ///
    /// The error response: 401 and 429 as for [`Sandbox::admit`], and 404 and 405, which do not depend on the body.
    pub fn admit_head(
        &mut self,
        now: Timestamp,
        method: &str,
        path: &str,
        authorization: Option<&[u8]>,
    ) -> Result<AdmittedRequest, Response> {
        let admitted = self.admit(now, authorization)?;
        self.world.service.check_head(&admitted.admission, method, path)?;
        Ok(admitted)
    }

    /// Responds to an authenticated request, without counting it again. Under `/sandbox` it can access the objects of
    /// the key's account and mode, and the clock.
    pub fn call_as(&mut self, now: Timestamp, admitted: &AdmittedRequest, request: &Request<'_>) -> Progress {
        self.advance_to(now);
        if admitted.era != self.era {
            // The numbers of an earlier world identify other objects in this one.
            let replaced =
                ApiError::conflict("The world of this key was replaced; use a key of the new world.");
            return Progress::Done(Response::refusal(&replaced));
        }
        let principal = admitted.admission.principal;
        let progress = if is_sandbox(request.path) {
            route::respond(self, request, Some((principal.account, principal.mode)))
        } else {
            let response = self.world.service.request_as(self.world.now, &admitted.admission, request);
            self.perform_caused_events(request);
            Progress::Done(response)
        };
        let caller = |sandbox: &Sandbox| Caller {
            key: Some(principal.key),
            within: Some((sandbox.service().account(principal.account).id.to_string(), principal.mode)),
        };
        self.record_call(caller, request, &progress);
        progress
    }

    /// Removes and returns the new attempts to addresses outside the simulated network. The host makes each once.
    pub fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        let outgoing = self.world.external.take_outgoing();
        outgoing.into_iter().map(|attempt| self.with_body(attempt)).collect()
    }

    fn with_body(&self, mut attempt: OutgoingAttempt) -> OutgoingAttempt {
        let OutgoingAttempt { account, mode, request, .. } = &mut attempt;
        // A tamper may already have replaced the body.
        if request.body.is_empty() {
            request.body = self.world.service.delivery_body((*account, *mode), request.delivery);
        }
        attempt
    }

    /// Reports the result of an attempt that the host made. Results for an earlier world, or from before a restart,
    /// are ignored.
    pub fn on_attempt_result(&mut self, now: Timestamp, id: AttemptId, report: AttemptReport) {
        self.advance_to(now);
        if let Some((account, mode, attempt)) = self.world.external.open.remove(&id) {
            self.world.input_bytes +=
                report.trace.as_ref().map_or(0, |trace| trace.response_body.len() as u64);
            self.world.end_attempt((account, mode), &attempt, report, &mut self.observers);
            self.perform_due();
        }
    }

    /// Reports the addresses that a host name resolves to. The URLs of new endpoints are checked against them.
    pub fn set_resolution(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.world.set_resolution(host, addresses);
    }

    /// Declares that the host forwards deliveries for this name to an address that it chooses, so that the
    /// name needs no resolution.
    pub fn declare_forwarded(&mut self, host: &str) {
        self.world.declare_forwarded(host);
    }

    /// Replaces this world with a new one that has the same observers.
    fn replace_world(&mut self, setup: &Setup, settings: Settings) {
        let mut new = Sandbox::with_account(setup, settings);
        // Attempt numbers continue, so that a result for the old world cannot be applied to the new one.
        new.world.external.count = self.world.external.count;
        new.era = self.era + 1;
        new.observers = self.observers.take_for_new_world();
        new.is_budgeted = self.is_budgeted;
        new.history = self.history.is_some().then(History::default);
        *self = new;
    }

    /// Returns the service.
    pub fn service(&self) -> &Service {
        self.world.service()
    }

    /// Performs the events that are due now.
    fn perform_due(&mut self) {
        let mut budget = self.budget();
        self.world.perform_due(&mut self.observers, &mut budget);
    }
}

fn is_sandbox(path: &str) -> bool {
    path == "/sandbox" || path.starts_with("/sandbox/")
}
