//! Measures response times and memory of a book with many events.
//!
//! `large EVENTS`: fills a book with `EVENTS / 3` paid charges of three events each; half of the charges are from a
//! payment link. Then reads first and middle (`deep`) pages of the lists of charges and events.
//! Prints JSON: microseconds per request by kind, and bytes per charge with its three events.

use std::{collections::BTreeMap, env, fs, hint::black_box, process::ExitCode, time::Instant};

use benches::BenchDriver;
use reference_core::asset::Asset;

/// The number of requests for each page. The 10th percentile of their times is reported, because other programs use
/// the machine, too.
const ROUNDS: usize = 400;
/// The smallest number of events for which `middle` below returns at least page 1 of every list.
const EVENTS_MIN: usize = 300;
const EVENTS_PER_CHARGE: usize = 3;

fn main() -> ExitCode {
    let events = env::args().nth(1).and_then(|text| text.parse::<usize>().ok());
    let Some(events) = events.filter(|events| *events >= EVENTS_MIN) else {
        eprintln!("error: the argument must be a number of events, at least {EVENTS_MIN}");
        return ExitCode::from(2);
    };
    let bytes_before = resident_bytes();
    // Solana addresses are random, not derived from a key, so Solana charges cost least to create. There is no
    // endpoint, so the events are not delivered.
    let mut driver = BenchDriver::new(Asset::Sol, 0);
    let started = Instant::now();
    let charges = events / EVENTS_PER_CHARGE;
    for _ in 0..charges / 2 {
        driver.complete_charge();
    }
    let link_id = driver.use_link();
    for _ in charges / 2..charges {
        driver.complete_charge();
    }
    let fill_duration = started.elapsed();
    let bytes_per_charge = (resident_bytes().saturating_sub(bytes_before)) / charges as u64;

    let newest: serde_json::Value =
        serde_json::from_slice(&driver.get("/v1/charges?per_page=1").body).expect("responses are JSON");
    let charge_id = newest["data"][0]["id"].as_str().expect("a charge has an id").to_owned();
    // Each argument is the number of rows divided by the page size of 25. Half of the charges are of the link.
    let middle = |pages: usize| pages / 2;
    let requests = [
        ("first page of events", "/v1/events?per_page=25".to_owned()),
        ("page of events, deep", format!("/v1/events?per_page=25&page={}", middle(events / 25))),
        (
            "events of a type, deep",
            format!("/v1/events?type=charge.paid&per_page=25&page={}", middle(charges / 25)),
        ),
        ("events of a charge", format!("/v1/events?charge={charge_id}&per_page=25")),
        ("first page of charges", "/v1/charges?per_page=25".to_owned()),
        (
            "charges of a status, deep",
            format!("/v1/charges?status=paid&per_page=25&page={}", middle(charges / 25)),
        ),
        (
            "charges of a link, deep",
            format!("/v1/charges?payment_link={link_id}&per_page=25&page={}", middle(charges / 50)),
        ),
    ];
    let mut micros = BTreeMap::new();
    for (name, path) in requests {
        let mut nanos: Vec<u128> = (0..ROUNDS)
            .map(|_| {
                let started = Instant::now();
                black_box(driver.get(&path));
                started.elapsed().as_nanos()
            })
            .collect();
        nanos.sort_unstable();
        micros.insert(name, format_micros(nanos[ROUNDS / 10]));
    }
    let report = serde_json::json!({
        "events": events,
        "filled_in_ms": u64::try_from(fill_duration.as_millis()).unwrap_or(u64::MAX),
        "bytes_a_charge_with_three_events": bytes_per_charge,
        "micros": micros,
    });
    println!("{report:#}");
    ExitCode::SUCCESS
}

/// Formats nanoseconds as microseconds with three decimals.
fn format_micros(nanos: u128) -> String {
    format!("{}.{:03}", nanos / 1_000, nanos % 1_000)
}

/// Returns the resident memory of this process in bytes, if its memory pages have 4 KiB; 0 if it is unknown.
fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    pages * 4_096
}
