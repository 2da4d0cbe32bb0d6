//! An executable model of the specification and its contract, written apart from the service.
//!
//! Plain values and exact sums: accounts and their books, whose objects are numbered in order of creation. Commands,
//! sightings, results of deliveries and time go in; answers, events and deliveries come out. Nothing of the service is
//! asked for what is right: shared are the table of coins and the names of modes, coins and currencies. Sweeps
//! compare the model with recorded worlds, the state-machine test with the service after each command.

mod book;
mod charge;
mod list;
pub mod money;
mod texts;

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    time::Timestamp,
};

pub use self::{
    book::{
        Book, Delivery, DeliveryState, Details, EndpointModel, EndpointSwitch, Event, EventObject,
        InvoiceDraft, InvoiceModel, InvoiceStatus, LinkModel, Order, Pricing, Question, RepeatKind, Snapshot,
        Subject, TRIES,
        json::{Facet, ObjectContext},
        view::{
            ChargeView, Envelope, EventView, Ids, InvoiceView, LinkView, NestedCharge, Seen, SubjectView,
            TimelineEntry, TransferView,
        },
    },
    charge::{Charge, ChargeEvent, ChargeTransfer, HOLD_MAX, LOCK, Situation, Status, Terms},
    list::{List, PageReader, PageReads, Reading},
    texts::{AnswerText, ChargeTexts, CustomerTexts, InvoiceTexts, ItemText, LinkTexts, cents, text},
};
use crate::witness::BookId;

/// The relevant settings of an account.
#[derive(Clone, Debug)]
pub struct Account {
    /// Hundredths of a percent that may be missing.
    pub tolerance: u32,
    /// Hundredths of a percent from which a charge is overpaid.
    pub threshold: u32,
    /// The currency of a price that names none.
    pub default_currency: Currency,
    /// The members, who may receive mail in test mode.
    pub members: Vec<String>,
}

impl Default for Account {
    fn default() -> Account {
        Account { tolerance: 100, threshold: 300, default_currency: Currency::Eur, members: Vec::new() }
    }
}

impl Account {
    fn bounds(&self) -> (u32, u32) {
        (self.tolerance, self.threshold)
    }
}

/// The expected state of everything.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// In order of opening.
    pub accounts: Vec<Account>,
    /// Currency per coin in units of 10⁻⁸; `None` where no rate is to be had.
    pub rates: BTreeMap<(Asset, Currency), Option<u64>>,
    books: BTreeMap<BookId, Book>,
}

impl Model {
    /// One more account, with an empty book in each mode. Returns its number.
    pub fn open_account(&mut self, account: Account) -> usize {
        let no = self.accounts.len();
        self.accounts.push(account);
        for mode in reference_core::mode::Mode::ALL {
            self.books.insert((no, mode), Book::new(mode));
        }
        no
    }

    /// Every book, in order of accounts and modes.
    pub fn books(&self) -> impl Iterator<Item = (BookId, &Book)> {
        self.books.iter().map(|(id, book)| (*id, book))
    }

    /// A book.
    ///
    /// # Panics
    ///
    /// If there is no such account.
    pub fn book(&self, id: BookId) -> &Book {
        &self.books[&id]
    }

    /// A book that is changed, and its account.
    ///
    /// # Panics
    ///
    /// If there is no such account.
    pub fn at(&mut self, id: BookId) -> (&Account, &mut Book) {
        (&self.accounts[id.0], self.books.get_mut(&id).expect("the model knows the books it is asked for"))
    }

    /// Returns the next end of a lock.
    pub fn next_lock(&self) -> Option<Timestamp> {
        self.books.values().filter_map(Book::next_lock).min()
    }

    /// Returns the time at which the service must next be woken: a lock ends, or a delivery is due.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let due = self.books.values().filter_map(Book::first_waiting).map(|(at, _)| at);
        self.next_lock().into_iter().chain(due).min()
    }

    /// The service is woken: locks that have run out by `now` are over.
    pub fn wake(&mut self, now: Timestamp) {
        self.books.values_mut().for_each(|book| book.wake(now));
    }

    /// The service stops and starts again.
    pub fn restart(&mut self, now: Timestamp) {
        self.books.values_mut().for_each(|book| book.restart(now));
    }
}
