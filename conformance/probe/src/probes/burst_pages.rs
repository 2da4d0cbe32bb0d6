//! The pages that a burst reads, with the test key and with the live key at the same time.

use std::collections::VecDeque;

use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{Page, page_request, text_at};
use conformance_model::recording::{Burst, Caller, Exchange, List, PageRequest, Purpose, Recording};

use crate::probes::filter_values::FilterValues;
use crate::probes::positions::{self, LONG_PAGE_SIZE, default_request, sized_request};
use crate::request_paths::{event_path, page_path};

/// The pages that a burst reads in addition to its paths. The budgets of the other probes are too small for them.
pub(super) struct BurstPages {
    series: u8,
    /// The paths of the test key that are requested next.
    pub(super) queue: VecDeque<String>,
    /// The concurrent requests of the live key, one per batch.
    pub(super) live_requests: VecDeque<(Caller, Purpose, String)>,
    /// `true` once [`BurstPages::add_further_requests`] has added the last requests.
    is_complete: bool,
    /// `true` once [`BurstPages::add_live_filters`] has added the last requests of the live key.
    has_live_filters: bool,
    /// The number of records of each list.
    totals: Vec<(List, u64)>,
}

impl BurstPages {
    pub(super) fn new(series: u8) -> BurstPages {
        let lists = List::ALL.map(|list| list.path());
        let live_paths = [ACCOUNT_PATH, lists[2], ACCOUNT_PATH, lists[0], ACCOUNT_PATH, lists[1]];
        let live = Caller::Own(Mode::Live);
        let live_requests = live_paths
            .map(|path| (live, Purpose::Burst(Burst::ConcurrentLiveKey { series }), path.to_owned()));
        let live_requests = if series == Burst::CLOSING { VecDeque::new() } else { live_requests.into() };
        BurstPages {
            series,
            queue: VecDeque::new(),
            live_requests,
            is_complete: false,
            has_live_filters: series == Burst::CLOSING,
            totals: Vec::new(),
        }
    }

    /// Adds the long pages, once the first batch has shown the totals. The filters use values that these pages list.
    pub(super) fn add_long_pages(&mut self, exchanges: &[Exchange]) {
        for exchange in exchanges {
            let total = Page::from_exchange(exchange).and_then(|page| page.meta_number("total"));
            if let Some((request, total)) = page_request(exchange).zip(total).filter(|(_, total)| *total > 0)
            {
                self.totals.push((request.list, total));
            }
        }
        let lists = || self.totals.iter().copied();
        let mut requests: Vec<PageRequest> =
            lists().map(|(list, _)| sized_request(list, None, LONG_PAGE_SIZE)).collect();
        requests.extend(lists().flat_map(|(list, total)| positions::long_pages(list, total)));
        requests.extend(lists().map(|(list, _)| default_request(list)));
        self.queue = requests.iter().map(page_path).collect();
    }

    /// Adds requests of the live key once its other requests were sent: for each list a filtered page that the test key has
    /// read. Their values are those of live records, which the other requests have read.
    pub(super) fn add_live_filters(&mut self, recording: &Recording) {
        if self.has_live_filters || !self.live_requests.is_empty() {
            return;
        }
        self.has_live_filters = true;
        let (caller, purpose) =
            (Caller::Own(Mode::Live), Purpose::Burst(Burst::ConcurrentLiveKey { series: self.series }));
        let pages = List::ALL.into_iter().filter_map(|list| filter_used_by_both_modes(recording, list));
        self.live_requests.extend(pages.map(|request| (caller, purpose.clone(), page_path(&request))));
    }

