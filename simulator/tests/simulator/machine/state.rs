//! The expected state for proptest: the simulator's model, with time, names, pages and repeated requests.

use std::{collections::BTreeMap, fmt};

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    sighting::Sighting,
    time::{Span, Timestamp},
};
use simulator::{
    model::{
        Account, AnswerText, Book, Charge, ChargeTexts, DeliveryState, Details, EndpointSwitch, InvoiceDraft,
        InvoiceTexts, LinkModel, LinkTexts, Model, Order, PageReader, PageReads, Question, Reading,
        RepeatKind, Terms,
    },
    record::BookId,
};

use super::op::{Answer, Astray, By, Heights, Name, Op, QUESTION, Sighted, labels};

/// 2026-09-20T10:00:00Z.
pub(super) const OPENING: Timestamp = Timestamp(1_789_898_400_000_000);
/// The maximum length of a world: the delivery log does not keep a whole year.
const LONGEST: Span = Span::days(25);
/// The maximum number of deliveries, and the time, within which they are exhausted.
const EXHAUSTED_MAX: usize = 24;
const EXHAUSTION: Span = Span::days(5);
/// The ids of the accounts.
pub(super) const ACCOUNTS: [&str; 2] = ["acme", "bolt"];
/// The books of both accounts.
pub(super) const BOOKS: [BookId; 4] = [(0, Mode::Live), (0, Mode::Test), (1, Mode::Live), (1, Mode::Test)];
/// The coins of these worlds: one with fast blocks, one with 18 decimals, and one on the same network.
pub(super) const COINS: [Asset; 3] = [Asset::Btc, Asset::Eth, Asset::Usdt];
pub(super) const CURRENCIES: [Currency; 2] = [Currency::Eur, Currency::Usd];
/// A member, who may receive mail in test mode.
pub(super) const MEMBER: &str = "ada@acme.example";

/// The expected response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// No request was sent.
    Nothing,
    Status(u16),
    /// The stored response with this index.
    Replay(usize),
}

/// An action of a host for the service.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostStep {
    Wake(Timestamp),
    /// A delivery of a book is posted, and answered immediately or later.
    Post {
        of: BookId,
        delivery: usize,
        at: Timestamp,
        attempt: u32,
        answer: Option<Answer>,
    },
}

/// The content of a write that idempotency compares.
struct IdempotentWrite {
    who: BookId,
    path: String,
    body: String,
    once: u8,
}

/// The expected state.
#[derive(Clone)]
pub(super) struct State {
    pub(super) now: Timestamp,
    pub(super) model: Model,
    pub(super) heights: Heights,
    /// The book and number of each object.
    pub(super) homes: BTreeMap<Name, (BookId, usize)>,
    /// The number of assigned names; each object gets a new one.
    pub(super) names: u32,
    pub(super) pages: PageReads,
    /// The last page that was read.
    pub(super) reading: Reading,
    /// The expected response to the last operation.
    pub(super) due: Due,
    /// The number of stored responses.
    answers: usize,
    /// The actions of the host during the last operation, in order.
    pub(super) host_steps: Vec<HostStep>,
    /// Writes with an idempotency key, for repetition.
    pub(super) keyed: Vec<Op>,
}

/// The initial state, as proptest prints it: there is only one.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the world at {}", self.now)
    }
}

/// Returns a rate in units of 10⁻⁸ that divides no price evenly.
pub(super) fn first_rate(asset: Asset) -> u64 {
    match asset {
        Asset::Btc => 6_549_059_000_000,
        Asset::Eth => 300_007_000_000,
        _ => 99_700_000,
    }
}

fn shifted(at: Timestamp, off: i64) -> Timestamp {
    let span = Span(off.unsigned_abs());
    if off < 0 { at.minus(span) } else { at.plus(span) }
}

/// Returns the reason of an operation: none for the API, otherwise the dashboard.
fn reason(by: By) -> Details {
    if by == By::Owner { Details::Reason("dashboard") } else { Details::None }
}

impl State {
    pub(super) fn new() -> State {
        let pairs = COINS.into_iter().flat_map(|asset| CURRENCIES.map(|currency| (asset, currency)));
        let mut model = Model::default();
        model.rates = pairs.map(|pair| (pair, Some(first_rate(pair.0)))).collect();
        for _ in ACCOUNTS {
            let mut account = Account::new("acme", "Acme", Timestamp(0));
            account.members = vec![MEMBER.to_owned()];
            model.open_account(account);
        }
        State {
            now: OPENING,
            model,
            heights: Heights::new(),
            homes: BTreeMap::new(),
            names: 0,
            pages: PageReads::default(),
            reading: Reading { total: 0, page: 1 },
            due: Due::Nothing,
            answers: 0,
            host_steps: Vec::new(),
            keyed: Vec::new(),
        }
    }

