//! The overview, and the page of the chain and the clock.

use askama::Template;
use reference_core::{
    asset::{Asset, Currency},
    id::ChargeNo,
    time::Timestamp,
};
use simulator::{
    api::{BookCounts, ChainRecord, DeliveryRecord, Overview, TransferGone, TransferRecord, WorldEvent},
    sandbox::DeliveryFilter,
};

use super::{PageView, live_block, static_block};
use crate::{
    pages::book::BookReader,
    pages::dashboard::{
        context::PageContext,
        facts::{AttemptWords as _, DeliveryWords as _, WorldEventWords as _},
        fragments,
    },
    pages::formats::MomentWords as _,
    pages::objects::{AccountView, Charge, Event},
    refusal::Refusal,
};

/// The number of events and deliveries on the overview.
const RECENT: usize = 8;
/// The number of charges that the overview offers to pay.
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
    account: AccountView,
    start: String,
}

#[derive(Template)]
#[template(path = "dashboard/quick.html")]
struct QuickBlock<'a> {
    context: &'a PageContext,
    assets: Vec<Asset>,
}

#[derive(Template)]
#[template(path = "dashboard/payable.html")]
struct PayableBlock<'a> {
    context: &'a PageContext,
    payable: Vec<Payable>,
}

/// An open charge.
struct Payable {
    charge: Charge,
    /// `true` if an unconfirmed transfer exists: another payment would pay twice.
    is_on_its_way: bool,
}

pub(super) async fn overview(context: &PageContext) -> Result<PageView, Refusal> {
    let (counts, events, account) = context
        .read(|book| {
            let events = book.events(&format!("?per_page={RECENT}"))?;
            Ok((book.sandbox.counts(book.place), events, book.account()))
        })
        .await?;
    let deliveries = context.deliveries(RECENT, DeliveryFilter::default()).await?;
    let has_endpoint = counts.endpoints.enabled + counts.endpoints.disabled > 0;
    let open = open_charges(context).await?.into_iter();
    let payable = open.map(|(charge, transfers)| {
        let is_on_its_way = transfers.iter().any(|transfer| transfer.gone.is_none() && !transfer.confirmed);
        Payable { charge, is_on_its_way }
    });
    let payable = payable.collect();
    let curl = context.curl_charge();
    let start = context.client.pages.dashboard.key_start(context.place.mode);
    let assets = account.accepted.clone();
    let blocks = vec![
        live_block("counts", &CountsBlock { context, counts })?,
        static_block(&QuickBlock { context, assets })?,
        live_block("payable", &PayableBlock { context, payable })?,
        live_block("recent", &RecentBlock { context, events, deliveries, has_endpoint, curl })?,
        static_block(&AboutBlock { context, account, start })?,
    ];
    Ok(PageView { state: None, title: "Overview".to_owned(), blocks })
}

/// Returns the newest open charges with their transfers.
async fn open_charges(context: &PageContext) -> Result<Vec<(Charge, Vec<TransferRecord>)>, Refusal> {
    let newest = |book: &BookReader<'_>| {
        let mut open = Vec::new();
        for status in ["pending", "underpaid"] {
            let (page, _) = book.list(&format!("charges?status={status}&per_page={PAYABLE}"))?;
            open.extend(page.members.into_iter().map(|no| {
                let charge = Charge::from_book(book, ChargeNo(no));
                let transfers = book.sandbox.transfers(book.place, &charge);
                (charge, transfers)
            }));
        }
        Ok(open)
    };
    context.read(newest).await
}

/// An unconfirmed transaction, or one that the mempool dropped.
struct UnconfirmedTransaction {
    txid: String,
    /// The payment as text: `0.001 BTC to abc123, dropped`.
    summary: String,
}

/// Returns the transactions to open charges that are not in a block.
async fn unconfirmed_transactions(context: &PageContext) -> Result<Vec<UnconfirmedTransaction>, Refusal> {
    let all = open_charges(context).await?;
    let of = |(charge, transfers): (Charge, Vec<TransferRecord>)| {
        let unmined = transfers.into_iter().filter(|transfer| transfer.confirmations == 0);
        let kept = unmined.filter(|transfer| matches!(transfer.gone, None | Some(TransferGone::Dropped)));
        kept.map(move |transfer| {
            let gone = if transfer.gone.is_some() { ", dropped" } else { "" };
            let summary = format!("{} {} to {}{gone}", transfer.amount, charge.terms.asset, charge.code);
            UnconfirmedTransaction { txid: transfer.txid.to_string(), summary }
        })
    };
    Ok(all.into_iter().flat_map(of).collect())
}

/// A chain with the exchange rate of its coin.
struct ChainRow {
    chain: ChainRecord,
    rate: Option<String>,
}

#[derive(Template)]
#[template(path = "dashboard/chains.html")]
struct ChainsBlock<'a> {
    context: &'a PageContext,
    seed: u64,
    next_due: Option<Timestamp>,
    rows: Vec<ChainRow>,
    currency: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard/world.html")]
struct WorldForms<'a> {
    context: &'a PageContext,
    transactions: Vec<UnconfirmedTransaction>,
    assets: Vec<Asset>,
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
    let (world, account, mut happened) = context
        .read(|book| {
            let log = book.sandbox.log();
            let happened: Vec<WorldEvent> =
                log.events_after(log.count().saturating_sub(HAPPENINGS_SHOWN)).cloned().collect();
            Ok((book.sandbox.overview(), book.account(), happened))
        })
        .await?;
    let Overview { seed, chains, rates, next_due, .. } = world;
    let currency = context.query.get("currency").unwrap_or(account.settings.default_currency.code());
    let rate_of = |asset: Asset| {
        let found = rates.iter().find(|rate| rate.asset == asset && rate.currency.code() == currency);
        found.map(|rate| rate.rate.clone())
    };
    let of_mode = chains.into_iter().filter(|chain| chain.mode == context.place.mode);
    let rows: Vec<_> = of_mode.map(|chain| ChainRow { rate: rate_of(chain.asset), chain }).collect();
    let assets = rows.iter().map(|row| row.chain.asset).collect();
    happened.reverse();
    happened.retain(|event| event.is_visible_to(&context.place.account, context.place.mode));
    happened.truncate(HAPPENINGS_LISTED);
    let currencies = Currency::ALL.map(Currency::code);
    let blocks = vec![
        static_block(&WorldForms {
            context,
            transactions: unconfirmed_transactions(context).await?,
            assets,
            currencies,
            currency,
        })?,
        live_block("chains", &ChainsBlock { context, seed, next_due, rows, currency })?,
        live_block("happened", &HappenedBlock { context, happened })?,
    ];
    Ok(PageView { state: None, title: "Chain and clock".to_owned(), blocks })
}
