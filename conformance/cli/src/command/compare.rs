//! `chargeproof compare`: compares two implementations, or two recordings.

use std::path::Path;

use clap::Parser;
use conformance::{Outcome, compare};

use crate::{
    Failure,
    args::{Cli, Command, Compare, Format, KeysOf},
    config::Config,
    terminal::{self, note},
};

pub(crate) fn run(args: &Compare, config: &Config) -> Result<u8, Failure> {
    let name = |side: &str| {
        if args.format == Format::Text {
            note!("{side}");
        }
    };
    name(&format!("A  {}", args.a));
    let a = outcome(&args.a, KeysOf::Target, args, config)?;
    name(&format!("B  {}", args.b));
    let b = outcome(&args.b, KeysOf::Other, args, config)?;
    let comparison = compare(&a, &b);
    match args.format {
        Format::Text => terminal::print_raw(&comparison.text()),
        Format::Json => terminal::print_raw(&comparison.json()),
    }
    Ok(comparison.exit_code())
}

/// Checks an implementation, or judges a recording.
fn outcome(side: &str, keys_of: KeysOf, args: &Compare, config: &Config) -> Result<Outcome, Failure> {
    if !side.contains("://") {
        return super::judge::outcome(Path::new(side), config);
    }
    let format = match args.format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let mut words = vec!["chargeproof", "check", side, "--format", format];
    words.extend(args.quick.then_some("--quick"));
    words.extend(args.without.iter().flat_map(|part| ["--without", part]));
    match Cli::try_parse_from(words).map(|cli| cli.command) {
        Ok(Command::Check(mut check)) => {
            check.keys_of = keys_of;
            super::check::outcome(&check, config)
        }
        _ => Err(Failure::usage(format!("`{side}` is neither an address nor a recording"))),
    }
}
