//! Lists as they are read page by page: what belongs to a page depends on when page 1 was read.

use std::collections::BTreeMap;

use reference_core::time::{Span, Timestamp};

use super::Book;
use crate::witness::BookId;

/// A key's place in a list is remembered for so long.
const PLACE_KEPT: Span = Span::mins(10);

/// A list that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the words of the contract")]
pub enum List {
    Charges,
    Invoices,
    Links,
    Events,
}

impl List {
    /// Every list.
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

/// A key that reads a list in pages of so many.
pub type PageReader = (BookId, List, usize);

/// A page of a list: the list is as long as it was when page 1 was read.
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
    /// The time at which a key last read a list whose page 1 it remembers, and the length of the list then.
    pub remembered: BTreeMap<PageReader, (Timestamp, usize)>,
}

impl PageReads {
    /// The page that who follows links reads next, of a list that has `length` records now; page 1 after the last.
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

    /// A page by its number: page 1 is fresh, later ones belong to the page 1 that this key read last, if it read this list
    /// not long ago.
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

    /// Page 1 was read; of a list that fits on it nothing is remembered.
    fn read_first(&mut self, now: Timestamp, reader: PageReader, length: usize) {
        if length > reader.2 {
            self.remembered.insert(reader, (now, length));
        } else {
            self.remembered.remove(&reader);
        }
    }

    /// A restart forgets what keys read.
    pub fn restart(&mut self) {
        self.remembered.clear();
    }

    /// The key of a book was replaced.
    pub fn new_key(&mut self, book: BookId) {
        self.remembered.retain(|(of, ..), _| *of != book);
    }
}
