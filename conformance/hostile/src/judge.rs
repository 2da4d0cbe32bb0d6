//! The fuzz target `judge`: verdicts on edited recordings.

use std::{collections::BTreeMap, sync::LazyLock};

use conformance::{
    Burst, Outcome, Purpose, judge, judged_statements,
    report::{Format, Style, render},
};
use mutants::fake::{self, FakeServer};

use crate::{edit, recording::verdicts};

/// A run of the suite against a correct server, with only a part of the burst that reaches the rate limit, because
/// judging the whole burst takes too long.
static CORRECT: LazyLock<Outcome> = LazyLock::new(|| {
    let mut outcome = fake::run(FakeServer::default());
    let is_burst = |purpose: &Purpose| matches!(purpose, Purpose::Burst(Burst::UntilRefused { .. }));
    // Every 24th: about five of the 120 requests that the specified rate limit allows.
    outcome
        .recording
        .exchanges
        .retain(|exchange| !is_burst(&exchange.purpose) || exchange.number.is_multiple_of(24));
    outcome
});

/// [`CORRECT`], reduced to a few exchanges of each kind: faster to judge, but fewer statements have a verdict.
static SAMPLE: LazyLock<Outcome> = LazyLock::new(|| {
    let mut outcome = CORRECT.clone();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    outcome.recording.exchanges.retain(|exchange| {
        let purpose = format!("{:?}", exchange.purpose);
        // The name of the variant, without its fields.
        let kind = purpose.split(['{', '(']).next().unwrap_or_default();
        let count = counts.entry(format!("{:?} {kind}", exchange.caller)).or_default();
        *count += 1;
        *count <= PER_KIND_MAX
    });
    outcome
});
/// The largest number of exchanges of one caller and kind of purpose in [`SAMPLE`].
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
    // A report takes as long as a judgement, so each input is rendered in one format.
    let format = FORMATS[bytes.len() % FORMATS.len()];
    let report = render(&outcome, format, Style::Plain);
    let control = report.chars().find(|character| character.is_control() && *character != '\n');
    assert_eq!(control, None, "a control character in {format:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_change_the_verdicts() {
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
