//! Chapter "invoices" of the catalogue of statements: the invoice in deliveries and events, and the charges of
//! invoices in the list.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{invoice_charge_codes, text_at};
use conformance_model::recording::{List, ObjectKind, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::charge_versions::check_single_objects;
use super::parsed_deliveries::{ParsedDelivery, member_text, no_delivery_with, received_deliveries};
use crate::check::{Check, Mismatch};
use crate::current_states;
use crate::evidence::{PageView, readable_pages};
use crate::exchanged_values;
use crate::invoice_charges;
use crate::object_copies::{CopySource, find_by_fields};
use crate::subjects::{Subject, judge_each_subject, subjects};
use crate::values_by_type;

/// The groups of probes that read invoices, in events and in the list, after the account was read.
const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation];
/// The groups of probes that receive invoices in deliveries, after the account was read.
const NEEDS_DELIVERIES: &[Group] = &[Group::Account, Group::Webhooks];

pub(super) const CHECKS: &[Check] = &[
    Check::new("invoices.fields", NEEDS, |recording| {
        let outcome = judge_fields(recording)?;
        check_single_codes(recording)?;
        check_single_objects(recording, ObjectKind::Invoice)?;
        let kinds = [("invoice", CopySource::Single), ("charge", CopySource::InInvoice)];
        current_states::check(recording, &kinds)?;
        invoice_charges::check(recording).map(|()| outcome)
    })
    .with_optional_probes(&[Group::Account, Group::Webhooks, Group::Objects]),
    Check::new("invoices.formats", NEEDS_DELIVERIES, observe_json_types),
    Check::new("invoices.status_values", NEEDS_DELIVERIES, observe_statuses),
];

const FIELDS: [&str; 8] =
    ["code", "number", "status", "amount", "currency", "customer", "hosted_url", "charges"];
const AN_INVOICE: &str = "an invoice";

/// Returns the invoice in the body of a delivery.
fn invoice<'a>(parsed: &'a ParsedDelivery<'_>) -> Option<&'a Value> {
    parsed.body?.get("data")?.get("invoice").filter(|invoice| invoice.is_object())
}

/// Judges the charges of listed invoices first, then the fields of each invoice.
fn judge_fields(recording: &Recording) -> CheckResult {
    check_no_shared_charge(recording)?;
    let outcome =
        judge_each_subject(recording, "invoice", AN_INVOICE, |subject| Some(missing_field(subject.object)))?;
    check_no_empty_field(recording)?;
    exchanged_values::check(recording, "invoice", &OWN_TEXT_FIELDS)?;
    values_by_type::check(recording, "invoice")?;
    check_own_values(recording).map(|()| outcome)
}

/// Checks that a single invoice has the code by which it was requested.
fn check_single_codes(recording: &Recording) -> Result<(), CheckError> {
    for exchange in recording.exchanges.iter().filter(|exchange| exchange.status() == Some(200)) {
        let Purpose::Object { kind: ObjectKind::Invoice, id, side: Side::Own, .. } = &exchange.purpose else {
            continue;
        };
        let body = exchange.response().and_then(|response| response.body.json());
        if let Some(invoice) = body.and_then(|body| find_by_fields(body, &FIELDS))
            && text_at(invoice, &["code"]) != Some(id)
        {
            let expected = format!("the invoice with code {id}");
            return Err(CheckError::violation(exchange.number, expected, member_text(invoice, "code")));
        }
    }
    Ok(())
}

/// The fields whose values differ between most invoices.
const OWN_TEXT_FIELDS: [&str; 3] = ["number", "customer", "hosted_url"];
/// The minimum number of invoices with one number or hosted page, or with the pages of other invoices, for a violation.
const SHARED_MIN: usize = 5;

