//! Readable pages of the lists, and the results for statements whose evidence is missing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::mode::Mode;
use conformance_model::reading::{
    self, Page, declares_json, page_request, parse_http_date, parse_utc, text_at,
};
use conformance_model::recording::{
    Burst, Caller, Exchange, List, PageRequest, Purpose, ReceivedResponse, Recording,
};
use conformance_model::verdict::CheckError;

/// The largest allowed page size. A page of this size is a long page.
pub(super) const PER_PAGE_MAX: u64 = reading::LONG_PAGE_SIZE;
/// The default page size.
pub(super) const PER_PAGE_DEFAULT: u64 = 25;

/// A page with status 200 and a JSON body, which was requested with an own key and an allowed size.
pub(super) struct PageView<'a> {
    pub(super) exchange: &'a Exchange,
    pub(super) mode: Mode,
    pub(super) request: PageRequest,
    pub(super) page: Page<'a>,
    /// The `Date` of the response. Without it, the time of the newest event in this and all earlier pages of the mode without
    /// a `Date`, which is not later than the read.
    pub(super) read_at: Option<OffsetDateTime>,
}

/// The numbers in the `meta` of a page: `current_page`, `per_page` and `total`.
#[derive(Clone, Copy)]
pub(super) struct PageNumbers {
    pub(super) current: u64,
    pub(super) size: u64,
    pub(super) total: u64,
}

impl PageNumbers {
    /// Returns the number of pages of the list.
    pub(super) fn page_count(self) -> u64 {
        self.total.div_ceil(self.size)
    }

    /// Returns the number of rows that the page must have.
    pub(super) fn row_count(self) -> u64 {
        self.total.saturating_sub((self.current - 1).saturating_mul(self.size)).min(self.size)
    }
}

/// Returns `true` if each mode may number its own objects of a kind (`charge`, `invoice` or
/// `payment_link`): then the same code does not mean the same object, and an unlisted code may exist.
///
/// A kind whose codes are random is not numbered. Otherwise the result is `true` if there is a kind
/// of which most codes occur in both modes. The kinds are considered together because there may be
/// few payment links, most of them in one mode only.
pub(super) fn modes_share_codes(recording: &Recording, kind: &str) -> bool {
    let views = readable_pages(recording);
    let codes = |kind: &str| Mode::BOTH.map(|mode| listed_codes(&views, mode, kind));
    if are_random(&codes(kind)) {
        return false;
    }
    ["charge", "invoice", "payment_link"].into_iter().any(|kind| {
        let [live, test] = codes(kind);
        live.intersection(&test).count() * 2 > live.len().min(test.len())
    })
}

/// Returns `true` if a list of the mode contains the code of a charge, invoice or payment link.
pub(super) fn is_listed(recording: &Recording, mode: Mode, kind: &str, code: &str) -> bool {
    listed_codes(&readable_pages(recording), mode, kind).contains(code)
}

/// Returns the codes of a kind, `charge`, `invoice` or `payment_link`, in all lists of a mode.
fn listed_codes<'a>(views: &'a [PageView<'_>], mode: Mode, kind: &str) -> BTreeSet<&'a str> {
    let views = views.iter().filter(|view| view.mode == mode);
    let rows = views.flat_map(|view| view.rows().iter().map(|row| (view.request.list, row)));
    rows.filter_map(|(list, row)| match (kind, list) {
        ("payment_link", List::Charges) => reading::text_at(row, &["payment_link"]),
        ("payment_link", List::Events) => reading::text_at(row, &["charge", "payment_link"]),
        (_, List::Events) => reading::text_at(row, &[kind, "code"]),
        ("charge", List::Charges) | ("invoice", List::Invoices) => reading::text_at(row, &["code"]),
        _ => None,
    })
    .collect()
}

/// Returns `true` if the codes of both modes are many, disjoint and not numbered: without their digits, most differ.
fn are_random([live, test]: &[BTreeSet<&str>; 2]) -> bool {
    const CODES_MIN: usize = 5;
    let without_digits = |code: &&str| code.replace(|letter: char| letter.is_ascii_digit(), "");
    let templates: BTreeSet<String> = live.union(test).map(without_digits).collect();
    live.len().min(test.len()) >= CODES_MIN
        && live.is_disjoint(test)
        && templates.len() * 2 > live.len() + test.len()
}

/// Returns a noun with its indefinite article.
pub(super) fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {noun}")
}

