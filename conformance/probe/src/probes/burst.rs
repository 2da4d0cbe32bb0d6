//! The burst: as many requests as it takes to be refused, with the test key only.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::budget::BURST_MAX;
use conformance_model::reading::{
    BURST_TIME_MAX, Fit, Page, SERVED_MAX, Series, WINDOW, first_event_id, http_date, page_ask, retry_after,
};
use conformance_model::recording::{Burst, Caller, Exchange, List, PageAsk, Purpose, Recording};
use conformance_model::words::{ACCOUNT_PATH, Mode};

use crate::session::{IDLE_WINDOW, Session, event_path, path_of};

const ROUNDS: u8 = 3;
const PATHS_MAX: u32 = 5;
/// So many are safe to send side by side: the account's look-up and these stay below the limit.
const QUICK_SHOTS: usize = 108;
const VOLLEY: usize = 4;
const SERIES_MAX: u8 = 2;
/// A bucket that refills meanwhile serves again before it refuses again.
const STILL_MAX: u32 = 8;
/// The live key, the second key, the same key again, and the same key twice after the wait.
const AFTERWARDS: u32 = 2 + STILL_MAX + 2;
/// What that burst costs more.
pub(crate) const SETTLING_MAX: u32 = SERVED_MAX + 1;
pub(crate) const SETTLING_WAIT: Duration = Duration::from_secs(61 + 61);
pub(crate) const REQUESTS_MAX: u32 =
    SERIES_MAX as u32 * (SERVED_MAX + 1) + ROUNDS as u32 * PATHS_MAX + AFTERWARDS;

const TWO_IDLE_WINDOWS: Duration = Duration::from_secs(121);
/// A `Retry-After` beyond this is not waited for.
const PATIENCE: Duration = Duration::from_secs(90);
pub(crate) const WAIT_USUAL: Duration = IDLE_WINDOW;
/// A second window is waited for where the first was not enough: some limiters count a share of it.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(121 + 90 + 61 + 61);

const KEY: Caller = Caller::Own(Mode::Test);

pub(crate) async fn probe(session: &mut Session<'_>) {
    if session.recording.no_burst.is_some() {
        return;
    }
    let mut paths = vec![
        ACCOUNT_PATH.to_owned(),
        "/v1/events?per_page=1".to_owned(),
        "/v1/charges?per_page=1".to_owned(),
        "/v1/invoices?per_page=1".to_owned(),
    ];
    fire(session, 1, &mut paths).await;
    let mut series = 1;
    if let Some(Fit::Early | Fit::Border) = Series::of(&session.recording, 1).map(|series| series.fit()) {
        // Somebody else may have used the key, or a window may have ended meanwhile. Not twice, though.
        if session.pause(TWO_IDLE_WINDOWS, "the burst is repeated in a fresh window").await {
            series = 2;
            fire(session, series, &mut paths).await;
        }
    }
    if session.recording.exchanges.last().and_then(Exchange::status) != Some(429) {
        rest(session).await;
        return settle(session, &mut paths).await;
    }
    for round in 1..=ROUNDS {
        // Another order each time: what a bucket refills in the meantime then serves another path.
        paths.rotate_left(1);
        for path in &paths {
            session.ask_once(KEY, Purpose::Burst(Burst::Round { series, round }), path).await;
        }
    }
    session.ask_past_weakness(Caller::Own(Mode::Live), Purpose::Burst(Burst::OtherKey), ACCOUNT_PATH).await;
    if session.plan.second_key.is_some() {
        let second = Purpose::Burst(Burst::SecondKey);
        session.ask_past_weakness(Caller::Second, second, ACCOUNT_PATH).await;
    }
    // Whoever is served in between has used up what the earlier refusal promised: only the latest counts.
    for _ in 0..STILL_MAX {
        let still = session.ask_past_weakness(KEY, Purpose::Burst(Burst::StillRefused), ACCOUNT_PATH).await;
        if still.status() == Some(429) {
            obey(session, &still).await;
            break;
        }
    }
    rest(session).await;
    settle(session, &mut paths).await;
}

/// One more burst, begun right after the minute of the server's own clock: a window that is aligned with it
/// cannot end during this one.
async fn settle(session: &mut Session<'_>, paths: &mut Vec<String>) {
    if !session.plan.thorough || session.is_silent() {
        return;
    }
    let Some(left) = until_minute(&session.recording) else { return };
    if session.pause(left, "the server's minute ends, and with it a window that is aligned").await {
        fire(session, Burst::SETTLING, paths).await;
        rest(session).await;
    }
}

/// How long it is until the server's clock shows a new minute, by the `Date` of its last answer, and a
/// second more, since dates have no fractions.
fn until_minute(recording: &Recording) -> Option<Duration> {
    let last = recording.exchanges.iter().rev().find_map(|it| http_date(it.answer()?.header("date")?))?;
    Some(Duration::from_secs(u64::from(60 - last.second()) + 1))
}

