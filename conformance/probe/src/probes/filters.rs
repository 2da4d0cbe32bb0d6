//! Filters, single, in pairs, and the three filters of events combined.
//!
//! The burst has read all of them in test mode. This probe reads single filters in live mode, and those that no burst
//! has read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::budget::Cost;
use conformance_model::mode::Mode;
use conformance_model::reading::{
    ChargeInvoices, Page, charges_of, enclosing, holds_charge, names_invoice, page_request, selected_names,
    shown_link, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, PageRequest, Purpose, Recording, Side};

use crate::probes::lists::RECORDS_MIN;
use crate::probes::positions::{LONG, filtered, sized};
use crate::session::{Session, encoded};

/// The number of links that are followed because their query lacks a parameter.
const LINKS_FOLLOWED_MAX: u32 = 2;
/// The requests with one filter: two pages of a type, and five filters.
const SINGLE_FILTERS: u32 = 7;
/// The requests with combined filters, and a second page by number. If a burst has read them, the long pages are read
/// again instead.
const COMBINED_FILTERS: u32 = 6;
const UNKNOWN_VALUES: u32 = UNKNOWN_VALUE_FILTERS.len() as u32;
/// The requests for an old paid invoice, and its charge.
const OLD_INVOICE: u32 = 2;
/// The final reads of the unfiltered lists, three in each mode.
const FINAL_READS: u32 = 6;
/// The number of filtered pages that are read again because records changed.
const REREADS_MAX: u32 = 3;
/// The requests for each of these pages.
const REQUESTS_PER_REREAD: u32 = 2;
/// The fewest requests that the statements about filters need.
pub(crate) const NEEDED: u32 = SINGLE_FILTERS + COMBINED_FILTERS + OLD_INVOICE + UNKNOWN_VALUES + FINAL_READS;
const REQUESTS_MAX: u32 = NEEDED
    + LINKS_FOLLOWED_MAX
    + REREADS_MAX * REQUESTS_PER_REREAD
    + HALVED_FILTERS.len() as u32
    + OTHER_VALUES_MAX;
/// The most further types and statuses that are requested. A burst requests all of them in test mode.
const OTHER_VALUES_MAX: u32 = 9;
/// Either key may have the values to filter by.
pub(crate) const COST: Cost = Cost { live: REQUESTS_MAX, test: REQUESTS_MAX, other: 0, total: REQUESTS_MAX };

pub(crate) async fn probe(session: &mut Session<'_>) {
    let mut links_followed = 0;
    let is_page = |purpose: &Purpose| matches!(purpose, Purpose::Page(_));
    let [live, test] = Mode::BOTH.map(|mode| FilterValues::of(&session.recording, mode, is_page));
    let has_burst = has_filtered(&session.recording, List::Events, &["type"]);
    let modes = match has_burst {
        true => [(Mode::Live, &live), (Mode::Test, &test)],
        false => [(Mode::Test, &test), (Mode::Live, &live)],
    };
    if let Some((mode, kind)) = selective_type(&modes) {
        let request = filtered(List::Events, &[("type", &kind)], 2);
        let (first, page) = session.page(mode, request.clone()).await;
        session.follow(mode, &first, "next").await;
        // Links may work where page numbers are ignored. A burst tests this in test mode.
        if !has_burst && page.and_then(|page| page.meta("total")).is_some_and(|total| total > 2) {
            session.page(mode, PageRequest { page: Some(2), ..request }).await;
        }
    }
    for (live_request, test_request) in live.requests().into_iter().zip(test.requests()).skip(1) {
        let is_shown = |request: &PageRequest| {
            let names: Vec<_> = request.filters.iter().map(|(name, _)| name.as_str()).collect();
            has_filtered(&session.recording, request.list, &names)
        };
        let shown = live_request.as_ref().or(test_request.as_ref()).is_some_and(is_shown);
        let found = match shown {
            true => live_request
                .filter(|request| request.filters.len() == 1)
                .map(|request| (Mode::Live, live.second_page(request))),
            false => test_request
                .map(|test_request| (Mode::Test, test_request))
                .or(live_request.map(|live_request| (Mode::Live, live_request))),
        };
        if let Some((mode, filters)) = found {
            read_filtered(session, mode, filters, &mut links_followed).await;
        }
    }
    read_old_paid_invoice(session, &modes).await;
    unknown_values(session, &modes).await;
    halved_values(session, &modes).await;
    other_values(session, &modes).await;
    read_again(session).await;
}

