//! A service, its chains and its simulated network: the one thing that both hosts own.
//!
//! Time moves only forward, and only when a host says so. On the way everything that is due happens,
//! in order of time; at the same microsecond rate locks end first, then the chains are seen, then
//! answers to posts arrive, then new posts leave.

mod api;
mod chains;
mod course;
mod desk;
mod happening;
mod journey;
mod market;
mod money;
mod noting;
mod watcher;

use std::{cell::Cell, collections::BTreeMap, net::IpAddr};

use chains::Chains;
use desk::Desk;
pub use desk::OwnRequest;
pub use happening::{Chronicle, Happening, What};
use journey::Heading;
pub use journey::{Journey, Progress};
pub use noting::Landed;
use noting::{Ended, written};
use reference_core::{
    account::{AccountKind, Settings},
    action::{Act, Action, Done},
    asset::Asset,
    book::Post,
    dialect::Dialect,
    draw::Seed,
    endpoint::address_rule::{self, Host},
    error::ApiError,
    id::AccountNo,
    mode::Mode,
    outbox::Landing,
    service::{Admission, Quota, Service, Start},
    time::Timestamp,
    wallet::Vault,
    wire::http::{Request, Response},
};
use watcher::{Manner, Watchers};

use crate::{
    chain::{Chain, Congestion},
    network::Network,
    tamper::Tamper,
    witness::{self, Record},
};

/// The account that every world starts with.
const FIRST_ACCOUNT: &str = "acme";

/// How a world begins.
#[derive(Clone, Debug)]
pub struct Setup {
    /// What every draw of this world hangs on.
    pub seed: Seed,
    /// What the service clock shows at first.
    pub start: Timestamp,
    /// The address under which hosted pages are reached, without a slash at the end.
    pub public_url: String,
    /// Requests per minute and key; nothing for no limit.
    pub rate_limit: Option<u32>,
    /// The names in keys and headers.
    pub dialect: Dialect,
    /// Keep all inputs, so that the service can be restarted.
    pub journal: bool,
    /// Where deliveries to hosts outside the simulated network go.
    pub reach: Reach,
    /// Wallets that many worlds share; from the seed if there is none.
    pub vault: Option<Vault>,
}

/// How far a world's deliveries reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Hosts named `*.sim` only: nothing leaves the process, and an endpoint elsewhere is refused.
    Simulated,
    /// The host posts what goes elsewhere, and says how it ended.
    Abroad,
}

/// A delivery that the host has to post.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// Under what its landing is reported.
    pub ticket: Ticket,
    /// Whose it is.
    pub account: AccountNo,
    /// In which mode.
    pub mode: Mode,
    /// What to post.
    pub post: Post,
}

/// Names one attempt of one world. An attempt of a world that is no more is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What the host said about a name.
enum Known {
    /// It resolves to these.
    Addresses(Vec<IpAddr>),
    /// The host reaches it by a way of its own.
    OwnWay,
}

/// The keys that a new world starts with.
#[derive(Clone, Debug)]
pub struct FirstKeys {
    /// A key of mode live.
    pub live: String,
    /// A key of mode test.
    pub test: String,
}

/// A key that a world let in.
#[derive(Clone, Copy, Debug)]
pub struct Guest {
    admission: Admission,
    era: u64,
}

impl Guest {
    /// The key's mode.
    pub fn mode(&self) -> Mode {
        self.admission.principal.mode
    }

    /// The key's place in its limit; nothing without a limit.
    pub fn quota(&self) -> Option<Quota> {
        self.admission.quota
    }
}

/// `GET /sandbox/happenings` hands out so many at once.
pub(crate) const HAPPENINGS_MAX: usize = 10_000;

