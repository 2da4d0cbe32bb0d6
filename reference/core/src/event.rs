//! The thirteen event types, and the append-only event log.

use std::{borrow::Cow, sync::Arc};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    id::{ChargeNo, EventNo, InvoiceNo},
    money::Coin,
    page::Listing,
    time::Timestamp,
};

macro_rules! event_types {
    ($($variant:ident $name:literal;)*) => {
        /// The type of an event of a charge or an invoice (`events.type`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the names are the specification's")]
        pub enum EventType { $($variant),* }

        impl EventType {
            /// All types, in the order of the specification.
            pub const ALL: [EventType; [$($name),*].len()] = [$(EventType::$variant),*];

            /// Returns the name: `charge.paid`.
            pub const fn as_str(self) -> &'static str {
                match self { $(EventType::$variant => $name),* }
            }
        }
    };
}

event_types! {
    ChargeCreated         "charge.created";
    ChargePaymentDetected "charge.payment_detected";
    ChargePaid            "charge.paid";
    ChargeUnderpaid       "charge.underpaid";
    ChargeLatePayment     "charge.late_payment";
    ChargeRefunded        "charge.refunded";
    ChargeExpired         "charge.expired";
    ChargeCanceled        "charge.canceled";
    InvoiceCreated        "invoice.created";
    InvoiceSent           "invoice.sent";
    InvoiceViewed         "invoice.viewed";
    InvoicePaid           "invoice.paid";
    InvoiceVoided         "invoice.voided";
}

impl EventType {
    /// Parses a name.
    pub fn parse(name: &str) -> Option<EventType> {
        EventType::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The object that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A charge.
    Charge(ChargeNo),
    /// An invoice.
    Invoice(InvoiceNo),
}

/// The details of a change, beyond the event's type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Details {
    /// No details: `{}`.
    None,
    /// A transfer: `{txid, amount}`.
    Transfer {
        /// The transaction.
        #[serde(with = "crate::shared::text")]
        txid: Arc<str>,
        /// Its amount.
        amount: Coin,
    },
    /// The total received amount: `{amount, txid}`.
    Received {
        /// The sum.
        amount: Coin,
        /// The transaction that changed the status.
        #[serde(with = "crate::shared::text")]
        txid: Arc<str>,
    },
    /// Money sent back: `{amount, txid?, reason?}`.
    Refund {
        /// The amount.
        amount: Coin,
        /// The transaction, if named.
        txid: Option<String>,
        /// The reason, if one was given.
        reason: Option<String>,
    },
    /// The reason: `{reason}`.
    Reason(Cow<'static, str>),
}

impl Details {
    /// Returns the names and values of the details, in the order of the JSON.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        fn text<'t>(name: &'static str, text: &'t str) -> Option<(&'static str, Cow<'t, str>)> {
            Some((name, Cow::Borrowed(text)))
        }
        let amount = |coin: &Coin| Some(("amount", Cow::Owned(coin.to_string())));
        let fields = match self {
            Details::None => [None, None, None],
            Details::Transfer { txid, amount: coin } => [text("txid", txid), amount(coin), None],
            Details::Received { amount: coin, txid } => [amount(coin), text("txid", txid), None],
            Details::Refund { amount: coin, txid, reason } => [
                amount(coin),
                txid.as_deref().and_then(|txid| text("txid", txid)),
                reason.as_deref().and_then(|reason| text("reason", reason)),
            ],
            Details::Reason(reason) => [text("reason", reason), None, None],
        };
        fields.into_iter().flatten()
    }
}

/// A recorded event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The id in the API, and `event_id` in webhooks.
    pub id: Uuid,
    /// The type.
    pub kind: EventType,
    /// The charge or invoice that it is about.
    pub subject: Subject,
    /// The details of the change.
    pub details: Details,
    /// The time of the event.
    pub created_at: Timestamp,
}

/// The events of one book, oldest first, with an index for every filter.
#[derive(Default, Serialize, Deserialize)]
pub struct EventLog {
    events: Vec<Event>,
    #[serde(skip)]
    by_type: [Vec<u32>; EventType::ALL.len()],
    #[serde(skip)]
    by_charge: Vec<Timeline>,
    #[serde(skip)]
    by_invoice: Vec<Timeline>,
}

