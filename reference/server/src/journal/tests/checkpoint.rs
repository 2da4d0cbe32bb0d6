//! Tests: a world opened from its checkpoint equals the world replayed from all records, and an unusable checkpoint is
//! ignored.

use super::*;

/// Checks that a world opened with its checkpoint equals the world opened without.
#[track_caller]
pub(super) fn check_checkpoint_state(storage: &MemoryStorage, rate_limit: Option<u32>) {
    let digest = || open(storage, rate_limit).world.sandbox.state_digest();
    let with_checkpoint = digest();
    let checkpoint_after = storage.state().checkpoint_after.take();
    assert!(digest() == with_checkpoint, "the checkpoint has a different state");
    storage.state().checkpoint_after = checkpoint_after;
}

/// Returns the storage of a closed world with this number of charges.
fn stored_world(checkpoint_after: Option<u64>, charges: usize) -> MemoryStorage {
    let storage = MemoryStorage::with_checkpoints(checkpoint_after);
    let (mut driver, journal) = Driver::new(open(&storage, None));
    for _ in 0..charges {
        driver.run(&Op::Request { method: "POST", path: "/v1/charges", body: CHARGE, has_key: true });
    }
    drop((driver, journal));
    storage
}

/// Returns the notice that the checkpoint was ignored, if it was.
fn ignored_notice(storage: &MemoryStorage) -> Option<String> {
    let opened = open(storage, None);
    opened.journal.writer().and_then(|writer| writer.notices().first()).cloned()
}

#[test]
fn a_checkpoint_is_written_after_a_long_replay_only() {
    let storage = stored_world(None, 3);
    let check = |after: Option<u64>, is_written: bool| {
        storage.state().checkpoint = None;
        storage.state().checkpoint_after = after;
        drop(open(&storage, None));
        assert_eq!(storage.state().checkpoint.is_some(), is_written, "{after:?}");
    };
    // Each charge is a record.
    check(None, false);
    check(Some(4), false);
    check(Some(3), true);
    check(Some(1), true);
}

#[test]
fn a_checkpoint_is_written_while_the_world_runs() {
    let storage = MemoryStorage::with_checkpoints(Some(4));
    let (mut driver, journal) = Driver::new(open(&storage, None));
    let mut iterations = 0;
    // The checkpoint of another test may be in progress.
    while storage.state().checkpoint.is_none() {
        driver.run(&Op::Request { method: "POST", path: "/v1/charges", body: CHARGE, has_key: true });
        flush(&journal);
        iterations += 1;
        assert!(iterations < 10_000, "no checkpoint was written");
        std::thread::yield_now();
    }
    let now = driver.now;
    let expected = driver.read_all();
    drop((driver, journal));
    assert_eq!(ignored_notice(&storage), None);
    let (mut reopened, _) = Driver::new(open(&storage, None));
    reopened.now = now;
    assert_same(&reopened.read_all(), &expected);
    check_checkpoint_state(&storage, None);
}

#[test]
fn a_damaged_checkpoint_is_ignored_wherever_the_damage_is() {
    let storage = stored_world(Some(1), 2);
    drop(open(&storage, None));
    let intact = storage.state().checkpoint.clone().expect("a checkpoint was written");
    let opened: Arc<dyn crate::journal::storage::Storage> = Arc::new(storage.clone());
    let disk = disk::Disk::open(&opened, crate::journal::storage::DatabaseAccess::Write)
        .expect("the disk is undamaged");
    let range = 0..disk.record_count().expect("the disk is undamaged");
    let read = |bytes: &[u8]| {
        storage.state().checkpoint = Some(bytes.to_vec());
        super::super::checkpoint::read((&storage, &disk), &setup(None), std::slice::from_ref(&range))
    };
    assert!(read(&intact).expect("the checkpoint is undamaged").is_some());
    // A sample of the bytes, and all of the last ones: the footer and the digest.
    let tail = intact.len() - 600;
    for at in (0..tail).step_by(37).chain(tail..intact.len()) {
        let mut damaged = intact.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(read(&damaged).is_err(), "byte {at}");
        assert!(read(&intact[..at]).is_err(), "cut off at {at}");
    }
    drop(disk);
    storage.state().checkpoint = Some(intact[1..].to_vec());
    // More than the number of records, so that it is not rewritten.
    storage.state().checkpoint_after = Some(100);
    assert_eq!(
        ignored_notice(&storage).as_deref(),
        Some("the checkpoint in `memory` was ignored: it is damaged; all records were replayed")
    );
}

/// Returns the checkpoint with a changed footer and a valid digest.
fn with_footer(intact: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    use sha2::Digest as _;
    let end = intact.len() - 32;
    let footer_start =
        intact[..end].iter().rposition(|byte| *byte == b'\n').expect("a line feed precedes the footer") + 1;
    let mut footer: Value = serde_json::from_slice(&intact[footer_start..end]).expect("the footer is JSON");
    change(&mut footer);
    let mut bytes = [&intact[..footer_start], footer.to_string().as_bytes()].concat();
    let digest = sha2::Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest);
    bytes
}

#[test]
fn a_checkpoint_of_another_program_or_other_records_is_ignored() {
    let storage = stored_world(Some(1), 2);
    drop(open(&storage, None));
    let intact = storage.state().checkpoint.clone().expect("a checkpoint was written");
    storage.state().checkpoint_after = Some(100);
    let check = |change: &dyn Fn(&mut Value), why: Option<&str>| {
        storage.state().checkpoint = Some(with_footer(&intact, change));
        let expected = why
            .map(|why| format!("the checkpoint in `memory` was ignored: {why}; all records were replayed"));
        assert_eq!(ignored_notice(&storage), expected);
    };
    check(&|_| {}, None);
    let other_version = "another version of this program wrote it";
    let other_records = "it belongs to records that a restore abandoned, or to another world";
    check(&|footer| footer["program"] = json!("0"), Some(other_version));
    check(&|footer| footer["unknown_field"] = json!(1), Some(other_version));
    check(&|footer| footer["setup"]["seed"] = json!(8), Some(other_records));
    check(&|footer| footer["position"] = json!(99), Some(other_records));
    check(&|footer| footer["position"] = json!(3), Some(other_records));
    check(&|footer| footer["chain"] = json!("00".repeat(32)), Some(other_records));
}

#[test]
fn a_checkpoint_with_the_state_of_another_world_is_ignored() {
    let (short, long) = (stored_world(Some(1), 1), stored_world(Some(1), 2));
    drop((open(&short, None), open(&long, None)));
    // The footer is that of the longer world, and the state that of the shorter one.
    let checkpoint =
        |storage: &MemoryStorage| storage.state().checkpoint.clone().expect("a checkpoint was written");
    let (shorter, longer) = (checkpoint(&short), checkpoint(&long));
    let state_end = |bytes: &[u8]| {
        bytes.iter().rposition(|byte| *byte == b'\n').expect("a line feed precedes the footer")
    };
    let mixed = [
        &shorter[..state_end(&shorter[..shorter.len() - 32])],
        &longer[state_end(&longer[..longer.len() - 32])..],
    ];
    long.state().checkpoint = Some(with_footer(&mixed.concat(), |_| {}));
    long.state().checkpoint_after = Some(100);
    let notice = ignored_notice(&long).expect("the state is that of another world");
    assert!(notice.contains("records lead to") && notice.contains("were recorded"), "{notice}");
}
