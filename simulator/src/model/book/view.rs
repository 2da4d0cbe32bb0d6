//! Views of the objects in responses and webhooks, with only the fields that an invariant reads.
//!
//! [`WithJson`] also has the complete JSON, which is compared with the model.

use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Deref};

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::Subject;

/// A view of an object, and its complete JSON.
#[derive(Clone)]
pub struct WithJson<T> {
    view: T,
    /// The JSON.
    pub json: Box<RawValue>,
}

impl<T> Deref for WithJson<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.view
    }
}

impl<T> fmt::Debug for WithJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.get().fmt(f)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let view = serde_json::from_str(json.get()).map_err(serde::de::Error::custom)?;
        Ok(WithJson { view, json })
    }
}

/// A charge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ChargeView {
    pub code: String,
    pub status: String,
    pub payment_link: Option<String>,
    pub invoice: Option<String>,
    pub asset: String,
    pub received_amount: String,
    pub refunded_amount: String,
    pub exchange_rate: String,
    pub deposit_address: String,
    pub transactions: Vec<TransferView>,
    pub timeline: Vec<TimelineEntry>,
    pub paid_at: Option<String>,
}

/// A transfer of a charge.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct TransferView {
    pub txid: String,
    pub amount: String,
    pub confirmations: u64,
    pub credited: bool,
}

/// An entry of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct TimelineEntry {
    pub event: String,
    pub time: String,
}

/// An invoice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct InvoiceView {
    pub code: String,
    pub status: String,
    pub charges: Vec<NestedCharge>,
    pub timeline: Vec<TimelineEntry>,
}

/// A charge within its invoice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct NestedCharge {
    pub status: String,
}

/// A payment link.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct LinkView {
    pub code: String,
    pub accepting_payments: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct EventView {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub details: BTreeMap<String, String>,
    pub charge: Option<SubjectView>,
    pub invoice: Option<SubjectView>,
    pub created_at: String,
}

impl EventView {
    /// Returns the code of the event's object; empty if it has none.
    pub fn subject(&self) -> &str {
        self.charge.as_ref().or(self.invoice.as_ref()).map_or("", |view| view.code.as_str())
    }
}

/// The object of an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct SubjectView {
    pub code: String,
}

/// The fields of a delivery's body that identify the delivery, its event and its object.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Envelope<'b> {
    #[serde(borrow)]
    pub id: Cow<'b, str>,
    #[serde(borrow)]
    pub event_id: Option<Cow<'b, str>>,
    #[serde(default)]
    pub test: bool,
    #[serde(borrow)]
    data: EnvelopeData<'b>,
}

#[derive(Debug, Deserialize)]
struct EnvelopeData<'b> {
    #[serde(borrow)]
    charge: Option<EnvelopeObject<'b>>,
    #[serde(borrow)]
    invoice: Option<EnvelopeObject<'b>>,
}

#[derive(Debug, Deserialize)]
struct EnvelopeObject<'b> {
    #[serde(borrow)]
    code: Cow<'b, str>,
}

impl<'b> Envelope<'b> {
    /// Parses a body; `None` if it is invalid.
    pub fn read(body: &'b [u8]) -> Option<Envelope<'b>> {
        serde_json::from_slice(body).ok()
    }

    /// Returns the code of the object; empty if the body does not have exactly one.
    pub fn subject(&self) -> &str {
        match (&self.data.charge, &self.data.invoice) {
            (Some(object), None) | (None, Some(object)) => object.code.as_ref(),
            _ => "",
        }
    }
}

/// The public ids of the objects of a book, each kind in order of creation.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct Ids {
    pub charges: Vec<String>,
    /// The deposit address of each charge.
    pub addresses: Vec<String>,
    pub invoices: Vec<String>,
    pub links: Vec<String>,
    pub events: Vec<String>,
}

impl Ids {
    /// Returns the code of a charge or an invoice.
    pub fn code(&self, subject: Subject) -> &str {
        match subject {
            Subject::Charge(number) => &self.charges[number],
            Subject::Invoice(number) => &self.invoices[number],
        }
    }
}
