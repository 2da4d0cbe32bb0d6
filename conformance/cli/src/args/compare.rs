//! The command line of `compare`.

use clap::{Args, builder::PossibleValuesParser};
use conformance::Part;

use super::Format;

const EXAMPLES: &str = "\
Examples:
  chargeproof compare https://staging.example.com https://api.example.com
  chargeproof compare before.json after.json
  chargeproof compare before.json https://api.example.com --quick --format json

The keys for A are read from the same environment variables as for `check`, the keys for B from
CHARGEPROOF_B_LIVE_KEY, CHARGEPROOF_B_TEST_KEY and so on; the default of each is the key for A.

Exit codes: 0 no differences, 1 differences, 2 invalid usage or configuration, 4 a target did not respond.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compare {
    /// Base URL of an implementation, or a recording made with `check --record`
    #[arg(value_name = "A")]
    pub(crate) a: String,
    /// Base URL or recording of the other implementation
    #[arg(value_name = "B")]
    pub(crate) b: String,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Skip the rate limit test: a burst of requests and a wait of one minute
    #[arg(long)]
    pub(crate) quick: bool,
    /// Leave out the statements that need an input you cannot provide
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = PossibleValuesParser::new(Part::ALL.map(Part::as_str)))]
    pub(crate) without: Vec<String>,
}
