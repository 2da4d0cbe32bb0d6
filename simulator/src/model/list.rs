//! The lists of the API.

use super::Book;

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
