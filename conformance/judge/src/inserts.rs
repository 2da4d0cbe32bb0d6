//! Chapter "paging": the stability of pages while records are created.
//!
//! A client can page by number or by `links.next`. A skipped record violates `paging.stable`; a repeated or new record
//! on a later page violates only `paging.stable_literal`, the literal interpretation.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::mode::Mode;
use conformance_model::reading::{Page, cache_evidence, id_or_code, page_request, text_at};
use conformance_model::recording::{Caller, Exchange, List, Purpose, Recording, Step};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{PageView, compared_pages, first_long_page_reads, recorded_at, response_date};
use super::{links, paging};
use crate::check::Check;
use crate::diff::LIST_DELAY_MAX;

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Inserts];

/// The statements that are preconditions for comparing pages.
const PRECONDITIONS: [&str; 6] = [
    "paging.per_page",
    "paging.current_page",
    "paging.length",
    "paging.joined",
    "paging.links_lead",
    "paging.links_keep_size",
];

pub(super) const CHECKS: &[Check] = &[
    Check::new("paging.stable", NEEDS, judge_no_record_lost),
    Check::new("paging.stable_literal", NEEDS, judge_pages_not_shifted),
];

/// A list that was read page by page while records were created.
struct PageWalk {
    list: List,
    /// The type of the events, if they were filtered by it.
    event_type: Option<String>,
    /// "by page number" or "by links".
    paging_method: &'static str,
    /// The ids of the records of the list when its first page was read, newest first.
    before: Vec<String>,
    /// The ids on each page, with the number of the page's exchange.
    pages: Vec<(u32, Vec<String>)>,
    /// The ids on the first long page after the last creation, with the number of its exchange; `None` if it was not
    /// read again.
    final_read: Option<(u32, Vec<String>)>,
}

/// The paging method that follows `links.next`.
const BY_LINKS: &str = "by links";

/// The result of a walk.
enum WalkResult {
    /// The pages are the same as without creations.
    Unshifted,
    /// No record is skipped, but a page has `record`, which is repeated or new. "another order" if only the order
    /// differs.
    Shifted { exchange: u32, record: String },
    /// A record is on no page up to that of `exchange`, which has an older record.
    Lost { exchange: u32, id: String },
}

impl PageWalk {
    /// Returns the name of the list and its filter.
    fn list_name(&self) -> String {
        let filter = self.event_type.iter().map(|kind| format!(" of type {kind}"));
        filter.fold(self.list.as_str().to_owned(), |name, filter| name + &filter)
    }

    fn result(&self) -> WalkResult {
        let size = self.pages.first().map_or(0, |(_, rows)| rows.len());
        let mut shifted = None;
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (index, (exchange, rows)) in self.pages.iter().enumerate() {
            let from = (index * size).min(self.before.len());
            let expected = &self.before[from..self.before.len().min(from + size)];
            if rows[..] != *expected && shifted.is_none() {
                let differing = rows.iter().find(|id| !expected.contains(id));
                shifted = Some((*exchange, differing.cloned().unwrap_or_else(|| "another order".into())));
            }
            // All earlier records must have been on this page or an earlier one.
            for id in rows {
                if let Some(position) = self.before.iter().position(|listed| listed == id)
                    && let Some(lost) = self.before[..position]
                        .iter()
                        .find(|listed| !seen.contains(listed.as_str()) && !rows.contains(listed))
                {
                    return WalkResult::Lost { exchange: *exchange, id: lost.clone() };
                }
            }
            seen.extend(rows.iter().map(String::as_str));
        }
        match shifted {
            None => WalkResult::Unshifted,
            Some((exchange, record)) => WalkResult::Shifted { exchange, record },
        }
    }

    /// Returns a new record below an old one in the final read, with the number of the exchange.
    fn misplaced_record(&self) -> Option<(u32, &str)> {
        let (exchange, rows) = self.final_read.as_ref()?;
        let old: BTreeSet<_> = self.before.iter().collect();
        let new_count = rows.iter().take_while(|id| !old.contains(id)).count();
        // Below the last known record, the long page may have older ones that were not read before.
        let last_old = rows.iter().rposition(|id| old.contains(id))?;
        let misplaced = rows[new_count..last_old.max(new_count)].iter().find(|id| !old.contains(id))?;
        Some((*exchange, misplaced))
    }
}

