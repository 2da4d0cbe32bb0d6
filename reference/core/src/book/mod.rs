//! A book: all objects of one account in one mode. Every look-up is on one book, so an object of
//! the other mode cannot be found by mistake (`isolation.not_found`).

mod addresses;
mod charges;
mod hooks;
mod invoices;
mod links;
mod payouts;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use hashbrown::DefaultHashBuilder;
use uuid::Uuid;

use addresses::Addresses;
pub use hooks::Post;
pub use payouts::{Payouts, Stray};

use crate::{
    account::Settings,
    call::List,
    charge::{Charge, ChargeStatus},
    draw::{Lot, Seed},
    endpoint::Endpoint,
    error::ApiError,
    event::{Details, Event, EventLog, EventType, Subject},
    exchange::Exchange,
    id::{ChargeNo, Code, EndpointNo, EventNo, InvoiceNo, LinkNo, Mint, parse_uuid},
    idempotency::Answers,
    invoice::{Invoice, InvoiceStatus},
    link::Link,
    mail::{MailKind, Mails},
    mode::Mode,
    outbox::{Content, Outbox, Parcel},
    page::Listing,
    shelf::Shelf,
    time::Timestamp,
    wallet::Vault,
    wire::{Fragments, webhook},
};

/// What a change of a book depends on.
#[derive(Clone, Copy)]
pub(crate) struct Circumstances<'a> {
    pub(crate) now: Timestamp,
    pub(crate) settings: &'a Settings,
    pub(crate) exchange: &'a Exchange,
    pub(crate) public_url: &'a str,
}

/// Something that people beside the API's clients may want to know.
#[derive(Clone, Debug)]
pub enum Notice {
    /// An event was recorded.
    Event(EventNo),
    /// An e-mail went to the outbox.
    Mail {
        /// To whom.
        to: String,
        /// What for.
        kind: MailKind,
        /// Which invoice.
        invoice: InvoiceNo,
    },
    /// An endpoint failed too often and was switched off.
    EndpointOff(EndpointNo),
}

/// Objects by their codes, which are drawn: nobody can choose them so that they collide.
type ByCode<N> = HashMap<Code, N, DefaultHashBuilder>;

/// All objects of one account in one mode.
pub struct Book {
    mode: Mode,
    lots: Lots,
    charges: Vec<Charge>,
    /// How often each charge was changed.
    charge_changes: Vec<u32>,
    charge_codes: ByCode<ChargeNo>,
    charge_shelf: Shelf<{ ChargeStatus::ALL.len() }>,
    addresses: Addresses,
    /// When rate locks end.
    locks: BTreeSet<(Timestamp, ChargeNo)>,
    invoices: Vec<Invoice>,
    /// How often each invoice was changed.
    invoice_changes: Vec<u32>,
    invoice_codes: ByCode<InvoiceNo>,
    invoice_shelf: Shelf<{ InvoiceStatus::ALL.len() }>,
    links: Vec<Link>,
    link_codes: ByCode<LinkNo>,
    events: EventLog,
    event_mint: Mint,
    endpoints: Vec<Endpoint>,
    outbox: Outbox,
    delivery_mint: Mint,
    secrets: u64,
    mails: Mails,
    payouts: Payouts,
    strays: BTreeMap<(String, u32), Stray>,
    /// Writes that may be sent twice.
    pub(crate) answers: Answers,
    /// Objects as they were last written.
    pub(crate) fragments: Fragments,
    /// Keys made in this mode.
    pub(crate) keys_made: u64,
    notices: Vec<Notice>,
}

/// The keyed randomness of a book, by what it is for.
struct Lots {
    charge: Lot,
    invoice: Lot,
    link: Lot,
    endpoint: Lot,
    secret: Lot,
    key: Lot,
}

