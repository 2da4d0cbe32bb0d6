//! Chapter "paging": the envelope, numbers and order of each page, and its agreement with the long pages of the list.

use std::collections::BTreeSet;

use serde_json::Value;
use time::Duration;

use conformance_model::group::Group;
use conformance_model::reading::{
    ChargeInvoices, Page, id_or_code, link_query, page_request, parse_utc, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{
    FullList, PER_PAGE_DEFAULT, PER_PAGE_MAX, PageView, all_pages, comparable_groups, first_long_page_reads,
    has_total_changed, list_changed, may_be_limited, missing_response, no_readable_list, page_must_exist,
    readable_pages, too_few_records,
};
use crate::check::{Check, Mismatch};
use crate::lists_vs_events;
use crate::record_order::{check_same_order, first_omission};
use crate::totals::{self, check_equal};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check::new("lists.served", NEEDS, judge_served),
    Check::new("paging.envelope", NEEDS, judge_envelope),
    Check::new("paging.meta", NEEDS, judge_meta),
    Check::new("paging.default_size", NEEDS, judge_default_size),
    Check::new("paging.per_page", NEEDS, judge_per_page),
    Check::new("paging.current_page", NEEDS, judge_current_page),
    Check::new("paging.length", NEEDS, judge_row_count),
    Check::new("paging.last_page", NEEDS, judge_last_page),
    Check::new("paging.joined", NEEDS, judge_joined),
    Check::new("paging.newest_first", NEEDS, judge_newest_first),
    Check::new("paging.newest_first_others", NEEDS, judge_newest_first_others),
    Check::new("paging.out_of_range", NEEDS, observe_out_of_range).with_optional_probes(&[Group::Leaks]),
];

/// Judges that allowed pages get 200, except for outages, refusals by the limit and pages that may
/// not exist; and that each list without parameters got 200.
fn judge_served(recording: &Recording) -> CheckResult {
    let is_unclear =
        |exchange: &Exchange| exchange.status().is_none_or(|status| matches!(status, 429 | 502..=504));
    let pages = readable_pages(recording);
    for exchange in recording.exchanges.iter().filter(|exchange| matches!(exchange.caller, Caller::Own(_))) {
        let Some(request) =
            page_request(exchange).filter(|request| request.has_allowed_size() && request.filters.is_empty())
        else {
            continue;
        };
        let is_refused =
            exchange.status() != Some(200) && !is_unclear(exchange) && !may_be_limited(recording, exchange);
        if request.link.is_some() || !is_refused || !page_must_exist(&pages, exchange, &request) {
            continue;
        }
        return Err(CheckError::violation(exchange.number, "200", exchange.summary()));
    }
    for list in List::ALL {
        let default_request = PageRequest { list, filters: vec![], page: None, per_page: None, link: None };
        let is_default =
            |exchange: &&Exchange| page_request(exchange).is_some_and(|request| request == default_request);
        let exchanges: Vec<_> = recording.exchanges.iter().filter(is_default).collect();
        if !exchanges.iter().any(|exchange| exchange.status() == Some(200)) {
            return Err(missing_response(exchanges.last().copied(), list.path()));
        }
    }
    Ok(CheckOutcome::Holds)
}

/// Judges all pages for which `check` returns a result.
fn judge_each_page<'a>(
    views: &'a [PageView<'a>],
    mut check: impl FnMut(&PageView<'a>) -> Option<Result<(), Mismatch>>,
) -> CheckResult {
    let mut judged = false;
    for view in views {
        match check(view) {
            None => {}
            Some(Ok(())) => judged = true,
            Some(Err((expected, actual))) => {
                return Err(CheckError::violation(view.number(), expected, actual));
            }
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_readable_list()) }
}

fn judge_envelope(recording: &Recording) -> CheckResult {
    let outcome = judge_each_page(&readable_pages(recording), |view| {
        let wrong = missing_part(&view.page);
        Some(wrong.map_or(Ok(()), |what| Err((what.to_owned(), view.exchange.summary()))))
    })?;
    // An empty list has the same envelope.
    for exchange in
        recording.exchanges.iter().filter(|exchange| matches!(exchange.purpose, Purpose::Filter { .. }))
    {
        if let Some(what) = Page::from_exchange(exchange).and_then(|page| missing_part(&page)) {
            return Err(CheckError::violation(exchange.number, what, exchange.summary()));
        }
    }
    Ok(outcome)
}

