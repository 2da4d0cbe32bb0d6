//! Correct services with the defaults of frameworks that the module `frameworks` lacks, behind gateways, and with
//! limiters, pages and links that differ from the default server.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{
    NO_CHALLENGE, Variant, replace_links, rewrite_body_text, rewrite_status, rewrite_times, set_choices,
    variant,
};
use crate::fake::book::Book;
use crate::fake::http_server::EPOCH_UNIX_SECONDS;
use crate::fake::{FakeServer, Limiter, Request, RetryAfter};

pub(super) const VARIANTS: &[Variant] = &[
    // Frameworks.
    variant("with the defaults of FastAPI", fastapi),
    without_challenge("with the defaults of ASP.NET", aspnet),
    without_challenge("with the defaults of NestJS", nest),
    variant("with the defaults of Flask", flask),
    variant("with the defaults of Symfony", symfony),
    without_challenge("with the defaults of Phoenix", phoenix),
    without_challenge("with the defaults of axum", axum),
    variant("with the defaults of Quarkus", quarkus),
    without_challenge("with the defaults of Fastify", fastify),
    variant("with the defaults of Ktor", ktor),
    // Gateways.
    variant("behind nginx", |server| {
        server.http_settings.closes_after_response = true;
        add_headers(server, |_| vec![("server", "nginx/1.27.3".into()), ("vary", "Accept-Encoding".into())]);
    }),
    variant("behind Envoy", |server| {
        server.http_settings.chunked = true;
        add_headers(server, |count| {
            let millis = (count * 7 % 23).to_string();
            vec![("server", "istio-envoy".into()), ("x-envoy-upstream-service-time", millis)]
        });
    }),
    variant("behind a CDN that adds headers to each response", |server| {
        add_headers(server, |count| {
            vec![
                ("cf-ray", format!("{:016x}-FRA", count.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
                ("cf-cache-status", "DYNAMIC".into()),
                ("set-cookie", format!("__cf_bm={count:032x}; path=/; HttpOnly; Secure")),
                ("alt-svc", "h3=\":443\"; ma=86400".into()),
            ]
        });
    }),
    variant("behind a cache that forwards all requests", |server| {
        add_headers(server, |count| {
            vec![
                ("via", "1.1 varnish".into()),
                ("age", "0".into()),
                ("x-cache", "MISS".into()),
                ("x-timer", format!("S{}.{count:06},VS0,VE{}", EPOCH_UNIX_SECONDS + count, count % 9)),
                ("cache-control", "private, no-store".into()),
            ]
        });
    }),
    variant("behind a cloud's API gateway", |server| {
        server.prefix = "/prod";
        add_headers(server, |count| {
            vec![
                ("x-amzn-requestid", format!("{count:08x}-7f3e-4ab1-9def-{count:012x}")),
                ("x-amzn-trace-id", format!("Root=1-{count:08x}-{count:024x}")),
                ("x-amz-apigw-id", format!("{count:014x}=")),
            ]
        });
    }),
    variant("behind a gateway with fixed windows and quota headers", |server| {
        server.limiter = Limiter::AlignedWindow;
        add_quota_headers(server, |remaining, seconds_left| {
            vec![
                ("ratelimit-limit", "120".into()),
                ("ratelimit-remaining", remaining.to_string()),
                ("ratelimit-reset", seconds_left.to_string()),
                ("x-kong-upstream-latency", "3".into()),
            ]
        });
    }),
    // Limiters. The response times, here and below, are arbitrary: they spread a burst over time, as real servers do.
    variant("a fixed window with the header fields of the RateLimit draft", |server| {
        server.limiter = Limiter::AlignedWindow;
        // Any time within a window.
        server.clock.advance(Duration::from_secs(17));
        add_quota_headers(server, |remaining, seconds_left| {
            vec![
                ("ratelimit-policy", "\"default\";q=120;w=60".into()),
                ("ratelimit", format!("\"default\";r={remaining};t={seconds_left}")),
            ]
        });
    }),
    variant("a sliding log with a resolution of one second", |server| {
        server.limiter = Limiter::SlidingSeconds;
        server.response_time = Duration::from_millis(15);
    }),
    variant("GCRA", |server| {
        server.limiter = Limiter::Gcra;
        server.response_time = Duration::from_millis(10);
    }),
    variant("GCRA, and Retry-After is a date", |server| {
        server.limiter = Limiter::Gcra;
        server.retry_after = RetryAfter::Date;
    }),
    variant("a window starts with its first request, and a header shows a reset in a minute", |server| {
        server.limiter = Limiter::FromFirst;
        let clock = server.clock.clone();
        server.rewrite_responses(move |_, response| {
            let reset = EPOCH_UNIX_SECONDS + clock.micros() / 1_000_000 + 60;
            response.set_header("x-ratelimit-reset", &reset.to_string());
        });
    }),
    // Pages and links.
    variant("more events than the longest page", use_long_lists),
    variant("more events than the longest page, with the defaults of FastAPI", |server| {
        use_long_lists(server);
        fastapi(server);
    }),
    variant("first and prev omit page=1", |server| {
        server.rewrite_responses(|request, response| {
            if response.status == 200 && request.is_list() {
                replace_links(response, |link| {
                    let (path, query) = link.split_once('?').unwrap_or((link, ""));
                    let kept: Vec<_> = query.split('&').filter(|pair| *pair != "page=1").collect();
                    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
                });
            }
        });
    }),
    variant("links always have per_page", |server| {
        server.rewrite_responses(|request, response| {
            if response.status == 200 && request.is_list() && !request.query.contains_key("per_page") {
                replace_links(response, |link| format!("{link}&per_page=25"));
            }
        });
    }),
    variant("links and meta have additional members", |server| {
        server.rewrite_responses(|request, response| {
            if response.status == 200 && request.is_list() {
                response.body["links"]["self"] = json!(format!("https://pay.example{}", request.path));
                response.body["meta"]["count"] = json!(response.body["data"].as_array().map_or(0, Vec::len));
                response.body["meta"]["has_more"] = json!(response.body["links"]["next"].is_string());
            }
        });
    }),
    variant("an invalid page is read as page 1", |server| {
        server.rewrite_requests(|request| {
            if request.number("page").is_none_or(|page| page == 0) && request.query.contains_key("page") {
                request.query.insert("page".into(), "1".into());
            }
        });
    }),
];

/// Returns a variant for which a warning is expected, because `choose` removes the `WWW-Authenticate` header of a 401.
const fn without_challenge(name: &'static str, choose: fn(&mut FakeServer)) -> Variant {
    Variant { name, warns: NO_CHALLENGE, choose }
}

/// Gives both modes of the account more events than the longest page holds, which takes at least 29 charges. The modes have
/// different numbers of charges, so that a page of the other mode is noticed.
fn use_long_lists(server: &mut FakeServer) {
    server.live = Book::with_long_lists(1, 64);
    server.test = Book::with_long_lists(2, 61);
}

/// Adds header fields to every response. `headers` gets the number of the response.
fn add_headers(server: &mut FakeServer, headers: fn(u64) -> Vec<(&'static str, String)>) {
    let mut count = 0;
    server.rewrite_responses(move |_, response| {
        count += 1;
        for (name, value) in headers(count) {
            response.set_header(name, &value);
        }
    });
}

/// Adds header fields about the quota to every response except 401. `headers` gets the numbers of remaining requests and
/// of remaining seconds in the clock minute.
fn add_quota_headers(
    server: &mut FakeServer,
    headers: fn(remaining: u64, seconds_left: u64) -> Vec<(&'static str, String)>,
) {
    let clock = server.clock.clone();
    let mut served: BTreeMap<(Option<String>, u64), u64> = BTreeMap::new();
    server.rewrite_responses(move |request, response| {
        if response.status == 401 {
            return;
        }
        let (minute, second) = (clock.micros() / 60_000_000, clock.micros() / 1_000_000 % 60);
        let count = served.entry((request.authorization.clone(), minute)).or_default();
        *count = (*count + 1).min(120);
        for (name, value) in headers(120 - *count, 60 - second) {
            response.set_header(name, &value);
        }
    });
}

/// Replaces the bodies of errors. `body` gets the status, the request and the number of the error.
fn replace_error_bodies(
    server: &mut FakeServer,
    content_type: &'static str,
    body: fn(u16, &Request, u64) -> Value,
) {
    let mut count = 0;
    server.rewrite_responses(move |request, response| {
        if response.status >= 400 {
            count += 1;
            response.body = body(response.status, request, count);
            response.set_header("content-type", content_type);
        }
    });
}

/// Returns the reason phrase of an error of the fake server.
fn reason(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        _ => "Bad Request",
    }
}

// The descriptions below omit header fields that name the server or control caches.

/// Errors with `detail`, a list of details for validation errors, single events without an envelope, times in whole
/// seconds. The limiter is the default, a sliding log.
fn fastapi(server: &mut FakeServer) {
    set_choices(server, |choices| choices.bare_event = true);
    rewrite_times(server, |time| time.replace(".000000", ""));
    replace_error_bodies(server, "application/json", |status, _, _| match status {
        422 => json!({ "detail": [{
            "type": "less_than_equal", "loc": ["query", "per_page"],
            "msg": "Input should be less than or equal to 100", "input": "101", "ctx": { "le": 100 },
        }] }),
        status => json!({ "detail": reason(status) }),
    });
    add_headers(server, |_| vec![("server", "uvicorn".into())]);
}

/// Problem details with a trace id, a window from the first request, single events without an envelope, seven
/// decimals of a second, no challenge.
fn aspnet(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    set_choices(server, |choices| choices.bare_event = true);
    rewrite_times(server, |time| time.replace(".000000", ".1234567"));
    rewrite_status(server, 401, |response| response.remove_header("www-authenticate"));
    replace_error_bodies(server, "application/problem+json; charset=utf-8", |status, _, count| {
        json!({
            "type": "https://tools.ietf.org/html/rfc9110#section-15.5",
            "title": reason(status),
            "status": status,
            "traceId": format!("00-{count:032x}-{count:016x}-00"),
        })
    });
    add_headers(server, |_| vec![("server", "Kestrel".into())]);
}

/// Errors with `statusCode` and `message`, those with 404 with `error`, a window from the first request,
/// milliseconds, ETags, no challenge.
fn nest(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    rewrite_times(server, |time| time.replace(".000000", ".000"));
    rewrite_status(server, 401, |response| response.remove_header("www-authenticate"));
    replace_error_bodies(server, "application/json; charset=utf-8", |status, request, _| match status {
        429 => json!({ "statusCode": 429, "message": "ThrottlerException: Too Many Requests" }),
        404 => {
            json!({ "message": format!("Cannot GET {}", request.path), "error": "Not Found", "statusCode": 404 })
        }
        status => json!({ "message": reason(status), "statusCode": status }),
    });
    server.rewrite_responses(|_, response| {
        let body = response.body.to_string();
        let sum = body.bytes().fold(5381_u32, |sum, byte| sum.wrapping_mul(33) ^ u32::from(byte));
        response.set_header("etag", &format!("W/\"{:x}-{sum:x}\"", body.len()));
        response.set_header("x-powered-by", "Express");
    });
}

/// Indented JSON with a final line break, an aligned window, a page size above 100 clamped to 100, errors with
/// `description`.
fn flask(server: &mut FakeServer) {
    server.limiter = Limiter::AlignedWindow;
    set_choices(server, |choices| choices.clamps_page_size = true);
    replace_error_bodies(
        server,
        "application/json",
        |status, _, _| json!({ "code": status, "name": reason(status), "description": "The server refuses the request." }),
    );
    add_headers(server, |_| vec![("server", "Werkzeug/3.1.3 Python/3.13.1".into())]);
    rewrite_body_text(server, |body| serde_json::to_string_pretty(body).expect("valid JSON") + "\n");
}

/// Problem details with `@type`, times in whole seconds with an offset. The limiter is the default, a sliding log.
fn symfony(server: &mut FakeServer) {
    set_choices(server, |choices| choices.utc_suffix = "+00:00");
    rewrite_times(server, |time| time.replace(".000000", ""));
    replace_error_bodies(server, "application/problem+json", |status, _, _| {
        json!({
            "@id": format!("/errors/{status}"), "@type": "hydra:Error", "status": status,
            "type": format!("/errors/{status}"), "title": "An error occurred", "detail": reason(status),
        })
    });
    add_headers(server, |_| {
        vec![("x-robots-tag", "noindex".into()), ("cache-control", "no-cache, private".into())]
    });
}

/// Errors under `errors`, request ids, a token bucket, no challenge.
fn phoenix(server: &mut FakeServer) {
    server.limiter = Limiter::Bucket;
    server.response_time = Duration::from_millis(6);
    rewrite_status(server, 401, |response| response.remove_header("www-authenticate"));
    replace_error_bodies(
        server,
        "application/json; charset=utf-8",
        |status, _, _| json!({ "errors": { "detail": reason(status) } }),
    );
    add_headers(server, |count| {
        vec![
            ("x-request-id", format!("F{:019x}", count.wrapping_mul(7919))),
            ("cache-control", "max-age=0, private, must-revalidate".into()),
        ]
    });
}

/// Short errors, GCRA with a header for the delay, single events without an envelope, nanoseconds, relative links
/// that consist of only a query, no challenge.
fn axum(server: &mut FakeServer) {
    server.limiter = Limiter::Gcra;
    server.response_time = Duration::from_millis(4);
    set_choices(server, |choices| {
        choices.bare_event = true;
        choices.relative_links = true;
    });
    rewrite_times(server, |time| time.replace(".000000", ".123456789"));
    rewrite_status(server, 401, |response| response.remove_header("www-authenticate"));
    replace_error_bodies(
        server,
        "application/json",
        |status, _, _| json!({ "error": reason(status).to_lowercase() }),
    );
    rewrite_status(server, 429, |response| {
        let seconds = response.header("retry-after").unwrap_or_default().to_owned();
        response.set_header("x-ratelimit-after", &seconds);
    });
}

/// Errors with ids, chunked bodies, `last_page` 0 of an empty list.
fn quarkus(server: &mut FakeServer) {
    set_choices(server, |choices| choices.empty_last_page = 0);
    server.http_settings.chunked = true;
    replace_error_bodies(
        server,
        "application/json;charset=UTF-8",
        |status, _, count| json!({ "details": format!("Error id {count:08x}-1"), "title": reason(status), "status": status }),
    );
}

/// Errors with `statusCode`, `error` and `message`, those with 429 also with `code` and a header with the limit, a
/// window from the first request, no challenge.
fn fastify(server: &mut FakeServer) {
    server.limiter = Limiter::FromFirst;
    rewrite_status(server, 401, |response| response.remove_header("www-authenticate"));
    replace_error_bodies(server, "application/json; charset=utf-8", |status, request, _| match status {
        404 => {
            json!({ "message": format!("Route GET:{} not found", request.path), "error": "Not Found", "statusCode": 404 })
        }
        429 => {
            json!({ "statusCode": 429, "code": "FST_ERR_RATE_LIMIT", "error": "Too Many Requests", "message": "Rate limit exceeded, retry in 1 minute" })
        }
        status => json!({ "statusCode": status, "error": reason(status), "message": "Refused" }),
    });
    rewrite_status(server, 429, |response| response.set_header("x-ratelimit-limit", "120"));
}

/// Errors with a null member, times in whole seconds, 404 for a filter by an object that matches nothing.
fn ktor(server: &mut FakeServer) {
    rewrite_times(server, |time| time.replace(".000000", ""));
    set_choices(server, |choices| choices.unmatched_object_filter_404 = true);
    replace_error_bodies(
        server,
        "application/json",
        |status, _, _| json!({ "code": reason(status).to_uppercase().replace(' ', "_"), "message": reason(status), "cause": null }),
    );
}
