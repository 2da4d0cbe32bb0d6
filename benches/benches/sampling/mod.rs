//! The sampling configuration of the benchmarks: durations and number of samples.

use std::time::Duration;

use criterion::Criterion;

/// Returns a configuration with which all benchmarks together take less than five minutes.
pub(crate) fn config() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
}
