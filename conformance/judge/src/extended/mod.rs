//! The extended profile: the choices of the reference server where the specification leaves something open.
//!
//! Other implementations are judged by this profile only on request (`--profile extended`).

mod refusals;
mod response_formats;

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::Page;
use conformance_model::recording::{
    Caller, Exchange, List, PageRequest, Purpose, ReceivedResponse, Recording,
};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::missing_response;
use crate::check::{Check, Mismatch};

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Filters, Group::Isolation, Group::Extended];
const NEEDS_AUTH: &[Group] = &[Group::Account, Group::Auth, Group::Extended];
const NEEDS_BURST: &[Group] = &[Group::Account, Group::Burst];

pub(super) const CHECKS: &[Check] = &[
    Check::new("extended.envelope", NEEDS, response_formats::judge_envelope),
    Check::new("extended.objects", NEEDS, response_formats::judge_objects),
    Check::new("extended.account_fields", NEEDS, response_formats::judge_account_fields),
    Check::new("extended.charge_fields", NEEDS, response_formats::judge_charge_fields),
    Check::new("extended.invoice_fields", NEEDS, response_formats::judge_invoice_fields),
    Check::new("extended.states", NEEDS, response_formats::judge_states),
    Check::new("extended.assets", NEEDS, response_formats::judge_assets),
    Check::new("extended.details", NEEDS, response_formats::judge_details),
    Check::new("extended.codes", NEEDS, response_formats::judge_codes),
    Check::new("extended.invoice_numbers", NEEDS, response_formats::judge_invoice_numbers),
    Check::new("extended.event_ids", NEEDS, response_formats::judge_event_ids),
    Check::new("extended.amounts", NEEDS, response_formats::judge_amounts),
    Check::new("extended.times", NEEDS, response_formats::judge_times),
    Check::new("extended.meta", NEEDS, response_formats::judge_meta),
    Check::new("extended.links", NEEDS, response_formats::judge_links),
    Check::new("extended.single_objects", NEEDS, response_formats::judge_single_objects),
    Check::new("extended.error_body", NEEDS, refusals::judge_error_body),
    Check::new("extended.challenge", NEEDS_AUTH, refusals::judge_challenge),
    Check::new("extended.page_values", NEEDS, refusals::judge_page_values),
    Check::new("extended.filter_values", NEEDS, refusals::judge_filter_values),
    Check::new("extended.anchors", NEEDS, refusals::judge_anchors),
    Check::new("extended.past_the_end", NEEDS, refusals::judge_past_the_end),
    Check::new("extended.foreign_filters", NEEDS, refusals::judge_foreign_filters),
    Check::new("extended.method", NEEDS, refusals::judge_method),
    Check::new("extended.unknown_path", NEEDS, refusals::judge_unknown_path),
    Check::new("extended.rate_headers", NEEDS, refusals::judge_rate_headers),
    Check::new("extended.retry_after", NEEDS_BURST, refusals::judge_retry_after),
];

/// A JSON value and the number of its exchange.
type Sample = (u32, Value);

/// Judges all values. The statement holds if there is at least one value and none has a mismatch.
fn judge_each_sample(
    samples: impl IntoIterator<Item = Sample>,
    subject: &str,
    mismatch: impl Fn(&Value) -> Option<Mismatch>,
) -> CheckResult {
    let mut judged = false;
    for (number, value) in samples {
        if let Some((expected, actual)) = mismatch(&value) {
            return Err(CheckError::violation(number, expected, actual));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_sample(subject)) }
}

fn no_sample(subject: &str) -> CheckError {
    CheckError::unjudged(
        format!("the recording shows no {subject}"),
        "let both modes have charges, invoices, payment links and events, then check again",
    )
}

/// Returns the requests with the live or the test key that got 200, with the JSON of the response.
fn successes(recording: &Recording) -> impl Iterator<Item = (&Exchange, &Value)> {
    recording.exchanges.iter().filter(|exchange| matches!(exchange.caller, Caller::Own(_))).filter_map(
        |exchange| {
            let response = exchange.response().filter(|response| response.status == 200)?;
            Some((exchange, response.body.json()?))
        },
    )
}

/// Returns the rows of all pages of a list.
fn rows(recording: &Recording, list: List) -> impl Iterator<Item = Sample> {
    let of_list = move |exchange: &&Exchange| match &exchange.purpose {
        Purpose::Page(PageRequest { list: requested, .. })
        | Purpose::DuringInserts { list: requested, .. } => *requested == list,
        _ => false,
    };
    let pages = recording
        .exchanges
        .iter()
        .filter(of_list)
        .filter_map(|exchange| Some((exchange.number, Page::from_exchange(exchange)?)));
    pages.flat_map(|(number, page)| {
        page.rows().unwrap_or_default().iter().map(move |row| (number, row.clone()))
    })
}

/// Returns the charges or invoices of the lists and of the events.
fn subjects(recording: &Recording, list: List, member: &'static str) -> Vec<Sample> {
    let in_events = rows(recording, List::Events).filter_map(|(number, event)| {
        Some((number, event.get(member).filter(|object| object.is_object())?.clone()))
    });
    rows(recording, list).chain(in_events).collect()
}

fn accounts(recording: &Recording) -> impl Iterator<Item = Sample> {
    Mode::BOTH.into_iter().filter_map(|mode| {
        let exchange = recording.account_exchange(mode)?;
        Some((exchange.number, exchange.response()?.body.json()?.clone()))
    })
}

