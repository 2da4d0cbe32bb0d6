//! Payment links: their prices, coins and limits.

use reference_core::{
    asset::{Asset, Currency},
    time::Timestamp,
};

use serde::Serialize;
use serde_json::Value;

use super::Book;
use crate::model::{
    Status, request_time,
    texts::{LinkTexts, cents, non_empty_string},
};

/// The price of a payment link, in hundredths of its currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pricing {
    /// The same price for all customers.
    Fixed(u64),
    /// The customer chooses the amount, within bounds.
    Open {
        /// The minimum.
        min: Option<u64>,
        /// The maximum.
        max: Option<u64>,
    },
}

/// The definition of a custom field of a payment link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct CustomFieldDefinition {
    pub label: String,
    pub required: bool,
}

/// The expected state of a payment link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are those of the API")]
pub struct LinkModel {
    pub pricing: Pricing,
    pub currency: Currency,
    /// The accepted coins; `None` for all.
    pub coins: Option<Vec<Asset>>,
    pub max_payments: Option<u32>,
    pub custom_fields: Vec<CustomFieldDefinition>,
    pub expires_at: Option<Timestamp>,
    pub is_archived: bool,
    pub views: u64,
    pub texts: LinkTexts,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The request of a customer to pay by a link.
#[derive(Clone, Debug)]
pub struct LinkOrder {
    /// The coin; `None` if it is unknown.
    pub asset: Option<Asset>,
    /// The amount in hundredths of the link's currency, if given.
    pub cents: Option<u64>,
    /// The currency, if given.
    pub currency: Option<Currency>,
    /// The values of custom fields, as pairs of label and value.
    pub custom_fields: Vec<(String, String)>,
    /// `true` if the customer's e-mail address is known.
    pub has_email: bool,
}

impl LinkModel {
    /// Creates a link from the body of a request.
    pub fn new(now: Timestamp, default_currency: Currency, body: &Value) -> LinkModel {
        let mut link = LinkModel {
            pricing: Pricing::Open { min: None, max: None },
            currency: default_currency,
            coins: None,
            max_payments: None,
            custom_fields: Vec::new(),
            expires_at: None,
            is_archived: false,
            views: 0,
            texts: LinkTexts::default(),
            created_at: now,
            updated_at: now,
        };
        link.change(now, body);
        link
    }

    /// Archives or restores the link. Without a change, the update time stays.
    pub fn archive(&mut self, now: Timestamp, is_archived: bool) {
        if self.is_archived != is_archived {
            (self.is_archived, self.updated_at) = (is_archived, now);
        }
    }

    /// Applies the fields that a request contains; `null` removes a value.
    pub fn change(&mut self, now: Timestamp, body: &Value) {
        let is_present = |name: &str| body.get(name).is_some();
        let before = self.clone();
        self.texts.change(body);
        if let Some(currency) = body["currency"].as_str().and_then(Currency::parse) {
            self.currency = currency;
        }
        match (cents(&body["amount"]), self.pricing) {
            (Some(price), _) => self.pricing = Pricing::Fixed(price),
            (None, Pricing::Fixed(_)) if body["pricing_type"] != "open" => {}
            (None, pricing) => {
                let (min, max) = match pricing {
                    Pricing::Open { min, max } => (min, max),
                    Pricing::Fixed(_) => (None, None),
                };
                let bound = |name: &str, current| if is_present(name) { cents(&body[name]) } else { current };
                self.pricing = Pricing::Open { min: bound("min_amount", min), max: bound("max_amount", max) };
            }
        }
        if is_present("accepted_assets") {
            let coins: Vec<Asset> = strings(&body["accepted_assets"]).filter_map(Asset::parse).collect();
            self.coins = Some(coins).filter(|coins| !coins.is_empty());
        }
        if matches!(self.pricing, Pricing::Fixed(_)) {
            self.texts.suggested_amounts.clear();
        }
        if is_present("custom_fields") {
            let definition = |field: &Value| {
                let required = field["required"].as_bool().unwrap_or(false);
                Some(CustomFieldDefinition { label: non_empty_string(field, "label")?, required })
            };
            let fields = body["custom_fields"].as_array().map(Vec::as_slice).unwrap_or_default();
            self.custom_fields = fields.iter().filter_map(definition).collect();
        }
        if is_present("expires_at") {
            self.expires_at = body["expires_at"].as_str().and_then(request_time::parse_time);
        }
        if is_present("max_payments") {
            self.max_payments = body["max_payments"].as_u64().and_then(|n| u32::try_from(n).ok());
        }
        // Without a change, the update time stays.
        if *self != before {
            self.updated_at = now;
        }
    }

    /// Returns `true` if the values of the custom fields are valid: each field at most once, no unknown ones, and a
    /// non-empty value for every required one.
    fn accepts_custom_fields(&self, values: &[(String, String)]) -> bool {
        let count =
            |field: &CustomFieldDefinition| values.iter().filter(|(label, _)| *label == field.label).count();
        let has_value = |field: &CustomFieldDefinition| {
            values.iter().any(|(label, value)| *label == field.label && !value.is_empty())
        };
        let known: usize = self.custom_fields.iter().map(count).sum();
        known == values.len()
            && self
                .custom_fields
                .iter()
                .all(|field| count(field) <= 1 && (!field.required || has_value(field)))
    }

