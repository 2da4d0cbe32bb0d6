//! The canary: a check that always fails must fail an otherwise passing run, in every report format.

use std::iter::once;

use ::mutants::fake::{FakeServer, run};
use serde_json::Value;

use conformance::report::{Format, Style, render};
use conformance::{Level, Outcome, Profile};
use conformance_judge::{Check, checks, judge_with};
use conformance_model::verdict::CheckError;

/// Returns the run of a correct service, without failures and gaps.
fn passing_outcome() -> Outcome {
    let outcome = run(FakeServer::default());
    assert_eq!(outcome.exit_code(), 0, "the run of a correct server passes");
    outcome
}

/// Returns the same run with one check that always reports a violation.
fn with_canary(passing: &Outcome, check: &Check) -> Outcome {
    let canary = Check { judge: |_| Err(CheckError::violation(1, "an expectation", "the canary")), ..*check };
    let mut outcome = passing.clone();
    // A check of an excluded part would not run.
    let mut recording = outcome.recording.clone();
    recording.without.clear();
    let canary_rows = judge_with(once(canary), &recording, |_| true, |_| false);
    let index = outcome.rows.iter().position(|row| row.id == check.id).expect("a row for each check");
    outcome.rows.splice(index..=index, canary_rows);
    outcome
}

#[test]
fn each_failed_check_has_the_verdict_and_exit_code_of_its_level() {
    let passing = passing_outcome();
    for check in checks(Profile::Spec) {
        let outcome = with_canary(&passing, check);
        let row = outcome.rows.iter().find(|row| row.id == check.id).expect("a row");
        let (verdict, exit) = match row.requirement.level {
            Level::Must => ("fail", 1),
            Level::Should => ("warn", 0),
            Level::Open => ("observed", 0),
        };
        assert_eq!((row.verdict.as_str(), outcome.exit_code()), (verdict, exit), "{}", check.id);
    }
}

#[track_caller]
fn check_failure(format: Format, expected: &[&str]) {
    let passing = passing_outcome();
    let check = checks(Profile::Spec).find(|check| check.id == "paging.joined").expect("a check");
    let (passing_report, failing_report) = (render(&passing, format, Style::Plain), {
        render(&with_canary(&passing, check), format, Style::Plain)
    });
    for text in expected {
        assert!(failing_report.contains(text), "`{text}` is missing:\n{failing_report}");
        assert!(!passing_report.contains(text), "`{text}` is in the passing report:\n{passing_report}");
    }
}

#[test]
fn the_text_reports_the_failure() {
    check_failure(Format::Text, &["fail  paging.joined", "exit 1\n", "the canary"]);
}

#[test]
fn the_json_reports_the_failure() {
    check_failure(Format::Json, &["\"exit_code\": 1", "\"verdict\": \"fail\"", "the canary"]);
    let text = render(
        &with_canary(&passing_outcome(), checks(Profile::Spec).next().expect("a check")),
        Format::Json,
        Style::Plain,
    );
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["exit_code"], 1);
}

#[test]
fn the_junit_xml_reports_the_failure() {
    check_failure(Format::Junit, &["failures=\"1\"", "<failure ", "the canary"]);
}

#[test]
fn the_markdown_reports_the_failure() {
    check_failure(Format::Markdown, &["❌", "Violations: ", "the canary"]);
}

#[test]
fn the_html_reports_the_failure() {
    check_failure(Format::Html, &["exit 1", "the canary"]);
}

#[test]
fn the_annotations_report_the_failure() {
    check_failure(Format::Github, &["::error title=fail%3A paging.joined", "the canary"]);
}

#[test]
fn a_missing_check_makes_the_run_incomplete() {
    let passing = passing_outcome();
    for check in checks(Profile::Spec) {
        let mut outcome = passing.clone();
        outcome.rows.retain(|row| row.id != check.id);
        assert_eq!(outcome.exit_code(), 3, "{}", check.id);
    }
}
