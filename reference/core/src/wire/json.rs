//! Answers as JSON: envelopes, lists, errors.

use serde::{Serialize, ser::SerializeMap};
use url::form_urlencoded;

use super::{
    fragments::{Fragments, Kept},
    pen::{escape, write},
    text::Text,
    view::{ChargeView, EventView, Facet, Frame, InvoiceView, LinkView},
};
use crate::{
    account::Account,
    book::Book,
    call::{Answer, List},
    error::{ApiError, FieldErrors},
    event::Subject,
    id::{ChargeNo, EventNo, InvoiceNo, LinkNo},
    mode::Mode,
    page::Page,
    short::Short,
    time::Timestamp,
};

/// More than most objects take, so that few answers have to grow.
const OBJECT_ROOM: usize = 1_400;
/// More than links and meta of most pages take.
const LINKS_ROOM: usize = 1_024;

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
pub(super) fn answer(scene: &Scene<'_>, answer: &Answer, fragments: &mut Fragments) -> Vec<u8> {
    let book = scene.account.book(scene.mode);
    let frame = Frame { book, public_url: scene.public_url, facet: Facet::Api, now: scene.now };
    match answer {
        Answer::Account => {
            let body = fragments.account(|| account(scene, book));
            debug_assert_eq!(
                body,
                account(scene, book),
                "whoever changes the account forgets what was written"
            );
            body
        }
        Answer::Charge(no) => {
            one_kept(fragments.charges.room(no.0), |body| charge(frame, no.0, fragments, body))
        }
        Answer::Link(no) => one(&LinkView::of(frame, *no)),
        Answer::Invoice(no) => {
            one_kept(fragments.invoices.room(no.0), |body| invoice(frame, no.0, fragments, body))
        }
        Answer::Event(no) => {
            one_kept(fragments.events.room(no.0), |body| event(frame, no.0, fragments, body))
        }
        Answer::Page { list, page, anchor } => {
            let links = Links::new(scene, list, page, anchor.as_deref());
            let room = |kept: &Kept| page.members.iter().map(|&no| kept.room(no)).sum();
            match list {
                List::Charges { .. } => {
                    let room = room(&fragments.charges);
                    many(page, &links, room, |no, body| charge(frame, no, fragments, body))
                }
                List::Invoices { .. } => {
                    let room = room(&fragments.invoices);
                    many(page, &links, room, |no, body| invoice(frame, no, fragments, body))
                }
                List::Links => many(page, &links, page.members.len() * OBJECT_ROOM, |no, body| {
                    write(body, &LinkView::of(frame, LinkNo(no)));
                }),
                List::Events { .. } => {
                    let room = room(&fragments.events);
                    many(page, &links, room, |no, body| event(frame, no, fragments, body))
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
    json(&One { data: view })
}

/// An object that is added by `add`. `room`: how many bytes it takes, with one for what stands behind it.
fn one_kept(room: usize, add: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    const BEFORE: &[u8] = b"{\"data\":";
    // Exactly as much as it takes: a host can hand such a vector on without a second allocation.
    let mut body = Vec::with_capacity(BEFORE.len() + room);
    body.extend_from_slice(BEFORE);
    add(&mut body);
    body.push(b'}');
    body
}

fn charge(frame: Frame<'_>, no: u32, fragments: &mut Fragments, body: &mut Vec<u8>) {
    let stamp = frame.book.stamp(Subject::Charge(ChargeNo(no)), frame.now);
    kept(&mut fragments.charges, body, (no, stamp), || ChargeView::of(frame, ChargeNo(no)));
}

fn invoice(frame: Frame<'_>, no: u32, fragments: &mut Fragments, body: &mut Vec<u8>) {
    let stamp = frame.book.stamp(Subject::Invoice(InvoiceNo(no)), frame.now);
    kept(&mut fragments.invoices, body, (no, stamp), || InvoiceView::of(frame, InvoiceNo(no)));
}

fn event(frame: Frame<'_>, no: u32, fragments: &mut Fragments, body: &mut Vec<u8>) {
    let event = frame.book.events().get(EventNo(no));
    let stamp = frame.book.stamp(event.subject, frame.now);
    kept(&mut fragments.events, body, (no, stamp), || EventView::of(frame, event));
}

/// An object, copied if nothing that it shows has changed since it was last written.
fn kept<T: Serialize>(kept: &mut Kept, body: &mut Vec<u8>, (no, stamp): (u32, u64), view: impl Fn() -> T) {
    let start = body.len();
    kept.add(body, no, stamp, |body| write(body, &view()));
    debug_assert_eq!(
        String::from_utf8_lossy(&body[start..]),
        String::from_utf8_lossy(&json(&view())),
        "every change of what an object shows changes its stamp"
    );
}

/// A list's records are written one by one, so that a page needs no second copy of them. `room`: what they take.
fn many(page: &Page, links: &Links<'_>, room: usize, mut record: impl FnMut(u32, &mut Vec<u8>)) -> Vec<u8> {
    let mut body = Vec::with_capacity(room + LINKS_ROOM);
    body.extend_from_slice(b"{\"data\":[");
    for (place, &member) in page.members.iter().enumerate() {
        if place > 0 {
            body.push(b',');
        }
        record(member, &mut body);
    }
    links.write(page, &mut body);
    body
}

/// What the links of a page have in common: they differ in the page's number only. All of it is escaped already.
struct Links<'a> {
    /// Path and query, up to the number.
    before: Vec<u8>,
    /// How long the path is.
    path: usize,
    /// What stands behind the number, and the anchor behind that. Public ids need no encoding.
    anchor: Option<&'a str>,
}

impl<'a> Links<'a> {
    fn new(scene: &Scene<'_>, list: &List, page: &Page, anchor: Option<&'a str>) -> Links<'a> {
        let (name, filters): (_, [(&str, Option<&str>); 3]) = match list {
            List::Charges { status, link } => (
                "charges",
                [("status", status.map(|s| s.as_str())), ("payment_link", link.as_deref()), NO_FILTER],
            ),
            List::Invoices { status } => {
                ("invoices", [("status", status.map(|s| s.as_str())), NO_FILTER, NO_FILTER])
            }
            List::Links => ("payment-links", [NO_FILTER; 3]),
            List::Events { kind, charge, invoice } => (
                "events",
                [
                    ("type", kind.map(|k| k.as_str())),
                    ("charge", charge.as_deref()),
                    ("invoice", invoice.as_deref()),
                ],
            ),
        };
        let mut before = Vec::with_capacity(LINKS_ROOM / 4);
        escape(&mut before, scene.base.as_bytes());
        before.extend_from_slice(b"/v1/");
        before.extend_from_slice(name.as_bytes());
        let path = before.len();
        before.push(b'?');
        for (name, value) in filters {
            if let Some(value) = value {
                before.extend_from_slice(name.as_bytes());
                before.push(b'=');
                for part in form_urlencoded::byte_serialize(value.as_bytes()) {
                    before.extend_from_slice(part.as_bytes());
                }
                before.push(b'&');
            }
        }
        before.extend_from_slice(b"per_page=");
        number(&mut before, page.per_page.into());
        before.extend_from_slice(b"&page=");
        Links { before, path, anchor }
    }

    /// Everything behind the records. By hand, because it is a good part of what a page costs.
    fn write(&self, page: &Page, body: &mut Vec<u8>) {
        for (name, n) in [
            (&b"],\"links\":{\"first\":"[..], Some(1)),
            (b",\"last\":", Some(page.last)),
            (b",\"prev\":", page.prev()),
            (b",\"next\":", page.next()),
        ] {
            body.extend_from_slice(name);
            self.link(n, body);
        }
        for (name, n) in [
            (&b"},\"meta\":{\"current_page\":"[..], Some(page.current)),
            (b",\"from\":", page.from()),
            (b",\"last_page\":", Some(page.last)),
        ] {
            body.extend_from_slice(name);
            number_or_null(body, n);
        }
        body.extend_from_slice(b",\"path\":\"");
        body.extend_from_slice(&self.before[..self.path]);
        for (name, n) in [
            (&b"\",\"per_page\":"[..], Some(page.per_page.into())),
            (b",\"to\":", page.to()),
            (b",\"total\":", Some(page.total)),
        ] {
            body.extend_from_slice(name);
            number_or_null(body, n);
        }
        body.extend_from_slice(b"}}");
    }

    fn link(&self, n: Option<u64>, body: &mut Vec<u8>) {
        let Some(n) = n else {
            body.extend_from_slice(b"null");
            return;
        };
        body.push(b'"');
        body.extend_from_slice(&self.before);
        number(body, n);
        if let Some(anchor) = self.anchor {
            body.extend_from_slice(b"&anchor=");
            body.extend_from_slice(anchor.as_bytes());
        }
        body.push(b'"');
    }
}

fn number(body: &mut Vec<u8>, n: u64) {
    let mut text = Short::default();
    text.number(n);
    body.extend_from_slice(text.as_bytes());
}

fn number_or_null(body: &mut Vec<u8>, n: Option<u64>) {
    match n {
        Some(n) => number(body, n),
        None => body.extend_from_slice(b"null"),
    }
}

const NO_FILTER: (&str, Option<&str>) = ("", None);

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
    underpayment_tolerance: Text,
    overpayment_threshold: Text,
    created_at: Text,
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
    json(&AccountAnswer {
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
            underpayment_tolerance: Text::Percent(settings.underpayment_tolerance),
            overpayment_threshold: Text::Percent(settings.overpayment_threshold),
            created_at: account.created_at.into(),
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
    json(&ErrorBody { message: error.to_string(), errors })
}

/// An object of its own.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::with_capacity(OBJECT_ROOM);
    write(&mut body, value);
    body
}
