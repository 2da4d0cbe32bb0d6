//! The lists: default pages, long pages, small pages and links.

use std::collections::BTreeMap;

use conformance_model::budget::Cost;
use conformance_model::recording::{List, PageAsk};
use conformance_model::words::Mode;

use crate::session::Session;

/// Either key may turn out to have the fuller lists.
pub(crate) const COST: Cost = Cost { live: 22, test: 23, other: 0, total: 26 };
pub(super) const LONG: u64 = 100;
const OUT_OF_RANGE: u64 = 101;
/// With fewer records there is no second page.
pub(crate) const RECORDS_MIN: u64 = 3;

fn ask(list: List) -> PageAsk {
    PageAsk { list, filters: Vec::new(), page: None, per_page: None, link: None }
}

pub(super) fn sized(list: List, page: Option<u64>, per_page: u64) -> PageAsk {
    PageAsk { page, per_page: Some(per_page), ..ask(list) }
}

pub(super) fn filtered(list: List, filters: &[(&str, &str)], per_page: u64) -> PageAsk {
    let filters = filters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    PageAsk { filters, ..sized(list, None, per_page) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::path_of;

    #[track_caller]
    fn check(ask: &PageAsk, expected: &str) {
        assert_eq!(path_of(ask), expected);
    }

    #[test]
    fn a_page_is_asked_for_by_its_query() {
        check(&ask(List::Charges), "/v1/charges");
        check(&sized(List::Events, Some(2), 3), "/v1/events?per_page=3&page=2");
        let paid = [("type", "charge.paid"), ("charge", "k3")];
        check(&filtered(List::Events, &paid, 2), "/v1/events?type=charge.paid&charge=k3&per_page=2");
    }

    #[test]
    fn a_value_is_encoded_in_a_query() {
        check(&filtered(List::Charges, &[("status", "a b&c")], 2), "/v1/charges?status=a+b%26c&per_page=2");
    }
}
