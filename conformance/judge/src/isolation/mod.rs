//! Chapters "errors" and "isolation": objects that do not exist, and objects of the other mode.
//!
//! A live key must not learn whether a test object exists, and the reverse. A status of 404 is not enough: a
//! different message, header or length reveals the object just as well (`isolation.indistinguishable`). So the
//! judge compares responses feature by feature.
//!
//! The problem is noise. A request id, a date, a node name of a load balancer differ between any two responses. The
//! probe therefore sends three requests in a round: for an absent id, which does not exist, for a foreign id of the
//! other mode, and for another absent id. The second round is reversed: foreign, absent, foreign. The first and the
//! third response of a round differ only by noise. `compare` splits each response into named features (each header,
//! each member of the JSON body, the names in the body, its text and length), with the requested id replaced by
//! `{id}`. A feature in which these two responses agree and the middle one differs is a difference. It is reported
//! only if it appears in every round that was sent, because a load balancer may route the middle request to another
//! machine once.
//!
//! The same comparison serves single charges, invoices and payment links (`isolation.objects`), where the operator
//! names their paths. Filters by a foreign object are compared in pairs: the list filtered by a foreign code must
//! have the same number of rows, total and links as the list filtered by an absent one. Lists of the two modes must
//! share no record; charges and invoices are compared as whole rows, since each mode may number its own.
//!
//! A header that differs between equal responses to equal requests anywhere in the run is noise too.
//!
//! A response of 429, 502, 503 or 504 is not evidence. Each of the two keys must have requested an event of the other
//! mode, or the statement is not judged.
//!
//! ```text
//! GET /v1/events/{absent id}        404  x-request-id: a1   {"message":"Not found."}
//! GET /v1/events/{id of live mode}  404  x-request-id: b2   {"message":"No such event."}   ← a difference: body.message
//! GET /v1/events/{absent id}        404  x-request-id: c3   {"message":"Not found."}
//! ```
//!
//! `x-request-id` differs between the absent responses, so it is noise.
//!
//! Must not contain: a request, a list of headers to ignore, or knowledge of a particular implementation.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::part::Part;
use conformance_model::reading::{
    Page, event_charge_codes, id_or_code, id_or_json, invoice_charge_codes, link_query, single_event, text_at,
};
use conformance_model::recording::{
    Caller, Exchange, List, ObjectKind, Purpose, Recording, SIMILAR_ID_ROUND, Side, UPPERCASE_ID_ROUND,
    shorten,
};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::diff::{LISTED_KINDS, contradict};
use super::evidence::{
    PageView, is_listed, missing_response, modes_share_codes, readable_pages, with_article,
};
use crate::check::Check;

mod absent_objects;
mod addresses;
mod compare;
mod other_account;

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation];
const NEEDS_LEAKS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation, Group::Leaks];

pub(super) const CHECKS: &[Check] = &[
    Check::new("errors.not_found", NEEDS, judge_not_found).with_optional_probes(&[Group::Objects]),
    Check::new("errors.not_found_json", NEEDS, judge_not_found_json).with_optional_probes(&[Group::Objects]),
    Check::new("isolation.not_found", NEEDS_LEAKS, judge_foreign_not_found),
    Check::new("isolation.indistinguishable", NEEDS, judge_indistinguishable),
    Check::new("isolation.objects", &[Group::Account, Group::Lists, Group::Objects], judge_single_objects),
    Check::new("isolation.lists", NEEDS, judge_lists),
    Check::new(
        "isolation.deposit_addresses",
        &[Group::Account, Group::Lists],
        addresses::judge_deposit_addresses,
    ),
    Check::new("isolation.filter_charge", NEEDS, |recording| judge_filter(recording, List::Events, "charge")),
    Check::new("isolation.filter_invoice", NEEDS, |recording| {
        judge_filter(recording, List::Events, "invoice")
    }),
    Check::new("isolation.filter_payment_link", NEEDS, |recording| {
        judge_filter(recording, List::Charges, "payment_link")
    })
    .excluded_with(Part::PaymentLinks),
    Check::new(
        "isolation.second_account",
        &[Group::Account, Group::OtherAccount],
        other_account::judge_other_account,
    )
    .with_optional_probes(&[Group::Objects]),
];