/// Returns the first part of a list that is missing or has another type.
fn missing_part(page: &Page) -> Option<&'static str> {
    let object = page.object();
    let is_object =
        |name| object.and_then(|members| members.get(name)).is_some_and(|value| value.is_object());
    let parts = [
        ("an object", object.is_some()),
        ("the array `data`", page.rows().is_some()),
        ("records in `data`", page.rows().is_some_and(|rows| !rows.iter().any(Value::is_null))),
        ("the object `links`", is_object("links")),
        ("the object `meta`", is_object("meta")),
    ];
    parts.iter().find(|(_, is_present)| !is_present).map(|(what, _)| *what)
}

fn judge_meta(recording: &Recording) -> CheckResult {
    judge_each_page(&all_pages(recording), |view| {
        let meta = view.page.object()?.get("meta")?.as_object()?;
        let names = ["current_page", "last_page", "per_page", "total"];
        let wrong = names.into_iter().find(|name| view.page.meta_number(name).is_none());
        Some(wrong.map_or(Ok(()), |name| {
            let value = meta.get(name).map_or("missing".to_owned(), ToString::to_string);
            Err((format!("meta.{name} as an integer"), format!("meta.{name} {value}")))
        }))
    })
}

fn judge_default_size(recording: &Recording) -> CheckResult {
    judge_each_page(&all_pages(recording), |view| {
        let by_default = view.request.link.is_none() && view.request.per_page.is_none();
        by_default.then_some(())?;
        Some(check_equal("meta.per_page", PER_PAGE_DEFAULT, view.page.meta_number("per_page")?))
    })
}

fn judge_per_page(recording: &Recording) -> CheckResult {
    check_size_is_bounded(recording)?;
    judge_each_page(&readable_pages(recording), |view| {
        Some(check_equal("meta.per_page", view.request.per_page?, view.page.meta_number("per_page")?))
    })
}

/// Checks that no page is longer than the allowed maximum: a larger size is refused or reduced.
fn check_size_is_bounded(recording: &Recording) -> Result<(), CheckError> {
    let own = recording.exchanges.iter().filter(|exchange| matches!(exchange.caller, Caller::Own(_)));
    for exchange in own.filter(|exchange| matches!(exchange.purpose, Purpose::Page(_))) {
        let rows = Page::from_exchange(exchange).and_then(Page::rows).map_or(0, <[_]>::len) as u64;
        if rows > PER_PAGE_MAX {
            let expected = format!("a refusal or at most {PER_PAGE_MAX} rows");
            let actual = format!("{rows} rows at {}", exchange.target);
            return Err(CheckError::violation(exchange.number, expected, actual));
        }
    }
    Ok(())
}

fn judge_current_page(recording: &Recording) -> CheckResult {
    let views = all_pages(recording);
    let has_second_page = views.iter().any(|view| view.request.page.is_some_and(|page| page > 1));
    let outcome = judge_each_page(&views, |view| {
        let expected = match &view.request.link {
            None => view.request.page.unwrap_or(1),
            // A link may identify its page by another parameter.
            Some(_) => {
                let (query, _) = link_query(&view.exchange.target);
                query.iter().find(|(name, _)| name == "page")?.1.parse().ok()?
            }
        };
        Some(check_equal("meta.current_page", expected, view.page.meta_number("current_page")?))
    })?;
    if has_second_page { Ok(outcome) } else { Err(too_few_records()) }
}

/// Judges the number of rows by the numbers of the same page, so that concurrent creations do not
/// matter. Also judges that the total is stable.
fn judge_row_count(recording: &Recording) -> CheckResult {
    let mut has_rows = false;
    let outcome = judge_each_page(&readable_pages(recording), |view| {
        view.request.filters.is_empty().then_some(())?;
        has_rows |= view.numbers()?.row_count() > 0;
        totals::compare_row_count(view)
    })?;
    for views in &comparable_groups(recording) {
        check_total_is_stable(recording, views)?;
    }
    totals::check_between_reads(&readable_pages(recording), |request| request.filters.is_empty())?;
    if has_rows { Ok(outcome) } else { Err(too_few_records()) }
}