/// Fires until the first refusal, or until nothing more can be learnt: several at a time as long as no
/// honest limiter refuses, then one by one, so that the first refusal has a number.
async fn fire(session: &mut Session<'_>, series: u8, paths: &mut Vec<String>) {
    let purpose = Purpose::Burst(Burst::Shot { series });
    let start = session.waiter.now();
    let mut shots = 0;
    let mut positions = Positions::default();
    while shots <= SERVED_MAX as usize && session.waiter.now() - start <= BURST_TIME_MAX {
        let volley = if shots < QUICK_SHOTS { VOLLEY } else { 1 };
        let mut aims: Vec<_> =
            (shots..shots + volley).map(|shot| paths[shot % paths.len()].clone()).collect();
        // Every other request of the quick ones reads a page that nothing else reads.
        for aim in aims.iter_mut().skip(1).step_by(2) {
            if let Some(path) = positions.wanted.pop() {
                *aim = path;
            }
        }
        let exchanges = session.ask_together(KEY, &purpose, &aims).await;
        shots += volley;
        if session.is_silent() || exchanges.iter().any(|it| it.status() == Some(429)) {
            return;
        }
        exchanges.iter().for_each(|it| positions.learn(it));
        if paths.len() < PATHS_MAX as usize
            && let Some(id) = aims.iter().zip(&exchanges).find_map(|(path, it)| listed_event(path, it))
        {
            paths.push(event_path(&id));
        }
    }
}

/// Pages at many positions of the lists: the burst must ask something, so it asks what no other probe has room for.
#[derive(Default)]
struct Positions {
    known: Vec<List>,
    wanted: Vec<String>,
}

impl Positions {
    /// Wants more of a list whose total an answer tells: later pages of the default size, odd sizes, size 1, and
    /// the first pages of the largest size.
    fn learn(&mut self, exchange: &Exchange) {
        const DEFAULT: u64 = 25;
        const LONG: u64 = 100;
        const LONG_PAGES_MAX: u64 = 3;
        let Some((ask, total)) =
            page_ask(exchange).zip(Page::of(exchange).and_then(|page| page.meta("total")))
        else {
            return;
        };
        if total == 0 || self.known.contains(&ask.list) {
            return;
        }
        self.known.push(ask.list);
        let sized = |page, per_page| PageAsk { page: Some(page), per_page, ..ask.clone() };
        let mut asks = Vec::new();
        for size in [1, 3, 7] {
            let last = total.div_ceil(size);
            let places = BTreeSet::from([1, 2, 3, last.div_ceil(2), last]);
            asks.extend(places.into_iter().filter(|page| *page <= last).map(|page| sized(page, Some(size))));
        }
        let last = total.div_ceil(DEFAULT);
        asks.extend(
            BTreeSet::from([2, last.div_ceil(2), last])
                .into_iter()
                .filter(|page| *page <= last && *page > 1)
                .map(|page| sized(page, None)),
        );
        asks.extend((1..=total.div_ceil(LONG).min(LONG_PAGES_MAX)).map(|page| sized(page, Some(LONG))));
        self.wanted.extend(asks.iter().map(path_of));
    }
}

fn listed_event(path: &str, exchange: &Exchange) -> Option<String> {
    if path.starts_with("/v1/events?") { first_event_id(Page::of(exchange)?.rows()?) } else { None }
}

/// Waits exactly as long as the refusal asks for, and asks again; and once more a second later, for
/// servers that cut the rest of a second off.
async fn obey(session: &mut Session<'_>, refused: &Exchange) {
    let Some(told) = refused.answer().and_then(retry_after).filter(|span| *span <= PATIENCE) else { return };
    for span in [told, told + Duration::from_secs(1)] {
        let left = (refused.ended + span).saturating_sub(session.waiter.now());
        if !session.pause(left, "Retry-After asks for it").await {
            return;
        }
        let purpose = Purpose::Burst(Burst::Waited { span });
        if session.ask_past_weakness(KEY, purpose, ACCOUNT_PATH).await.status() != Some(429) {
            return;
        }
    }
}

/// Leaves the test key a fresh window for what comes next.
async fn rest(session: &mut Session<'_>) {
    let shot = |it: &Exchange| matches!(it.purpose, Purpose::Burst(Burst::Shot { .. }));
    if let Some(last) = session.recording.last(shot).map(|it| it.ended) {
        let left = (last + IDLE_WINDOW).saturating_sub(session.waiter.now());
        session.pause(left, "the next window gives the test key new requests").await;
    }
}

const _: () = assert!(IDLE_WINDOW.as_secs() > WINDOW.as_secs());
const _: () = assert!(REQUESTS_MAX == BURST_MAX);
