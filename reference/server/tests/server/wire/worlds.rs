//! Worlds that are opened on request: separate from each other, selected by path or by key.

use std::collections::{BTreeMap, BTreeSet};

use reference_server::{Bounds, ClockKind, Config, Server};
use serde_json::{Value, json};

use super::{Client, config};

/// A server with a client.
struct Visitor {
    server: Server,
    client: Client,
}

impl Visitor {
    async fn start(config: Config) -> Visitor {
        let server = Server::start(config).await.expect("loopback has a free port");
        let client = Client::connect(server.address()).await;
        Visitor { server, client }
    }

    /// Sends a request; returns status and body. `key`: empty for none.
    async fn call(&mut self, method: &str, path: &str, key: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let key = if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\n{key}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.server.address(),
            body.len()
        );
        let response = self.client.call(request).await;
        let text = response.body.clone();
        (response.status, serde_json::from_str(&response.body).unwrap_or(Value::String(text)))
    }

    async fn get(&mut self, path: &str, key: &str) -> (u16, Value) {
        self.call("GET", path, key, Value::Null).await
    }

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

    /// Opens a charge and returns its code.
    async fn charge(&mut self, key: &str) -> String {
        let body = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
        let (status, response) = self.call("POST", "/v1/charges", key, body).await;
        assert_eq!(status, 201, "{response}");
        response["data"]["code"].as_str().expect("a code").to_owned()
    }

    async fn service_time(&mut self, path: &str) -> String {
        let (_, response) = self.get(&format!("{path}/sandbox"), "").await;
        response["now"].as_str().expect("a moment").to_owned()
    }
}

struct OpenedWorld {
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
    let mut visitor = Visitor::start(frozen_config()).await;
    let start = "2030-02-03T04:05:06.000000Z";
    let body = json!({ "name": "a", "seed": 7, "start": start, "clock": "fast", "speed": 9, "rate_limit": 3, "ttl": "90s" });
    let world = visitor.open(body).await;
    let base = format!("{}{}", visitor.server.url(), world.path);
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
    let (status, one) = visitor.get(&format!("/sandbox/worlds/{id}"), "").await;
    created.as_object_mut().expect("an object").retain(|name, _| !name.ends_with("_key"));
    assert_eq!((status, &one["seed"], one.get("live_key")), (200, &created["seed"], None));
    let (status, all) = visitor.get("/sandbox/worlds", "").await;
    assert_eq!((status, &all["worlds"][0]["world"], &all["most"]), (200, &json!(id), &json!(1_000)));
    // The limit is three requests a minute.
    let statuses =
        [visitor.get("/v1/account", &world.live).await.0, visitor.get("/v1/account", &world.live).await.0];
    assert_eq!(statuses, [200, 200]);
    assert_eq!(visitor.get("/v1/account", &world.live).await.0, 200);
    assert_eq!(visitor.get("/v1/account", &world.live).await.0, 429);
}

#[tokio::test]
async fn a_key_gives_access_to_its_own_world_only() {
    let mut visitor = Visitor::start(frozen_config()).await;
    let first = visitor.server.first_keys().expect("a sound world").live;
    let (a, b) = (visitor.open(json!({ "seed": 7 })).await, visitor.open(json!({ "seed": 7 })).await);
    let gone = visitor.open(json!({})).await;
    assert_eq!(
        visitor.call("DELETE", &format!("/sandbox/worlds/{}", &gone.path[3..]), "", Value::Null).await.0,
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
        ("", &gone.live, 401),
        (&*gone.path, &gone.live, 404),
        ("/w/aaaaaaaaaaaa", &first, 404),
        ("/w/../w", &first, 404),
        ("/w/", &first, 404),
    ] {
        let (found, response) = visitor.get(&format!("{prefix}/v1/account"), key).await;
        assert_eq!(found, status, "{prefix} {key}: {response}");
    }
    let (_, response) = visitor.get(&format!("{}/v1/account", gone.path), "").await;
    assert!(
        response["message"].as_str().is_some_and(|text| text.contains("POST /sandbox/worlds")),
        "{response}"
    );
    // Objects of one world are absent in the other, although both have the same seed.
    let code = visitor.charge(&a.live).await;
    for (key, status) in [(&a.live, 200), (&b.live, 404), (&a.test, 404), (&first, 404)] {
        assert_eq!(visitor.get(&format!("/v1/charges/{code}"), key).await.0, status);
    }
    assert_eq!(visitor.charge(&b.live).await, code, "the same seed opens the same charge");
}

