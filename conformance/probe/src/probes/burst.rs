//! The burst: requests with the test key until one is refused.

use std::ops::RangeInclusive;
use std::time::Duration;

use conformance_model::budget::BURST_REQUESTS_MAX;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{
    BURST_TIME_MAX, BurstCounts, LIMIT_WINDOW, LimiterKind, Page, SERVED_MAX, first_event_id, is_served,
    most_served_in_a_minute, parse_http_date, retry_after,
};
use conformance_model::recording::{Burst, Caller, Exchange, Purpose, Recording};

use crate::probes::burst_pages::{BurstPages, event_of_unread_type};
use crate::request_paths::event_path;
use crate::session::{IDLE_WINDOW, SINGLE_WAIT_MAX, Session};

/// The number of rounds of requests after the first refusal.
const ROUNDS: u8 = 3;
/// The most paths that a burst requests in turn: the [`PATHS`] and an event.
const PATHS_MAX: u32 = 5;
/// The further requests of each round: a HEAD request and one for a nonexistent event.
const EXTRA_PER_ROUND: u32 = 2;
/// The number of requests at the start of a burst that are sent in batches. With the account request, they are below
/// the limit.
const CONCURRENT_MAX: usize = 108;
/// The number of requests of a batch with the test key, which are sent concurrently.
const BATCH: usize = 4;
/// The most requests until the key is refused again; a token bucket that refilled serves some first.
const STILL_REFUSED_MAX: u32 = 8;
/// The number of rounds after waits so short that only a token bucket can have refilled.
const AFTER_WAIT_ROUNDS: u8 = 3;
/// The most requests of these rounds together: in each, 31 batches, which are more requests than the limit of 120.
const AFTER_WAIT_MAX: u32 = 372;
/// The seconds after a refusal at which the key is tried during a wait, before a window of a minute can have ended.
const WAIT_CHECK_SECONDS: [u64; 3] = [20, 35, 50];
/// The requests after the first refusal, in the order of the terms: with the live and the second key; with the test
/// key until it is refused again; one per burst in which a token bucket would have refilled; during the wait; shortly
/// before its end; two after each of two waits; and after the wait until the next refusal.
const AFTER_REFUSAL_MAX: u32 =
    2 + STILL_REFUSED_MAX + 2 + WAIT_CHECK_SECONDS.len() as u32 + 1 + 4 + AFTER_WAIT_MAX;
/// The requests with the live key in the budget of a burst: six concurrent ones, a filtered page of each list, and one
/// because the test key got refusals other than 429. If that happens again, the further ones use what is left of the
/// budget of all bursts.
const LIVE_REQUESTS: u32 = 10;
/// The number of consecutive refusals other than 429, or missing responses, that end the burst if the live key is
/// served meanwhile.
const OTHER_REFUSALS_MAX: usize = 12;
/// The number of consecutive requests without a response that end the burst if the live key is served meanwhile.
const NO_RESPONSES_MAX: usize = 6;
/// The number of consecutive refusals other than 429, or missing responses, after which the live key is tried.
const OTHER_REFUSALS_MIN: usize = 3;
/// The number of batches after a wait that test for a new window: a token bucket has not refilled for so many requests.
const NEW_WINDOW_BATCHES: usize = 2;
/// The largest number of requests of the burst in the next minute.
pub(crate) const NEXT_MINUTE_MAX: u32 = SERVED_MAX + 1 + LIVE_REQUESTS;
pub(crate) const NEXT_MINUTE_WAIT: Duration = WAIT_USUAL;
/// The largest number of requests of the probe without the burst in the next minute: the first burst, its repetition,
/// and the requests after the first refusal.
pub(crate) const REQUESTS_MAX: u32 = Burst::REPEATED as u32 * (SERVED_MAX + 1 + LIVE_REQUESTS)
    + ROUNDS as u32 * (PATHS_MAX + EXTRA_PER_ROUND)
    + AFTER_REFUSAL_MAX;

