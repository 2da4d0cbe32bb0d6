//! Lists read page by page: the content of a page depends on the length of the list when page 1 was read.

use std::collections::BTreeMap;

use reference_core::time::{Span, Timestamp};

use super::Book;
use crate::record::BookId;

/// The time for which the service remembers the anchor of a key in a list.
const PLACE_KEPT: Span = Span::mins(10);

/// A list of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the contract")]
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

/// A page of a list, with the length of the list when page 1 was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The number of records in the list.
    pub total: usize,
    /// The number of the page, from 1.
    pub page: usize,
}

/// The progress of each reader.
#[derive(Clone, Debug, Default)]
pub struct PageReads {
    /// The progress of readers that follow links.
    pub followed: BTreeMap<PageReader, Reading>,
    /// The time of a key's last read of a list with more than one page, and the length of the list at its page 1.
    pub remembered: BTreeMap<PageReader, (Timestamp, usize)>,
}

impl PageReads {
    /// Returns the page that a client reads next by following links, in a list with `length` records; page 1 after the
    /// last.
    pub fn follow(&mut self, now: Timestamp, reader: PageReader, length: usize) -> Reading {
        let reading = self.followed.entry(reader).or_insert(Reading { total: 0, page: 1 });
        if reading.page * reader.2 < reading.total {
            reading.page += 1;
            return *reading;
        }
        *reading = Reading { total: length, page: 1 };
        self.read_first(now, reader, length);
        Reading { total: length, page: 1 }
    }

    /// Returns a page by its number. Page 1 starts a new reading; later pages belong to the key's last page 1, unless
    /// it is too old.
    pub fn number(&mut self, now: Timestamp, reader: PageReader, page: usize, length: usize) -> Reading {
        if page == 1 {
            self.read_first(now, reader, length);
            return Reading { total: length, page };
        }
        let known = self.remembered.get_mut(&reader).filter(|(at, _)| now.since(*at) < PLACE_KEPT);
        let total = known.map_or(length, |(at, total)| {
            *at = now;
            *total
        });
        Reading { total, page }
    }

    /// Records a read of page 1, unless the list fits on it.
    fn read_first(&mut self, now: Timestamp, reader: PageReader, length: usize) {
        if length > reader.2 {
            self.remembered.insert(reader, (now, length));
        } else {
            self.remembered.remove(&reader);
        }
    }

    /// Forgets the anchors of keys, as a restart does.
    pub fn restart(&mut self) {
        self.remembered.clear();
    }
}
