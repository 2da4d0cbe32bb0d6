//! What every format tells: the sections of the specification, the counts, the words below a statement.

use crate::catalogue::Level;
use crate::check::{Outcome, Profile, Stop};
use crate::deliveries::Deliveries;
use crate::observe::{Observation, observations};
use crate::recording::Exchange;
use crate::report::command::{again, curl};
use crate::verdict::{Finding, Row, Verdict};

/// Every word of judgement, the gravest first.
pub(super) const WORDS: [&str; 8] =
    ["fail", "known", "warn", "not judged", "pass", "observed", "not applicable", "left out"];

/// An outcome, arranged to be told.
pub(super) struct Sheet<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) sections: Vec<Section<'a>>,
    pub(super) observations: Vec<Observation>,
    pub(super) required: usize,
    pub(super) judged: usize,
    pub(super) is_complete: bool,
}

/// A section of the specification, and the statements that come from it.
pub(super) struct Section<'a> {
    pub(super) number: String,
    pub(super) rows: Vec<&'a Row>,
}

impl Section<'_> {
    /// `4.1 Paging`
    pub(super) fn name(&self) -> String {
        section_name(&self.number)
    }

    pub(super) fn counts(&self) -> String {
        counts(self.rows.iter().copied())
    }
}

impl<'a> Sheet<'a> {
    pub(super) fn of(outcome: &'a Outcome) -> Sheet<'a> {
        let mut sections: Vec<Section<'a>> = Vec::new();
        for row in &outcome.rows {
            let number = section_of(&row.requirement.spec);
            match sections.iter_mut().find(|section| section.number == number) {
                Some(section) => section.rows.push(row),
                None => sections.push(Section { number, rows: vec![row] }),
            }
        }
        sections.sort_by_key(|section| place(&section.number));
        let required: Vec<_> =
            outcome.rows.iter().filter(|row| row.requirement.level == Level::Must).collect();
        let judged = required.iter().filter(|row| {
            matches!(row.verdict, Verdict::Pass { .. } | Verdict::Fail(_) | Verdict::Known { .. })
        });
        Sheet {
            outcome,
            sections,
            observations: observations(&outcome.recording, &outcome.rows),
            required: required.len(),
            judged: judged.count(),
            is_complete: outcome.is_complete(),
        }
    }

    pub(super) fn rows(&self, word: &str) -> Vec<&'a Row> {
        self.outcome.rows.iter().filter(|row| row.verdict.word() == word).collect()
    }

    /// Why the run was stopped, as a sentence.
    pub(super) fn stop(&self) -> Option<String> {
        match self.outcome.stop.as_ref()? {
            Stop::Configuration(why) => Some(format!("cannot check: {why}")),
            Stop::Unreachable(why) => Some(format!("{} did not answer: {why}", self.outcome.recording.base)),
        }
    }

    /// `40 of 52 required statements judged: incomplete`
    pub(super) fn completeness(&self) -> String {
        if self.outcome.rows.is_empty() {
            return "nothing was judged".to_owned();
        }
        let word = if self.is_complete { "complete" } else { "incomplete" };
        format!("{} of {} required statements judged: {word}", self.judged, self.required)
    }

    /// `39 pass, 1 fail`
    pub(super) fn counts(&self) -> String {
        if self.outcome.rows.is_empty() {
            return "nothing reported".to_owned();
        }
        counts(&self.outcome.rows)
    }

    /// `52 of 52 checks reported`. A run that was stopped had none to report.
    pub(super) fn reported(&self) -> String {
        format!("{} of {} checks reported", self.outcome.rows.len(), self.outcome.expected())
    }

    /// What to know about the run: patterns, hidden values, and what is wrong with the baseline.
    pub(super) fn notes(&self) -> Vec<String> {
        let outcome = self.outcome;
        let list = |name: &str, patterns: &[String]| {
            (!patterns.is_empty()).then(|| format!("{name} {}", patterns.join(", ")))
        };
        let selection = &outcome.selection;
        let without: Vec<_> = outcome.recording.without.iter().map(|part| part.word().to_owned()).collect();
        let deliveries = outcome.recording.deliveries.as_ref().map(received);
        let privacy = outcome.private.then(|| "--privacy: personal values and amounts are hidden".to_owned());
        let profile = (selection.profile == Profile::Extended).then(|| {
            "--profile extended: choices of the reference server are judged too, which the specification leaves open"
                .to_owned()
        });
        [
            profile,
            list("--only", &selection.only),
            list("--skip", &selection.skip),
            list("--without", &without),
            deliveries,
            privacy,
        ]
        .into_iter()
        .flatten()
        .chain(outcome.faults.iter().map(|fault| format!("the baseline is wrong: {fault}")))
        .collect()
    }

