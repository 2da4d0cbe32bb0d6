//! The JUnit report for CI systems: a test suite for each section, a test case for each statement.
//!
//! CI systems show skipped cases as passed. So an additional case fails if a required statement was not judged,
//! unless the operator accepts the gap.

use chrono::DateTime;
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use conformance_model::verdict::{StatementResult, Verdict};

use crate::check::Outcome;
use crate::report::view::{ReportView, one_line};

/// Returns the report as JUnit XML.
pub fn junit(outcome: &Outcome) -> String {
    let view = ReportView::from_outcome(outcome);
    let mut report = Report::new("chargeproof check");
    let started =
        outcome.origin.started.as_deref().and_then(|started| DateTime::parse_from_rfc3339(started).ok());
    if let Some(started) = started {
        report.set_timestamp(started);
    }
    if let Some(lasted) = outcome.origin.lasted {
        report.set_time(lasted);
    }
    for section in &view.sections {
        let mut suite = TestSuite::new(section.name());
        suite.add_test_cases(section.rows.iter().map(|row| test_case(&view, row)));
        report.add_test_suite(suite);
    }
    report.add_test_suite(completeness_suite(&view));
    if !outcome.baseline.known.is_empty() {
        report.add_test_suite(baseline_suite(outcome));
    }
    report.to_string().expect("writing XML to memory cannot fail")
}

fn test_case(view: &ReportView<'_>, row: &StatementResult) -> TestCase {
    let lines = view.details(row);
    let details: Vec<_> = lines.iter().map(|(name, text)| format!("{name:<11} {text}")).collect();
    let status = match &row.verdict {
        Verdict::Fail(finding) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("fail").set_message(format!(
                "{} Actual: {}",
                row.requirement.text,
                one_line(&finding.actual)
            ));
            status.set_description(details.join("\n"));
            status
        }
        Verdict::NotJudged { .. }
        | Verdict::NotApplicable { .. }
        | Verdict::Known { .. }
        | Verdict::LeftOut { .. } => {
            let mut status = TestCaseStatus::skipped();
            let reasons: Vec<_> = lines.iter().map(|(_, text)| text.as_str()).collect();
            status.set_type(row.verdict.as_str()).set_message(reasons.join("; "));
            status
        }
        Verdict::Pass { .. } | Verdict::Warn(_) | Verdict::Observed { .. } => TestCaseStatus::success(),
    };
    let is_success = matches!(status, TestCaseStatus::Success { .. });
    let mut case = TestCase::new(row.id.clone(), status);
    case.set_classname(format!("chargeproof.{}", row.id.split('.').next().unwrap_or_default()));
    if is_success && !details.is_empty() {
        case.set_system_out(format!("{}\n{}", row.verdict.as_str(), details.join("\n")));
    }
    case
}

/// Returns a suite with one case, which fails if the run was stopped, or is incomplete and the gaps are not accepted.
fn completeness_suite(view: &ReportView<'_>) -> TestSuite {
    let outcome = view.outcome;
    let mut suite = TestSuite::new("completeness");
    for (name, value) in [
        ("base", outcome.recording.base.clone()),
        ("expected", outcome.expected_check_count().to_string()),
        ("reported", outcome.rows.len().to_string()),
        ("required", view.required_count.to_string()),
        ("judged", view.judged_count.to_string()),
        ("requests", outcome.ledger.total().to_string()),
        ("exit", outcome.exit_code().to_string()),
        ("version", outcome.origin.version.clone().unwrap_or_default()),
    ] {
        suite.add_property(Property::new(name, value));
    }
    for observation in &view.observations {
        let name = format!("observed: {}", observation.topic);
        suite.add_property(Property::new(name, observation.seen.clone()));
    }
    let summary = format!("{}; {}; {}", view.completeness_text(), view.counts_text(), view.reported_text());
    let status = match view.stop_reason() {
        Some(why) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("stopped").set_message(why);
            status
        }
        None if view.is_complete || outcome.are_gaps_accepted() => TestCaseStatus::success(),
        None => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_type("incomplete").set_message(summary.clone());
            let gaps = view.gaps().into_iter();
            let gaps: Vec<_> = gaps
                .map(|gap| format!("{}\n  {}\n  {}", gap.title(), gap.remedy, gap.ids().join(", ")))
                .collect();
            status.set_description(gaps.join("\n"));
            status
        }
    };
    let mut case = TestCase::new("every required statement is judged", status);
    case.set_classname("chargeproof.completeness").set_system_out(summary);
    suite.add_test_case(case);
    suite
}

/// Returns a suite with one case, which fails if the baseline has a stale entry.
fn baseline_suite(outcome: &Outcome) -> TestSuite {
    let status = if outcome.stale_entries.is_empty() {
        TestCaseStatus::success()
    } else {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
        status.set_type("baseline").set_message(outcome.stale_entries.join("; "));
        status
    };
    let mut case = TestCase::new("every known failure is still one", status);
    case.set_classname("chargeproof.baseline");
    let mut suite = TestSuite::new("baseline");
    suite.add_test_case(case);
    suite
}
