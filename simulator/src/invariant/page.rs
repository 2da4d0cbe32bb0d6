//! The expected pages of lists: the rows, their order, `links` and `meta`, computed from the model's objects.
//! The *anchor* of a list is the newest record when its first page was read; later pages omit newer records.

use std::borrow::Cow;

use super::path_and_query;
use crate::model::{Book, Ids, List, Subject};

/// A request for a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListRequest {
    pub(super) list: List,
    /// The filters with their values, in the order of the specification.
    pub(super) filters: Vec<(&'static str, String)>,
    pub(super) page: usize,
    pub(super) per_page: usize,
    pub(super) anchor: Option<String>,
}

const PER_PAGE_DEFAULT: usize = 25;
const PER_PAGE_MAX: usize = 100;
pub(super) const CHARGE_STATUSES: [&str; 5] = ["pending", "underpaid", "paid", "expired", "canceled"];
pub(super) const INVOICE_STATUSES: [&str; 3] = ["open", "paid", "void"];

/// Returns the filters of a list, with the allowed values of those that are enums.
fn filters_of(list: List) -> Vec<(&'static str, Vec<&'static str>)> {
    let types = || reference_core::event::EventType::ALL.map(|kind| kind.as_str()).to_vec();
    match list {
        List::Charges => vec![("status", CHARGE_STATUSES.to_vec()), ("payment_link", Vec::new())],
        List::Invoices => vec![("status", INVOICE_STATUSES.to_vec())],
        List::Links => Vec::new(),
        List::Events => vec![("type", types()), ("charge", Vec::new()), ("invoice", Vec::new())],
    }
}

/// Parses a number in a query; `None` if it is not between 1 and `max`.
fn parse_number(text: &str, max: usize) -> Option<usize> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let n = is_number.then(|| text.parse().unwrap_or(usize::MAX))?;
    (1..=max).contains(&n).then_some(n)
}

impl ListRequest {
    /// Parses a path and a query such as `/v1/charges` and `status=paid`. Returns `None` if the path is not that of a list,
    /// and 422 for an invalid parameter.
    pub(super) fn parse(path: &str, query: Option<&str>) -> Option<Result<ListRequest, u16>> {
        let list = List::ALL.into_iter().find(|list| list.path() == path)?;
        Some(ListRequest::parse_query(list, query.unwrap_or_default()).ok_or(422))
    }

    fn parse_query(list: List, query: &str) -> Option<ListRequest> {
        let known = filters_of(list);
        let mut request =
            ListRequest { list, filters: Vec::new(), page: 1, per_page: PER_PAGE_DEFAULT, anchor: None };
        let mut given: Vec<(&str, Cow<'_, str>)> = Vec::new();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let is_known = ["page", "per_page", "anchor"].contains(&name)
                || known.iter().any(|(filter, _)| *filter == name);
            if !is_known {
                continue;
            }
            if given.iter().any(|(other, _)| *other == name) {
                return None;
            }
            given.push((name, percent_decode(value)));
        }
        for (name, value) in &given {
            match *name {
                "page" => request.page = parse_number(value, usize::MAX)?,
                "per_page" => request.per_page = parse_number(value, PER_PAGE_MAX)?,
                "anchor" => request.anchor = Some(value.to_string()),
                _ => {}
            }
        }
        for (filter, allowed) in known {
            if let Some((_, value)) = given.iter().find(|(name, _)| *name == filter) {
                if !allowed.is_empty() && !allowed.contains(&value.as_ref()) {
                    return None;
                }
                request.filters.push((filter, value.to_string()));
            }
        }
        Some(request)
    }

    /// Returns the text under which the service stores a key's anchor: the list, the filters and the page size.
    pub(super) fn anchor_key(&self) -> String {
        format!("{} {:?} {}", self.list.path(), self.filters, self.per_page)
    }