/// The longest `Retry-After` that a token bucket is expected to send.
const SHORT_WAIT_MAX: Duration = Duration::from_secs(2);
/// The time in which a token bucket with two requests per second refills.
const REFILL_WAIT: Duration = Duration::from_millis(1_200);
/// The bounds of the time before the end of a clock minute at which a burst waits for the next minute: an aligned
/// window would end during the burst.
const NEAR_MINUTE_MIN: Duration = Duration::from_secs(1);
const NEAR_MINUTE_MAX: Duration = Duration::from_secs(3);
/// The approximate number of response times that a burst lasts.
const SEQUENTIAL_RESPONSES: u32 = 50;
/// Two windows of the limit, plus a second for servers that count whole seconds.
const TWO_IDLE_WINDOWS: Duration = Duration::from_secs(121);
/// The longest wait if the key was idle before: the rest of the server's minute, plus the second that dates round
/// down, plus a window.
pub(crate) const WAIT_USUAL: Duration = Duration::from_secs(3 + 1 + 61);
/// The most time for all waits: [`WAIT_USUAL`], two idle windows before a repeated burst, and after it the
/// `Retry-After` or one more window for sliding windows.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(65 + 121 + 61);

/// The key of the bursts.
const KEY: Caller = Caller::Own(Mode::Test);
/// The seed of the nonexistent event, different from those of other probes.
const ABSENT_EVENT_SEED: u64 = 90;

const PATHS: [&str; 4] =
    [ACCOUNT_PATH, "/v1/events?per_page=1", "/v1/charges?per_page=1", "/v1/invoices?per_page=1"];

/// Sends the bursts, and the requests after a refusal that distinguish kinds of limiters.
pub(crate) async fn probe(session: &mut Session<'_>) {
    if session.recording.no_burst.is_some() {
        return;
    }
    let mut paths = PATHS.map(str::to_owned).to_vec();
    wait_for_next_minute(session).await;
    send_burst(session, 1, &mut paths).await;
    let mut series = 1;
    // Another client may have used the key, or a window may have ended during the burst. Both are unlikely to happen
    // twice.
    if let Some(idle) = idle_before_repeat(session).await
        && session.pause(idle, "the burst is repeated in a fresh window").await
    {
        series = Burst::REPEATED;
        wait_for_next_minute(session).await;
        send_burst(session, series, &mut paths).await;
        test_refill(session, series).await;
    }
    if BurstCounts::from_burst(&session.recording, series).is_none_or(|counts| counts.first_refused.is_none())
    {
        reserve_fresh_window(session);
        return send_next_minute_burst(session, &mut paths).await;
    }
    send_rounds(session, series, &paths).await;
    session
        .send_retrying_5xx(Caller::Own(Mode::Live), Purpose::Burst(Burst::LiveKeyAfterRefusal), ACCOUNT_PATH)
        .await;
    if session.plan.second_key.is_some() {
        let purpose = Purpose::Burst(Burst::SecondKey);
        session.send_retrying_5xx(Caller::SecondKey, purpose, ACCOUNT_PATH).await;
    }
    // Only the latest refusal counts: if the key was served in between, the earlier wait is over.
    for _ in 0..STILL_REFUSED_MAX {
        let still = session.send_retrying_5xx(KEY, Purpose::Burst(Burst::StillRefused), ACCOUNT_PATH).await;
        if still.status() == Some(429) {
            wait_and_retry(session, &still, &paths).await;
            break;
        }
    }
    // A new window serves the next requests; only a sliding window needs an idle key.
    if !session.has_new_window || session.plan.thorough {
        reserve_fresh_window(session);
    }
    send_next_minute_burst(session, &mut paths).await;
}

/// Requests each path of the burst while the key is refused, with a HEAD request and a nonexistent event, in several
/// rounds.
async fn send_rounds(session: &mut Session<'_>, series: u8, paths: &[String]) {
    let mut requests: Vec<_> = paths.iter().map(|path| (Method::Get, path.clone())).collect();
    requests.push((Method::Head, ACCOUNT_PATH.to_owned()));
    let event = paths.iter().find_map(|path| path.strip_prefix("/v1/events/"));
    requests
        .extend(event.map(|id| (Method::Get, event_path(&session.unused_id_like(id, ABSENT_EVENT_SEED)))));
    for round in 1..=ROUNDS {
        // A different order each round, so that a token of a bucket serves a different path.
        requests.rotate_left(3);
        for (method, path) in &requests {
            let request = match method {
                Method::Get => Burst::Round { series, round },
                Method::Head => Burst::Head { round },
            };
            session.send_once(KEY, Purpose::Burst(request), path).await;
        }
    }
}

