//! A book: all objects of one account in one mode, and the events that they record.

mod delivery;
mod invoice;
pub(super) mod json;
mod link;
mod sample;
pub(super) mod view;
mod wallet;

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    asset::Asset,
    mode::Mode,
    sighting::Sighting,
    time::{Span, Timestamp},
};

pub use self::{
    delivery::{Delivery, DeliveryState, EndpointModel, EndpointStatus, SCHEDULED_ATTEMPTS_MAX},
    invoice::{InvoiceDraft, InvoiceModel, InvoiceStatus},
    link::{CustomFieldDefinition, LinkModel, LinkOrder, Pricing},
    wallet::{NextAddress, WalletModel, Wallets},
};
use super::{Account, Charge, ChargeEvent, HOLD_MAX, Situation, Terms, texts::ChargeTexts};

/// The time for which the response to a request with an `Idempotency-Key` is stored.
const RESPONSE_TTL: Span = Span::hours(24);

/// The object of an event, as a number in its book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A charge.
    Charge(usize),
    /// An invoice.
    Invoice(usize),
}

/// The `details` of an event. Amounts are in the coin's smallest units.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub enum Details {
    None,
    Transfer { txid: String, units: u128 },
    Refund { units: u128, txid: Option<String>, reason: Option<String> },
    Reason(&'static str),
}

/// The object of an event at the time of the event, for the bodies of its deliveries.
#[derive(Clone, Debug)]
pub enum EventObject {
    /// A charge, and the height of its chain.
    Charge(Charge, u64),
    /// An invoice, and the statuses of its charges.
    Invoice(InvoiceModel, Vec<&'static str>),
}

/// The state of a charge or an invoice at the time of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The status.
    pub status: &'static str,
    /// The state of the chain for the charge, or for the newest charge of the invoice.
    pub situation: Situation,
}

/// An expected event.
#[derive(Clone, Debug)]
pub struct Event {
    /// The time.
    pub at: Timestamp,
    /// The type.
    pub kind: &'static str,
    /// The object.
    pub subject: Subject,
    /// The details.
    pub details: Details,
    /// The state of the object at the time of the event.
    pub snapshot: Snapshot,
    /// The complete object at the time of the event; `None` if the event is not delivered.
    pub object: Option<Box<EventObject>>,
}

/// The earlier use of the `Idempotency-Key` of a request, which determines the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatKind {
    /// The key has no stored response: the request is processed.
    First,
    /// The key was used for the same request, which gets the stored response with this number.
    Same(usize),
    /// The key was used for another request: 409.
    Other,
}

/// The stored response to a request with an `Idempotency-Key`.
#[derive(Clone, Debug)]
struct StoredResponse {
    at: Timestamp,
    /// The content of the request, which a repetition must share.
    request: Vec<u8>,
    /// The number of the response.
    response: usize,
}

/// All objects of one account in one mode, each kind in order of creation.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names are those of the API")]
pub struct Book {
    pub mode: Mode,
    pub charges: Vec<Charge>,
    pub invoices: Vec<InvoiceModel>,
    pub links: Vec<LinkModel>,
    pub events: Vec<Event>,
    /// The numbers of the events of each charge, and those of each invoice.
    object_events: (Vec<Vec<usize>>, Vec<Vec<usize>>),
    pub endpoints: Vec<EndpointModel>,
    pub deliveries: Vec<Delivery>,
    /// The number of webhook secrets created.
    pub secret_count: usize,
    pub wallets: Wallets,
    /// The last known heights of the chains.
    pub(super) heights: BTreeMap<Asset, u64>,
    /// The times of e-mails.
    mails: Vec<Timestamp>,
    /// The ends of future rate locks and holds, with their charges. A *hold* keeps a charge open after its rate lock, while
    /// sufficient transfers are unconfirmed.
    locks: BTreeSet<(Timestamp, usize)>,
    stored_responses: BTreeMap<String, StoredResponse>,
}

impl Book {
    pub(super) fn new(mode: Mode) -> Book {
        Book {
            mode,
            charges: Vec::new(),
            invoices: Vec::new(),
            links: Vec::new(),
            events: Vec::new(),
            object_events: Default::default(),
            endpoints: Vec::new(),
            deliveries: Vec::new(),
            secret_count: 0,
            wallets: Wallets::default(),
            heights: BTreeMap::new(),
            mails: Vec::new(),
            locks: BTreeSet::new(),
            stored_responses: BTreeMap::new(),
        }
    }

