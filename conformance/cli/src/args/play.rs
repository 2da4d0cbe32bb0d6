//! The command line of `play`.

use std::path::PathBuf;

use clap::Args;

use simulator::demo::DemoFault;

use super::{Format, demo_fault, whole};

const EXAMPLES: &str = "\
Examples:
  chargeproof play                                    run the built-in scenarios
  chargeproof play scenarios/charge --transcript
  chargeproof play mine.yaml --bless                  write the golden transcript
  chargeproof play --against http://127.0.0.1:8402    run them on `chargeproof serve --clock frozen`
  chargeproof play --save-from http://127.0.0.1:8402 mine.yaml";

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
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=u64::MAX), conflicts_with = "bless")]
    pub(crate) seed: Option<u64>,
    /// Overwrite the golden transcripts with the new ones
    #[arg(long, requires = "paths")]
    pub(crate) bless: bool,
    /// Run on a served reference with a frozen clock instead of in this process
    #[arg(long, value_name = "URL")]
    pub(crate) against: Option<String>,
    /// Write the calls since a served world began to FILE as a scenario, and run nothing
    #[arg(long, num_args = 2, value_names = ["URL", "FILE"], exclusive = true)]
    pub(crate) save_from: Option<Vec<String>>,
    /// Print the transcripts
    #[arg(long, short)]
    pub(crate) transcript: bool,
    /// Draw the first failing scenario, or else the first one, as an HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub(crate) html: Option<PathBuf>,
    /// Enable a fault in the simulated world, to see a failure
    #[arg(long, value_name = "NAME", value_parser = demo_fault(), conflicts_with_all = ["against", "bless"])]
    pub(crate) demo_fault: Option<&'static DemoFault>,
}
