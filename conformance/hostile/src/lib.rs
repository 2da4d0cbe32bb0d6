//! Robustness targets: every reader of bytes must survive hostile ones.
//!
//! A [`Target`] takes any bytes and panics if their reader broke a promise. `cargo xtask hostile` lets libFuzzer
//! choose the bytes, guided by the code that they reach; a plain build of this package replays files, and its test
//! replays the files under `corpus/`: seeds, and every input that once found a fault.

mod edit;
mod judge;
mod recording;
mod request;
mod scenario;

/// One reader of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name on the command line and of the directory under `corpus/`.
    pub name: &'static str,
    /// The reader of the bytes, and its promise.
    pub what: &'static str,
    /// Runs the reader; panics if it broke its promise.
    pub feed: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 4] = [
    Target {
        name: "request",
        what: "requests to the reference: answered in JSON with a known status, refused ones change nothing",
        feed: request::feed,
    },
    Target {
        name: "scenario",
        what: "scenario files: read or refused, and written back as they were read",
        feed: scenario::feed,
    },
    Target {
        name: "recording",
        what: "kept runs and HAR files: read or refused, and written back as they were read",
        feed: recording::feed,
    },
    Target {
        name: "judge",
        what: "a recording of a correct server with random edits: judged, twice the same, and reported",
        feed: judge::feed,
    },
];

/// Returns the target with this name.
///
/// # Errors
///
/// Lists all names if there is no target with this one.
pub fn target(name: &str) -> Result<Target, String> {
    TARGETS.into_iter().find(|target| target.name == name).ok_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        format!("`{name}` is not a target; there are {}", names.join(", "))
    })
}