    /// Returns the earlier use of an `Idempotency-Key`. `scope` is the method, the path and the key; `request` is the content
    /// of the request.
    pub fn repeat_kind(&self, now: Timestamp, scope: &str, request: &[u8]) -> RepeatKind {
        match self.stored_responses.get(scope).filter(|stored| now.since(stored.at) < RESPONSE_TTL) {
            None => RepeatKind::First,
            Some(stored) if stored.request == request => RepeatKind::Same(stored.response),
            Some(_) => RepeatKind::Other,
        }
    }

    /// Stores the number of the response to a request with a key.
    pub fn store_response(&mut self, now: Timestamp, scope: String, request: Vec<u8>, response: usize) {
        self.stored_responses.insert(scope, StoredResponse { at: now, request, response });
    }

    /// Opens a charge. Returns its number.
    pub fn open(&mut self, now: Timestamp, account: &Account, (terms, texts): (Terms, ChargeTexts)) -> usize {
        let number = self.charges.len();
        let mut texts = texts;
        // The contract leaves the description open: the service uses the title of the link if the request has none.
        let title = || terms.link.map(|link| self.links[link].texts.title.clone());
        texts.description = texts.description.take().or_else(title);
        let charge = Charge::open(now, (terms, texts), account.bounds(), self.mode);
        self.locks.insert((charge.lock_ends_at, number));
        self.charges.push(charge);
        if let Some(invoice) = terms.invoice {
            self.invoices[invoice].charges.push(number);
        }
        self.record(now, "charge.created", Subject::Charge(number), Details::None);
        number
    }

    /// Cancels a charge. `details` name the reason unless an API request cancels it.
    ///
    /// # Errors
    ///
    /// 409 if the charge is not pending, or a transfer to it was seen and has not disappeared.
    pub fn cancel(&mut self, now: Timestamp, number: usize, details: Details) -> Result<(), u16> {
        if !self.charges[number].cancel() {
            return Err(409);
        }
        self.record(now, "charge.canceled", Subject::Charge(number), details);
        Ok(())
    }

    /// Records a refund in smallest units, with its transaction and reason if known.
    ///
    /// # Errors
    ///
    /// 422 if it is zero, or more than can be refunded.
    pub fn refund(
        &mut self,
        now: Timestamp,
        number: usize,
        units: u128,
        (txid, reason): (Option<String>, Option<String>),
    ) -> Result<(), u16> {
        if !self.charges[number].refund(now, units, (txid.as_deref(), reason.as_deref())) {
            return Err(422);
        }
        let details = Details::Refund { units, txid, reason };
        self.record(now, "charge.refunded", Subject::Charge(number), details);
        // The remaining amount may be insufficient for a hold.
        let mut events = Vec::new();
        self.charges[number].expire_if_due(now, &mut events);
        self.record_all(now, number, events);
        Ok(())
    }

    /// Accepts the late payments of a charge: all of them, or those of one transaction.
    ///
    /// # Errors
    ///
    /// 409 if the charge is neither expired nor canceled, or has no such payment that is confirmed and not refunded.
    pub fn accept(&mut self, now: Timestamp, number: usize, txid: Option<&str>) -> Result<(), u16> {
        let events = self.charges[number].accept(txid).ok_or(409_u16)?;
        self.record_all(now, number, events);
        Ok(())
    }

    /// Applies the watchers' sightings of one moment, each with the number of its charge. A charge processes all of its
    /// sightings together.
    pub fn on_sightings<'s>(
        &mut self,
        now: Timestamp,
        sightings: impl Iterator<Item = (usize, &'s Sighting)>,
    ) {
        let mut by_charge: Vec<(usize, Vec<&Sighting>)> = Vec::new();
        for (number, sighting) in sightings {
            match by_charge.iter_mut().find(|(charge, _)| *charge == number) {
                Some((_, sightings)) => sightings.push(sighting),
                None => by_charge.push((number, vec![sighting])),
            }
        }
        for (number, sightings) in by_charge {
            let events = self.charges[number].on_sightings(now, &sightings);
            self.record_all(now, number, events);
        }
    }

