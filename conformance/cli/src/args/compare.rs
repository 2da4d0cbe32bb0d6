//! The command line of `compare`.

use clap::{Args, builder::PossibleValuesParser};
use conformance::Part;

use super::Format;

const EXAMPLES: &str = "\
Examples:
  chargeproof compare https://staging.example.com https://api.example.com
  chargeproof compare before.json after.json
  chargeproof compare before.json https://api.example.com --quick --format json

Keys of A come from the same variables as those of `check`. Keys of B come from CHARGEPROOF_B_LIVE_KEY,
CHARGEPROOF_B_TEST_KEY and so on; what is not set there is taken from the keys of A.

Exit codes: 0 nothing differs, 1 something differs, 2 wrong usage or configuration, 4 a target did not answer.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Base address of an implementation, or a recording of `check --record`
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// Base address or recording of the other implementation
    #[arg(value_name = "B")]
    pub(crate) b: String,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Skip the burst that tests the rate limit, and the wait of a minute after it
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leave out statements that need something you cannot provide
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = PossibleValuesParser::new(Part::ALL.map(Part::as_str)))]
    pub(crate) without: Vec<String>,
}
