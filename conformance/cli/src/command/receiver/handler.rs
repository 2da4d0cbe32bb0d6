//! `chargeproof receiver try`: tests a merchant's webhook handler.

use std::{
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use conformance::{
    Interrupt, Mode, Secret,
    handler::{
        ActionCounter, HandlerOutcome, HandlerPlan, Progress, TrialObjects, TrialStatement, render,
        statements, test_handler,
    },
    receiver::WebhookNames,
    report::Style,
};
use indicatif::ProgressBar;
use serde_json::{Map, Value};

use crate::{
    Failure,
    args::{DEFAULT_SETTLE_TIME, DEFAULT_TIME_LIMIT, EndpointMode, HandlerFormat, Try},
    command::{parse_http_url, random_seed},
    config::Config,
    files::{self, SETTINGS_MAX},
    signals,
    terminal::{self, DIM, print_line, spinner},
};

/// The time limit of each run of a user's command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of bytes that are read from a command's output.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// The address that error messages suggest.
const EXAMPLE_URL: &str = "http://127.0.0.1:3000/hooks";

pub(super) fn run(args: &Try, config: &Config) -> Result<u8, Failure> {
    if args.list {
        print_statements(args.format);
        return Ok(0);
    }
    let mut plan = plan(args, config)?;
    args.report.iter().try_for_each(|(_, path)| files::check_writable(path))?;
    let runtime = crate::command::runtime()?;
    plan.interrupt = signals::interrupt(&runtime)?;
    let mut commands = UserCommands { acted: args.acted.clone(), prepare: args.prepare.clone() };
    let counter: Option<&mut dyn ActionCounter> =
        if args.acted.is_some() { Some(&mut commands) } else { None };
    let mut progress = TrialProgress(spinner());
    let outcome = runtime.block_on(test_handler(&plan, counter, &mut progress));
    progress.0.finish_and_clear();
    print_result(&outcome, args)?;
    Ok(outcome.exit_code())
}

fn print_statements(format: HandlerFormat) {
    if format == HandlerFormat::Json {
        let rows: Vec<_> = statements()
            .map(|TrialStatement { id, level, text }| {
                serde_json::json!({ "id": id, "level": level.as_str(), "text": text })
            })
            .collect();
        print_line!("{}", serde_json::to_string_pretty(&rows).expect("strings serialize to JSON"));
        return;
    }
    for TrialStatement { id, level, text } in statements() {
        print_line!("{id:<24} {DIM}{:<7}{DIM:#} {text}", level.as_str());
    }
}

fn plan(args: &Try, config: &Config) -> Result<HandlerPlan, Failure> {
    let url = args.url.as_deref().expect("a URL is required without --list");
    let url = parse_http_url(url, EXAMPLE_URL)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Failure::usage("the address contains a user name or password; remove it"));
    }
    let dialect = config.dialect.clone();
    let secret = |name: &str| super::read_secret(name).map(Secret::new);
    let ids: Vec<_> = statements().map(|statement| statement.id).collect();
    if let Some(pattern) = args
        .only
        .iter()
        .chain(&args.skip)
        .find(|pattern| !ids.iter().any(|id| conformance::handler::matches_pattern(pattern, id)))
    {
        return Err(Failure::usage(format!(
            "no statement matches `{pattern}`; `chargeproof receiver try --list` prints the names"
        )));
    }
    Ok(HandlerPlan {
        url,
        secret: secret(args.secret_env.as_deref().expect("--secret-env is required without --list"))?,
        other_mode_secret: args.other_mode_secret_env.as_deref().map(secret).transpose()?,
        mode: match args.mode {
            EndpointMode::Live => Mode::Live,
            EndpointMode::Test => Mode::Test,
        },
        names: WebhookNames {
            header_prefix: args.header_prefix.clone().unwrap_or(dialect.header_prefix),
            user_agent: dialect.user_agent,
        },
        sample_charge: args.sample.as_deref().map(read_sample).transpose()?,
        only: args.only.clone(),
        skip: args.skip.clone(),
        // The only value of `--without` is `acts`.
        without_actions: !args.without.is_empty(),
        strict: args.strict,
        seed: args.seed.map_or_else(random_seed, Ok)?,
        time_limit: Duration::from_secs(args.time_limit),
        settle_time: Duration::from_secs(args.settle),
        ca_pem: args.cacert.as_deref().map(|path| files::text_of(path, SETTINGS_MAX)).transpose()?,
        interrupt: Interrupt::default(),
    })
}

/// Reads the file of `--sample`: a charge, or the body of a delivery that contains one.
fn read_sample(path: &Path) -> Result<Map<String, Value>, Failure> {
    let invalid = |why: String| {
        Failure::usage(format!(
            "`{}` {why}; allowed: a charge, or a delivery that contains one, as JSON",
            path.display()
        ))
    };
    let value: Value = serde_json::from_str(&files::text_of(path, SETTINGS_MAX)?)
        .map_err(|error| invalid(format!("is not JSON: {error}")))?;
    match value.pointer("/data/charge").unwrap_or(&value) {
        Value::Object(charge) if !charge.is_empty() => Ok(charge.clone()),
        _ => Err(invalid("contains no charge".to_owned())),
    }
}

fn print_result(outcome: &HandlerOutcome, args: &Try) -> Result<(), Failure> {
    let rerun_command = rerun_command(&outcome.url, args);
    let format = conformance::handler::Format::from(args.format);
    match args.format {
        HandlerFormat::Text => terminal::print(render(outcome, format, Style::Colour, &rerun_command)),
        _ => terminal::print_raw(&render(outcome, format, Style::Plain, &rerun_command)),
    }
    args.report.iter().try_for_each(|(format, path)| {
        files::write_atomically(path, &render(outcome, (*format).into(), Style::Plain, &rerun_command))
    })
}

