//! Correct services with the defaults of a framework: many choices at once.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    NO_CHALLENGE, Variant, each_link, rewrite_body_text, rewrite_status, rewrite_times, set_choices,
};
use crate::fake::{FakeServer, Limiter, Reply, RetryAfter};

pub(super) const VARIANTS: &[Variant] = &[
    Variant { name: "as a Laravel developer would", warns: NO_CHALLENGE, choose: laravel },
    Variant { name: "as a Django developer would", warns: &[], choose: django },
    Variant { name: "as a Rails developer would", warns: &[], choose: rails },
    Variant { name: "as an Express developer would", warns: NO_CHALLENGE, choose: express },
    Variant { name: "as a Spring developer would", warns: &[], choose: spring },
    Variant { name: "as a developer of Go's own library would", warns: NO_CHALLENGE, choose: golang },
];

/// Length-aware paginator, window from the first request, escaped slashes.
fn laravel(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    server.tick = Duration::from_millis(8);
    rewrite_status(server, 401, |reply| {
        reply.drop_header("www-authenticate");
        reply.body = json!({ "message": "Unauthenticated." });
    });
    rewrite_status(server, 422, |reply| {
        let why = "The per page field must not be greater than 100.";
        reply.body = json!({ "message": why, "errors": { "per_page": [why] } });
    });
    rewrite_status(server, 429, |reply| {
        reply.body = json!({ "message": "Too Many Attempts." });
        reply.set("x-ratelimit-limit", "120");
        reply.set("x-ratelimit-remaining", "0");
    });
    let mut left = 10_000;
    server.rewrite(move |request, reply| {
        if reply.status == 404 {
            let id = request.path.rsplit('/').next().unwrap_or_default();
            reply.body =
                json!({ "message": format!("No query results for model [App\\Models\\Event] {id}") });
        }
        if reply.status == 200 && request.is_list() {
            let rows = reply.body["data"].as_array().map_or(0, Vec::len);
            let meta = reply.body["meta"].as_object_mut().expect("`meta` is an object");
            meta.insert("from".into(), if rows == 0 { Value::Null } else { json!(1) });
            meta.insert("to".into(), if rows == 0 { Value::Null } else { json!(rows) });
            meta.insert("path".into(), json!(request.path));
            meta.insert(
                "links".into(),
                json!([{ "url": null, "label": "&laquo; Previous", "active": false }]),
            );
        }
        left -= 1;
        reply.set("x-ratelimit-remaining", &left.to_string());
        reply.set("cache-control", "no-cache, private");
        reply.set("access-control-allow-origin", "*");
    });
    rewrite_body_text(server, |body| body.to_string().replace('/', "\\/"));
}

/// Sliding log, filters with choices, single objects without an envelope.
fn django(server: &mut FakeServer) {
    set_choices(server, |choices| {
        choices.bare_event = true;
        choices.clamps = true;
        choices.foreign_filter_404 = true;
    });
    rewrite_times(server, |time| time.replace(".000000", ""));
    rewrite_status(server, 401, |reply| {
        reply.body = json!({ "detail": "Invalid token." });
        reply.set("www-authenticate", "Bearer realm=\"api\"");
    });
    rewrite_status(server, 429, |reply| {
        let seconds = reply.header("retry-after").unwrap_or_default().to_owned();
        let detail = format!("Request was throttled. Expected available in {seconds} seconds.");
        reply.body = json!({ "detail": detail });
    });
    server.rewrite(|request, reply| {
        match reply.status {
            404 if request.is_list() => {
                let why = "Select a valid choice. That choice is not one of the available choices.";
                *reply = Reply::json(400, json!({ "charge": [why] }));
            }
            404 => reply.body = json!({ "detail": "No Event matches the given query." }),
            _ => {}
        }
        reply.set("vary", "Accept, Cookie");
        reply.set("allow", "GET, HEAD, OPTIONS");
        reply.set("x-frame-options", "DENY");
        reply.set("server", "WSGIServer/0.2");
    });
    server.wire.closed = true;
}

