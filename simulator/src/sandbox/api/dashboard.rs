//! What the account owner does with endpoints, charges and invoices.

use std::collections::BTreeSet;

use reference_core::{
    action::{Act, Done},
    error::ApiError,
    event::EventType,
    id::{AccountNo, Code, EndpointNo},
    mode::Mode,
    wire::fields::{Fields, PROSE_MAX, TEXT_MAX},
};
use serde_json::{Value, json};

use super::{Outcome, answer, books, find_book, nothing, parameter, read_account, read_mode, shape};
use crate::sandbox::Sandbox;

pub(super) fn endpoints(sandbox: &Sandbox) -> Outcome {
    let service = sandbox.service();
    let endpoints: Vec<Value> = books(sandbox)
        .flat_map(|(account, mode, book)| {
            book.endpoints().iter().map(move |endpoint| shape::endpoint(service, account, mode, endpoint))
        })
        .collect();
    answer("endpoints", Value::Array(endpoints))
}

fn read_events(f: &mut Fields<'_>) -> Option<BTreeSet<EventType>> {
    f.has("events").then(|| f.words("events", EventType::ALL.len(), EventType::parse).into_iter().collect())
}

pub(super) fn add_endpoint(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["account", "mode", "url", "events"]);
    let account = read_account(sandbox, &mut f);
    let mode = read_mode(sandbox, &mut f);
    let url = f.required_text("url", PROSE_MAX);
    let events = read_events(&mut f).unwrap_or_else(|| EventType::ALL.into_iter().collect());
    f.finish()?;
    let (account, url) = account.zip(url).expect("missing values were refused");
    sandbox.judge_endpoint(&url)?;
    let done = sandbox.act(account, mode, Act::AddEndpoint { url, events })?;
    endpoint_with_secret(sandbox, account, mode, &done)
}

/// An endpoint whose secret was just made: shown now, and told to the merchant behind it.
fn endpoint_with_secret(sandbox: &mut Sandbox, account: AccountNo, mode: Mode, done: &Done) -> Outcome {
    let no = endpoint_of(done);
    let endpoint = sandbox.service().account(account).book(mode).endpoint(no);
    let mut shape = shape::endpoint(sandbox.service(), account, mode, endpoint);
    shape["secret"] = json!(endpoint.secret.reveal());
    let (host, secret) = (endpoint.url.host().to_string(), endpoint.secret.clone());
    sandbox.network.teach(&host, (account, mode, no), secret);
    answer("endpoint", shape)
}

fn endpoint_of(done: &Done) -> EndpointNo {
    match done {
        Done::Endpoint(no) => *no,
        other => unreachable!("an endpoint was changed, but what came is {other:?}"),
    }
}

fn owner(sandbox: &Sandbox, id: Code) -> Result<(AccountNo, Mode), ApiError> {
    find_book(sandbox, |book| book.find_endpoint(id).is_ok())
}

pub(super) fn change_endpoint(sandbox: &mut Sandbox, id: Code, body: &[u8]) -> Outcome {
    let (account, mode) = owner(sandbox, id)?;
    let mut f = Fields::read(body)?;
    f.only(&["url", "events", "status"]);
    let url = f.text("url", PROSE_MAX);
    let events = read_events(&mut f);
    let enabled = f.word("status", |word| match word {
        "enabled" => Some(true),
        "disabled" => Some(false),
        _ => None,
    });
    f.finish()?;
    if let Some(url) = &url {
        sandbox.judge_endpoint(url)?;
    }
    let done = sandbox.act(account, mode, Act::ChangeEndpoint { id, url, events, enabled })?;
    let no = endpoint_of(&done);
    let endpoint = sandbox.service().account(account).book(mode).endpoint(no);
    let (host, secret) = (endpoint.url.host().to_string(), endpoint.secret.clone());
    let shape = shape::endpoint(sandbox.service(), account, mode, endpoint);
    sandbox.network.teach(&host, (account, mode, no), secret);
    answer("endpoint", shape)
}

pub(super) fn remove_endpoint(sandbox: &mut Sandbox, id: Code) -> Outcome {
    let (account, mode) = owner(sandbox, id)?;
    sandbox.act(account, mode, Act::RemoveEndpoint(id))?;
    nothing()
}

pub(super) fn rotate(sandbox: &mut Sandbox, id: Code) -> Outcome {
    let (account, mode) = owner(sandbox, id)?;
    let done = sandbox.act(account, mode, Act::RotateSecret(id))?;
    endpoint_with_secret(sandbox, account, mode, &done)
}

pub(super) fn test(sandbox: &mut Sandbox, id: Code) -> Outcome {
    let (account, mode) = owner(sandbox, id)?;
    match sandbox.act(account, mode, Act::SendTest(id))? {
        Done::Delivery(id) => answer("delivery", json!(id.to_string())),
        other => unreachable!("a test is a delivery, not {other:?}"),
    }
}

pub(super) fn accept(sandbox: &mut Sandbox, charge: Code, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["txid"]);
    let txid = f.text("txid", TEXT_MAX);
    f.finish()?;
    on_charge(sandbox, charge, Act::AcceptLate { charge, txid })
}

pub(super) fn cancel(sandbox: &mut Sandbox, charge: Code) -> Outcome {
    on_charge(sandbox, charge, Act::CancelCharge(charge))
}

fn on_charge(sandbox: &mut Sandbox, charge: Code, act: Act) -> Outcome {
    let (account, mode) = find_book(sandbox, |book| book.find_charge(charge).is_ok())?;
    sandbox.act(account, mode, act)?;
    nothing()
}

pub(super) fn void(sandbox: &mut Sandbox, invoice: Code) -> Outcome {
    on_invoice(sandbox, invoice, Act::VoidInvoice(invoice))
}

pub(super) fn send(sandbox: &mut Sandbox, invoice: Code) -> Outcome {
    on_invoice(sandbox, invoice, Act::SendInvoice(invoice))
}

fn on_invoice(sandbox: &mut Sandbox, invoice: Code, act: Act) -> Outcome {
    let (account, mode) = find_book(sandbox, |book| book.find_invoice(invoice).is_ok())?;
    sandbox.act(account, mode, act)?;
    nothing()
}

pub(super) fn mails(sandbox: &Sandbox, query: &str) -> Outcome {
    let service = sandbox.service();
    let wanted = |id: &str, mode: Mode| {
        parameter(query, "account").is_none_or(|account| account == id)
            && parameter(query, "mode").is_none_or(|word| word == mode.as_str())
    };
    // Of each book, so that a busy one hides no other.
    let limit = match parameter(query, "limit") {
        None => usize::MAX,
        Some(text) => {
            text.parse().map_err(|_| ApiError::field("limit", "The limit field must be a whole number."))?
        }
    };
    let mails: Vec<Value> = books(sandbox)
        .filter(|(account, mode, _)| wanted(&service.account(*account).id, *mode))
        .flat_map(|(account, mode, book)| {
            book.mails().newest(limit).map(move |mail| {
                json!({
                    "account": service.account(account).id,
                    "mode": mode.as_str(),
                    "to": mail.to,
                    "kind": mail.kind.as_str(),
                    "invoice": book.invoice(mail.invoice).code.as_str(),
                    "at": mail.at.to_string(),
                })
            })
        })
        .collect();
    answer("mails", Value::Array(mails))
}
