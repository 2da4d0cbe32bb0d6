//! The descriptive fields of objects, which the service stores and returns. Most affect no other field.
//!
//! They are read from request bodies as the contract demands: an empty string counts as missing, and `[]` as an empty map.

use reference_core::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{money, operation::parse_units_strictly};

/// The customer's value of a custom field of a payment link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct CustomFieldText {
    pub label: String,
    pub value: String,
}

/// The customer of a charge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct CustomerTexts {
    pub email: Option<String>,
    pub name: Option<String>,
    pub ip_address: Option<String>,
    pub user_agent: Option<String>,
    pub reference: Option<String>,
    pub phone: Option<String>,
    pub country: Option<String>,
    pub metadata: Map<String, Value>,
}

/// The descriptive fields of a charge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ChargeTexts {
    pub description: Option<String>,
    pub customer: CustomerTexts,
    pub custom_fields: Vec<CustomFieldText>,
    pub metadata: Map<String, Value>,
}

/// An item of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct ItemText {
    pub description: String,
    pub quantity: String,
    pub unit_amount: String,
    pub total: String,
}

/// The descriptive fields of an invoice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct InvoiceTexts {
    pub customer_name: Option<String>,
    pub memo: Option<String>,
    pub items: Vec<ItemText>,
    /// The due date, as `2026-10-15`.
    pub due_at: Option<String>,
}

/// The descriptive fields of a payment link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct LinkTexts {
    pub title: String,
    pub description: Option<String>,
    pub suggested_amounts: Vec<String>,
    pub success_url: Option<String>,
    pub cancel_url: Option<String>,
    pub collect_name: bool,
    pub require_email: bool,
    pub success_message: Option<String>,
}

/// Returns the string in a field of a request; `None` if it is missing or empty.
pub fn non_empty_string(body: &Value, name: &str) -> Option<String> {
    body[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the map in a field of a request; empty if it is missing.
fn map(body: &Value, name: &str) -> Map<String, Value> {
    body[name].as_object().cloned().unwrap_or_default()
}

/// Parses a price to cents; `None` if it is invalid.
pub fn cents(value: &Value) -> Option<u64> {
    parse_units_strictly(value, 2).and_then(|cents| u64::try_from(cents).ok())
}

/// Returns the elements of the list in a field of a request.
fn list(body: &Value, name: &str) -> impl Iterator<Item = Value> {
    body[name].as_array().cloned().unwrap_or_default().into_iter()
}

impl ChargeTexts {
    /// Reads the body of a request that opens a charge, through the API or on the page of a payment link.
    pub fn read(body: &Value) -> ChargeTexts {
        let customer = &body["customer"];
        let custom_field = |field: Value| {
            Some(CustomFieldText {
                label: non_empty_string(&field, "label")?,
                value: field["value"].as_str()?.to_owned(),
            })
        };
        ChargeTexts {
            description: non_empty_string(body, "description"),
            customer: CustomerTexts {
                email: non_empty_string(customer, "email")
                    .or_else(|| non_empty_string(body, "customer_email")),
                name: non_empty_string(customer, "name").or_else(|| non_empty_string(body, "customer_name")),
                ip_address: non_empty_string(customer, "ip_address"),
                user_agent: non_empty_string(customer, "user_agent"),
                reference: non_empty_string(customer, "reference"),
                phone: non_empty_string(customer, "phone"),
                country: non_empty_string(customer, "country"),
                metadata: map(customer, "metadata"),
            },
            custom_fields: list(body, "custom_fields").filter_map(custom_field).collect(),
            metadata: map(body, "metadata"),
        }
    }
}

impl ItemText {
    /// Reads an item and its total in cents, rounded half up.
    fn read(item: &Value) -> Option<(ItemText, u64)> {
        let quantity = match &item["quantity"] {
            Value::String(string) => string.clone(),
            number => number.to_string(),
        };
        let thousandths = money::parse_units(&quantity, 3)?;
        let unit_cents = cents(&item["unit_amount"])?;
        let total = u64::try_from((thousandths * u128::from(unit_cents) + 500) / 1_000).ok()?;
        let decimal = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
        let item = ItemText {
            description: non_empty_string(item, "description")?,
            quantity: decimal.trim_end_matches('0').trim_end_matches('.').to_owned(),
            unit_amount: money::fiat(unit_cents),
            total: money::fiat(total),
        };
        Some((item, total))
    }
}

impl InvoiceTexts {
    /// Reads the body of a request that creates an invoice. Also returns the sum of its items, in cents.
    pub fn read(body: &Value) -> (InvoiceTexts, u64) {
        let items: Vec<(ItemText, u64)> =
            list(body, "items").filter_map(|item| ItemText::read(&item)).collect();
        let sum = items.iter().map(|(_, total)| total).sum();
        let texts = InvoiceTexts {
            customer_name: non_empty_string(body, "customer_name"),
            memo: non_empty_string(body, "memo"),
            items: items.into_iter().map(|(item, _)| item).collect(),
            due_at: non_empty_string(body, "due_at"),
        };
        (texts, sum)
    }

    /// Returns `true` if the due date has passed.
    pub(super) fn is_past_due(&self, now: Timestamp) -> bool {
        // Both are `YYYY-MM-DD`, so the order of strings is that of dates.
        self.due_at.as_deref().is_some_and(|day| &now.to_string()[..10] > day)
    }
}

impl LinkTexts {
    /// Applies the fields that a request contains; `null` removes a value.
    pub fn change(&mut self, body: &Value) {
        let is_present = |name: &str| body.get(name).is_some();
        for (name, field) in [
            ("description", &mut self.description),
            ("success_url", &mut self.success_url),
            ("cancel_url", &mut self.cancel_url),
            ("success_message", &mut self.success_message),
        ] {
            if is_present(name) {
                *field = non_empty_string(body, name);
            }
        }
        if let Some(title) = non_empty_string(body, "title") {
            self.title = title;
        }
        if is_present("suggested_amounts") {
            self.suggested_amounts = list(body, "suggested_amounts")
                .filter_map(|amount| cents(&amount))
                .map(money::fiat)
                .collect();
        }
        for (name, field) in
            [("collect_name", &mut self.collect_name), ("require_email", &mut self.require_email)]
        {
            *field = body[name].as_bool().unwrap_or(*field);
        }
    }
}
