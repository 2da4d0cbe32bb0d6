//! The JSON report. Its schema is `report.schema.json`; a test compares the two.

use serde::Serialize;

use conformance_faults::Power;
use conformance_judge::Observation;
use conformance_model::baseline::fingerprint;
use conformance_model::catalogue::Level;
use conformance_model::selection::Selection;
use conformance_model::verdict::{Finding, StatementResult, Stop, Verdict};

use crate::check::Outcome;
use crate::report::command::{curl, recheck_command};
use crate::report::coverage::{Sentence, coverage};
use crate::report::view::{ReportView, is_invisible};

/// The version of the format. Incremented when an older reader would misread a report.
const FORMAT: u32 = 1;

/// The findings of a run of `chargeproof check` about one service.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Report {
    /// The version of this format.
    format: u32,
    /// The base address of the target.
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
    /// The exit code: 0 all statements hold, 1 a violation, 2 configuration, 3 incomplete, 4 unreachable,
    /// 130 interrupted.
    exit_code: u8,
    /// The reason why nothing could be judged, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stop>,
    /// The number of selected checks.
    expected: usize,
    /// The number of checks with a verdict. If it is less than expected, the report is invalid.
    reported: usize,
    /// The number of required statements among those reported.
    required: usize,
    /// The number of required statements that were judged.
    judged: usize,
    /// True if every required statement was judged or excluded by the operator.
    complete: bool,
    /// True if the run is incomplete, but the operator accepts all gaps.
    accepted: bool,
    /// The patterns that select statements.
    selection: Selection,
    /// The parts that the operator excluded.
    without: Vec<String>,
    /// The stale entries of the baseline of known failures, as messages. Any of them fails the run.
    baseline_faults: Vec<String>,
    /// True if personal values and amounts are hidden.
    private: bool,
    /// The requests that were sent.
    requests: Requests,
    /// The selected statements with their verdicts.
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
    /// The number of these requests that were sent in bursts.
    in_bursts: u32,
    /// The number of these requests that are retries.
    repeats: u32,
    /// All of them.
    total: u32,
}

/// A statement and its verdict.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Statement {
    /// The statement's name.
    id: String,
    /// The section of the specification.
    spec: String,
    /// The level.
    level: StatementLevel,
    /// The statement itself.
    text: String,
    /// The verdict.
    verdict: VerdictName,
    /// Of a pass: the satisfied interpretation of the specification, or the evidence.
    #[serde(rename = "reading", skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Of a failure or warning: the expectation.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    /// Of a failure or warning: the actual value.
    #[serde(skip_serializing_if = "Option::is_none")]
    actual: Option<String>,
    /// Of a failure or warning: the number of the exchange in the recording that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    exchange: Option<u32>,
    /// Of a failure or warning: a command that repeats the request. Keys are environment variables.
    #[serde(rename = "asked", skip_serializing_if = "Option::is_none")]
    curl_command: Option<String>,
    /// Of a failure or warning: the command that judges this statement again.
    #[serde(rename = "again", skip_serializing_if = "Option::is_none")]
    recheck_command: Option<String>,
    /// Of a failure or warning: its fingerprint for a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Of a known failure: the last day on which it is tolerated.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// The reason why it was not judged, does not apply, was excluded or is a known failure.
    #[serde(rename = "because", skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The remedy that lets it be judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
    /// The observation, where the specification leaves it open.
    #[serde(rename = "seen", skip_serializing_if = "Option::is_none")]
    observation: Option<String>,
}

/// The level of a statement.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "lowercase")]
enum StatementLevel {
    /// The specification requires it.
    #[default]
    Must,
    /// It is derived from the specification or from HTTP.
    Should,
    /// The specification leaves it open.
    Open,
}

/// The verdict on a statement.
#[derive(Clone, Copy, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[serde(rename_all = "snake_case")]
enum VerdictName {
    /// It was tested and holds.
    Pass,
    /// A required statement was violated.
    Fail,
    /// A derived statement was violated.
    Warn,
    /// It could not be tested.
    #[default]
    NotJudged,
    /// The target does not have its subject.
    NotApplicable,
    /// The specification leaves it open; the behaviour was observed.
    Observed,
    /// It was violated as a known failure describes.
    Known,
    /// The operator excluded it.
    LeftOut,
}

/// Returns the report as a JSON object.
pub fn json(outcome: &Outcome) -> String {
    let view = ReportView::from_outcome(outcome);
    let ledger = &outcome.ledger;
    let report = Report {
        format: FORMAT,
        base: outcome.recording.base.clone(),
        version: outcome.origin.version.clone(),
        started: outcome.origin.started.clone(),
        duration_ms: outcome
            .origin
            .lasted
            .map(|lasted| u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX)),
        interrupted: outcome.origin.interrupted.is_some(),
        exit_code: outcome.exit_code(),
        stop: outcome.stop.clone(),
        expected: outcome.expected_check_count(),
        reported: outcome.rows.len(),
        required: view.required_count,
        judged: view.judged_count,
        complete: view.is_complete,
        accepted: outcome.are_gaps_accepted(),
        selection: outcome.selection.clone(),
        without: outcome.recording.without.iter().map(|part| part.as_str().to_owned()).collect(),
        baseline_faults: outcome.stale_entries.clone(),
        private: outcome.is_redacted,
        requests: Requests {
            live: ledger.live,
            test: ledger.test,
            other: ledger.other,
            in_bursts: ledger.in_bursts,
            repeats: ledger.repeats,
            total: ledger.total(),
        },
        statements: outcome.rows.iter().map(|row| report_statement(outcome, row)).collect(),
        observations: view.observations,
        power: outcome.power.clone(),
        coverage: coverage(&outcome.rows),
    };
    pretty(&report)
}

