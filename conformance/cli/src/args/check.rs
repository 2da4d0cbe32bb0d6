//! The command line of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use conformance::Part;

use super::{ReportOptions, WebhookOptions, parse_seconds};

/// The environment variables from which the keys are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeySet {
    /// `CHARGEPROOF_LIVE_KEY` and so on.
    #[default]
    Main,
    /// `CHARGEPROOF_B_LIVE_KEY` and so on, for the second target of `compare`; the default of each is the key of
    /// `Main`.
    SecondTarget,
}

/// The statements that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// The specification only
    Spec,
    /// Also the behaviour of the reference server where the specification leaves a choice
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

const EXAMPLES: &str = "\
Examples:
  chargeproof check                                          test the built-in server
  chargeproof check https://api.example.com                  test an implementation
  chargeproof check https://api.example.com --quick --report junit=report.xml
  chargeproof check https://api.example.com --only 'paging.*,filters.*'
  chargeproof check https://api.example.com --without revoked,other --record run.json
  chargeproof check https://api.example.com --accept incomplete --baseline-file known.toml
  chargeproof check --list                                   print every statement
  chargeproof check --init                                   write a commented chargeproof.toml
  chargeproof check --init github                            write a job for GitHub Actions";

const MORE_HELP: &str = "\
Keys are never given on the command line. They are read from environment variables, or from files \
named in chargeproof.toml:
  CHARGEPROOF_LIVE_KEY           a live key; used for reading only
  CHARGEPROOF_TEST_KEY           a test key that no other client uses during the run
  CHARGEPROOF_SECOND_KEY         another key of the same account and mode as the test key
  CHARGEPROOF_OTHER_ACCOUNT_KEY  a key of another account
  CHARGEPROOF_REVOKED_KEY        a revoked key
The first two are required; with the others, more statements can be judged. The built-in server has its own keys.

A PATTERN is the id of a statement; * matches any text: paging.*, *.json, isolation.lists.

Exit codes: 0 every required statement was judged and holds, 1 violations, 2 invalid usage or configuration, \
3 incomplete, 4 the target did not respond, 130 interrupted.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{MORE_HELP}"))]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) reports: ReportOptions,
    /// Base URL of the API to test [default: `target` in chargeproof.toml, otherwise the built-in server]. If it is a
    /// reference server on this machine, no keys or options are needed: the check runs in a temporary copy of its
    /// world, with sample data added. With other keys, or with options that provide or leave out test input, it runs in
    /// the server's own world
    #[arg(value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Test the built-in server even if chargeproof.toml names a target
    #[arg(long, conflicts_with = "url")]
    pub(crate) built_in: bool,
    /// Judge only the statements that match these patterns, such as 'paging.*'
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Skip the statements that match these patterns
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    pub(crate) skip: Vec<String>,
    /// Leave out the statements that need an input you cannot provide. The report lists them
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = part_names())]
    pub(crate) without: Vec<String>,
    /// Skip the rate limit test: a burst of requests and a wait of one minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Send a second burst one minute later, to distinguish kinds of rate limiters. The run takes a minute longer
    #[arg(long, conflicts_with = "quick")]
    pub(crate) thorough: bool,
    /// Statements to judge
    #[arg(long, value_enum, default_value_t = Profile::Spec)]
    pub(crate) profile: Profile,
    /// Create two charges with the test key, to test that pages stay stable while records are created, and send a create
    /// request without a key, which must be refused
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Instead of --allow-writes: a shell command that creates one record in test mode and exits when the record
    /// exists. CHARGEPROOF_URL and CHARGEPROOF_TEST_KEY are set in its environment
    #[arg(long, value_name = "COMMAND")]
    pub(crate) hook: Option<String>,
    /// Time limit of the --hook command
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub(crate) hook_time_limit: u64,
    /// A shell command to run before the first request, for example to create records on a new staging server.
    /// CHARGEPROOF_URL and CHARGEPROOF_TEST_KEY are set in its environment
    #[arg(long, value_name = "COMMAND", conflicts_with = "built_in")]
    pub(crate) prepare: Option<String>,
    /// Time limit of the --prepare command
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds)]
    pub(crate) prepare_time_limit: u64,
    /// A TOML file of known failures, as written by --baseline-write, in addition to those in chargeproof.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline_file: Option<PathBuf>,
    /// Write the failures of this run to a TOML file for --baseline-file. New ones expire in 90 days; fill in their
    /// reasons
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline_write: Option<PathBuf>,
    /// Time limit of each request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) time_limit: u64,
    /// PEM file with additional certificates to trust, for an HTTPS target
    #[arg(long, value_name = "FILE", conflicts_with = "built_in")]
    pub(crate) cacert: Option<PathBuf>,
    /// Save all requests and responses, without the keys, to this file for `chargeproof judge`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Hide personal data and amounts in the recording and in every report
    #[arg(long)]
    pub(crate) privacy: bool,
    /// Print the catalogue of statements and exit
    #[arg(long)]
    pub(crate) list: bool,
    /// Write a commented configuration file and exit [default FILE: chargeproof.toml]. `github` or `gitlab` writes a CI
    /// job instead; it leaves out the statements whose keys are not set in the environment
    #[arg(
        long,
        value_name = "FILE|github|gitlab",
        num_args = 0..=1,
        default_missing_value = "chargeproof.toml",
        conflicts_with_all = ["url", "list", "built_in"]
    )]
    pub(crate) init: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) webhooks: WebhookOptions,
    /// Keys to use; set by `compare`
    #[arg(skip)]
    pub(crate) key_set: KeySet,
}

fn part_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Part::ALL.map(Part::as_str))
}
