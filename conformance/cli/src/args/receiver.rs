//! What `chargeproof receiver` takes.

use super::Format;
use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Subcommand};
use conformance::receiver::{Answers, ForwardTo};

#[derive(Debug, Subcommand)]
pub(crate) enum Receiver {
    /// Listen until Ctrl-C; exit 1 if a delivery was not verified
    Listen(Listen),
    /// Judge a record of `listen --record` again, each request at the time at which it came
    Judge(Judge),
    /// Try your own handler with deliveries that it must take, and some that it must not
    Try(Box<super::Try>),
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Where to listen [default: 127.0.0.1:8403]; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", value_parser = super::parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// The port on 127.0.0.1 to listen on
    #[arg(long, value_name = "P", conflicts_with = "listen")]
    pub(crate) port: Option<u16>,
    #[command(flatten)]
    pub(crate) secrets: Secrets,
    /// The answers in order, the last one repeated: statuses, `timeout`, `close` [default: 200]
    #[arg(long, value_name = "500,200,…")]
    pub(crate) answer: Option<Answers>,
    /// Pass each request on to this http:// address, and its answer back
    #[arg(long, value_name = "URL", conflicts_with = "answer")]
    pub(crate) forward_to: Option<ForwardTo>,
    /// Append each request to this file, as a line of JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Write the address into this file once the receiver is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Judge {
    /// A record
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) secrets: Secrets,
}

/// What deliveries are verified with, and how that is told.
#[derive(Debug, Args)]
pub(crate) struct Secrets {
    /// How deliveries are printed: for people, or one line of JSON each
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// An environment variable that holds an endpoint's secret; may be given several times
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) secret_env: Vec<String>,
    /// The same for endpoints of the other mode: what they should get went astray
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) other_mode_secret_env: Vec<String>,
    /// What the webhook headers begin with [default: X-Service]
    #[arg(long, value_name = "PREFIX", value_parser = parse_header_prefix)]
    pub(crate) header_prefix: Option<String>,
}

pub(super) fn parse_header_prefix(text: &str) -> Result<String, String> {
    let fits = (1..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match fits {
        true => Ok(text.to_owned()),
        false => Err("takes 1 to 40 letters, digits and -".to_owned()),
    }
}