/// Returns the exchanges that requested an event of these sides and got another response than 429, 502, 503 or 504. They
/// count only if the last request of the same key for an own event got 200.
fn exchanges_with_response<'a>(
    recording: &'a Recording,
    sides: &[Side],
) -> Result<Vec<&'a Exchange>, CheckError> {
    let last_own_event = |mode| {
        recording.find_last(|exchange| {
            exchange.caller == Caller::Own(mode)
                && matches!(&exchange.purpose, Purpose::Event { side: Side::Own, .. })
        })
    };
    let found: Vec<_> = recording
        .exchanges
        .iter()
        .filter(|exchange| matches!(&exchange.purpose, Purpose::Event { side, .. } if sides.contains(side)))
        .filter(|exchange| exchange.status().is_some_and(|status| !matches!(status, 429 | 502..=504)))
        .filter(
            |exchange| matches!(exchange.caller, Caller::Own(mode) if last_own_event(mode).and_then(Exchange::status) == Some(200)),
        )
        .collect();
    if !found.is_empty() {
        return Ok(found);
    }
    match Mode::BOTH.into_iter().find_map(last_own_event) {
        Some(exchange) if exchange.status() != Some(200) => {
            Err(missing_response(Some(exchange), "an own event on the same path"))
        }
        _ => Err(needs_both_modes("an event")),
    }
}

fn needs_both_modes(object: &str) -> CheckError {
    CheckError::unjudged(
        format!("both modes must have {object} to request, and at least one mode has none"),
        "open a charge, an invoice and a payment link in live and in test mode, then check again",
    )
}

/// The sides of ids that do not exist.
const ABSENT: &[Side] = &[Side::AbsentBefore, Side::AbsentAfter];

fn judge_not_found(recording: &Recording) -> CheckResult {
    for exchange in exchanges_with_response(recording, ABSENT)? {
        // An id that is not a UUID may get any 3xx or 4xx, but must not cause a server error.
        let is_refused = exchange.status().is_some_and(|status| (300..500).contains(&status));
        let is_allowed = has_similar_id(exchange) && (is_refused || shows_requested_event(exchange));
        if exchange.status() != Some(404) && !is_allowed {
            return Err(CheckError::violation(exchange.number, "404", exchange.summary()));
        }
    }
    absent_objects::check_absent_objects(recording)?;
    absent_objects::check_listed_objects(recording)?;
    Ok(CheckOutcome::Holds)
}

/// Returns `true` if a response has the event with the requested id, which therefore exists.
fn shows_requested_event(exchange: &Exchange) -> bool {
    let Purpose::Event { id: requested, .. } = &exchange.purpose else { return false };
    single_event(exchange).is_some_and(|event| text_at(event, &["id"]) == Some(requested))
}

/// Returns `true` if the requested id is that of an event with another last character, or with one more or less, so it
/// may not be a UUID.
fn has_similar_id(exchange: &Exchange) -> bool {
    matches!(&exchange.purpose, Purpose::Event { round, .. } if *round == SIMILAR_ID_ROUND)
}

fn judge_not_found_json(recording: &Recording) -> CheckResult {
    exchanges_with_response(recording, ABSENT)?;
    absent_objects::check_not_found_is_json(recording)?;
    Ok(CheckOutcome::Holds)
}

/// Returns `true` if the id of an event was requested in capital letters. The server may refuse it with any status.
fn has_uppercase_id(exchange: &Exchange) -> bool {
    matches!(&exchange.purpose, Purpose::Event { round, .. } if *round == UPPERCASE_ID_ROUND)
}

