//! What each deed does to the world.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    sighting::Sighting,
    time::{Span, Timestamp},
};
use simulator::model::{Charge, LOCK, Tale, money};

use crate::{
    deed::{Astray, By, Deed, Name, Notice, Place, Pricing, Reader},
    stage::sighting,
    world::{
        ANSWER_KEPT, Beat, Book, ChargeOf, Desire, Details, Due, Event, InvoiceOf, Kept, LONGEST, LinkOf,
        Paper, Reading, Standing, Subject, World,
    },
};

/// An invoice is not mailed again within this time.
const MAIL_PAUSE: Span = Span::mins(10);
/// A key's place in a list is remembered for so long.
const PLACE_KEPT: Span = Span::mins(10);
/// Whoever exhausts what waits does it for fewer deliveries, within so much time.
const EXHAUSTED_MAX: usize = 24;
const EXHAUSTION: Span = Span::days(5);

type Answered = Result<u16, u16>;

/// A write as idempotency sees it.
struct Asked {
    who: Place,
    path: String,
    body: String,
    once: Option<u8>,
}

impl World {
    /// Whether a deed can be done: it names what there is, and stays within the days of this world.
    pub(crate) fn allows(&self, deed: &Deed) -> bool {
        let has = |name: &Name| self.homes.contains_key(name);
        let free = |name: &Name| !self.homes.contains_key(name);
        let fits = |until: Timestamp| until >= self.now && until.since(crate::world::OPENING) < LONGEST;
        match deed {
            Deed::Wait(span) | Deed::Oversleep(span) => fits(self.now.plus(*span)),
            Deed::LockEnd { of, off } => has(of) && fits(shifted(self.charge(*of).it.end, *off)),
            Deed::Open { name, link, .. } => free(name) && link.as_ref().is_none_or(has),
            Deed::Cancel { charge, .. } | Deed::Refund { charge, .. } | Deed::Accept { charge, .. } => {
                has(charge)
            }
            Deed::Issue { name, .. } | Deed::MakeLink { name, .. } | Deed::Hook { name, .. } => free(name),
            Deed::Send { invoice, .. } | Deed::Void { invoice, .. } | Deed::View { invoice } => has(invoice),
            Deed::Choose { name, invoice, .. } => free(name) && has(invoice),
            Deed::Archive { link, .. } | Deed::Limit { link, .. } | Deed::ViewLink { link } => has(link),
            Deed::PayLink { name, link, .. } => free(name) && has(link),
            Deed::Tell(notices) => notices.iter().all(|notice| has(&notice.charge)),
            Deed::Choices { hook, .. }
            | Deed::Switch { hook, .. }
            | Deed::Unhook { hook }
            | Deed::Rotate { hook }
            | Deed::Test { hook } => has(hook),
            Deed::Resend { of, delivery } => *delivery < self.books[of.0].deliveries.len(),
            Deed::Land { of, delivery, .. } => {
                let delivery = self.books[of.0].deliveries.get(*delivery);
                delivery.is_some_and(|delivery| delivery.standing == Standing::Flying)
            }
            Deed::Exhaust(_) => {
                let waiting = self.books.iter().flat_map(|book| &book.deliveries);
                let waiting = waiting.filter(|delivery| matches!(delivery.standing, Standing::Waiting(_)));
                waiting.count() <= EXHAUSTED_MAX && fits(self.now.plus(EXHAUSTION))
            }
            _ => true,
        }
    }

    /// Does it.
    pub(crate) fn apply(&mut self, deed: &Deed) {
        self.due = Due::Nothing;
        self.beats.clear();
        if let Some(number) = deed.number() {
            self.names = self.names.max(number + 1);
        }
        match deed {
            Deed::Wait(span) => self.advance(self.now.plus(*span)),
            Deed::LockEnd { of, off } => self.advance(shifted(self.charge(*of).it.end, *off)),
            Deed::Oversleep(span) => {
                self.now = self.now.plus(*span);
                self.wake();
            }
            Deed::Rate { asset, currency, units } => drop(self.rates.insert((*asset, *currency), *units)),
            Deed::Bounds { account, tolerance, threshold } => {
                self.bounds[*account] = (*tolerance, *threshold)
            }
            Deed::Restart => {
                self.memories.clear();
                self.restart();
            }
            Deed::NewKey(place) => self.memories.retain(|(who, ..), _| who != place),
            Deed::Tell(notices) => self.tell_all(notices),
            Deed::Turn { who, list, per_page } => self.turn((*who, *list, *per_page)),
            Deed::Number { who, list, per_page, page } => self.number((*who, *list, *per_page), *page),
            _ if self.apply_to_hooks(deed) => {}
            _ => self.apply_write(deed),
        }
    }

