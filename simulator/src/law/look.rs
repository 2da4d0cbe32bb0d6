//! The state of a world as the API shows it, read page by page as by a client.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use crate::{
    model::{ChargeView, EventView, InvoiceView, LinkView, List, Seen},
    witness::BookId,
};

/// A list that has more pages than this will not end.
const PAGES_MAX: u32 = 200;

/// A reader of the books of a service.
pub trait Reader {
    /// The status and the body that a key of the book gets for `GET target`, where `target` is a path with its query.
    fn get(&mut self, book: BookId, target: &str) -> (u16, Bytes);
}

/// All that is shown of one account in one mode, newest first.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the words of the contract")]
pub struct BookShown {
    pub charges: Vec<Seen<ChargeView>>,
    pub invoices: Vec<Seen<InvoiceView>>,
    pub links: Vec<Seen<LinkView>>,
    /// Empty unless they were asked for.
    pub events: Vec<Seen<EventView>>,
    /// The depth of the reading.
    pub depth: Depth,
}

/// All that is shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// By account and mode.
    pub books: BTreeMap<BookId, BookShown>,
    places: BTreeMap<String, (BookId, usize)>,
}

impl Shown {
    /// A charge by its code, and whose it is.
    pub fn charge(&self, code: &str) -> Option<(BookId, &ChargeView)> {
        let (id, place) = self.places.get(code)?;
        Some((*id, &self.books[id].charges[*place]))
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

/// The depth of a reading: with or without events, each with its whole object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    #[default]
    /// Charges, invoices and payment links.
    Objects,
    /// Events too.
    Events,
}

/// Reads what the API shows of these books.
///
/// # Errors
///
/// Says which page could not be read.
pub fn look(
    reader: &mut impl Reader,
    books: impl IntoIterator<Item = BookId>,
    depth: Depth,
) -> Result<Shown, String> {
    let mut shown = Shown::default();
    for id in books {
        let charges: Vec<Seen<ChargeView>> = read_all(reader, id, List::Charges)?;
        for (place, charge) in charges.iter().enumerate() {
            shown.places.insert(charge.code.clone(), (id, place));
        }
        let events = match depth {
            Depth::Objects => Vec::new(),
            Depth::Events => read_all(reader, id, List::Events)?,
        };
        let (invoices, links) = (read_all(reader, id, List::Invoices)?, read_all(reader, id, List::Links)?);
        shown.books.insert(id, BookShown { charges, invoices, links, events, depth });
    }
    Ok(shown)
}

fn read_all<T: for<'de> Deserialize<'de>>(
    reader: &mut impl Reader,
    book: BookId,
    list: List,
) -> Result<Vec<T>, String> {
    read_list(reader, book, &format!("{}?per_page=100", list.path()))
}

/// Every record of a list, by its links.
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
            return Err(format!("GET {target} answered {status}"));
        }
        let page: PageOfList<T> =
            serde_json::from_slice(&body).map_err(|error| format!("GET {target} cannot be read: {error}"))?;
        records.extend(page.data);
        next = page.links.next.as_deref().map(|link| local(link).to_owned());
    }
    Err(format!("GET {target} does not end"))
}

/// The path and the query of an absolute link.
pub fn local(link: &str) -> &str {
    let host = link.find("://").map_or(0, |at| at + 3);
    link[host..].find('/').map_or("/", |at| &link[host + at..])
}
