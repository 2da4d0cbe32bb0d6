//! Fuzz targets: code that reads untrusted bytes must handle all of them.
//!
//! A [`Target`] runs such code, a parser, the reference server or the judge, on any bytes, and panics if an invariant
//! is violated. `cargo xtask hostile` builds the program of this package with libFuzzer, which generates inputs
//! guided by coverage. Built without libFuzzer, the program runs a target on given files instead. A test runs the
//! targets on the files under `corpus/`: seeds, and all inputs that once revealed a fault.

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
    /// The description of the input and the invariants.
    pub description: &'static str,
    /// Runs the target on the bytes. Panics if an invariant is violated.
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
