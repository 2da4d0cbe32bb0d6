//! `chargeproof play`: runs scenarios and compares them with their golden transcripts.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use conformance::report::escape_invisible;
use serde::Serialize;
use simulator::{
    api::ScenarioResponse,
    digest::digest,
    picture::{self, PageInput},
    play::{
        Cause, LocalStage, PlaySummary, Stage, StageRequest,
        golden::{self, Diff, DiffLineKind},
        play,
    },
    script::Script,
    sweep::Runner,
};

use crate::{
    Failure,
    args::{Format, Play},
    files::{self, SCENARIO_MAX},
    remote::RemoteStage,
    signals::{self, INTERRUPTED},
    terminal::{self, BAD, DIM, GOOD, LOCATION, note, print_line},
};

/// A scenario that is embedded in the program.
pub(crate) struct BuiltInScenario {
    /// The name, such as `charge/paid`.
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) transcript: Option<&'static str>,
}

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// A scenario to run, with its golden transcript.
struct ScenarioFile {
    /// The name in reports: a path, or the name of a built-in scenario.
    name: String,
    text: String,
    /// The golden transcript.
    golden: Option<String>,
    /// The path of the golden transcript; `None` for a built-in scenario.
    golden_path: Option<PathBuf>,
}

const MISSING_TRANSCRIPT_MESSAGE: &str = "it has no golden transcript; --bless writes one";

/// The result of a scenario.
enum PlayResult {
    /// The transcript equals the golden one.
    Match(PlaySummary),
    /// Run with another seed, or with `--transcript` and without a golden transcript.
    NotCompared(PlaySummary),
    /// The golden transcript was written.
    GoldenWritten(PlaySummary),
    /// The transcript differs from the golden one.
    Difference(PlaySummary, Diff),
    /// There is no golden transcript.
    MissingGolden(PlaySummary),
    /// An expectation failed, the scenario cannot be run, or its golden transcript cannot be written.
    Error {
        /// `false` if an expectation failed.
        cannot_run: bool,
        message: String,
        coloured_message: String,
    },
}

impl PlayResult {
    fn as_str(&self) -> &'static str {
        match self {
            PlayResult::Match(_) => "pass",
            PlayResult::NotCompared(_) => "played",
            PlayResult::GoldenWritten(_) => "blessed",
            PlayResult::Difference(..) | PlayResult::MissingGolden(_) | PlayResult::Error { .. } => "fail",
        }
    }

    fn summary(&self) -> Option<&PlaySummary> {
        match self {
            PlayResult::Match(summary)
            | PlayResult::NotCompared(summary)
            | PlayResult::GoldenWritten(summary)
            | PlayResult::Difference(summary, _)
            | PlayResult::MissingGolden(summary) => Some(summary),
            PlayResult::Error { .. } => None,
        }
    }

    /// Returns the message of a failure.
    fn message(&self) -> Option<String> {
        match self {
            PlayResult::Error { message, .. } => Some(message.clone()),
            PlayResult::Difference(_, diff) => Some(diff.to_string()),
            PlayResult::MissingGolden(_) => Some(MISSING_TRANSCRIPT_MESSAGE.to_owned()),
            PlayResult::Match(_) | PlayResult::NotCompared(_) | PlayResult::GoldenWritten(_) => None,
        }
    }

    /// Returns the exit code: 1 for a difference, a missing golden transcript or an unmet expectation; 2 if the
    /// scenario cannot be run or its golden transcript cannot be written; 0 otherwise.
    fn exit_code(&self) -> u8 {
        match self {
            PlayResult::Match(_) | PlayResult::NotCompared(_) | PlayResult::GoldenWritten(_) => 0,
            PlayResult::Difference(..)
            | PlayResult::MissingGolden(_)
            | PlayResult::Error { cannot_run: false, .. } => 1,
            PlayResult::Error { cannot_run: true, .. } => 2,
        }
    }
}

/// The result of a scenario in the JSON report.
#[derive(Serialize)]
struct ScenarioRow<'a> {
    scenario: &'a str,
    result: &'static str,
    digest: Option<&'a str>,
    steps: Option<usize>,
    events: Option<u64>,
    posts: Option<u64>,
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<&'a str>,
}

/// The JSON report.
#[derive(Serialize)]
struct Report<'a> {
    /// The version of the format, incremented when older readers would misread it.
    format: u32,
    /// `true` if a signal came before all scenarios had run.
    interrupted: bool,
    scenarios: Vec<ScenarioRow<'a>>,
    digest: String,
}

