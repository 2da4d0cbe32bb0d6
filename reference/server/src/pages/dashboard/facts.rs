//! What the world answers, as far as the dashboard shows it.
//!
//! Nothing here is reckoned: amounts stay the text they came as.

use std::fmt;

use reference_core::time::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A moment as the world writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Moment(pub(super) String);

impl Moment {
    /// As machines read it.
    pub(super) fn iso(&self) -> &str {
        &self.0
    }

    /// The day: `2026-09-20`.
    pub(super) fn day(&self) -> &str {
        self.0.split('T').next().unwrap_or_default()
    }

    /// The time of day, in seconds: `10:05:41`.
    pub(super) fn time(&self) -> &str {
        self.0.split_once('T').and_then(|(_, time)| time.get(..8)).unwrap_or_default()
    }

    /// Day and time.
    pub(super) fn said(&self) -> String {
        format!("{} {}", self.day(), self.time())
    }

    /// How far it is from `now`, in words: `in 5 minutes`, `2 hours ago`.
    pub(super) fn from(&self, now: &Timestamp) -> String {
        let Some(at) = Timestamp::parse(&self.0) else { return String::new() };
        if at.since(*now).0.max(now.since(at).0) < 1_000_000 {
            return "now".to_owned();
        }
        let said = |micros: u64| crate::pages::words::length(std::time::Duration::from_micros(micros));
        if at > *now {
            format!("in {}", said(at.since(*now).0))
        } else {
            format!("{} ago", said(now.since(at).0))
        }
    }
}

/// Key/value pairs in the order in which they came, values as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                // Raw, because a number may be larger than any that this program can hold.
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    let text = serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned());
                    pairs.push((key, text));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// `GET /sandbox`
