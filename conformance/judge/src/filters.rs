//! Chapter "filters": the rows and totals of filtered lists.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::part::Part;
use conformance_model::reading::{
    ChargeInvoices, FilterScope, Page, id_or_code, link_query, matches_filter, nearest_long_pages,
    page_request, payment_link_code, selected_ids, selected_rows, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{
    FullList, PER_PAGE_DEFAULT, PageView, comparable_groups, first_long_pages_around, may_be_limited,
    modes_share_codes, page_must_exist, readable_pages, recorded_at, with_article,
};
use crate::check::{Check, Mismatch};
use crate::diff::{LIST_DELAY_MAX, LISTED_KINDS, is_unchanged_before};
use crate::record_order::first_omission;
use crate::totals::{check_counts, check_counts_of_unknown_values, check_total_bounds, compare_only_page};

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Filters];

pub(super) const CHECKS: &[Check] = &[
    Check::new("filters.type", NEEDS, |recording| judge_event_filter(recording, "type")),
    Check::new("filters.charge", NEEDS, |recording| judge_event_filter(recording, "charge")),
    Check::new("filters.invoice", NEEDS, |recording| judge_event_filter(recording, "invoice")),
    Check::new("filters.total", NEEDS, judge_totals),
    Check::new("filters.status", NEEDS, judge_status_filter),
    Check::new("filters.payment_link", NEEDS, judge_payment_link_filter).excluded_with(Part::PaymentLinks),
    Check::new("filters.combined", NEEDS, judge_combined),
];

/// Returns a row that violates a filter of its page in every valid interpretation, and that filter.
pub(super) fn row_outside_filter<'s>(
    view: &'s PageView<'_>,
    pairs: &ChargeInvoices,
) -> Option<(&'s Value, &'s (String, String))> {
    view.rows().iter().find_map(|row| {
        let is_violated = |filter: &&(String, String)| {
            matches_filter(view.request.list, row, &filter.0, &filter.1, FilterScope::Wide, pairs)
                == Some(false)
        };
        Some((row, view.request.filters.iter().find(is_violated)?))
    })
}

/// Returns `true` if a page has rows, and all of them have the filtered fields.
pub(super) fn shows_its_filters(view: &PageView<'_>, pairs: &ChargeInvoices) -> bool {
    let has_filtered_fields = |row: &Value| {
        let match_result = |(name, value): &(String, String)| {
            matches_filter(view.request.list, row, name, value, FilterScope::Wide, pairs)
        };
        view.request.filters.iter().all(|filter| match_result(filter).is_some())
    };
    !view.rows().is_empty() && view.rows().iter().all(has_filtered_fields)
}

/// Returns the unfiltered list of a filtered page, if it was read before and after, and the same records matched both
/// times.
fn unfiltered_list<'s>(
    recording: &Recording,
    views: &'s [PageView<'_>],
    view: &PageView<'_>,
    pairs: &ChargeInvoices,
) -> Option<FullList<'s>> {
    let [before, after] = first_long_pages_around(recording, views, view)?;
    let selected = |other: &PageView<'_>| {
        let rows: Vec<_> = other.rows().iter().collect();
        selected_ids(view.request.list, &rows, &view.request.filters, pairs)
    };
    // On the later pages, which were read only once, a status may have changed.
    let is_first_enough = view.request.filters.iter().any(|(name, _)| name == "status");
    (selected(before)? == selected(after)?)
        .then(|| FullList::between_reads(views, [before, after], is_first_enough))
}

/// Returns the first difference between the rows of a filtered page and the records that its filters select from this
/// page on: the expected and the actual record. `is_all`: the selected records are complete. `size`: the page size.
fn first_mismatch(shown: &[Value], selected: &[&Value], is_all: bool, size: usize) -> Option<Mismatch> {
    let expected = &selected[..selected.len().min(size)];
    let id = |row: &Value| id_or_code(row).unwrap_or_default();
    let differing = (0..expected.len()).find(|index| shown.get(*index).map(id) != Some(id(expected[*index])));
    let shown_id = |index: usize| shown.get(index).map_or_else(|| "nothing more".to_owned(), id);
    match differing {
        Some(index) => Some((format!("{} as record {}", id(expected[index]), index + 1), shown_id(index))),
        None if is_all && shown.len() > expected.len() => {
            Some((format!("{} records", expected.len()), format!("{} too", shown_id(expected.len()))))
        }
        None => None,
    }
}

