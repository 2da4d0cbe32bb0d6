//! The service itself, driven through its doors, and what an outsider got to know of it: ids, answers, secrets.

use std::collections::BTreeMap;

use reference_core::{
    account::{AccountKind, Settings},
    action::{Act, Action, Done, Seen, SettingsDraft, Visit},
    asset::Asset,
    book::{self, Post},
    dialect::Dialect,
    draw::Seed,
    error::ApiError,
    event::EventType,
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
use serde_json::{Map, Value, json};
use simulator::{
    model::money,
    tamper::{OwnRequest, Sent, Tamper},
};

use crate::{
    deed::{ACCOUNTS, Answer, Astray, By, Deed, Name, Notice, Place, Pricing, Read, Reader},
    rules::atto_per_unit,
    world::{Beat, COINS, CURRENCIES, Desire, Due, OPENING, World, first_rate},
};

pub(crate) const BASE: &str = "https://api.svc.example";
/// Who may get mail in test mode.
const MEMBER: &str = "ada@acme.example";
const STRANGER: &str = "eve@shop.example";
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
    keys: [String; 4],
    /// Keys of those who only look: what they read moves nobody else's place in a list.
    eyes: [String; 4],
    pub(crate) ids: [Ids; 4],
    /// Answers that were kept.
    kept: Vec<Response>,
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

fn euros(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
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

    fn act(&mut self, place: Place, act: Act) -> Result<Done, ApiError> {
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

    fn request(
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

    fn write(&mut self, deed: &Deed, world: &World) -> Verdict {
        let (status, response) = match self.request_of(deed, world) {
            Some(request) => {
                let response = self.send(&request);
                (response.status, Some(response))
            }
            None => (self.door(deed, world), None),
        };
        let told = |response: &Option<Response>| {
            response.as_ref().map_or(String::new(), |it| String::from_utf8_lossy(&it.body).into_owned())
        };
        let is_replay =
            |response: &Response| response.headers.contains(&("idempotent-replayed", "true".to_owned()));
        match world.due {
            Due::Nothing => Err(format!("nobody knows what to answer {deed:?}")),
            Due::Status(expected) if expected != status => {
                Err(format!("it is answered {status}, not {expected} {}", told(&response)))
            }
            Due::Status(_) => {
                if response.as_ref().is_some_and(is_replay) {
                    return Err("a new request is answered as a repeated one".to_owned());
                }
                if let Some(response) = response.filter(|response| response.status < 300)
                    && once(deed).is_some()
                {
                    self.kept.push(response);
                }
                Ok(())
            }
            Due::Replay(nth) => {
                let response = response.expect("only requests are repeated");
                let first = self.kept.get(nth).ok_or("the first answer was not kept")?;
                if !is_replay(&response) {
                    return Err("a repeated request is done again".to_owned());
                }
                if (response.status, &response.body) != (first.status, &first.body) {
                    return Err(format!(
                        "a repeated request is answered otherwise: {}",
                        told(&Some(response))
                    ));
                }
                Ok(())
            }
        }
    }

    /// What a client sends; nothing for what is done in the dashboard or on a hosted page.
    fn request_of(&self, deed: &Deed, world: &World) -> Option<OwnRequest> {
        let charge = |name: &Name| self.id(*name, world);
        let post = |who: &Place, path: String, body: Option<Value>, once: &Option<u8>| {
            Some(self.request("POST", *who, &path, body, *once))
        };
        match deed {
            Deed::Open { who, asset, cents, currency, link, once, .. } => {
                let mut body = Map::new();
                body.insert("asset".to_owned(), json!(asset.code()));
                if *cents > 0 {
                    body.insert("amount".to_owned(), json!(euros(*cents)));
                }
                match link {
                    Some(link) => body.insert("payment_link".to_owned(), json!(self.id(*link, world))),
                    None => body.insert("currency".to_owned(), json!(currency.code())),
                };
                post(who, "/v1/charges".to_owned(), Some(Value::Object(body)), once)
            }
            Deed::Cancel { by: By::Key(who), charge: name, once } => {
                post(who, format!("/v1/charges/{}/cancel", charge(name)), None, once)
            }
            Deed::Refund { who, charge: name, units, once } => {
                let amount = money::written(*units, world.charge(*name).asset);
                post(
                    who,
                    format!("/v1/charges/{}/refunds", charge(name)),
                    Some(json!({"amount": amount})),
                    once,
                )
            }
            Deed::Issue { who, cents, reader, send, once, .. } => {
                let mut body = json!({"amount": euros(*cents), "currency": "EUR", "send_email": send});
                match reader {
                    Reader::Nobody => {}
                    Reader::Member => body["customer_email"] = json!(MEMBER),
                    Reader::Stranger => body["customer_email"] = json!(STRANGER),
                }
                post(who, "/v1/invoices".to_owned(), Some(body), once)
            }
            Deed::Send { by: By::Key(who), invoice } => {
                post(who, format!("/v1/invoices/{}/send", charge(invoice)), None, &None)
            }
            Deed::Void { by: By::Key(who), invoice } => {
                post(who, format!("/v1/invoices/{}/void", charge(invoice)), None, &None)
            }
            Deed::MakeLink { who, pricing, only, max, lasts, .. } => {
                let mut body = json!({"title": "Tea", "currency": "EUR", "max_payments": max});
                match pricing {
                    Pricing::Fixed(cents) => {
                        (body["pricing_type"], body["amount"]) = (json!("fixed"), json!(euros(*cents)));
                    }
                    Pricing::Open { min, max } => {
                        body["pricing_type"] = json!("open");
                        (body["min_amount"], body["max_amount"]) = (json!(euros(*min)), json!(euros(*max)));
                    }
                }
                if let Some(only) = only {
                    body["accepted_assets"] = json!([only.code()]);
                }
                if let Some(lasts) = lasts {
                    body["expires_at"] = json!(self.now.plus(*lasts).to_string());
                }
                post(who, "/v1/payment-links".to_owned(), Some(body), &None)
            }
            Deed::Limit { who, link, max } => {
                let path = format!("/v1/payment-links/{}", charge(link));
                Some(self.request("PATCH", *who, &path, Some(json!({"max_payments": max})), None))
            }
            Deed::Archive { who, link, on } => {
                let path = format!("/v1/payment-links/{}/archive", charge(link));
                Some(self.request(if *on { "POST" } else { "DELETE" }, *who, &path, None, None))
            }
            _ => None,
        }
    }

    /// The status of what is done in the dashboard or on a hosted page.
    fn door(&mut self, deed: &Deed, world: &World) -> u16 {
        let code = |stage: &Stage, name: &Name| Code::parse(&stage.id(*name, world)).expect("a code");
        let act = |stage: &mut Stage, name: &Name, act: Act| {
            let (place, _) = world.home(*name);
            stage.act(place, act).map(drop)
        };
        let done = match deed {
            Deed::Cancel { by: By::Owner, charge, .. } => {
                let id = code(self, charge);
                act(self, charge, Act::CancelCharge(id))
            }
            Deed::Accept { charge, txid } => {
                let id = code(self, charge);
                let txid = txid.map(|txid| format!("t{txid}"));
                act(self, charge, Act::AcceptLate { charge: id, txid })
            }
            Deed::Send { by: By::Owner, invoice } => {
                let id = code(self, invoice);
                act(self, invoice, Act::SendInvoice(id))
            }
            Deed::Void { by: By::Owner, invoice } => {
                let id = code(self, invoice);
                act(self, invoice, Act::VoidInvoice(id))
            }
            Deed::View { invoice } => self.visit(Visit::ViewInvoice(code(self, invoice))),
            Deed::Choose { invoice, asset, .. } => {
                let invoice = code(self, invoice);
                self.visit(Visit::ChooseCoin { invoice, asset: *asset })
            }
            Deed::ViewLink { link } => self.visit(Visit::ViewLink(code(self, link))),
            Deed::PayLink { link, asset, cents, .. } => {
                let choice = reference_core::call::Choice {
                    asset: *asset,
                    amount: cents
                        .map(|cents| reference_core::money::Fiat::from_minor(cents).expect("a price")),
                    customer: reference_core::charge::Customer::default(),
                    custom_fields: Vec::new(),
                };
                let link = code(self, link);
                self.visit(Visit::PayLink { link, choice: Box::new(choice) })
            }
            Deed::Hook { of, kinds, .. } => {
                let url = format!("https://hook{}.example/", self.ids[of.0].hooks.len());
                let done = self.act(*of, Act::AddEndpoint { url, events: chosen(*kinds) });
                done.map(|done| self.learn_hook(*of, &done))
            }
            Deed::Choices { hook, kinds } => {
                let events = Some(chosen(*kinds));
                self.at_hook(hook, world, |id| Act::ChangeEndpoint { id, url: None, events, enabled: None })
            }
            Deed::Switch { hook, on } => {
                let enabled = Some(*on);
                self.at_hook(hook, world, |id| Act::ChangeEndpoint { id, url: None, events: None, enabled })
            }
            Deed::Unhook { hook } => self.at_hook(hook, world, Act::RemoveEndpoint),
            Deed::Test { hook } => self.at_hook(hook, world, Act::SendTest),
            Deed::Rotate { hook } => {
                let (place, no) = world.home(*hook);
                let id = self.ids[place.0].hooks[no];
                let done = self.act(place, Act::RotateSecret(id));
                done.map(|done| self.learn_hook(place, &done))
            }
            Deed::Resend { of, delivery } => {
                let id = self.ids[of.0].deliveries[*delivery];
                self.act(*of, Act::Resend(id)).map(drop)
            }
            _ => unreachable!("no door for {deed:?}"),
        };
        done.map_or_else(|error| error.status(), |()| 200)
    }

    fn at_hook(&mut self, hook: &Name, world: &World, act: impl FnOnce(Code) -> Act) -> Result<(), ApiError> {
        let (place, no) = world.home(*hook);
        let id = self.ids[place.0].hooks[no];
        self.act(place, act(id)).map(drop)
    }

    fn visit(&mut self, visit: Visit) -> Result<(), ApiError> {
        match self.service.on_visit(self.now, visit)? {
            Seen::Page | Seen::Charge(..) => Ok(()),
        }
    }

    fn learn_hook(&mut self, place: Place, done: &Done) {
        let Done::Endpoint(no) = done else { panic!("an endpoint was asked for: {done:?}") };
        let endpoint = self.book(place).endpoint(*no);
        let (id, secret) = (endpoint.id, endpoint.secret.reveal().to_owned());
        let ids = &mut self.ids[place.0];
        if !ids.hooks.contains(&id) {
            ids.hooks.push(id);
        }
        ids.secrets.push(secret);
    }

    /// The public id of an object.
    fn id(&self, name: Name, world: &World) -> String {
        let (place, no) = world.home(name);
        let ids = &self.ids[place.0];
        match name.0 {
            'c' => &ids.charges[no],
            'i' => &ids.invoices[no],
            'l' => &ids.links[no],
            other => unreachable!("{other} has no public id"),
        }
        .clone()
    }
}

fn chosen(kinds: u16) -> std::collections::BTreeSet<EventType> {
    EventType::ALL
        .into_iter()
        .enumerate()
        .filter(|(no, _)| kinds & (1 << no) != 0)
        .map(|(_, kind)| kind)
        .collect()
}

/// The idempotency key of a deed.
fn once(deed: &Deed) -> Option<u8> {
    match deed {
        Deed::Open { once, .. }
        | Deed::Cancel { by: By::Key(_), once, .. }
        | Deed::Refund { once, .. }
        | Deed::Issue { once, .. } => *once,
        _ => None,
    }
}
