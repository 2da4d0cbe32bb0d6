//! Bodies of responses: single objects, pages of lists, the account, errors.

use bytes::Bytes;
use serde::{Serialize, ser::SerializeMap};
use url::form_urlencoded;

use crate::{
    json_cache::{JsonCache, ObjectCache},
    view::{ChargeView, EventView, InvoiceView, LinkView, ObjectContext, Presentation},
};
use reference_core::{
    account::Account,
    book::Book,
    business::{Business, PostalAddress},
    call::{CallResult, List},
    error::{ApiError, FieldErrors},
    event::Subject,
    heights::ChainHeights,
    id::{ChargeNo, EventNo, InvoiceNo, LinkNo},
    mode::Mode,
    page::Page,
    time::Timestamp,
};

/// The initial capacity for an object, larger than most objects.
const OBJECT_CAPACITY: usize = 1_400;
/// The initial capacity for links and meta of a page.
const LINKS_CAPACITY: usize = 1_024;
/// The size in bytes above which a page gets a capacity of [`MAPPED_CAPACITY`].
const LARGE_PAGE_BYTES: usize = 1 << 20;
/// A capacity so large that the allocator maps it separately and returns it to the system when it is freed. Only the
/// written part uses memory.
const MAPPED_CAPACITY: usize = 33 << 20;

/// The context of a response.
pub(crate) struct ResponseContext<'a> {
    pub(crate) account: &'a Account,
    pub(crate) mode: Mode,
    pub(crate) public_url: &'a str,
    /// The base URL that the client used.
    pub(crate) base: &'a str,
    pub(crate) now: Timestamp,
    pub(crate) heights: &'a ChainHeights,
}

/// Returns the body of a successful response.
pub(crate) fn response_body(
    response_context: &ResponseContext<'_>,
    result: &CallResult,
    json_cache: &mut JsonCache,
) -> Bytes {
    let book = response_context.account.book(response_context.mode);
    let (public_url, now, heights) =
        (response_context.public_url, response_context.now, Some(response_context.heights));
    let context = ObjectContext { book, public_url, presentation: Presentation::Api, now, heights };
    match result {
        CallResult::Account => {
            let body = json_cache.account(response_context.account.version(response_context.mode), || {
                account(response_context, book)
            });
            debug_assert_eq!(body, account(response_context, book), "{VERSION_INVARIANT}");
            body
        }
        CallResult::Charge(no) => charge(context, no.0, json_cache).response(),
        CallResult::Link(no) => json(&SingleObject { data: &LinkView::new(context, *no) }).into(),
        CallResult::Invoice(no) => invoice(context, no.0, json_cache).response(),
        CallResult::Event(no) => event(context, no.0, json_cache).response(),
        CallResult::Page { list, page, anchor } => {
            let footer = PageFooter {
                base: response_context.base,
                list,
                page,
                anchor: anchor.as_deref().unwrap_or_default(),
            };
            let size = |cache: &ObjectCache| page.members.iter().map(|&no| cache.size_in_page(no)).sum();
            match list {
                List::Charges { .. } => {
                    let size = size(&json_cache.charges);
                    write_page(&footer, size, |no, body| charge(context, no, json_cache).add(body))
                }
                List::Invoices { .. } => {
                    let size = size(&json_cache.invoices);
                    write_page(&footer, size, |no, body| invoice(context, no, json_cache).add(body))
                }
                List::Links => write_page(&footer, page.members.len() * OBJECT_CAPACITY, |no, body| {
                    write(body, &LinkView::new(context, LinkNo(no)));
                }),
                List::Events { .. } => {
                    let size = size(&json_cache.events);
                    write_page(&footer, size, |no, body| event(context, no, json_cache).add(body))
                }
            }
        }
    }
}

#[derive(Serialize)]
struct SingleObject<'a, T> {
    data: &'a T,
}

/// An object to write, which may be in the cache.
struct CachedView<'k, F> {
    cache: &'k mut ObjectCache,
    no: u32,
    version: u64,
    view: F,
}

impl<T: Serialize, F: Fn() -> T> CachedView<'_, F> {
    /// Returns the body of the response with this object alone.
    fn response(self) -> Bytes {
        let response = self.cache.response(self.no, self.version, |body| write(body, &(self.view)()));
        debug_assert_eq!(response, json(&SingleObject { data: &(self.view)() }), "{VERSION_INVARIANT}");
        response
    }

    /// Appends the object to a page.
    fn add(self, body: &mut Vec<u8>) {
        let start = body.len();
        self.cache.add(body, self.no, self.version, |body| write(body, &(self.view)()));
        // Formatted only if they differ, because this runs for every object of every page.
        debug_assert!(
            body[start..] == json(&(self.view)()),
            "{VERSION_INVARIANT}: {} / {}",
            body[start..].escape_ascii(),
            json(&(self.view)()).escape_ascii()
        );
    }
}

