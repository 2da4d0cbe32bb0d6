//! `chargeproof`: run the reference server, test implementations, run scenarios and simulations.
//!
//! Exit codes: 0 success · 1 a violation or difference · 2 wrong usage or configuration · 3 incomplete · 4 the target did
//! not respond · 5 this machine or program failed · 130 interrupted.

mod args;
mod command;
mod config;
mod files;
mod manual;
mod remote;
mod reports;
mod settings;
mod shard;
mod signals;
mod suggestions;
mod terminal;

use std::{env, process::ExitCode};

use args::{Cli, Command};
use config::Config;
use settings::SettingsError;
use terminal::BAD;

/// The exit code for wrong usage or configuration.
const USAGE: u8 = 2;
/// The exit code if this machine or this program failed.
const MACHINE: u8 = 5;

/// An error that ends a command, with the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// Returns the failure for an invalid command line or configuration.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: message.into() }
    }

    /// Returns the failure for a target that did not respond.
    pub(crate) fn unreachable(message: impl Into<String>) -> Failure {
        Failure { code: 4, message: message.into() }
    }

    /// Returns the failure of this machine or this program, for example because a disk is full.
    pub(crate) fn machine(message: impl Into<String>) -> Failure {
        Failure { code: MACHINE, message: message.into() }
    }
}

fn main() -> ExitCode {
    let result = match settings::read(env::args_os().collect()) {
        Ok((cli, config)) => run(cli, &config),
        Err(SettingsError::File(failure)) => Err(failure),
        Err(SettingsError::Usage(error)) => {
            // A failure to print cannot be reported.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    let code = result.unwrap_or_else(|Failure { code, message }| {
        terminal::note!("{BAD}error{BAD:#}: {}", terminal::sanitize(&message));
        code
    });
    ExitCode::from(terminal::finish(code))
}

fn run(cli: Cli, config: &Config) -> Result<u8, Failure> {
    match cli.command {
        Command::Serve(args) => command::serve::run(&args, config),
        Command::Trigger(args) => command::trigger::run(&args),
        Command::Play(args) => command::play::run(&args),
        Command::Sweep(args) => command::sweep::run(&args),
        Command::Check(args) => command::check::run(&args, config),
        Command::Fuzz(args) => command::fuzz::run(&args, config),
        Command::Load(args) => command::load::run(&args, config),
        Command::Compare(args) => command::compare::run(&args, config),
        Command::Judge(args) => command::judge::run(&args, config),
        Command::Receiver(action) => command::receiver::run(&action, config),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { directory } => manual::write_man_pages(&directory),
    }
}
