//! The service under test, driven through its public interfaces, and what a client knows of it: ids, responses,
//! secrets. After each operation everything visible is compared with the model.

use std::{collections::BTreeMap, ops::RangeInclusive};

use bytes::Bytes;
use reference_core::{
    account::{AccountKind, Settings},
    asset::Asset,
    book,
    command::{Command, CommandResult, SettingsDraft},
    dialect::Dialect,
    error::ApiError,
    id::{AccountNo, Code},
    mode::Mode,
    money::{Percent, Rate},
    outbox::{self, AttemptResult},
    rng::Seed,
    service::ServiceConfig,
    sighting::Sighting,
    time::Timestamp,
    wallet::WalletCache,
};
use reference_wire::{Api, AttemptRequest, Response};
use serde_json::Value;
use simulator::{
    invariant::{self, BookReading, Depth, Findings, ModelBook, Reader, local},
    model::{DeliveryState, Ids, List, ObjectContext, PageReader, Reading},
    record::BookId,
    tamper::{OwnedRequest, PostFate, Tamper},
};

use super::{
    op::{Answer, Op, Sighted, height},
    state::{ACCOUNTS, BOOKS, COINS, CURRENCIES, HostStep, MEMBER, OPENING, State, first_rate},
};

const BASE: &str = "https://api.svc.example";
const PUBLIC_URL: &str = "https://pay.svc.example";
const SEED: Seed = Seed(7);

/// The difference from the expected state, if any.
pub(super) type Verdict = Result<(), String>;

/// The knowledge of a client about a book: the ids of its objects, in order of creation, and its keys.
#[derive(Default)]
pub(super) struct KnownBook {
    pub(super) ids: Ids,
    pub(super) hooks: Vec<Code>,
    pub(super) secrets: Vec<String>,
    pub(super) deliveries: Vec<uuid::Uuid>,
    pub(super) key: String,
    /// The observer key, whose reads do not affect the anchors of other keys.
    observer_key: String,
}

/// A post, which is checked when the ids of its objects are known.
struct Posted {
    post: AttemptRequest,
    of: BookId,
    delivery: usize,
    attempt: u32,
}

/// A service, with a tamper between it and the world.
pub(super) struct Driver {
    pub(super) api: Api,
    tamper: Box<dyn Tamper>,
    pub(super) now: Timestamp,
    accounts: Vec<AccountNo>,
    pub(super) known: BTreeMap<BookId, KnownBook>,
    /// The stored responses.
    pub(super) kept: Vec<Response>,
    /// The next link of each reader.
    next: BTreeMap<PageReader, Option<String>>,
    flying: BTreeMap<(BookId, usize), AttemptRequest>,
    posted: Vec<Posted>,
}

/// A tamper that changes nothing.
pub(super) struct NoTamper;

impl Tamper for NoTamper {}

fn parsed(response: &Response) -> (u16, Value) {
    (response.status, serde_json::from_slice(&response.body).unwrap_or_default())
}

fn first(findings: Findings) -> Verdict {
    findings.violations.into_iter().next().map_or(Ok(()), |violation| Err(violation.to_string()))
}

impl Reader for Driver {
    fn get(&mut self, book: BookId, target: &str) -> (u16, Bytes) {
        let mut request = self.request("GET", book, target, None, None);
        request.authorization = Some(format!("Bearer {}", self.known[&book].observer_key).into_bytes());
        let response = self.send(&request);
        (response.status, response.body)
    }
}