pub(crate) fn run(args: &Play) -> Result<u8, Failure> {
    if let Some([url, file]) = args.save_from.as_deref() {
        return save_from(url, Path::new(file));
    }
    let scenario_files = scenario_files(&args.paths)?;
    args.html.as_deref().map_or(Ok(()), files::check_writable)?;
    let mut remote = match &args.against {
        Some(address) => Some(RemoteStage::new(address).map_err(Failure::usage)?),
        None => None,
    };
    let stop = signals::stop_flag()?;
    let mut results = Vec::new();
    for scenario_file in &scenario_files {
        if stop.load(Relaxed) {
            break;
        }
        let result = match &mut remote {
            Some(stage) => play_one(scenario_file, args, stage),
            None => {
                let local = args.demo_fault.map_or_else(LocalStage::new, LocalStage::with_fault);
                play_one(scenario_file, args, &mut { local })
            }
        };
        if args.format == Format::Text {
            print_result(scenario_file, &result, args);
        }
        results.push(result);
    }
    if let Some(path) = &args.html {
        write_html(path, &scenario_files, &results, args)?;
    }
    let overall_digest = digest_of_all(&results);
    let interrupted = results.len() < scenario_files.len();
    match args.format {
        Format::Text => print_summary(&results, scenario_files.len(), &overall_digest),
        Format::Json => {
            let rows = scenario_files
                .iter()
                .zip(&results)
                .map(|(scenario_file, result)| scenario_row(scenario_file, result, args))
                .collect();
            let report = Report { format: 1, interrupted, scenarios: rows, digest: overall_digest };
            let report = serde_json::to_string_pretty(&report).expect("a report is JSON");
            print_line!("{}", escape_invisible(&report));
        }
    }
    Ok(match interrupted {
        true => INTERRUPTED,
        false => results.iter().map(PlayResult::exit_code).max().unwrap_or(0),
    })
}

/// Saves the history of the world of a running reference server as a scenario.
fn save_from(url: &str, file: &Path) -> Result<u8, Failure> {
    files::check_writable(file)?;
    let mut stage = RemoteStage::new(url).map_err(Failure::usage)?;
    let call =
        StageRequest { method: "GET", path: "/sandbox/scenario", bearer: None, headers: &[], body: None };
    let response = stage.call(&call).map_err(|error| Failure::unreachable(error.to_string()))?;
    let saved: ScenarioResponse = serde_json::from_slice(&response.body).map_err(|_| {
        let reason = response.string_at("/message").unwrap_or_else(|| "no message".to_owned());
        Failure::usage(format!(
            "GET /sandbox/scenario at `{url}` responded with {}: {reason}",
            response.status
        ))
    })?;
    files::write_atomically(file, &saved.scenario)?;
    note!("wrote `{0}`; `chargeproof play {0} --bless` runs it and writes its transcript", file.display());
    if saved.untold > 0 {
        note!("calls that a scenario cannot express: {}; its comments list the reasons", saved.untold);
    }
    Ok(0)
}

/// Plays all built-in scenarios on a stage and calls `on_start` with the name of each. Returns
/// their number; the error names the one that failed.
pub(crate) fn play_built_ins(stage: &mut dyn Stage, on_start: &mut dyn FnMut(&str)) -> Result<usize, String> {
    for built_in in BUILT_IN {
        on_start(built_in.name);
        play_built_in(built_in.name, stage)?;
    }
    Ok(BUILT_IN.len())
}

/// Plays one built-in scenario in a new world, which the stage keeps. Returns an error unless the
/// transcript equals the golden one.
pub(crate) fn play_built_in(name: &str, stage: &mut dyn Stage) -> Result<(), String> {
    let built_in = BUILT_IN
        .iter()
        .find(|built_in| built_in.name == name)
        .expect("the name is that of a built-in scenario");
    let args = Play {
        format: crate::args::Format::Text,
        paths: Vec::new(),
        seed: None,
        bless: false,
        against: None,
        transcript: false,
        html: None,
        demo_fault: None,
        save_from: None,
    };
    match play_one(&built_in_scenario_file(built_in), &args, stage) {
        PlayResult::Match(_) => Ok(()),
        PlayResult::Difference(_, diff) => Err(format!("{name} differs from its transcript\n{diff}")),
        PlayResult::Error { message, .. } => Err(message),
        other => Err(format!("{name}: {}", other.as_str())),
    }
}