impl<'a> PageView<'a> {
    pub(super) fn number(&self) -> u32 {
        self.exchange.number
    }

    pub(super) fn rows(&self) -> &'a [Value] {
        self.page.rows().unwrap_or_default()
    }

    /// Returns the numbers of the page; `None` if one is missing or invalid, or if it is not the requested page. Other
    /// statements judge these faults.
    pub(super) fn numbers(&self) -> Option<PageNumbers> {
        let [current, size, total] =
            ["current_page", "per_page", "total"].map(|name| self.page.meta_number(name));
        let numbers = PageNumbers { current: current?, size: size?, total: total? };
        let is_requested_page = self.request.page.is_none_or(|page| page == numbers.current);
        (numbers.current > 0 && numbers.size > 0 && is_requested_page).then_some(numbers)
    }

    /// Returns `true` if the numbers of the page are consistent with its rows and each other.
    pub(super) fn is_consistent(&self) -> bool {
        let pages = self.page.meta_number("last_page");
        self.numbers().is_some_and(|numbers| {
            numbers.row_count() == self.rows().len() as u64
                && pages.is_some_and(|pages| pages.max(1) == numbers.page_count().max(1))
        })
    }

    /// Returns `true` if the page was requested without filters and not by a link.
    pub(super) fn has_only_page_and_size(&self) -> bool {
        self.request.filters.is_empty() && self.request.link.is_none()
    }
}

/// Returns the readable pages of an allowed size that were requested for comparison.
pub(super) fn compared_pages(recording: &Recording) -> Vec<PageView<'_>> {
    recording
        .exchanges
        .iter()
        .filter(|exchange| matches!(exchange.purpose, Purpose::Page(_)))
        .filter_map(page_view)
        .collect()
}

/// Returns all readable pages, including those of bursts and of reads while records are created. The numbers of a
/// single page must be consistent in any case.
pub(super) fn readable_pages(recording: &Recording) -> Vec<PageView<'_>> {
    let mut views: Vec<_> = recording.exchanges.iter().filter_map(page_view).collect();
    let mut newest: BTreeMap<Mode, Option<OffsetDateTime>> = BTreeMap::new();
    for view in &mut views {
        if view.read_at.is_none() {
            let events = view.rows().iter().filter(|_| view.request.list == List::Events);
            let newest_here = events.filter_map(recorded_at).max();
            let newest = newest.entry(view.mode).or_default();
            *newest = (*newest).max(newest_here);
            view.read_at = *newest;
        }
    }
    views
}

/// Returns the readable pages and those filtered by foreign or unknown values.
pub(super) fn all_pages(recording: &Recording) -> Vec<PageView<'_>> {
    let filtered = recording.exchanges.iter().filter_map(|exchange| {
        let Caller::Own(mode) = exchange.caller else { return None };
        let is_filter = matches!(exchange.purpose, Purpose::Filter { .. });
        let request = reading::request_of_target(&exchange.target).filter(|_| is_filter)?;
        let page = Page::from_exchange(exchange)?;
        Some(PageView { exchange, mode, request, page, read_at: response_date(exchange) })
    });
    readable_pages(recording).into_iter().chain(filtered).collect()
}

/// Returns the `created_at` of a record. For an event, this is the time at which it was recorded.
pub(crate) fn recorded_at(row: &Value) -> Option<OffsetDateTime> {
    parse_utc(text_at(row, &["created_at"])?)
}

/// Returns the `Date` header of a response.
pub(crate) fn response_date(exchange: &Exchange) -> Option<OffsetDateTime> {
    exchange.response().and_then(|response| parse_http_date(response.header("date")?))
}

/// Returns the `Date` of a response. Without it, the time at which the last page of the mode up to this response was read.
pub(super) fn read_at(views: &[PageView<'_>], exchange: &Exchange) -> Option<OffsetDateTime> {
    let is_of_mode = |view: &&PageView<'_>| exchange.caller == Caller::Own(view.mode);
    let earlier = || views.iter().filter(is_of_mode).filter(|view| view.number() <= exchange.number);
    response_date(exchange).or_else(|| earlier().next_back()?.read_at)
}

/// Returns the readable pages in groups that may be compared: those requested for comparison, and those of each burst.
/// Records may change in the minute between two groups.
pub(super) fn comparable_groups(recording: &Recording) -> Vec<Vec<PageView<'_>>> {
    let mut groups: BTreeMap<u8, Vec<PageView<'_>>> = BTreeMap::new();
    for view in readable_pages(recording) {
        let group = match view.exchange.purpose {
            Purpose::Page(_) => 0,
            Purpose::Burst(Burst::UntilRefused { series } | Burst::ConcurrentLiveKey { series }) => {
                series.saturating_add(1)
            }
            _ => continue,
        };
        groups.entry(group).or_default().push(view);
    }
    groups.into_values().collect()
}