/// Returns the step that reads a page by its number.
type StepOfPage = fn(u64) -> Step;

/// Returns the ids or codes of a page's records. `None` if a record has neither: its loss could not be detected.
fn ids(page: &Page) -> Option<Vec<String>> {
    page.rows()?.iter().map(id_or_code).collect()
}

/// Returns the walks during which the suite created records, in lists that grew.
fn walks_with_own_inserts(recording: &Recording) -> Vec<PageWalk> {
    let mut walks = Vec::new();
    for list in List::ALL {
        let read = |step: Step| -> Option<(u32, Vec<String>)> {
            let purpose = Purpose::DuringInserts { list, step };
            let exchange = recording
                .find_last(|exchange| exchange.purpose == purpose && exchange.status() == Some(200))?;
            Some((exchange.number, ids(&Page::from_exchange(exchange)?)?))
        };
        let (Some((_, before)), Some(first), Some(after)) =
            (read(Step::LongPageBefore), read(Step::FirstPage), read(Step::LongPageAfter))
        else {
            continue;
        };
        let Some(before) = list_before_paging(&before, &first.1) else { continue };
        if after.1.iter().all(|id| before.contains(id)) {
            continue;
        }
        let methods: [(&'static str, StepOfPage); 2] =
            [("by page number", |page| Step::ByNumber { page }), (BY_LINKS, |page| Step::ByLink { page })];
        for (method, step) in methods {
            let later: Vec<_> = (2..).map_while(|page| read(step(page))).collect();
            if later.is_empty() {
                continue;
            }
            let pages = [vec![first.clone()], later].concat();
            walks.push(PageWalk {
                list,
                event_type: None,
                paging_method: method,
                before: before.clone(),
                pages,
                final_read: Some(after.clone()),
            });
        }
    }
    walks
}

/// Returns the walk through the events of one type, if such events were created meanwhile. `None` if a page has other
/// events or another size, because other statements judge the filter and the links.
fn filtered_walk(recording: &Recording) -> Option<PageWalk> {
    let read = |step: Step| {
        let purpose = Purpose::DuringInserts { list: List::Events, step };
        let exchange =
            recording.find_last(|exchange| exchange.purpose == purpose && exchange.status() == Some(200))?;
        Some((exchange, Page::from_exchange(exchange)?))
    };
    let (first, first_page) = read(Step::FilteredFirstPage)?;
    let (second, second_page) = read(Step::FilteredByLink)?;
    let [(_, long_page), (_, final_page)] = [read(Step::LongPageBefore)?, read(Step::LongPageAfter)?];
    let filters = page_request(first)?.filters;
    let [(_, event_type)] = &filters[..] else { return None };
    let is_of_type = |row: &&Value| text_at(row, &["type"]) == Some(event_type);
    let ids_of_type = |page: &Page| -> Option<Vec<String>> {
        page.rows()?.iter().filter(is_of_type).map(id_or_code).collect()
    };
    let (on_first, on_second) = (ids(&first_page)?, ids(&second_page)?);
    let is_filtered = [(&first_page, &on_first), (&second_page, &on_second)]
        .iter()
        .all(|(page, all)| ids_of_type(page).as_ref() == Some(all));
    let before = list_before_paging(&ids_of_type(&long_page)?, &on_first)?;
    // The long page must show the records of both pages.
    let is_comparable = on_second.len() <= on_first.len() && on_first.len() * 2 <= before.len();
    let has_grown = ids_of_type(&final_page)?.iter().any(|id| !before.contains(id));
    let is_recent = first_page
        .rows()?
        .first()
        .and_then(recorded_at)
        .zip(response_date(first))
        .is_some_and(|(created, read)| read < created + LIST_DELAY_MAX);
    let walk = PageWalk {
        list: List::Events,
        event_type: Some(event_type.clone()),
        paging_method: BY_LINKS,
        before,
        pages: vec![(first.number, on_first), (second.number, on_second)],
        final_read: None,
    };
    // Another replica may not have a recent record yet, so that its pages start with older ones.
    let may_lag = is_recent && matches!(walk.result(), WalkResult::Lost { .. });
    (is_filtered && is_comparable && has_grown && !may_lag).then_some(walk)
}

/// Returns the list at the time of the first small page, from the long page that was read before it. Another client may
/// have created records in between. `None` if the first page shows only new ones, because there may be more, or if its
/// other records are not the first ones of the long page.
fn list_before_paging(listed_before: &[String], first: &[String]) -> Option<Vec<String>> {
    let created_count = first.iter().take_while(|id| !listed_before.contains(id)).count();
    let is_continued = created_count < first.len() && listed_before.starts_with(&first[created_count..]);
    is_continued.then(|| [&first[..created_count], listed_before].concat())
}

/// Returns the walks in which another client created records between the first and the second page.
fn walks_with_other_inserts(recording: &Recording) -> Vec<PageWalk> {
    let views = compared_pages(recording);
    let mut walks = Vec::new();
    for second in views.iter().filter(|view| view.has_only_page_and_size() && view.request.page == Some(2)) {
        let of_list = |view: &&PageView<'_>| {
            view.has_only_page_and_size()
                && (view.mode, view.request.list, view.request.per_page)
                    == (second.mode, second.request.list, second.request.per_page)
        };
        let mut earlier = views.iter().filter(of_list).filter(|view| view.number() < second.number());
        let first = earlier.rfind(|view| view.request.page.unwrap_or(1) == 1);
        // The last read of the first long page before the second page.
        let before = first_long_page_reads(&views, second.request.list, second.mode)
            .rfind(|view| view.number() < second.number());
        let (Some(first), Some(before)) = (first, before) else { continue };
        let [Some(known), Some(on_first), Some(on_second)] =
            [before, first, second].map(|view| ids(&view.page))
        else {
            continue;
        };
        let has_grown = second.page.meta_number("total") > first.page.meta_number("total");
        if let Some(known) = list_before_paging(&known, &on_first).filter(|_| has_grown) {
            let pages = vec![(first.number(), on_first), (second.number(), on_second)];
            walks.push(PageWalk {
                list: second.request.list,
                event_type: None,
                paging_method: "by page number",
                before: known,
                pages,
                final_read: None,
            });
        }
    }
    walks
}

/// Checks the preconditions: pages that are inconsistent without creations cannot be judged with them.
fn check_preconditions(recording: &Recording) -> Result<(), CheckError> {
    let preconditions =
        paging::CHECKS.iter().chain(links::CHECKS).filter(|check| PRECONDITIONS.contains(&check.id));
    for check in preconditions {
        if let Err(CheckError::Violation(_)) = (check.judge)(recording) {
            return Err(CheckError::unjudged(
                "pages are inconsistent even while nothing is created",
                format!("see {}", check.id),
            ));
        }
    }
    Ok(())
}

fn page_walks(recording: &Recording) -> Result<Vec<PageWalk>, CheckError> {
    check_preconditions(recording)?;
    let mut walks = walks_with_own_inserts(recording);
    walks.extend(walks_with_other_inserts(recording));
    walks.extend(filtered_walk(recording));
    if !walks.is_empty() {
        return Ok(walks);
    }
    let inserts = &recording.inserts;
    if let Some(error) = inserts.errors.first() {
        return Err(CheckError::unjudged(
            format!("nothing was created while the suite paged: {error}"),
            "set `check.create` in chargeproof.toml to a call that works, or fix the hook",
        ));
    }
    let latest = recording.find_last(|exchange| matches!(exchange.purpose, Purpose::DuringInserts { .. }));
    match latest {
        None => Err(CheckError::unjudged(
            "nothing was created while the suite paged",
            "pass --allow-writes (two charges are opened in test mode), name a command with --hook, or pass \
             --without inserts",
        )),
        Some(_) if !has_first_small_page(recording) => Err(CheckError::unjudged(
            "no list of the test mode has 3 or more records",
            "open and cancel a few charges with the test key's account, then check again",
        )),
        Some(_) => Err(CheckError::unjudged(
            format!("no list grew, although {} should have created a record", inserts.options.join(" and ")),
            "create the record in test mode, and let the command return once it is listed: the suite reads the lists right \
             after it",
        )),
    }
}

/// Returns `true` if a small first page was requested: only lists with enough records are paged.
fn has_first_small_page(recording: &Recording) -> bool {
    let is_first_page = |exchange: &Exchange| {
        matches!(exchange.purpose, Purpose::DuringInserts { step: Step::FirstPage, .. })
    };
    recording
        .find_last(|exchange| is_first_page(exchange) && exchange.caller == Caller::Own(Mode::Test))
        .is_some()
}

/// Returns a list in which a record was created, but which had no new record in two or more later
/// reads, with the exchange number of the last one.
fn unchanged_list(recording: &Recording) -> Option<(u32, List)> {
    let grown: BTreeSet<_> = recording.exchanges.iter().filter_map(Exchange::created_in).collect();
    grown.into_iter().find_map(|list| {
        let read = |step: Step| {
            let purpose = Purpose::DuringInserts { list, step };
            let served = recording.exchanges.iter().filter(move |exchange| exchange.purpose == purpose);
            let served = served.filter(|exchange| exchange.status() == Some(200));
            served
                .filter_map(|exchange| Some((exchange.number, ids(&Page::from_exchange(exchange)?)?)))
                .collect::<Vec<_>>()
        };
        let (before, after) = (read(Step::LongPageBefore), read(Step::LongPageAfter));
        let known: BTreeSet<_> = before.last()?.1.iter().collect();
        let is_known = |(_, rows): &(u32, Vec<String>)| rows.iter().all(|id| known.contains(id));
        (after.len() > 1 && after.iter().all(is_known)).then(|| (after[after.len() - 1].0, list))
    })
}

/// Returns a list of which the total grew by two records or more, but whose first page shows none of them, with both
/// totals. A single one may have been created between the page and its total.
fn growth_without_rows(recording: &Recording) -> Option<(u32, List, [u64; 2])> {
    const GROWTH_MIN: u64 = 2;
    List::ALL.into_iter().find_map(|list| {
        let read = |step: Step| {
            let purpose = Purpose::DuringInserts { list, step };
            let exchange = recording
                .find_last(|exchange| exchange.purpose == purpose && exchange.status() == Some(200))?;
            let page = Page::from_exchange(exchange)?;
            exchange
                .response()
                .and_then(cache_evidence)
                .is_none()
                .then(|| Some((exchange.number, ids(&page)?, page.meta_number("total")?)))?
        };
        let ((_, before, old), (exchange, after, new)) =
            (read(Step::LongPageBefore)?, read(Step::LongPageAfter)?);
        let shows_none = !after.is_empty() && after.iter().all(|id| before.contains(id));
        (shows_none && new >= old + GROWTH_MIN).then_some((exchange, list, [old, new]))
    })
}

/// Returns a record of page 1 of a list that is missing when the same page is read again, although an
/// older record is still there.
fn vanished_record(recording: &Recording) -> Option<(u32, List, String)> {
    List::ALL.into_iter().find_map(|list| {
        let purpose = Purpose::DuringInserts { list, step: Step::LongPageAfter };
        let reads: Vec<_> = recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.purpose == purpose && exchange.status() == Some(200))
            .filter_map(|exchange| Some((exchange, ids(&Page::from_exchange(exchange)?)?)))
            .collect();
        reads.windows(2).find_map(|pair| {
            let [(_, shown), (exchange, rows)] = pair else { return None };
            // Newer records push only the last ones off a full page.
            let last_common = shown.iter().rposition(|id| rows.contains(id))?;
            let vanished = shown[..last_common].iter().find(|id| !rows.contains(id))?;
            exchange
                .response()
                .and_then(cache_evidence)
                .is_none()
                .then(|| (exchange.number, list, vanished.clone()))
        })
    })
}

