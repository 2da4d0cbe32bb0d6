//! Chapter "paging": the links of a page, their targets, and the parameters that they preserve.

use url::Url;

use conformance_model::group::Group;
use conformance_model::reading::{ChargeInvoices, identity, link_query, named_identity, text_at};
use conformance_model::recording::{List, PageRequest, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{PageView, compared_pages, no_readable_list, page_with_link, pages, too_few_records};
use super::filters::{row_outside_filter, shows_its_filters};
use crate::check::Check;

const NEEDS: &[Group] = &[Group::Account, Group::Lists];
const NEEDS_FILTERS: &[Group] = &[Group::Account, Group::Lists, Group::Filters];
const RELS: [&str; 4] = ["first", "last", "prev", "next"];

pub(super) const CHECKS: &[Check] = &[
    Check::new("paging.links", NEEDS, judge_links_present),
    Check::new("paging.ends", NEEDS, judge_end_links),
    Check::new("paging.links_lead", NEEDS, judge_link_targets),
    Check::new("paging.links_keep_size", NEEDS_FILTERS, judge_links_keep_size),
    Check::new("paging.links_keep_filters", NEEDS_FILTERS, judge_links_keep_filters),
    Check::new("paging.links_origin", NEEDS, judge_link_origins),
];

fn judge_links_present(recording: &Recording) -> CheckResult {
    let mut judged = false;
    for view in &pages(recording) {
        let Some(links) = view.page.links() else { continue };
        let empty = view.page.meta("total") == Some(0);
        for rel in RELS {
            let may_be_null = empty || rel == "prev" || rel == "next";
            match links.get(rel) {
                Some(link) if link.is_string() || (may_be_null && link.is_null()) => {}
                other => {
                    let actual_link = other.map_or("missing".to_owned(), ToString::to_string);
                    let expected = if may_be_null { "an address or null" } else { "an address" };
                    let actual = format!("links.{rel} {actual_link}");
                    return Err(CheckError::violation(
                        view.number(),
                        format!("links.{rel}: {expected}"),
                        actual,
                    ));
                }
            }
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_readable_list()) }
}

fn judge_end_links(recording: &Recording) -> CheckResult {
    let (mut inner, mut judged) = (false, false);
    for view in &pages(recording) {
        let (Some(numbers), Some(links)) = (view.numbers(), view.page.links()) else { continue };
        let last = numbers.pages().max(1);
        // filters.total judges the total of a filtered list.
        if numbers.current > last || !(view.request.filters.is_empty() || view.is_sound()) {
            continue;
        }
        for (rel, at_end) in [("prev", numbers.current == 1), ("next", numbers.current == last)] {
            let Some(actual_link) = links.get(rel).filter(|link| link.is_null() || link.is_string()) else {
                continue;
            };
            if actual_link.is_null() != at_end {
                let page = format!("on page {} of {last}", numbers.current);
                let expected = if at_end { "null" } else { "an address" };
                let actual = format!("links.{rel} {actual_link}");
                return Err(CheckError::violation(
                    view.number(),
                    format!("links.{rel} {expected} {page}"),
                    actual,
                ));
            }
            inner |= !at_end;
            judged = true;
        }
    }
    match (judged, inner) {
        (true, true) => Ok(CheckOutcome::Holds),
        (true, false) => Err(too_few_records()),
        (false, _) => Err(no_readable_list()),
    }
}

/// A link that is judged by its query, without following it.
struct LinkTarget<'s> {
    rel: &'static str,
    link: &'s str,
    pairs: Vec<(String, String)>,
    is_plain: bool,
}

impl LinkTarget<'_> {
    /// Returns the value of a parameter or its default; `None` if it is ambiguous or other parameters may replace it.
    fn value(&self, name: &str, default: &str) -> Option<String> {
        let mut found = self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone());
        match (found.next(), found.next()) {
            (Some(value), None) => Some(value),
            (None, _) if self.is_plain => Some(default.to_owned()),
            _ => None,
        }
    }
}

/// For a page that was requested by number, returns its links that point to the same list.
fn link_targets<'s>(view: &'s PageView<'_>) -> impl Iterator<Item = LinkTarget<'s>> {
    let relations = RELS.into_iter().filter(|_| view.request.link.is_none());
    relations.filter_map(|rel| {
        let link = view.page.link(rel)?;
        let path = link.split(['?', '#']).next().unwrap_or_default();
        if link.is_empty() || !(path.is_empty() || path.ends_with(view.request.list.path())) {
            return None;
        }
        let (pairs, is_plain) = link_query(link);
        Some(LinkTarget { rel, link, pairs, is_plain })
    })
}

