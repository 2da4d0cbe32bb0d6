//! The server's metrics in the OpenMetrics text format, which Prometheus reads.
//!
//! [`Metrics`] counts requests, connections and delivery attempts since the start; [`Metrics::page`] adds current
//! values. The order of the metrics on a page is fixed.

use std::{fmt, time::Duration};

use http::StatusCode;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{
        MetricType,
        counter::{ConstCounter, Counter},
        gauge::ConstGauge,
        histogram::Histogram,
    },
    registry::{Registry, Unit},
};
use reference_core::{outbox::AttemptResult, time::Timestamp};

/// Upper bounds of the buckets of request latencies, in seconds.
const REQUEST_BUCKETS: [f64; 9] = [0.000_1, 0.000_25, 0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0];
/// Upper bounds of the buckets of delivery attempts, in seconds. An attempt ends after 15 s.
const ATTEMPT_BUCKETS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0];

/// Counters since the start, shared by all worlds of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: LabelledCounter<5>,
    request_seconds: Histogram,
    connections_opened: Counter,
    connections_closed: Counter,
    attempts: LabelledCounter<7>,
    attempt_seconds: Histogram,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            requests: LabelledCounter {
                name: "http_requests",
                help: "Requests answered, by class of status.",
                label: "class",
                counters: ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| (class, Counter::default())),
            },
            request_seconds: Histogram::new(REQUEST_BUCKETS),
            connections_opened: Counter::default(),
            connections_closed: Counter::default(),
            attempts: LabelledCounter {
                name: "delivery_attempts",
                help: "Webhook delivery attempts that left the server, by result.",
                label: "result",
                counters: ["2xx", "3xx", "4xx", "5xx", "unreachable", "timed_out", "refused"]
                    .map(|result| (result, Counter::default())),
            },
            attempt_seconds: Histogram::new(ATTEMPT_BUCKETS),
        }
    }
}

impl Metrics {
    /// Counts a response and records the time that it took to create.
    pub(crate) fn on_response(&self, status: StatusCode, took: Duration) {
        self.requests.count(status_class(status.as_u16()));
        self.request_seconds.observe(took.as_secs_f64());
    }

    /// Counts an accepted connection.
    pub(crate) fn on_open(&self) {
        self.connections_opened.inc();
    }

    /// Counts a closed connection.
    pub(crate) fn on_close(&self) {
        self.connections_closed.inc();
    }

    /// Counts a delivery attempt and records the time that it took.
    pub(crate) fn on_attempt(&self, result: &AttemptResult, took: Duration) {
        self.attempts.count(match result {
            AttemptResult::Response(status) => status_class(*status),
            AttemptResult::Unreachable(_) => "unreachable",
            AttemptResult::TimedOut => "timed_out",
            AttemptResult::NotPublic(_) => "refused",
        });
        self.attempt_seconds.observe(took.as_secs_f64());
    }

    /// Returns the metrics page.
    ///
    /// `times`: the service clock and the time of the next scheduled event; `None` after an internal error of the
    /// world.
    ///
    /// # Errors
    ///
    /// None in practice: writing to a string does not fail.
    pub(crate) fn page(
        &self,
        times: Option<(Timestamp, Option<Timestamp>)>,
        totals: WorldTotals,
    ) -> Result<String, fmt::Error> {
        // In this order: a connection closes after it opened, so the difference is never negative.
        let closed = self.connections_closed.get();
        let opened = self.connections_opened.get();
        let mut page = Registry::with_prefix("chargeproof");
        let gauges = [
            ("http_connections", "Connections open", None, Some(opened.saturating_sub(closed))),
            ("healthy", "1, or 0 after the world stopped on a bug", None, Some(u64::from(times.is_some()))),
            ("worlds", "Open worlds", None, Some(totals.open as u64)),
            ("worlds_memory", "Estimated memory of all worlds", Some(Unit::Bytes), Some(totals.held_bytes)),
            ("worlds_memory_max", "Bound of that memory", Some(Unit::Bytes), Some(totals.held_bytes_max)),
            ("worlds_opening", "Stored worlds that are not open yet", None, Some(totals.opening as u64)),
            ("resident_memory", "Resident memory of the server process", Some(Unit::Bytes), resident_bytes()),
        ];
        for (name, help, unit, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            match unit {
                Some(unit) => page.register_with_unit(name, help, unit, gauge),
                None => page.register(name, help, gauge),
            }
        }
        let (now, due) = times.map_or((None, None), |(now, due)| (Some(now), due));
        let times = [
            ("service_time", "The time that the service clock shows", now),
            ("service_next_due", "The time of the next automatic change", due),
        ];
        for (name, help, time) in times {
            if let Some(time) = time {
                page.register_with_unit(name, help, Unit::Seconds, ConstGauge::new(seconds(time)));
            }
        }
        page.register("http_connections_accepted", "Connections accepted", ConstCounter::new(opened));
        page.register("worlds_opened", "Worlds opened on request", ConstCounter::new(totals.opened));
        let durations = [
            ("http_request_duration", "Time to make a response", &self.request_seconds),
            ("delivery_attempt_duration", "Time of a webhook delivery attempt", &self.attempt_seconds),
        ];
        for (name, help, histogram) in durations {
            page.register_with_unit(name, help, Unit::Seconds, histogram.clone());
        }
        page.register_collector(Box::new(self.requests.clone()));
        page.register_collector(Box::new(self.attempts.clone()));
        let mut text = String::with_capacity(4_096);
        text::encode(&mut text, &page)?;
        Ok(text)
    }
}

