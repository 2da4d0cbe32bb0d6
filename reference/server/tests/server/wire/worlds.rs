//! Worlds that are opened on request: separate from each other, selected by path or by key.

use std::collections::{BTreeMap, BTreeSet};

use reference_server::{Bounds, ClockKind, Config, Server};
use serde_json::{Value, json};

use super::{Client, config};

/// A client with the server that it is connected to.
struct ConnectedClient {
    server: Server,
    connection: Client,
}

impl ConnectedClient {
    async fn start(config: Config) -> ConnectedClient {
        let server = Server::start(config).await.expect("loopback has a free port");
        let connection = Client::connect(server.address()).await;
        ConnectedClient { server, connection }
    }

    /// Sends a request; returns status and body. `key`: empty for none.
    async fn call(&mut self, method: &str, path: &str, key: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let key_line =
            if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key_line}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.server.address(),
            body.len()
        );
        let response = self.connection.call(request).await;
        let text = response.body.clone();
        (response.status, serde_json::from_str(&response.body).unwrap_or(Value::String(text)))
    }

    async fn get(&mut self, path: &str, key: &str) -> (u16, Value) {
        self.call("GET", path, key, Value::Null).await
    }

    /// Opens a world with these options.
    async fn open(&mut self, body: Value) -> OpenedWorld {
        let (status, response) = self.call("POST", "/sandbox/worlds", "", body).await;
        assert_eq!(status, 201, "{response}");
        let text = |name: &str| response[name].as_str().expect("a string").to_owned();
        OpenedWorld {
            path: format!("/w/{}", text("world")),
            live: text("live_key"),
            test: text("test_key"),
            response,
        }
    }

    /// Creates a charge and returns its code.
    async fn create_charge(&mut self, key: &str) -> String {
        let body = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
        let (status, response) = self.call("POST", "/v1/charges", key, body).await;
        assert_eq!(status, 201, "{response}");
        response["data"]["code"].as_str().expect("a code").to_owned()
    }

    async fn service_time(&mut self, path: &str) -> String {
        let (_, response) = self.get(&format!("{path}/sandbox"), "").await;
        response["now"].as_str().expect("a time").to_owned()
    }
}

struct OpenedWorld {
    /// `/w/` and the id.
    path: String,
    live: String,
    test: String,
    response: Value,
}

fn frozen_config() -> Config {
    config(ClockKind::Frozen)
}

#[tokio::test]
async fn each_world_has_its_own_keys_urls_and_settings() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let start = "2030-02-03T04:05:06.000000Z";
    let body = json!({ "name": "a", "seed": 7, "start": start, "clock": "fast", "speed": 9, "rate_limit": 3, "ttl": "90s" });
    let world = client.open(body).await;
    let base = format!("{}{}", client.server.url(), world.path);
    let id = &world.path["/w/".len()..];
    assert!(world.live.starts_with(&format!("svc_live_{id}")) && world.live.len() == "svc_live_".len() + 40);
    let mut created = world.response.clone();
    for (name, value) in [
        ("base_url", json!(base)),
        ("sandbox_url", json!(format!("{base}/sandbox"))),
        ("dashboard_url", json!(format!("{base}/dashboard"))),
        ("name", json!("a")),
        ("seed", json!(7)),
        ("clock", json!("fast")),
        ("speed", json!(9)),
        ("rate_limit", json!(3)),
        ("ttl", json!("1m30s")),
    ] {
        assert_eq!(created[name], value, "{name}");
    }
    assert!(created["now"].as_str().is_some_and(|now| now >= start), "{created}");
    // The keys are shown once.
    let (status, world_info) = client.get(&format!("/sandbox/worlds/{id}"), "").await;
    created.as_object_mut().expect("an object").retain(|name, _| !name.ends_with("_key"));
    assert_eq!((status, &world_info["seed"], world_info.get("live_key")), (200, &created["seed"], None));
    let (status, all) = client.get("/sandbox/worlds", "").await;
    assert_eq!((status, &all["worlds"][0]["world"], &all["most"]), (200, &json!(id), &json!(1_000)));
    // The limit is three requests a minute.
    let statuses =
        [client.get("/v1/account", &world.live).await.0, client.get("/v1/account", &world.live).await.0];
    assert_eq!(statuses, [200, 200]);
    assert_eq!(client.get("/v1/account", &world.live).await.0, 200);
    assert_eq!(client.get("/v1/account", &world.live).await.0, 429);
}