    pub(super) fn book(&self, id: BookId) -> &Book {
        self.model.book(id)
    }

    fn change(&mut self, id: BookId) -> &mut Book {
        self.model.at(id).1
    }

    /// Returns the book and number of an object, which must exist.
    pub(super) fn home(&self, name: Name) -> (BookId, usize) {
        self.homes[&name]
    }

    pub(super) fn charge(&self, name: Name) -> &Charge {
        let (id, no) = self.home(name);
        &self.book(id).charges[no]
    }

    /// Returns `true` if an operation is possible: its objects exist, and it ends within the days of this world.
    pub(super) fn allows(&self, op: &Op) -> bool {
        let has = |name: &Name| self.homes.contains_key(name);
        let free = |name: &Name| !self.homes.contains_key(name);
        let fits = |until: Timestamp| until >= self.now && until.since(OPENING) < LONGEST;
        match op {
            Op::Wait(span) | Op::Oversleep(span) => fits(self.now.plus(*span)),
            Op::LockEnd { of, off } => has(of) && fits(shifted(self.charge(*of).end, *off)),
            Op::Open { name, link, .. } => free(name) && link.as_ref().is_none_or(has),
            Op::Cancel { charge, .. } | Op::Refund { charge, .. } | Op::Accept { charge, .. } => has(charge),
            Op::Issue { name, .. } | Op::MakeLink { name, .. } | Op::Hook { name, .. } => free(name),
            Op::Send { invoice, .. } | Op::Void { invoice, .. } | Op::View { invoice } => has(invoice),
            Op::Choose { name, invoice, .. } => free(name) && has(invoice),
            Op::Archive { link, .. } | Op::Limit { link, .. } | Op::ViewLink { link } => has(link),
            Op::PayLink { name, link, .. } => free(name) && has(link),
            Op::Tell(sightings) => sightings.iter().all(|sighted| has(&sighted.charge)),
            Op::Choices { hook, .. }
            | Op::Switch { hook, .. }
            | Op::Unhook { hook }
            | Op::Rotate { hook }
            | Op::Test { hook } => has(hook),
            Op::Resend { of, delivery } => *delivery < self.book(*of).deliveries.len(),
            Op::Land { of, delivery, .. } => {
                let delivery = self.book(*of).deliveries.get(*delivery);
                delivery.is_some_and(|delivery| delivery.state == DeliveryState::InFlight)
            }
            Op::Exhaust(_) => {
                let all = BOOKS.iter().flat_map(|id| &self.book(*id).deliveries);
                let waiting = all.filter(|delivery| matches!(delivery.state, DeliveryState::Waiting(_)));
                waiting.count() <= EXHAUSTED_MAX && fits(self.now.plus(EXHAUSTION))
            }
            _ => true,
        }
    }

    /// Performs an operation.
    pub(super) fn apply(&mut self, op: &Op) {
        self.due = Due::Nothing;
        self.host_steps.clear();
        if let Some(number) = op.number() {
            self.names = self.names.max(number + 1);
        }
        let now = self.now;
        match op {
            Op::Wait(span) => self.advance(now.plus(*span)),
            Op::LockEnd { of, off } => self.advance(shifted(self.charge(*of).end, *off)),
            Op::Oversleep(span) => {
                self.now = now.plus(*span);
                self.wake();
            }
            Op::Rate { asset, currency, units } => {
                self.model.rates.insert((*asset, *currency), *units);
            }
            Op::Bounds { account, tolerance, threshold } => {
                let account = &mut self.model.accounts[*account];
                (account.tolerance, account.threshold) = (*tolerance, *threshold);
            }
            Op::Blocks { mode, asset, blocks } => *self.heights.entry((*mode, *asset)).or_default() += blocks,
            Op::Restart => {
                self.pages.restart();
                self.model.restart(now);
            }
            Op::NewKey(id) => self.pages.new_key(*id),
            Op::Tell(sightings) => self.on_sightings(sightings),
            Op::Turn { who, list, per_page } => {
                let length = self.book(*who).length(*list);
                self.reading = self.pages.follow(now, (*who, *list, *per_page), length);
            }
            Op::Number { who, list, per_page, page } => {
                let length = self.book(*who).length(*list);
                let reader: PageReader = (*who, *list, *per_page);
                self.reading = self.pages.number(now, reader, *page, length);
            }
            Op::Post(answer) => drop(self.post_one(Some(*answer))),
            Op::Take => drop(self.post_one(None)),
            Op::PostAll(answer) => while self.post_one(Some(*answer)) {},
            Op::Exhaust(answer) => self.exhaust(*answer),
            Op::Land { of, delivery, answer } => self.change(*of).land(now, *delivery, answer.is_success()),
            _ => self.apply_write(op),
        }
    }

