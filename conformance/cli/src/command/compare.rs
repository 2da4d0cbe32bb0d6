//! `chargeproof compare`: compares two implementations, or two recordings.

use std::path::Path;

use clap::Parser;
use conformance::{Outcome, compare};

use crate::{
    Failure,
    args::{Cli, Command, Compare, Format, KeySet},
    config::Config,
    terminal::{self, note},
};

pub(crate) fn run(args: &Compare, config: &Config) -> Result<u8, Failure> {
    let announce = |line: &str| {
        if args.format == Format::Text {
            note!("{line}");
        }
    };
    announce(&format!("A  {}", args.a));
    let a = outcome_of(&args.a, KeySet::Main, args, config)?;
    announce(&format!("B  {}", args.b));
    let b = outcome_of(&args.b, KeySet::SecondTarget, args, config)?;
    let comparison = compare(&a, &b);
    match args.format {
        Format::Text => terminal::print_raw(&comparison.text()),
        Format::Json => terminal::print_raw(&comparison.json()),
    }
    Ok(comparison.exit_code())
}

/// Checks the implementation at a URL, or judges the recording at a path.
fn outcome_of(
    url_or_path: &str,
    key_set: KeySet,
    args: &Compare,
    config: &Config,
) -> Result<Outcome, Failure> {
    if !url_or_path.contains("://") {
        return super::judge::judge_recording(Path::new(url_or_path), config);
    }
    let format = match args.format {
        Format::Text => "text",
        Format::Json => "json",
    };
    let mut arguments = vec!["chargeproof", "check", url_or_path, "--format", format];
    arguments.extend(args.quick.then_some("--quick"));
    arguments.extend(args.without.iter().flat_map(|part| ["--without", part]));
    match Cli::try_parse_from(arguments).map(|cli| cli.command) {
        Ok(Command::Check(mut check)) => {
            check.key_set = key_set;
            super::check::run_check(&check, config)
        }
        _ => Err(Failure::usage(format!("`{url_or_path}` is neither an address nor a recording"))),
    }
}
