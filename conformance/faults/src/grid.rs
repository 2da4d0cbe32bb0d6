//! The grid: all known faults at all places, positions and modes in which they can occur.

use crate::fault::Fault;
use crate::{envelopes, objects, pages, refusals, sent};

/// Returns all known faults, in a fixed order.
pub fn faults() -> Vec<Fault> {
    let mut all = Vec::new();
    pages::fill(&mut all);
    envelopes::fill(&mut all);
    objects::fill(&mut all);
    refusals::fill(&mut all);
    sent::fill(&mut all);
    all
}
