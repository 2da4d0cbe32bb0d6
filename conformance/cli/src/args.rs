//! The command line.

mod fuzz;
mod handler;
mod load;
mod receiver;
mod receiving;
mod sweep;

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::PossibleValuesParser};
use conformance::{Part, report};
pub(crate) use fuzz::Fuzz;
pub(crate) use handler::{EndpointMode, HandlerFormat, Try};
pub(crate) use load::{Load, Mix};
pub(crate) use receiver::{Judge as JudgeDeliveries, Listen, Receiver, Secrets};
pub(crate) use receiving::Receiving;
use reference_core::time::Timestamp;
use reference_server::Forward;
pub(crate) use sweep::{Merge, Sweep, SweepTask};

/// Reference server, simulator and conformance suite for the crypto payment service API.
#[derive(Debug, Parser)]
#[command(version, about, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Settings for every command; `chargeproof.toml` in this directory is read if it is there
    #[arg(long, global = true, value_name = "FILE", display_order = 100)]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// For scripts: one JSON document
    Json,
}

/// How the result of a check is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Text,
    /// For programs, as report.schema.json describes it
    Json,
    /// For CI systems that count tests
    Junit,
    /// For the summary of a job
    Markdown,
    /// For a browser: one file
    Html,
    /// Annotations for a GitHub workflow
    Github,
}

impl From<ReportFormat> for report::Format {
    fn from(format: ReportFormat) -> report::Format {
        match format {
            ReportFormat::Text => report::Format::Text,
            ReportFormat::Json => report::Format::Json,
            ReportFormat::Junit => report::Format::Junit,
            ReportFormat::Markdown => report::Format::Markdown,
            ReportFormat::Html => report::Format::Html,
            ReportFormat::Github => report::Format::Github,
        }
    }
}

/// `html=report.html`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportFile {
    pub(crate) format: ReportFormat,
    pub(crate) path: PathBuf,
}

/// What a check and a judgement tell, and where.
#[derive(Debug, Args)]
pub(crate) struct Reports {
    /// How the report is printed
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Write the report into a file as well; may be given several times
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_report_file)]
    pub(crate) report: Vec<ReportFile>,
}

fn parse_report_file(text: &str) -> Result<ReportFile, String> {
    const TAKES: &str = "takes FORMAT=FILE such as html=report.html";
    let (format, path) = text.split_once('=').ok_or(TAKES)?;
    let format = ReportFormat::from_str(format, false).map_err(|_| {
        let formats = ReportFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<_> = formats.map(|it| it.get_name().to_owned()).collect();
        format!("{TAKES}; a FORMAT is one of {}", names.join(", "))
    })?;
    if path.is_empty() {
        return Err(TAKES.to_owned());
    }
    Ok(ReportFile { format, path: path.into() })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the reference server, in memory, on a simulated chain
    Serve(Serve),
    /// Play scenario files and compare what happens with their transcripts
    Play(Play),
    /// Judge an implementation; without an address, the built-in server
    Check(Box<Check>),
    /// Play random worlds, judge them by laws, and make what breaks one small
    Sweep(Box<Sweep>),
    /// Catch webhook deliveries and say what is wrong with their signatures
    #[command(subcommand)]
    Receiver(Receiver),
    /// Ask an implementation random questions, and tell the shortest ones that break a law
    Fuzz(Box<Fuzz>),
    /// Ask a server as often as it answers, or at a rate, and measure
    Load(Box<Load>),
    /// Judge a recording that `check --record` kept, or a HAR file, without the server
    Judge(Judge),
}

/// What moves the service clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Clock {
    /// Real time
    Wall,
    /// Real time, `--speed` times as fast
    Fast,
    /// Stands still until `/sandbox` moves it
    Frozen,
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Where to listen [default: 127.0.0.1:8402]; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_listen)]
    pub(crate) listen: Option<SocketAddr>,
    /// What every key, code and id is drawn from; the same seed gives the same bytes [default: random]
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    pub(crate) seed: Option<u64>,
    /// What moves the service clock [default: wall]
    #[arg(long, value_enum)]
    pub(crate) clock: Option<Clock>,
    /// Seconds of service time in a second, for `--clock fast` [default: 60]
    #[arg(long, value_name = "N", value_parser = parse_speed)]
    pub(crate) speed: Option<NonZeroU32>,
    /// What the service clock shows at first, such as 2026-01-05T09:00:00Z [default: now]
    #[arg(long, value_name = "T", value_parser = parse_start)]
    pub(crate) start: Option<Timestamp>,
    /// The address under which clients reach the server, if it is another
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Requests per minute and key, or `off` [default: 120]
    #[arg(long, value_name = "N|off", value_parser = parse_rate_limit)]
    pub(crate) rate_limit: Option<RateLimit>,
    /// Post what goes to this host to a local address instead, for development; may be repeated
    #[arg(long, value_name = "https://HOST=http://LOCAL", value_parser = Forward::parse)]
    pub(crate) forward: Vec<Forward>,
    /// Trust these certificate authorities too when posting webhooks (PEM)
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Write address, keys and seed into this file once the server is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Play {
    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Scenario files, or directories with some; the built-in scenarios if none are named
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Another seed than the scenarios': expectations must hold, transcripts are not compared
    #[arg(long, value_name = "N", value_parser = parse_seed, conflicts_with = "bless")]
    pub(crate) seed: Option<u64>,
    /// Write the transcripts anew
    #[arg(long, requires = "paths")]
    pub(crate) bless: bool,
    /// Play into a served reference with a frozen clock instead of this process
    #[arg(long, value_name = "URL")]
    pub(crate) against: Option<String>,
    /// Print the transcripts
    #[arg(long, short)]
    pub(crate) transcript: bool,
}

