//! The command line of `receiver`.

use super::Format;
use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};
use conformance::receiver::{Answers, ForwardTo};

#[derive(Debug, Subcommand)]
pub(crate) enum Receiver {
    /// Receive webhooks until Ctrl-C and verify their signatures; exit code 1 if one was invalid
    Listen(Listen),
    /// Verify a file of `listen --record` again, each request at its time of arrival
    Judge(JudgeDeliveries),
    /// Test your own webhook handler with deliveries that it must accept and some that it must refuse
    Try(Box<super::Try>),
}

const LISTEN_EXAMPLES: &str = "\
Examples:
  chargeproof receiver listen --secret-env WEBHOOK_SECRET
  chargeproof receiver listen --forward-to http://127.0.0.1:3000/hooks --secret-env WEBHOOK_SECRET
  chargeproof receiver listen --answer 500,500,200 --record deliveries.jsonl";

const JUDGE_EXAMPLES: &str = "\
Example:
  chargeproof receiver judge deliveries.jsonl --secret-env WEBHOOK_SECRET";

#[derive(Debug, Args)]
#[command(after_help = LISTEN_EXAMPLES)]
pub(crate) struct Listen {
    /// Address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8403]
    #[arg(long, value_name = "ADDR:PORT", value_parser = super::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Port on 127.0.0.1 to listen on
    #[arg(long, value_name = "P", value_parser = super::whole::<u16>(0..=u64::from(u16::MAX)), conflicts_with = "listen")]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) secrets: Secrets,
    /// Responses in order; the last one is repeated. Each is a status, `timeout` or `close` [default: 200]
    #[arg(long, value_name = "500,200,…")]
    pub(crate) answer: Option<Answers>,
    /// Forward each request to this http:// address, and return its response
    #[arg(long, value_name = "URL", conflicts_with = "answer")]
    pub(crate) forward_to: Option<ForwardTo>,
    /// Append each request to this file, as one line of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write the address to this file as JSON once the receiver is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = JUDGE_EXAMPLES)]
pub(crate) struct JudgeDeliveries {
    /// A file of `receiver listen --record`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) secrets: Secrets,
}

/// Options for verifying deliveries.
#[derive(Debug, Args)]
pub(crate) struct Secrets {
    /// Format of the output: text, or one line of JSON for each delivery
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Environment variable that holds an endpoint's secret; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) secret_env: Vec<String>,
    /// Environment variable that holds a secret of the other mode; a delivery that it verifies went to the wrong endpoint
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) other_mode_secret_env: Vec<String>,
    /// Prefix of the webhook headers [default: X-Service]
    #[arg(long, value_name = "PREFIX", value_parser = super::parse_header_prefix)]
    pub(crate) header_prefix: Option<String>,
}
