//! The common content of all formats: the sections of the specification, the counts, the details of a statement.

use std::fmt::Write as _;

use conformance_faults::Chapter;
use conformance_judge::{Observation, observations};
use conformance_model::baseline::fingerprint;
use conformance_model::catalogue::Level;
use conformance_model::deliveries::Deliveries;
use conformance_model::part::Part;
use conformance_model::recording::{Exchange, NO_BURST_QUICK};
use conformance_model::selection::Profile;
use conformance_model::verdict::{Finding, StatementResult, Stop, Verdict};

use crate::check::{AcceptedGaps, Outcome};
use crate::report::command::{curl, recheck_command};

/// The names of all verdicts, most severe first.
pub(super) const VERDICT_NAMES: [&str; 8] =
    ["fail", "known", "warn", "not judged", "pass", "observed", "not applicable", "left out"];

/// The names of all verdicts with their labels in a summary, in order.
const SUMMARY_LABELS: [(&str, &str); 8] = [
    ("pass", "passed"),
    ("fail", "failed"),
    ("known", "known"),
    ("warn", "warned"),
    ("not judged", "not judged"),
    ("observed", "observed"),
    ("not applicable", "not applicable"),
    ("left out", "left out"),
];

/// An outcome, prepared for reports.
pub(super) struct ReportView<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) sections: Vec<Section<'a>>,
    pub(super) observations: Vec<Observation>,
    /// The number of required statements.
    pub(super) required_count: usize,
    /// The number of required statements that were judged.
    pub(super) judged_count: usize,
    pub(super) is_complete: bool,
}

/// The statements that could not be judged and have the same remedy.
pub(super) struct Gap<'a> {
    /// The reasons, without repetition.
    pub(super) reasons: Vec<String>,
    pub(super) remedy: String,
    pub(super) rows: Vec<&'a StatementResult>,
}

impl Gap<'_> {
    /// Returns the first reason, the number of other reasons, and the number of statements.
    pub(super) fn title(&self) -> String {
        let count = self.rows.len();
        let others = match self.reasons.len() {
            0 | 1 => String::new(),
            2 => " (and 1 similar reason)".to_owned(),
            reasons => format!(" (and {} similar reasons)", reasons - 1),
        };
        format!("{}{others}: {count} statement{}", self.reasons[0], if count == 1 { "" } else { "s" })
    }

    /// Returns the ids of the statements.
    pub(super) fn ids(&self) -> Vec<&str> {
        self.rows.iter().map(|row| row.id.as_str()).collect()
    }
}

/// A section of the specification, and its statements.
pub(super) struct Section<'a> {
    pub(super) number: String,
    pub(super) rows: Vec<&'a StatementResult>,
}

impl Section<'_> {
    /// Returns the number and title of the section, such as `4.1 Pagination`.
    pub(super) fn name(&self) -> String {
        section_name(&self.number)
    }

    pub(super) fn counts_text(&self) -> String {
        counts_text(self.rows.iter().copied())
    }
}

impl<'a> ReportView<'a> {
    pub(super) fn from_outcome(outcome: &'a Outcome) -> ReportView<'a> {
        let mut sections: Vec<Section<'a>> = Vec::new();
        for row in &outcome.rows {
            let number = section_of(&row.requirement.spec);
            match sections.iter_mut().find(|section| section.number == number) {
                Some(section) => section.rows.push(row),
                None => sections.push(Section { number, rows: vec![row] }),
            }
        }
        sections.sort_by_key(|section| section_sort_key(&section.number));
        let required: Vec<_> =
            outcome.rows.iter().filter(|row| row.requirement.level == Level::Must).collect();
        let judged = required.iter().filter(|row| {
            matches!(row.verdict, Verdict::Pass { .. } | Verdict::Fail(_) | Verdict::Known { .. })
        });
        ReportView {
            outcome,
            sections,
            observations: observations(&outcome.recording, &outcome.rows)
                .into_iter()
                .map(|observation| Observation {
                    topic: one_line(&observation.topic),
                    seen: one_line(&observation.seen),
                })
                .collect(),
            required_count: required.len(),
            judged_count: judged.count(),
            is_complete: outcome.is_complete(),
        }
    }

    pub(super) fn rows_with_verdict(&self, verdict: &str) -> Vec<&'a StatementResult> {
        self.outcome.rows.iter().filter(|row| row.verdict.as_str() == verdict).collect()
    }

