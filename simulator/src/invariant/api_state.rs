//! The state of a world as the API shows it: all objects of all books, read page by page like a client.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use crate::{
    model::{ChargeView, EventView, InvoiceView, LinkView, List, WithJson},
    record::BookId,
};

/// The maximum number of pages of a list.
const PAGES_MAX: u32 = 200;

/// A reader of the books of a service.
pub trait Reader {
    /// Returns the status and body of `GET target` with a key of the book, where `target` is a path with its query.
    fn get(&mut self, book: BookId, target: &str) -> (u16, Bytes);
}

/// The objects of one account in one mode as the API shows them, newest first.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the names are those of the API")]
pub struct BookApiState {
    pub charges: Vec<WithJson<ChargeView>>,
    pub invoices: Vec<WithJson<InvoiceView>>,
    pub links: Vec<WithJson<LinkView>>,
    /// The events; empty unless they were read.
    pub events: Vec<WithJson<EventView>>,
    /// The kinds of objects that were read.
    pub depth: ReadDepth,
}

/// The state of all books as the API shows it.
#[derive(Clone, Debug, Default)]
pub struct ApiState {
    /// The books, by account and mode.
    pub books: BTreeMap<BookId, BookApiState>,
    /// The positions of the charges in their books, by code.
    charge_index: BTreeMap<String, (BookId, usize)>,
}

impl ApiState {
    /// Returns the charge with this code, and the id of its book.
    pub fn charge(&self, code: &str) -> Option<(BookId, &ChargeView)> {
        let (id, index) = self.charge_index.get(code)?;
        Some((*id, &self.books[id].charges[*index]))
    }
}

/// A page of a list.
#[derive(Deserialize)]
struct PageOfList<T> {
    data: Vec<T>,
    links: ListLinks,
}

#[derive(Deserialize)]
struct ListLinks {
    next: Option<String>,
}

/// The kinds of objects to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadDepth {
    #[default]
    /// Charges, invoices and payment links.
    Objects,
    /// Charges, invoices, payment links, and events with their complete objects.
    Events,
}

/// Reads the state of these books through the API.
///
/// # Errors
///
/// A message that names the page that could not be read.
pub fn read_api_state(
    reader: &mut impl Reader,
    books: impl IntoIterator<Item = BookId>,
    depth: ReadDepth,
) -> Result<ApiState, String> {
    let mut api_state = ApiState::default();
    for id in books {
        let charges: Vec<WithJson<ChargeView>> = read_all(reader, id, List::Charges)?;
        for (index, charge) in charges.iter().enumerate() {
            api_state.charge_index.insert(charge.code.clone(), (id, index));
        }
        let events = match depth {
            ReadDepth::Objects => Vec::new(),
            ReadDepth::Events => read_all(reader, id, List::Events)?,
        };
        let (invoices, links) = (read_all(reader, id, List::Invoices)?, read_all(reader, id, List::Links)?);
        api_state.books.insert(id, BookApiState { charges, invoices, links, events, depth });
    }
    Ok(api_state)
}

/// Reads every record of a list without filters.
fn read_all<T: for<'de> Deserialize<'de>>(
    reader: &mut impl Reader,
    book: BookId,
    list: List,
) -> Result<Vec<T>, String> {
    read_list(reader, book, &format!("{}?per_page=100", list.path()))
}

/// Reads every record of a list, following its links.
pub(super) fn read_list<T: for<'de> Deserialize<'de>>(
    reader: &mut impl Reader,
    book: BookId,
    target: &str,
) -> Result<Vec<T>, String> {
    let mut records = Vec::new();
    let mut next = Some(target.to_owned());
    for _ in 0..PAGES_MAX {
        let Some(target) = next.take() else { return Ok(records) };
        let (status, body) = reader.get(book, &target);
        if status != 200 {
            return Err(format!("GET {target} responded with {status}"));
        }
        let page: PageOfList<T> =
            serde_json::from_slice(&body).map_err(|error| format!("GET {target} cannot be read: {error}"))?;
        records.extend(page.data);
        next = page.links.next.as_deref().map(|link| path_and_query(link).to_owned());
    }
    Err(format!("GET {target} has more than {PAGES_MAX} pages"))
}

/// Returns the path and query of an absolute link; `/` if it has no path.
pub fn path_and_query(link: &str) -> &str {
    let host_start = link.find("://").map_or(0, |scheme_end| scheme_end + 3);
    link[host_start..].find('/').map_or("/", |host_length| &link[host_start + host_length..])
}
