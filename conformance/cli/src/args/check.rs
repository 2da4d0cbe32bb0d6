//! The command line of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use conformance::Part;

use super::{Receiving, Reports, parse_seconds};

/// The owner of the keys: the first or the second target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KeysOf {
    /// Those of the target.
    #[default]
    Target,
    /// Those of the second target of a comparison, if it has its own.
    Other,
}

/// The statements that are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// The specification only
    Spec,
    /// Also the choices of the reference server, where the specification leaves a choice
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
Keys are never given on the command line. They come from the environment, or from files that \
chargeproof.toml names:
  CHARGEPROOF_LIVE_KEY           a live key; only used for reading
  CHARGEPROOF_TEST_KEY           a test key that no other client uses during the run
  CHARGEPROOF_SECOND_KEY         another key of the same account and mode as the test key
  CHARGEPROOF_OTHER_ACCOUNT_KEY  a key of another account
  CHARGEPROOF_REVOKED_KEY        a revoked key
The first two are required; with the others more statements can be judged. The built-in server brings its own.

A PATTERN is the name of a statement; * matches anything: paging.*, *.json, isolation.lists.

Exit codes: 0 every required statement judged and held, 1 violations found, 2 wrong usage or configuration, \
3 incomplete, 4 the target did not answer, 130 interrupted.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{MORE_HELP}"))]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) reports: Reports,
    /// Base address of the API to test [default: `target` in chargeproof.toml, or else the built-in server]. A reference
    /// server on this machine needs no keys or options: a branch of its world is tested, with sample data added. Options
    /// and keys that provide or exclude what statements need test the world itself
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
    /// Leave out statements that need something you cannot provide. Every report lists them
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = parts())]
    pub(crate) without: Vec<String>,
    /// Skip the burst that tests the rate limit, and the wait of a minute after it
    #[arg(long)]
    pub(crate) quick: bool,
    /// Send one more burst in the next minute, to distinguish kinds of rate limiters; a minute longer
    #[arg(long, conflicts_with = "quick")]
    pub(crate) thorough: bool,
    /// Statements to judge
    #[arg(long, value_enum, default_value_t = Profile::Spec)]
    pub(crate) profile: Profile,
    /// Create two charges with the test key, to test that pages stay stable while records are inserted, and send a create
    /// request without a key, which must be refused
    #[arg(long)]
    pub(crate) allow_writes: bool,
    /// Instead of --allow-writes: a shell command that creates one test-mode record and returns when it exists.
    /// It gets CHARGEPROOF_URL and CHARGEPROOF_TEST_KEY in its environment
    #[arg(long, value_name = "COMMAND")]
    pub(crate) hook: Option<String>,
    /// Time limit of the hook
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    pub(crate) hook_time_limit: u64,
    /// A shell command to run before the first request, for example to create records on a fresh staging server.
    /// It gets CHARGEPROOF_URL and CHARGEPROOF_TEST_KEY in its environment
    #[arg(long, value_name = "COMMAND", conflicts_with = "built_in")]
    pub(crate) prepare: Option<String>,
    /// Time limit of the --prepare command
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = parse_seconds)]
    pub(crate) prepare_time_limit: u64,
    /// A TOML file of known failures, as written by --baseline-write, in addition to those of chargeproof.toml
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline_file: Option<PathBuf>,
    /// Write the failures of this run to a TOML file, with fingerprints, an expiry date in 90 days and reasons to fill in
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline_write: Option<PathBuf>,
    /// Time limit of one request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) time_limit: u64,
    /// Trust the certificates in this PEM file too, for a target over https
    #[arg(long, value_name = "FILE", conflicts_with = "built_in")]
    pub(crate) cacert: Option<PathBuf>,
    /// Save every request and response, without the keys, for `chargeproof judge`
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Hide personal data and amounts in the recording and in every report
    #[arg(long)]
    pub(crate) privacy: bool,
    /// Print the catalogue of statements and exit
    #[arg(long)]
    pub(crate) list: bool,
    /// Write a commented configuration file and exit [default FILE: chargeproof.toml]; `github` or `gitlab` writes a job
    /// for that CI system without the statements whose keys are not in the environment
    #[arg(
        long,
        value_name = "FILE|github|gitlab",
        num_args = 0..=1,
        default_missing_value = "chargeproof.toml",
        conflicts_with_all = ["url", "list", "built_in"]
    )]
    pub(crate) init: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) receiving: Receiving,
    /// Keys to use: `compare` checks two targets
    #[arg(skip)]
    pub(crate) keys_of: KeysOf,
}

fn parts() -> PossibleValuesParser {
    PossibleValuesParser::new(Part::ALL.map(Part::as_str))
}
