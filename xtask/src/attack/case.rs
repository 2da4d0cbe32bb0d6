//! What a case is, what it measures, and how that is told.

use serde_json::{Value, json};

use super::context::{CaseContext, Miss};

/// One row of the table.
pub(crate) struct AttackCase {
    /// What `--only` takes.
    pub(crate) name: &'static str,
    /// What is done, in one line.
    pub(crate) what: &'static str,
    /// What is measured, in the order in which `run` gives the figures.
    pub(crate) bounds: &'static [Bound],
    /// The short form leaves it out.
    pub(crate) is_long: bool,
    pub(crate) run: fn(&CaseContext) -> Measured,
}

/// A figure of a case, and how large it may be.
pub(crate) struct Bound {
    pub(crate) what: &'static str,
    pub(crate) most: u64,
    pub(crate) unit: Unit,
}

#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// So short that a program without optimisation may take ten times as long.
    Moment,
    Millis,
    Mebibytes,
    Count,
}

impl Unit {
    fn word(self) -> &'static str {
        match self {
            Unit::Moment | Unit::Millis => "ms",
            Unit::Mebibytes => "MiB",
            Unit::Count => "",
        }
    }
}

impl Bound {
    fn most(&self, is_release: bool) -> u64 {
        match self.unit {
            Unit::Moment if !is_release => 10 * self.most,
            _ => self.most,
        }
    }
}

/// The figures of a case, one for each bound.
pub(crate) type Measured = Result<Vec<u64>, Miss>;

/// A case that was run.
pub(crate) struct Outcome {
    pub(crate) case: &'static AttackCase,
    pub(crate) measured: Measured,
    pub(crate) millis: u64,
    /// Of the optimised program.
    pub(crate) is_release: bool,
}

impl Outcome {
    /// Whether every figure is within its bound, or none could be had on this machine.
    pub(crate) fn holds(&self) -> bool {
        match &self.measured {
            Ok(figures) => {
                figures.len() == self.case.bounds.len()
                    && figures
                        .iter()
                        .zip(self.case.bounds)
                        .all(|(figure, bound)| *figure <= bound.most(self.is_release))
            }
            Err(Miss::Skipped(_)) => true,
            Err(Miss::Broken(_)) => false,
        }
    }

    /// The lines of the table: case, figure, bound.
    pub(crate) fn lines(&self) -> String {
        let name = self.case.name;
        let figures = match &self.measured {
            Ok(figures) => figures,
            Err(Miss::Skipped(why)) => return format!("--    {name:<11} not measured: {why}\n"),
            Err(Miss::Broken(why)) => return format!("FAIL  {name:<11} not measured: {why}\n"),
        };
        let rows = figures.iter().zip(self.case.bounds).map(|(figure, bound)| {
            let (Bound { what, unit, .. }, most) = (bound, bound.most(self.is_release));
            let mark = if *figure <= most { "ok  " } else { "FAIL" };
            let unit = unit.word();
            format!("{mark}  {name:<11} {what:<58} {figure:>6} {unit:<3}  at most {most:>6} {unit}")
                .trim_end()
                .to_owned()
                + "\n"
        });
        rows.collect()
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let figures = self.measured.as_deref().unwrap_or_default().iter().zip(self.case.bounds);
        let figures: Vec<Value> = figures
            .map(|(figure, bound)| {
                json!({ "what": bound.what, "figure": figure, "at_most": bound.most(self.is_release), "unit": bound.unit.word() })
            })
            .collect();
        let why = match &self.measured {
            Ok(_) => None,
            Err(Miss::Skipped(why) | Miss::Broken(why)) => Some(why),
        };
        json!({
            "case": self.case.name,
            "what": self.case.what,
            "holds": self.holds(),
            "figures": figures,
            "not_measured": why,
            "millis": self.millis,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASE: AttackCase = AttackCase {
        name: "queue",
        what: "",
        bounds: &[
            Bound { what: "the first", most: 10, unit: Unit::Millis },
            Bound { what: "the second", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: |_| Ok(Vec::new()),
    };

    #[track_caller]
    fn check(measured: Measured, holds: bool, part: &str) {
        static ROW: AttackCase = CASE;
        let outcome = Outcome { case: &ROW, measured, millis: 0, is_release: true };
        assert_eq!((outcome.holds(), outcome.json()["holds"].as_bool()), (holds, Some(holds)));
        assert!(outcome.lines().contains(part), "{}", outcome.lines());
    }

    #[test]
    fn every_figure_must_be_within_its_bound() {
        check(Ok(vec![10, 0]), true, "ok    queue       the second");
        check(Ok(vec![11, 0]), false, "FAIL  queue       the first");
        check(Ok(vec![10]), false, "ok    queue       the first");
        check(Err(Miss::Skipped("no names".to_owned())), true, "--    queue       not measured: no names");
        check(Err(Miss::Broken("lost".to_owned())), false, "FAIL  queue       not measured: lost");
    }
}
