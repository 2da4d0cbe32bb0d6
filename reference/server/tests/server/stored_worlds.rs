//! Worlds in a data directory: restarts, damaged files, snapshots and restoring, over sockets.

use std::{fs, io, path::Path};

use reference_core::{rng::Seed, time::Span};
use reference_server::{ClockKind, Config, Server, StorageConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    START,
    sender::{
        self, add_endpoint, call,
        receiver::{Receiver, ReceiverBehavior},
        resolver::TestResolver,
        shop_forward,
    },
};

const CHARGE: &str = "/v1/charges";

/// Returns the configuration of a data directory, with a checkpoint after every record.
fn storage_config(directory: &Path) -> Option<StorageConfig> {
    Some(StorageConfig {
        directory: directory.to_owned(),
        seed: None,
        start: None,
        checkpoint_after: Some(1),
        recover: false,
        clock_reset: false,
    })
}

fn config_with_storage(directory: &Path) -> Config {
    Config { data: storage_config(directory), ..crate::config() }
}

async fn start(config: Config) -> Server {
    Server::start(config).await.expect("the stored worlds are valid")
}

async fn start_error(config: Config) -> io::Error {
    Server::start(config).await.map(|_| ()).expect_err("the server does not start")
}

async fn open_charge(server: &Server) -> Value {
    let draft = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let (status, charge) = call(server, "POST", CHARGE, &draft).await;
    assert_eq!(status, 201, "{charge}");
    assert!(charge["data"]["code"].is_string(), "{charge}");
    charge["data"].clone()
}

async fn call_ok(server: &Server, method: &str, path: &str, body: &Value) -> Value {
    let (status, response) = call(server, method, path, body).await;
    assert_eq!(status, 200, "{method} {path}: {response}");
    response
}

/// Returns the charges of the first world, and its history (`/sandbox/happenings`).
async fn read_world(server: &Server) -> (Value, Value) {
    let charges = call_ok(server, "GET", CHARGE, &Value::Null).await;
    (charges["data"].clone(), call_ok(server, "GET", "/sandbox/happenings", &Value::Null).await)
}

