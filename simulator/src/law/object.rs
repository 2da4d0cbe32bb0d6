//! What a delivery carries: the object as it was when the event happened.

use serde::Deserialize;

use super::{Findings, Law};
use crate::model::{Model, Told, money};

/// The body of a delivery, as far as laws look at it.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope {
    pub(super) id: String,
    pub(super) event_id: Option<String>,
    event: String,
    mode: String,
    created_at: String,
    #[serde(default)]
    pub(super) test: bool,
    data: Data,
}

#[derive(Debug, Deserialize)]
struct Data {
    charge: Option<Charge>,
    invoice: Option<Invoice>,
}

#[derive(Debug, Deserialize)]
struct Charge {
    code: String,
    status: String,
    received_amount: String,
}

#[derive(Debug, Deserialize)]
struct Invoice {
    code: String,
    status: String,
}

impl Envelope {
    pub(super) fn read(body: &[u8]) -> Option<Envelope> {
        serde_json::from_slice(body).ok()
    }

    /// The code of what it is about.
    pub(super) fn subject(&self) -> &str {
        match (&self.data.charge, &self.data.invoice) {
            (Some(charge), None) => &charge.code,
            (None, Some(invoice)) => &invoice.code,
            _ => "",
        }
    }
}

/// Judges law 11 and the envelope of law 10.
pub(super) fn judge(findings: &mut Findings, told: &Told, read: &Envelope, model: &Model<'_>) {
    let about = &told.subject;
    findings.same(Law::Deliveries, "event of a delivery", about, &told.kind, &read.event.as_str());
    findings.same(Law::Deliveries, "mode of a delivery", about, &told.mode.as_str(), &read.mode.as_str());
    let at = told.at.to_string();
    findings.same(Law::Deliveries, "created_at of a delivery", about, &at, &read.created_at);
    if let Some(charge) = &read.data.charge {
        findings.same(Law::SameObject, "status in a delivery", about, &told.status, &charge.status.as_str());
        let asset = model.charges[about].asset;
        let expected = told.received.map(|units| money::written(units, asset)).unwrap_or_default();
        let (whole, part) = charge.received_amount.split_once('.').unwrap_or((&charge.received_amount, ""));
        findings.check(Law::SameObject, Some(told.at), || {
            (part.len() != 18).then(|| {
                ("a delivered amount has not 18 decimals".to_owned(), charge.received_amount.clone())
            })
        });
        let part = part.trim_end_matches('0');
        let actual = if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") };
        findings.same(Law::SameObject, "received_amount in a delivery", about, &expected, &actual);
    }
    if let Some(invoice) = &read.data.invoice {
        findings.same(Law::SameObject, "status in a delivery", about, &told.status, &invoice.status.as_str());
    }
}
