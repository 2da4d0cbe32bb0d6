//! The result of a load test.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    plan::{Pace, Plan},
    tally::Tally,
};

/// The report of a run.
// The JSON is a public format: renamed fields keep their names in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The URL of the target.
    pub url: String,
    /// The name of the [`Work`](crate::Work): `read`, `paths`, `write` or `webhook`.
    #[serde(rename = "mix")]
    pub work: String,
    /// The number of connections.
    pub connections: usize,
    /// The number of threads.
    pub threads: usize,
    /// The duration until the end of the last request, in milliseconds.
    pub millis: u64,
    /// The requested rate per second; `None` for as many as possible.
    #[serde(rename = "rate_asked")]
    pub requested_rate: Option<u32>,
    /// The number of responses per second, without 429.
    pub rate_achieved: u64,
    /// The number of responses.
    #[serde(rename = "answers")]
    pub responses: u64,
    /// The size of all responses in bytes, including heads.
    pub bytes: u64,
    /// The number of responses by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The number of requests without a valid response, by error.
    pub errors: BTreeMap<String, u64>,
    /// Latencies in nanoseconds.
    pub latency_ns: Latency,
    /// `true` if latencies are measured from the due times of requests, which exist only at a fixed rate.
    pub corrected: bool,
    /// The number of requests that were due and never sent, because all connections were busy. Their waiting time
    /// counts as latency.
    pub never_sent: u64,
    /// The number of requests that were not sent because of a pause after a 429. They are not counted elsewhere.
    pub held_back: u64,
    /// The total time of pauses after a 429, in milliseconds.
    pub paused_millis: u64,
    /// `true` if the caller ended the run early.
    #[serde(default)]
    pub interrupted: bool,
    /// The notes for the text report.
    pub notes: Vec<String>,
}

/// Latencies in nanoseconds, to three significant digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names are the percentiles")]
pub struct Latency {
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub max: u64,
}

impl Report {
    pub(crate) fn new(
        plan: &Plan,
        threads: usize,
        elapsed: Duration,
        tally: &Tally,
        never_sent: u64,
        mut notes: Vec<String>,
    ) -> Report {
        let latency = |quantile| tally.latencies.value_at_quantile(quantile);
        let response_count: u64 = tally.statuses.values().sum();
        let limited = tally.statuses.get(&429).copied().unwrap_or(0);
        if limited > 0 {
            notes.push(
                "the rate limit was reached (429), and the test paused as Retry-After requires; measure throughput \
                 without a rate limit (`chargeproof serve --rate-limit off`)"
                    .to_owned(),
            );
        }
        if never_sent > 0 {
            notes.push(
                "the server could not keep up with the rate, or there are too few connections".to_owned(),
            );
        }
        Report {
            url: plan.url.to_string(),
            work: plan.work.name().to_owned(),
            connections: plan.connections,
            threads,
            millis: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            requested_rate: match plan.pace {
                Pace::Max => None,
                Pace::PerSecond(rate) => Some(rate.get()),
            },
            rate_achieved: (response_count - limited) * 1_000_000
                / u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1),
            responses: response_count,
            bytes: tally.bytes,
            statuses: tally.statuses.clone(),
            errors: tally.errors.iter().map(|(error, count)| ((*error).to_owned(), *count)).collect(),
            latency_ns: Latency {
                p50: latency(0.5),
                p90: latency(0.9),
                p99: latency(0.99),
                p99_9: latency(0.999),
                max: tally.latencies.max(),
            },
            corrected: plan.pace != Pace::Max,
            never_sent,
            held_back: tally.held_back,
            paused_millis: u64::try_from(tally.paused_for.as_millis()).unwrap_or(u64::MAX),
            interrupted: false,
            notes,
        }
    }

    /// Returns `true` if every sent request got a response with a status below 400, or 429.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.statuses.keys().all(|status| *status < 400 || *status == 429)
    }
}
