//! The common rate limiters.

const SECOND: u64 = 1_000_000;
/// The tokens that a bucket gets per window, regardless of its size.
const REFILLED: u64 = 120;

/// A rate limiter. A window lasts a minute unless a mutant sets another length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// A sliding log of the last 60 seconds.
    Sliding,
    /// A sliding log with a resolution of one second.
    SlidingSeconds,
    /// A fixed window that is aligned with the minutes of the clock.
    AlignedMinute,
    /// A fixed window of 60 seconds that starts with the first request.
    FromFirst,
    /// The same, restarted by each refused request.
    Restarting,
    /// A token bucket that refills one token every half second.
    Bucket,
    /// The generic cell rate algorithm: an interval of half a second, a burst of a minute.
    Gcra,
    /// A sliding window counter: the current clock minute plus the weighted previous one.
    SlidingCounter,
    /// No limit.
    Off,
}

/// The parameters of a limiter.
pub struct Rules {
    /// The number of requests that are served.
    pub limit: u64,
    /// The length of a window, or the time in which a bucket refills 120 tokens, in microseconds.
    pub window: u64,
    /// `true` if refused requests count.
    pub refusals_count: bool,
}

impl Limiter {
    /// Serves a request and records it in `hits`, or returns the microseconds until it would be served.
    pub(super) fn refuse_until(self, hits: &mut Vec<u64>, now: u64, rules: &Rules) -> Option<u64> {
        let Rules { limit, window, refusals_count } = *rules;
        let interval = window / REFILLED;
        match self {
            Limiter::Off => return None,
            Limiter::SlidingCounter => return sliding_counter(hits, now, rules),
            Limiter::Gcra => {
                let due = hits.pop().unwrap_or(0).max(now);
                let fits = due + interval <= now + limit * interval;
                hits.push(if fits { due + interval } else { due });
                return (!fits).then(|| due + interval - limit * interval - now);
            }
            Limiter::Sliding => hits.retain(|at| at + window > now),
            Limiter::SlidingSeconds => hits.retain(|at| at / SECOND + window / SECOND > now / SECOND),
            Limiter::AlignedMinute => hits.retain(|at| at / window == now / window),
            Limiter::FromFirst | Limiter::Restarting => {
                if hits.first().is_some_and(|at| at + window <= now) {
                    hits.clear();
                }
            }
            // The times at which the missing tokens refill, in half seconds.
            Limiter::Bucket => hits.retain(|slot| *slot > now / interval),
        }
        if (hits.len() as u64) < limit {
            let at = match self {
                Limiter::Bucket => hits.last().copied().unwrap_or(0).max(now / interval) + 1,
                _ => now,
            };
            hits.push(at);
            return None;
        }
        if refusals_count {
            hits.push(now);
        }
        // The request that must leave the window before another is served.
        let leaves = hits[hits.len() - limit as usize];
        Some(match self {
            Limiter::SlidingSeconds => (leaves / SECOND) * SECOND + window - now,
            Limiter::AlignedMinute => window - now % window,
            Limiter::FromFirst => hits[0] + window - now,
            Limiter::Restarting => {
                hits[0] = now;
                window
            }
            Limiter::Bucket => hits[0] * interval - now,
            _ => leaves + window - now,
        })
    }
}

/// The sliding window counter: the estimate is the current window plus a share of the previous one.
fn sliding_counter(hits: &mut Vec<u64>, now: u64, rules: &Rules) -> Option<u64> {
    let Rules { limit, window, refusals_count } = *rules;
    let (number, elapsed) = (now / window, now % window);
    hits.retain(|at| at / window + 1 >= number);
    let current = hits.iter().filter(|at| *at / window == number).count() as u64;
    let before = hits.len() as u64 - current;
    if before * (window - elapsed) + current * window < limit * window {
        hits.push(now);
        return None;
    }
    if refusals_count {
        hits.push(now);
    }
    // The time until the share of a window's requests is small enough.
    let after = |count: u64, room: u64| window - room * window / count + 1;
    Some(match current + u64::from(refusals_count) {
        full if full >= limit => window - elapsed + after(full, limit),
        some => after(before, limit - some).saturating_sub(elapsed).max(1),
    })
}
