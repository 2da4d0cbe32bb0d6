//! [`Local`]: the server inside another program's test.

use std::net::TcpStream;

use reference_server::{ClockKind, Config, Local};
use testkit::{Message, Request};

fn call(server: &Local, request: Request<'_>) -> Message {
    let host = server.url().strip_prefix("http://").expect("a plain address");
    testkit::call(host, Request { host, ..request }).expect("it answers")
}

#[test]
fn a_server_starts_by_one_line_and_stops_on_drop() {
    let server = Local::start().expect("a free port");
    let url = server.url().to_owned();
    for (mode, key) in [("live", server.live_key()), ("test", server.test_key())] {
        let answer = call(&server, Request { key: Some(key), ..Request::get("/v1/account") });
        assert!(answer.body.contains(&format!(r#""mode":"{mode}""#)), "{answer:?}");
    }
    drop(server);
    let host = url.strip_prefix("http://").expect("a plain address");
    assert!(TcpStream::connect(host).is_err(), "the port is closed");
}

#[test]
fn a_frozen_clock_moves_only_by_the_sandbox() {
    let server = Local::frozen("2026-01-05T09:00:00Z").expect("a free port");
    for (by, now) in [("1us", "2026-01-05T09:00:00.000001Z"), ("31m", "2026-01-05T09:31:00.000001Z")] {
        let answer = server.sandbox("advance", &format!(r#"{{"by":"{by}"}}"#)).expect("a span");
        assert!(answer.contains(now), "{answer}");
    }
    let refused = server.sandbox("advance", r#"{"by":"soon"}"#).expect_err("no span");
    assert!(refused.to_string().contains("30s"), "{refused}");
    let refused = Local::frozen("today").map(|_| ()).expect_err("no moment");
    assert!(refused.to_string().contains("`today`"), "{refused}");
}

#[test]
fn two_servers_have_equal_but_separate_worlds() {
    let [one, two] = [(); 2].map(|()| Local::frozen("2026-01-05T09:00:00Z").expect("a free port"));
    assert_eq!(one.live_key(), two.live_key());
    assert_ne!(one.url(), two.url());
    one.sandbox("advance", r#"{"by":"1d"}"#).expect("a span");
    assert!(two.sandbox("advance", r#"{"by":"1s"}"#).expect("a span").contains("2026-01-05T09:00:01"));
}

#[tokio::test]
async fn a_local_server_works_inside_a_runtime() {
    let server = Local::with(Config { clock: ClockKind::Frozen, rate_limit: None, ..Config::local() });
    let server = server.expect("a free port");
    assert!(
        server
            .sandbox("mine", r#"{"mode":"live","asset":"BTC","blocks":2}"#)
            .expect("a coin")
            .contains("happened")
    );
}

#[test]
fn a_port_in_use_is_an_error() {
    let server = Local::start().expect("a free port");
    let address = server.url().strip_prefix("http://").expect("a plain address").parse().expect("an address");
    let second = Local::with(Config { address, ..Config::local() }).map(|_| ());
    assert_eq!(second.expect_err("it is taken").kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn pages_show_a_charge_with_metadata() {
    let server = Local::frozen("2026-01-05T09:00:00Z").expect("a free port");
    let body = r#"{"asset":"BTC","amount":"5","currency":"EUR","customer":{"name":"Jo","metadata":{"n":1}},"metadata":{"order":7}}"#;
    let key = Some(server.live_key());
    let charge = call(&server, Request { method: "POST", key, body, ..Request::get("/v1/charges") }).json();
    let code = charge["data"]["code"].as_str().expect("a charge");
    let of_dashboard = format!("/dashboard/acme/live/charges/{code}");
    for path in [&format!("/c/{code}"), &of_dashboard] {
        let page = call(&server, Request { key, ..Request::get(path) });
        assert_eq!(page.status, 200, "{path}: {page:?}");
    }
    assert!(call(&server, Request::get(&of_dashboard)).body.contains("order"));
}