/// The records of a list, from its long pages.
pub(super) struct FullList<'s> {
    /// The path and query of the first long page.
    pub(super) target: &'s str,
    pub(super) rows: Vec<&'s Value>,
    /// `true` if there are as many rows as the total of the first page.
    pub(super) is_complete: bool,
}

impl<'s> FullList<'s> {
    /// Concatenates the first long page of a list with later ones: those with the same total for
    /// which `is_included` returns `true`.
    fn join_pages(
        views: &[PageView<'s>],
        first: &PageView<'s>,
        is_included: impl Fn(&PageView<'_>) -> bool,
    ) -> FullList<'s> {
        let mut rows: Vec<&Value> = first.rows().iter().collect();
        for number in 2.. {
            let next = views.iter().find(|view| {
                view.has_only_page_and_size()
                    && (view.request.list, view.mode) == (first.request.list, first.mode)
                    && (view.request.page, view.request.per_page) == (Some(number), Some(PER_PAGE_MAX))
                    && view.page.meta_number("total") == first.page.meta_number("total")
                    && is_included(view)
            });
            // A page that is not full is the last one.
            let Some(next) = next.filter(|_| rows.len() as u64 == (number - 1) * PER_PAGE_MAX) else { break };
            rows.extend(next.rows());
        }
        let is_complete = first.page.meta_number("total") == Some(rows.len() as u64);
        FullList { target: &first.exchange.target, rows, is_complete }
    }

    /// Returns the beginning of a list, from a read of its first long page and later pages with the same total.
    pub(super) fn starting_with(views: &[PageView<'s>], first: &PageView<'s>) -> FullList<'s> {
        FullList::join_pages(views, first, |_| true)
    }

    /// Returns the list from the first of two reads of its first long page, and from later pages that were read between
    /// the two. These are left out if the total changed, or if `is_first_enough` is set.
    pub(super) fn between_reads(
        views: &[PageView<'s>],
        [before, after]: [&PageView<'s>; 2],
        is_first_enough: bool,
    ) -> FullList<'s> {
        let is_total_equal = before.page.meta_number("total") == after.page.meta_number("total");
        FullList::join_pages(views, before, |view| {
            !is_first_enough && is_total_equal && (before.number()..after.number()).contains(&view.number())
        })
    }

    /// Returns the list from each read of its first long page that is earlier than a page.
    pub(super) fn earlier_reads(
        views: &[PageView<'s>],
        view: &PageView<'_>,
    ) -> impl Iterator<Item = FullList<'s>> {
        let number = view.number();
        let earlier = first_long_page_reads(views, view.request.list, view.mode)
            .filter(move |view| view.number() < number);
        earlier.map(|first| FullList::starting_with(views, first))
    }

    /// Returns the list at the time of a page: the nearest read with the same total, because records are never deleted;
    /// or the read before the page, if the one after it has the same total.
    pub(super) fn at_time_of(
        recording: &Recording,
        views: &[PageView<'s>],
        view: &PageView<'_>,
    ) -> Option<FullList<'s>> {
        let total = |view: &PageView<'_>| view.page.meta_number("total");
        let has_same_list_and_total = |other: &&PageView<'_>| {
            other.has_only_page_and_size()
                && (other.request.list, other.mode) == (view.request.list, view.mode)
                && total(other) == total(view)
        };
        let candidates =
            first_long_page_reads(views, view.request.list, view.mode).filter(has_same_list_and_total);
        if let Some(first) = candidates.min_by_key(|other| other.number().abs_diff(view.number())) {
            return Some(FullList::join_pages(views, first, |_| true));
        }
        // Later pages may continue an older read of the first page.
        let may_continue_older_read =
            views.iter().filter(has_same_list_and_total).any(|other| other.number() < view.number());
        let pair = first_long_pages_around(recording, views, view)
            .filter(|[before, after]| total(before) == total(after));
        pair.filter(|_| !may_continue_older_read).map(|pair| FullList::between_reads(views, pair, false))
    }
}

/// A record of a list that was read page by page.
pub(super) struct JoinedRow<'s> {
    pub(super) row: &'s Value,
    /// `true` if the total was the same as on the first page, so that no record was created between the two reads.
    pub(super) is_simultaneous: bool,
}

