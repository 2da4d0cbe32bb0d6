//! What `chargeproof receiver try` takes.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use conformance::handler;

/// How the result is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HandlerFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For CI systems that count tests
    Junit,
    /// For the summary of a job
    Markdown,
}

impl From<HandlerFormat> for handler::Format {
    fn from(format: HandlerFormat) -> handler::Format {
        match format {
            HandlerFormat::Text => handler::Format::Text,
            HandlerFormat::Json => handler::Format::Json,
            HandlerFormat::Junit => handler::Format::Junit,
            HandlerFormat::Markdown => handler::Format::Markdown,
        }
    }
}

/// The mode of the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndpointMode {
    /// Real coins
    Live,
    /// Test networks
    Test,
}

#[derive(Debug, Args)]
pub(crate) struct Try {
    /// Where your handler takes deliveries; none is needed with `--list`
    #[arg(value_name = "URL", required_unless_present = "list")]
    pub(crate) url: Option<String>,
    /// The environment variable that holds the endpoint's secret
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub(crate) secret_env: Option<String>,
    /// The same for the endpoint of the other mode, if your handler knows one
    #[arg(long, value_name = "NAME")]
    pub(crate) other_mode_secret_env: Option<String>,
    /// The mode of the endpoint
    #[arg(long, value_enum, default_value_t = EndpointMode::Live)]
    pub(crate) mode: EndpointMode,
    /// Prints how often your handler acted on the charge `$CHARGEPROOF_CHARGE`, as a whole number; run by `sh -c`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) acted: Option<String>,
    /// Runs before each trial, such as to make the order of `$CHARGEPROOF_CHARGE`; run by `sh -c`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) prepare: Option<String>,
    /// A charge as your handler knows it, as JSON; its code and status are set for each trial
    #[arg(long, value_name = "FILE")]
    pub(crate) sample: Option<PathBuf>,
    /// Only the statements that fit these patterns, such as `acts.*`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Not the statements that fit these patterns
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// What you can't offer: `acts`, if nothing can tell how often the handler acted
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["acts"])]
    pub(crate) without: Vec<String>,
    /// What ids and codes are drawn from; a handler that remembers them takes a seed once [default: random]
    #[arg(long, value_name = "N", value_parser = super::parse_seed)]
    pub(crate) seed: Option<u64>,
    /// How many seconds an answer may take
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = parse_secs)]
    pub(crate) time_limit: Duration,
    /// How many seconds the handler may take to act after its answer
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = parse_secs)]
    pub(crate) settle: Duration,
    /// What the webhook headers begin with [default: X-Service]
    #[arg(long, value_name = "PREFIX", value_parser = super::receiver::parse_header_prefix)]
    pub(crate) header_prefix: Option<String>,
    /// Trust the certificates in this PEM file too, for a handler over https
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = HandlerFormat::Text)]
    pub(crate) format: HandlerFormat,
    /// Write the report into a file as well; may be given several times
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_report)]
    pub(crate) report: Vec<(HandlerFormat, PathBuf)>,
    /// Print what is tried and try nothing
    #[arg(long)]
    pub(crate) list: bool,
}

fn parse_secs(text: &str) -> Result<Duration, String> {
    match text.parse::<u64>() {
        Ok(secs @ 1..=300) => Ok(Duration::from_secs(secs)),
        _ => Err("takes a whole number of seconds from 1 to 300".to_owned()),
    }
}

fn parse_report(text: &str) -> Result<(HandlerFormat, PathBuf), String> {
    const TAKES: &str =
        "takes FORMAT=FILE such as junit=report.xml; a FORMAT is one of text, json, junit, markdown";
    let (format, path) = text.split_once('=').ok_or(TAKES)?;
    let format = HandlerFormat::from_str(format, false).map_err(|_| TAKES)?;
    if path.is_empty() { Err(TAKES.to_owned()) } else { Ok((format, path.into())) }
}
