//! What the suite is proven with: servers with one fault each, and honest ones that made other choices.
//!
//! A mutant is a line in the table of its chapter: the fault as its name, the statements that must fail
//! (`breaks`), those that may fail with them (`may`), and how the mini service is spoiled. Whatever else
//! fails is a false alarm. A new table is entered in `TABLES`; `cargo xtask mutants` shows what kills what.

mod delivered;
mod deliveries;
mod events;
mod filters;
mod inserts;
mod keys;
mod limits;
mod links;
pub mod mini;
mod pages;
mod second;
mod text;
mod trial;
mod variants;
mod walls;

pub use trial::{Subject, Trial, mutants, table, trials, variants};
pub use variants::{Variant, manners};
pub use walls::foreign;

use mini::{Asked, Mini, Reply};

/// A server with one fault.
pub struct Mutant {
    /// The fault, in words.
    pub name: &'static str,
    /// The statements that must fail, or warn where they are derived ones.
    pub breaks: &'static [&'static str],
    /// The statements that may fail too, because the fault reaches them.
    pub may: &'static [&'static str],
    /// Puts the fault into an honest service.
    pub spoil: fn(&mut Mini),
}

/// Every table of mutants.
const TABLES: &[&[Mutant]] = &[
    keys::MUTANTS,
    text::MUTANTS,
    walls::MUTANTS,
    limits::MUTANTS,
    pages::MUTANTS,
    links::MUTANTS,
    filters::MUTANTS,
    events::MUTANTS,
    deliveries::MUTANTS,
    delivered::MUTANTS,
    second::MUTANTS,
    inserts::MUTANTS,
];

/// Warps every answer of a status to a path that fits.
pub fn warp(mini: &mut Mini, status: u16, fits: fn(&Asked) -> bool, change: fn(&Asked, &mut Reply)) {
    mini.warp(move |asked, reply| {
        if reply.status == status && fits(asked) {
            change(asked, reply);
        }
    });
}

/// Warps every list that is served.
pub fn lists(mini: &mut Mini, change: fn(&Asked, &mut Reply)) {
    warp(mini, 200, Asked::is_list, change);
}

/// Whether a list has no records.
pub fn empty(reply: &Reply) -> bool {
    reply.body["data"].as_array().is_some_and(Vec::is_empty)
}
