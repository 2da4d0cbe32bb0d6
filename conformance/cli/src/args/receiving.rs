//! The webhook options of `check`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use url::Url;

#[derive(Debug, Args)]
#[command(next_help_heading = "Webhooks")]
pub(crate) struct Receiving {
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
    #[arg(long, value_name = "TIME", value_parser = parse_span, requires = "receiver")]
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

fn parse_span(text: &str) -> Result<Duration, String> {
    const SPAN_MAX: Duration = Duration::from_secs(24 * 60 * 60);
    const ALLOWED: &str = "allowed: a time of at most 24h such as 90s, 5m or 1h";
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or(ALLOWED)?;
    let number: u64 = number.parse().map_err(|_| ALLOWED)?;
    let secs = match unit {
        "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(60 * 60),
        _ => None,
    };
    secs.map(Duration::from_secs).filter(|span| *span <= SPAN_MAX).ok_or_else(|| ALLOWED.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_span(text: &str, expected: Option<u64>) {
        assert_eq!(parse_span(text).ok(), expected.map(Duration::from_secs), "{text}");
    }

    #[test]
    fn a_span_is_a_number_and_a_unit() {
        check_span("0s", Some(0));
        check_span("90s", Some(90));
        check_span("5m", Some(300));
        check_span("24h", Some(86_400));
    }

    #[test]
    fn other_spans_are_refused() {
        for text in ["", "s", "60", "1d", "-1s", "1.5s", "25h", "18446744073709551615h", "5µ", "1 s"] {
            check_span(text, None);
        }
    }
}
