//! Tests: damaged files are refused with the name of the file, or the damage changes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use reference_core::mode::Mode;

use super::*;
use crate::journal::{
    disk::Batch,
    storage::{DatabaseAccess, Storage},
};

/// The number of bits that are flipped, one at a time.
const FLIPS: usize = 300;

/// Pseudo-random numbers, by splitmix64.
pub(super) struct RandomNumbers(pub(super) u64);

impl RandomNumbers {
    pub(super) fn next_below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// A closed world with charges, and the responses to reads of everything in it at the time `now`.
struct ClosedWorld {
    storage: MemoryStorage,
    responses: Vec<String>,
    now: Timestamp,
}

impl ClosedWorld {
    fn with_charges(charges: usize, checkpoint_after: Option<u64>) -> ClosedWorld {
        let storage = MemoryStorage::with_checkpoints(checkpoint_after);
        let (mut driver, journal) = Driver::new(open(&storage, None));
        for n in 0..charges {
            let body = format!(r#"{{"asset":"BTC","amount":"{}.90","currency":"EUR"}}"#, 30 + n);
            let key = driver.world.first_keys().live;
            driver.call("POST", "/v1/charges", &body, Some(&key));
            flush(&journal);
            driver.run(&Op::Advance { seconds: 100 });
        }
        let (now, responses) = (driver.now, driver.read_all());
        drop((driver, journal));
        ClosedWorld { storage, responses, now }
    }

    fn bytes(&self) -> Vec<u8> {
        self.storage.state().bytes.clone()
    }

    /// Returns the storage with other bytes in its database.
    fn storage_with(&self, bytes: Vec<u8>) -> MemoryStorage {
        let storage = MemoryStorage::from_bytes(bytes);
        let state = self.storage.state();
        storage.state().acknowledged.clone_from(&state.acknowledged);
        storage.state().checkpoint.clone_from(&state.checkpoint);
        storage.state().checkpoint_after = state.checkpoint_after;
        storage
    }
}

fn try_open(storage: &MemoryStorage) -> io::Result<OpenedJournal> {
    Writer::open(Arc::new(storage.clone()), &setup(None), None, |_| Ok(()))
}

/// Returns the error message of a journal that cannot be opened.
#[track_caller]
fn open_error(storage: &MemoryStorage) -> String {
    try_open(storage).map(|_| ()).expect_err("the journal is damaged").to_string()
}

fn charge_count(opened: OpenedJournal) -> usize {
    let (mut driver, _) = Driver::new(opened);
    // The body, after the status and a space.
    let charges: Value = serde_json::from_str(&driver.read_all()[LIVE_CHARGES_INDEX][4..]).expect("JSON");
    charges["data"].as_array().map(Vec::len).unwrap_or_default()
}

/// The results of opening damaged journals.
#[derive(Default, Debug)]
struct DamageResults {
    refused: usize,
    same: usize,
    /// The number of journals that were opened with another state.
    different: usize,
    panicked: usize,
}

impl DamageResults {
    /// Opens a damaged journal of a world and counts the result.
    fn add(&mut self, world: &ClosedWorld, storage: &MemoryStorage) {
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let (mut driver, _) = Driver::new(try_open(storage).ok()?);
            driver.now = world.now;
            Some(driver.read_all() == world.responses)
        }));
        match opened {
            Err(_) => self.panicked += 1,
            Ok(None) => self.refused += 1,
            Ok(Some(true)) => self.same += 1,
            Ok(Some(false)) => self.different += 1,
        }
    }
}

#[test]
fn a_flipped_bit_is_refused_or_changes_nothing() {
    let world = ClosedWorld::with_charges(8, None);
    let intact = world.bytes();
    let nonzero: Vec<usize> = (0..intact.len()).filter(|at| intact[*at] != 0).collect();
    let mut numbers = RandomNumbers(1);
    let mut results = DamageResults::default();
    for n in 0..FLIPS {
        let at = match n % 4 {
            // The header of the database.
            0 => numbers.next_below(512),
            1 => numbers.next_below(intact.len()),
            _ => nonzero[numbers.next_below(nonzero.len())],
        };
        let mut bytes = intact.clone();
        bytes[at] ^= 1 << numbers.next_below(8);
        results.add(&world, &world.storage_with(bytes));
    }
    assert_eq!((results.different, results.panicked), (0, 0), "{results:?}");
    assert!(results.refused > 0 && results.same > 0, "{results:?}");
}

/// Returns the positions of a text in some bytes.
fn positions(bytes: &[u8], text: &str) -> Vec<usize> {
    memchr::memmem::find_iter(bytes, text).collect()
}

