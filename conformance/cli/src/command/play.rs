//! `chargeproof play`: runs scenarios and compares them with their golden transcripts.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use conformance::report::escape_invisible;
use serde::Serialize;
use simulator::{
    api::ScenarioAnswer,
    digest::digest,
    picture::{self, Picture},
    play::{
        Call, Cause, LocalStage, PlaySummary, Stage,
        golden::{self, Diff, Sign},
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
    terminal::{self, BAD, DIM, GOOD, PLACE, note, say},
};

/// A scenario that is embedded in the program.
pub(crate) struct BuiltIn {
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
    transcript: Option<String>,
    /// The path of its golden transcript.
    golden: Option<PathBuf>,
}

const MISSING_TRANSCRIPT: &str = "it has no golden transcript; --bless writes one";

/// The result of a scenario.
enum PlayResult {
    Matches(PlaySummary),
    /// Not compared: played with another seed, or without a golden transcript to compare.
    Played(PlaySummary),
    Blessed(PlaySummary),
    Differs(PlaySummary, Diff),
    NoTranscript(PlaySummary),
    /// An expectation failed, or the scenario cannot be run.
    Stopped {
        is_broken: bool,
        plain: String,
        coloured: String,
    },
}

impl PlayResult {
    fn as_str(&self) -> &'static str {
        match self {
            PlayResult::Matches(_) => "pass",
            PlayResult::Played(_) => "played",
            PlayResult::Blessed(_) => "blessed",
            PlayResult::Differs(..) | PlayResult::NoTranscript(_) | PlayResult::Stopped { .. } => "fail",
        }
    }

    fn played(&self) -> Option<&PlaySummary> {
        match self {
            PlayResult::Matches(played)
            | PlayResult::Played(played)
            | PlayResult::Blessed(played)
            | PlayResult::Differs(played, _)
            | PlayResult::NoTranscript(played) => Some(played),
            PlayResult::Stopped { .. } => None,
        }
    }

    /// Returns the message of a failure.
    fn message(&self) -> Option<String> {
        match self {
            PlayResult::Stopped { plain, .. } => Some(plain.clone()),
            PlayResult::Differs(_, diff) => Some(diff.to_string()),
            PlayResult::NoTranscript(_) => Some(MISSING_TRANSCRIPT.to_owned()),
            PlayResult::Matches(_) | PlayResult::Played(_) | PlayResult::Blessed(_) => None,
        }
    }

    /// Returns the exit code: 0 for a match, 1 for a difference, 2 if the scenario is invalid or the server could not be
    /// reached.
    fn exit_code(&self) -> u8 {
        match self {
            PlayResult::Matches(_) | PlayResult::Played(_) | PlayResult::Blessed(_) => 0,
            PlayResult::Differs(..)
            | PlayResult::NoTranscript(_)
            | PlayResult::Stopped { is_broken: false, .. } => 1,
            PlayResult::Stopped { is_broken: true, .. } => 2,
        }
    }
}

/// One line of the JSON report.
#[derive(Serialize)]
struct Row<'a> {
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

#[derive(Serialize)]
struct Report<'a> {
    /// The version of the report, incremented when older readers would misread it.
    format: u32,
    /// `true` if a signal came before all scenarios had run.
    interrupted: bool,
    scenarios: Vec<Row<'a>>,
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
                let fresh = args.demo_fault.map_or_else(LocalStage::new, LocalStage::with_fault);
                play_one(scenario_file, args, &mut { fresh })
            }
        };
        if args.format == Format::Text {
            show(scenario_file, &result, args);
        }
        results.push(result);
    }
    if let Some(path) = &args.html {
        write_html(path, &scenario_files, &results, args)?;
    }
    let whole = digest_of_all(&results);
    let interrupted = results.len() < scenario_files.len();
    match args.format {
        Format::Text => print_summary(&results, scenario_files.len(), &whole),
        Format::Json => {
            let rows = scenario_files
                .iter()
                .zip(&results)
                .map(|(scenario_file, result)| row(scenario_file, result, args))
                .collect();
            let report = Report { format: 1, interrupted, scenarios: rows, digest: whole };
            let report = serde_json::to_string_pretty(&report).expect("a report is JSON");
            say!("{}", escape_invisible(&report));
        }
    }
    Ok(match interrupted {
        true => INTERRUPTED,
        false => results.iter().map(PlayResult::exit_code).max().unwrap_or(0),
    })
}