#[tokio::test]
async fn a_key_gives_access_to_its_own_world_only() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let first = client.server.first_keys().expect("the world has no internal error").live;
    let (a, b) = (client.open(json!({ "seed": 7 })).await, client.open(json!({ "seed": 7 })).await);
    let closed = client.open(json!({})).await;
    assert_eq!(
        client.call("DELETE", &format!("/sandbox/worlds/{}", &closed.path[3..]), "", Value::Null).await.0,
        200
    );
    let forged = format!("svc_live_{}{}", &a.path[3..], "x".repeat(28));
    for (prefix, key, status) in [
        ("", &first, 200),
        ("", &a.live, 200),
        ("", &b.test, 200),
        (&*a.path, &a.live, 200),
        (&*b.path, &a.live, 401),
        (&*a.path, &b.live, 401),
        (&*a.path, &first, 401),
        ("", &forged, 401),
        ("", &closed.live, 401),
        (&*closed.path, &closed.live, 404),
        ("/w/aaaaaaaaaaaa", &first, 404),
        ("/w/../w", &first, 404),
        ("/w/", &first, 404),
    ] {
        let (found, response) = client.get(&format!("{prefix}/v1/account"), key).await;
        assert_eq!(found, status, "{prefix} {key}: {response}");
    }
    let (_, response) = client.get(&format!("{}/v1/account", closed.path), "").await;
    assert!(
        response["message"].as_str().is_some_and(|text| text.contains("POST /sandbox/worlds")),
        "{response}"
    );
    // Objects of one world are absent in the other, although both have the same seed.
    let code = client.create_charge(&a.live).await;
    for (key, status) in [(&a.live, 200), (&b.live, 404), (&a.test, 404), (&first, 404)] {
        assert_eq!(client.get(&format!("/v1/charges/{code}"), key).await.0, status);
    }
    assert_eq!(client.create_charge(&b.live).await, code, "worlds with the same seed have the same codes");
}

#[tokio::test]
async fn a_key_selects_the_world_of_a_sandbox_call() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let first = client.server.first_keys().expect("the world has no internal error").live;
    let (a, b) = (client.open(json!({})).await, client.open(json!({})).await);
    let start = client.service_time("").await;
    let hour = || json!({ "by": "1h" });
    assert_eq!(client.call("POST", "/sandbox/advance", &a.live, hour()).await.0, 200);
    assert_eq!(client.call("POST", &format!("{}/sandbox/advance", a.path), "", hour()).await.0, 200);
    assert_eq!(client.call("POST", "/sandbox/advance", &first, json!({ "by": "1s" })).await.0, 200);
    let times = [
        client.service_time("").await,
        client.service_time(&a.path).await,
        client.service_time(&b.path).await,
    ];
    assert_eq!(start, "2026-09-20T10:05:41.000000Z");
    assert_eq!(
        times,
        ["2026-09-20T10:05:42.000000Z", "2026-09-20T12:05:41.000000Z", "2026-09-20T10:05:41.000000Z"]
    );
    // A call for a closed world affects no other.
    assert_eq!(
        client.call("DELETE", &format!("/sandbox/worlds/{}", &a.path[3..]), "", Value::Null).await.0,
        200
    );
    let (status, response) = client.call("POST", "/sandbox/advance", &a.live, hour()).await;
    assert!(
        status == 403 && response["message"].as_str().is_some_and(|text| text.contains("no open world")),
        "{response}"
    );
    assert_eq!(client.service_time("").await, times[0]);
}

