//! The overview, and the page of the chain and the clock.

use askama::Template;
use reference_core::{
    asset::{Asset, Currency},
    id::ChargeNo,
    time::Timestamp,
};
use simulator::{
    api::{
        BookCounts, ChainRecord, DeliveryRecord, Overview, TransferDisappearance, TransferRecord, WorldEvent,
    },
    sandbox::DeliveryFilter,
};

use super::{PageView, live_block, static_block};
use crate::{
    pages::book::BookReader,
    pages::dashboard::{
        context::PageContext,
        fragments,
        record_display::{AttemptDisplay as _, DeliveryDisplay as _, WorldEventDisplay as _},
    },
    pages::formats::TimeFormats as _,
    pages::objects::{AccountView, Charge, Event},
    refusal::Refusal,
};

/// The maximum number of events and of deliveries on the overview.
const RECENT_MAX: usize = 8;
/// The maximum number of charges of each open status that the overview offers to pay.
const PAYABLE_MAX: usize = 10;
/// The number of latest events of the world that are searched for those of this account and mode.
const EVENTS_SEARCHED: u64 = 200;
/// The maximum number of events that are listed.
const EVENTS_LISTED: usize = 25;

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
    /// The prefix of keys of this mode: `svc_test_`.
    key_start: String,
}

#[derive(Template)]
#[template(path = "dashboard/quick.html")]
struct QuickActions<'a> {
    context: &'a PageContext,
    assets: Vec<Asset>,
}

#[derive(Template)]
#[template(path = "dashboard/payable.html")]
struct PayableBlock<'a> {
    context: &'a PageContext,
    payable: Vec<PayableCharge>,
}

/// An open charge.
struct PayableCharge {
    charge: Charge,
    /// `true` if an unconfirmed transfer exists: another payment would pay twice.
    has_pending_transfer: bool,
}

pub(super) async fn overview(context: &PageContext) -> Result<PageView, Refusal> {
    let (counts, events, account) = context
        .read(|book| {
            let events = book.events(&format!("?per_page={RECENT_MAX}"))?;
            Ok((book.sandbox.counts(book.account_and_mode), events, book.account()))
        })
        .await?;
    let deliveries = context.deliveries(RECENT_MAX, DeliveryFilter::default()).await?;
    let has_endpoint = counts.endpoints.enabled + counts.endpoints.disabled > 0;
    let open = open_charges(context).await?.into_iter();
    let payable = open.map(|(charge, transfers)| {
        let has_pending_transfer =
            transfers.iter().any(|transfer| transfer.gone.is_none() && !transfer.confirmed);
        PayableCharge { charge, has_pending_transfer }
    });
    let payable = payable.collect();
    let curl = context.curl_charge();
    let key_start = context.client.pages.dashboard.key_start(context.book_id.mode);
    let assets = account.accepted_assets.clone();
    let blocks = vec![
        live_block("counts", &CountsBlock { context, counts })?,
        static_block(&QuickActions { context, assets })?,
        live_block("payable", &PayableBlock { context, payable })?,
        live_block("recent", &RecentBlock { context, events, deliveries, has_endpoint, curl })?,
        static_block(&AboutBlock { context, account, key_start })?,
    ];
    Ok(PageView { state: None, title: "Overview".to_owned(), blocks })
}

/// Returns the newest open charges with their transfers.
async fn open_charges(context: &PageContext) -> Result<Vec<(Charge, Vec<TransferRecord>)>, Refusal> {
    let newest = |book: &BookReader<'_>| {
        let mut open = Vec::new();
        for status in ["pending", "underpaid"] {
            let (page, _) = book.list(&format!("charges?status={status}&per_page={PAYABLE_MAX}"))?;
            open.extend(page.members.into_iter().map(|no| {
                let charge = Charge::from_book(book, ChargeNo(no));
                let transfers = book.sandbox.transfers(book.account_and_mode, &charge);
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
    /// The amount and the charge: `0.001 BTC to abc123, dropped`.
    summary: String,
}

/// Returns the transactions to open charges that are pending or dropped.
async fn unconfirmed_transactions(context: &PageContext) -> Result<Vec<UnconfirmedTransaction>, Refusal> {
    let all = open_charges(context).await?;
    let unconfirmed = |(charge, transfers): (Charge, Vec<TransferRecord>)| {
        let unmined = transfers.into_iter().filter(|transfer| transfer.confirmations == 0);
        let pending_or_dropped =
            unmined.filter(|transfer| matches!(transfer.gone, None | Some(TransferDisappearance::Dropped)));
        pending_or_dropped.map(move |transfer| {
            let dropped = if transfer.gone.is_some() { ", dropped" } else { "" };
            let summary = format!("{} {} to {}{dropped}", transfer.amount, charge.terms.asset, charge.code);
            UnconfirmedTransaction { txid: transfer.txid.to_string(), summary }
        })
    };
    Ok(all.into_iter().flat_map(unconfirmed).collect())
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
#[template(path = "dashboard/latest_events.html")]
struct LatestEvents<'a> {
    context: &'a PageContext,
    events: Vec<WorldEvent>,
}

pub(super) async fn world(context: &PageContext) -> Result<PageView, Refusal> {
    let (overview, account, mut events) = context
        .read(|book| {
            let log = book.sandbox.log();
            let events: Vec<WorldEvent> =
                log.events_after(log.count().saturating_sub(EVENTS_SEARCHED)).cloned().collect();
            Ok((book.sandbox.overview(), book.account(), events))
        })
        .await?;
    let Overview { seed, chains, rates, next_due, .. } = overview;
    let currency = context.query.get("currency").unwrap_or(account.settings.default_currency.code());
    let rate_of = |asset: Asset| {
        let found = rates.iter().find(|rate| rate.asset == asset && rate.currency.code() == currency);
        found.map(|rate| rate.rate.clone())
    };
    let of_mode = chains.into_iter().filter(|chain| chain.mode == context.book_id.mode);
    let rows: Vec<_> = of_mode.map(|chain| ChainRow { rate: rate_of(chain.asset), chain }).collect();
    let assets = rows.iter().map(|row| row.chain.asset).collect();
    events.reverse();
    events.retain(|event| event.is_visible_to(&context.book_id.account, context.book_id.mode));
    events.truncate(EVENTS_LISTED);
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
        live_block("latest-events", &LatestEvents { context, events })?,
    ];
    Ok(PageView { state: None, title: "Chain and clock".to_owned(), blocks })
}
