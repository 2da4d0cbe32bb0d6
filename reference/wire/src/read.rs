//! Parsing of request bodies and query strings into calls.

use std::{borrow::Cow, collections::BTreeSet};

use url::form_urlencoded;

use crate::fields::{Fields, PROSE_MAX, QUESTIONS_MAX, Scalar, TEXT_MAX, unknown_value_message};
use reference_core::{
    asset::Asset,
    call::{ChargeDraft, InvoiceDraft, LinkDraft, List, PricingType, RefundDraft},
    charge::{ChargeStatus, Customer, Metadata, MetadataValue},
    error::{ApiError, FieldErrors},
    event::EventType,
    invoice::{InvoiceStatus, Item},
    link::Question,
    money::Quantity,
    page::{PER_PAGE_DEFAULT, PER_PAGE_MAX, PageRequest},
    time::{Day, Timestamp},
};

const METADATA_KEYS_MAX: usize = 20;
const METADATA_KEY_CHARS_MAX: usize = 40;
const METADATA_VALUE_CHARS_MAX: usize = 500;
const ITEMS_MAX: usize = 100;
const SUGGESTED_AMOUNTS_MAX: usize = 10;

pub(crate) fn parse_charge(body: &[u8]) -> Result<ChargeDraft, ApiError> {
    let mut fields = Fields::read(body)?;
    let asset = asset(&mut fields);
    let link = fields.text("payment_link", TEXT_MAX);
    let amount = fields.fiat("amount");
    let currency = fields.currency("currency");
    if link.is_none() && !fields.has("amount") && !fields.has("payment_link") {
        fields.add_error("amount", "The {} field is required when payment_link is not present.");
    }
    let customer = customer(&mut fields);
    let description = fields.text("description", PROSE_MAX);
    let metadata = metadata(&mut fields);
    let custom_fields = fields.custom_fields("custom_fields");
    fields.finish()?;
    Ok(ChargeDraft {
        asset: asset.expect("a missing asset was refused"),
        amount,
        currency,
        link,
        customer,
        description,
        metadata,
        custom_fields,
    })
}

fn asset(fields: &mut Fields<'_>) -> Option<Asset> {
    fields.required_text("asset", TEXT_MAX)?;
    fields.asset("asset")
}

fn customer(fields: &mut Fields<'_>) -> Customer {
    let deprecated_email = fields.email("customer_email");
    let mut customer = fields
        .object("customer", |fields| {
            fields.reject_unknown(&[
                "email",
                "name",
                "ip_address",
                "user_agent",
                "reference",
                "phone",
                "country",
                "metadata",
            ]);
            let country = fields.country("country");
            let ip_address = fields.text("ip_address", TEXT_MAX);
            if ip_address.as_ref().is_some_and(|ip| ip.parse::<std::net::IpAddr>().is_err()) {
                fields.add_error("ip_address", "The {} field must be a valid IP address.");
            }
            Some(Customer {
                email: fields.email("email"),
                name: fields.text("name", TEXT_MAX),
                ip_address,
                user_agent: fields.text("user_agent", PROSE_MAX),
                reference: fields.text("reference", TEXT_MAX),
                phone: fields.text("phone", TEXT_MAX),
                country,
                metadata: metadata(fields),
            })
        })
        .unwrap_or_default();
    if customer.email.is_none() {
        customer.email = deprecated_email;
    }
    customer
}

fn metadata(fields: &mut Fields<'_>) -> Metadata {
    fields
        .object("metadata", |fields| {
            let names = fields.names();
            if names.len() > METADATA_KEYS_MAX {
                fields.add_object_error(&format!("The metadata may have at most {METADATA_KEYS_MAX} keys."));
                return None;
            }
            let mut pairs = Vec::new();
            for name in names {
                if name.chars().count() > METADATA_KEY_CHARS_MAX {
                    fields.add_error(
                        &name,
                        &format!("A metadata key may have at most {METADATA_KEY_CHARS_MAX} characters."),
                    );
                    continue;
                }
                let value = match fields.scalar(&name, METADATA_VALUE_CHARS_MAX) {
                    Some(Scalar::Text(text)) => MetadataValue::Text(text),
                    Some(Scalar::Number(text)) => MetadataValue::Number(text),
                    Some(Scalar::Bool(value)) => MetadataValue::Bool(value),
                    Some(Scalar::Null) => MetadataValue::Null,
                    None => continue,
                };
                pairs.push((name.into_owned(), value));
            }
            Some(pairs)
        })
        .unwrap_or_default()
}

/// Checks that the body of a request without fields is empty or an object. Fields of the object are ignored.
pub(crate) fn require_object(body: &[u8]) -> Result<(), ApiError> {
    Fields::read(body)?.finish()
}