/// Reads the types and statuses in the lists that no request filtered by, in both modes alternately, and then those that
/// only one mode was asked for, with the other key. The lists take turns.
async fn other_values(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    let is_asked = |mode: Mode, request: &PageRequest| {
        let is_same = |it: PageRequest| (it.list, &it.filters) == (request.list, &request.filters);
        let mut own = session.recording.exchanges.iter().filter(|it| it.caller == Caller::Own(mode));
        own.any(|it| page_request(it).is_some_and(is_same))
    };
    let of_lists = UNKNOWN_VALUE_FILTERS.map(|(list, name)| {
        let [first, second] = modes.each_ref().map(|(_, available)| available.values(list, name));
        let values: BTreeSet<&String> = first.iter().chain(&second).collect();
        // Of all statuses of a charge, the specification names this one.
        let (paid, others): (Vec<_>, Vec<_>) = values.into_iter().partition(|value| *value == "paid");
        let (mut new, mut known) = (Vec::new(), Vec::new());
        for value in paid.into_iter().chain(others) {
            let request = filtered(list, &[(name, value)], LONG);
            let shown = [(modes[0].0, &first), (modes[1].0, &second)];
            let mut open: Vec<Mode> = shown
                .into_iter()
                .filter(|(mode, values)| values.contains(value) && !is_asked(*mode, &request))
                .map(|(mode, _)| mode)
                .collect();
            if modes.iter().any(|(mode, _)| is_asked(*mode, &request)) {
                known.extend(open.into_iter().map(|mode| (mode, request.clone())));
            } else if !open.is_empty() {
                let mode = open.swap_remove(new.len() % open.len());
                new.push((mode, request));
            }
        }
        new.extend(known);
        new
    });
    let longest = of_lists.iter().map(Vec::len).max().unwrap_or_default();
    let requests =
        (0..longest).flat_map(|at| of_lists.iter().filter_map(move |requests| requests.get(at).cloned()));
    for (mode, request) in requests.take(OTHER_VALUES_MAX as usize) {
        if session.has_room() {
            session.page(mode, request).await;
        }
    }
}

/// Reads the unfiltered lists again, for comparison with the filtered pages in between. A page whose selection changed
/// is read once more, between two reads of the unfiltered list.
async fn read_again(session: &mut Session<'_>) {
    for mode in Mode::BOTH {
        for list in List::ALL {
            let lacks_comparison = |exchange: &Exchange| {
                filtered_by(exchange, mode).is_some_and(|request| request.list == list)
                    && enclosing(&session.recording, exchange, list).is_none()
            };
            if session.recording.exchanges.iter().any(lacks_comparison) && session.has_room() {
                session.page(mode, sized(list, None, LONG)).await;
            }
        }
    }
    for _ in 0..REREADS_MAX {
        let Some((mode, request)) = unstable_page(&session.recording) else { return };
        if !session.has_room_for(REQUESTS_PER_REREAD) {
            return;
        }
        let long = sized(request.list, None, LONG);
        session.page(mode, request).await;
        session.page(mode, long).await;
    }
}

/// Returns the request of a filtered page with the key of a mode, if it was not a link.
fn filtered_by(exchange: &Exchange, mode: Mode) -> Option<PageRequest> {
    let is_read = exchange.caller == Caller::Own(mode) && exchange.status() == Some(200);
    page_request(exchange).filter(|request| is_read && !request.filters.is_empty() && request.link.is_none())
}