impl EventLog {
    /// Adds the newest event and returns its number.
    pub(crate) fn push(&mut self, event: Event) -> EventNo {
        let no = EventNo::from_index(self.events.len());
        if let Some(last) = self.events.last() {
            assert!(last.id < event.id, "event ids strictly increase");
            assert!(last.created_at <= event.created_at, "the service clock never decreases");
        }
        self.events.push(event);
        self.add_to_indexes(no);
        no
    }

    /// Rebuilds the indexes of a log that was restored from its events.
    pub(crate) fn rebuild_indexes(&mut self) {
        (0..self.events.len()).map(EventNo::from_index).for_each(|no| self.add_to_indexes(no));
    }

    fn add_to_indexes(&mut self, no: EventNo) {
        let Event { kind, subject, .. } = self.events[no.index()];
        self.by_type[kind as usize].push(no.0);
        let (timelines, index) = match subject {
            Subject::Charge(no) => (&mut self.by_charge, no.index()),
            Subject::Invoice(no) => (&mut self.by_invoice, no.index()),
        };
        if timelines.len() <= index {
            timelines.resize_with(index + 1, Timeline::default);
        }
        timelines[index].push(no.0, kind);
        timelines[index].index_if_long(&self.events);
    }

    /// Returns an event by its number.
    pub fn get(&self, no: EventNo) -> &Event {
        &self.events[no.index()]
    }

    /// Returns the number of events.
    pub fn count(&self) -> usize {
        self.events.len()
    }

    /// Returns the number of the event with this id.
    pub fn find(&self, id: Uuid) -> Option<EventNo> {
        // Ids increase with creation, so the log is sorted by id.
        let position = self.events.binary_search_by_key(&id, |event| event.id).ok()?;
        Some(EventNo::from_index(position))
    }

    /// Returns the events of a charge or an invoice, oldest first.
    pub fn timeline(&self, subject: Subject) -> impl Iterator<Item = &Event> {
        self.timeline_of(subject).all.iter().map(|&no| &self.events[no as usize])
    }

    /// Returns the events of a type and of a subject; `None` for all.
    pub fn list(&self, kind: Option<EventType>, subject: Option<Subject>) -> Listing<'_> {
        match (subject, kind) {
            (None, None) => Listing::all(self.events.len()),
            (None, Some(kind)) => Listing::from_sorted_slice(&self.by_type[kind as usize]),
            (Some(subject), None) => Listing::from_sorted_slice(&self.timeline_of(subject).all),
            (Some(subject), Some(kind)) => self.timeline_of(subject).events_of_type(kind, &self.events),
        }
    }

    fn timeline_of(&self, subject: Subject) -> &Timeline {
        const EMPTY: &Timeline = &Timeline { all: Vec::new(), by_type: None };
        match subject {
            Subject::Charge(no) => self.by_charge.get(no.index()),
            Subject::Invoice(no) => self.by_invoice.get(no.index()),
        }
        .unwrap_or(EMPTY)
    }
}

/// The events of one subject. Nearly all timelines are short; the long ones have an index by type.
#[derive(Default)]
struct Timeline {
    all: Vec<u32>,
    by_type: Option<Box<[Vec<u32>; EventType::ALL.len()]>>,
}

impl Timeline {
    /// The largest number of events that a filter scans; longer timelines are indexed.
    const SCANNED_MAX: usize = 32;

    fn push(&mut self, no: u32, kind: EventType) {
        self.all.push(no);
        if let Some(index) = &mut self.by_type {
            index[kind as usize].push(no);
        }
    }

    fn events_of_type<'a>(&'a self, kind: EventType, events: &[Event]) -> Listing<'a> {
        match &self.by_type {
            Some(index) => Listing::from_sorted_slice(&index[kind as usize]),
            None => Listing::from_sorted_vec(
                self.all.iter().copied().filter(|&no| events[no as usize].kind == kind).collect(),
            ),
        }
    }

    /// Creates the index by type when the timeline has become too long to scan.
    fn index_if_long(&mut self, events: &[Event]) {
        if self.by_type.is_none() && self.all.len() > Timeline::SCANNED_MAX {
            let mut index: Box<[Vec<u32>; EventType::ALL.len()]> = Box::default();
            for &no in &self.all {
                index[events[no as usize].kind as usize].push(no);
            }
            self.by_type = Some(index);
        }
    }
}