/// Plays a scenario and compares or writes its golden transcript.
fn play_one(scenario_file: &ScenarioFile, args: &Play, stage: &mut dyn Stage) -> PlayResult {
    let script = match Script::parse(&scenario_file.name, &scenario_file.text) {
        Ok(script) => script,
        Err(error) => {
            return PlayResult::Error {
                cannot_run: true,
                message: error.to_string(),
                coloured_message: error.in_colour(),
            };
        }
    };
    let summary = match play(&script, args.seed, stage) {
        Ok(summary) => summary,
        Err(error) => {
            return PlayResult::Error {
                cannot_run: error.cause != Cause::UnmetExpectation,
                message: error.to_string(),
                coloured_message: error.in_colour(),
            };
        }
    };
    if args.seed.is_some() {
        return PlayResult::NotCompared(summary);
    }
    if args.bless
        && let Some(path) = &scenario_file.golden_path
    {
        return match files::write_atomically(path, &summary.transcript) {
            Ok(()) => PlayResult::GoldenWritten(summary),
            Err(Failure { message, .. }) => {
                PlayResult::Error { cannot_run: true, coloured_message: message.clone(), message }
            }
        };
    }
    match &scenario_file.golden {
        None if args.transcript => PlayResult::NotCompared(summary),
        None => PlayResult::MissingGolden(summary),
        Some(expected) => match golden::compare(expected, &summary.transcript) {
            None => PlayResult::Match(summary),
            Some(diff) => PlayResult::Difference(summary, diff),
        },
    }
}

/// Writes the HTML page of the first failed scenario, or else of the first one.
fn write_html(
    path: &Path,
    scenario_files: &[ScenarioFile],
    results: &[PlayResult],
    args: &Play,
) -> Result<(), Failure> {
    let index = results.iter().position(|result| result.exit_code() != 0).unwrap_or(0);
    let scenario_file = &scenario_files[index];
    let mut script = Script::parse(&scenario_file.name, &scenario_file.text)
        .map_err(|error| Failure::usage(error.to_string()))?;
    script.seed = args.seed.unwrap_or(script.seed);
    let verdict = Runner::with_fault(args.demo_fault).try_script(&script);
    let failure = results.get(index).and_then(PlayResult::message);
    let picture = PageInput {
        script: &script,
        fault: args.demo_fault,
        violation: verdict.findings.violations.first(),
        failure: failure.as_deref(),
    };
    files::write_atomically(path, &picture::page(&picture))
}

/// Returns a digest of the digests of all transcripts, in the order of the results.
fn digest_of_all(results: &[PlayResult]) -> String {
    let digests: Vec<&str> =
        results.iter().map(|result| result.summary().map_or("-", |summary| &summary.digest)).collect();
    digest(&digests.join("\n"))
}

fn print_result(scenario_file: &ScenarioFile, result: &PlayResult, args: &Play) {
    let style = if result.exit_code() == 0 { GOOD } else { BAD };
    let (result_name, name) = (result.as_str(), &scenario_file.name);
    match result.summary() {
        None => print_line!("{style}{result_name:<8}{style:#} {name}"),
        Some(summary) => {
            let short_digest = &summary.digest[..summary.digest.len().min(23)];
            let PlaySummary { steps, events, attempts, duration, .. } = summary;
            print_line!(
                "{style}{result_name:<8}{style:#} {name:<44} {DIM}{short_digest}  {steps} steps, {events} events, {attempts} attempts, {duration}{DIM:#}"
            );
        }
    }
    match result {
        PlayResult::Error { coloured_message, .. } => print_line!("{coloured_message}"),
        PlayResult::Difference(_, diff) => print_diff(diff),
        PlayResult::MissingGolden(_) => print_line!("         {MISSING_TRANSCRIPT_MESSAGE}"),
        PlayResult::NotCompared(_) if args.seed.is_none() => {
            print_line!("         not compared: {MISSING_TRANSCRIPT_MESSAGE}")
        }
        _ => {}
    }
    if args.transcript
        && let Some(summary) = result.summary()
    {
        terminal::print(terminal::sanitize(&summary.transcript));
    }
    if result.exit_code() != 0 {
        let seed = args.seed.map(|seed| format!(" --seed {seed}")).unwrap_or_default();
        let against = args.against.as_ref().map(|url| format!(" --against {url}")).unwrap_or_default();
        let fault = args.demo_fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
        print_line!("         {DIM}again: chargeproof play {name}{seed}{against}{fault}{DIM:#}");
    }
}

