//! Fuzz targets: every parser must survive arbitrary bytes.
//!
//! A [`Target`] parses any bytes and panics if an invariant of the parser is violated. `cargo xtask hostile` runs the
//! targets with libFuzzer, guided by coverage. A plain build of this package replays files, and its test replays the
//! files under `corpus/`: seeds, and all inputs that once revealed a fault.

mod edit;
mod judge;
mod recording;
mod request;
mod scenario;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name on the command line, and of the directory under `corpus/`.
    pub name: &'static str,
    /// The description of the parser and its invariants.
    pub description: &'static str,
    /// Runs the parser on the bytes. Panics if an invariant is violated.
    pub feed: fn(&[u8]),
}

/// All fuzz targets.
pub const TARGETS: [Target; 4] = [
    Target {
        name: "request",
        description: "requests to the reference server: JSON responses with a known status; refused requests change nothing",
        feed: request::feed,
    },
    Target {
        name: "scenario",
        description: "scenario files: parsed or rejected, and unchanged after writing and parsing",
        feed: scenario::feed,
    },
    Target {
        name: "recording",
        description: "run files and HAR files: parsed or rejected, and unchanged after writing and parsing",
        feed: recording::feed,
    },
    Target {
        name: "judge",
        description: "a recording of a correct server with random edits: judged deterministically, and reported",
        feed: judge::feed,
    },
];

/// Returns the target with this name, if there is one.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