    /// Time passes; the host wakes the service whenever a lock ends.
    pub(crate) fn advance(&mut self, until: Timestamp) {
        let ends = |world: &World| {
            let charges = world.books.iter().flat_map(|book| &book.charges);
            let open = charges.filter(|charge| !charge.rang && charge.it.waits());
            open.map(|charge| charge.it.end).min()
        };
        while let Some(end) = ends(self).filter(|end| *end <= until) {
            self.now = end.max(self.now);
            self.wake();
        }
        self.now = until;
        self.wake();
    }

    fn wake(&mut self) {
        let now = self.now;
        self.beats.push(Beat::Wake(now));
        for book in &mut self.books {
            let mut over: Vec<(Timestamp, usize)> = Vec::new();
            for (no, charge) in book.charges.iter_mut().enumerate() {
                if !charge.rang && charge.it.end <= now {
                    charge.rang = true;
                    over.push((charge.it.end, no));
                }
            }
            over.sort_unstable();
            for (_, no) in over {
                let mut tales = Vec::new();
                book.charges[no].it.run_out(now, &mut tales);
                book.tell(now, no, tales);
            }
        }
    }

    fn tell_all(&mut self, notices: &[Notice]) {
        let now = self.now;
        for place in Place::ALL {
            let mut parts: Vec<(usize, Vec<Sighting>)> = Vec::new();
            for notice in notices {
                let (home, no) = self.home(notice.charge);
                if home != place || notice.astray != Astray::No {
                    continue;
                }
                let heard = sighting(notice, self.charge(notice.charge).asset, home, "");
                match parts.iter_mut().find(|(known, _)| *known == no) {
                    Some((_, part)) => part.push(heard),
                    None => parts.push((no, vec![heard])),
                }
            }
            let book = self.book(place);
            for (no, part) in parts {
                let charge = &mut book.charges[no];
                let unit = atto_per_unit(charge.asset);
                let part: Vec<&Sighting> = part.iter().collect();
                let tales = charge.it.hear(now, &part, unit);
                book.tell(now, no, tales);
            }
        }
    }

    fn turn(&mut self, desire: Desire) {
        let (who, list, per_page) = desire;
        let length = self.books[who.0].length(list);
        let reading = self.readings.entry(desire).or_insert(Reading { total: 0, page: 1 });
        if reading.page * per_page < reading.total {
            reading.page += 1;
        } else {
            *reading = Reading { total: length, page: 1 };
            self.memories.insert(desire, (self.now, length));
        }
        self.due = Due::Status(200);
    }

    /// Page 1 is fresh; later ones belong to the page 1 that this key read last, if that was not long ago.
    fn number(&mut self, desire: Desire, page: usize) {
        let (who, list, _) = desire;
        let length = self.books[who.0].length(list);
        if page == 1 {
            self.memories.insert(desire, (self.now, length));
        }
        let memory = self.memories.get(&desire).filter(|(at, _)| self.now.since(*at) < PLACE_KEPT);
        self.numbered = Reading { total: memory.map_or(length, |(_, total)| *total), page };
        self.due = Due::Status(200);
    }

    fn apply_write(&mut self, deed: &Deed) {
        let asked = asked(deed);
        if let Some(asked) = &asked
            && let Some(once) = asked.once
        {
            self.keyed.retain(|known| known != deed);
            self.keyed.push(deed.clone());
            let now = self.now;
            let scope = format!("{} {once}", asked.path);
            let kept = self.book(asked.who).kept.get(&scope);
            if let Some(kept) = kept.filter(|kept| now.since(kept.at) < ANSWER_KEPT) {
                self.due = if kept.asked == asked.body { Due::Replay(kept.answer) } else { Due::Status(409) };
                return;
            }
        }
        let answered = self.write(deed);
        self.due = Due::Status(answered.unwrap_or_else(|refused| refused));
        if let Some(Asked { who, path, body, once: Some(once) }) = asked
            && answered.is_ok()
        {
            let kept = Kept { at: self.now, asked: body, answer: self.answers };
            self.answers += 1;
            self.book(who).kept.insert(format!("{path} {once}"), kept);
        }
    }