    /// Returns the numbers of the records that match the filters, in increasing order.
    pub(super) fn members(&self, book: &Book, ids: &Ids) -> Vec<usize> {
        let matches_filters = |number: usize| {
            self.filters.iter().all(|(filter, wanted)| match (self.list, *filter) {
                (List::Charges, "status") => book.charges[number].status.as_str() == wanted,
                (List::Charges, _) => {
                    book.charges[number].terms.link.is_some_and(|link| ids.links[link] == *wanted)
                }
                (List::Invoices, _) => book.invoices[number].status.as_str() == wanted,
                (List::Events, "type") => book.events[number].kind == wanted,
                (List::Events, filter) => {
                    let subject = book.events[number].subject;
                    matches!(subject, Subject::Charge(_)) == (filter == "charge")
                        && ids.code(subject) == wanted
                }
                (List::Links, _) => true,
            })
        };
        (0..book.length(self.list)).filter(|number| matches_filters(*number)).collect()
    }

    /// Returns the body of the page. `members` are the matching records up to the anchor; `newest` is the anchor, which need
    /// not match; `row` returns a record as JSON.
    pub(super) fn body(
        &self,
        base: &str,
        ids: &Ids,
        (members, newest): (&[usize], Option<usize>),
        mut row: impl FnMut(usize) -> String,
    ) -> String {
        let (page, size, total) = (self.page, self.per_page, members.len());
        let last = total.div_ceil(size).max(1);
        let skipped = (page - 1).saturating_mul(size);
        let rows: Vec<String> =
            members.iter().rev().skip(skipped).take(size).map(|member| row(*member)).collect();
        let anchor = newest.and_then(|newest| public_ids(ids, self.list).get(newest));
        let path = format!("{base}{}", self.list.path());
        let filters: String =
            self.filters.iter().map(|(name, value)| format!("{name}={}&", percent_encode(value))).collect();
        let anchor = anchor.map(|anchor| format!("&anchor={anchor}")).unwrap_or_default();
        let link = |page: usize| format!("\"{path}?{filters}per_page={size}&page={page}{anchor}\"");
        let or_null = |text: Option<String>| text.unwrap_or_else(|| "null".to_owned());
        let from = (!rows.is_empty()).then(|| skipped + 1);
        format!(
            "{{\"data\":[{}],\"links\":{{\"first\":{},\"last\":{},\"prev\":{},\"next\":{}}},\"meta\":{{\
             \"current_page\":{page},\"from\":{},\"last_page\":{last},\"path\":\"{path}\",\"per_page\":{size},\
             \"to\":{},\"total\":{total}}}}}",
            rows.join(","),
            link(1),
            link(last),
            or_null((page > 1).then(|| link((page - 1).min(last)))),
            or_null((page < last).then(|| link(page + 1))),
            or_null(from.map(|n| n.to_string())),
            or_null(from.map(|n| (n + rows.len() - 1).to_string())),
        )
    }

    /// Returns the request for the next page, if the body has a link to one.
    pub(super) fn next(body: &str) -> Option<ListRequest> {
        #[derive(serde::Deserialize)]
        struct Page {
            links: Links,
        }
        #[derive(serde::Deserialize)]
        struct Links {
            next: Option<String>,
        }
        let next = serde_json::from_str::<Page>(body).ok()?.links.next?;
        let (path, query) = path_and_query(&next).split_once('?')?;
        ListRequest::parse(path, Some(query))?.ok()
    }

    /// Returns the path and query.
    pub(super) fn target(&self) -> String {
        let mut target = format!("{}?", self.list.path());
        for (name, value) in &self.filters {
            target.push_str(&format!("{name}={}&", percent_encode(value)));
        }
        target.push_str(&format!("per_page={}&page={}", self.per_page, self.page));
        if let Some(anchor) = &self.anchor {
            target.push_str(&format!("&anchor={anchor}"));
        }
        target
    }
}

/// Returns the public ids of the records of a list, by number.
pub(super) fn public_ids(ids: &Ids, list: List) -> &[String] {
    match list {
        List::Charges => &ids.charges,
        List::Invoices => &ids.invoices,
        List::Links => &ids.links,
        List::Events => &ids.events,
    }
}

/// Percent-encodes a filter value.
fn percent_encode(text: &str) -> String {
    let is_unreserved = |b: u8| b.is_ascii_alphanumeric() || b"-._*".contains(&b);
    text.bytes()
        .map(|b| match b {
            b' ' => "+".to_owned(),
            b if is_unreserved(b) => char::from(b).to_string(),
            b => format!("%{b:02X}"),
        })
        .collect()
}

/// Decodes a query value; `+` is a space. Invalid escapes stay as they are.
fn percent_decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let text = text.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let byte = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}
