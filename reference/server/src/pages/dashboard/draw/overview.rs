//! The first page, and the panel for the chain and the clock.

use askama::Template;
use reference_core::{
    asset::{Asset, Currency},
    time::Timestamp,
};
use simulator::api::{
    BookCounts, ChainRecord, DeliveryRecord, Overview, TransferGone, TransferList, TransferRecord,
    WorldEvent, WorldEvents,
};

use super::{PageView, live, still};
use crate::{
    pages::dashboard::{
        context::PageContext,
        facts::{AccountAnswer, AttemptWords as _, DeliveryWords as _, List, WorldEventWords as _},
        pieces,
    },
    pages::objects::{Charge, Event},
    pages::words::MomentWords as _,
    refusal::Refusal,
};

/// Events and deliveries on the first page.
const RECENT: usize = 8;
/// Charges that the first page offers to pay.
const PAYABLE: usize = 10;
/// The number of latest events on the panel.
const HAPPENINGS_SHOWN: u64 = 200;
const HAPPENINGS_LISTED: usize = 25;

#[derive(Template)]
#[template(path = "dashboard/counts.html")]
struct CountsBlock<'a> {
    context: &'a PageContext,
    counts: BookCounts,
}

#[derive(Template)]
#[template(path = "dashboard/recent.html")]
struct RecentBlock<'a> {
    context: &'a PageContext,
    events: Vec<Event>,
    deliveries: Vec<DeliveryRecord>,
    has_endpoint: bool,
    curl: String,
}

#[derive(Template)]
#[template(path = "dashboard/about.html")]
struct AboutBlock<'a> {
    context: &'a PageContext,
    answer: AccountAnswer,
    start: String,
}

#[derive(Template)]
#[template(path = "dashboard/quick.html")]
struct QuickBlock<'a> {
    context: &'a PageContext,
    assets: Vec<String>,
}

#[derive(Template)]
#[template(path = "dashboard/payable.html")]
struct PayableBlock<'a> {
    context: &'a PageContext,
    payable: Vec<Payable>,
}

/// A charge that waits for money.
struct Payable {
    charge: Charge,
    /// A transfer to it was seen and is not confirmed: who pays again pays twice.
    is_on_its_way: bool,
}

pub(super) async fn overview(context: &PageContext) -> Result<PageView, Refusal> {
    let counts: BookCounts = context.book("").await?;
    let events: List<Event> = context.book(&format!("/events?per_page={RECENT}")).await?;
    let deliveries = context.deliveries(RECENT, "").await?;
    let has_endpoint = counts.endpoints.enabled + counts.endpoints.disabled > 0;
    let answer: AccountAnswer = context.book("/account").await?;
    let open = open_charges(context).await?.into_iter();
    let payable = open.map(|(charge, transfers)| {
        let is_on_its_way = transfers.iter().any(|it| it.gone.is_none() && !it.confirmed);
        Payable { charge, is_on_its_way }
    });
    let payable = payable.collect();
    let curl = context.curl_charge();
    let start = context.asker.pages.dashboard.key_start(context.place.mode);
    let assets = answer.meta.accepted_assets.clone();
    let blocks = vec![
        live("counts", &CountsBlock { context, counts })?,
        still(&QuickBlock { context, assets })?,
        live("payable", &PayableBlock { context, payable })?,
        live("recent", &RecentBlock { context, events: events.data, deliveries, has_endpoint, curl })?,
        still(&AboutBlock { context, answer, start })?,
    ];
    Ok(PageView { state: None, title: "Overview".to_owned(), blocks })
}

/// The newest charges that wait for money, with what was seen of it.
async fn open_charges(context: &PageContext) -> Result<Vec<(Charge, Vec<TransferRecord>)>, Refusal> {
    let mut open = Vec::new();
    for status in ["pending", "underpaid"] {
        let list: List<Charge> =
            context.book(&format!("/charges?status={status}&per_page={PAYABLE}")).await?;
        for charge in list.data {
            let path = format!("/charges/{}/transfers", charge.code);
            let TransferList { transfers, .. } = context.book(&path).await?;
            open.push((charge, transfers));
        }
    }
    Ok(open)
}

/// A transaction in the mempool, or one that the mempool forgot.
struct Waiting {
    txid: String,
    /// The payment in words: `0.001 BTC to abc123, dropped`.
    said: String,
}

/// The transactions to open charges that are in no block.
async fn waiting(context: &PageContext) -> Result<Vec<Waiting>, Refusal> {
    let all = open_charges(context).await?;
    let of = |(charge, transfers): (Charge, Vec<TransferRecord>)| {
        let unmined = transfers.into_iter().filter(|it| it.confirmations == 0);
        let kept = unmined.filter(|it| matches!(it.gone, None | Some(TransferGone::Dropped)));
        kept.map(move |it| {
            let gone = if it.gone.is_some() { ", dropped" } else { "" };
            let said = format!("{} {} to {}{gone}", it.amount, charge.asset, charge.code);
            Waiting { txid: it.txid.to_string(), said }
        })
    };
    Ok(all.into_iter().flat_map(of).collect())
}

/// A chain with what its coin costs.
struct Row {
    chain: ChainRecord,
    rate: Option<String>,
}

#[derive(Template)]
#[template(path = "dashboard/chains.html")]
struct ChainsBlock<'a> {
    context: &'a PageContext,
    seed: u64,
    next_due: Option<Timestamp>,
    rows: Vec<Row>,
    currency: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard/world.html")]
struct WorldForms<'a> {
    context: &'a PageContext,
    transactions: Vec<Waiting>,
    assets: Vec<String>,
    currencies: [&'static str; Currency::ALL.len()],
    currency: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard/happened.html")]
struct HappenedBlock<'a> {
    context: &'a PageContext,
    happened: Vec<WorldEvent>,
}

pub(super) async fn world(context: &PageContext) -> Result<PageView, Refusal> {
    let Overview { seed, chains, rates, happenings, next_due, .. } = context.get("/sandbox").await?;
    let AccountAnswer { data: account, .. } = context.book("/account").await?;
    let currency = context.query.get("currency").unwrap_or(&account.default_currency);
    let rate_of = |asset: Asset| {
        let found = rates.iter().find(|rate| rate.asset == asset && rate.currency.code() == currency);
        found.map(|rate| rate.rate.clone())
    };
    let of_mode = chains.into_iter().filter(|chain| chain.mode.as_str() == context.place.mode);
    let rows: Vec<_> = of_mode.map(|chain| Row { rate: rate_of(chain.asset), chain }).collect();
    let assets = rows.iter().map(|row| row.chain.asset.to_string()).collect();
    let after = happenings.saturating_sub(HAPPENINGS_SHOWN);
    let WorldEvents { mut happened, .. } = context.get(&format!("/sandbox/happenings?after={after}")).await?;
    happened.reverse();
    happened.retain(|it| it.is_seen(&context.place.account, context.place.mode));
    happened.truncate(HAPPENINGS_LISTED);
    let currencies = Currency::ALL.map(Currency::code);
    let blocks = vec![
        still(&WorldForms { context, transactions: waiting(context).await?, assets, currencies, currency })?,
        live("chains", &ChainsBlock { context, seed, next_due, rows, currency })?,
        live("happened", &HappenedBlock { context, happened })?,
    ];
    Ok(PageView { state: None, title: "Chain and clock".to_owned(), blocks })
}
