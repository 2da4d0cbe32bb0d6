//! The pages of events, deliveries, webhook endpoints and API keys.

use askama::Template;
use reference_core::{
    event::EventType,
    id::{Code, EventNo, parse_uuid},
};
use simulator::{
    api::{DeliveryRecord, EndpointRecord, KeyRecord},
    sandbox::DeliveryFilter,
};

use super::{List, PageView, Pager, Tab, Tabs, list, live_block, static_block};
use crate::{
    pages::book::BookReader,
    pages::dashboard::{
        context::PageContext,
        diff, fragments, paths,
        record_display::{AttemptDisplay as _, DeliveryDisplay as _, EndpointDisplay as _},
    },
    pages::formats::TimeFormats as _,
    pages::objects::Event,
    refusal::Refusal,
};

/// The number of deliveries on a page of the log.
const DELIVERIES_PER_PAGE: usize = 25;
/// The maximum number of deliveries that are offered for comparison.
const COMPARABLE_MAX: usize = 50;
/// The maximum number of deliveries on the page of an event or an endpoint.
const OBJECT_DELIVERIES_MAX: usize = 10;

#[derive(Template)]
#[template(path = "dashboard/events.html")]
struct EventsBlock<'a> {
    context: &'a PageContext,
    list: List<Event>,
    curl: String,
}

#[derive(Template)]
#[template(path = "dashboard/events_filter.html")]
struct EventsFilter<'a> {
    context: &'a PageContext,
    kinds: [&'static str; EventType::ALL.len()],
    selected: &'a str,
}