    /// Returns the reason why the run was stopped, as a sentence.
    pub(super) fn stop_reason(&self) -> Option<String> {
        match self.outcome.stop.as_ref()? {
            Stop::Configuration(why) => Some(format!("cannot check: {}", one_line(why))),
            Stop::Unreachable(why) => {
                Some(format!("{} did not respond: {}", self.outcome.recording.base, one_line(why)))
            }
        }
    }

    /// Returns the completeness of the run: `40 of 52 required statements judged: incomplete`.
    pub(super) fn completeness_text(&self) -> String {
        if self.outcome.rows.is_empty() {
            return "nothing was judged".to_owned();
        }
        let completeness = match (self.is_complete, &self.outcome.accepted_gaps) {
            (true, _) => "complete".to_owned(),
            (false, _) if self.outcome.origin.interrupted.is_some() => "interrupted".to_owned(),
            (false, AcceptedGaps::OfParts(parts)) if self.outcome.are_gaps_accepted() => {
                let parts: Vec<_> = parts.iter().map(|part| part.as_str()).collect();
                format!("incomplete, which --accept incomplete={} allows", parts.join(","))
            }
            (false, _) if self.outcome.are_gaps_accepted() => {
                "incomplete, which --accept incomplete allows".to_owned()
            }
            (false, _) => "incomplete".to_owned(),
        };
        format!("{} of {} required statements judged: {completeness}", self.judged_count, self.required_count)
    }

    /// Returns the numbers of verdicts: `39 passed, 1 failed`.
    pub(super) fn counts_text(&self) -> String {
        if self.outcome.rows.is_empty() {
            return "nothing reported".to_owned();
        }
        counts_text(&self.outcome.rows)
    }

