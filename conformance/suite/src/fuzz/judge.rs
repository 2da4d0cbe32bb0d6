//! The invariants of every response: pure functions of the request, the response and the earlier responses.
//!
//! They follow from the specification alone. Where it leaves a choice, such as the response to a page size out of
//! range, every choice passes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::form_urlencoded;

use super::{
    known_ids::{IdKind, KnownIds, constant_part},
    request_template::{RequestTemplate, ResolvedRequest},
};
use conformance_model::mode::Mode;
use conformance_model::reading::{
    declares_json, first_duplicate_name, has_text, id_or_json, parse_utc, text_at,
};
use conformance_model::recording::{ExchangeOutcome, List, ReceivedResponse, shorten};

const PER_PAGE_MAX: u64 = 100;
const PER_PAGE_DEFAULT: u64 = 25;
/// The length of the shortest identifier that counts as a leak. Shorter ones may be equal in both modes by chance.
const CONCLUSIVE_CHARS_MIN: usize = 8;

/// A violation of a statement by a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// The id of the statement.
    #[serde(rename = "law")]
    pub statement: String,
    /// The expectation.
    pub expected: String,
    /// The actual response.
    pub actual: String,
}

/// A specified operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Operation {
    Account,
    List(List),
    Event(String),
    Create,
}

impl Operation {
    fn from_request(method: &str, path: &str) -> Option<Operation> {
        match (method, path) {
            ("GET", "/v1/account") => Some(Operation::Account),
            ("GET", "/v1/charges") => Some(Operation::List(List::Charges)),
            ("GET", "/v1/invoices") => Some(Operation::List(List::Invoices)),
            ("GET", "/v1/events") => Some(Operation::List(List::Events)),
            ("POST", "/v1/charges") => Some(Operation::Create),
            ("GET", path) => {
                let id = path.strip_prefix("/v1/events/")?;
                (!id.is_empty() && !id.contains(['/', '%'])).then(|| Operation::Event(id.to_owned()))
            }
            _ => None,
        }
    }
}

/// Returns the invariants that a response violates.
pub(super) fn judge(
    template: &RequestTemplate,
    resolved: &ResolvedRequest,
    outcome: &ExchangeOutcome,
    known: &KnownIds,
) -> Vec<Violation> {
    let response = match outcome {
        ExchangeOutcome::Answered(response) => response,
        ExchangeOutcome::NoResponse(why) => {
            return vec![violation("answers.silence", "a response", format!("none: {why}"))];
        }
    };
    let mut check = ResponseCheck { template, resolved, response, known, violations: Vec::new() };
    check.check_any_path();
    let path = resolved.sent.target.split(['?', '#']).next().unwrap_or_default();
    if let Some(operation) = Operation::from_request(&template.method, path) {
        check.check_operation(&operation);
    }
    check.violations
}

/// Adds the identifiers in a successful response to a valid key to the known ones.
pub(super) fn record_ids(
    template: &RequestTemplate,
    resolved: &ResolvedRequest,
    outcome: &ExchangeOutcome,
    known: &mut KnownIds,
) {
    let (Some(mode), ExchangeOutcome::Answered(response)) = (template.key.mode(), outcome) else { return };
    let path = resolved.sent.target.split('?').next().unwrap_or_default();
    let Some(operation) = Operation::from_request(&template.method, path) else { return };
    let Some(body) = (200..300)
        .contains(&response.status)
        .then(|| serde_json::from_str::<Value>(&response.body).ok())
        .flatten()
    else {
        return;
    };
    let data = body.get("data");
    match operation {
        Operation::Account => {}
        Operation::List(list) => {
            let kind = match list {
                List::Charges => IdKind::Charge,
                List::Invoices => IdKind::Invoice,
                List::Events => IdKind::Event,
            };
            for row in data.and_then(Value::as_array).into_iter().flatten() {
                known.add_object(mode, kind, row);
            }
        }
        Operation::Event(_) => {
            known.add_object(mode, IdKind::Event, data.filter(|data| data.is_object()).unwrap_or(&body))
        }
        Operation::Create => {
            known.add_object(mode, IdKind::Charge, data.filter(|data| data.is_object()).unwrap_or(&body))
        }
    }
}

fn violation(statement: &str, expected: impl Into<String>, actual: impl Into<String>) -> Violation {
    Violation { statement: statement.to_owned(), expected: expected.into(), actual: actual.into() }
}