#[tokio::test]
async fn a_key_selects_the_world_of_a_sandbox_call() {
    let mut visitor = Visitor::start(frozen_config()).await;
    let first = visitor.server.first_keys().expect("a sound world").live;
    let (a, b) = (visitor.open(json!({})).await, visitor.open(json!({})).await);
    let begin = visitor.service_time("").await;
    let hour = || json!({ "by": "1h" });
    assert_eq!(visitor.call("POST", "/sandbox/advance", &a.live, hour()).await.0, 200);
    assert_eq!(visitor.call("POST", &format!("{}/sandbox/advance", a.path), "", hour()).await.0, 200);
    assert_eq!(visitor.call("POST", "/sandbox/advance", &first, json!({ "by": "1s" })).await.0, 200);
    let shown = [
        visitor.service_time("").await,
        visitor.service_time(&a.path).await,
        visitor.service_time(&b.path).await,
    ];
    assert_eq!(begin, "2026-09-20T10:05:41.000000Z");
    assert_eq!(
        shown,
        ["2026-09-20T10:05:42.000000Z", "2026-09-20T12:05:41.000000Z", "2026-09-20T10:05:41.000000Z"]
    );
    // A call for a closed world affects no other.
    assert_eq!(
        visitor.call("DELETE", &format!("/sandbox/worlds/{}", &a.path[3..]), "", Value::Null).await.0,
        200
    );
    let (status, response) = visitor.call("POST", "/sandbox/advance", &a.live, hour()).await;
    assert!(
        status == 403 && response["message"].as_str().is_some_and(|text| text.contains("no open world")),
        "{response}"
    );
    assert_eq!(visitor.service_time("").await, shown[0]);
}

#[tokio::test]
async fn links_of_a_world_contain_its_path() {
    let mut visitor = Visitor::start(frozen_config()).await;
    let world = visitor.open(json!({})).await;
    let base = format!("{}{}", visitor.server.url(), world.path);
    let code = visitor.charge(&world.live).await;
    let (_, charge) = visitor.get(&format!("{}/v1/charges/{code}", world.path), &world.live).await;
    let checkout = charge["data"]["checkout_url"].as_str().expect("an address").to_owned();
    assert_eq!(checkout, format!("{base}/c/{code}"));
    // With the key alone too: a linked page is requested without a key, so the link must contain the world.
    for path in ["/v1/charges?per_page=1".to_owned(), format!("{}/v1/charges?per_page=1", world.path)] {
        let (_, page) = visitor.get(&path, &world.live).await;
        let first = page["links"]["first"].as_str().expect("an address");
        assert!(first.starts_with(&format!("{base}/v1/charges?")), "{first}");
    }
    for path in [
        checkout.strip_prefix(visitor.server.url()).expect("an address here"),
        &format!("{}/dashboard/acme/live", world.path),
    ] {
        let (status, page) = visitor.get(path, "").await;
        let page = page.as_str().expect("a page").to_owned();
        assert_eq!(status, 200, "{page}");
        let links = page.split(['"', '\'']).filter(|text| text.starts_with('/') && !text.starts_with("/>"));
        let strange: Vec<&str> = links.filter(|link| !link.starts_with(&world.path)).collect();
        assert!(strange.is_empty(), "{path}: {strange:?}");
    }
    assert_eq!(visitor.get(&format!("/c/{code}"), "").await.0, 404, "the first world has no such charge");
}

#[tokio::test]
async fn the_dashboard_of_a_world_shows_its_name_or_its_id() {
    let mut visitor = Visitor::start(frozen_config()).await;
    for (body, label) in [(json!({ "name": "<b>refunds" }), "&#60;b&#62;refunds"), (json!({}), "")] {
        let world = visitor.open(body).await;
        let label = if label.is_empty() { world.path.trim_start_matches("/w/") } else { label };
        let (status, page) = visitor.get(&format!("{}/dashboard/acme/test", world.path), "").await;
        let page = page.as_str().expect("a page");
        assert!(page.contains(&format!("World <bdi>{label}</bdi>")), "{status} {page}");
        assert!(page.contains(&format!(" · world {label}</title>")), "{page}");
    }
}

