//! Pages for browsers and JSON for programs, chosen by the request's headers.

use reference_server::{ClockKind, Server};
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
