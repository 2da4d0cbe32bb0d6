//! `chargeproof load`: a load test, at a fixed or at the maximum rate.

use std::{
    env,
    io::{self, IsTerminal},
    ops::ControlFlow,
    sync::atomic::Ordering::Relaxed,
};

use conformance::{KEY_PLACEHOLDER, Redactor, Secret, report::one_line};
use indicatif::{ProgressBar, ProgressStyle};
use load::{Pace, Plan, Report, RunProgress, StartError, Work, run as run_plan};

use crate::{
    Failure,
    args::{Format, Load, Mix},
    config::Config,
    files::{self, SETTINGS_MAX},
    signals::{self, INTERRUPTED},
    terminal::{BAD, DIM, GOOD, print_line},
};

const LIVE_KEY: &str = "CHARGEPROOF_LIVE_KEY";
const TEST_KEY: &str = "CHARGEPROOF_TEST_KEY";

pub(crate) fn run(args: &Load, config: &Config) -> Result<u8, Failure> {
    let plan = plan(args, config)?;
    let bar = progress_bar(&plan);
    let redactor = redactor(args, &config.dialect.key_prefix);
    let redact = |text: &str| one_line(&redactor.redact(text));
    let stop = signals::stop_flag()?;
    let on_progress = |progress| {
        update_bar(&bar, progress);
        if stop.load(Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report = run_plan(&plan, on_progress).map_err(|error| match error {
        StartError::Usage(message) => Failure::usage(redact(&message)),
        StartError::Unreachable(message) => Failure::unreachable(redact(&message)),
    });
    bar.finish_and_clear();
    let mut report = report?;
    report.notes.iter_mut().for_each(|note| *note = redact(note));
    match args.format {
        Format::Json => {
            print_line!("{}", serde_json::to_string(&report).expect("strings and numbers serialize to JSON"));
        }
        Format::Text => print_result(&report),
    }
    Ok(if report.interrupted { INTERRUPTED } else { u8::from(!report.is_clean()) })
}

/// Returns a redactor of all known keys and secrets. Messages from the target may contain them.
fn redactor(args: &Load, key_prefix: &str) -> Redactor {
    let names = [LIVE_KEY, TEST_KEY, &args.secret_env];
    let secrets: Vec<_> = names.iter().filter_map(|name| env::var(name).ok().map(Secret::new)).collect();
    Redactor::new(secrets.iter().map(|key| key.secret_part(key_prefix)), KEY_PLACEHOLDER)
}

fn plan(args: &Load, config: &Config) -> Result<Plan, Failure> {
    let url = super::parse_http_url(&args.url, "http://127.0.0.1:8402")?;
    let ca_pem = args.cacert.as_deref().map(|path| files::text_of(path, SETTINGS_MAX)).transpose()?;
    let pace = match (args.rate, args.max) {
        (Some(rate), _) => Pace::PerSecond(rate),
        (None, true) => Pace::Max,
        (None, false) => {
            return Err(Failure::usage(
                "set the rate: `--rate 100` sends 100 requests per second, `--max` as many as the server can process",
            ));
        }
    };
    let (duration, connections, threads) = (args.duration, args.connections, args.threads);
    Ok(Plan { url, pace, duration, connections, threads, ca_pem, work: work(args, config)? })
}

/// Returns the kind of the requests to send, with their key or secret. Keys and secrets come from
/// the environment, never from the command line.
fn work(args: &Load, config: &Config) -> Result<Work, Failure> {
    let variable = |name: &str| env::var(name).ok().filter(|text| !text.is_empty());
    let read_key = || variable(TEST_KEY).or_else(|| variable(LIVE_KEY));
    let required = |value: Option<String>, names: &str, content: &str| {
        value.ok_or_else(|| {
            Failure::usage(format!("the environment variable `{names}` is not set; set it to {content}"))
        })
    };
    if !args.path.is_empty() {
        return Ok(Work::Paths { key: read_key(), paths: args.path.clone() });
    }
    let require_mix = |is_given: bool, option: &str, mix: &str| match is_given {
        true => {
            Err(Failure::usage(format!("`{option}` requires `--mix {mix}`; add it, or remove `{option}`")))
        }
        false => Ok(()),
    };
    if args.mix != Mix::Write {
        require_mix(args.allow_writes, "--allow-writes", "write")?;
        require_mix(args.asset.is_some(), "--asset", "write")?;
    }
    match args.mix {
        Mix::Read => {
            let names = format!("{TEST_KEY}` or `{LIVE_KEY}");
            Ok(Work::Read { key: required(read_key(), &names, "a key of the service")? })
        }
        Mix::Write if !args.allow_writes => Err(Failure::usage(
            "`--mix write` creates charges that stay on the server; add `--allow-writes` to confirm",
        )),
        Mix::Write => Ok(Work::Write {
            key: required(variable(TEST_KEY), TEST_KEY, "a test key")?,
            asset: args.asset.clone(),
        }),
        Mix::Webhook => {
            let dialect = config.dialect.clone();
            let secret = variable(&args.secret_env);
            Ok(Work::Webhook {
                secret: required(secret, &args.secret_env, "the endpoint's secret, such as `whsec_…`")?,
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
    let bar = ProgressBar::new(u64::try_from(plan.duration.as_millis()).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{bar:30} {msg}").expect("the template is a valid constant");
    bar.set_style(style);
    bar
}

fn update_bar(bar: &ProgressBar, progress: RunProgress) {
    if bar.is_hidden() {
        return;
    }
    let millis = u64::try_from(progress.elapsed.as_millis()).unwrap_or(u64::MAX);
    bar.set_position(millis);
    let rate = progress.responses * 1_000 / millis.max(1);
    let mut text = format!("{} responses, {rate} per second", progress.responses);
    if progress.errors > 0 {
        text.push_str(&format!(", {} errors", progress.errors));
    }
    if let Some(left) = progress.pause_left {
        // Rounded up.
        text.push_str(&format!("; rate limited (429), {} s left to wait", left.as_secs() + 1));
    }
    bar.set_message(text);
}

fn print_result(report: &Report) {
    let row = |name: &str, value: String| print_line!("{name:<13}{value}");
    let style = if report.is_clean() { GOOD } else { BAD };
    print_line!(
        "{style}{}{style:#}  {}   {DIM}{} over {} connections, {} threads{DIM:#}",
        if report.is_clean() { "completed" } else { "errors" },
        report.url,
        report.work,
        report.connections,
        report.threads
    );
    let rate = report.requested_rate.map_or("no fixed rate".to_owned(), |rate| format!("requested: {rate}"));
    row("requests", format!("{} in {}", report.responses, format_seconds(report.millis)));
    row("per second", format!("{}   ({rate})", report.rate_achieved));
    let latency = report.latency_ns;
    let percentiles = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("max", latency.max),
    ];
    let percentiles: Vec<_> =
        percentiles.iter().map(|(name, nanos)| format!("{name} {}", format_millis(*nanos))).collect();
    row("latency", percentiles.join("   "));
    let measurement = match report.corrected {
        true => "measured from the time at which a request was due",
        false => {
            "measured from the time at which it was sent; only --rate includes the waiting time of clients"
        }
    };
    row("", format!("{DIM}{measurement}{DIM:#}"));
    let statuses: Vec<_> =
        report.statuses.iter().map(|(status, count)| format!("{status}: {count}")).collect();
    row("statuses", statuses.join("   "));
    row("bytes", format!("{}", report.bytes));
    for (error, count) in &report.errors {
        row("errors", format!("{count} × {error}"));
    }
    if report.never_sent > 0 {
        row("never sent", format!("{}   (included in the latencies)", report.never_sent));
    }
    if report.paused_millis > 0 {
        row(
            "postponed",
            format!(
                "{} during a Retry-After of the server, {} in total",
                report.held_back,
                format_seconds(report.paused_millis)
            ),
        );
    }
    if report.interrupted {
        row(
            "interrupted",
            format!("after {}; requests without a response are not counted", format_seconds(report.millis)),
        );
    }
    for note in &report.notes {
        print_line!("{DIM}note: {note}{DIM:#}");
    }
}

fn format_seconds(millis: u64) -> String {
    format!("{}.{:03} s", millis / 1_000, millis % 1_000)
}

fn format_millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}
