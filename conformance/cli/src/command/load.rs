//! `chargeproof load`: how much a server answers, and how fast.

use std::{
    env, fs,
    io::{self, IsTerminal},
};

use indicatif::{ProgressBar, ProgressStyle};
use load::{Pace, Plan, Report, SoFar, Stop, Work, run as run_plan};
use url::Url;

use crate::{
    Failure,
    args::{Format, Load, Mix},
    config::Config,
    screen::{BAD, DIM, GOOD},
};

const LIVE_KEY: &str = "CHARGEPROOF_LIVE_KEY";
const TEST_KEY: &str = "CHARGEPROOF_TEST_KEY";

pub(crate) fn run(args: &Load, config: &Config) -> Result<u8, Failure> {
    let plan = plan(args, config)?;
    let bar = progress_bar(&plan);
    let report = run_plan(&plan, |so_far| show(&bar, so_far)).map_err(|stop| match stop {
        Stop::Usage(message) => Failure::usage(message),
        Stop::Unreachable(message) => Failure::unreachable(message),
    });
    bar.finish_and_clear();
    let report = report?;
    match args.format {
        Format::Json => {
            anstream::println!("{}", serde_json::to_string(&report).expect("numbers and texts are JSON"));
        }
        Format::Text => tell(&report),
    }
    Ok(u8::from(!report.is_clean()))
}

fn plan(args: &Load, config: &Config) -> Result<Plan, Failure> {
    let url = Url::parse(&args.url).map_err(|error| {
        Failure::usage(format!(
            "`{}` is not an address: {error}; it takes one such as http://127.0.0.1:8402",
            args.url
        ))
    })?;
    let ca_pem = match &args.cacert {
        None => None,
        Some(path) => Some(
            fs::read_to_string(path)
                .map_err(|error| Failure::usage(format!("`{}` can't be read: {error}", path.display())))?,
        ),
    };
    let pace = args.rate.map_or(Pace::Max, Pace::PerSecond);
    let (span, connections, threads) = (args.span, args.connections, args.threads);
    Ok(Plan { url, pace, span, connections, threads, ca_pem, work: work(args, config)? })
}

/// Keys and secrets come from the environment, never from the command line.
fn work(args: &Load, config: &Config) -> Result<Work, Failure> {
    let variable = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
    let reader = || variable(TEST_KEY).or_else(|| variable(LIVE_KEY));
    let needed = |value: Option<String>, names: &str, takes: &str| {
        value.ok_or_else(|| Failure::usage(format!("`{names}` is not set; it takes {takes}")))
    };
    if !args.path.is_empty() {
        return Ok(Work::Paths { key: reader(), paths: args.path.clone() });
    }
    let strange = |given: bool, option: &str, mix: &str| match given {
        true => Err(Failure::usage(format!("`{option}` is for `--mix {mix}`; give both, or neither"))),
        false => Ok(()),
    };
    if args.mix != Mix::Write {
        strange(args.allow_writes, "--allow-writes", "write")?;
        strange(args.asset.is_some(), "--asset", "write")?;
    }
    match args.mix {
        Mix::Read => {
            let names = format!("{TEST_KEY}` or `{LIVE_KEY}");
            Ok(Work::Read { key: needed(reader(), &names, "a key of the service")? })
        }
        Mix::Write if !args.allow_writes => Err(Failure::usage(
            "`--mix write` opens charges that stay there; say `--allow-writes` if that is what you want",
        )),
        Mix::Write => Ok(Work::Write {
            key: needed(variable(TEST_KEY), TEST_KEY, "a key of mode test")?,
            asset: args.asset.clone(),
        }),
        Mix::Webhook => {
            let dialect = config.dialect().map_err(Failure::usage)?;
            let secret = variable(&args.secret_env);
            Ok(Work::Webhook {
                secret: needed(secret, &args.secret_env, "the endpoint's secret, such as `whsec_…`")?,
                header_prefix: dialect.header_prefix,
                user_agent: dialect.user_agent,
            })
        }
    }
}

fn progress_bar(plan: &Plan) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::try_from(plan.span.as_millis()).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:30} {msg}").expect("a constant template");
    bar.set_style(style);
    bar
}

fn show(bar: &ProgressBar, so_far: SoFar) {
    if bar.is_hidden() {
        return;
    }
    let millis = u64::try_from(so_far.elapsed.as_millis()).unwrap_or(u64::MAX);
    bar.set_position(millis);
    let rate = so_far.answers * 1_000 / millis.max(1);
    let mut text = format!("{} answers, {rate} a second", so_far.answers);
    if so_far.errors > 0 {
        text.push_str(&format!(", {} errors", so_far.errors));
    }
    if let Some(left) = so_far.paused {
        text.push_str(&format!("; 429: asked to wait {} s more", left.as_secs() + 1));
    }
    bar.set_message(text);
}

fn tell(report: &Report) {
    let row = |name: &str, value: String| anstream::println!("{name:<13}{value}");
    let mark = if report.is_clean() { GOOD } else { BAD };
    anstream::println!(
        "{mark}{}{mark:#}  {}   {DIM}{} over {} connections, {} threads{DIM:#}",
        if report.is_clean() { "answered" } else { "not all well" },
        report.url,
        report.mix,
        report.connections,
        report.threads
    );
    let asked =
        report.rate_asked.map_or("as many as possible".to_owned(), |rate| format!("{rate} asked for"));
    row("requests", format!("{} in {}", report.answers, seconds(report.millis)));
    row("a second", format!("{}   ({asked})", report.rate_achieved));
    let latency = report.latency_ns;
    let all = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
    ];
    let all: Vec<_> = all.iter().map(|(name, nanos)| format!("{name} {}", millis(*nanos))).collect();
    row("latency", all.join("   "));
    let from = match report.corrected {
        true => "from when a request was due",
        false => "from when it was sent; only a rate shows what waiting clients would see",
    };
    row("", format!("{DIM}{from}{DIM:#}"));
    let statuses: Vec<_> = report.statuses.iter().map(|(status, n)| format!("{status}: {n}")).collect();
    row("statuses", statuses.join("   "));
    row("bytes", format!("{}", report.bytes));
    for (words, n) in &report.errors {
        row("errors", format!("{n} × {words}"));
    }
    if report.never_sent > 0 {
        row("never sent", format!("{}   (they count in the latencies)", report.never_sent));
    }
    if report.paused_millis > 0 {
        row("held back", format!("{} during {} of pauses", report.held_back, seconds(report.paused_millis)));
    }
    for note in &report.notes {
        anstream::println!("{DIM}note: {note}{DIM:#}");
    }
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

fn millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}
