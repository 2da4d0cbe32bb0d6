//! The grid: all known faults at all injection points, positions and modes in which they can occur.

use crate::fault::Fault;
use crate::{delivery_headers, objects, pages, refusals, responses};

/// Returns all known faults, in a fixed order.
pub fn faults() -> Vec<Fault> {
    let mut all = Vec::new();
    pages::add_faults(&mut all);
    responses::add_faults(&mut all);
    objects::add_faults(&mut all);
    refusals::add_faults(&mut all);
    delivery_headers::add_faults(&mut all);
    all
}
