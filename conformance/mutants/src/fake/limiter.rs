//! The limiters that services use, each as its inventors describe it.

const SECOND: u64 = 1_000_000;
/// A bucket gets so many tokens in a window, whatever it holds.
const REFILLED: u64 = 120;

/// The counting of requests. A window lasts a minute unless a mutant sets another length.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Limiter {
    /// Those of the last 60 seconds.
    Sliding,
    /// Those of the last 60 whole seconds: a log that is kept by the second.
    SlidingSeconds,
    /// Those since the last full minute of the clock.
    AlignedMinute,
    /// Those since the first one, for 60 seconds from it.
    FromFirst,
    /// The same, and a refused request restarts the 60 seconds.
    Restarting,
    /// A bucket that gets two back each second, at full half seconds.
    Bucket,
    /// The generic cell rate algorithm: half a second for each, a minute in advance.
    Gcra,
    /// Those of this minute of the clock, and of those of the minute before the share that the last 60 seconds hold.
    SlidingCounter,
    /// Not at all.
    Off,
}

/// The numbers of a limiter.
pub struct Rules {
    /// The number of requests that are served.
    pub limit: u64,
    /// The length of a window, or the time in which a bucket gets 120 tokens, in microseconds.
    pub window: u64,
    /// `true` if a refused request uses the limit up as well.
    pub refusals_count: bool,
}

impl Limiter {
    /// Serves a request and remembers it in `hits`, or returns the microseconds after which it would be served.
    pub(super) fn refuse_until(self, hits: &mut Vec<u64>, now: u64, rules: &Rules) -> Option<u64> {
        let Rules { limit, window, refusals_count } = *rules;
        let interval = window / REFILLED;
        match self {
            Limiter::Off => return None,
            Limiter::SlidingCounter => return counter(hits, now, rules),
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
            // A full bucket, less one for each hit, plus one for each half second since it was full.
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
        // As many must have left as there are too many.
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

/// The sliding window counter: the estimate is a share of the window before and all of this one.
fn counter(hits: &mut Vec<u64>, now: u64, rules: &Rules) -> Option<u64> {
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
    // When the share of a window's requests has become small enough.
    let after = |count: u64, room: u64| window - room * window / count + 1;
    Some(match current + u64::from(refusals_count) {
        full if full >= limit => window - elapsed + after(full, limit),
        some => after(before, limit - some).saturating_sub(elapsed).max(1),
    })
}
