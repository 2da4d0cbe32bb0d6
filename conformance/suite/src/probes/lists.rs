//! The lists: default pages, long pages, small pages, links and filters.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::budget::Cost;
use crate::plan::Mode;
use crate::probes::Session;
use crate::probes::isolation::events;
use crate::reading::text_at;
use crate::recording::{List, PageAsk};

/// Either key may turn out to have the fuller lists.
pub(crate) const COST: Cost = Cost { live: 28, test: 29, other: 0, total: 33 };
const LONG: u64 = 100;
const OUT_OF_RANGE: u64 = 101;
/// With fewer records there is no second page.
pub(crate) const RECORDS_MIN: u64 = 3;

fn ask(list: List) -> PageAsk {
    PageAsk { list, filter: None, page: None, per_page: None, link: None }
}

fn sized(list: List, page: Option<u64>, per_page: u64) -> PageAsk {
    PageAsk { page, per_page: Some(per_page), ..ask(list) }
}

fn filtered(list: List, name: &str, value: &str, per_page: u64) -> PageAsk {
    PageAsk { filter: Some((name.to_owned(), value.to_owned())), ..sized(list, None, per_page) }
}

pub(crate) async fn probe(session: &mut Session<'_>) {
    let mut fullest = BTreeMap::new();
    for list in List::ALL {
        let mut best = (0, Mode::Test);
        for mode in [Mode::Test, Mode::Live] {
            let (_, page) = session.page(mode, ask(list)).await;
            let total =
                page.and_then(|page| page.meta("total").or(Some(page.rows()?.len() as u64))).unwrap_or(0);
            if total > best.0 {
                best = (total, mode);
            }
        }
        fullest.insert(list, best);
    }
    for mode in Mode::BOTH {
        session.page(mode, sized(List::Events, None, LONG)).await;
    }
    for (list, (total, mode)) in fullest {
        if total >= RECORDS_MIN {
            match list {
                List::Events => event_pages(session, mode, total).await,
                List::Charges | List::Invoices => other_pages(session, list, mode, total).await,
            }
        }
    }
    session.page(Mode::Test, sized(List::Events, None, OUT_OF_RANGE)).await;
    filters(session).await;
}

/// A size that leaves a rest, every link of two pages, and the last page of a size that leaves none.
async fn event_pages(session: &mut Session<'_>, mode: Mode, total: u64) {
    let list = List::Events;
    let uneven = (2..=7).find(|size| !total.is_multiple_of(*size)).unwrap_or(2);
    let (first, _) = session.page(mode, sized(list, Some(1), uneven)).await;
    let (second, _) = session.page(mode, sized(list, Some(2), uneven)).await;
    session.follow(mode, &first, "next").await;
    for rel in ["prev", "first", "last"] {
        session.follow(mode, &second, rel).await;
    }
    if let Some(even) = (2..=LONG).find(|size| total.is_multiple_of(*size)) {
        session.page(mode, sized(list, Some(total / even), even)).await;
    }
}

async fn other_pages(session: &mut Session<'_>, list: List, mode: Mode, total: u64) {
    session.page(mode, sized(list, None, LONG)).await;
    let size = (2..total.min(LONG)).find(|size| total.is_multiple_of(*size)).unwrap_or(2);
    let (first, _) = session.page(mode, sized(list, Some(1), size)).await;
    session.page(mode, sized(list, Some(2), size)).await;
    for rel in ["next", "last"] {
        session.follow(mode, &first, rel).await;
    }
}

async fn filters(session: &mut Session<'_>) {
    if let Some((mode, kind)) = telling_type(session) {
        let (first, _) = session.page(mode, filtered(List::Events, "type", &kind, 2)).await;
        session.follow(mode, &first, "next").await;
    }
    let wanted: [(List, &str, &[&str]); 5] = [
        (List::Events, "charge", &["charge", "code"]),
        (List::Events, "invoice", &["invoice", "code"]),
        (List::Charges, "status", &["charge", "status"]),
        (List::Invoices, "status", &["invoice", "status"]),
        (List::Charges, "payment_link", &["charge", "payment_link"]),
    ];
    for (list, name, path) in wanted {
        let found = Mode::BOTH.into_iter().rev().find_map(|mode| {
            let events = events(&session.recording, mode);
            let value = events.iter().find_map(|event| text_at(event, path))?;
            Some((mode, value.to_owned()))
        });
        if let Some((mode, value)) = found {
            session.page(mode, filtered(list, name, &value, LONG)).await;
        }
    }
}

/// A type that needs two pages of two, and that not every event has.
fn telling_type(session: &Session<'_>) -> Option<(Mode, String)> {
    let mut candidates = Vec::new();
    for mode in [Mode::Test, Mode::Live] {
        let events = events(&session.recording, mode);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for kind in events.iter().filter_map(|event: &Value| text_at(event, &["type"])) {
            *counts.entry(kind).or_default() += 1;
        }
        for (kind, count) in counts {
            let telling = count as u64 >= RECORDS_MIN && count < events.len();
            candidates.push((!telling, mode, kind.to_owned()));
        }
    }
    candidates.sort_by_key(|(dull, ..)| *dull);
    candidates.into_iter().next().map(|(_, mode, kind)| (mode, kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probes::session::path_of;

    #[track_caller]
    fn check(ask: &PageAsk, expected: &str) {
        assert_eq!(path_of(ask), expected);
    }

    #[test]
    fn a_page_is_asked_for_by_its_query() {
        check(&ask(List::Charges), "/v1/charges");
        check(&sized(List::Events, Some(2), 3), "/v1/events?per_page=3&page=2");
        check(&filtered(List::Events, "type", "charge.paid", 2), "/v1/events?type=charge.paid&per_page=2");
    }

    #[test]
    fn a_value_is_encoded_in_a_query() {
        check(&filtered(List::Charges, "status", "a b&c", 2), "/v1/charges?status=a+b%26c&per_page=2");
    }
}
