//! Pages of a list, newest first, and stable while records are added (`paging.stable`).
//!
//! A list such as `GET /v1/charges` shows the newest record first. If page 2 were cut from the list as it is when
//! page 2 is read, a charge that was opened after page 1 would push the last record of page 1 onto page 2, and the
//! client would read it twice. So a reading of a list has an *anchor*: the newest record when its page 1 was read.
//! Every later page of that reading is cut from the records up to the anchor. Its total, its last page and its
//! links are those at the time of page 1.
//!
//! Records of a kind are numbered from 0 in order of creation, so an anchor is one number and needs no copy of the
//! list. A [`Listing`] has two operations on the numbers that match a filter: `rank` returns the number of members
//! up to an anchor, and `select` the member at a position. Both are index operations, so that page 1,000 of a
//! million records costs as much as page 1. [`Page::from_listing`] needs nothing else.
//!
//! A client states the anchor in two ways. The links of a page (`next`, `prev`, …) contain it as the public id of
//! the record, so following them is stable without any state in the service. A client that increments `page`
//! instead sends no anchor; for it, [`PageMemory`] remembers for each key, list, filter and page size the anchor of
//! the last page 1, for 10 minutes after the last read. Reading page 1 again begins a new reading. The memory holds
//! at most 512 lists for a key and evicts lists of a single page first, then the least recently read; it is lost at
//! a restart. Without an anchor, a page is cut from the list as it is now.
//!
//! ```
//! use reference_core::page::{Listing, Page, PageRequest};
//!
//! let page_1 = Page::from_listing(&Listing::all(60), PageRequest { page: 1, per_page: 25 }, Listing::all(60).newest());
//! assert_eq!((page_1.members[0], page_1.members[24]), (59, 35));
//! // Ten records were added. Page 2 of the same reading continues where page 1 ended.
//! let page_2 = Page::from_listing(&Listing::all(70), PageRequest { page: 2, per_page: 25 }, page_1.anchor);
//! assert_eq!((page_2.members[0], page_2.total), (34, 60));
//! ```
//!
//! Must not contain: query parameters, URLs or JSON (`reference-wire` has them), or a scan of the records.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use crate::{
    charge::ChargeStatus,
    invoice::InvoiceStatus,
    status_index::StatusIndex,
    time::{Span, Timestamp},
};

/// The default number of records on a page (`paging.default_size`).
pub const PER_PAGE_DEFAULT: u32 = 25;
/// The largest number of records on a page (`paging.per_page`).
pub const PER_PAGE_MAX: u32 = 100;

/// The members of a list, as numbers in order of creation.
#[derive(Debug)]
pub enum Listing<'a> {
    /// Every number below this.
    All(usize),
    /// Numbers in ascending order.
    Sorted(Cow<'a, [u32]>),
    /// Charges, of one status or all.
    Charges(&'a StatusIndex<{ ChargeStatus::ALL.len() }>, Option<ChargeStatus>),
    /// Invoices, of one status or all.
    Invoices(&'a StatusIndex<{ InvoiceStatus::ALL.len() }>, Option<InvoiceStatus>),
}

impl<'a> Listing<'a> {
    /// Returns a listing of all numbers below `len`.
    pub fn all(len: usize) -> Listing<'a> {
        Listing::All(len)
    }

    /// Returns a listing of borrowed numbers.
    pub fn from_sorted_slice(members: &'a [u32]) -> Listing<'a> {
        Listing::Sorted(Cow::Borrowed(members))
    }

    /// Returns a listing of owned numbers.
    pub fn from_sorted_vec(members: Vec<u32>) -> Listing<'a> {
        Listing::Sorted(Cow::Owned(members))
    }

    /// Returns an empty listing.
    pub fn empty() -> Listing<'a> {
        Listing::from_sorted_vec(Vec::new())
    }

    /// Returns the number of members with a number up to `anchor`.
    pub fn rank(&self, anchor: u32) -> usize {
        match self {
            Listing::All(len) => (*len).min(anchor as usize + 1),
            Listing::Sorted(members) => members.partition_point(|&member| member <= anchor),
            Listing::Charges(index, status) => index.rank(status.map(|s| s as usize), anchor),
            Listing::Invoices(index, status) => index.rank(status.map(|s| s as usize), anchor),
        }
    }

    /// Returns the member with `nth` members before it.
    pub fn select(&self, nth: usize) -> Option<u32> {
        match self {
            Listing::All(len) => (nth < *len).then(|| u32::try_from(nth).expect("numbers fit 32 bits")),
            Listing::Sorted(members) => members.get(nth).copied(),
            Listing::Charges(index, status) => index.select(status.map(|s| s as usize), nth),
            Listing::Invoices(index, status) => index.select(status.map(|s| s as usize), nth),
        }
    }

    /// Returns the newest member.
    pub fn newest(&self) -> Option<u32> {
        match self {
            Listing::All(len) => len.checked_sub(1).and_then(|nth| self.select(nth)),
            Listing::Sorted(members) => members.last().copied(),
            Listing::Charges(index, status) => index.newest(status.map(|s| s as usize)),
            Listing::Invoices(index, status) => index.newest(status.map(|s| s as usize)),
        }
    }
}

