//! The command line: one module for each command. `chargeproof.toml` accepts the same options; see `settings`.

mod check;
mod compare;
mod fuzz;
mod handler;
mod load;
mod play;
mod receiver;
mod report;
mod serve;
mod sweep;
mod trigger;
mod webhooks;

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf, str::FromStr, time::Duration};

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use clap_complete::Shell;
use reference_core::time::Span;
use simulator::demo::DemoFault;

pub(crate) use check::{Check, KeySet, Profile};
pub(crate) use compare::Compare;
pub(crate) use fuzz::Fuzz;
pub(crate) use handler::{DEFAULT_SETTLE_TIME, DEFAULT_TIME_LIMIT, EndpointMode, HandlerFormat, Try};
pub(crate) use load::{Load, Mix};
pub(crate) use play::Play;
pub(crate) use receiver::{JudgeDeliveries, Listen, Receiver, VerificationOptions};
pub(crate) use report::{JudgeRecording, ReportFile, ReportFormat, ReportOptions};
pub(crate) use serve::{Clock, Log, Serve};
pub(crate) use sweep::{Merge, Sweep, SweepTask};
pub(crate) use trigger::Trigger;
pub(crate) use webhooks::WebhookOptions;

/// The help below the list of commands.
const TOP_HELP: &str = "\
Examples:
  chargeproof check                                 test the built-in reference server
  chargeproof check https://api.example.com         test an implementation
  chargeproof serve                                 run the reference server
  chargeproof trigger charge.paid                   trigger an event on that server
  chargeproof receiver listen --secret-env SECRET   receive webhooks and explain invalid signatures

Exit codes:
  0    success
  1    violation or difference, such as a failed statement, violated invariant or invalid signature
  2    invalid usage or configuration
  3    incomplete: not every required statement could be judged
  4    the target did not respond
  5    failure of this program or machine: output cannot be written, or two identical runs differ
  130  interrupted by Ctrl-C or SIGTERM; results so far are reported";

/// Reference server, simulator and conformance test suite for the crypto payment service API.
#[derive(Debug, Parser)]
#[command(name = "chargeproof", version, about, max_term_width = 100, after_help = TOP_HELP)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Configuration file to use instead of ./chargeproof.toml. Command-line options override its settings
    #[arg(long, global = true, value_name = "FILE", display_order = 100)]
    pub(crate) config: Option<PathBuf>,
}

/// The format of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    Text,
    /// Machine-readable JSON
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the reference server on simulated chains, by default in memory
    Serve(Serve),
    /// Trigger an event on a running reference server, such as charge.paid
    Trigger(Trigger),
    /// Test an implementation against the specification, by default the built-in server
    Check(Box<Check>),
    /// Judge a recording made with `check --record`, or a HAR file, without sending requests
    Judge(JudgeRecording),
    /// Compare the verdicts of two implementations or recordings, and their behaviour where the specification is open
    Compare(Compare),
    /// Receive webhooks and verify their signatures, or test your own webhook handler
    #[command(subcommand)]
    Receiver(Receiver),
    /// Send random requests to an implementation and shrink those that cause violations
    Fuzz(Box<Fuzz>),
    /// Load-test a server, at a fixed or at the maximum rate
    Load(Box<Load>),
    /// Run scenario files and compare them with their golden transcripts
    Play(Play),
    /// Run random simulations, check invariants, shrink failures
    Sweep(Box<Sweep>),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example:\n  chargeproof completions bash > ~/.local/share/bash-completion/completions/chargeproof"
    )]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write a man page for every command
    #[command(after_help = "Example:\n  chargeproof man ~/.local/share/man/man1")]
    Man {
        /// The directory to write to; it is created if it is missing
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// Parses a socket address.
fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "allowed: an IP address and a port such as 127.0.0.1:8402 or [::1]:8402".to_owned())
}

/// Returns a parser of whole numbers within these bounds; its error states them.
fn whole_number<T: FromStr>(bounds: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let is_within = text.parse().is_ok_and(|number: u64| bounds.contains(&number));
        let number = if is_within { text.parse().ok() } else { None };
        number.ok_or_else(|| format!("allowed: a whole number from {} to {}", bounds.start(), bounds.end()))
    }
}

/// Returns a parser of lengths of time within these bounds, such as `1h30m`; its error states them.
fn time_span(bounds: RangeInclusive<Span>) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| match Span::parse(text).filter(|span| bounds.contains(span)) {
        Some(span) => Ok(Duration::from_micros(span.0)),
        None => {
            let (start, end) = (bounds.start(), bounds.end());
            Err(format!("allowed: a length of time such as 30s, 5m or 1h30m, from {start} to {end}"))
        }
    }
}

/// The bounds of a length of time in which something runs.
const RUN_SPANS: RangeInclusive<Span> = Span(1)..=Span::days(365);

/// Returns a parser of the names of demo faults.
fn demo_fault() -> impl TypedValueParser<Value = &'static DemoFault> {
    let names = DemoFault::ALL.iter().map(|fault| PossibleValue::new(fault.name).help(fault.what));
    let find = |name: String| DemoFault::find(&name).ok_or("not a demo fault");
    PossibleValuesParser::new(names).try_map(find)
}

/// Parses a time limit in whole seconds.
fn parse_seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=300) => Ok(seconds),
        _ => Err("allowed: a whole number of seconds from 1 to 300".to_owned()),
    }
}

/// Requests per minute and key; `None` turns the limit off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateLimit(pub(crate) Option<u32>);

fn parse_rate_limit(text: &str) -> Result<RateLimit, String> {
    match text {
        "off" => Ok(RateLimit(None)),
        _ => match text.parse() {
            Ok(n @ 1..=1_000_000) => Ok(RateLimit(Some(n))),
            _ => Err("allowed: `off` or a whole number from 1 to 1000000".to_owned()),
        },
    }
}

fn parse_header_prefix(text: &str) -> Result<String, String> {
    let is_valid =
        (1..=40).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match is_valid {
        true => Ok(text.to_owned()),
        false => Err("allowed: 1 to 40 letters, digits and -".to_owned()),
    }
}