#[test]
fn a_changed_amount_is_reported_with_its_record() {
    // Also with a checkpoint, which contains the state after the records.
    for checkpoint_after in [None, Some(1)] {
        let world = ClosedWorld::with_charges(8, checkpoint_after);
        drop(open(&world.storage, None));
        assert_eq!(world.storage.state().checkpoint.is_some(), checkpoint_after.is_some());
        let intact = world.bytes();
        let (mut results, mut reasons) = (DamageResults::default(), Vec::new());
        // The amount of the fourth charge.
        for at in positions(&intact, r#"\"33.90\"#) {
            let mut bytes = intact.clone();
            bytes[at + 2] = b'9';
            let storage = world.storage_with(bytes);
            reasons.extend(try_open(&storage).err().map(|error| error.to_string()));
            results.add(&world, &storage);
        }
        assert!(results.different == 0 && results.panicked == 0 && results.refused > 0, "{results:?}");
        let names_record = |why: &String| {
            why.contains(
                "`world.redb` is damaged: record 4; `--recover` opens it in its state after record 3, written",
            )
        };
        assert!(reasons.iter().all(names_record), "{reasons:?}");
    }
}

#[test]
fn a_damaged_world_is_recovered_to_its_last_sound_commit_on_request() {
    let world = ClosedWorld::with_charges(8, None);
    let sound = world.bytes();
    let damaged = positions(&sound, r#"\"33.90\"#).into_iter().find_map(|at| {
        let mut bytes = sound.clone();
        bytes[at + 2] = b'9';
        try_open(&world.storage_with(bytes.clone())).is_err().then_some(bytes)
    });
    let damaged = damaged.expect("at least one of the positions is verified");
    let storage = world.storage_with(damaged.clone());
    open_error(&storage);
    assert_eq!(storage.state().bytes, damaged, "a refused journal is not changed");

    storage.state().recovers = true;
    let opened = try_open(&storage).expect("its first records are undamaged");
    let notices = opened.journal.writer().expect("the journal is on a disk").notices().to_vec();
    assert!(
        notices.len() == 1 && notices[0].contains("was recovered to its state after record 3"),
        "{notices:?}"
    );
    assert_eq!(charge_count(opened), 3);
    assert_eq!(storage.state().damaged_databases, [damaged]);
    // The recovered world continues.
    storage.state().recovers = false;
    let (mut driver, journal) = Driver::new(open(&storage, None));
    driver.run(&Op::Request { method: "POST", path: "/v1/charges", body: CHARGE, has_key: true });
    drop((driver, journal));
    assert_eq!(charge_count(open(&storage, None)), 4);
}

#[test]
fn a_missing_commit_is_refused_only_if_it_was_acknowledged() {
    let world = ClosedWorld::with_charges(4, None);
    let acknowledged = world.storage.state().acknowledged.clone();
    let writes = world.storage.state().writes.clone();
    // An older database, with the file of the newest acknowledged commit.
    let mut state = storage::MemoryState::default();
    let mut databases = Vec::new();
    for write in &writes {
        state.apply(write);
        if let DiskOperation::Acknowledged(_) = write {
            databases.push((state.bytes.clone(), state.acknowledged.clone()));
        }
    }
    let (older, _) = databases[databases.len() - 3].clone();
    let storage = world.storage_with(older.clone());
    let why = open_error(&storage);
    assert!(why.contains("the newest commit in `world.redb` is damaged or missing"), "{why}");
    storage.state().recovers = true;
    assert!(charge_count(try_open(&storage).expect("the remaining records are undamaged")) < 4);
    // A power failure may lose the newest content of the acknowledgement file, which then names an earlier commit.
    for (_, older_acknowledged) in &databases[databases.len() - 3..] {
        let storage = world.storage_with(world.bytes());
        storage.state().acknowledged.clone_from(older_acknowledged);
        assert_eq!(charge_count(open(&storage, None)), 4);
    }
    assert_eq!(world.storage.state().acknowledged, acknowledged);
}

#[test]
fn a_different_outcome_is_detected_at_its_first_record() {
    let world = ClosedWorld::with_charges(3, None);
    let storage: Arc<dyn Storage> = Arc::new(world.storage.clone());
    {
        let disk = disk::Disk::open(&storage, DatabaseAccess::Write).expect("the disk is undamaged");
        let mut lines = Vec::new();
        disk.read(1..2, |line| {
            lines.extend_from_slice(line);
            Ok(())
        })
        .expect("the disk is undamaged");
        // The same call with another recorded result.
        lines[2] = if lines[2] == b'0' { b'1' } else { b'0' };
        let end = disk.last_end().expect("the disk is undamaged");
        let first = disk.record_count().expect("the disk is undamaged");
        disk.append(&Batch { first_record: first, lines, end, ..Batch::default() })
            .expect("the disk is undamaged");
    }
    let why = open_error(&world.storage);
    assert!(why.contains("record 4 (POST /v1/charges, ") && why.contains("has a different outcome"), "{why}");
    world.storage.state().recovers = true;
    assert_eq!(charge_count(try_open(&world.storage).expect("the records before it are undamaged")), 3);
}

