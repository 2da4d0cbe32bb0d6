//! The test servers of the suite: mutants with one fault each, and correct servers with other legal choices.
//!
//! A mutant is a line in the table of its chapter: the fault as its name, the statements that must fail, and the
//! fault itself; `may` names the statements that may fail with them. Any other failure is a false alarm. A new
//! table is entered in `TABLES`; `cargo xtask mutants` shows which statements detect which mutants.

mod combination;
mod delivered;
mod deliveries;
mod events;
pub mod fake;
mod filters;
mod grid;
mod inserts;
mod isolation;
mod keys;
mod limits;
mod links;
mod mutant;
mod pages;
mod second;
mod text;
mod trial;
mod variants;

pub use grid::{grid, grid_table, inject, long_server};
pub use isolation::foreign;
pub use mutant::{Mutant, rewrite};
pub use trial::{Subject, Trial, combinations, mutants, table, trials, variants};
pub use variants::{Variant, choices};

/// Every table of mutants.
const TABLES: &[&[Mutant]] = &[
    keys::MUTANTS,
    text::MUTANTS,
    isolation::MUTANTS,
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