/// Checks that a total equals that of the reads of the first page before and after, if these have the same total and
/// first record and no event was recorded recently: no record was created, and none is ever deleted. Page 2 and later
/// may also have the total of an older read of the first page, which they continue.
fn check_total_is_stable(recording: &Recording, views: &[PageView<'_>]) -> Result<(), CheckError> {
    let all = readable_pages(recording);
    for view in views.iter().filter(|view| view.has_only_page_and_size()) {
        let is_first_page = |other: &&PageView<'_>| {
            let is_first = other.has_only_page_and_size() && other.request.page.is_none_or(|page| page == 1);
            is_first && (other.request.list, other.mode) == (view.request.list, view.mode)
        };
        let before = views.iter().rfind(|other| other.number() < view.number() && is_first_page(other));
        let after = views.iter().find(|other| other.number() > view.number() && is_first_page(other));
        let (Some(before), Some(after), Some(reported)) = (before, after, view.page.meta_number("total"))
        else {
            continue;
        };
        let mut older = all.iter().filter(|other| other.number() < view.number() && is_first_page(other));
        if view.request.page.is_some_and(|page| page > 1)
            && older.any(|view| view.page.meta_number("total") == Some(reported))
        {
            continue;
        }
        let [first, last] =
            [before, after].map(|view| Some((view.page.meta_number("total")?, view.rows().first()?)));
        if let Some((total, _)) = first.filter(|newest| last.as_ref() == Some(newest) && newest.0 != reported)
            && lists_vs_events::has_no_recent_events(views, recording.exchange(before.number()), view.mode)
        {
            return Err(CheckError::violation(
                view.number(),
                format!("meta.total {total}, as before and after"),
                format!("meta.total {reported}"),
            ));
        }
    }
    Ok(())
}

fn judge_last_page(recording: &Recording) -> CheckResult {
    let (mut has_full_last_page, mut has_partial_last_page) = (false, false);
    let outcome = judge_each_page(&readable_pages(recording), |view| {
        view.request.filters.is_empty().then_some(())?;
        let numbers = view.numbers()?;
        has_full_last_page |= numbers.total > 0 && numbers.total % numbers.size == 0;
        has_partial_last_page |= numbers.total % numbers.size != 0;
        totals::compare_last_page(view)
    })?;
    if has_full_last_page && has_partial_last_page { Ok(outcome) } else { Err(too_few_records()) }
}

/// Judges that the records of a page equal those of the long pages at the same position.
fn judge_joined(recording: &Recording) -> CheckResult {
    /// The maximum number of pages on which a record was created between the count and the query of the rows.
    const RACED_PAGES_MAX: u32 = 2;
    let (mut lists, mut has_changed, mut raced_page_count) = (BTreeSet::new(), false, 0);
    let all = readable_pages(recording);
    check_records_once(&all)?;
    for views in &comparable_groups(recording) {
        for view in views.iter().filter(|view| view.request.filters.is_empty()) {
            let (list, mode) = (view.request.list, view.mode);
            // paging.links_lead judges linked pages, and paging.per_page those of another size than requested.
            let reported = view
                .page
                .meta_number("per_page")
                .filter(|reported| view.request.per_page.is_none_or(|requested| requested == *reported));
            let (Some(size), None) = (reported, &view.request.link) else { continue };
            let Some(full_list) = FullList::at_time_of(recording, &all, view) else {
                has_changed |= has_total_changed(views, list, mode);
                continue;
            };
            let from = (view.request.page.unwrap_or(1).saturating_sub(1)).saturating_mul(size);
            // A later page may continue an older read of the first page.
            let matches_earlier_read = || {
                view.request.page.is_some_and(|page| page > 1)
                    && FullList::earlier_reads(&all, view)
                        .any(|earlier| first_mismatch(view.rows(), &earlier, from, size).is_none())
            };
            let mismatch =
                first_mismatch(view.rows(), &full_list, from, size).filter(|_| !matches_earlier_read());
            if let Some((expected, actual)) = mismatch {
                if raced_page_count == RACED_PAGES_MAX || !matches_later_read(&all, view, from, size) {
                    return Err(CheckError::violation(view.number(), expected, actual));
                }
                raced_page_count += 1;
                has_changed = true;
                continue;
            }
            if view.request.page.is_some_and(|page| page > 1) {
                lists.insert(list.as_str());
            }
        }
    }
    check_none_omitted(&all)?;
    match (lists.is_empty(), has_changed) {
        (false, _) => Ok(CheckOutcome::HoldsWith(format!("judged on {}", Vec::from_iter(lists).join(", ")))),
        (true, true) => Err(list_changed()),
        (true, false) => Err(too_few_records()),
    }
}