    /// Adds requests once the long pages were read: filters, one event of each type, the first long pages again to
    /// detect changes, and then all other positions. Omits those that were already served, so that a later burst
    /// continues with the rest; only burst [`Burst::REPEATED`] repeats them.
    pub(super) fn add_further_requests(&mut self, recording: &Recording) {
        if self.is_complete || !self.queue.is_empty() {
            return;
        }
        self.is_complete = true;
        let of_burst = Purpose::Burst(Burst::UntilRefused { series: self.series });
        let available = FilterValues::from_recording(recording, Mode::Test, |purpose| *purpose == of_burst);
        let requests = available.requests().into_iter().flatten().chain(available.further_requests());
        self.queue.extend(requests.map(|request| page_path(&request)));
        self.queue.extend(available.oldest_event_of_each_type().iter().map(|id| event_path(id)));
        let first_long_pages: Vec<_> = self
            .totals
            .iter()
            .map(|(list, _)| page_path(&sized_request(*list, None, LONG_PAGE_SIZE)))
            .collect();
        self.queue.extend(first_long_pages.iter().cloned());
        let by_list: Vec<_> =
            self.totals.iter().map(|(list, total)| positions::burst_pages(*list, *total)).collect();
        // Round-robin over the lists, because the burst may end before all pages are read.
        for index in 0..by_list.iter().map(Vec::len).max().unwrap_or_default() {
            self.queue.extend(by_list.iter().filter_map(|requests| requests.get(index)).map(page_path));
        }
        let served = || {
            recording.exchanges.iter().filter(|exchange| {
                exchange.caller == Caller::Own(Mode::Test) && exchange.status() == Some(200)
            })
        };
        // The repetition sends the same requests as the first burst, because a limiter may count others differently.
        let is_repetition = self.series == Burst::REPEATED;
        self.queue.retain(|path| {
            is_repetition
                || first_long_pages.contains(path)
                || !served().any(|exchange| exchange.target.ends_with(path))
        });
    }
}

/// Returns a filtered page that the test key has read and whose filter value also occurs in live mode. The same address,
/// requested with the live key, shows whether a cache ignores the key.
fn filter_used_by_both_modes(recording: &Recording, list: List) -> Option<PageRequest> {
    let name = if list == List::Events { "type" } else { "status" };
    let of_list = |mode: Mode| {
        let served = recording.exchanges.iter().filter(|exchange| exchange.status() == Some(200));
        let own = served.filter(move |exchange| exchange.caller == Caller::Own(mode));
        own.filter_map(|exchange| Some((exchange, page_request(exchange)?)))
            .filter(move |(_, request)| request.list == list)
    };
    let live_pages = of_list(Mode::Live).filter_map(|(exchange, _)| Page::from_exchange(exchange)?.rows());
    let live_rows: Vec<_> = live_pages.flatten().collect();
    let is_shared = |request: &PageRequest| match &request.filters[..] {
        [(filter, value)] => {
            filter == name && live_rows.iter().any(|row| text_at(row, &[name]) == Some(value))
        }
        _ => false,
    };
    let is_long = |request: &PageRequest| (request.page, request.per_page) == (None, Some(LONG_PAGE_SIZE));
    of_list(Mode::Test).map(|(_, request)| request).rfind(|request| is_long(request) && is_shared(request))
}

/// Returns an event whose type no live event read by its id had: the oldest on the first recorded page of live events.
pub(super) fn event_of_unread_type(recording: &Recording) -> Option<String> {
    let live = || recording.exchanges.iter().filter(|exchange| exchange.caller == Caller::Own(Mode::Live));
    let lists =
        live().filter(|exchange| page_request(exchange).is_some_and(|request| request.list == List::Events));
    let rows = lists.filter_map(Page::from_exchange).find_map(Page::rows)?;
    let is_read = |id: &str| live().any(|exchange| exchange.target.ends_with(id));
    let events_of_type = |kind| rows.iter().filter(move |row| text_at(row, &["type"]) == kind);
    let unread = rows.iter().filter_map(|row| {
        let mut same_type = events_of_type(text_at(row, &["type"])).filter_map(|row| text_at(row, &["id"]));
        (!same_type.any(is_read)).then(|| text_at(row, &["id"]))?
    });
    unread.map(str::to_owned).next_back()
}
