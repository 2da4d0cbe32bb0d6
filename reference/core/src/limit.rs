//! The rate limit of a key (`limits.served`, `limits.refused`).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::time::{Span, Timestamp};

/// The maximum number of requests per minute with one key.
pub const REQUESTS_PER_MINUTE: u32 = 120;
const WINDOW: Span = Span::secs(60);

/// The accepted requests of one key in the last minute.
///
/// A sliding window: a request is refused if the limit was reached in the 60 seconds before it. Refused requests do not
/// count, so a client that waits is served (`open.limits.window`). At [`Timestamp::LAST`] every request is
/// accepted, because the clock cannot advance past it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RateWindow {
    accepted: VecDeque<Timestamp>,
}

impl RateWindow {
    /// Counts a request if the limit allows it. Returns the remaining quota.
    ///
    /// # Errors
    ///
    /// The seconds until a request would be accepted, at least 1.
    pub fn admit(&mut self, now: Timestamp, per_minute: u32) -> Result<u32, u64> {
        while let Some(&first) = self.accepted.front()
            && first.plus(WINDOW) <= now
        {
            self.accepted.pop_front();
        }
        let used = u32::try_from(self.accepted.len()).expect("the window is bounded by the limit");
        if used >= per_minute {
            let free_at = self.accepted.front().map_or(now.plus(WINDOW), |first| first.plus(WINDOW));
            return Err(free_at.since(now).secs_rounded_up().max(1));
        }
        self.accepted.push_back(now);
        Ok(per_minute - used - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_121st_request_is_refused_until_a_minute_has_passed() {
        let (mut window, t0) = (RateWindow::default(), Timestamp(1_000_000));
        for left in (0..REQUESTS_PER_MINUTE).rev() {
            assert_eq!(window.admit(t0, REQUESTS_PER_MINUTE), Ok(left));
        }
        assert_eq!(window.admit(t0, REQUESTS_PER_MINUTE), Err(60));
        let just_before = t0.plus(Span::micros(59_999_999));
        assert_eq!(window.admit(just_before, REQUESTS_PER_MINUTE), Err(1));
        assert_eq!(window.admit(t0.plus(WINDOW), REQUESTS_PER_MINUTE), Ok(119));
    }

    #[test]
    fn at_the_end_of_the_clock_every_request_is_accepted() {
        let mut window = RateWindow::default();
        let just_before = Timestamp(Timestamp::LAST.0 - 1);
        for _ in 0..REQUESTS_PER_MINUTE {
            assert!(window.admit(just_before, REQUESTS_PER_MINUTE).is_ok());
        }
        assert_eq!(window.admit(just_before, REQUESTS_PER_MINUTE), Err(1));
        for _ in 0..=REQUESTS_PER_MINUTE {
            assert_eq!(window.admit(Timestamp::LAST, REQUESTS_PER_MINUTE), Ok(REQUESTS_PER_MINUTE - 1));
        }
    }

    proptest! {
        #[test]
        fn a_request_is_accepted_after_the_returned_seconds_and_not_a_second_earlier(
            gaps in prop::collection::vec(0_u64..3_000_000, 1..400), limit in 1_u32..130,
        ) {
            let (mut window, mut now) = (RateWindow::default(), Timestamp(0));
            let mut accepted: Vec<Timestamp> = Vec::new();
            for gap in gaps {
                now = now.plus(Span(gap));
                let recent = accepted.iter().filter(|&&at| now.since(at) < WINDOW).count();
                match window.admit(now, limit) {
                    Ok(left) => {
                        prop_assert_eq!(left as usize, limit as usize - recent - 1);
                        accepted.push(now);
                    }
                    Err(secs) => {
                        prop_assert_eq!(recent, limit as usize);
                        prop_assert!(window.clone().admit(now.plus(Span::secs(secs)), limit).is_ok());
                        if secs > 1 {
                            prop_assert!(window.clone().admit(now.plus(Span::secs(secs - 1)), limit).is_err());
                        }
                    }
                }
            }
        }
    }
}
