//! Forwards to handlers on the developer's machine, added at start and while the server runs.

use reference_server::{LocalHandler, SenderConfig, Server};
use serde_json::{Value, json};

use super::{
    OK, call, config,
    log::is_signed,
    names::Names,
    receiver::{Receiver, ReceiverBehavior},
    sender,
};
use crate::openapi::{Document, Operation};

const PATH: &str = "/sandbox/forwards";

async fn open() -> Server {
    Server::start(config(sender(&Names::default(), &[]))).await.expect("loopback has a free port")
}

/// Sends a test event to each endpoint and checks the deliveries that arrive, by mode.
async fn check_arrives(server: &Server, receiver: &mut Receiver, secrets: &Value) {
    let (_, all) = call(server, "GET", "/sandbox/endpoints", &Value::Null).await;
    let endpoints = all["endpoints"].as_array().expect("a list");
    assert_eq!(endpoints.len(), 2, "{all}");
    for endpoint in endpoints {
        let path = format!("/sandbox/endpoints/{}/test", endpoint["id"].as_str().expect("an id"));
        assert_eq!(call(server, "POST", &path, &json!({})).await.0, 200);
        let seen = receiver.next().await;
        assert_eq!(seen.start, "POST /hooks?a=1 HTTP/1.1");
        assert_eq!(seen.header("Host"), Some(receiver.address.to_string().as_str()), "its own name");
        let mode = endpoint["mode"].as_str().expect("a mode");
        let secret = secrets[format!("{mode}_secret")].as_str().expect("a secret");
        assert!(is_signed(&seen, "X-Service-Signature", secret), "{mode}: {seen:?}");
    }
}

#[tokio::test]
async fn a_handler_that_is_added_at_start_gets_the_webhooks_of_both_modes() {
    let (server, mut receiver) = (open().await, Receiver::plain(ReceiverBehavior::Says(OK)).await);
    let to = format!("http://{}/hooks?a=1", receiver.address);
    let handler = LocalHandler::parse(&to).expect("a handler");
    let forwarded = server.forward_to(&handler).await.expect("it is new");
    assert_eq!((&*forwarded.to, &*forwarded.url), (&*to, handler.url()));
    let secrets = serde_json::to_value(&forwarded).expect("strings are JSON");
    check_arrives(&server, &mut receiver, &secrets).await;
    let again = server.forward_to(&handler).await.expect_err("everything would come twice");
    assert!(again.to_string().contains("is already the target of a forward"), "{again}");
}

#[tokio::test]
async fn a_handler_is_added_while_the_server_runs() {
    let (server, mut receiver) = (open().await, Receiver::plain(ReceiverBehavior::Says(OK)).await);
    let to = format!("http://{}/hooks?a=1", receiver.address);
    let mut document = Document::read();
    let mut judged = |method: &str, status: u16, response: &Value| {
        let operation = Operation { method: method.to_owned(), path: PATH.to_owned() };
        document.judge(&operation, status, response).unwrap_or_else(|why| panic!("{why}: {response}"));
    };
    let (status, response) = call(&server, "POST", PATH, &json!({ "to": to })).await;
    assert_eq!(status, 200, "{response}");
    judged("POST", status, &response);
    check_arrives(&server, &mut receiver, &response["forward"]).await;
    let (status, response) = call(&server, "GET", PATH, &Value::Null).await;
    judged("GET", status, &response);
    let host = receiver.address.to_string().replace(['.', ':'], "-");
    assert_eq!(response["forwards"], json!([format!("https://{host}.example=http://{}", receiver.address)]));

    for (method, body, status) in [
        ("POST", json!({ "to": to }), 409),
        ("POST", json!({}), 422),
        ("POST", json!({ "to": "localhost:3000" }), 422),
        ("POST", json!({ "to": "http://localhost", "from": "x" }), 422),
        ("POST", json!({ "to": "http://localhost", "account": "nobody" }), 422),
        ("DELETE", json!({}), 405),
    ] {
        let (found, response) = call(&server, method, PATH, &body).await;
        assert_eq!(found, status, "{method} {body}: {response}");
        if method == "POST" {
            judged(method, status, &response);
        }
    }
}