    fn write(&mut self, deed: &Deed) -> Answered {
        let now = self.now;
        match deed {
            Deed::Open { name, who, asset, cents, currency, link: None, .. } => {
                self.open(*name, *who, *asset, (*cents, *currency), (None, None))?;
                Ok(201)
            }
            Deed::Open { name, who, asset, cents, link: Some(link), .. } => {
                let (home, link) = self.home(*link);
                if home != *who {
                    return Err(422);
                }
                self.open_from_link((*who, link), *name, *asset, Some(*cents).filter(|cents| *cents > 0))?;
                Ok(201)
            }
            Deed::PayLink { name, link, asset, cents } => {
                self.open_from_link(self.home(*link), *name, *asset, *cents)?;
                Ok(200)
            }
            Deed::Cancel { by, charge, .. } => {
                let (place, no) = self.reach(*by, *charge)?;
                let book = self.book(place);
                if !book.charges[no].it.cancel() {
                    return Err(409);
                }
                let why = if *by == By::Owner { Details::Reason("dashboard") } else { Details::None };
                book.record(now, "charge.canceled", Subject::Charge(no), why);
                Ok(200)
            }
            Deed::Refund { who, charge, units, .. } => {
                let (place, no) = self.reach(By::Key(*who), *charge)?;
                let book = self.book(place);
                if !book.charges[no].it.refund(*units) {
                    return Err(422);
                }
                book.charges[no].refunds.push(*units);
                book.record(now, "charge.refunded", Subject::Charge(no), Details::Refund { units: *units });
                Ok(201)
            }
            Deed::Accept { charge, txid } => {
                let (place, no) = self.home(*charge);
                let txid = txid.map(|txid| format!("t{txid}"));
                let book = self.book(place);
                let tales = book.charges[no].it.take_late(txid.as_deref()).ok_or(409_u16)?;
                book.tell(now, no, tales);
                Ok(200)
            }
            Deed::Issue { name, who, cents, reader, send, .. } => {
                let book = self.book(*who);
                if *send {
                    book.may_mail(*reader)?;
                }
                let invoice = InvoiceOf {
                    cents: *cents,
                    reader: *reader,
                    issued: now,
                    status: Paper::Open,
                    charges: Vec::new(),
                    sent_at: None,
                    viewed_at: None,
                    paid_at: None,
                    voided_at: None,
                };
                let no = book.invoices.len();
                book.invoices.push(invoice);
                book.record(now, "invoice.created", Subject::Invoice(no), Details::None);
                if *send {
                    book.mail(now, no);
                }
                self.homes.insert(*name, (*who, no));
                Ok(201)
            }
            Deed::Send { by, invoice } => {
                let (place, no) = self.reach(*by, *invoice)?;
                let book = self.book(place);
                let it = &book.invoices[no];
                if it.status != Paper::Open {
                    return Err(409);
                }
                if it.sent_at.is_some_and(|sent| now.since(sent) < MAIL_PAUSE) {
                    return Err(429);
                }
                book.may_mail(it.reader)?;
                book.mail(now, no);
                Ok(200)
            }
            Deed::Void { by, invoice } => {
                let (place, no) = self.reach(*by, *invoice)?;
                let book = self.book(place);
                if book.invoices[no].status != Paper::Open {
                    return Err(409);
                }
                let open = book.untouched(no)?;
                let it = &mut book.invoices[no];
                (it.status, it.voided_at) = (Paper::Void, Some(now));
                if let Some(charge) = open {
                    book.call_off(now, charge, "invoice_voided");
                }
                book.record(now, "invoice.voided", Subject::Invoice(no), Details::None);
                Ok(200)
            }
            Deed::View { invoice } => {
                let (place, no) = self.home(*invoice);
                let book = self.book(place);
                if book.invoices[no].viewed_at.is_none() {
                    book.invoices[no].viewed_at = Some(now);
                    book.record(now, "invoice.viewed", Subject::Invoice(no), Details::None);
                }
                Ok(200)
            }
            Deed::Choose { name, invoice, asset } => self.choose(*name, *invoice, *asset),
            Deed::MakeLink { name, who, pricing, only, max, lasts } => {
                let link = LinkOf {
                    pricing: *pricing,
                    only: *only,
                    max: *max,
                    ends: lasts.map(|lasts| now.plus(lasts)),
                    archived: false,
                    views: 0,
                };
                let links = &mut self.book(*who).links;
                links.push(link);
                let no = links.len() - 1;
                self.homes.insert(*name, (*who, no));
                Ok(201)
            }
            Deed::Archive { who, link, on } => {
                let (place, no) = self.reach(By::Key(*who), *link)?;
                self.book(place).links[no].archived = *on;
                Ok(200)
            }
            Deed::Limit { who, link, max } => {
                let (place, no) = self.reach(By::Key(*who), *link)?;
                self.book(place).links[no].max = *max;
                Ok(200)
            }
            Deed::ViewLink { link } => {
                let (place, no) = self.home(*link);
                self.book(place).links[no].views += 1;
                Ok(200)
            }
            _ => unreachable!("no write: {deed:?}"),
        }
    }

