//! Correct services as teams deploy them: behind caches, with errors in another language, cookies, additional members, a
//! clock that is wrong, records of the same time, and other choices for filters, rate limits and challenges.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Variant, rewrite_status, variant};
use crate::fake::{EditableResponse, Limiter, RetryAfter, http_server};

pub(super) const VARIANTS: &[Variant] = &[
    variant("a correct cache of lists for one second that sends X-Cache", |server| {
        // Less than the second of the cache, so that some responses are cached.
        server.response_time = Duration::from_millis(40);
        let (clock, mut stored) = (server.clock.clone(), BTreeMap::<String, (u64, EditableResponse)>::new());
        server.rewrite_responses(move |request, response| {
            if !request.is_list() || request.method != "GET" || response.status != 200 {
                return;
            }
            let key = format!("{:?} {} {:?}", request.authorization, request.path, request.query);
            let now = clock.micros();
            match stored.get(&key).filter(|(at, _)| at + 1_000_000 > now) {
                Some((_, cached)) => {
                    *response = cached.clone();
                    response.set_header("x-cache", "HIT");
                }
                None => drop(stored.insert(key, (now, response.clone()))),
            }
        });
    }),
    variant("errors are German problem details", |server| {
        server.rewrite_responses(|_, response| {
            let title = match response.status {
                401 => "Ungültiger Schlüssel",
                404 => "Nicht gefunden – gelöscht?",
                422 => "Ungültige Größe",
                429 => "Zu viele Anfragen",
                _ => return,
            };
            response.body =
                json!({ "title": title, "status": response.status, "detail": "Siehe https://hilfe.example/ß" });
            response.set_header("content-type", "application/problem+json; charset=utf-8");
            response.set_header("content-language", "de");
        });
    }),
    variant("responses with 200 have cache validators", |server| {
        server.rewrite_responses(|_, response| {
            if response.status == 200 {
                let text = response.body.to_string();
                let sum =
                    text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
                response.set_header("etag", &format!("W/\"{sum:x}\""));
                response.set_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
                response.set_header("cache-control", "private, max-age=0, must-revalidate");
                response.set_header("vary", "Authorization, Accept");
            }
        });
    }),
    variant("every response sets a new session cookie", |server| {
        let mut number = 0_u64;
        server.rewrite_responses(move |_, response| {
            number += 1;
            response.set_header(
                "set-cookie",
                &format!("session={:016x}; HttpOnly", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            );
            response.set_header("vary", "*");
        });
    }),
    variant("an unknown status is refused, an unknown type returns an empty list", |server| {
        // The fake server already returns an empty list for an unknown type.
        server.rewrite_responses(|request, response| {
            const KNOWN: [&str; 6] = ["paid", "open", "canceled", "pending", "expired", "void"];
            if request.query.get("status").is_some_and(|value| !KNOWN.contains(&value.as_str()))
                && response.status == 200
            {
                *response = EditableResponse::json(
                    422,
                    json!({ "errors": { "status": ["The selected status is invalid."] } }),
                );
            }
        });
    }),
    variant("records and successful responses have additional members", |server| {
        let mut number = 0;
        server.rewrite_responses(move |_, response| {
            number += 1;
            for record in response.body["data"].as_array_mut().into_iter().flatten() {
                record["object"] = json!("record");
            }
            if let Some(body) = response.body.as_object_mut().filter(|_| response.status == 200) {
                body.insert("request_id".into(), json!(format!("req_{number}")));
                if let Some(meta) = body.get_mut("meta").and_then(Value::as_object_mut) {
                    meta.insert("took_ms".into(), json!(number % 7));
                    meta.insert("from".into(), json!(1));
                }
            }
        });
    }),
    variant("Retry-After and Date come from a clock that is ten minutes behind", |server| {
        server.retry_after = RetryAfter::Date;
        // The clock starts at zero. Below, it must show more than the ten minutes that are subtracted.
        server.clock.advance(Duration::from_secs(1_234));
        let clock = server.clock.clone();
        server.rewrite_responses(move |_, response| {
            let shown_now = clock.micros() / 1_000_000 - 600;
            if let Some(until) =
                response.header("retry-after").and_then(conformance_model::reading::parse_http_date)
            {
                let server_now = http_server::http_date(clock.micros() / 1_000_000);
                let server_now = conformance_model::reading::parse_http_date(&server_now)
                    .expect("the server formats a valid date");
                let delay = (until - server_now).whole_seconds();
                let delay = u64::try_from(delay).expect("Retry-After is in the future");
                response.set_header("retry-after", &http_server::http_date(shown_now + delay));
            }
            response.set_header("date", &http_server::http_date(shown_now));
        });
    }),
    variant("pairs of records have the same time", |server| {
        for book in [&mut server.live, &mut server.test] {
            // Lists are newest first. Objects take the older time of a pair and events the newer one, so that no object is newer
            // than its event.
            let lists = [(&mut book.charges, 1), (&mut book.invoices, 1), (&mut book.events, 0)];
            for (list, source) in lists {
                for pair in list.chunks_exact_mut(2) {
                    let time = pair[source]["created_at"].clone();
                    pair.iter_mut().for_each(|record| record["created_at"] = time.clone());
                }
            }
        }
    }),
    variant(
        "a sliding log in whole seconds counts refused requests, and Retry-After is always 60",
        |server| {
            server.limiter = Limiter::SlidingSeconds;
            // Requests are spread over several of the log's seconds.
            server.response_time = Duration::from_millis(30);
            server.counts_refused = true;
            rewrite_status(server, 429, |response| response.set_header("retry-after", "60"));
        },
    ),
    variant("a 401 offers two schemes", |server| {
        rewrite_status(server, 401, |response| {
            response.set_header("www-authenticate", "Bearer realm=\"api\"");
            response.headers.push(("www-authenticate".into(), "Basic realm=\"dashboard\"".into()));
        });
    }),
];