#[tokio::test]
async fn a_page_of_an_ended_world_is_html_in_a_browser_and_json_elsewhere() {
    let mut visitor = Visitor::start(frozen_config()).await;
    let world = visitor.open(json!({})).await;
    visitor
        .call("DELETE", &format!("/sandbox/worlds/{}", world.path.trim_start_matches("/w/")), "", Value::Null)
        .await;
    for (accept, part) in [("text/html", "<h1>Page not found</h1>"), ("*/*", r#"{"message":"No world"#)] {
        let address = visitor.server.address();
        let path = format!("{}/dashboard/acme/test", world.path);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
        let response = visitor.client.call(request).await;
        assert!(
            response.status == 404 && response.body.contains(part),
            "{accept}: {} {}",
            response.status,
            response.body
        );
    }
}

#[tokio::test]
async fn invalid_worlds_are_refused() {
    let mut visitor = Visitor::start(frozen_config()).await;
    let world = visitor.open(json!({})).await;
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
        let (found, response) = visitor.call(method, path, "", body).await;
        assert_eq!(found, status, "{method} {path}: {response}");
    }
    let foreign = "POST /sandbox/worlds HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(visitor.client.call(foreign).await.status, 403);
    let (_, all) = visitor.get("/sandbox/worlds", "").await;
    assert_eq!(all["worlds"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_list_that_has_no_filters_refuses_them() {
    let mut visitor = Visitor::start(frozen_config()).await;
    for path in ["worlds?name=a", "snapshots?name=a", "forwards?to=a", "scenario?from=s1", "keys?mode=live"] {
        let (status, response) = visitor.get(&format!("/sandbox/{path}"), "").await;
        let message = response["message"].as_str().unwrap_or_default();
        assert!(status == 422 && message.contains("is not known here"), "{path}: {response}");
    }
}

#[tokio::test]
async fn a_thousand_worlds_are_open_and_no_more() {
    let mut visitor = Visitor::start(config(ClockKind::Wall)).await;
    let mut keys = BTreeSet::new();
    let mut last = None;
    for _ in 0..1_000 {
        let world = visitor.open(json!({ "seed": 7 })).await;
        keys.extend([world.live.clone(), world.test.clone(), world.path.clone()]);
        last = Some(world);
    }
    assert_eq!(keys.len(), 3_000, "worlds of one seed share no key and no path");
    let (status, response) = visitor.call("POST", "/sandbox/worlds", "", json!({})).await;
    assert!(
        status == 409 && response["message"].as_str().is_some_and(|text| text.contains("ttl")),
        "{response}"
    );
    let last = last.expect("there are some");
    assert_eq!(visitor.get("/v1/account", &last.live).await.0, 200);
    // An idle world has no running timer, whatever its clock.
    let (_, figures) = visitor.get(&format!("{}/metrics", last.path), "").await;
    let figures = figures.as_str().expect("a page");
    assert!(figures.contains("\nchargeproof_worlds 1001\n") && !figures.contains("next_due"), "{figures}");
    assert_eq!(
        visitor.call("DELETE", &format!("/sandbox/worlds/{}", &last.path[3..]), "", Value::Null).await.0,
        200
    );
    visitor.open(json!({})).await;
}

/// Returns the memory that the worlds use, and their limit.
async fn memory(visitor: &mut Visitor) -> (u64, u64) {
    let (_, page) = visitor.get("/metrics", "").await;
    let page = page.as_str().expect("a page").to_owned();
    let [held, most] = ["", "_max"].map(|which| {
        let name = format!("chargeproof_worlds_memory{which}_bytes ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|figure| figure.parse().ok()).expect("a figure")
    });
    (held, most)
}

#[tokio::test]
async fn the_memory_limit_covers_all_worlds() {
    const MOST: usize = 16 << 20;
    // The growth by requests that were running when the limit was reached.
    const SLACK: u64 = 1 << 18;
    let bounds = Bounds { world_bytes: MOST, ..Bounds::default() };
    let mut visitor = Visitor::start(Config { bounds, rate_limit: None, ..frozen_config() }).await;
    let own = visitor.server.first_keys().expect("a sound world").live;
    let large = json!({
        "asset": "SOL", "amount": "49.90", "currency": "EUR",
        "metadata": BTreeMap::from_iter((0..20).map(|n| (format!("k{n}"), "x".repeat(500)))),
    });
    for n in 0..50 {
        assert_eq!(visitor.call("POST", "/v1/charges", &own, large.clone()).await.0, 201);
        let name = json!({ "name": format!("{n}") });
        assert_eq!(visitor.call("POST", "/sandbox/snapshots", "", name).await.0, 200);
    }

    // Branches of the whole world, until there is no memory for another.
    let mut branches = Vec::new();
    let refusal = loop {
        let (status, response) = visitor.call("POST", "/sandbox/worlds", "", json!({ "from": {} })).await;
        if status != 201 {
            break (status, response["message"].as_str().expect("a reason").to_owned());
        }
        branches.push(response);
    };
    assert_eq!(refusal.0, 409);
    for part in ["at most 16.0 MiB is allowed (serve --worlds-memory)", "DELETE /sandbox/worlds"] {
        assert!(refusal.1.contains(part), "{}", refusal.1);
    }
    let (held, most) = memory(&mut visitor).await;
    assert!(branches.len() > 1 && held < most + SLACK && most == MOST as u64, "{held}");

    // One of them grows until changes are refused.
    let branch = branches[0]["live_key"].as_str().expect("a key").to_owned();
    let mut grown = 0;
    let refusal = loop {
        let (status, response) = visitor.call("POST", "/v1/charges", &branch, large.clone()).await;
        if status != 201 {
            break (status, response["message"].as_str().expect("a reason").to_owned());
        }
        grown += 1;
    };
    assert!(refusal.0 == 503 && refusal.1.contains("nothing was changed"), "{refusal:?}");
    let snapshot = format!("/w/{}/sandbox/snapshots", branches[0]["world"].as_str().expect("an id"));
    assert_eq!(visitor.call("POST", &snapshot, "", json!({ "name": "more" })).await.0, 503);
    assert_eq!(visitor.charges(&branch).await.len(), 25, "it can be read, and its lists have pages");
    let (held, most) = memory(&mut visitor).await;
    assert!(grown > 0 && held < most + SLACK, "{held}");

    // The first world continues, and so do the others once there is memory.
    visitor.charge(&own).await;
    assert_eq!(visitor.call("POST", "/sandbox/snapshots", "", json!({ "name": "more" })).await.0, 200);
    for branch in &branches[1..] {
        let path = format!("/sandbox/worlds/{}", branch["world"].as_str().expect("an id"));
        assert_eq!(visitor.call("DELETE", &path, "", Value::Null).await.0, 200);
    }
    assert!(memory(&mut visitor).await.0 < held);
    visitor.charge(&branch).await;
    let (_, all) = visitor.get("/sandbox/worlds", "").await;
    let memory = all["worlds"][0]["memory"].as_u64().expect("a figure");
    assert!(memory > 20 * 10_000 && memory < MOST as u64, "{memory}");
}

/// Opens a charge at the start and one an hour later, with another hour after it, and a snapshot in between.
async fn with_two_charges() -> (Visitor, Vec<String>) {
    let mut visitor = Visitor::start(frozen_config()).await;
    let key = visitor.server.first_keys().expect("a sound world").live;
    let early = visitor.charge(&key).await;
    assert_eq!(visitor.call("POST", "/sandbox/snapshots", "", json!({ "name": "one charge" })).await.0, 200);
    assert_eq!(visitor.call("POST", "/sandbox/advance", "", json!({ "by": "1h" })).await.0, 200);
    let late = visitor.charge(&key).await;
    assert_eq!(visitor.call("POST", "/sandbox/advance", &key, json!({ "by": "1h" })).await.0, 200);
    (visitor, vec![late, early])
}

impl Visitor {
    /// Returns the codes of the charges, newest first.
    async fn charges(&mut self, key: &str) -> Vec<String> {
        let (status, list) = self.get("/v1/charges", key).await;
        assert_eq!(status, 200, "{list}");
        let codes = list["data"].as_array().expect("a list").iter();
        codes.map(|code| code["code"].as_str().expect("a code").to_owned()).collect()
    }
}

#[tokio::test]
async fn a_world_branches_from_a_time_of_another() {
    let (mut visitor, codes) = with_two_charges().await;
    let first = visitor.server.first_keys().expect("a sound world").live;
    for (from, now, charges) in [
        (json!({}), "2026-09-20T12:05:41.000000Z", 2),
        (json!({ "snapshot": "one charge" }), "2026-09-20T10:05:41.000000Z", 1),
        (json!({ "snapshot": "s1", "world": null }), "2026-09-20T10:05:41.000000Z", 1),
        (json!({ "at": "2026-09-20T10:05:41Z" }), "2026-09-20T10:05:41.000000Z", 1),
        (json!({ "at": "2026-09-20T10:35:41Z" }), "2026-09-20T10:35:41.000000Z", 1),
        (json!({ "at": "2026-09-20T11:05:41Z" }), "2026-09-20T11:05:41.000000Z", 2),
        (json!({ "at": "2026-09-20T11:05:42Z" }), "2026-09-20T11:05:42.000000Z", 2),
    ] {
        let world = visitor.open(json!({ "from": from })).await;
        assert_eq!((&world.response["now"], &world.response["seed"]), (&json!(now), &json!(1)), "{from}");
        assert_eq!(visitor.charges(&world.live).await, codes[2 - charges..], "{from}");
        // Links lead into the branch, and its changes affect no other world.
        let (_, charge) = visitor.get(&format!("/v1/charges/{}", codes[1]), &world.live).await;
        let link = charge["data"]["checkout_url"].as_str().expect("an address");
        assert!(link.starts_with(&format!("{}{}/c/", visitor.server.url(), world.path)), "{link}");
        let further = visitor.charge(&world.live).await;
        if charges == 1 && now.contains("11:05:41") {
            assert_eq!(further, codes[0], "the same calls have the same codes");
        }
        // Another world branches from the branch.
        let id = &world.path["/w/".len()..];
        let next = visitor.open(json!({ "from": { "world": id }, "clock": "fast" })).await;
        assert_eq!(visitor.charges(&next.test).await.len(), 0);
        assert_eq!(visitor.charges(&next.live).await.len(), charges + 1);
        assert_eq!(next.response["clock"], "fast");
        assert_eq!(visitor.charges(&first).await, codes, "the first world stays as it is");
    }
}

#[tokio::test]
async fn replayed_responses_of_a_branch_link_into_it() {
    let mut visitor = Visitor::start(frozen_config()).await;
    let one = visitor.open(json!({ "rate_limit": 4 })).await;
    let body = json!({ "asset": "BTC", "amount": "49.90", "currency": "EUR" });
    let repeat = format!("{}\r\nIdempotency-Key: once", one.live);
    let (_, made) = visitor.call("POST", "/v1/charges", &repeat, body.clone()).await;
    let other = visitor.open(json!({ "from": { "world": &one.path["/w/".len()..] } })).await;
    assert_eq!(other.response["rate_limit"], 4);
    let repeat = format!("{}\r\nIdempotency-Key: once", other.live);
    let (status, again) = visitor.call("POST", "/v1/charges", &repeat, body).await;
    assert_eq!(status, 201, "{again}");
    assert_eq!(again.to_string().replace(&other.path, &one.path), made.to_string());
    // The rate limit continues: two of four requests are left.
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(visitor.get("/v1/account", &other.live).await.0);
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn an_unknown_branch_point_is_refused_by_name() {
    let (mut visitor, _) = with_two_charges().await;
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
        let (status, response) = visitor.call("POST", "/sandbox/worlds", "", body.clone()).await;
        let why = response["errors"][field][0].as_str().unwrap_or_default();
        assert!(status == 422 && why.contains(part), "{body}: {status} {response}");
    }
    let (_, all) = visitor.get("/sandbox/worlds", "").await;
    assert_eq!(all["worlds"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn a_world_is_restored_to_any_earlier_time() {
    let (mut visitor, codes) = with_two_charges().await;
    let key = visitor.server.first_keys().expect("a sound world").live;
    let mut back = async |to: Value| visitor.call("POST", "/sandbox/restore", "", to).await;
    let (status, response) = back(json!({ "at": "2026-09-20T12:05:42Z" })).await;
    assert!(status == 422 && response["errors"]["at"].is_array(), "{response}");
    let (status, response) = back(json!({ "at": "2026-09-20T11:05:41Z" })).await;
    assert_eq!((status, &response), (200, &json!({ "now": "2026-09-20T11:05:41.000000Z" })));
    assert_eq!(visitor.charges(&key).await, codes);
    for at in ["2026-09-20T11:00:00.000000Z", "2026-09-20T10:06:00.000000Z"] {
        let (status, response) = visitor.call("POST", "/sandbox/restore", "", json!({ "at": at })).await;
        assert_eq!((status, &response["now"]), (200, &json!(at)));
        assert_eq!(visitor.charges(&key).await, codes[1..]);
    }
    // New changes are a branch that starts with the restored state.
    let other = visitor.charge(&key).await;
    assert_eq!(visitor.charges(&key).await, [other, codes[1].clone()]);
    let branch = visitor.open(json!({ "from": { "at": "2026-09-20T10:05:41Z" } })).await;
    assert_eq!(visitor.charges(&branch.live).await, codes[1..]);
}
