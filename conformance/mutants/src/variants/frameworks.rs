//! Correct services with the defaults of a framework: many choices at once.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    NO_CHALLENGE, Variant, replace_links, rewrite_body_text, rewrite_status, rewrite_times, set_choices,
};
use crate::fake::{EditableResponse, FakeServer, Limiter, RetryAfter};

pub(super) const VARIANTS: &[Variant] = &[
    Variant { name: "with the defaults of Laravel", warns: NO_CHALLENGE, choose: laravel },
    Variant { name: "with the defaults of Django", warns: &[], choose: django },
    Variant { name: "with the defaults of Rails", warns: &[], choose: rails },
    Variant { name: "with the defaults of Express", warns: NO_CHALLENGE, choose: express },
    Variant { name: "with the defaults of Spring", warns: &[], choose: spring },
    Variant { name: "with the defaults of a Go program", warns: NO_CHALLENGE, choose: golang },
];

/// Pages with `from` and `to`, a window from the first request, escaped slashes.
fn laravel(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    server.response_time = Duration::from_millis(8);
    rewrite_status(server, 401, |response| {
        response.remove_header("www-authenticate");
        response.body = json!({ "message": "Unauthenticated." });
    });
    rewrite_status(server, 422, |response| {
        let message = "The per page field must not be greater than 100.";
        response.body = json!({ "message": message, "errors": { "per_page": [message] } });
    });
    rewrite_status(server, 429, |response| {
        response.body = json!({ "message": "Too Many Attempts." });
        response.set_header("x-ratelimit-limit", "120");
        response.set_header("x-ratelimit-remaining", "0");
    });
    let mut remaining = 10_000;
    server.rewrite_responses(move |request, response| {
        if response.status == 404 {
            let id = request.path.rsplit('/').next().unwrap_or_default();
            response.body =
                json!({ "message": format!("No query results for model [App\\Models\\Event] {id}") });
        }
        if response.status == 200 && request.is_list() {
            let rows = response.body["data"].as_array().map_or(0, Vec::len);
            let meta = response.body["meta"].as_object_mut().expect("`meta` is an object");
            meta.insert("from".into(), if rows == 0 { Value::Null } else { json!(1) });
            meta.insert("to".into(), if rows == 0 { Value::Null } else { json!(rows) });
            meta.insert("path".into(), json!(request.path));
            meta.insert(
                "links".into(),
                json!([{ "url": null, "label": "&laquo; Previous", "active": false }]),
            );
        }
        remaining -= 1;
        response.set_header("x-ratelimit-remaining", &remaining.to_string());
        response.set_header("cache-control", "no-cache, private");
        response.set_header("access-control-allow-origin", "*");
    });
    rewrite_body_text(server, |body| body.to_string().replace('/', "\\/"));
}

/// A sliding log, validated filters, single events without an envelope.
fn django(server: &mut FakeServer) {
    set_choices(server, |choices| {
        choices.bare_event = true;
        choices.clamps_page_size = true;
        choices.unmatched_object_filter_404 = true;
    });
    rewrite_times(server, |time| time.replace(".000000", ""));
    rewrite_status(server, 401, |response| {
        response.body = json!({ "detail": "Invalid token." });
        response.set_header("www-authenticate", "Bearer realm=\"api\"");
    });
    rewrite_status(server, 429, |response| {
        let seconds = response.header("retry-after").unwrap_or_default().to_owned();
        let detail = format!("Request was throttled. Expected available in {seconds} seconds.");
        response.body = json!({ "detail": detail });
    });
    server.rewrite_responses(|request, response| {
        match response.status {
            404 if request.is_list() => {
                let message = "Select a valid choice. That choice is not one of the available choices.";
                *response = EditableResponse::json(400, json!({ "charge": [message] }));
            }
            404 => response.body = json!({ "detail": "No Event matches the given query." }),
            _ => {}
        }
        response.set_header("vary", "Accept, Cookie");
        response.set_header("allow", "GET, HEAD, OPTIONS");
        response.set_header("x-frame-options", "DENY");
        response.set_header("server", "WSGIServer/0.2");
    });
    server.http_settings.closes_after_response = true;
}

