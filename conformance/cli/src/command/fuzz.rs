//! `chargeproof fuzz`: random requests against any implementation, and the shortest ones that break a law.

use std::{env, fs, io::Write, path::Path, time::Duration};

use conformance::{
    RealTime, Secret,
    fuzz::{self, Kept, Outcome, Plan},
    report::Style,
};
use indicatif::ProgressBar;
use tokio::runtime::Runtime;
use url::Url;

use crate::{
    Failure,
    args::{Format, Fuzz},
    config::Config,
    reports::{writable, write_whole},
    screen::spinner,
};

const TIME_LIMIT: Duration = Duration::from_secs(15);

pub(crate) fn run(args: &Fuzz, config: &Config) -> Result<u8, Failure> {
    let plan = plan(args, config)?;
    args.save.as_deref().map_or(Ok(()), writable)?;
    let kept = args.replay.as_deref().map(read_kept).transpose()?;
    let runtime =
        Runtime::new().map_err(|error| Failure::usage(format!("no threads to ask with: {error}")))?;
    let (mut time, mut bar) = (RealTime::start(), Bar(spinner()));
    let outcome = match &kept {
        None => runtime.block_on(fuzz::fuzz(&plan, &mut time, &mut bar)),
        Some(kept) => runtime.block_on(fuzz::replay(&plan, &kept.found, &mut time, &mut bar)),
    };
    bar.0.finish_and_clear();
    if let Some(path) = args.save.as_deref().filter(|_| !outcome.found.is_empty()) {
        write_whole(path, &fuzz::kept(&outcome))?;
    }
    tell(&outcome, args);
    Ok(outcome.exit_code())
}

fn plan(args: &Fuzz, config: &Config) -> Result<Plan, Failure> {
    let url = &args.url;
    let takes = "it takes one such as http://127.0.0.1:8402";
    let base = Url::parse(url)
        .map_err(|error| Failure::usage(format!("`{url}` is not an address: {error}; {takes}")))?;
    if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
        return Err(Failure::usage(format!("`{url}` is not an http or https address; {takes}")));
    }
    let key = |name: &str| match env::var(name) {
        Ok(text) if !text.is_empty() => Ok(Secret::new(text)),
        _ => Err(Failure::usage(format!("`{name}` is not set; it takes a key of the service to ask"))),
    };
    let random = || {
        // Short enough to be typed again.
        getrandom::u32()
            .map(u64::from)
            .map_err(|error| Failure::usage(format!("the system gives no random seed: {error}")))
    };
    Ok(Plan {
        base,
        live_key: key("CHARGEPROOF_LIVE_KEY")?,
        test_key: key("CHARGEPROOF_TEST_KEY")?,
        key_prefix: config.dialect().map_err(Failure::usage)?.key_prefix,
        seed: args.seed.map_or_else(random, Ok)?,
        requests: args.requests.get(),
        rate: args.rate.0,
        allow_writes: args.allow_writes,
        time_limit: TIME_LIMIT,
        ca_pem: args.cacert.as_deref().map(read).transpose()?,
    })
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("`{}` can't be read: {error}", path.display())))
}

fn read_kept(path: &Path) -> Result<Kept, Failure> {
    Kept::read(&read(path)?)
        .map_err(|why| Failure::usage(format!("`{}` is not what `fuzz --save` kept: {why}", path.display())))
}

fn tell(outcome: &Outcome, args: &Fuzz) {
    let file = args.save.as_ref().or(args.replay.as_ref()).map(|path| path.display().to_string());
    // Whoever closed the pipe has read enough.
    let _ = match args.format {
        Format::Text => write!(anstream::stdout(), "{}", fuzz::text(outcome, Style::Colour, file.as_deref())),
        Format::Json => write!(std::io::stdout(), "{}", fuzz::json(outcome)),
    };
}

struct Bar(ProgressBar);

impl fuzz::Progress for Bar {
    fn asked(&mut self, requests: u32, of: u32, found: usize) {
        self.0.set_message(format!("{requests} of {of} requests, {found} laws broken"));
    }

    fn waiting(&mut self, span: Duration, why: &str) {
        self.0.set_message(format!("waiting {} s: {why}", span.as_secs()));
    }
}
