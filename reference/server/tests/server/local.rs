//! [`Local`]: a server that runs inside the test of another program.

use std::net::TcpStream;

use reference_server::{ClockKind, Config, Local};
use testkit::{Message, Request};

fn call(server: &Local, request: Request<'_>) -> Message {
    let host = server.url().strip_prefix("http://").expect("the URL has no TLS");
    testkit::call(host, Request { host, ..request }).expect("the server responds")
}

#[test]
fn a_server_starts_with_one_call_and_stops_on_drop() {
    let server = Local::start().expect("a free port");
    let url = server.url().to_owned();
    for (mode, key) in [("live", server.live_key()), ("test", server.test_key())] {
        let response = call(&server, Request { key: Some(key), ..Request::get("/v1/account") });
        assert!(response.body.contains(&format!(r#""mode":"{mode}""#)), "{response:?}");
    }
    drop(server);
    let host = url.strip_prefix("http://").expect("the URL has no TLS");
    assert!(TcpStream::connect(host).is_err(), "the port is closed");
}

#[test]
fn a_frozen_clock_is_advanced_only_by_the_sandbox() {
    let server = Local::frozen("2026-01-05T09:00:00Z").expect("a free port");
    for (by, now) in [("1us", "2026-01-05T09:00:00.000001Z"), ("31m", "2026-01-05T09:31:00.000001Z")] {
        let response =
            server.sandbox("advance", &format!(r#"{{"by":"{by}"}}"#)).expect("the duration is valid");
        assert!(response.contains(now), "{response}");
    }
    let refused = server.sandbox("advance", r#"{"by":"soon"}"#).expect_err("the duration is invalid");
    assert!(refused.to_string().contains("30s"), "{refused}");
    let refused = Local::frozen("today").map(|_| ()).expect_err("the start is invalid");
    assert!(refused.to_string().contains("`today`"), "{refused}");
}

#[test]
fn two_servers_have_separate_worlds_with_equal_keys() {
    let [first, second] = [(); 2].map(|()| Local::frozen("2026-01-05T09:00:00Z").expect("a free port"));
    assert_eq!(first.live_key(), second.live_key());
    assert_ne!(first.url(), second.url());
    first.sandbox("advance", r#"{"by":"1d"}"#).expect("the duration is valid");
    assert!(
        second
            .sandbox("advance", r#"{"by":"1s"}"#)
            .expect("the duration is valid")
            .contains("2026-01-05T09:00:01")
    );
}

#[tokio::test]
async fn a_local_server_works_inside_a_runtime() {
    let server = Local::with(Config { clock: ClockKind::Frozen, rate_limit: None, ..Config::local() });
    let server = server.expect("a free port");
    assert!(
        server
            .sandbox("mine", r#"{"mode":"live","asset":"BTC","blocks":2}"#)
            .expect("the request is valid")
            .contains("happened")
    );
}

#[test]
fn a_port_in_use_is_an_error() {
    let server = Local::start().expect("a free port");
    let address =
        server.url().strip_prefix("http://").expect("the URL has no TLS").parse().expect("an address");
    let second = Local::with(Config { address, ..Config::local() }).map(|_| ());
    assert_eq!(second.expect_err("the port is in use").kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn pages_show_charges_with_metadata() {
    let server = Local::frozen("2026-01-05T09:00:00Z").expect("a free port");
    let body = r#"{"asset":"BTC","amount":"5","currency":"EUR","customer":{"name":"Jo","metadata":{"n":1}},"metadata":{"order":7}}"#;
    let key = Some(server.live_key());
    let charge = call(&server, Request { method: "POST", key, body, ..Request::get("/v1/charges") }).json();
    let code = charge["data"]["code"].as_str().expect("a charge");
    let dashboard_path = format!("/dashboard/acme/live/charges/{code}");
    for path in [&format!("/c/{code}"), &dashboard_path] {
        let page = call(&server, Request { key, ..Request::get(path) });
        assert_eq!(page.status, 200, "{path}: {page:?}");
    }
    assert!(call(&server, Request::get(&dashboard_path)).body.contains("order"));
}
