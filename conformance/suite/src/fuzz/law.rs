//! The rules for every answer, whatever was requested. Pure: the request, the answer, and the earlier answers.
//!
//! Only the specification's. Where it leaves a choice, such as the answer to a size out of range, both answers
//! pass.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::form_urlencoded;

use super::{
    ask::{Ask, Filled},
    known::{Kind, Known, fixed},
};
use conformance_model::reading::{duplicate_key, has_text, identity, is_json, text_at, utc};
use conformance_model::recording::{Answer, Ending, List, shorten};
use conformance_model::words::Mode;

const PER_PAGE_MAX: u64 = 100;
/// Shorter identifiers may be the same in both modes by chance.
const TELLING_CHARS_MIN: usize = 8;

/// A law that an answer broke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// The law's name.
    pub law: String,
    /// The expectation.
    pub expected: String,
    /// The actual answer.
    pub actual: String,
}

/// The specified path that a request leads to, if it leads to one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Account,
    List(List),
    Event(String),
    Create,
}

impl Place {
    fn of(method: &str, path: &str) -> Option<Place> {
        match (method, path) {
            ("GET", "/v1/account") => Some(Place::Account),
            ("GET", "/v1/charges") => Some(Place::List(List::Charges)),
            ("GET", "/v1/invoices") => Some(Place::List(List::Invoices)),
            ("GET", "/v1/events") => Some(Place::List(List::Events)),
            ("POST", "/v1/charges") => Some(Place::Create),
            ("GET", path) => {
                let id = path.strip_prefix("/v1/events/")?;
                (!id.is_empty() && !id.contains(['/', '%'])).then(|| Place::Event(id.to_owned()))
            }
            _ => None,
        }
    }
}

/// The laws that an answer breaks.
pub(super) fn judge(ask: &Ask, filled: &Filled, ending: &Ending, known: &Known) -> Vec<Breach> {
    let answer = match ending {
        Ending::Answered(answer) => answer,
        Ending::Lost(why) => return vec![breach("answers.silence", "an answer", format!("none: {why}"))],
    };
    let mut judging = Judging { ask, filled, answer, known, found: Vec::new() };
    judging.everywhere();
    let path = filled.sent.target.split(['?', '#']).next().unwrap_or_default();
    if let Some(place) = Place::of(&ask.method, path) {
        judging.at(&place);
    }
    judging.found
}

/// Adds an answer to the known objects.
pub(super) fn learn(ask: &Ask, filled: &Filled, ending: &Ending, known: &mut Known) {
    let (Some(mode), Ending::Answered(answer)) = (ask.by.mode(), ending) else { return };
    let path = filled.sent.target.split('?').next().unwrap_or_default();
    let Some(place) = Place::of(&ask.method, path) else { return };
    let Some(body) = (200..300)
        .contains(&answer.status)
        .then(|| serde_json::from_str::<Value>(&answer.body).ok())
        .flatten()
    else {
        return;
    };
    let data = body.get("data");
    match place {
        Place::Account => {}
        Place::List(list) => {
            let kind = match list {
                List::Charges => Kind::Charge,
                List::Invoices => Kind::Invoice,
                List::Events => Kind::Event,
            };
            for row in data.and_then(Value::as_array).into_iter().flatten() {
                known.learn(mode, kind, row);
            }
        }
        Place::Event(_) => known.learn(mode, Kind::Event, data.filter(|it| it.is_object()).unwrap_or(&body)),
        Place::Create => known.learn(mode, Kind::Charge, data.filter(|it| it.is_object()).unwrap_or(&body)),
    }
}

fn breach(law: &str, expected: impl Into<String>, actual: impl Into<String>) -> Breach {
    Breach { law: law.to_owned(), expected: expected.into(), actual: actual.into() }
}

struct Judging<'a> {
    ask: &'a Ask,
    filled: &'a Filled,
    answer: &'a Answer,
    known: &'a Known,
    found: Vec<Breach>,
}

