//! `chargeproof check`: test an implementation, or the built-in server.

mod baseline;
mod built_in;
mod ci_job;
mod event_sources;
mod keys;
mod sandbox_world;
mod served_branch;
mod webhooks;

use std::{
    io,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use conformance::{
    Budget, Hook, Interrupt, KEY_PLACEHOLDER, Ledger, Outcome, Part, Plan, Progress, RealClock, Redaction,
    Redactor, Requirement, Selection, catalogue, check, extended_statements, matches_pattern,
    report::one_line, run_shell,
};
use indicatif::ProgressBar;
use reference_core::time::Timestamp;
use tokio::{runtime::Runtime, task::AbortHandle};
use url::Url;

use self::{built_in::BuiltInServer, keys::Keys, sandbox_world::SandboxWorld, served_branch::ServedBranch};
use super::play;
use crate::{
    Failure,
    args::{Check, Profile, ReportFormat},
    config::{Config, SAMPLE_CONFIG},
    files::{self, SETTINGS_MAX},
    reports,
    settings::nearest,
    signals,
    terminal::{DIM, GOOD, LOG_EVERY_SECS, note, print_line, spinner},
};

pub(crate) fn run(args: &Check, config: &Config) -> Result<u8, Failure> {
    let format = args.reports.format;
    if args.list {
        print_catalogue(format, args.profile);
        return Ok(0);
    }
    if let Some(path) = &args.init {
        return write_config(path);
    }
    // Reports invalid options before the built-in server starts or a request is sent.
    selection(args).validate().map_err(|why| Failure::usage(format!("{why}{}", suggestion(args))))?;
    baseline::read(args, config)?;
    reports::check_report_files(&args.reports.report)?;
    args.record.iter().chain(&args.baseline_write).try_for_each(|path| files::check_writable(path))?;
    let mut outcome = run_check(args, config)?;
    outcome.accepted_gaps = args.reports.accept.clone().unwrap_or_default();
    if let Some(path) = &args.baseline_write {
        baseline::write(path, &outcome)?;
    }
    if let Some(path) = &args.record {
        files::write_atomically(path, &outcome.to_file())?;
    }
    reports::write_all(&outcome, &args.reports)?;
    Ok(outcome.exit_code())
}

/// Sends the requests and judges the responses.
pub(super) fn run_check(args: &Check, config: &Config) -> Result<Outcome, Failure> {
    let format = args.reports.format;
    let runtime = super::runtime()?;
    let bar = spinner();
    let mut progress =
        ProgressDisplay { bar: bar.clone(), format, has_real_clock: args.url.is_some(), countdown: None };
    let interrupt = signals::interrupt(&runtime)?;
    let (started_at, clock_start) = (now(), Instant::now());
    let check_world = |world: &SandboxWorld, progress: &mut ProgressDisplay, interrupt| {
        let plan = Plan { interrupt, ..world.plan(args, config)? };
        Ok::<_, Failure>(runtime.block_on(check(plan, &mut world.clock(), progress)))
    };
    let mut outcome = match &args.url {
        Some(url) => {
            let base = super::parse_http_url(url, "http://127.0.0.1:8402")?;
            match ServedBranch::open(&base, args, config, &runtime, &progress)? {
                Some(branch) => {
                    progress.has_real_clock = false;
                    let outcome = check_world(branch.world(), &mut progress, interrupt);
                    branch.close()?;
                    outcome?
                }
                None => check_url(base, args, config, &runtime, &mut progress, interrupt)?,
            }
        }
        None if args.cacert.is_some() => {
            return Err(Failure::usage("`--cacert` needs an https target; add its URL"));
        }
        None => {
            let built_in = BuiltInServer::start(&runtime, config, &progress)?;
            let outcome = check_world(built_in.world(), &mut progress, interrupt)?;
            built_in.stop(&runtime);
            outcome
        }
    };
    progress.end_countdown();
    bar.finish_and_clear();
    outcome.origin.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    outcome.origin.started = Some(started_at);
    outcome.origin.lasted = Some(clock_start.elapsed());
    Ok(outcome)
}

/// Checks the implementation at an address, with the keys and options of the user.
fn check_url(
    base: Url,
    args: &Check,
    config: &Config,
    runtime: &Runtime,
    progress: &mut ProgressDisplay,
    interrupt: Interrupt,
) -> Result<Outcome, Failure> {
    let mut plan = plan_for(base, args, config, progress)?;
    plan.interrupt = interrupt;
    if let Some(command) = &args.prepare {
        progress.bar.set_message("preparing");
        let time_limit = Duration::from_secs(args.prepare_time_limit);
        runtime.block_on(prepare(Hook { command: command.clone(), time_limit }, &plan))?;
    }
    plan.webhooks = webhooks::webhook_plan(&args.webhooks, config, runtime, progress, &plan.interrupt)?;
    let mut clock = RealClock::start();
    Ok(runtime.block_on(check(plan, &mut clock, progress)))
}

/// Writes the sample configuration, or a CI job if `path` is the name of a CI system, to a new file.
fn write_config(path: &Path) -> Result<u8, Failure> {
    if let Some(result) = ci_job::init(path) {
        return result;
    }
    let path_text = path.display();
    match files::write_new(path, SAMPLE_CONFIG) {
        Ok(()) => {
            print_line!("{GOOD}written{GOOD:#}  {path_text}; remove the # from the settings that you want");
            Ok(0)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::usage(format!(
            "`{path_text}` already exists; not overwritten. Name another file: chargeproof check --init FILE"
        ))),
        Err(error) => Err(Failure::usage(format!("`{path_text}` can't be written: {error}"))),
    }
}

/// Returns the end of an error message: a similar name for each pattern that matches no statement.
fn suggestion(args: &Check) -> String {
    let mut catalogue = catalogue();
    catalogue.extend(extended_statements());
    let is_unknown = |pattern: &&String| !catalogue.keys().any(|id| matches_pattern(pattern, id));
    let unknown_patterns = args.only.iter().chain(&args.skip).filter(is_unknown);
    let chapters = catalogue.keys().filter_map(|id| Some(format!("{}.*", id.split_once('.')?.0)));
    let known: Vec<String> = catalogue.keys().cloned().chain(chapters).collect();
    let similar = unknown_patterns.filter_map(|pattern| nearest(pattern, known.iter().map(String::as_str)));
    similar.map(|name| format!("; did you mean `{name}`?")).collect()
}

/// Returns the statements to judge.
fn selection(args: &Check) -> Selection {
    Selection { profile: args.profile.into(), only: args.only.clone(), skip: args.skip.clone() }
}

/// Prints the catalogue of statements.
fn print_catalogue(format: ReportFormat, profile: Profile) {
    let mut catalogue = catalogue();
    if profile == Profile::Extended {
        catalogue.extend(extended_statements());
    }
    if format == ReportFormat::Json {
        print_line!("{}", serde_json::to_string_pretty(&catalogue).expect("a catalogue is JSON"));
        return;
    }
    for (id, requirement) in &catalogue {
        let Requirement { level, spec, text, unjudged, .. } = requirement;
        print_line!("{id:<32} {:<6} {DIM}{spec}{DIM:#}", level.as_str());
        print_line!("    {text}");
        if let Some(why) = unjudged {
            print_line!("    {DIM}not judged: {why}{DIM:#}");
        }
    }
    let judged = catalogue.values().filter(|requirement| requirement.unjudged.is_none()).count();
    print_line!("{} statements, {judged} of them judged", catalogue.len());
}

/// Returns the plan for a target. Its keys come from the environment or from files, never from the command line.
fn plan_for(
    base: Url,
    args: &Check,
    config: &Config,
    progress: &mut ProgressDisplay,
) -> Result<Plan, Failure> {
    let keys = Keys::read(config, args.key_set, &mut |warning| progress.warn(&warning))?;
    let mut plan = Plan::new(base, keys.live, keys.test);
    plan.second_key = keys.second;
    plan.other_account_key = keys.other_account;
    plan.revoked_key = keys.revoked;
    plan.paths = config.check.paths();
    if args.allow_writes {
        plan.create_request = Some(config.check.create());
    }
    plan.ca_pem = args.cacert.as_deref().map(|path| files::text_of(path, SETTINGS_MAX)).transpose()?;
    apply_options(&mut plan, args, config)?;
    Ok(plan)
}

/// Applies the options that all plans share.
fn apply_options(plan: &mut Plan, args: &Check, config: &Config) -> Result<(), Failure> {
    Selection { profile: plan.profile, only: plan.only, skip: plan.skip } = selection(args);
    plan.quick = args.quick;
    plan.thorough = args.thorough;
    plan.without = args.without.iter().filter_map(|name| Part::from_name(name)).collect();
    plan.baseline = baseline::read(args, config)?;
    plan.time_limit = Duration::from_secs(args.time_limit);
    let time_limit = Duration::from_secs(args.hook_time_limit);
    plan.hook = args.hook.clone().map(|command| Hook { command, time_limit });
    if args.privacy {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| Failure::machine(format!("cannot draw a random key: {error}")))?;
        plan.redaction = Some(Redaction::new(key));
    }
    plan.key_prefix = config.dialect.key_prefix.clone();
    Ok(())
}

