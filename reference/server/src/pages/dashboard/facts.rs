//! The words of the dashboard for answers of the world, and the lists and accounts of the API.

use reference_core::mode::Mode;
use serde::Deserialize;
use simulator::api::{
    AttemptRecord, AttemptTrace, DeliveryRecord, EndpointRecord, TransferGone, TransferRecord,
    TransferStanding, WorldEvent, WorldEventKind,
};

use crate::pages::words::MomentWords as _;

/// One object under `data`.
#[derive(Debug, Deserialize)]
pub(super) struct One<T> {
    pub(super) data: T,
}

/// A list of the API.
#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    pub(super) links: Links,
    pub(super) meta: ListMeta,
}

#[derive(Debug, Deserialize)]
pub(super) struct Links {
    first: String,
    pub(super) prev: Option<String>,
    pub(super) next: Option<String>,
}

impl Links {
    /// The newest record of this reading of the list.
    pub(super) fn anchor(&self) -> Option<String> {
        let url = url::Url::parse(&self.first).ok()?;
        url.query_pairs().find(|(name, _)| name == "anchor").map(|(_, value)| value.into_owned())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ListMeta {
    pub(super) current_page: u64,
    pub(super) last_page: u64,
    pub(super) from: Option<u64>,
    pub(super) to: Option<u64>,
    pub(super) total: u64,
}

/// `GET /v1/account`
#[derive(Debug, Deserialize)]
pub(super) struct AccountAnswer {
    pub(super) data: Account,
    pub(super) meta: AccountMeta,
}

#[derive(Debug, Deserialize)]
pub(super) struct Account {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) display_name: String,
    pub(super) logo_url: Option<String>,
    pub(super) brand_color: String,
    pub(super) website_url: Option<String>,
    pub(super) support_email: Option<String>,
    pub(super) support_phone: Option<String>,
    pub(super) default_currency: String,
    pub(super) underpayment_tolerance: String,
    pub(super) overpayment_threshold: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AccountMeta {
    pub(super) accepted_assets: Vec<String>,
}

pub(super) trait TransferState {
    /// Returns the state in a word, and its colour.
    fn state(&self) -> (&'static str, &'static str);

    /// It is confirmed and waits for the owner.
    fn may_be_accepted(&self) -> bool;

    /// The network forgot it, and it can be announced again.
    fn was_dropped(&self) -> bool;
}

impl TransferState for TransferRecord {
    fn state(&self) -> (&'static str, &'static str) {
        match (self.gone, self.credited, self.confirmed, self.standing) {
            (Some(TransferGone::DoubleSpent), ..) => ("double spent", "bad"),
            (Some(TransferGone::Replaced), ..) => ("replaced", "bad"),
            (Some(TransferGone::Dropped), ..) => ("dropped", "bad"),
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
        self.gone == Some(TransferGone::Dropped)
    }
}

pub(super) trait DeliveryWords {
    /// It waits because an attempt has failed.
    fn is_retrying(&self) -> bool;
}

impl DeliveryWords for DeliveryRecord {
    fn is_retrying(&self) -> bool {
        self.status == "waiting" && !self.attempts.is_empty()
    }
}

pub(super) trait AttemptWords {
    /// The status, or what went wrong.
    fn answer(&self) -> String;

    /// Returns the colour.
    fn tone(&self) -> &'static str;

    /// Returns the request and response, as far as they are known.
    fn wire(&self) -> AttemptTrace;
}

impl AttemptWords for AttemptRecord {
    fn answer(&self) -> String {
        match (self.status, &self.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_default(),
        }
    }

    fn tone(&self) -> &'static str {
        if matches!(self.status, Some(200..=299)) { "good" } else { "bad" }
    }

    fn wire(&self) -> AttemptTrace {
        self.trace.clone().unwrap_or_default()
    }
}

pub(super) trait EndpointWords {
    /// The event types that it gets, in a line.
    fn kinds(&self) -> String;
}

impl EndpointWords for EndpointRecord {
    fn kinds(&self) -> String {
        self.events.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
    }
}

pub(super) trait WorldEventWords {
    /// The time of day, in milliseconds.
    fn time(&self) -> String;

    /// Returns the kind in a word.
    fn word(&self) -> &'static str;

    /// In a sentence.
    fn sentence(&self) -> String;

    /// Returns `true` if the dashboard of this account and mode shows it.
    fn is_seen(&self, account: &str, mode: &str) -> bool;
}

impl WorldEventWords for WorldEvent {
    fn time(&self) -> String {
        self.at.iso().split_once('T').and_then(|(_, time)| time.get(..12)).unwrap_or_default().to_owned()
    }

    fn word(&self) -> &'static str {
        match self.what {
            WorldEventKind::Event { .. } => "event",
            WorldEventKind::Post { .. } => "post",
            WorldEventKind::Transfer { .. } => "transfer",
            WorldEventKind::Reorg { .. } => "reorg",
            WorldEventKind::Mail { .. } => "mail",
            WorldEventKind::EndpointOff { .. } => "endpoint off",
            WorldEventKind::Restart => "restart",
        }
    }

    fn sentence(&self) -> String {
        self.what.to_string()
    }

    fn is_seen(&self, account: &str, mode: &str) -> bool {
        Mode::parse(mode).is_some_and(|mode| self.what.concerns(account, mode, |_| true))
    }
}