impl Book {
    pub(crate) fn new(seed: Seed, vault: Option<&Vault>, account: &str, mode: Mode) -> Book {
        let lot = |purpose| seed.lot(mode.as_str(), account, purpose);
        Book {
            mode,
            lots: Lots {
                charge: lot("charge"),
                invoice: lot("invoice"),
                link: lot("link"),
                endpoint: lot("endpoint"),
                secret: lot("secret"),
                key: lot("key"),
            },
            charges: Vec::new(),
            charge_changes: Vec::new(),
            charge_codes: ByCode::default(),
            charge_shelf: Shelf::default(),
            addresses: Addresses::default(),
            locks: BTreeSet::new(),
            invoices: Vec::new(),
            invoice_changes: Vec::new(),
            invoice_codes: ByCode::default(),
            invoice_shelf: Shelf::default(),
            links: Vec::new(),
            link_codes: ByCode::default(),
            events: EventLog::default(),
            event_mint: Mint::new(lot("event")),
            endpoints: Vec::new(),
            outbox: Outbox::default(),
            delivery_mint: Mint::new(lot("delivery")),
            secrets: 0,
            mails: Mails::default(),
            payouts: Payouts::seeded(seed, vault, account, mode),
            strays: BTreeMap::new(),
            answers: Answers::default(),
            fragments: Fragments::default(),
            keys_made: 0,
            notices: Vec::new(),
        }
    }

    /// Which mode this is.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// A charge by its number.
    pub fn charge(&self, no: ChargeNo) -> &Charge {
        &self.charges[no.index()]
    }

    /// A charge, to be changed.
    fn charge_mut(&mut self, no: ChargeNo) -> &mut Charge {
        self.restamp(Subject::Charge(no));
        &mut self.charges[no.index()]
    }

    /// An invoice, to be changed.
    fn invoice_mut(&mut self, no: InvoiceNo) -> &mut Invoice {
        self.restamp(Subject::Invoice(no));
        &mut self.invoices[no.index()]
    }

    /// Something that the subject's text shows is about to change.
    fn restamp(&mut self, subject: Subject) {
        let changes = match subject {
            Subject::Charge(no) => &mut self.charge_changes[no.index()],
            Subject::Invoice(no) => &mut self.invoice_changes[no.index()],
        };
        *changes = changes.wrapping_add(1);
    }

    /// What the text of a charge or an invoice, and of its events, hangs on: as long as it stays the same, so does the
    /// text.
    pub(crate) fn stamp(&self, subject: Subject, now: Timestamp) -> u64 {
        let changes = |no: &ChargeNo| u64::from(self.charge_changes[no.index()]);
        match subject {
            Subject::Charge(no) => changes(&no),
            Subject::Invoice(no) => {
                // It shows its charges too. Counts only rise, so their sum tells every change.
                let invoice = self.invoice(no);
                let own = u64::from(self.invoice_changes[no.index()]);
                let all = own + invoice.charges.iter().map(changes).sum::<u64>();
                (all << 1) | u64::from(invoice.is_overdue(now))
            }
        }
    }

    /// The charge with this code.
    pub fn find_charge(&self, code: Code) -> Result<ChargeNo, ApiError> {
        self.charge_codes.get(&code).copied().ok_or(ApiError::NotFound)
    }

    /// The charge that has this deposit address.
    pub fn charge_at(&self, address: &str) -> Option<ChargeNo> {
        self.addresses.find(address, |no| &self.charge(no).terms.deposit_address)
    }

    /// An invoice by its number.
    pub fn invoice(&self, no: InvoiceNo) -> &Invoice {
        &self.invoices[no.index()]
    }

    /// The invoice with this code.
    pub fn find_invoice(&self, code: Code) -> Result<InvoiceNo, ApiError> {
        self.invoice_codes.get(&code).copied().ok_or(ApiError::NotFound)
    }

    /// A payment link by its number.
    pub fn link(&self, no: LinkNo) -> &Link {
        &self.links[no.index()]
    }

    /// The payment link with this code.
    pub fn find_link(&self, code: Code) -> Result<LinkNo, ApiError> {
        self.link_codes.get(&code).copied().ok_or(ApiError::NotFound)
    }

