//! Correct services with other legal choices: at least one for each choice that the specification leaves open, and several
//! with the defaults of a popular framework. None may fail a required statement.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake::book::Choices;
use crate::fake::{EditableResponse, FakeServer, Limiter, RetryAfter};
use crate::mutant::replace_links;

mod deliveries;
mod deployments;
mod frameworks;
mod limiters;
mod open_choices;
mod stacks;

pub(crate) use self::open_choices::use_named_links;

/// A correct service with a legal choice.
pub struct Variant {
    /// The description of the choice.
    pub name: &'static str,
    /// The `should` statements that it does not satisfy.
    pub warns: &'static [&'static str],
    /// Applies the choice.
    pub choose: fn(&mut FakeServer),
}

/// The `should` statement that services without a `WWW-Authenticate` header do not satisfy.
const NO_CHALLENGE: &[&str] = &["auth.www_authenticate"];

/// All tables of variants.
pub(crate) const TABLES: &[&[Variant]] = &[
    SINGLE_CHOICES,
    frameworks::VARIANTS,
    stacks::VARIANTS,
    deliveries::VARIANTS,
    limiters::VARIANTS,
    open_choices::VARIANTS,
    deployments::VARIANTS,
];

const SINGLE_CHOICES: &[Variant] = &[
    variant("the default server", |_| {}),
    variant("paths have a prefix", |server| server.prefix = "/pay/api"),
    // The body and the media type of errors.
    variant("a 401 has `error`, not `message`", |server| {
        rewrite_status(server, 401, |response| response.body = json!({ "error": "unauthorized" }));
    }),
    variant("a 401 lists its errors", |server| {
        rewrite_status(server, 401, |response| {
            response.body = json!({ "errors": [{ "status": "401", "title": "Unauthorized" }] })
        });
    }),
    variant("a 401 has the format of OAuth", |server| {
        rewrite_status(server, 401, |response| {
            response.body =
                json!({ "error": "invalid_token", "error_description": "The token is not known." });
            response.set_header("www-authenticate", "Bearer realm=\"api\", error=\"invalid_token\"");
        });
    }),
    Variant {
        name: "a 401 has no challenge",
        warns: NO_CHALLENGE,
        choose: |server| rewrite_status(server, 401, |response| response.remove_header("www-authenticate")),
    },
    variant("refusals are problem details", |server| {
        set_choices(server, |choices| choices.problem_json = true);
        rewrite_status(server, 401, |response| use_problem_details(response, "Unauthorized"));
        rewrite_status(server, 429, |response| use_problem_details(response, "Too Many Requests"));
    }),
    variant("a 404 repeats the path", |server| {
        server.rewrite_responses(|request, response| {
            if response.status == 404 {
                response.body = json!({ "message": format!("Cannot GET {}", request.path) });
            }
        });
    }),
    // Retry-After, and the counting of requests.
    variant("Retry-After is a date", |server| server.retry_after = RetryAfter::Date),
    variant("Retry-After is a date, and responses have no Date", |server| {
        server.retry_after = RetryAfter::Date;
        server.http_settings.omits_date = true;
    }),
    variant("Retry-After is always a minute", |server| {
        rewrite_status(server, 429, |response| response.set_header("retry-after", "60"));
    }),
    variant("Retry-After is always a minute, and the window ends earlier", |server| {
        server.limiter = Limiter::AlignedWindow;
        // The window ends after 32 s.
        server.clock.advance(Duration::from_secs(28));
        rewrite_status(server, 429, |response| response.set_header("retry-after", "60"));
    }),
    variant("Retry-After is 61 s", |server| {
        rewrite_status(server, 429, |response| response.set_header("retry-after", "61"));
    }),
    variant("Retry-After is rounded down", |server| {
        server.clock.advance(Duration::from_millis(700));
        rewrite_status(server, 429, |response| {
            let seconds = response.header("retry-after").and_then(|value| value.parse::<u64>().ok());
            response.set_header("retry-after", &(seconds.expect("seconds") - 1).to_string());
        });
    }),
    variant("refused requests count as well", |server| server.counts_refused = true),
    variant("requests with 404 do not count", |server| {
        // Unknown events count toward a limit of their own instead of that of the key. Events of the other mode count.
        server.counted_identity = |request| match request.path.strip_prefix("/v1/events/") {
            Some(id) if !id.contains(PART_OF_EVENT_IDS) => "unknown events".to_owned(),
            _ => request.authorization.clone().unwrap_or_default(),
        };
    }),
    variant("a window starts with its first request", |server| server.limiter = Limiter::FromFirst),
    variant("a window starts with its first request and ends during the burst", |server| {
        server.limiter = Limiter::FromFirst;
        server.response_time = Duration::from_millis(45);
    }),
    variant("fixed windows aligned to the minute", |server| server.limiter = Limiter::AlignedWindow),
    variant("fixed windows aligned to the minute, one ends during the burst", |server| {
        server.limiter = Limiter::AlignedWindow;
        server.response_time = Duration::from_millis(20);
        server.clock.advance(Duration::from_secs(59));
    }),
    variant("a token bucket with fast responses", |server| {
        server.limiter = Limiter::Bucket;
        server.response_time = Duration::from_millis(20);
    }),
    variant("a token bucket with slow responses", |server| {
        server.limiter = Limiter::Bucket;
        server.response_time = Duration::from_millis(100);
    }),
    variant("another client has just used the key", |server| {
        // 30 requests at the start of the clock.
        server.hits.insert(format!("Bearer {}", crate::fake::TEST_KEY), vec![0; 30]);
    }),
    // Pages and filters.
    variant("per_page above 100 is clamped", |server| {
        set_choices(server, |choices| choices.clamps_page_size = true)
    }),
    variant("per_page out of range is refused with 400", |server| {
        rewrite_status(server, 422, |response| response.status = 400)
    }),
    variant("a filter with an unknown value gets 404", |server| {
        set_choices(server, |choices| choices.unmatched_object_filter_404 = true);
    }),
    variant("a filter with an unknown value gets 422", |server| {
        set_choices(server, |choices| choices.unmatched_object_filter_404 = true);
        server.rewrite_responses(|request, response| {
            if response.status == 404 && request.is_list() {
                *response =
                    EditableResponse::json(422, json!({ "message": "The selected value is invalid." }));
            }
        });
    }),
    variant("last_page of an empty list is 0", |server| {
        set_choices(server, |choices| choices.empty_last_page = 0)
    }),
    variant("an empty list has null for all links", |server| {
        server.rewrite_responses(|request, response| {
            if request.is_list() && response.body["meta"]["total"] == 0 {
                response.body["links"] = json!({ "first": null, "last": null, "prev": null, "next": null });
            }
        });
    }),
    variant("a page past the end gets 404", |server| {
        server.rewrite_responses(|request, response| {
            if request.is_list()
                && crate::mutant::is_empty_list(response)
                && request.number("page").is_some_and(|page| page > 1)
            {
                *response = EditableResponse::json(404, json!({ "message": "There is no such page." }));
            }
        });
    }),
    variant("links are only a query", |server| set_choices(server, |choices| choices.relative_links = true)),
    variant("links are only a query, below a prefix", |server| {
        server.prefix = "/pay";
        set_choices(server, |choices| choices.relative_links = true);
    }),
    variant("links have page first and an additional parameter", |server| {
        server.rewrite_responses(|_, response| {
            replace_links(response, |link| {
                let (path, query) = link.split_once('?').unwrap_or((link, ""));
                let mut pairs: Vec<_> = query.split('&').collect();
                pairs.reverse();
                format!("{path}?{}&lang=en", pairs.join("&"))
            });
        });
    }),
    variant("the filter of an invoice also finds the events of its charges", |server| {
        for book in [&mut server.live, &mut server.test] {
            let code = book.invoices[0]["code"].clone();
            for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
                event["charge"]["invoice"] = code.clone();
            }
            book.has_wide_filters = true;
        }
    }),
    variant(
        "the charge and invoice filters return events of both, and only the invoice names its charges",
        |server| {
            for book in [&mut server.live, &mut server.test] {
                book.has_wide_filters = true;
            }
        },
    ),
    variant("invoices may be overdue, and charges have a custom status", |server| {
        for book in [&mut server.live, &mut server.test, &mut server.other_account] {
            let replace_status = |charge: &mut Value| {
                if charge["status"] == "canceled" {
                    charge["status"] = json!("CANCELLED_BY_MERCHANT");
                }
            };
            book.charges.iter_mut().for_each(replace_status);
            book.events.iter_mut().for_each(|event| replace_status(&mut event["charge"]));
            book.invoices[0]["status"] = json!("overdue");
        }
    }),
    variant("list items have a code and a few other fields", |server| {
        server.rewrite_responses(|request, response| {
            if response.status == 200 && matches!(request.path.as_str(), "/v1/charges" | "/v1/invoices") {
                for row in response.body["data"].as_array_mut().into_iter().flatten() {
                    *row = json!({ "code": row["code"], "url": "https://pay.example/x" });
                }
            }
        });
    }),
    variant("items of the lists have no identifier", |server| {
        server.rewrite_responses(|request, response| {
            if response.status == 200 && matches!(request.path.as_str(), "/v1/charges" | "/v1/invoices") {
                for row in response.body["data"].as_array_mut().into_iter().flatten() {
                    *row = json!({ "status": row["status"] });
                }
            }
        });
    }),
    // Events.
    variant("a single event has no envelope", |server| {
        set_choices(server, |choices| choices.bare_event = true)
    }),
    variant("a single event is under `event`, next to `meta`", |server| {
        server.rewrite_responses(|request, response| {
            if request.is_event() && response.status == 200 {
                response.body =
                    json!({ "event": response.body["data"], "meta": { "id": "a7", "type": "answer" } });
            }
        });
    }),
    variant("a single event is in a nested envelope", |server| {
        server.rewrite_responses(|request, response| {
            if request.is_event() && response.status == 200 {
                let event = response.body["data"].take();
                response.body = json!({ "status": "ok", "result": { "took": 3, "event": event } });
            }
        });
    }),
    variant("a sliding window counter", |server| server.limiter = Limiter::SlidingCounter),
    variant("ids are random", |server| {
        for (book_number, book) in
            [(1_u64, &mut server.live), (2, &mut server.test), (3, &mut server.other_account)]
        {
            for (index, event) in (0_u64..).zip(&mut book.events) {
                // An odd factor keeps distinct numbers distinct.
                let mixed = (book_number << 32 | index).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (head, tail) = (mixed >> 32, mixed & 0xffff_ffff_ffff);
                event["id"] = json!(format!("{head:08x}-5f3e-4ab1-9def-{tail:012x}"));
            }
        }
    }),
    variant("ids are in upper case", |server| {
        for book in [&mut server.live, &mut server.test, &mut server.other_account] {
            for event in &mut book.events {
                event["id"] = json!(event["id"].as_str().expect("the id is a string").to_uppercase());
            }
        }
    }),
    variant("UTC is written as an offset of zero", |server| {
        set_choices(server, |choices| choices.utc_suffix = "+00:00")
    }),
    variant("times have no fractions", |server| rewrite_times(server, |time| time.replace(".000000", ""))),
    variant("times are exact to the millisecond", |server| {
        rewrite_times(server, |time| time.replace(".000000", ".123"))
    }),
    variant("times are exact to the nanosecond", |server| {
        rewrite_times(server, |time| time.replace('Z', "321Z"))
    }),
    variant(SAME_SECOND, |server| {
        rewrite_times(server, |_| "2025-12-01T10:00:00.000000Z".to_owned());
    }),
    variant("details contain the changed values", |server| {
        for book in [&mut server.live, &mut server.test] {
            book.events
                .iter_mut()
                .for_each(|event| event["details"] = json!({ "txid": "ab12", "received": "0.5" }));
        }
    }),
    variant("events have additional members", |server| {
        for book in [&mut server.live, &mut server.test] {
            book.events.iter_mut().for_each(|event| event["livemode"] = json!(false));
        }
    }),
    // Additional data, and formats.
    variant("responses have additional members and headers", |server| {
        let mut count = 0;
        server.rewrite_responses(move |_, response| {
            count += 1;
            response.set_header("x-request-id", &format!("r-{count}"));
            response.set_header("x-served-by", ["a", "b", "b", "a", "c"][count % 5]);
            response.set_header("content-type", "application/json; charset=utf-8");
            if let Some(body) = response.body.as_object_mut() {
                body.insert("trace".into(), json!(format!("t-{count}")));
            }
        });
    }),
    variant("headers show the remaining quota", |server| {
        let mut remaining = 10_000;
        server.rewrite_responses(move |_, response| {
            remaining -= 1;
            response.set_header("x-ratelimit-remaining", &remaining.to_string());
        });
    }),
    variant("members are in a different order", |server| rewrite_body_text(server, to_reversed_json)),
    variant("slashes are escaped", |server| {
        rewrite_body_text(server, |body| body.to_string().replace('/', "\\/"))
    }),
    variant("JSON is pretty-printed", |server| {
        rewrite_body_text(server, |body| serde_json::to_string_pretty(body).expect("valid JSON"));
    }),
    variant("bodies are chunked", |server| server.http_settings.chunked = true),
    variant("each connection serves one request", |server| server.http_settings.closes_after_response = true),
    variant("responses are HTTP/1.0", |server| {
        server.http_settings.http_1_0 = true;
        server.http_settings.closes_after_response = true;
    }),
    variant("header names are in title case", |server| server.http_settings.title_case = true),
    variant("links have paths ending in .json, which are aliases", |server| {
        server.rewrite_requests(|request| {
            request.path = request.path.trim_end_matches(".json").to_owned();
        });
        server.rewrite_responses(|request, response| {
            if request.is_list() {
                replace_links(response, |link| link.replacen('?', ".json?", 1));
            }
        });
    }),
    variant("responses are slow", |server| server.response_time = Duration::from_millis(200)),
    variant("one response is a 502 of a proxy", |server| {
        let mut count = 0;
        server.rewrite_responses(move |_, response| {
            count += 1;
            // A run has over 200 requests.
            if count == 160 {
                *response = EditableResponse::json(502, Value::Null);
                response.raw = Some("<html>502 Bad Gateway</html>".into());
                response.set_header("content-type", "text/html");
            }
        });
    }),
];