    /// What stands below a statement: names and texts, ending with what to type next.
    pub(super) fn details(&self, row: &Row) -> Vec<(&'static str, String)> {
        let lines = match &row.verdict {
            Verdict::Pass { note } => note.iter().map(|note| ("reading", note.clone())).collect(),
            Verdict::Fail(finding) | Verdict::Warn(finding) => self.evidence(row, finding),
            Verdict::NotJudged { why, remedy } => vec![("because", why.clone()), ("remedy", remedy.clone())],
            Verdict::NotApplicable { why } => vec![("because", why.clone())],
            Verdict::Observed { seen } => vec![("seen", seen.clone())],
            Verdict::Known { finding, known } => {
                let mut lines = vec![("known", format!("{}, until {}", known.reason, known.expires))];
                lines.extend(self.evidence(row, finding));
                lines
            }
            Verdict::LeftOut { by } => vec![("by", by.clone())],
        };
        lines.into_iter().map(|(name, text)| (name, printable(&text))).collect()
    }

    /// The exchange that shows what is wrong, if a single one does.
    pub(super) fn shown(&self, row: &Row) -> Option<&'a Exchange> {
        let (Verdict::Fail(finding) | Verdict::Warn(finding) | Verdict::Known { finding, .. }) = &row.verdict
        else {
            return None;
        };
        self.outcome.recording.exchange(finding.exchange?)
    }

    fn evidence(&self, row: &Row, finding: &Finding) -> Vec<(&'static str, String)> {
        let recording = &self.outcome.recording;
        let mut lines = vec![("expected", finding.expected.clone()), ("actual", finding.actual.clone())];
        if let Some(exchange) = self.shown(row) {
            lines.push(("asked", curl(recording, exchange)));
        }
        lines.push(("again", again(recording, &row.id)));
        lines
    }
}

/// How many deliveries there were, and where from.
fn received(deliveries: &Deliveries) -> String {
    let Deliveries { caught, lost, strays, receiver, lasted, settled, .. } = deliveries;
    let mut text = match receiver {
        Some(address) if *settled => {
            format!("deliveries: {} came to {address}, all that were caused", caught.len())
        }
        Some(address) => format!("deliveries: {} came to {address} in {} s", caught.len(), lasted.as_secs()),
        None => format!("deliveries: {} captured before the run", caught.len()),
    };
    for (count, what) in [(*lost, "more that were not kept"), (*strays, "other requests")] {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}

/// What a server sent must not move the cursor of whoever reads it.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|it| if it.is_control() && it != '\n' { '\u{fffd}' } else { it }).collect()
}

fn counts<'a>(rows: impl IntoIterator<Item = &'a Row>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let of = |word: &str| rows.iter().filter(|row| row.verdict.word() == word).count();
    let told = WORDS.iter().map(|word| (of(word), word)).filter(|(count, _)| *count > 0);
    told.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// `4.1 Paging`
pub(super) fn section_name(number: &str) -> String {
    format!("{number} {}", title(number)).trim_end().to_owned()
}

/// `4.1 item 6; 8` is told in section 4.1.
fn section_of(spec: &str) -> String {
    let end = spec.find(|it: char| !it.is_ascii_alphanumeric() && it != '.').unwrap_or(spec.len());
    spec[..end].trim_end_matches('.').to_owned()
}

/// Sections in their order; what is no section of the specification comes last.
fn place(number: &str) -> Vec<u32> {
    number.split('.').map(|part| part.parse().unwrap_or(u32::MAX)).collect()
}

fn title(number: &str) -> &'static str {
    match number {
        "1" => "The service",
        "2" => "Objects",
        "2.1" => "Charges",
        "2.2" => "Invoices",
        "2.3" => "Events as objects",
        "2.4" => "The account",
        "2.5" => "Webhook endpoints",
        "3" => "States",
        "4" => "Endpoints",
        "4.1" => "Pagination",
        "5" => "Authentication and modes",
        "6" => "Events",
        "6.1" => "Event types",
        "6.2" => "Delivery",
        "7" => "Errors",
        "8" => "Limits",
        "9" => "Versioning",
        "HTTP" => "itself",
        "reference" => "Choices of the reference server",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(spec: &str, expected: &str) {
        assert_eq!(section_of(spec), expected);
    }

    #[test]
    fn the_first_section_named_is_the_one() {
        check("4.1 item 6; 8", "4.1");
        check("4, row 1", "4");
        check("7; 8", "7");
        check("6.", "6");
        check("HTTP (RFC 9110, 15.5.2)", "HTTP");
    }

    #[test]
    fn sections_stand_in_their_order() {
        let mut numbers = ["HTTP", "10", "2.4", "4.1", "4", "2"];
        numbers.sort_by_key(|number| place(number));
        assert_eq!(numbers, ["2", "2.4", "4", "4.1", "10", "HTTP"]);
    }
}