/// A service, its chains and its simulated network, at one moment.
pub struct Sandbox {
    setup: Setup,
    now: Timestamp,
    desk: Desk,
    chains: Chains,
    watchers: Watchers,
    network: Network,
    /// Deliveries that the host has yet to fetch.
    outgoing: Vec<Dispatch>,
    /// Deliveries that the host is posting.
    abroad: BTreeMap<Ticket, (AccountNo, Mode, Post)>,
    /// Tickets given out, by this world and those before it.
    tickets: u64,
    /// Worlds before this one. A call that began in one of them is over.
    era: u64,
    /// Where the call that is being answered moves the clock to.
    heading: Option<Heading>,
    /// The only book that the call that is being answered reaches.
    within: Option<api::Within>,
    /// What the host last found real names to mean.
    names: BTreeMap<String, Known>,
    chronicle: Chronicle,
    /// Confirmations of each transfer as last noticed; nothing when it is gone.
    noticed: BTreeMap<(String, u32), Option<u32>>,
    first_keys: FirstKeys,
    /// When something happens by itself, since that was last found out; nothing after a change.
    due: Cell<Option<Option<Timestamp>>>,
    /// Nobody reads what happens: the chronicle stays empty, and answers leave it out.
    terse: bool,
    /// What a terse world says instead of its chronicle.
    landed: Vec<Landed>,
    /// What was written down, if somebody wants it.
    record: Option<Record>,
    /// What makes this a wrong service, in tests.
    tamper: Option<Box<dyn Tamper>>,
}

impl Sandbox {
    /// The name of the account that every world starts with.
    pub const FIRST_ACCOUNT: &str = FIRST_ACCOUNT;

    /// A new world: one account with wallets and a key in each mode, and a market.
    pub fn new(setup: &Setup) -> Sandbox {
        Sandbox::with_account(setup, Sandbox::first_settings())
    }

    /// The settings of the first account, if nobody says otherwise.
    pub fn first_settings() -> Settings {
        let mut settings = Settings::new("Acme");
        settings.members = vec!["owner@acme.example".to_owned()];
        settings
    }

    /// A new world whose account has these settings.
    pub fn with_account(setup: &Setup, settings: Settings) -> Sandbox {
        let start = Start {
            seed: setup.seed,
            dialect: setup.dialect.clone(),
            public_url: setup.public_url.clone(),
            rate_limit: setup.rate_limit,
            vault: setup.vault.clone(),
        };
        let none = FirstKeys { live: String::new(), test: String::new() };
        let mut sandbox = Sandbox {
            setup: setup.clone(),
            now: setup.start,
            desk: Desk::new(start, setup.journal),
            chains: Chains::new(setup.seed, setup.start),
            watchers: Watchers::default(),
            network: Network::default(),
            outgoing: Vec::new(),
            abroad: BTreeMap::new(),
            tickets: 0,
            era: 0,
            heading: None,
            within: None,
            names: BTreeMap::new(),
            chronicle: Chronicle::default(),
            noticed: BTreeMap::new(),
            first_keys: none,
            due: Cell::new(None),
            terse: false,
            landed: Vec::new(),
            record: None,
            tamper: None,
        };
        for (asset, currency, rate) in market::rates(setup.seed) {
            sandbox.desk.rate(setup.start, asset, currency, Some(rate));
        }
        let account = sandbox
            .desk
            .open_account(setup.start, FIRST_ACCOUNT, AccountKind::Organization, settings)
            .expect("the first account's name is free");
        sandbox.first_keys = sandbox.create_keys(account);
        sandbox
    }

    /// What the service clock shows.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What this world began with.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The keys that this world started with.
    pub fn first_keys(&self) -> FirstKeys {
        self.first_keys.clone()
    }

    /// A key more for each mode, for somebody who only looks.
    pub fn create_lookers(&mut self) -> BTreeMap<Mode, String> {
        let account = self.service().find_account(FIRST_ACCOUNT).expect("the first account stays");
        let keys = self.create_keys(account);
        BTreeMap::from([(Mode::Live, keys.live), (Mode::Test, keys.test)])
    }

    /// The chain of a coin in a mode.
    pub fn chain(&self, mode: Mode, asset: Asset) -> &Chain {
        self.chains.get(mode, asset)
    }

