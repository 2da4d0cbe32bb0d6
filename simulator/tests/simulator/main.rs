//! Tests of the whole simulator: scenarios, sweeps with planted faults, and the sandbox API.
#![expect(
    clippy::disallowed_methods,
    reason = "golden files are read, and rewritten if the environment has BLESS"
)]

mod books;
mod draw_coverage;
mod exhaustive;
mod hosted_pages;
mod planted;
mod sandbox;
mod saved_state;
mod scenario_export;
mod scenarios;
mod sweep;
mod world;