/// A client's request for a page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRequest {
    /// The number of the page, from 1.
    pub page: u64,
    /// Records on a page.
    pub per_page: u32,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The number of this page, from 1.
    pub current: u64,
    /// The last page that has records; 1 for an empty list.
    pub last: u64,
    /// Records on a page.
    pub per_page: u32,
    /// Records up to the anchor.
    pub total: u64,
    /// The newest record that belongs to this reading of the list.
    pub anchor: Option<u32>,
    /// The records, newest first.
    pub members: Vec<u32>,
}

impl Page {
    /// Cuts a page out of the list as it was when `anchor` was its newest record.
    pub fn from_listing(listing: &Listing<'_>, request: PageRequest, anchor: Option<u32>) -> Page {
        let total = anchor.map_or(0, |anchor| listing.rank(anchor));
        let size = request.per_page as usize;
        let skipped = usize::try_from(request.page - 1).ok().and_then(|pages| pages.checked_mul(size));
        let left = skipped.map_or(0, |skipped| total.saturating_sub(skipped));
        let members = (left.saturating_sub(size)..left)
            .rev()
            .map(|nth| listing.select(nth).expect("every index below the rank has a member"))
            .collect();
        Page {
            current: request.page,
            last: (total.div_ceil(size) as u64).max(1),
            per_page: request.per_page,
            total: total as u64,
            anchor,
            members,
        }
    }

    /// Returns the number of the previous page, or of the last one if this page is past the end; `None` for page 1.
    pub fn prev(&self) -> Option<u64> {
        (self.current > 1).then(|| (self.current - 1).min(self.last))
    }

    /// Returns the number of the next page; `None` if this is the last page or past the end.
    pub fn next(&self) -> Option<u64> {
        (self.current < self.last).then(|| self.current + 1)
    }

    /// Returns the position of the first record of this page, from 1; `None` for an empty page.
    pub fn from(&self) -> Option<u64> {
        (!self.members.is_empty()).then(|| (self.current - 1) * u64::from(self.per_page) + 1)
    }

    /// Returns the position of the last record of this page; `None` for an empty page.
    pub fn to(&self) -> Option<u64> {
        self.from().map(|from| from + self.members.len() as u64 - 1)
    }
}

/// The newest record of each list when a key last read page 1, for clients that increment `page` without an anchor.
///
/// Bounded: the least recently read list is evicted first, lists that fit on one page before all others, and every
/// list 10 minutes after its last read. A restart clears it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageMemory<List: Ord> {
    lists: BTreeMap<List, RememberedList>,
    /// The lists in the order in which they would be evicted.
    order: BTreeMap<EvictionOrder, List>,
    /// The number of reads. It orders reads even if the clock is frozen.
    reads: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct RememberedList {
    read_at: Timestamp,
    eviction_order: EvictionOrder,
    anchor: Option<u32>,
}

/// The order of eviction: lists of one page first, then by the number of the read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct EvictionOrder {
    has_several_pages: bool,
    read_no: u64,
}

impl<List: Ord> Default for PageMemory<List> {
    fn default() -> Self {
        PageMemory { lists: BTreeMap::new(), order: BTreeMap::new(), reads: 0 }
    }
}

impl<List: Ord + Clone> PageMemory<List> {
    const REMEMBERED_FOR: Span = Span::mins(10);
    const LISTS_MAX: usize = 512;

    /// Stores the anchor of a list: the newest record when its page 1 was read.
    pub(crate) fn remember(&mut self, now: Timestamp, list: List, pages: u64, anchor: Option<u32>) {
        self.reads += 1;
        let eviction_order = EvictionOrder { has_several_pages: pages > 1, read_no: self.reads };
        let remembered = RememberedList { read_at: now, eviction_order, anchor };
        self.order.insert(eviction_order, list.clone());
        if let Some(earlier) = self.lists.insert(list, remembered) {
            self.order.remove(&earlier.eviction_order);
        }
        if self.lists.len() > PageMemory::<List>::LISTS_MAX
            && let Some((_, first)) = self.order.pop_first()
        {
            self.lists.remove(&first);
        }
    }

