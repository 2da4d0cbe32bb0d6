//! Tests: the opening and ending of worlds, in virtual time.

use std::{convert::Infallible, net::Ipv4Addr};

use reference_core::{dialect::Dialect, time::Timestamp};

use super::*;
use crate::{
    address::Addresses,
    clock::ClockKind,
    config::{Bounds, SandboxAccess},
    response_budget::ResponseBudget,
    sandbox_access::SandboxToken,
};

const SECOND: Duration = Duration::from_secs(1);

fn worlds() -> Worlds {
    let shared = SharedState {
        addresses: Addresses::new((Ipv4Addr::LOCALHOST, 8080).into(), None, SandboxAccess::default()),
        token: Arc::new(SandboxToken::generate().expect("the system generates random bytes")),
        bounds: Bounds::default(),
        in_flight: Arc::new(ResponseBudget::new(1)),
        dialect: Dialect::default(),
        log: None,
        webhook_sender: None,
        #[cfg(feature = "mcp")]
        mcp_clock: crate::config::McpClockAccess::default(),
    };
    let parameters = WorldParameters {
        seed: Seed(1),
        start: Some(Timestamp(0)),
        clock: ClockKind::Frozen,
        rate_limit: None,
    };
    let begin = |setup: &Setup| Ok::<_, Infallible>(RunningWorld::in_memory(setup, OPENED_MEMORY_MAX));
    let Ok(worlds) = Worlds::new(shared, parameters, begin);
    worlds
}

fn open(worlds: &Worlds, name: Option<&str>, ttl: Option<Duration>) -> Arc<OpenedWorld> {
    let options = WorldOptions {
        name: name.map(str::to_owned),
        ttl,
        ..WorldOptions::from_parameters(worlds.defaults())
    };
    worlds.open(options).ok().expect("fewer than the maximum of worlds are open")
}

#[tokio::test]
async fn worlds_with_the_same_name_have_the_same_seed() {
    let worlds = worlds();
    let seed = |name| open(&worlds, name, None).parameters.seed;
    let named = seed(Some("a"));
    assert_eq!(named, seed(Some("a")));
    assert!(named != seed(Some("b")) && seed(None) != seed(None));
    assert!(named.0 < 1 << SEED_BITS);
}

#[tokio::test]
async fn a_world_ends_when_it_was_idle_for_its_ttl() {
    let worlds = worlds();
    let started_at = Instant::now();
    let (short, long) = (open(&worlds, None, Some(10 * SECOND)), open(&worlds, None, Some(60 * SECOND)));
    open(&worlds, None, None);
    // The number of opened worlds after a check, and whether another check is scheduled.
    let check_after = |at| {
        let next = worlds.end_idle_at(started_at + at);
        (worlds.totals().open - 1, next.is_some())
    };
    assert_eq!(check_after(9 * SECOND), (3, true));
    // A request that takes longer than the time to live.
    let path = format!("/w/{}/v1/account", short.id);
    let in_use = worlds.select_world(&path, None).map(Some).unwrap_or_default();
    assert!(in_use.is_some());
    assert_eq!(check_after(30 * SECOND), (3, true));
    drop(in_use);
    assert_eq!(
        check_after(30 * SECOND),
        (2, true),
        "idle since the response, whose real time is before the simulated time of this check"
    );
    assert!(worlds.get(short.id).is_none() && worlds.get(long.id).is_some());
    assert_eq!(check_after(61 * SECOND), (1, false));
}

#[tokio::test(start_paused = true)]
async fn idle_worlds_end_by_themselves() {
    let worlds = Arc::new(worlds());
    let shared = Arc::clone(&worlds);
    let task = tokio::spawn(async move { shared.end_idle_worlds().await });
    tokio::time::sleep(100 * SECOND).await;
    let world = open(&worlds, None, Some(10 * SECOND));
    tokio::time::sleep(9 * SECOND).await;
    assert!(worlds.get(world.id).is_some());
    tokio::time::sleep(2 * SECOND).await;
    assert!(worlds.get(world.id).is_none());
    task.abort();
}

#[tokio::test]
async fn ending_a_world_stops_its_timer() {
    let worlds = worlds();
    let options = WorldOptions { clock: ClockKind::Wall, ..WorldOptions::from_parameters(worlds.defaults()) };
    let world = worlds.open(options).ok().expect("fewer than the maximum of worlds are open");
    let timer = world.timer.clone().expect("the clock of the world is not frozen");
    worlds.end(world.id).expect("it is open");
    tokio::task::yield_now().await;
    assert!(timer.is_finished());
    assert_eq!(Arc::strong_count(&world.backend), 1, "nothing else refers to the ended world");
}