#[derive(Debug, Deserialize)]
pub(super) struct World {
    pub(super) seed: u64,
    pub(super) accounts: Vec<AccountName>,
    pub(super) chains: Vec<Chain>,
    pub(super) rates: Vec<Rate>,
    pub(super) happenings: u64,
    pub(super) next_due: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AccountName {
    pub(super) id: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Chain {
    pub(super) mode: String,
    pub(super) asset: String,
    pub(super) network: String,
    pub(super) height: u64,
    pub(super) required_confirmations: u32,
    pub(super) wallet: String,
    pub(super) next_block_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rate {
    pub(super) asset: String,
    pub(super) currency: String,
    pub(super) rate: String,
}

/// `GET /sandbox/books/{account}/{mode}`
#[derive(Debug, Deserialize)]
pub(super) struct Glance {
    pub(super) members: Vec<String>,
    pub(super) charges: ChargeCounts,
    pub(super) invoices: InvoiceCounts,
    pub(super) links: u64,
    pub(super) events: u64,
    pub(super) late: u64,
    pub(super) endpoints: EndpointCounts,
}

#[derive(Debug, Deserialize)]
pub(super) struct ChargeCounts {
    pub(super) all: u64,
    pub(super) pending: u64,
    pub(super) underpaid: u64,
    pub(super) paid: u64,
    pub(super) expired: u64,
    pub(super) canceled: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct InvoiceCounts {
    pub(super) all: u64,
    pub(super) open: u64,
    pub(super) paid: u64,
    pub(super) void: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct EndpointCounts {
    pub(super) enabled: u64,
    pub(super) disabled: u64,
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
    pub(super) website_url: Option<String>,
    pub(super) support_email: Option<String>,
    pub(super) default_currency: String,
    pub(super) underpayment_tolerance: String,
    pub(super) overpayment_threshold: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AccountMeta {
    pub(super) accepted_assets: Vec<String>,
}

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

#[derive(Debug, Deserialize)]
pub(super) struct Charge {
    pub(super) code: String,
    pub(super) status: String,
    pub(super) payment_link: Option<String>,
    pub(super) invoice: Option<String>,
    pub(super) description: Option<String>,
    pub(super) fiat_amount: String,
    pub(super) fiat_currency: String,
    pub(super) asset: String,
    pub(super) asset_amount: String,
    pub(super) received_amount: String,
    pub(super) remaining_amount: String,
    pub(super) overpaid: bool,
    pub(super) refunded_amount: String,
    #[serde(default)]
    pub(super) refunds: Vec<Refund>,
    pub(super) exchange_rate: String,
    pub(super) deposit_address: String,
    pub(super) customer: Customer,
    pub(super) custom_fields: Vec<CustomField>,
    pub(super) metadata: Pairs,
    pub(super) expires_at: Moment,
    pub(super) paid_at: Option<Moment>,
    pub(super) created_at: Moment,
}

impl Charge {
    /// Money is still expected.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "underpaid")
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Refund {
    pub(super) amount: String,
    pub(super) txid: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(super) struct Customer {
    pub(super) email: Option<String>,
    pub(super) name: Option<String>,
    pub(super) ip_address: Option<String>,
    pub(super) user_agent: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) phone: Option<String>,
    pub(super) country: Option<String>,
    pub(super) metadata: Pairs,
}

impl Customer {
    /// What is known, with its name.
    pub(super) fn facts(&self) -> Vec<(&str, &str)> {
        let all = [
            ("Name", &self.name),
            ("E-mail", &self.email),
            ("Reference", &self.reference),
            ("Phone", &self.phone),
            ("Country", &self.country),
            ("IP address", &self.ip_address),
            ("Browser", &self.user_agent),
        ];
        let known = all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        known.chain(self.metadata.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))).collect()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct CustomField {
    pub(super) label: String,
    pub(super) value: String,
}

/// One of `GET /sandbox/books/{account}/{mode}/charges/{id}/transfers`
#[derive(Debug, Deserialize)]
pub(super) struct Transfer {
    pub(super) txid: String,
    pub(super) amount: String,
    pub(super) confirmations: u32,
    pub(super) required_confirmations: u32,
    pub(super) confirmed: bool,
    pub(super) credited: bool,
    pub(super) standing: String,
    pub(super) gone: Option<String>,
    pub(super) seen_at: Moment,
}

impl Transfer {
    /// Where it stands, in a word, and how that looks.
    pub(super) fn state(&self) -> (&'static str, &'static str) {
        match (self.gone.as_deref(), self.credited, self.confirmed, self.standing.as_str()) {
            (Some("double_spent"), ..) => ("double spent", "bad"),
            (Some("replaced"), ..) => ("replaced", "bad"),
            (Some(_), ..) => ("dropped", "bad"),
            (None, true, ..) => ("credited", "good"),
            (None, false, true, "late") => ("late", "warn"),
            (None, false, true, _) => ("confirmed", "good"),
            (None, false, false, "late") => ("late, confirming", "warn"),
            (None, false, false, _) => ("confirming", "info"),
        }
    }

    /// It is confirmed and waits for the owner.
    pub(super) fn may_be_accepted(&self) -> bool {
        self.standing == "late" && self.confirmed
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Transfers {
    pub(super) transfers: Vec<Transfer>,
}

/// One of `GET /sandbox/books/{account}/{mode}/late`
#[derive(Debug, Deserialize)]
pub(super) struct Late {
    pub(super) charge: String,
    pub(super) status: String,
    pub(super) asset: String,
    pub(super) asset_amount: String,
    #[serde(flatten)]
    pub(super) transfer: Transfer,
}

#[derive(Debug, Deserialize)]
pub(super) struct Lates {
    pub(super) late: Vec<Late>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Invoice {
    pub(super) code: String,
    pub(super) number: String,
    pub(super) status: String,
    pub(super) overdue: bool,
    pub(super) customer_name: Option<String>,
    pub(super) customer_email: Option<String>,
    pub(super) memo: Option<String>,
    pub(super) amount: String,
    pub(super) currency: String,
    pub(super) items: Vec<Item>,
    pub(super) due_at: Option<String>,
    pub(super) charges: Vec<InvoiceCharge>,
    pub(super) sent_at: Option<Moment>,
    pub(super) viewed_at: Option<Moment>,
    pub(super) paid_at: Option<Moment>,
    pub(super) voided_at: Option<Moment>,
    pub(super) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(super) struct Item {
    pub(super) description: String,
    pub(super) quantity: String,
    pub(super) unit_amount: String,
    pub(super) total: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct InvoiceCharge {
    pub(super) code: String,
    pub(super) status: String,
    pub(super) asset: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Link {
    pub(super) code: String,
    pub(super) title: String,
    pub(super) description: Option<String>,
    pub(super) pricing_type: String,
    pub(super) amount: Option<String>,
    pub(super) min_amount: Option<String>,
    pub(super) max_amount: Option<String>,
    pub(super) suggested_amounts: Vec<String>,
    pub(super) currency: String,
    pub(super) accepted_assets: Option<Vec<String>>,
    pub(super) status: String,
    pub(super) custom_fields: Vec<Question>,
    pub(super) expires_at: Option<Moment>,
    pub(super) max_payments: Option<u32>,
    pub(super) accepting_payments: bool,
    pub(super) views_count: u64,
    pub(super) created_at: Moment,
    pub(super) updated_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(super) struct Question {
    pub(super) label: String,
    pub(super) required: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) details: Pairs,
    pub(super) charge: Option<Subject>,
    pub(super) invoice: Option<Subject>,
    pub(super) created_at: Moment,
}

/// What an event is about.
#[derive(Debug, Deserialize)]
pub(super) struct Subject {
    pub(super) code: String,
    /// Invoices have one.
    pub(super) number: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Keys {
    pub(super) keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) mode: String,
    pub(super) hint: String,
    pub(super) created_at: Moment,
    pub(super) revoked_at: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Endpoints {
    pub(super) endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Endpoint {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) mode: String,
    pub(super) url: String,
    pub(super) events: Vec<String>,
    pub(super) status: String,
    pub(super) failed_in_a_row: u32,
    pub(super) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(super) struct Deliveries {
    pub(super) deliveries: Vec<Delivery>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DeliveryAnswer {
    pub(super) delivery: Delivery,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) account: String,
    pub(super) mode: String,
    pub(super) endpoint: String,
    pub(super) url: String,
    pub(super) event: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) test: bool,
    pub(super) status: String,
    pub(super) attempts: Vec<Attempt>,
    pub(super) next_at: Option<Moment>,
    pub(super) created_at: Moment,
    /// In the answer about one delivery only.
    #[serde(default)]
    pub(super) request_body: String,
}

impl Delivery {
    /// What came of the last attempt.
    pub(super) fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// It waits because an attempt has failed.
    pub(super) fn is_retrying(&self) -> bool {
        self.status == "waiting" && !self.attempts.is_empty()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) n: u32,
    pub(super) at: Moment,
    pub(super) status: Option<u16>,
    pub(super) error: Option<String>,
    #[serde(default)]
    pub(super) duration_ms: u64,
    #[serde(default)]
    pub(super) address: Option<String>,
    #[serde(default)]
    pub(super) request_headers: Vec<Header>,
    #[serde(default)]
    pub(super) response_headers: Vec<Header>,
    #[serde(default)]
    pub(super) response_body: String,
    #[serde(default)]
    pub(super) note: Option<String>,
}

impl Attempt {
    /// The status, or what went wrong.
    pub(super) fn answer(&self) -> String {
        match (self.status, &self.error) {
            (Some(status), _) => status.to_string(),
            (None, error) => error.clone().unwrap_or_default(),
        }
    }

    /// How that looks.
    pub(super) fn tone(&self) -> &'static str {
        if matches!(self.status, Some(200..=299)) { "good" } else { "bad" }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wallets {
    pub(super) wallets: Vec<Wallet>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Wallet {
    pub(super) account: String,
    pub(super) mode: String,
    pub(super) asset: String,
    pub(super) key: Option<String>,
    pub(super) listed: u64,
    pub(super) first_address: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mails {
    pub(super) mails: Vec<Mail>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mail {
    pub(super) to: String,
    pub(super) kind: String,
    pub(super) invoice: String,
    pub(super) at: Moment,
}

/// `GET /sandbox/happenings`
#[derive(Debug, Deserialize)]
pub(super) struct Happened {
    pub(super) happened: Vec<Happening>,
}

/// Something that happened. Which fields there are depends on what.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Happening {
    pub(super) n: u64,
    pub(super) at: String,
    pub(super) what: String,
    pub(super) mode: Option<String>,
    pub(super) account: Option<String>,
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) subject: Option<String>,
    pub(super) host: Option<String>,
    pub(super) answer: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) asset: Option<String>,
    pub(super) amount: Option<String>,
    pub(super) state: Option<String>,
    pub(super) charge: Option<String>,
    pub(super) depth: Option<u32>,
    pub(super) to: Option<String>,
    /// What an e-mail is for.
    #[serde(rename = "kind")]
    pub(super) mail: Option<String>,
}

impl Happening {
    /// The time of day.
    pub(super) fn time(&self) -> &str {
        self.at.split_once('T').and_then(|(_, time)| time.get(..12)).unwrap_or_default()
    }

    /// What sort of thing.
    pub(super) fn word(&self) -> String {
        self.what.replace('_', " ")
    }

    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        match self.what.as_str() {
            "event" => format!("{} {}", text(&self.kind), text(&self.subject)),
            "post" => format!(
                "POST to {}: {}, try {}: {}",
                text(&self.host),
                text(&self.kind),
                self.attempt.unwrap_or(1),
                text(&self.answer)
            ),
            "transfer" => {
                let whose = self.charge.as_deref().map_or("no charge", |code| code);
                format!(
                    "transfer of {} {} to {whose}: {}",
                    text(&self.amount),
                    text(&self.asset),
                    text(&self.state)
                )
            }
            "reorg" => {
                format!("{}: the newest {} blocks were replaced", text(&self.asset), self.depth.unwrap_or(0))
            }
            "mail" => format!("e-mail to {}: {}", text(&self.to), text(&self.mail)),
            "endpoint_off" => format!("the endpoint at {} failed too often and is off", text(&self.host)),
            "restart" => "the service stopped and started again".to_owned(),
            other => other.to_owned(),
        }
    }
}
