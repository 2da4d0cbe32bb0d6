//! The command line of `play`.

use std::path::PathBuf;

use clap::Args;

use super::{Format, parse_seed};

const EXAMPLES: &str = "\
Examples:
  chargeproof play                                    run the built-in scenarios
  chargeproof play scenarios/charge --transcript
  chargeproof play mine.yaml --bless                  write the golden transcript
  chargeproof play --against http://127.0.0.1:8402    run them on `chargeproof serve --clock frozen`";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Play {
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Scenario files (*.yaml), or directories that contain some [default: the built-in scenarios]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Run with this seed instead of the scenario's. Expectations must hold; transcripts are not compared
    #[arg(long, value_name = "N", value_parser = parse_seed, conflicts_with = "bless")]
    pub(crate) seed: Option<u64>,
    /// Overwrite the golden transcripts with the new ones
    #[arg(long, requires = "paths")]
    pub(crate) bless: bool,
    /// Run on a served reference with a frozen clock instead of in this process
    #[arg(long, value_name = "URL")]
    pub(crate) against: Option<String>,
    /// Print the transcripts
    #[arg(long, short)]
    pub(crate) transcript: bool,
}
