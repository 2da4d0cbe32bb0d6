//! Chapter "paging": the links of a page, their targets, and the parameters that they preserve.

use url::Url;

use conformance_model::group::Group;
use conformance_model::reading::{ChargeInvoices, id_or_code, id_or_json, link_query, text_at};
use conformance_model::recording::{List, PageRequest, Purpose, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{
    PageView, all_pages, compared_pages, no_readable_list, page_with_link, readable_pages, too_few_records,
};
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
    for view in &all_pages(recording) {
        let Some(links) = view.page.links() else { continue };
        let is_empty = view.page.meta_number("total") == Some(0);
        for rel in RELS {
            let may_be_null = is_empty || rel == "prev" || rel == "next";
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
    let (mut has_inner_link, mut judged) = (false, false);
    for view in &all_pages(recording) {
        let (Some(numbers), Some(links)) = (view.numbers(), view.page.links()) else { continue };
        let last = numbers.page_count().max(1);
        // filters.total judges the total of a filtered list.
        if numbers.current > last || !(view.request.filters.is_empty() || view.is_consistent()) {
            continue;
        }
        for (rel, must_be_null) in [("prev", numbers.current == 1), ("next", numbers.current == last)] {
            let Some(actual_link) = links.get(rel).filter(|link| link.is_null() || link.is_string()) else {
                continue;
            };
            if actual_link.is_null() != must_be_null {
                let page = format!("on page {} of {last}", numbers.current);
                let expected = if must_be_null { "null" } else { "an address" };
                let actual = format!("links.{rel} {actual_link}");
                return Err(CheckError::violation(
                    view.number(),
                    format!("links.{rel} {expected} {page}"),
                    actual,
                ));
            }
            has_inner_link |= !must_be_null;
            judged = true;
        }
    }
    match (judged, has_inner_link) {
        (true, true) => Ok(CheckOutcome::Holds),
        (true, false) => Err(too_few_records()),
        (false, _) => Err(no_readable_list()),
    }
}

/// A link that is judged by its query, without following it.
struct LinkTarget<'s> {
    rel: &'static str,
    link: &'s str,
    /// The query parameters.
    pairs: Vec<(String, String)>,
    /// `true` if all query parameters are those of the specification.
    has_only_specified: bool,
}

impl LinkTarget<'_> {
    /// Returns the value of a parameter, or the default if it is missing; `None` if it occurs twice, or if an unknown
    /// parameter may replace it.
    fn value(&self, name: &str, default: &str) -> Option<String> {
        let mut found = self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone());
        match (found.next(), found.next()) {
            (Some(value), None) => Some(value),
            (None, _) if self.has_only_specified => Some(default.to_owned()),
            _ => None,
        }
    }
}

/// Returns the links of a page to the same list, if the page was requested by number.
fn link_targets<'s>(view: &'s PageView<'_>) -> impl Iterator<Item = LinkTarget<'s>> {
    let relations = RELS.into_iter().filter(|_| view.request.link.is_none());
    relations.filter_map(|rel| {
        let link = view.page.link(rel)?;
        let path = link.split(['?', '#']).next().unwrap_or_default();
        if link.is_empty() || !(path.is_empty() || path.ends_with(view.request.list.path())) {
            return None;
        }
        let (pairs, has_only_specified) = link_query(link);
        Some(LinkTarget { rel, link, pairs, has_only_specified })
    })
}

/// Returns the number of the page to which a link must lead; `None` if it is unknown.
fn expected_page(rel: &str, view: &PageView<'_>) -> Option<u64> {
    let page = view.request.page.unwrap_or(1);
    match (rel, view.numbers()) {
        ("first", _) => Some(1),
        ("prev", _) => page.checked_sub(1).filter(|previous| *previous > 0),
        ("next", _) => page.checked_add(1),
        (_, Some(numbers)) if view.request.filters.is_empty() || view.is_consistent() => {
            Some(numbers.page_count().max(1))
        }
        (_, _) => None,
    }
}

/// A link that was followed.
struct FollowedLink<'s, 'a> {
    rel: &'s str,
    /// The page behind the link.
    target: &'s PageView<'a>,
    /// The page that contains the link.
    source: &'s PageView<'a>,
}

