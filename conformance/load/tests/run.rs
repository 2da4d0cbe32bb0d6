//! Runs against small servers with scripted responses.

use std::{
    num::NonZeroU32,
    ops::ControlFlow,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use load::{Pace, Plan, Report, RunProgress, StartError, Work, run};
use testkit::Message;

/// Starts a server. The handler returns the bytes of a response, and `true` to close the connection after it.
fn server(handler: impl Fn(&Message) -> (String, bool) + Send + Sync + 'static) -> String {
    let address = testkit::serve(move |request, connection| {
        let (response, closes) = handler(request);
        connection.send(response)?;
        Ok(if closes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    format!("http://{}", address.unwrap())
}

/// Returns a response with 200 and this body.
fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn plan(url: &str, pace: Pace, work: Work) -> Plan {
    Plan {
        url: url.parse().unwrap(),
        pace,
        duration: Duration::from_millis(300),
        connections: 3,
        threads: Some(2),
        ca_pem: None,
        work,
    }
}

fn paths() -> Work {
    Work::Paths { key: Some("k".into()), paths: vec!["/a".into(), "/b?c=d".into()] }
}

fn per_second(rate: u32) -> Pace {
    Pace::PerSecond(NonZeroU32::new(rate).unwrap())
}

#[track_caller]
fn report(url: &str, pace: Pace, work: Work) -> Report {
    run(&plan(url, pace, work), |_| ControlFlow::Continue(())).expect("the plan is valid")
}

#[test]
fn a_rate_is_kept_and_every_request_is_counted() {
    let url = server(|request| {
        let is_planned = ["GET /a HTTP/1.1", "GET /b?c=d HTTP/1.1"].contains(&request.start_line.as_str());
        assert!(is_planned && request.header("Authorization") == Some("Bearer k"), "{request:?}");
        (ok("{}"), false)
    });
    let report = report(&url, per_second(500), paths());
    assert_eq!((report.responses + report.never_sent, report.statuses.len()), (150, 1), "{report:?}");
    assert!(report.is_clean() && report.corrected && report.requested_rate == Some(500), "{report:?}");
    assert!(report.latency_ns.p50 > 0 && report.latency_ns.p50 <= report.latency_ns.max, "{report:?}");
}

#[test]
fn max_pace_has_no_latency_correction() {
    let url = server(|_| (ok("{}"), false));
    let report = report(&url, Pace::Max, paths());
    assert!(report.responses > 0 && report.is_clean() && !report.corrected, "{report:?}");
    assert_eq!(report.bytes, report.responses * ok("{}").len() as u64);
}

#[test]
fn chunks_interim_responses_and_closed_connections_are_parsed() {
    let responses = [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.0 200 OK\r\n\r\n{}",
    ];
    for response in responses {
        let closes = response.contains("close") || response.starts_with("HTTP/1.0");
        let url = server(move |_| (response.to_owned(), closes));
        let report = report(&url, per_second(100), paths());
        assert!(report.is_clean() && report.responses > 0, "{response}: {report:?}");
    }
}

#[test]
fn endless_interim_responses_end_a_request() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(4_000);
    let has_responded = AtomicBool::new(false);
    // The run starts only if the first request gets a valid response.
    let url = server(move |_| {
        let response = if has_responded.swap(true, Relaxed) { interim.clone() } else { ok("{}") };
        (response, false)
    });
    let report = report(&url, per_second(100), paths());
    let errors: Vec<_> = report.errors.keys().collect();
    assert_eq!(errors, ["response head and interim responses exceed 64 KiB"], "{report:?}");
}

#[test]
fn the_rate_limit_is_respected_and_reported() {
    let limited = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 60\r\ncontent-length: 0\r\n\r\n";
    let url = server(move |_| (limited.to_owned(), false));
    let at_a_rate = report(&url, per_second(100), paths());
    assert!(at_a_rate.held_back > 0 && at_a_rate.paused_millis >= 60_000, "{at_a_rate:?}");
    assert!(
        at_a_rate.responses < 30 && at_a_rate.notes.iter().any(|note| note.contains("429")),
        "{at_a_rate:?}"
    );
    assert_eq!(at_a_rate.rate_achieved, 0, "refused requests do not count");
    let at_max_pace = report(&url, Pace::Max, paths());
    assert!(
        at_max_pace.responses <= 3 && at_max_pace.millis < 300,
        "the run ends without waiting for the end of the pause: {at_max_pace:?}"
    );
}

#[test]
fn an_interrupted_run_reports_its_responses() {
    // Requests for `/b` get no response.
    let url =
        server(
            |request| {
                if request.path().starts_with("/b") { (String::new(), false) } else { (ok("{}"), false) }
            },
        );
    for pace in [per_second(100), Pace::Max] {
        let plan = Plan { duration: Duration::from_secs(600), ..plan(&url, pace, paths()) };
        let stop_after_first = |progress: RunProgress| match progress.responses {
            0 => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        let report = run(&plan, stop_after_first).expect("the plan is valid");
        assert!(report.interrupted && report.responses > 0 && report.millis < 600_000, "{report:?}");
        assert!(
            report.responses + report.never_sent < 1_000,
            "requests not yet due are not counted: {report:?}"
        );
    }
}

#[test]
fn an_invalid_response_counts_as_an_error() {
    for (response, error) in [
        ("", "connection closed"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}", "more bytes than Content-Length states"),
        ("nothing\r\n\r\n", "response is not HTTP/1.x"),
    ] {
        let is_first = AtomicBool::new(true);
        let url = server(move |_| {
            // The run starts only if the first request gets a valid response.
            let is_first = is_first.swap(false, Relaxed);
            if is_first { (ok("{}"), true) } else { (response.to_owned(), true) }
        });
        let report = report(&url, per_second(50), paths());
        assert_eq!(report.responses, 0, "{response}: {report:?}");
        assert!(report.errors.contains_key(error) && !report.is_clean(), "{response}: {report:?}");
    }
}

#[track_caller]
fn check_rejected(url: &str, work: Work, expected: &str) {
    match run(&plan(url, Pace::Max, work), |_| ControlFlow::Continue(())) {
        Err(StartError::Usage(message) | StartError::Unreachable(message)) => {
            assert!(message.contains(expected), "{message}");
        }
        Ok(report) => panic!("the run was not rejected: {report:?}"),
    }
}

#[test]
fn charges_are_created_only_in_test_mode() {
    let account =
        |mode: &str| format!(r#"{{"data":{{}},"meta":{{"mode":"{mode}","accepted_assets":["LTC"]}}}}"#);
    let (live, test) = (account("live"), account("test"));
    let write = || Work::Write { key: "k".into(), asset: None };
    let url = server(move |request| {
        assert!(
            request.start_line.starts_with("GET /v1/account "),
            "nothing is written with a live key: {request:?}"
        );
        (ok(&live), false)
    });
    check_rejected(&url, write(), "is a live key");
    let url = server(move |request| match request.start_line.starts_with("POST /v1/charges ") {
        true => {
            assert_eq!(request.body, r#"{"amount":"49.90","asset":"LTC","description":"load"}"#);
            ("HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}".to_owned(), false)
        }
        false => (ok(&test), false),
    });
    let report = report(&url, per_second(50), write());
    assert!(report.is_clean() && report.statuses.contains_key(&201), "{report:?}");
}

#[test]
fn an_invalid_plan_or_unreachable_target_is_rejected_with_a_reason() {
    check_rejected("ftp://127.0.0.1/", paths(), "its scheme is neither http nor https");
    check_rejected("http://u:p@127.0.0.1/", paths(), "it contains a user name or password");
    let url = server(|_| (ok("{}"), false));
    check_rejected(&url, Work::Paths { key: None, paths: vec!["/a b".into()] }, "`/a b` is not a path");
    check_rejected(&url, Work::Read { key: "k\r\nx: y".into() }, "the key is empty or contains");
    let free = testkit::free_address().unwrap();
    check_rejected(&format!("http://{free}"), paths(), "connection refused");
}
