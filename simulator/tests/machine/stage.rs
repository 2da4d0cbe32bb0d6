//! The service itself, driven through its doors, and what an outsider got to know of it: ids, answers, secrets.

use std::collections::BTreeMap;

use reference_core::{
    account::{AccountKind, Settings},
    action::{Act, Action, Done, SettingsDraft},
    asset::Asset,
    book::{self, Post},
    dialect::Dialect,
    draw::Seed,
    error::ApiError,
    id::{AccountNo, Code},
    mode::Mode,
    money::{Coin, Percent, Rate},
    outbox::Outcome,
    service::{Service, Start},
    sighting::Sighting,
    time::Timestamp,
    wallet::Vault,
    wire::http::{self, Response},
};
use serde_json::Value;
use simulator::tamper::{OwnRequest, Sent, Tamper};

use crate::{
    deed::{ACCOUNTS, Answer, Astray, Deed, Notice, Place, Read},
    rules::atto_per_unit,
    world::{Beat, COINS, CURRENCIES, Desire, OPENING, World, first_rate},
};

pub(crate) const BASE: &str = "https://api.svc.example";
/// Who may get mail in test mode.
pub(crate) const MEMBER: &str = "ada@acme.example";
pub(crate) const STRANGER: &str = "eve@shop.example";
const SEED: Seed = Seed(7);

/// What is not as it must be.
pub(crate) type Verdict = Result<(), String>;

/// The ids of what a book holds, in order of creation.
#[derive(Default)]
pub(crate) struct Ids {
    pub(crate) charges: Vec<String>,
    pub(crate) addresses: Vec<String>,
    pub(crate) invoices: Vec<String>,
    pub(crate) links: Vec<String>,
    pub(crate) events: Vec<String>,
    pub(crate) hooks: Vec<Code>,
    pub(crate) secrets: Vec<String>,
    pub(crate) deliveries: Vec<uuid::Uuid>,
}

/// A service, and somebody between it and the world.
pub(crate) struct Stage {
    pub(crate) service: Service,
    tamper: Box<dyn Tamper>,
    pub(crate) now: Timestamp,
    accounts: [AccountNo; 2],
    pub(crate) keys: [String; 4],
    /// Keys of those who only look: what they read moves nobody else's place in a list.
    eyes: [String; 4],
    pub(crate) ids: [Ids; 4],
    /// Answers that were kept.
    pub(crate) kept: Vec<Response>,
    /// Where each reader goes next.
    next: BTreeMap<Desire, Option<String>>,
    flying: BTreeMap<(Place, usize), Post>,
    /// Counts deeds, so that not every filter is tried after each.
    pub(crate) deeds: usize,
    /// What was read last, and found to be right.
    pub(crate) read: BTreeMap<(Place, Read), (Vec<u8>, String)>,
}

/// Nobody in between.
pub(crate) struct Honest;

impl Tamper for Honest {}

/// What watchers say of a notice.
pub(crate) fn sighting(notice: &Notice, asset: Asset, home: Place, address: &str) -> Sighting {
    let other = |mode| if mode == Mode::Live { Mode::Test } else { Mode::Live };
    let (mut mode, mut coin) = (home.mode(), asset);
    match notice.astray {
        Astray::No => {}
        Astray::Coin => coin = if asset == Asset::Usdt { Asset::Eth } else { Asset::Usdt },
        Astray::Mode => mode = other(mode),
    }
    Sighting {
        mode,
        asset: coin,
        address: address.to_owned(),
        txid: format!("t{}", notice.txid),
        output: notice.output,
        amount: Coin::new(notice.units * atto_per_unit(asset)).expect("an amount"),
        depth: notice.depth,
    }
}

