//! The report for programs.

use serde::Serialize;

use crate::budget::{Budget, Ledger};
use crate::catalogue::judged;
use crate::check::{Outcome, Stop};
use crate::report::command::{again, curl};
use crate::verdict::{Row, Verdict};

#[derive(Serialize)]
struct Report<'a> {
    base: &'a str,
    exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: &'a Option<Stop>,
    expected: usize,
    reported: usize,
    budget: &'a Budget,
    requests: &'a Ledger,
    statements: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    again: Option<String>,
}

/// The whole report as one JSON object.
pub fn json(outcome: &Outcome) -> String {
    let report = Report {
        base: &outcome.recording.base,
        exit_code: outcome.exit_code(),
        stop: &outcome.stop,
        expected: judged().len(),
        reported: outcome.rows.len(),
        budget: &outcome.budget,
        requests: &outcome.ledger,
        statements: outcome.rows.iter().map(|row| of_row(outcome, row)).collect(),
    };
    serde_json::to_string_pretty(&report).expect("a report is plain data")
}

fn of_row<'a>(outcome: &Outcome, row: &'a Row) -> Line<'a> {
    let (Verdict::Fail(finding) | Verdict::Warn(finding)) = &row.verdict else {
        return Line { row, asked: None, again: None };
    };
    let exchange = finding.exchange.and_then(|number| outcome.recording.exchange(number));
    let asked = exchange.map(|exchange| curl(&outcome.recording, exchange));
    Line { row, asked, again: Some(again(&outcome.recording, &row.id)) }
}