#[tokio::test]
async fn forwards_are_bounded() {
    let server = open().await;
    let (mut taken, mut refused, mut path) = (0, Value::Null, PATH.to_owned());
    for port in 1..=257 {
        // An account has at most 50 endpoints in each mode.
        if port % 50 == 0 {
            let (_, world) = call(&server, "POST", "/sandbox/worlds", &json!({})).await;
            path = format!("/w/{}{PATH}", world["world"].as_str().expect("an id"));
        }
        let body = json!({ "to": format!("http://localhost:{port}/") });
        let (status, response) = call(&server, "POST", &path, &body).await;
        if status != 200 {
            refused = response;
            break;
        }
        taken += 1;
    }
    assert_eq!(taken, 256, "{refused}");
    assert!(
        refused["message"].as_str().is_some_and(|text| text.contains("There are 256 forwards")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_forward_ends_with_the_last_world_that_has_it() {
    let server = open().await;
    let open_world = async |body: Value| {
        let (status, response) = call(&server, "POST", "/sandbox/worlds", &body).await;
        assert_eq!(status, 201, "{response}");
        response["world"].as_str().expect("an id").to_owned()
    };
    let forwards =
        async || call(&server, "GET", PATH, &Value::Null).await.1["forwards"].as_array().map(Vec::len);
    let end = async |world: &str| {
        assert_eq!(call(&server, "DELETE", &format!("/sandbox/worlds/{world}"), &Value::Null).await.0, 200);
    };

    let (first, second) = (open_world(json!({})).await, open_world(json!({})).await);
    for world in [&first, &second] {
        let body = json!({ "to": "http://localhost:3000/" });
        assert_eq!(call(&server, "POST", &format!("/w/{world}{PATH}"), &body).await.0, 200);
    }
    let branch = open_world(json!({ "from": { "world": second } })).await;
    for (ended, left) in [(first, 1), (second, 1), (branch, 0)] {
        end(&ended).await;
        assert_eq!(forwards().await, Some(left), "{ended}");
    }
}

#[tokio::test]
async fn a_forward_without_room_for_its_endpoints_is_undone() {
    let server = open().await;
    // The maximum number of endpoints in one of the modes.
    for n in 0..50 {
        let body = json!({ "url": format!("https://shop-{n}.sim/"), "mode": "test" });
        assert_eq!(call(&server, "POST", "/sandbox/endpoints", &body).await.0, 200);
    }
    let (status, response) = call(&server, "POST", PATH, &json!({ "to": "http://localhost:3000" })).await;
    let why = response["errors"]["to"][0].as_str().unwrap_or_default();
    let expected = "A forward needs an endpoint in each mode: There are 50 webhook endpoints already";
    assert!(status == 422 && why.starts_with(expected), "{response}");
    assert_eq!(response["errors"].as_object().map(serde_json::Map::len), Some(1), "{response}");
    let (_, all) = call(&server, "GET", "/sandbox/endpoints", &Value::Null).await;
    let live = |value: &&Value| value["mode"] == "live" && value["status"] != "removed";
    assert_eq!(all["endpoints"].as_array().expect("a list").iter().filter(live).count(), 0, "{all}");
    assert_eq!(call(&server, "GET", PATH, &Value::Null).await.1["forwards"], json!([]));
}

#[tokio::test]
async fn simulated_deliveries_allow_no_forwards() {
    let server = Server::start(config(SenderConfig::default())).await.expect("loopback has a free port");
    let (status, response) = call(&server, "POST", PATH, &json!({ "to": "http://localhost:3000" })).await;
    assert_eq!(status, 409, "{response}");
}
