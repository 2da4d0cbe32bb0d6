//! Events, deliveries, webhook endpoints, API keys.

use askama::Template;
use reference_core::event::EventType;

use super::{Pager, Sheet, Tab, Tabs, listed, live, still};
use crate::{
    pages::dashboard::{
        desk::Desk,
        facts::{Delivery, Endpoint, Event, Key, List, One},
        pieces, place,
    },
    refusal::Refusal,
};

/// Deliveries on a page of the log.
const DELIVERIES_SHOWN: usize = 25;
/// Deliveries on the page of an event or an endpoint.
const DELIVERIES_BESIDE: usize = 10;

#[derive(Template)]
#[template(path = "dashboard/events.html")]
struct EventsBlock<'a> {
    desk: &'a Desk,
    list: List<Event>,
    pager: Pager,
    curl: String,
}

#[derive(Template)]
#[template(path = "dashboard/events_filter.html")]
struct EventsFilter<'a> {
    desk: &'a Desk,
    kinds: [&'static str; EventType::ALL.len()],
    chosen: &'a str,
}

pub(super) async fn events(desk: &Desk) -> Result<Sheet, Refusal> {
    let kind = desk.query.get("type");
    let list: List<Event> = desk.book(&format!("/events{}", listed(desk, &[("type", kind)]))).await?;
    let pager = Pager::of(desk, "/events", &[("type", kind)], &list);
    let curl = format!("curl -s -H \"Authorization: Bearer $KEY\" '{}/v1/events'", desk.site.base);
    let kinds = EventType::ALL.map(EventType::as_str);
    let blocks = vec![
        still(&EventsFilter { desk, kinds, chosen: kind.unwrap_or_default() })?,
        live("events", &EventsBlock { desk, list, pager, curl })?,
    ];
    Ok(Sheet { title: "Events".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/event.html")]
struct EventBlock<'a> {
    desk: &'a Desk,
    event: &'a Event,
    deliveries: Vec<Delivery>,
    json: String,
    curl: String,
}

pub(super) async fn event(desk: &Desk, id: &str) -> Result<Sheet, Refusal> {
    let path = format!("/events/{id}");
    let One { data: event } = desk.book::<One<Event>>(&path).await?;
    let One { data: raw } = desk.book::<One<Box<serde_json::value::RawValue>>>(&path).await?;
    let deliveries = desk.deliveries(DELIVERIES_BESIDE, &format!("&event={id}")).await?;
    let json = pieces::pretty(raw.get());
    let curl = format!("curl -s -H \"Authorization: Bearer $KEY\" '{}/v1/events/{id}'", desk.site.base);
    let title = format!("Event {}", event.kind);
    let block = live("event", &EventBlock { desk, event: &event, deliveries, json, curl })?;
    Ok(Sheet { title, blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/deliveries.html")]
struct DeliveriesBlock<'a> {
    desk: &'a Desk,
    tabs: Tabs,
    deliveries: Vec<Delivery>,
    pager: Pager,
    /// There is an endpoint that deliveries could go to.
    has_endpoint: bool,
}

/// The words of the states, as the log is filtered by them.
const DELIVERY_STATES: [&str; 6] = ["all", "waiting", "in_flight", "delivered", "failed", "canceled"];

pub(super) async fn deliveries(desk: &Desk) -> Result<Sheet, Refusal> {
    let status = desk.query.get("status").filter(|word| DELIVERY_STATES.contains(word));
    let endpoint = desk.query.get("endpoint").filter(|id| place::is_id(id));
    let before = desk.query.get("before").filter(|id| place::is_id(id));
    let filters = [("status", status), ("endpoint", endpoint)];
    let asked: String = [filters[0], filters[1], ("before", before)]
        .into_iter()
        .filter_map(|(name, value)| Some(format!("&{name}={}", value?)))
        .collect();
    // One more than is shown says whether there are older ones.
    let mut deliveries = desk.deliveries(DELIVERIES_SHOWN + 1, &asked).await?;
    let more = deliveries.len() > DELIVERIES_SHOWN;
    deliveries.truncate(DELIVERIES_SHOWN);
    let to = |more: &[(&str, Option<&str>)]| {
        let fields: Vec<_> = filters.iter().chain(more).copied().collect();
        desk.to(format!("/deliveries{}", place::query(&fields)))
    };
    let last = deliveries.last().map(|delivery| delivery.id.clone());
    let pager = Pager {
        said: String::new(),
        newer: before.map(|_| to(&[])),
        older: last.filter(|_| more).map(|id| to(&[("before", Some(&id))])),
    };
    let tabs = DELIVERY_STATES.map(|word| {
        let chosen = (word != "all").then_some(word);
        Tab {
            label: if word == "in_flight" { "in flight" } else { word },
            count: None,
            href: desk.to(format!("/deliveries{}", place::query(&[("status", chosen), filters[1]]))),
            current: chosen == status.filter(|word| *word != "all"),
        }
    });
    let tabs = Tabs { label: "Deliveries by status", tabs: tabs.into() };
    let has_endpoint = !desk.endpoints().await?.is_empty();
    let block = live("deliveries", &DeliveriesBlock { desk, tabs, deliveries, pager, has_endpoint })?;
    Ok(Sheet { title: "Deliveries".to_owned(), blocks: vec![block] })
}

#[derive(Template)]
#[template(path = "dashboard/delivery.html")]
struct DeliveryBlock<'a> {
    desk: &'a Desk,
    delivery: &'a Delivery,
    body: String,
}

pub(super) async fn delivery(desk: &Desk, id: &str) -> Result<Sheet, Refusal> {
    let delivery = desk.delivery(id).await?;
    let body = pieces::pretty(&delivery.request_body);
    let block = live("delivery", &DeliveryBlock { desk, delivery: &delivery, body })?;
    Ok(Sheet { title: format!("Delivery of {}", delivery.kind), blocks: vec![block] })
}

/// A box for one event type.
struct Choice {
    kind: &'static str,
    chosen: bool,
}

/// Boxes for all event types: those of charges, those of invoices.
fn choices(chosen: impl Fn(&str) -> bool) -> [(&'static str, Vec<Choice>); 2] {
    ["charge", "invoice"].map(|about| {
        let kinds = EventType::ALL.into_iter().map(EventType::as_str).filter(|kind| kind.starts_with(about));
        (about, kinds.map(|kind| Choice { kind, chosen: chosen(kind) }).collect())
    })
}

#[derive(Template)]
#[template(path = "dashboard/endpoints.html")]
struct EndpointsBlock<'a> {
    desk: &'a Desk,
    endpoints: Vec<Endpoint>,
    kinds: usize,
}

#[derive(Template)]
#[template(path = "dashboard/endpoint_form.html")]
struct EndpointForm<'a> {
    desk: &'a Desk,
    form: String,
    url: &'a str,
    groups: [(&'static str, Vec<Choice>); 2],
    is_new: bool,
}

pub(super) async fn endpoints(desk: &Desk) -> Result<Sheet, Refusal> {
    let form = "/endpoints".to_owned();
    let typed = desk.draft.is_of(&form);
    let groups = choices(|kind| !typed || desk.draft.chosen(&form, "events", kind));
    let url = desk.draft.typed(&form, "url");
    let endpoints = desk.endpoints().await?;
    let blocks = vec![
        live("endpoints", &EndpointsBlock { desk, endpoints, kinds: EventType::ALL.len() })?,
        still(&EndpointForm { desk, form: form.clone(), url, groups, is_new: true })?,
    ];
    Ok(Sheet { title: "Webhook endpoints".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/endpoint.html")]
struct EndpointBlock<'a> {
    desk: &'a Desk,
    endpoint: &'a Endpoint,
    deliveries: Vec<Delivery>,
}

#[derive(Template)]
#[template(path = "dashboard/endpoint_acts.html")]
struct EndpointActs<'a> {
    desk: &'a Desk,
    endpoint: &'a Endpoint,
}

pub(super) async fn endpoint(desk: &Desk, id: &str) -> Result<Sheet, Refusal> {
    let endpoint = desk.endpoint(id).await?;
    let deliveries = desk.deliveries(DELIVERIES_BESIDE, &format!("&endpoint={id}")).await?;
    let form = format!("/endpoints/{id}");
    let typed = desk.draft.is_of(&form);
    let groups = choices(|kind| match typed {
        true => desk.draft.chosen(&form, "events", kind),
        false => endpoint.events.iter().any(|it| it == kind),
    });
    let url = desk.draft.typed_or(&form, "url", &endpoint.url);
    let blocks = vec![
        live("endpoint", &EndpointBlock { desk, endpoint: &endpoint, deliveries })?,
        still(&EndpointForm { desk, form: form.clone(), url, groups, is_new: false })?,
        still(&EndpointActs { desk, endpoint: &endpoint })?,
    ];
    Ok(Sheet { title: "Webhook endpoint".to_owned(), blocks })
}

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct KeysBlock<'a> {
    desk: &'a Desk,
    keys: Vec<Key>,
    /// What a key of this mode begins with.
    start: String,
}

pub(super) async fn keys(desk: &Desk) -> Result<Sheet, Refusal> {
    let start = desk.asker.front.dashboard.key_start(desk.place.mode);
    let block = still(&KeysBlock { desk, keys: desk.keys().await?, start })?;
    Ok(Sheet { title: "API keys".to_owned(), blocks: vec![block] })
}
