//! What the API shows of a world: read page by page, as any client would.

use std::collections::BTreeMap;

use bytes::Bytes;
use reference_core::{time::Span, wire::http::Request};
use serde::Deserialize;

use crate::{sandbox::Sandbox, witness::Whose};

const BASE: &str = "https://pay.example";
/// A list that has more pages than this will not end.
const PAGES_MAX: u32 = 200;

/// A charge, as far as laws look at it.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct ChargeSeen {
    pub code: String,
    pub status: String,
    pub payment_link: Option<String>,
    pub invoice: Option<String>,
    pub fiat_amount: String,
    pub fiat_currency: String,
    pub asset: String,
    pub asset_amount: String,
    pub received_amount: String,
    pub refunded_amount: String,
    pub overpaid: bool,
    pub exchange_rate: String,
    pub deposit_address: String,
    pub description: Option<String>,
    #[serde(default)]
    pub metadata: serde_json::Value,
    pub transactions: Vec<TransferSeen>,
    #[serde(default)]
    pub timeline: Vec<Line>,
    pub expires_at: String,
    pub paid_at: Option<String>,
    pub created_at: String,
}

/// A transfer of a charge.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct TransferSeen {
    pub txid: String,
    pub amount: String,
    pub confirmations: u32,
    pub credited: bool,
}

/// A line of a timeline.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct Line {
    pub event: String,
    pub time: String,
}

/// An invoice, as far as laws look at it.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct InvoiceSeen {
    pub code: String,
    pub status: String,
    pub charges: Vec<ChargeOf>,
    #[serde(default)]
    pub timeline: Vec<Line>,
    pub paid_at: Option<String>,
    pub voided_at: Option<String>,
    pub created_at: String,
}

/// A charge within its invoice.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct ChargeOf {
    pub code: String,
    pub status: String,
}

/// A payment link, as far as laws look at it.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct LinkSeen {
    pub code: String,
    pub accepting_payments: bool,
}

/// An event, as far as laws look at it.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the fields of the API")]
pub struct EventSeen {
    pub id: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub details: BTreeMap<String, String>,
    pub charge: Option<Coded>,
    pub invoice: Option<Coded>,
    pub created_at: String,
}

impl EventSeen {
    /// The code of what it is about.
    pub fn subject(&self) -> &str {
        self.charge.as_ref().or(self.invoice.as_ref()).map_or("", |it| it.code.as_str())
    }
}

/// Something with a code.
#[derive(Clone, Debug, Deserialize)]
#[allow(missing_docs, reason = "the field of the API")]
pub struct Coded {
    pub code: String,
}

/// All that is shown of one account in one mode.
#[derive(Clone, Debug, Default)]
pub struct BookShown {
    /// Charges, newest first.
    pub charges: Vec<ChargeSeen>,
    /// Invoices, newest first.
    pub invoices: Vec<InvoiceSeen>,
    /// Payment links, newest first.
    pub links: Vec<LinkSeen>,
    /// Events, newest first; empty unless they were asked for.
    pub events: Vec<EventSeen>,
}

/// All that is shown.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// By account and mode.
    pub books: BTreeMap<Whose, BookShown>,
    places: BTreeMap<String, (Whose, usize)>,
}

impl Shown {
    /// A charge by its code, and whose it is.
    pub fn charge(&self, code: &str) -> Option<(Whose, &ChargeSeen)> {
        let (whose, place) = self.places.get(code)?;
        Some((*whose, &self.books[whose].charges[*place]))
    }
}

/// A page of a list.
#[derive(Deserialize)]
struct Page<T> {
    data: Vec<T>,
    links: Links,
}

#[derive(Deserialize)]
struct Links {
    next: Option<String>,
}

/// Whether events are read as well, each with its whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Charges and invoices.
    Objects,
    /// Events too.
    Events,
}

/// Reads what the API shows, by a key of each account and mode. An error says which page could not be read.
pub fn look(sandbox: &mut Sandbox, keys: &BTreeMap<Whose, String>, depth: Depth) -> Result<Shown, String> {
    let mut shown = Shown::default();
    for (whose, key) in keys {
        let charges: Vec<ChargeSeen> = read_list(sandbox, key, "/v1/charges?per_page=100")?;
        for (place, charge) in charges.iter().enumerate() {
            shown.places.insert(charge.code.clone(), (*whose, place));
        }
        let events = match depth {
            Depth::Objects => Vec::new(),
            Depth::Events => read_list(sandbox, key, "/v1/events?per_page=100")?,
        };
        let invoices = read_list(sandbox, key, "/v1/invoices?per_page=100")?;
        let links = read_list(sandbox, key, "/v1/payment-links?per_page=100")?;
        shown.books.insert(*whose, BookShown { charges, invoices, links, events });
    }
    Ok(shown)
}

/// Every record of a list, by its links.
pub(super) fn read_list<T: for<'de> Deserialize<'de>>(
    sandbox: &mut Sandbox,
    key: &str,
    path: &str,
) -> Result<Vec<T>, String> {
    let mut records = Vec::new();
    let mut next = Some(path.to_owned());
    for _ in 0..PAGES_MAX {
        let Some(path) = next.take() else { return Ok(records) };
        let (status, body) = ask(sandbox, key, &path);
        if status != 200 {
            return Err(format!("GET {path} answered {status}"));
        }
        let page: Page<T> =
            serde_json::from_slice(&body).map_err(|error| format!("GET {path} cannot be read: {error}"))?;
        records.extend(page.data);
        next = page.links.next.and_then(|link| link.strip_prefix(BASE).map(str::to_owned));
    }
    Err(format!("GET {path} does not end"))
}

/// The answer to a request, at the moment that the world shows, or as soon as the limit allows.
pub(super) fn ask(sandbox: &mut Sandbox, key: &str, path: &str) -> (u16, Bytes) {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let authorization = format!("Bearer {key}");
    let request = Request {
        method: "GET",
        path,
        query,
        authorization: Some(authorization.as_bytes()),
        content_type: None,
        idempotency_key: None,
        base: BASE,
        body: b"",
    };
    let now = sandbox.now();
    let mut response = sandbox.respond(now, &request);
    if response.status == 429 {
        // Whoever judges keeps to the limit as well.
        response = sandbox.respond(now.plus(Span::secs(60)), &request);
    }
    (response.status, response.body)
}
