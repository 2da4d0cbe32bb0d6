//! The comparison of two runs: different verdicts, and different choices on points that the specification leaves open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use conformance_judge::observations;
use conformance_model::baseline::fingerprint;
use conformance_model::verdict::{StatementResult, Stop, Verdict};

use crate::check::Outcome;
use crate::report::one_line;

/// The version of the format. Incremented when an older reader would misread a comparison.
const FORMAT: u32 = 2;
/// The names of the two runs in the text.
const RUN_NAMES: [&str; 2] = ["A", "B"];

/// The differences between two runs. Every pair is in the order of the arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Comparison {
    /// The version of this format.
    pub format: u32,
    /// The two runs.
    pub runs: [ComparedRun; 2],
    /// The number of statements with equal verdicts.
    pub alike: usize,
    /// The statements that both runs judged, with different verdicts or different failures.
    pub statements: Vec<StatementDifference>,
    /// The statements that only one run judged. They do not count as differences.
    pub judged_once: Vec<StatementDifference>,
    /// The points that the specification leaves open, and on which the two services chose differently.
    pub choices: Vec<ChoiceDifference>,
    /// The choices that only one run observed. They do not count as differences.
    pub choices_seen_once: Vec<ChoiceDifference>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedRun {
    /// The base address of the target.
    pub base: String,
    /// The exit code of `check`.
    pub exit_code: u8,
    /// The reason why nothing could be judged, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
}

/// A statement with different verdicts of the two runs, or with a verdict of only one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatementDifference {
    /// The id of the statement.
    pub id: String,
    /// The statement itself.
    pub text: String,
    /// The verdict of each run.
    pub verdicts: [ComparedVerdict; 2],
}

/// A run's verdict on a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComparedVerdict {
    /// The name of the verdict, or `not selected`.
    pub verdict: String,
    /// The explanation in the report; may be empty.
    pub because: String,
}

impl ComparedVerdict {
    /// Returns `true` if the run judged the statement.
    fn is_judged(&self) -> bool {
        !["not selected", "not judged", "left out", "not applicable"].contains(&self.verdict.as_str())
    }
}

/// A point that the specification leaves open, and the different observations of the two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChoiceDifference {
    /// The name of the point.
    pub topic: String,
    /// The observation of each run; `None` if the run has none.
    pub seen: [Option<String>; 2],
}

/// Compares two runs.
pub fn compare(a: &Outcome, b: &Outcome) -> Comparison {
    let both = [a, b];
    let runs = both.map(|outcome| ComparedRun {
        base: one_line(&outcome.recording.base),
        exit_code: outcome.exit_code(),
        stop: outcome.stop.clone(),
    });
    let rows =
        both.map(|outcome| outcome.rows.iter().map(|row| (row.id.as_str(), row)).collect::<BTreeMap<_, _>>());
    let mut ids: BTreeSet<&str> = rows.iter().flat_map(|rows| rows.keys().copied()).collect();
    let is_stopped = both.iter().any(|run| run.stop.is_some());
    if is_stopped {
        // A stopped run has no verdicts to compare.
        ids.clear();
    }
    let (mut alike, mut statements, mut judged_once) = (0, Vec::new(), Vec::new());
    for id in &ids {
        let pair = [rows[0].get(id).copied(), rows[1].get(id).copied()];
        let list = match pair.map(|row| compared_verdict(row).is_judged()) {
            [true, true] if verdicts_differ(pair) => &mut statements,
            [true, true] => {
                alike += 1;
                continue;
            }
            [false, false] => continue,
            _ => &mut judged_once,
        };
        let Some(row) = pair.iter().flatten().next() else { continue };
        list.push(StatementDifference {
            id: row.id.clone(),
            text: row.requirement.text.clone(),
            verdicts: pair.map(compared_verdict),
        });
    }
    let (choices, choices_seen_once) = match is_stopped {
        true => (Vec::new(), Vec::new()),
        false => choices(both).into_iter().partition(|choice| choice.seen.iter().all(Option::is_some)),
    };
    Comparison { format: FORMAT, runs, alike, statements, judged_once, choices, choices_seen_once }
}

/// Returns `true` if two runs disagree on a statement. Two failures agree if they have the same fingerprint.
fn verdicts_differ(pair: [Option<&StatementResult>; 2]) -> bool {
    let failure_fingerprint = |row: &StatementResult| match &row.verdict {
        Verdict::Fail(finding) | Verdict::Warn(finding) | Verdict::Known { finding, .. } => {
            Some(fingerprint(&row.id, finding))
        }
        _ => None,
    };
    let [a, b] = pair.map(|row| row.map(|row| (row.verdict.as_str(), failure_fingerprint(row))));
    a != b
}