pub(super) async fn events(context: &PageContext) -> Result<PageView, Refusal> {
    let kind = context.query.get("type");
    let filters = [("type", kind)];
    let view = |book: &BookReader<'_>, no| Event::from_book(book, EventNo(no));
    let list = list(context, ("events", &filters), ("/events", &filters), view).await?;
    let curl = context.curl_get("/v1/events");
    let kinds = EventType::ALL.map(EventType::as_str);
    let blocks = vec![
        static_block(&EventsFilter { context, kinds, selected: kind.unwrap_or_default() })?,
        live_block("events", &EventsBlock { context, list, curl })?,
    ];
    Ok(PageView { state: None, title: "Events".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/event.html")]
struct EventBlock<'a> {
    context: &'a PageContext,
    event: &'a Event,
    deliveries: Vec<DeliveryRecord>,
    json: String,
    curl: String,
}

pub(super) async fn event(context: &PageContext, id: &str) -> Result<PageView, Refusal> {
    let (event, json) =
        context.read(|book| Ok((book.event(id)?, book.json(&format!("events/{id}"))?))).await?;
    let filter = DeliveryFilter { event: Some(Some(event.id)), ..DeliveryFilter::default() };
    let deliveries = context.deliveries(OBJECT_DELIVERIES_MAX, filter).await?;
    let json = fragments::pretty(&json);
    let curl = context.curl_get(&format!("/v1/events/{id}"));
    let title = format!("Event {}", event.kind.as_str());
    let block = live_block("event", &EventBlock { context, event: &event, deliveries, json, curl })?;
    Ok(PageView { state: None, title, blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/deliveries.html")]
struct DeliveriesBlock<'a> {
    context: &'a PageContext,
    tabs: Tabs,
    list: List<DeliveryRecord>,
    /// `true` if there is an endpoint.
    has_endpoint: bool,
}

/// The statuses that the log can be filtered by; the first stands for all.
const STATUS_FILTERS: [&str; 6] = ["all", "waiting", "in_flight", "delivered", "failed", "canceled"];

pub(super) async fn deliveries(context: &PageContext) -> Result<PageView, Refusal> {
    let status =
        STATUS_FILTERS.into_iter().skip(1).find(|status| context.query.get("status") == Some(status));
    let endpoint = context.query.get("endpoint").filter(|id| paths::is_id(id));
    let before = context.query.get("before").filter(|id| paths::is_id(id));
    let filters = [("status", status), ("endpoint", endpoint)];
    let filter = DeliveryFilter {
        status,
        // An invalid code matches no delivery.
        endpoint: endpoint.map(Code::parse),
        before: before.map(|id| parse_uuid(id).ok_or(Refusal::NotFound)).transpose()?,
        ..DeliveryFilter::default()
    };
    // One more than is shown, to detect if there are older ones.
    let mut deliveries = context.deliveries(DELIVERIES_PER_PAGE + 1, filter).await?;
    let has_older = deliveries.len() > DELIVERIES_PER_PAGE;
    deliveries.truncate(DELIVERIES_PER_PAGE);
    let list_url = |extra: &[(&str, Option<&str>)]| {
        let fields: Vec<_> = filters.iter().chain(extra).copied().collect();
        context.to(format!("/deliveries{}", paths::query_string(&fields)))
    };
    let last = deliveries.last().map(|delivery| delivery.id.to_string());
    let pager = Pager {
        summary: String::new(),
        newer: before.map(|_| list_url(&[])),
        older: last.filter(|_| has_older).map(|id| list_url(&[("before", Some(&id))])),
    };
    let tabs = STATUS_FILTERS.map(|name| {
        let tab_status = (name != "all").then_some(name);
        Tab {
            label: if name == "in_flight" { "in flight" } else { name },
            count: None,
            href: context
                .to(format!("/deliveries{}", paths::query_string(&[("status", tab_status), filters[1]]))),
            is_current: tab_status == status,
        }
    });
    let tabs = Tabs { label: "Deliveries by status", tabs: tabs.into() };
    let has_endpoint = !context.endpoints().await?.is_empty();
    let list = List { records: deliveries, pager };
    let block = live_block("deliveries", &DeliveriesBlock { context, tabs, list, has_endpoint })?;
    Ok(PageView { state: None, title: "Deliveries".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/delivery.html")]
struct DeliveryBlock<'a> {
    context: &'a PageContext,
    delivery: &'a DeliveryRecord,
    /// The payload with line breaks and indentation.
    body: String,
    /// The payload as it was sent.
    raw: &'a str,
    tab_title: String,
    /// Deliveries for comparison: id and label.
    comparable: Vec<(String, String)>,
    diff: Option<PayloadDiff>,
}

/// The comparison with another payload.
struct PayloadDiff {
    id: String,
    lines: Vec<diff::Line>,
}

/// Compares the payload with that of the delivery in the query, if there is one.
async fn compare_payloads(context: &PageContext, body: &str) -> Result<Option<PayloadDiff>, Refusal> {
    let Some(id) = context.query.get("with").filter(|id| paths::is_id(id)) else { return Ok(None) };
    let other = context.delivery(id).await?;
    let other = fragments::pretty(other.request_body.as_deref().unwrap_or_default());
    Ok(Some(PayloadDiff { id: id.to_owned(), lines: diff::diff_lines(&other, body) }))
}

pub(super) async fn delivery(context: &PageContext, id: &str) -> Result<PageView, Refusal> {
    let delivery = context.delivery(id).await?;
    let raw = delivery.request_body.as_deref().unwrap_or_default();
    let body = fragments::pretty(raw);
    let title = format!("Delivery of {}", delivery.kind.as_str());
    let tab_title = context.tab_title(Some(&delivery.status), &title);
    let others = context.deliveries(COMPARABLE_MAX + 1, DeliveryFilter::default()).await?.into_iter();
    let others = others.filter(|other| other.id != delivery.id);
    let comparable = others.map(|other| {
        let summary = format!("{}, {}, {}", other.kind.as_str(), other.created_at.date_time(), other.url);
        (other.id.to_string(), summary)
    });
    let block = DeliveryBlock {
        context,
        delivery: &delivery,
        diff: compare_payloads(context, &body).await?,
        comparable: comparable.take(COMPARABLE_MAX).collect(),
        body,
        raw,
        tab_title,
    };
    let block = live_block("delivery", &block)?;
    Ok(PageView { state: Some(delivery.status.to_string()), title, blocks: vec![block] })
}

/// A checkbox for an event type.
struct EventTypeOption {
    kind: &'static str,
    is_selected: bool,
}

/// Returns checkboxes for all event types in two groups: `charge` and `invoice`.
fn event_type_options(is_selected: impl Fn(&str) -> bool) -> [(&'static str, Vec<EventTypeOption>); 2] {
    ["charge", "invoice"].map(|object| {
        let kinds = EventType::ALL.into_iter().map(EventType::as_str).filter(|kind| kind.starts_with(object));
        (object, kinds.map(|kind| EventTypeOption { kind, is_selected: is_selected(kind) }).collect())
    })
}

#[derive(Template)]
#[template(path = "dashboard/endpoints.html")]
struct EndpointsBlock<'a> {
    context: &'a PageContext,
    list: List<EndpointRecord>,
    /// The number of all event types.
    kind_count: usize,
}

#[derive(Template)]
#[template(path = "dashboard/endpoint_form.html")]
struct EndpointForm<'a> {
    context: &'a PageContext,
    form: String,
    url: &'a str,
    groups: [(&'static str, Vec<EventTypeOption>); 2],
    is_new: bool,
}

pub(super) async fn endpoints(context: &PageContext) -> Result<PageView, Refusal> {
    let form = "/endpoints".to_owned();
    let is_refused = context.draft.is_for(&form);
    let groups = event_type_options(|kind| !is_refused || context.draft.is_selected(&form, "events", kind));
    let url = context.draft.value(&form, "url");
    let list = List::single_page(context.endpoints().await?);
    let blocks = vec![
        live_block("endpoints", &EndpointsBlock { context, list, kind_count: EventType::ALL.len() })?,
        static_block(&EndpointForm { context, form: form.clone(), url, groups, is_new: true })?,
    ];
    Ok(PageView { state: None, title: "Webhook endpoints".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/endpoint.html")]
struct EndpointBlock<'a> {
    context: &'a PageContext,
    endpoint: &'a EndpointRecord,
    deliveries: Vec<DeliveryRecord>,
}

#[derive(Template)]
#[template(path = "dashboard/endpoint_actions.html")]
struct EndpointActions<'a> {
    context: &'a PageContext,
    endpoint: &'a EndpointRecord,
}

pub(super) async fn endpoint(context: &PageContext, id: &str) -> Result<PageView, Refusal> {
    let endpoint = context.endpoint(id).await?;
    let filter = DeliveryFilter { endpoint: Some(Some(endpoint.id)), ..DeliveryFilter::default() };
    let deliveries = context.deliveries(OBJECT_DELIVERIES_MAX, filter).await?;
    let form = format!("/endpoints/{id}");
    let is_refused = context.draft.is_for(&form);
    let groups = event_type_options(|kind| match is_refused {
        true => context.draft.is_selected(&form, "events", kind),
        false => endpoint.events.iter().any(|event| event.as_str() == kind),
    });
    let url = context.draft.value_or(&form, "url", &endpoint.url);
    let blocks = vec![
        live_block("endpoint", &EndpointBlock { context, endpoint: &endpoint, deliveries })?,
        static_block(&EndpointForm { context, form: form.clone(), url, groups, is_new: false })?,
        static_block(&EndpointActions { context, endpoint: &endpoint })?,
    ];
    Ok(PageView { state: None, title: "Webhook endpoint".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct KeysBlock<'a> {
    context: &'a PageContext,
    keys: Vec<KeyRecord>,
    /// The prefix of keys of this mode: `svc_test_`.
    key_start: String,
}

pub(super) async fn keys(context: &PageContext) -> Result<PageView, Refusal> {
    let key_start = context.client.pages.dashboard.key_start(context.book_id.mode);
    let mut keys = context.keys().await?;
    // The sort is stable: active keys come first, then the newest.
    keys.sort_by_key(|key| key.revoked_at.is_some());
    let block = static_block(&KeysBlock { context, keys, key_start })?;
    Ok(PageView { state: None, title: "API keys".to_owned(), blocks: vec![block] })
}
