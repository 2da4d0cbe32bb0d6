//! Charges, invoices, payment links and events as the API answers them, as far as pages show them. Nothing here is
//! reckoned: amounts stay the text they came as.

use std::{fmt, ops::Deref};

use reference_core::time::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::words;

/// A moment as the API writes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        let text = String::deserialize(deserializer)?;
        let at =
            Timestamp::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not a time")))?;
        Ok(Moment(at))
    }
}

impl Deref for Moment {
    type Target = Timestamp;

    fn deref(&self) -> &Timestamp {
        &self.0
    }
}

/// Key/value pairs in the order in which they came, values as text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs(pub(crate) Vec<(String, String)>);

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
#[derive(Debug, Deserialize)]
pub(crate) struct Charge {
    pub(crate) code: String,
    pub(crate) status: String,
    pub(crate) payment_link: Option<String>,
    pub(crate) invoice: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) fiat_amount: String,
    pub(crate) fiat_currency: String,
    pub(crate) asset: String,
    pub(crate) asset_amount: String,
    pub(crate) received_amount: String,
    pub(crate) remaining_amount: String,
    pub(crate) overpaid: bool,
    pub(crate) refunded_amount: String,
    #[serde(default)]
    pub(crate) refunds: Vec<Refund>,
    pub(crate) exchange_rate: String,
    pub(crate) deposit_address: String,
    pub(crate) customer_email: Option<String>,
    pub(crate) customer_name: Option<String>,
    pub(crate) custom_fields: Vec<CustomField>,
    pub(crate) expires_at: Moment,
    pub(crate) paid_at: Option<Moment>,
    pub(crate) created_at: Moment,
}

/// A charge with what only its owner sees. Apart from it, because raw values cannot stand inside of what is flattened,
/// as the charge of a hosted page is.
#[derive(Debug, Deserialize)]
pub(crate) struct ChargeDetails {
    #[serde(flatten)]
    charge: Charge,
    pub(crate) customer: Customer,
    pub(crate) metadata: Pairs,
}

impl Deref for ChargeDetails {
    type Target = Charge;

    fn deref(&self) -> &Charge {
        &self.charge
    }
}

impl Charge {
    /// Money is still expected.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status.as_str(), "pending" | "underpaid")
    }

    /// The price with its currency.
    pub(crate) fn price(&self) -> String {
        words::price(&self.fiat_amount, &self.fiat_currency)
    }

    /// Something was credited.
    pub(crate) fn was_begun(&self) -> bool {
        self.received_amount != "0"
    }

    pub(crate) fn was_refunded(&self) -> bool {
        self.refunded_amount != "0"
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Refund {
    pub(crate) amount: String,
    pub(crate) txid: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) created_at: Moment,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Customer {
    pub(crate) email: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) ip_address: Option<String>,
    pub(crate) user_agent: Option<String>,
    pub(crate) reference: Option<String>,
    pub(crate) phone: Option<String>,
    pub(crate) country: Option<String>,
    pub(crate) metadata: Pairs,
}

impl Customer {
    /// Returns the known facts with their names.
    pub(crate) fn facts(&self) -> Vec<(&str, &str)> {
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
pub(crate) struct CustomField {
    pub(crate) label: String,
    pub(crate) value: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Invoice {
    pub(crate) code: String,
    pub(crate) number: String,
    pub(crate) status: String,
    pub(crate) overdue: bool,
    pub(crate) customer_name: Option<String>,
    pub(crate) customer_email: Option<String>,
    pub(crate) memo: Option<String>,
    pub(crate) amount: String,
    pub(crate) currency: String,
    pub(crate) items: Vec<Item>,
    pub(crate) due_at: Option<String>,
    pub(crate) charges: Vec<InvoiceCharge>,
    pub(crate) sent_at: Option<Moment>,
    pub(crate) viewed_at: Option<Moment>,
    pub(crate) paid_at: Option<Moment>,
    pub(crate) voided_at: Option<Moment>,
    pub(crate) created_at: Moment,
}

impl Invoice {
    /// The amount with its currency.
    pub(crate) fn price(&self) -> String {
        words::price(&self.amount, &self.currency)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.status == "open"
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Item {
    pub(crate) description: String,
    pub(crate) quantity: String,
    pub(crate) unit_amount: String,
    pub(crate) total: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct InvoiceCharge {
    pub(crate) code: String,
    pub(crate) status: String,
    pub(crate) asset: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Link {
    pub(crate) code: String,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) pricing_type: String,
    pub(crate) amount: Option<String>,
    pub(crate) min_amount: Option<String>,
    pub(crate) max_amount: Option<String>,
    pub(crate) suggested_amounts: Vec<String>,
    pub(crate) currency: String,
    pub(crate) accepted_assets: Option<Vec<String>>,
    pub(crate) status: String,
    pub(crate) cancel_url: Option<String>,
    pub(crate) collect_name: bool,
    pub(crate) require_email: bool,
    pub(crate) custom_fields: Vec<Question>,
    pub(crate) expires_at: Option<Moment>,
    pub(crate) max_payments: Option<u32>,
    pub(crate) accepting_payments: bool,
    pub(crate) views_count: u64,
    pub(crate) created_at: Moment,
    pub(crate) updated_at: Moment,
}

impl Link {
    /// The price with its currency; `None` if the customer says how much.
    pub(crate) fn price(&self) -> Option<String> {
        self.amount.as_deref().map(|amount| words::price(amount, &self.currency))
    }

    /// Returns the range of the customer's price: `Between 5.00 and 100.00`.
    pub(crate) fn bounds(&self) -> Option<String> {
        let said = |amount: &String| words::fiat(amount);
        match (&self.min_amount, &self.max_amount) {
            (Some(min), Some(max)) => Some(format!("Between {} and {}", said(min), said(max))),
            (Some(min), None) => Some(format!("At least {}", said(min))),
            (None, Some(max)) => Some(format!("At most {}", said(max))),
            (None, None) => None,
        }
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Question {
    pub(crate) label: String,
    pub(crate) required: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Event {
    pub(crate) id: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) details: Pairs,
    pub(crate) charge: Option<Subject>,
    pub(crate) invoice: Option<Subject>,
    pub(crate) created_at: Moment,
}

/// The object of an event.
#[derive(Debug, Deserialize)]
pub(crate) struct Subject {
    pub(crate) code: String,
    /// Invoices have one.
    pub(crate) number: Option<String>,
}
