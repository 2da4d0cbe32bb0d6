//! The grid: every known fault, at every place and position and in every mode where it can show.

use crate::fault::Fault;
use crate::{envelopes, objects, pages, refusals, sent};

/// Every known fault, in a fixed order.
pub fn faults() -> Vec<Fault> {
    let mut all = Vec::new();
    pages::fill(&mut all);
    envelopes::fill(&mut all);
    objects::fill(&mut all);
    refusals::fill(&mut all);
    sent::fill(&mut all);
    all
}