impl Judging<'_> {
    fn break_law(&mut self, law: &str, expected: impl Into<String>, actual: impl Into<String>) {
        self.found.push(breach(law, expected, actual));
    }

    fn told(&self) -> String {
        format!("{} {}", self.answer.status, shorten(&self.answer.body)).trim_end().to_owned()
    }

    fn everywhere(&mut self) {
        let status = self.answer.status;
        if status >= 500 && !matches!(status, 502..=504) {
            self.break_law("answers.no_server_error", "no server error", self.told());
        }
        if status == 429 && self.answer.header("retry-after").is_none_or(|text| text.trim().is_empty()) {
            self.break_law("limits.retry_after", "a Retry-After header with 429", "none");
        }
    }

    fn at(&mut self, place: &Place) {
        let status = self.answer.status;
        // The framing of a request, or a proxy, may refuse before the API sees it.
        if matches!(status, 400 | 408 | 413 | 414 | 429 | 431) || status >= 500 {
            return;
        }
        let Some(mode) = self.ask.by.mode() else {
            return self.without_key();
        };
        if !self.ask.headers.is_empty() && (status == 406 || status == 415) {
            return;
        }
        if status == 401 {
            return self.break_law("auth.known_key", "a working key is let in", self.told());
        }
        let Some(body) = self.json() else { return };
        self.nothing_foreign(mode, &body);
        match place {
            Place::Account => self.account(mode, &body),
            Place::List(list) => self.list(*list, mode, &body),
            Place::Event(id) => self.event(mode, id, &body),
            Place::Create => {}
        }
    }

    fn without_key(&mut self) {
        if self.answer.status != 401 {
            return self.break_law("auth.refused", "401 without a working key", self.told());
        }
        let Some(body) = self.json() else { return };
        if !has_text(&body) {
            self.break_law("auth.message", "a message in JSON", self.told());
        }
    }

    /// The body as JSON, which every answer of the API is. Redirects and empty answers have none.
    fn json(&mut self) -> Option<Value> {
        let answer = self.answer;
        if matches!(answer.status, 204 | 300..=399) {
            return None;
        }
        let body = is_json(answer).then(|| serde_json::from_str(&answer.body).ok()).flatten();
        match (&body, duplicate_key(&answer.body)) {
            (None, _) => self.break_law("answers.json", "JSON, and a Content-Type that says so", self.told()),
            (Some(_), Some(name)) => {
                self.break_law("answers.json", "names that are given once", format!("`{name}` twice"));
            }
            (Some(_), None) => {}
        }
        body
    }

    /// Checks that a body holds nothing that only the other mode's key was shown.
    fn nothing_foreign(&mut self, mode: Mode, body: &Value) {
        if self.answer.status >= 300 {
            return;
        }
        let mut shown = BTreeSet::new();
        names(body, &mut shown);
        let leak = self.known.foreign(mode).find(|id| id.len() >= TELLING_CHARS_MIN && shown.contains(*id));
        if let Some(id) = leak {
            let other = mode.other().word();
            self.break_law(
                "isolation.leak",
                format!("no object of {other} mode"),
                format!("`{id}` in the answer"),
            );
        }
    }

    fn account(&mut self, mode: Mode, body: &Value) {
        if self.answer.status != 200 {
            return self.break_law("account.served", "200", self.told());
        }
        let told = body.pointer("/meta/mode").cloned().unwrap_or_default();
        if told != mode.word() {
            self.break_law(
                "account.mode",
                format!("meta.mode `{}`", mode.word()),
                format!("meta.mode {told}"),
            );
        }
    }

    fn event(&mut self, mode: Mode, id: &str, body: &Value) {
        let own = self.known.has_seen(mode, id);
        let foreign = !own && self.known.has_seen(mode.other(), id);
        let made_up = self.filled.named.iter().any(|it| it.text == id && it.of.is_none());
        match self.answer.status {
            200 if foreign || made_up => {
                self.break_law("isolation.not_found", "404, as if it did not exist", self.told());
            }
            200 => {
                let row = body.get("data").filter(|it| it.is_object()).unwrap_or(body);
                if text_at(row, &["id"]).is_some_and(|shown| !shown.eq_ignore_ascii_case(id)) {
                    self.break_law("events.single", format!("the event `{id}`"), shorten(&row.to_string()));
                }
                self.same_as_before(mode, row);
            }
            404 if own && self.known.told_before(mode, id).is_some() => {
                self.break_law("events.readable", "200 for an event that the list has shown", self.told());
            }
            404 => {}
            _ if foreign => self.break_law("isolation.not_found", "404, as if it did not exist", self.told()),
            _ => {}
        }
    }

    fn same_as_before(&mut self, mode: Mode, row: &Value) {
        let Some(id) = text_at(row, &["id"]) else { return };
        let now = fixed(row);
        let before = self.known.told_before(mode, id);
        if let Some(before) = before.filter(|before| *before != now) {
            let (before, now) = (shorten(before), shorten(&now));
            self.break_law("events.stable", format!("the event as it was told before: {before}"), now);
        }
    }

    fn list(&mut self, list: List, mode: Mode, body: &Value) {
        let query = Query::of(&self.filled.sent.target);
        if self.answer.status != 200 {
            if query.is_plain() {
                self.break_law("lists.served", "200", self.told());
            }
            return;
        }
        let (Some(rows), Some(meta)) = (body.get("data").and_then(Value::as_array), body.get("meta")) else {
            return self.break_law("paging.envelope", "`data`, `links` and `meta`", self.told());
        };
        let number = |name: &str| meta.get(name).and_then(Value::as_u64);
        let numbers = ["current_page", "last_page", "per_page", "total"].map(number);
        let [Some(page), Some(last), Some(size), Some(total)] = numbers else {
            return self.break_law("paging.meta", "four whole numbers in `meta`", shorten(&meta.to_string()));
        };
        self.numbers(&query, [page, last, size, total], rows.len() as u64);
        self.ends(body, page, last);
        let mut ids = BTreeSet::new();
        if let Some(twice) = rows.iter().map(identity).find(|id| !ids.insert(id.clone())) {
            self.break_law(
                "paging.joined",
                "no record twice on a page",
                format!("`{}` twice", shorten(&twice)),
            );
        }
        self.order(rows);
        self.filters(list, &query, rows, total);
        if list == List::Events {
            rows.iter().for_each(|row| self.same_as_before(mode, row));
        }
    }

    fn numbers(&mut self, query: &Query, [page, last, size, total]: [u64; 4], rows: u64) {
        let told = format!("page {page} of {last}, {rows} rows, per_page {size}, total {total}");
        if !(1..=PER_PAGE_MAX).contains(&size) {
            return self.break_law("paging.per_page", "a size from 1 to 100", told);
        }
        let asked = |name: &str| match query.values(name).as_slice() {
            [] => Some(None),
            [text] => text.parse::<u64>().ok().map(Some),
            _ => None,
        };
        match asked("per_page") {
            Some(None) if size != 25 => {
                self.break_law("paging.default_size", "25 without per_page", told.clone())
            }
            Some(Some(wanted @ 1..=PER_PAGE_MAX)) if wanted != size => {
                self.break_law("paging.per_page", format!("per_page {wanted}"), told.clone());
            }
            _ => {}
        }
        let pages = total.div_ceil(size);
        if last != pages && !(pages == 0 && last == 1) {
            self.break_law("paging.last_page", format!("last_page {pages}"), told.clone());
        }
        match asked("page") {
            Some(None) if page != 1 => self.break_law("paging.current_page", "page 1", told.clone()),
            // Past the end a server may answer with the last page.
            Some(Some(wanted)) if wanted >= 1 && wanted <= pages && wanted != page => {
                self.break_law("paging.current_page", format!("page {wanted}"), told.clone());
            }
            _ => {}
        }
        let length = total.saturating_sub(page.saturating_sub(1).saturating_mul(size)).min(size);
        if rows != length {
            self.break_law("paging.length", format!("{length} rows"), told);
        }
    }

    fn ends(&mut self, body: &Value, page: u64, last: u64) {
        let Some(links) = body.get("links").and_then(Value::as_object) else {
            return self.break_law("paging.links", "`links`", "none");
        };
        let has = |name: &str| links.get(name).is_some_and(|it| it.is_string());
        let told = format!("prev {}, next {} on page {page} of {last}", has("prev"), has("next"));
        if page == 1 && has("prev") || page >= last && has("next") {
            self.break_law("paging.ends", "no link beyond the ends", told);
        } else if page > 1 && page <= last && !has("prev") || page < last && !has("next") {
            self.break_law("paging.ends", "a link to the page before and after", told);
        }
    }

    fn order(&mut self, rows: &[Value]) {
        let times: Vec<_> = rows
            .iter()
            .filter_map(|row| text_at(row, &["created_at"]).and_then(|text| utc(text).ok()))
            .collect();
        if times.len() == rows.len() && !times.is_sorted_by(|a, b| a >= b) {
            self.break_law("paging.newest_first", "newest first", "an older record before a newer one");
        }
    }

    fn filters(&mut self, list: List, query: &Query, rows: &[Value], total: u64) {
        let fields: &[(&str, &[&str])] = match list {
            List::Events => {
                &[("type", &["type"]), ("charge", &["charge", "code"]), ("invoice", &["invoice", "code"])]
            }
            List::Charges => &[("status", &["status"]), ("payment_link", &["payment_link"])],
            List::Invoices => &[("status", &["status"])],
        };
        for (name, path) in fields {
            let values = query.values(name);
            let &[wanted] = values.as_slice() else { continue };
            let wanted = wanted.as_str();
            if wanted.is_empty() {
                continue;
            }
            // Rows of charges and invoices need not show what they are filtered by.
            let other = rows.iter().find(|row| text_at(row, path).is_some_and(|it| it != wanted));
            if let Some(row) = other {
                let law = format!("filters.{name}");
                self.break_law(&law, format!("only rows with `{wanted}`"), shorten(&row.to_string()));
            }
            let stranger = self.filled.named.iter().find(|it| it.text == wanted);
            let is_foreign = stranger.is_some_and(|it| it.of.is_none() || it.of != self.ask.by.mode());
            let mode = self.ask.by.mode();
            let is_own = mode.is_some_and(|mode| self.known.has_seen(mode, wanted));
            if is_foreign && !is_own && (total > 0 || !rows.is_empty()) {
                self.break_law(
                    "isolation.filters",
                    "nothing, as for what does not exist",
                    format!("total {total}"),
                );
            }
        }
    }
}

