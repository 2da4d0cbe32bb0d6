//! The grid: all known faults at all injection points, positions and modes in which they can occur.

use crate::fault::Fault;
use crate::{objects, pages, refusals, responses, sent};

/// Returns all known faults, in a fixed order.
pub fn faults() -> Vec<Fault> {
    let mut all = Vec::new();
    pages::fill(&mut all);
    responses::fill(&mut all);
    objects::fill(&mut all);
    refusals::fill(&mut all);
    sent::fill(&mut all);
    all
}