/// Window aligned with clock minutes, request ids, weak ETags.
fn rails(server: &mut FakeServer) {
    server.limiter = Limiter::AlignedMinute;
    server.tick = Duration::from_millis(12);
    server.clock.advance(Duration::from_secs(31));
    rewrite_times(server, |time| time.replace(".000000", ".000"));
    rewrite_status(server, 401, |reply| {
        reply.body = json!({ "error": "HTTP Token: Access denied." });
        reply.set("www-authenticate", "Token realm=\"Application\"");
    });
    rewrite_status(server, 404, |reply| reply.body = json!({ "status": 404, "error": "Not Found" }));
    rewrite_status(server, 429, |reply| {
        reply.body = json!({ "error": "Throttle limit reached. Retry later." })
    });
    rewrite_status(server, 422, |reply| {
        reply.status = 400;
        reply.body = json!({ "status": 400, "error": "Bad Request" });
    });
    let mut count = 0;
    server.rewrite(move |_, reply| {
        count += 1;
        reply.set("x-request-id", &format!("{:032x}", count * 7919));
        reply.set("x-runtime", &format!("0.0{count:05}"));
        reply.set("content-type", "application/json; charset=utf-8");
        if reply.status == 200 {
            reply.set("etag", &format!("W/\"{:016x}\"", reply.body.to_string().len() * 31 + count));
            reply.set("cache-control", "max-age=0, private, must-revalidate");
        }
    });
}

/// Random ids, a window per key, ETags, errors as objects.
fn express(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    server.refusals_count = true;
    set_choices(server, |choices| {
        choices.bare_event = true;
        choices.clamps = true;
        choices.relative_links = true;
    });
    rewrite_times(server, |time| time.replace(".000000", ".000"));
    rewrite_status(server, 401, |reply| {
        reply.drop_header("www-authenticate");
        reply.body = json!({ "error": { "code": "UNAUTHORIZED", "message": "jwt malformed" } });
    });
    rewrite_status(server, 429, |reply| {
        reply.body = json!({ "error": { "code": "RATE_LIMITED", "message": "Slow down, please" } });
        reply.set("ratelimit-policy", "120;w=60");
    });
    server.rewrite(|request, reply| {
        if reply.status == 404 {
            let message = format!("Cannot GET {}", request.path);
            reply.body = json!({ "error": { "code": "NOT_FOUND", "message": message } });
        }
        let body = reply.body.to_string();
        let sum = body.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        reply.set("etag", &format!("W/\"{:x}-{sum:x}\"", body.len()));
        reply.set("x-powered-by", "Express");
        reply.set("keep-alive", "timeout=5");
        reply.set("content-type", "application/json; charset=utf-8");
    });
    server.wire.title_case = true;
}

/// Token bucket, problem details with a timestamp, chunked bodies, an empty list without pages.
fn spring(server: &mut FakeServer) {
    server.limiter = Limiter::Bucket;
    server.tick = Duration::from_millis(25);
    set_choices(server, |choices| {
        choices.problem_json = true;
        choices.empty_last_page = 0;
        choices.utc = "+00:00";
    });
    server.rewrite(|_, reply| {
        if reply.status == 401 {
            reply.body = json!({ "title": "Unauthorized", "detail": "Full authentication is required" });
            reply.set("content-type", "application/problem+json");
        }
        if reply.status == 429 {
            let seconds = reply.header("retry-after").unwrap_or_default().to_owned();
            reply.set("x-rate-limit-retry-after-seconds", &seconds);
        }
    });
    let mut moment = 0;
    server.rewrite(move |request, reply| {
        moment += 1;
        if reply.status >= 400 {
            reply.body["instance"] = json!(request.path);
            reply.body["timestamp"] = json!(format!("2026-01-01T00:00:00.{moment:09}Z"));
        }
        reply.set("vary", "Origin, Access-Control-Request-Method");
        reply.set("x-content-type-options", "nosniff");
        reply.set("pragma", "no-cache");
    });
    server.wire.chunked = true;
}

/// Short errors, times in nanoseconds, `Retry-After` as a date, links without a host.
fn golang(server: &mut FakeServer) {
    server.retry_after = RetryAfter::Date;
    server.prefix = "/api";
    set_choices(server, |choices| choices.bare_event = true);
    rewrite_times(server, |time| time.replace('Z', "042Z"));
    server.rewrite(|_, reply| {
        each_link(reply, |link| link.find("/api/").map_or(link.to_owned(), |at| link[at..].to_owned()));
    });
    server.rewrite(|_, reply| {
        let short = match reply.status {
            401 => "unauthorized",
            404 => "not found",
            422 => "bad value",
            429 => "too many",
            _ => return,
        };
        reply.drop_header("www-authenticate");
        reply.body = json!({ "error": short });
    });
    rewrite_body_text(server, |body| format!("{body}\n"));
}
