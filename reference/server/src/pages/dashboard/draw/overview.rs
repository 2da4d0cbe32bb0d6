//! The first page, and the panel for the chain and the clock.

use askama::Template;
use reference_core::asset::Currency;

use super::{Sheet, live, still};
use crate::{
    pages::dashboard::{
        desk::Desk,
        facts::{
            AccountAnswer, Chain, Charge, Delivery, Event, Glance, Happened, Happening, List, Moment, World,
        },
        pieces,
    },
    refusal::Refusal,
};

/// Events and deliveries on the first page.
const RECENT: usize = 8;
/// Charges that the first page offers to pay.
const PAYABLE: usize = 10;
/// What happened last, on the panel.
const HAPPENINGS_SHOWN: u64 = 200;
const HAPPENINGS_LISTED: usize = 25;

#[derive(Template)]
#[template(path = "dashboard/glance.html")]
struct GlanceBlock<'a> {
    desk: &'a Desk,
    glance: Glance,
}

#[derive(Template)]
#[template(path = "dashboard/recent.html")]
struct RecentBlock<'a> {
    desk: &'a Desk,
    events: Vec<Event>,
    deliveries: Vec<Delivery>,
    has_endpoint: bool,
    curl: String,
}

#[derive(Template)]
#[template(path = "dashboard/about.html")]
struct AboutBlock<'a> {
    desk: &'a Desk,
    answer: AccountAnswer,
    start: String,
}

#[derive(Template)]
#[template(path = "dashboard/quick.html")]
struct QuickBlock<'a> {
    desk: &'a Desk,
    assets: Vec<String>,
}

#[derive(Template)]
#[template(path = "dashboard/payable.html")]
struct PayableBlock<'a> {
    desk: &'a Desk,
    payable: Vec<Charge>,
}

pub(super) async fn overview(desk: &Desk) -> Result<Sheet, Refusal> {
    let glance: Glance = desk.book("").await?;
    let events: List<Event> = desk.book(&format!("/events?per_page={RECENT}")).await?;
    let deliveries = desk.deliveries(RECENT, "").await?;
    let has_endpoint = glance.endpoints.enabled + glance.endpoints.disabled > 0;
    let answer: AccountAnswer = desk.book("/account").await?;
    let mut payable = Vec::new();
    for status in ["pending", "underpaid"] {
        let list: List<Charge> = desk.book(&format!("/charges?status={status}&per_page={PAYABLE}")).await?;
        payable.extend(list.data);
    }
    let curl = desk.curl_charge();
    let start = desk.asker.front.dashboard.key_start(desk.place.mode);
    let assets = answer.meta.accepted_assets.clone();
    let blocks = vec![
        live("glance", &GlanceBlock { desk, glance })?,
        still(&QuickBlock { desk, assets })?,
        live("payable", &PayableBlock { desk, payable })?,
        live("recent", &RecentBlock { desk, events: events.data, deliveries, has_endpoint, curl })?,
        still(&AboutBlock { desk, answer, start })?,
    ];
    Ok(Sheet { title: "Overview".to_owned(), blocks })
}

/// A chain with what its coin costs.
struct Row {
    chain: Chain,
    rate: Option<String>,
}

#[derive(Template)]
#[template(path = "dashboard/chains.html")]
struct ChainsBlock<'a> {
    desk: &'a Desk,
    seed: u64,
    next_due: Option<Moment>,
    rows: Vec<Row>,
    currency: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard/world.html")]
struct WorldForms<'a> {
    desk: &'a Desk,
    assets: Vec<String>,
    currencies: [&'static str; Currency::ALL.len()],
    currency: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard/happened.html")]
struct HappenedBlock<'a> {
    desk: &'a Desk,
    happened: Vec<Happening>,
}

pub(super) async fn world(desk: &Desk) -> Result<Sheet, Refusal> {
    let World { seed, chains, rates, happenings, next_due, .. } = desk.get("/sandbox").await?;
    let AccountAnswer { data: account, .. } = desk.book("/account").await?;
    let currency = desk.query.get("currency").unwrap_or(&account.default_currency);
    let rate_of = |asset: &str| {
        let found = rates.iter().find(|rate| rate.asset == asset && rate.currency == currency);
        found.map(|rate| rate.rate.clone())
    };
    let of_mode = chains.into_iter().filter(|chain| chain.mode == desk.place.mode);
    let rows: Vec<_> = of_mode.map(|chain| Row { rate: rate_of(&chain.asset), chain }).collect();
    let assets = rows.iter().map(|row| row.chain.asset.clone()).collect();
    let after = happenings.saturating_sub(HAPPENINGS_SHOWN);
    let Happened { mut happened } = desk.get(&format!("/sandbox/happenings?after={after}")).await?;
    happened.reverse();
    happened.retain(|it| it.mode.as_deref().is_none_or(|mode| mode == desk.place.mode));
    happened.retain(|it| it.account.as_ref().is_none_or(|account| *account == desk.place.account));
    happened.truncate(HAPPENINGS_LISTED);
    let currencies = Currency::ALL.map(Currency::code);
    let blocks = vec![
        still(&WorldForms { desk, assets, currencies, currency })?,
        live("chains", &ChainsBlock { desk, seed, next_due, rows, currency })?,
        live("happened", &HappenedBlock { desk, happened })?,
    ];
    Ok(Sheet { title: "Chain and clock".to_owned(), blocks })
}