pub(crate) fn parse_refund(body: &[u8]) -> Result<RefundDraft, ApiError> {
    let mut fields = Fields::read(body)?;
    let amount = fields.decimal("amount");
    if !fields.has("amount") {
        fields.add_error("amount", "The {} field is required.");
    }
    let txid = fields.text("txid", TEXT_MAX);
    let reason = fields.text("reason", PROSE_MAX);
    fields.finish()?;
    let amount = amount.ok_or_else(|| ApiError::field("amount", "The amount field is required."))?;
    Ok(RefundDraft { amount: amount.into_owned(), txid, reason })
}

pub(crate) fn parse_link(body: &[u8]) -> Result<LinkDraft, ApiError> {
    let mut fields = Fields::read(body)?;
    /// Reads a field that may be set to null, which differs from a missing field.
    fn nullable<'a, T>(
        fields: &mut Fields<'a>,
        name: &str,
        read: impl FnOnce(&mut Fields<'a>, &str) -> Option<T>,
    ) -> Option<Option<T>> {
        fields.has(name).then(|| read(fields, name))
    }
    let draft = LinkDraft {
        title: match fields.has("title") {
            true => fields.required_text("title", TEXT_MAX),
            false => None,
        },
        description: nullable(&mut fields, "description", |fields, name| fields.text(name, PROSE_MAX)),
        pricing_type: fields.choice("pricing_type", &["fixed", "open"], |keyword| match keyword {
            "fixed" => Some(PricingType::Fixed),
            "open" => Some(PricingType::Open),
            _ => None,
        }),
        amount: nullable(&mut fields, "amount", |fields, name| fields.fiat(name)),
        suggested_amounts: fields
            .has("suggested_amounts")
            .then(|| fields.fiats("suggested_amounts", SUGGESTED_AMOUNTS_MAX)),
        min_amount: nullable(&mut fields, "min_amount", |fields, name| fields.fiat(name)),
        max_amount: nullable(&mut fields, "max_amount", |fields, name| fields.fiat(name)),
        currency: fields.currency("currency"),
        accepted_assets: nullable(&mut fields, "accepted_assets", |fields, name| {
            let mut assets = fields.assets(name);
            if has_duplicates(&assets) {
                fields.add_error(name, "The {} field lists a coin twice.");
                assets.clear();
            }
            Some(assets).filter(|assets| !assets.is_empty())
        }),
        success_url: nullable(&mut fields, "success_url", |fields, name| fields.web_address(name)),
        cancel_url: nullable(&mut fields, "cancel_url", |fields, name| fields.web_address(name)),
        collect_name: fields.bool("collect_name"),
        require_email: fields.bool("require_email"),
        custom_fields: fields.has("custom_fields").then(|| {
            let questions = fields.objects("custom_fields", QUESTIONS_MAX, |fields| {
                let label = fields.required_text("label", TEXT_MAX);
                let required = fields.bool("required").unwrap_or(false);
                Some(Question { label: label?, required })
            });
            let labels: Vec<&str> = questions.iter().map(|question| question.label.as_str()).collect();
            if has_duplicates(&labels) {
                fields.add_error("custom_fields", "The {} field has the same label twice.");
            }
            questions
        }),
        success_message: nullable(&mut fields, "success_message", |fields, name| {
            fields.text(name, PROSE_MAX)
        }),
        expires_at: nullable(&mut fields, "expires_at", |fields, name| {
            fields.parsed_text(name, "2026-09-20T10:05:41Z", Timestamp::parse)
        }),
        max_payments: nullable(&mut fields, "max_payments", |fields, name| fields.count(name)),
    };
    fields.finish()?;
    Ok(draft)
}

fn has_duplicates<T: Ord>(values: &[T]) -> bool {
    values.iter().collect::<BTreeSet<_>>().len() < values.len()
}

pub(crate) fn parse_invoice(body: &[u8]) -> Result<InvoiceDraft, ApiError> {
    let mut fields = Fields::read(body)?;
    let draft = InvoiceDraft {
        customer_name: fields.text("customer_name", TEXT_MAX),
        customer_email: fields.email("customer_email"),
        currency: fields.currency("currency"),
        amount: fields.fiat("amount"),
        items: fields.objects("items", ITEMS_MAX, |fields| {
            let description = fields.required_text("description", PROSE_MAX);
            for name in ["quantity", "unit_amount"] {
                if !fields.has(name) {
                    fields.add_error(name, "The {} field is required.");
                }
            }
            let quantity = fields.amount("quantity", Quantity::parse);
            let unit_amount = fields.fiat("unit_amount");
            let (description, quantity, unit_amount) = (description?, quantity?, unit_amount?);
            match unit_amount.times(quantity) {
                Some(total) => Some(Item { description, quantity, unit_amount, total }),
                None => {
                    fields.add_error("unit_amount", "The {} field is too large for this quantity.");
                    None
                }
            }
        }),
        memo: fields.text("memo", PROSE_MAX),
        due_at: fields.parsed_text("due_at", "2026-10-15", Day::parse),
        send_email: fields.bool("send_email").unwrap_or(false),
    };
    fields.finish()?;
    Ok(draft)
}

