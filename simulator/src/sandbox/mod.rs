//! A service, its chains and its simulated network: the one thing that both hosts own.
//!
//! Time moves only forward, and only when a host says so. On the way everything that is due happens,
//! in order of time; at the same microsecond rate locks end first, then the chains are seen, then
//! answers to posts arrive, then new posts leave.

mod api;
mod desk;
mod happening;
mod journey;
mod market;
mod money;

use std::{collections::BTreeMap, net::IpAddr};

use desk::Desk;
pub use happening::{Chronicle, Happening, What};
pub use journey::{Journey, Progress};
use reference_core::{
    account::{AccountKind, Settings},
    action::{Act, Action, Done},
    asset::Asset,
    book::{Notice, Post},
    dialect::Dialect,
    draw::Seed,
    endpoint::address_rule::{self, Host},
    error::ApiError,
    event::Subject,
    id::{AccountNo, DeliveryNo},
    mode::Mode,
    outbox::{DeliveryState, Landing, Outcome},
    service::{Admission, Quota, Service, Start},
    sighting::{Depth, Sighting},
    time::Timestamp,
    wire::{
        DetailsView,
        http::{Request, Response},
    },
};
use serde_json::value::to_raw_value;

use crate::{
    chain::Chain,
    network::{Flight, Network},
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

/// A service, its chains and its simulated network, at one moment.
pub struct Sandbox {
    setup: Setup,
    now: Timestamp,
    desk: Desk,
    chains: BTreeMap<(Mode, Asset), Chain>,
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
    heading: Option<Timestamp>,
    /// The only book that the call that is being answered reaches.
    within: Option<api::Within>,
    /// What the host last found real names to mean.
    names: BTreeMap<String, Known>,
    chronicle: Chronicle,
    /// Confirmations of each transfer as last noticed; nothing when it is gone.
    noticed: BTreeMap<(String, u32), Option<u32>>,
    first_keys: FirstKeys,
}

impl Sandbox {
    /// A new world: one account with wallets and a key in each mode, and a market.
    pub fn new(setup: &Setup) -> Sandbox {
        let mut settings = Settings::new("Acme");
        settings.members = vec!["owner@acme.example".to_owned()];
        Sandbox::with_account(setup, settings)
    }

    fn with_account(setup: &Setup, settings: Settings) -> Sandbox {
        let start = Start {
            seed: setup.seed,
            dialect: setup.dialect.clone(),
            public_url: setup.public_url.clone(),
            rate_limit: setup.rate_limit,
        };
        let mut chains = BTreeMap::new();
        for mode in Mode::ALL {
            for asset in Asset::ALL {
                chains.insert((mode, asset), Chain::new(setup.seed, mode, asset, setup.start));
            }
        }
        let none = FirstKeys { live: String::new(), test: String::new() };
        let mut sandbox = Sandbox {
            setup: setup.clone(),
            now: setup.start,
            desk: Desk::new(start, setup.journal),
            chains,
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

    /// What happened so far.
    pub fn chronicle(&self) -> &Chronicle {
        &self.chronicle
    }

    /// When something will happen by itself; nothing if the world is at rest.
    pub fn next_due(&self) -> Option<Timestamp> {
        let chains = self.chains.values().filter_map(Chain::next_due);
        chains.chain(self.network.next_due()).chain(self.desk.service().next_tick()).min()
    }

    /// Lets everything happen that is due up to `now`, each at its own time.
    pub fn advance_to(&mut self, now: Timestamp) {
        while let Some(due) = self.next_due()
            && due <= now
        {
            self.now = self.now.max(due);
            self.work();
        }
        self.now = self.now.max(now);
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
        if is_sandbox(request.path) {
            return api::respond(self, request, None);
        }
        let response = self.desk.request(self.now, request);
        // What the request caused is part of its own moment.
        self.work();
        Progress::Done(response)
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
        self.work();
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

    /// Everything that is due at this moment, until nothing is.
    fn work(&mut self) {
        loop {
            if self.service().next_tick().is_some_and(|due| due <= self.now) {
                self.desk.tick(self.now);
            }
            self.note_news();
            let mut quiet = self.watch_chains();
            while let Some(Flight { account, mode, post, outcome }) = self.network.land(self.now) {
                self.land(account, mode, &post, outcome.into());
                quiet = false;
            }
            while let Some((account, mode, post)) = self.desk.poll(self.now) {
                if post.url.is_simulated() || self.setup.reach == Reach::Simulated {
                    self.network.post(self.now, (account, mode, post));
                } else {
                    self.tickets += 1;
                    let ticket = Ticket(self.tickets);
                    self.abroad.insert(ticket, (account, mode, label_of(&post)));
                    self.outgoing.push(Dispatch { ticket, account, mode, post });
                }
                quiet = false;
            }
            if quiet {
                return;
            }
        }
    }

    /// Hands what the chains show to the service. Says whether there was nothing.
    fn watch_chains(&mut self) -> bool {
        let mut seen = Vec::new();
        for chain in self.chains.values_mut() {
            if chain.next_due().is_some_and(|due| due <= self.now) {
                seen.extend(chain.advance(self.now).into_iter().map(|(_, sighting)| sighting));
            }
        }
        if !seen.is_empty() {
            for sighting in &seen {
                self.note_transfer(sighting);
            }
            self.desk.sightings(self.now, &seen);
            self.note_news();
        }
        seen.is_empty()
    }

    fn land(&mut self, account: AccountNo, mode: Mode, post: &Post, landing: Landing) {
        let outcome = landing.outcome.clone();
        self.desk.outcome(self.now, (account, mode), post.delivery, landing);
        let next_at = match self.delivery_state(account, mode, post.delivery) {
            DeliveryState::Waiting(at) => Some(at.to_string()),
            _ => None,
        };
        let answer = match outcome {
            Outcome::Answered(status) => status.to_string(),
            Outcome::Unreachable(_) => "unreachable".to_owned(),
            Outcome::TimedOut => "timeout".to_owned(),
            Outcome::Refused(why) => format!("refused: {why}"),
        };
        self.note_post(account, mode, post, answer, next_at);
        self.note_news();
    }

    fn delivery_state(&self, account: AccountNo, mode: Mode, no: DeliveryNo) -> DeliveryState {
        self.service().account(account).book(mode).outbox().get(no).state
    }

    /// The service stops and starts again from what it was told.
    fn restart(&mut self) -> Result<(), ApiError> {
        self.desk.restart(self.now)?;
        self.note(What::Restart);
        self.outgoing.clear();
        let flights = self.network.cut().into_iter().map(|flight| (flight.account, flight.mode, flight.post));
        let lost: Vec<_> = flights.chain(std::mem::take(&mut self.abroad).into_values()).collect();
        for (account, mode, post) in lost {
            self.note_post(account, mode, &post, "lost".to_owned(), None);
        }
        Ok(())
    }

    fn note(&mut self, what: What) {
        self.chronicle.note(self.now.to_string(), what);
    }

    fn note_reorg(&mut self, mode: Mode, asset: Asset, depth: u32) {
        self.note(What::Reorg { mode: mode.as_str(), asset: asset.code(), depth });
    }

    fn note_post(
        &mut self,
        account: AccountNo,
        mode: Mode,
        post: &Post,
        answer: String,
        next_at: Option<String>,
    ) {
        let account = self.service().account(account);
        let book = account.book(mode);
        let parcel = &book.outbox().get(post.delivery).parcel;
        let subject = parcel.event.map(|(no, _)| code_of(book, book.events().get(no).subject));
        let what = What::Post {
            mode: mode.as_str(),
            account: account.id.clone(),
            endpoint: book.endpoint(post.endpoint).id.to_string(),
            host: post.url.host().to_string(),
            delivery: post.id.to_string(),
            event: parcel.event.map(|(_, id)| id.to_string()),
            kind: post.kind.as_str(),
            subject,
            attempt: post.attempt,
            answer,
            next_at,
        };
        self.note(what);
    }

    fn note_transfer(&mut self, sighting: &Sighting) {
        let required = sighting.asset.required_confirmations(sighting.mode);
        let place = (sighting.txid.clone(), sighting.output);
        let before = self.noticed.get(&place).copied();
        let confirmed = |n: u32| n >= required;
        let (after, state) = match (before, sighting.depth) {
            (_, Depth::Gone(why)) => (None, Some(why.as_str())),
            (None | Some(None), Depth::Confirmations(n)) => (Some(n), Some("seen")),
            (Some(Some(old)), Depth::Confirmations(n)) => {
                let state = match (confirmed(old), confirmed(n)) {
                    (false, true) => Some("confirmed"),
                    _ if n < old => Some("unconfirmed"),
                    _ => None,
                };
                (Some(n), state)
            }
        };
        let first_is_confirmed = state == Some("seen") && after.is_some_and(confirmed);
        self.noticed.insert(place, after);
        for state in state.into_iter().chain(first_is_confirmed.then_some("confirmed")) {
            let charge = self.service().books().filter(|(_, mode, _)| *mode == sighting.mode).find_map(
                |(_, _, book)| {
                    let charge = book.charge(book.charge_at(&sighting.address)?);
                    (charge.terms.asset == sighting.asset).then(|| charge.code.to_string())
                },
            );
            self.note(What::Transfer {
                mode: sighting.mode.as_str(),
                asset: sighting.asset.code(),
                txid: sighting.txid.clone(),
                output: sighting.output,
                address: sighting.address.clone(),
                charge,
                amount: sighting.amount.to_string(),
                state,
                confirmations: after.unwrap_or(0),
                required,
            });
        }
    }

    /// Writes down what the service has to tell.
    fn note_news(&mut self) {
        for (account, mode, notice) in self.desk.take_notices() {
            let account = self.service().account(account);
            let book = account.book(mode);
            let (mode, account) = (mode.as_str(), account.id.clone());
            let what = match notice {
                Notice::Event(no) => {
                    let event = book.events().get(no);
                    What::Event {
                        mode,
                        account,
                        event: event.id.to_string(),
                        kind: event.kind.as_str(),
                        subject: code_of(book, event.subject),
                        details: to_raw_value(&DetailsView(&event.details)).expect("details are JSON"),
                    }
                }
                Notice::Mail { to, kind, invoice } => What::Mail {
                    mode,
                    account,
                    to,
                    kind: kind.as_str(),
                    invoice: book.invoice(invoice).code.to_string(),
                },
                Notice::EndpointOff(no) => {
                    let endpoint = book.endpoint(no);
                    let host = endpoint.url.host().to_string();
                    What::EndpointOff { mode, account, endpoint: endpoint.id.to_string(), host }
                }
            };
            self.note(what);
        }
    }
}

fn is_sandbox(path: &str) -> bool {
    path == "/sandbox" || path.starts_with("/sandbox/")
}

/// A post without its body, which is on its way.
fn label_of(post: &Post) -> Post {
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

fn code_of(book: &reference_core::book::Book, subject: Subject) -> String {
    match subject {
        Subject::Charge(no) => book.charge(no).code.to_string(),
        Subject::Invoice(no) => book.invoice(no).code.to_string(),
    }
}
