//! The order of records, which is the same on all pages of a list, and the records that a page omits.
//!
//! Records keep their order, so pages can be compared even if records are created between their reads. A record that later
//! pages lack may have been removed, and does not count as omitted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::reading::{ChargeInvoices, FilterScope, id_or_code, matches_filter};
use conformance_model::recording::{List, PageRequest};
use conformance_model::verdict::CheckError;

use crate::diff::{LIST_DELAY_MAX, LISTED_KINDS, is_unchanged_before};
use crate::evidence::{PER_PAGE_DEFAULT, PER_PAGE_MAX, PageView, first_long_page_reads, recorded_at};

/// Returns the ids or codes of a page's records; `None` if a record has neither, or if one occurs twice.
fn unique_ids(view: &PageView<'_>) -> Option<Vec<String>> {
    let ids: Vec<String> = view.page.rows()?.iter().map(id_or_code).collect::<Option<_>>()?;
    let distinct: BTreeSet<_> = ids.iter().collect();
    (distinct.len() == ids.len()).then_some(ids)
}

/// Returns the position of each record on a page.
fn positions(ids: &[String]) -> BTreeMap<&str, usize> {
    ids.iter().enumerate().map(|(position, id)| (id.as_str(), position)).collect()
}

/// A page with the ids of its records.
type IdentifiedPage<'s, 'a> = (&'s PageView<'a>, Vec<String>);

/// Returns a page with the ids of its records, if they are unique.
fn identified_page<'s, 'a>(view: &'s PageView<'a>) -> Option<IdentifiedPage<'s, 'a>> {
    Some((view, unique_ids(view)?))
}

/// Returns `true` if two pages belong to the same list of the same mode.
fn are_of_same_list(first: &PageView<'_>, second: &PageView<'_>) -> bool {
    (first.mode, first.request.list) == (second.mode, second.request.list)
}

/// Returns the unfiltered long pages, each with the ids of its records.
fn long_pages<'s, 'a>(views: &'s [PageView<'a>]) -> Vec<IdentifiedPage<'s, 'a>> {
    let is_long =
        |view: &&PageView<'_>| view.has_only_page_and_size() && view.request.per_page == Some(PER_PAGE_MAX);
    views.iter().filter(is_long).filter_map(identified_page).collect()
}

/// Checks that two records have the same order on all pages of a list, with filters and without.
pub(super) fn check_same_order(
    views: &[PageView<'_>],
    is_judged: impl Fn(List) -> bool,
) -> Result<(), CheckError> {
    let judged: Vec<_> =
        views.iter().filter(|view| is_judged(view.request.list)).filter_map(identified_page).collect();
    for (reference, reference_ids) in &long_pages(views) {
        let positions = positions(reference_ids);
        for (view, ids) in judged.iter().filter(|(view, _)| are_of_same_list(view, reference)) {
            let known: Vec<_> = ids.iter().filter_map(|id| Some((id, positions.get(id.as_str())?))).collect();
            let reversed = known.windows(2).find(|pair| pair[0].1 > pair[1].1);
            if let Some([(above, _), (below, _)]) = reversed {
                return Err(CheckError::violation(
                    view.number(),
                    format!("{below} above {above}, as at {}", reference.exchange.target),
                    format!("{above} above {below}"),
                ));
            }
        }
    }
    Ok(())
}

/// A record that a page omits, although its filters select it and its neighbors show that it belongs there.
pub(super) struct OmittedRecord<'s> {
    pub(super) id: String,
    /// The earlier page without filters that contains the record.
    pub(super) listed_at: &'s str,
}

/// Returns the first page with such a request that omits a record, and the record.
pub(super) fn first_omission<'s, 'a>(
    views: &'s [PageView<'a>],
    pairs: &ChargeInvoices,
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Option<(&'s PageView<'a>, OmittedRecord<'s>)> {
    let long_pages = long_pages(views);
    let mut judged = views.iter().filter(|view| is_judged(&view.request));
    judged.find_map(|view| Some((view, omitted_record(views, &long_pages, view, pairs)?)))
}

