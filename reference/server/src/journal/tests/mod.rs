//! Tests: a reopened world is the same world, whatever happened to the process and the disk.

mod checkpoint;
mod damage;
mod limits;
mod power;
mod storage;

use std::sync::Arc;

use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, Strategy, any},
    prop_oneof, proptest,
};
use reference_core::{
    outbox::AttemptResult,
    rng::Seed,
    time::{Span, Timestamp},
};
use reference_wire::{Request, Response};
use serde_json::{Value, json};
use simulator::sandbox::{AttemptId, Progress, Reach, Sandbox, Setup};

use self::storage::{DiskOperation, MemoryStorage};
use super::*;
use crate::{
    clock::{Clock, ClockKind},
    host::{Durability, Host},
    memory::MemoryBudget,
    snapshots::WorldMoment,
    world::{RequestHead, RestoreKind, World},
};

const START: Timestamp = Timestamp(1_789_898_741_000_000);

fn setup(rate_limit: Option<u32>) -> Setup {
    Setup { rate_limit, reach: Reach::Network, ..Setup::new(Seed(7), START, "http://localhost") }
}

/// Opens the world in a storage, or creates it.
fn open(storage: &MemoryStorage, rate_limit: Option<u32>) -> OpenedJournal {
    Writer::open(Arc::new(storage.clone()), &setup(rate_limit), None, |_| Ok(()))
        .expect("the disk is undamaged")
}

/// An operation of a host.
#[derive(Clone, Debug)]
enum Op {
    Advance {
        seconds: u32,
    },
    Request {
        method: &'static str,
        path: &'static str,
        body: &'static str,
        has_key: bool,
    },
    /// A key is authenticated, and its request is processed afterwards.
    AdmitThenRespond {
        body: &'static str,
    },
    /// The oldest delivery attempt ends.
    EndAttempt {
        status: u16,
    },
    /// An endpoint is saved.
    SaveEndpoint {
        is_forwarded: bool,
    },
}

const CHARGE: &str = r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#;

