//! The events of a world, as the API reports them.

use std::{fmt, sync::Arc};

use reference_core::{
    event::{Details, EventType},
    id::Code,
    mode::Mode,
    time::Timestamp,
};
use reference_wire::DetailsView;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Keyword, text};

/// An event in a world that an outside observer could notice: in the service, on a chain or at a merchant.
///
/// ```
/// use simulator::api::{WorldEvent, WorldEventKind};
///
/// let line = r#"{"n":7,"at":"2026-01-05T09:00:00.000000Z","what":"reorg","mode":"live","asset":"BTC","depth":2}"#;
/// let event: WorldEvent = serde_json::from_str(line).unwrap();
/// assert!(matches!(event.kind, WorldEventKind::Reorg { depth: 2, .. }));
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldEvent {
    /// The number of the event in this world, from 1 on.
    pub n: u64,
    /// The time by the service clock.
    #[serde(with = "text")]
    pub at: Timestamp,
    /// The kind of event.
    #[serde(flatten)]
    pub kind: WorldEventKind,
}

/// The kind of an event. Amounts are decimals of whole coins; `account` is an account's id.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are named for what they hold")]
pub enum WorldEventKind {
    /// The service recorded an event of a charge or an invoice.
    Event {
        #[serde(with = "text")]
        mode: Mode,
        account: Arc<str>,
        #[serde(with = "text")]
        event: Uuid,
        #[serde(rename = "type", with = "text")]
        kind: EventType,
        /// The code of the event's charge or invoice.
        #[serde(with = "text")]
        subject: Code,
        details: EventDetails,
    },
    /// An attempt of a delivery ended.
    #[serde(rename = "post")]
    Attempt {
        #[serde(with = "text")]
        mode: Mode,
        account: Arc<str>,
        #[serde(with = "text")]
        endpoint: Code,
        host: String,
        #[serde(with = "text")]
        delivery: Uuid,
        /// The delivered event; `None` for a test.
        #[serde(with = "text::option")]
        event: Option<Uuid>,
        #[serde(rename = "type", with = "text")]
        kind: EventType,
        #[serde(with = "text::option")]
        subject: Option<Code>,
        /// The number of the attempt, from 1 on.
        attempt: u32,
        /// The result: a status, `unreachable`, `timeout`, `lost`, or `refused: ` and the reason.
        answer: String,
        /// The time of the next attempt; `None` if there is none.
        #[serde(with = "text::option")]
        next_at: Option<Timestamp>,
    },
    /// The state of a transfer changed.
    Transfer {
        #[serde(with = "text")]
        mode: Mode,
        #[serde(with = "text")]
        asset: reference_core::asset::Asset,
        txid: String,
        output: u32,
        address: String,
        /// The charge that the address belongs to; `None` if there is none.
        #[serde(with = "text::option")]
        charge: Option<Code>,
        amount: String,
        /// `seen`, `confirmed`, `unconfirmed`, `double_spent`, `replaced` or `dropped`.
        state: Keyword,
        confirmations: u32,
        required: u32,
    },
    /// The newest blocks of a chain were replaced.
    Reorg {
        #[serde(with = "text")]
        mode: Mode,
        #[serde(with = "text")]
        asset: reference_core::asset::Asset,
        /// The number of blocks.
        depth: u32,
    },
    /// An e-mail was added to the outbox.
    Mail {
        #[serde(with = "text")]
        mode: Mode,
        account: Arc<str>,
        to: String,
        kind: Keyword,
        #[serde(with = "text")]
        invoice: Code,
    },
    /// An endpoint was disabled after too many failed deliveries.
    #[serde(rename = "endpoint_off")]
    EndpointDisabled {
        #[serde(with = "text")]
        mode: Mode,
        account: Arc<str>,
        #[serde(with = "text")]
        endpoint: Code,
        host: String,
    },
    /// The service restarted.
    Restart,
}

impl WorldEventKind {
    /// Returns the mode of the event; `None` if it concerns both.
    pub fn mode(&self) -> Option<Mode> {
        match self {
            WorldEventKind::Event { mode, .. }
            | WorldEventKind::Attempt { mode, .. }
            | WorldEventKind::Transfer { mode, .. }
            | WorldEventKind::Reorg { mode, .. }
            | WorldEventKind::Mail { mode, .. }
            | WorldEventKind::EndpointDisabled { mode, .. } => Some(*mode),
            WorldEventKind::Restart => None,
        }
    }