/// Returns a record that a page omits: an earlier page without filters, one of `long_pages`, contains it, and this page
/// has newer and older ones. An end of the list counts as a neighbor, but new records may be missing at its head for a
/// minute.
fn omitted_record<'s>(
    views: &[PageView<'_>],
    long_pages: &[IdentifiedPage<'s, '_>],
    view: &PageView<'_>,
    pairs: &ChargeInvoices,
) -> Option<OmittedRecord<'s>> {
    let size = view.request.per_page.unwrap_or(PER_PAGE_DEFAULT);
    if view.request.link.is_some() || view.page.meta_number("per_page") != Some(size) {
        return None;
    }
    let ids = unique_ids(view)?;
    let shown: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let is_first_page = view.request.page.unwrap_or(1) == 1;
    let is_last_page = (ids.len() as u64) < size && (is_first_page || !ids.is_empty());
    // By the times of the records: the newest one was visible on an earlier page.
    let earlier_pages =
        long_pages.iter().filter(|(page, _)| are_of_same_list(page, view) && page.number() < view.number());
    let newest = earlier_pages.flat_map(|(page, _)| page.rows()).filter_map(recorded_at).max();
    let is_older_by_a_minute = |row: &Value| {
        recorded_at(row).zip(newest).is_some_and(|(created, newest)| created + LIST_DELAY_MAX < newest)
    };
    for (earlier, earlier_ids) in long_pages {
        let is_comparable = are_of_same_list(earlier, view)
            && earlier.number() < view.number()
            && earlier.exchange.ended <= view.exchange.sent;
        if !is_comparable {
            continue;
        }
        let is_shown = |id: &String| shown.contains(id.as_str());
        let (first, last) = (earlier_ids.iter().position(is_shown), earlier_ids.iter().rposition(is_shown));
        // Lists may identify their items by different fields.
        if first.is_none() && !ids.is_empty() {
            continue;
        }
        // By the clock of the suite: the `Date` of a server may be wrong.
        let is_old = LIST_DELAY_MAX <= view.exchange.sent.saturating_sub(earlier.exchange.ended);
        let is_omitted = |(position, row): &(usize, &Value)| {
            let has_newer = first.is_some_and(|first| first < *position);
            let has_older = last.is_some_and(|last| *position < last);
            !shown.contains(earlier_ids[*position].as_str())
                && (has_newer || is_first_page && (is_old || is_older_by_a_minute(row)))
                && (has_older || is_last_page)
                && is_selected(views, view, row, pairs)
                && is_still_listed(long_pages, view, &earlier_ids[*position..])
        };
        let omitted = earlier.rows().iter().enumerate().find(is_omitted);
        if let Some((position, _)) = omitted {
            return Some(OmittedRecord {
                id: earlier_ids[position].clone(),
                listed_at: &earlier.exchange.target,
            });
        }
    }
    None
}

/// Returns `true` if the later long pages show that a record was not removed. For an unfiltered page, one of them must
/// contain the record. For a filtered page, there must be one, and no first page may lack it and contain an older record.
/// `ids`: the record and older ones.
fn is_still_listed(long_pages: &[IdentifiedPage<'_, '_>], view: &PageView<'_>, ids: &[String]) -> bool {
    let Some((record, older)) = ids.split_first() else { return false };
    let mut later = long_pages
        .iter()
        .filter(|(page, _)| are_of_same_list(page, view) && page.number() > view.number())
        .peekable();
    if view.request.filters.is_empty() {
        return later.any(|(_, shown)| shown.contains(record));
    }
    later.peek().is_some()
        && later.all(|(page, shown)| {
            let is_first_page = page.request.page.unwrap_or(1) == 1;
            shown.contains(record) || !(is_first_page && older.iter().any(|id| shown.contains(id)))
        })
}

/// Returns `true` if the filters of a page select a record in every valid interpretation. A status must have been the
/// same for a long time, and in the next read of the list.
fn is_selected(views: &[PageView<'_>], view: &PageView<'_>, row: &Value, pairs: &ChargeInvoices) -> bool {
    let list = view.request.list;
    let matches = |row: &Value, (name, value): &(String, String)| {
        matches_filter(list, row, name, value, FilterScope::Narrow, pairs) == Some(true)
    };
    let has_status_filter = view.request.filters.iter().any(|(name, _)| name == "status");
    view.request.filters.iter().all(|filter| matches(row, filter))
        && (!has_status_filter || {
            let later = first_long_page_reads(views, list, view.mode)
                .find(|later| later.number() > view.number() && later.exchange.sent >= view.exchange.ended);
            let mut rows = later.into_iter().flat_map(PageView::rows);
            let same = rows.find(|other| id_or_code(other) == id_or_code(row));
            let is_unchanged =
                LISTED_KINDS.iter().filter(|(listed, _)| *listed == list).any(|(_, member)| {
                    let event = serde_json::json!({ *member: { "code": row.get("code") } });
                    is_unchanged_before(views, view.mode, &event, view.exchange)
                });
            is_unchanged
                && same.is_some_and(|same| view.request.filters.iter().all(|filter| matches(same, filter)))
        })
}