#[test]
fn a_journal_of_the_oldest_format_is_read_and_sealed() {
    let world = ClosedWorld::with_charges(3, None);
    let old = MemoryStorage::default();
    {
        let disk: Arc<dyn Storage> = Arc::new(world.storage.clone());
        let disk = disk::Disk::open(&disk, DatabaseAccess::Write).expect("the disk is undamaged");
        let end = disk.last_end().expect("the disk is undamaged").expect("an end");
        let setup = disk.setup().expect("the disk is undamaged").expect("a setup");
        let setup = setup_of_format(1, &setup);
        let mut chunks = Vec::new();
        disk.read(0..disk.record_count().expect("the disk is undamaged"), |lines| {
            let records = lines.split_inclusive(|byte| *byte == b'\n');
            // `["<outcome>",<call>]`
            let calls = records.flat_map(|line| [&line[20..line.len() - 2], b"\n"].concat());
            chunks.push(calls.collect::<Vec<u8>>());
            Ok(())
        })
        .expect("the disk is undamaged");
        let database = old.open(DatabaseAccess::Create).expect("an empty disk");
        disk::tests::write_format_1(&database, setup.as_bytes(), &chunks, &end);
    }
    for _ in 0..2 {
        let (mut driver, journal) = Driver::new(open(&old, None));
        driver.now = world.now;
        assert_same(&driver.read_all(), &world.responses);
        drop((driver, journal));
    }
    // From now on damage is detected, and the world continues.
    let (mut driver, journal) = Driver::new(open(&old, None));
    driver.run(&Op::Request { method: "POST", path: "/v1/charges", body: CHARGE, has_key: true });
    drop((driver, journal));
    assert_eq!(charge_count(open(&old, None)), 4);
    let sound = old.state().bytes.clone();
    let refused = positions(&sound, r#"\"31.90\"#).into_iter().filter(|at| {
        let mut bytes = sound.clone();
        bytes[at + 2] = b'9';
        try_open(&MemoryStorage::from_bytes(bytes)).is_err()
    });
    assert!(refused.count() > 0);
}

/// Returns a setup in an older format: without a default mode.
fn setup_of_format(format: u32, setup: &[u8]) -> String {
    let mut setup: Value = serde_json::from_slice(setup).expect("JSON");
    setup["format"] = format.into();
    setup.as_object_mut().expect("an object").remove("default_mode").expect("the default mode");
    setup.to_string()
}

#[test]
fn a_world_of_an_older_format_keeps_live_as_its_default_mode() {
    let live = Setup { default_mode: Mode::Live, ..setup(None) };
    for format in [1, 2] {
        let text = setup_of_format(format, &SetupRecord::from_setup(&live).to_json());
        let record = SetupRecord::parse(text.as_bytes()).expect("an older format");
        assert_eq!(record.to_setup("http://localhost").default_mode, Mode::Live);
    }

    let storage = MemoryStorage::default();
    let opened = Writer::open(Arc::new(storage.clone()), &live, None, |_| Ok(())).expect("a new world");
    let (mut driver, journal) = Driver::new(opened);
    driver.call("POST", "/sandbox/keys", "{}", None);
    flush(&journal);
    let expected = driver.read_all();
    drop((driver, journal));
    // A stored world keeps its default mode; new worlds of the server default to test.
    let (mut driver, journal) = Driver::new(open(&storage, None));
    assert_same(&driver.read_all(), &expected);
    driver.call("POST", "/sandbox/keys", "{}", None);
    assert_eq!(driver.read_all()[KEYS_INDEX].matches(r#""mode":"live""#).count(), 3);
    drop((driver, journal));
}

#[tokio::test]
async fn while_its_database_file_is_missing_the_world_is_read_only() {
    let storage = MemoryStorage::default();
    let host = super::host(&storage);
    let recovery = tokio::spawn({
        let host = Arc::clone(&host);
        async move { host.recover_storage().await }
    });
    let overview = async || call(&host, "GET", "/sandbox", &Value::Null).await;
    let advance = json!({ "by": "10m" });
    let (_, before) = overview().await;
    storage.state().is_removed = true;
    let (status, why) = call(&host, "POST", "/sandbox/advance", &advance).await;
    assert_eq!(status, 503);
    assert!(why["message"].as_str().is_some_and(|why| why.contains("the test removed it")), "{why}");
    assert_eq!(overview().await, (200, before));
    assert_eq!(call(&host, "POST", "/sandbox/advance", &advance).await.0, 503);

    // The file is restored.
    storage.state().is_removed = false;
    let mut status = 503;
    while status == 503 {
        tokio::task::yield_now().await;
        (status, _) = call(&host, "POST", "/sandbox/advance", &advance).await;
    }
    let (_, after) = overview().await;
    recovery.abort();
    let _ = recovery.await;
    drop(host);
    let again = super::host(&storage);
    assert_eq!(call(&again, "GET", "/sandbox", &Value::Null).await.1, after);
}