/// Returns the last request for a choice that the specification leaves to the server, with its response.
fn choice_response<'a>(
    recording: &'a Recording,
    choice: &str,
) -> Result<(&'a Exchange, &'a ReceivedResponse), CheckError> {
    let latest = recording
        .find_last(|exchange| matches!(&exchange.purpose, Purpose::Choice { name } if name == choice));
    let with_response = latest.and_then(|exchange| Some((exchange, exchange.response()?)));
    with_response
        .filter(|(_, response)| !matches!(response.status, 429 | 502..=504))
        .ok_or_else(|| missing_response(latest, choice))
}

/// Formats a value for a report.
fn display_value(value: Option<&Value>) -> String {
    value.map_or_else(
        || "missing".to_owned(),
        |value| conformance_model::recording::shorten(&value.to_string()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use conformance_model::recording::{ExchangeOutcome, FORMAT_VERSION, Inserts};

    fn recording_of(purpose: Purpose, target: &str, status: u16, body: &Value) -> Recording {
        let outcome = ExchangeOutcome::Answered(ReceivedResponse {
            status,
            headers: Vec::new(),
            body: body.to_string().into(),
        });
        let (caller, target) = (Caller::Own(Mode::Test), target.to_owned());
        let (sent, ended) = Default::default();
        Recording {
            format: FORMAT_VERSION,
            base: "http://pay.example/".into(),
            key_prefix: "svc".into(),
            without: [].into(),
            no_burst: None,
            inserts: Inserts::default(),
            exact_amounts: true,
            exchanges: vec![Exchange { number: 1, caller, purpose, target, sent, ended, outcome }],
            deliveries: None,
        }
    }

    /// Returns the violation; `None` if the statement holds or cannot be judged.
    fn violation_of(id: &str, recording: &Recording) -> Option<String> {
        let check = CHECKS.iter().find(|check| check.id == id).expect("every id in the tests has a check");
        match (check.judge)(recording) {
            Err(CheckError::Violation(finding)) => Some(finding.actual),
            _ => None,
        }
    }

    #[track_caller]
    fn check_row(list: List, row: Value, id: &str, actual: Option<&str>) {
        let request = PageRequest { list, filters: vec![], page: None, per_page: None, link: None };
        let page = recording_of(Purpose::Page(request), list.path(), 200, &json!({ "data": [row] }));
        assert_eq!(violation_of(id, &page).as_deref(), actual, "{row}");
    }

    #[test]
    fn codes_invoice_numbers_and_details_are_judged() {
        let (charges, invoices, events) = (List::Charges, List::Invoices, List::Events);
        let codes = "extended.codes";
        check_row(charges, json!({ "id": "k3m9x2q7w1ab", "code": "k3m9x2q7w1ab" }), codes, None);
        check_row(charges, json!({ "id": "k", "code": "k" }), codes, Some("id \"k\", code \"k\""));
        let other = json!({ "id": "x", "code": "k3m9x2q7w1ab" });
        check_row(charges, other, codes, Some("id \"x\", code \"k3m9x2q7w1ab\""));
        check_row(charges, json!({ "id": "k" }), codes, Some("id \"k\", code missing"));
        let numbers = "extended.invoice_numbers";
        check_row(invoices, json!({ "number": "INV-0001" }), numbers, None);
        check_row(invoices, json!({ "number": "INV-12" }), numbers, Some("\"INV-12\""));
        check_row(invoices, json!({ "number": "INV-abcd" }), numbers, Some("\"INV-abcd\""));
        let created_event = |details: Value| json!({ "type": "charge.created", "details": details });
        check_row(events, created_event(json!({})), "extended.details", None);
        check_row(events, created_event(json!({ "a": 1 })), "extended.details", Some("{\"a\":1}"));
    }

    #[track_caller]
    fn check_choice(name: &str, status: u16, body: Value, id: &str, holds: bool) {
        let choice = Purpose::Choice { name: name.to_owned() };
        let recording = recording_of(choice, "/v1/charges/k1", status, &body);
        assert_eq!(violation_of(id, &recording).is_none(), holds, "{status} {body}");
    }

    #[test]
    fn status_and_body_of_a_choice_are_judged() {
        let errors_for_page = |errors: Value| json!({ "message": "No.", "errors": { "page": errors } });
        let pages = "extended.page_values";
        check_choice("page=0", 422, errors_for_page(json!(["No."])), pages, true);
        check_choice("page=0", 400, errors_for_page(json!(["No."])), pages, false);
        check_choice("page=0", 422, json!({ "message": "No." }), pages, false);
        let bodies = "extended.error_body";
        check_choice("page=0", 422, errors_for_page(json!(["No."])), bodies, true);
        check_choice("page=0", 422, errors_for_page(json!([])), bodies, false);
        check_choice("page=0", 422, errors_for_page(json!([1])), bodies, false);
        let single = "extended.single_objects";
        let charge = |code: &str| json!({ "data": { "code": code } });
        check_choice("charge", 200, charge("k1"), single, true);
        check_choice("charge", 200, charge("k2"), single, false);
        check_choice("charge", 404, charge("k1"), single, false);
    }

    #[test]
    fn members_and_times_of_the_account_are_judged() {
        let account = |body: &Value| recording_of(Purpose::Account, "/v1/account", 200, body);
        let bare = account(&json!({ "data": {} }));
        assert_eq!(violation_of("extended.account_fields", &bare).as_deref(), Some("no such member"));
        let dated = account(&json!({ "data": { "created_at": "2026-01-05T09:00:00Z" } }));
        assert_eq!(violation_of("extended.times", &dated).as_deref(), Some("2026-01-05T09:00:00Z"));
    }
}