/// The totals over all worlds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WorldTotals {
    /// The number of open worlds, including the first.
    pub(crate) open: usize,
    /// The number of worlds opened on request since the start.
    pub(crate) opened: u64,
    /// The number of stored worlds that are not open yet.
    pub(crate) opening: usize,
    /// The estimated memory of all worlds in bytes.
    pub(crate) held_bytes: u64,
    /// The limit of `held_bytes`.
    pub(crate) held_bytes_max: u64,
}

/// Counters of one name, distinguished by one label, in a fixed order.
#[derive(Clone, Debug)]
struct LabelledCounter<const N: usize> {
    name: &'static str,
    help: &'static str,
    label: &'static str,
    counters: [(&'static str, Counter); N],
}

impl<const N: usize> LabelledCounter<N> {
    /// Increments the counter of a label. Unlisted labels are not counted.
    fn count(&self, label: &str) {
        if let Some((_, counter)) = self.counters.iter().find(|(listed, _)| *listed == label) {
            counter.inc();
        }
    }
}

impl<const N: usize> Collector for LabelledCounter<N> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Counter)?;
        for (value, counter) in &self.counters {
            counter.encode(family.encode_family(&[(self.label, *value)])?)?;
        }
        Ok(())
    }
}

/// Returns the class of a status, such as `4xx`; empty for an invalid status.
const fn status_class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "",
    }
}

/// Returns the resident memory of the process in bytes; `None` where the operating system does not provide it as a
/// file.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

fn seconds(time: Timestamp) -> f64 {
    Duration::from_micros(time.0).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_requests_connections_and_attempts() {
        let metrics = Metrics::default();
        for status in [200, 201, 404, 500, 999] {
            metrics.on_response(
                StatusCode::from_u16(status).expect("statuses in tests are valid"),
                Duration::from_millis(2),
            );
        }
        for result in [AttemptResult::Response(204), AttemptResult::Response(410), AttemptResult::TimedOut] {
            metrics.on_attempt(&result, Duration::from_secs(3));
        }
        metrics.on_open();
        metrics.on_open();
        metrics.on_close();
        let totals = WorldTotals { open: 3, opened: 5, opening: 2, held_bytes: 7, held_bytes_max: 11 };
        let times = Some((Timestamp(1_500_000), Some(Timestamp(2_000_001))));
        let page = metrics.page(times, totals).expect("writing to a string does not fail");
        // The memory of the process differs between runs.
        let is_fixed = |line: &&str| !line.starts_with("chargeproof_resident_memory");
        insta::assert_snapshot!(
            page.lines().filter(is_fixed).map(|line| format!("{line}\n")).collect::<String>()
        );
    }

    #[test]
    fn a_broken_world_has_no_time() {
        let page =
            Metrics::default().page(None, WorldTotals::default()).expect("writing to a string does not fail");
        assert!(page.contains("\nchargeproof_healthy 0\n"), "{page}");
        assert!(!page.contains("service_time"), "{page}");
    }
}
