//! Bounds of `meta.total`, and the rows of filtered pages with equal totals, although records are created meanwhile.
//!
//! Records are created, but not deleted, except old events, and only their status changes. So the total of a list lies between
//! an earlier and a later one, and a list that is filtered by anything but a status has the same records whenever it has the
//! same total.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{
    ChargeInvoices, FilterScope, LIMIT_WINDOW, LONG_PAGE_SIZE, id_or_code, matches_filter,
};
use conformance_model::recording::{List, PageRequest, Purpose, Recording};
use conformance_model::verdict::CheckError;

use crate::check::Mismatch;
use crate::evidence::{PER_PAGE_DEFAULT, PageView, all_pages};

/// The time after which a record is in all lists, as the clock of the suite measures it.
const LIST_DELAY: Duration = LIMIT_WINDOW;
/// The minimum number of listed records that a filter excludes, for an upper bound of its total.
const EXCLUDED_MIN: u64 = 20;
/// The maximum number of pages on which a record was created between the count and the query of the rows.
const RACED_PAGES_MAX: usize = 1;

/// A list with its filters, in one mode.
type FilteredList = (List, Mode, Vec<(String, String)>);

/// Returns the pages of each list that have a total, with the totals, in the order of their requests.
fn totals_by_list<'s, 'a>(
    views: &'s [PageView<'a>],
    is_judged: impl Fn(&PageRequest) -> bool,
) -> BTreeMap<FilteredList, Vec<(&'s PageView<'a>, u64)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for view in views.iter().filter(|view| is_judged(&view.request)) {
        let mut filters = view.request.filters.clone();
        filters.sort();
        if let Some(total) = view.page.meta_number("total") {
            found.entry((view.request.list, view.mode, filters)).or_default().push((view, total));
        }
    }
    found
}

fn has_status_filter(request: &PageRequest) -> bool {
    request.filters.iter().any(|(name, _)| name == "status")
}

fn is_later_page(request: &PageRequest) -> bool {
    request.link.is_some() || request.page.is_some_and(|page| page > 1)
}

pub(crate) fn check_equal(name: &str, expected: u64, actual: u64) -> Result<(), Mismatch> {
    if expected == actual { Ok(()) } else { Err((format!("{name} {expected}"), format!("{name} {actual}"))) }
}

/// Compares the number of rows of a page with its numbers. `None` if one of these is missing or invalid.
pub(crate) fn compare_row_count(view: &PageView<'_>) -> Option<Result<(), Mismatch>> {
    Some(check_equal("rows:", view.numbers()?.row_count(), view.page.rows()?.len() as u64))
}

/// Compares `meta.last_page` with the other numbers of a page. An empty list has no page or one empty page.
pub(crate) fn compare_last_page(view: &PageView<'_>) -> Option<Result<(), Mismatch>> {
    let (numbers, last_page) = (view.numbers()?, view.page.meta_number("last_page")?);
    let expected = if numbers.total == 0 { last_page.min(1) } else { numbers.page_count() };
    Some(check_equal("meta.last_page", expected, last_page))
}

/// Compares the total of a first page with its rows, which are fewer than the requested ones, so that there is no other page.
/// `None` if there may be another page.
pub(crate) fn compare_only_page(view: &PageView<'_>) -> Option<Result<(), Mismatch>> {
    let (total, rows) = (view.page.meta_number("total")?, view.page.rows()?.len() as u64);
    let size = view.request.per_page.or_else(|| view.page.meta_number("per_page"))?;
    let is_only_page = !is_later_page(&view.request) && rows < size;
    is_only_page.then(|| check_equal("meta.total", rows, total))
}

/// Checks that `meta.last_page`, `meta.total` and the number of rows of a page are consistent.
pub(crate) fn check_counts(view: &PageView<'_>) -> Result<(), CheckError> {
    let total = view.page.meta_number("total").unwrap_or_default();
    for result in [compare_last_page(view), compare_row_count(view)].into_iter().flatten() {
        result.map_err(|(expected, actual)| {
            CheckError::violation(view.number(), format!("{expected} by a total of {total}"), actual)
        })?;
    }
    // Without numbers, the rows alone show the total.
    let only_page = compare_only_page(view).filter(|_| view.request.link.is_none());
    let result = only_page.unwrap_or(Ok(()));
    result.map_err(|(expected, actual)| CheckError::violation(view.number(), expected, actual))
}

