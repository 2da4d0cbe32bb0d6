//! The search in a book: finds charges, invoices and payment links by their texts (such as code, transaction, customer
//! or metadata), and events and deliveries by id. It ignores case, and scans a bounded number of the newest objects.

use reference_core::{
    book::Book,
    call::List,
    charge::{Charge, MetadataValue},
    error::ApiError,
    id::{AccountNo, ChargeNo, InvoiceNo, LinkNo, parse_uuid},
    invoice::Invoice,
    mode::Mode,
};
use reference_wire::fields::Fields;

use super::{Outcome, book::book_from_path, call::SandboxCall, json_response};
use crate::{
    api::{Keyword, SearchHit, SearchResponse},
    sandbox::Sandbox,
};

/// The maximum number of scanned objects of each list, newest first.
const SCANNED_MAX: usize = 50_000;
/// The maximum number of hits.
const HITS_MAX: usize = 50;
/// The maximum length of a query in bytes.
const QUERY_BYTES_MAX: usize = 255;

/// The name and value of a field.
type NamedValue = (String, String);

pub(super) fn search(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let book_id = book_from_path(call)?;
    let query = f.text("q", QUERY_BYTES_MAX).unwrap_or_default().trim().to_owned();
    f.finish()?;
    if query.is_empty() || query.len() > QUERY_BYTES_MAX {
        return Err(ApiError::field("q", format!("The q field must have 1 to {QUERY_BYTES_MAX} bytes.")));
    }
    json_response(SearchResponse { found: call.sandbox.search(book_id, &query) })
}

impl Sandbox {
    /// Returns the objects of a book with a field that contains the query, ignoring case: by kind, each newest first.
    pub fn search(&self, book_id: (AccountNo, Mode), query: &str) -> Vec<SearchHit> {
        let query = query.to_lowercase();
        let book = self.book(book_id);
        let mut hits = find_by_id(book, &query);
        // Returns `false` when there are enough hits, which ends the search.
        let mut add = |kind, id: String, fields: Vec<NamedValue>, status: Keyword| {
            let matches = |(_, value): &NamedValue| value.to_lowercase().contains(&query);
            let hit = fields.into_iter().find(matches);
            hits.extend(hit.map(|(field, value)| SearchHit { kind, id, field, value, status }));
            hits.len() < HITS_MAX
        };
        let charges = newest_members(book, &List::Charges { status: None, link: None });
        let invoices = newest_members(book, &List::Invoices { status: None });
        let links = newest_members(book, &List::Links);
        let _ = charges.into_iter().map(|no| book.charge(ChargeNo(no))).all(|charge| {
            add(
                "charge".into(),
                charge.code.to_string(),
                charge_fields(charge),
                charge.status().as_str().into(),
            )
        }) && invoices.into_iter().map(|no| book.invoice(InvoiceNo(no))).all(|invoice| {
            add(
                "invoice".into(),
                invoice.code.to_string(),
                invoice_fields(invoice),
                invoice.status().as_str().into(),
            )
        }) && links.into_iter().map(|no| book.link(LinkNo(no))).all(|link| {
            let status = if link.archived { "archived" } else { "active" };
            let fields = vec![named_value("code", link.code), named_value("title", &link.terms.title)];
            add("payment_link".into(), link.code.to_string(), fields, status.into())
        });
        hits
    }
}

/// Returns the newest members of a list, newest first.
fn newest_members(book: &Book, list: &List) -> Vec<u32> {
    let listing = book.listing(list);
    let count = listing.newest().map_or(0, |newest| listing.rank(newest));
    (count.saturating_sub(SCANNED_MAX)..count).rev().filter_map(|nth| listing.select(nth)).collect()
}

/// Returns the event or the delivery with this id.
fn find_by_id(book: &Book, query: &str) -> Vec<SearchHit> {
    let Some(id) = parse_uuid(query) else { return Vec::new() };
    let hit = |kind: &'static str, status: &'static str| SearchHit {
        kind: kind.into(),
        id: id.to_string(),
        field: "id".to_owned(),
        value: id.to_string(),
        status: status.into(),
    };
    let event = book.find_event(id).ok().map(|no| hit("event", book.events().get(no).kind.as_str()));
    let delivery = book.outbox().find(id).map(|no| hit("delivery", book.outbox().get(no).state.as_str()));
    event.into_iter().chain(delivery).collect()
}

fn named_value(name: &str, value: impl ToString) -> NamedValue {
    (name.to_owned(), value.to_string())
}

fn optional_named_value(name: &str, value: Option<&String>) -> Option<NamedValue> {
    value.map(|value| named_value(name, value))
}

fn charge_fields(charge: &Charge) -> Vec<NamedValue> {
    let (terms, customer) = (&charge.terms, charge.terms.customer());
    let mut fields =
        vec![named_value("code", charge.code), named_value("deposit_address", &terms.deposit_address)];
    fields.extend(charge.transfers().iter().map(|transfer| named_value("txid", &transfer.txid)));
    fields.extend(
        charge.refunds().iter().filter_map(|refund| optional_named_value("refund", refund.txid.as_ref())),
    );
    fields.extend(optional_named_value("customer_email", customer.email.as_ref()));
    fields.extend(optional_named_value("customer_name", customer.name.as_ref()));
    fields.extend(optional_named_value("customer_reference", customer.reference.as_ref()));
    fields.extend(terms.metadata.iter().filter_map(|(key, value)| match value {
        MetadataValue::Text(text) | MetadataValue::Number(text) => {
            Some((format!("metadata.{key}"), text.clone()))
        }
        MetadataValue::Bool(_) | MetadataValue::Null => None,
    }));
    fields.extend(optional_named_value("description", terms.description.as_ref()));
    fields
}

fn invoice_fields(invoice: &Invoice) -> Vec<NamedValue> {
    let terms = &invoice.terms;
    let mut fields = vec![named_value("code", invoice.code), named_value("number", &invoice.number)];
    fields.extend(optional_named_value("customer_email", terms.customer_email.as_ref()));
    fields.extend(optional_named_value("customer_name", terms.customer_name.as_ref()));
    fields.extend(optional_named_value("memo", terms.memo.as_ref()));
    fields
}
