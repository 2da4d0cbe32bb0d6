//! A book: all objects of one account in one mode. Every look-up is on one book, so an object of
//! the other mode cannot be found by mistake (`isolation.not_found`).

mod addresses;
mod charges;
mod commands;
mod endpoints;
mod invoices;
mod links;
mod wallets;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use hashbrown::DefaultHashBuilder;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use addresses::Addresses;
pub use wallets::{UnmatchedTransfer, Wallets};

use crate::{
    account::Settings,
    asset::Asset,
    call::List,
    charge::{Charge, ChargeStatus},
    endpoint::Endpoint,
    error::ApiError,
    event::{Details, Event, EventLog, EventType, Subject},
    exchange::Exchange,
    heights::ChainHeights,
    id::{ChargeNo, Code, EndpointNo, EventNo, IdGenerator, InvoiceNo, LinkNo, parse_uuid},
    invoice::{Invoice, InvoiceStatus},
    link::Link,
    mail::{MailKind, MailLog},
    mode::Mode,
    outbox::{Outbox, Payload, Snapshot},
    page::Listing,
    rng::{RngKey, Seed},
    status_index::StatusIndex,
    time::Timestamp,
    wallet::WalletCache,
};

/// The state outside a book that a change of the book depends on.
#[derive(Clone, Copy)]
pub(crate) struct BookContext<'a> {
    pub(crate) now: Timestamp,
    pub(crate) settings: &'a Settings,
    pub(crate) exchange: &'a Exchange,
    pub(crate) heights: &'a ChainHeights,
}

/// A notice for the host: an event, an e-mail, or a disabled endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Notice {
    /// An event was recorded.
    Event(EventNo),
    /// An e-mail was sent.
    Mail {
        /// The recipient.
        to: String,
        /// The purpose of the e-mail.
        kind: MailKind,
        /// The number of the invoice.
        invoice: InvoiceNo,
    },
    /// An endpoint failed too often and was disabled.
    EndpointDisabled(EndpointNo),
}

/// The numbers of objects by their codes. Codes are random, so clients cannot provoke hash collisions.
type ByCode<N> = HashMap<Code, N, DefaultHashBuilder>;

/// All objects of one account in one mode.
#[derive(Serialize, Deserialize)]
pub struct Book {
    mode: Mode,
    rng_keys: RngKeys,
    charges: Vec<Charge>,
    /// The number of changes to each charge.
    charge_changes: Vec<u32>,
    /// For each charge, its coin if a transfer is confirmed, so that the confirmations grow with the chain. Stored
    /// beside the charges, so that a list can be checked for changes without reading the charges.
    #[serde(skip)]
    confirming_assets: Vec<Option<Asset>>,
    #[serde(skip)]
    charge_codes: ByCode<ChargeNo>,
    #[serde(skip)]
    charges_by_status: StatusIndex<{ ChargeStatus::ALL.len() }>,
    #[serde(skip)]
    addresses: Addresses,
    /// The end of each charge's rate lock, or of the hold that follows it.
    locks: BTreeSet<(Timestamp, ChargeNo)>,
    invoices: Vec<Invoice>,
    /// The number of changes to each invoice.
    invoice_changes: Vec<u32>,
    #[serde(skip)]
    invoice_codes: ByCode<InvoiceNo>,
    #[serde(skip)]
    invoices_by_status: StatusIndex<{ InvoiceStatus::ALL.len() }>,
    links: Vec<Link>,
    #[serde(skip)]
    link_codes: ByCode<LinkNo>,
    events: EventLog,
    event_ids: IdGenerator,
    endpoints: Vec<Endpoint>,
    outbox: Outbox,
    delivery_ids: IdGenerator,
    /// The number of webhook secrets that were drawn.
    secrets: u64,
    mails: MailLog,
    wallets: Wallets,
    /// The transfers to a charge's address in another coin than the charge's, by transaction id and output index.
    unmatched: BTreeMap<(String, u32), UnmatchedTransfer>,
    /// The number of keys created in this mode.
    pub(crate) keys_created: u64,
    notices: Vec<Notice>,
}

