//! Choices about the envelope, the names and the formats of successful responses.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::reading::{Page, account_meta, text_at};
use conformance_model::recording::{List, PageRequest, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::{
    accounts, choice_response, display_value, judge_each_sample, no_sample, rows, subjects, successes,
};
use crate::check::Mismatch;

const COINS: [&str; 13] = [
    "BTC",
    "LTC",
    "DOGE",
    "BCH",
    "ETH",
    "XMR",
    "SOL",
    "USDT",
    "USDC",
    "USDT_TRON",
    "USDC_BASE",
    "USDC_POLYGON",
    "USDT_BSC",
];
const ACCOUNT_FIELDS: &str = "id object type name display_name logo_url website_url support_email support_phone brand_color \
     business default_currency underpayment_tolerance overpayment_threshold created_at";
const CHARGE_FIELDS: &str = "id code object status payment_link invoice description fiat_amount fiat_currency asset \
     asset_amount received_amount remaining_amount overpaid refunded_amount refunds exchange_rate \
     deposit_address transactions customer_email customer_name customer custom_fields metadata checkout_url \
     expires_at paid_at created_at";
const INVOICE_FIELDS: &str = "id code object number status overdue customer customer_name customer_email memo amount \
     currency items due_at hosted_url document_url charges sent_at viewed_at paid_at voided_at created_at";
const COIN_AMOUNTS: [&str; 5] =
    ["asset_amount", "received_amount", "remaining_amount", "refunded_amount", "exchange_rate"];
const COIN_DECIMALS_MAX: usize = 18;
const CODE_LEN: usize = 12;

pub(super) fn judge_envelope(recording: &Recording) -> CheckResult {
    let single_events = successes(recording)
        .filter(|(exchange, _)| matches!(exchange.purpose, Purpose::Event { side: Side::Own, .. }))
        .map(|(exchange, body)| (exchange.number, Value::clone(body)));
    let found: Vec<_> = single_events.chain(accounts(recording)).collect();
    judge_each_sample(found, "single object", |body| {
        let wrapped = body.get("data").is_some_and(Value::is_object);
        (!wrapped).then(|| ("the object under data".to_owned(), display_value(Some(body))))
    })
}

pub(super) fn judge_objects(recording: &Recording) -> CheckResult {
    // Each value is a pair: the name that its member `object` must have, and the object.
    let mut found: Vec<(u32, Value)> = Vec::new();
    let with_name = |name: &str, (number, value): (u32, Value)| (number, serde_json::json!([name, value]));
    let data = |(number, body): (u32, Value)| (number, body.get("data").cloned().unwrap_or_default());
    found.extend(accounts(recording).map(data).map(|sample| with_name("account", sample)));
    found.extend(rows(recording, List::Events).map(|sample| with_name("event", sample)));
    found.extend(
        subjects(recording, List::Charges, "charge").into_iter().map(|sample| with_name("charge", sample)),
    );
    found.extend(
        subjects(recording, List::Invoices, "invoice").into_iter().map(|sample| with_name("invoice", sample)),
    );
    judge_each_sample(found, "object", |pair| {
        let object = pair[1].get("object");
        (object != Some(&pair[0]))
            .then(|| (format!("object {}", pair[0]), format!("object {}", display_value(object))))
    })
}

/// Returns the first of these names that an object does not have.
fn missing_member(object: &Value, names: &str) -> Option<Mismatch> {
    let missing = names.split_whitespace().find(|name| object.get(name).is_none())?;
    Some((format!("the member {missing}"), "no such member".to_owned()))
}

pub(super) fn judge_account_fields(recording: &Recording) -> CheckResult {
    judge_each_sample(accounts(recording), "account", |body| {
        missing_member(body.get("data").unwrap_or(&Value::Null), ACCOUNT_FIELDS)
    })
}

pub(super) fn judge_charge_fields(recording: &Recording) -> CheckResult {
    judge_each_sample(rows(recording, List::Charges), "charge", |charge| {
        missing_member(charge, CHARGE_FIELDS)
    })
}

pub(super) fn judge_invoice_fields(recording: &Recording) -> CheckResult {
    judge_each_sample(rows(recording, List::Invoices), "invoice", |invoice| {
        missing_member(invoice, INVOICE_FIELDS)
    })
}

fn not_one_of(value: Option<&Value>, allowed: &[&str]) -> Option<Mismatch> {
    let is_valid = value.and_then(Value::as_str).is_some_and(|text| allowed.contains(&text));
    (!is_valid).then(|| (format!("one of {}", allowed.join(", ")), display_value(value)))
}

pub(super) fn judge_states(recording: &Recording) -> CheckResult {
    let statuses = ["pending", "underpaid", "paid", "expired", "canceled"];
    let charges = subjects(recording, List::Charges, "charge");
    judge_each_sample(charges, "charge", |charge| not_one_of(charge.get("status"), &statuses))?;
    let invoices = subjects(recording, List::Invoices, "invoice");
    judge_each_sample(invoices, "invoice", |invoice| {
        not_one_of(invoice.get("status"), &["open", "paid", "void"])
    })
}

pub(super) fn judge_assets(recording: &Recording) -> CheckResult {
    judge_each_sample(accounts(recording), "account", |body| {
        let assets = account_meta(body).and_then(|meta| meta.get("accepted_assets"));
        let assets = assets.and_then(Value::as_array).cloned().unwrap_or_default();
        assets.iter().find_map(|asset| not_one_of(Some(asset), &COINS))
    })
}

pub(super) fn judge_details(recording: &Recording) -> CheckResult {
    judge_each_sample(rows(recording, List::Events), "event", |event| {
        let details = event.get("details")?.as_object()?;
        let kind = text_at(event, &["type"])?;
        let needed: &[&str] = match kind {
            "charge.payment_detected" | "charge.late_payment" | "charge.paid" | "charge.underpaid" => {
                &["amount", "txid"]
            }
            "charge.refunded" => &["amount"],
            "charge.canceled" => return None,
            _ if details.is_empty() => return None,
            _ => return Some((format!("no details of {kind}"), display_value(event.get("details")))),
        };
        let missing = needed.iter().find(|name| !details.get(**name).is_some_and(Value::is_string))?;
        Some((format!("details.{missing} of {kind} as a string"), display_value(details.get(*missing))))
    })
}

pub(super) fn judge_codes(recording: &Recording) -> CheckResult {
    let charges = subjects(recording, List::Charges, "charge");
    let invoices = subjects(recording, List::Invoices, "invoice");
    judge_each_sample([charges, invoices].concat(), "charge or invoice", |object| {
        let (id, code) = (object.get("id"), object.get("code"));
        let is_code = |text: &str| {
            text.len() == CODE_LEN && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        };
        let is_valid = id == code && code.and_then(Value::as_str).is_some_and(is_code);
        let actual = || format!("id {}, code {}", display_value(id), display_value(code));
        (!is_valid).then(|| ("the same 12 of a-z and 0-9 under id and code".to_owned(), actual()))
    })
}

pub(super) fn judge_invoice_numbers(recording: &Recording) -> CheckResult {
    judge_each_sample(subjects(recording, List::Invoices, "invoice"), "invoice", |invoice| {
        let is_number = |text: &str| {
            text.strip_prefix("INV-")
                .is_some_and(|digits| digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_digit()))
        };
        let is_valid = text_at(invoice, &["number"]).is_some_and(is_number);
        (!is_valid).then(|| ("a number such as INV-0001".to_owned(), display_value(invoice.get("number"))))
    })
}

