//! The transcript of a run: one line per observable event, under stable names, with virtual time.
//!
//! The columns have fixed widths, so that an added line changes no other line.

use std::fmt::Write as _;

use reference_core::time::{Span, Timestamp};

/// The width of a time: fits `999999.999999s`, eleven days.
const TIME_WIDTH: usize = 14;
/// The minimal width of a verb: fits `POST shop`.
const VERB_WIDTH_MIN: usize = 9;
/// The width of the objects: fits those of an attempt (delivery, event, charge and attempt number).
const BODY_WIDTH: usize = 44;

/// The transcript of a run so far.
#[derive(Clone, Debug)]
pub struct Transcript {
    start: Timestamp,
    verb_width: usize,
    text: String,
}

/// One line: time, verb, objects and outcome.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The time of the event.
    pub at: Timestamp,
    /// The verb: `pay`, `event`, `POST shop`.
    pub verb: &'a str,
    /// The objects.
    pub body: &'a str,
    /// The outcome, if the line shows one.
    pub outcome: Option<&'a str>,
}

impl Transcript {
    /// Creates an empty transcript. `verbs` must contain the longest verbs that may occur; they determine the width of
    /// the column.
    pub fn new<'a>(start: Timestamp, verbs: impl IntoIterator<Item = &'a str>) -> Transcript {
        let widest = verbs.into_iter().map(|verb| verb.chars().count()).max().unwrap_or(0);
        Transcript { start, verb_width: widest.max(VERB_WIDTH_MIN), text: String::new() }
    }

    /// Appends a line.
    pub fn push(&mut self, line: &Line<'_>) {
        let Line { at, verb, body, outcome } = line;
        let time = format_seconds(at.since(self.start));
        let width = self.verb_width;
        let result = match outcome {
            None => write!(self.text, "{time:>TIME_WIDTH$}  {verb:<width$}  {body}"),
            Some(outcome) => {
                write!(self.text, "{time:>TIME_WIDTH$}  {verb:<width$}  {body:<BODY_WIDTH$} -> {outcome}")
            }
        };
        result.expect("writing to a String never fails");
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
    }

    /// Returns the lines so far.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Formats a duration as `3.040s`, with six decimals if it is not in whole milliseconds.
pub fn format_seconds(span: Span) -> String {
    let (whole, micros) = (span.0 / 1_000_000, span.0 % 1_000_000);
    match micros % 1_000 {
        0 => format!("{whole}.{:03}s", micros / 1_000),
        _ => format!("{whole}.{micros:06}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(micros: u64, expected: &str) {
        assert_eq!(format_seconds(Span(micros)), expected);
    }

    #[test]
    fn time_has_three_or_six_decimals() {
        check(0, "0.000s");
        check(3_040_000, "3.040s");
        check(1_799_999_999, "1799.999999s");
        check(1_800_000_001, "1800.000001s");
    }

    #[test]
    fn columns_are_aligned() {
        let start = Timestamp(1_000_000);
        let mut transcript = Transcript::new(start, ["POST warehouse"]);
        let line = |at: u64, verb, body, outcome| Line { at: Timestamp(at), verb, body, outcome };
        transcript.push(&line(1_000_000, "endpoint", "warehouse", None));
        transcript.push(&line(2_000_000, "open", "c1 BTC 49.90 EUR", Some("201 pending")));
        transcript.push(&line(2_000_000, "event", "e1 charge.created c1", None));
        transcript.push(&line(
            2_040_000,
            "POST warehouse",
            "d1 e1 charge.created c1                try 1",
            Some("200"),
        ));
        insta::assert_snapshot!(transcript.as_str().replace(' ', "."), @"
        ........0.000s..endpoint........warehouse
        ........1.000s..open............c1.BTC.49.90.EUR.............................->.201.pending
        ........1.000s..event...........e1.charge.created.c1
        ........1.040s..POST.warehouse..d1.e1.charge.created.c1................try.1.->.200
        ");
    }
}