/// Returns the pages of a list with this filter only and not reached by a link, each with the value of the filter.
fn pages_with_only_filter<'s, 'a>(
    views: &'s [PageView<'a>],
    list: List,
    name: &str,
) -> Vec<(&'s str, &'s PageView<'a>)> {
    let with_value = |view: &'s PageView<'a>| match &view.request.filters[..] {
        [(filter, value)] if view.request.list == list && view.request.link.is_none() && filter == name => {
            Some((value.as_str(), view))
        }
        _ => None,
    };
    views.iter().filter_map(with_value).collect()
}

/// Returns the error if no page could be judged. `what`: the value to filter by, such as `a value of invoice`.
fn no_filter_value(what: &str) -> CheckError {
    CheckError::unjudged(
        format!("no event shows {what} to filter by, or the filtered list was not served"),
        "open a charge, an invoice and a payment link with the test key's account, then check again",
    )
}

/// Returns `true` if an unfiltered page of the same or the default size was served. Only then does a refusal count.
fn is_unfiltered_served(recording: &Recording, refused: &Exchange, request: &PageRequest) -> bool {
    recording.exchanges.iter().any(|exchange| {
        exchange.caller == refused.caller
            && exchange.status() == Some(200)
            && page_request(exchange).is_some_and(|served| {
                served.list == request.list
                    && served.filters.is_empty()
                    && served.link.is_none()
                    && (served.per_page == request.per_page || served.per_page.is_none())
            })
    })
}

/// Checks that no filter by a value from the API was refused. In a burst the limit may have refused it, so a refusal
/// counts only if the key was served again later.
fn check_not_refused(recording: &Recording, list: List, name: &str) -> Result<(), CheckError> {
    let refusal = recording.exchanges.iter().find(|exchange| {
        let Some(request) = page_request(exchange) else { return false };
        let has_filter =
            request.list == list && matches!(&request.filters[..], [(filter, _)] if filter == name);
        has_filter
            && request.link.is_none()
            && is_unfiltered_served(recording, exchange, &request)
            && exchange.status().is_some_and(|status| status > 200 && !matches!(status, 429 | 502..=504))
            && !may_be_limited(recording, exchange)
            && !may_no_longer_exist(recording, exchange, &request)
            && (page_must_exist(&readable_pages(recording), exchange, &request)
                || has_enough_matches(&readable_pages(recording), exchange, &request))
    });
    refusal.map_or(Ok(()), |exchange| Err(CheckError::violation(exchange.number, "200", exchange.summary())))
}

/// Returns `true` if a page filtered by status may no longer exist, because records changed their status.
fn may_no_longer_exist(recording: &Recording, exchange: &Exchange, request: &PageRequest) -> bool {
    let is_later = request.page.is_some_and(|page| page > 1);
    let pages = readable_pages(recording);
    let existed_on = |number: u32| {
        let view = pages.iter().find(|view| view.number() == number);
        view.is_some_and(|view| has_enough_matches(std::slice::from_ref(view), exchange, request))
    };
    is_later
        && request.filters.iter().any(|(name, _)| name == "status")
        && !nearest_long_pages(recording, exchange, request.list)
            .is_some_and(|pair| pair.iter().all(|exchange| existed_on(exchange.number)))
}