/// Checks that HEAD of an event of the other mode does not succeed. A server may refuse the method.
fn check_head(recording: &Recording) -> Result<(), CheckError> {
    let foreign = exchanges_with_response(recording, &[Side::Foreign])?;
    let is_foreign = |head: &Exchange| {
        foreign.iter().any(|exchange| (exchange.caller, &exchange.target) == (head.caller, &head.target))
    };
    let heads = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.purpose == Purpose::Head && is_foreign(exchange));
    let is_served =
        |exchange: &&Exchange| exchange.status().is_some_and(|status| (200..300).contains(&status));
    let found = heads.filter(|exchange| exchange.response().is_some()).find(is_served);
    found.map_or(Ok(()), |exchange| {
        Err(CheckError::violation(exchange.number, "404, as for GET", exchange.summary()))
    })
}

fn judge_foreign_not_found(recording: &Recording) -> CheckResult {
    check_head(recording)?;
    for exchange in exchanges_with_response(recording, &[Side::Foreign])? {
        let is_served = exchange.status().is_some_and(|status| status < 300);
        if exchange.status() != Some(404) && (is_served || !has_uppercase_id(exchange)) {
            let expected = "404, the same body as for an unknown id";
            return Err(CheckError::violation(exchange.number, expected, exchange.summary()));
        }
    }
    check_both_directions(exchanges_with_response(recording, &[Side::Foreign])?)
}

fn judge_indistinguishable(recording: &Recording) -> CheckResult {
    let foreign = exchanges_with_response(recording, &[Side::Foreign])?;
    let mut compared = Vec::new();
    for mode in Mode::BOTH {
        let of_mode = foreign.iter().filter(|exchange| exchange.caller == Caller::Own(mode));
        let of_mode: Vec<_> = of_mode.copied().collect();
        let rounds = compare::rounds(recording, &of_mode);
        if let Some((number, difference)) = compare::lasting_difference(&rounds)? {
            let expected = "the same response as for an id that does not exist";
            return Err(CheckError::violation(number, expected, difference));
        }
        compared.extend(of_mode.first().filter(|_| !rounds.is_empty()));
    }
    if compared.is_empty() {
        return Err(CheckError::unjudged(
            "there was no 404 on both sides to compare",
            "see isolation.not_found",
        ));
    }
    check_both_directions(compared)
}

/// Judges that the statement holds if the exchanges, which satisfy it, include requests with the keys of both modes.
fn check_both_directions(found: Vec<&Exchange>) -> CheckResult {
    match Mode::BOTH
        .into_iter()
        .find(|mode| !found.iter().any(|exchange| exchange.caller == Caller::Own(*mode)))
    {
        None => Ok(CheckOutcome::Holds),
        Some(_) => Err(needs_both_modes("an event")),
    }
}

fn judge_lists(recording: &Recording) -> CheckResult {
    let views = readable_pages(recording);
    for list in List::ALL {
        let rows = |mode| {
            let of_mode = views.iter().filter(move |view| view.mode == mode && view.request.list == list);
            of_mode.flat_map(move |view| {
                view.rows().iter().filter_map(move |row| Some((comparison_key(list, row)?, view)))
            })
        };
        let live: BTreeMap<_, _> = rows(Mode::Live).collect();
        let test: BTreeMap<_, _> = rows(Mode::Test).collect();
        if list == List::Events && (live.is_empty() || test.is_empty()) {
            return Err(needs_both_modes("an event"));
        }
        if let Some((key, view)) = live.iter().find(|(key, _)| test.contains_key(*key)) {
            let actual = format!("{} is listed in both", shorten(key));
            return Err(CheckError::violation(view.number(), "nothing that both modes list", actual));
        }
    }
    check_no_foreign_objects(&views)?;
    check_created_charges(recording)?;
    Ok(CheckOutcome::Holds)
}

