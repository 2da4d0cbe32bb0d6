//! Chapters "auth" and "limits": the statements that need a second key of the same account and mode.

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{LONG_PAGE_SIZE, Page, id_or_code, id_or_json};
use conformance_model::recording::{Burst, Caller, Exchange, List, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{
    compared_pages, first_long_page_reads, last_first_long_page_read, last_list_read, list_changed,
    missing_response, readable_pages,
};
use super::limits::{burst_step, check_has_burst, is_at_own_limit, not_requested_while_refused};
use crate::check::Check;

pub(super) const CHECKS: &[Check] = &[
    Check::new("limits.second_key", &[Group::Account, Group::Burst, Group::SecondKey], judge_separate_limit),
    Check::new("auth.same_lists", &[Group::Account, Group::Lists, Group::SecondKey], judge_same_lists),
];

/// Returns the account request of the second key, or the reason why there is none.
fn second_account(recording: &Recording) -> Result<&Exchange, CheckError> {
    let found = recording
        .find_last(|exchange| exchange.caller == Caller::SecondKey && exchange.purpose == Purpose::Account);
    let Some(exchange) = found else {
        return Err(CheckError::unjudged(
            "there was no second key of the test key's account and mode",
            "create another test key in the dashboard and set CHARGEPROOF_SECOND_KEY to it, or pass --without second",
        ));
    };
    match exchange.status() {
        Some(200) => Ok(exchange),
        Some(401 | 403) => Err(CheckError::unjudged(
            "the second key is refused",
            "set CHARGEPROOF_SECOND_KEY to a test key that works",
        )),
        _ => Err(missing_response(found, "the account of the second key")),
    }
}

/// Returns `true` if both keys get the same account or the same events. Otherwise their accounts may differ.
fn is_same_account(recording: &Recording) -> bool {
    let account_data = |exchange: &Exchange| {
        let body = exchange.response().and_then(|response| response.body.json())?;
        Some(body.get("data").filter(|data| data.is_object()).unwrap_or(body).clone())
    };
    let account = recording
        .find_last(|exchange| exchange.caller == Caller::SecondKey && exchange.purpose == Purpose::Account);
    let account = account.and_then(account_data);
    if account.is_some() && account == recording.account_exchange(Mode::Test).and_then(account_data) {
        return true;
    }
    let second_page = second_key_page(recording, List::Events);
    let second_ids = second_page.as_ref().and_then(|(_, page)| page.rows()).map(ids);
    let views = compared_pages(recording);
    let first_ids = last_first_long_page_read(&views, List::Events, Mode::Test).map(|view| ids(view.rows()));
    first_ids.is_some_and(|first_ids| !first_ids.is_empty() && Some(first_ids) == second_ids)
}

fn ids(rows: &[serde_json::Value]) -> Vec<String> {
    rows.iter().map(id_or_json).collect()
}

fn different_account() -> CheckError {
    CheckError::unjudged(
        "the second key seems to belong to a different account than the test key",
        "set CHARGEPROOF_SECOND_KEY to a test key of the same account; set CHARGEPROOF_OTHER_ACCOUNT_KEY to a key of \
         another account",
    )
}

fn judge_separate_limit(recording: &Recording) -> CheckResult {
    check_has_burst(recording)?;
    second_account(recording)?;
    let latest = burst_step(recording, &Burst::SecondKey);
    let Some(exchange) = latest.filter(|exchange| exchange.response().is_some()) else {
        return Err(match latest {
            None => not_requested_while_refused(recording, "the second key"),
            Some(_) => missing_response(latest, "the second key"),
        });
    };
    match exchange.status() {
        // Two keys of different accounts have separate limits.
        Some(status) if status < 500 && status != 429 => {
            if is_same_account(recording) {
                Ok(CheckOutcome::Holds)
            } else {
                Err(different_account())
            }
        }
        Some(429) => {
            if is_at_own_limit(recording, exchange) {
                return Err(CheckError::unjudged(
                    "the second key is at its own limit",
                    "check again with a second key that is not used elsewhere",
                ));
            }
            let expected = "200 to the second key while the test key of the same account is refused";
            Err(CheckError::violation(exchange.number, expected, "429"))
        }
        _ => Err(missing_response(latest, "the second key")),
    }
}

/// Compares the three lists and a single event of both keys. Older recordings contain only the events.
fn judge_same_lists(recording: &Recording) -> CheckResult {
    second_account(recording)?;
    check_lists_are_served(recording)?;
    check_same_event(recording)?;
    check_same_records(recording, List::Charges)?;
    check_same_records(recording, List::Invoices)?;
    judge_same_events(recording)
}

/// Checks that a key which reads its account also reads the lists of that account. A key may lack the permission to read a
/// list, so a 403 proves nothing.
fn check_lists_are_served(recording: &Recording) -> Result<(), CheckError> {
    let reads = List::ALL.into_iter().filter_map(|list| last_list_read(recording, Caller::SecondKey, list));
    let is_refused = |exchange: &&Exchange| matches!(exchange.status(), Some(401 | 404));
    match reads.into_iter().find(is_refused).filter(|_| is_same_account(recording)) {
        Some(exchange) => {
            Err(CheckError::violation(exchange.number, "200, as to the test key", exchange.summary()))
        }
        None => Ok(()),
    }
}

/// Checks that the second key does not get 404 for an event that the test key got.
fn check_same_event(recording: &Recording) -> Result<(), CheckError> {
    let latest = recording
        .find_last(|exchange| {
            exchange.caller == Caller::SecondKey && matches!(exchange.purpose, Purpose::Event { .. })
        })
        .filter(|exchange| exchange.status() == Some(404) && is_same_account(recording));
    latest.map_or(Ok(()), |exchange| {
        Err(CheckError::violation(exchange.number, "200, as to the test key", exchange.summary()))
    })
}

/// Checks that the second key lists the oldest record that the test key listed before: newer ones
/// may not be listed yet, and records are never deleted.
fn check_same_records(recording: &Recording, list: List) -> Result<(), CheckError> {
    let Some((exchange, page)) = second_key_page(recording, list) else { return Ok(()) };
    let Some(second_rows) = page.rows().filter(|rows| (rows.len() as u64) < LONG_PAGE_SIZE) else {
        return Ok(());
    };
    let views = readable_pages(recording);
    let before =
        first_long_page_reads(&views, list, Mode::Test).rfind(|view| view.number() < exchange.number);
    let oldest = before.and_then(|view| id_or_code(view.rows().last()?));
    match oldest.filter(|oldest| !ids(second_rows).contains(oldest)) {
        Some(oldest) if is_same_account(recording) => {
            let expected = format!("the {} that the test key lists, such as {oldest}", list.as_str());
            Err(CheckError::violation(exchange.number, expected, format!("{} others", second_rows.len())))
        }
        _ => Ok(()),
    }
}

/// Returns the last page of a list that was requested with the second key.
fn second_key_page(recording: &Recording, list: List) -> Option<(&Exchange, Page<'_>)> {
    let latest = last_list_read(recording, Caller::SecondKey, list)?;
    Some((latest, Page::from_exchange(latest)?))
}

fn judge_same_events(recording: &Recording) -> CheckResult {
    let latest = second_key_page(recording, List::Events);
    let Some((exchange, second_rows)) =
        latest.as_ref().and_then(|(exchange, page)| Some((exchange, page.rows()?)))
    else {
        return Err(missing_response(latest.map(|(exchange, _)| exchange), "the events of the second key"));
    };
    let views = readable_pages(recording);
    let first_key_pages: Vec<_> = first_long_page_reads(&views, List::Events, Mode::Test).collect();
    let before =
        first_key_pages.iter().rfind(|view| view.number() < exchange.number).map(|view| ids(view.rows()));
    let after =
        first_key_pages.iter().find(|view| view.number() > exchange.number).map(|view| ids(view.rows()));
    let Some(newest) = after.as_ref().or(before.as_ref()) else {
        return Err(CheckError::unjudged("the events of the test key were not listed", "see lists.served"));
    };
    let second_ids = ids(second_rows);
    if [&before, &after].into_iter().flatten().any(|listed| *listed == second_ids) {
        return if second_ids.is_empty() {
            Err(CheckError::unjudged(
                "neither key has an event",
                "open a charge with the test key's account, then check again",
            ))
        } else {
            Ok(CheckOutcome::Holds)
        };
    }
    if !is_same_account(recording) {
        return Err(different_account());
    }
    let has_grown = |new: &Option<Vec<String>>, old: &Option<Vec<String>>| {
        new.as_ref().zip(old.as_ref()).is_none_or(|(new, old)| has_grown_from(new, old))
    };
    let second_ids = Some(second_ids);
    match (has_grown(&second_ids, &before) && has_grown(&after, &second_ids), &after) {
        // The reads of the test key before and after show which events are new.
        (true, Some(_)) if before.is_some() => return Ok(CheckOutcome::Holds),
        (true, _) => return Err(list_changed()),
        _ if before != after && before.is_some() && after.is_some() => return Err(list_changed()),
        _ => {}
    }
    let expected = format!("the {} events that the test key lists", newest.len());
    let count = second_ids.map_or(0, |rows| rows.len());
    Err(CheckError::violation(
        exchange.number,
        expected,
        format!("{count} events, different ones or in a different order"),
    ))
}

/// Returns `true` if a list equals an older one with or without new records at its head.
fn has_grown_from(new: &[String], old: &[String]) -> bool {
    old.first().is_none_or(|newest_old| {
        new.iter().position(|id| id == newest_old).is_some_and(|start| {
            let shared = (new.len() - start).min(old.len());
            let is_cut_off = new.len() as u64 >= LONG_PAGE_SIZE;
            new[start..start + shared] == old[..shared] && (shared == old.len() || is_cut_off)
        })
    })
}
