//! Benchmarks of single operations.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

mod sampling;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use reference_core::{
    asset::{AddressFormat, Asset},
    id::IdGenerator,
    mode::Mode,
    money::{Fiat, Rate},
    rng::Seed,
    signature::Signer,
    status_index::StatusIndex,
    time::Timestamp,
    wallet::Wallet,
};

fn bench_money(c: &mut Criterion) {
    let amount = Fiat::parse("49.90").expect("the constant is valid");
    let rate = Rate::parse("57123.45").expect("the constant is valid");
    c.bench_function("quote, 8 decimals", |b| {
        b.iter(|| black_box(rate).quote(black_box(amount), Asset::Btc))
    });
    c.bench_function("quote, 18 decimals", |b| {
        b.iter(|| black_box(rate).quote(black_box(amount), Asset::Eth))
    });
}

fn bench_formats(c: &mut Criterion) {
    let now = Timestamp(1_767_603_600_123_456);
    c.bench_function("timestamp text", |b| b.iter(|| black_box(now).to_string()));
    let mut ids = IdGenerator::new(Seed(1).rng_key("live", "acme", "event"));
    c.bench_function("event id", |b| b.iter(|| ids.next(black_box(now))));
    let body = vec![b'x'; 1_024];
    let signer = Signer::new("whsec_0123456789abcdefghijklmnopqrstuv");
    c.bench_function("signature of 1 KiB", |b| b.iter(|| signer.sign(1_767_603_600, black_box(&body))));
}

fn bench_addresses(c: &mut Criterion) {
    for (name, format) in [("bitcoin", AddressFormat::Bitcoin), ("ethereum", AddressFormat::Evm)] {
        let wallet = Wallet::from_seed(Seed(1), "acme/live", format, Mode::Live);
        let mut n = 0;
        c.bench_function(&format!("deposit address, {name}"), |b| {
            b.iter(|| {
                n += 1;
                wallet.address(n)
            })
        });
    }
}

fn bench_index(c: &mut Criterion) {
    for size in [1_000_u32, 1_000_000] {
        let mut index = StatusIndex::<5>::default();
        for n in 0..size {
            index.push(n, (n % 5) as usize);
        }
        let nth = size as usize / 10;
        c.bench_function(&format!("place in a status filter, {size} charges"), |b| {
            b.iter(|| index.select(Some(2), black_box(nth)))
        });
    }
}

criterion_group! {
    name = benches;
    config = sampling::config();
    targets = bench_money, bench_formats, bench_addresses, bench_index
}
criterion_main!(benches);
