//! Pages for browsers and JSON for programs, chosen by the request's headers.

use reference_server::{ClockKind, Server};
use serde_json::{Value, json};
use testkit::Message;

use super::{Client, config};

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
const PROGRAM: &str = "Accept: */*\r\n";

async fn start() -> (Server, Client) {
    let server = Server::start(config(ClockKind::Frozen)).await.expect("loopback has a free port");
    let client = Client::connect(server.address()).await;
    (server, client)
}

async fn call(client: &mut Client, method: &str, path: &str, accept: &str) -> Message {
    client.call(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{accept}\r\n")).await
}

#[tokio::test]
async fn a_browser_gets_pages_and_a_program_gets_json() {
    let (_server, mut client) = start().await;
    let (html, json) = ("text/html; charset=utf-8", "application/json");
    for (method, path, accept, status, kind, part) in [
        ("GET", "/", BROWSER, 200, html, "href=\"/docs\""),
        ("GET", "/", PROGRAM, 200, json, "\"docs\":\"/docs\""),
        ("GET", "/nowhere", BROWSER, 404, html, "no page at this address"),
        ("GET", "/nowhere", PROGRAM, 404, json, "Not found."),
        ("GET", "/docs/nowhere", BROWSER, 404, html, "no page at this address"),
        ("GET", "/docs/nowhere", PROGRAM, 404, json, "Not found."),
        ("POST", "/nowhere", BROWSER, 404, json, "Not found."),
        ("POST", "/docs", BROWSER, 405, json, "GET and HEAD only"),
        ("GET", "/v1/nowhere", BROWSER, 401, json, "Unauthenticated."),
        ("GET", "/sandbox/nowhere", BROWSER, 404, json, "message"),
        ("GET", "/docs", PROGRAM, 200, html, "<h1>API</h1>"),
    ] {
        let response = call(&mut client, method, path, accept).await;
        let found = (response.status, response.header("content-type"));
        assert_eq!(found, (status, Some(kind)), "{method} {path} {accept}: {}", response.body);
        assert!(response.body.contains(part), "{method} {path} {accept}: {part} in {}", response.body);
        if kind == html {
            assert!(response.header("content-security-policy").is_some(), "{path}");
        }
    }
}

#[tokio::test]
async fn the_docs_show_calls_and_load_only_local_resources() {
    let (server, mut client) = start().await;
    let page = call(&mut client, "GET", "/docs", BROWSER).await.body;
    for call in [
        "POST /v1/charges",
        "GET /v1/events/{id}",
        "POST /sandbox/pay",
        "POST /sandbox/forwards",
        "GET /healthz",
    ] {
        let (method, path) = call.split_once(' ').expect("a method and a path");
        let heading = format!("{method}</span> <code dir=\"ltr\">{path}</code>");
        assert!(page.contains(&heading), "{call}");
    }
    // The URLs in attributes of the page: everything that a browser would load.
    for (n, _) in page.match_indices(" src=\"").chain(page.match_indices(" href=\"")) {
        let url = page[n..].split('"').nth(1).expect("a value");
        assert!(url.starts_with(['/', '#', '?']), "{url}");
    }
    assert!(page.contains("http://localhost/v1/charges"), "the examples use the address of the request");
    let keys = server.first_keys().expect("the world has no internal error");
    assert!(!page.contains(&keys.live) && !page.contains(server.sandbox_token()), "no secret is shown");
}

/// The page offers no calls to users on other machines or behind a proxy.
#[tokio::test]
async fn the_docs_send_calls_from_this_machine_only() {
    let (_server, mut client) = start().await;
    for (proxy_line, is_offered) in [("", true), ("Via: 1.1 proxy\r\n", false)] {
        let page = call(&mut client, "GET", "/docs", &format!("{BROWSER}{proxy_line}")).await;
        assert_eq!(page.status, 200);
        for part in ["data-try", "data-make-key"] {
            assert_eq!(page.body.contains(part), is_offered, "{proxy_line}{part}");
        }
        assert!(page.body.contains("hmac.compare_digest"), "the code samples are shown to everyone");
    }
}

/// Sends an API request with this key and returns the `data` of the response.
async fn call_api(client: &mut Client, key: &str, method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let response = client
        .call(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
    assert!((200..300).contains(&response.status), "{path}: {}", response.body);
    let response: Value = serde_json::from_str(&response.body).expect("JSON");
    response["data"].clone()
}

#[tokio::test]
async fn head_and_prefetches_are_no_views_of_hosted_pages() {
    let (server, mut client) = start().await;
    let key = server.first_keys().expect("the server has first keys").test;
    let link = json!({ "title": "Milk", "pricing_type": "open", "currency": "EUR" });
    let link = call_api(&mut client, &key, "POST", "/v1/payment-links", &link).await;
    let invoice = json!({ "customer_name": "Ada", "customer_email": "ada@shop.example", "currency": "EUR", "amount": "5" });
    let invoice = call_api(&mut client, &key, "POST", "/v1/invoices", &invoice).await;
    let code = |object: &Value| object["code"].as_str().expect("a code").to_owned();
    let (link, invoice) = (code(&link), code(&invoice));

    let prefetch = format!("{BROWSER}Sec-Purpose: prefetch;prerender\r\n");
    for (method, headers, views) in [("HEAD", BROWSER, 0), ("GET", prefetch.as_str(), 0), ("GET", BROWSER, 1)]
    {
        for path in [format!("/pay/{link}"), format!("/i/{invoice}")] {
            client.send(format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n")).await;
            let page = if method == "HEAD" { client.head().await } else { client.message().await };
            assert_eq!(page.expect("the server responds").status, 200, "{method} {path}");
        }
        let path = format!("/v1/payment-links/{link}");
        let link = call_api(&mut client, &key, "GET", &path, &Value::Null).await;
        assert_eq!(link["views_count"], views, "{method} {headers}");
        let path = format!("/v1/invoices/{invoice}");
        let invoice = call_api(&mut client, &key, "GET", &path, &Value::Null).await;
        assert_eq!(invoice["viewed_at"].is_string(), views == 1, "{method} {headers}");
    }
}
