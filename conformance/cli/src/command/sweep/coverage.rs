//! The coverage of a sweep as a table that fits the terminal. No I/O except for reading the width of the terminal.

use std::{collections::BTreeMap, fmt::Write as _};

use simulator::{
    sweep::{Cell, Matrix},
    workload::Fault,
};

use super::SweepTotals;
use crate::terminal::{self, DIM};

/// The maximum number of listed gaps; the JSON lists all.
const GAPS_SHOWN_MAX: usize = 12;
/// The width of the row labels: event type (24), a space, and chain situation (12).
const LABEL_WIDTH: usize = 37;
/// The width of the table without a terminal.
const DEFAULT_WIDTH: usize = 100;
/// The spaces between two columns.
const COLUMN_GAP: usize = 2;
/// The characters in a line of the legend besides the items: the indent, the separator, and a margin.
const LEGEND_MARGIN: usize = 5;

/// The maximum number of characters in a line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Width(usize);

impl Width {
    /// Returns the width of the terminal; `None` if the table was not requested.
    pub(super) fn if_requested(is_requested: bool) -> Option<Width> {
        is_requested.then(|| Width(terminal::columns().unwrap_or(DEFAULT_WIDTH)))
    }
}

/// Returns a line with the number of pairs of event and fault that were not reached.
pub(super) fn summary_line(matrix: &Matrix) -> String {
    let gap_count = matrix.gaps().len();
    let message = match gap_count {
        0 => "every pair of event and fault that can occur was reached".to_owned(),
        1 => "1 pair of event and fault was not reached".to_owned(),
        _ => format!("{gap_count} pairs of event and fault were not reached"),
    };
    format!("coverage: {message} (--coverage shows the table)")
}

/// Returns a table: rows are event types and chain situations (the state of the newest transfer to
/// the charge), columns are faults, and a cell contains the first seed that reached it, counted
/// from the first seed of the sweep. Columns that do not fit continue below.
pub(super) fn table(totals: &SweepTotals, Width(width): Width) -> String {
    let (mut text, matrix) = (String::new(), &totals.matrix);
    let rows = matrix.rows();
    if rows.is_empty() {
        return text;
    }
    let seed_offset = |seed: u64| seed.wrapping_sub(totals.start_seed).to_string();
    let columns: Vec<Option<Fault>> = std::iter::once(None).chain(Matrix::columns().map(Some)).collect();
    let fault_name = |fault: Option<Fault>| fault.map_or("no fault", Fault::as_str);
    let digits_max = matrix.reached_cells().map(|(_, seed)| seed_offset(seed).len()).max().unwrap_or(1);
    let cell_width = digits_max.max(columns.len().to_string().len()) + COLUMN_GAP;
    let from = totals.start_seed;
    let _ = writeln!(
        text,
        "first seed for each event, chain situation and fault, counted from seed {from}; {DIM}·{DIM:#} is a gap"
    );
    let columns_per_block = (width.saturating_sub(LABEL_WIDTH) / cell_width).max(1);
    for (block, faults) in columns.chunks(columns_per_block).enumerate() {
        let numbers = block * columns_per_block..;
        let legend: Vec<String> =
            numbers.clone().zip(faults).map(|(n, fault)| format!("{n} {}", fault_name(*fault))).collect();
        for line in wrap(&legend, width) {
            let _ = writeln!(text, "  {line}");
        }
        let _ = write!(text, "{:<LABEL_WIDTH$}", "");
        for (n, _) in numbers.zip(faults) {
            let _ = write!(text, "{n:>cell_width$}");
        }
        text.push('\n');
        for (kind, situation) in &rows {
            let _ = write!(text, "{kind:<24} {:<12}", situation.as_str());
            for fault in faults {
                match matrix.lowest_seed(Cell { kind, situation: *situation, fault: *fault }) {
                    Some(seed) => drop(write!(text, "{:>cell_width$}", seed_offset(seed))),
                    None => drop(write!(text, "{DIM}{:>cell_width$}{DIM:#}", "·")),
                }
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text.push_str(&gap_lines(matrix));
    text
}

/// Joins the items of the legend by commas into lines that fit into the given width.
fn wrap(items: &[String], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + item.len() + LEGEND_MARGIN <= width => {
                let _ = write!(line, ", {item}");
            }
            _ => lines.push(item.clone()),
        }
    }
    lines
}

/// Returns lines with the pairs that no seed reached and with those that are impossible.
fn gap_lines(matrix: &Matrix) -> String {
    let mut text = String::new();
    let gaps = matrix.gaps();
    if !gaps.is_empty() {
        let names: Vec<String> = gaps
            .iter()
            .take(GAPS_SHOWN_MAX)
            .map(|(kind, fault)| format!("{kind} under {}", fault.as_str()))
            .collect();
        let more = if gaps.len() > GAPS_SHOWN_MAX { ", …" } else { "" };
        let _ = writeln!(
            text,
            "{} pairs of event and fault were not reached (more seeds may reach them): {}{more}",
            gaps.len(),
            names.join(", ")
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

    /// Returns the totals of a sweep with 18-digit seeds that reached two cells.
    fn sweep_of_long_seeds() -> SweepTotals {
        let from = 812_345_678_901_234_567;
        let mut totals = SweepTotals { start_seed: from, ..SweepTotals::default() };
        let cell = Cell { kind: "charge.paid", situation: Situation::Confirmed, fault: Some(Fault::Reorg) };
        totals.matrix.record(cell, from + 12);
        totals.matrix.record(Cell { fault: None, ..cell }, from + 4_711);
        totals
    }

    #[test]
    fn the_table_fits_the_terminal_and_counts_seeds_from_the_first() {
        for width in [60, 80, 100, 200] {
            let text = table(&sweep_of_long_seeds(), Width(width));
            let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("charge.paid  ")).collect();
            let visible_length =
                |line: &&str| line.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "").chars().count();
            assert!(rows.iter().all(|line| visible_length(line) <= width), "{width}: {text}");
            assert!(rows[0].contains("  4711    12"), "{width}: {text}");
            let cell_width = "4711".len() + COLUMN_GAP;
            let cells = (width - LABEL_WIDTH) / cell_width;
            // One more than the faults, for the column without a fault.
            assert_eq!(rows.len(), (Matrix::columns().count() + 1).div_ceil(cells), "{width}: {text}");
        }
    }
}