enum Method {
    Get,
    Head,
}

/// Returns the idle time before the burst is repeated: two windows if another client may have used the key, because
/// sliding windows weight the previous one; one if a window may have ended during the burst; `None` if the burst is
/// conclusive. May send a request to find out.
async fn idle_before_repeat(session: &mut Session<'_>) -> Option<Duration> {
    match BurstCounts::from_burst(&session.recording, 1)?.limiter_kind() {
        LimiterKind::Early => Some(TWO_IDLE_WINDOWS),
        LimiterKind::WindowBoundary => Some(IDLE_WINDOW),
        LimiterKind::TokenBucket if !test_refill(session, 1).await => Some(IDLE_WINDOW),
        _ => None,
    }
}

/// Sends a request after the time in which a token bucket refills, if the burst looks like one. Returns `false` if
/// the request is refused, so that the limiter is not a token bucket. Sends none if `Retry-After` is at most
/// [`SHORT_WAIT_MAX`], because the request after that wait tests the same.
async fn test_refill(session: &mut Session<'_>, series: u8) -> bool {
    let bucket = BurstCounts::from_burst(&session.recording, series)
        .filter(|counts| counts.limiter_kind() == LimiterKind::TokenBucket);
    let refused = bucket.and_then(|counts| session.recording.exchange(counts.first_refused?)).cloned();
    let Some(refused) = refused else { return true };
    if refused.response().and_then(retry_after).is_some_and(|delay| delay <= SHORT_WAIT_MAX) {
        return true;
    }
    if !session.pause(REFILL_WAIT, "a token bucket would refill in this time").await {
        return true;
    }
    let purpose = Purpose::Burst(Burst::Refill { series });
    session.send_retrying_5xx(KEY, purpose, ACCOUNT_PATH).await.status() != Some(429)
}

/// Waits for the next minute of the server's clock if it is near: an aligned window would end during the burst.
async fn wait_for_next_minute(session: &mut Session<'_>) {
    let last = session.recording.find_last(|exchange| exchange.caller == KEY);
    let response_time = last.map_or(Duration::ZERO, |exchange| exchange.ended.saturating_sub(exchange.sent));
    let near_minute = (response_time * SEQUENTIAL_RESPONSES).clamp(NEAR_MINUTE_MIN, NEAR_MINUTE_MAX);
    if let Some(left) = until_minute(&session.recording).filter(|left| *left <= near_minute + NEAR_MINUTE_MIN)
    {
        session.pause(left, "the minute of the server's clock ends").await;
    }
}

/// Sends one more burst in the next minute, if the plan is thorough: the limit must hold there, too.
async fn send_next_minute_burst(session: &mut Session<'_>, paths: &mut Vec<String>) {
    if !session.plan.thorough || session.has_stopped() {
        return;
    }
    session.wait_for_key(KEY).await;
    wait_for_next_minute(session).await;
    send_burst(session, Burst::NEXT_MINUTE, paths).await;
    reserve_fresh_window(session);
}

/// Returns the time until the next minute of the server's clock, by the last `Date`, plus a second, because dates
/// have no fractions.
fn until_minute(recording: &Recording) -> Option<Duration> {
    let last = recording
        .exchanges
        .iter()
        .rev()
        .find_map(|exchange| parse_http_date(exchange.response()?.header("date")?))?;
    Some(Duration::from_secs(u64::from(60 - last.second()) + 1))
}