    /// Advances the time; the host wakes the service whenever a lock ends.
    fn advance(&mut self, until: Timestamp) {
        while let Some(end) = self.model.next_lock().filter(|end| *end <= until) {
            self.now = end.max(self.now);
            self.wake();
        }
        self.now = until;
        self.wake();
    }

    fn wake(&mut self) {
        self.host_steps.push(HostStep::Wake(self.now));
        self.model.wake(self.now);
    }

    fn on_sightings(&mut self, sightings: &[Sighted]) {
        let now = self.now;
        for id in BOOKS {
            let own = sightings.iter().filter_map(|sighted| {
                let (home, no) = self.home(sighted.charge);
                let is_own = home == id && sighted.astray == Astray::No;
                let asset = self.charge(sighted.charge).terms.asset;
                is_own.then(|| (no, sighted.sighting(asset, home, "", &self.heights)))
            });
            let own: Vec<(usize, Sighting)> = own.collect();
            self.change(id).on_sightings(now, own.iter().map(|(no, sighting)| (*no, sighting)));
        }
    }

    /// Posts the first due delivery. Returns `true` if there was one.
    fn post_one(&mut self, answer: Option<Answer>) -> bool {
        let now = self.now;
        let first = |id: BookId| {
            let (at, delivery) = self.book(id).first_waiting()?;
            (at <= now).then_some((id, delivery))
        };
        let Some((of, delivery)) = BOOKS.into_iter().find_map(first) else { return false };
        let attempt = self.book(of).deliveries[delivery].attempts + 1;
        self.host_steps.push(HostStep::Post { of, delivery, at: now, attempt, answer });
        let book = self.change(of);
        book.post(delivery);
        if let Some(answer) = answer {
            book.land(now, delivery, answer.is_success());
        }
        true
    }

    /// Posts until no delivery is waiting, however long that takes.
    fn exhaust(&mut self, answer: Answer) {
        let next = |state: &State| {
            BOOKS.iter().filter_map(|id| state.book(*id).first_waiting()).map(|(at, _)| at).min()
        };
        while let Some(next) = next(self) {
            if next > self.now {
                self.advance(next);
            }
            self.post_one(Some(answer));
        }
    }

    fn apply_write(&mut self, op: &Op) {
        let asked = asked(op);
        if let Some(IdempotentWrite { who, path, body, once }) = &asked {
            self.keyed.retain(|known| known != op);
            self.keyed.push(op.clone());
            let repeat = self.book(*who).repeat(self.now, &format!("{path} {once}"), body.as_bytes());
            match repeat {
                RepeatKind::First => {}
                RepeatKind::Same(answer) => return self.due = Due::Replay(answer),
                RepeatKind::Other => return self.due = Due::Status(409),
            }
        }
        let answered = self.write(op);
        self.due = Due::Status(answered.unwrap_or_else(|refused| refused));
        if let Some(IdempotentWrite { who, path, body, once }) = asked
            && answered.is_ok()
        {
            let (now, answer) = (self.now, self.answers);
            self.answers += 1;
            self.change(who).keep_answer(now, format!("{path} {once}"), body.into_bytes(), answer);
        }
    }

    /// Performs a write; returns the status of a success or refusal.
    fn write(&mut self, op: &Op) -> Result<u16, u16> {
        match op {
            Op::Open { .. }
            | Op::PayLink { .. }
            | Op::Cancel { .. }
            | Op::Refund { .. }
            | Op::Accept { .. } => self.write_charge(op),
            Op::Issue { .. } | Op::Send { .. } | Op::Void { .. } | Op::View { .. } | Op::Choose { .. } => {
                self.write_invoice(op)
            }
            Op::MakeLink { .. } | Op::Archive { .. } | Op::Limit { .. } | Op::ViewLink { .. } => {
                self.write_link(op)
            }
            _ => self.write_hook(op),
        }
    }

