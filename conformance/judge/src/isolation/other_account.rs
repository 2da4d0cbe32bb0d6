//! The statement that a key cannot read the objects of another account.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{Page, text_at};
use conformance_model::recording::{Caller, Exchange, List, ObjectKind, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::CODE_LEN_MIN;
use crate::diff::LISTED_KINDS;
use crate::evidence::{PageView, last_list_read, missing_response, readable_pages, with_article};

pub(super) fn judge_other_account(recording: &Recording) -> CheckResult {
    let Some(account) = recording.find_last(|exchange| {
        exchange.caller == Caller::OtherAccount && exchange.purpose == Purpose::Account
    }) else {
        let own = recording.account_exchange(Mode::Test);
        if own.and_then(Exchange::status) != Some(200) {
            return Err(missing_response(own, "the account"));
        }
        return Err(CheckError::Inapplicable(
            "no key of another account is configured; set CHARGEPROOF_OTHER_ACCOUNT_KEY to one".into(),
        ));
    };
    check_lists_are_served(recording, account)?;
    // The last request of an event of the other account with a key of the own account.
    let requested = recording
        .find_last(|exchange| matches!(&exchange.purpose, Purpose::Event { side: Side::OtherAccount, .. }));
    let Some(event_read) = requested.filter(|exchange| exchange.response().is_some()) else {
        return Err(no_event_response(recording, requested, account));
    };
    let Caller::Own(mode) = event_read.caller else {
        return Err(missing_response(Some(event_read), "an event of the other account, with an own key"));
    };
    let own_account = recording.account_exchange(mode);
    let is_own_body = account.response().map(|response| &response.body)
        == own_account.and_then(Exchange::response).map(|response| &response.body);
    if is_own_body || account_id(account).is_some_and(|id| own_account.and_then(account_id) == Some(id)) {
        if has_other_events(recording, mode) {
            let expected =
                "another account than that of the own keys, because the other key lists other events";
            return Err(CheckError::violation(account.number, expected, "the account of the own key"));
        }
        return Err(CheckError::unjudged(
            "the account of the other key has the same data or id as that of the own key",
            "set CHARGEPROOF_OTHER_ACCOUNT_KEY to a key of another account with another display name; if it is one already, \
             the service returns the wrong account for it",
        ));
    }
    match event_read.status() {
        Some(429 | 502..=504) => Err(missing_response(Some(event_read), "an event of the other account")),
        // The specification leaves the status of the refusal open.
        Some(400..500) => check_nothing_shared(recording, mode).map(|()| CheckOutcome::Holds),
        _ => Err(CheckError::violation(event_read.number, "a refusal", event_read.summary())),
    }
}

/// The minimum length of a unique id of an account. A shorter one may be a number in each account's own database, and one
/// without digits a word such as `organization`.
const ACCOUNT_ID_LENGTH_MIN: usize = 16;

/// Returns the `id` of the account in a response, in an envelope or not, if it is long enough to be unique and has a digit.
fn account_id(exchange: &Exchange) -> Option<String> {
    let body = exchange.response()?.body.json()?;
    let id = text_at(body, &["data", "id"]).or_else(|| text_at(body, &["id"]))?;
    let is_unique = id.len() >= ACCOUNT_ID_LENGTH_MIN && id.bytes().any(|byte| byte.is_ascii_digit());
    is_unique.then(|| id.to_owned())
}

/// Checks that no filter by an object of the other account, no list, no single charge and no single invoice shows objects of
/// that account.
fn check_nothing_shared(recording: &Recording, mode: Mode) -> Result<(), CheckError> {
    let events = rows_of_other_account(recording, List::Events);
    check_filters_show_nothing(recording, events)?;
    check_no_shared_event(recording, events)?;
    for kind in ObjectKind::ALL {
        check_object_is_hidden(recording, kind)?;
    }
    for (list, member) in LISTED_KINDS {
        let listed = rows_of_other_account(recording, list);
        let theirs: Vec<_> = events.iter().map(|event| &event[member]).chain(listed).collect();
        for view in
            readable_pages(recording).iter().filter(|view| (view.mode, view.request.list) == (mode, list))
        {
            let is_shared = |row: &&Value| theirs.iter().any(|object| is_same_object(object, row));
            if let Some(row) = view.rows().iter().find(is_shared) {
                let expected = format!("no {member} of the other account");
                return Err(CheckError::violation(
                    view.number(),
                    expected,
                    format!("{member} {}", row["code"]),
                ));
            }
        }
    }
    Ok(())
}

/// Checks that no filter by a charge, an invoice or a payment link of the other account shows or counts objects of that
/// account. `events`: the events of the other account.
fn check_filters_show_nothing(recording: &Recording, events: &[Value]) -> Result<(), CheckError> {
    let id = |row: &'_ Value| text_at(row, &["id"]).map(str::to_owned);
    let their_events: BTreeSet<String> = events.iter().filter_map(id).collect();
    for exchange in &recording.exchanges {
        let Purpose::Filter { list, filter, side: Side::OtherAccount } = &exchange.purpose else { continue };
        let Some(page) = Page::from_exchange(exchange) else { continue };
        let listed = rows_of_other_account(recording, *list);
        let is_theirs = |row: &Value| match list {
            List::Events => id(row).is_some_and(|id| their_events.contains(&id)),
            List::Charges | List::Invoices => listed.iter().any(|object| is_same_object(object, row)),
        };
        let rows = page.rows().unwrap_or_default();
        // Own records are no violation: a server that ignores the filter returns them.
        let counts_hidden_rows = rows.is_empty() && page.meta_number("total").is_some_and(|total| total > 0);
        if counts_hidden_rows || rows.iter().any(is_theirs) {
            let kind = with_article(super::filtered_kind(filter));
            let expected = format!("no {} of {kind} of the other account", list.as_str());
            return Err(CheckError::violation(exchange.number, expected, exchange.summary()));
        }
    }
    Ok(())
}

/// Checks that no own key reads a single object of a kind that the other account lists.
fn check_object_is_hidden(recording: &Recording, kind: ObjectKind) -> Result<(), CheckError> {
    let Some(list) = kind.list() else { return Ok(()) };
    let listed = rows_of_other_account(recording, list);
    let is_theirs = |exchange: &&Exchange| matches!(exchange.purpose, Purpose::Object { kind: requested, side: Side::OtherAccount, .. } if requested == kind);
    let served =
        recording.exchanges.iter().filter(is_theirs).filter(|exchange| exchange.status() == Some(200));
    for exchange in served {
        let body = exchange.response().and_then(|response| response.body.json());
        if body.is_some_and(|body| listed.iter().any(|object| contains_object(body, object))) {
            let expected = format!("a refusal of {} of the other account", with_article(kind.as_str()));
            return Err(CheckError::violation(exchange.number, expected, exchange.summary()));
        }
    }
    Ok(())
}

/// Returns `true` if a value is an object, or contains it in an envelope under any name.
fn contains_object(value: &Value, object: &Value) -> bool {
    is_same_object(object, value)
        || value.as_object().into_iter().flatten().any(|(_, member)| is_same_object(object, member))
}

/// Checks that no list of events, of either mode and with any filter, has an event of the other account.
fn check_no_shared_event(recording: &Recording, theirs: &[Value]) -> Result<(), CheckError> {
    let identity = |row: &Value| {
        let [id, kind, recorded_at] = ["id", "type", "created_at"].map(|name| text_at(row, &[name]));
        Some([id?, kind?, recorded_at?].map(str::to_owned))
    };
    let theirs: BTreeSet<_> = theirs.iter().filter_map(identity).collect();
    let views = readable_pages(recording);
    for view in views.iter().filter(|view| view.request.list == List::Events) {
        let shared = view.rows().iter().filter_map(identity).find(|event| theirs.contains(event));
        if let Some([id, ..]) = shared {
            let expected = "no event of the other account";
            return Err(CheckError::violation(view.number(), expected, format!("event {id}")));
        }
    }
    Ok(())
}

/// Returns `true` if the other key and the own key of a mode list events, and none in common. Two keys of one account and
/// mode list the same ones.
fn has_other_events(recording: &Recording, mode: Mode) -> bool {
    let id = |row: &Value| text_at(row, &["id"]).map(str::to_owned);
    let their_ids: BTreeSet<_> =
        rows_of_other_account(recording, List::Events).iter().filter_map(id).collect();
    let views = readable_pages(recording);
    let events = views.iter().filter(|view| (view.mode, view.request.list) == (mode, List::Events));
    let our_ids: BTreeSet<_> = events.flat_map(PageView::rows).filter_map(id).collect();
    !their_ids.is_empty() && !our_ids.is_empty() && their_ids.is_disjoint(&our_ids)
}

/// Returns the last request of a list with the other account's key.
fn list_read_with_other_key(recording: &Recording, list: List) -> Option<&Exchange> {
    last_list_read(recording, Caller::OtherAccount, list)
}

/// Returns the rows of a list in the last response to the other account's key; none if it is not a page.
fn rows_of_other_account(recording: &Recording, list: List) -> &[Value] {
    let page = list_read_with_other_key(recording, list).and_then(Page::from_exchange);
    page.and_then(Page::rows).unwrap_or_default()
}

/// Checks that a key which reads its account also reads the lists of that account.
fn check_lists_are_served(recording: &Recording, account: &Exchange) -> Result<(), CheckError> {
    let refused = List::ALL
        .into_iter()
        .filter_map(|list| list_read_with_other_key(recording, list))
        .find(|exchange| matches!(exchange.status(), Some(401 | 403)));
    match refused.filter(|_| account.status() == Some(200)) {
        Some(exchange) => {
            let expected = format!("200, as for {} with the same key of another account", account.target);
            Err(CheckError::violation(exchange.number, expected, exchange.summary()))
        }
        None => Ok(()),
    }
}

/// Returns `true` if two values show one object: its code is long, and they have five or more members in common, all of
/// them equal. A code alone proves nothing, because each account may number its objects.
fn is_same_object(first: &Value, second: &Value) -> bool {
    const SHARED_MIN: usize = 5;
    let (Some(members), Some(code)) = (first.as_object(), text_at(second, &["code"])) else { return false };
    // For speed alone: different codes are shared members that differ.
    if first.get("code").is_some_and(|first_code| first_code != code) {
        return false;
    }
    let shared: Vec<_> =
        members.iter().filter_map(|(name, value)| Some((value, second.get(name)?))).collect();
    code.len() >= CODE_LEN_MIN
        && shared.len() >= SHARED_MIN
        && shared.iter().all(|(first, second)| first == second)
}

/// Returns the reason why there is no response for an event of the other account, with the remedy. `requested` is the last
/// request of such an event, `account` that of the other account itself.
fn no_event_response(recording: &Recording, requested: Option<&Exchange>, account: &Exchange) -> CheckError {
    if let Some(401 | 403) = account.status() {
        return CheckError::unjudged(
            "the key of the other account is refused",
            "set CHARGEPROOF_OTHER_ACCOUNT_KEY to a key that works",
        );
    }
    let listed = list_read_with_other_key(recording, List::Events);
    match listed.map(|exchange| (exchange, Page::from_exchange(exchange))) {
        Some((_, Some(page))) if page.rows().is_some_and(<[_]>::is_empty) => CheckError::unjudged(
            "the other account has no event in the mode of its key",
            "open a charge with CHARGEPROOF_OTHER_ACCOUNT_KEY's account and mode, then check again",
        ),
        Some((exchange, _)) if requested.is_none() => {
            missing_response(Some(exchange), "the events of the other account")
        }
        _ => missing_response(requested.or(Some(account)), "an event of the other account"),
    }
}