/// Returns `true` if the unfiltered list has enough matching records for the requested page to exist.
fn has_enough_matches(pages: &[PageView<'_>], exchange: &Exchange, request: &PageRequest) -> bool {
    let [(name, value)] = &request.filters[..] else { return false };
    // With an unknown page size, only the first page can be known to exist.
    let preceding =
        request.page.unwrap_or(1).saturating_sub(1).saturating_mul(request.per_page.unwrap_or(u64::MAX));
    let is_match = |row: &&Value| text_at(row, &[name]) == Some(value);
    let mut unfiltered =
        pages.iter().filter(|view| view.has_only_page_and_size() && view.request.list == request.list);
    unfiltered.any(|view| {
        Caller::Own(view.mode) == exchange.caller
            && view.rows().iter().filter(is_match).count() as u64 > preceding
    })
}

/// Checks that a filter by an unused value returns an empty list or is refused.
fn check_unused_value(recording: &Recording, list: List, name: &str) -> Result<(), CheckError> {
    for exchange in &recording.exchanges {
        let Purpose::Filter { list: filtered, filter, side } = &exchange.purpose else { continue };
        // filters.combined judges several filters.
        let is_only_filter = !exchange.target.contains('&');
        let is_absent = matches!(side, Side::AbsentBefore | Side::AbsentAfter);
        if (*filtered, filter.as_str(), is_absent, is_only_filter) != (list, name, true, true) {
            continue;
        }
        // A 500 is a server error, not a refusal.
        if exchange.status() == Some(500) {
            return Err(CheckError::violation(
                exchange.number,
                "an empty list, or a refusal",
                exchange.summary(),
            ));
        }
        let Some(page) = Page::from_exchange(exchange) else { continue };
        let rows = page.rows().map_or(0, <[_]>::len);
        let total = page.meta_number("total").unwrap_or_default();
        if rows > 0 || total > 0 {
            // A similar value may be that of another object, which the filter then selects.
            let names_other = |row: &Value| {
                let (query, _) = link_query(&exchange.target);
                query.iter().any(|(name, value)| names_other_value(list, row, name, value))
            };
            let may_exist = *side == Side::AbsentAfter
                && page.rows().is_some_and(|rows| !rows.is_empty() && !rows.iter().any(names_other));
            if may_exist {
                continue;
            }
            let (pairs, query) = (&ChargeInvoices::from_recording(recording), link_query(&exchange.target).0);
            let is_outside_filter = |row: &Value| {
                query.iter().any(|(_, value)| {
                    matches_filter(list, row, name, value, FilterScope::Wide, pairs) == Some(false)
                })
            };
            let shows_outside_filter = page.rows().is_some_and(|rows| rows.iter().any(is_outside_filter));
            if modes_share_codes(recording, name) && !shows_outside_filter {
                // Each mode numbers its own objects, so the value may be the number of an existing one.
                continue;
            }
            let expected = format!("no {} for {} that does not exist", list.as_str(), with_article(name));
            let actual = format!("{rows} of them, and a total of {total}");
            return Err(CheckError::violation(exchange.number, expected, actual));
        }
    }
    Ok(())
}

/// Returns `true` if a row has another value of a filter, such as the code of another charge.
fn names_other_value(list: List, row: &Value, name: &str, value: &str) -> bool {
    let actual = match (list, name) {
        (List::Events, "charge" | "invoice") => text_at(row, &[name, "code"]),
        (_, "payment_link") => payment_link_code(row),
        _ => text_at(row, &[name]),
    };
    actual.is_some_and(|actual| actual != value)
}

/// Checks that no page with such a request omits a record that its filters select.
fn check_none_omitted(
    recording: &Recording,
    is_judged: impl Fn(&PageRequest) -> bool,
) -> Result<(), CheckError> {
    let (views, pairs) = (readable_pages(recording), ChargeInvoices::from_recording(recording));
    first_omission(&views, &pairs, is_judged).map_or(Ok(()), |(view, omitted)| {
        let expected = format!("{} for {}, as at {}", omitted.id, filters_text(view), omitted.listed_at);
        let actual = format!("{} others, but not this one", view.rows().len());
        Err(CheckError::violation(view.number(), expected, actual))
    })
}

fn has_only_filter(request: &PageRequest, name: &str) -> bool {
    matches!(&request.filters[..], [(filter, _)] if filter == name)
}

fn judge_event_filter(recording: &Recording, name: &str) -> CheckResult {
    check_not_refused(recording, List::Events, name)?;
    check_none_omitted(recording, |request| has_only_filter(request, name))?;
    let pairs = &ChargeInvoices::from_recording(recording);
    let mut judged = false;
    for views in &comparable_groups(recording) {
        for (value, view) in pages_with_only_filter(views, List::Events, name) {
            if let Some((row, _)) = row_outside_filter(view, pairs) {
                let id = text_at(row, &["id"]).unwrap_or("without an id");
                let expected = format!("only events of {name} {value}");
                return Err(CheckError::violation(
                    view.number(),
                    expected,
                    format!("event {id}, which does not match"),
                ));
            }
            let showed_match = |other: &PageView<'_>| {
                let is_earlier_list = other.mode == view.mode
                    && other.request.list == List::Events
                    && other.request.filters.is_empty()
                    && other.number() < view.number();
                let is_match = |row: &Value| {
                    matches_filter(List::Events, row, name, value, FilterScope::Narrow, pairs) == Some(true)
                };
                is_earlier_list && other.rows().iter().any(is_match)
            };
            let is_first = view.request.page.unwrap_or(1) == 1;
            if is_first && view.page.rows().is_some_and(<[_]>::is_empty) && views.iter().any(showed_match) {
                let expected = format!("the events of {name} {value}, which the unfiltered list shows");
                return Err(CheckError::violation(view.number(), expected, "an empty list"));
            }
            judged = true;
        }
    }
    check_unused_value(recording, List::Events, name)?;
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_filter_value(&format!("a value of {name}"))) }
}

