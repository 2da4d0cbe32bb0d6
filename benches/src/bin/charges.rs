//! Measures how many charges one core opens and completes per second, without deliveries, and with deliveries that are
//! written and signed.
//!
//! `charges [COUNT]`: measured in processor time, so that other load has little effect. Prints JSON.

use std::{collections::BTreeMap, env, fs, process::ExitCode};

use benches::BenchDriver;
use reference_core::asset::Asset;

const DEFAULT_COUNT: u64 = 100_000;
/// The number of charges before the measurement, to fill caches and tables.
const WARM_UP: u64 = 2_000;
const EVENTS_PER_CHARGE: usize = 3;

fn main() -> ExitCode {
    let count = match env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => DEFAULT_COUNT,
        Some(Ok(count @ 1..)) => count,
        Some(_) => {
            eprintln!("error: the argument must be a number of charges");
            return ExitCode::from(2);
        }
    };
    let mut rates = BTreeMap::new();
    for (asset, endpoints) in [(Asset::Sol, 0), (Asset::Sol, 1), (Asset::Btc, 1), (Asset::Eth, 1)] {
        let mut driver = BenchDriver::new(asset, endpoints);
        (0..WARM_UP).for_each(|_| driver.complete_charge());
        let nanos_before = cpu_nanos();
        (0..count).for_each(|_| driver.complete_charge());
        let nanos = (cpu_nanos() - nanos_before).max(1);
        let rate = count * 1_000_000_000 / nanos;
        rates.insert(format!("{asset}, {} deliveries each", EVENTS_PER_CHARGE * endpoints), rate);
    }
    let report = serde_json::json!({ "charges": count, "a_second_of_one_core": rates });
    println!("{report:#}");
    ExitCode::SUCCESS
}

/// Returns the processor time of this process in nanoseconds, as counted by the scheduler.
fn cpu_nanos() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}