/// The keys from which the random values of a book are drawn, by purpose.
#[derive(Serialize, Deserialize)]
struct RngKeys {
    charge: RngKey,
    invoice: RngKey,
    link: RngKey,
    endpoint: RngKey,
    secret: RngKey,
    key: RngKey,
}

impl Book {
    pub(crate) fn new(seed: Seed, wallet_cache: Option<&WalletCache>, account: &str, mode: Mode) -> Book {
        let rng_key = |purpose| seed.rng_key(mode.as_str(), account, purpose);
        Book {
            mode,
            rng_keys: RngKeys {
                charge: rng_key("charge"),
                invoice: rng_key("invoice"),
                link: rng_key("link"),
                endpoint: rng_key("endpoint"),
                secret: rng_key("secret"),
                key: rng_key("key"),
            },
            charges: Vec::new(),
            charge_changes: Vec::new(),
            confirming_assets: Vec::new(),
            charge_codes: ByCode::default(),
            charges_by_status: StatusIndex::default(),
            addresses: Addresses::default(),
            locks: BTreeSet::new(),
            invoices: Vec::new(),
            invoice_changes: Vec::new(),
            invoice_codes: ByCode::default(),
            invoices_by_status: StatusIndex::default(),
            links: Vec::new(),
            link_codes: ByCode::default(),
            events: EventLog::default(),
            event_ids: IdGenerator::new(rng_key("event")),
            endpoints: Vec::new(),
            outbox: Outbox::default(),
            delivery_ids: IdGenerator::new(rng_key("delivery")),
            secrets: 0,
            mails: MailLog::default(),
            wallets: Wallets::from_seed(seed, wallet_cache, account, mode),
            unmatched: BTreeMap::new(),
            keys_created: 0,
            notices: Vec::new(),
        }
    }

    /// Rebuilds the indexes of a book that was restored from its objects.
    pub(crate) fn rebuild_indexes(&mut self) {
        let links = self.links.iter().map(|link| link.code).zip(0..);
        self.link_codes = links.map(|(code, no)| (code, LinkNo(no))).collect();
        for (no, charge) in (0..).zip(&self.charges) {
            let (terms, status) = (&charge.terms, charge.status() as usize);
            self.charge_codes.insert(charge.code, ChargeNo(no));
            self.addresses.insert(&terms.deposit_address, ChargeNo(no));
            self.charges_by_status.push(no, status);
            if let Some(link) = terms.link {
                self.links[link.index()].charges.push(no, status);
            }
            let required = terms.asset.required_confirmations(self.mode);
            self.confirming_assets.push(charge.has_confirmed_transfer(required).then_some(terms.asset));
        }
        for (no, invoice) in (0..).zip(&self.invoices) {
            self.invoice_codes.insert(invoice.code, InvoiceNo(no));
            self.invoices_by_status.push(no, invoice.status() as usize);
        }
        self.events.rebuild_indexes();
    }

    /// Returns the book's mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns a charge by its number.
    pub fn charge(&self, no: ChargeNo) -> &Charge {
        &self.charges[no.index()]
    }

    /// Returns a charge to change, and counts the change.
    fn charge_mut(&mut self, no: ChargeNo) -> &mut Charge {
        self.count_change(Subject::Charge(no));
        &mut self.charges[no.index()]
    }

    /// Returns an invoice to change, and counts the change.
    fn invoice_mut(&mut self, no: InvoiceNo) -> &mut Invoice {
        self.count_change(Subject::Invoice(no));
        &mut self.invoices[no.index()]
    }

    /// Counts a change of a charge or an invoice.
    fn count_change(&mut self, subject: Subject) {
        let changes = match subject {
            Subject::Charge(no) => &mut self.charge_changes[no.index()],
            Subject::Invoice(no) => &mut self.invoice_changes[no.index()],
        };
        *changes = changes.wrapping_add(1);
    }