    /// The object, for who may see it.
    fn reach(&self, by: By, name: Name) -> Result<(Place, usize), u16> {
        let (home, no) = self.home(name);
        match by {
            By::Key(who) if who != home => Err(404),
            _ => Ok((home, no)),
        }
    }

    fn open_from_link(
        &mut self,
        (place, link): (Place, usize),
        name: Name,
        asset: Asset,
        cents: Option<u64>,
    ) -> Result<usize, u16> {
        if !self.books[place.0].link_accepts(link, self.now) {
            return Err(409);
        }
        let it = &self.books[place.0].links[link];
        let amount = match (it.pricing, cents) {
            (Pricing::Fixed(price), cents) => {
                Some(price).filter(|price| cents.is_none_or(|cents| cents == *price))
            }
            (Pricing::Open { min, max }, cents) => cents.filter(|cents| (min..=max).contains(cents)),
        };
        let amount = amount.filter(|_| it.only.is_none_or(|only| only == asset)).ok_or(422_u16)?;
        self.open(name, place, asset, (amount, Currency::Eur), (Some(link), None))
    }

    fn open(
        &mut self,
        name: Name,
        place: Place,
        asset: Asset,
        (cents, currency): (u64, Currency),
        (link, invoice): (Option<usize>, Option<usize>),
    ) -> Result<usize, u16> {
        let rate = self.rates[&(asset, currency)].ok_or(503_u16)?;
        let (now, bounds) = (self.now, self.bounds[place.account()]);
        let book = self.book(place);
        let due = money::due(cents, rate, asset);
        let it = Charge::open(now, due, bounds, asset.required_confirmations(place.mode()));
        assert_eq!(it.end, now.plus(LOCK));
        let no = book.charges.len();
        book.charges.push(ChargeOf {
            asset,
            cents,
            currency,
            rate,
            opened: now,
            link,
            invoice,
            refunds: Vec::new(),
            it,
            rang: false,
        });
        if let Some(invoice) = invoice {
            book.invoices[invoice].charges.push(no);
        }
        book.record(now, "charge.created", Subject::Charge(no), Details::None);
        self.homes.insert(name, (place, no));
        Ok(no)
    }

    fn choose(&mut self, name: Name, invoice: Name, asset: Asset) -> Answered {
        let (now, (place, no)) = (self.now, self.home(invoice));
        let rate = self.rates[&(asset, Currency::Eur)];
        let book = self.book(place);
        if book.invoices[no].status != Paper::Open {
            return Err(409);
        }
        let cents = book.invoices[no].cents;
        if let Some(open) = book.waiting(no)
            && book.charges[open].asset == asset
        {
            return Ok(200);
        }
        let earlier = book.untouched(no)?;
        rate.ok_or(503_u16)?;
        if let Some(earlier) = earlier {
            book.call_off(now, earlier, "asset_switched");
        }
        self.open(name, place, asset, (cents, Currency::Eur), (None, Some(no)))?;
        Ok(200)
    }
}