    /// Returns the origin of the run: `chargeproof 0.1.0, 2026-11-22T06:00:00Z, 64 s`.
    pub(super) fn origin_text(&self) -> Option<String> {
        let origin = &self.outcome.origin;
        let version = origin.version.as_ref().map(|version| format!("chargeproof {version}"));
        let lasted = origin.lasted.map(|lasted| format!("{} s", lasted.as_secs()));
        let parts: Vec<_> = [version, origin.started.clone(), lasted].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the failures grouped by exchange, because those of one exchange usually have one cause.
    pub(super) fn failures_by_exchange(&self) -> Vec<Vec<&'a StatementResult>> {
        let mut causes: Vec<(Option<u32>, Vec<&'a StatementResult>)> = Vec::new();
        for row in self.sections.iter().flat_map(|section| &section.rows) {
            let Verdict::Fail(finding) = &row.verdict else { continue };
            match causes.iter_mut().find(|(exchange, _)| exchange.is_some() && *exchange == finding.exchange)
            {
                Some((_, rows)) => rows.push(row),
                None => causes.push((finding.exchange, vec![row])),
            }
        }
        causes.into_iter().map(|(_, rows)| rows).collect()
    }

    /// Returns the statements that were not judged, grouped by remedy, largest group first.
    pub(super) fn gaps(&self) -> Vec<Gap<'a>> {
        let mut gaps: Vec<Gap<'a>> = Vec::new();
        for row in self.sections.iter().flat_map(|section| &section.rows) {
            let Verdict::NotJudged { why, remedy } = &row.verdict else { continue };
            let (why, remedy) = (one_line(why), one_line(remedy));
            match gaps.iter_mut().find(|gap| gap.remedy == remedy) {
                Some(gap) => {
                    gap.rows.push(row);
                    if !gap.reasons.contains(&why) {
                        gap.reasons.push(why);
                    }
                }
                None => gaps.push(Gap { reasons: vec![why], remedy, rows: vec![row] }),
            }
        }
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.rows.len()));
        gaps
    }

    /// Returns the verdict on the run, such as `Violations`, and its reason.
    pub(super) fn run_verdict(&self) -> (&'static str, String) {
        let statements = |count: usize, ending: &str| match count {
            1 => format!("1 required statement {ending}"),
            _ => format!("{count} required statements {ending}"),
        };
        let gaps = self.outcome.rows.iter().filter(|row| row.is_unjudged_must()).count();
        match self.outcome.exit_code() {
            0 if !self.is_complete => ("Incomplete", "every statement that was judged holds".to_owned()),
            0 => ("Conforms", "every required statement was judged and holds".to_owned()),
            1 if self.rows_with_verdict("fail").is_empty() => {
                ("Violations", "the baseline is out of date".to_owned())
            }
            1 => ("Violations", statements(self.rows_with_verdict("fail").len(), "violated")),
            2 => ("Not checked", "the configuration is wrong".to_owned()),
            3 => ("Incomplete", statements(gaps, "not judged")),
            130 => ("Interrupted", statements(gaps, "not judged")),
            _ => ("Unreachable", "the target did not respond".to_owned()),
        }
    }

    /// Returns the number of reported checks: `52 of 52 checks reported`.
    pub(super) fn reported_text(&self) -> String {
        format!("{} of {} checks reported", self.outcome.rows.len(), self.outcome.expected_check_count())
    }

    /// Returns the power of the run, if it was requested. A chapter is the first part of statement ids, such as
    /// `limits`. The first line has the weakest chapter and the percentage of its known faults that the run would have
    /// detected. Then follows a line for each chapter with the missed faults and the data that would reveal more
    /// faults. There is no total, because a large chapter would hide a weak one. A chapter that the operator excludes
    /// is not rated.
    pub(super) fn power_lines(&self) -> Vec<String> {
        let Some(power) = &self.outcome.power else { return Vec::new() };
        let percent = |chapter: &Chapter| chapter.noticed * 100 / chapter.known.max(1);
        let judged = power.chapters.iter().filter(|chapter| !self.is_left_out(&chapter.chapter));
        let weakest = judged.min_by_key(|chapter| percent(chapter));
        let summary = weakest.map(|weakest| {
            let (chapter, percentage) = (&weakest.chapter, percent(weakest));
            format!("this run would have detected at least {percentage} % of the known faults of each chapter; {chapter} is the weakest")
        });
        let chapters = power.chapters.iter().map(|chapter| {
            if self.is_left_out(&chapter.chapter) {
                return format!("{:<10} left out", chapter.chapter);
            }
            let mut line = format!("{:<10} {} of {}", chapter.chapter, chapter.noticed, chapter.known);
            if let Some((first, rest)) = chapter.missed.split_first() {
                let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
                let _ = write!(line, "; missed: {first}{more}");
            }
            let needs = most_needed(chapter);
            if needs.is_empty() { line } else { format!("{line}; to detect others, the run needs {needs}") }
        });
        summary.into_iter().chain(chapters).collect()
    }

    /// Returns `true` if every statement of a chapter is left out.
    fn is_left_out(&self, chapter: &str) -> bool {
        let is_of_chapter = |row: &&StatementResult| row.id.split('.').next() == Some(chapter);
        let mut rows = self.outcome.rows.iter().filter(is_of_chapter).peekable();
        rows.peek().is_some() && rows.all(|row| matches!(row.verdict, Verdict::LeftOut { .. }))
    }

    /// Returns the notes about the run: selection, excluded parts, deliveries, privacy, and stale entries of the baseline.
    pub(super) fn notes(&self) -> Vec<String> {
        let outcome = self.outcome;
        let list = |name: &str, patterns: &[String]| {
            (!patterns.is_empty()).then(|| format!("{name} {}", patterns.join(", ")))
        };
        let selection = &outcome.selection;
        let recording = &outcome.recording;
        let is_quick = recording.no_burst.as_deref() == Some(NO_BURST_QUICK);
        let quick =
            is_quick.then(|| "--quick: the burst is left out, so the rate limit is not judged".to_owned());
        let parts = recording.without.iter().filter(|part| !(is_quick && **part == Part::Burst));
        let without: Vec<_> = parts.map(|part| part.as_str().to_owned()).collect();
        let deliveries = outcome.recording.deliveries.as_ref().map(deliveries_text);
        let privacy =
            outcome.is_redacted.then(|| "--privacy: personal values and amounts are hidden".to_owned());
        let profile = (selection.profile == Profile::Extended).then(|| {
            "--profile extended: also judged by the choices of the reference server, where the specification leaves a choice"
                .to_owned()
        });
        [
            profile,
            list("--only", &selection.only),
            list("--skip", &selection.skip),
            quick,
            list("--without", &without),
            deliveries,
            privacy,
        ]
        .into_iter()
        .flatten()
        .chain(outcome.stale_entries.iter().map(|entry| format!("baseline: {entry}")))
        .collect()
    }

    /// Returns the details of a statement as names and texts. Those of a violation end with the command that
    /// checks the statement again.
    pub(super) fn details(&self, row: &StatementResult) -> Vec<(&'static str, String)> {
        let lines = match &row.verdict {
            Verdict::Pass { note } => note.iter().map(|note| ("note", note.clone())).collect(),
            Verdict::Fail(finding) | Verdict::Warn(finding) => self.evidence(row, finding),
            Verdict::NotJudged { why, remedy } => vec![("because", why.clone()), ("remedy", remedy.clone())],
            Verdict::NotApplicable { why } => vec![("because", why.clone())],
            Verdict::Observed { seen } => vec![("observed", seen.clone())],
            Verdict::Known { finding, known } => {
                let mut lines = vec![("known", format!("{}, until {}", known.reason, known.expires))];
                lines.extend(self.evidence(row, finding));
                lines
            }
            Verdict::LeftOut { by } => vec![("by", by.clone())],
        };
        lines.into_iter().map(|(name, text)| (name, one_line(&text))).collect()
    }

    /// Returns the exchange that shows the violation, if a single one does.
    pub(super) fn violating_exchange(&self, row: &StatementResult) -> Option<&'a Exchange> {
        let (Verdict::Fail(finding) | Verdict::Warn(finding) | Verdict::Known { finding, .. }) = &row.verdict
        else {
            return None;
        };
        self.outcome.recording.exchange(finding.exchange?)
    }

    fn evidence(&self, row: &StatementResult, finding: &Finding) -> Vec<(&'static str, String)> {
        let recording = &self.outcome.recording;
        let mut lines = vec![("expected", finding.expected.clone()), ("actual", finding.actual.clone())];
        if let Some(exchange) = self.violating_exchange(row) {
            lines.push(("request", curl(recording, exchange)));
        }
        lines.push(("fingerprint", fingerprint(&row.id, finding)));
        lines.push(("again", recheck_command(recording, &row.id)));
        lines
    }
}

