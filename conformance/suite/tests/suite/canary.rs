//! The canary: a check that always fails must fail an otherwise passing run, in every report format.

use std::iter::once;

use ::mutants::fake::{FakeServer, run};
use serde_json::Value;

use conformance::report::{Format, Style, render};
use conformance::{Level, Outcome, Profile};
use conformance_judge::{Check, checks, rows_by};
use conformance_model::verdict::CheckError;

/// Returns the run of a correct service, without failures and gaps.
fn passing_outcome() -> Outcome {
    let outcome = run(FakeServer::default());
    assert_eq!(outcome.exit_code(), 0, "the ground is not green");
    outcome
}

/// Returns the same run with one check that always reports a violation.
fn with_canary(honest: &Outcome, check: &Check) -> Outcome {
    let canary = Check { judge: |_| Err(CheckError::violation(1, "a song", "silence")), ..*check };
    let mut outcome = honest.clone();
    // Excluded checks are not run, and no other check may hide the failure.
    let mut whole = outcome.recording.clone();
    whole.without.clear();
    let sung = rows_by(once(canary), &whole, |_| true, |_| false);
    let index = outcome.rows.iter().position(|row| row.id == check.id).expect("a row for each check");
    outcome.rows.splice(index..=index, sung);
    outcome
}

#[test]
fn every_required_check_can_fail_the_run() {
    let honest = passing_outcome();
    for check in checks(Profile::Spec) {
        let outcome = with_canary(&honest, check);
        let row = outcome.rows.iter().find(|row| row.id == check.id).expect("a row");
        let (word, exit) = match row.requirement.level {
            Level::Must => ("fail", 1),
            Level::Should => ("warn", 0),
            Level::Open => ("observed", 0),
        };
        assert_eq!((row.verdict.as_str(), outcome.exit_code()), (word, exit), "{}", check.id);
    }
}

#[track_caller]
fn check_red(format: Format, expected: &[&str]) {
    let honest = passing_outcome();
    let victim = checks(Profile::Spec).find(|check| check.id == "paging.joined").expect("a check");
    let (green, red) = (render(&honest, format, Style::Plain), {
        render(&with_canary(&honest, victim), format, Style::Plain)
    });
    for text in expected {
        assert!(red.contains(text), "`{text}` is missing:\n{red}");
        assert!(!green.contains(text), "`{text}` stands in a green report:\n{green}");
    }
}

#[test]
fn the_text_reports_the_failure() {
    check_red(Format::Text, &["fail  paging.joined", "exit 1\n", "silence"]);
}

#[test]
fn the_json_reports_the_failure() {
    check_red(Format::Json, &["\"exit_code\": 1", "\"verdict\": \"fail\"", "silence"]);
    let red = render(
        &with_canary(&passing_outcome(), checks(Profile::Spec).next().expect("a check")),
        Format::Json,
        Style::Plain,
    );
    let report: Value = serde_json::from_str(&red).expect("JSON");
    assert_eq!(report["exit_code"], 1);
}

#[test]
fn the_junit_xml_reports_the_failure() {
    check_red(Format::Junit, &["failures=\"1\"", "<failure ", "silence"]);
}

#[test]
fn the_markdown_reports_the_failure() {
    check_red(Format::Markdown, &["❌", "Violations: ", "silence"]);
}

#[test]
fn the_html_reports_the_failure() {
    check_red(Format::Html, &["exit 1", "silence"]);
}

#[test]
fn the_annotations_report_the_failure() {
    check_red(Format::Github, &["::error title=fail%3A paging.joined", "silence"]);
}

#[test]
fn a_missing_check_makes_the_run_incomplete() {
    let honest = passing_outcome();
    for check in checks(Profile::Spec) {
        let mut outcome = honest.clone();
        outcome.rows.retain(|row| row.id != check.id);
        assert_eq!(outcome.exit_code(), 3, "{}", check.id);
    }
}