/// Returns a filtered page that was never read between two unfiltered reads with the same selection.
fn unstable_page(recording: &Recording) -> Option<(Mode, PageRequest)> {
    let pairs = &ChargeInvoices::of(recording);
    let selected = |request: &PageRequest, whole: &Exchange| {
        let page = Page::of(whole)?;
        selected_names(request.list, &page.rows()?.iter().collect::<Vec<_>>(), &request.filters, pairs)
    };
    let is_stable = |exchange: &Exchange, request: &PageRequest| {
        let pair = enclosing(recording, exchange, request.list);
        pair.is_some_and(|[before, after]| selected(request, before) == selected(request, after))
    };
    let mut unstable = Vec::new();
    for exchange in &recording.exchanges {
        let Some((mode, request)) =
            Mode::BOTH.into_iter().find_map(|mode| Some((mode, filtered_by(exchange, mode)?)))
        else {
            continue;
        };
        unstable.retain(|known| *known != (mode, request.clone()));
        if !is_stable(exchange, &request) {
            unstable.push((mode, request));
        }
    }
    unstable.into_iter().next()
}

/// Reads an old paid invoice and all events of its charge, if no recent event is a payment of an invoice.
async fn read_old_paid_invoice(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    let is_paid = |event: &Value| text_at(event, &["type"]) == Some("invoice.paid");
    if modes.iter().any(|(_, available)| available.events.iter().any(is_paid)) {
        return;
    }
    let full = modes.iter().filter(|(_, available)| available.events.len() as u64 >= LONG);
    for (mode, _) in full {
        if !session.has_room_for(OLD_INVOICE) {
            return;
        }
        let (_, page) = session.page(*mode, filtered(List::Events, &[("type", "invoice.paid")], LONG)).await;
        let rows = page.and_then(|page| page.rows().cloned()).unwrap_or_default();
        if let Some(code) = rows.iter().find_map(|row| charges_of(row)?.first().map(|it| (*it).to_owned())) {
            session.page(*mode, filtered(List::Events, &[("charge", &code)], LONG)).await;
            return;
        }
    }
}

/// Filters by values that no record has.
const UNKNOWN_VALUE_FILTERS: [(List, &str); 3] =
    [(List::Events, "type"), (List::Charges, "status"), (List::Invoices, "status")];

async fn unknown_values(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    for (list, filter) in UNKNOWN_VALUE_FILTERS {
        let found = modes.iter().find(|(_, available)| !available.rows(list).is_empty());
        if let Some((mode, available)) = found
            && session.has_room()
        {
            let unknown =
                session.unused_id_like(if filter == "type" { "charge.settled" } else { "settled" }, 7);
            let value = value_prefix(available.rows(list), filter).unwrap_or(unknown);
            let path = format!("{}?{filter}={}", list.path(), encoded(&value));
            let purpose = Purpose::Filter { list, filter: filter.to_owned(), side: Side::AbsentBefore };
            session.ask(Caller::Own(*mode), purpose, &path).await;
        }
    }
}

/// Filters whose value is also requested by its first half. Databases may compare without case, and frameworks cut off
/// blanks: neither is excluded by the specification.
const HALVED_FILTERS: [(List, &str); 2] = [(List::Events, "charge"), (List::Charges, "payment_link")];

/// Returns the first half of a value. Without its last characters only, the code of a charge may be that of an older one.
fn first_half(value: &str) -> Option<String> {
    const LEN_MIN: usize = 8;
    let len = value.chars().count();
    (len >= LEN_MIN).then(|| value.chars().take(len / 2).collect())
}

async fn halved_values(session: &mut Session<'_>, modes: &[(Mode, &FilterValues); 2]) {
    for (list, filter) in HALVED_FILTERS {
        let found = modes.iter().find_map(|(mode, available)| {
            let shown = available.values(list, filter);
            let mut halves = shown.iter().filter_map(|value| first_half(value));
            Some((*mode, halves.find(|value| !shown.contains(value) && !is_hexadecimal(value))?))
        });
        if let Some((mode, value)) = found
            && session.has_room()
        {
            let path = format!("{}?{filter}={}", list.path(), encoded(&value));
            let purpose = Purpose::Filter { list, filter: filter.to_owned(), side: Side::AbsentAfter };
            session.ask(Caller::Own(mode), purpose, &path).await;
        }
    }
}

/// Returns `true` for numbers and UUIDs, whose first half may be another value.
fn is_hexadecimal(value: &str) -> bool {
    value.bytes().all(|it| it.is_ascii_hexdigit() || it == b'-')
}