/// The check of one response.
struct ResponseCheck<'a> {
    template: &'a RequestTemplate,
    resolved: &'a ResolvedRequest,
    response: &'a ReceivedResponse,
    known: &'a KnownIds,
    violations: Vec<Violation>,
}

impl ResponseCheck<'_> {
    fn report_violation(&mut self, statement: &str, expected: impl Into<String>, actual: impl Into<String>) {
        self.violations.push(violation(statement, expected, actual));
    }

    fn response_text(&self) -> String {
        format!("{} {}", self.response.status, shorten(&self.response.body)).trim_end().to_owned()
    }

    /// Checks the invariants of responses on every path.
    fn check_any_path(&mut self) {
        let status = self.response.status;
        if status >= 500 && !matches!(status, 502..=504) {
            self.report_violation("answers.no_server_error", "no server error", self.response_text());
        }
        if status == 429 && self.response.header("retry-after").is_none_or(|text| text.trim().is_empty()) {
            self.report_violation("limits.retry_after", "a Retry-After header with 429", "none");
        }
    }

    /// Checks the invariants of responses to a specified operation.
    fn check_operation(&mut self, operation: &Operation) {
        let status = self.response.status;
        // The HTTP server or a proxy may refuse a request before it reaches the API.
        if matches!(status, 400 | 408 | 413 | 414 | 429 | 431) || status >= 500 {
            return;
        }
        let Some(mode) = self.template.key.mode() else {
            return self.check_refusal();
        };
        // A server may refuse an unusual header.
        if !self.template.headers.is_empty() && (status == 406 || status == 415) {
            return;
        }
        if status == 401 {
            return self.report_violation("auth.known_key", "a valid key is accepted", self.response_text());
        }
        let Some(body) = self.check_json() else { return };
        self.check_no_foreign_ids(mode, &body);
        match operation {
            Operation::Account => self.check_account(mode, &body),
            Operation::List(list) => self.check_list(*list, mode, &body),
            Operation::Event(id) => self.check_event(mode, id, &body),
            Operation::Create => {}
        }
    }

    /// Checks the response to a request without a valid key.
    fn check_refusal(&mut self) {
        if self.response.status != 401 {
            return self.report_violation("auth.refused", "401 without a valid key", self.response_text());
        }
        let Some(body) = self.check_json() else { return };
        if !has_text(&body) {
            self.report_violation("auth.message", "a message in JSON", self.response_text());
        }
    }

    /// Checks that the body is JSON, and returns it; `None` for a 204, a redirect and invalid JSON.
    fn check_json(&mut self) -> Option<Value> {
        let response = self.response;
        if matches!(response.status, 204 | 300..=399) {
            return None;
        }
        let body = declares_json(response).then(|| serde_json::from_str(&response.body).ok()).flatten();
        match (&body, first_duplicate_name(&response.body)) {
            (None, _) => {
                self.report_violation("answers.json", "JSON with a JSON Content-Type", self.response_text())
            }
            (Some(_), Some(name)) => {
                self.report_violation(
                    "answers.json",
                    "each name once in an object",
                    format!("`{name}` twice"),
                );
            }
            (Some(_), None) => {}
        }
        body
    }

    /// Checks that a successful response has no identifier of the other mode.
    fn check_no_foreign_ids(&mut self, mode: Mode, body: &Value) {
        if self.response.status >= 300 {
            return;
        }
        let mut ids_in_body = BTreeSet::new();
        collect_ids(body, &mut ids_in_body);
        let leak = self
            .known
            .foreign_ids(mode)
            .find(|id| id.len() >= CONCLUSIVE_CHARS_MIN && ids_in_body.contains(*id));
        if let Some(id) = leak {
            let other = mode.other().as_str();
            self.report_violation(
                "isolation.leak",
                format!("no object of {other} mode"),
                format!("`{id}` in the response"),
            );
        }
    }

    fn check_account(&mut self, mode: Mode, body: &Value) {
        if self.response.status != 200 {
            return self.report_violation("account.served", "200", self.response_text());
        }
        let stated = body.pointer("/meta/mode").cloned().unwrap_or_default();
        if stated != mode.as_str() {
            self.report_violation(
                "account.mode",
                format!("meta.mode `{}`", mode.as_str()),
                format!("meta.mode {stated}"),
            );
        }
    }

    fn check_event(&mut self, mode: Mode, id: &str, body: &Value) {
        let is_own = self.known.has_received(mode, id);
        let is_foreign = !is_own && self.known.has_received(mode.other(), id);
        let is_nonexistent =
            self.resolved.used_ids.iter().any(|value| value.id == id && value.owner.is_none());
        match self.response.status {
            200 if is_foreign || is_nonexistent => {
                self.report_violation(
                    "isolation.not_found",
                    "404, as if it did not exist",
                    self.response_text(),
                );
            }
            200 => {
                let row = body.get("data").filter(|data| data.is_object()).unwrap_or(body);
                if text_at(row, &["id"]).is_some_and(|received_id| !received_id.eq_ignore_ascii_case(id)) {
                    self.report_violation(
                        "events.single",
                        format!("the event `{id}`"),
                        shorten(&row.to_string()),
                    );
                }
                self.check_event_unchanged(mode, row);
            }
            404 if is_own && self.known.received_event(mode, id).is_some() => {
                self.report_violation(
                    "events.readable",
                    "200 for an event that a response contained before",
                    self.response_text(),
                );
            }
            404 => {}
            _ if is_foreign => self.report_violation(
                "isolation.not_found",
                "404, as if it did not exist",
                self.response_text(),
            ),
            _ => {}
        }
    }

    fn check_event_unchanged(&mut self, mode: Mode, row: &Value) {
        let Some(id) = text_at(row, &["id"]) else { return };
        let now = constant_part(row);
        let before = self.known.received_event(mode, id);
        if let Some(before) = before.filter(|before| *before != now) {
            let (before, now) = (shorten(before), shorten(&now));
            self.report_violation("events.stable", format!("the event as it was before: {before}"), now);
        }
    }

    fn check_list(&mut self, list: List, mode: Mode, body: &Value) {
        let query = Query::from_target(&self.resolved.sent.target);
        if self.response.status != 200 {
            if query.has_only_valid_paging() {
                self.report_violation("lists.served", "200", self.response_text());
            }
            return;
        }
        let (Some(rows), Some(meta)) = (body.get("data").and_then(Value::as_array), body.get("meta")) else {
            return self.report_violation(
                "paging.envelope",
                "`data`, `links` and `meta`",
                self.response_text(),
            );
        };
        let number = |name: &str| meta.get(name).and_then(Value::as_u64);
        let numbers = ["current_page", "last_page", "per_page", "total"].map(number);
        let [Some(page), Some(last), Some(size), Some(total)] = numbers else {
            return self.report_violation(
                "paging.meta",
                "four whole numbers in `meta`",
                shorten(&meta.to_string()),
            );
        };
        self.check_numbers(&query, [page, last, size, total], rows.len() as u64);
        self.check_end_links(body, page, last);
        let mut ids = BTreeSet::new();
        if let Some(repeated_id) = rows.iter().map(id_or_json).find(|id| !ids.insert(id.clone())) {
            self.report_violation(
                "paging.joined",
                "no record twice on a page",
                format!("`{}` twice", shorten(&repeated_id)),
            );
        }
        self.check_order(rows);
        self.check_filters(list, &query, rows, total);
        if list == List::Events {
            rows.iter().for_each(|row| self.check_event_unchanged(mode, row));
        }
    }

    fn check_numbers(&mut self, query: &Query, [page, last, size, total]: [u64; 4], rows: u64) {
        let actual = format!("page {page} of {last}, {rows} rows, per_page {size}, total {total}");
        if !(1..=PER_PAGE_MAX).contains(&size) {
            return self.report_violation("paging.per_page", "a size from 1 to 100", actual);
        }
        // `Some(None)` without the parameter; `None` if it is repeated or not a number.
        let value = |name: &str| match query.values(name).as_slice() {
            [] => Some(None),
            [text] => text.parse::<u64>().ok().map(Some),
            _ => None,
        };
        match value("per_page") {
            Some(None) if size != PER_PAGE_DEFAULT => {
                self.report_violation("paging.default_size", "25 without per_page", actual.clone())
            }
            Some(Some(requested @ 1..=PER_PAGE_MAX)) if requested != size => {
                self.report_violation("paging.per_page", format!("per_page {requested}"), actual.clone());
            }
            _ => {}
        }
        let pages = total.div_ceil(size);
        // An empty list may have one page or none.
        if last != pages && !(pages == 0 && last == 1) {
            self.report_violation("paging.last_page", format!("last_page {pages}"), actual.clone());
        }
        match value("page") {
            Some(None) if page != 1 => self.report_violation("paging.current_page", "page 1", actual.clone()),
            // Past the end, a server may return the last page.
            Some(Some(requested)) if requested >= 1 && requested <= pages && requested != page => {
                self.report_violation("paging.current_page", format!("page {requested}"), actual.clone());
            }
            _ => {}
        }
        let expected_rows = total.saturating_sub(page.saturating_sub(1).saturating_mul(size)).min(size);
        if rows != expected_rows {
            self.report_violation("paging.length", format!("{expected_rows} rows"), actual);
        }
    }

    fn check_end_links(&mut self, body: &Value, page: u64, last: u64) {
        let Some(links) = body.get("links").and_then(Value::as_object) else {
            return self.report_violation("paging.links", "`links`", "none");
        };
        let has_link = |name: &str| links.get(name).is_some_and(|link| link.is_string());
        let actual = format!("prev {}, next {} on page {page} of {last}", has_link("prev"), has_link("next"));
        if page == 1 && has_link("prev") || page >= last && has_link("next") {
            self.report_violation("paging.ends", "no link beyond the ends", actual);
        } else if page > 1 && page <= last && !has_link("prev") || page < last && !has_link("next") {
            self.report_violation("paging.ends", "a link to the page before and after", actual);
        }
    }

    fn check_order(&mut self, rows: &[Value]) {
        let times: Vec<_> =
            rows.iter().filter_map(|row| text_at(row, &["created_at"]).and_then(parse_utc)).collect();
        if times.len() == rows.len() && !times.is_sorted_by(|a, b| a >= b) {
            self.report_violation(
                "paging.newest_first",
                "newest first",
                "an older record before a newer one",
            );
        }
    }

    fn check_filters(&mut self, list: List, query: &Query, rows: &[Value], total: u64) {
        let fields: &[(&str, &[&str])] = match list {
            List::Events => {
                &[("type", &["type"]), ("charge", &["charge", "code"]), ("invoice", &["invoice", "code"])]
            }
            List::Charges => &[("status", &["status"]), ("payment_link", &["payment_link"])],
            List::Invoices => &[("status", &["status"])],
        };
        for (name, path) in fields {
            let values = query.values(name);
            let &[requested] = values.as_slice() else { continue };
            let requested = requested.as_str();
            if requested.is_empty() {
                continue;
            }
            // Rows need not have the filtered field.
            let unmatched = rows.iter().find(|row| text_at(row, path).is_some_and(|text| text != requested));
            if let Some(row) = unmatched {
                let statement = format!("filters.{name}");
                self.report_violation(
                    &statement,
                    format!("only rows with `{requested}`"),
                    shorten(&row.to_string()),
                );
            }
            let used = self.resolved.used_ids.iter().find(|value| value.id == requested);
            let is_foreign_or_nonexistent =
                used.is_some_and(|id| id.owner.is_none() || id.owner != self.template.key.mode());
            let mode = self.template.key.mode();
            let is_own = mode.is_some_and(|mode| self.known.has_received(mode, requested));
            if is_foreign_or_nonexistent && !is_own && (total > 0 || !rows.is_empty()) {
                self.report_violation(
                    "isolation.filters",
                    "no rows, as for an object that does not exist",
                    format!("total {total}"),
                );
            }
        }
    }
}

