//! [`Tally`]: the counts of one thread, and their sum over all threads.

use std::{collections::BTreeMap, time::Duration};

use hdrhistogram::Histogram;
use tokio::time::Instant;

use crate::connection::{RequestError, ResponseSummary};

/// The maximum recorded latency, in nanoseconds. Longer ones are clamped.
const LATENCY_MAX: u64 = 3_600_000_000_000;
/// The number of significant digits of latencies: a resolution of 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// The counts of responses and errors, and the latencies.
pub(crate) struct Tally {
    /// The latencies in nanoseconds.
    pub(crate) latencies: Histogram<u64>,
    /// The number of responses by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// The number of requests without a response, by error.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// The size of all responses in bytes.
    pub(crate) bytes: u64,
    /// The end of the last request.
    pub(crate) last_end_at: Option<Instant>,
    /// The number of requests that were not sent because of a pause after a 429.
    pub(crate) held_back: u64,
    /// The total time of pauses after a 429.
    pub(crate) paused_for: Duration,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            latencies: Histogram::new_with_bounds(1, LATENCY_MAX, SIGNIFICANT_DIGITS)
                .expect("the bounds are valid constants"),
            statuses: BTreeMap::new(),
            errors: BTreeMap::new(),
            bytes: 0,
            last_end_at: None,
            held_back: 0,
            paused_for: Duration::ZERO,
        }
    }

    /// Counts a response and its latency.
    pub(crate) fn add_response(&mut self, now: Instant, response: &ResponseSummary, latency: Duration) {
        self.last_end_at = Some(now);
        *self.statuses.entry(response.status).or_default() += 1;
        self.bytes += response.bytes;
        // The latency of a 429 does not measure the work of the server.
        if response.status != 429 {
            self.add_latency(latency);
        }
    }

    /// Counts a latency: of a response, or the waiting time of a request that failed or was never sent.
    pub(crate) fn add_latency(&mut self, latency: Duration) {
        self.latencies.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(LATENCY_MAX).max(1));
    }

    /// Counts a request that failed after the time `waited`.
    pub(crate) fn add_error(&mut self, now: Instant, error: RequestError, waited: Duration) {
        self.last_end_at = Some(now);
        *self.errors.entry(error.as_str()).or_default() += 1;
        self.add_latency(waited);
    }

    pub(crate) fn merge(&mut self, other: &Tally) {
        self.latencies.add(&other.latencies).expect("all histograms have the same bounds");
        for (status, count) in &other.statuses {
            *self.statuses.entry(*status).or_default() += count;
        }
        for (error, count) in &other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        self.bytes += other.bytes;
        self.last_end_at = self.last_end_at.max(other.last_end_at);
        self.held_back += other.held_back;
        self.paused_for += other.paused_for;
    }
}