fn ops() -> impl Strategy<Value = Op> {
    let request = |method, path, body, key| Just(Op::Request { method, path, body, has_key: key });
    prop_oneof![
        (0_u32..4_000).prop_map(|seconds| Op::Advance { seconds }),
        request("POST", "/v1/charges", CHARGE, true),
        request("POST", "/v1/charges", CHARGE, false),
        request("POST", "/v1/charges", "{}", true),
        request("GET", "/v1/charges", "", true),
        request("GET", "/v1/events", "", true),
        request("GET", "/sandbox", "", false),
        request("POST", "/sandbox/mine", r#"{"mode":"live","asset":"BTC","blocks":2}"#, false),
        request("POST", "/sandbox/advance", r#"{"by":"40m"}"#, false),
        request("POST", "/sandbox/advance", r#"{"by":"soon"}"#, false),
        request("POST", "/sandbox/restart", "{}", false),
        request("POST", "/sandbox/world", r#"{"seed":3}"#, false),
        Just(Op::AdmitThenRespond { body: CHARGE }),
        any::<bool>().prop_map(|succeeds| Op::EndAttempt { status: if succeeds { 200 } else { 500 } }),
        any::<bool>().prop_map(|is_forwarded| Op::SaveEndpoint { is_forwarded }),
    ]
}

/// Makes calls on a world, as a host does, at the time `now`.
struct Driver {
    world: JournaledWorld,
    now: Timestamp,
    /// The delivery attempts that have not ended, oldest first.
    attempts: Vec<AttemptId>,
}

impl Driver {
    fn new(opened: OpenedJournal) -> (Driver, Arc<Journal>) {
        let (journal, sandbox) = (opened.journal, opened.world.sandbox);
        let now = sandbox.now();
        let attempts = opened.world.in_flight.iter().map(|attempt| attempt.id).collect();
        (Driver { world: JournaledWorld::new(sandbox, Arc::clone(&journal)), now, attempts }, journal)
    }

    /// Makes a request; returns `None` if it still waits after a few continuations.
    fn call(&mut self, method: &str, path: &str, body: &str, key: Option<&str>) -> Option<Response> {
        let bearer = key.map(|key| format!("Bearer {key}"));
        let request = Request {
            authorization: bearer.as_deref().map(str::as_bytes),
            ..Request::json("http://localhost", method, path, body)
        };
        let mut progress = self.world.respond(self.now, &request);
        for _ in 0..3 {
            self.catch_up();
            match progress {
                Progress::Done(response) => return Some(response),
                Progress::Waiting(pending) => progress = self.world.continue_call(self.now, pending),
            }
        }
        None
    }

    /// Takes over the world's clock and its new delivery attempts.
    fn catch_up(&mut self) {
        self.now = self.now.max(self.world.now());
        self.attempts.extend(self.world.take_outgoing().iter().map(|attempt| attempt.id));
    }

    fn run(&mut self, op: &Op) {
        let key = self.world.first_keys().live;
        match op {
            Op::Advance { seconds } => {
                self.now = self.now.plus(Span::secs((*seconds).into()));
                self.world.advance_to(self.now);
            }
            Op::Request { method, path, body, has_key } => {
                let key = if *has_key { Some(&*key) } else { None };
                self.call(method, path, body, key);
            }
            Op::AdmitThenRespond { body } => {
                let bearer = format!("Bearer {key}");
                let head = RequestHead {
                    method: "POST",
                    path: "/v1/charges",
                    authorization: Some(bearer.as_bytes()),
                };
                if let Ok(Some(admitted)) = self.world.admit_head(self.now, head) {
                    let request = Request {
                        authorization: Some(bearer.as_bytes()),
                        idempotency_key: Some(b"once"),
                        ..Request::json("http://localhost", "POST", "/v1/charges", body)
                    };
                    self.world.respond_as(self.now, &admitted, &request);
                }
            }
            Op::EndAttempt { status } => {
                if !self.attempts.is_empty() {
                    let id = self.attempts.remove(0);
                    self.world.on_attempt_result(self.now, id, AttemptResult::Response(*status).into());
                }
            }
            Op::SaveEndpoint { is_forwarded } => {
                if *is_forwarded {
                    self.world.declare_forwarded("shop.example");
                } else {
                    self.world
                        .on_name_resolved("shop.example", vec!["93.184.216.34".parse().expect("an address")]);
                }
                let body = r#"{"mode":"live","url":"https://shop.example"}"#;
                self.call("POST", "/sandbox/endpoints", body, None);
            }
        }
        self.catch_up();
    }

    /// Returns the result of [`read_sandbox`]. Adds no record.
    fn read_all(&mut self) -> Vec<String> {
        read_world(&mut self.world, self.now)
    }
}

/// Returns the result of [`read_sandbox`] at the time `now`. Adds no record: a replay makes due actions happen at their own
/// time anyway.
fn read_world(world: &mut JournaledWorld, now: Timestamp) -> Vec<String> {
    world.peek(|sandbox| read_sandbox(sandbox, now))
}

/// The indices of the keys and of the live charges in the result of `read_sandbox`.
const KEYS_INDEX: usize = 2;
const LIVE_CHARGES_INDEX: usize = 8;

/// Returns the responses to reads of everything in the world; the last entry is the open attempts and the lineage.
fn read_sandbox(sandbox: &mut Sandbox, now: Timestamp) -> Vec<String> {
    let paths = [
        "/sandbox",
        "/sandbox/happenings",
        "/sandbox/keys",
        "/sandbox/wallets",
        "/sandbox/endpoints",
        "/sandbox/deliveries",
        "/sandbox/mails",
        "/sandbox/books/acme/live",
        "/sandbox/books/acme/live/charges",
        "/sandbox/books/acme/live/events",
        "/sandbox/books/acme/test",
    ];
    let mut all: Vec<String> =
        paths.iter().map(|path| response_text(sandbox.respond(now, &get(path)))).collect();
    let open_attempts: Vec<AttemptId> = sandbox.open_attempts().map(|attempt| attempt.id).collect();
    all.push(format!("{open_attempts:?} {:?}", sandbox.lineage()));
    all
}

/// Asserts that both lists are equal; the message shows the first difference.
#[track_caller]
fn assert_same(actual: &[String], expected: &[String]) {
    for (n, (actual, expected)) in actual.iter().zip(expected).enumerate() {
        let same_bytes = actual.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count();
        let excerpt =
            |text: &str| text.chars().skip(same_bytes.saturating_sub(40)).take(160).collect::<String>();
        assert!(
            actual == expected,
            "response {n}:\n{}\nbut expected\n{}",
            excerpt(actual),
            excerpt(expected)
        );
    }
    assert_eq!(actual.len(), expected.len());
}

fn get(path: &str) -> Request<'_> {
    Request::new("http://localhost", "GET", path)
}

fn response_text(response: Response) -> String {
    format!("{} {}", response.status, String::from_utf8_lossy(&response.body))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_reopened_world_is_the_same(
        before in vec(ops(), 1..25),
        after in vec(ops(), 0..10),
        limit in prop_oneof![Just(None), Just(Some(3))],
        checkpoint_after in prop_oneof![Just(None), (1_u64..9).prop_map(Some)],
    ) {
        let storage = MemoryStorage::with_checkpoints(checkpoint_after);
        let (mut driver, journal) = Driver::new(open(&storage, limit));
        before.iter().for_each(|op| driver.run(op));
        let (now, expected) = (driver.now, driver.read_all());
        drop((driver, journal));

        let (mut reopened, journal) = Driver::new(open(&storage, limit));
        reopened.now = now;
        assert_same(&reopened.read_all(), &expected);
        // The reopened world continues as the original would have.
        after.iter().for_each(|op| reopened.run(op));
        let (now, expected) = (reopened.now, reopened.read_all());
        drop((reopened, journal));
        let (mut reopened_again, journal) = Driver::new(open(&storage, limit));
        reopened_again.now = now;
        assert_same(&reopened_again.read_all(), &expected);
        drop((reopened_again, journal));
        checkpoint::check_checkpoint_state(&storage, limit);
    }

    #[test]
    fn a_restored_world_equals_its_snapshot(
        before in vec(ops(), 1..12),
        abandoned in vec(ops(), 1..8),
        after in vec(ops(), 0..8),
        in_memory in any::<bool>(),
        checkpoint_after in prop_oneof![Just(None), (1_u64..9).prop_map(Some)],
    ) {
        let storage = MemoryStorage::with_checkpoints(checkpoint_after);
        let opened = if in_memory {
            let journal = Arc::new(Journal::in_memory(Vec::new(), MEMORY_MAX));
            let world = ReplayedWorld { sandbox: new_sandbox(&setup(None)), in_flight: Vec::new() };
            OpenedJournal { journal, setup: setup(None), world, last_end: None }
        } else {
            open(&storage, None)
        };
        let (mut driver, journal) = Driver::new(opened);
        before.iter().for_each(|op| driver.run(op));
        let snapshot = journal.take_snapshot("here".to_owned(), driver.world.peek(|sandbox| WorldPosition::from_sandbox(sandbox)));
        let snapshot = snapshot.expect("the world has no other snapshot");
        let mut expected = driver.read_all();
        let now = driver.now;
        abandoned.iter().for_each(|op| driver.run(op));
        flush(&journal);

        let mut replay = Replay::new(&setup(None));
        journal.read(snapshot.position, |lines| replay.replay_lines(lines)).expect("the disk is undamaged");
        let replayed = replay.finish(Some(snapshot.end)).expect("the same world");
        driver.world.replace(replayed.sandbox, RestoreKind::Rewind { to: snapshot.position });
        driver.now = now;
        // The last entry differs: the numbers of attempts continue from the abandoned records.
        let mut restored = driver.read_all();
        let (_, _) = (restored.pop(), expected.pop());
        assert_same(&restored, &expected);

        driver.attempts.clear();
        after.iter().for_each(|op| driver.run(op));
        let (now, expected) = (driver.now, driver.read_all());
        drop((driver, journal));
        if !in_memory {
            let (mut reopened, journal) = Driver::new(open(&storage, None));
            reopened.now = now;
            assert_same(&reopened.read_all(), &expected);
            assert_eq!(journal.snapshots(), [snapshot]);
            drop((reopened, journal));
            checkpoint::check_checkpoint_state(&storage, None);
        }
    }

    #[test]
    fn a_branch_equals_its_parent_at_the_branch_point(
        before in vec(ops(), 0..12),
        after in vec(ops(), 0..8),
        limit in prop_oneof![Just(None), Just(Some(3))],
    ) {
        let setup = setup(limit);
        let (mut driver, journal) = Driver::new(open(&MemoryStorage::default(), limit));
        before.iter().for_each(|op| driver.run(op));
        let (at, mut expected) = (driver.now, driver.read_all());
        driver.run(&Op::Advance { seconds: 1 });
        // A new world does not contain the branch point.
        let keeps_world = |op: &&Op| !matches!(op, Op::Request { path: "/sandbox/world", .. });
        after.iter().filter(keeps_world).for_each(|op| driver.run(op));
        wait_for_ticket(&journal, journal.request_commit());

        let position = journal.position().expect("a journal on a disk has all records");
        let mut finder = MomentFinder::new(&setup, at);
        journal.read(position, |lines| finder.replay_lines(lines)).expect("the disk is undamaged");
        let (world_start, count) = finder.result();
        assert!(world_start <= at);
        let branch_setup = Setup { key_tag: "0a1b2c3d4e5f".to_owned(), ..setup.clone() };
        let translation = BranchTranslation::new(&setup, &branch_setup);
        let (mut replay, mut lines) = (Replay::new(&branch_setup), Vec::new());
        journal
            .read(journal.position_of(count, position), |record| {
                lines.extend(replay.replay_translated(record, &translation)?);
                Ok(())
            })
            .expect("the same calls");
        replay.advance_to(at, &mut lines).expect("the clock can advance");
        let world = replay.finish(None).expect("the calls of the parent can be replayed");
        let key = world.sandbox.first_keys().live;
        assert!(key.starts_with("svc_live_0a1b2c3d4e5f"));
        // A replay of its records gives the same world.
        let end = WorldPosition::from_sandbox(&world.sandbox);
        let mut second_replay = Replay::new(&branch_setup);
        second_replay.replay_lines(&lines).expect("records of this world");
        let mut world = second_replay.finish(Some(end)).expect("the same world");
        let mut branch = read_sandbox(&mut world.sandbox, at);
        // The keys of the branch have another tag, and it counts delivery attempts from its own start.
        for responses in [&mut branch, &mut expected] {
            responses.pop();
            responses.remove(KEYS_INDEX);
        }
        assert_same(&branch, &expected);
    }
}

/// Waits until all records that a response may depend on are on the disk.
fn flush(journal: &Journal) {
    wait_for_ticket(journal, journal.ticket());
}

fn wait_for_ticket(journal: &Journal, ticket: Option<Ticket>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    if let (Some(writer), Some(ticket)) = (journal.writer(), ticket) {
        assert!(runtime.block_on(writer.wait(ticket)));
    }
}

#[test]
fn a_torn_write_loses_nothing_that_was_acknowledged() {
    let storage = MemoryStorage::default();
    let (mut driver, journal) = Driver::new(open(&storage, None));
    let key = driver.world.first_keys().live;
    // For each call: the number of writes when its response was sent, and the number of charges then.
    let mut acknowledged = Vec::new();
    for n in 0..6 {
        let response =
            driver.call("POST", "/v1/charges", CHARGE, Some(&key)).expect("the call does not wait");
        assert_eq!(response.status, 201);
        flush(&journal);
        acknowledged.push((storage.state().writes.len(), n + 1));
    }
    let writes = storage.state().writes.clone();
    drop((driver, journal));

    let first_write = acknowledged[0].0;
    let charges = |storage: &MemoryStorage| {
        let (mut driver, _) = Driver::new(open(storage, None));
        // The body, after the status and a space.
        let charges: Value = serde_json::from_str(&driver.read_all()[LIVE_CHARGES_INDEX][4..]).expect("JSON");
        charges["data"].as_array().or(charges["charges"].as_array()).map(Vec::len).unwrap_or_default()
    };
    let mut state = storage::MemoryState::default();
    writes[..first_write].iter().for_each(|write| state.apply(write));
    for (n, write) in writes.iter().enumerate().skip(first_write) {
        let mut torn = vec![state.bytes.clone()];
        if let DiskOperation::Bytes(offset, data) = write {
            // The write is truncated at several positions.
            for length in [1, data.len() / 3, data.len() / 2, data.len() - 1] {
                let mut torn_state =
                    storage::MemoryState { bytes: state.bytes.clone(), ..storage::MemoryState::default() };
                torn_state.apply(&DiskOperation::Bytes(*offset, data[..length].to_vec()));
                torn.push(torn_state.bytes);
            }
        }
        let least = acknowledged.iter().filter(|(written, _)| *written <= n).map(|(_, count)| *count).max();
        for bytes in torn {
            let found = charges(&MemoryStorage::from_bytes(bytes));
            assert!(found >= least.unwrap_or(0), "after write {n}: {found} of {least:?} charges");
            assert!(found <= 6);
        }
        state.apply(write);
    }
}

#[test]
fn only_calls_with_an_effect_leave_records() {
    let (mut driver, journal) = Driver::new(open(&MemoryStorage::default(), Some(3)));
    let mut check = |case: &str, op: Op, added_records: u64| {
        let before = journal.position();
        driver.run(&op);
        assert_eq!(journal.position(), before.map(|n| n + added_records), "{case}");
    };
    let request = |method, path, key| Op::Request { method, path, body: "", has_key: key };
    check("an advance with nothing due", Op::Advance { seconds: 5 }, 0);
    check("a read without a key", request("GET", "/v1/charges", false), 0);
    check("a read with a key, which is counted", request("GET", "/v1/charges", true), 1);
    check("a charge, authenticated and created", Op::AdmitThenRespond { body: CHARGE }, 2);
    check(
        "a call without a body, the last within the limit",
        request("POST", "/v1/charges/x/cancel", true),
        2,
    );
    check("a read above the limit", request("GET", "/v1/charges", true), 0);
    check("a charge above the limit", Op::AdmitThenRespond { body: CHARGE }, 0);
    check("a call without a body above the limit", request("POST", "/v1/charges/x/cancel", true), 0);
    check("an advance with the expiry of a charge due", Op::Advance { seconds: 4_000 }, 1);
}

/// Returns the host of a world in this storage, with a frozen clock.
fn host(storage: &MemoryStorage) -> Arc<Host> {
    host_of(open(storage, None))
}

fn host_of(opened: OpenedJournal) -> Arc<Host> {
    let world = JournaledWorld::new(opened.world.sandbox, Arc::clone(&opened.journal));
    let durability = Durability { journal: opened.journal, setup: opened.setup, clock: ClockKind::Frozen };
    let clock = Clock::new(ClockKind::Frozen, Some(world.now()));
    Arc::new(Host::new(
        Box::new(world),
        clock,
        None,
        None,
        Some(durability),
        MemoryBudget::new(usize::MAX).unbounded_share(),
    ))
}

async fn call(host: &Host, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request =
        Request { method, content_type: Some(b"application/json"), body: body.as_bytes(), ..get(path) };
    let response = host.respond(&request).await.expect("the world has no internal error");
    (response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn while_the_disk_fails_the_world_is_read_only_at_its_last_commit() {
    let storage = MemoryStorage::default();
    let host = host(&storage);
    let recovery = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.recover_storage().await }
    });
    let overview = async || call(&host, "GET", "/sandbox", &Value::Null).await;
    let advance = json!({ "by": "10m" });
    assert_eq!(call(&host, "POST", "/sandbox/advance", &advance).await.0, 200);
    let (_, before) = overview().await;

    storage.state().writes_fail = true;
    let (status, why) = call(&host, "POST", "/sandbox/advance", &advance).await;
    assert_eq!(status, 503);
    assert!(why["message"].as_str().is_some_and(|why| why.contains("no space left")), "{why}");
    let branched =
        host.branch(&WorldMoment::Now, |setup| setup).await.expect("the world has no internal error");
    assert_eq!(branched.err().map(|refusal| refusal.status), Some(503));
    // A read waits until the world is restored to its last commit.
    assert_eq!(overview().await, (200, before));
    assert_eq!(call(&host, "GET", "/sandbox/snapshots", &Value::Null).await.0, 200);
    let (status, _) = call(&host, "POST", "/sandbox/advance", &advance).await;
    assert_eq!(status, 503);
    let (status, _) = call(&host, "POST", "/sandbox/snapshots", &json!({ "name": "no" })).await;
    assert_eq!(status, 503);

    storage.state().writes_fail = false;
    let mut status = 503;
    while status == 503 {
        tokio::task::yield_now().await;
        (status, _) = call(&host, "POST", "/sandbox/advance", &advance).await;
    }
    assert_eq!(status, 200);
    let (_, after) = overview().await;
    recovery.abort();
    let _ = recovery.await;
    drop(host);
    let again = self::host(&storage);
    assert_eq!(call(&again, "GET", "/sandbox", &Value::Null).await.1, after);
}

#[test]
fn another_format_and_another_world_are_refused_with_a_reason() {
    let storage = MemoryStorage::default();
    drop(open(&storage, None));
    let try_open = |setup: &Setup, seed: Option<Seed>, start: Option<Timestamp>| {
        let check_setup = |record: &SetupRecord| record.check_compatible(setup, seed, start);
        let opened = Writer::open(Arc::new(storage.clone()), setup, None, check_setup);
        opened.map(|_| ()).map_err(|error| error.to_string())
    };
    let same = setup(None);
    assert_eq!(try_open(&same, Some(Seed(7)), Some(START)), Ok(()));
    for (setup, seed, start, part) in [
        (same.clone(), Some(Seed(8)), None, "the seed `7`, not `8`"),
        (same.clone(), None, Some(START.plus(Span::secs(1))), "the start `2026-09-20T10:05:41.000000Z`"),
        (setup(Some(5)), None, None, "the rate limit `off`, not `5`"),
        (Setup { reach: Reach::Simulated, ..same.clone() }, None, None, "the reach `network`"),
    ] {
        let why = try_open(&setup, seed, start).expect_err("the setup differs");
        assert!(why.contains(part), "{why}");
    }
    let mut newer = serde_json::to_value(SetupRecord::from_setup(&same)).expect("JSON");
    newer["format"] = 4.into();
    newer["more"] = true.into();
    let why = SetupRecord::parse(newer.to_string().as_bytes()).expect_err("the format is newer").to_string();
    assert!(why.contains("format 4") && why.contains("formats 1 to 3"), "{why}");
}
