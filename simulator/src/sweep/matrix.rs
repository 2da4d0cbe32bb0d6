//! What met what: each type of event, under each fault, in each situation of the chain, and the first seed that did.

use std::collections::BTreeMap;

use reference_core::event::EventType;

use crate::{
    model::{Situation, Told},
    workload::Fault,
};

/// An event of a type happened, while the chain stood so, under a fault or under none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The type of the event.
    pub kind: &'static str,
    /// Where the chain stood for the charge.
    pub situation: Situation,
    /// The fault; nothing if none was around.
    pub fault: Option<Fault>,
}

impl Cell {
    /// Every cell that an event belongs to.
    pub fn of(told: &Told) -> Vec<Cell> {
        let (kind, situation) = (told.kind, told.situation);
        if told.troubles.is_empty() {
            return vec![Cell { kind, situation, fault: None }];
        }
        let around = Fault::ALL.into_iter().filter(|fault| told.troubles.has(*fault));
        around.map(|fault| Cell { kind, situation, fault: Some(fault) }).collect()
    }
}

/// The first seed of every cell.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    first: BTreeMap<Cell, u64>,
}

impl Matrix {
    /// A world reached this cell. The order of telling does not matter.
    pub fn note(&mut self, cell: Cell, seed: u64) {
        self.first.entry(cell).and_modify(|first| *first = seed.min(*first)).or_insert(seed);
    }

    /// Everything that another saw.
    pub fn absorb(&mut self, other: &Matrix) {
        other.first.iter().for_each(|(cell, seed)| self.note(*cell, *seed));
    }

    /// The first seed that reached a cell.
    pub fn first(&self, cell: Cell) -> Option<u64> {
        self.first.get(&cell).copied()
    }

    /// Every cell that was reached, with its first seed.
    pub fn reached(&self) -> impl Iterator<Item = (Cell, u64)> {
        self.first.iter().map(|(cell, seed)| (*cell, *seed))
    }

    /// Rows of the table: types and situations that were reached at all, in the order of the specification.
    pub fn rows(&self) -> Vec<(&'static str, Situation)> {
        let mut rows = Vec::new();
        for kind in EventType::ALL.map(EventType::as_str) {
            for situation in Situation::ALL {
                if self.first.keys().any(|cell| (cell.kind, cell.situation) == (kind, situation)) {
                    rows.push((kind, situation));
                }
            }
        }
        rows
    }

    /// Types of events that were never recorded under a fault that can be around: holes to explain.
    pub fn gaps(&self) -> Vec<(&'static str, Fault)> {
        let mut gaps = Vec::new();
        for kind in EventType::ALL.map(EventType::as_str) {
            for fault in Matrix::columns() {
                if !self.first.keys().any(|cell| cell.kind == kind && cell.fault == Some(fault)) {
                    gaps.push((kind, fault));
                }
            }
        }
        gaps
    }

    /// The faults that can be around an event. The others are manners of paying and reading, which no event knows.
    pub fn columns() -> impl Iterator<Item = Fault> {
        const UNSEEN: [Fault; 8] = [
            Fault::WrongNetwork,
            Fault::Dust,
            Fault::SameMoment,
            Fault::LockEdge,
            Fault::CancelRace,
            Fault::Walk,
            Fault::Burst,
            Fault::LongOutage,
        ];
        Fault::ALL.into_iter().filter(|fault| !UNSEEN.contains(fault))
    }
}
