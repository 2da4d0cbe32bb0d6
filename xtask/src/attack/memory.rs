//! Attacks on memory: responses that clients do not receive, and a call that advances the clock by ten years.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, MeasureResult, Unit};
use super::context::{CaseContext, CaseFailure, Host};
use testkit::Connection;

const MEBIBYTE: u64 = 1024 * 1024;
/// The time after which a refused client retries.
const AGAIN: Duration = Duration::from_millis(1_000);

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "readers",
        title: "40 clients ask for a page of 20 MB (short: 5 MB) each and read nothing",
        bounds: &[Bound { title: "memory above idle", most: 64, unit: Unit::Mebibytes }],
        is_long: false,
        run: readers,
    },
    AttackCase {
        name: "tricklers",
        title: "10 clients ask for a page of 20 MB each and read a few bytes a second",
        bounds: &[
            Bound {
                title: "until another client has received such a page",
                most: 10_000,
                unit: Unit::Millis,
            },
            Bound { title: "memory above idle", most: 96, unit: Unit::Mebibytes },
        ],
        is_long: true,
        run: slow_readers,
    },
    AttackCase {
        name: "advance",
        title: "the clock is advanced by ten years, with 5,000 charges and 5 endpoints that are down",
        bounds: &[
            Bound { title: "longest wait of another account's request", most: 50, unit: Unit::Moment },
            Bound { title: "memory above idle", most: 400, unit: Unit::Mebibytes },
            Bound { title: "size of the answer", most: 2, unit: Unit::Mebibytes },
        ],
        is_long: true,
        run: advance,
    },
];

const LARGE: &str = "/v1/invoices?per_page=100";

/// Starts a reference with a list whose page has the maximum size; also returns that size.
fn with_a_large_page(context: &CaseContext) -> Result<(Host, usize), CaseFailure> {
    let mut host = context.serve(&["--clock", "frozen"])?;
    let text = "x".repeat(2_000);
    let item = json!({ "description": text, "quantity": "1", "unit_amount": "1.00" });
    let invoice = json!({ "currency": "EUR", "memo": text, "items": vec![item; 100] });
    let live = host.live.clone();
    for _ in 0..context.long_or_short(100, 25) {
        host.call("POST", "/v1/invoices", Some(&live), &invoice)?;
    }
    let size = Connection::open(&host.address)?.call("GET", LARGE, Some(&live), "")?.body.len();
    Ok((host, size))
}

/// Opens clients that have requested the large page.
fn waiting_clients(host: &Host, count: usize) -> Result<Vec<Connection>, CaseFailure> {
    let mut connections = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(&host.address)?;
        connection.send_request("GET", LARGE, Some(&host.live), "")?;
        connections.push(connection);
    }
    Ok(connections)
}

fn readers(context: &CaseContext) -> MeasureResult {
    let (host, size) = with_a_large_page(context)?;
    if size < 4_000_000 {
        return Err(CaseFailure::Broken(format!("the page has only {size} bytes")));
    }
    let idle = host.memory()?;
    host.forget_peak()?;
    let _lazy = waiting_clients(&host, 40)?;
    // All of them have been answered or refused once later requests have been answered.
    for _ in 0..4 {
        request_small(&host)?;
    }
    Ok(vec![mebibytes_above(host.peak()?, idle)])
}

/// Requests a small response over a new connection.
fn request_small(host: &Host) -> Result<(), CaseFailure> {
    let answer = Connection::open(&host.address)?.call("GET", "/v1/account", Some(&host.live), "")?;
    match answer.status {
        200 => Ok(()),
        status => Err(CaseFailure::Broken(format!("a small request gets {status}"))),
    }
}

fn slow_readers(context: &CaseContext) -> MeasureResult {
    let (host, _) = with_a_large_page(context)?;
    let idle = host.memory()?;
    host.forget_peak()?;
    let mut connections = waiting_clients(&host, 10)?;
    let over = AtomicBool::new(false);
    let waited = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Relaxed) {
                // A closed client reconnects and repeats its request.
                for connection in &mut connections {
                    if !connection.read_some() {
                        let Ok(mut again) = Connection::open(&host.address) else { continue };
                        let _ = again.send_request("GET", LARGE, Some(&host.live), "");
                        *connection = again;
                    }
                }
                thread::sleep(Duration::from_millis(200));
            }
        });
        // All of them have started once this request has been answered.
        let waited = request_small(&host).and_then(|()| large_page_millis(&host));
        over.store(true, Relaxed);
        waited
    })?;
    Ok(vec![waited, mebibytes_above(host.peak()?, idle)])
}

/// Returns the time until a normal client has received the large page.
fn large_page_millis(host: &Host) -> Result<u64, CaseFailure> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let answer = Connection::open(&host.address)?.call("GET", LARGE, Some(&host.live), "");
        if answer.is_ok_and(|answer| answer.status == 200) {
            break;
        }
        thread::sleep(AGAIN);
    }
    Ok(millis(began.elapsed()))
}

fn advance(context: &CaseContext) -> MeasureResult {
    let mut host = context.serve(&["--clock", "frozen"])?;
    host.post("/sandbox/merchants", &json!({ "name": "shop", "state": "down", "answers": [] }))?;
    for n in 0..5 {
        host.post("/sandbox/endpoints", &json!({ "mode": "live", "url": format!("https://shop.sim/{n}") }))?;
    }
    let charge = json!({ "asset": "BTC", "amount": "10.00", "currency": "EUR" });
    let live = host.live.clone();
    for _ in 0..context.long_or_short(5_000, 1_000) {
        host.call("POST", "/v1/charges", Some(&live), &charge)?;
    }
    let neighbour = host.post("/sandbox/accounts", &json!({ "id": "neighbour" }))?;
    let other = neighbour["keys"]["live"].as_str().ok_or("an account has no key")?;
    let idle = host.memory()?;
    host.forget_peak()?;
    let mut far = Connection::open(&host.address)?;
    let (over, longest) = (AtomicBool::new(false), AtomicU64::new(0));
    let size = thread::scope(|scope| {
        let watching = scope.spawn(|| -> Result<(), CaseFailure> {
            let mut connection = Connection::open(&host.address)?;
            let paths = ["/healthz", "/v1/account", "/v1/charges?per_page=1"];
            for path in paths.iter().cycle() {
                let began = Instant::now();
                connection.call("GET", path, Some(other), "")?;
                longest.fetch_max(millis(began.elapsed()), Relaxed);
                if over.load(Relaxed) {
                    break;
                }
            }
            Ok(())
        });
        let answer = far.call("POST", "/sandbox/advance", None, r#"{"by":"3650d"}"#);
        over.store(true, Relaxed);
        watching.join().map_err(|_| "the watching client panicked")??;
        let answer = answer?;
        let size = answer.body.len();
        answer.success()?;
        Ok::<_, CaseFailure>(size)
    })?;
    let overview = host.call("GET", "/sandbox", None, &Value::Null)?;
    if overview["happenings"].as_u64().unwrap_or(0) < 10_000 {
        return Err(CaseFailure::Broken("fewer than 10,000 events happened during the advance".to_owned()));
    }
    Ok(vec![longest.load(Relaxed), mebibytes_above(host.peak()?, idle), (size as u64).div_ceil(MEBIBYTE)])
}

fn mebibytes_above(peak: u64, idle: u64) -> u64 {
    peak.saturating_sub(idle).div_ceil(MEBIBYTE)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