/// Judges event ids: UUIDs of version 7, which strictly decrease from row to row because lists start with the newest
/// event.
pub(super) fn judge_event_ids(recording: &Recording) -> CheckResult {
    /// The position of the version in the text of a UUID.
    const VERSION_INDEX: usize = 14;
    let mut pages: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (number, event) in rows(recording, List::Events) {
        pages.entry(number).or_default().push(text_at(&event, &["id"]).unwrap_or_default().to_owned());
    }
    for (number, ids) in &pages {
        if let Some(id) = ids.iter().find(|id| id.as_bytes().get(VERSION_INDEX) != Some(&b'7')) {
            return Err(CheckError::violation(*number, "a UUID of version 7", id.as_str()));
        }
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] <= pair[1]) {
            return Err(CheckError::violation(
                *number,
                "descending ids",
                format!("{} above {}", pair[0], pair[1]),
            ));
        }
    }
    if pages.is_empty() { Err(no_sample("event")) } else { Ok(CheckOutcome::Holds) }
}

fn is_coin_amount(text: &str) -> bool {
    match text.split_once('.') {
        None => true,
        Some((_, decimals)) => !decimals.ends_with('0') && (1..=COIN_DECIMALS_MAX).contains(&decimals.len()),
    }
}

fn is_fiat_amount(text: &str) -> bool {
    text.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2)
}