/// Saves the history of a served world as a scenario.
fn save_from(url: &str, file: &Path) -> Result<u8, Failure> {
    files::check_writable(file)?;
    let mut stage = RemoteStage::new(url).map_err(Failure::usage)?;
    let call = Call { method: "GET", path: "/sandbox/scenario", bearer: None, headers: &[], body: None };
    let answer = stage.call(&call).map_err(|error| Failure::unreachable(error.to_string()))?;
    let saved: ScenarioAnswer = serde_json::from_slice(&answer.body).map_err(|_| {
        let reason = answer.text("/message").unwrap_or_else(|| "no message".to_owned());
        Failure::usage(format!("GET /sandbox/scenario at `{url}` returned {}: {reason}", answer.status))
    })?;
    files::write_whole(file, &saved.scenario)?;
    note!("wrote `{0}`; `chargeproof play {0} --bless` runs it and writes its transcript", file.display());
    if saved.untold > 0 {
        note!("calls that a scenario cannot express: {}; its comments list the reasons", saved.untold);
    }
    Ok(0)
}

/// Plays all built-in scenarios on a stage. Returns their number; the error names the one that failed.
pub(crate) fn play_built_ins(stage: &mut dyn Stage, each: &mut dyn FnMut(&str)) -> Result<usize, String> {
    for built_in in BUILT_IN {
        each(built_in.name);
        play_built_in(built_in.name, stage)?;
    }
    Ok(BUILT_IN.len())
}

/// Plays one built-in scenario in a new world, which keeps the resulting state.
pub(crate) fn play_built_in(name: &str, stage: &mut dyn Stage) -> Result<(), String> {
    let built_in =
        BUILT_IN.iter().find(|built_in| built_in.name == name).expect("the scenario is part of the program");
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
    match play_one(&scenario_file(built_in), &args, stage) {
        PlayResult::Matches(_) => Ok(()),
        PlayResult::Differs(_, diff) => Err(format!("{name} differs from its transcript\n{diff}")),
        PlayResult::Stopped { plain, .. } => Err(plain),
        other => Err(format!("{name}: {}", other.as_str())),
    }
}

fn play_one(scenario_file: &ScenarioFile, args: &Play, stage: &mut dyn Stage) -> PlayResult {
    let script = match Script::parse(&scenario_file.name, &scenario_file.text) {
        Ok(script) => script,
        Err(error) => {
            return PlayResult::Stopped {
                is_broken: true,
                plain: error.to_string(),
                coloured: error.in_colour(),
            };
        }
    };
    let played = match play(&script, args.seed, stage) {
        Ok(played) => played,
        Err(error) => {
            let is_broken = error.cause != Cause::UnmetExpectation;
            return PlayResult::Stopped { is_broken, plain: error.to_string(), coloured: error.in_colour() };
        }
    };
    if args.seed.is_some() {
        return PlayResult::Played(played);
    }
    if args.bless
        && let Some(path) = &scenario_file.golden
    {
        return match files::write_whole(path, &played.transcript) {
            Ok(()) => PlayResult::Blessed(played),
            Err(Failure { message: plain, .. }) => {
                PlayResult::Stopped { is_broken: true, coloured: plain.clone(), plain }
            }
        };
    }
    match &scenario_file.transcript {
        None if args.transcript => PlayResult::Played(played),
        None => PlayResult::NoTranscript(played),
        Some(expected) => match golden::compare(expected, &played.transcript) {
            None => PlayResult::Matches(played),
            Some(diff) => PlayResult::Differs(played, diff),
        },
    }
}

/// Writes the page of the first failed scenario, or else of the first one.
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
    let picture = Picture {
        script: &script,
        fault: args.demo_fault,
        violation: verdict.findings.violations.first(),
        failure: failure.as_deref(),
    };
    files::write_whole(path, &picture::page(&picture))
}

/// Returns a digest of all transcripts, independent of the order of files on the disk.
fn digest_of_all(results: &[PlayResult]) -> String {
    let all: Vec<&str> =
        results.iter().map(|result| result.played().map_or("-", |played| &played.digest)).collect();
    digest(&all.join("\n"))
}

