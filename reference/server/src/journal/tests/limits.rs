//! Tests: the limits on records in memory and on snapshots.

use super::*;

#[test]
fn a_journal_in_memory_drops_its_records_above_the_limit() {
    let journal = Journal::in_memory(Vec::new(), MEMORY_MAX);
    let end = WorldPosition { now: 0, event_count: 0 };
    let world = new_sandbox(&setup(None));
    let outcome = outcome::BeforeCall::from_sandbox(&world).outcome(&world, outcome::CallResult::Nothing);
    assert!(journal.take_snapshot("early".to_owned(), end).is_ok());
    let host = "x".repeat(MEMORY_MAX / 4);
    for _ in 0..3 {
        journal.record(
            &HostCall::NameForwarded { host: host.as_str().into() },
            outcome,
            FsyncPolicy::BeforeResponse,
            end,
        );
        assert!(journal.take_snapshot("more".to_owned(), end).is_ok());
    }
    journal.record(
        &HostCall::NameForwarded { host: host.as_str().into() },
        outcome,
        FsyncPolicy::BeforeResponse,
        end,
    );
    assert_eq!(
        journal.take_snapshot("late".to_owned(), end),
        Err(SnapshotError::JournalTooLong { bytes_max: MEMORY_MAX })
    );
    assert!(journal.snapshots().is_empty());
}

#[tokio::test]
async fn a_world_exports_its_scenario_while_its_records_are_stored() {
    let setup = setup(None);
    let world = ReplayedWorld { sandbox: new_sandbox(&setup), in_flight: Vec::new() };
    // Enough bytes for the records of the first calls, but not for those of the later ones.
    let journal = Arc::new(Journal::in_memory(Vec::new(), 800));
    let host = host_of(OpenedJournal { journal, setup, world, last_end: None });
    let delete_rate = json!({ "asset": "BTC", "currency": "EUR", "rate": null });
    assert_eq!(call(&host, "POST", "/sandbox/rates", &delete_rate).await.0, 200);
    assert_eq!(call(&host, "POST", "/sandbox/advance", &json!({ "by": "10m" })).await.0, 200);
    let (status, response) = call(&host, "GET", "/sandbox/scenario", &Value::Null).await;
    let scenario = response["scenario"].as_str().unwrap_or_default();
    assert_eq!(status, 200, "{response}");
    assert!(scenario.contains("path: /sandbox/rates") && scenario.ends_with("  - wait: 10m\n"), "{scenario}");
    for _ in 0..4 {
        call(&host, "POST", "/sandbox/rates", &delete_rate).await;
    }
    let (status, why) = call(&host, "GET", "/sandbox/scenario", &Value::Null).await;
    assert_eq!(status, 409);
    assert!(why["message"].as_str().is_some_and(|why| why.contains("--data")), "{why}");
}

#[test]
fn snapshots_are_limited_and_their_numbers_are_not_reused() {
    let storage = MemoryStorage::default();
    let end = WorldPosition { now: START.0, event_count: 0 };
    let opened = open(&storage, None);
    for n in 1..=SNAPSHOTS_MAX as u64 {
        assert_eq!(opened.journal.take_snapshot("x".to_owned(), end).map(|snapshot| snapshot.n), Ok(n));
    }
    assert_eq!(opened.journal.take_snapshot("x".to_owned(), end), Err(SnapshotError::TooManySnapshots));
    assert!(opened.journal.delete_snapshot(100) && !opened.journal.delete_snapshot(100));
    drop(opened);
    let opened = open(&storage, None);
    assert_eq!(opened.journal.take_snapshot("x".to_owned(), end).map(|snapshot| snapshot.n), Ok(101));
}