/// Returns `true` if the rows of a page equal those of the next long pages, which have another total: the total of the
/// page was counted before a record was created, and its rows were read afterwards.
fn matches_later_read(views: &[PageView<'_>], view: &PageView<'_>, from: u64, size: u64) -> bool {
    let mut reads = first_long_page_reads(views, view.request.list, view.mode);
    let later = reads.find(|later| later.number() > view.number());
    later.is_some_and(|later| {
        let list = FullList::starting_with(views, later);
        later.page.meta_number("total") > view.page.meta_number("total")
            && from.saturating_add(view.rows().len() as u64) <= list.rows.len() as u64
            && first_mismatch(view.rows(), &list, from, size).is_none()
    })
}

/// Checks that no page has a record twice, with filters or without.
fn check_records_once(views: &[PageView<'_>]) -> Result<(), CheckError> {
    let duplicate = views.iter().find_map(|view| Some((view, duplicate_record(view)?)));
    duplicate.map_or(Ok(()), |(view, id)| {
        Err(CheckError::violation(view.number(), "every record once", format!("{id} occurs twice")))
    })
}

/// Checks that no page without filters omits a record that is between two others of the page.
fn check_none_omitted(views: &[PageView<'_>]) -> Result<(), CheckError> {
    let found = first_omission(views, &ChargeInvoices::default(), |request| request.filters.is_empty());
    found.map_or(Ok(()), |(view, omitted)| {
        let expected = format!("{}, which is listed at {}", omitted.id, omitted.listed_at);
        Err(CheckError::violation(view.number(), expected, "records before and after it"))
    })
}

/// Returns the first record of a page that differs from the long pages at the same position.
fn first_mismatch(rows: &[Value], full_list: &FullList<'_>, from: u64, size: u64) -> Option<Mismatch> {
    let all = &full_list.rows;
    let clamp = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(all.len());
    let expected_rows = &all[clamp(from)..clamp(from.saturating_add(size))];
    // If the long pages end before the list, the following records cannot be compared.
    let is_end = full_list.is_complete || expected_rows.len() as u64 == size;
    let compared =
        if is_end { expected_rows.len().max(rows.len()) } else { expected_rows.len().min(rows.len()) };
    // A record without id and code can be compared only by its presence.
    let identity_of = |row: Option<&Value>| row.map_or(Some("none".to_owned()), id_or_code);
    let differs = |index: &usize| {
        let (expected, actual) = (expected_rows.get(*index).copied(), rows.get(*index));
        expected.is_some() != actual.is_some()
            || identity_of(expected)
                .zip(identity_of(actual))
                .is_some_and(|(expected, actual)| expected != actual)
    };
    let index = (0..compared).find(differs)?;
    let name =
        |row: Option<&Value>| identity_of(row).unwrap_or_else(|| "a record without id and code".to_owned());
    let number = from.saturating_add(index as u64 + 1);
    let expected_name = name(expected_rows.get(index).copied());
    let expected = format!("record {number} of the long page {}: {expected_name}", full_list.target);
    Some((expected, format!("{} in its place", name(rows.get(index)))))
}

/// Returns a record that is on a page twice.
fn duplicate_record(view: &PageView<'_>) -> Option<String> {
    let mut seen = BTreeSet::new();
    view.rows().iter().filter_map(id_or_code).find(|id| !seen.insert(id.clone()))
}

/// Returns the creation times of the first pair of adjacent rows of which the second is newer.
fn first_disorder(view: &PageView<'_>) -> Option<(String, String)> {
    let times: Vec<_> = view.rows().iter().map(|row| text_at(row, &["created_at"])).collect();
    times.windows(2).find_map(|pair| {
        let (above, below) = (pair[0]?, pair[1]?);
        let is_newer_below = parse_utc(above)? < parse_utc(below)?;
        is_newer_below.then(|| (above.to_owned(), below.to_owned()))
    })
}

/// Returns the last time of payment in the first quarter of a page and the first one in the last quarter, if there are
/// many payments and the former is over a day before the latter. A charge is paid soon after its creation, so such a
/// page has the oldest charge first. A customer may pay open charges in the order of the list, but not for days.
fn payments_oldest_first<'a>(view: &'a PageView<'_>) -> Option<(&'a str, &'a str)> {
    const PAYMENTS_MIN: usize = 12;
    let paid = view.rows().iter().filter_map(|row| text_at(row, &["paid_at"]));
    let paid: Vec<_> = paid.filter_map(|text| Some((parse_utc(text)?, text))).collect();
    let quarter = paid.len() / 4;
    let last_of_first = paid[..quarter].iter().max()?;
    let first_of_last = paid[paid.len() - quarter..].iter().min()?;
    (paid.len() >= PAYMENTS_MIN && first_of_last.0 - last_of_first.0 > Duration::days(1))
        .then_some((last_of_first.1, first_of_last.1))
}

fn judge_order(
    recording: &Recording,
    is_judged: impl Fn(List) -> bool,
    not_judged: CheckError,
) -> CheckResult {
    check_same_order(&readable_pages(recording), &is_judged)?;
    // paging.stable judges records that are created while the suite reads.
    let comparable_groups = comparable_groups(recording);
    let mut judged = false;
    for view in comparable_groups.iter().flatten().filter(|view| is_judged(view.request.list)) {
        if let Some((above, below)) = first_disorder(view) {
            return Err(CheckError::violation(
                view.number(),
                "the newest record first",
                format!("{above} above {below}"),
            ));
        }
        let dated = view.rows().iter().filter_map(|row| text_at(row, &["created_at"]));
        judged |= dated.filter(|text| parse_utc(text).is_some()).count() > 1;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(not_judged) }
}

fn judge_newest_first(recording: &Recording) -> CheckResult {
    judge_order(recording, |list| list == List::Events, too_few_records())
}

fn judge_newest_first_others(recording: &Recording) -> CheckResult {
    let has_rows = |view: &PageView<'_>| view.request.list != List::Events && view.rows().len() > 1;
    let not_judged = if comparable_groups(recording).iter().flatten().any(has_rows) {
        CheckError::Inapplicable("charges and invoices have no creation time".into())
    } else {
        too_few_records()
    };
    let mut judged = false;
    for views in &comparable_groups(recording) {
        judged |= lists_vs_events::check_creation_order(views)?;
        for view in
            views.iter().filter(|view| view.request.list == List::Charges && view.has_only_page_and_size())
        {
            if let Some((first, last)) = payments_oldest_first(view) {
                return Err(CheckError::violation(
                    view.number(),
                    "the newest charge first",
                    format!("the first quarter was paid until {first}, the last since {last}"),
                ));
            }
        }
    }
    match judge_order(recording, |list| list != List::Events, not_judged) {
        // The creation events were compared instead of times in the items.
        Err(error) if judged && !matches!(error, CheckError::Violation(_)) => {
            Ok(CheckOutcome::HoldsWith("by the events".into()))
        }
        other => other,
    }
}

fn observe_out_of_range(recording: &Recording) -> CheckResult {
    let latest = recording.find_last(|exchange| {
        matches!(&exchange.purpose, Purpose::Page(PageRequest { per_page: Some(101), .. }))
    });
    if latest.is_none() && recording.no_burst.is_some() {
        return Err(CheckError::unjudged(
            "the statements that can fail have used up the requests of a quick run",
            "check again without --quick",
        ));
    }
    let Some(exchange) = latest.filter(|exchange| exchange.response().is_some()) else {
        return Err(missing_response(latest, "per_page=101"));
    };
    Ok(CheckOutcome::Observed(
        match Page::from_exchange(exchange).and_then(|page| page.meta_number("per_page")) {
            Some(size) => format!("200 with pages of {size}"),
            None => exchange.summary(),
        },
    ))
}