impl Driver {
    pub(super) fn new(wallet_cache: &WalletCache, tamper: Box<dyn Tamper>) -> Driver {
        let mut api = Api::new(ServiceConfig {
            seed: SEED,
            dialect: Dialect::default(),
            public_url: PUBLIC_URL.to_owned(),
            rate_limit: None,
            wallet_cache: Some(wallet_cache.clone()),
            key_tag: String::new(),
        });
        let open = |id: &str| {
            let mut settings = Settings::new(id);
            settings.members = vec![MEMBER.to_owned()];
            api.service.open_account(OPENING, id, AccountKind::Personal, settings).expect("a new slug")
        };
        let accounts = ACCOUNTS.map(open).to_vec();
        for asset in COINS {
            for currency in CURRENCIES {
                api.service.on_rate(OPENING, asset, currency, Rate::from_units(first_rate(asset)));
            }
        }
        let mut driver = Driver {
            api,
            tamper,
            now: OPENING,
            accounts,
            known: BOOKS.map(|id| (id, KnownBook::default())).into(),
            kept: Vec::new(),
            next: BTreeMap::new(),
            flying: BTreeMap::new(),
            posted: Vec::new(),
        };
        for id in BOOKS {
            let (key, observer_key) = (driver.new_key(id), driver.new_key(id));
            let known = driver.known.get_mut(&id).expect("every book is known");
            (known.key, known.observer_key) = (key, observer_key);
        }
        driver
    }

    pub(super) fn book(&self, id: BookId) -> &book::Book {
        self.api.service.account(self.accounts[id.0]).book(id.1)
    }

    pub(super) fn act(&mut self, id: BookId, act: impl Into<Command>) -> Result<CommandResult, ApiError> {
        self.api.service.on_command(self.now, (self.accounts[id.0], id.1), act)
    }

    fn new_key(&mut self, id: BookId) -> String {
        match self.act(id, Command::CreateKey) {
            Ok(CommandResult::Key(_, text)) => text.reveal().to_owned(),
            other => panic!("a key was asked for: {other:?}"),
        }
    }

    /// Sends a request through the tamper.
    pub(super) fn send(&mut self, request: &OwnedRequest) -> Response {
        let other = self.tamper.request(self.now, &request.borrow());
        let asked = other.as_ref().unwrap_or(request);
        let mut response = self.api.respond(self.now, &asked.borrow());
        self.tamper.response(self.now, &request.borrow(), &mut response);
        response
    }

    /// Reads with the key of a client.
    fn ask(&mut self, who: BookId, target: &str) -> (u16, Value) {
        let response = self.send(&self.request("GET", who, target, None, None));
        parsed(&response)
    }

