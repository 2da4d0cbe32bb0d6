//! The lists of the API, and the pages that a client gets: the content of a page depends on the length of the list when
//! the client read page 1.

use std::collections::BTreeMap;

use reference_core::time::{Span, Timestamp};

use super::Book;
use crate::record::BookId;

/// The time for which the service stores the anchor of a key in a list.
const ANCHOR_TTL: Span = Span::mins(10);

/// A list of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names are those of the API")]
pub enum List {
    Charges,
    Invoices,
    Links,
    Events,
}

impl List {
    /// All lists.
    pub const ALL: [List; 4] = [List::Charges, List::Invoices, List::Links, List::Events];

    /// Returns the path of the list.
    pub fn path(self) -> &'static str {
        match self {
            List::Charges => "/v1/charges",
            List::Invoices => "/v1/invoices",
            List::Links => "/v1/payment-links",
            List::Events => "/v1/events",
        }
    }
}

impl Book {
    /// Returns the number of records in a list.
    pub fn length(&self, list: List) -> usize {
        match list {
            List::Charges => self.charges.len(),
            List::Invoices => self.invoices.len(),
            List::Links => self.links.len(),
            List::Events => self.events.len(),
        }
    }
}

/// A key that reads a list with a page size.
pub type PageReader = (BookId, List, usize);

/// A page of a list, and the length of the list when page 1 was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePosition {
    /// The length of the list when page 1 was read.
    pub total: usize,
    /// The number of the page, from 1.
    pub page: usize,
}

/// The progress of each reader.
#[derive(Clone, Debug, Default)]
pub struct PageReads {
    /// The last page of each reader that follows links.
    pub followed: BTreeMap<PageReader, PagePosition>,
    /// For each reader of a list with more than one page: the time of its last read, and the length of the list when it
    /// read page 1.
    pub remembered: BTreeMap<PageReader, (Timestamp, usize)>,
}

impl PageReads {
    /// Returns the page that a client reads next by following links, in a list with `length` records; page 1 after the
    /// last.
    pub fn next_page_by_link(&mut self, now: Timestamp, reader: PageReader, length: usize) -> PagePosition {
        let reading = self.followed.entry(reader).or_insert(PagePosition { total: 0, page: 1 });
        if reading.page * reader.2 < reading.total {
            reading.page += 1;
            return *reading;
        }
        *reading = PagePosition { total: length, page: 1 };
        self.read_first(now, reader, length);
        PagePosition { total: length, page: 1 }
    }

    /// Returns the page with a number. Page 1 stores the current length of the list; later pages use the stored length,
    /// unless it is too old.
    pub fn page_by_number(
        &mut self,
        now: Timestamp,
        reader: PageReader,
        page: usize,
        length: usize,
    ) -> PagePosition {
        if page == 1 {
            self.read_first(now, reader, length);
            return PagePosition { total: length, page };
        }
        let known = self.remembered.get_mut(&reader).filter(|(at, _)| now.since(*at) < ANCHOR_TTL);
        let total = known.map_or(length, |(at, total)| {
            *at = now;
            *total
        });
        PagePosition { total, page }
    }

    /// Stores the length of the list at a read of page 1, unless the list has only one page.
    fn read_first(&mut self, now: Timestamp, reader: PageReader, length: usize) {
        if length > reader.2 {
            self.remembered.insert(reader, (now, length));
        } else {
            self.remembered.remove(&reader);
        }
    }

    /// Removes the stored lengths, as a restart of the service does.
    pub fn restart(&mut self) {
        self.remembered.clear();
    }
}