fn judge_no_record_lost(recording: &Recording) -> CheckResult {
    check_preconditions(recording)?;
    if let Some((exchange, list, id)) = vanished_record(recording) {
        let expected = format!("{id} on page 1 of {}, as a moment before", list.as_str());
        return Err(CheckError::violation(exchange, expected, "older records, but not this one"));
    }
    if let Some((exchange, list)) = unchanged_list(recording) {
        let expected = format!("the record that was created, on page 1 of {}", list.as_str());
        return Err(CheckError::violation(exchange, expected, "only earlier records, in two reads"));
    }
    if let Some((exchange, list, [old, new])) = growth_without_rows(recording) {
        let expected = format!("{} new records on page 1 of {}", new - old, list.as_str());
        return Err(CheckError::violation(
            exchange,
            expected,
            format!("none, and a total of {new} after {old}"),
        ));
    }
    let walks = page_walks(recording)?;
    let mut interpretations = BTreeSet::new();
    for walk in &walks {
        let list = walk.list_name();
        match walk.result() {
            WalkResult::Lost { exchange, id } => {
                let expected =
                    format!("every record that was listed before, {} of {list}", walk.paging_method);
                return Err(CheckError::violation(exchange, expected, format!("{id} is on no page so far")));
            }
            WalkResult::Shifted { .. } => {
                interpretations.insert(format!("{list} {}: records repeat", walk.paging_method));
            }
            WalkResult::Unshifted => {
                interpretations.insert(format!("{list} {}: literally", walk.paging_method));
            }
        }
        if let Some((exchange, id)) = walk.misplaced_record() {
            let expected = format!("the created record at the head of {list}");
            return Err(CheckError::violation(exchange, expected, format!("{id} below older records")));
        }
    }
    Ok(CheckOutcome::HoldsWith(interpretations.into_iter().collect::<Vec<_>>().join(", ")))
}

