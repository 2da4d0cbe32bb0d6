//! Measures the cost of `--data`: opens charges on a server that stores its world and on one that does not,
//! alternately.

use std::path::Path;

use super::case::{CASES, ReferenceWorld};
use super::figures::{Figures, Sample};
use super::process::{Cores, MeasuredServer};
use super::{CompareOptions, Programs};

/// The name on the command line.
pub(crate) const CASE_NAME: &str = "stored";
/// The case whose request both servers get.
const CASE: &str = "open-btc";

/// Measures both servers. In the result, the server with `--data` stands for the reference server, and the one in
/// memory for the bare server.
pub(crate) fn measure(programs: &Programs, work: &Path, options: &CompareOptions) -> Result<Figures, String> {
    let directory = work.join("stored");
    if directory.exists() {
        std::fs::remove_dir_all(&directory)
            .map_err(|error| format!("cannot empty `{}`: {error}", directory.display()))?;
    }
    let data = directory.to_str().ok_or("the path of the workspace is not UTF-8")?;
    let stored = MeasuredServer::start_reference_with(programs, Cores::Shared, &["--data", data])?;
    let in_memory = MeasuredServer::start_reference(programs, Cores::Shared)?;
    let case = CASES.iter().find(|case| case.name == CASE).expect("the list contains the case");
    let prepared = ReferenceWorld::create(&in_memory, work)?.prepare(case, work)?;
    let mut figures = Figures::default();
    for round in 0..options.rounds {
        eprintln!("stored: round {} of {}", round + 1, options.rounds);
        let sample = |server: &MeasuredServer| {
            Sample::measure(programs, server, &prepared, Cores::Shared, options.seconds)
        };
        if round % 2 == 0 {
            let sampled_first = sample(&stored)?;
            figures.add(sampled_first, sample(&in_memory)?);
        } else {
            let sampled_first = sample(&in_memory)?;
            figures.add(sample(&stored)?, sampled_first);
        }
    }
    Ok(figures)
}
