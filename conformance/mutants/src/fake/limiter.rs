//! The limiters that services use, each as its inventors describe it.

const MINUTE: u64 = 60_000_000;
const SECOND: u64 = 1_000_000;

/// The counting of requests.
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
    /// A bucket that gets two back each second, at full half seconds.
    Bucket,
    /// The generic cell rate algorithm: half a second for each, a minute in advance.
    Gcra,
    /// Those of this minute of the clock, and of those of the minute before the share that the last 60 seconds hold.
    SlidingCounter,
    /// Not at all.
    Off,
}

impl Limiter {
    /// Serves a request and remembers it in `hits`, or returns the microseconds after which it would be served.
    pub(super) fn refuse_until(
        self,
        hits: &mut Vec<u64>,
        now: u64,
        limit: u64,
        refusals_count: bool,
    ) -> Option<u64> {
        match self {
            Limiter::Off => return None,
            Limiter::SlidingCounter => return counter(hits, now, limit),
            Limiter::Gcra => {
                let due = hits.pop().unwrap_or(0).max(now);
                let fits = due + SECOND / 2 <= now + MINUTE;
                hits.push(if fits { due + SECOND / 2 } else { due });
                return (!fits).then(|| due + SECOND / 2 - MINUTE - now);
            }
            Limiter::Sliding => hits.retain(|at| at + MINUTE > now),
            Limiter::SlidingSeconds => hits.retain(|at| at / SECOND + 60 > now / SECOND),
            Limiter::AlignedMinute => hits.retain(|at| at / MINUTE == now / MINUTE),
            Limiter::FromFirst if hits.first().is_some_and(|at| at + MINUTE <= now) => hits.clear(),
            Limiter::FromFirst => {}
            // A full bucket, less one for each hit, plus one for each half second since it was full.
            Limiter::Bucket => hits.retain(|slot| *slot > now / (SECOND / 2)),
        }
        if (hits.len() as u64) < limit {
            let at = match self {
                Limiter::Bucket => hits.last().copied().unwrap_or(0).max(now / (SECOND / 2)) + 1,
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
            Limiter::SlidingSeconds => (leaves / SECOND + 60) * SECOND - now,
            Limiter::AlignedMinute => MINUTE - now % MINUTE,
            Limiter::FromFirst => hits[0] + MINUTE - now,
            Limiter::Bucket => hits[0] * (SECOND / 2) - now,
            _ => leaves + MINUTE - now,
        })
    }
}

/// The sliding window counter: the estimate is a share of the minute before and all of this one.
fn counter(hits: &mut Vec<u64>, now: u64, limit: u64) -> Option<u64> {
    let (minute, elapsed) = (now / MINUTE, now % MINUTE);
    hits.retain(|at| at / MINUTE + 1 >= minute);
    let current = hits.iter().filter(|at| *at / MINUTE == minute).count() as u64;
    let before = hits.len() as u64 - current;
    if before * (MINUTE - elapsed) + current * MINUTE < limit * MINUTE {
        hits.push(now);
        return None;
    }
    // When the share of a minute's requests has become small enough.
    let after = |count: u64, room: u64| MINUTE - room * MINUTE / count + 1;
    Some(match current {
        full if full >= limit => MINUTE - elapsed + after(full, limit),
        some => after(before, limit - some) - elapsed,
    })
}