/// Judges the literal statement. It holds for a list if the links do not shift its pages; if no links were followed, the page
/// numbers. If the links of the events do not shift them, neither must those of the filtered events.
fn judge_pages_not_shifted(recording: &Recording) -> CheckResult {
    let walks = page_walks(recording)?;
    let mut unshifted_walks = BTreeSet::new();
    for list in List::ALL {
        let of_list: Vec<_> =
            walks.iter().filter(|walk| walk.list == list && walk.event_type.is_none()).collect();
        let mut shifts = Vec::new();
        let mut is_unshifted = false;
        for walk in &of_list {
            match walk.result() {
                WalkResult::Unshifted => {
                    is_unshifted = true;
                    unshifted_walks.insert(format!("{} {}", list.as_str(), walk.paging_method));
                }
                WalkResult::Shifted { exchange, record } => {
                    shifts.push((exchange, walk.paging_method, record));
                }
                // paging.stable judges skipped records.
                WalkResult::Lost { .. } => {}
            }
        }
        let by_links = shifts.iter().find(|(_, method, _)| *method == BY_LINKS);
        if let Some((exchange, method, record)) = by_links.or(shifts.last().filter(|_| !is_unshifted)) {
            let expected = format!("{} {method} as if nothing had been created", list.as_str());
            return Err(CheckError::violation(*exchange, expected, format!("{record} moved there")));
        }
    }
    let are_links_unshifted =
        |walk: &PageWalk| unshifted_walks.contains(&format!("{} {}", walk.list.as_str(), walk.paging_method));
    for walk in walks.iter().filter(|walk| walk.event_type.is_some() && are_links_unshifted(walk)) {
        if let WalkResult::Shifted { exchange, record } = walk.result() {
            let expected =
                format!("{} {} as if nothing had been created", walk.list_name(), walk.paging_method);
            return Err(CheckError::violation(exchange, expected, format!("{record} moved there")));
        }
    }
    if unshifted_walks.is_empty() {
        return Err(CheckError::unjudged("records are lost while others are created", "see paging.stable"));
    }
    Ok(CheckOutcome::HoldsWith(unshifted_walks.into_iter().collect::<Vec<_>>().join(", ")))
}
