//! Tests of the whole simulator: scenarios, sweeps with planted faults, and the sandbox API.
#![expect(
    clippy::disallowed_methods,
    reason = "golden files are read, and rewritten if the environment has BLESS"
)]

mod books;
mod drawn;
mod exhaustive;
mod pages;
mod planted;
mod sandbox;
mod scenario_export;
mod scenarios;
mod state;
mod sweep;
mod world;