/// Returns an object with its version. `subject`: the object, or the subject of an event.
fn cached_view<'k, F>(
    context: ObjectContext<'_>,
    cache: &'k mut ObjectCache,
    no: u32,
    subject: Subject,
    view: F,
) -> CachedView<'k, F> {
    let heights = context.heights.expect("a view of the API has the heights of the chains");
    CachedView { cache, no, version: context.book.version(subject, context.now, heights), view }
}

const VERSION_INVARIANT: &str = "every change of an object's JSON changes its version";

fn charge<'a, 'k>(
    context: ObjectContext<'a>,
    no: u32,
    json_cache: &'k mut JsonCache,
) -> CachedView<'k, impl Fn() -> ChargeView<'a>> {
    let charge = ChargeNo(no);
    cached_view(context, &mut json_cache.charges, no, Subject::Charge(charge), move || {
        ChargeView::with_timeline(context, charge)
    })
}

fn invoice<'a, 'k>(
    context: ObjectContext<'a>,
    no: u32,
    json_cache: &'k mut JsonCache,
) -> CachedView<'k, impl Fn() -> InvoiceView<'a>> {
    let invoice = InvoiceNo(no);
    cached_view(context, &mut json_cache.invoices, no, Subject::Invoice(invoice), move || {
        InvoiceView::with_timeline(context, invoice)
    })
}

fn event<'a, 'k>(
    context: ObjectContext<'a>,
    no: u32,
    json_cache: &'k mut JsonCache,
) -> CachedView<'k, impl Fn() -> EventView<'a>> {
    let event = context.book.events().get(EventNo(no));
    cached_view(context, &mut json_cache.events, no, event.subject, move || EventView::new(context, event))
}

/// Writes a page object by object, without a second copy. `size`: the estimated bytes of all objects.
fn write_page(
    footer: &PageFooter<'_>,
    size: usize,
    mut write_object: impl FnMut(u32, &mut Vec<u8>),
) -> Bytes {
    let capacity = if size > LARGE_PAGE_BYTES { size.max(MAPPED_CAPACITY) } else { size };
    let mut body = Vec::with_capacity(capacity + LINKS_CAPACITY);
    push_str(&mut body, "{\"data\":[");
    for (index, &member) in footer.page.members.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write_object(member, &mut body);
    }
    footer.write(&mut body);
    body.into()
}

fn push_str(body: &mut Vec<u8>, text: &str) {
    body.extend_from_slice(text.as_bytes());
}

/// The part of a page after its objects: links and meta.
struct PageFooter<'a> {
    /// The base URL that the client used.
    base: &'a str,
    list: &'a List,
    page: &'a Page,
    /// The id of the newest object when page 1 was read, so that later pages are stable. Empty if there is none.
    anchor: &'a str,
}

impl PageFooter<'_> {
    /// Closes the list of objects and appends links and meta. The URL is written once and copied, because the links
    /// differ in the page number only.
    fn write(&self, body: &mut Vec<u8>) {
        let page = self.page;
        let (name, filters) = self.path_and_filters();
        push_str(body, "],\"links\":{\"first\":");
        let start = body.len();
        // Only the base may contain a character that JSON escapes.
        write(body, &self.base);
        body.pop();
        push_str(body, "/v1/");
        push_str(body, name);
        let path = start..body.len();
        // `page` is the last parameter: `end_link` appends its value.
        let mut separator = "?";
        let per_page = page.per_page.to_string();
        for (name, value) in filters.into_iter().chain([("per_page", Some(&*per_page)), ("page", Some(""))]) {
            let Some(value) = value else { continue };
            push_str(body, separator);
            push_str(body, name);
            body.push(b'=');
            form_urlencoded::byte_serialize(value.as_bytes()).for_each(|part| push_str(body, part));
            separator = "&";
        }
        let url = start..body.len();
        self.end_link(body, 1);
        for (name, number) in
            [(",\"last\":", Some(page.last)), (",\"prev\":", page.prev()), (",\"next\":", page.next())]
        {
            push_str(body, name);
            match number {
                Some(number) => {
                    body.extend_from_within(url.clone());
                    self.end_link(body, number);
                }
                None => push_str(body, "null"),
            }
        }
        push_str(body, "},\"meta\":{\"current_page\":");
        write(body, &page.current);
        push_str(body, ",\"from\":");
        write(body, &page.from());
        push_str(body, ",\"last_page\":");
        write(body, &page.last);
        push_str(body, ",\"path\":");
        body.extend_from_within(path);
        push_str(body, "\",\"per_page\":");
        push_str(body, &per_page);
        push_str(body, ",\"to\":");
        write(body, &page.to());
        push_str(body, ",\"total\":");
        write(body, &page.total);
        push_str(body, "}}");
    }

    /// Appends page number and anchor to a link, and its closing quote.
    fn end_link(&self, body: &mut Vec<u8>, page_number: u64) {
        write(body, &page_number);
        if !self.anchor.is_empty() {
            // Public ids need no encoding.
            push_str(body, "&anchor=");
            push_str(body, self.anchor);
        }
        body.push(b'"');
    }

    /// Returns the path segment of the list and its filters.
    fn path_and_filters(&self) -> (&'static str, [(&'static str, Option<&str>); 3]) {
        match self.list {
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
        }
    }
}