/// Returns the data that a run needs to reveal more faults of the chapter, the most needed first.
fn most_needed(chapter: &Chapter) -> String {
    const LISTED_MAX: usize = 3;
    let mut needs: Vec<_> = chapter.needs.iter().collect();
    needs.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let more = needs.len().saturating_sub(LISTED_MAX);
    let mut listed: Vec<_> = needs.into_iter().take(LISTED_MAX).map(|(data, _)| data.clone()).collect();
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    listed.join(", ")
}

/// Returns the number of deliveries, and their source.
fn deliveries_text(deliveries: &Deliveries) -> String {
    let Deliveries { received, dropped, other_requests, receiver, duration, settled, trigger_error, .. } =
        deliveries;
    let mut text = match receiver {
        Some(address) if *settled => {
            format!("webhooks: {} received at {address}, all that were expected", received.len())
        }
        Some(address) => {
            format!("webhooks: {} received at {address} in {} s", received.len(), duration.as_secs())
        }
        None => format!("webhooks: {} captured before the run", received.len()),
    };
    for (count, label) in [(*dropped, "more not stored"), (*other_requests, "other requests")] {
        if count > 0 {
            text += &format!(", {count} {label}");
        }
    }
    text + &trigger_error.iter().map(|error| format!("; {}", one_line(error))).collect::<String>()
}

/// Replaces characters in the text of a server that could move the cursor of a terminal or reverse the line.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if is_invisible(character) && character != '\n' { '\u{fffd}' } else { character })
        .collect()
}

/// Returns the text on one line, without the characters that `printable` replaces and without `##`, because some CI
/// systems interpret `##[` anywhere as a command.
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', " ").replace("##", "#\u{fffd}")
}

/// Returns `true` for an invisible character or one that XML forbids: a control, a zero-width character, a
/// bidirectional mark or a noncharacter of Unicode.
pub fn is_invisible(character: char) -> bool {
    character.is_control()
        || u32::from(character) & 0xfffe == 0xfffe
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fdd0}'..='\u{fdef}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

fn counts_text<'a>(rows: impl IntoIterator<Item = &'a StatementResult>) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let count_of = |verdict: &str| rows.iter().filter(|row| row.verdict.as_str() == verdict).count();
    let counts = SUMMARY_LABELS
        .iter()
        .map(|(verdict, label)| (count_of(verdict), label))
        .filter(|(count, _)| *count > 0);
    counts.map(|(count, label)| format!("{count} {label}")).collect::<Vec<_>>().join(", ")
}

/// Returns the number and title of a section, such as `4.1 Pagination`.
pub(super) fn section_name(number: &str) -> String {
    format!("{number} {}", title(number)).trim_end().to_owned()
}

/// Returns the first section of a reference to the specification: 4.1 for `4.1 item 6; 8`.
fn section_of(spec: &str) -> String {
    let end = spec
        .find(|character: char| !character.is_ascii_alphanumeric() && character != '.')
        .unwrap_or(spec.len());
    spec[..end].trim_end_matches('.').to_owned()
}

