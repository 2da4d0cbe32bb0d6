//! The server's metrics in the text format of Prometheus, always in the same order.

use std::{
    fmt::Write,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use http::StatusCode;
use reference_core::time::Timestamp;

use crate::worlds::Census;

/// Counts since the start. They order nothing, so relaxed is enough.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Answers by the first digit of their status, from 1 to 5.
    answers: [AtomicU64; 5],
    opened: AtomicU64,
    closed: AtomicU64,
}

impl Metrics {
    pub(crate) fn on_answer(&self, status: StatusCode) {
        if let Some(count) = self.answers.get(usize::from(status.as_u16() / 100).wrapping_sub(1)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn on_open(&self) {
        self.opened.fetch_add(1, Relaxed);
    }

    pub(crate) fn on_close(&self) {
        self.closed.fetch_add(1, Relaxed);
    }

    /// The whole page. `times`: what the service clock shows and when something is due; `None` if the world
    /// is broken. `census`: how many worlds there are.
    pub(crate) fn page(&self, times: Option<(Timestamp, Option<Timestamp>)>, census: Census) -> String {
        let mut page = String::with_capacity(2_048);
        page.push_str("# HELP chargeproof_http_requests_total Requests answered, by class of status.\n");
        page.push_str("# TYPE chargeproof_http_requests_total counter\n");
        for (class, count) in (1..).zip(&self.answers) {
            let count = count.load(Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(page, "chargeproof_http_requests_total{{class=\"{class}xx\"}} {count}");
        }
        // In this order: a connection closes after it opened, so the difference never falls below 0.
        let closed = self.closed.load(Relaxed);
        let opened = self.opened.load(Relaxed);
        let (now, due) = times.map_or((None, None), |(now, due)| (Some(now), due));
        let figures = [
            ("http_connections_total", "counter", "Connections accepted.", Some(opened.to_string())),
            (
                "http_connections",
                "gauge",
                "Connections open.",
                Some(opened.saturating_sub(closed).to_string()),
            ),
            (
                "healthy",
                "gauge",
                "1, or 0 once the world has met a bug.",
                Some(u8::from(times.is_some()).to_string()),
            ),
            ("worlds", "gauge", "Worlds that are open.", Some(census.open.to_string())),
            (
                "worlds_memory_bytes",
                "gauge",
                "Memory that all worlds hold, estimated.",
                Some(census.held_bytes.to_string()),
            ),
            (
                "worlds_memory_max_bytes",
                "gauge",
                "Memory that all worlds may hold.",
                Some(census.held_bytes_max.to_string()),
            ),
            (
                "worlds_opening",
                "gauge",
                "Kept worlds that are yet to be opened.",
                Some(census.opening.to_string()),
            ),
            ("worlds_opened_total", "counter", "Worlds opened on request.", Some(census.opened.to_string())),
            (
                "resident_memory_bytes",
                "gauge",
                "Memory that the server holds, all worlds together.",
                resident_bytes().map(|bytes| bytes.to_string()),
            ),
            ("service_time_seconds", "gauge", "What the service clock shows.", now.map(seconds)),
            ("service_next_due_seconds", "gauge", "When something happens by itself.", due.map(seconds)),
        ];
        for (name, kind, help, value) in figures {
            let Some(value) = value else { continue };
            let _ = writeln!(page, "# HELP chargeproof_{name} {help}");
            let _ = writeln!(page, "# TYPE chargeproof_{name} {kind}");
            let _ = writeln!(page, "chargeproof_{name} {value}");
        }
        page
    }
}

/// `None` where the operating system does not say it in a file.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

fn seconds(moment: Timestamp) -> String {
    format!("{}.{:06}", moment.unix_secs(), moment.0 % 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(metrics: &Metrics, times: Option<(Timestamp, Option<Timestamp>)>, expected: &[&str]) {
        let page =
            metrics.page(times, Census { open: 3, opened: 5, opening: 2, held_bytes: 7, held_bytes_max: 11 });
        // What the machine holds differs from run to run.
        let is_fixed = |line: &&str| !line.starts_with('#') && !line.contains("resident_memory");
        let figures: Vec<_> = page.lines().filter(is_fixed).collect();
        assert_eq!(figures, expected);
    }

    #[test]
    fn the_page_counts_answers_by_class_and_open_connections() {
        let metrics = Metrics::default();
        for status in [200, 201, 404, 500, 999] {
            metrics.on_answer(StatusCode::from_u16(status).expect("a status"));
        }
        metrics.on_open();
        metrics.on_open();
        metrics.on_close();
        check(
            &metrics,
            Some((Timestamp(1_500_000), Some(Timestamp(2_000_001)))),
            &[
                "chargeproof_http_requests_total{class=\"1xx\"} 0",
                "chargeproof_http_requests_total{class=\"2xx\"} 2",
                "chargeproof_http_requests_total{class=\"3xx\"} 0",
                "chargeproof_http_requests_total{class=\"4xx\"} 1",
                "chargeproof_http_requests_total{class=\"5xx\"} 1",
                "chargeproof_http_connections_total 2",
                "chargeproof_http_connections 1",
                "chargeproof_healthy 1",
                "chargeproof_worlds 3",
                "chargeproof_worlds_memory_bytes 7",
                "chargeproof_worlds_memory_max_bytes 11",
                "chargeproof_worlds_opening 2",
                "chargeproof_worlds_opened_total 5",
                "chargeproof_service_time_seconds 1.500000",
                "chargeproof_service_next_due_seconds 2.000001",
            ],
        );
    }

    #[test]
    fn a_broken_world_has_no_time() {
        let page = Metrics::default().page(None, Census::default());
        assert!(page.contains("\nchargeproof_healthy 0\n"), "{page}");
        assert!(!page.contains("service_time"), "{page}");
    }

    #[test]
    fn every_figure_says_what_it_is_first() {
        let page = Metrics::default().page(Some((Timestamp(0), Some(Timestamp(0)))), Census::default());
        let mut described = "";
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                described = rest.split(' ').next().unwrap_or_default();
            } else if !line.starts_with('#') {
                assert!(line.starts_with(described) && !described.is_empty(), "{line}");
            }
        }
    }
}