#[tokio::test]
async fn a_stored_world_continues_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("shop/world");
    let server = start(config_with_storage(&path)).await;
    assert!(StorageConfig::has_world(&path));
    let keys = server.first_keys().unwrap();
    open_charge(&server).await;
    call_ok(&server, "POST", "/sandbox/mine", &json!({ "mode": "live", "asset": "BTC", "blocks": 2 })).await;
    call_ok(&server, "POST", "/sandbox/advance", &json!({ "by": "5m" })).await;
    let (now, before) = (server.now(), read_world(&server).await);

    let busy = start_error(config_with_storage(&path)).await;
    assert_eq!(busy.kind(), io::ErrorKind::WouldBlock, "{busy}");
    assert!(busy.to_string().contains("another process"), "{busy}");
    server.stop().await;

    // The seed of the configuration does not replace that of the stored world, unless `StorageConfig::seed` is set.
    let server = start(Config { seed: Seed(99), ..config_with_storage(&path) }).await;
    assert_eq!((server.now(), server.seed()), (now, Seed(1)));
    assert_eq!(server.first_keys().unwrap().live, keys.live);
    let (charges, history) = read_world(&server).await;
    let code = |charges: &Value| charges[0]["code"].clone();
    assert_eq!((code(&charges), history), (code(&before.0), before.1));
    server.stop().await;

    let storage_with = |seed, start| StorageConfig {
        directory: path.clone(),
        seed,
        start,
        checkpoint_after: None,
        recover: false,
        clock_reset: false,
    };
    let later = START.plus(Span::secs(1));
    for (data, expected) in [
        (storage_with(Some(Seed(2)), None), "the seed `1`, not `2`"),
        (storage_with(None, Some(later)), "the start `2026-09-20T10:05:41.000000Z`"),
    ] {
        let error = start_error(Config { data: Some(data), ..config_with_storage(&path) }).await;
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_world_opens_with_a_valid_and_with_a_damaged_checkpoint() {
    let directory = TempDir::new().unwrap();
    let server = start(config_with_storage(directory.path())).await;
    open_charge(&server).await;
    let (id, _) = open_world(&server, &json!({ "clock": "frozen" })).await;
    let other_history = format!("/w/{id}/sandbox/happenings");
    let read_all = async |server: &Server| {
        let (charges, history) = read_world(server).await;
        let all = json!([charges, history, call_ok(server, "GET", &other_history, &Value::Null).await]);
        // The port differs between starts.
        all.to_string().replace(&server.address().to_string(), "here")
    };
    let expected = read_all(&server).await;
    server.stop().await;

    let first = directory.path().join("world.state");
    let states = [first.clone(), directory.path().join("worlds").join(&id).join("world.state")];
    for damaged in [None, None, Some(&states[0]), Some(&states[1])] {
        if let Some(path) = damaged {
            let mut state = fs::read(path).unwrap();
            state[100] ^= 1;
            fs::write(path, state).unwrap();
        }
        let server = start(config_with_storage(directory.path())).await;
        assert_eq!(server.unavailable_worlds().await.len(), 0);
        assert_eq!(read_all(&server).await, expected);
        let notices = server.openings().borrow().notices.clone();
        assert_eq!(notices.len(), usize::from(damaged.is_some()), "{notices:?}");
        assert!(
            notices.iter().all(|notice| notice.contains("it is damaged; all records were replayed")),
            "{notices:?}"
        );
        server.stop().await;
        assert!(states.iter().all(|state| state.exists()));
    }
}

#[tokio::test]
async fn an_invalid_world_file_is_rejected_and_left_unchanged() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("world.redb");
    fs::write(&file, "a diary").unwrap();
    let error = start_error(config_with_storage(directory.path())).await;
    assert!(error.to_string().contains("the world in"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "a diary");
}

#[tokio::test]
async fn an_interrupted_delivery_is_repeated_with_its_id() {
    let directory = TempDir::new().unwrap();
    let mut hanging = Receiver::http(ReceiverBehavior::RespondAndHang("")).await;
    let config = |receiver: &Receiver| {
        let sender = sender::sender_config(&TestResolver::default(), &[shop_forward(receiver)]);
        Config { data: storage_config(directory.path()), ..sender::config(sender) }
    };
    let server = start(config(&hanging)).await;
    let (_, endpoint) = add_endpoint(&server, "https://shop.example").await;
    let test = format!("/sandbox/endpoints/{}/test", endpoint["endpoint"]["id"].as_str().unwrap());
    call_ok(&server, "POST", &test, &json!({})).await;
    let first = hanging.next_request().await;
    // Dropped: the result of the attempt is not recorded.
    drop(server);

    let mut shop =
        Receiver::http(ReceiverBehavior::RespondAndClose("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
            .await;
    // The tasks of a dropped server may still lock the file.
    let mut server = Server::start(config(&shop)).await;
    while matches!(&server, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
        tokio::task::yield_now().await;
        server = Server::start(config(&shop)).await;
    }
    let server = server.expect("the stored worlds are valid");
    let again = shop.next_request().await;
    assert_eq!(first.header("X-Service-Delivery"), again.header("X-Service-Delivery"));
    assert_eq!(first.body, again.body);
    call_ok(&server, "POST", "/sandbox/advance", &json!({ "by": "1s" })).await;
    let deliveries = call_ok(&server, "GET", "/sandbox/deliveries", &Value::Null).await;
    let attempts = &deliveries["deliveries"][0]["attempts"];
    assert_eq!(attempts.as_array().map(Vec::len), Some(1), "{deliveries}");
    server.stop().await;
}

/// Returns the inputs of the world as a scenario.
async fn saved_scenario(server: &Server) -> String {
    let response = call_ok(server, "GET", "/sandbox/scenario", &Value::Null).await;
    response["scenario"].as_str().expect("a string").to_owned()
}

#[tokio::test]
async fn a_world_is_restored_to_an_earlier_and_to_a_later_snapshot() {
    let directory = TempDir::new().unwrap();
    for config in [crate::config(), config_with_storage(directory.path())] {
        let is_stored = config.data.is_some();
        let server = start(config).await;
        let first = open_charge(&server).await;
        let first_snapshot =
            call_ok(&server, "POST", "/sandbox/snapshots", &json!({ "name": "one charge" })).await;
        assert_eq!(
            (&first_snapshot["snapshot"]["id"], &first_snapshot["snapshot"]["name"]),
            (&json!("s1"), &json!("one charge"))
        );
        let second = open_charge(&server).await;
        call_ok(&server, "POST", "/sandbox/advance", &json!({ "by": "1d" })).await;
        let late = read_world(&server).await;
        call_ok(&server, "POST", "/sandbox/snapshots", &json!({ "name": "a day later" })).await;

        let restored = call_ok(&server, "POST", "/sandbox/restore", &json!({ "snapshot": "s1" })).await;
        assert_eq!(restored["now"], first_snapshot["now"]);
        assert_eq!(server.now(), Some(START));
        let (charges, _) = read_world(&server).await;
        assert_eq!(charges.as_array().map(Vec::len), Some(1));
        assert_eq!(charges[0]["code"], first["code"]);
        assert_eq!(saved_scenario(&server).await.matches("path: /v1/charges").count(), 1);
        // The same requests create objects with the same codes on every branch.
        assert_eq!(open_charge(&server).await["code"], second["code"]);

        call_ok(&server, "POST", "/sandbox/restore", &json!({ "snapshot": "a day later" })).await;
        assert_eq!(read_world(&server).await, late);
        let scenario = saved_scenario(&server).await;
        assert_eq!(scenario.matches("path: /v1/charges").count(), 2, "{scenario}");
        assert!(scenario.ends_with("  - wait: 1d\n"), "{scenario}");
        let list = call_ok(&server, "GET", "/sandbox/snapshots", &Value::Null).await;
        assert_eq!(list["snapshots"].as_array().map(Vec::len), Some(2), "{list}");
        call_ok(&server, "DELETE", "/sandbox/snapshots/s1", &Value::Null).await;
        for (method, path, body) in [
            ("DELETE", "/sandbox/snapshots/s1", Value::Null),
            ("GET", "/sandbox/snapshots/s1", Value::Null),
            ("POST", "/sandbox/restore", json!({ "snapshot": "s1" })),
        ] {
            assert_eq!(call(&server, method, path, &body).await.0, 404, "{method} {path}");
        }
        server.stop().await;
        if is_stored {
            let server = start(config_with_storage(directory.path())).await;
            assert_eq!(read_world(&server).await.1, late.1);
            assert_eq!(saved_scenario(&server).await, scenario);
            let list = call_ok(&server, "GET", "/sandbox/snapshots", &Value::Null).await;
            assert_eq!(list["snapshots"][0]["id"], "s2", "{list}");
        }
    }
}

/// Opens a world by `POST /sandbox/worlds`; returns its id, and the code of a charge in it.
async fn open_world(server: &Server, body: &Value) -> (String, String) {
    let (status, world) = call(server, "POST", "/sandbox/worlds", body).await;
    assert_eq!(status, 201, "{world}");
    let id = world["world"].as_str().expect("an id").to_owned();
    let draft = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let path = format!("/w/{id}/sandbox/books/acme/live/charges");
    let (status, charge) = call(server, "POST", &path, &draft).await;
    assert_eq!(status, 201, "{charge}");
    (id, charge["data"]["code"].as_str().expect("a code").to_owned())
}

async fn all_worlds(server: &Server) -> Value {
    // The port differs between starts.
    let all = call_ok(server, "GET", "/sandbox/worlds", &Value::Null).await;
    let all = all.to_string().replace(&server.address().to_string(), "here");
    serde_json::from_str(&all).expect("the response is JSON")
}

#[tokio::test]
async fn worlds_opened_on_request_continue_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let server = start(config_with_storage(directory.path())).await;
    let options = json!({ "name": "checkout", "clock": "fast", "speed": 9, "ttl": "7d", "rate_limit": null });
    let (fast, _) = open_world(&server, &options).await;
    let (plain, code) = open_world(&server, &json!({ "name": "plain", "rate_limit": 9 })).await;
    let (branch, _) = open_world(&server, &json!({ "from": { "world": plain } })).await;
    let (deleted, _) = open_world(&server, &json!({})).await;
    call_ok(&server, "DELETE", &format!("/sandbox/worlds/{deleted}"), &Value::Null).await;
    assert!(!directory.path().join("worlds").join(&deleted).exists());
    let path = format!("/w/{plain}/sandbox/snapshots");
    call_ok(&server, "POST", &path, &json!({ "name": "here" })).await;
    call_ok(&server, "POST", &format!("/w/{plain}/sandbox/advance"), &json!({ "by": "1h" })).await;
    let keys = async |server: &Server, id: &str| {
        call_ok(server, "GET", &format!("/w/{id}/sandbox/keys"), &Value::Null).await["keys"].clone()
    };
    let (before, known_keys) = (all_worlds(&server).await, keys(&server, &plain).await);
    server.stop().await;

    // The directory of a world whose creation was never acknowledged.
    fs::create_dir(directory.path().join("worlds").join("0a1b2c3d4e5f")).unwrap();
    let server = start(Config { seed: Seed(99), ..config_with_storage(directory.path()) }).await;
    let lost = server.unavailable_worlds().await;
    assert!(lost.is_empty(), "{lost:?}");
    let after = all_worlds(&server).await;
    let ids = |all: &Value| {
        let all = all["worlds"].as_array().expect("a list").iter();
        all.map(|row| row["world"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&after), [fast, plain.clone(), branch.clone()]);
    // A fast clock moved between the reads.
    assert_eq!(after["worlds"][1], before["worlds"][1]);
    assert_eq!(after["worlds"][0]["ttl"], before["worlds"][0]["ttl"]);
    assert_eq!(after["worlds"][0]["speed"], 9);
    assert_eq!(keys(&server, &plain).await, known_keys);
    for (id, charges) in [(&plain, 1), (&branch, 2)] {
        let path = format!("/w/{id}/sandbox/books/acme/live/charges");
        let found = call_ok(&server, "GET", &path, &Value::Null).await;
        assert_eq!(found["data"].as_array().map(Vec::len), Some(charges), "{found}");
        assert!(found.to_string().contains(&code));
    }
    let restore = format!("/w/{plain}/sandbox/restore");
    call_ok(&server, "POST", &restore, &json!({ "snapshot": "here" })).await;
    // No id is reused, and worlds with the same name have the same codes.
    let (next, same_code) = open_world(&server, &json!({ "name": "plain" })).await;
    assert!(next != deleted && same_code == code, "{next} {deleted}");
    server.stop().await;
}

#[tokio::test]
async fn a_request_to_a_stored_world_waits_until_the_world_is_open() {
    let directory = TempDir::new().unwrap();
    let server = start(config_with_storage(directory.path())).await;
    let mut worlds = Vec::new();
    for _ in 0..12 {
        worlds.push(open_world(&server, &json!({})).await);
    }
    server.stop().await;
    let server = start(config_with_storage(directory.path())).await;
    // The newest worlds open last and are requested first, each in another way.
    let nth_newest = |n: usize| &worlds[worlds.len() - 1 - n];
    for (n, path) in ["/w/{}/sandbox/books/acme/live/charges", "/sandbox/worlds/{}"].iter().enumerate() {
        let found = call_ok(&server, "GET", &path.replace("{}", &nth_newest(n).0), &Value::Null).await;
        assert!(
            found.to_string().contains(if n == 0 { &nth_newest(n).1 } else { &nth_newest(n).0 }),
            "{found}"
        );
    }
    let (_, branched) = open_world(&server, &json!({ "from": { "world": nth_newest(2).0 } })).await;
    assert_ne!(branched, nth_newest(2).1, "another charge, in a world that had one already");
    call_ok(&server, "DELETE", &format!("/sandbox/worlds/{}", nth_newest(3).0), &Value::Null).await;
    assert_eq!(all_worlds(&server).await["worlds"].as_array().map(Vec::len), Some(12));
    assert!(server.unavailable_worlds().await.is_empty());
    server.stop().await;

    // A server that is stopped right after its start closes every world, open or not.
    start(config_with_storage(directory.path())).await.stop().await;
    let server = start(config_with_storage(directory.path())).await;
    assert!(server.unavailable_worlds().await.is_empty());
    server.stop().await;
}

#[tokio::test]
async fn a_damaged_world_is_reported_and_the_others_open() {
    let directory = TempDir::new().unwrap();
    let server = start(config_with_storage(directory.path())).await;
    let (broken, _) = open_world(&server, &json!({})).await;
    let (moved, _) = open_world(&server, &json!({})).await;
    let (valid, _) = open_world(&server, &json!({})).await;
    server.stop().await;
    let world_path = |name: &str| directory.path().join("worlds").join(name);
    fs::write(world_path(&broken).join("world.redb"), "a diary").unwrap();
    fs::rename(world_path(&moved), world_path("0a1b2c3d4e5f")).unwrap();
    fs::write(world_path("notes.txt"), "a diary").unwrap();

    let server = start(config_with_storage(directory.path())).await;
    let open = all_worlds(&server).await;
    assert_eq!(open["worlds"].as_array().map(Vec::len), Some(1), "{open}");
    assert_eq!(open["worlds"][0]["world"], valid);
    let reported = server.unavailable_worlds().await;
    let mut lost: Vec<_> = reported.iter().map(|world| (world.id.as_str(), world.why.as_str())).collect();
    lost.sort_by_key(|(id, _)| {
        [broken.as_str(), "0a1b2c3d4e5f", "notes.txt"].iter().position(|known| known == id)
    });
    for ((id, reason), (name, expected)) in lost.iter().zip([
        (broken.as_str(), "the world in `"),
        ("0a1b2c3d4e5f", "which is not the name of its directory"),
        ("notes.txt", "is not a world id"),
    ]) {
        assert!(*id == name && reason.contains(expected), "{lost:?}");
    }
    assert_eq!(lost.len(), 3);
    assert_eq!(fs::read_to_string(world_path(&broken).join("world.redb")).unwrap(), "a diary");
    server.stop().await;
}

#[tokio::test]
async fn changes_are_refused_while_the_directory_is_missing() {
    let temp_dir = TempDir::new().unwrap();
    let (path, moved_path) = (temp_dir.path().join("world"), temp_dir.path().join("aside"));
    let server = start(config_with_storage(&path)).await;
    let first = open_charge(&server).await;
    fs::rename(&path, &moved_path).unwrap();
    let draft = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let (status, response) = call(&server, "POST", CHARGE, &draft).await;
    assert_eq!(status, 503, "{response}");
    let message = response["message"].as_str().expect("an error has a message");
    assert!(message.contains("`world.redb` was removed"), "{message}");
    // The world is not recreated, and can still be read.
    let (charges, _) = read_world(&server).await;
    assert_eq!((charges.as_array().map(Vec::len), &charges[0]["code"]), (Some(1), &first["code"]));
    assert!(!path.exists());
    fs::rename(&moved_path, &path).unwrap();
    let mut status = 503;
    while status == 503 {
        tokio::task::yield_now().await;
        (status, _) = call(&server, "POST", CHARGE, &draft).await;
    }
    assert_eq!(status, 201);
    server.stop().await;
    let server = start(config_with_storage(&path)).await;
    assert_eq!(read_world(&server).await.0.as_array().map(Vec::len), Some(2));
    server.stop().await;
}

#[tokio::test]
async fn a_damaged_world_is_rejected_with_its_position_and_recovered_on_request() {
    let directory = TempDir::new().unwrap();
    let server = start(config_with_storage(directory.path())).await;
    for _ in 0..3 {
        open_charge(&server).await;
    }
    let (id, _) = open_world(&server, &json!({ "clock": "frozen" })).await;
    server.stop().await;
    let files =
        [directory.path().join("world.redb"), directory.path().join("worlds").join(&id).join("world.redb")];
    for file in &files {
        let valid = fs::read(file).unwrap();
        let mut damaged = valid.clone();
        for index in memchr::memmem::find_iter(&valid, "49.90") {
            damaged[index] = b'9';
        }
        fs::write(file, damaged).unwrap();
    }
    let error = start_error(config_with_storage(directory.path())).await;
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    for part in ["`world.redb` is damaged: record", "`--recover`"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let recovering = StorageConfig { recover: true, ..storage_config(directory.path()).unwrap() };
    let server = start(Config { data: Some(recovering), ..config_with_storage(directory.path()) }).await;
    assert!(server.unavailable_worlds().await.is_empty());
    let notices = server.openings().borrow().notices.clone();
    assert_eq!(notices.iter().filter(|notice| notice.contains("was damaged")).count(), 2, "{notices:?}");
    assert_eq!(read_world(&server).await.0, json!([]));
    open_charge(&server).await;
    server.stop().await;
    for file in &files {
        assert!(file.with_extension("redb.damaged-1").exists());
    }
    let server = start(config_with_storage(directory.path())).await;
    assert!(server.unavailable_worlds().await.is_empty());
    assert_eq!(read_world(&server).await.0.as_array().map(Vec::len), Some(1));
    server.stop().await;
}

#[tokio::test]
async fn a_world_ahead_of_real_time_is_reset_on_request() {
    let directory = TempDir::new().unwrap();
    let config = |clock_reset| {
        let data = StorageConfig { clock_reset, ..storage_config(directory.path()).unwrap() };
        Config { data: Some(data), clock: ClockKind::Wall, start: None, ..crate::config() }
    };
    let server = start(config(false)).await;
    let codes = |charges: &Value| {
        charges.as_array().unwrap().iter().map(|charge| charge["code"].clone()).collect::<Vec<_>>()
    };
    let early = open_charge(&server).await;
    call_ok(&server, "POST", "/sandbox/advance", &json!({ "by": "400d" })).await;
    let late = open_charge(&server).await;
    server.stop().await;

    // Without `clock_reset`, the world stays ahead.
    let server = start(config(false)).await;
    assert_eq!(codes(&read_world(&server).await.0), [late["code"].clone(), early["code"].clone()]);
    let ahead = server.now().unwrap();
    server.stop().await;
    let server = start(config(true)).await;
    let notices = server.openings().borrow().notices.clone();
    assert!(notices.len() == 1 && notices[0].contains("was restored to"), "{notices:?}");
    assert!(server.now().unwrap().plus(Span::days(399)) < ahead);
    // The rate lock of the charge has not expired yet: the clock is before the advance by 400 days.
    let (charges, _) = read_world(&server).await;
    assert_eq!((codes(&charges), &charges[0]["status"]), (vec![early["code"].clone()], &json!("pending")));
    server.stop().await;

    // A second reset changes nothing, and the abandoned state can be restored.
    let server = start(config(true)).await;
    // A checkpoint of the abandoned branch may have been written, and is reported as ignored.
    let notices = server.openings().borrow().notices.clone();
    assert!(notices.iter().all(|notice| !notice.contains("was restored to")), "{notices:?}");
    call_ok(&server, "POST", "/sandbox/restore", &json!({ "snapshot": "before --clock-reset" })).await;
    assert_eq!(codes(&read_world(&server).await.0), [late["code"].clone(), early["code"].clone()]);
    server.stop().await;

    let frozen = Config { clock: ClockKind::Frozen, ..config(true) };
    let error = start_error(frozen).await;
    assert!(error.to_string().contains("`--clock wall`"), "{error}");
}

/// Creates a snapshot and returns its file.
async fn export_snapshot(server: &Server) -> Vec<u8> {
    call_ok(server, "POST", "/sandbox/snapshots", &json!({ "name": "to share" })).await;
    let text = sender::call_text(server, "GET", "/sandbox/snapshots/s1", "").await.1;
    text.into_bytes()
}

#[tokio::test]
async fn an_exported_snapshot_opens_on_another_server() {
    let server = start(Config { seed: Seed(5), ..crate::config() }).await;
    open_charge(&server).await;
    call_ok(&server, "POST", "/sandbox/advance", &json!({ "by": "3m" })).await;
    let file = export_snapshot(&server).await;
    let (keys, before) = (server.first_keys().unwrap(), read_world(&server).await);

    let directory = TempDir::new().unwrap();
    for config in [crate::config(), config_with_storage(directory.path())] {
        let is_stored = config.data.is_some();
        let other = start(Config { exported_world: Some(file.clone()), ..config.clone() }).await;
        assert_eq!((other.seed(), other.now()), (Seed(5), server.now()));
        assert_eq!(other.first_keys().unwrap().live, keys.live);
        assert_eq!(read_world(&other).await.1, before.1);
        // The imported world continues independently and has its own snapshots.
        call_ok(&other, "POST", "/sandbox/snapshots", &json!({ "name": "here" })).await;
        let charge = open_charge(&other).await;
        call_ok(&other, "POST", "/sandbox/restore", &json!({ "snapshot": "s1" })).await;
        assert_eq!(open_charge(&other).await["code"], charge["code"]);
        other.stop().await;
        if is_stored {
            let error = start_error(Config { exported_world: Some(file.clone()), ..config }).await;
            assert!(error.to_string().contains("has a world already"), "{error}");
            let other = start(config_with_storage(directory.path())).await;
            assert_eq!(other.first_keys().unwrap().live, keys.live);
        }
    }
}

#[tokio::test]
async fn an_invalid_snapshot_file_is_rejected() {
    let server = start(crate::config()).await;
    open_charge(&server).await;
    call_ok(&server, "POST", "/sandbox/advance", &json!({ "by": "3m" })).await;
    let file = export_snapshot(&server).await;
    let (header, records) = {
        let end = file.iter().position(|byte| *byte == b'\n').unwrap();
        (
            String::from_utf8(file[..end].to_vec()).unwrap(),
            String::from_utf8(file[end + 1..].to_vec()).unwrap(),
        )
    };
    // Returns a snapshot file with these records and their digest.
    let with_records = |records: &str| {
        use sha2::{Digest, Sha256};
        let mut header: Value = serde_json::from_str(&header).unwrap();
        header["sha256"] = hex::encode(Sha256::digest(records)).into();
        format!("{header}\n{records}").into_bytes()
    };
    let foreign_key = r#"{"respond_as":{"at":1,"who":{"book":[9,true],"key":4000000000,"quota":null,"era":0},"request":{"method":"POST","path":"/v1/charges","base":""}}}"#;
    let pending = r#"{"go_on":{"at":1,"pending":{"until":18446744073709551615,"stop_early":false,"after":null,"before":0,"within":[77,true],"era":0,"last_awaited":null}}}"#;
    let cases: [(&str, Vec<u8>, &str); 9] = [
        ("empty", Vec::new(), "it is not a snapshot file"),
        ("another file", b"{\"file\":\"photo\"}\n".to_vec(), "it is not a snapshot file"),
        ("truncated", file[..file.len() - 5].to_vec(), "truncated or changed"),
        ("changed", [&file[..], b"{}\n"].concat(), "truncated or changed"),
        (
            "a later format",
            String::from_utf8(file.clone()).unwrap().replacen("\"format\":3", "\"format\":9", 1).into(),
            "format 9",
        ),
        ("an unknown record", with_records("{\"pray\":{}}\n"), "record 1 is unreadable"),
        ("missing records", with_records(""), "another version of this program"),
        (
            "a key of another world",
            with_records(&format!("{records}{foreign_key}\n")),
            "does not belong to this world",
        ),
        (
            "a book of another world",
            with_records(&format!("{records}{pending}\n")),
            "does not belong to this world",
        ),
    ];
    for (name, bytes, expected) in cases {
        let error = start_error(Config { exported_world: Some(bytes), ..crate::config() }).await;
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{name}: {error}");
        assert!(error.to_string().contains(expected), "{name}: {error}");
    }
}
