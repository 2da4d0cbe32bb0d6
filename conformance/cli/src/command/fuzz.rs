//! `chargeproof fuzz`: sends random requests to an implementation and shrinks those that cause
//! violations.

use std::{env, path::Path, time::Duration};

use conformance::{
    Interrupt, RealClock, Secret,
    fuzz::{self, Outcome, Plan, SavedFindings},
    report::Style,
};
use indicatif::ProgressBar;

use crate::{
    Failure,
    args::{Format, Fuzz},
    config::Config,
    files::{self, SETTINGS_MAX},
    signals,
    terminal::{self, spinner},
};

/// The time limit of each request.
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// The number of requests of a run that only `--for` limits.
const UNLIMITED: u32 = u32::MAX;

pub(crate) fn run(args: &Fuzz, config: &Config) -> Result<u8, Failure> {
    let mut plan = plan(args, config)?;
    args.save.as_deref().map_or(Ok(()), files::check_writable)?;
    let saved = args.replay.as_deref().map(read_saved).transpose()?;
    let runtime = super::runtime()?;
    plan.interrupt = signals::interrupt(&runtime)?;
    let (mut clock, mut progress) = (RealClock::start(), FuzzProgress(spinner()));
    let outcome = match &saved {
        None => runtime.block_on(fuzz::fuzz(&plan, &mut clock, &mut progress)),
        Some(saved) => runtime.block_on(fuzz::replay(&plan, &saved.found, &mut clock, &mut progress)),
    };
    progress.0.finish_and_clear();
    if let Some(path) = args.save.as_deref().filter(|_| !outcome.found.is_empty()) {
        files::write_atomically(path, &fuzz::saved_findings(&outcome))?;
    }
    print_result(&outcome, args);
    Ok(outcome.exit_code())
}

fn plan(args: &Fuzz, config: &Config) -> Result<Plan, Failure> {
    let base = super::parse_http_url(&args.url, "http://127.0.0.1:8402")?;
    let key = |name: &str| match env::var(name) {
        Ok(text) if !text.is_empty() => Ok(Secret::new(text)),
        _ => Err(Failure::usage(format!(
            "the environment variable `{name}` is not set; set it to a key of the target"
        ))),
    };
    Ok(Plan {
        base,
        live_key: key("CHARGEPROOF_LIVE_KEY")?,
        test_key: key("CHARGEPROOF_TEST_KEY")?,
        key_prefix: config.dialect.key_prefix.clone(),
        seed: args.seed.map_or_else(super::random_seed, Ok)?,
        requests: if args.run_for.is_some() { UNLIMITED } else { args.requests.get() },
        duration_max: args.run_for,
        rate: args.rate.0,
        allow_writes: args.allow_writes,
        time_limit: TIME_LIMIT,
        ca_pem: args.cacert.as_deref().map(|path| files::text_of(path, SETTINGS_MAX)).transpose()?,
        interrupt: Interrupt::default(),
    })
}

fn read_saved(path: &Path) -> Result<SavedFindings, Failure> {
    SavedFindings::read(&files::text_of(path, files::RECORDING_MAX)?).map_err(|error| {
        Failure::usage(format!("`{}` is {}", path.display(), files::truncate_message(&error.to_string())))
    })
}

fn print_result(outcome: &Outcome, args: &Fuzz) {
    let file = args.save.as_ref().or(args.replay.as_ref()).map(|path| path.display().to_string());
    match args.format {
        Format::Text => terminal::print(fuzz::text(outcome, Style::Colour, file.as_deref())),
        Format::Json => terminal::print_raw(&fuzz::json(outcome)),
    }
}

struct FuzzProgress(ProgressBar);

impl fuzz::Progress for FuzzProgress {
    fn on_request(&mut self, requests: u32, total: u32, finding_count: usize) {
        let of_total = if total == UNLIMITED { String::new() } else { format!(" of {total}") };
        self.0.set_message(format!("{requests}{of_total} requests, {finding_count} findings"));
    }

    fn on_wait(&mut self, span: Duration, why: &str) {
        self.0.set_message(format!("waiting {} s: {why}", span.as_secs()));
    }
}
