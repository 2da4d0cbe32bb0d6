//! What a delivery carries: the object as it was when the event happened.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Findings, Law};
use crate::model::{Model, Told, money};

/// The body of a delivery, as far as laws look at it.
#[derive(Debug, Deserialize)]
pub(super) struct Envelope<'b> {
    #[serde(borrow)]
    pub(super) id: Cow<'b, str>,
    #[serde(borrow)]
    pub(super) event_id: Option<Cow<'b, str>>,
    #[serde(borrow)]
    event: Cow<'b, str>,
    #[serde(borrow)]
    mode: Cow<'b, str>,
    #[serde(borrow)]
    created_at: Cow<'b, str>,
    #[serde(default)]
    pub(super) test: bool,
    #[serde(borrow)]
    data: Data<'b>,
}

#[derive(Debug, Deserialize)]
struct Data<'b> {
    #[serde(borrow)]
    charge: Option<Charge<'b>>,
    #[serde(borrow)]
    invoice: Option<Invoice<'b>>,
}

#[derive(Debug, Deserialize)]
struct Charge<'b> {
    #[serde(borrow)]
    code: Cow<'b, str>,
    #[serde(borrow)]
    status: Cow<'b, str>,
    #[serde(borrow)]
    received_amount: Cow<'b, str>,
}

#[derive(Debug, Deserialize)]
struct Invoice<'b> {
    #[serde(borrow)]
    code: Cow<'b, str>,
    #[serde(borrow)]
    status: Cow<'b, str>,
}

impl<'b> Envelope<'b> {
    pub(super) fn read(body: &'b [u8]) -> Option<Envelope<'b>> {
        serde_json::from_slice(body).ok()
    }

    /// The code of what it is about.
    pub(super) fn subject(&self) -> &str {
        match (&self.data.charge, &self.data.invoice) {
            (Some(charge), None) => charge.code.as_ref(),
            (None, Some(invoice)) => invoice.code.as_ref(),
            _ => "",
        }
    }
}

/// Judges law 11 and the envelope of law 10.
pub(super) fn judge(findings: &mut Findings, told: &Told, read: &Envelope<'_>, model: &Model<'_>) {
    let about = &told.subject;
    findings.same(Law::Deliveries, "event of a delivery", about, &told.kind, &read.event.as_ref());
    findings.same(Law::Deliveries, "mode of a delivery", about, &told.mode.as_str(), &read.mode.as_ref());
    let at = told.at.to_string();
    findings.same(
        Law::Deliveries,
        "created_at of a delivery",
        about,
        &at.as_str(),
        &read.created_at.as_ref(),
    );
    if let Some(charge) = &read.data.charge {
        findings.same(Law::SameObject, "status in a delivery", about, &told.status, &charge.status.as_ref());
        let asset = model.charges[about].asset;
        let expected = told.received.map(|units| money::written(units, asset)).unwrap_or_default();
        let (whole, part) = charge.received_amount.split_once('.').unwrap_or((&charge.received_amount, ""));
        findings.check(Law::SameObject, Some(told.at), || {
            (part.len() != 18).then(|| {
                (
                    "a delivered amount has not 18 decimals".to_owned(),
                    charge.received_amount.clone().into_owned(),
                )
            })
        });
        let part = part.trim_end_matches('0');
        let actual = if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") };
        findings.same(Law::SameObject, "received_amount in a delivery", about, &expected, &actual);
    }
    if let Some(invoice) = &read.data.invoice {
        findings.same(Law::SameObject, "status in a delivery", about, &told.status, &invoice.status.as_ref());
    }
}