/// Checks that not all invoices of a mode have the same number or hosted page, and that few have the page of another invoice:
/// one whose address contains the code of the other invoice, and not their own. Redaction hides addresses.
fn check_own_values(recording: &Recording) -> Result<(), CheckError> {
    const CODE_LEN_MIN: usize = 6;
    let invoices = subjects(recording, "invoice")?;
    for (mode, name) in Mode::BOTH.into_iter().flat_map(|mode| [(mode, "number"), (mode, "hosted_url")]) {
        let values: BTreeMap<_, _> = invoices
            .iter()
            .filter(|invoice| invoice.mode == Some(mode) && recording.exact_amounts)
            .filter_map(|invoice| {
                let [code, value] = ["code", name].map(|name| text_at(invoice.object, &[name]));
                Some((code?, (value.filter(|value| !value.is_empty())?, invoice)))
            })
            .collect();
        let names_other = |(code, (value, _)): &(&&str, &(&str, &Subject<'_>))| {
            let is_separator = |letter: char| !letter.is_ascii_alphanumeric() && !"-_".contains(letter);
            let is_code = |part: &str| part.len() >= CODE_LEN_MIN && values.contains_key(part);
            name == "hosted_url" && !value.contains(**code) && value.split(is_separator).any(is_code)
        };
        let distinct: BTreeSet<_> = values.values().map(|(value, _)| value).collect();
        let are_equal = distinct.len() == 1;
        let wrong: Vec<_> = values.iter().filter(|value| are_equal || names_other(value)).collect();
        if let Some((code, (value, invoice))) = wrong.last().filter(|_| wrong.len() >= SHARED_MIN) {
            return Err(invoice.violation(
                format!("{name} of invoice {code}"),
                format!("{value}, and values of other invoices in {} more", wrong.len() - 1),
            ));
        }
    }
    Ok(())
}

/// The fields that every issued invoice has, each with the number of invoices without it that are a violation. The formats
/// are not specified, but null is no value in any format. A draft may have no amount and no currency yet.
const REQUIRED_FIELDS: [(&str, usize); 4] = [("code", 2), ("status", 2), ("amount", 3), ("currency", 3)];
/// The fields that some invoices may lack, but not all: a withdrawn invoice may have no page.
const USUAL_FIELDS: [&str; 2] = ["number", "hosted_url"];
/// The minimum number of invoices that all lack one of the [`USUAL_FIELDS`], for a violation.
const WITHOUT_USUAL_MIN: usize = 3;

/// Checks that no more than a few invoices lack a value of a required field, and that not all invoices lack that of a usual
/// one.
fn check_no_empty_field(recording: &Recording) -> Result<(), CheckError> {
    let invoices = subjects(recording, "invoice")?;
    // The invoice of a test delivery may not exist.
    let invoices = || invoices.iter().filter(|invoice| invoice.mode.is_some());
    let is_empty = |invoice: &Subject<'_>, name: &str| {
        matches!(&invoice.object[name], Value::Null | Value::Bool(false)) || invoice.object[name] == ""
    };
    let violation = |invoice: &Subject<'_>, name: &str| {
        Err(invoice.violation(format!("{name} of the invoice"), member_text(invoice.object, name)))
    };
    for (name, count_min) in REQUIRED_FIELDS {
        let empty: Vec<_> = invoices().filter(|invoice| is_empty(invoice, name)).collect();
        // An invoice without a code is identified by its event.
        let ids: BTreeSet<_> =
            empty.iter().map(|invoice| text_at(invoice.object, &["code"]).or(invoice.event_id)).collect();
        if let Some(invoice) = empty.last().filter(|_| ids.len() >= count_min) {
            return violation(invoice, name);
        }
    }
    let codes: BTreeSet<_> = invoices().filter_map(|invoice| text_at(invoice.object, &["code"])).collect();
    for name in USUAL_FIELDS {
        let is_never_set = invoices().all(|invoice| is_empty(invoice, name));
        if let Some(invoice) =
            invoices().next_back().filter(|_| is_never_set && codes.len() >= WITHOUT_USUAL_MIN)
        {
            return violation(invoice, name);
        }
    }
    Ok(())
}

/// Checks that no charge belongs to two invoices of one page of the list. The charges of a voided
/// invoice may belong to another one.
fn check_no_shared_charge(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let has_voided_event = |code: &str, mode: Mode| {
        let of_mode = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
        of_mode.flat_map(PageView::rows).any(|row| {
            text_at(row, &["type"]) == Some("invoice.voided")
                && text_at(row, &["invoice", "code"]) == Some(code)
        })
    };
    for view in views.iter().filter(|view| view.request.list == List::Invoices) {
        let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
        for row in view.rows() {
            let (Some(code), Some(charges)) = (text_at(row, &["code"]), invoice_charge_codes(row)) else {
                continue;
            };
            // The specification leaves the names of statuses open.
            let has_void_status =
                text_at(row, &["status"]).is_some_and(|status| status.to_lowercase().contains("void"));
            if has_void_status || has_voided_event(code, view.mode) {
                continue;
            }
            for charge in charges {
                let owner = *owners.entry(charge).or_insert(code);
                if owner != code {
                    let expected = format!("charge {charge} in one invoice");
                    let actual = format!("invoices {owner} and {code} both have it");
                    return Err(CheckError::violation(view.number(), expected, actual));
                }
            }
        }
    }
    Ok(())
}

fn missing_field(invoice: &Value) -> Option<Mismatch> {
    let name = FIELDS.into_iter().find(|name| invoice.get(name).is_none())?;
    Some((format!("{name} in the invoice"), member_text(invoice, name)))
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Observes the JSON types of the fields.
fn observe_json_types(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let mut types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for invoice in received.readable_deliveries().filter_map(invoice) {
        for (name, value) in FIELDS.iter().filter_map(|name| Some((*name, invoice.get(name)?))) {
            types.entry(name).or_default().insert(json_type(value));
        }
    }
    if types.is_empty() {
        return Err(no_delivery_with(AN_INVOICE));
    }
    let observed = types
        .into_iter()
        .map(|(name, types)| format!("{name} {}", types.into_iter().collect::<Vec<_>>().join(" or ")));
    Ok(CheckOutcome::Observed(observed.collect::<Vec<_>>().join(", ")))
}

fn observe_statuses(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let status = |object: &Value| text_at(object, &["status"]).map(str::to_owned);
    let statuses: BTreeSet<String> =
        received.readable_deliveries().filter_map(invoice).filter_map(status).collect();
    if statuses.is_empty() {
        return Err(no_delivery_with(AN_INVOICE));
    }
    Ok(CheckOutcome::Observed(statuses.into_iter().collect::<Vec<_>>().join(", ")))
}
