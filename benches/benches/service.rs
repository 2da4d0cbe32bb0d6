//! The service without sockets: what a request and a life cost.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use benches::World;
use criterion::{Criterion, criterion_group, criterion_main};

/// Charges in a small and in a large book.
const SIZES: [usize; 2] = [100, 10_000];

fn reads(c: &mut Criterion) {
    for size in SIZES {
        let mut world = World::new();
        let code = (0..size).map(|_| world.open_charge()).last().expect("there is one");
        let newest = world.granted("GET", "/v1/events?per_page=1", "");
        let event = newest["data"][0]["id"].as_str().expect("an event has an id").to_owned();
        let paths = [
            ("account", "/v1/account".to_owned()),
            ("event", format!("/v1/events/{event}")),
            ("page of 25 events", "/v1/events?per_page=25".to_owned()),
            (
                "filtered page deep in a list",
                format!("/v1/charges?status=pending&per_page=25&page={}", size / 50),
            ),
            ("events of a charge", format!("/v1/events?charge={code}&type=charge.created")),
        ];
        for (name, path) in paths {
            c.bench_function(&format!("{name}, {size} charges"), |b| b.iter(|| world.ask("GET", &path, "")));
        }
    }
}

fn writes(c: &mut Criterion) {
    let mut world = World::new();
    c.bench_function("open a charge", |b| b.iter(|| world.open_charge()));
    let mut world = World::new();
    world.granted("POST", "/sandbox/endpoints", r#"{"url":"https://shop.sim/hooks"}"#);
    c.bench_function("a charge from opened to paid, three deliveries", |b| {
        b.iter(|| world.live_through_a_charge())
    });
}

criterion_group!(benches, reads, writes);
criterion_main!(benches);
