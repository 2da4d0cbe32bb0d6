//! The JSON report. `report.schema.json` describes it, and a test keeps the two equal.

use serde::Serialize;

use conformance_faults::Power;
use conformance_judge::Observation;
use conformance_model::baseline::fingerprint;
use conformance_model::catalogue::Level;
use conformance_model::selection::Selection;
use conformance_model::verdict::{Finding, Row, Stop, Verdict};

use crate::check::Outcome;
use crate::report::command::{again, curl};
use crate::report::coverage::{Sentence, coverage};
use crate::report::view::{ReportView, is_unseen};

/// Rises when an older reader would misread a report.
const FORMAT: u32 = 1;

/// The findings of a run of `chargeproof check` about one service.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Report {
    /// The version of this format.
    format: u32,
    /// The base address that was asked.
    base: String,
    /// The version of the program that recorded the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// The start of the run, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    started: Option<String>,
    /// The duration of the run in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    /// True if the run was interrupted. Statements whose requests were not all sent are not judged.
    interrupted: bool,
    /// 0 all held, 1 a violation, 2 configuration, 3 incomplete, 4 unreachable, 130 interrupted.
    exit_code: u8,
    /// The reason why nothing could be judged, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stop>,
    /// The number of selected checks.
    expected: usize,
    /// The number of checks with a verdict. If it is less than expected, the run is worthless.
    reported: usize,
    /// The number of required statements among those reported.
    required: usize,
    /// The number of required statements that were judged.
    judged: usize,
    /// True if every required statement was judged or left out on purpose.
    complete: bool,
    /// True if it is incomplete in a way that the operator accepts.
    accepted: bool,
    /// The selected statements.
    selection: Selection,
    /// The parts that the operator left out.
    without: Vec<String>,
    /// The faults of the baseline of known failures. Any fault fails the run.
    baseline_faults: Vec<String>,
    /// True if personal values and amounts are hidden.
    private: bool,
    /// The requests that were sent.
    requests: Requests,
    /// One for each statement.
    statements: Vec<Statement>,
    /// The open points of the specification, and the choices of this service.
    observations: Vec<Observation>,
    /// The known faults that the run would have noticed, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    power: Option<Power>,
    /// The coverage of each sentence of the specification.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, serde(default))]
    coverage: Vec<Sentence>,
}

/// Requests by the key that they carried.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Requests {
    /// With the live key.
    live: u32,
    /// With the test key.
    test: u32,
    /// With any other key, or none.
    other: u32,
    /// Of all these, the ones in bursts.
    in_bursts: u32,
    /// Of all these, the ones that were asked a second time.
    repeats: u32,
    /// All of them.
    total: u32,
}

/// A statement and the word on it.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Statement {
    /// The statement's name.
    id: String,
    /// The section of the specification.
    spec: String,
    /// The level.
    level: Firmness,
    /// The statement itself.
    text: String,
    /// The word on it.
    verdict: Word,
    /// Of a pass: which honest reading it satisfies, or on what ground it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<String>,
    /// Of a failure or warning: what the statement asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// Of a failure or warning: what came instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<String>,
    /// Of a failure or warning: the number of the exchange in the recording that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u32>,
    /// Of a failure or warning: a command line that asks the same. Keys stand under their variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    /// Of a failure or warning: the command that judges this statement again.
    #[serde(skip_serializing_if = "Option::is_none")]
    again: Option<String>,
    /// Of a failure or warning: what a baseline recognises it by.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Of a known failure: the last day on which it may stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// The reason why it was not judged, does not apply, was left out or is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    /// The remedy that lets it be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The observation, where the specification leaves it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
}

/// The level of a statement.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "lowercase")]
enum Firmness {
    /// The specification says so.
    #[default]
    Must,
    /// It follows from what the specification says, or from HTTP.
    Should,
    /// It is left open.
    Open,
}

/// The word on a statement.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "snake_case")]
enum Word {
    /// Exercised, and it held.
    Pass,
    /// A required statement was broken.
    Fail,
    /// A derived statement did not hold.
    Warn,
    /// It could not be exercised.
    #[default]
    NotJudged,
    /// Shown not to exist here.
    NotApplicable,
    /// Left open; noted.
    Observed,
    /// Broken in a way that the operator knows of.
    Known,
    /// The operator left it out.
    LeftOut,
}

/// The whole report as one JSON object.
pub fn json(outcome: &Outcome) -> String {
    let view = ReportView::of(outcome);
    let ledger = &outcome.ledger;
    let report = Report {
        format: FORMAT,
        base: outcome.recording.base.clone(),
        version: outcome.origin.version.clone(),
        started: outcome.origin.started.clone(),
        duration_ms: outcome.origin.lasted.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
        interrupted: outcome.origin.interrupted.is_some(),
        exit_code: outcome.exit_code(),
        stop: outcome.stop.clone(),
        expected: outcome.expected(),
        reported: outcome.rows.len(),
        required: view.required,
        judged: view.judged,
        complete: view.is_complete,
        accepted: outcome.is_accepted(),
        selection: outcome.selection.clone(),
        without: outcome.recording.without.iter().map(|part| part.word().to_owned()).collect(),
        baseline_faults: outcome.faults.clone(),
        private: outcome.private,
        requests: Requests {
            live: ledger.live,
            test: ledger.test,
            other: ledger.other,
            in_bursts: ledger.in_bursts,
            repeats: ledger.repeats,
            total: ledger.total(),
        },
        statements: outcome.rows.iter().map(|row| statement(outcome, row)).collect(),
        observations: view.observations,
        power: outcome.power.clone(),
        coverage: coverage(&outcome.rows),
    };
    pretty(&report)
}