/// Compares the total of a filtered page with its rows, and both with the unfiltered list. `None` if
/// neither comparison is possible.
fn check_page(
    recording: &Recording,
    views: &[PageView<'_>],
    view: &PageView<'_>,
    pairs: &ChargeInvoices,
) -> Option<Result<(), Mismatch>> {
    let total = view.page.meta_number("total")?;
    let shown = view.page.rows()?;
    let wrong_total =
        |expected: u64| Some(Err((format!("meta.total {expected}"), format!("meta.total {total}"))));
    let preceding_pages = view.request.page.unwrap_or(1).saturating_sub(1);
    let size = view.request.per_page.or_else(|| view.page.meta_number("per_page"))?;
    let result_by_page_alone = compare_only_page(view).filter(Result::is_ok);
    let Some(unfiltered) = unfiltered_list(recording, views, view, pairs) else {
        return result_by_page_alone;
    };
    let changed_count = changed_record_count(recording, views, view);
    let Some(selections) = selected_rows(view.request.list, &unfiltered.rows, &view.request.filters, pairs)
    else {
        return result_by_page_alone;
    };
    let may_be = |count: u64| if unfiltered.is_complete { count == total } else { count <= total };
    let counts: Vec<u64> = selections.iter().map(|rows| rows.len() as u64).collect();
    if !counts.iter().any(|count| may_be(*count)) {
        // Records that changed meanwhile may have matched for some time.
        if counts.iter().any(|count| (*count..=count + changed_count).contains(&total)) {
            return result_by_page_alone;
        }
        return wrong_total(counts.into_iter().min().unwrap_or_default());
    }
    // The order can be compared only if all records have identifiers.
    let have_ids = selections.iter().flatten().all(|row| id_or_code(row).is_some());
    if have_ids && changed_count == 0 {
        let [from, size] = [preceding_pages.saturating_mul(size), size]
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let mismatch_with = |rows: &[&Value]| {
            first_mismatch(shown, &rows[from.min(rows.len())..], unfiltered.is_complete, size)
        };
        // A page that fits one interpretation of the filter has no mismatch.
        let mismatches: Option<Vec<_>> = selections.iter().map(|rows| mismatch_with(rows)).collect();
        if let Some(mismatch) = mismatches.and_then(|mismatches| mismatches.into_iter().next()) {
            return Some(Err(mismatch));
        }
    }
    if unfiltered.is_complete { Some(Ok(())) } else { result_by_page_alone }
}

/// Returns the number of records that were created or changed their status between the reads of the unfiltered list
/// around a page that is filtered by status. They may be on that page, but match in neither read.
fn changed_record_count(recording: &Recording, views: &[PageView<'_>], view: &PageView<'_>) -> u64 {
    if !view.request.filters.iter().any(|(name, _)| name == "status") {
        return 0;
    }
    let Some([before, after]) = first_long_pages_around(recording, views, view) else { return 0 };
    let state = |row: &Value| (id_or_code(row), text_at(row, &["status"]).map(str::to_owned));
    let before: BTreeSet<_> = before.rows().iter().map(state).collect();
    after.rows().iter().filter(|row| !before.contains(&state(row))).count() as u64
}

fn judge_totals(recording: &Recording) -> CheckResult {
    let pairs = &ChargeInvoices::from_recording(recording);
    let views = readable_pages(recording);
    let mut judged = false;
    for view in views.iter().filter(|view| view.request.filters.len() == 1) {
        if view.request.link.is_some() {
            check_counts(view)?;
            continue;
        }
        // The statement of the filter judges rows that do not match.
        if view.request.list != List::Events && row_outside_filter(view, pairs).is_some() {
            continue;
        }
        check_counts(view)?;
        match check_page(recording, &views, view, pairs) {
            None => {}
            Some(Ok(())) => judged = true,
            Some(Err((expected, actual))) => {
                let expected = format!("{expected} for {}", filters_text(view));
                return Err(CheckError::violation(view.number(), expected, actual));
            }
        }
    }
    check_total_bounds(&views, pairs, |request| request.filters.len() == 1)?;
    check_counts_of_unknown_values(recording, |request| request.filters.len() == 1)?;
    if judged {
        return Ok(CheckOutcome::Holds);
    }
    Err(CheckError::unjudged(
        "no filtered list could be counted in a list of 100 records or fewer",
        "check again with an account of 3 to 100 events, while nothing is created",
    ))
}

fn judge_status_filter(recording: &Recording) -> CheckResult {
    const LISTS: [List; 2] = [List::Charges, List::Invoices];
    LISTS.into_iter().try_for_each(|list| check_not_refused(recording, list, "status"))?;
    let comparable_groups = comparable_groups(recording);
    let filtered_pages =
        |list| comparable_groups.iter().flat_map(move |views| pages_with_only_filter(views, list, "status"));
    let outcome =
        judge_shown_fields(&LISTS.into_iter().flat_map(filtered_pages).collect::<Vec<_>>(), "status");
    LISTS.into_iter().try_for_each(|list| check_unused_value(recording, list, "status"))?;
    check_unchanged_objects_are_listed(recording)?;
    check_none_omitted(recording, |request| has_only_filter(request, "status"))?;
    outcome
}

/// Checks that a complete list of one status contains every object that had this status before and
/// after, even if other objects changed meanwhile.
fn check_unchanged_objects_are_listed(recording: &Recording) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    for (list, member) in LISTED_KINDS {
        for (status, view) in pages_with_only_filter(&views, list, "status") {
            let is_complete = view.page.meta_number("total") == Some(view.rows().len() as u64);
            let Some([before, after]) = first_long_pages_around(recording, &views, view)
                .filter(|_| is_complete && view.request.page.is_none())
            else {
                continue;
            };
            let code = |row: &'_ Value| text_at(row, &["code"]).map(str::to_owned);
            let shown: BTreeSet<_> = view.rows().iter().filter_map(code).collect();
            let with_status = |other: &PageView<'_>| -> BTreeSet<String> {
                let rows = other.rows().iter().filter(|row| text_at(row, &["status"]) == Some(status));
                rows.filter_map(code).collect()
            };
            let (first, last) = (with_status(before), with_status(after));
            let is_missing = |code: &&String| {
                let event = serde_json::json!({ member: { "code": code } });
                !shown.contains(*code) && is_unchanged_before(&views, view.mode, &event, view.exchange)
            };
            if let Some(code) = first.intersection(&last).find(is_missing) {
                let expected = format!(
                    "{member} {code} in the list of status {status}, as in the unfiltered list before and after"
                );
                let actual = format!("{} others, but not this one", shown.len());
                return Err(CheckError::violation(view.number(), expected, actual));
            }
        }
    }
    Ok(())
}