/// Returns the followed links whose source and target are readable.
fn followed_links<'s, 'a>(views: &'s [PageView<'a>]) -> Vec<FollowedLink<'s, 'a>> {
    let followed = |target: &'s PageView<'a>| {
        let rel = target.request.link.as_ref()?.rel.as_str();
        Some(FollowedLink { rel, target, source: page_with_link(views, target)? })
    };
    views.iter().filter_map(followed).collect()
}

fn judge_link_targets(recording: &Recording) -> CheckResult {
    let views = compared_pages(recording);
    let base = Url::parse(&recording.base).ok();
    for view in &views {
        for (rel, link) in RELS.iter().filter_map(|rel| Some((rel, view.page.link(rel)?))) {
            let url =
                base.as_ref().and_then(|base| base.join(view.request.list.path()).ok()?.join(link).ok());
            let is_list = |url: &Url| {
                is_list_path(url, view.request.list, base.as_ref()) || is_list_alias(&views, view, url)
            };
            if !url.as_ref().is_some_and(is_list) {
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
    for view in &readable_pages(recording) {
        for target in link_targets(view) {
            let (source_page, wanted) = (view.request.page.unwrap_or(1), expected_page(target.rel, view));
            let page: Option<u64> = target.value("page", "1").and_then(|page| page.parse().ok());
            if let Some((page, wanted)) = page.zip(wanted).filter(|(page, wanted)| page != wanted) {
                let expected = format!("links.{} of page {source_page} to page {wanted}", target.rel);
                return Err(CheckError::violation(
                    view.number(),
                    expected,
                    format!("page {page}: {}", target.link),
                ));
            }
        }
    }
    let mut judged = false;
    for FollowedLink { rel, target, source } in followed_links(&views) {
        let Some(actual) = target.page.meta_number("current_page") else { continue };
        // Only links of pages that were requested by number, or of the first page, are followed.
        let (source_page, Some(wanted)) = (source.request.page.unwrap_or(1), expected_page(rel, source))
        else {
            continue;
        };
        if actual != wanted {
            let expected = format!("links.{rel} of page {source_page} to page {wanted}");
            return Err(CheckError::violation(target.number(), expected, format!("page {actual}")));
        }
        if let Some(repeated) = repeated_record(rel, source, target) {
            let expected = format!("the records after those of page {source_page} at links.next");
            return Err(CheckError::violation(target.number(), expected, format!("{repeated} again")));
        }
        if let Some(named) = page_by_number(&views, target, wanted)
            && let (Some(by_link), Some(by_number)) = (target.numbers(), named.numbers())
            && (by_link.size, by_link.total) == (by_number.size, by_number.total)
            && !target.rows().iter().map(id_or_json).eq(named.rows().iter().map(id_or_json))
        {
            let expected = format!("the records of page {wanted}, as {} shows them", named.exchange.target);
            return Err(CheckError::violation(target.number(), expected, "other records"));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(too_few_records()) }
}

/// Returns a record that the page behind `next` repeats, although both pages have the same total, so none was created
/// in between. Not judged with a filter by status, because records may change theirs.
fn repeated_record(rel: &str, source: &PageView<'_>, target: &PageView<'_>) -> Option<String> {
    let total = |view: &PageView<'_>| view.page.meta_number("total");
    let may_move = source.request.filters.iter().any(|(name, _)| name == "status");
    if rel != "next" || may_move || total(source).is_none() || total(source) != total(target) {
        return None;
    }
    let shown: Vec<_> = source.rows().iter().filter_map(id_or_code).collect();
    target.rows().iter().filter_map(id_or_code).find(|id| shown.contains(id))
}

/// Returns `true` if a URL has the path of a list. A proxy may add or remove a prefix, but not a prefix with `/v1`.
fn is_list_path(url: &Url, list: List, base: Option<&Url>) -> bool {
    let base_path = base.map_or("", |base| base.path().trim_end_matches('/'));
    let Some(prefix) = url.path().strip_suffix(list.path()) else { return false };
    prefix == base_path || !prefix.split('/').any(|part| part == "v1")
}

/// Returns `true` if a followed link to a path with the same prefix and suffix returned a list: it is an alias.
fn is_list_alias(views: &[PageView<'_>], page: &PageView<'_>, url: &Url) -> bool {
    let without_list = |path: &str, list: List| path.replacen(list.path(), "", 1);
    let wanted = without_list(url.path(), page.request.list);
    views.iter().filter(|view| view.request.link.is_some() && !view.rows().is_empty()).any(|view| {
        let path = view.exchange.target.split('?').next().unwrap_or_default();
        without_list(path, view.request.list) == wanted
    })
}

/// Returns the same page of the same list, requested by number.
fn page_by_number<'s, 'a>(
    views: &'s [PageView<'a>],
    like: &PageView<'_>,
    page: u64,
) -> Option<&'s PageView<'a>> {
    views.iter().find(|view| {
        view.has_only_page_and_size()
            && like.request.filters.is_empty()
            && (view.mode, view.request.list, view.request.page) == (like.mode, like.request.list, Some(page))
            && view.page.meta_number("per_page") == like.page.meta_number("per_page")
    })
}

fn judge_links_keep_size(recording: &Recording) -> CheckResult {
    for view in &all_pages(recording) {
        let Some(expected_size) = view.page.meta_number("per_page") else { continue };
        for target in link_targets(view) {
            let size: Option<u64> = target.value("per_page", "25").and_then(|size| size.parse().ok());
            if size.is_some_and(|size| size != expected_size) {
                let expected = format!("pages of {expected_size} behind links.{}", target.rel);
                return Err(CheckError::violation(view.number(), expected, target.link));
            }
        }
    }
    let views = compared_pages(recording);
    let mut judged = false;
    for FollowedLink { rel, target, source } in followed_links(&views) {
        let (Some(actual), Some(expected_size)) =
            (target.page.meta_number("per_page"), source.page.meta_number("per_page"))
        else {
            continue;
        };
        if actual != expected_size {
            let expected = format!("pages of {expected_size} behind links.{rel}");
            return Err(CheckError::violation(target.number(), expected, format!("pages of {actual}")));
        }
        judged = true;
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(too_few_records()) }
}

fn judge_links_keep_filters(recording: &Recording) -> CheckResult {
    let pairs = &ChargeInvoices::from_recording(recording);
    // A filter that the server ignores cannot be preserved.
    let all = readable_pages(recording);
    let ignored: Vec<_> = all
        .iter()
        .filter_map(|view| Some((view.request.list, &row_outside_filter(view, pairs)?.1.0)))
        .collect();
    for view in all.iter().filter(|view| !view.rows().is_empty()) {
        for target in link_targets(view) {
            let is_lost = |(name, value): &&(String, String)| {
                let is_ignored = ignored.contains(&(view.request.list, name));
                !is_ignored && target.value(name, "").is_some_and(|linked| linked != *value)
            };
            if let Some((name, value)) = view.request.filters.iter().find(is_lost) {
                let expected = format!("only {name}={value} behind links.{}", target.rel);
                return Err(CheckError::violation(view.number(), expected, target.link));
            }
        }
    }
    let views = compared_pages(recording);
    let mut judged = false;
    let with_filters = |link: &FollowedLink<'_, '_>| !link.target.request.filters.is_empty();
    for FollowedLink { rel, target, source } in followed_links(&views).into_iter().filter(with_filters) {
        // A filter that the server ignores cannot be preserved.
        if row_outside_filter(source, pairs).is_some() {
            continue;
        }
        if let Some((row, (name, value))) = row_outside_filter(target, pairs) {
            let id = text_at(row, &["id"]).or_else(|| text_at(row, &["code"])).unwrap_or("without an id");
            let expected = format!("only {name}={value} behind links.{rel}");
            return Err(CheckError::violation(
                target.number(),
                expected,
                format!("{id} is not of {name} {value}"),
            ));
        }
        judged |= shows_its_filters(target, pairs);
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
    let Ok(base) = Url::parse(&recording.base) else { return Err(no_readable_list()) };
    let mut judged = false;
    for view in &readable_pages(recording) {
        for link in RELS.iter().filter_map(|rel| view.page.link(rel)) {
            let Ok(url) = base.join(link) else { continue };
            if url.origin() != base.origin() {
                let expected = base.origin().ascii_serialization();
                return Err(CheckError::violation(
                    view.number(),
                    expected,
                    url.origin().ascii_serialization(),
                ));
            }
            judged = true;
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(no_readable_list()) }
}
