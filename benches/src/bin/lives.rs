//! The number of charges that one core takes from opened to paid in a second, with their deliveries written and
//! signed.
//!
//! `lives [COUNT]`: counted in processor time, so that other load changes little. Prints JSON.

use std::{collections::BTreeMap, env, fs, process::ExitCode};

use benches::BenchDriver;
use reference_core::asset::Asset;

const COUNT: u64 = 100_000;
/// Lives before the measurement: caches and tables are as they will be.
const BEFORE: u64 = 2_000;

fn main() -> ExitCode {
    let count = match env::args().nth(1).map(|text| text.parse::<u64>()) {
        None => COUNT,
        Some(Ok(count @ 1..)) => count,
        Some(_) => {
            eprintln!("error: it takes a number of lives");
            return ExitCode::from(2);
        }
    };
    let mut figures = BTreeMap::new();
    for (asset, endpoints) in [(Asset::Sol, 0), (Asset::Sol, 1), (Asset::Btc, 1), (Asset::Eth, 1)] {
        let mut driver = BenchDriver::new(asset, endpoints);
        (0..BEFORE).for_each(|_| driver.live());
        let before = cpu_nanos();
        (0..count).for_each(|_| driver.live());
        let nanos = (cpu_nanos() - before).max(1);
        let lives = count * 1_000_000_000 / nanos;
        figures.insert(format!("{asset}, {} deliveries each", 3 * endpoints), lives);
    }
    let report = serde_json::json!({ "lives": count, "a_second_of_one_core": figures });
    println!("{report:#}");
    ExitCode::SUCCESS
}

/// The time that this process has run, from the scheduler's own count.
fn cpu_nanos() -> u64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}