/// Returns the date in UTC, for entries of the baseline that expire.
fn today() -> String {
    now().split('T').next().unwrap_or_default().to_owned()
}

/// Returns the time in UTC, in whole seconds.
#[allow(clippy::disallowed_methods, reason = "the date of the report is real, not simulated")]
fn now() -> String {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now =
        Timestamp(u64::try_from(since_epoch.as_micros()).expect("microseconds since 1970 fit into 64 bits"))
            .to_string();
    now.split('.').next().unwrap_or_default().to_owned() + "Z"
}

/// Runs the `--prepare` command, which creates records.
async fn prepare(hook: Hook, plan: &Plan) -> Result<(), Failure> {
    let environment =
        [("CHARGEPROOF_URL", plan.base.as_str()), ("CHARGEPROOF_TEST_KEY", plan.test_key.expose())];
    let message = match run_shell(&hook, &environment, &plan.interrupt).await {
        Ok((status, _)) if status.success() => return Ok(()),
        Ok((status, output)) => format!("the --prepare command ended with {status} {output}"),
        Err(why) => format!("the --prepare command {why}"),
    };
    let redactor = Redactor::new([plan.live_key.expose(), plan.test_key.expose()], KEY_PLACEHOLDER);
    let code = if plan.interrupt.is_raised() { signals::INTERRUPTED } else { crate::USAGE };
    Err(Failure { code, message: one_line(&redactor.redact(&message)) })
}