/// Sends requests until the first refusal with 429, at most one more than [`SERVED_MAX`], for at most
/// [`BURST_TIME_MAX`]; may end sooner, see [`check_refusals_without_429`]. The first requests, which a correct limiter
/// serves, are concurrent; the others are sequential, so that the position of the first refusal is known. Adds the
/// path of a listed event to `paths`.
async fn send_burst(session: &mut Session<'_>, series: u8, paths: &mut Vec<String>) {
    let purpose = Purpose::Burst(Burst::UntilRefused { series });
    let start = session.clock.now();
    let mut sent = 0;
    let mut burst_pages = BurstPages::new(series);
    let mut is_live_key_served = None;
    while sent <= SERVED_MAX as usize && session.clock.now() - start <= BURST_TIME_MAX {
        // The live key was tried, because the latest requests of the test key were not served.
        let has_tried_live_key = is_live_key_served.is_some();
        let batch = if sent < CONCURRENT_MAX && !has_tried_live_key { BATCH } else { 1 };
        let mut batch_requests: Vec<_> = (sent..sent + batch)
            .map(|index| (KEY, purpose.clone(), paths[index % paths.len()].clone()))
            .collect();
        // The first request of a batch repeats one of `paths`; the others read the queued pages, as long as there are some.
        for (.., request_path) in batch_requests.iter_mut().skip(1) {
            if let Some(path) = burst_pages.queue.pop_front() {
                *request_path = path;
            }
        }
        let live_request = burst_pages.live_requests.pop_front();
        batch_requests.extend(live_request.map(|(caller, purpose, path)| {
            // After the first batch, the requests of the account read an event of an unread type instead, if there is one.
            let unread = event_of_unread_type(&session.recording);
            let unread = unread.filter(|_| path == ACCOUNT_PATH && sent > 0);
            (caller, purpose, unread.map_or(path, |id| event_path(&id)))
        }));
        let exchanges = session.send_together(&batch_requests).await;
        sent += batch;
        let is_test_key = |exchange: &&Exchange| exchange.caller == KEY;
        if exchanges.iter().filter(is_test_key).any(|exchange| exchange.status() == Some(429))
            || check_refusals_without_429(session, series, &mut is_live_key_served).await
        {
            return;
        }
        if sent == BATCH {
            burst_pages.add_long_pages(&exchanges);
        } else {
            burst_pages.add_further_requests(&session.recording);
            burst_pages.add_live_filters(&session.recording);
        }
        if paths.len() < PATHS_MAX as usize
            && let Some(id) = batch_requests
                .iter()
                .zip(&exchanges)
                .find_map(|((.., path), exchange)| listed_event(path, exchange))
        {
            paths.push(event_path(&id));
        }
    }
}

/// Returns `true` if the burst ends because the test key got refusals other than 429, or no responses, or because the
/// run has stopped. Tries the live key once per sequence of such refusals, because an outage would affect it, too.
/// `is_live_key_served`: the result for the current sequence, if the key was tried.
async fn check_refusals_without_429(
    session: &mut Session<'_>,
    series: u8,
    is_live_key_served: &mut Option<bool>,
) -> bool {
    let purpose = Purpose::Burst(Burst::UntilRefused { series });
    let latest_first = session
        .recording
        .exchanges
        .iter()
        .rev()
        .filter(|exchange| exchange.purpose == purpose && exchange.is_sent());
    let unserved: Vec<_> =
        latest_first.take_while(|exchange| !is_served(exchange)).map(Exchange::status).collect();
    if unserved.len() < OTHER_REFUSALS_MIN {
        *is_live_key_served = None;
        return session.has_stopped();
    }
    if is_live_key_served.is_none() {
        let purpose = Purpose::Burst(Burst::ConcurrentLiveKey { series });
        let live = session.send_once(Caller::Own(Mode::Live), purpose, ACCOUNT_PATH).await;
        *is_live_key_served = Some(live.status() == Some(200));
    }
    if *is_live_key_served != Some(true) {
        return session.has_stopped();
    }
    session.reset_lost_count();
    unserved.len() >= OTHER_REFUSALS_MAX
        || unserved.iter().take_while(|status| status.is_none()).count() >= NO_RESPONSES_MAX
}

/// Returns the first event in the response to a path, if the path is a list of events.
fn listed_event(path: &str, exchange: &Exchange) -> Option<String> {
    if path.starts_with("/v1/events?") {
        first_event_id(Page::from_exchange(exchange)?.rows()?)
    } else {
        None
    }
}