/// What a check asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Profile {
    /// What the specification says, and nothing else
    Spec,
    /// Also what the reference server chose where the specification leaves a choice
    Extended,
}

impl From<Profile> for conformance::Profile {
    fn from(profile: Profile) -> conformance::Profile {
        match profile {
            Profile::Spec => conformance::Profile::Spec,
            Profile::Extended => conformance::Profile::Extended,
        }
    }
}

/// What stands below the options of `check`.
const CHECK_HELP: &str = "\
Keys are never given on the command line. They come from the environment, or from files that \
chargeproof.toml names (--init writes one):
  CHARGEPROOF_LIVE_KEY           a key of live mode; only read with
  CHARGEPROOF_TEST_KEY           a key of test mode that nobody else uses meanwhile
  CHARGEPROOF_SECOND_KEY         another key of the same account and mode as the test key
  CHARGEPROOF_OTHER_ACCOUNT_KEY  a key of another account
  CHARGEPROOF_REVOKED_KEY        a key that was revoked
The first two are needed, the others let more be judged. The built-in server brings its own.

A PATTERN is the name of a statement, in which * stands for anything: paging.*, *.json, isolation.lists. \
Several are separated by commas. `chargeproof check --list` prints the names.

Exit codes: 0 all required statements judged and held, 1 a violation, 2 wrong usage or configuration, \
3 not all could be judged, 4 the target does not answer.";

#[derive(Debug, Args)]
#[command(after_long_help = CHECK_HELP, after_help = "Keys come from the environment: see --help.")]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) reports: Reports,
    /// The service's base address; without one, `target` of chargeproof.toml, and else the built-in server
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Judge the built-in server, whatever chargeproof.toml says
    #[arg(long, conflicts_with = "url")]
    pub(crate) built_in: bool,
    /// Only the statements that fit these patterns, such as `paging.*`
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Not the statements that fit these patterns
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// What you can't offer: such statements are left out, and every report says so
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = parts())]
    pub(crate) without: Vec<String>,
    #[command(flatten)]
    pub(crate) receiving: Receiving,
    /// Leave out the burst that tests the rate limit, and the wait after it
    #[arg(long)]
    pub(crate) quick: bool,
    /// Burst once more right after the server's minute, which tells the kind of its limiter; two minutes longer
    #[arg(long, conflicts_with = "quick")]
    pub(crate) thorough: bool,
    /// What to ask for [default: spec]
    #[arg(long, value_enum)]
    pub(crate) profile: Option<Profile>,
    /// Open two charges with the test key, to see whether pages stay stable meanwhile
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// For the same: `sh -c` runs this, which creates a record in test mode and returns when it is there.
    /// CHARGEPROOF_URL and CHARGEPROOF_TEST_KEY stand in its environment
    #[arg(long, value_name = "COMMAND")]
    pub(crate) hook: Option<String>,
    /// How long one request may take [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) time_limit: Option<u64>,
    /// Trust the certificates in this PEM file too, for a target over https
    #[arg(long, value_name = "FILE", conflicts_with = "built_in")]
    pub(crate) cacert: Option<PathBuf>,
    /// Keep everything that was asked and answered, without the keys; `chargeproof judge` reads it
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Hide personal values and amounts from the recording and from every report
    #[arg(long)]
    pub(crate) privacy: bool,
    /// Print the catalogue of statements and judge nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Write a commented configuration and judge nothing [default FILE: chargeproof.toml]
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "chargeproof.toml",
        conflicts_with_all = ["url", "list", "built_in"]
    )]
    pub(crate) init: Option<PathBuf>,
}

fn parts() -> PossibleValuesParser {
    PossibleValuesParser::new(Part::ALL.map(Part::word))
}

/// How long something may take.
pub(crate) fn parse_seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=300) => Ok(seconds),
        _ => Err("takes a whole number of seconds from 1 to 300".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Judge {
    #[command(flatten)]
    pub(crate) reports: Reports,
    /// The recording, or a HAR file of a browser or proxy, of which less can be judged
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

pub(crate) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "takes an IP address and a port such as 127.0.0.1:8402 or [::1]:8402".to_owned())
}

fn parse_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("takes a whole number from 0 to {}", u64::MAX))
}

fn parse_speed(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("takes a whole number from 1 to {}", u32::MAX))
}

fn parse_start(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "takes a moment in UTC such as 2026-01-05T09:00:00Z".to_owned())
}

/// A limit, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit(pub(crate) Option<u32>);

pub(crate) fn parse_rate_limit(text: &str) -> Result<RateLimit, String> {
    match text {
        "off" => Ok(RateLimit(None)),
        _ => match text.parse() {
            Ok(n @ 1..=1_000_000) => Ok(RateLimit(Some(n))),
            _ => Err("takes `off` or a whole number from 1 to 1000000".to_owned()),
        },
    }
}