fn judge_payment_link_filter(recording: &Recording) -> CheckResult {
    check_not_refused(recording, List::Charges, "payment_link")?;
    check_none_omitted(recording, |request| has_only_filter(request, "payment_link"))?;
    let comparable_groups = comparable_groups(recording);
    let mut is_judged_by_events = false;
    for views in &comparable_groups {
        for (link, view) in pages_with_only_filter(views, List::Charges, "payment_link") {
            if let Some(code) = missing_charge_of_link(views, view, link) {
                let expected =
                    format!("charge {code} among those of payment_link {link}, as the events show");
                let actual = format!("{} others, but not this one", view.rows().len());
                return Err(CheckError::violation(view.number(), expected, actual));
            }
            let links = links_of_charges(views, view);
            let shown = view.rows().iter().filter_map(|row| links.get_key_value(text_at(row, &["code"])?));
            for (code, known_link) in shown {
                if known_link.as_deref() != Some(link) {
                    let expected = format!("only charges of payment_link {link}");
                    let known_link = known_link.as_deref().unwrap_or("none");
                    let actual = format!("charge {code}, whose events show the payment_link {known_link}");
                    return Err(CheckError::violation(view.number(), expected, actual));
                }
                is_judged_by_events = true;
            }
        }
    }
    let found: Vec<_> = comparable_groups
        .iter()
        .flat_map(|views| pages_with_only_filter(views, List::Charges, "payment_link"))
        .collect();
    let outcome = match judge_shown_fields(&found, "payment_link") {
        Err(CheckError::Inapplicable(_)) if is_judged_by_events => Ok(CheckOutcome::Holds),
        outcome => outcome,
    };
    check_unused_value(recording, List::Charges, "payment_link")?;
    outcome
}