/// Sends requests during the `Retry-After` of a refusal, one after it, and another one a second later for servers
/// that round down. If the key is served again, sends more to distinguish a token bucket from a new window.
async fn wait_and_retry(session: &mut Session<'_>, refused: &Exchange, paths: &[String]) {
    let Some(delay) = requested_wait(refused) else { return };
    if check_during_wait(session, refused, delay, paths).await {
        return;
    }
    let ends_early = ends_early(session, refused, delay);
    if ends_early {
        // Tests the end of the window as well as the start of the next.
        let left = (refused.ended + delay).saturating_sub(session.clock.now() + SHORT_WAIT_MAX);
        if session.pause(left, "required by Retry-After").await {
            session.send_retrying_5xx(KEY, Purpose::Burst(Burst::DuringWait), ACCOUNT_PATH).await;
        }
    }
    let mut last_refusal = Some((refused.clone(), delay));
    while let Some((refused, delay)) = last_refusal.take() {
        for span in [delay, delay + Duration::from_secs(1)] {
            let left = (refused.ended + span).saturating_sub(session.clock.now());
            if !session.pause(left, "required by Retry-After").await {
                return;
            }
            let purpose = Purpose::Burst(Burst::AfterRetryAfter { span });
            let waited = session.send_retrying_5xx(KEY, purpose, ACCOUNT_PATH).await;
            if waited.status() == Some(200) && delay <= SHORT_WAIT_MAX {
                send_until_refused(session, waited.sent, paths, &mut (1..=AFTER_WAIT_ROUNDS)).await;
            } else if waited.status() == Some(200) && ends_early {
                session.has_new_window = fill_new_window(session, 1, paths).await;
            }
            let next_delay = requested_wait(&waited).filter(|_| waited.status() == Some(429));
            let Some(next_delay) = next_delay else { return };
            // If the limiter counts refused requests, the latest `Retry-After` applies. Waits at most once more, because
            // the next refusal has another purpose than `StillRefused`.
            if refused.purpose == Purpose::Burst(Burst::StillRefused) && next_delay > Duration::from_secs(1) {
                last_refusal = Some((waited, next_delay));
                break;
            }
        }
    }
}

/// Sends requests during a long wait, in which the key should be refused. If one is served, sends as many as possible,
/// to exceed what two windows in a minute allow. Returns `true` if one was served: the refusal no longer applies then.
async fn check_during_wait(
    session: &mut Session<'_>,
    refused: &Exchange,
    delay: Duration,
    paths: &[String],
) -> bool {
    let mut rounds = 1..=AFTER_WAIT_ROUNDS;
    let mut served_since = None;
    for check_at in WAIT_CHECK_SECONDS.map(Duration::from_secs) {
        let left = (refused.ended + check_at).saturating_sub(session.clock.now());
        if check_at + SHORT_WAIT_MAX >= delay || !session.pause(left, "required by Retry-After").await {
            break;
        }
        let checked = session.send_retrying_5xx(KEY, Purpose::Burst(Burst::DuringWait), ACCOUNT_PATH).await;
        if checked.status() == Some(200) {
            send_until_refused(session, *served_since.get_or_insert(checked.sent), paths, &mut rounds).await;
        }
    }
    served_since.is_some()
}

/// Returns the `Retry-After` of a refusal; `None` if it is missing, or longer than the run waits at once.
fn requested_wait(refused: &Exchange) -> Option<Duration> {
    refused.response().and_then(retry_after).filter(|span| *span <= SINGLE_WAIT_MAX)
}

/// Returns `true` if the limiter counts exactly and its window, by `Retry-After`, ends less than a minute after the
/// first request with the test key in the minute before the refusal: the window is aligned with the clock, or shorter
/// than a minute.
fn ends_early(session: &Session<'_>, refused: &Exchange, delay: Duration) -> bool {
    const SLACK: Duration = Duration::from_secs(3);
    let recording = &session.recording;
    let counts =
        BurstCounts::from_burst(recording, Burst::REPEATED).or_else(|| BurstCounts::from_burst(recording, 1));
    let first = recording
        .exchanges
        .iter()
        .find(|exchange| exchange.caller == KEY && exchange.sent + LIMIT_WINDOW > refused.sent)
        .map_or(Duration::ZERO, |exchange| exchange.sent);
    counts.is_some_and(|counts| counts.limiter_kind() == LimiterKind::Exact)
        && delay > SHORT_WAIT_MAX
        && (refused.ended + delay).saturating_sub(first) + SLACK < LIMIT_WINDOW
}