fn parsed(response: &Response) -> (u16, Value) {
    (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
}

impl Stage {
    pub(crate) fn new(vault: &Vault, tamper: Box<dyn Tamper>) -> Stage {
        let start = Start {
            seed: SEED,
            dialect: Dialect::default(),
            public_url: "https://pay.svc.example".to_owned(),
            rate_limit: None,
            vault: Some(vault.clone()),
        };
        let mut service = Service::new(start);
        let accounts = ACCOUNTS.map(|id| {
            let mut settings = Settings::new(id);
            settings.members = vec![MEMBER.to_owned()];
            service.open_account(OPENING, id, AccountKind::Personal, settings).expect("a new slug")
        });
        for asset in COINS {
            for currency in CURRENCIES {
                service.on_rate(OPENING, asset, currency, Rate::from_units(first_rate(asset)));
            }
        }
        let mut stage = Stage {
            service,
            tamper,
            now: OPENING,
            accounts,
            keys: Default::default(),
            eyes: Default::default(),
            ids: Default::default(),
            kept: Vec::new(),
            next: BTreeMap::new(),
            flying: BTreeMap::new(),
            deeds: 0,
            read: BTreeMap::new(),
        };
        for place in Place::ALL {
            stage.keys[place.0] = stage.new_key(place);
            stage.eyes[place.0] = stage.new_key(place);
        }
        stage
    }

    pub(crate) fn account(&self, place: Place) -> AccountNo {
        self.accounts[place.account()]
    }

    pub(crate) fn book(&self, place: Place) -> &book::Book {
        self.service.account(self.account(place)).book(place.mode())
    }

    pub(crate) fn act(&mut self, place: Place, act: Act) -> Result<Done, ApiError> {
        let action = Action { account: self.account(place), mode: place.mode(), act };
        self.service.on_action(self.now, action)
    }

    fn new_key(&mut self, place: Place) -> String {
        match self.act(place, Act::CreateKey) {
            Ok(Done::Key(_, text)) => text.reveal().to_owned(),
            other => panic!("a key was asked for: {other:?}"),
        }
    }

    /// A request through whoever stands in between.
    pub(crate) fn send(&mut self, request: &OwnRequest) -> Response {
        let other = self.tamper.request(self.now, &request.borrow());
        let asked = other.as_ref().unwrap_or(request);
        let mut response = http::respond(&mut self.service, self.now, &asked.borrow());
        self.tamper.response(self.now, &request.borrow(), &mut response);
        response
    }

    /// What somebody reads who only looks.
    pub(crate) fn read(&mut self, place: Place, target: &str) -> Response {
        let mut request = self.request("GET", place, target, None, None);
        request.authorization = Some(format!("Bearer {}", self.eyes[place.0]).into_bytes());
        self.send(&request)
    }

    /// The same, as JSON.
    pub(crate) fn get(&mut self, place: Place, target: &str) -> (u16, Value) {
        parsed(&self.read(place, target))
    }

    /// What one of the deeds' people reads.
    fn ask(&mut self, who: Place, target: &str) -> (u16, Value) {
        let response = self.send(&self.request("GET", who, target, None, None));
        parsed(&response)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        who: Place,
        target: &str,
        body: Option<Value>,
        once: Option<u8>,
    ) -> OwnRequest {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        OwnRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            authorization: Some(format!("Bearer {}", self.keys[who.0]).into_bytes()),
            content_type: body.as_ref().map(|_| b"application/json".to_vec()),
            idempotency_key: once.map(|once| format!("key-{once}").into_bytes()),
            base: BASE.to_owned(),
            body: body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
        }
    }

    /// Does a deed, as people, watchers, receivers and hosts do it. `world` is how everything must be afterwards.
    pub(crate) fn play(&mut self, deed: &Deed, world: &World) -> Verdict {
        self.deeds += 1;
        for beat in &world.beats {
            self.beat(*beat, world)?;
        }
        self.now = world.now;
        match deed {
            Deed::Rate { asset, currency, units } => {
                self.service.on_rate(self.now, *asset, *currency, units.and_then(Rate::from_units));
            }
            Deed::Bounds { account, tolerance, threshold } => {
                let draft = SettingsDraft {
                    underpayment_tolerance: Some(Percent::hundredths(*tolerance)),
                    overpayment_threshold: Some(Percent::hundredths(*threshold)),
                    ..SettingsDraft::default()
                };
                let done = self.act(Place(account * 2), Act::ChangeSettings(Box::new(draft)));
                done.map_err(|error| format!("settings are refused: {error:?}"))?;
            }
            Deed::Restart => {
                self.service.restart(self.now);
                self.flying.clear();
                self.tamper.restarted(self.now);
            }
            Deed::NewKey(place) => self.rekey(*place)?,
            Deed::Tell(notices) => {
                let mut heard: Vec<Sighting> =
                    notices.iter().map(|notice| self.sighting(notice, world)).collect();
                let at = self.tamper.sightings(self.now, &mut heard);
                self.now = at;
                self.service.on_sightings(at, &heard);
            }
            Deed::Turn { who, list, per_page } => self.turn((*who, *list, *per_page), world)?,
            Deed::Number { who, list, per_page, page } => {
                let target = format!("{}?page={page}&per_page={per_page}", list.path());
                let (status, shown) = self.ask(*who, &target);
                if status != 200 {
                    return Err(format!("{target} is answered {status}: {shown}"));
                }
                self.check_page((*who, *list, *per_page), world.numbered, &shown)?;
            }
            Deed::Land { of, delivery, answer } => {
                let post = self.flying.remove(&(*of, *delivery)).ok_or("it is not in flight")?;
                self.land(*of, &post, *answer);
            }
            Deed::Wait(_)
            | Deed::Oversleep(_)
            | Deed::LockEnd { .. }
            | Deed::Post(_)
            | Deed::PostAll(_)
            | Deed::Take
            | Deed::Exhaust(_) => {}
            _ => self.write(deed, world)?,
        }
        self.learn()
    }

    fn sighting(&self, notice: &Notice, world: &World) -> Sighting {
        let (home, no) = world.home(notice.charge);
        sighting(notice, world.charge(notice.charge).asset, home, &self.ids[home.0].addresses[no])
    }

    fn rekey(&mut self, place: Place) -> Verdict {
        let old = &self.keys[place.0];
        let principal = self.service.keys().find(old.as_bytes()).ok_or("the key is unknown")?;
        let id = self.service.keys().iter().find(|key| key.principal.key == principal).map(|key| key.id);
        let id = id.ok_or("the key has no id")?;
        self.act(place, Act::RevokeKey(id)).map_err(|error| format!("a key stays: {error:?}"))?;
        let (status, _) = self.ask(place, "/v1/account");
        if status != 401 {
            return Err(format!("a revoked key of {place:?} is answered {status}, not 401"));
        }
        self.keys[place.0] = self.new_key(place);
        Ok(())
    }

    fn beat(&mut self, beat: Beat, world: &World) -> Verdict {
        match beat {
            Beat::Wake(at) => {
                self.now = at;
                if self.tamper.wakes(at) {
                    self.service.on_tick(at);
                }
                // What happened is learned at once: a later post of this deed may be of it.
                self.learn()
            }
            Beat::Post { of, delivery, at, attempt, answer } => {
                self.now = at;
                let Some((account, mode, mut post)) = self.service.poll_delivery(at) else {
                    return Err(format!("nothing is posted at {at}; delivery {delivery} of {of:?} is due"));
                };
                let own = post.clone();
                match self.tamper.post(at, mode, &mut post) {
                    Sent::AsItIs => {}
                    Sent::Swallowed => return Err(format!("delivery {delivery} of {of:?} never leaves")),
                    Sent::WithAnother(_) => {
                        return Err(format!("delivery {delivery} of {of:?} leaves twice"));
                    }
                }
                if (account, mode) != (self.account(of), of.mode()) {
                    return Err(format!("a post of account {account:?}, {mode}; one of {of:?} is due"));
                }
                self.check_post(&post, (of, delivery), attempt, world)?;
                match answer {
                    Some(answer) => self.land(of, &own, answer),
                    None => drop(self.flying.insert((of, delivery), own)),
                }
                self.learn()
            }
        }
    }

    fn land(&mut self, of: Place, post: &Post, answer: Answer) {
        let mut outcome = match answer {
            Answer::Status(status) => Outcome::Answered(status),
            Answer::Silence => Outcome::TimedOut,
            Answer::NoConnection => Outcome::Unreachable("connection refused".to_owned()),
        };
        self.tamper.outcome(self.now, post, &mut outcome);
        let book = (self.account(of), of.mode());
        self.service.on_outcome(self.now, book, post.delivery, outcome);
    }

    /// Reads on where the last page of this reading said, or page 1.
    fn turn(&mut self, desire: Desire, world: &World) -> Verdict {
        let (who, list, per_page) = desire;
        let reading = world.readings[&desire];
        let target = match self.next.remove(&desire).flatten() {
            Some(next) => next,
            None => format!("{}?per_page={per_page}", list.path()),
        };
        let (status, page) = self.ask(who, &target);
        if status != 200 {
            return Err(format!("{target} is answered {status}: {page}"));
        }
        let next = page["links"]["next"].as_str().map(|link| link.replacen(BASE, "", 1));
        self.next.insert(desire, next);
        self.check_page(desire, reading, &page)
    }
}