    /// Returns the version of a charge or an invoice: a number that changes whenever its JSON or that of its events
    /// does.
    pub fn version(&self, subject: Subject, now: Timestamp, heights: &ChainHeights) -> u64 {
        let changes_of = |no: &ChargeNo| u64::from(self.charge_changes[no.index()]);
        match subject {
            Subject::Charge(no) => {
                let height =
                    self.confirming_assets[no.index()].map_or(0, |asset| heights.get(self.mode, asset));
                (height << 32) | changes_of(&no)
            }
            Subject::Invoice(no) => {
                // The JSON of an invoice contains its charges and whether it is overdue. Counts only grow, so their sum
                // changes with each of them.
                let invoice = self.invoice(no);
                let own_changes = u64::from(self.invoice_changes[no.index()]);
                let changes = own_changes + invoice.charges.iter().map(changes_of).sum::<u64>();
                (changes << 1) | u64::from(invoice.is_overdue(now))
            }
        }
    }

    /// Returns the number of the charge with this code.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if this book has no such charge.
    pub fn find_charge(&self, code: Code) -> Result<ChargeNo, ApiError> {
        self.charge_codes.get(&code).copied().ok_or(ApiError::NotFound)
    }

    /// Returns the number of the charge with this deposit address.
    pub fn charge_by_address(&self, address: &str) -> Option<ChargeNo> {
        self.addresses.find(address, |no| &self.charge(no).terms.deposit_address)
    }

    /// Returns an invoice by its number.
    pub fn invoice(&self, no: InvoiceNo) -> &Invoice {
        &self.invoices[no.index()]
    }

    /// Returns the number of the invoice with this code.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if this book has no such invoice.
    pub fn find_invoice(&self, code: Code) -> Result<InvoiceNo, ApiError> {
        self.invoice_codes.get(&code).copied().ok_or(ApiError::NotFound)
    }

    /// Returns a payment link by its number.
    pub fn link(&self, no: LinkNo) -> &Link {
        &self.links[no.index()]
    }

    /// Returns the number of the payment link with this code.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if this book has no such payment link.
    pub fn find_link(&self, code: Code) -> Result<LinkNo, ApiError> {
        self.link_codes.get(&code).copied().ok_or(ApiError::NotFound)
    }

    /// Returns the event log.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// Returns the number of the event with this id.
    ///
    /// # Errors
    ///
    /// [`ApiError::NotFound`] if this book has no such event.
    pub fn find_event(&self, id: Uuid) -> Result<EventNo, ApiError> {
        self.events.find(id).ok_or(ApiError::NotFound)
    }

    /// Returns a webhook endpoint by its number.
    pub fn endpoint(&self, no: EndpointNo) -> &Endpoint {
        &self.endpoints[no.index()]
    }

    /// Returns all webhook endpoints, removed ones included.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// Returns the outbox with the delivery log.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns the sent e-mails.
    pub fn mails(&self) -> &MailLog {
        &self.mails
    }

    /// Returns the wallets.
    pub fn wallets(&self) -> &Wallets {
        &self.wallets
    }

    /// Returns the transfers that belong to no charge, because they were sent to its address in another coin, with
    /// their transaction ids.
    pub fn unmatched_transfers(&self) -> impl Iterator<Item = (&str, &UnmatchedTransfer)> {
        self.unmatched.iter().map(|((txid, _), transfer)| (txid.as_str(), transfer))
    }

    /// Returns the key from which the book's API keys are drawn.
    pub(crate) fn key_rng(&self) -> &RngKey {
        &self.rng_keys.key
    }