/// Returns a prefix of a filter value that is no value itself: the first word of `charge.paid`, or `paid` without its
/// last letter.
fn value_prefix(rows: &[Value], name: &str) -> Option<String> {
    let shown = counts(rows, name);
    let mut prefixes = shown.keys().filter_map(|value| {
        let last = value.char_indices().next_back().map(|(last, _)| last);
        let end = value.rfind('.').or(last).filter(|end| *end > 0)?;
        Some(&value[..end])
    });
    prefixes.find(|value| !shown.contains_key(value)).map(str::to_owned)
}

/// Returns `true` if a burst read a list with filters of these names.
fn has_filtered(recording: &Recording, list: List, names: &[&str]) -> bool {
    let in_burst =
        recording.exchanges.iter().filter(|exchange| matches!(exchange.purpose, Purpose::Burst(_)));
    in_burst.filter(|exchange| exchange.status() == Some(200)).filter_map(page_request).any(|request| {
        request.list == list
            && request.filters.iter().map(|(name, _)| name.as_str()).eq(names.iter().copied())
    })
}

type Filters = Vec<(&'static str, String)>;

/// The filter values in the lists of a mode.
pub(super) struct FilterValues {
    events: Vec<Value>,
    charges: Vec<Value>,
    invoices: Vec<Value>,
}

impl FilterValues {
    /// Returns the values in the long pages with a matching purpose.
    pub(super) fn of(recording: &Recording, mode: Mode, fits: impl Fn(&Purpose) -> bool) -> FilterValues {
        let rows = |list| {
            let mut pages = BTreeMap::new();
            for exchange in recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(mode))
            {
                let Some(request) = page_request(exchange).filter(|_| fits(&exchange.purpose)) else {
                    continue;
                };
                if (request.list, request.per_page) == (list, Some(LONG)) && request.filters.is_empty() {
                    let rows = Page::of(exchange).and_then(|page| page.rows().cloned());
                    pages.insert(request.page.unwrap_or(1), rows.unwrap_or_default());
                }
            }
            pages.into_values().flatten().collect()
        };
        FilterValues {
            events: rows(List::Events),
            charges: rows(List::Charges),
            invoices: rows(List::Invoices),
        }
    }

    fn rows(&self, list: List) -> &[Value] {
        match list {
            List::Charges => &self.charges,
            List::Invoices => &self.invoices,
            List::Events => &self.events,
        }
    }

    /// Returns every value of a filter in the lists.
    fn values(&self, list: List, filter: &str) -> BTreeSet<String> {
        let texts = |rows: &[Value], path: &[&str]| -> BTreeSet<String> {
            let texts = rows.iter().filter_map(|row| text_at(row, path));
            texts.filter(|text| !text.is_empty()).map(str::to_owned).collect()
        };
        match filter {
            "charge" | "invoice" => texts(&self.events, &[filter, "code"]),
            "payment_link" => {
                let mut links = texts(&self.events, &["charge", "payment_link"]);
                links.extend(self.charges.iter().filter_map(shown_link).map(str::to_owned));
                links
            }
            _ => texts(self.rows(list), &[filter]),
        }
    }

    /// Returns requests with one filter, with pairs, and with the three filters of events. `None` if there is no value.
    pub(super) fn requests(&self) -> [Option<PageRequest>; 11] {
        let events = &self.events[..];
        // The newest object with the most types of events, of which a filter may omit some.
        let value = |name, path: [&str; 2]| {
            let types = |value: &&str| {
                let of_value = events.iter().filter(|event| text_at(event, &path) == Some(*value));
                of_value.filter_map(|event| text_at(event, &["type"])).collect::<BTreeSet<_>>().len()
            };
            let values = events.iter().rev().filter_map(|event| text_at(event, &path));
            let text = values.max_by_key(types)?;
            Some(vec![(name, text.to_owned())])
        };
        let listed_link = || {
            let link = self.charges.iter().find_map(shown_link)?;
            Some(vec![("payment_link", link.to_owned())])
        };
        let all_three = || {
            let (kind, mut pair) = charge_and_invoice(events)?;
            pair.insert(0, ("type", kind));
            Some(pair)
        };
        let by = |list, filters: Option<Filters>| {
            // An empty value is no filter.
            let filters = filters.filter(|filters| filters.iter().all(|(_, value)| !value.is_empty()))?;
            let filters: Vec<_> = filters.iter().map(|(name, value)| (*name, value.as_str())).collect();
            Some(filtered(list, &filters, LONG))
        };
        [
            by(List::Events, selective_value(events, "type").map(|(kind, _)| vec![("type", kind)])),
            by(List::Events, value("charge", ["charge", "code"])),
            by(List::Events, value("invoice", ["invoice", "code"])),
            by(List::Charges, self.status(List::Charges, "charge")),
            by(List::Invoices, self.status(List::Invoices, "invoice")),
            by(List::Charges, value("payment_link", ["charge", "payment_link"]).or_else(listed_link)),
            by(List::Events, type_of(events, "charge")),
            by(List::Events, type_of(events, "invoice")),
            by(List::Events, charge_and_invoice(events).map(|(_, pair)| pair)),
            by(List::Events, all_three()),
            by(List::Charges, status_and_link(events)),
        ]
    }

    /// Replaces a request by status by that of the second page, if there is one: the first was read in test mode.
    fn second_page(&self, request: PageRequest) -> PageRequest {
        const HALVES: u64 = 2;
        let [(name, value)] = &request.filters[..] else { return request };
        let count =
            self.rows(request.list).iter().filter(|row| text_at(row, &[name]) == Some(value)).count() as u64;
        if name != "status" || count < HALVES {
            return request;
        }
        PageRequest { page: Some(2), per_page: Some(count / HALVES), ..request }
    }

    /// Returns the further requests of a burst: the second page of each filter by number, all other types and statuses
    /// in the lists, and the events of the oldest objects.
    pub(super) fn further_requests(&self) -> Vec<PageRequest> {
        let mut asked: Vec<_> = self.requests().into_iter().flatten().collect();
        asked.retain(|request| request.filters.len() == 1);
        let has_second = |request: &&PageRequest| {
            let (name, value) = &request.filters[0];
            let value_in = |row| match name.as_str() {
                "charge" | "invoice" => text_at(row, &[name, "code"]),
                _ => text_at(row, &[name]),
            };
            self.rows(request.list).iter().filter(|row| value_in(row) == Some(value)).count() > 1
        };
        let second =
            |request: &PageRequest| PageRequest { page: Some(2), per_page: Some(1), ..request.clone() };
        let by_default = |request: &PageRequest| PageRequest { per_page: None, ..request.clone() };
        let mut further: Vec<_> = asked.iter().filter(has_second).map(second).collect();
        further.extend(asked.iter().find(has_second).map(by_default));
        let values = |list, name| counts(self.rows(list), name).into_keys().map(move |key| (list, name, key));
        let oldest = |list, name, path: [&str; 2]| {
            let mut values = self.events.iter().rev().filter_map(|event| text_at(event, &path));
            let value = values.find(|value| !value.is_empty())?;
            Some((list, name, value))
        };
        let values = values(List::Events, "type")
            .chain(values(List::Charges, "status"))
            .chain(values(List::Invoices, "status"))
            .chain(oldest(List::Events, "charge", ["charge", "code"]))
            .chain(oldest(List::Events, "invoice", ["invoice", "code"]))
            .chain(oldest(List::Charges, "payment_link", ["charge", "payment_link"]));
        let requests = values.map(|(list, name, value)| filtered(list, &[(name, value)], LONG));
        further.extend(requests.filter(|request| !asked.contains(request)));
        further
    }

    /// Returns a status that several rows of the list have, but not all; otherwise one of the events.
    fn status(&self, list: List, member: &str) -> Option<Filters> {
        let shown = selective_value(self.rows(list), "status").map(|(status, _)| status);
        let status_in_events = || self.events.iter().find_map(|event| text_at(event, &[member, "status"]));
        let status = shown.or_else(|| status_in_events().map(str::to_owned))?;
        Some(vec![("status", status)])
    }

    /// Returns the id of the oldest event of each type.
    pub(super) fn one_of_each_type(&self) -> Vec<String> {
        let mut found = BTreeMap::new();
        for event in self.events.iter().rev() {
            if let (Some(kind), Some(id)) = (text_at(event, &["type"]), text_at(event, &["id"])) {
                found.entry(kind).or_insert(id);
            }
        }
        found.into_values().map(str::to_owned).collect()
    }
}