/// The progress display of a run.
struct ProgressDisplay {
    bar: ProgressBar,
    format: ReportFormat,
    /// `true` if the clock of the target follows real time, so that waits take real time.
    has_real_clock: bool,
    /// The task that prints the remaining seconds of a wait.
    countdown: Option<AbortHandle>,
}

impl ProgressDisplay {
    /// Prints a line on stderr in every format, because no report contains it.
    fn warn(&self, line: &str) {
        self.bar.suspend(|| note!("{line}"));
    }

    /// Prints a line on stderr if the report is text.
    fn info(&self, line: &str) {
        if self.format == ReportFormat::Text {
            self.bar.suspend(|| note!("{line}"));
        }
    }

    /// Ends the countdown of a wait.
    fn end_countdown(&mut self) {
        if let Some(countdown) = self.countdown.take() {
            countdown.abort();
        }
    }
}

impl Progress for ProgressDisplay {
    fn on_budget(&mut self, budget: &Budget) {
        let text = budget.to_string();
        // With a simulated clock, only the first line: the others are about bursts and waits, which
        // then take no real time.
        let shown = if self.has_real_clock { &*text } else { text.lines().next().unwrap_or_default() };
        self.info(shown);
    }

    fn on_request(&mut self, ledger: &Ledger) {
        self.end_countdown();
        self.bar.set_message(format!("{} requests", ledger.total()));
    }

    fn on_receive(&mut self, span: Duration) {
        if self.has_real_clock {
            self.info(&format!(
                "{GOOD}cause events now{GOOD:#}  deliveries are judged from now on, for {} s and until the last \
                 request; do not use the test key of the check, because its rate limit is measured",
                span.as_secs()
            ));
        }
    }

    fn on_wait(&mut self, span: Duration, why: &str) {
        self.end_countdown();
        if span.as_secs() == 0 || !self.has_real_clock {
            return;
        }
        if self.bar.is_hidden() {
            self.info(&format!("waiting {} s: {why}", span.as_secs()));
        }
        let (bar, why, format) = (self.bar.clone(), why.to_owned(), self.format);
        let countdown = tokio::spawn(async move {
            for elapsed in 0..=span.as_secs() {
                let line = format!("waiting {} s: {why}", span.as_secs() - elapsed);
                match bar.is_hidden() {
                    false => bar.set_message(line),
                    true if format == ReportFormat::Text && elapsed > 0 && elapsed % LOG_EVERY_SECS == 0 => {
                        note!("{line}")
                    }
                    true => {}
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        self.countdown = Some(countdown.abort_handle());
    }
}
