//! Attacks by remote clients that appear local, and on the end of the clock's range.

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, MeasureResult, Unit};
use super::context::{CaseContext, CaseFailure, Host};
use testkit::Connection;

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "tunnel",
        title: "a remote client without the token, through a tunnel or a proxy on this machine",
        bounds: &[
            Bound { title: "paths accessible without the token", most: 0, unit: Unit::Count },
            Bound { title: "paths that refuse the token", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: tunnel,
    },
    AttackCase {
        name: "clock-far",
        title: "the sandbox and a test key move the clock far into the future",
        bounds: &[
            Bound { title: "jumps beyond the limit that are accepted", most: 0, unit: Unit::Count },
            Bound { title: "jumps within the limit that are refused", most: 0, unit: Unit::Count },
            Bound { title: "later requests of a live key that get 429", most: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: clock_far,
    },
    AttackCase {
        name: "clock-end",
        title: "the clock reaches its end while a key is at its limit",
        bounds: &[Bound { title: "later requests of that key that get 429", most: 0, unit: Unit::Count }],
        is_long: false,
        run: clock_end,
    },
];

/// The paths that open the sandbox and the dashboard, and create keys.
const PATHS: [(&str, &str, &str); 4] = [
    ("GET", "/sandbox", ""),
    ("POST", "/sandbox/keys", r#"{"account":"acme","mode":"live"}"#),
    ("GET", "/sandbox/deliveries", ""),
    ("GET", "/dashboard/acme/live", ""),
];
/// The headers that common proxies add.
const TRACES: [&str; 8] = [
    "Forwarded: for=192.0.2.9",
    "Via: 1.1 proxy",
    "X-Forwarded-For: 192.0.2.9",
    "X-Forwarded-Host: a.example",
    "X-Forwarded-Proto: https",
    "X-Real-IP: 192.0.2.9",
    "CF-Connecting-IP: 192.0.2.9",
    "True-Client-IP: 192.0.2.9",
];

/// Returns `true` if a path is accessible, over a new connection.
fn is_accessible(
    host: &Host,
    version: &str,
    header: &str,
    (method, path, body): (&str, &str, &str),
) -> Result<bool, CaseFailure> {
    let mut connection = Connection::open(&host.address)?;
    let (address, length) = (&host.address, body.len());
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    connection.send(format!(
        "{method} {path} HTTP/{version}\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{header}\r\n{body}"
    ))?;
    Ok(matches!(connection.message()?.status, 200..=399))
}

fn tunnel(context: &CaseContext) -> MeasureResult {
    let (mut open, mut shut) = (0, 0);
    let local = context.serve(&[])?;
    for path in PATHS {
        // For the first server, the tunnel adds headers of a proxy or uses an old protocol; for the second one, it
        // looks like the client.
        for trace in TRACES {
            open += u64::from(is_accessible(&local, "1.1", trace, path)?);
        }
        open += u64::from(is_accessible(&local, "1.0", "", path)?);
    }
    let public = context.serve(&["--public-url", "https://pay.example"])?;
    let token = format!("Authorization: Bearer {}", public.token);
    for path in PATHS {
        open += u64::from(is_accessible(&public, "1.1", "", path)?);
        // The dashboard accepts the token by a form.
        let needs_form = path.1.starts_with("/dashboard");
        shut += u64::from(!needs_form && !is_accessible(&public, "1.1", &token, path)?);
    }
    Ok(vec![open, shut])
}

/// Calls the tool that moves the clock. Returns `true` if the clock moved.
fn tool_moves_clock(host: &mut Host, arguments: &Value) -> Result<bool, CaseFailure> {
    let key = host.test.clone();
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "advance", "arguments": arguments },
    });
    let answer = host.call("POST", "/mcp", Some(&key), &message)?;
    answer["result"]["isError"]
        .as_bool()
        .map(|is_error| !is_error)
        .ok_or_else(|| CaseFailure::Broken(format!("the tool returned {answer}")))
}

fn clock_far(context: &CaseContext) -> MeasureResult {
    let mut host = context.serve_limited(&["--clock", "frozen"])?;
    let (mut taken, mut refused) = (0, 0);
    for far in
        [json!({ "by": "99999999h" }), json!({ "to": "9999-12-31T23:59:59Z" }), json!({ "by": "4000d" })]
    {
        taken += u64::from(host.post("/sandbox/advance", &far).is_ok());
        taken += u64::from(tool_moves_clock(&mut host, &far)?);
    }
    taken += u64::from(tool_moves_clock(&mut host, &json!({ "by": "400d" }))?);
    refused += u64::from(host.post("/sandbox/advance", &json!({ "by": "3650d" })).is_err());
    refused += u64::from(!tool_moves_clock(&mut host, &json!({ "by": "365d" }))?);
    Ok(vec![taken, refused, count_rate_limited(&host, 100)?])
}

fn clock_end(context: &CaseContext) -> MeasureResult {
    // From a second before the end of the range to the end.
    let start = ["--start", "9999-12-31T23:59:59Z", "--clock", "fast", "--speed", "1000000"];
    let host = context.serve_limited(&start)?;
    let _ = count_rate_limited(&host, 121)?;
    Ok(vec![count_rate_limited(&host, 121)?])
}

/// Sends requests with the live key; returns the number of responses with 429.
fn count_rate_limited(host: &Host, count: usize) -> Result<u64, CaseFailure> {
    let mut connection = Connection::open(&host.address)?;
    let mut refused = 0;
    for _ in 0..count {
        refused += u64::from(connection.call("GET", "/v1/account", Some(&host.live), "")?.status == 429);
    }
    Ok(refused)
}
