//! The coverage of a sweep as a table that fits the terminal. Pure.

use std::{collections::BTreeMap, fmt::Write as _};

use simulator::{
    sweep::{Cell, Matrix},
    workload::Fault,
};

use super::SweepTotals;
use crate::terminal::{self, DIM};

/// The maximum number of listed gaps; the JSON lists all.
const GAPS_SHOWN: usize = 12;
/// The width of the labels of event and situation.
const LABELS: usize = 37;
/// The width if that of the terminal is unknown.
const USUAL: usize = 100;

/// The number of characters of a line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width(usize);

impl Width {
    /// Returns the width of the terminal; `None` if the table was not requested.
    pub(super) fn if_requested(is_requested: bool) -> Option<Width> {
        is_requested.then(|| Width(terminal::columns().unwrap_or(USUAL)))
    }
}

/// Returns one line about the number of pairs that were not reached.
pub(super) fn brief(matrix: &Matrix) -> String {
    let gaps = matrix.gaps().len();
    let gap_count = match gaps {
        0 => "every pair of event and fault that can occur was reached".to_owned(),
        1 => "1 pair of event and fault was not reached".to_owned(),
        _ => format!("{gaps} pairs of event and fault were not reached"),
    };
    format!("coverage: {gap_count} (--coverage shows the table)")
}

/// Returns a table of the first seed that reached each cell, counted from the first seed of the sweep: rows are types
/// and situations, columns are faults. Columns that do not fit continue below.
pub(super) fn table(sum: &SweepTotals, Width(width): Width) -> String {
    let (mut text, matrix) = (String::new(), &sum.matrix);
    let rows = matrix.rows();
    if rows.is_empty() {
        return text;
    }
    let since = |seed: u64| seed.wrapping_sub(sum.from).to_string();
    let columns: Vec<Option<Fault>> = std::iter::once(None).chain(Matrix::columns().map(Some)).collect();
    let word = |fault: Option<Fault>| fault.map_or("no fault", Fault::as_str);
    let longest = matrix.reached_cells().map(|(_, seed)| since(seed).len()).max().unwrap_or(1);
    let cell = longest.max(columns.len().to_string().len()) + 2;
    let from = sum.from;
    let _ = writeln!(
        text,
        "first seed for each event, chain situation and fault, counted from seed {from}; {DIM}·{DIM:#} is a gap"
    );
    let fits = (width.saturating_sub(LABELS) / cell).max(1);
    for (block, faults) in columns.chunks(fits).enumerate() {
        let numbers = block * fits..;
        let legend: Vec<String> =
            numbers.clone().zip(faults).map(|(n, fault)| format!("{n} {}", word(*fault))).collect();
        for line in lines(&legend, width) {
            let _ = writeln!(text, "  {line}");
        }
        let _ = write!(text, "{:<LABELS$}", "");
        for (n, _) in numbers.zip(faults) {
            let _ = write!(text, "{n:>cell$}");
        }
        text.push('\n');
        for (kind, situation) in &rows {
            let _ = write!(text, "{kind:<24} {:<12}", situation.as_str());
            for fault in faults {
                match matrix.first(Cell { kind, situation: *situation, fault: *fault }) {
                    Some(seed) => drop(write!(text, "{:>cell$}", since(seed))),
                    None => drop(write!(text, "{DIM}{:>cell$}{DIM:#}", "·")),
                }
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(&gaps(matrix));
    text
}

/// Joins texts into lines of at most the given width.
fn lines(texts: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for text in texts {
        match lines.last_mut() {
            Some(line) if line.len() + text.len() + 5 <= width => {
                let _ = write!(line, ", {text}");
            }
            _ => lines.push(text.clone()),
        }
    }
    lines
}

/// Returns the pairs that no seed reached, and those that are impossible.
fn gaps(matrix: &Matrix) -> String {
    let mut text = String::new();
    let gaps = matrix.gaps();
    if !gaps.is_empty() {
        let named: Vec<String> = gaps
            .iter()
            .take(GAPS_SHOWN)
            .map(|(kind, fault)| format!("{kind} under {}", fault.as_str()))
            .collect();
        let more = if gaps.len() > GAPS_SHOWN { ", …" } else { "" };
        let _ = writeln!(
            text,
            "{} pairs of event and fault were not reached (more seeds may reach them): {}{more}",
            gaps.len(),
            named.join(", ")
        );
    }
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (kind, fault, why) in matrix.impossible_pairs() {
        reasons.entry(why).or_default().push(format!("{kind} under {}", fault.as_str()));
    }
    for (why, pairs) in reasons {
        let _ = writeln!(text, "{} pairs are impossible, because {why}: {}", pairs.len(), pairs.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use simulator::model::Situation;

    use super::*;

    /// Returns a sweep of 18-digit seeds that reached two cells.
    fn sweep_of_long_seeds() -> SweepTotals {
        let from = 812_345_678_901_234_567;
        let mut sum = SweepTotals { from, ..SweepTotals::default() };
        let cell = Cell { kind: "charge.paid", situation: Situation::Deep, fault: Some(Fault::Reorg) };
        sum.matrix.record(cell, from + 12);
        sum.matrix.record(Cell { fault: None, ..cell }, from + 4_711);
        sum
    }

    #[test]
    fn the_table_fits_the_terminal_and_counts_seeds_from_the_first() {
        for width in [60, 80, 100, 200] {
            let text = table(&sweep_of_long_seeds(), Width(width));
            let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("charge.paid  ")).collect();
            let shown = |line: &&str| line.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "").chars().count();
            assert!(rows.iter().all(|line| shown(line) <= width), "{width}: {text}");
            assert!(rows[0].contains("  4711    12"), "{width}: {text}");
            let cells = (width - LABELS) / 6;
            assert_eq!(rows.len(), (Matrix::columns().count() + 1).div_ceil(cells), "{width}: {text}");
        }
    }
}
