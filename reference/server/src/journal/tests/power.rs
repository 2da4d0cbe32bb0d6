//! Power cuts: any subset of the unsynced sectors survives.
//!
//! After every cut, the world opens in the state after its last acknowledged call, or after the next call.

use super::{damage::RandomNumbers, *};

/// The number of simulated power cuts.
const CUTS: usize = 300;
/// The size in bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// The disk writes of a world, recorded during a few calls.
struct RecordedWrites {
    writes: Vec<DiskOperation>,
    /// At the start and after each acknowledged call: the number of writes, and the visible state of the world.
    acknowledged: Vec<(usize, Vec<String>)>,
}

/// Returns the responses of the world at its current time, and its snapshots.
fn visible_state(driver: &mut Driver, journal: &Journal) -> Vec<String> {
    driver.now = driver.world.now();
    let mut responses = driver.read_all();
    responses.push(format!("{:?}", journal.snapshots()));
    responses
}

/// Makes a few calls and takes a snapshot, and records the disk writes.
fn record_writes(checkpoint_after: Option<u64>) -> RecordedWrites {
    let storage = MemoryStorage::with_checkpoints(checkpoint_after);
    let (mut driver, journal) = Driver::new(open(&storage, None));
    let key = driver.world.first_keys().live;
    let first_write = storage.state().writes.len();
    let mut acknowledged = vec![(first_write, visible_state(&mut driver, &journal))];
    let calls = [
        ("/v1/charges", CHARGE),
        ("/sandbox/keys", r#"{"mode":"live"}"#),
        ("/sandbox/mine", r#"{"mode":"live","asset":"BTC","blocks":1}"#),
        ("/v1/charges", r#"{"asset":"ETH","amount":"12.00","currency":"EUR"}"#),
        ("/sandbox/advance", r#"{"by":"40m"}"#),
        ("/v1/payment-links", r#"{"title":"Tea","amount":"5.00","currency":"EUR"}"#),
        ("/v1/charges", CHARGE),
    ];
    for (n, (path, body)) in calls.iter().enumerate() {
        if n == 3 {
            let position = driver.world.peek(|sandbox| WorldPosition::from_sandbox(sandbox));
            journal.take_snapshot("before".to_owned(), position).expect("the world has no other snapshot");
            flush(&journal);
            let written = storage.state().writes.len();
            acknowledged.push((written, visible_state(&mut driver, &journal)));
        }
        let order = format!("order-{n}");
        let bearer = format!("Bearer {key}");
        let request = Request {
            authorization: Some(bearer.as_bytes()),
            idempotency_key: path.starts_with("/v1").then_some(order.as_bytes()),
            ..Request::json("http://localhost", "POST", path, body)
        };
        let progress = driver.world.respond(driver.now, &request);
        assert!(
            matches!(progress, Progress::Done(Response { status: 200..300, .. })),
            "{path}: {progress:?}"
        );
        flush(&journal);
        let written = storage.state().writes.len();
        acknowledged.push((written, visible_state(&mut driver, &journal)));
    }
    drop((driver, journal));
    let writes = storage.state().writes.clone();
    RecordedWrites { writes, acknowledged }
}

/// Returns the content of the disk after a power cut before the write `at`.
fn disk_after_cut(writes: &[DiskOperation], at: usize, numbers: &mut RandomNumbers) -> storage::MemoryState {
    let last_sync = writes[..at].iter().rposition(|write| matches!(write, DiskOperation::Sync)).unwrap_or(0);
    let mut state = storage::MemoryState::default();
    // No unsynced write survives, all do, or each may.
    let survival = numbers.next_below(4);
    for (n, write) in writes[..at].iter().enumerate() {
        let survives = |numbers: &mut RandomNumbers| match survival {
            0 => false,
            1 => true,
            _ => numbers.next_below(2) == 0,
        };
        match write {
            // Never synced, so it may be complete, missing or torn.
            DiskOperation::Acknowledged(bytes) if survives(numbers) => {
                let torn = numbers.next_below(bytes.len() + 1);
                let mut torn_bytes = bytes[..torn].to_vec();
                torn_bytes.extend(state.acknowledged.iter().skip(torn));
                state.acknowledged = if numbers.next_below(2) == 0 { bytes.clone() } else { torn_bytes };
            }
            DiskOperation::Acknowledged(_) => {}
            _ if n <= last_sync => state.apply(write),
            DiskOperation::Bytes(offset, data) => {
                for (sector, piece) in data.chunks(SECTOR).enumerate() {
                    let offset = offset + (sector * SECTOR) as u64;
                    let end = usize::try_from(offset).expect("the storage of a test is small") + piece.len();
                    if survives(numbers) && end <= state.bytes.len() {
                        state.apply(&DiskOperation::Bytes(offset, piece.to_vec()));
                    }
                }
            }
            DiskOperation::Length(len) if (*len as usize) < state.bytes.len() && !survives(numbers) => {}
            DiskOperation::Length(_) => state.apply(write),
            DiskOperation::Sync => unreachable!("no sync follows the last one"),
        }
    }
    state
}

#[test]
fn acknowledged_records_survive_every_power_cut() {
    let mut numbers = RandomNumbers(7);
    let worlds = [None, Some(2)].map(record_writes);
    for cut in 0..CUTS {
        let RecordedWrites { writes, acknowledged } = &worlds[cut % 2];
        let first_write = acknowledged[0].0;
        let at = first_write + numbers.next_below(writes.len() - first_write + 1);
        let state = disk_after_cut(writes, at, &mut numbers);
        let storage = MemoryStorage::from_bytes(state.bytes);
        storage.state().acknowledged = state.acknowledged;
        let opened = Writer::open(Arc::new(storage), &setup(None), None, |_| Ok(()));
        let opened = opened.unwrap_or_else(|error| panic!("cut {cut} before write {at}: {error}"));
        let (mut driver, journal) = Driver::new(opened);
        let visible = visible_state(&mut driver, &journal);
        let newest_acknowledged = acknowledged
            .iter()
            .rposition(|(written, _)| *written <= at)
            .expect("the first entry precedes every cut");
        let reached = acknowledged.iter().rposition(|(_, state)| *state == visible);
        // The call after it may be on the disk, although it was not acknowledged.
        assert!(
            reached.is_some_and(|n| (newest_acknowledged..=newest_acknowledged + 1).contains(&n)),
            "cut {cut} before write {at}: state {reached:?}, and {newest_acknowledged} was acknowledged"
        );
    }
}