/// Checks the numbers of the lists that were filtered by a value of another owner or by an unknown value.
pub(crate) fn check_counts_of_unknown_values(
    recording: &Recording,
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Result<(), CheckError> {
    let is_unknown = |view: &&PageView<'_>| {
        matches!(view.exchange.purpose, Purpose::Filter { .. }) && is_judged(&view.request)
    };
    all_pages(recording).iter().filter(is_unknown).try_for_each(check_counts)
}

/// Checks the totals of filtered lists against other pages, and the rows of those with equal totals.
pub(crate) fn check_total_bounds(
    views: &[PageView<'_>],
    pairs: &ChargeInvoices,
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Result<(), CheckError> {
    check_between_reads(views, &is_judged)?;
    check_excluded_records(views, pairs, &is_judged)?;
    check_same_rows(views, &is_judged)
}

/// Returns `true` if a page may continue an older first page, whose total it then has.
fn may_continue_older_page(reads: &[(&PageView<'_>, u64)], (view, total): (&PageView<'_>, u64)) -> bool {
    is_later_page(&view.request)
        && reads.iter().any(|(other, older)| {
            other.number() < view.number() && !is_later_page(&other.request) && *older == total
        })
}

/// Checks that the total of each page lies between those of the same list at least a minute before and a minute later. A page
/// that may continue an older first page is not judged, and is no later bound. Old events may be deleted, so a total of events
/// counts only if it differs by a factor of two. Not judged with a filter by status.
pub(crate) fn check_between_reads(
    views: &[PageView<'_>],
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Result<(), CheckError> {
    let lists = totals_by_list(views, |request| is_judged(request) && !has_status_filter(request));
    for ((list, ..), reads) in &lists {
        for (view, total) in reads.iter().filter(|read| !may_continue_older_page(reads, **read)) {
            let mut before = reads.iter().filter(|(other, _)| {
                other.number() < view.number()
                    && other.exchange.ended.saturating_add(LIST_DELAY) <= view.exchange.sent
            });
            let mut after = reads.iter().filter(|(other, total)| {
                other.number() > view.number()
                    && other.exchange.sent >= view.exchange.ended.saturating_add(LIST_DELAY)
                    && !may_continue_older_page(reads, (other, *total))
            });
            let (Some((_, before)), Some((_, after))) = (before.next_back(), after.next()) else { continue };
            let (least, most) = (before.min(after), before.max(after));
            let may_be_deleted =
                *list == List::Events && total.saturating_mul(2) > *least && *total < most.saturating_mul(2);
            if !(least..=most).contains(&total) && !may_be_deleted {
                let expected =
                    format!("meta.total from {least} to {most}, as a minute before and a minute later");
                return Err(CheckError::violation(view.number(), expected, format!("meta.total {total}")));
            }
        }
    }
    Ok(())
}

/// Checks that the total of no filtered page counts records that the filter excludes: those of its list that earlier pages
/// show. Half of them are the tolerance for records that are not in all lists yet. Another page with the same filters must
/// have a total that is smaller by more than that. Not judged with a filter by status.
fn check_excluded_records(
    views: &[PageView<'_>],
    pairs: &ChargeInvoices,
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Result<(), CheckError> {
    let is_filtered = |request: &PageRequest| !request.filters.is_empty() && !has_status_filter(request);
    for view in views.iter().filter(|view| is_filtered(&view.request) && is_judged(&view.request)) {
        let of_list = || {
            views.iter().filter(|other| (other.mode, other.request.list) == (view.mode, view.request.list))
        };
        let Some(total) = view.page.meta_number("total") else { continue };
        let is_excluded = |row: &&Value| {
            view.request.filters.iter().any(|(name, value)| {
                matches_filter(view.request.list, row, name, value, FilterScope::Wide, pairs) == Some(false)
            })
        };
        let earlier = of_list().filter(|other| other.number() < view.number());
        let excluded: BTreeSet<String> =
            earlier.flat_map(PageView::rows).filter(is_excluded).filter_map(id_or_code).collect();
        let excluded = excluded.len() as u64;
        // Replicas may lag, so the largest total of the next minute counts.
        let is_in_time = |other: &&PageView<'_>| {
            other.has_only_page_and_size()
                && other.exchange.sent <= view.exchange.ended.saturating_add(LIST_DELAY)
        };
        let unfiltered = || of_list().filter(is_in_time);
        let is_later = |other: &PageView<'_>| {
            other.number() > view.number() && other.exchange.sent >= view.exchange.ended
        };
        let whole = unfiltered().filter_map(|other| other.page.meta_number("total")).max();
        let Some(whole) = whole.filter(|_| unfiltered().any(is_later) && excluded >= EXCLUDED_MIN) else {
            continue;
        };
        // All totals of the filter may come from an index that is ahead of the unfiltered list.
        let has_smaller_total = of_list()
            .filter(|other| other.request.filters == view.request.filters)
            .any(|other| other.page.meta_number("total").is_some_and(|other| other + excluded / 2 < total));
        if has_smaller_total && total + excluded / 2 > whole {
            let expected = format!("a meta.total without the {excluded} listed records that do not match");
            let actual = format!("meta.total {total}, and {whole} without filters");
            return Err(CheckError::violation(view.number(), expected, actual));
        }
    }
    Ok(())
}

/// Checks that the rows of a filtered page are those of the first long page with the same filters and the same total, at the
/// same position. A single page proves nothing: its total may have been counted before a record was created. Not judged
/// with a filter by status, nor if old events were deleted: then a total of events fell.
fn check_same_rows(
    views: &[PageView<'_>],
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Result<(), CheckError> {
    let lists = totals_by_list(views, |request| {
        is_judged(request)
            && request.link.is_none()
            && !request.filters.is_empty()
            && !has_status_filter(request)
    });
    let shrunken_modes = modes_with_deleted_events(views);
    let mut differing = Vec::new();
    for ((list, mode, _), reads) in &lists {
        if *list == List::Events && shrunken_modes.contains(mode) {
            continue;
        }
        let is_long = |view: &PageView<'_>| {
            view.request.per_page == Some(LONG_PAGE_SIZE) && view.request.page.is_none_or(|page| page == 1)
        };
        for (view, total) in reads.iter().filter(|(view, _)| !is_long(view)) {
            let mut long_pages =
                reads.iter().filter(|(other, other_total)| is_long(other) && other_total == total);
            let Some((long, _)) = long_pages.next() else { continue };
            // A later page may continue an older first page.
            let continues_other_page = reads.iter().any(|(other, older)| {
                other.number() < view.number() && !is_later_page(&other.request) && older != total
            });
            if continues_other_page {
                continue;
            }
            differing.extend(first_difference(view, long).map(|difference| (*view, difference)));
        }
    }
    differing.sort_by_key(|(view, _)| view.number());
    match differing.into_iter().nth(RACED_PAGES_MAX) {
        Some((view, (expected, actual))) => Err(CheckError::violation(view.number(), expected, actual)),
        None => Ok(()),
    }
}

/// Returns the modes in which the total of a list of events fell. A later page may have the total of an older first page.
fn modes_with_deleted_events(views: &[PageView<'_>]) -> BTreeSet<Mode> {
    let lists = totals_by_list(views, |request| request.list == List::Events && !is_later_page(request));
    let has_fallen = |pair: &[(&PageView<'_>, u64)]| {
        let [(earlier, total), (later, later_total)] = [pair[0], pair[1]];
        later.exchange.sent >= earlier.exchange.ended && later_total < total
    };
    lists
        .iter()
        .filter(|(_, reads)| reads.windows(2).any(has_fallen))
        .map(|((_, mode, _), _)| *mode)
        .collect()
}

/// Returns the first record of a page that differs from a long page at the same position: the expected and the actual one.
/// `None` if a record has no identifier, or if the page has another size than requested.
fn first_difference(view: &PageView<'_>, long: &PageView<'_>) -> Option<(String, String)> {
    let size = view.request.per_page.unwrap_or(PER_PAGE_DEFAULT);
    if view.page.meta_number("per_page") != Some(size) {
        return None;
    }
    let ids = |view: &PageView<'_>| view.rows().iter().map(id_or_code).collect::<Option<Vec<String>>>();
    let (shown, listed) = (ids(view)?, ids(long)?);
    let from = view.request.page.unwrap_or(1).saturating_sub(1).checked_mul(size)?;
    let expected = listed.iter().skip(usize::try_from(from).ok()?).take(usize::try_from(size).ok()?);
    let (number, (expected, actual)) =
        (from + 1..).zip(expected.zip(&shown)).find(|(_, (expected, actual))| expected != actual)?;
    Some((format!("{expected} as record {number}, as at {}", long.exchange.target), actual.clone()))
}