    fn write_charge(&mut self, op: &Op) -> Result<u16, u16> {
        let now = self.now;
        match op {
            Op::Open { link: None, answers: 1.., .. } => Err(422),
            Op::Open { name, who, asset, cents, currency, link: None, .. } => self
                .open(*name, *who, *asset, (*cents, *currency), (None, None), ChargeTexts::default())
                .map(|()| 201),
            Op::Open { name, who, asset, cents, link: Some(link), answers, .. } => {
                let (home, link) = self.home(*link);
                if home != *who {
                    return Err(422);
                }
                let amount = Some(*cents).filter(|cents| *cents > 0);
                self.open_by_link((home, link), *name, (*asset, amount, *answers)).map(|()| 201)
            }
            Op::PayLink { name, link, asset, cents, answers } => {
                self.open_by_link(self.home(*link), *name, (*asset, *cents, *answers)).map(|()| 200)
            }
            Op::Cancel { by, charge, .. } => {
                let (id, no) = self.reach(*by, *charge)?;
                self.change(id).cancel(now, no, reason(*by)).map(|()| 200)
            }
            Op::Refund { who, charge, units, txid, .. } => {
                let (id, no) = self.reach(By::Key(*who), *charge)?;
                let txid = txid.map(|txid| format!("t{txid}"));
                self.change(id).refund(now, no, *units, (txid, None)).map(|()| 201)
            }
            Op::Accept { charge, txid } => {
                let (id, no) = self.home(*charge);
                let txid = txid.map(|txid| format!("t{txid}"));
                self.change(id).accept(now, no, txid.as_deref()).map(|()| 200)
            }
            _ => unreachable!("no write of a charge: {op:?}"),
        }
    }

    fn write_invoice(&mut self, op: &Op) -> Result<u16, u16> {
        let now = self.now;
        match op {
            Op::Issue { name, who, cents, reader, send, .. } => {
                let draft = InvoiceDraft {
                    cents: *cents,
                    currency: Currency::Eur,
                    reader: reader.email().map(str::to_owned),
                    texts: InvoiceTexts::default(),
                };
                let (account, book) = self.model.at(*who);
                let no = book.issue(now, account, draft, *send)?;
                self.homes.insert(*name, (*who, no));
                Ok(201)
            }
            Op::Send { by, invoice } => {
                let (id, no) = self.reach(*by, *invoice)?;
                let (account, book) = self.model.at(id);
                book.send(now, account, no).map(|()| 200)
            }
            Op::Void { by, invoice } => {
                let (id, no) = self.reach(*by, *invoice)?;
                self.change(id).void(now, no).map(|()| 200)
            }
            Op::View { invoice } => {
                let (id, no) = self.home(*invoice);
                self.change(id).view(now, no);
                Ok(200)
            }
            Op::Choose { name, invoice, asset } => {
                let (id, no) = self.home(*invoice);
                if self.book(id).choose(no, *asset)?.is_none() {
                    let invoice = &self.book(id).invoices[no];
                    let price = (invoice.cents, invoice.currency);
                    self.open(*name, id, *asset, price, (None, Some(no)), ChargeTexts::default())?;
                }
                Ok(200)
            }
            _ => unreachable!("no write of an invoice: {op:?}"),
        }
    }

    fn write_link(&mut self, op: &Op) -> Result<u16, u16> {
        let now = self.now;
        match op {
            Op::MakeLink { name, who, pricing, only, max, lasts, asks } => {
                let question = |required| Question { label: QUESTION.to_owned(), required };
                let links = &mut self.change(*who).links;
                links.push(LinkModel {
                    pricing: *pricing,
                    currency: Currency::Eur,
                    coins: only.map(|only| vec![only]),
                    max_payments: *max,
                    questions: asks.map(question).into_iter().collect(),
                    expires_at: lasts.map(|lasts| now.plus(lasts)),
                    is_archived: false,
                    views: 0,
                    texts: LinkTexts { title: "Tea".to_owned(), ..LinkTexts::default() },
                    created_at: now,
                    updated_at: now,
                });
                let no = links.len() - 1;
                self.homes.insert(*name, (*who, no));
                return Ok(201);
            }
            Op::Archive { who, link, on } => {
                let (id, no) = self.reach(By::Key(*who), *link)?;
                self.change(id).links[no].archive(now, *on);
            }
            Op::Limit { who, link, max } => {
                let (id, no) = self.reach(By::Key(*who), *link)?;
                let link = &mut self.change(id).links[no];
                if link.max_payments != *max {
                    (link.max_payments, link.updated_at) = (*max, now);
                }
            }
            Op::ViewLink { link } => {
                let (id, no) = self.home(*link);
                self.change(id).links[no].views += 1;
            }
            _ => unreachable!("no write of a link: {op:?}"),
        }
        Ok(200)
    }