#[tokio::test]
async fn links_in_a_world_start_with_its_path() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let world = client.open(json!({})).await;
    let base = format!("{}{}", client.server.url(), world.path);
    let code = client.create_charge(&world.live).await;
    let (_, charge) = client.get(&format!("{}/v1/charges/{code}", world.path), &world.live).await;
    let checkout = charge["data"]["checkout_url"].as_str().expect("an address").to_owned();
    assert_eq!(checkout, format!("{base}/c/{code}"));
    // With the key alone too: a linked page is requested without a key, so the link must contain the world.
    for path in ["/v1/charges?per_page=1".to_owned(), format!("{}/v1/charges?per_page=1", world.path)] {
        let (_, page) = client.get(&path, &world.live).await;
        let first = page["links"]["first"].as_str().expect("an address");
        assert!(first.starts_with(&format!("{base}/v1/charges?")), "{first}");
    }
    for path in [
        checkout.strip_prefix(client.server.url()).expect("an address here"),
        &format!("{}/dashboard/acme/live", world.path),
    ] {
        let (status, page) = client.get(path, "").await;
        let page = page.as_str().expect("a page").to_owned();
        assert_eq!(status, 200, "{page}");
        let links = page.split(['"', '\'']).filter(|text| text.starts_with('/') && !text.starts_with("/>"));
        let foreign: Vec<&str> = links.filter(|link| !link.starts_with(&world.path)).collect();
        assert!(foreign.is_empty(), "{path}: {foreign:?}");
    }
    assert_eq!(client.get(&format!("/c/{code}"), "").await.0, 404, "the first world has no such charge");
}

#[tokio::test]
async fn the_dashboard_of_a_world_shows_its_name_or_its_id() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    for (body, label) in [(json!({ "name": "<b>refunds" }), "&#60;b&#62;refunds"), (json!({}), "")] {
        let world = client.open(body).await;
        let label = if label.is_empty() { world.path.trim_start_matches("/w/") } else { label };
        let (status, page) = client.get(&format!("{}/dashboard/acme/test", world.path), "").await;
        let page = page.as_str().expect("a page");
        assert!(page.contains(&format!("World <bdi>{label}</bdi>")), "{status} {page}");
        assert!(page.contains(&format!(" · world {label}</title>")), "{page}");
    }
}

#[tokio::test]
async fn the_404_of_a_closed_world_is_html_for_browsers_and_json_for_programs() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let world = client.open(json!({})).await;
    client
        .call("DELETE", &format!("/sandbox/worlds/{}", world.path.trim_start_matches("/w/")), "", Value::Null)
        .await;
    for (accept, part) in [("text/html", "<h1>Page not found</h1>"), ("*/*", r#"{"message":"No world"#)] {
        let address = client.server.address();
        let path = format!("{}/dashboard/acme/test", world.path);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
        let response = client.connection.call(request).await;
        assert!(
            response.status == 404 && response.body.contains(part),
            "{accept}: {} {}",
            response.status,
            response.body
        );
    }
}