/// Returns the values of a member, with the number of rows that have each.
fn counts<'a>(rows: &'a [Value], name: &str) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for value in rows.iter().filter_map(|row| text_at(row, &[name])) {
        *counts.entry(value).or_default() += 1;
    }
    counts
}

/// Returns a value of a member, and `true` if it is selective: it fills two pages of two, and not all rows have it. A
/// selective value is preferred.
fn selective_value(rows: &[Value], name: &str) -> Option<(String, bool)> {
    let is_selective = |count: usize| count as u64 >= RECORDS_MIN && count < rows.len();
    let mut found: Vec<_> =
        counts(rows, name).into_iter().map(|(value, count)| (value, is_selective(count))).collect();
    found.sort_by_key(|(_, is_selective)| !is_selective);
    found.into_iter().next().map(|(value, is_selective)| (value.to_owned(), is_selective))
}

/// Returns a mode and an event type, preferably one for which `selective_value` returns `true`.
fn selective_type(modes: &[(Mode, &FilterValues); 2]) -> Option<(Mode, String)> {
    let found = modes
        .iter()
        .filter_map(|(mode, available)| Some((*mode, selective_value(&available.events, "type")?)));
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(_, (_, is_selective))| !is_selective);
    found.into_iter().next().map(|(mode, (kind, _))| (mode, kind))
}

