//! A book as its owner sees it: what a key of it would read, and what the dashboard shows beyond that.
//!
//! Changes nothing, asks for no key, and counts for no limit.

use std::collections::BTreeSet;

use reference_core::{
    book::Book,
    call::List,
    charge::{Charge, ChargeStatus, Standing, Transfer},
    endpoint::EndpointStatus,
    error::ApiError,
    event::{EventType, Subject},
    id::AccountNo,
    invoice::InvoiceStatus,
    mode::Mode,
    wire::{
        self,
        http::{Request, Response},
    },
};
use serde_json::{Map, Value, json};

use super::{Outcome, answer, code};
use crate::sandbox::Sandbox;

/// So many of the newest late payments are looked at to find those that wait for the owner.
const LATE_LOOKED_AT_MAX: usize = 1_000;

/// The book that a path names.
fn named(sandbox: &Sandbox, account: &str, mode: &str) -> Result<(AccountNo, Mode), ApiError> {
    let account = sandbox.service().find_account(account).ok_or(ApiError::NotFound)?;
    Ok((account, Mode::parse(mode).ok_or(ApiError::NotFound)?))
}

fn book(sandbox: &Sandbox, (account, mode): (AccountNo, Mode)) -> &Book {
    sandbox.service().account(account).book(mode)
}

/// What a key of the book would get for `/v1/` and `rest`, to the byte.
pub(super) fn look(
    sandbox: &Sandbox,
    request: &Request<'_>,
    (account, mode, rest): (&str, &str, &[&str]),
) -> Result<Response, ApiError> {
    let book = named(sandbox, account, mode)?;
    let path = format!("/v1/{}", rest.join("/"));
    let asked = (path.as_str(), request.query);
    let body = wire::look(sandbox.service(), sandbox.now, book, asked, request.base)?;
    Ok(Response { status: 200, headers: Vec::new(), body })
}

/// How much there is of everything.
pub(super) fn glance(sandbox: &Sandbox, account: &str, mode: &str) -> Outcome {
    let place = named(sandbox, account, mode)?;
    let owner = sandbox.service().account(place.0);
    let book = book(sandbox, place);
    let count = |list: &List| {
        let listing = book.listing(list);
        listing.newest().map_or(0, |newest| listing.rank(newest))
    };
    let charges = |status| json!(count(&List::Charges { status, link: None }));
    let invoices = |status| json!(count(&List::Invoices { status }));
    let by_status = |all: Value, each: Vec<(&str, Value)>| {
        let each = each.into_iter().map(|(status, count)| (status.to_owned(), count));
        Value::Object(std::iter::once(("all".to_owned(), all)).chain(each).collect())
    };
    let endpoints = |status| book.endpoints().iter().filter(|endpoint| endpoint.status == status).count();
    Ok(Map::from_iter([
        ("account".to_owned(), json!(owner.id)),
        ("mode".to_owned(), json!(place.1.as_str())),
        ("members".to_owned(), json!(owner.settings.members)),
        (
            "charges".to_owned(),
            by_status(charges(None), ChargeStatus::ALL.map(|s| (s.as_str(), charges(Some(s)))).into()),
        ),
        (
            "invoices".to_owned(),
            by_status(invoices(None), InvoiceStatus::ALL.map(|s| (s.as_str(), invoices(Some(s)))).into()),
        ),
        ("links".to_owned(), json!(count(&List::Links))),
        ("events".to_owned(), json!(book.events().len())),
        ("late".to_owned(), json!(waiting(book).len())),
        (
            "endpoints".to_owned(),
            json!({
                "enabled": endpoints(EndpointStatus::Enabled),
                "disabled": endpoints(EndpointStatus::Disabled),
            }),
        ),
    ]))
}

/// Late payments that wait for the owner, newest first.
pub(super) fn late(sandbox: &Sandbox, account: &str, mode: &str) -> Outcome {
    let book = book(sandbox, named(sandbox, account, mode)?);
    answer("late", waiting(book).into_iter().map(|(charge, it)| shape_late(book, charge, it)).collect())
}

/// What waits for the owner. Announced lately, because a charge that was never told of as late has none.
fn waiting(book: &Book) -> Vec<(&Charge, &Transfer)> {
    let told =
        book.listing(&List::Events { kind: Some(EventType::ChargeLatePayment), charge: None, invoice: None });
    let count = told.newest().map_or(0, |newest| told.rank(newest));
    let mut looked_at = BTreeSet::new();
    let mut waiting = Vec::new();
    for nth in (count.saturating_sub(LATE_LOOKED_AT_MAX)..count).rev() {
        let event = told.select(nth).expect("every place below the rank has a member");
        let Subject::Charge(no) = book.events().get(reference_core::id::EventNo(event)).subject else {
            continue;
        };
        if looked_at.insert(no) {
            let charge = book.charge(no);
            let open = charge.transfers().iter().filter(|it| it.standing == Standing::Late && it.is_alive());
            waiting.extend(open.map(|transfer| (charge, transfer)));
        }
    }
    waiting
}

fn shape_late(book: &Book, charge: &Charge, transfer: &Transfer) -> Value {
    let mut shape = shape_transfer(book, charge, transfer);
    shape["charge"] = json!(charge.code.as_str());
    shape["status"] = json!(charge.status().as_str());
    shape["asset"] = json!(charge.terms.asset.code());
    shape["asset_amount"] = json!(charge.terms.asset_amount.to_string());
    shape["received_amount"] = json!(charge.received().to_string());
    shape
}

/// The transfers to a charge, with what only its owner needs to know of them.
pub(super) fn transfers(sandbox: &Sandbox, (account, mode): (&str, &str), charge: &str) -> Outcome {
    let book = book(sandbox, named(sandbox, account, mode)?);
    let charge = book.charge(book.find_charge(code(charge)?)?);
    let all = charge.transfers().iter().map(|transfer| shape_transfer(book, charge, transfer));
    answer("transfers", all.collect())
}

pub(super) fn shape_transfer(book: &Book, charge: &Charge, transfer: &Transfer) -> Value {
    let required = charge.terms.asset.required_confirmations(book.mode());
    let standing = match transfer.standing {
        Standing::OnTime => "on_time",
        Standing::Late => "late",
        Standing::Accepted => "accepted",
        Standing::Extra => "extra",
    };
    json!({
        "txid": transfer.txid,
        "output": transfer.output,
        "amount": transfer.amount.to_string(),
        "confirmations": transfer.confirmations,
        "required_confirmations": required,
        "confirmed": transfer.is_confirmed(required),
        "credited": transfer.credited,
        "standing": standing,
        "gone": transfer.gone.map(reference_core::sighting::Gone::as_str),
        "seen_at": transfer.seen_at.to_string(),
        "confirmed_at": transfer.confirmed_at.map(|at| at.to_string()),
    })
}
