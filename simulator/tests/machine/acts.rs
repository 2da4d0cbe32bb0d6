//! What people do: clients, owners and customers, with charges, invoices and links.

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::{Span, Timestamp},
};
use simulator::model::{Charge, LOCK, Tale, money};

use crate::{
    deed::{By, Deed, Name, Place, Pricing, Reader},
    world::{Book, ChargeOf, Details, Event, InvoiceOf, LinkOf, Paper, Subject, World},
};

/// An invoice is not mailed again within this time.
const MAIL_PAUSE: Span = Span::mins(10);

/// The status of a good answer, or of a refusal.
pub(crate) type Answered = Result<u16, u16>;

impl World {
    /// Does it, if it may be done.
    pub(crate) fn write(&mut self, deed: &Deed) -> Answered {
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
    pub(crate) fn tell(&mut self, at: Timestamp, no: usize, tales: Vec<Tale>) {
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