/// Returns the command that repeats the run, in the same directory and with the same configuration file. The report adds
/// `--only`.
fn rerun_command(url: &str, args: &Try) -> String {
    // Every field is named, so that the compiler reports a new option that is missing here.
    let Try {
        secret_env,
        other_mode_secret_env,
        mode,
        acted,
        prepare,
        sample,
        skip,
        without,
        strict,
        seed,
        time_limit,
        settle,
        header_prefix,
        cacert,
        // The address is given, `--only` is added, and the others do not change the run.
        url: _,
        only: _,
        format: _,
        report: _,
        list: _,
    } = args;
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let other_than = |value: u64, default: u64| (value != default).then(|| value.to_string());
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join(","));
    let options = [
        ("--secret-env", secret_env.clone()),
        ("--other-mode-secret-env", other_mode_secret_env.clone()),
        ("--acted", acted.clone()),
        ("--prepare", prepare.clone()),
        ("--header-prefix", header_prefix.clone()),
        ("--sample", path(sample)),
        ("--skip", list(skip)),
        ("--without", list(without)),
        ("--seed", seed.map(|seed| seed.to_string())),
        ("--time-limit", other_than(*time_limit, DEFAULT_TIME_LIMIT)),
        ("--settle", other_than(*settle, DEFAULT_SETTLE_TIME)),
        ("--cacert", path(cacert)),
        ("--mode", (*mode == EndpointMode::Live).then(|| "live".to_owned())),
    ];
    let mut line = format!("chargeproof receiver try {}", shell_quote(url));
    for (option, value) in options {
        if let Some(value) = value {
            line.push_str(&format!(" {option} {}", shell_quote(&value)));
        }
    }
    if *strict {
        line.push_str(" --strict");
    }
    line
}

/// Quotes an argument for the shell, if necessary.
fn shell_quote(argument: &str) -> String {
    let needs_no_quotes = |c: char| c.is_ascii_alphanumeric() || "-_./:=".contains(c);
    if !argument.is_empty() && argument.chars().all(needs_no_quotes) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

struct TrialProgress(ProgressBar);

impl Progress for TrialProgress {
    fn on_trial(&mut self, name: &str, number: usize, total: usize) {
        self.0.set_message(format!("{number} of {total}: {name}"));
    }
}

/// The user's commands `--acted` and `--prepare`, run by the shell.
struct UserCommands {
    acted: Option<String>,
    prepare: Option<String>,
}

impl ActionCounter for UserCommands {
    fn prepare(&mut self, objects: &TrialObjects) -> Result<(), String> {
        self.prepare
            .as_deref()
            .map_or(Ok(()), |command| run_user_command("--prepare", command, objects).map(drop))
    }

    fn action_count(&mut self, objects: &TrialObjects) -> Result<u64, String> {
        let command = self.acted.as_deref().expect("--acted is given");
        let output = run_user_command("--acted", command, objects)?;
        output.trim().parse().map_err(|_| {
            format!(
                "--acted printed `{}`; it must print a whole number",
                output.trim().chars().take(60).collect::<String>()
            )
        })
    }
}

/// Runs a command with the objects of a trial in its environment, and returns its output.
fn run_user_command(option: &str, command: &str, objects: &TrialObjects) -> Result<String, String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("CHARGEPROOF_TRIAL", objects.trial)
        .env("CHARGEPROOF_CHARGE", &objects.charge)
        .env("CHARGEPROOF_INVOICE", &objects.invoice)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{option} can't be run: {error}"))?;
    let stdout = child.stdout.take().expect("stdout is piped");
    // Waits for the end of the output instead of polling the process: stdout is closed when the command ends.
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let output = stdout.take(OUTPUT_BYTES_MAX).read_to_string(&mut text).map(|_| text);
        // Fails if the caller has timed out.
        let _ = sender.send(output);
    });
    let Ok(output) = receiver.recv_timeout(COMMAND_TIMEOUT) else {
        // Errors are ignored: the command may have just ended.
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("{option} took longer than {} s", COMMAND_TIMEOUT.as_secs()));
    };
    let status = child.wait().map_err(|error| format!("{option} can't be waited for: {error}"))?;
    if !status.success() {
        return Err(format!("{option} ended with {status}"));
    }
    output.map_err(|_| format!("{option} printed something that is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command, Receiver};

    #[track_caller]
    fn check_rerun(options: &str, expected: &str) {
        let prefix = format!("chargeproof receiver try {EXAMPLE_URL} --secret-env SECRET");
        let line = format!("{prefix} {options}");
        let Command::Receiver(Receiver::Try(args)) =
            Cli::try_parse_from(line.split_whitespace()).unwrap().command
        else {
            panic!("`receiver try` is not parsed as itself")
        };
        assert_eq!(rerun_command(EXAMPLE_URL, &args), prefix + expected);
    }

    #[test]
    fn the_rerun_command_has_every_option_that_changes_the_run() {
        check_rerun("--only a --format json --report text=a.txt --mode test --time-limit 15 --settle 2", "");
        for options in [
            " --other-mode-secret-env OTHER --acted count --prepare order --header-prefix X-Shop",
            " --sample charge.json --skip 'answers.*,acts.retry' --without acts --seed 7",
            " --time-limit 3 --settle 4 --cacert ca.pem --mode live --strict",
        ] {
            check_rerun(&options.replace('\'', ""), options);
        }
    }
}