    /// Returns the members of a list, newest last. A filter by an object that is not in this book selects nothing.
    pub fn listing(&self, list: &List) -> Listing<'_> {
        let code = |text: &str| Code::parse(text);
        match list {
            List::Charges { status, link: None } => Listing::Charges(&self.charges_by_status, *status),
            List::Charges { status, link: Some(link) } => {
                match code(link).and_then(|code| self.link_codes.get(&code)) {
                    Some(no) => Listing::Charges(&self.link(*no).charges, *status),
                    None => Listing::empty(),
                }
            }
            List::Invoices { status } => Listing::Invoices(&self.invoices_by_status, *status),
            List::Links => Listing::all(self.links.len()),
            List::Events { kind, charge: None, invoice: None } => self.events.list(*kind, None),
            List::Events { kind, charge: Some(charge), invoice: None } => {
                match code(charge).and_then(|code| self.charge_codes.get(&code)) {
                    Some(no) => self.events.list(*kind, Some(Subject::Charge(*no))),
                    None => Listing::empty(),
                }
            }
            List::Events { kind, charge: None, invoice: Some(invoice) } => {
                match code(invoice).and_then(|code| self.invoice_codes.get(&code)) {
                    Some(no) => self.events.list(*kind, Some(Subject::Invoice(*no))),
                    None => Listing::empty(),
                }
            }
            // No event is about a charge and an invoice at once.
            List::Events { charge: Some(_), invoice: Some(_), .. } => Listing::empty(),
        }
    }

    /// Returns the public id of a record of a list; `member` is the number of the record.
    pub fn public_id(&self, list: &List, member: u32) -> String {
        match list {
            List::Charges { .. } => self.charge(ChargeNo(member)).code.to_string(),
            List::Invoices { .. } => self.invoice(InvoiceNo(member)).code.to_string(),
            List::Links => self.link(LinkNo(member)).code.to_string(),
            List::Events { .. } => self.events.get(EventNo(member)).id.to_string(),
        }
    }

    /// Returns the number of the record whose public id is `anchor`, if it is in this book.
    pub fn find_anchor(&self, list: &List, anchor: &str) -> Option<u32> {
        let code = Code::parse(anchor);
        match list {
            List::Charges { .. } => self.charge_codes.get(&code?).map(|no| no.0),
            List::Invoices { .. } => self.invoice_codes.get(&code?).map(|no| no.0),
            List::Links => self.link_codes.get(&code?).map(|no| no.0),
            List::Events { .. } => self.events.find(parse_uuid(anchor)?).map(|no| no.0),
        }
    }

    /// Returns the recorded notices and clears them.
    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Records an event and opens its deliveries. No other function creates events.
    fn record(&mut self, context: &BookContext<'_>, kind: EventType, subject: Subject, details: Details) {
        let id = self.event_ids.next(context.now);
        let event = Event { id, kind, subject, details, created_at: context.now };
        let no = self.events.push(event);
        // The JSON of the subject has a timeline, which contains the event.
        self.count_change(subject);
        self.notices.push(Notice::Event(no));
        self.fan_out(context, no);
    }

    /// Opens one delivery for each endpoint that subscribes to the event (`delivery.subscribed`). Endpoints of this
    /// book have the event's mode.
    fn fan_out(&mut self, context: &BookContext<'_>, no: EventNo) {
        let event = self.events.get(no);
        if !self.endpoints.iter().any(|endpoint| endpoint.receives(event.kind)) {
            return;
        }
        let snapshot = match event.subject {
            Subject::Charge(no) => {
                let charge = self.charge(no);
                let height = context.heights.get(self.mode, charge.terms.asset);
                Snapshot::Charge(Arc::new(charge.snapshot(height, self.required_confirmations(no))))
            }
            Subject::Invoice(no) => Snapshot::Invoice(Arc::new(self.invoice_snapshot(no))),
        };
        let payload =
            Payload { event: Some((no, event.id)), kind: event.kind, created_at: event.created_at, snapshot };
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            if endpoint.receives(payload.kind) {
                let id = self.delivery_ids.next(context.now);
                self.outbox.open(context.now, id, EndpointNo::from_index(index), payload.clone());
            }
        }
    }
}
