//! Chapter "account": the account and mode behind a key.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{account_meta, stated_mode, text_at};
use conformance_model::recording::{Caller, Exchange, List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::account_profile::{
    check_accepted_assets_are_stable, check_assets_of_new_charges, check_no_fiat_is_accepted, judge_profile,
};
use super::evidence::{PageView, missing_response, readable_pages, recorded_at, response_date};
use crate::check::Check;

pub(super) const CHECKS: &[Check] = &[
    Check::new("account.served", &[Group::Account], judge_served),
    Check::new("account.mode", &[Group::Account], judge_mode).with_optional_probes(&[Group::SecondKey]),
    Check::new("account.accepted_assets", &[Group::Account], judge_accepted_assets),
    Check::new("account.profile", &[Group::Account], judge_profile),
    Check::new("account.fields", &[Group::Account], observe_fields),
];

fn judge_served(recording: &Recording) -> CheckResult {
    for mode in Mode::BOTH {
        let exchange = account_exchange(recording, mode)?;
        if exchange.status() != Some(200) {
            return Err(CheckError::violation(exchange.number, "200", exchange.summary()));
        }
        if let Some(body) = exchange.response().and_then(|response| response.body.json())
            && !body.is_object()
        {
            return Err(CheckError::violation(exchange.number, "a JSON object", exchange.summary()));
        }
    }
    Ok(CheckOutcome::Holds)
}

fn judge_mode(recording: &Recording) -> CheckResult {
    for mode in Mode::BOTH {
        let (exchange, meta) = meta_of_account(recording, mode)?;
        let stated = meta.get("mode").cloned().unwrap_or(Value::Null);
        if stated != mode.as_str() {
            let expected = format!("meta.mode \"{}\"", mode.as_str());
            return Err(CheckError::violation(exchange.number, expected, format!("meta.mode {stated}")));
        }
    }
    // Concurrent and alternating requests of all keys must each get the mode of their key.
    for exchange in recording.exchanges.iter().filter(|exchange| exchange.target.ends_with(ACCOUNT_PATH)) {
        let mode = match exchange.caller {
            Caller::Own(mode) => mode,
            Caller::SecondKey => Mode::Test,
            _ => continue,
        };
        let Some(stated) = stated_mode(exchange) else { continue };
        if exchange.status() == Some(200) && stated != mode.as_str() {
            let expected = format!("meta.mode \"{}\"", mode.as_str());
            return Err(CheckError::violation(exchange.number, expected, format!("meta.mode \"{stated}\"")));
        }
    }
    Ok(CheckOutcome::Holds)
}

fn judge_accepted_assets(recording: &Recording) -> CheckResult {
    for mode in Mode::BOTH {
        let (exchange, meta) = meta_of_account(recording, mode)?;
        let stated = meta.get("accepted_assets").cloned().unwrap_or(Value::Null);
        if !stated.is_array() {
            return Err(CheckError::violation(
                exchange.number,
                "meta.accepted_assets as a list",
                stated.to_string(),
            ));
        }
        let is_coin =
            |item: &Value| !item.is_null() && item.as_str().is_none_or(|code| !code.trim().is_empty());
        if !stated.as_array().into_iter().flatten().all(is_coin) {
            let expected = "only coins in meta.accepted_assets";
            return Err(CheckError::violation(exchange.number, expected, stated.to_string()));
        }
        if stated.as_array().is_some_and(Vec::is_empty)
            && charges_opened_since(recording, mode, exchange) >= CHARGES_OPENED_MIN
        {
            let expected = "the coins of the charges that were opened in this mode since then";
            return Err(CheckError::violation(exchange.number, expected, "meta.accepted_assets []"));
        }
        check_accepted_assets_are_stable(recording, mode)?;
        check_assets_of_new_charges(recording, mode)?;
        check_no_fiat_is_accepted(recording, mode)?;
    }
    Ok(CheckOutcome::Holds)
}

/// The number of charges that must be opened after `accepted_assets` was read as empty, for a violation.
/// Before the first of them, the merchant may have added a coin.
const CHARGES_OPENED_MIN: usize = 2;

/// Returns the number of listed `charge.created` events of a mode that were recorded after a response; 0 if the
/// response has no `Date`.
fn charges_opened_since(recording: &Recording, mode: Mode, exchange: &Exchange) -> usize {
    let views = readable_pages(recording);
    let events = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
    let is_new = |row: &&Value| {
        text_at(row, &["type"]) == Some("charge.created") && response_date(exchange) < recorded_at(row)
    };
    let opened: BTreeSet<_> =
        events.flat_map(PageView::rows).filter(is_new).filter_map(|row| text_at(row, &["id"])).collect();
    if response_date(exchange).is_some() { opened.len() } else { 0 }
}

fn observe_fields(recording: &Recording) -> CheckResult {
    let (_, body) = account_body(recording, Mode::Test)?;
    let account = body.get("data").filter(|data| data.is_object()).unwrap_or(body);
    let names: Vec<_> = account.as_object().into_iter().flat_map(|members| members.keys().cloned()).collect();
    Ok(CheckOutcome::Observed(if names.is_empty() { "none".into() } else { names.join(", ") }))
}

/// Returns the last account request of a mode, if it got a response.
fn account_exchange(recording: &Recording, mode: Mode) -> Result<&Exchange, CheckError> {
    let found = recording.account_exchange(mode);
    found
        .filter(|exchange| exchange.response().is_some())
        .ok_or_else(|| missing_response(found, "the account"))
}

fn account_body(recording: &Recording, mode: Mode) -> Result<(&Exchange, &Value), CheckError> {
    let exchange = account_exchange(recording, mode)?;
    let body = exchange
        .response()
        .filter(|response| response.status == 200)
        .and_then(|response| response.body.json());
    body.map(|body| (exchange, body)).ok_or_else(|| {
        CheckError::unjudged(
            "the response to the account request is not JSON",
            "see account.served and answers.json",
        )
    })
}

/// Returns the last account request of a mode, and the `meta` of its response; null if there is none.
fn meta_of_account(recording: &Recording, mode: Mode) -> Result<(&Exchange, Value), CheckError> {
    let (exchange, body) = account_body(recording, mode)?;
    Ok((exchange, account_meta(body).cloned().unwrap_or(Value::Null)))
}