/// Fills the rest of the three filters of [`PageFooter::path_and_filters`].
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
    support_phone: Option<&'a str>,
    brand_color: &'a str,
    business: Option<BusinessView<'a>>,
    default_currency: &'static str,
    underpayment_tolerance: String,
    overpayment_threshold: String,
    created_at: String,
}

#[derive(Serialize)]
struct BusinessView<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    legal_name: Option<&'a str>,
    registration_number: Option<&'a str>,
    tax_id: Option<&'a str>,
    address: Option<PostalAddressView<'a>>,
    industry: Option<&'a str>,
    product_description: Option<&'a str>,
    monthly_volume: Option<&'a str>,
    phone: Option<&'a str>,
}

impl<'a> BusinessView<'a> {
    fn new(business: &'a Business) -> BusinessView<'a> {
        BusinessView {
            kind: business.kind.as_deref(),
            legal_name: business.legal_name.as_deref(),
            registration_number: business.registration_number.as_deref(),
            tax_id: business.tax_id.as_deref(),
            address: business.address.as_ref().map(PostalAddressView::new),
            industry: business.industry.as_deref(),
            product_description: business.product_description.as_deref(),
            monthly_volume: business.monthly_volume.as_deref(),
            phone: business.phone.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct PostalAddressView<'a> {
    line1: Option<&'a str>,
    line2: Option<&'a str>,
    city: Option<&'a str>,
    state: Option<&'a str>,
    postal_code: Option<&'a str>,
    country: Option<&'a str>,
}

impl<'a> PostalAddressView<'a> {
    fn new(address: &'a PostalAddress) -> PostalAddressView<'a> {
        PostalAddressView {
            line1: address.line1.as_deref(),
            line2: address.line2.as_deref(),
            city: address.city.as_deref(),
            state: address.state.as_deref(),
            postal_code: address.postal_code.as_deref(),
            country: address.country.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct AccountMeta {
    mode: &'static str,
    accepted_assets: Vec<&'static str>,
}

#[derive(Serialize)]
struct AccountResponse<'a> {
    data: AccountView<'a>,
    meta: AccountMeta,
}

fn account(response_context: &ResponseContext<'_>, book: &Book) -> Vec<u8> {
    let account = response_context.account;
    let settings = &account.settings;
    json(&AccountResponse {
        data: AccountView {
            id: &account.id,
            object: "account",
            kind: account.kind.as_str(),
            name: &settings.name,
            display_name: &settings.display_name,
            logo_url: settings.logo_url.as_deref(),
            website_url: settings.website_url.as_deref(),
            support_email: settings.support_email.as_deref(),
            support_phone: settings.support_phone.as_deref(),
            brand_color: &settings.brand_color,
            business: settings.business.as_ref().map(BusinessView::new),
            default_currency: settings.default_currency.code(),
            underpayment_tolerance: settings.underpayment_tolerance.to_string(),
            overpayment_threshold: settings.overpayment_threshold.to_string(),
            created_at: account.created_at.to_string(),
        },
        meta: AccountMeta {
            mode: response_context.mode.as_str(),
            accepted_assets: book.wallets().accepted_assets().map(|asset| asset.code()).collect(),
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

/// Returns the body of an error response.
pub(crate) fn error(error: &ApiError) -> Vec<u8> {
    let errors = match error {
        ApiError::Invalid(errors) => Some(Errors(errors)),
        _ => None,
    };
    json(&ErrorBody { message: error.to_string(), errors })
}

/// Serializes a value.
pub(crate) fn json(value: &impl Serialize) -> Vec<u8> {
    let mut body = Vec::with_capacity(OBJECT_CAPACITY);
    write(&mut body, value);
    body
}

/// Appends the JSON of a view to a body.
pub(crate) fn write(body: &mut Vec<u8>, view: &impl Serialize) {
    serde_json::to_writer(body, view).expect("a view has text keys, and writing to memory does not fail");
}
