//! Benchmarks of the conformance suite, the scenarios and the random worlds.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

mod sampling;

use std::hint::black_box;

use conformance::{Plan, RealClock, Recording, Secret, Silent, check, judge};
use criterion::{Criterion, criterion_group, criterion_main};
use reference_server::{Config, Server};
use reference_wire::Request;
use simulator::{
    play::{LocalStage, play},
    sandbox::{Sandbox, Setup},
    script::Script,
    sweep::Runner,
};

const CHARGES: usize = 80;
const SCENARIO: &str = include_str!("../../scenarios/delivery/shop_is_down.yaml");

/// Records a quick run, which skips the burst up to the rate limit, against a server in this process.
fn record_quick_run() -> Recording {
    let runtime = tokio::runtime::Runtime::new().expect("the system has threads for the runtime");
    runtime.block_on(async {
        let config = Config { rate_limit: None, ..Config::local() };
        let server = Server::start_with(config, populated_sandbox).await.expect("a port is free");
        let keys = server.first_keys().expect("the server has just started");
        let url = server.url().parse().expect("the server's URL is valid");
        let mut plan = Plan::new(url, Secret::new(keys.live), Secret::new(keys.test));
        plan.quick = true;
        let outcome = check(plan, &mut RealClock::start(), &mut Silent).await;
        assert!(outcome.stop.is_none(), "{:?}", outcome.stop);
        server.stop().await;
        outcome.recording
    })
}

/// Returns a world with [`CHARGES`] charges in each mode: several pages of charges and of events.
fn populated_sandbox(setup: &Setup) -> Sandbox {
    let mut sandbox = Sandbox::new(setup);
    let keys = sandbox.first_keys();
    for key in [keys.live, keys.test] {
        let authorization = format!("Bearer {key}");
        for _ in 0..CHARGES {
            let request = Request {
                authorization: Some(authorization.as_bytes()),
                ..Request::json(
                    "http://127.0.0.1",
                    "POST",
                    "/v1/charges",
                    r#"{"asset":"SOL","amount":"49.90"}"#,
                )
            };
            let now = sandbox.now();
            assert_eq!(sandbox.respond(now, &request).status, 201);
        }
    }
    sandbox
}

fn bench_judging(c: &mut Criterion) {
    let recording = record_quick_run();
    let name = format!("judge a recording of {} exchanges", recording.exchanges.len());
    c.bench_function(&name, |b| b.iter(|| judge(black_box(&recording))));
}

fn bench_scenarios(c: &mut Criterion) {
    c.bench_function("read a scenario", |b| {
        b.iter(|| Script::parse("shop_is_down.yaml", black_box(SCENARIO)))
    });
    let script = Script::parse("shop_is_down.yaml", SCENARIO).expect("the built-in scenario is valid");
    c.bench_function("play a scenario", |b| {
        b.iter(|| play(black_box(&script), None, &mut LocalStage::default()))
    });
}

/// Measures the worlds of the first sixteen seeds. Of these, all but the three large ones are judged with all checks,
/// one is compared with a variant of itself, and one is played twice.
fn bench_worlds(c: &mut Criterion) {
    let runner = Runner::default();
    let mut seeds = (0..16).cycle();
    c.bench_function("sweep world", |b| {
        b.iter(|| runner.try_seed(black_box(seeds.next().expect("a cycle never ends"))))
    });
}

criterion_group! {
    name = benches;
    config = sampling::config();
    targets = bench_judging, bench_scenarios, bench_worlds
}
criterion_main!(benches);
