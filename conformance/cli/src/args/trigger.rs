//! The command line of `trigger`.

use clap::{Args, builder::PossibleValuesParser, builder::TypedValueParser as _};
use reference_core::{event::EventType, mode::Mode};

use super::Format;

const EXAMPLES: &str = "\
Examples:
  chargeproof trigger charge.paid
  chargeproof trigger invoice.sent --mode live --to http://127.0.0.1:8402

The command creates the charge or invoice of the event, pays it if necessary, and mines the blocks
immediately. `charge.expired` advances the service clock by 31 minutes.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Trigger {
    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Type of the event to trigger
    #[arg(value_name = "EVENT", value_parser = event_parser())]
    pub(crate) event: EventType,
    /// Base URL of the running reference server
    #[arg(
        long,
        value_name = "URL",
        env = "CHARGEPROOF_URL",
        hide_env_values = true,
        default_value = "http://127.0.0.1:8402"
    )]
    pub(crate) to: String,
    /// Mode in which the event is triggered
    #[arg(long, value_name = "MODE", default_value = "test", value_parser = mode_parser())]
    pub(crate) mode: Mode,
    /// Environment variable with the sandbox token, required if the server runs on another machine or behind a proxy
    #[arg(long, value_name = "NAME")]
    pub(crate) sandbox_token_env: Option<String>,
}

fn event_parser() -> impl clap::builder::TypedValueParser<Value = EventType> {
    PossibleValuesParser::new(EventType::ALL.map(EventType::as_str))
        .map(|name| EventType::parse(&name).expect("clap accepts only valid values"))
}

fn mode_parser() -> impl clap::builder::TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(|mode| mode.as_str()))
        .map(|name| Mode::parse(&name).expect("clap accepts only valid values"))
}
