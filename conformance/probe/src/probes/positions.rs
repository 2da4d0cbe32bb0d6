//! Requests for the pages of a list that cover all kinds of positions: first, middle, last, past a default page.

use std::collections::BTreeSet;

use conformance_model::recording::{List, PageRequest};

pub(super) use conformance_model::reading::LONG_PAGE_SIZE;
/// The page size without the parameter `per_page`.
const DEFAULT_PAGE_SIZE: u64 = 25;
/// The most long pages of a list that a burst reads.
const LONG_PAGES_MAX: u64 = 3;
/// Small page sizes: 1, and two that do not divide all totals.
const SMALL_PAGE_SIZES: [u64; 3] = [1, 3, 7];

/// Returns the request of a list without parameters.
pub(super) fn default_request(list: List) -> PageRequest {
    PageRequest { list, filters: Vec::new(), page: None, per_page: None, link: None }
}

/// Returns the request of a page of this size.
pub(super) fn sized_request(list: List, page: Option<u64>, per_page: u64) -> PageRequest {
    PageRequest { page, per_page: Some(per_page), ..default_request(list) }
}

/// Returns the request of the first page of a filtered list.
pub(super) fn filtered_request(list: List, filters: &[(&str, &str)], per_page: u64) -> PageRequest {
    let filters = filters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    PageRequest { filters, ..sized_request(list, None, per_page) }
}

/// Returns the requests of the pages of a list that a burst reads.
pub(super) fn burst_pages(list: List, total: u64) -> Vec<PageRequest> {
    let mut requests = Vec::new();
    let last = total.div_ceil(DEFAULT_PAGE_SIZE);
    requests.extend(
        existing_pages([2, last.div_ceil(2), last], last, 2).map(|page| numbered_request(list, page)),
    );
    for size in SMALL_PAGE_SIZES {
        let last = total.div_ceil(size);
        // The last page and a middle one come first, because a burst may end before all are read.
        let pages = existing_pages([1, 2, 3, last.div_ceil(2), last], last, 1);
        requests.extend(pages.rev().map(|page| sized_request(list, Some(page), size)));
    }
    requests
}

/// Returns the requests of the long pages after the first.
pub(super) fn long_pages(list: List, total: u64) -> impl Iterator<Item = PageRequest> {
    (2..=total.div_ceil(LONG_PAGE_SIZE).min(LONG_PAGES_MAX))
        .map(move |page| sized_request(list, Some(page), LONG_PAGE_SIZE))
}

/// Returns the fewest pages that cover all kinds of positions: a middle page of an odd size first, a later page of
/// the default size, one of size 1, and the last page of a size that divides the total.
pub(super) fn covering_pages(list: List, total: u64) -> Vec<PageRequest> {
    const MIDDLE_PAGE_MIN: u64 = 4;
    let odd = [7, 5, 3].into_iter().find(|size| total.div_ceil(*size) > MIDDLE_PAGE_MIN);
    let (middle_size, middle_page) = odd.map_or((2, 2), |size| {
        let last = total.div_ceil(size);
        (size, last.div_ceil(2).max(MIDDLE_PAGE_MIN))
    });
    let mut requests = vec![sized_request(list, Some(middle_page), middle_size)];
    requests.push(match total > DEFAULT_PAGE_SIZE {
        true => numbered_request(list, 2),
        false => sized_request(list, Some(2), odd.unwrap_or(1)),
    });
    requests.push(sized_request(list, Some(3), 1));
    if (DEFAULT_PAGE_SIZE + 1..=2 * DEFAULT_PAGE_SIZE).contains(&total) {
        // The second page of the default size is the last one, so a second page is read that is not.
        requests.push(sized_request(list, Some(2), 1));
    }
    if let Some(divisor) = (2..=LONG_PAGE_SIZE).find(|size| total.is_multiple_of(*size)) {
        requests.push(sized_request(list, Some(total / divisor), divisor));
    }
    requests
}

/// Returns the request of a page of the default size.
fn numbered_request(list: List, page: u64) -> PageRequest {
    PageRequest { page: Some(page), ..default_request(list) }
}

/// Returns those of the page numbers that are in `first..=last`, in order, each once.
fn existing_pages<const N: usize>(
    pages: [u64; N],
    last: u64,
    first: u64,
) -> impl DoubleEndedIterator<Item = u64> {
    BTreeSet::from(pages).into_iter().filter(move |page| (first..=last).contains(page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request_paths::page_path;

    #[track_caller]
    fn check_covering_pages(total: u64, expected: &[&str]) {
        let found: Vec<_> = covering_pages(List::Charges, total).iter().map(page_path).collect();
        let expected: Vec<_> = expected.iter().map(|query| format!("/v1/charges?{query}")).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn covering_pages_include_every_kind_of_position() {
        check_covering_pages(64, &["per_page=7&page=5", "page=2", "per_page=1&page=3", "per_page=2&page=32"]);
        let last_is_second = ["per_page=7&page=4", "page=2", "per_page=1&page=3", "per_page=1&page=2"];
        check_covering_pages(32, &[&last_is_second[..], &["per_page=2&page=16"]].concat());
        check_covering_pages(
            13,
            &["per_page=3&page=4", "per_page=3&page=2", "per_page=1&page=3", "per_page=13&page=1"],
        );
        check_covering_pages(
            3,
            &["per_page=2&page=2", "per_page=1&page=2", "per_page=1&page=3", "per_page=3&page=1"],
        );
    }

    #[test]
    fn pages_that_do_not_exist_are_not_read() {
        let pages = |total| burst_pages(List::Events, total).len();
        assert_eq!((pages(1), pages(3), pages(225)), (3, 5, 18));
        assert_eq!(long_pages(List::Events, 225).count(), 2);
        assert_eq!(long_pages(List::Events, 100).count(), 0);
    }

    #[track_caller]
    fn check_query(request: &PageRequest, expected: &str) {
        assert_eq!(page_path(request), expected);
    }

    #[test]
    fn a_page_is_requested_by_its_query() {
        check_query(&default_request(List::Charges), "/v1/charges");
        check_query(&sized_request(List::Events, Some(2), 3), "/v1/events?per_page=3&page=2");
        let paid = [("type", "charge.paid"), ("charge", "k3")];
        check_query(
            &filtered_request(List::Events, &paid, 2),
            "/v1/events?type=charge%2Epaid&charge=k3&per_page=2",
        );
    }

    #[test]
    fn a_value_is_encoded_in_a_query() {
        check_query(
            &filtered_request(List::Charges, &[("status", "a b&c")], 2),
            "/v1/charges?status=a+b%26c&per_page=2",
        );
    }
}
