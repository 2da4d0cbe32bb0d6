//! An executable model of the specification and its contract, implemented independently of the service.
//!
//! A [`Model`] consists of accounts and their books, whose objects are numbered in order of creation. Amounts are exact
//! integers. Its inputs are commands, sightings, results of attempts and time; its outputs are the expected responses,
//! events and deliveries. It shares only the table of coins and the names of modes, coins and currencies with the
//! service. Sweeps compare the model with recorded worlds.
//!
//! In this module, *the contract* is the specification together with the choices that the reference server documents.

mod account;
mod book;
mod charge;
mod list;
pub mod money;
pub mod operation;
mod request_time;
mod texts;

use std::collections::BTreeMap;

use reference_core::{
    asset::{Asset, Currency},
    mode::Mode,
    time::Timestamp,
};

pub use self::{
    account::Account,
    book::{
        Book, CustomFieldDefinition, Delivery, DeliveryState, Details, EndpointModel, EndpointStatus, Event,
        EventObject, InvoiceDraft, InvoiceModel, InvoiceStatus, LinkModel, LinkOrder, NextAddress, Pricing,
        RepeatKind, SCHEDULED_ATTEMPTS_MAX, Snapshot, Subject, WalletModel, Wallets,
        json::{ObjectContext, Presentation},
        view::{
            ChargeView, Envelope, EventView, Ids, InvoiceView, LinkView, NestedCharge, SubjectView,
            TimelineEntry, TransferView, WithJson,
        },
    },
    charge::{Charge, ChargeEvent, ChargeTransfer, HOLD_MAX, RATE_LOCK, Situation, Status, Terms},
    list::List,
    texts::{
        ChargeTexts, CustomFieldText, CustomerTexts, InvoiceTexts, ItemText, LinkTexts, cents,
        non_empty_string,
    },
};
use crate::record::BookId;

/// The expected state of all accounts.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The accounts, in order of opening.
    pub accounts: Vec<Account>,
    /// Currency per coin in units of 10⁻⁸; `None` if no rate is available.
    pub rates: BTreeMap<(Asset, Currency), Option<u64>>,
    books: BTreeMap<BookId, Book>,
}

impl Model {
    /// Opens an account with an empty book in each mode. Returns its number.
    pub fn open_account(&mut self, account: Account) -> usize {
        let number = self.accounts.len();
        self.accounts.push(account);
        for mode in Mode::ALL {
            self.books.insert((number, mode), Book::new(mode));
        }
        number
    }

    /// Returns all books, by account and mode.
    pub fn books(&self) -> impl Iterator<Item = (BookId, &Book)> {
        self.books.iter().map(|(id, book)| (*id, book))
    }

    /// Returns a book.
    ///
    /// # Panics
    ///
    /// If there is no such account.
    pub fn book(&self, id: BookId) -> &Book {
        &self.books[&id]
    }

    /// Returns a book for changes, together with its account.
    ///
    /// # Panics
    ///
    /// If there is no such account.
    pub fn account_and_book_mut(&mut self, id: BookId) -> (&Account, &mut Book) {
        (&self.accounts[id.0], self.books.get_mut(&id).expect("every account has a book in each mode"))
    }

    /// Returns the time at which the next rate lock or hold ends.
    pub fn next_lock_end(&self) -> Option<Timestamp> {
        self.books.values().filter_map(Book::next_lock_end).min()
    }

    /// Expires the rate locks and holds that end by `now`.
    pub fn expire_locks(&mut self, now: Timestamp) {
        self.books.values_mut().for_each(|book| book.expire_locks(now));
    }

    /// Applies the watchers' reports of chain heights. A height never decreases.
    pub fn on_heights(&mut self, heights: &[((Mode, Asset), u64)]) {
        for ((mode, asset), height) in heights {
            for book in self.books.values_mut().filter(|book| book.mode == *mode) {
                let known_height = book.heights.entry(*asset).or_default();
                *known_height = (*known_height).max(*height);
            }
        }
    }

    /// Applies a restart of the service.
    pub fn restart(&mut self, now: Timestamp) {
        self.books.values_mut().for_each(|book| book.restart(now));
    }
}