/// Checks that no charge that was created with the test key is listed to the live key only.
fn check_created_charges(recording: &Recording) -> Result<(), CheckError> {
    let code_in = |exchange: &Exchange| {
        let body = exchange.response()?.body.json()?;
        let code = text_at(&body["data"], &["code"]).or_else(|| text_at(body, &["code"]))?;
        (code.len() >= CODE_LEN_MIN).then(|| code.to_owned())
    };
    let created: Vec<String> = recording
        .exchanges
        .iter()
        .filter(|exchange| exchange.created_in() == Some(List::Charges))
        .filter_map(code_in)
        .collect();
    let is_listed = |mode: Mode, code: &str| is_listed(recording, mode, "charge", code);
    match created.iter().find(|code| is_listed(Mode::Live, code) && !is_listed(Mode::Test, code)) {
        Some(code) => Err(CheckError::violation(
            None,
            format!("charge {code}, which was created with the test key, in test mode only"),
            "it is listed to the live key",
        )),
        None => Ok(()),
    }
}

/// Returns the codes of the charges or invoices (`member`) that a row of a list contains, without the code of the row itself.
fn object_codes(list: List, row: &Value, member: &str) -> Vec<String> {
    let own = (list == List::Events).then(|| text_at(row, &[member, "code"])).flatten();
    let of_invoice = (member == "charge").then(|| match list {
        List::Events => event_charge_codes(row),
        List::Invoices => invoice_charge_codes(row),
        List::Charges => None,
    });
    own.into_iter().chain(of_invoice.flatten().unwrap_or_default()).map(str::to_owned).collect()
}

