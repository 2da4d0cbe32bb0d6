//! Tests of the simulator as a whole: scenarios, sweeps and their planted bugs, the service beside the model, and the
//! sandbox as its clients meet it.
#![expect(
    clippy::disallowed_methods,
    reason = "golden files are read and written, and the environment says when"
)]

mod books;
mod exhausted;
mod machine;
mod pages;
mod planted;
mod sandbox;
mod scenarios;
mod state;
mod sweep;
mod told;
mod world;