fn show(scenario_file: &ScenarioFile, result: &PlayResult, args: &Play) {
    let style = if result.exit_code() == 0 { GOOD } else { BAD };
    let (word, name) = (result.as_str(), &scenario_file.name);
    match result.played() {
        None => say!("{style}{word:<8}{style:#} {name}"),
        Some(played) => {
            let short = &played.digest[..played.digest.len().min(23)];
            let PlaySummary { steps, events, posts, duration: lasted, .. } = played;
            say!(
                "{style}{word:<8}{style:#} {name:<44} {DIM}{short}  {steps} steps, {events} events, {posts} posts, {lasted}{DIM:#}"
            );
        }
    }
    match result {
        PlayResult::Stopped { coloured, .. } => say!("{coloured}"),
        PlayResult::Differs(_, diff) => show_diff(diff),
        PlayResult::NoTranscript(_) => say!("         {MISSING_TRANSCRIPT}"),
        PlayResult::Played(_) if args.seed.is_none() => say!("         not compared: {MISSING_TRANSCRIPT}"),
        _ => {}
    }
    if args.transcript
        && let Some(played) = result.played()
    {
        terminal::print(terminal::sanitize(&played.transcript));
    }
    if result.exit_code() != 0 {
        let seed = args.seed.map(|seed| format!(" --seed {seed}")).unwrap_or_default();
        let stage = args.against.as_ref().map(|url| format!(" --against {url}")).unwrap_or_default();
        let fault = args.demo_fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
        say!("         {DIM}again: chargeproof play {name}{seed}{stage}{fault}{DIM:#}");
    }
}

fn show_diff(diff: &Diff) {
    for line in &diff.lines {
        let text = terminal::sanitize(&line.text);
        match line.sign {
            Sign::Hunk => say!("{PLACE}{text}{PLACE:#}"),
            Sign::Same => say!(" {text}"),
            Sign::Gone => say!("{BAD}-{text}{BAD:#}"),
            Sign::New => say!("{GOOD}+{text}{GOOD:#}"),
        }
    }
}

fn print_summary(results: &[PlayResult], of: usize, whole: &str) {
    let count = |test: fn(&PlayResult) -> bool| results.iter().filter(|result| test(result)).count();
    let not_compared = count(|result| matches!(result, PlayResult::Played(_)));
    let bad = count(|result| result.exit_code() != 0);
    let well = results.len() - bad - not_compared;
    let style = if bad == 0 { GOOD } else { BAD };
    let noun = if results.len() == 1 { "scenario" } else { "scenarios" };
    let played = if not_compared == 0 { String::new() } else { format!(", {not_compared} not compared") };
    say!(
        "{style}{} {noun}: {well} passed, {bad} failed{played}{style:#}   {DIM}digest {whole}{DIM:#}",
        results.len()
    );
    if results.len() < of {
        say!("{BAD}interrupted{BAD:#}: {} of {of} were not played", of - results.len());
    }
}

fn row<'a>(scenario_file: &'a ScenarioFile, result: &'a PlayResult, args: &Play) -> Row<'a> {
    let played = result.played();
    Row {
        scenario: &scenario_file.name,
        result: result.as_str(),
        digest: played.map(|played| played.digest.as_str()),
        steps: played.map(|played| played.steps),
        events: played.map(|played| played.events),
        posts: played.map(|played| played.posts),
        message: result.message(),
        transcript: played.filter(|_| args.transcript).map(|played| played.transcript.as_str()),
    }
}

fn scenario_file(built_in: &BuiltIn) -> ScenarioFile {
    ScenarioFile {
        name: built_in.name.to_owned(),
        text: built_in.text.to_owned(),
        transcript: built_in.transcript.map(str::to_owned),
        golden: None,
    }
}

/// Returns the scenarios of these files and directories, ordered by path; the built-in ones if there are none.
fn scenario_files(paths: &[PathBuf]) -> Result<Vec<ScenarioFile>, Failure> {
    if paths.is_empty() {
        return Ok(BUILT_IN.iter().map(scenario_file).collect());
    }
    let mut files = Vec::new();
    for path in paths {
        find(path, &mut files)?;
    }
    if files.is_empty() {
        let named: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
        return Err(Failure::usage(format!("found no scenario (*.yaml) in {}", named.join(", "))));
    }
    files.into_iter().map(|path| read(&path)).collect()
}

fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
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
            find(&entry, files)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<ScenarioFile, Failure> {
    let text = files::text_of(path, SCENARIO_MAX)?;
    if serde_json::from_str::<ScenarioAnswer>(&text).is_ok() {
        return Err(Failure::usage(format!(
            "`{0}` is the JSON response of /sandbox/scenario, which contains a scenario; save the scenario itself with \
             `chargeproof play --save-from URL FILE`, or request it with `Accept: application/yaml`",
            path.display()
        )));
    }
    let golden = path.with_extension("transcript");
    Ok(ScenarioFile {
        name: path.display().to_string(),
        text,
        transcript: files::read_text(&golden, SCENARIO_MAX).ok(),
        golden: Some(golden),
    })
}
