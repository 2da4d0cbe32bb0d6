//! [`AttackCase`]: a case with its measured figures and their presentation.

use serde_json::{Value, json};

use super::context::{CaseContext, CaseFailure};

/// The factor on bounds of short times for an unoptimised program. The table states it.
const DEBUG_FACTOR: u64 = 10;

/// An attack, and the figures that it measures.
pub(crate) struct AttackCase {
    /// The name for `--only`.
    pub(crate) name: &'static str,
    /// The attack in one line.
    pub(crate) title: &'static str,
    /// The bounds of the figures, in the order in which `run` returns them.
    pub(crate) bounds: &'static [Bound],
    /// `true` if the short run skips the case.
    pub(crate) is_long: bool,
    pub(crate) run: fn(&CaseContext) -> FiguresResult,
}

/// A figure of a case, with its maximum.
pub(crate) struct Bound {
    pub(crate) title: &'static str,
    pub(crate) max: u64,
    pub(crate) unit: Unit,
}

/// The unit of a figure.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// Milliseconds of processing: an unoptimised program may take [`DEBUG_FACTOR`] times as long.
    ShortMillis,
    Millis,
    Mebibytes,
    Count,
}

impl Unit {
    fn as_str(self) -> &'static str {
        match self {
            Unit::ShortMillis | Unit::Millis => "ms",
            Unit::Mebibytes => "MiB",
            Unit::Count => "",
        }
    }
}

impl Bound {
    fn max_for_build(&self, is_release: bool) -> u64 {
        match self.unit {
            Unit::ShortMillis if !is_release => DEBUG_FACTOR * self.max,
            _ => self.max,
        }
    }
}

/// The figures of a case, one for each bound.
pub(crate) type FiguresResult = Result<Vec<u64>, CaseFailure>;

/// A case that was run.
pub(crate) struct CaseOutcome {
    pub(crate) case: &'static AttackCase,
    pub(crate) result: FiguresResult,
    pub(crate) millis: u64,
    /// `true` for the optimised program.
    pub(crate) is_release: bool,
    /// `true` for the second attempt, after the first one failed.
    pub(crate) is_repeated: bool,
}

/// The verdict on a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseVerdict {
    /// All figures are within their bounds.
    Passed,
    /// The first attempt failed; in the second one, all figures are within their bounds.
    Flaky,
    /// This machine does not meet the requirements of the case.
    Skipped,
    /// A figure exceeds its bound, or the case could not be carried out.
    Failed,
}

impl CaseVerdict {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CaseVerdict::Passed => "passed",
            CaseVerdict::Flaky => "flaky",
            CaseVerdict::Skipped => "skipped",
            CaseVerdict::Failed => "failed",
        }
    }
}

impl CaseOutcome {
    pub(crate) fn verdict(&self) -> CaseVerdict {
        let figures = match &self.result {
            Ok(figures) => figures,
            Err(CaseFailure::Skipped(_)) => return CaseVerdict::Skipped,
            Err(CaseFailure::Broken(_)) => return CaseVerdict::Failed,
        };
        let mut pairs = figures.iter().zip(self.case.bounds);
        let is_complete = figures.len() == self.case.bounds.len();
        match is_complete && pairs.all(|(figure, bound)| *figure <= bound.max_for_build(self.is_release)) {
            false => CaseVerdict::Failed,
            true if self.is_repeated => CaseVerdict::Flaky,
            true => CaseVerdict::Passed,
        }
    }

    /// Returns the lines of the table: status, case, title and value of the figure, bound.
    pub(crate) fn lines(&self) -> String {
        let name = self.case.name;
        let figures = match &self.result {
            Ok(figures) => figures,
            Err(CaseFailure::Skipped(reason)) => return format!("skip  {name:<12} not measured: {reason}\n"),
            Err(CaseFailure::Broken(reason)) => return format!("FAIL  {name:<12} not measured: {reason}\n"),
        };
        let within_bound = if self.verdict() == CaseVerdict::Flaky { "flaky" } else { "ok" };
        let rows = figures.iter().zip(self.case.bounds).map(|(figure, bound)| {
            let (Bound { title: figure_title, unit, .. }, max) =
                (bound, bound.max_for_build(self.is_release));
            let status = if *figure <= max { within_bound } else { "FAIL" };
            let unit = unit.as_str();
            let widened = match max / bound.max.max(1) {
                DEBUG_FACTOR => format!("  ({DEBUG_FACTOR} x {}: not optimised)", bound.max),
                _ => String::new(),
            };
            let line = format!(
                "{status:<5} {name:<12} {figure_title:<58} {figure:>6} {unit:<3}  at most {max:>6} {unit}"
            );
            format!("{}{widened}\n", line.trim_end())
        });
        rows.collect()
    }

    /// Returns the outcome as JSON.
    pub(crate) fn json(&self) -> Value {
        let figures = self.result.as_deref().unwrap_or_default().iter().zip(self.case.bounds);
        let figures: Vec<Value> = figures
            .map(|(figure, bound)| {
                json!({
                    "what": bound.title,
                    "figure": figure,
                    "at_most": bound.max_for_build(self.is_release),
                    "at_most_optimised": bound.max,
                    "unit": bound.unit.as_str(),
                })
            })
            .collect();
        let reason = match &self.result {
            Ok(_) => None,
            Err(CaseFailure::Skipped(reason) | CaseFailure::Broken(reason)) => Some(reason),
        };
        json!({
            "case": self.case.name,
            "what": self.case.title,
            "verdict": self.verdict().as_str(),
            "figures": figures,
            "not_measured": reason,
            "millis": self.millis,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: AttackCase = AttackCase {
        name: "queue",
        title: "",
        bounds: &[
            Bound { title: "the first", max: 10, unit: Unit::Millis },
            Bound { title: "the second", max: 0, unit: Unit::Count },
            Bound { title: "the third", max: 5, unit: Unit::ShortMillis },
        ],
        is_long: false,
        run: |_| Ok(Vec::new()),
    };

    #[track_caller]
    fn check(measured: FiguresResult, is_repeated: bool, verdict: CaseVerdict, excerpt: &str) {
        static STATIC_CASE: AttackCase = CASE;
        let outcome =
            CaseOutcome { case: &STATIC_CASE, result: measured, millis: 0, is_release: false, is_repeated };
        assert_eq!(outcome.verdict(), verdict);
        assert_eq!(outcome.json()["verdict"].as_str(), Some(verdict.as_str()));
        assert!(outcome.lines().contains(excerpt), "{}", outcome.lines());
    }

    #[test]
    fn every_figure_must_be_within_its_bound() {
        let skipped = || Err(CaseFailure::Skipped("no names".to_owned()));
        check(Ok(vec![10, 0, 50]), false, CaseVerdict::Passed, "ok    queue        the second");
        check(Ok(vec![10, 0, 51]), false, CaseVerdict::Failed, "FAIL  queue        the third");
        check(Ok(vec![10, 0, 50]), false, CaseVerdict::Passed, "at most     50 ms  (10 x 5: not optimised)");
        check(Ok(vec![10, 0, 50]), true, CaseVerdict::Flaky, "flaky queue        the first");
        check(Ok(vec![11, 0, 50]), true, CaseVerdict::Failed, "FAIL  queue        the first");
        check(Ok(vec![10]), false, CaseVerdict::Failed, "ok    queue        the first");
        check(skipped(), false, CaseVerdict::Skipped, "skip  queue        not measured: no names");
        check(Err(CaseFailure::Broken("lost".to_owned())), false, CaseVerdict::Failed, "not measured: lost");
    }
}
