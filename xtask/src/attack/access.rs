//! Attacks by remote clients that appear local, and by clients that move the clock to the end of its range.

use serde_json::{Value, json};

use super::case::{AttackCase, Bound, FiguresResult, Unit};
use super::context::{CaseContext, CaseFailure, ServedReference};
use testkit::Connection;

pub(super) const CASES: &[AttackCase] = &[
    AttackCase {
        name: "tunnel",
        title: "a remote client without the token, through a tunnel or a proxy on this machine",
        bounds: &[
            Bound { title: "requests accepted without the token", max: 0, unit: Unit::Count },
            Bound { title: "requests rejected with the token", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: tunnel,
    },
    AttackCase {
        name: "clock-far",
        title: "the sandbox and a test key move the clock far into the future",
        bounds: &[
            Bound { title: "jumps beyond the limit that are accepted", max: 0, unit: Unit::Count },
            Bound { title: "jumps within the limit that are rejected", max: 0, unit: Unit::Count },
            Bound { title: "later requests of a live key that get 429", max: 0, unit: Unit::Count },
        ],
        is_long: false,
        run: clock_far,
    },
    AttackCase {
        name: "clock-end",
        title: "the clock reaches its end while a key is at its limit",
        bounds: &[Bound { title: "later requests of that key that get 429", max: 0, unit: Unit::Count }],
        is_long: false,
        run: clock_end,
    },
];

/// Requests to the sandbox and the dashboard: method, path, body.
const LOCAL_REQUESTS: [(&str, &str, &str); 4] = [
    ("GET", "/sandbox", ""),
    ("POST", "/sandbox/keys", r#"{"account":"acme","mode":"live"}"#),
    ("GET", "/sandbox/deliveries", ""),
    ("GET", "/dashboard/acme/live", ""),
];
/// The headers that common proxies add.
const PROXY_HEADERS: [&str; 8] = [
    "Forwarded: for=192.0.2.9",
    "Via: 1.1 proxy",
    "X-Forwarded-For: 192.0.2.9",
    "X-Forwarded-Host: a.example",
    "X-Forwarded-Proto: https",
    "X-Real-IP: 192.0.2.9",
    "CF-Connecting-IP: 192.0.2.9",
    "True-Client-IP: 192.0.2.9",
];

/// One request more than a key may send in a minute.
const ABOVE_RATE_LIMIT: usize = 121;

/// Sends a request over a new connection. Returns `true` if the response is a success or a redirect.
fn is_accessible(
    server: &ServedReference,
    version: &str,
    header_line: &str,
    (method, path, body): (&str, &str, &str),
) -> Result<bool, CaseFailure> {
    let mut connection = Connection::open(&server.address)?;
    let (address, content_length) = (&server.address, body.len());
    let header_line = if header_line.is_empty() { String::new() } else { format!("{header_line}\r\n") };
    connection.send(format!(
        "{method} {path} HTTP/{version}\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {content_length}\r\n{header_line}\r\n{body}"
    ))?;
    Ok(matches!(connection.message()?.status, 200..=399))
}

fn tunnel(context: &CaseContext) -> FiguresResult {
    let (mut accessible, mut token_rejected) = (0, 0);
    let local = context.serve(&[])?;
    for request in LOCAL_REQUESTS {
        // Without `--public-url`, the server accepts local clients without the token. It must recognize a tunnel by
        // its proxy headers or by HTTP/1.0.
        for header in PROXY_HEADERS {
            accessible += u64::from(is_accessible(&local, "1.1", header, request)?);
        }
        accessible += u64::from(is_accessible(&local, "1.0", "", request)?);
    }
    let public = context.serve(&["--public-url", "https://pay.example"])?;
    let token = format!("Authorization: Bearer {}", public.sandbox_token);
    // With `--public-url`, every client needs the token, because a tunnel may look like a local client.
    for request in LOCAL_REQUESTS {
        accessible += u64::from(is_accessible(&public, "1.1", "", request)?);
        // The dashboard accepts the token in a form, not in a header.
        let needs_form = request.1.starts_with("/dashboard");
        token_rejected += u64::from(!needs_form && !is_accessible(&public, "1.1", &token, request)?);
    }
    Ok(vec![accessible, token_rejected])
}

/// Calls the MCP tool that moves the clock. Returns `true` if the tool reports no error.
fn advance_by_tool(server: &mut ServedReference, arguments: &Value) -> Result<bool, CaseFailure> {
    let key = server.test_key.clone();
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "advance", "arguments": arguments },
    });
    let response = server.call("POST", "/mcp", Some(&key), &message)?;
    response["result"]["isError"]
        .as_bool()
        .map(|is_error| !is_error)
        .ok_or_else(|| CaseFailure::Broken(format!("the tool returned {response}")))
}

fn clock_far(context: &CaseContext) -> FiguresResult {
    let mut server = context.serve_limited(&["--clock", "frozen"])?;
    let (mut accepted, mut rejected) = (0, 0);
    // The limit is 3650 days for the sandbox, and 365 days for the tool.
    for jump in
        [json!({ "by": "99999999h" }), json!({ "to": "9999-12-31T23:59:59Z" }), json!({ "by": "4000d" })]
    {
        accepted += u64::from(server.post("/sandbox/advance", &jump).is_ok());
        accepted += u64::from(advance_by_tool(&mut server, &jump)?);
    }
    accepted += u64::from(advance_by_tool(&mut server, &json!({ "by": "400d" }))?);
    rejected += u64::from(server.post("/sandbox/advance", &json!({ "by": "3650d" })).is_err());
    rejected += u64::from(!advance_by_tool(&mut server, &json!({ "by": "365d" }))?);
    Ok(vec![accepted, rejected, count_rate_limited(&server, 100)?])
}

fn clock_end(context: &CaseContext) -> FiguresResult {
    // The clock starts one second before the end of its range, and reaches the end at once.
    let start = ["--start", "9999-12-31T23:59:59Z", "--clock", "fast", "--speed", "1000000"];
    let server = context.serve_limited(&start)?;
    let _ = count_rate_limited(&server, ABOVE_RATE_LIMIT)?;
    Ok(vec![count_rate_limited(&server, ABOVE_RATE_LIMIT)?])
}

/// Sends `count` requests with the live key. Returns the number of responses with 429.
fn count_rate_limited(server: &ServedReference, count: usize) -> Result<u64, CaseFailure> {
    let mut connection = Connection::open(&server.address)?;
    let mut limited = 0;
    for _ in 0..count {
        limited +=
            u64::from(connection.call("GET", "/v1/account", Some(&server.live_key), "")?.status == 429);
    }
    Ok(limited)
}
