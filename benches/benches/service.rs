//! Benchmarks of the service without sockets: requests, and complete lifecycles of charges.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

mod sampling;

use benches::{BenchDriver, World};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use reference_core::asset::Asset;

/// The numbers of charges of the account. The JSON cache has 8,192 slots for events. The 990 events of 330 charges fit
/// into it, the 30,000 events of 10,000 charges do not.
const SIZES: [usize; 2] = [330, 10_000];
const EVENTS_PER_CHARGE: usize = 3;
const PER_PAGE: usize = 25;

fn bench_reads(c: &mut Criterion) {
    for size in SIZES {
        let mut driver = BenchDriver::new(Asset::Sol, 0);
        (0..size).for_each(|_| driver.complete_charge());
        let newest: serde_json::Value =
            serde_json::from_slice(&driver.get("/v1/events?per_page=1").body).expect("responses are JSON");
        let event_id = newest["data"][0]["id"].as_str().expect("an event has an id").to_owned();
        let charge_id = newest["data"][0]["charge"]["id"].as_str().expect("a charge has an id").to_owned();
        let middle_page = size / PER_PAGE / 2;
        let paths = [
            ("account", "/v1/account".to_owned()),
            ("event", format!("/v1/events/{event_id}")),
            ("page of 25 events, cached", "/v1/events?per_page=25".to_owned()),
            (
                "page of 25 charges, by status, deep",
                format!("/v1/charges?status=paid&per_page=25&page={middle_page}"),
            ),
            (
                "page of 25 events, by type, deep",
                format!("/v1/events?type=charge.paid&per_page=25&page={middle_page}"),
            ),
            ("events of a charge", format!("/v1/events?charge={charge_id}&type=charge.created")),
        ];
        for (name, path) in paths {
            c.bench_function(&format!("{name}, {size} charges"), |b| b.iter(|| driver.get(&path)));
        }
        if size == SIZES[1] {
            // Cycles through all pages, so that each read misses the cache.
            let mut pages = (1..=EVENTS_PER_CHARGE * size / PER_PAGE).cycle();
            c.bench_function(&format!("page of 25 events, not cached, {size} charges"), |b| {
                b.iter(|| {
                    let page = pages.next().unwrap_or(1);
                    driver.get(&format!("/v1/events?per_page=25&page={page}"))
                });
            });
        }
    }
}

fn bench_writes(c: &mut Criterion) {
    for asset in [Asset::Btc, Asset::Eth, Asset::Sol] {
        let mut driver = BenchDriver::new(asset, 0);
        c.bench_function(&format!("open a charge, {asset}"), |b| b.iter(|| driver.open_charge()));
    }
    for asset in [Asset::Btc, Asset::Sol] {
        let mut driver = BenchDriver::new(asset, 1);
        c.bench_function(&format!("charge from opened to paid, three signed deliveries, {asset}"), |b| {
            b.iter(|| driver.complete_charge());
        });
    }
    let driver = std::cell::RefCell::new(BenchDriver::new(Asset::Sol, 1));
    c.bench_function("charge from first sighting to paid, two signed deliveries, SOL", |b| {
        let open = || {
            let mut driver = driver.borrow_mut();
            let no = driver.open_charge();
            driver.deliver();
            no
        };
        let pay = |no| {
            let mut driver = driver.borrow_mut();
            driver.pay(no);
            driver.deliver()
        };
        b.iter_batched(open, pay, BatchSize::PerIteration);
    });
    let mut world = World::new();
    world.send_expecting_2xx(
        "POST",
        "/sandbox/endpoints",
        r#"{"mode":"live","url":"https://shop.sim/hooks"}"#,
    );
    c.bench_function("charge from opened to paid, by requests to the sandbox, BTC", |b| {
        b.iter(|| world.complete_charge());
    });
}

criterion_group! {
    name = benches;
    config = sampling::config();
    targets = bench_reads, bench_writes
}
criterion_main!(benches);