#[tokio::test]
async fn invalid_requests_for_worlds_are_refused() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let world = client.open(json!({})).await;
    let inside = format!("{}/sandbox/worlds", world.path);
    let itself = format!("/sandbox/worlds/{}", &world.path[3..]);
    for (method, path, body, status) in [
        ("POST", "/sandbox/worlds", json!({ "names": "a" }), 422),
        ("POST", "/sandbox/worlds", json!({ "ttl": "1ms" }), 422),
        ("POST", "/sandbox/worlds", json!([1]), 400),
        ("PUT", "/sandbox/worlds", json!({}), 405),
        ("POST", "/sandbox/worlds/aaaaaaaaaaaa", json!({}), 405),
        ("GET", "/sandbox/worlds/aaaaaaaaaaaa", Value::Null, 404),
        ("DELETE", "/sandbox/worlds/aaaaaaaaaaaa", Value::Null, 404),
        ("DELETE", "/sandbox/worlds/a", Value::Null, 404),
        ("DELETE", &*itself, json!({ "name": "a" }), 422),
        ("POST", &*inside, json!({}), 404),
    ] {
        let (found, response) = client.call(method, path, "", body).await;
        assert_eq!(found, status, "{method} {path}: {response}");
    }
    let foreign_host = "POST /sandbox/worlds HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(client.connection.call(foreign_host).await.status, 403);
    let (_, all) = client.get("/sandbox/worlds", "").await;
    assert_eq!(all["worlds"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn lists_without_filters_refuse_query_parameters() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    for path in ["worlds?name=a", "snapshots?name=a", "forwards?to=a", "scenario?from=s1", "keys?mode=live"] {
        let (status, response) = client.get(&format!("/sandbox/{path}"), "").await;
        let message = response["message"].as_str().unwrap_or_default();
        assert!(status == 422 && message.contains("is not known here"), "{path}: {response}");
    }
}

#[tokio::test]
async fn at_most_a_thousand_worlds_are_open() {
    let mut client = ConnectedClient::start(config(ClockKind::Wall)).await;
    let mut keys_and_paths = BTreeSet::new();
    let mut last = None;
    for _ in 0..1_000 {
        let world = client.open(json!({ "seed": 7 })).await;
        keys_and_paths.extend([world.live.clone(), world.test.clone(), world.path.clone()]);
        last = Some(world);
    }
    assert_eq!(keys_and_paths.len(), 3_000, "worlds with the same seed have different keys and paths");
    let (status, response) = client.call("POST", "/sandbox/worlds", "", json!({})).await;
    assert!(
        status == 409 && response["message"].as_str().is_some_and(|text| text.contains("ttl")),
        "{response}"
    );
    let last = last.expect("worlds were opened");
    assert_eq!(client.get("/v1/account", &last.live).await.0, 200);
    // An idle world has no running timer, whatever its clock.
    let (_, metrics) = client.get(&format!("{}/metrics", last.path), "").await;
    let metrics = metrics.as_str().expect("a page");
    assert!(metrics.contains("\nchargeproof_worlds 1001\n") && !metrics.contains("next_due"), "{metrics}");
    assert_eq!(
        client.call("DELETE", &format!("/sandbox/worlds/{}", &last.path[3..]), "", Value::Null).await.0,
        200
    );
    client.open(json!({})).await;
}

/// Returns the memory that the worlds use, and their limit.
async fn memory(client: &mut ConnectedClient) -> (u64, u64) {
    let (_, page) = client.get("/metrics", "").await;
    let page = page.as_str().expect("a page").to_owned();
    let [used, limit] = ["", "_max"].map(|suffix| {
        let name = format!("chargeproof_worlds_memory{suffix}_bytes ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|value| value.parse().ok()).expect("the metric is a number")
    });
    (used, limit)
}

#[tokio::test]
async fn the_memory_limit_covers_all_worlds() {
    const LIMIT: usize = 16 << 20;
    // The growth by requests that were running when the limit was reached.
    const SLACK: u64 = 1 << 18;
    let bounds = Bounds { world_bytes: LIMIT, ..Bounds::default() };
    let mut client = ConnectedClient::start(Config { bounds, rate_limit: None, ..frozen_config() }).await;
    let first_key = client.server.first_keys().expect("the world has no internal error").live;
    let large = json!({
        "asset": "SOL", "amount": "49.90", "currency": "EUR",
        "metadata": BTreeMap::from_iter((0..20).map(|n| (format!("k{n}"), "x".repeat(500)))),
    });
    for n in 0..50 {
        assert_eq!(client.call("POST", "/v1/charges", &first_key, large.clone()).await.0, 201);
        let name = json!({ "name": format!("{n}") });
        assert_eq!(client.call("POST", "/sandbox/snapshots", "", name).await.0, 200);
    }

    // Branches of the whole world, until there is no memory for another.
    let mut branches = Vec::new();
    let refusal = loop {
        let (status, response) = client.call("POST", "/sandbox/worlds", "", json!({ "from": {} })).await;
        if status != 201 {
            break (status, response["message"].as_str().expect("a reason").to_owned());
        }
        branches.push(response);
    };
    assert_eq!(refusal.0, 409);
    for part in ["at most 16.0 MiB is allowed (serve --worlds-memory)", "DELETE /sandbox/worlds"] {
        assert!(refusal.1.contains(part), "{}", refusal.1);
    }
    let (used, limit) = memory(&mut client).await;
    assert!(branches.len() > 1 && used < limit + SLACK && limit == LIMIT as u64, "{used}");

    // One of them grows until changes are refused.
    let branch = branches[0]["live_key"].as_str().expect("a key").to_owned();
    let mut grown = 0;
    let refusal = loop {
        let (status, response) = client.call("POST", "/v1/charges", &branch, large.clone()).await;
        if status != 201 {
            break (status, response["message"].as_str().expect("a reason").to_owned());
        }
        grown += 1;
    };
    assert!(refusal.0 == 503 && refusal.1.contains("nothing was changed"), "{refusal:?}");
    let snapshot = format!("/w/{}/sandbox/snapshots", branches[0]["world"].as_str().expect("an id"));
    assert_eq!(client.call("POST", &snapshot, "", json!({ "name": "more" })).await.0, 503);
    assert_eq!(client.charges(&branch).await.len(), 25, "the world can still be read: a page has 25 charges");
    let (used, limit) = memory(&mut client).await;
    assert!(grown > 0 && used < limit + SLACK, "{used}");

    // The first world continues, and so do the others once there is memory.
    client.create_charge(&first_key).await;
    assert_eq!(client.call("POST", "/sandbox/snapshots", "", json!({ "name": "more" })).await.0, 200);
    for branch in &branches[1..] {
        let path = format!("/sandbox/worlds/{}", branch["world"].as_str().expect("an id"));
        assert_eq!(client.call("DELETE", &path, "", Value::Null).await.0, 200);
    }
    assert!(memory(&mut client).await.0 < used);
    client.create_charge(&branch).await;
    let (_, all) = client.get("/sandbox/worlds", "").await;
    let memory = all["worlds"][0]["memory"].as_u64().expect("a number");
    assert!(memory > 20 * 10_000 && memory < LIMIT as u64, "{memory}");
}

/// Starts a server; creates a charge and a snapshot, an hour later another charge, and lets another hour pass. Returns
/// the codes of the charges, newest first.
async fn with_two_charges() -> (ConnectedClient, Vec<String>) {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let key = client.server.first_keys().expect("the world has no internal error").live;
    let early = client.create_charge(&key).await;
    assert_eq!(client.call("POST", "/sandbox/snapshots", "", json!({ "name": "one charge" })).await.0, 200);
    assert_eq!(client.call("POST", "/sandbox/advance", "", json!({ "by": "1h" })).await.0, 200);
    let late = client.create_charge(&key).await;
    assert_eq!(client.call("POST", "/sandbox/advance", &key, json!({ "by": "1h" })).await.0, 200);
    (client, vec![late, early])
}

impl ConnectedClient {
    /// Returns the codes of the charges, newest first.
    async fn charges(&mut self, key: &str) -> Vec<String> {
        let (status, list) = self.get("/v1/charges", key).await;
        assert_eq!(status, 200, "{list}");
        let codes = list["data"].as_array().expect("a list").iter();
        codes.map(|code| code["code"].as_str().expect("a code").to_owned()).collect()
    }
}

#[tokio::test]
async fn a_world_can_branch_from_any_time_of_another() {
    let (mut client, codes) = with_two_charges().await;
    let first = client.server.first_keys().expect("the world has no internal error").live;
    for (from, now, charges) in [
        (json!({}), "2026-09-20T12:05:41.000000Z", 2),
        (json!({ "snapshot": "one charge" }), "2026-09-20T10:05:41.000000Z", 1),
        (json!({ "snapshot": "s1", "world": null }), "2026-09-20T10:05:41.000000Z", 1),
        (json!({ "at": "2026-09-20T10:05:41Z" }), "2026-09-20T10:05:41.000000Z", 1),
        (json!({ "at": "2026-09-20T10:35:41Z" }), "2026-09-20T10:35:41.000000Z", 1),
        (json!({ "at": "2026-09-20T11:05:41Z" }), "2026-09-20T11:05:41.000000Z", 2),
        (json!({ "at": "2026-09-20T11:05:42Z" }), "2026-09-20T11:05:42.000000Z", 2),
    ] {
        let world = client.open(json!({ "from": from })).await;
        assert_eq!((&world.response["now"], &world.response["seed"]), (&json!(now), &json!(1)), "{from}");
        assert_eq!(client.charges(&world.live).await, codes[2 - charges..], "{from}");
        // Links lead into the branch, and its changes affect no other world.
        let (_, charge) = client.get(&format!("/v1/charges/{}", codes[1]), &world.live).await;
        let link = charge["data"]["checkout_url"].as_str().expect("an address");
        assert!(link.starts_with(&format!("{}{}/c/", client.server.url(), world.path)), "{link}");
        let new_charge = client.create_charge(&world.live).await;
        if charges == 1 && now.contains("11:05:41") {
            assert_eq!(new_charge, codes[0], "the same requests create objects with the same codes");
        }
        // Another world branches from the branch.
        let id = &world.path["/w/".len()..];
        let next = client.open(json!({ "from": { "world": id }, "clock": "fast" })).await;
        assert_eq!(client.charges(&next.test).await.len(), 0);
        assert_eq!(client.charges(&next.live).await.len(), charges + 1);
        assert_eq!(next.response["clock"], "fast");
        assert_eq!(client.charges(&first).await, codes, "the first world does not change");
    }
}

#[tokio::test]
async fn replayed_responses_of_a_branch_link_into_it() {
    let mut client = ConnectedClient::start(frozen_config()).await;
    let original = client.open(json!({ "rate_limit": 4 })).await;
    let body = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    // `call` sends the key at the end of a header line, so another line can follow.
    let key_lines = format!("{}\r\nIdempotency-Key: once", original.live);
    let (_, created) = client.call("POST", "/v1/charges", &key_lines, body.clone()).await;
    let branch = client.open(json!({ "from": { "world": &original.path["/w/".len()..] } })).await;
    assert_eq!(branch.response["rate_limit"], 4);
    let key_lines = format!("{}\r\nIdempotency-Key: once", branch.live);
    let (status, replayed) = client.call("POST", "/v1/charges", &key_lines, body).await;
    assert_eq!(status, 201, "{replayed}");
    assert_eq!(replayed.to_string().replace(&branch.path, &original.path), created.to_string());
    // The rate limit continues: two of four requests are left.
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(client.get("/v1/account", &branch.live).await.0);
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn an_invalid_branch_point_is_refused_with_the_name_of_the_field() {
    let (mut client, _) = with_two_charges().await;
    let range = "from 2026-09-20T10:05:41.000000Z to 2026-09-20T12:05:41.000000Z";
    for (body, field, part) in [
        (json!({ "from": { "world": "aaaaaaaaaaaa" } }), "from.world", "not open"),
        (json!({ "from": { "world": "x" } }), "from.world", "not open"),
        (json!({ "from": { "snapshot": "s2" } }), "from.snapshot", "not one of that world"),
        (json!({ "from": { "snapshot": "s1", "at": "2026-09-20T11:05:41Z" } }), "from.at", "one of the two"),
        (json!({ "from": { "at": "2026-09-20T10:05:40.999999Z" } }), "from.at", range),
        (json!({ "from": { "at": "2026-09-20T12:05:41.000001Z" } }), "from.at", range),
        (json!({ "from": { "at": "soon" } }), "from.at", "2026-01-05T09:00:00Z"),
        (json!({ "from": { "on": 1 } }), "from.on", "not known"),
        (json!({ "from": {}, "seed": 7 }), "seed", "leave it out"),
        (json!({ "from": {}, "rate_limit": null }), "rate_limit", "leave it out"),
    ] {
        let (status, response) = client.call("POST", "/sandbox/worlds", "", body.clone()).await;
        let message = response["errors"][field][0].as_str().unwrap_or_default();
        assert!(status == 422 && message.contains(part), "{body}: {status} {response}");
    }
    let (_, all) = client.get("/sandbox/worlds", "").await;
    assert_eq!(all["worlds"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn a_world_is_restored_to_any_earlier_time() {
    let (mut client, codes) = with_two_charges().await;
    let key = client.server.first_keys().expect("the world has no internal error").live;
    let mut restore = async |to: Value| client.call("POST", "/sandbox/restore", "", to).await;
    let (status, response) = restore(json!({ "at": "2026-09-20T12:05:42Z" })).await;
    assert!(status == 422 && response["errors"]["at"].is_array(), "{response}");
    let (status, response) = restore(json!({ "at": "2026-09-20T11:05:41Z" })).await;
    assert_eq!((status, &response), (200, &json!({ "now": "2026-09-20T11:05:41.000000Z" })));
    assert_eq!(client.charges(&key).await, codes);
    for at in ["2026-09-20T11:00:00.000000Z", "2026-09-20T10:06:00.000000Z"] {
        let (status, response) = client.call("POST", "/sandbox/restore", "", json!({ "at": at })).await;
        assert_eq!((status, &response["now"]), (200, &json!(at)));
        assert_eq!(client.charges(&key).await, codes[1..]);
    }
    // New changes are a branch that starts with the restored state.
    let other = client.create_charge(&key).await;
    assert_eq!(client.charges(&key).await, [other, codes[1].clone()]);
    let branch = client.open(json!({ "from": { "at": "2026-09-20T10:05:41Z" } })).await;
    assert_eq!(client.charges(&branch.live).await, codes[1..]);
}