fn print_diff(diff: &Diff) {
    for line in &diff.lines {
        let text = terminal::sanitize(&line.text);
        match line.kind {
            DiffLineKind::Hunk => print_line!("{LOCATION}{text}{LOCATION:#}"),
            DiffLineKind::Same => print_line!(" {text}"),
            DiffLineKind::Removed => print_line!("{BAD}-{text}{BAD:#}"),
            DiffLineKind::Added => print_line!("{GOOD}+{text}{GOOD:#}"),
        }
    }
}

fn print_summary(results: &[PlayResult], scenario_count: usize, overall_digest: &str) {
    let count =
        |predicate: fn(&PlayResult) -> bool| results.iter().filter(|result| predicate(result)).count();
    let not_compared = count(|result| matches!(result, PlayResult::NotCompared(_)));
    let failed = count(|result| result.exit_code() != 0);
    let passed = results.len() - failed - not_compared;
    let style = if failed == 0 { GOOD } else { BAD };
    let noun = if results.len() == 1 { "scenario" } else { "scenarios" };
    let not_compared_text =
        if not_compared == 0 { String::new() } else { format!(", {not_compared} not compared") };
    print_line!(
        "{style}{} {noun}: {passed} passed, {failed} failed{not_compared_text}{style:#}   {DIM}digest {overall_digest}{DIM:#}",
        results.len()
    );
    if results.len() < scenario_count {
        print_line!(
            "{BAD}interrupted{BAD:#}: {} of {scenario_count} were not played",
            scenario_count - results.len()
        );
    }
}

fn scenario_row<'a>(scenario_file: &'a ScenarioFile, result: &'a PlayResult, args: &Play) -> ScenarioRow<'a> {
    let summary = result.summary();
    ScenarioRow {
        scenario: &scenario_file.name,
        result: result.as_str(),
        digest: summary.map(|summary| summary.digest.as_str()),
        steps: summary.map(|summary| summary.steps),
        events: summary.map(|summary| summary.events),
        posts: summary.map(|summary| summary.attempts),
        message: result.message(),
        transcript: summary.filter(|_| args.transcript).map(|summary| summary.transcript.as_str()),
    }
}

fn built_in_scenario_file(built_in: &BuiltInScenario) -> ScenarioFile {
    ScenarioFile {
        name: built_in.name.to_owned(),
        text: built_in.text.to_owned(),
        golden: built_in.transcript.map(str::to_owned),
        golden_path: None,
    }
}

/// Returns the scenarios of these files and directories, ordered by path; the built-in ones if there are none.
fn scenario_files(paths: &[PathBuf]) -> Result<Vec<ScenarioFile>, Failure> {
    if paths.is_empty() {
        return Ok(BUILT_IN.iter().map(built_in_scenario_file).collect());
    }
    let mut files = Vec::new();
    for path in paths {
        find_scenarios(path, &mut files)?;
    }
    if files.is_empty() {
        let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Failure::usage(format!("found no scenario (*.yaml) in {}", names.join(", "))));
    }
    files.into_iter().map(|path| read_scenario(&path)).collect()
}

/// Adds a file, or the scenario files below a directory, to `files`.
fn find_scenarios(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let unreadable = |error| Failure::usage(format!("`{}` can't be read: {error}", path.display()));
    let mut entries = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        entries.push(entry.map_err(unreadable)?.path());
    }
    entries.sort();
    for entry in entries {
        if entry.is_dir() || entry.extension().is_some_and(|extension| extension == "yaml") {
            find_scenarios(&entry, files)?;
        }
    }
    Ok(())
}

fn read_scenario(path: &Path) -> Result<ScenarioFile, Failure> {
    let text = files::text_of(path, SCENARIO_MAX)?;
    if serde_json::from_str::<ScenarioResponse>(&text).is_ok() {
        return Err(Failure::usage(format!(
            "`{0}` is the JSON response of /sandbox/scenario, which contains a scenario; save the scenario itself with \
             `chargeproof play --save-from URL FILE`, or request it with `Accept: application/yaml`",
            path.display()
        )));
    }
    let golden_path = path.with_extension("transcript");
    Ok(ScenarioFile {
        name: path.display().to_string(),
        text,
        golden: files::read_text(&golden_path, SCENARIO_MAX).ok(),
        golden_path: Some(golden_path),
    })
}