async fn read_filtered(session: &mut Session<'_>, mode: Mode, filters: PageRequest, followed: &mut u32) {
    let (exchange, page) = session.page(mode, filters).await;
    // A link with all parameters is not followed. The others must be, because only their page shows what they preserve.
    if *followed < LINKS_FOLLOWED_MAX
        && session.has_room()
        && let Some(rel) = page.and_then(|page| link_lacking_parameter(&exchange, &page))
    {
        *followed += 1;
        session.follow(mode, &exchange, rel).await;
    }
}

/// Returns the first link whose query lacks a requested parameter.
fn link_lacking_parameter(exchange: &Exchange, page: &Page) -> Option<&'static str> {
    let Purpose::Page(PageRequest { filters, per_page, .. }) = &exchange.purpose else { return None };
    let mut required = filters.clone();
    required.extend(per_page.map(|size| ("per_page".to_owned(), size.to_string())));
    ["next", "last", "first", "prev"].into_iter().find(|rel| {
        page.link(rel).filter(|link| !link.is_empty()).is_some_and(|link| {
            let query = link.split_once('?').map_or("", |(_, query)| query);
            let query = query.split('#').next().unwrap_or_default();
            let pairs: Vec<(String, String)> =
                url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            !required.iter().all(|pair| pairs.contains(pair))
        })
    })
}

/// Returns the type of an event and its charge or invoice, preferably one that also has events of other types.
fn type_of(events: &[Value], object: &'static str) -> Option<Filters> {
    let code = |event: &Value| text_at(event, &[object, "code"]).map(str::to_owned);
    let kind = |event: &Value| text_at(event, &["type"]).map(str::to_owned);
    let pair = |event: &Value| Some(vec![("type", kind(event)?), (object, code(event)?)]);
    let is_selective = |event: &&Value| {
        events.iter().any(|it| code(it).is_some() && code(it) == code(event) && kind(it) != kind(event))
    };
    events.iter().filter(is_selective).find_map(pair).or_else(|| events.iter().find_map(pair))
}