fn compared_verdict(row: Option<&StatementResult>) -> ComparedVerdict {
    let Some(row) = row else {
        return ComparedVerdict { verdict: "not selected".to_owned(), because: String::new() };
    };
    let because = match &row.verdict {
        Verdict::Pass { note } => note.clone().unwrap_or_default(),
        Verdict::Fail(finding) | Verdict::Warn(finding) | Verdict::Known { finding, .. } => {
            format!("expected {}; actual {}", finding.expected, finding.actual)
        }
        Verdict::NotJudged { why, .. } | Verdict::NotApplicable { why } => why.clone(),
        Verdict::Observed { seen } => seen.clone(),
        Verdict::LeftOut { by } => by.clone(),
    };
    ComparedVerdict { verdict: row.verdict.as_str().to_owned(), because: one_line(&because) }
}

/// Returns the points with different observations, or with an observation of only one run.
fn choices(both: [&Outcome; 2]) -> Vec<ChoiceDifference> {
    let observed = both.map(|outcome| {
        let choices = observations(&outcome.recording, &outcome.rows).into_iter();
        choices.map(|choice| (one_line(&choice.topic), one_line(&choice.seen))).collect::<BTreeMap<_, _>>()
    });
    let topics: BTreeSet<&String> = observed.iter().flat_map(BTreeMap::keys).collect();
    let pairs = topics.into_iter().map(|topic| {
        let pair = [observed[0].get(topic).cloned(), observed[1].get(topic).cloned()];
        ChoiceDifference { topic: topic.clone(), seen: pair }
    });
    pairs.filter(|pair| pair.seen[0] != pair.seen[1]).collect()
}

impl Comparison {
    /// Returns `true` if there is no difference. What only one run judged or observed is not a difference.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty() && self.choices.is_empty()
    }

    /// Returns the exit code: 0 no difference, 1 differences; if a run was stopped or interrupted, the exit code of
    /// its `check` (2, 4 or 130).
    pub fn exit_code(&self) -> u8 {
        let stopped = self.runs.iter().find(|run| run.stop.is_some() || run.exit_code == 130);
        stopped.map_or(u8::from(!self.is_empty()), |run| run.exit_code)
    }

    /// Returns the comparison as JSON.
    ///
    /// # Panics
    ///
    /// Never: a comparison is plain data.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a comparison serializes to JSON") + "\n"
    }

    /// Returns the comparison as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let mut line = |text: &str| {
            let _ = writeln!(out, "{}", text.trim_end());
        };
        for (name, run) in RUN_NAMES.iter().zip(&self.runs) {
            line(&format!("{name}  {}  exit {}", run.base, run.exit_code));
            if let Some(Stop::Configuration(why) | Stop::Unreachable(why)) = &run.stop {
                line(&format!("   {}", one_line(why)));
            }
        }
        line("");
        for statement in &self.statements {
            line(&format!("{}   {}", statement.id, statement.text));
            for (name, entry) in RUN_NAMES.iter().zip(&statement.verdicts) {
                line(&format!("  {name}  {:<14}  {}", entry.verdict, entry.because));
            }
        }
        for choice in &self.choices {
            line(&format!("left open: {}", choice.topic));
            for (name, seen) in RUN_NAMES.iter().zip(&choice.seen) {
                line(&format!("  {name}  {}", seen.as_deref().unwrap_or("not seen")));
            }
        }
        for (index, name) in RUN_NAMES.iter().enumerate() {
            // Each entry of these two lists belongs to one run only.
            let statements =
                self.judged_once.iter().filter(|statement| statement.verdicts[index].is_judged());
            let ids: Vec<_> = statements.map(|statement| statement.id.as_str()).collect();
            if !ids.is_empty() {
                line(&format!("judged in {name} only: {}", ids.join(", ")));
            }
            let choices = self.choices_seen_once.iter().filter(|choice| choice.seen[index].is_some());
            let topics: Vec<_> = choices.map(|choice| choice.topic.as_str()).collect();
            if !topics.is_empty() {
                line(&format!("choices seen in {name} only: {}", topics.join(", ")));
            }
        }
        if self.runs.iter().any(|run| run.stop.is_some()) {
            line(&format!("not compared; exit {}", self.exit_code()));
            return out;
        }
        let (statements, choices) = (self.statements.len(), self.choices.len());
        line(&format!(
            "{statements} statements and {choices} open choices differ, {} statements agree, {} judged in one run \
             only; exit {}",
            self.alike,
            self.judged_once.len(),
            self.exit_code()
        ));
        out
    }
}
