//! The command line of `play`.

use std::path::PathBuf;

use clap::Args;

use simulator::demo::DemoFault;

use super::{Format, demo_fault, whole_number};

const EXAMPLES: &str = "\
Examples:
  chargeproof play                                    run the built-in scenarios
  chargeproof play scenarios/charge --transcript
  chargeproof play mine.yaml --bless                  write the golden transcript
  chargeproof play --against http://127.0.0.1:8402    run them on `serve --clock frozen`
  chargeproof play --save-from http://127.0.0.1:8402 mine.yaml";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Play {
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Scenario files (*.yaml), or directories of scenario files [default: the built-in scenarios]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
    /// Run with this seed instead of the scenario's own. Expectations are checked, but transcripts are not compared
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(0..=u64::MAX), conflicts_with = "bless")]
    pub(crate) seed: Option<u64>,
    /// Overwrite the golden transcripts with the new ones
    #[arg(long, requires = "paths")]
    pub(crate) bless: bool,
    /// Run the scenarios on a running reference server with a frozen clock, instead of in this process
    #[arg(long, value_name = "URL")]
    pub(crate) against: Option<String>,
    /// Save the history of the reference server at URL to FILE, as a scenario, without running a scenario
    #[arg(long, num_args = 2, value_names = ["URL", "FILE"], exclusive = true)]
    pub(crate) save_from: Option<Vec<String>>,
    /// Print the transcripts; a scenario without a golden transcript then does not fail
    #[arg(long, short)]
    pub(crate) transcript: bool,
    /// Write an HTML page with a timeline of the first failing scenario or, if none fails, of the first scenario
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub(crate) html: Option<PathBuf>,
    /// Inject a fault into the simulated world, to demonstrate a failure
    #[arg(long, value_name = "NAME", value_parser = demo_fault(), conflicts_with_all = ["against", "bless"])]
    pub(crate) demo_fault: Option<&'static DemoFault>,
}
