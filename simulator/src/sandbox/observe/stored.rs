//! Serialization of the log within a stored state, for `#[serde(with = "stored")]`.
//!
//! [`WorldEvent`] itself serializes as in the API, which only a self-describing format such as JSON can read back. The
//! types here have the same fields, which the compiler checks (`serde(remote)`).

use std::{borrow::Cow, collections::VecDeque, sync::Arc};

use reference_core::{asset::Asset, event::EventType, id::Code, mode::Mode, shared, time::Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::api::{EventDetails, WorldEvent, WorldEventKind};

#[derive(Serialize)]
struct StoredEventRef<'a>(#[serde(with = "StoredEvent")] &'a WorldEvent);

#[derive(Deserialize)]
struct StoredEventOwned(#[serde(with = "StoredEvent")] WorldEvent);

pub(super) fn serialize<S: Serializer>(
    events: &VecDeque<WorldEvent>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(events.iter().map(StoredEventRef))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<VecDeque<WorldEvent>, D::Error> {
    let events = Vec::<StoredEventOwned>::deserialize(deserializer)?;
    Ok(events.into_iter().map(|StoredEventOwned(event)| event).collect())
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WorldEvent")]
struct StoredEvent {
    n: u64,
    at: Timestamp,
    #[serde(with = "StoredKind")]
    kind: WorldEventKind,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "WorldEventKind")]
enum StoredKind {
    Event {
        mode: Mode,
        #[serde(with = "shared::text")]
        account: Arc<str>,
        event: Uuid,
        kind: EventType,
        subject: Code,
        #[serde(with = "details")]
        details: EventDetails,
    },
    Attempt {
        mode: Mode,
        #[serde(with = "shared::text")]
        account: Arc<str>,
        endpoint: Code,
        host: String,
        delivery: Uuid,
        event: Option<Uuid>,
        kind: EventType,
        subject: Option<Code>,
        attempt: u32,
        answer: String,
        next_at: Option<Timestamp>,
    },
    Transfer {
        mode: Mode,
        asset: Asset,
        txid: String,
        output: u32,
        address: String,
        charge: Option<Code>,
        amount: String,
        state: Cow<'static, str>,
        confirmations: u32,
        required: u32,
    },
    Reorg {
        mode: Mode,
        asset: Asset,
        depth: u32,
    },
    Mail {
        mode: Mode,
        #[serde(with = "shared::text")]
        account: Arc<str>,
        to: String,
        kind: Cow<'static, str>,
        invoice: Code,
    },
    EndpointDisabled {
        mode: Mode,
        #[serde(with = "shared::text")]
        account: Arc<str>,
        endpoint: Code,
        host: String,
    },
    Restart,
}

/// Details of events. Only those from the service of the same world can be stored; the log has no others.
mod details {
    use reference_core::event::Details;
    use serde::ser::Error;

    use super::{Deserialize, Deserializer, EventDetails, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(details: &EventDetails, serializer: S) -> Result<S::Ok, S::Error> {
        match details {
            EventDetails::Known(details) => details.serialize(serializer),
            EventDetails::Fields(_) => Err(S::Error::custom("details of another world")),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventDetails, D::Error> {
        Details::deserialize(deserializer).map(EventDetails::Known)
    }
}