/// Collects the values of all members named `id`, `code` or `payment_link`.
fn collect_ids<'a>(value: &'a Value, ids: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "id" | "code" | "payment_link") => {
                        ids.insert(text);
                    }
                    _ => collect_ids(member, ids),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        _ => {}
    }
}

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn from_target(target: &str) -> Query {
        let text = target.split_once('?').map_or("", |(_, query)| query);
        let pairs = form_urlencoded::parse(text.as_bytes());
        Query(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    fn values(&self, name: &str) -> Vec<&String> {
        self.0.iter().filter(|(parameter, _)| parameter == name).map(|(_, value)| value).collect()
    }

    /// Returns `true` if the only parameters are a `page` from 1 to 3 and a valid `per_page`, each at most once. Such
    /// a request must be served.
    fn has_only_valid_paging(&self) -> bool {
        self.0.iter().all(|(name, value)| match name.as_str() {
            "page" => value.parse::<u64>().is_ok_and(|n| (1..=3).contains(&n)),
            "per_page" => value.parse::<u64>().is_ok_and(|n| (1..=PER_PAGE_MAX).contains(&n)),
            _ => false,
        }) && self.0.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() == self.0.len()
    }
}

/// Returns `true` if a retry may succeed.
pub(super) fn is_retryable(outcome: &ExchangeOutcome) -> bool {
    match outcome {
        ExchangeOutcome::Answered(response) => matches!(response.status, 502..=504),
        ExchangeOutcome::NoResponse(_) => true,
    }
}