pub(super) fn judge_amounts(recording: &Recording) -> CheckResult {
    let invalid_amount = |object: &Value, name: &str, is_valid_text: fn(&str) -> bool, expected: &str| {
        let value = object.get(name)?;
        let is_valid = value.is_null() || value.as_str().is_some_and(is_valid_text);
        (!is_valid).then(|| (format!("{name} {expected}"), display_value(Some(value))))
    };
    judge_each_sample(subjects(recording, List::Charges, "charge"), "charge", |charge| {
        let invalid_coin_amount = COIN_AMOUNTS
            .iter()
            .find_map(|name| invalid_amount(charge, name, is_coin_amount, "without trailing zeros"));
        invalid_coin_amount
            .or_else(|| invalid_amount(charge, "fiat_amount", is_fiat_amount, "with two decimals"))
    })?;
    judge_each_sample(subjects(recording, List::Invoices, "invoice"), "invoice", |invoice| {
        invalid_amount(invoice, "amount", is_fiat_amount, "with two decimals")
    })
}

/// Collects all members that are times, at any depth but not in `metadata`. A due date is a day, not a time.
fn collect_times(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_times(item, found)),
        Value::Object(members) => {
            for (name, member) in members {
                let is_time = (name.ends_with("_at") && name != "due_at") || name == "time";
                if is_time && member.is_string() {
                    found.push(member.clone());
                } else if name != "metadata" {
                    collect_times(member, found);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn judge_times(recording: &Recording) -> CheckResult {
    let found = successes(recording).flat_map(|(exchange, body)| {
        let mut found = Vec::new();
        collect_times(body, &mut found);
        found.into_iter().map(move |time| (exchange.number, time)).collect::<Vec<_>>()
    });
    judge_each_sample(found, "time", |time| {
        let text = time.as_str().unwrap_or_default();
        let pattern: String =
            text.chars().map(|character| if character.is_ascii_digit() { '0' } else { character }).collect();
        (pattern != "0000-00-00T00:00:00.000000Z")
            .then(|| ("a time with six decimals and a Z".to_owned(), text.to_owned()))
    })
}

pub(super) fn judge_meta(recording: &Recording) -> CheckResult {
    let pages = successes(recording).filter(|(exchange, _)| matches!(exchange.purpose, Purpose::Page(_)));
    judge_each_sample(pages.map(|(exchange, body)| (exchange.number, Value::clone(body))), "page", |body| {
        let meta = body.get("meta")?;
        let is_empty = body.get("data").and_then(Value::as_array).is_some_and(Vec::is_empty);
        let is_valid_bound = |name: &str| {
            meta.get(name).is_some_and(|bound| if is_empty { bound.is_null() } else { bound.is_u64() })
        };
        let wrong = ["from", "to"].into_iter().find(|name| !is_valid_bound(name));
        let wrong = wrong.or_else(|| (!meta.get("path").is_some_and(Value::is_string)).then_some("path"))?;
        Some((format!("meta.{wrong}"), display_value(meta.get(wrong))))
    })
}

pub(super) fn judge_links(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for exchange in &recording.exchanges {
        let Purpose::Page(PageRequest { filters, per_page, link: None, .. }) = &exchange.purpose else {
            continue;
        };
        let Some(page) = Page::from_exchange(exchange) else { continue };
        let mut expected_parameters = filters.clone();
        expected_parameters.extend(per_page.map(|size| ("per_page".to_owned(), size.to_string())));
        for rel in ["first", "last", "prev", "next"] {
            let Some(link) = page.link(rel) else { continue };
            let absolute_url = url::Url::parse(link).ok().filter(url::Url::has_host);
            let Some(absolute_url) = absolute_url else {
                return Err(CheckError::violation(
                    exchange.number,
                    format!("links.{rel} as an absolute address"),
                    link,
                ));
            };
            let pairs: Vec<_> = absolute_url.query_pairs().into_owned().collect();
            if let Some((name, value)) = expected_parameters.iter().find(|pair| !pairs.contains(pair)) {
                let expected = format!("links.{rel} with {name}={value}");
                return Err(CheckError::violation(exchange.number, expected, link));
            }
            judged = true;
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_sample("link")) }
}

pub(super) fn judge_single_objects(recording: &Recording) -> CheckResult {
    for kind in ["charge", "invoice", "payment link"] {
        let (exchange, response) = choice_response(recording, kind)?;
        let code = exchange.target.rsplit('/').next().unwrap_or_default();
        let body = response.body.json().unwrap_or_default();
        if response.status != 200 || text_at(body, &["data", "code"]) != Some(code) {
            return Err(CheckError::violation(
                exchange.number,
                format!("200 with data.code \"{code}\""),
                exchange.summary(),
            ));
        }
    }
    Ok(CheckOutcome::Holds)
}