/// Returns indented JSON with invisible characters escaped, see [`escape_invisible`].
pub(crate) fn pretty(value: &impl Serialize) -> String {
    escape_invisible(&serde_json::to_string_pretty(value).expect("plain data serializes to JSON"))
}

/// Returns equal JSON with invisible characters and the second `#` of `##` escaped. A terminal would interpret DEL, C1
/// controls and bidirectional marks in the text of a server, which JSON does not escape. Some CI systems interpret
/// `##[`.
pub fn escape_invisible(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if (is_invisible(character) && character != '\n') || (character == '#' && escaped.ends_with('#')) {
            // Such characters occur only within strings.
            for unit in character.encode_utf16(&mut [0; 2]) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(character);
        }
    }
    escaped
}

fn report_statement(outcome: &Outcome, row: &StatementResult) -> Statement {
    let requirement = &row.requirement;
    let blank = Statement {
        id: row.id.clone(),
        spec: requirement.spec.clone(),
        level: match requirement.level {
            Level::Must => StatementLevel::Must,
            Level::Should => StatementLevel::Should,
            Level::Open => StatementLevel::Open,
        },
        text: requirement.text.clone(),
        ..Statement::default()
    };
    match row.verdict.clone() {
        Verdict::Pass { note } => Statement { verdict: VerdictName::Pass, note, ..blank },
        Verdict::Fail(finding) => with_evidence(outcome, VerdictName::Fail, finding, blank),
        Verdict::Warn(finding) => with_evidence(outcome, VerdictName::Warn, finding, blank),
        Verdict::NotJudged { why, remedy } => {
            Statement { verdict: VerdictName::NotJudged, reason: Some(why), remedy: Some(remedy), ..blank }
        }
        Verdict::NotApplicable { why } => {
            Statement { verdict: VerdictName::NotApplicable, reason: Some(why), ..blank }
        }
        Verdict::Observed { seen } => {
            Statement { verdict: VerdictName::Observed, observation: Some(seen), ..blank }
        }
        Verdict::Known { finding, known } => {
            let statement = with_evidence(outcome, VerdictName::Known, finding, blank);
            Statement { reason: Some(known.reason), expires: Some(known.expires), ..statement }
        }
        Verdict::LeftOut { by } => Statement { verdict: VerdictName::LeftOut, reason: Some(by), ..blank },
    }
}

fn with_evidence(outcome: &Outcome, verdict: VerdictName, finding: Finding, blank: Statement) -> Statement {
    let recording = &outcome.recording;
    let exchange = finding.exchange.and_then(|number| recording.exchange(number));
    Statement {
        verdict,
        fingerprint: Some(fingerprint(&blank.id, &finding)),
        expected: Some(finding.expected),
        actual: Some(finding.actual),
        exchange: finding.exchange,
        curl_command: exchange.map(|exchange| curl(recording, exchange)),
        recheck_command: Some(recheck_command(recording, &blank.id)),
        ..blank
    }
}

/// Returns the schema of a report.
#[cfg(test)]
pub(super) fn schema() -> serde_json::Value {
    serde_json::to_value(schemars::schema_for!(Report)).expect("a schema serializes to JSON")
}

#[cfg(test)]
mod tests {
    use std::{env, fs};

    use super::*;
    use crate::report::samples;

    const SCHEMA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/report.schema.json");

    #[test]
    fn control_characters_are_escaped_without_loss() {
        let sent = "a\u{7f}b\u{9b}2J\n\u{1b}[0m \u{202e}##[error]\u{e0041}";
        let text = pretty(&[sent]);
        assert!(
            text.chars().all(|character| !is_invisible(character) || character == '\n')
                && !text.contains("##"),
            "{text:?}"
        );
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).expect("JSON"), [sent]);
    }

    #[test]
    fn the_published_schema_is_current() {
        let text = serde_json::to_string_pretty(&schema()).expect("a schema serializes to JSON") + "\n";
        if env::var_os("BLESS").is_some() {
            fs::write(SCHEMA, &text).expect("the package can be written to");
        }
        let published = fs::read_to_string(SCHEMA).unwrap_or_default();
        assert!(
            published == text,
            "report.schema.json is out of date: BLESS=1 cargo test -p conformance --lib"
        );
    }

    #[test]
    fn every_report_matches_the_schema() {
        let validator = jsonschema::validator_for(&schema()).expect("the schema is valid");
        for (name, outcome) in samples::all() {
            let report: serde_json::Value = serde_json::from_str(&json(&outcome)).expect("a JSON report");
            let errors: Vec<_> = validator.iter_errors(&report).map(|err| err.to_string()).collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
        }
        assert!(!validator.is_valid(&serde_json::json!({})), "an empty object is not a report");
    }
}
