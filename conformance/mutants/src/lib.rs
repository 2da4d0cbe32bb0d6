//! The test servers of the suite: mutants with one fault each, and correct servers with other legal choices.
//!
//! A mutant is an entry in one of the `TABLES`: a description as its name, the statements of the specification that
//! must fail, and a fault of [`fake::FakeServer`]; `may_fail` lists statements that may fail too. Any other failure is
//! a false alarm. `cargo xtask mutants` shows which statements detect which mutants.

mod authentication;
mod charges_and_invoices;
mod combination;
mod creations;
mod deliveries;
mod deployments;
mod events;
pub mod fake;
mod filters;
mod grid;
mod implementations;
mod isolation;
mod limits;
mod links;
mod malformed_bodies;
mod mutant;
mod pages;
mod payments;
mod second_key;
mod trial;
mod variants;

pub use grid::{grid, grid_table, inject, server_with_long_lists};
pub use isolation::is_foreign_event;
pub use mutant::{Mutant, rewrite_matching};
pub use trial::{Subject, Trial, combinations, kill_table, mutants, run_trials, variants};
pub use variants::{Variant, set_choices};

/// All tables of mutants.
const TABLES: &[&[Mutant]] = &[
    authentication::MUTANTS,
    malformed_bodies::MUTANTS,
    isolation::MUTANTS,
    limits::MUTANTS,
    pages::MUTANTS,
    links::MUTANTS,
    filters::MUTANTS,
    events::MUTANTS,
    payments::MUTANTS,
    deliveries::MUTANTS,
    charges_and_invoices::MUTANTS,
    second_key::MUTANTS,
    creations::MUTANTS,
    implementations::events::MUTANTS,
    implementations::pages::MUTANTS,
    implementations::filters::MUTANTS,
    implementations::deliveries::MUTANTS,
    deployments::MUTANTS,
];