/// Plain data as JSON for people, see [`tame`].
pub(crate) fn pretty(value: &impl Serialize) -> String {
    tame(&serde_json::to_string_pretty(value).expect("plain data is JSON"))
}

/// The same JSON, printable. What a server sent must not move the cursor of whoever prints it, and JSON itself
/// lets DEL, the controls behind it and marks that turn a line round stand.
pub fn tame(text: &str) -> String {
    let mut tame = String::with_capacity(text.len());
    for it in text.chars() {
        if (is_unseen(it) && it != '\n') || (it == '#' && tame.ends_with('#')) {
            // Between values there is none, so it stands in a string.
            for unit in it.encode_utf16(&mut [0; 2]) {
                tame.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            tame.push(it);
        }
    }
    tame
}

fn statement(outcome: &Outcome, row: &Row) -> Statement {
    let requirement = &row.requirement;
    let bare = Statement {
        id: row.id.clone(),
        spec: requirement.spec.clone(),
        level: match requirement.level {
            Level::Must => Firmness::Must,
            Level::Should => Firmness::Should,
            Level::Open => Firmness::Open,
        },
        text: requirement.text.clone(),
        ..Statement::default()
    };
    match row.verdict.clone() {
        Verdict::Pass { note } => Statement { verdict: Word::Pass, reading: note, ..bare },
        Verdict::Fail(finding) => with_evidence(outcome, Word::Fail, finding, bare),
        Verdict::Warn(finding) => with_evidence(outcome, Word::Warn, finding, bare),
        Verdict::NotJudged { why, remedy } => {
            Statement { verdict: Word::NotJudged, because: Some(why), remedy: Some(remedy), ..bare }
        }
        Verdict::NotApplicable { why } => {
            Statement { verdict: Word::NotApplicable, because: Some(why), ..bare }
        }
        Verdict::Observed { seen } => Statement { verdict: Word::Observed, seen: Some(seen), ..bare },
        Verdict::Known { finding, known } => {
            let told = with_evidence(outcome, Word::Known, finding, bare);
            Statement { because: Some(known.reason), expires: Some(known.expires), ..told }
        }
        Verdict::LeftOut { by } => Statement { verdict: Word::LeftOut, because: Some(by), ..bare },
    }
}

fn with_evidence(outcome: &Outcome, verdict: Word, finding: Finding, bare: Statement) -> Statement {
    let recording = &outcome.recording;
    let exchange = finding.exchange.and_then(|number| recording.exchange(number));
    Statement {
        verdict,
        fingerprint: Some(fingerprint(&bare.id, &finding)),
        expected: Some(finding.expected),
        actual: Some(finding.actual),
        exchange: finding.exchange,
        asked: exchange.map(|exchange| curl(recording, exchange)),
        again: Some(again(recording, &bare.id)),
        ..bare
    }
}

/// The schema of a report.
#[cfg(test)]
pub(super) fn schema() -> serde_json::Value {
    serde_json::to_value(schemars::schema_for!(Report)).expect("a schema is JSON")
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;
    use crate::report::samples;

    const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/report.schema.json");

    #[test]
    fn no_control_stands_in_it_and_none_is_lost() {
        let sent = "a\u{7f}b\u{9b}2J\n\u{1b}[0m \u{202e}##[error]\u{e0041}";
        let text = pretty(&[sent]);
        assert!(text.chars().all(|it| !is_unseen(it) || it == '\n') && !text.contains("##"), "{text:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).expect("JSON"), [sent]);
    }

    #[test]
    fn the_published_schema_is_the_one_of_the_code() {
        let text = serde_json::to_string_pretty(&schema()).expect("a schema is JSON") + "\n";
        if env::var_os("BLESS").is_some() {
            fs::write(SCHEMA, &text).expect("the package can be written to");
        }
        let published = fs::read_to_string(SCHEMA).unwrap_or_default();
        assert!(published == text, "report.schema.json is old: BLESS=1 cargo test -p conformance --lib");
    }

    #[test]
    fn every_report_fits_the_schema() {
        let validator = jsonschema::validator_for(&schema()).expect("a sound schema");
        for (name, outcome) in samples::all() {
            let report: serde_json::Value = serde_json::from_str(&json(&outcome)).expect("a JSON report");
            let wrong: Vec<_> = validator.iter_errors(&report).map(|err| err.to_string()).collect();
            assert!(wrong.is_empty(), "{name}: {wrong:?}");
        }
        assert!(!validator.is_valid(&serde_json::json!({})), "an empty object is no report");
    }
}