/// Returns the beginning of a list without gaps, from a read of its first long page and later pages. Records that are created
/// between two reads move others to the next page, so a later page joins the list if its first record is known.
pub(super) fn joined_rows<'s>(views: &[PageView<'s>], first: &PageView<'s>) -> Vec<JoinedRow<'s>> {
    let read = FullList::starting_with(views, first).rows;
    let mut page_number = read.len() as u64 / PER_PAGE_MAX + 1;
    let is_full = !read.is_empty() && (read.len() as u64).is_multiple_of(PER_PAGE_MAX);
    let mut known: BTreeSet<String> = read.iter().filter_map(|row| reading::id_or_code(row)).collect();
    let has_ids = known.len() == read.len();
    let mut rows: Vec<_> = read.into_iter().map(|row| JoinedRow { row, is_simultaneous: true }).collect();
    let next_page = |number: u64, known: &BTreeSet<String>| {
        views.iter().find(|view| {
            let request = (view.request.list, view.mode, view.request.page, view.request.per_page);
            view.has_only_page_and_size()
                && request == (first.request.list, first.mode, Some(number), Some(PER_PAGE_MAX))
                && view.number() > first.number()
                && view.rows().first().and_then(reading::id_or_code).is_some_and(|id| known.contains(&id))
        })
    };
    while let Some(next) = next_page(page_number, &known).filter(|_| is_full && has_ids) {
        for row in next.rows() {
            let Some(id) = reading::id_or_code(row) else { return rows };
            if known.insert(id) {
                rows.push(JoinedRow { row, is_simultaneous: false });
            }
        }
        if (next.rows().len() as u64) < PER_PAGE_MAX {
            break;
        }
        page_number += 1;
    }
    rows
}

/// Returns the first long pages of the list that were read before and after a page.
pub(super) fn first_long_pages_around<'s, 'a>(
    recording: &Recording,
    views: &'s [PageView<'a>],
    view: &PageView<'_>,
) -> Option<[&'s PageView<'a>; 2]> {
    let [before, after] = reading::nearest_long_pages(recording, view.exchange, view.request.list)?;
    let view_of = |exchange: &Exchange| views.iter().find(|view| view.number() == exchange.number);
    Some([view_of(before)?, view_of(after)?])
}

/// Returns the page of an exchange with an own key, if it has status 200, JSON and an allowed size.
fn page_view(exchange: &Exchange) -> Option<PageView<'_>> {
    let Caller::Own(mode) = exchange.caller else { return None };
    let request = page_request(exchange)?;
    let page = Page::from_exchange(exchange)
        .filter(|page| request.has_allowed_size() && !shows_last_page(page, &request))?;
    Some(PageView { exchange, mode, request, page, read_at: response_date(exchange) })
}

/// Returns `true` if the request was for a page past the end of the list and the response has an
/// earlier page. The specification leaves open how a server responds to such a request.
fn shows_last_page(page: &Page, request: &PageRequest) -> bool {
    let (Some(requested), Some(current), Some(total)) =
        (request.page, page.meta_number("current_page"), page.meta_number("total"))
    else {
        return false;
    };
    let preceding = (requested.max(1) - 1).saturating_mul(request.per_page.unwrap_or(PER_PAGE_DEFAULT));
    current < requested && total > 0 && preceding >= total
}

/// Returns the reads of the first long page of a list in a mode.
pub(super) fn first_long_page_reads<'s, 'a>(
    views: &'s [PageView<'a>],
    list: List,
    mode: Mode,
) -> impl DoubleEndedIterator<Item = &'s PageView<'a>> {
    views.iter().filter(move |view| {
        view.has_only_page_and_size()
            && view.request.list == list
            && view.mode == mode
            && view.request.per_page == Some(PER_PAGE_MAX)
            && view.request.page.unwrap_or(1) == 1
    })
}