/// Returns a charge and an invoice, preferably related ones, and the type of an event of the charge.
fn charge_and_invoice(events: &[Value]) -> Option<(String, Filters)> {
    let charges = events.iter().filter_map(|event| Some((event, text_at(event, &["charge", "code"])?)));
    let invoices: Vec<_> =
        events.iter().filter_map(|event| Some((event, text_at(event, &["invoice", "code"])?))).collect();
    let mut pairs = Vec::new();
    for (event, charge) in charges {
        let related = invoices
            .iter()
            .find(|(of, invoice)| holds_charge(of, charge) || names_invoice(event, invoice))
            .map(|(_, invoice)| *invoice);
        let invoice = related.or(invoices.first().map(|(_, invoice)| *invoice));
        pairs.push((related.is_none(), event, charge, invoice?));
    }
    pairs.sort_by_key(|(is_unrelated, ..)| *is_unrelated);
    let (_, event, charge, invoice) = pairs.into_iter().next()?;
    let kind = text_at(event, &["type"])?.to_owned();
    Some((kind, vec![("charge", charge.to_owned()), ("invoice", invoice.to_owned())]))
}

/// Returns a status and a payment link, preferably ones that select different charges.
fn status_and_link(events: &[Value]) -> Option<Filters> {
    let both = |event: &Value| {
        Some((
            text_at(event, &["charge", "status"])?.to_owned(),
            text_at(event, &["charge", "payment_link"]).map(str::to_owned),
        ))
    };
    let all: Vec<_> = events.iter().filter_map(both).collect();
    let linked = all.iter().filter_map(|(status, link)| Some((status, link.as_ref()?)));
    let selectivity = |status: &String, link: &String| {
        let others = |it: &&(String, Option<String>)| (it.0 == *status) != (it.1.as_ref() == Some(link));
        let groups: BTreeSet<_> = all.iter().filter(others).map(|it| it.0 == *status).collect();
        groups.len()
    };
    let (status, link) = linked.max_by_key(|(status, link)| selectivity(status, link))?;
    Some(vec![("status", status.clone()), ("payment_link", link.clone())])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::path_of;

    fn event(kind: &str, charge: &Value, invoice: &Value) -> Value {
        json!({ "type": kind, "charge": charge, "invoice": invoice })
    }

    #[track_caller]
    fn check(found: Option<Filters>, expected: &str) {
        let found = found.unwrap_or_default();
        let shown: Vec<_> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown.join("&"), expected);
    }

    #[test]
    fn combined_filters_select_different_records() {
        let lone = event("charge.created", &json!({ "code": "c1" }), &Value::Null);
        let paid = event("charge.paid", &json!({ "code": "c2", "invoice": "i2" }), &Value::Null);
        let created = event("charge.created", &json!({ "code": "c2", "invoice": "i2" }), &Value::Null);
        let invoice = event("invoice.created", &Value::Null, &json!({ "code": "i1" }));
        let settled =
            event("invoice.paid", &Value::Null, &json!({ "code": "i2", "charges": [{ "code": "c2" }] }));
        let events = [lone.clone(), invoice.clone(), paid, created, settled];
        check(type_of(&events, "charge"), "type=charge.paid&charge=c2");
        check(type_of(&events, "invoice"), "type=invoice.created&invoice=i1");
        check(charge_and_invoice(&events).map(|it| it.1), "charge=c2&invoice=i2");
        check(charge_and_invoice(&[lone.clone(), invoice]).map(|it| it.1), "charge=c1&invoice=i1");
        check(charge_and_invoice(&[lone]).map(|it| it.1), "");
    }

    #[test]
    fn a_burst_requests_second_pages_and_every_value() {
        let rows = |statuses: &[&str]| -> Vec<_> {
            statuses.iter().map(|status| json!({ "status": status })).collect()
        };
        let [code, older] = ["c1", "c0"].map(|code| json!({ "code": code }));
        let available = FilterValues {
            events: [("charge.paid", &code), ("charge.created", &code), ("charge.expired", &older)]
                .map(|(kind, charge)| event(kind, charge, &Value::Null))
                .into(),
            charges: rows(&["paid", "open", "paid", "expired"]),
            invoices: rows(&["open"]),
        };
        let found: Vec<_> = available.further_requests().iter().map(path_of).collect();
        let expected = [
            "events?charge=c1&per_page=1&page=2",
            "events?charge=c1",
            "events?type=charge.expired&per_page=100",
            "events?type=charge.paid&per_page=100",
            "charges?status=open&per_page=100",
            "charges?status=paid&per_page=100",
            "events?charge=c0&per_page=100",
        ];
        assert_eq!(found, expected.map(|expected| format!("/v1/{expected}")));
    }
}
