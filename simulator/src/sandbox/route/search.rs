//! The search of a book: an object by its code, transaction, customer e-mail address or order.
//!
//! It scans a bounded number of the newest objects and ignores case.

use reference_core::{
    book::Book,
    call::List,
    charge::{Charge, MetaValue},
    error::ApiError,
    id::{AccountNo, ChargeNo, InvoiceNo, LinkNo, parse_uuid},
    invoice::Invoice,
    mode::Mode,
};
use reference_wire::fields::Fields;

use super::{Outcome, answer, book::book_from_path, call::SandboxCall};
use crate::{
    api::{SearchAnswer, SearchHit, Word},
    sandbox::Sandbox,
};

/// The maximum number of scanned objects of each list, newest first.
const LOOKED_AT_MAX: usize = 50_000;
/// The maximum number of hits.
const FOUND_MAX: usize = 50;
/// The maximum length of a search text; no searched value is longer.
const WANTED_MAX: usize = 255;

/// A field's name and value.
type NamedText = (String, String);

pub(super) fn search(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let book_id = book_from_path(call)?;
    let wanted = f.text("q", WANTED_MAX).unwrap_or_default().trim().to_owned();
    f.finish()?;
    if wanted.is_empty() || wanted.len() > WANTED_MAX {
        return Err(ApiError::field("q", format!("The q field must have 1 to {WANTED_MAX} bytes.")));
    }
    answer(SearchAnswer { found: call.sandbox.search(book_id, &wanted) })
}

impl Sandbox {
    /// Returns the objects of a book that contain a string, newest first by kind. Case is ignored.
    pub fn search(&self, book_id: (AccountNo, Mode), wanted: &str) -> Vec<SearchHit> {
        let wanted = wanted.to_lowercase();
        let book = self.book(book_id);
        let mut found = by_id(book, &wanted);
        let mut add = |kind, id: String, fields: Vec<NamedText>, status: Word| {
            let holds = |(_, value): &NamedText| value.to_lowercase().contains(&wanted);
            let hit = fields.into_iter().find(holds);
            found.extend(hit.map(|(field, value)| SearchHit { kind, id, field, value, status }));
            found.len() < FOUND_MAX
        };
        let charges = newest_members(book, &List::Charges { status: None, link: None });
        let invoices = newest_members(book, &List::Invoices { status: None });
        let links = newest_members(book, &List::Links);
        let _ = charges.into_iter().map(|no| book.charge(ChargeNo(no))).all(|charge| {
            add("charge".into(), charge.code.to_string(), of_charge(charge), charge.status().as_str().into())
        }) && invoices.into_iter().map(|no| book.invoice(InvoiceNo(no))).all(|invoice| {
            add(
                "invoice".into(),
                invoice.code.to_string(),
                of_invoice(invoice),
                invoice.status().as_str().into(),
            )
        }) && links.into_iter().map(|no| book.link(LinkNo(no))).all(|link| {
            let status = if link.archived { "archived" } else { "active" };
            let fields = vec![named_text("code", link.code), named_text("title", &link.terms.title)];
            add("payment_link".into(), link.code.to_string(), fields, status.into())
        });
        found
    }
}

/// Returns the newest members of a list, newest first.
fn newest_members(book: &Book, list: &List) -> Vec<u32> {
    let listing = book.listing(list);
    let count = listing.newest().map_or(0, |newest| listing.rank(newest));
    (count.saturating_sub(LOOKED_AT_MAX)..count).rev().filter_map(|nth| listing.select(nth)).collect()
}

/// Returns the event or the delivery with this id.
fn by_id(book: &Book, wanted: &str) -> Vec<SearchHit> {
    let Some(id) = parse_uuid(wanted) else { return Vec::new() };
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

fn named_text(name: &str, value: impl ToString) -> NamedText {
    (name.to_owned(), value.to_string())
}

fn optional_named_text(name: &str, value: Option<&String>) -> Option<NamedText> {
    value.map(|value| named_text(name, value))
}

fn of_charge(charge: &Charge) -> Vec<NamedText> {
    let (terms, customer) = (&charge.terms, charge.terms.customer());
    let mut fields =
        vec![named_text("code", charge.code), named_text("deposit_address", &terms.deposit_address)];
    fields.extend(charge.transfers().iter().map(|transfer| named_text("txid", &transfer.txid)));
    fields.extend(
        charge.refunds().iter().filter_map(|refund| optional_named_text("refund", refund.txid.as_ref())),
    );
    fields.extend(optional_named_text("customer_email", customer.email.as_ref()));
    fields.extend(optional_named_text("customer_name", customer.name.as_ref()));
    fields.extend(optional_named_text("customer_reference", customer.reference.as_ref()));
    fields.extend(terms.metadata.iter().filter_map(|(key, value)| match value {
        MetaValue::Text(text) | MetaValue::Number(text) => Some((format!("metadata.{key}"), text.clone())),
        MetaValue::Truth(_) | MetaValue::Null => None,
    }));
    fields.extend(optional_named_text("description", terms.description.as_ref()));
    fields
}

fn of_invoice(invoice: &Invoice) -> Vec<NamedText> {
    let terms = &invoice.terms;
    let mut fields = vec![named_text("code", invoice.code), named_text("number", &invoice.number)];
    fields.extend(optional_named_text("customer_email", terms.customer_email.as_ref()));
    fields.extend(optional_named_text("customer_name", terms.customer_name.as_ref()));
    fields.extend(optional_named_text("memo", terms.memo.as_ref()));
    fields
}
