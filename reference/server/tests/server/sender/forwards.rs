//! Forwards to handlers on the developer's machine, added at start and while the server runs.

use reference_server::{LocalHandler, SenderConfig, Server};
use serde_json::{Value, json};

use super::{
    RESPONSE_200, call, config,
    log::is_signed,
    receiver::{Receiver, ReceiverBehavior},
    resolver::TestResolver,
    sender_config,
};
use crate::openapi::{Document, Operation};

const PATH: &str = "/sandbox/forwards";

async fn start() -> Server {
    Server::start(config(sender_config(&TestResolver::default(), &[])))
        .await
        .expect("loopback has a free port")
}

/// Sends a test event to the endpoint of each mode, and checks the requests that arrive and their signatures.
async fn check_deliveries(server: &Server, receiver: &mut Receiver, secrets: &Value) {
    let (_, all) = call(server, "GET", "/sandbox/endpoints", &Value::Null).await;
    let endpoints = all["endpoints"].as_array().expect("a list");
    assert_eq!(endpoints.len(), 2, "{all}");
    for endpoint in endpoints {
        let path = format!("/sandbox/endpoints/{}/test", endpoint["id"].as_str().expect("an id"));
        assert_eq!(call(server, "POST", &path, &json!({})).await.0, 200);
        let request = receiver.next_request().await;
        assert_eq!(request.start_line, "POST /hooks?a=1 HTTP/1.1");
        assert_eq!(
            request.header("Host"),
            Some(receiver.address.to_string().as_str()),
            "the host of the handler"
        );
        let mode = endpoint["mode"].as_str().expect("a mode");
        let secret = secrets[format!("{mode}_secret")].as_str().expect("a secret");
        assert!(is_signed(&request, "X-Service-Signature", secret), "{mode}: {request:?}");
    }
}

#[tokio::test]
async fn a_handler_added_at_start_gets_the_webhooks_of_both_modes() {
    let (server, mut receiver) =
        (start().await, Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await);
    let to = format!("http://{}/hooks?a=1", receiver.address);
    let handler = LocalHandler::parse(&to).expect("the URL is valid");
    // `serve --forward-to` calls this after the start.
    let forwarded = server.forward_to(&handler).await.expect("the handler has no forward yet");
    assert_eq!((&*forwarded.to, &*forwarded.url), (&*to, handler.url()));
    let secrets = serde_json::to_value(&forwarded).expect("strings are JSON");
    check_deliveries(&server, &mut receiver, &secrets).await;
    let error = server.forward_to(&handler).await.expect_err("a second forward to a handler is refused");
    assert!(error.to_string().contains("is already the target of a forward"), "{error}");
}

#[tokio::test]
async fn a_handler_is_added_while_the_server_runs() {
    let (server, mut receiver) =
        (start().await, Receiver::http(ReceiverBehavior::RespondAndClose(RESPONSE_200)).await);
    let to = format!("http://{}/hooks?a=1", receiver.address);
    let mut document = Document::read();
    let mut check_documented = |method: &str, status: u16, response: &Value| {
        let operation = Operation { method: method.to_owned(), path: PATH.to_owned() };
        document
            .validate_response(&operation, status, response)
            .unwrap_or_else(|error| panic!("{error}: {response}"));
    };
    let (status, response) = call(&server, "POST", PATH, &json!({ "to": to })).await;
    assert_eq!(status, 200, "{response}");
    check_documented("POST", status, &response);
    check_deliveries(&server, &mut receiver, &response["forward"]).await;
    let (status, response) = call(&server, "GET", PATH, &Value::Null).await;
    check_documented("GET", status, &response);
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
            check_documented(method, status, &response);
        }
    }
}

#[tokio::test]
async fn a_server_has_at_most_256_forwards() {
    let server = start().await;
    let (mut count, mut refused, mut path) = (0, Value::Null, PATH.to_owned());
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
        count += 1;
    }
    assert_eq!(count, 256, "{refused}");
    assert!(
        refused["message"].as_str().is_some_and(|text| text.contains("There are 256 forwards")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_forward_is_removed_with_the_last_world_that_uses_it() {
    let server = start().await;
    let open_world = async |body: Value| {
        let (status, response) = call(&server, "POST", "/sandbox/worlds", &body).await;
        assert_eq!(status, 201, "{response}");
        response["world"].as_str().expect("an id").to_owned()
    };
    let count_forwards =
        async || call(&server, "GET", PATH, &Value::Null).await.1["forwards"].as_array().map(Vec::len);
    let close_world = async |world: &str| {
        assert_eq!(call(&server, "DELETE", &format!("/sandbox/worlds/{world}"), &Value::Null).await.0, 200);
    };

    let (first, second) = (open_world(json!({})).await, open_world(json!({})).await);
    for world in [&first, &second] {
        let body = json!({ "to": "http://localhost:3000/" });
        assert_eq!(call(&server, "POST", &format!("/w/{world}{PATH}"), &body).await.0, 200);
    }
    let branch = open_world(json!({ "from": { "world": second } })).await;
    for (closed, remaining) in [(first, 1), (second, 1), (branch, 0)] {
        close_world(&closed).await;
        assert_eq!(count_forwards().await, Some(remaining), "{closed}");
    }
}

#[tokio::test]
async fn a_forward_whose_endpoints_cannot_be_added_is_rolled_back() {
    let server = start().await;
    // The maximum number of endpoints in one of the modes.
    for n in 0..50 {
        let body = json!({ "url": format!("https://shop-{n}.sim/"), "mode": "test" });
        assert_eq!(call(&server, "POST", "/sandbox/endpoints", &body).await.0, 200);
    }
    let (status, response) = call(&server, "POST", PATH, &json!({ "to": "http://localhost:3000" })).await;
    let message = response["errors"]["to"][0].as_str().unwrap_or_default();
    let expected = "A forward needs an endpoint in each mode: There are 50 webhook endpoints already";
    assert!(status == 422 && message.starts_with(expected), "{response}");
    assert_eq!(response["errors"].as_object().map(serde_json::Map::len), Some(1), "{response}");
    let (_, all) = call(&server, "GET", "/sandbox/endpoints", &Value::Null).await;
    let is_live = |value: &&Value| value["mode"] == "live" && value["status"] != "removed";
    assert_eq!(all["endpoints"].as_array().expect("a list").iter().filter(is_live).count(), 0, "{all}");
    assert_eq!(call(&server, "GET", PATH, &Value::Null).await.1["forwards"], json!([]));
}

#[tokio::test]
async fn forwards_are_refused_when_deliveries_are_simulated() {
    let server = Server::start(config(SenderConfig::default())).await.expect("loopback has a free port");
    let (status, response) = call(&server, "POST", PATH, &json!({ "to": "http://localhost:3000" })).await;
    assert_eq!(status, 409, "{response}");
}
