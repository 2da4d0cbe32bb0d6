//! The coverage matrix: each event type, under each fault, in each state of the chain, with the lowest seed
//! that reached it.

use std::collections::BTreeMap;

use reference_core::event::EventType;

use crate::{invariant::ExpectedEvent, model::Situation, workload::Fault};

/// A combination of event type, state of the chain, and fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The type of the event.
    pub kind: &'static str,
    /// The state of the chain for the charge.
    pub situation: Situation,
    /// The fault; `None` if none was active.
    pub fault: Option<Fault>,
}

impl Cell {
    /// Returns the cells of an event.
    pub fn for_event(event: &ExpectedEvent) -> Vec<Cell> {
        let (kind, situation) = (event.kind, event.situation);
        if event.faults.is_empty() {
            return vec![Cell { kind, situation, fault: None }];
        }
        let active = Fault::ALL.into_iter().filter(|fault| event.faults.contains(*fault));
        active.map(|fault| Cell { kind, situation, fault: Some(fault) }).collect()
    }
}

/// The lowest seed of each reached cell.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    lowest_seeds: BTreeMap<Cell, u64>,
}

impl Matrix {
    /// Records that a world reached a cell. The order of calls does not matter.
    pub fn record(&mut self, cell: Cell, seed: u64) {
        self.lowest_seeds.entry(cell).and_modify(|lowest| *lowest = seed.min(*lowest)).or_insert(seed);
    }

    /// Adds the cells of another matrix.
    pub fn absorb(&mut self, other: &Matrix) {
        other.lowest_seeds.iter().for_each(|(cell, seed)| self.record(*cell, *seed));
    }

    /// Returns the lowest seed that reached a cell.
    pub fn lowest_seed(&self, cell: Cell) -> Option<u64> {
        self.lowest_seeds.get(&cell).copied()
    }

    /// Returns all reached cells, with their lowest seeds.
    pub fn reached_cells(&self) -> impl Iterator<Item = (Cell, u64)> {
        self.lowest_seeds.iter().map(|(cell, seed)| (*cell, *seed))
    }

    /// Returns the rows of the table: reached types and states, in the order of the specification.
    pub fn rows(&self) -> Vec<(&'static str, Situation)> {
        let mut rows = Vec::new();
        for kind in EventType::ALL.map(EventType::as_str) {
            for situation in Situation::ALL {
                if self.lowest_seeds.keys().any(|cell| (cell.kind, cell.situation) == (kind, situation)) {
                    rows.push((kind, situation));
                }
            }
        }
        rows
    }

    /// Returns the pairs of event type and fault that no seed reached but more seeds may reach.
    pub fn gaps(&self) -> Vec<(&'static str, Fault)> {
        self.missing_pairs().filter(|(kind, fault)| impossibility_reason(kind, *fault).is_none()).collect()
    }

    /// Returns the pairs of event type and fault that no world can reach, each with the reason.
    pub fn impossible_pairs(&self) -> Vec<(&'static str, Fault, &'static str)> {
        self.missing_pairs()
            .filter_map(|(kind, fault)| impossibility_reason(kind, fault).map(|reason| (kind, fault, reason)))
            .collect()
    }

    fn missing_pairs(&self) -> impl Iterator<Item = (&'static str, Fault)> {
        let kinds = EventType::ALL.into_iter().map(EventType::as_str);
        let pairs = kinds.flat_map(|kind| Matrix::columns().map(move |fault| (kind, fault)));
        pairs.filter(|(kind, fault)| {
            !self.lowest_seeds.keys().any(|cell| cell.kind == *kind && cell.fault == Some(*fault))
        })
    }

    /// Returns the faults that can be active when an event is recorded. The others are ways to pay or read, which have
    /// no duration.
    pub fn columns() -> impl Iterator<Item = Fault> {
        const WITHOUT_COLUMN: [Fault; 13] = [
            Fault::WrongNetwork,
            Fault::Dust,
            Fault::SameMoment,
            Fault::LockEdge,
            Fault::CancelRace,
            Fault::Walk,
            Fault::Burst,
            Fault::LongOutage,
            Fault::StuckAtEnd,
            Fault::BumpAtEnd,
            Fault::BumpAtOnce,
            Fault::LateRefund,
            Fault::FullLink,
        ];
        Fault::ALL.into_iter().filter(|fault| !WITHOUT_COLUMN.contains(fault))
    }
}

/// Faults of a transfer, which are active for a charge once it was seen.
const TRANSFER_FAULTS: [Fault; 7] = [
    Fault::DoubleSpend,
    Fault::Replace,
    Fault::Drop,
    Fault::LowFee,
    Fault::Stuck,
    Fault::Unseen,
    Fault::Outputs,
];
/// Faults of a chain, which are active for the charges of its coin.
const CHAIN_FAULTS: [Fault; 4] = [Fault::Reorg, Fault::Congestion, Fault::Stall, Fault::Watcher];

/// Returns the reason why an event is never recorded under a fault; `None` if it may be.
fn impossibility_reason(kind: &str, fault: Fault) -> Option<&'static str> {
    let is_transfer_fault = TRANSFER_FAULTS.contains(&fault);
    match kind {
        "charge.created" if is_transfer_fault || fault == Fault::WrongCoin => {
            Some("a charge begins before anything is paid to it")
        }
        "charge.canceled" if is_transfer_fault => Some("only a charge that saw no transfer is canceled"),
        "invoice.created"
            if is_transfer_fault || fault == Fault::WrongCoin || CHAIN_FAULTS.contains(&fault) =>
        {
            Some("an invoice is issued before it has a charge")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Situation;

    #[test]
    fn an_unreached_pair_is_a_gap_or_impossible() {
        let mut matrix = Matrix::default();
        let (all, columns) = (EventType::ALL.len(), Matrix::columns().count());
        let count = |matrix: &Matrix| (matrix.gaps().len(), matrix.impossible_pairs().len());
        let (gaps, impossible) = count(&matrix);
        // Impossible are 8 faults for `charge.created`, 7 for `charge.canceled`, and 12 for
        // `invoice.created`.
        assert_eq!((gaps + impossible, impossible), (all * columns, 8 + 7 + 12));
        let cell = Cell { kind: "charge.paid", situation: Situation::Confirmed, fault: Some(Fault::Reorg) };
        matrix.record(cell, 7);
        assert_eq!(count(&matrix), (gaps - 1, impossible));
        // A reached cell is never listed as impossible.
        matrix.record(Cell { kind: "charge.created", fault: Some(Fault::Drop), ..cell }, 7);
        assert_eq!(count(&matrix), (gaps - 1, impossible - 1));
    }
}