/// Every text under a name that identifies something.
fn names<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if matches!(name.as_str(), "id" | "code" | "payment_link") => {
                        into.insert(text);
                    }
                    _ => names(member, into),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, into)),
        _ => {}
    }
}

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(target: &str) -> Query {
        let text = target.split_once('?').map_or("", |(_, query)| query);
        let pairs = form_urlencoded::parse(text.as_bytes());
        Query(pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect())
    }

    fn values(&self, name: &str) -> Vec<&String> {
        self.0.iter().filter(|(own, _)| own == name).map(|(_, value)| value).collect()
    }

    /// Returns `true` if no reader could reject it.
    fn is_plain(&self) -> bool {
        self.0.iter().all(|(name, value)| match name.as_str() {
            "page" => value.parse::<u64>().is_ok_and(|n| (1..=3).contains(&n)),
            "per_page" => value.parse::<u64>().is_ok_and(|n| (1..=PER_PAGE_MAX).contains(&n)),
            _ => false,
        }) && self.0.iter().map(|(name, _)| name).collect::<BTreeSet<_>>().len() == self.0.len()
    }
}

/// Returns `true` if a status is a transient failure that a repetition may clear.
pub(super) fn may_pass(ending: &Ending) -> bool {
    match ending {
        Ending::Answered(answer) => matches!(answer.status, 502..=504),
        Ending::Lost(_) => true,
    }
}
