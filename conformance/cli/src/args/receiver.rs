//! The command line of `receiver`.

use super::Format;
use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};
use conformance::receiver::{HandlerUrl, ResponseScript};

#[derive(Debug, Subcommand)]
pub(crate) enum Receiver {
    /// Receive webhooks until Ctrl-C and verify their signatures; exits with 1 if any is invalid
    Listen(Listen),
    /// Verify the webhooks in a file written by `listen --record`, each as of its time of arrival
    Judge(JudgeDeliveries),
    /// Test your webhook handler with valid deliveries and with deliveries that it must refuse
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
    /// Address and port to listen on; port 0 selects a free port [default: 127.0.0.1:8403]
    #[arg(long, value_name = "ADDR:PORT", value_parser = super::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// Port on 127.0.0.1 to listen on
    #[arg(long, value_name = "P", value_parser = super::whole_number::<u16>(0..=u64::from(u16::MAX)), conflicts_with = "listen")]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) verification: VerificationOptions,
    /// Responses to send, in order; the last one is repeated. Each is a status code, `timeout` or `close` [default:
    /// 200]
    #[arg(long, value_name = "500,200,…")]
    pub(crate) answer: Option<ResponseScript>,
    /// Forward each request to this http:// address, and return its response
    #[arg(long, value_name = "URL", conflicts_with = "answer")]
    pub(crate) forward_to: Option<HandlerUrl>,
    /// Append each request to this file, as one line of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write the address to this file as JSON when the receiver is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = JUDGE_EXAMPLES)]
pub(crate) struct JudgeDeliveries {
    /// A file written by `receiver listen --record`
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) verification: VerificationOptions,
}

/// Options for verifying deliveries, and the output format.
#[derive(Debug, Args)]
pub(crate) struct VerificationOptions {
    /// Format of the output: text, or one line of JSON per delivery
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Environment variable with the secret of an endpoint; repeatable
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) secret_env: Vec<String>,
    /// Environment variable with an endpoint secret of the other mode, to recognise deliveries that were sent to the
    /// wrong endpoint
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) other_mode_secret_env: Vec<String>,
    /// Prefix of the webhook headers [default: X-Service]
    #[arg(long, value_name = "PREFIX", value_parser = super::parse_header_prefix)]
    pub(crate) header_prefix: Option<String>,
}
