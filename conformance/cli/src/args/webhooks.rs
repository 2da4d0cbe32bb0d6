//! The webhook options of `check`.

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::Args;
use reference_core::time::Span;
use url::Url;

/// The bounds of the time to receive webhooks.
const RECEIVE_SPANS: RangeInclusive<Span> = Span(0)..=Span::hours(24);

#[derive(Debug, Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct WebhookOptions {
    /// Receive webhooks at this address during the run. In your service, register this address plus /live as a live
    /// endpoint and plus /test as a test endpoint, and set CHARGEPROOF_LIVE_WEBHOOK_SECRET and
    /// CHARGEPROOF_TEST_WEBHOOK_SECRET to their secrets
    #[arg(long, value_name = "ADDR:PORT", value_parser = super::parse_listen, requires = "url")]
    pub(crate) receiver: Option<SocketAddr>,
    /// Public URL of the receiver if the service reaches it at a different address, for example through a tunnel
    #[arg(long, value_name = "URL", value_parser = parse_url, requires = "receiver")]
    pub(crate) public_url: Option<Url>,
    /// Time to receive webhooks, counted from the first request, such as 90s or 5m. Stops early when every endpoint has
    /// received every event type and all other requests are done [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = super::time_span(RECEIVE_SPANS), requires = "receiver")]
    pub(crate) receive_for: Option<Duration>,
    /// Event types that the endpoints are subscribed to, such as 'charge.*' [default: all]
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub(crate) subscribed: Vec<String>,
    /// Respond to the first two deliveries at the test endpoint with redirects, which the service must not follow
    #[arg(long, requires = "receiver")]
    pub(crate) redirect_trial: bool,
    /// A shell command that registers $CHARGEPROOF_ENDPOINT_URL as an endpoint in test mode, and fails if the service
    /// rejects it. It runs with the receiver's address and with addresses that the service must reject
    #[arg(long, value_name = "COMMAND", requires = "receiver")]
    pub(crate) register: Option<String>,
    /// Judge webhooks captured with `receiver listen --record`
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "receiver")]
    pub(crate) deliveries: Option<PathBuf>,
}

fn parse_url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| format!("allowed: a URL such as https://hooks.example ({error})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::time_span;

    #[track_caller]
    fn check_span(text: &str, expected: Option<u64>) {
        assert_eq!(time_span(RECEIVE_SPANS)(text).ok(), expected.map(Duration::from_secs), "{text}");
    }

    #[test]
    fn the_time_to_receive_is_at_most_a_day() {
        check_span("0s", Some(0));
        check_span("90s", Some(90));
        check_span("5m", Some(300));
        check_span("24h", Some(86_400));
        check_span("1h30m", Some(5_400));
    }

    #[test]
    fn other_spans_are_refused() {
        for text in ["", "s", "60", "2d", "-1s", "1.5s", "25h", "18446744073709551615h", "5µ", "1 s"] {
            check_span(text, None);
        }
    }
}