/// The kind of objects in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    Charges,
    Invoices,
    Links,
    Events,
}

/// The query of a list.
pub(crate) struct ListQuery {
    /// The list with its filters.
    pub(crate) list: List,
    pub(crate) page: PageRequest,
    pub(crate) anchor: Option<String>,
}

/// Parses the query string of a list. Unknown parameters are ignored.
pub(crate) fn parse_list_query(kind: ListKind, query: Option<&str>) -> Result<ListQuery, ApiError> {
    let mut errors = FieldErrors::default();
    // A vector suffices: only known parameters are stored.
    let mut values: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::new();
    for (name, value) in form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
        if !is_known(kind, &name) {
            continue;
        }
        match values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, earlier)) => {
                errors.add(name.as_ref(), format!("The {name} field must be given once."));
                *earlier = value;
            }
            None => values.push((name, value)),
        }
    }
    let mut take_value = |name: &str| {
        let index = values.iter().position(|(known, _)| known == name)?;
        Some(values.swap_remove(index).1)
    };
    let page = take_value("page").map_or(Some(1), |text| parse_positive(&text, u64::MAX));
    if page.is_none() {
        errors.add("page", "The page field must be a whole number of at least 1.");
    }
    let per_page = take_value("per_page")
        .map_or(Some(u64::from(PER_PAGE_DEFAULT)), |text| parse_positive(&text, u64::from(PER_PAGE_MAX)));
    if per_page.is_none() {
        errors
            .add("per_page", format!("The per_page field must be a whole number from 1 to {PER_PAGE_MAX}."));
    }
    let anchor = take_value("anchor").map(Cow::into_owned);
    let list = match kind {
        ListKind::Charges => List::Charges {
            status: filter_choice(
                ("status", take_value("status")),
                (ChargeStatus::ALL, ChargeStatus::as_str),
                &mut errors,
            ),
            link: take_value("payment_link").map(Cow::into_owned),
        },
        ListKind::Invoices => List::Invoices {
            status: filter_choice(
                ("status", take_value("status")),
                (InvoiceStatus::ALL, InvoiceStatus::as_str),
                &mut errors,
            ),
        },
        ListKind::Links => List::Links,
        ListKind::Events => List::Events {
            kind: filter_choice(
                ("type", take_value("type")),
                (EventType::ALL, EventType::as_str),
                &mut errors,
            ),
            charge: take_value("charge").map(Cow::into_owned),
            invoice: take_value("invoice").map(Cow::into_owned),
        },
    };
    errors.into_result()?;
    let (page, per_page) =
        (page.expect("invalid values were refused"), per_page.expect("invalid values were refused"));
    let per_page = u32::try_from(per_page).expect("per_page is at most PER_PAGE_MAX");
    Ok(ListQuery { list, page: PageRequest { page, per_page }, anchor })
}

/// Returns `true` if the list has a query parameter with this name.
fn is_known(kind: ListKind, name: &str) -> bool {
    let filters: &[&str] = match kind {
        ListKind::Charges => &["status", "payment_link"],
        ListKind::Invoices => &["status"],
        ListKind::Links => &[],
        ListKind::Events => &["type", "charge", "invoice"],
    };
    matches!(name, "page" | "per_page" | "anchor") || filters.contains(&name)
}

fn parse_positive(text: &str, max: u64) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A number with too many digits counts as `u64::MAX`.
    let n = is_number.then(|| text.parse().unwrap_or(u64::MAX))?;
    (1..=max).contains(&n).then_some(n)
}

/// Parses a filter with an enum value.
fn filter_choice<T: Copy, const N: usize>(
    (name, text): (&str, Option<Cow<'_, str>>),
    (allowed, as_str): ([T; N], fn(T) -> &'static str),
    errors: &mut FieldErrors,
) -> Option<T> {
    let text = text?;
    let found = allowed.into_iter().find(|value| as_str(*value) == text);
    if found.is_none() {
        errors.add(name, unknown_value_message(name, &allowed.map(as_str)));
    }
    found
}