/// Sends more requests than a token bucket serves so shortly after a refusal. Returns `true` if all are served, so that a
/// new window has started.
async fn fill_new_window(session: &mut Session<'_>, round: u8, paths: &[String]) -> bool {
    let purpose = Purpose::Burst(Burst::RepeatedAfterWait { round });
    for batch in 0..NEW_WINDOW_BATCHES {
        let path = |index: usize| paths[(batch * BATCH + index) % paths.len()].clone();
        let requests: Vec<_> = (0..BATCH).map(|index| (KEY, purpose.clone(), path(index))).collect();
        if session.send_together(&requests).await.iter().any(|exchange| exchange.status() != Some(200)) {
            return false;
        }
    }
    true
}

/// Sends a last burst in the window that started during the run, if there was one. After the refusal of this burst, it
/// waits for the next window only if that starts less than a minute after the refusal before the burst.
pub(crate) async fn send_closing_burst(session: &mut Session<'_>) {
    if !std::mem::take(&mut session.has_new_window) || session.has_stopped() {
        return;
    }
    let is_refused = |exchange: &Exchange| exchange.caller == KEY && exchange.status() == Some(429);
    let previous_refusal =
        session.recording.find_last(is_refused).map_or(Duration::ZERO, |exchange| exchange.sent);
    let mut paths = PATHS.map(str::to_owned).to_vec();
    send_burst(session, Burst::CLOSING, &mut paths).await;
    let refused =
        session.recording.find_last(is_refused).filter(|exchange| exchange.sent > previous_refusal).cloned();
    let delay = refused.as_ref().and_then(requested_wait).filter(|delay| *delay > SHORT_WAIT_MAX);
    if let Some((refused, span)) = refused.zip(delay)
        && refused.ended + span + NEAR_MINUTE_MIN < previous_refusal + LIMIT_WINDOW
    {
        let left = (refused.ended + span).saturating_sub(session.clock.now());
        if session.pause(left, "the window ends less than a minute after the previous one").await {
            let purpose = Purpose::Burst(Burst::AfterRetryAfter { span });
            session.send_retrying_5xx(KEY, purpose, ACCOUNT_PATH).await;
            fill_new_window(session, 2, &paths).await;
        }
    }
    reserve_fresh_window(session);
}

/// Sends requests until one is refused, and again after its `Retry-After`, until more were served within a minute than
/// any limiter of 120 admits, or the minute from `since` is over. `rounds`: the rounds that are left.
async fn send_until_refused(
    session: &mut Session<'_>,
    since: Duration,
    paths: &[String],
    rounds: &mut RangeInclusive<u8>,
) {
    for round in rounds {
        let purpose = Purpose::Burst(Burst::RepeatedAfterWait { round });
        let mut refused = None;
        for batch in 0..AFTER_WAIT_MAX / AFTER_WAIT_ROUNDS as u32 / BATCH as u32 {
            let requests: Vec<_> = (0..BATCH)
                .map(|index| (KEY, purpose.clone(), paths[(batch as usize + index) % paths.len()].clone()))
                .collect();
            let exchanges = session.send_together(&requests).await;
            refused = exchanges.into_iter().find(|exchange| exchange.status() == Some(429));
            if refused.is_some() || session.has_stopped() {
                break;
            }
        }
        let served = most_served_in_a_minute(&session.recording).map_or(0, |(count, _)| count);
        let Some(delay) = refused.as_ref().and_then(requested_wait) else { return };
        let is_over = session.clock.now() + delay >= since + LIMIT_WINDOW;
        if served > SERVED_MAX as usize || is_over || !session.pause(delay, "required by Retry-After").await {
            return;
        }
    }
}

/// Reserves a fresh window of the test key for the next probes.
fn reserve_fresh_window(session: &mut Session<'_>) {
    let is_burst_request = |exchange: &Exchange| {
        matches!(
            exchange.purpose,
            Purpose::Burst(Burst::UntilRefused { .. } | Burst::RepeatedAfterWait { .. })
        )
    };
    if let Some(last) = session.recording.find_last(is_burst_request).map(|exchange| exchange.ended) {
        session.keep_idle_until(last + IDLE_WINDOW);
    }
}

const _: () = assert!(IDLE_WINDOW.as_secs() > LIMIT_WINDOW.as_secs());
const _: () = assert!(REQUESTS_MAX == BURST_REQUESTS_MAX);