/// Returns the payment link of each charge in the events of the mode, if all events of a charge agree.
fn links_of_charges(views: &[PageView<'_>], view: &PageView<'_>) -> BTreeMap<String, Option<String>> {
    let of_mode = views.iter().filter(|other| other.mode == view.mode && other.request.list == List::Events);
    let mut links: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for charge in of_mode.flat_map(PageView::rows).filter_map(|row| row.get("charge")) {
        let link = match charge.get("payment_link") {
            Some(Value::String(link)) => Some(link.clone()),
            Some(Value::Null) => None,
            _ => continue,
        };
        if let Some(code) = text_at(charge, &["code"]) {
            links.entry(code.to_owned()).or_default().insert(link);
        }
    }
    let sole_link = |(code, mut links): (String, BTreeSet<_>)| {
        Some((code, links.pop_first().filter(|_| links.is_empty())?))
    };
    links.into_iter().filter_map(sole_link).collect()
}

/// Returns a charge of a payment link that is missing in the list filtered by that link. The events have the links of
/// charges, and charges are never deleted.
fn missing_charge_of_link(views: &[PageView<'_>], view: &PageView<'_>, link: &str) -> Option<String> {
    let rows = view.page.rows()?;
    let has_code = |code: &str| {
        rows.iter().any(|row| text_at(row, &["code"]) == Some(code) || text_at(row, &["id"]) == Some(code))
    };
    let of_mode = views.iter().filter(|other| other.mode == view.mode && other.request.list == List::Events);
    // Events on later pages may belong to newer charges.
    let earlier = of_mode.filter(|other| other.number() < view.number());
    // A new charge may take a minute to be listed.
    let must_be_listed = |row: &Value| {
        recorded_at(row)
            .zip(view.read_at)
            .is_none_or(|(recorded_at, responded_at)| recorded_at + LIST_DELAY_MAX <= responded_at)
    };
    let is_of_link =
        |row: &&Value| text_at(row, &["charge", "payment_link"]) == Some(link) && must_be_listed(row);
    let mut codes = earlier
        .flat_map(PageView::rows)
        .filter(is_of_link)
        .map(|row| text_at(row, &["charge", "code"]).unwrap_or_default());
    // A missing code proves nothing if rows have no codes, or if the page may not be the whole list.
    let shows_codes = rows.iter().all(|row| text_at(row, &["code"]).is_some());
    let size = view.request.per_page.unwrap_or(PER_PAGE_DEFAULT);
    let is_partial = view.request.page.is_some() || rows.len() as u64 >= size;
    codes.find(|code| shows_codes && !is_partial && !has_code(code)).map(str::to_owned)
}

/// Judges a filter by the rows that have the filtered field. The fields of list items are not
/// specified, so a row without the field proves nothing.
fn judge_shown_fields(filtered_pages: &[(&str, &PageView<'_>)], name: &str) -> CheckResult {
    let pairs = &ChargeInvoices::default();
    let mut judged = false;
    for (value, view) in filtered_pages {
        if let Some((row, _)) = row_outside_filter(view, pairs) {
            let shown = text_at(row, &[name]).or_else(|| payment_link_code(row)).unwrap_or_default();
            let expected = format!("only {name} {value}");
            return Err(CheckError::violation(view.number(), expected, format!("{name} {shown}")));
        }
        judged |= shows_its_filters(view, pairs);
    }
    match (judged, filtered_pages.is_empty()) {
        (true, _) => Ok(CheckOutcome::Holds),
        (false, true) => Err(no_filter_value(&format!("a value of {name}"))),
        (false, false) => Err(CheckError::Inapplicable(format!("the items of the list show no {name}"))),
    }
}

fn filters_text(view: &PageView<'_>) -> String {
    let filters = view.request.filters.iter().map(|(name, value)| format!("{name} {value}"));
    filters.collect::<Vec<_>>().join(" and ")
}

/// Judges the rows and totals of pages with two or more filters.
fn judge_combined(recording: &Recording) -> CheckResult {
    check_none_omitted(recording, |request| request.filters.len() > 1)?;
    let pairs = &ChargeInvoices::from_recording(recording);
    let views = readable_pages(recording);
    let mut judged = BTreeSet::new();
    for view in views.iter().filter(|view| view.request.link.is_none() && view.request.filters.len() > 1) {
        let names: Vec<_> = view.request.filters.iter().map(|(name, _)| name.as_str()).collect();
        if let Some((row, (name, value))) = row_outside_filter(view, pairs) {
            let id = text_at(row, &["id"]).or_else(|| text_at(row, &["code"])).unwrap_or("without an id");
            let expected = format!("only records of {}", filters_text(view));
            let actual = format!("{id} is not of {name} {value}");
            return Err(CheckError::violation(view.number(), expected, actual));
        }
        check_counts(view)?;
        match check_page(recording, &views, view, pairs) {
            Some(Err((expected, actual))) => {
                let expected = format!("{expected} for {}", filters_text(view));
                return Err(CheckError::violation(view.number(), expected, actual));
            }
            Some(Ok(())) => drop(judged.insert(names.join("+"))),
            None if shows_its_filters(view, pairs) => drop(judged.insert(names.join("+"))),
            None => {}
        }
    }
    check_total_bounds(&views, pairs, |request| request.filters.len() > 1)?;
    check_counts_of_unknown_values(recording, |request| request.filters.len() > 1)?;
    if judged.is_empty() {
        return Err(no_filter_value(
            "a charge, an invoice or a payment link together with a type or a status",
        ));
    }
    Ok(CheckOutcome::HoldsWith(format!("judged on {}", judged.into_iter().collect::<Vec<_>>().join(", "))))
}