    pub(super) fn request(
        &self,
        method: &str,
        who: BookId,
        target: &str,
        body: Option<Value>,
        once: Option<u8>,
    ) -> OwnedRequest {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query.to_owned())),
            None => (target, None),
        };
        OwnedRequest {
            method: method.to_owned(),
            path: path.to_owned(),
            query,
            authorization: Some(format!("Bearer {}", self.known[&who].key).into_bytes()),
            content_type: body.as_ref().map(|_| b"application/json".to_vec()),
            idempotency_key: once.map(|once| format!("key-{once}").into_bytes()),
            base: BASE.to_owned(),
            body: body.map(|body| body.to_string().into_bytes()).unwrap_or_default(),
        }
    }

    /// Performs an operation, as clients, watchers, receivers and hosts do. `state` is the expected state after it.
    pub(super) fn play(&mut self, op: &Op, state: &State) -> Verdict {
        for step in &state.host_steps {
            self.host_step(*step)?;
        }
        self.now = state.now;
        match op {
            Op::Rate { asset, currency, units } => {
                self.api.service.on_rate(self.now, *asset, *currency, units.and_then(Rate::from_units));
            }
            Op::Bounds { account, tolerance, threshold } => {
                let draft = SettingsDraft {
                    underpayment_tolerance: Some(Percent::hundredths(*tolerance)),
                    overpayment_threshold: Some(Percent::hundredths(*threshold)),
                    ..SettingsDraft::default()
                };
                let done = self.act(BOOKS[account * 2], Command::ChangeSettings(Box::new(draft)));
                done.map_err(|error| format!("settings are refused: {error:?}"))?;
            }
            Op::Blocks { mode, asset, .. } => {
                self.api.service.on_height(*mode, *asset, height(&state.heights, *mode, *asset));
            }
            Op::Restart => {
                self.api.service.restart(self.now);
                self.flying.clear();
                self.tamper.restarted(self.now);
            }
            Op::NewKey(id) => self.rekey(*id)?,
            Op::Tell(sightings) => {
                let mut sightings: Vec<Sighting> =
                    sightings.iter().map(|sighted| self.sighting(sighted, state)).collect();
                let at = self.tamper.sightings(self.now, &mut sightings);
                self.now = at;
                self.api.service.on_sightings(at, &sightings);
            }
            Op::Turn { who, list, per_page } => self.turn((*who, *list, *per_page), state.reading)?,
            Op::Number { who, list, per_page, page } => {
                let target = format!("{}?page={page}&per_page={per_page}", list.path());
                self.read_page((*who, *list, *per_page), &target, state.reading)?;
            }
            Op::Land { of, delivery, answer } => {
                let post = self.flying.remove(&(*of, *delivery)).ok_or("it is not in flight")?;
                self.land(*of, &post, *answer);
            }
            Op::Wait(_)
            | Op::Oversleep(_)
            | Op::LockEnd { .. }
            | Op::Post(_)
            | Op::PostAll(_)
            | Op::Take
            | Op::Exhaust(_) => {}
            _ => self.write(op, state)?,
        }
        Ok(())
    }

    fn sighting(&self, sighted: &Sighted, state: &State) -> Sighting {
        let (home, no) = state.home(sighted.charge);
        let address = &self.known[&home].ids.addresses[no];
        sighted.sighting(state.charge(sighted.charge).terms.asset, home, address, &state.heights)
    }

    fn rekey(&mut self, id: BookId) -> Verdict {
        let old = self.known[&id].key.clone();
        let principal = self.api.service.keys().find(old.as_bytes()).ok_or("the key is unknown")?;
        let no = self.api.service.keys().iter().find(|key| key.principal.key == principal).map(|key| key.id);
        let no = no.ok_or("the key has no id")?;
        self.act(id, Command::RevokeKey(no)).map_err(|error| format!("a key stays: {error:?}"))?;
        let (status, _) = self.ask(id, "/v1/account");
        if status != 401 {
            return Err(format!("a revoked key of {id:?} is answered {status}, not 401"));
        }
        let key = self.new_key(id);
        self.known.get_mut(&id).expect("every book is known").key = key;
        Ok(())
    }

    fn host_step(&mut self, step: HostStep) -> Verdict {
        match step {
            HostStep::Wake(at) => {
                self.now = at;
                if self.tamper.wakes(at) {
                    self.api.service.on_tick(at);
                }
                Ok(())
            }
            HostStep::Post { of, delivery, at, attempt, answer } => {
                self.now = at;
                let Some((account, mode, mut post)) = self.api.poll_delivery(at) else {
                    return Err(format!("nothing is posted at {at}; delivery {delivery} of {of:?} is due"));
                };
                let own = post.clone();
                match self.tamper.post(at, mode, &mut post) {
                    PostFate::AsItIs => {}
                    PostFate::Dropped => return Err(format!("delivery {delivery} of {of:?} never leaves")),
                    PostFate::WithAnother(_) => {
                        return Err(format!("delivery {delivery} of {of:?} leaves twice"));
                    }
                }
                if (account, mode) != (self.accounts[of.0], of.1) {
                    return Err(format!("a post of account {account:?}, {mode}; one of {of:?} is due"));
                }
                self.posted.push(Posted { post, of, delivery, attempt });
                match answer {
                    Some(answer) => self.land(of, &own, answer),
                    None => drop(self.flying.insert((of, delivery), own)),
                }
                Ok(())
            }
        }
    }

    fn land(&mut self, of: BookId, post: &AttemptRequest, answer: Answer) {
        let mut outcome = match answer {
            Answer::Status(status) => AttemptResult::Answered(status),
            Answer::Silence => AttemptResult::TimedOut,
            Answer::NoConnection => AttemptResult::Unreachable("connection refused".to_owned()),
        };
        self.tamper.outcome(self.now, post, &mut outcome);
        let book = (self.accounts[of.0], of.1);
        self.api.service.on_attempt_result(self.now, book, post.delivery, outcome);
    }

    /// Follows the link of the last page of this reading, or reads page 1.
    fn turn(&mut self, reader: PageReader, reading: Reading) -> Verdict {
        let (_, list, per_page) = reader;
        let target = match self.next.remove(&reader).flatten() {
            Some(next) => next,
            None => format!("{}?per_page={per_page}", list.path()),
        };
        let page = self.read_page(reader, &target, reading)?;
        let next = page["links"]["next"].as_str().map(|link| local(link).to_owned());
        self.next.insert(reader, next);
        Ok(())
    }

    /// Checks a page of a list that a client started to read earlier.
    fn read_page(
        &mut self,
        (who, list, per_page): PageReader,
        target: &str,
        Reading { total, page: number }: Reading,
    ) -> Result<Value, String> {
        let (status, page) = self.ask(who, target);
        if status != 200 {
            return Err(format!("{target} is answered {status}: {page}"));
        }
        let ids = &self.known[&who].ids;
        let ids = match list {
            List::Charges => &ids.charges,
            List::Invoices => &ids.invoices,
            List::Links => &ids.links,
            List::Events => &ids.events,
        };
        let newest_first = ids[..total].iter().rev();
        let expected: Vec<&str> =
            newest_first.skip((number - 1) * per_page).take(per_page).map(String::as_str).collect();
        let data = page["data"].as_array().ok_or("a page has no data")?;
        let shown: Vec<&str> = data.iter().filter_map(|record| record["id"].as_str()).collect();
        let last = total.div_ceil(per_page).max(1);
        let meta = |key: &str| page["meta"][key].as_u64();
        let numbers = [meta("total"), meta("current_page"), meta("last_page"), meta("per_page")];
        let wanted = [total, number, last, per_page].map(|n| u64::try_from(n).ok());
        let has = |key: &str| page["links"][key].is_string();
        let same = expected == shown && numbers == wanted;
        if !same || has("next") != (number < last) || has("prev") != (number > 1) {
            return Err(format!(
                "page {number} of {last} shows {shown:?} of {numbers:?}, not {expected:?} of {wanted:?}"
            ));
        }
        Ok(page)
    }

    /// Compares everything visible, after each operation.
    pub(super) fn check(&mut self, state: &State) -> Verdict {
        let shown = invariant::read_api_state(self, BOOKS, Depth::Events)?;
        let mut findings = Findings::default();
        for (id, shown) in &shown.books {
            let known = self.known.get_mut(id).expect("every book is known");
            learn(&mut known.ids.charges, shown.charges.iter().map(|it| &it.code));
            learn(&mut known.ids.addresses, shown.charges.iter().map(|it| &it.deposit_address));
            learn(&mut known.ids.invoices, shown.invoices.iter().map(|it| &it.code));
            learn(&mut known.ids.links, shown.links.iter().map(|it| &it.code));
            learn(&mut known.ids.events, shown.events.iter().map(|it| &it.id));
            let book = state.book(*id);
            for (what, known, made) in [
                ("charges", known.ids.charges.len(), book.charges.len()),
                ("invoices", known.ids.invoices.len(), book.invoices.len()),
                ("links", known.ids.links.len(), book.links.len()),
                ("events", known.ids.events.len(), book.events.len()),
            ] {
                if known != made {
                    return Err(format!("there are {known} {what} in {id:?}, not {made}"));
                }
            }
            let heights = |asset| {
                let height = height(&state.heights, id.1, asset);
                height..=height
            };
            invariant::compare_book(&mut findings, (book, &known.ids), shown, reading(state, &heights));
        }
        invariant::judge_addresses(&mut findings, &shown);
        first(findings)?;
        for id in BOOKS {
            self.check_deliveries(id, state).map_err(|why| format!("deliveries of {id:?}: {why}"))?;
        }
        for posted in std::mem::take(&mut self.posted) {
            self.check_post(&posted, state)?;
        }
        let (expected, shown) = (state.model.next_wake(), self.api.service.next_tick());
        if expected != shown {
            return Err(format!("the service wants to be woken at {shown:?}, not at {expected:?}"));
        }
        Ok(())
    }

    /// Compares everything that takes too long after each operation: filters, small pages, single objects and other
    /// books.
    pub(super) fn check_at_the_end(&mut self, state: &State) -> Verdict {
        let heights = Mode::ALL.map(|mode| {
            move |asset| {
                let height = height(&state.heights, mode, asset);
                height..=height
            }
        });
        let ids: BTreeMap<BookId, Ids> = self.known.iter().map(|(id, it)| (*id, it.ids.clone())).collect();
        let books = ids.iter().map(|(id, ids)| {
            let reading = reading(state, &heights[id.1 as usize]);
            (*id, ModelBook { book: state.book(*id), ids, reading })
        });
        first(invariant::judge_lists(self, &books.collect()))
    }

    fn check_deliveries(&mut self, id: BookId, state: &State) -> Verdict {
        let must = &state.book(id).deliveries;
        let of_delivery = |delivery: &outbox::Delivery| {
            let delivery_state = match delivery.state {
                outbox::DeliveryState::Waiting(at) => DeliveryState::Waiting(at),
                outbox::DeliveryState::InFlight(_) => DeliveryState::InFlight,
                outbox::DeliveryState::Delivered => DeliveryState::Delivered,
                outbox::DeliveryState::Failed => DeliveryState::Failed,
                outbox::DeliveryState::Canceled => DeliveryState::Canceled,
            };
            let event = delivery.payload.event.map(|(_, id)| id.to_string());
            let attempts = delivery.attempts.len() as u32;
            (delivery.endpoint.index(), delivery_state, attempts, event, delivery.payload.created_at)
        };
        let outbox = self.book(id).outbox();
        let is: Vec<_> = outbox.iter().map(|delivery| (delivery.id, of_delivery(delivery))).collect();
        let known = self.known.get_mut(&id).expect("every book is known");
        known.deliveries.extend(is.iter().skip(known.deliveries.len()).map(|(id, _)| *id));
        if is.len() != must.len() {
            return Err(format!("there are {}, not {}", is.len(), must.len()));
        }
        for (no, ((_, is), must)) in is.into_iter().zip(must).enumerate() {
            let event = must.event.map(|event| known.ids.events[event].clone());
            let must = (must.endpoint, must.state, must.attempts, event, must.opened);
            if is != must {
                return Err(format!(
                    "d{no} (endpoint, state, attempts, event, opened) is {is:?}, not {must:?}"
                ));
            }
        }
        if !known.deliveries.is_sorted_by(|a, b| a < b) {
            return Err("ids do not rise".to_owned());
        }
        Ok(())
    }

    /// Checks a post.
    fn check_post(&self, Posted { post, of, delivery, attempt }: &Posted, state: &State) -> Verdict {
        let (book, known) = (state.book(*of), &self.known[of]);
        let must = &book.deliveries[*delivery];
        let id = known.deliveries[*delivery];
        let (is, must) = ((post.id, post.endpoint.index(), post.attempt), (id, must.endpoint, *attempt));
        if is != must {
            return Err(format!("a post (delivery, endpoint, attempt) is {is:?}, not {must:?}"));
        }
        if post.secret.reveal() != known.secrets[book.endpoints[must.1].secret] {
            return Err(format!("d{delivery} is signed with another secret than the newest"));
        }
        let context =
            ObjectContext { ids: &known.ids, public_url: PUBLIC_URL, now: state.now, heights: &|_| 0 };
        let expected = book.envelope_json(context, &id.to_string(), *delivery);
        let event = book.deliveries[*delivery].event;
        let kind = event.map_or("charge.paid", |event| book.events[event].kind);
        if post.kind.as_str() != kind {
            return Err(format!("d{delivery} is posted as {}, not {kind}", post.kind.as_str()));
        }
        let mut findings = Findings::default();
        let body = (expected.as_str(), &*post.body);
        invariant::compare_delivery(&mut findings, state.now, "a delivery", body, event.is_none());
        first(findings)
    }
}

fn reading<'a>(state: &State, heights: &'a dyn Fn(Asset) -> RangeInclusive<u64>) -> BookReading<'a> {
    BookReading { now: state.now, heights, public_url: PUBLIC_URL, base: BASE }
}

/// Adds the new ids of a list that is shown newest first.
fn learn<'s>(known: &mut Vec<String>, shown: impl DoubleEndedIterator<Item = &'s String>) {
    let fresh: Vec<String> = shown.rev().skip(known.len()).cloned().collect();
    known.extend(fresh);
}