    /// Returns the time at which the next rate lock or hold of an open charge ends.
    pub(super) fn next_lock_end(&self) -> Option<Timestamp> {
        self.locks.iter().find(|(_, number)| self.charges[*number].is_open()).map(|(end, _)| *end)
    }

    /// Expires the rate locks and holds that end by `now`.
    pub(super) fn expire_locks(&mut self, now: Timestamp) {
        while let Some((end, number)) = self.locks.first().copied().filter(|(end, _)| *end <= now) {
            self.locks.remove(&(end, number));
            let mut events = Vec::new();
            self.charges[number].expire_if_due(now, &mut events);
            if self.charges[number].is_open() && end == self.charges[number].lock_ends_at {
                // A hold lasts at most this long.
                self.locks.insert((end.plus(HOLD_MAX), number));
            }
            self.record_all(now, number, events);
        }
    }

    /// Records the events of a charge. A payment also settles its invoice, and cancels the other charges of
    /// its link if it was the last payment that the link accepts.
    fn record_all(&mut self, at: Timestamp, number: usize, events: Vec<ChargeEvent>) {
        for event in events {
            let transfer = |txid, units| Details::Transfer { txid, units };
            let (kind, details) = match event {
                ChargeEvent::Detected { txid, units } => ("charge.payment_detected", transfer(txid, units)),
                ChargeEvent::Paid { txid, units } => ("charge.paid", transfer(txid, units)),
                ChargeEvent::Underpaid { txid, units } => ("charge.underpaid", transfer(txid, units)),
                ChargeEvent::Late { txid, units } => ("charge.late_payment", transfer(txid, units)),
                ChargeEvent::Expired => ("charge.expired", Details::None),
            };
            self.record(at, kind, Subject::Charge(number), details);
            if kind == "charge.paid" {
                self.settle_invoice(at, number);
                self.cancel_charges_of_exhausted_link(at, number);
            }
        }
    }

    /// Records an event, and creates a delivery for each enabled endpoint that is registered for its type.
    pub(super) fn record(&mut self, at: Timestamp, kind: &'static str, subject: Subject, details: Details) {
        let snapshot = self.snapshot(subject);
        let object = self.has_receiver(kind).then(|| {
            Box::new(match subject {
                Subject::Charge(number) => {
                    let charge = self.charges[number].clone();
                    let height = self.height(charge.terms.asset);
                    EventObject::Charge(charge, height)
                }
                Subject::Invoice(number) => {
                    let invoice = self.invoices[number].clone();
                    let statuses = self.statuses_of(&invoice);
                    EventObject::Invoice(invoice, statuses)
                }
            })
        });
        let (numbers_by_object, number) = match subject {
            Subject::Charge(number) => (&mut self.object_events.0, number),
            Subject::Invoice(number) => (&mut self.object_events.1, number),
        };
        if numbers_by_object.len() <= number {
            numbers_by_object.resize_with(number + 1, Vec::new);
        }
        numbers_by_object[number].push(self.events.len());
        self.events.push(Event { at, kind, subject, details, snapshot, object });
        self.create_deliveries(at, kind);
    }

    /// Returns the last known height of a coin's chain.
    pub(super) fn height(&self, asset: Asset) -> u64 {
        self.heights.get(&asset).copied().unwrap_or(0)
    }

    /// Returns the current state of an object.
    pub fn snapshot(&self, subject: Subject) -> Snapshot {
        match subject {
            Subject::Charge(number) => {
                let charge = &self.charges[number];
                Snapshot { status: charge.status.as_str(), situation: charge.situation() }
            }
            Subject::Invoice(number) => {
                let invoice = &self.invoices[number];
                let newest = invoice.charges.last().map(|number| &self.charges[*number]);
                Snapshot {
                    status: invoice.status.as_str(),
                    situation: newest.map_or(Situation::NoTransfer, Charge::situation),
                }
            }
        }
    }

    /// Returns the statuses of an invoice's charges.
    fn statuses_of(&self, invoice: &InvoiceModel) -> Vec<&'static str> {
        invoice.charges.iter().map(|number| self.charges[*number].status.as_str()).collect()
    }
}