    /// Returns `true` if the combination of fields in a request is valid: for a new link, or for a change of `before`.
    pub fn is_valid_request(before: Option<&LinkModel>, now: Timestamp, body: &Value) -> bool {
        let is_present = |name: &str| body.get(name).is_some();
        let is_given = |name: &str| !body[name].is_null();
        let (was_fixed, was_open) = match before.map(|link| link.pricing) {
            Some(Pricing::Fixed(price)) => (Some(price), None),
            Some(Pricing::Open { min, max }) => (None, Some((min, max))),
            None => (None, None),
        };
        let has_title =
            if is_present("title") { non_empty_string(body, "title").is_some() } else { before.is_some() };
        let end = body["expires_at"].as_str().and_then(request_time::parse_time);
        let is_open = match body["pricing_type"].as_str() {
            Some("open") => true,
            Some("fixed") => false,
            _ => was_open.is_some(),
        };
        let suggested: Vec<Option<u64>> = match body["suggested_amounts"].as_array() {
            Some(list) => list.iter().map(cents).collect(),
            None if is_open && was_open.is_some() && !is_present("suggested_amounts") => {
                let texts = before.into_iter().flat_map(|link| &link.texts.suggested_amounts);
                texts.map(|text| cents(&Value::from(text.as_str()))).collect()
            }
            None => Vec::new(),
        };
        let has_valid_price = if is_open {
            let bound = |name: &str, current: Option<u64>| {
                if is_present(name) { cents(&body[name]) } else { current }
            };
            let (min, max) = was_open.unwrap_or_default();
            let (min, max) = (bound("min_amount", min), bound("max_amount", max));
            let is_in_range = |cents: u64| {
                cents > 0 && min.is_none_or(|min| min <= cents) && max.is_none_or(|max| cents <= max)
            };
            !is_given("amount")
                && min != Some(0)
                && max != Some(0)
                && min.zip(max).is_none_or(|(min, max)| min <= max)
                && suggested.iter().all(|amount| amount.is_some_and(is_in_range))
        } else {
            let price = if is_present("amount") { cents(&body["amount"]) } else { was_fixed };
            suggested.is_empty()
                && !is_given("min_amount")
                && !is_given("max_amount")
                && price.is_some_and(|price| price > 0)
        };
        has_title && end.is_none_or(|end| end > now) && has_valid_price
    }
}

/// Returns the strings of a list.
fn strings(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().filter_map(Value::as_str)
}

impl Book {
    /// Returns `true` if a link accepts payments: it is not archived or expired, and has fewer payments than its maximum.
    pub fn accepts_payments(&self, link: usize, now: Timestamp) -> bool {
        let LinkModel { expires_at, is_archived, .. } = &self.links[link];
        !is_archived && expires_at.is_none_or(|end| now < end) && self.has_room(link)
    }

    /// Cancels the untouched charges of a link if this paid charge was the last payment it accepts.
    pub(super) fn cancel_charges_of_exhausted_link(&mut self, at: Timestamp, charge: usize) {
        let Some(link) = self.charges[charge].terms.link else { return };
        if self.has_room(link) {
            return;
        }
        for other in 0..self.charges.len() {
            if self.charges[other].terms.link == Some(link) && self.charges[other].is_untouched() {
                self.cancel_charge(at, other, "max_payments_reached");
            }
        }
    }

    /// Returns `true` if a link has fewer payments than its maximum.
    fn has_room(&self, link: usize) -> bool {
        let charges = self.charges.iter().filter(|charge| charge.terms.link == Some(link));
        let paid = charges.filter(|charge| charge.status == Status::Paid).count();
        self.links[link].max_payments.is_none_or(|max| paid < max as usize)
    }

    /// Returns the price of a charge opened by a link, in hundredths of the link's currency.
    ///
    /// # Errors
    ///
    /// 422 for an invalid coin, price, currency, e-mail address or custom field; 409 if the link accepts no payments.
    pub fn price(&self, link: usize, now: Timestamp, order: LinkOrder) -> Result<u64, u16> {
        let model @ LinkModel { pricing, currency, coins, .. } = &self.links[link];
        let accepts_asset = |asset| coins.as_ref().is_none_or(|coins| coins.contains(&asset));
        let price = match *pricing {
            Pricing::Fixed(price) => {
                Some(price).filter(|price| order.cents.is_none_or(|cents| cents == *price))
            }
            Pricing::Open { min, max } => {
                let is_in_range =
                    |cents: &u64| min.is_none_or(|min| min <= *cents) && max.is_none_or(|max| *cents <= max);
                order.cents.filter(is_in_range)
            }
        };
        let price = price.filter(|cents| *cents > 0);
        let is_valid = order.asset.is_some_and(accepts_asset)
            && order.currency.is_none_or(|given| given == *currency)
            && (order.has_email || !model.texts.require_email)
            && model.accepts_custom_fields(&order.custom_fields);
        let price = price.filter(|_| is_valid).ok_or(422_u16)?;
        if self.accepts_payments(link, now) { Ok(price) } else { Err(409) }
    }
}