/// Returns the sort key of a section. References outside the specification are last.
fn section_sort_key(number: &str) -> Vec<u32> {
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
    use crate::report::samples;
    use conformance_faults::Power;

    #[track_caller]
    fn check_section(spec: &str, expected: &str) {
        assert_eq!(section_of(spec), expected);
    }

    #[test]
    fn the_first_section_of_a_reference_counts() {
        check_section("4.1 item 6; 8", "4.1");
        check_section("4, row 1", "4");
        check_section("7; 8", "7");
        check_section("6.", "6");
        check_section("HTTP (RFC 9110, 15.5.2)", "HTTP");
    }

    #[track_caller]
    fn check_line(text: &str, expected: &str) {
        assert_eq!(one_line(text), expected);
    }

    #[test]
    fn text_of_a_server_cannot_start_a_line_or_reverse_it() {
        check_line("a\n::error::b", "a ::error::b");
        check_line("a\r\n##[error]b", "a\u{fffd} #\u{fffd}[error]b");
        check_line("user\u{202e}gpj.exe\u{2066}", "user\u{fffd}gpj.exe\u{fffd}");
        check_line("\u{1b}[2Ja\u{2028}b\u{200b}", "\u{fffd}[2Ja\u{fffd}b\u{fffd}");
        check_line("größer, 大 and 👍", "größer, 大 and 👍");
    }

    #[test]
    fn sections_are_sorted() {
        let mut numbers = ["HTTP", "10", "2.4", "4.1", "4", "2"];
        numbers.sort_by_key(|number| section_sort_key(number));
        assert_eq!(numbers, ["2", "2.4", "4", "4.1", "10", "HTTP"]);
    }

    #[track_caller]
    fn check_observation(topic: &str, expected: &str) {
        let outcome = samples::mixed();
        let found = observations(&outcome.recording, &outcome.rows);
        let actual = found
            .iter()
            .find(|observation| observation.topic == topic)
            .map(|observation| observation.seen.as_str());
        assert_eq!(actual, Some(expected), "{found:?}");
    }

    #[test]
    fn open_choices_are_observed() {
        check_observation("Retry-After", "whole seconds");
        check_observation("Links of a page", "absolute, relative");
        check_observation("last_page of an empty list", "0");
        check_observation("Times", "+00:00 with 0 decimals of a second, Z with 6 decimals of a second");
        check_observation("Ids of events", "UUID version 7");
        check_observation("Reading of the rate limit", "exact: the 121st request");
        check_observation("States in lists", "paid");
        check_observation("A ?type= that finds nothing", "404");
        check_observation("Headers about the limit", "x-ratelimit-remaining");
    }

    #[test]
    fn an_excluded_chapter_is_not_the_weakest() {
        let mut outcome = samples::mixed();
        let chapter = |name: &str, noticed| Chapter {
            chapter: name.into(),
            noticed,
            known: 10,
            needs: [].into(),
            missed: Vec::new(),
        };
        let chapters = vec![chapter("account", 9), chapter("limits", 0)];
        outcome.power = Some(Power { noticed: 9, known: 20, chapters });
        let power_text = |outcome: &Outcome| ReportView::from_outcome(outcome).power_lines().join("\n");
        assert!(power_text(&outcome).contains("at least 0 % of the known faults of each chapter; limits is"));
        let limits = outcome.rows.iter_mut().filter(|row| row.id.starts_with("limits."));
        limits.for_each(|limit| limit.verdict = Verdict::LeftOut { by: "--quick".into() });
        let lines = "at least 90 % of the known faults of each chapter; account is the weakest\n\
                     account    9 of 10\n\
                     limits     left out";
        assert!(power_text(&outcome).ends_with(lines), "{}", power_text(&outcome));
    }

    #[test]
    fn gaps_with_one_remedy_are_one_group() {
        let mut outcome = samples::mixed();
        for (row, why) in outcome.rows.iter_mut().zip(["no event", "no list", "no event", "no key"]) {
            let remedy = if why == "no key" { "set the key" } else { "open a charge" };
            row.verdict = Verdict::NotJudged { why: why.into(), remedy: remedy.into() };
        }
        let view = ReportView::from_outcome(&outcome);
        let gaps: Vec<_> = view.gaps().iter().map(|gap| (gap.title(), gap.ids().len())).collect();
        let expected = [
            ("no event (and 1 similar reason): 3 statements", 3),
            ("no list has 3 or more records in either mode: 1 statement", 1),
            ("no key: 1 statement", 1),
        ];
        let expected = expected.map(|(title, count)| (title.to_owned(), count));
        assert!(expected.iter().all(|gap| gaps.contains(gap)) && gaps.len() == 3, "{gaps:?}");
    }

    #[test]
    fn topics_without_observations_are_not_listed() {
        let outcome = samples::unreachable();
        assert_eq!(observations(&outcome.recording, &outcome.rows), []);
    }
}
