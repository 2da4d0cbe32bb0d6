//! Charges, invoices, payment links and events, as the API shows them.

use serde::Deserialize;

use super::{Moment, Pairs};

#[derive(Debug, Deserialize)]
pub(in super::super) struct Charge {
    pub(in super::super) code: String,
    pub(in super::super) status: String,
    pub(in super::super) payment_link: Option<String>,
    pub(in super::super) invoice: Option<String>,
    pub(in super::super) description: Option<String>,
    pub(in super::super) fiat_amount: String,
    pub(in super::super) fiat_currency: String,
    pub(in super::super) asset: String,
    pub(in super::super) asset_amount: String,
    pub(in super::super) received_amount: String,
    pub(in super::super) remaining_amount: String,
    pub(in super::super) overpaid: bool,
    pub(in super::super) refunded_amount: String,
    #[serde(default)]
    pub(in super::super) refunds: Vec<Refund>,
    pub(in super::super) exchange_rate: String,
    pub(in super::super) deposit_address: String,
    pub(in super::super) customer: Customer,
    pub(in super::super) custom_fields: Vec<CustomField>,
    pub(in super::super) metadata: Pairs,
    pub(in super::super) expires_at: Moment,
    pub(in super::super) paid_at: Option<Moment>,
    pub(in super::super) created_at: Moment,
}

impl Charge {
    /// Money is still expected.
    pub(in super::super) fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "underpaid")
    }
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Refund {
    pub(in super::super) amount: String,
    pub(in super::super) txid: Option<String>,
    pub(in super::super) reason: Option<String>,
    pub(in super::super) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Customer {
    pub(in super::super) email: Option<String>,
    pub(in super::super) name: Option<String>,
    pub(in super::super) ip_address: Option<String>,
    pub(in super::super) user_agent: Option<String>,
    pub(in super::super) reference: Option<String>,
    pub(in super::super) phone: Option<String>,
    pub(in super::super) country: Option<String>,
    pub(in super::super) metadata: Pairs,
}

impl Customer {
    /// What is known, with its name.
    pub(in super::super) fn facts(&self) -> Vec<(&str, &str)> {
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
pub(in super::super) struct CustomField {
    pub(in super::super) label: String,
    pub(in super::super) value: String,
}

/// One of `GET /sandbox/books/{account}/{mode}/charges/{id}/transfers`
#[derive(Debug, Deserialize)]
pub(in super::super) struct Transfer {
    pub(in super::super) txid: String,
    pub(in super::super) amount: String,
    pub(in super::super) confirmations: u32,
    pub(in super::super) required_confirmations: u32,
    pub(in super::super) confirmed: bool,
    pub(in super::super) credited: bool,
    pub(in super::super) standing: String,
    pub(in super::super) gone: Option<String>,
    pub(in super::super) seen_at: Moment,
}

impl Transfer {
    /// Where it stands, in a word, and how that looks.
    pub(in super::super) fn state(&self) -> (&'static str, &'static str) {
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
    pub(in super::super) fn may_be_accepted(&self) -> bool {
        self.standing == "late" && self.confirmed
    }
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Transfers {
    pub(in super::super) transfers: Vec<Transfer>,
}

/// One of `GET /sandbox/books/{account}/{mode}/late`
#[derive(Debug, Deserialize)]
pub(in super::super) struct Late {
    pub(in super::super) charge: String,
    pub(in super::super) status: String,
    pub(in super::super) asset: String,
    pub(in super::super) asset_amount: String,
    #[serde(flatten)]
    pub(in super::super) transfer: Transfer,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Lates {
    pub(in super::super) late: Vec<Late>,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Invoice {
    pub(in super::super) code: String,
    pub(in super::super) number: String,
    pub(in super::super) status: String,
    pub(in super::super) overdue: bool,
    pub(in super::super) customer_name: Option<String>,
    pub(in super::super) customer_email: Option<String>,
    pub(in super::super) memo: Option<String>,
    pub(in super::super) amount: String,
    pub(in super::super) currency: String,
    pub(in super::super) items: Vec<Item>,
    pub(in super::super) due_at: Option<String>,
    pub(in super::super) charges: Vec<InvoiceCharge>,
    pub(in super::super) sent_at: Option<Moment>,
    pub(in super::super) viewed_at: Option<Moment>,
    pub(in super::super) paid_at: Option<Moment>,
    pub(in super::super) voided_at: Option<Moment>,
    pub(in super::super) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Item {
    pub(in super::super) description: String,
    pub(in super::super) quantity: String,
    pub(in super::super) unit_amount: String,
    pub(in super::super) total: String,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct InvoiceCharge {
    pub(in super::super) code: String,
    pub(in super::super) status: String,
    pub(in super::super) asset: String,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Link {
    pub(in super::super) code: String,
    pub(in super::super) title: String,
    pub(in super::super) description: Option<String>,
    pub(in super::super) pricing_type: String,
    pub(in super::super) amount: Option<String>,
    pub(in super::super) min_amount: Option<String>,
    pub(in super::super) max_amount: Option<String>,
    pub(in super::super) suggested_amounts: Vec<String>,
    pub(in super::super) currency: String,
    pub(in super::super) accepted_assets: Option<Vec<String>>,
    pub(in super::super) status: String,
    pub(in super::super) custom_fields: Vec<Question>,
    pub(in super::super) expires_at: Option<Moment>,
    pub(in super::super) max_payments: Option<u32>,
    pub(in super::super) accepting_payments: bool,
    pub(in super::super) views_count: u64,
    pub(in super::super) created_at: Moment,
    pub(in super::super) updated_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Question {
    pub(in super::super) label: String,
    pub(in super::super) required: bool,
}

#[derive(Debug, Deserialize)]
pub(in super::super) struct Event {
    pub(in super::super) id: String,
    #[serde(rename = "type")]
    pub(in super::super) kind: String,
    pub(in super::super) details: Pairs,
    pub(in super::super) charge: Option<Subject>,
    pub(in super::super) invoice: Option<Subject>,
    pub(in super::super) created_at: Moment,
}

/// What an event is about.
#[derive(Debug, Deserialize)]
pub(in super::super) struct Subject {
    pub(in super::super) code: String,
    /// Invoices have one.
    pub(in super::super) number: Option<String>,
}