/// A window aligned with clock minutes, request ids, weak ETags.
fn rails(server: &mut FakeServer) {
    server.limiter = Limiter::AlignedWindow;
    server.response_time = Duration::from_millis(12);
    server.clock.advance(Duration::from_secs(31));
    rewrite_times(server, |time| time.replace(".000000", ".000"));
    rewrite_status(server, 401, |response| {
        response.body = json!({ "error": "HTTP Token: Access denied." });
        response.set_header("www-authenticate", "Token realm=\"Application\"");
    });
    rewrite_status(server, 404, |response| response.body = json!({ "status": 404, "error": "Not Found" }));
    rewrite_status(server, 429, |response| {
        response.body = json!({ "error": "Throttle limit reached. Retry later." })
    });
    rewrite_status(server, 422, |response| {
        response.status = 400;
        response.body = json!({ "status": 400, "error": "Bad Request" });
    });
    let mut count = 0;
    server.rewrite_responses(move |_, response| {
        count += 1;
        response.set_header("x-request-id", &format!("{:032x}", count * 7919));
        response.set_header("x-runtime", &format!("0.0{count:05}"));
        response.set_header("content-type", "application/json; charset=utf-8");
        if response.status == 200 {
            response
                .set_header("etag", &format!("W/\"{:016x}\"", response.body.to_string().len() * 31 + count));
            response.set_header("cache-control", "max-age=0, private, must-revalidate");
        }
    });
}

/// A window from the first request, ETags, errors as objects, links of only a query.
fn express(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    server.counts_refused = true;
    set_choices(server, |choices| {
        choices.bare_event = true;
        choices.clamps_page_size = true;
        choices.relative_links = true;
    });
    rewrite_times(server, |time| time.replace(".000000", ".000"));
    rewrite_status(server, 401, |response| {
        response.remove_header("www-authenticate");
        response.body = json!({ "error": { "code": "UNAUTHORIZED", "message": "jwt malformed" } });
    });
    rewrite_status(server, 429, |response| {
        response.body = json!({ "error": { "code": "RATE_LIMITED", "message": "Slow down, please" } });
        response.set_header("ratelimit-policy", "120;w=60");
    });
    server.rewrite_responses(|request, response| {
        if response.status == 404 {
            let message = format!("Cannot GET {}", request.path);
            response.body = json!({ "error": { "code": "NOT_FOUND", "message": message } });
        }
        let body = response.body.to_string();
        let sum = body.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        response.set_header("etag", &format!("W/\"{:x}-{sum:x}\"", body.len()));
        response.set_header("x-powered-by", "Express");
        response.set_header("keep-alive", "timeout=5");
        response.set_header("content-type", "application/json; charset=utf-8");
    });
    server.http_settings.title_case = true;
}

/// A token bucket, problem details with a timestamp, chunked bodies, `last_page` 0 of an empty list.
fn spring(server: &mut FakeServer) {
    server.limiter = Limiter::Bucket;
    server.response_time = Duration::from_millis(25);
    set_choices(server, |choices| {
        choices.problem_json = true;
        choices.empty_last_page = 0;
        choices.utc_suffix = "+00:00";
    });
    server.rewrite_responses(|_, response| {
        if response.status == 401 {
            response.body = json!({ "title": "Unauthorized", "detail": "Full authentication is required" });
            response.set_header("content-type", "application/problem+json");
        }
        if response.status == 429 {
            let seconds = response.header("retry-after").unwrap_or_default().to_owned();
            response.set_header("x-rate-limit-retry-after-seconds", &seconds);
        }
    });
    let mut nanos = 0;
    server.rewrite_responses(move |request, response| {
        nanos += 1;
        if response.status >= 400 {
            response.body["instance"] = json!(request.path);
            response.body["timestamp"] = json!(format!("2026-01-01T00:00:00.{nanos:09}Z"));
        }
        response.set_header("vary", "Origin, Access-Control-Request-Method");
        response.set_header("x-content-type-options", "nosniff");
        response.set_header("pragma", "no-cache");
    });
    server.http_settings.chunked = true;
}

/// Short errors, times in nanoseconds, `Retry-After` as a date, links without a host.
fn golang(server: &mut FakeServer) {
    server.retry_after = RetryAfter::Date;
    server.prefix = "/api";
    set_choices(server, |choices| choices.bare_event = true);
    rewrite_times(server, |time| time.replace('Z', "042Z"));
    server.rewrite_responses(|_, response| {
        replace_links(response, |link| {
            link.find("/api/").map_or(link.to_owned(), |start| link[start..].to_owned())
        });
    });
    server.rewrite_responses(|_, response| {
        let message = match response.status {
            401 => "unauthorized",
            404 => "not found",
            422 => "bad value",
            429 => "too many",
            _ => return,
        };
        response.remove_header("www-authenticate");
        response.body = json!({ "error": message });
    });
    rewrite_body_text(server, |body| format!("{body}\n"));
}
