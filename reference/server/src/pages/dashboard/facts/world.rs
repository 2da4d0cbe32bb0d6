//! The world and its accounts.

use serde::Deserialize;

use super::Moment;

/// `GET /sandbox`
#[derive(Debug, Deserialize)]
pub(in super::super) struct World {
    pub(in super::super) seed: u64,
    pub(in super::super) accounts: Vec<AccountName>,
    pub(in super::super) chains: Vec<Chain>,
    pub(in super::super) rates: Vec<Rate>,
    pub(in super::super) happenings: u64,
    pub(in super::super) next_due: Option<Moment>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct AccountName {
    pub(in super::super) id: String,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Chain {
    pub(in super::super) mode: String,
    pub(in super::super) asset: String,
    pub(in super::super) network: String,
    pub(in super::super) height: u64,
    pub(in super::super) required_confirmations: u32,
    pub(in super::super) wallet: String,
    pub(in super::super) next_block_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Rate {
    pub(in super::super) asset: String,
    pub(in super::super) currency: String,
    pub(in super::super) rate: String,
}

/// `GET /sandbox/books/{account}/{mode}`
#[derive(Debug, Deserialize)]
pub(in super::super) struct Glance {
    pub(in super::super) members: Vec<String>,
    pub(in super::super) charges: ChargeCounts,
    pub(in super::super) invoices: InvoiceCounts,
    pub(in super::super) links: u64,
    pub(in super::super) events: u64,
    pub(in super::super) late: u64,
    pub(in super::super) endpoints: EndpointCounts,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct ChargeCounts {
    pub(in super::super) all: u64,
    pub(in super::super) pending: u64,
    pub(in super::super) underpaid: u64,
    pub(in super::super) paid: u64,
    pub(in super::super) expired: u64,
    pub(in super::super) canceled: u64,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct InvoiceCounts {
    pub(in super::super) all: u64,
    pub(in super::super) open: u64,
    pub(in super::super) paid: u64,
    pub(in super::super) void: u64,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct EndpointCounts {
    pub(in super::super) enabled: u64,
    pub(in super::super) disabled: u64,
}

/// `GET /v1/account`
#[derive(Debug, Deserialize)]
pub(in super::super) struct AccountAnswer {
    pub(in super::super) data: Account,
    pub(in super::super) meta: AccountMeta,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Account {
    pub(in super::super) id: String,
    #[serde(rename = "type")]
    pub(in super::super) kind: String,
    pub(in super::super) name: String,
    pub(in super::super) display_name: String,
    pub(in super::super) website_url: Option<String>,
    pub(in super::super) support_email: Option<String>,
    pub(in super::super) default_currency: String,
    pub(in super::super) underpayment_tolerance: String,
    pub(in super::super) overpayment_threshold: String,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct AccountMeta {
    pub(in super::super) accepted_assets: Vec<String>,
}

/// `GET /sandbox/happenings`
#[derive(Debug, Deserialize)]
pub(in super::super) struct Happened {
    pub(in super::super) happened: Vec<Happening>,
}

/// Something that happened. Which fields there are depends on what.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in super::super) struct Happening {
    pub(in super::super) n: u64,
    pub(in super::super) at: String,
    pub(in super::super) what: String,
    pub(in super::super) mode: Option<String>,
    pub(in super::super) account: Option<String>,
    #[serde(rename = "type")]
    pub(in super::super) kind: Option<String>,
    pub(in super::super) subject: Option<String>,
    pub(in super::super) host: Option<String>,
    pub(in super::super) answer: Option<String>,
    pub(in super::super) attempt: Option<u32>,
    pub(in super::super) asset: Option<String>,
    pub(in super::super) amount: Option<String>,
    pub(in super::super) state: Option<String>,
    pub(in super::super) charge: Option<String>,
    pub(in super::super) depth: Option<u32>,
    pub(in super::super) to: Option<String>,
    /// What an e-mail is for.
    #[serde(rename = "kind")]
    pub(in super::super) mail: Option<String>,
}

impl Happening {
    /// The time of day.
    pub(in super::super) fn time(&self) -> &str {
        self.at.split_once('T').and_then(|(_, time)| time.get(..12)).unwrap_or_default()
    }

    /// What sort of thing.
    pub(in super::super) fn word(&self) -> String {
        self.what.replace('_', " ")
    }

    /// In a sentence.
    pub(in super::super) fn sentence(&self) -> String {
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