    /// Everything around the service that is broken is mended: merchants, watchers, full blocks.
    pub fn heal(&mut self) {
        self.work();
        self.network.heal();
        for (mode, asset) in self.watchers.odd() {
            if self.watchers.change((mode, asset), Manner::Up) {
                self.chains.get_mut(mode, asset).rescan(self.now);
            }
        }
        for chain in self.chains.values_mut() {
            chain.congest(self.now, Congestion::default()).expect("room for everyone is never refused");
        }
        self.work();
    }

    /// What happened so far.
    pub fn chronicle(&self) -> &Chronicle {
        &self.chronicle
    }

    /// Answers a request to `/v1` or `/sandbox`, whatever is abroad. For worlds whose deliveries stay inside.
    pub fn respond(&mut self, now: Timestamp, request: &Request<'_>) -> Response {
        match self.call(now, request) {
            Progress::Done(response) => response,
            Progress::Waiting(journey) => self.hurry(journey),
        }
    }

    /// Answers a request to `/v1` or `/sandbox`. Who may use `/sandbox` is the host's to say.
    ///
    /// A call that moves the clock stops wherever something goes abroad: the host waits for a landing and
    /// then calls [`Sandbox::go_on`].
    pub fn call(&mut self, now: Timestamp, request: &Request<'_>) -> Progress {
        self.advance_to(now);
        let at = self.now;
        // The journey of a clock is written down by what happens on it.
        let place = self.record.as_ref().map(|record| record.seen.len());
        let progress = self.answer(request);
        if let (Some(place), Progress::Done(response), Some(record)) = (place, &progress, &mut self.record) {
            // An act comes before what it caused.
            let seen = witness::Seen { at, what: witness::What::Call(Box::new(written(request, response))) };
            record.seen.insert(place.min(record.seen.len()), seen);
        }
        progress
    }

    fn answer(&mut self, request: &Request<'_>) -> Progress {
        let mut progress = if is_sandbox(request.path) {
            api::respond(self, request, None)
        } else {
            let other = self.tamper.as_mut().and_then(|tamper| tamper.request(self.now, request));
            let response = match other {
                Some(other) => self.desk.request(self.now, &other.borrow()),
                None => self.desk.request(self.now, request),
            };
            self.follow(request);
            Progress::Done(response)
        };
        if let (Progress::Done(response), Some(tamper)) = (&mut progress, &mut self.tamper) {
            tamper.response(self.now, request, response);
        }
        progress
    }

    /// What a request to the service caused is part of its own moment. One that only reads causes nothing, unless
    /// somebody made a wrong service of this one.
    fn follow(&mut self, request: &Request<'_>) {
        if self.tamper.is_some() || !matches!(request.method, "GET" | "HEAD") {
            self.work();
        }
    }

    /// Who asks, for a request that is answered by [`Sandbox::call_as`]; or the refusal as it goes back.
    pub fn admit(&mut self, now: Timestamp, authorization: Option<&[u8]>) -> Result<Guest, Response> {
        self.advance_to(now);
        let admission = self.desk.admit(self.now, authorization)?;
        Ok(Guest { admission, era: self.era })
    }

    /// Answers a request of a key that was admitted, which does not count again. Of `/sandbox` it reaches what
    /// belongs to the key's account and mode, and the clock.
    pub fn call_as(&mut self, now: Timestamp, guest: &Guest, request: &Request<'_>) -> Progress {
        self.advance_to(now);
        if guest.era != self.era {
            // Numbers of an earlier world name others in this one, or nobody.
            let gone = ApiError::conflict("Another world began, and the key is gone with its own.");
            return Progress::Done(Response::refusal(&gone));
        }
        if is_sandbox(request.path) {
            let who = guest.admission.principal;
            return api::respond(self, request, Some((who.account, who.mode)));
        }
        let response = self.desk.request_of(self.now, &guest.admission, request);
        self.follow(request);
        Progress::Done(response)
    }

    /// Deliveries that go outside the simulated network: the host posts each once.
    pub fn take_outgoing(&mut self) -> Vec<Dispatch> {
        std::mem::take(&mut self.outgoing)
    }

    /// Deliveries outside the simulated network whose end is not known yet.
    pub fn abroad(&self) -> usize {
        self.abroad.len()
    }