const fn variant(name: &'static str, choose: fn(&mut FakeServer)) -> Variant {
    Variant { name, warns: &[], choose }
}

/// Applies a choice to all books of the service.
pub fn set_choices(server: &mut FakeServer, choose: impl Fn(&mut Choices)) {
    for book in [&mut server.live, &mut server.test, &mut server.other_account] {
        choose(&mut book.choices);
    }
}

/// Makes a server change all responses with this status.
fn rewrite_status(server: &mut FakeServer, status: u16, change: fn(&mut EditableResponse)) {
    server.rewrite_responses(move |_, response| {
        if response.status == status {
            change(response);
        }
    });
}

/// Replaces the body of an error by problem details (RFC 9457).
fn use_problem_details(response: &mut EditableResponse, title: &str) {
    response.body = json!({ "type": "about:blank", "title": title, "status": response.status });
    response.set_header("content-type", "application/problem+json");
}

/// A part of the ids of all events in the books.
const PART_OF_EVENT_IDS: &str = "-8def-";

/// The name of the variant whose records all have the same `created_at`.
pub(crate) const SAME_SECOND: &str = "all records have the same created_at";

/// The name of the variant whose account has no wallet, so that it has no new charges.
pub(crate) const NO_ASSETS: &str = "the account accepts no assets";

/// Changes the `created_at` of all records. Their other times, such as `paid_at`, stay as they are.
fn rewrite_times(server: &mut FakeServer, change: fn(&str) -> String) {
    for book in [&mut server.live, &mut server.test, &mut server.other_account] {
        for row in book.events.iter_mut().chain(&mut book.charges).chain(&mut book.invoices) {
            row["created_at"] = json!(change(row["created_at"].as_str().expect("the time is a string")));
        }
    }
}

/// Makes a server serialize all bodies with `write`.
fn rewrite_body_text(server: &mut FakeServer, write: fn(&Value) -> String) {
    server.rewrite_responses(move |_, response| response.raw = Some(write(&response.body)));
}

/// Serializes JSON with the members of each object in reverse order.
fn to_reversed_json(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            let members: Vec<_> =
                members.map(|(name, value)| format!("{}:{}", json!(name), to_reversed_json(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(to_reversed_json).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}
