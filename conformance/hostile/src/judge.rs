//! The fuzz target `judge`: verdicts on edited recordings.

use std::{collections::BTreeMap, sync::LazyLock};

use conformance::{
    Burst, Outcome, Purpose, judge, judged_statements,
    report::{Format, Style, render},
};
use mutants::fake::{self, FakeServer};

use crate::{edit, recording::verdicts};

/// The run of a check against a correct server, reduced to every 24th request of its burst.
static CORRECT: LazyLock<Outcome> = LazyLock::new(|| {
    let mut outcome = fake::run(FakeServer::default());
    let is_shot = |purpose: &Purpose| matches!(purpose, Purpose::Burst(Burst::UntilRefused { .. }));
    outcome
        .recording
        .exchanges
        .retain(|exchange| !is_shot(&exchange.purpose) || exchange.number.is_multiple_of(24));
    outcome
});

/// [`CORRECT`], reduced to a few exchanges of each kind: faster to judge, but fewer statements have a verdict.
static SAMPLE: LazyLock<Outcome> = LazyLock::new(|| {
    let mut outcome = CORRECT.clone();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    outcome.recording.exchanges.retain(|exchange| {
        let purpose = format!("{:?}", exchange.purpose);
        let kind = purpose.split(['{', '(']).next().unwrap_or_default();
        let count = counts.entry(format!("{:?} {kind}", exchange.caller)).or_default();
        *count += 1;
        *count <= PER_KIND_MAX
    });
    outcome
});
/// The largest number of exchanges of a kind in [`SAMPLE`].
const PER_KIND_MAX: usize = 3;

const FORMATS: [Format; 6] =
    [Format::Text, Format::Json, Format::Junit, Format::Markdown, Format::Html, Format::Github];

/// Applies the input as edits to [`SAMPLE`], or to [`CORRECT`] if its first line is `all`. Judges the result twice
/// and renders it in one of the report formats.
pub(crate) fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut outcome = if text.starts_with("all\n") { CORRECT.clone() } else { SAMPLE.clone() };
    edit::apply(&mut outcome.recording, text);
    let rows = judge(&outcome.recording);
    assert_eq!(rows.len(), judged_statements().len(), "every statement has a verdict");
    assert_eq!(
        verdicts(&judge(&outcome.recording)),
        verdicts(&rows),
        "two judgements of one recording differ"
    );
    outcome.rows = rows;
    // A report takes as long as a judgement, so each input is reported in one format.
    let format = FORMATS[bytes.len() % FORMATS.len()];
    let report = render(&outcome, format, Style::Plain);
    let control = report.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(control, None, "a control character in {format:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_reach_the_verdicts() {
        let verdicts_after = |text: &str| {
            let mut recording = CORRECT.recording.clone();
            edit::apply(&mut recording, text);
            verdicts(&judge(&recording))
        };
        let correct = verdicts_after("");
        assert_eq!(verdicts_after("no such edit\n"), correct);
        for text in ["0 status 500", "0 body nothing", "0 lost", "1 remove"] {
            assert_ne!(verdicts_after(text), correct, "{text}");
        }
    }
}