    /// A delivery that the host posted has ended. One of an earlier world, or from before a restart,
    /// is forgotten.
    pub fn on_landing(&mut self, now: Timestamp, ticket: Ticket, landing: Landing) {
        self.advance_to(now);
        if let Some((account, mode, post)) = self.abroad.remove(&ticket) {
            self.land(account, mode, &post, landing);
            self.work();
        }
    }

    /// The host looked a name up: an endpoint's address is judged by it when it is saved.
    pub fn learn_name(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.names.insert(host.to_owned(), Known::Addresses(addresses));
    }

    /// The host has a way of its own to this name, so nobody is asked what it resolves to.
    pub fn vouch_for(&mut self, host: &str) {
        self.names.insert(host.to_owned(), Known::OwnWay);
    }

    /// Whether an endpoint may be saved: nothing its host means may be private.
    fn judge_endpoint(&self, url: &str) -> Result<(), ApiError> {
        let wrong = |why: String| ApiError::field("url", format!("The url field is invalid: {why}."));
        let url = address_rule::judge_url(url).map_err(|refusal| wrong(refusal.to_string()))?;
        let host = url.host().to_string();
        let addresses = match url.host() {
            _ if url.is_simulated() => self.network.resolve(&host),
            _ if self.setup.reach == Reach::Simulated => {
                return Err(wrong(format!(
                    "this world posts to hosts of the simulated network only, such as shop.sim, not to {host}"
                )));
            }
            Host::Address(ip) => vec![*ip],
            Host::Name(_) => match self.names.get(&host) {
                Some(Known::OwnWay) => return Ok(()),
                Some(Known::Addresses(addresses)) => addresses.clone(),
                None => Vec::new(),
            },
        };
        address_rule::judge_resolved(&addresses).map_err(|refusal| wrong(format!("{host}: {refusal}")))
    }

    fn service(&self) -> &Service {
        self.desk.service()
    }

    fn act(&mut self, account: AccountNo, mode: Mode, act: Act) -> Result<Done, ApiError> {
        self.desk.action(self.now, Action { account, mode, act })
    }

    fn create_keys(&mut self, account: AccountNo) -> FirstKeys {
        let [live, test] = Mode::ALL.map(|mode| match self.act(account, mode, Act::CreateKey) {
            Ok(Done::Key(_, text)) => text.reveal().to_owned(),
            other => unreachable!("making a key gives a key, not {other:?}"),
        });
        FirstKeys { live, test }
    }

    /// The service stops and starts again from what it was told.
    fn restart(&mut self) -> Result<(), ApiError> {
        self.desk.restart(self.now)?;
        self.note(What::Restart);
        if let Some(record) = &mut self.record {
            record.note(self.now, witness::What::Restarted);
        }
        if let Some(tamper) = &mut self.tamper {
            tamper.restarted(self.now);
        }
        self.outgoing.clear();
        let flights = self.network.cut().into_iter().map(|flight| (flight.account, flight.mode, flight.post));
        let lost: Vec<_> = flights.chain(std::mem::take(&mut self.abroad).into_values()).collect();
        for (account, mode, post) in lost {
            self.note_post(account, mode, &post, &Ended::Lost, None);
        }
        Ok(())
    }

    fn note(&mut self, what: What) {
        if !self.terse {
            self.chronicle.note(self.now, what);
        }
    }

    fn note_reorg(&mut self, mode: Mode, asset: Asset, depth: u32) {
        self.note(What::Reorg { mode: mode.as_str(), asset: asset.code(), depth });
    }
}

fn is_sandbox(path: &str) -> bool {
    path == "/sandbox" || path.starts_with("/sandbox/")
}

/// A post without its body, which is on its way.
pub(crate) fn label_of(post: &Post) -> Post {
    Post {
        delivery: post.delivery,
        id: post.id,
        endpoint: post.endpoint,
        url: post.url.clone(),
        kind: post.kind,
        secret: post.secret.clone(),
        body: Vec::new(),
        attempt: post.attempt,
    }
}