/// Returns the last request of a list with a key.
pub(super) fn last_list_read(recording: &Recording, caller: Caller, list: List) -> Option<&Exchange> {
    let is_page_of_list =
        |purpose: &Purpose| matches!(purpose, Purpose::Page(request) if request.list == list);
    recording.find_last(|exchange| exchange.caller == caller && is_page_of_list(&exchange.purpose))
}

/// Returns the last read of the first long page of a list in a mode.
pub(super) fn last_first_long_page_read<'s, 'a>(
    views: &'s [PageView<'a>],
    list: List,
    mode: Mode,
) -> Option<&'s PageView<'a>> {
    first_long_page_reads(views, list, mode).next_back()
}

/// Returns `true` if the total of a list changed while it was read. Then its pages cannot be compared.
pub(super) fn has_total_changed(views: &[PageView<'_>], list: List, mode: Mode) -> bool {
    let of_list = |view: &&PageView<'_>| {
        view.has_only_page_and_size() && view.request.list == list && view.mode == mode
    };
    let totals: BTreeSet<_> =
        views.iter().filter(of_list).filter_map(|view| view.page.meta_number("total")).collect();
    totals.len() > 1
}

/// Returns `true` if a requested page must exist: it is the first one, or it lies within every total that the list had.
pub(super) fn page_must_exist(pages: &[PageView<'_>], exchange: &Exchange, request: &PageRequest) -> bool {
    let Some(page) = request.page.filter(|page| *page > 1) else { return true };
    let of_list = pages
        .iter()
        .filter(|view| Caller::Own(view.mode) == exchange.caller && view.request.list == request.list);
    let totals = of_list
        .filter(|view| view.request.filters == request.filters)
        .filter_map(|view| view.page.meta_number("total"));
    totals
        .min()
        .is_some_and(|total| (page - 1).saturating_mul(request.per_page.unwrap_or(PER_PAGE_DEFAULT)) < total)
}

/// Returns `true` if a request was one of a burst.
pub(super) fn is_in_burst(exchange: &Exchange) -> bool {
    matches!(exchange.purpose, Purpose::Burst(_))
}

/// Returns `true` if a request of a burst may have been refused by the limit: its key is not served later in a burst.
pub(super) fn may_be_limited(recording: &Recording, exchange: &Exchange) -> bool {
    let later =
        || recording.exchanges.iter().filter(|later| later.number > exchange.number && is_in_burst(later));
    let is_served = |exchange: &Exchange| exchange.status() == Some(200) && exchange.target.contains("/v1/");
    is_in_burst(exchange) && !later().any(|later| later.caller == exchange.caller && is_served(later))
}

/// Returns the page whose link was followed to this one.
pub(super) fn page_with_link<'s, 'a>(
    views: &'s [PageView<'a>],
    view: &PageView<'_>,
) -> Option<&'s PageView<'a>> {
    let link = view.request.link.as_ref()?;
    views.iter().find(|view| view.number() == link.exchange)
}

pub(super) fn no_readable_list() -> CheckError {
    CheckError::unjudged(
        "no list had a readable response",
        "see lists.served, answers.json and paging.envelope",
    )
}

pub(super) fn too_few_records() -> CheckError {
    CheckError::unjudged(
        "no list has 3 or more records in either mode",
        "open and cancel a few charges with the test key's account, then check again",
    )
}

pub(super) fn list_changed() -> CheckError {
    CheckError::unjudged(
        "records were created while the list was read",
        "check again while nothing is created",
    )
}

/// Checks that the media type of an error is JSON. A missing Content-Type counts as JSON.
pub(super) fn check_media_type(exchange: &Exchange, response: &ReceivedResponse) -> Result<(), CheckError> {
    match response.header("content-type") {
        Some(content_type) if !declares_json(response) => {
            let actual = format!("Content-Type {content_type}");
            Err(CheckError::violation(exchange.number, "a JSON media type", actual))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a required exchange that is missing or has no usable response.
pub(super) fn missing_response(exchange: Option<&Exchange>, what: &str) -> CheckError {
    let remedy = "check again; if the result is the same, see the recording";
    match exchange {
        None => CheckError::unjudged(format!("{what} was not requested"), remedy),
        Some(exchange) => {
            CheckError::unjudged(format!("{what}: {} ({})", exchange.summary(), exchange.target), remedy)
        }
    }
}
