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
        compare,
        context::PageContext,
        facts::{AttemptWords as _, DeliveryWords as _, EndpointWords as _},
        fragments, paths,
    },
    pages::formats::MomentWords as _,
    pages::objects::Event,
    refusal::Refusal,
};

/// The number of deliveries on a page of the log.
const DELIVERIES_SHOWN: usize = 25;
/// The number of deliveries that are offered for comparison.
const OTHERS_OFFERED: usize = 50;
/// The number of deliveries on the page of an event or an endpoint.
const DELIVERIES_BESIDE: usize = 10;

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
    chosen: &'a str,
}

pub(super) async fn events(context: &PageContext) -> Result<PageView, Refusal> {
    let kind = context.query.get("type");
    let filters = [("type", kind)];
    let view = |book: &BookReader<'_>, no| Event::from_book(book, EventNo(no));
    let list = list(context, ("events", &filters), ("/events", &filters), view).await?;
    let curl = context.curl_get("/v1/events");
    let kinds = EventType::ALL.map(EventType::as_str);
    let blocks = vec![
        static_block(&EventsFilter { context, kinds, chosen: kind.unwrap_or_default() })?,
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
    let deliveries = context.deliveries(DELIVERIES_BESIDE, filter).await?;
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

/// The delivery states that the log can be filtered by.
const DELIVERY_STATES: [&str; 6] = ["all", "waiting", "in_flight", "delivered", "failed", "canceled"];

pub(super) async fn deliveries(context: &PageContext) -> Result<PageView, Refusal> {
    let status = DELIVERY_STATES.into_iter().skip(1).find(|word| context.query.get("status") == Some(word));
    let endpoint = context.query.get("endpoint").filter(|id| paths::is_id(id));
    let before = context.query.get("before").filter(|id| paths::is_id(id));
    let filters = [("status", status), ("endpoint", endpoint)];
    let filter = DeliveryFilter {
        status,
        endpoint: endpoint.map(Code::parse),
        before: before.map(|id| parse_uuid(id).ok_or(Refusal::NotFound)).transpose()?,
        ..DeliveryFilter::default()
    };
    // One more than is shown, to know if there are older ones.
    let mut deliveries = context.deliveries(DELIVERIES_SHOWN + 1, filter).await?;
    let more = deliveries.len() > DELIVERIES_SHOWN;
    deliveries.truncate(DELIVERIES_SHOWN);
    let to = |more: &[(&str, Option<&str>)]| {
        let fields: Vec<_> = filters.iter().chain(more).copied().collect();
        context.to(format!("/deliveries{}", paths::query(&fields)))
    };
    let last = deliveries.last().map(|delivery| delivery.id.to_string());
    let pager = Pager {
        summary: String::new(),
        newer: before.map(|_| to(&[])),
        older: last.filter(|_| more).map(|id| to(&[("before", Some(&id))])),
    };
    let tabs = DELIVERY_STATES.map(|word| {
        let chosen = (word != "all").then_some(word);
        Tab {
            label: if word == "in_flight" { "in flight" } else { word },
            count: None,
            href: context.to(format!("/deliveries{}", paths::query(&[("status", chosen), filters[1]]))),
            current: chosen == status,
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
    body: String,
    /// The payload as it was sent.
    raw: &'a str,
    tab: String,
    /// Deliveries for comparison: id and label.
    others: Vec<(String, String)>,
    compared: Option<PayloadDiff>,
}

/// The comparison with another payload.
struct PayloadDiff {
    id: String,
    lines: Vec<compare::Line>,
}

/// Compares the payload with that of another delivery of this book.
async fn compare_payloads(context: &PageContext, body: &str) -> Result<Option<PayloadDiff>, Refusal> {
    let Some(id) = context.query.get("with").filter(|id| paths::is_id(id)) else { return Ok(None) };
    let other = context.delivery(id).await?;
    let other = fragments::pretty(other.request_body.as_deref().unwrap_or_default());
    Ok(Some(PayloadDiff { id: id.to_owned(), lines: compare::diff_lines(&other, body) }))
}

pub(super) async fn delivery(context: &PageContext, id: &str) -> Result<PageView, Refusal> {
    let delivery = context.delivery(id).await?;
    let raw = delivery.request_body.as_deref().unwrap_or_default();
    let body = fragments::pretty(raw);
    let title = format!("Delivery of {}", delivery.kind.as_str());
    let tab = context.tab(Some(&delivery.status), &title);
    let others = context.deliveries(OTHERS_OFFERED + 1, DeliveryFilter::default()).await?.into_iter();
    let others = others.filter(|other| other.id != delivery.id);
    let others = others.map(|other| {
        let summary = format!("{}, {}, {}", other.kind.as_str(), other.created_at.date_time(), other.url);
        (other.id.to_string(), summary)
    });
    let block = DeliveryBlock {
        context,
        delivery: &delivery,
        compared: compare_payloads(context, &body).await?,
        others: others.take(OTHERS_OFFERED).collect(),
        body,
        raw,
        tab,
    };
    let block = live_block("delivery", &block)?;
    Ok(PageView { state: Some(delivery.status.to_string()), title, blocks: vec![block] })
}

/// A checkbox for an event type.
struct Choice {
    kind: &'static str,
    chosen: bool,
}

/// Returns checkboxes for all event types: those of charges, those of invoices.
fn choices(chosen: impl Fn(&str) -> bool) -> [(&'static str, Vec<Choice>); 2] {
    ["charge", "invoice"].map(|about| {
        let kinds = EventType::ALL.into_iter().map(EventType::as_str).filter(|kind| kind.starts_with(about));
        (about, kinds.map(|kind| Choice { kind, chosen: chosen(kind) }).collect())
    })
}

#[derive(Template)]
#[template(path = "dashboard/endpoints.html")]
struct EndpointsBlock<'a> {
    context: &'a PageContext,
    list: List<EndpointRecord>,
    kinds: usize,
}

#[derive(Template)]
#[template(path = "dashboard/endpoint_form.html")]
struct EndpointForm<'a> {
    context: &'a PageContext,
    form: String,
    url: &'a str,
    groups: [(&'static str, Vec<Choice>); 2],
    is_new: bool,
}

pub(super) async fn endpoints(context: &PageContext) -> Result<PageView, Refusal> {
    let form = "/endpoints".to_owned();
    let typed = context.draft.is_of(&form);
    let groups = choices(|kind| !typed || context.draft.chosen(&form, "events", kind));
    let url = context.draft.typed(&form, "url");
    let list = List::single_page(context.endpoints().await?);
    let blocks = vec![
        live_block("endpoints", &EndpointsBlock { context, list, kinds: EventType::ALL.len() })?,
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
#[template(path = "dashboard/endpoint_acts.html")]
struct EndpointActs<'a> {
    context: &'a PageContext,
    endpoint: &'a EndpointRecord,
}

pub(super) async fn endpoint(context: &PageContext, id: &str) -> Result<PageView, Refusal> {
    let endpoint = context.endpoint(id).await?;
    let filter = DeliveryFilter { endpoint: Some(Some(endpoint.id)), ..DeliveryFilter::default() };
    let deliveries = context.deliveries(DELIVERIES_BESIDE, filter).await?;
    let form = format!("/endpoints/{id}");
    let typed = context.draft.is_of(&form);
    let groups = choices(|kind| match typed {
        true => context.draft.chosen(&form, "events", kind),
        false => endpoint.events.iter().any(|event| event.as_str() == kind),
    });
    let url = context.draft.typed_or(&form, "url", &endpoint.url);
    let blocks = vec![
        live_block("endpoint", &EndpointBlock { context, endpoint: &endpoint, deliveries })?,
        static_block(&EndpointForm { context, form: form.clone(), url, groups, is_new: false })?,
        static_block(&EndpointActs { context, endpoint: &endpoint })?,
    ];
    Ok(PageView { state: None, title: "Webhook endpoint".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct KeysBlock<'a> {
    context: &'a PageContext,
    keys: Vec<KeyRecord>,
    /// The prefix of keys of this mode.
    start: String,
}

pub(super) async fn keys(context: &PageContext) -> Result<PageView, Refusal> {
    let start = context.client.pages.dashboard.key_start(context.place.mode);
    let mut keys = context.keys().await?;
    // Stable: keys that still work first, then newest first.
    keys.sort_by_key(|key| key.revoked_at.is_some());
    let block = static_block(&KeysBlock { context, keys, start })?;
    Ok(PageView { state: None, title: "API keys".to_owned(), blocks: vec![block] })
}