    /// Returns the anchor of a list, if the list was read within the last 10 minutes. The anchor of an empty list is
    /// `None`.
    pub(crate) fn recall(&self, now: Timestamp, list: &List) -> Option<Option<u32>> {
        let remembered = self.lists.get(list)?;
        (now.since(remembered.read_at) < PageMemory::<List>::REMEMBERED_FOR).then_some(remembered.anchor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks a page of a list of `total` records. In `expected`, the ids count from 1.
    #[track_caller]
    fn check(page: u64, per_page: u32, total: usize, expected: &str) {
        let listing = Listing::all(total);
        let page = Page::from_listing(&listing, PageRequest { page, per_page }, listing.newest());
        let ids = match (page.members.first(), page.members.last()) {
            (Some(first), Some(last)) => format!("{}..{}", first + 1, last + 1),
            _ => "none".to_owned(),
        };
        let number = |page: Option<u64>| page.map_or("-".to_owned(), |n| n.to_string());
        let text =
            format!("ids {ids} prev {} next {} last {}", number(page.prev()), number(page.next()), page.last);
        assert_eq!(text, expected);
        assert_eq!(listing.select(total), None, "no member follows the newest");
    }

    #[test]
    fn newest_come_first() {
        check(1, 25, 60, "ids 60..36 prev - next 2 last 3");
        check(2, 25, 60, "ids 35..11 prev 1 next 3 last 3");
    }

    #[test]
    fn the_last_page_has_the_remaining_records() {
        check(3, 25, 60, "ids 10..1 prev 2 next - last 3");
    }

    #[test]
    fn a_list_that_divides_evenly_has_no_empty_last_page() {
        check(2, 25, 50, "ids 25..1 prev 1 next - last 2");
        check(1, 25, 0, "ids none prev - next - last 1");
    }

    #[test]
    fn a_page_past_the_end_is_empty_and_links_to_the_last_page() {
        check(9, 25, 60, "ids none prev 3 next - last 3");
        check(u64::MAX, 100, 60, "ids none prev 1 next - last 1");
    }

    proptest! {
        #[test]
        fn joined_pages_are_the_list_at_page_1_whatever_is_added(
            before in 0_usize..300, added in prop::collection::vec(0_usize..20, 0..40), per_page in 1_u32..=PER_PAGE_MAX,
        ) {
            let mut len = before;
            let anchor = Listing::all(len).newest();
            let mut joined = Vec::new();
            let mut page = 1;
            let mut added = added.into_iter();
            loop {
                let cut = Page::from_listing(&Listing::all(len), PageRequest { page, per_page }, anchor);
                prop_assert_eq!(cut.total as usize, before);
                joined.extend(cut.members.iter().map(|&no| no as usize));
                match cut.next() {
                    Some(next) => page = next,
                    None => break,
                }
                len += added.next().unwrap_or(0);
            }
            prop_assert_eq!(joined, (0..before).rev().collect::<Vec<_>>());
        }
    }

    #[test]
    fn lists_of_one_page_and_then_the_least_recently_read_are_evicted_first() {
        let lists_max = u32::try_from(PageMemory::<u32>::LISTS_MAX).expect("LISTS_MAX fits 32 bits");
        let mut memory = PageMemory::default();
        // The clock is frozen.
        let now = Timestamp(0);
        for list in 0..lists_max {
            memory.remember(now, list, 2, Some(list));
        }
        memory.remember(now, 0, 2, Some(7));
        memory.remember(now, lists_max, 2, Some(lists_max));
        assert_eq!(memory.recall(now, &0), Some(Some(7)), "read again");
        assert_eq!(memory.recall(now, &1), None, "the least recently read");
        memory.remember(now, lists_max + 1, 1, None);
        assert_eq!(memory.recall(now, &(lists_max + 1)), None, "a list of one page is evicted first");
        assert_eq!(memory.recall(now, &2), Some(Some(2)));
        assert_eq!((memory.lists.len(), memory.order.len()), (512, 512));
    }

    #[test]
    fn a_list_is_remembered_for_ten_minutes() {
        let mut memory = PageMemory::default();
        memory.remember(Timestamp(0), "list", 1, None);
        let end = Timestamp(0).plus(PageMemory::<&str>::REMEMBERED_FOR);
        assert_eq!(memory.recall(end.minus(Span::micros(1)), &"list"), Some(None));
        assert_eq!(memory.recall(end, &"list"), None);
    }
}
