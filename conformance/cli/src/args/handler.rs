//! The command line of `receiver try`, which tests a webhook handler.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conformance::handler;

/// The format of a handler report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HandlerFormat {
    /// Human-readable text
    Text,
    /// Machine-readable JSON
    Json,
    /// JUnit XML for CI systems
    Junit,
    /// Markdown for a job summary
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

/// The mode of the endpoint whose deliveries the handler gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EndpointMode {
    /// Real coins
    Live,
    /// Test networks
    Test,
}

/// The default of `--time-limit`, in seconds.
pub(crate) const DEFAULT_TIME_LIMIT: u64 = 15;
/// The default of `--settle`, in seconds.
pub(crate) const DEFAULT_SETTLE_TIME: u64 = 2;

const EXAMPLES: &str = "\
Examples:
  chargeproof receiver try http://127.0.0.1:3000/hooks --secret-env WEBHOOK_SECRET --without acts
  chargeproof receiver try http://127.0.0.1:3000/hooks --secret-env WEBHOOK_SECRET \\
      --acted 'sqlite3 shop.db \"select count(*) from paid where charge = \\\"$CHARGEPROOF_CHARGE\\\"\"'
  chargeproof receiver try --list";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Try {
    /// URL of your webhook handler; not needed with `--list`
    #[arg(value_name = "URL", required_unless_present = "list")]
    pub(crate) url: Option<String>,
    /// Environment variable with the secret of the endpoint
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub(crate) secret_env: Option<String>,
    /// Environment variable with the secret of the endpoint in the other mode, if your handler has one
    #[arg(long, value_name = "NAME")]
    pub(crate) other_mode_secret_env: Option<String>,
    /// Mode of the endpoint
    #[arg(long, value_enum, default_value_t = EndpointMode::Test)]
    pub(crate) mode: EndpointMode,
    /// A shell command that prints, as a whole number, how many times your handler processed the charge
    /// $CHARGEPROOF_CHARGE
    #[arg(long, value_name = "COMMAND")]
    pub(crate) acted: Option<String>,
    /// A shell command to run before each trial, for example to create the order of $CHARGEPROOF_CHARGE
    #[arg(long, value_name = "COMMAND")]
    pub(crate) prepare: Option<String>,
    /// A JSON file with a charge in the format that your handler expects; its code and status are
    /// replaced in each trial
    #[arg(long, value_name = "FILE")]
    pub(crate) sample: Option<PathBuf>,
    /// Judge only the statements that match these patterns, such as 'acts.*'
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Skip the statements that match these patterns
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Leave out statements: `acts`, if no command can count how many times the handler processed a charge
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = ["acts"])]
    pub(crate) without: Vec<String>,
    /// Treat warnings as failures. Warnings are about recommendations of the specification, such as checking the
    /// timestamp
    #[arg(long)]
    pub(crate) strict: bool,
    /// Seed of ids and codes. A handler that remembers ids needs a new seed for each run [default: random]
    #[arg(long, value_name = "N", value_parser = super::whole_number::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Time limit of each response
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIME_LIMIT, value_parser = super::parse_seconds)]
    pub(crate) time_limit: u64,
    /// Time that the handler may take to process a delivery after it has responded
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_SETTLE_TIME, value_parser = super::parse_seconds)]
    pub(crate) settle: u64,
    /// Prefix of the webhook headers [default: X-Service]
    #[arg(long, value_name = "PREFIX", value_parser = super::parse_header_prefix)]
    pub(crate) header_prefix: Option<String>,
    /// PEM file with additional certificates to trust, for an HTTPS handler
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Format of the report on stdout
    #[arg(long, value_enum, default_value_t = HandlerFormat::Text)]
    pub(crate) format: HandlerFormat,
    /// Also write the report to a file, such as junit=report.xml; repeatable
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_report)]
    pub(crate) report: Vec<(HandlerFormat, PathBuf)>,
    /// Print the catalogue of statements and exit
    #[arg(long)]
    pub(crate) list: bool,
}

/// Parses a value of `--report`.
fn parse_report(text: &str) -> Result<(HandlerFormat, PathBuf), String> {
    const ALLOWED: &str =
        "allowed: FORMAT=FILE such as junit=report.xml; a FORMAT is one of text, json, junit, markdown";
    let (format, path) = text.split_once('=').ok_or(ALLOWED)?;
    let format = HandlerFormat::from_str(format, false).map_err(|_| ALLOWED)?;
    if path.is_empty() { Err(ALLOWED.to_owned()) } else { Ok((format, path.into())) }
}