impl Book {
    /// What a charge has to tell, as events; a paid one settles its invoice.
    fn tell(&mut self, at: Timestamp, no: usize, tales: Vec<Tale>) {
        for tale in tales {
            let transfer = |txid, units| Details::Transfer { txid, units };
            let (kind, details) = match tale {
                Tale::Detected { txid, units } => ("charge.payment_detected", transfer(txid, units)),
                Tale::Paid { txid, units } => ("charge.paid", transfer(txid, units)),
                Tale::Short { txid, units } => ("charge.underpaid", transfer(txid, units)),
                Tale::Late { txid, units } => ("charge.late_payment", transfer(txid, units)),
                Tale::Expired => ("charge.expired", Details::None),
            };
            self.record(at, kind, Subject::Charge(no), details);
            if kind == "charge.paid"
                && let Some(invoice) = self.charges[no].invoice
            {
                self.settle(at, invoice);
            }
        }
    }

    /// Once; and what still waits, and has seen no money, is called off.
    fn settle(&mut self, at: Timestamp, no: usize) {
        let invoice = &mut self.invoices[no];
        if invoice.status != Paper::Open {
            return;
        }
        (invoice.status, invoice.paid_at) = (Paper::Paid, Some(at));
        if let Ok(Some(other)) = self.untouched(no) {
            self.call_off(at, other, "invoice_paid");
        }
        self.record(at, "invoice.paid", Subject::Invoice(no), Details::None);
    }

    fn call_off(&mut self, at: Timestamp, charge: usize, why: &'static str) {
        assert!(self.charges[charge].it.cancel(), "it was untouched");
        self.record(at, "charge.canceled", Subject::Charge(charge), Details::Reason(why));
    }

    /// The charge of an invoice that waits.
    fn waiting(&self, invoice: usize) -> Option<usize> {
        self.invoices[invoice].charges.iter().copied().find(|no| self.charges[*no].it.waits())
    }

    /// The same, if money for it was never seen: 409 if it was.
    fn untouched(&self, invoice: usize) -> Result<Option<usize>, u16> {
        match self.waiting(invoice) {
            Some(no) if !self.charges[no].it.is_untouched() => Err(409),
            other => Ok(other),
        }
    }

    fn may_mail(&self, reader: Reader) -> Result<(), u16> {
        match reader {
            Reader::Nobody => Err(422),
            Reader::Stranger if self.mode() == Mode::Test => Err(422),
            Reader::Stranger | Reader::Member => Ok(()),
        }
    }

    fn mail(&mut self, at: Timestamp, no: usize) {
        self.invoices[no].sent_at = Some(at);
        self.record(at, "invoice.sent", Subject::Invoice(no), Details::None);
    }

    /// An event, and a delivery of it for each endpoint that takes it.
    fn record(&mut self, at: Timestamp, kind: &'static str, subject: Subject, details: Details) {
        let then = self.then(subject);
        self.events.push(Event { at, kind, subject, details, then });
        self.fan_out(at, kind);
    }
}

/// What idempotency goes by: who, where, and all that is said. Names of what is made are not said.
fn asked(deed: &Deed) -> Option<Asked> {
    let asked = |who: &Place, path: String, body: String, once: &Option<u8>| {
        Some(Asked { who: *who, path, body, once: *once })
    };
    match deed {
        Deed::Open { who, asset, cents, currency, link, once, .. } => {
            // A link has a currency of its own.
            let currency = link.is_none().then_some(currency);
            asked(who, "charges".to_owned(), format!("{asset} {cents} {currency:?} {link:?}"), once)
        }
        Deed::Cancel { by: By::Key(who), charge, once } => {
            asked(who, format!("cancel {charge:?}"), String::new(), once)
        }
        Deed::Refund { who, charge, units, once } => {
            asked(who, format!("refund {charge:?}"), units.to_string(), once)
        }
        Deed::Issue { who, cents, reader, send, once, .. } => {
            asked(who, "invoices".to_owned(), format!("{cents} {reader:?} {send}"), once)
        }
        _ => None,
    }
}

/// The service counts in 10⁻¹⁸.
pub(crate) fn atto_per_unit(asset: Asset) -> u128 {
    10_u128.pow(18) / money::units_per_coin(asset)
}

fn shifted(at: Timestamp, off: i64) -> Timestamp {
    let span = Span(off.unsigned_abs());
    if off < 0 { at.minus(span) } else { at.plus(span) }
}