    /// Everything that was recorded.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    /// The event with this id.
    pub fn find_event(&self, id: Uuid) -> Result<EventNo, ApiError> {
        self.events.find(id).ok_or(ApiError::NotFound)
    }

    /// A webhook endpoint by its number.
    pub fn endpoint(&self, no: EndpointNo) -> &Endpoint {
        &self.endpoints[no.index()]
    }

    /// Every webhook endpoint, removed ones too.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The delivery log.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// E-mails that went out.
    pub fn mails(&self) -> &Mails {
        &self.mails
    }

    /// The wallets.
    pub fn payouts(&self) -> &Payouts {
        &self.payouts
    }

    /// Money that belongs to no charge: sent to our addresses in another coin.
    pub fn strays(&self) -> impl Iterator<Item = (&str, &Stray)> {
        self.strays.iter().map(|((txid, _), stray)| (txid.as_str(), stray))
    }

    pub(crate) fn key_lot(&self) -> &Lot {
        &self.lots.key
    }

    /// The members of a list, newest last. A filter that names what this book does not hold selects
    /// nothing.
    pub fn listing(&self, list: &List) -> Listing<'_> {
        let code = |text: &str| Code::parse(text);
        match list {
            List::Charges { status, link: None } => Listing::Charges(&self.charge_shelf, *status),
            List::Charges { status, link: Some(link) } => {
                match code(link).and_then(|code| self.link_codes.get(&code)) {
                    Some(no) => Listing::Charges(&self.link(*no).charges, *status),
                    None => Listing::empty(),
                }
            }
            List::Invoices { status } => Listing::Invoices(&self.invoice_shelf, *status),
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

    /// The public id of a record of a list.
    pub fn public_id(&self, list: &List, member: u32) -> String {
        match list {
            List::Charges { .. } => self.charge(ChargeNo(member)).code.to_string(),
            List::Invoices { .. } => self.invoice(InvoiceNo(member)).code.to_string(),
            List::Links => self.link(LinkNo(member)).code.to_string(),
            List::Events { .. } => self.events.get(EventNo(member)).id.to_string(),
        }
    }

    /// The record that an anchor names, if this book holds it.
    pub fn anchored(&self, list: &List, anchor: &str) -> Option<u32> {
        let code = Code::parse(anchor);
        match list {
            List::Charges { .. } => self.charge_codes.get(&code?).map(|no| no.0),
            List::Invoices { .. } => self.invoice_codes.get(&code?).map(|no| no.0),
            List::Links => self.link_codes.get(&code?).map(|no| no.0),
            List::Events { .. } => self.events.find(parse_uuid(anchor)?).map(|no| no.0),
        }
    }

    pub(crate) fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// The only place where an event begins to exist, and with it its deliveries.
    fn record(&mut self, at: &Circumstances<'_>, kind: EventType, subject: Subject, details: Details) {
        let id = self.event_mint.next(at.now);
        let event = Event { id, kind, subject, details, created_at: at.now };
        let no = self.events.push(event);
        // The subject's timeline shows it.
        self.restamp(subject);
        self.notices.push(Notice::Event(no));
        self.fan_out(at, no);
    }

    /// One delivery for each endpoint that takes the event (`delivery.subscribed`). An endpoint of
    /// this book is of the event's mode.
    fn fan_out(&mut self, at: &Circumstances<'_>, no: EventNo) {
        let event = self.events.get(no);
        if !self.endpoints.iter().any(|endpoint| endpoint.takes(event.kind)) {
            return;
        }
        let content = match event.subject {
            Subject::Charge(no) => Content::Charge(Arc::new(self.charge(no).clone())),
            Subject::Invoice(no) => Content::Written(webhook::invoice(self, no, at).into()),
        };
        let parcel =
            Parcel { event: Some((no, event.id)), kind: event.kind, created_at: event.created_at, content };
        for (place, endpoint) in self.endpoints.iter().enumerate() {
            if endpoint.takes(parcel.kind) {
                let id = self.delivery_mint.next(at.now);
                self.outbox.open(at.now, id, EndpointNo::next(place), parcel.clone());
            }
        }
    }
}
