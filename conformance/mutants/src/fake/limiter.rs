//! The common rate limiters.

const SECOND: u64 = 1_000_000;
/// The tokens that a bucket gets per window, regardless of its size.
const TOKENS_PER_WINDOW: u64 = 120;

/// A rate limiter. The lengths and rates below are those of the default window of a minute.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// A sliding log of the last 60 seconds.
    Sliding,
    /// A sliding log with a resolution of one second.
    SlidingSeconds,
    /// A fixed window whose start is a multiple of its length on the clock.
    AlignedWindow,
    /// A fixed window of 60 seconds that starts with the first request.
    FromFirst,
    /// A fixed window that starts with the first request and restarts at each refused request.
    Restarting,
    /// A token bucket that refills one token every half second.
    Bucket,
    /// The generic cell rate algorithm (GCRA): one request per half second, in bursts of up to a minute's requests.
    Gcra,
    /// A sliding window counter: it counts the requests of the current clock minute, and a part of those of the previous
    /// one.
    SlidingCounter,
    /// No limit.
    Off,
}

/// The parameters of a limiter.
pub struct LimiterSettings {
    /// The number of requests that are served per window.
    pub limit: u64,
    /// The length of a window, or the time in which a bucket refills 120 tokens, in microseconds.
    pub window: u64,
    /// `true` if refused requests count.
    pub counts_refused: bool,
}

impl Limiter {
    /// Records a request in `hits`, the state of the limiter, and returns `None`, if it is within the limit. Otherwise
    /// returns the microseconds until it would be, and records it only if refused requests count.
    pub(super) fn record_or_wait(
        self,
        hits: &mut Vec<u64>,
        now: u64,
        settings: &LimiterSettings,
    ) -> Option<u64> {
        let LimiterSettings { limit, window, .. } = *settings;
        let interval = window / TOKENS_PER_WINDOW;
        match self {
            Limiter::Off => return None,
            Limiter::SlidingCounter => return sliding_counter(hits, now, settings),
            Limiter::Gcra => {
                let due_at = hits.pop().unwrap_or(0).max(now);
                let is_served = due_at + interval <= now + limit * interval;
                hits.push(if is_served { due_at + interval } else { due_at });
                return (!is_served).then(|| due_at + interval - limit * interval - now);
            }
            Limiter::Sliding => hits.retain(|at| at + window > now),
            Limiter::SlidingSeconds => hits.retain(|at| at / SECOND + window / SECOND > now / SECOND),
            Limiter::AlignedWindow => hits.retain(|at| at / window == now / window),
            Limiter::FromFirst | Limiter::Restarting => {
                if hits.first().is_some_and(|at| at + window <= now) {
                    hits.clear();
                }
            }
            // Each hit is the time at which a used token is refilled, in intervals.
            Limiter::Bucket => hits.retain(|slot| *slot > now / interval),
        }
        if (hits.len() as u64) < limit {
            let hit = match self {
                Limiter::Bucket => hits.last().copied().unwrap_or(0).max(now / interval) + 1,
                _ => now,
            };
            hits.push(hit);
            return None;
        }
        if settings.counts_refused {
            hits.push(now);
        }
        // The time of the request that must leave the window before another is served.
        let blocking = hits[hits.len() - limit as usize];
        Some(match self {
            Limiter::SlidingSeconds => (blocking / SECOND) * SECOND + window - now,
            Limiter::AlignedWindow => window - now % window,
            Limiter::FromFirst => hits[0] + window - now,
            Limiter::Restarting => {
                hits[0] = now;
                window
            }
            Limiter::Bucket => hits[0] * interval - now,
            _ => blocking + window - now,
        })
    }
}

/// Applies a sliding window counter: the requests of the current window count fully, and those of the previous window in
/// proportion to the rest of the current one: a quarter of them after three quarters of the window.
/// Returns the same as `Limiter::record_or_wait`.
fn sliding_counter(hits: &mut Vec<u64>, now: u64, settings: &LimiterSettings) -> Option<u64> {
    let LimiterSettings { limit, window, .. } = *settings;
    let (window_number, elapsed) = (now / window, now % window);
    hits.retain(|at| at / window + 1 >= window_number);
    let current = hits.iter().filter(|at| *at / window == window_number).count() as u64;
    let previous = hits.len() as u64 - current;
    if previous * (window - elapsed) + current * window < limit * window {
        hits.push(now);
        return None;
    }
    if settings.counts_refused {
        hits.push(now);
    }
    // The time from the start of a window until `previous` requests of the window before it count for less than `room`.
    let wait_in_window = |previous: u64, room: u64| window - room * window / previous + 1;
    Some(match current + u64::from(settings.counts_refused) {
        current if current >= limit => window - elapsed + wait_in_window(current, limit),
        current => wait_in_window(previous, limit - current).saturating_sub(elapsed).max(1),
    })
}
