//! What the owner alone sees: keys, endpoints and deliveries, wallets, e-mails.

use serde::Deserialize;

use super::Moment;

#[derive(Debug, Deserialize)]
pub(in super::super) struct Keys {
    pub(in super::super) keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Key {
    pub(in super::super) id: String,
    pub(in super::super) account: String,
    pub(in super::super) mode: String,
    pub(in super::super) hint: String,
    pub(in super::super) created_at: Moment,
    pub(in super::super) revoked_at: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Endpoints {
    pub(in super::super) endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Endpoint {
    pub(in super::super) id: String,
    pub(in super::super) account: String,
    pub(in super::super) mode: String,
    pub(in super::super) url: String,
    pub(in super::super) events: Vec<String>,
    pub(in super::super) status: String,
    pub(in super::super) failed_in_a_row: u32,
    pub(in super::super) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Deliveries {
    pub(in super::super) deliveries: Vec<Delivery>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct DeliveryAnswer {
    pub(in super::super) delivery: Delivery,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Delivery {
    pub(in super::super) id: String,
    pub(in super::super) account: String,
    pub(in super::super) mode: String,
    pub(in super::super) endpoint: String,
    pub(in super::super) url: String,
    pub(in super::super) event: Option<String>,
    #[serde(rename = "type")]
    pub(in super::super) kind: String,
    pub(in super::super) test: bool,
    pub(in super::super) status: String,
    pub(in super::super) attempts: Vec<Attempt>,
    pub(in super::super) next_at: Option<Moment>,
    pub(in super::super) created_at: Moment,
    /// In the answer about one delivery only.
    #[serde(default)]
    pub(in super::super) request_body: String,
}

impl Delivery {
    /// What came of the last attempt.
    pub(in super::super) fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// It waits because an attempt has failed.
    pub(in super::super) fn is_retrying(&self) -> bool {
        self.status == "waiting" && !self.attempts.is_empty()
    }
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Attempt {
    pub(in super::super) n: u32,
    pub(in super::super) at: Moment,
    pub(in super::super) status: Option<u16>,
    pub(in super::super) error: Option<String>,
    #[serde(default)]
    pub(in super::super) duration_ms: u64,
    #[serde(default)]
    pub(in super::super) address: Option<String>,
    #[serde(default)]
    pub(in super::super) request_headers: Vec<Header>,
    #[serde(default)]
    pub(in super::super) response_headers: Vec<Header>,
    #[serde(default)]
    pub(in super::super) response_body: String,
    #[serde(default)]
    pub(in super::super) note: Option<String>,
}

impl Attempt {
    /// The status, or what went wrong.
    pub(in super::super) fn answer(&self) -> String {
        match (self.status, &self.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_default(),
        }
    }

    /// How that looks.
    pub(in super::super) fn tone(&self) -> &'static str {
        if matches!(self.status, Some(200..=299)) { "good" } else { "bad" }
    }
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Header {
    pub(in super::super) name: String,
    pub(in super::super) value: String,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Wallets {
    pub(in super::super) wallets: Vec<Wallet>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Wallet {
    pub(in super::super) account: String,
    pub(in super::super) mode: String,
    pub(in super::super) asset: String,
    pub(in super::super) key: Option<String>,
    pub(in super::super) listed: u64,
    pub(in super::super) first_address: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Mails {
    pub(in super::super) mails: Vec<Mail>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Mail {
    pub(in super::super) to: String,
    pub(in super::super) kind: String,
    pub(in super::super) invoice: String,
    pub(in super::super) at: Moment,
}
