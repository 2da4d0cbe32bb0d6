//! `chargeproof`: serve the reference, play scenarios, judge implementations.
//!
//! Exit codes: 0 all is well · 1 something is not as it must be · 2 wrong usage or configuration ·
//! 3 not all could be judged · 4 the target could not be reached · 5 this machine or program is broken.

mod args;
mod command;
mod config;
mod remote;
mod reports;
mod screen;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser;
use config::Config;

/// Wrong usage or configuration.
const USAGE: u8 = 2;

/// Why a command could not do its work, and the exit code that says so.
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure { code: USAGE, message: message.into() }
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Failure {
        Failure { code: 4, message: message.into() }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(Failure { code, message }) => {
            anstream::eprintln!("{}error{:#}: {message}", screen::BAD, screen::BAD);
            ExitCode::from(code)
        }
    }
}

fn run(cli: Cli) -> Result<u8, Failure> {
    let config = Config::read(cli.common.config.as_deref()).map_err(Failure::usage)?;
    match cli.command {
        Command::Serve(args) => command::serve::run(&args, &config, args.format),
        Command::Play(args) => command::play::run(&args, args.format),
        Command::Sweep(args) => command::sweep::run(&args, args.format),
        Command::Check(args) => command::check::run(&args, &config),
        Command::Fuzz(args) => command::fuzz::run(&args, &config),
        Command::Load(args) => command::load::run(&args, &config),
        Command::Judge(args) => command::judge::run(&args, &config),
        Command::Receiver(action) => command::receiver::run(&action, &config),
    }
}