    /// Returns `true` if the event concerns this account in this mode. A transfer concerns an account if
    /// `is_own` holds for the address that it pays. A reorganisation concerns every account of its mode, a
    /// restart all accounts.
    pub fn concerns(&self, own_account: &str, own_mode: Mode, is_own: impl Fn(&str) -> bool) -> bool {
        match self {
            WorldEventKind::Event { mode, account, .. }
            | WorldEventKind::Attempt { mode, account, .. }
            | WorldEventKind::Mail { mode, account, .. }
            | WorldEventKind::EndpointDisabled { mode, account, .. } => {
                *mode == own_mode && **account == *own_account
            }
            WorldEventKind::Transfer { mode, address, .. } => *mode == own_mode && is_own(address),
            WorldEventKind::Reorg { mode, .. } => *mode == own_mode,
            WorldEventKind::Restart => true,
        }
    }
}

/// Displays a description of one line.
impl fmt::Display for WorldEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorldEventKind::Event { kind, subject, .. } => write!(f, "{} {subject}", kind.as_str()),
            WorldEventKind::Attempt { host, kind, attempt, answer, .. } => {
                write!(f, "POST to {host}: {}, try {attempt}: {answer}", kind.as_str())
            }
            WorldEventKind::Transfer { asset, charge, amount, state, .. } => {
                let target = charge.as_ref().map_or("no charge", |code| code.as_str());
                write!(f, "transfer of {amount} {asset} to {target}: {state}")
            }
            WorldEventKind::Reorg { asset, depth, .. } => {
                write!(f, "{asset}: the newest {depth} blocks were replaced")
            }
            WorldEventKind::Mail { to, kind, .. } => write!(f, "e-mail to {to}: {kind}"),
            WorldEventKind::EndpointDisabled { host, .. } => {
                write!(f, "the endpoint at {host} failed too often and was disabled")
            }
            WorldEventKind::Restart => f.write_str("the service stopped and started again"),
        }
    }
}

/// The details of an event, from the service or parsed from a response. They are converted to JSON only on demand,
/// because a world stores many.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Map<String, Value>")]
pub enum EventDetails {
    /// The details as the service stores them.
    Known(Details),
    /// The details parsed from a response.
    Fields(Map<String, Value>),
}

impl EventDetails {
    /// Returns the fields: amounts, ids and reasons as strings.
    pub fn fields(&self) -> Map<String, Value> {
        match self {
            EventDetails::Fields(fields) => fields.clone(),
            EventDetails::Known(_) => match serde_json::to_value(self) {
                Ok(Value::Object(fields)) => fields,
                _ => unreachable!("details are serialized as an object"),
            },
        }
    }
}

impl From<Map<String, Value>> for EventDetails {
    fn from(fields: Map<String, Value>) -> EventDetails {
        EventDetails::Fields(fields)
    }
}

impl Serialize for EventDetails {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EventDetails::Known(details) => DetailsView(details).serialize(serializer),
            EventDetails::Fields(fields) => fields.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks whether an event concerns an account in its mode, another account in this mode, and the account in the other
    /// mode.
    #[track_caller]
    fn check(event: &str, expected: [bool; 3]) {
        let event: WorldEventKind =
            serde_json::from_str(event).unwrap_or_else(|error| panic!("{error}: {event}"));
        let books = [("acme", Mode::Live), ("bakery", Mode::Live), ("acme", Mode::Test)];
        let is_own = |account: &str, address: &str| account == "acme" && address == "bc1qacme";
        let concerned =
            books.map(|(account, mode)| event.concerns(account, mode, |address| is_own(account, address)));
        assert_eq!(concerned, expected, "{event:?}");
    }

    #[test]
    fn an_event_concerns_the_accounts_that_can_observe_it() {
        let mail = r#"{"what":"mail","mode":"live","account":"acme","to":"a@b.example","kind":"paid","invoice":"0123456789ab"}"#;
        check(mail, [true, false, false]);
        check(r#"{"what":"reorg","mode":"live","asset":"BTC","depth":1}"#, [true, true, false]);
        let transfer = r#"{"what":"transfer","mode":"live","asset":"BTC","txid":"00","output":0,"address":"bc1qacme","charge":null,"amount":"1","state":"seen","confirmations":0,"required":2}"#;
        check(transfer, [true, false, false]);
        check(&transfer.replace("bc1qacme", "bc1qbakery"), [false, false, false]);
        check(r#"{"what":"restart"}"#, [true, true, true]);
    }
}
