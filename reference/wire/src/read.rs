//! Parsing of request bodies and query strings into calls.

use std::{borrow::Cow, collections::BTreeSet};

use url::form_urlencoded;

use crate::fields::{Fields, PROSE_MAX, QUESTIONS_MAX, Scalar, TEXT_MAX, unknown_value_message};
use reference_core::{
    asset::Asset,
    call::{ChargeDraft, InvoiceDraft, LinkDraft, List, PricingType, RefundDraft},
    charge::{ChargeStatus, Customer, MetaValue, Metadata},
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

pub(crate) fn charge(body: &[u8]) -> Result<ChargeDraft, ApiError> {
    let mut f = Fields::read(body)?;
    let asset = asset(&mut f);
    let link = f.text("payment_link", TEXT_MAX);
    let amount = f.fiat("amount");
    let currency = f.currency("currency");
    if link.is_none() && !f.has("amount") && !f.has("payment_link") {
        f.add_error("amount", "The {} field is required when payment_link is not present.");
    }
    let customer = customer(&mut f);
    let description = f.text("description", PROSE_MAX);
    let metadata = metadata(&mut f);
    let custom_fields = f.custom_fields("custom_fields");
    f.finish()?;
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

fn asset(f: &mut Fields<'_>) -> Option<Asset> {
    f.required_text("asset", TEXT_MAX)?;
    f.asset("asset")
}

fn customer(f: &mut Fields<'_>) -> Customer {
    let older = f.email("customer_email");
    let mut customer = f
        .object("customer", |f| {
            f.reject_unknown(&[
                "email",
                "name",
                "ip_address",
                "user_agent",
                "reference",
                "phone",
                "country",
                "metadata",
            ]);
            let country = f.country("country");
            let ip_address = f.text("ip_address", TEXT_MAX);
            if ip_address.as_ref().is_some_and(|ip| ip.parse::<std::net::IpAddr>().is_err()) {
                f.add_error("ip_address", "The {} field must be a valid IP address.");
            }
            Some(Customer {
                email: f.email("email"),
                name: f.text("name", TEXT_MAX),
                ip_address,
                user_agent: f.text("user_agent", PROSE_MAX),
                reference: f.text("reference", TEXT_MAX),
                phone: f.text("phone", TEXT_MAX),
                country,
                metadata: metadata(f),
            })
        })
        .unwrap_or_default();
    if customer.email.is_none() {
        customer.email = older;
    }
    customer
}

fn metadata(f: &mut Fields<'_>) -> Metadata {
    f.object("metadata", |f| {
        let names = f.names();
        if names.len() > METADATA_KEYS_MAX {
            f.add_object_error(&format!("The metadata may have at most {METADATA_KEYS_MAX} keys."));
            return None;
        }
        let mut pairs = Vec::new();
        for name in names {
            if name.chars().count() > METADATA_KEY_CHARS_MAX {
                f.add_error(
                    &name,
                    &format!("A metadata key may have at most {METADATA_KEY_CHARS_MAX} characters."),
                );
                continue;
            }
            let value = match f.scalar(&name, METADATA_VALUE_CHARS_MAX) {
                Some(Scalar::Text(text)) => MetaValue::Text(text),
                Some(Scalar::Number(text)) => MetaValue::Number(text),
                Some(Scalar::Bool(truth)) => MetaValue::Truth(truth),
                Some(Scalar::Null) => MetaValue::Null,
                None => continue,
            };
            pairs.push((name.into_owned(), value));
        }
        Some(pairs)
    })
    .unwrap_or_default()
}

/// Checks the body of a request without fields.
pub(crate) fn require_no_fields(body: &[u8]) -> Result<(), ApiError> {
    Fields::read(body)?.finish()
}

pub(crate) fn refund(body: &[u8]) -> Result<RefundDraft, ApiError> {
    let mut f = Fields::read(body)?;
    let amount = f.decimal("amount");
    if !f.has("amount") {
        f.add_error("amount", "The {} field is required.");
    }
    let txid = f.text("txid", TEXT_MAX);
    let reason = f.text("reason", PROSE_MAX);
    f.finish()?;
    let amount = amount.ok_or_else(|| ApiError::field("amount", "The amount field is required."))?;
    Ok(RefundDraft { amount: amount.into_owned(), txid, reason })
}

pub(crate) fn link(body: &[u8]) -> Result<LinkDraft, ApiError> {
    let mut f = Fields::read(body)?;
    /// Reads a field that may be set to null, which differs from a missing field.
    fn nullable<'a, T>(
        f: &mut Fields<'a>,
        name: &str,
        read: impl FnOnce(&mut Fields<'a>, &str) -> Option<T>,
    ) -> Option<Option<T>> {
        f.has(name).then(|| read(f, name))
    }
    let draft = LinkDraft {
        title: match f.has("title") {
            true => f.required_text("title", TEXT_MAX),
            false => None,
        },
        description: nullable(&mut f, "description", |f, n| f.text(n, PROSE_MAX)),
        pricing_type: f.choice("pricing_type", &["fixed", "open"], |word| match word {
            "fixed" => Some(PricingType::Fixed),
            "open" => Some(PricingType::Open),
            _ => None,
        }),
        amount: nullable(&mut f, "amount", |f, n| f.fiat(n)),
        suggested_amounts: f.has("suggested_amounts").then(|| f.fiats("suggested_amounts", 10)),
        min_amount: nullable(&mut f, "min_amount", |f, n| f.fiat(n)),
        max_amount: nullable(&mut f, "max_amount", |f, n| f.fiat(n)),
        currency: f.currency("currency"),
        accepted_assets: nullable(&mut f, "accepted_assets", |f, n| {
            let mut assets = f.assets(n);
            if has_duplicates(&assets) {
                f.add_error(n, "The {} field names a coin twice.");
                assets.clear();
            }
            Some(assets).filter(|assets| !assets.is_empty())
        }),
        success_url: nullable(&mut f, "success_url", |f, n| f.web_address(n)),
        cancel_url: nullable(&mut f, "cancel_url", |f, n| f.web_address(n)),
        collect_name: f.bool("collect_name"),
        require_email: f.bool("require_email"),
        custom_fields: f.has("custom_fields").then(|| {
            let questions = f.objects("custom_fields", QUESTIONS_MAX, |f| {
                let label = f.required_text("label", TEXT_MAX);
                let required = f.bool("required").unwrap_or(false);
                Some(Question { label: label?, required })
            });
            let labels: Vec<&str> = questions.iter().map(|question| question.label.as_str()).collect();
            if has_duplicates(&labels) {
                f.add_error("custom_fields", "The {} field asks the same question twice.");
            }
            questions
        }),
        success_message: nullable(&mut f, "success_message", |f, n| f.text(n, PROSE_MAX)),
        expires_at: nullable(&mut f, "expires_at", |f, n| {
            f.parsed_text(n, "2026-09-20T10:05:41Z", Timestamp::parse)
        }),
        max_payments: nullable(&mut f, "max_payments", |f, n| f.count(n)),
    };
    f.finish()?;
    Ok(draft)
}

fn has_duplicates<T: Ord>(values: &[T]) -> bool {
    values.iter().collect::<BTreeSet<_>>().len() < values.len()
}

pub(crate) fn invoice(body: &[u8]) -> Result<InvoiceDraft, ApiError> {
    let mut f = Fields::read(body)?;
    let draft = InvoiceDraft {
        customer_name: f.text("customer_name", TEXT_MAX),
        customer_email: f.email("customer_email"),
        currency: f.currency("currency"),
        amount: f.fiat("amount"),
        items: f.objects("items", ITEMS_MAX, |f| {
            let description = f.required_text("description", PROSE_MAX);
            for name in ["quantity", "unit_amount"] {
                if !f.has(name) {
                    f.add_error(name, "The {} field is required.");
                }
            }
            let quantity = f.amount("quantity", Quantity::parse);
            let unit_amount = f.fiat("unit_amount");
            let (description, quantity, unit_amount) = (description?, quantity?, unit_amount?);
            match unit_amount.times(quantity) {
                Some(total) => Some(Item { description, quantity, unit_amount, total }),
                None => {
                    f.add_error("unit_amount", "The {} field is too large for this quantity.");
                    None
                }
            }
        }),
        memo: f.text("memo", PROSE_MAX),
        due_at: f.parsed_text("due_at", "2026-10-15", Day::parse),
        send_email: f.bool("send_email").unwrap_or(false),
    };
    f.finish()?;
    Ok(draft)
}

/// The kind of a list; its filters come from the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Charges,
    Invoices,
    Links,
    Events,
}

/// Parses a query string: the list with its filters, the page, and the anchor.
pub(crate) fn list(kind: Kind, query: Option<&str>) -> Result<(List, PageRequest, Option<String>), ApiError> {
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
    let mut take = |name: &str| {
        let index = values.iter().position(|(known, _)| known == name)?;
        Some(values.swap_remove(index).1)
    };
    let page = take("page").map_or(Some(1), |text| parse_positive(&text, u64::MAX));
    if page.is_none() {
        errors.add("page", "The page field must be a whole number of at least 1.");
    }
    let per_page = take("per_page")
        .map_or(Some(u64::from(PER_PAGE_DEFAULT)), |text| parse_positive(&text, u64::from(PER_PAGE_MAX)));
    if per_page.is_none() {
        errors
            .add("per_page", format!("The per_page field must be a whole number from 1 to {PER_PAGE_MAX}."));
    }
    let anchor = take("anchor").map(Cow::into_owned);
    let list = match kind {
        Kind::Charges => List::Charges {
            status: filter_choice(
                ("status", take("status")),
                (ChargeStatus::ALL, ChargeStatus::as_str),
                &mut errors,
            ),
            link: take("payment_link").map(Cow::into_owned),
        },
        Kind::Invoices => List::Invoices {
            status: filter_choice(
                ("status", take("status")),
                (InvoiceStatus::ALL, InvoiceStatus::as_str),
                &mut errors,
            ),
        },
        Kind::Links => List::Links,
        Kind::Events => List::Events {
            kind: filter_choice(("type", take("type")), (EventType::ALL, EventType::as_str), &mut errors),
            charge: take("charge").map(Cow::into_owned),
            invoice: take("invoice").map(Cow::into_owned),
        },
    };
    errors.into_result()?;
    let (page, per_page) =
        (page.expect("invalid values were refused"), per_page.expect("invalid values were refused"));
    let per_page = u32::try_from(per_page).expect("per_page is at most PER_PAGE_MAX");
    Ok((list, PageRequest { page, per_page }, anchor))
}

fn is_known(kind: Kind, name: &str) -> bool {
    let filters: &[&str] = match kind {
        Kind::Charges => &["status", "payment_link"],
        Kind::Invoices => &["status"],
        Kind::Links => &[],
        Kind::Events => &["type", "charge", "invoice"],
    };
    matches!(name, "page" | "per_page" | "anchor") || filters.contains(&name)
}

fn parse_positive(text: &str, most: u64) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A number with too many digits is a very large page.
    let n = digits.then(|| text.parse().unwrap_or(u64::MAX))?;
    (1..=most).contains(&n).then_some(n)
}

/// Parses a filter with an enum value.
fn filter_choice<T: Copy, const N: usize>(
    (name, text): (&str, Option<Cow<'_, str>>),
    (all, as_str): ([T; N], fn(T) -> &'static str),
    errors: &mut FieldErrors,
) -> Option<T> {
    let text = text?;
    let found = all.into_iter().find(|value| as_str(*value) == text);
    if found.is_none() {
        errors.add(name, unknown_value_message(name, &all.map(as_str)));
    }
    found
}