    fn write_hook(&mut self, op: &Op) -> Result<u16, u16> {
        let now = self.now;
        if let Op::Hook { name, of, kinds } = op {
            let no = self.change(*of).add_endpoint(super::op::types(*kinds));
            self.homes.insert(*name, (*of, no));
            return Ok(200);
        }
        if let Op::Resend { of, delivery } = op {
            return self.change(*of).resend(now, *delivery).map(|()| 200);
        }
        let (Op::Choices { hook, .. }
        | Op::Switch { hook, .. }
        | Op::Unhook { hook }
        | Op::Rotate { hook }
        | Op::Test { hook }) = op
        else {
            unreachable!("no write: {op:?}")
        };
        let (id, no) = self.home(*hook);
        let book = self.change(id);
        if book.endpoints[no].switch == EndpointSwitch::Removed {
            return Err(404);
        }
        match op {
            Op::Choices { kinds, .. } => book.endpoints[no].types = super::op::types(*kinds),
            Op::Switch { on, .. } => {
                book.switch_endpoint(no, if *on { EndpointSwitch::On } else { EndpointSwitch::Off })
            }
            Op::Unhook { .. } => book.switch_endpoint(no, EndpointSwitch::Removed),
            Op::Rotate { .. } => book.rotate(no),
            _ => drop(book.send_test(now, no)?),
        }
        Ok(200)
    }

    /// Returns the object, if the caller may see it.
    fn reach(&self, by: By, name: Name) -> Result<(BookId, usize), u16> {
        let (home, no) = self.home(name);
        match by {
            By::Key(who) if who != home => Err(404),
            _ => Ok((home, no)),
        }
    }

    fn open_by_link(
        &mut self,
        (id, link): (BookId, usize),
        name: Name,
        (asset, cents, answers): (Asset, Option<u64>, u8),
    ) -> Result<(), u16> {
        let order = Order {
            asset: Some(asset),
            cents,
            currency: None,
            answers: labels(answers).into_iter().map(|label| (label, "M".to_owned())).collect(),
            has_email: false,
        };
        let book = self.book(id);
        let price = (book.price(link, self.now, order)?, book.links[link].currency);
        let answer = |label| AnswerText { label, value: "M".to_owned() };
        let custom_fields = labels(answers).into_iter().map(answer).collect();
        let texts = ChargeTexts { custom_fields, ..ChargeTexts::default() };
        self.open(name, id, asset, price, (Some(link), None), texts)
    }

    fn open(
        &mut self,
        name: Name,
        id: BookId,
        asset: Asset,
        (cents, currency): (u64, Currency),
        (link, invoice): (Option<usize>, Option<usize>),
        texts: ChargeTexts,
    ) -> Result<(), u16> {
        let rate = self.model.rates[&(asset, currency)].ok_or(503_u16)?;
        let terms = Terms { asset, cents, currency, rate, link, invoice };
        let (now, (account, book)) = (self.now, self.model.at(id));
        let no = match invoice {
            Some(_) => book.switch(now, account, terms),
            None => book.open(now, account, (terms, texts)),
        };
        self.homes.insert(name, (id, no));
        Ok(())
    }
}

/// Returns the content of a write that idempotency compares: key, path and body, without the names of new objects.
fn asked(op: &Op) -> Option<IdempotentWrite> {
    let (who, path, body) = match op {
        Op::Open { who, asset, cents, currency, link, answers, .. } => {
            // A link determines the currency.
            let currency = link.is_none().then_some(currency);
            (who, "charges".to_owned(), format!("{asset} {cents} {currency:?} {link:?} {answers}"))
        }
        Op::Cancel { by: By::Key(who), charge, .. } => (who, format!("cancel {charge:?}"), String::new()),
        Op::Refund { who, charge, units, txid, .. } => {
            (who, format!("refund {charge:?}"), format!("{units} {txid:?}"))
        }
        Op::Issue { who, cents, reader, send, .. } => {
            (who, "invoices".to_owned(), format!("{cents} {reader:?} {send}"))
        }
        _ => return None,
    };
    Some(IdempotentWrite { who: *who, path, body, once: op.once()? })
}