/// Checks that no row contains a charge or an invoice that only the other mode lists. If a code is listed in both modes, or
/// the two objects with a code have different values, each mode numbers its own objects, and codes prove nothing.
fn check_no_foreign_objects(views: &[PageView<'_>]) -> Result<(), CheckError> {
    for (list, member) in LISTED_KINDS {
        let listed = Mode::BOTH.map(|mode| {
            let of_list = views.iter().filter(|view| view.mode == mode && view.request.list == list);
            let rows =
                of_list.flat_map(PageView::rows).filter_map(|row| Some((text_at(row, &["code"])?, row)));
            rows.filter(|(code, _)| code.len() >= CODE_LEN_MIN).collect::<BTreeMap<_, _>>()
        });
        if listed[0].keys().any(|code| listed[1].contains_key(code)) {
            continue;
        }
        for view in views {
            let [own, other] =
                if view.mode == Mode::BOTH[0] { [0, 1] } else { [1, 0] }.map(|index| &listed[index]);
            let mut codes = view.rows().iter().flat_map(|row| {
                let object = row.get(member).unwrap_or(&Value::Null);
                let is_other = move |code: &String| {
                    let listed_object = other.get(code.as_str()).filter(|_| !own.contains_key(code.as_str()));
                    listed_object.is_some_and(|found| !has_other_values(object, found, code))
                };
                object_codes(view.request.list, row, member).into_iter().filter(is_other)
            });
            if let Some(code) = codes.next() {
                let expected = format!("no {member} of {} mode", view.mode.other().as_str());
                return Err(CheckError::violation(view.number(), expected, format!("{member} {code}")));
            }
        }
    }
    Ok(())
}

/// Returns `true` if an object with this code has another immutable value than the object with the code in the other mode.
/// Then these are different objects, because each mode numbers its own.
fn has_other_values(object: &Value, other: &Value, code: &str) -> bool {
    const IMMUTABLE: [&str; 7] =
        ["fiat_amount", "fiat_currency", "asset", "asset_amount", "amount", "currency", "number"];
    let contradicts = |name: &&str| {
        let [first, second] =
            [object, other].map(|object| object.get(*name).filter(|value| !value.is_null()));
        first.zip(second).is_some_and(|(first, second)| contradict(first, second))
    };
    text_at(object, &["code"]) == Some(code) && IMMUTABLE.iter().any(contradicts)
}

/// The length of the shortest code that counts as random. Sequential numbers are usually shorter.
const CODE_LEN_MIN: usize = 6;

/// Returns the text by which rows of both modes are compared: the id of an event, or the whole row of a charge or an invoice,
/// because each mode may number its own. Returns `None` for a charge or an invoice with a short code, which proves nothing.
fn comparison_key(list: List, row: &Value) -> Option<String> {
    match list {
        List::Events => Some(id_or_json(row)),
        List::Charges | List::Invoices => {
            id_or_code(row).filter(|code| code.len() >= CODE_LEN_MIN).map(|_| row.to_string())
        }
    }
}

/// Judges single charges, invoices and payment links, if the operator gave their paths.
fn judge_single_objects(recording: &Recording) -> CheckResult {
    let latest = recording.find_last(|exchange| matches!(exchange.purpose, Purpose::Object { .. }));
    if latest.is_none() {
        let account = recording.account_exchange(Mode::Test);
        if account.and_then(Exchange::status) != Some(200) {
            return Err(missing_response(account, "the account"));
        }
        return Err(CheckError::Inapplicable(
            "the specification does not define the paths of single objects, and `check.paths` sets none"
                .into(),
        ));
    }
    let mut judged = Vec::new();
    for kind in [ObjectKind::Charge, ObjectKind::Invoice, ObjectKind::PaymentLink] {
        for mode in Mode::BOTH {
            if judge_objects_of_kind(recording, kind, mode)? && !judged.contains(&kind.as_str()) {
                judged.push(kind.as_str());
            }
        }
    }
    if judged.is_empty() {
        return Err(needs_both_modes("a charge, an invoice or a payment link"));
    }
    Ok(CheckOutcome::HoldsWith(format!("judged on {}", judged.join(", "))))
}

/// Judges the objects of a kind of the other mode, which must be indistinguishable from absent
/// ones. Returns `false` if none was requested.
fn judge_objects_of_kind(recording: &Recording, kind: ObjectKind, mode: Mode) -> Result<bool, CheckError> {
    let of_side = |wanted: Side| {
        recording.exchanges.iter().filter(move |exchange| {
            let is_requested =
                matches!(&exchange.purpose, Purpose::Object { kind: requested, side, .. } if (*requested, *side) == (kind, wanted));
            is_requested && exchange.caller == Caller::Own(mode)
        })
    };
    let foreign: Vec<_> = of_side(Side::Foreign).collect();
    let (Some(own), Some(last)) = (of_side(Side::Own).next_back(), foreign.last()) else { return Ok(false) };
    if own.status() != Some(200) {
        return Err(CheckError::unjudged(
            format!("an own {} gets the response {}", kind.as_str(), own.summary()),
            "check the path in `check.paths`",
        ));
    }
    for exchange in &foreign {
        match exchange.status() {
            None | Some(429 | 502..=504) if exchange.number != last.number => {}
            None | Some(429 | 502..=504) => return Err(missing_response(Some(exchange), "a foreign object")),
            Some(404) => {}
            Some(200) if modes_share_codes(recording, kind.json_name()) => {
                return Err(shared_codes(kind.as_str()));
            }
            Some(_) => return Err(CheckError::violation(exchange.number, "404", exchange.summary())),
        }
    }
    if let Some((number, difference)) = compare::lasting_difference(&compare::rounds(recording, &foreign))? {
        return Err(CheckError::violation(
            number,
            "the same response as for one that does not exist",
            difference,
        ));
    }
    Ok(true)
}

fn shared_codes(kind: &str) -> CheckError {
    let kind = with_article(kind);
    CheckError::Inapplicable(format!(
        "each mode numbers its own objects, and {kind} of this mode may have the same code"
    ))
}

/// Returns the name in reports of the objects that a filter selects by.
fn filtered_kind(filter: &str) -> &str {
    ObjectKind::ALL.into_iter().find(|kind| kind.json_name() == filter).map_or(filter, |kind| kind.as_str())
}

/// Compares the lists filtered by a foreign object with those filtered by an absent one.
fn judge_filter(recording: &Recording, list: List, filter: &str) -> CheckResult {
    let of_side = |side| {
        let purpose = Purpose::Filter { list, filter: filter.to_owned(), side };
        let own = recording.exchanges.iter().filter(|exchange| matches!(exchange.caller, Caller::Own(_)));
        own.filter(move |exchange| exchange.purpose == purpose)
    };
    // The suite retries after an outage, so the last response to a request counts.
    let is_last = |exchange: &&Exchange| {
        !recording.exchanges.iter().any(|later| {
            later.number > exchange.number
                && (later.caller, &later.target) == (exchange.caller, &exchange.target)
        })
    };
    let mut judged = false;
    for foreign in of_side(Side::Foreign).filter(is_last) {
        let mut before = of_side(Side::AbsentBefore)
            .filter(|exchange| exchange.caller == foreign.caller && exchange.number < foreign.number);
        let Some(absent) = before.next_back() else { continue };
        for exchange in [absent, foreign] {
            if exchange.status().is_none_or(|status| matches!(status, 429 | 502..=504)) {
                return Err(missing_response(Some(exchange), "the filtered list"));
            }
        }
        let (expected, actual) = (page_summary(absent), page_summary(foreign));
        // A merchant may choose the same name of a payment link in both modes.
        let is_own = |code: &str| {
            let Caller::Own(mode) = foreign.caller else { return false };
            filter == "payment_link" && is_listed(recording, mode, filter, code)
        };
        let (query, _) = link_query(&foreign.target);
        let has_own_code = query.iter().any(|(parameter, code)| parameter == filter && is_own(code));
        if expected != actual && (has_own_code || modes_share_codes(recording, filter)) {
            return Err(shared_codes(filtered_kind(filter)));
        }
        if expected != actual {
            return Err(CheckError::violation(
                foreign.number,
                format!("{expected}, as for one that does not exist"),
                actual,
            ));
        }
        judged = true;
    }
    if !judged {
        return Err(needs_both_modes(&with_article(filtered_kind(filter))));
    }
    // The message of a refusal may reveal that the object exists in the other mode.
    let refusals = |side| {
        of_side(side)
            .filter(is_last)
            .filter(|exchange| exchange.status().is_some_and(|status| status == 404))
            .collect()
    };
    if let Some((number, difference)) =
        compare::refusal_difference(recording, refusals(Side::Foreign), refusals(Side::AbsentBefore))
    {
        return Err(CheckError::violation(
            number,
            "the same refusal as for one that does not exist",
            difference,
        ));
    }
    Ok(CheckOutcome::Holds)
}

/// Describes a filtered list: status, number of rows, total, last page, and links with their pages.
fn page_summary(exchange: &Exchange) -> String {
    let status = exchange.status().unwrap_or_default();
    let Some(page) = Page::from_exchange(exchange) else { return status.to_string() };
    let rows = page.rows().map_or("no".into(), |rows| rows.len().to_string());
    let number = |name| page.meta_number(name).map_or("no number".into(), |number| number.to_string());
    let link_text = |rel| {
        let (query, _) = link_query(page.link(rel)?);
        let page = query.iter().find(|(name, _)| name == "page").map(|(_, page)| format!(" (page {page})"));
        Some(format!("{rel}{}", page.unwrap_or_default()))
    };
    let links: Vec<_> = ["first", "last", "prev", "next"].into_iter().filter_map(link_text).collect();
    format!(
        "{status} with {rows} rows, a total of {}, last_page {} and links to {}",
        number("total"),
        number("last_page"),
        if links.is_empty() { "nothing".into() } else { links.join(" ") },
    )
}