/// Returns the page to which a link must lead.
fn expected_page(rel: &str, view: &PageView<'_>) -> Option<u64> {
    let here = view.request.page.unwrap_or(1);
    match (rel, view.numbers()) {
        ("first", _) => Some(1),
        ("prev", _) => here.checked_sub(1).filter(|page| *page > 0),
        ("next", _) => here.checked_add(1),
        (_, Some(numbers)) if view.request.filters.is_empty() || view.is_sound() => {
            Some(numbers.pages().max(1))
        }
        (_, _) => None,
    }
}

/// Returns each followed link with its target page and its source page.
fn followed_links<'s, 'a>(views: &'s [PageView<'a>]) -> Vec<(&'s str, &'s PageView<'a>, &'s PageView<'a>)> {
    let pair = |view: &'s PageView<'a>| {
        Some((view.request.link.as_ref()?.rel.as_str(), view, page_with_link(views, view)?))
    };
    views.iter().filter_map(pair).collect()
}

fn judge_link_targets(recording: &Recording) -> CheckResult {
    let views = compared_pages(recording);
    let home = Url::parse(&recording.base).ok();
    for view in &views {
        for (rel, link) in RELS.iter().filter_map(|rel| Some((rel, view.page.link(rel)?))) {
            let address =
                home.as_ref().and_then(|home| home.join(view.request.list.path()).ok()?.join(link).ok());
            let is_list =
                |url: &Url| is_path_of(url, view.request.list, home.as_ref()) || answers(&views, view, url);
            if !address.as_ref().is_some_and(is_list) {
                let expected = format!("links.{rel} to {}", view.request.list.path());
                return Err(CheckError::violation(view.number(), expected, link));
            }
        }
    }
    for exchange in &recording.exchanges {
        let Purpose::Page(PageRequest { link: Some(link), .. }) = &exchange.purpose else { continue };
        if exchange.status().is_some_and(|status| !matches!(status, 200 | 429 | 502..=504)) {
            return Err(CheckError::violation(
                exchange.number,
                format!("200 behind links.{}", link.rel),
                exchange.summary(),
            ));
        }
    }
    for view in &pages(recording) {
        for target in link_targets(view) {
            let (here, wanted) = (view.request.page.unwrap_or(1), expected_page(target.rel, view));
            let page: Option<u64> = target.value("page", "1").and_then(|page| page.parse().ok());
            if let Some((page, wanted)) = page.zip(wanted).filter(|(page, wanted)| page != wanted) {
                let expected = format!("links.{} of page {here} to page {wanted}", target.rel);
                return Err(CheckError::violation(
                    view.number(),
                    expected,
                    format!("page {page}: {}", target.link),
                ));
            }
        }
    }
    let mut judged = false;
    for (rel, view, from) in followed_links(&views) {
        let Some(there) = view.page.meta("current_page") else { continue };
        // Only links of pages that were requested by number, or of the first page, are followed.
        let (here, Some(wanted)) = (from.request.page.unwrap_or(1), expected_page(rel, from)) else {
            continue;
        };
        if there != wanted {
            let expected = format!("links.{rel} of page {here} to page {wanted}");
            return Err(CheckError::violation(view.number(), expected, format!("page {there}")));
        }
        if let Some(twice) = repeated_record(rel, from, view) {
            let expected = format!("the records after those of page {here} at links.next");
            return Err(CheckError::violation(view.number(), expected, format!("{twice} again")));
        }
        if let Some(named) = page_by_number(&views, view, wanted)
            && let (Some(a), Some(b)) = (view.numbers(), named.numbers())
            && (a.size, a.total) == (b.size, b.total)
            && !view.rows().iter().map(identity).eq(named.rows().iter().map(identity))
        {
            let expected = format!("the records of page {wanted}, as {} shows them", named.exchange.target);
            return Err(CheckError::violation(view.number(), expected, "other records"));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(too_few_records()) }
}

/// Returns a record that the page behind `next` repeats, although both pages have the same total, so none was created
/// in between. Not judged with a filter by status, because records may change theirs.
fn repeated_record(rel: &str, from: &PageView<'_>, view: &PageView<'_>) -> Option<String> {
    let total = |view: &PageView<'_>| view.page.meta("total");
    let may_move = from.request.filters.iter().any(|(name, _)| name == "status");
    if rel != "next" || may_move || total(from).is_none() || total(from) != total(view) {
        return None;
    }
    let shown: Vec<_> = from.rows().iter().filter_map(named_identity).collect();
    view.rows().iter().filter_map(named_identity).find(|identity| shown.contains(identity))
}

/// Returns `true` if an address has the path of a list. A proxy may add or remove a prefix, but not a prefix with `/v1`.
fn is_path_of(address: &Url, list: List, home: Option<&Url>) -> bool {
    let base = home.map_or("", |home| home.path().trim_end_matches('/'));
    let Some(before) = address.path().strip_suffix(list.path()) else { return false };
    before == base || !before.split('/').any(|part| part == "v1")
}

/// Returns `true` if a followed link to a path of this form returned the list. Such a path is an alias of the list.
fn answers(views: &[PageView<'_>], of: &PageView<'_>, address: &Url) -> bool {
    let form = |path: &str, list: List| path.replacen(list.path(), "", 1);
    let wanted = form(address.path(), of.request.list);
    views.iter().filter(|view| view.request.link.is_some() && !view.rows().is_empty()).any(|view| {
        let path = view.exchange.target.split('?').next().unwrap_or_default();
        form(path, view.request.list) == wanted
    })
}

/// Returns the same page of the same list, requested by number.
fn page_by_number<'s, 'a>(
    views: &'s [PageView<'a>],
    like: &PageView<'_>,
    page: u64,
) -> Option<&'s PageView<'a>> {
    views.iter().find(|view| {
        view.is_plain()
            && like.request.filters.is_empty()
            && (view.mode, view.request.list, view.request.page) == (like.mode, like.request.list, Some(page))
            && view.page.meta("per_page") == like.page.meta("per_page")
    })
}

fn judge_links_keep_size(recording: &Recording) -> CheckResult {
    for view in &pages(recording) {
        let Some(here) = view.page.meta("per_page") else { continue };
        for target in link_targets(view) {
            let size: Option<u64> = target.value("per_page", "25").and_then(|size| size.parse().ok());
            if size.is_some_and(|size| size != here) {
                let expected = format!("pages of {here} behind links.{}", target.rel);
                return Err(CheckError::violation(view.number(), expected, target.link));
            }
        }
    }
    let views = compared_pages(recording);
    let mut judged = false;
    for (rel, view, from) in followed_links(&views) {
        let (Some(there), Some(here)) = (view.page.meta("per_page"), from.page.meta("per_page")) else {
            continue;
        };
        if there != here {
            let expected = format!("pages of {here} behind links.{rel}");
            return Err(CheckError::violation(view.number(), expected, format!("pages of {there}")));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(too_few_records()) }
}

fn judge_links_keep_filters(recording: &Recording) -> CheckResult {
    let pairs = &ChargeInvoices::from_recording(recording);
    // A filter that the server ignores cannot be preserved.
    let all = pages(recording);
    let ignored: Vec<_> = all
        .iter()
        .filter_map(|view| Some((view.request.list, &row_outside_filter(view, pairs)?.1.0)))
        .collect();
    for view in all.iter().filter(|view| !view.rows().is_empty()) {
        for target in link_targets(view) {
            let lost = |(name, value): &&(String, String)| {
                let is_ignored = ignored.contains(&(view.request.list, name));
                !is_ignored && target.value(name, "").is_some_and(|linked| linked != *value)
            };
            if let Some((name, value)) = view.request.filters.iter().find(lost) {
                let expected = format!("only {name}={value} behind links.{}", target.rel);
                return Err(CheckError::violation(view.number(), expected, target.link));
            }
        }
    }
    let views = compared_pages(recording);
    let mut judged = false;
    for (rel, view, from) in
        followed_links(&views).into_iter().filter(|followed| !followed.1.request.filters.is_empty())
    {
        // A filter that the server ignores cannot be preserved.
        if row_outside_filter(from, pairs).is_some() {
            continue;
        }
        if let Some((row, (name, value))) = row_outside_filter(view, pairs) {
            let id = text_at(row, &["id"]).or_else(|| text_at(row, &["code"])).unwrap_or("without an id");
            let expected = format!("only {name}={value} behind links.{rel}");
            return Err(CheckError::violation(
                view.number(),
                expected,
                format!("{id} is not of {name} {value}"),
            ));
        }
        judged |= shows_its_filters(view, pairs);
    }
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(CheckError::unjudged(
            "no event type has 3 or more events in a list with events of other types",
            "open and cancel 3 charges with the test key's account, then check again",
        ))
    }
}

/// Judges the origin of links. The suite never follows a link to another origin, because that would send the key there.
fn judge_link_origins(recording: &Recording) -> CheckResult {
    let Ok(home) = Url::parse(&recording.base) else { return Err(no_readable_list()) };
    let mut judged = false;
    for view in &pages(recording) {
        for link in RELS.iter().filter_map(|rel| view.page.link(rel)) {
            let Ok(address) = home.join(link) else { continue };
            if address.origin() != home.origin() {
                let expected = home.origin().ascii_serialization();
                return Err(CheckError::violation(
                    view.number(),
                    expected,
                    address.origin().ascii_serialization(),
                ));
            }
            judged = true;
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_readable_list()) }
}
