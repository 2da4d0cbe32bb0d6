//! Answers as JSON: envelopes, lists, errors.

use serde::{Serialize, ser::SerializeMap};
use url::form_urlencoded;

use super::view::{ChargeView, EventView, Facet, Frame, InvoiceView, LinkView};
use crate::{
    account::Account,
    book::Book,
    call::{Answer, List},
    error::{ApiError, FieldErrors},
    id::{ChargeNo, EventNo, InvoiceNo, LinkNo},
    mode::Mode,
    page::Page,
    time::Timestamp,
};

/// What an answer is written with.
pub(super) struct Scene<'a> {
    pub(super) account: &'a Account,
    pub(super) mode: Mode,
    pub(super) public_url: &'a str,
    /// The address that the client called.
    pub(super) base: &'a str,
    pub(super) now: Timestamp,
}

/// The body of a good answer.
pub(super) fn answer(scene: &Scene<'_>, answer: &Answer) -> Vec<u8> {
    let book = scene.account.book(scene.mode);
    let frame = Frame { book, public_url: scene.public_url, facet: Facet::Api, now: scene.now };
    match answer {
        Answer::Account => account(scene, book),
        Answer::Charge(no) => one(&ChargeView::of(frame, *no)),
        Answer::Link(no) => one(&LinkView::of(frame, *no)),
        Answer::Invoice(no) => one(&InvoiceView::of(frame, *no)),
        Answer::Event(no) => one(&EventView::of(frame, book.events().get(*no))),
        Answer::Page { list, page, anchor } => {
            let links = Links::new(scene, list, page, anchor.as_deref());
            match list {
                List::Charges { .. } => many(page, &links, |no| ChargeView::of(frame, ChargeNo(no))),
                List::Invoices { .. } => many(page, &links, |no| InvoiceView::of(frame, InvoiceNo(no))),
                List::Links => many(page, &links, |no| LinkView::of(frame, LinkNo(no))),
                List::Events { .. } => {
                    many(page, &links, |no| EventView::of(frame, book.events().get(EventNo(no))))
                }
            }
        }
    }
}

#[derive(Serialize)]
struct One<'a, T> {
    data: &'a T,
}

fn one(view: &impl Serialize) -> Vec<u8> {
    write(&One { data: view })
}

/// A list's records are written one by one, so that a page needs no second copy of them.
fn many<V: Serialize>(page: &Page, links: &Links, view: impl Fn(u32) -> V) -> Vec<u8> {
    let mut body = b"{\"data\":[".to_vec();
    for (place, &member) in page.members.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        serde_json::to_writer(&mut body, &view(member)).expect("a view is always JSON");
    }
    body.extend_from_slice(b"],\"links\":");
    serde_json::to_writer(&mut body, links).expect("links are always JSON");
    body.extend_from_slice(b",\"meta\":");
    let meta = Meta {
        current_page: page.current,
        from: page.from(),
        last_page: page.last,
        path: &links.path,
        per_page: page.per_page,
        to: page.to(),
        total: page.total,
    };
    serde_json::to_writer(&mut body, &meta).expect("meta is always JSON");
    body.push(b'}');
    body
}

#[derive(Serialize)]
struct Meta<'a> {
    current_page: u64,
    from: Option<u64>,
    last_page: u64,
    path: &'a str,
    per_page: u32,
    to: Option<u64>,
    total: u64,
}

#[derive(Serialize)]
struct Links {
    first: String,
    last: String,
    prev: Option<String>,
    next: Option<String>,
    #[serde(skip)]
    path: String,
}

impl Links {
    fn new(scene: &Scene<'_>, list: &List, page: &Page, anchor: Option<&str>) -> Links {
        let (name, filters): (_, Vec<(&str, Option<&str>)>) = match list {
            List::Charges { status, link } => {
                ("charges", vec![("status", status.map(|s| s.as_str())), ("payment_link", link.as_deref())])
            }
            List::Invoices { status } => ("invoices", vec![("status", status.map(|s| s.as_str()))]),
            List::Links => ("payment-links", Vec::new()),
            List::Events { kind, charge, invoice } => (
                "events",
                vec![
                    ("type", kind.map(|k| k.as_str())),
                    ("charge", charge.as_deref()),
                    ("invoice", invoice.as_deref()),
                ],
            ),
        };
        let path = format!("{}/v1/{name}", scene.base);
        let to = |n: u64| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            for (name, value) in &filters {
                if let Some(value) = value {
                    query.append_pair(name, value);
                }
            }
            query.append_pair("per_page", &page.per_page.to_string());
            query.append_pair("page", &n.to_string());
            if let Some(anchor) = anchor {
                query.append_pair("anchor", anchor);
            }
            format!("{path}?{}", query.finish())
        };
        Links {
            first: to(1),
            last: to(page.last),
            prev: page.prev().map(to),
            next: page.next().map(to),
            path,
        }
    }
}

#[derive(Serialize)]
struct AccountView<'a> {
    id: &'a str,
    object: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    display_name: &'a str,
    logo_url: Option<&'a str>,
    website_url: Option<&'a str>,
    support_email: Option<&'a str>,
    brand_color: &'a str,
    default_currency: &'static str,
    underpayment_tolerance: String,
    overpayment_threshold: String,
    created_at: String,
}

#[derive(Serialize)]
struct AccountMeta {
    mode: &'static str,
    accepted_assets: Vec<&'static str>,
}

#[derive(Serialize)]
struct AccountAnswer<'a> {
    data: AccountView<'a>,
    meta: AccountMeta,
}

fn account(scene: &Scene<'_>, book: &Book) -> Vec<u8> {
    let account = scene.account;
    let settings = &account.settings;
    write(&AccountAnswer {
        data: AccountView {
            id: &account.id,
            object: "account",
            kind: account.kind.as_str(),
            name: &settings.name,
            display_name: &settings.display_name,
            logo_url: settings.logo_url.as_deref(),
            website_url: settings.website_url.as_deref(),
            support_email: settings.support_email.as_deref(),
            brand_color: &settings.brand_color,
            default_currency: settings.default_currency.code(),
            underpayment_tolerance: settings.underpayment_tolerance.to_string(),
            overpayment_threshold: settings.overpayment_threshold.to_string(),
            created_at: account.created_at.to_string(),
        },
        meta: AccountMeta {
            mode: scene.mode.as_str(),
            accepted_assets: book.payouts().accepted().map(|asset| asset.code()).collect(),
        },
    })
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Errors<'a>>,
}

struct Errors<'a>(&'a FieldErrors);

impl Serialize for Errors<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, messages) in self.0.iter() {
            map.serialize_entry(name, messages)?;
        }
        map.end()
    }
}

/// The body of a refusal.
pub(super) fn error(error: &ApiError) -> Vec<u8> {
    let errors = match error {
        ApiError::Invalid(errors) => Some(Errors(errors)),
        _ => None,
    };
    write(&ErrorBody { message: error.to_string(), errors })
}

fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("an answer is always JSON")
}
