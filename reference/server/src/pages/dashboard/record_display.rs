//! Traits with the texts that the dashboard shows for records of the world.

use reference_core::mode::Mode;
use simulator::api::{
    AttemptRecord, AttemptTrace, DeliveryRecord, EndpointRecord, TransferDisappearance, TransferRecord,
    TransferStanding, WorldEvent, WorldEventKind,
};

use crate::pages::formats::TimeFormats as _;

pub(super) trait TransferState {
    /// Returns the state as text, and the CSS class for its colour.
    fn state(&self) -> (&'static str, &'static str);

    /// Returns `true` if the transfer is late and confirmed, so that the merchant can accept it.
    fn may_be_accepted(&self) -> bool;

    /// Returns `true` if the mempool dropped the transaction, so that it can be broadcast again.
    fn was_dropped(&self) -> bool;
}

impl TransferState for TransferRecord {
    fn state(&self) -> (&'static str, &'static str) {
        match (self.gone, self.credited, self.confirmed, self.standing) {
            (Some(TransferDisappearance::DoubleSpent), ..) => ("double spent", "bad"),
            (Some(TransferDisappearance::Replaced), ..) => ("replaced", "bad"),
            (Some(TransferDisappearance::Dropped), ..) => ("dropped", "bad"),
            (None, true, ..) => ("credited", "good"),
            (None, false, true, TransferStanding::Late) if self.sent_back => ("sent back", ""),
            (None, false, true, TransferStanding::Late) => ("late", "warn"),
            (None, false, true, _) => ("confirmed", "good"),
            (None, false, false, TransferStanding::Late) => ("late, confirming", "warn"),
            (None, false, false, _) if self.confirmed_at.is_some() => ("reorganised", "warn"),
            (None, false, false, _) => ("confirming", "info"),
        }
    }

    fn may_be_accepted(&self) -> bool {
        self.standing == TransferStanding::Late && self.confirmed && !self.sent_back
    }

    fn was_dropped(&self) -> bool {
        self.gone == Some(TransferDisappearance::Dropped)
    }
}

pub(super) trait DeliveryDisplay {
    /// Returns `true` if the delivery waits for a retry.
    fn is_retrying(&self) -> bool;
}

impl DeliveryDisplay for DeliveryRecord {
    fn is_retrying(&self) -> bool {
        self.status == "waiting" && !self.attempts.is_empty()
    }
}

pub(super) trait AttemptDisplay {
    /// Returns the status of the response, or the error.
    fn result(&self) -> String;

    /// Returns the CSS class for the colour of the status.
    fn tone(&self) -> &'static str;

    /// Returns the request and the response; an empty trace if they were not recorded.
    fn trace_or_empty(&self) -> AttemptTrace;
}

impl AttemptDisplay for AttemptRecord {
    fn result(&self) -> String {
        match (self.status, &self.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_default(),
        }
    }

    fn tone(&self) -> &'static str {
        if matches!(self.status, Some(200..=299)) { "good" } else { "bad" }
    }

    fn trace_or_empty(&self) -> AttemptTrace {
        self.trace.clone().unwrap_or_default()
    }
}

pub(super) trait EndpointDisplay {
    /// Returns the event types of the endpoint, separated by commas.
    fn event_types(&self) -> String;
}

impl EndpointDisplay for EndpointRecord {
    fn event_types(&self) -> String {
        self.events.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
    }
}

pub(super) trait WorldEventDisplay {
    /// Returns the time of day to the millisecond.
    fn time(&self) -> String;

    fn kind_label(&self) -> &'static str;

    /// Returns a sentence about the event.
    fn sentence(&self) -> String;

    /// Returns `true` if the dashboard of this account and mode shows the event.
    fn is_visible_to(&self, account: &str, mode: Mode) -> bool;
}

impl WorldEventDisplay for WorldEvent {
    fn time(&self) -> String {
        self.at.iso().split_once('T').and_then(|(_, time)| time.get(..12)).unwrap_or_default().to_owned()
    }

    fn kind_label(&self) -> &'static str {
        match self.kind {
            WorldEventKind::Event { .. } => "event",
            WorldEventKind::Attempt { .. } => "post",
            WorldEventKind::Transfer { .. } => "transfer",
            WorldEventKind::Reorg { .. } => "reorg",
            WorldEventKind::Mail { .. } => "mail",
            WorldEventKind::EndpointDisabled { .. } => "endpoint off",
            WorldEventKind::Restart => "restart",
        }
    }

    fn sentence(&self) -> String {
        self.kind.to_string()
    }

    fn is_visible_to(&self, account: &str, mode: Mode) -> bool {
        self.kind.concerns(account, mode, |_| true)
    }
}
