//! Correct services as teams deploy them: with declared caches, sessions, cache validators and other languages.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Variant, rewrite_status, variant};
use crate::fake::{Limiter, Reply, RetryAfter, wire};

pub(super) const VARIANTS: &[Variant] = &[
    variant("a correct cache of lists for one second that sends X-Cache", |server| {
        server.tick = Duration::from_millis(40);
        let (clock, mut stored) = (server.clock.clone(), BTreeMap::<String, (u64, Reply)>::new());
        server.rewrite(move |request, response| {
            if !request.is_list() || request.method != "GET" || response.status != 200 {
                return;
            }
            let key = format!("{:?} {} {:?}", request.authorization, request.path, request.query);
            let now = clock.micros();
            match stored.get(&key).filter(|(at, _)| at + 1_000_000 > now) {
                Some((_, cached)) => {
                    *response = cached.clone();
                    response.set("x-cache", "HIT");
                }
                None => drop(stored.insert(key, (now, response.clone()))),
            }
        });
    }),
    variant("errors are German problem details", |server| {
        server.rewrite(|_, response| {
            let title = match response.status {
                401 => "Ungültiger Schlüssel",
                404 => "Nicht gefunden – gelöscht?",
                422 => "Ungültige Größe",
                429 => "Zu viele Anfragen",
                _ => return,
            };
            response.body =
                json!({ "title": title, "status": response.status, "detail": "Siehe https://hilfe.example/ß" });
            response.set("content-type", "application/problem+json; charset=utf-8");
            response.set("content-language", "de");
        });
    }),
    variant("responses with 200 have cache validators", |server| {
        server.rewrite(|_, response| {
            if response.status == 200 {
                let text = response.body.to_string();
                let sum =
                    text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
                response.set("etag", &format!("W/\"{sum:x}\""));
                response.set("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
                response.set("cache-control", "private, max-age=0, must-revalidate");
                response.set("vary", "Authorization, Accept");
            }
        });
    }),
    variant("every response sets a new session cookie", |server| {
        let mut number = 0_u64;
        server.rewrite(move |_, response| {
            number += 1;
            response.set(
                "set-cookie",
                &format!("session={:016x}; HttpOnly", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            );
            response.set("vary", "*");
        });
    }),
    variant("an unknown status is refused, an unknown type returns an empty list", |server| {
        server.rewrite(|request, response| {
            const KNOWN: [&str; 6] = ["paid", "open", "canceled", "pending", "expired", "void"];
            if request.query.get("status").is_some_and(|value| !KNOWN.contains(&value.as_str()))
                && response.status == 200
            {
                *response =
                    Reply::json(422, json!({ "errors": { "status": ["The selected status is invalid."] } }));
            }
        });
    }),
    variant("rows have a type, and responses a request id", |server| {
        let mut number = 0;
        server.rewrite(move |_, response| {
            number += 1;
            for row in response.body["data"].as_array_mut().into_iter().flatten() {
                row["object"] = json!("row");
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
        server.clock.advance(Duration::from_secs(1_234));
        let clock = server.clock.clone();
        server.rewrite(move |_, response| {
            let now = clock.micros() / 1_000_000 - 600;
            if let Some(until) =
                response.header("retry-after").and_then(conformance_model::reading::http_date)
            {
                let server_now = wire::http_date(clock.micros() / 1_000_000);
                let server_now = conformance_model::reading::http_date(&server_now)
                    .expect("the server formats a valid date");
                let delay = (until - server_now).whole_seconds();
                let delay = u64::try_from(delay).expect("Retry-After is in the future");
                response.set("retry-after", &wire::http_date(now + delay));
            }
            response.set("date", &wire::http_date(now));
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
                    pair.iter_mut().for_each(|row| row["created_at"] = time.clone());
                }
            }
        }
    }),
    variant("a sliding log in seconds that counts refused requests, and Retry-After is a minute", |server| {
        server.limiter = Limiter::SlidingSeconds;
        server.tick = Duration::from_millis(30);
        server.refusals_count = true;
        rewrite_status(server, 429, |response| response.set("retry-after", "60"));
    }),
    variant("a 401 offers two schemes", |server| {
        rewrite_status(server, 401, |response| {
            response.set("www-authenticate", "Bearer realm=\"api\"");
            response.headers.push(("www-authenticate".into(), "Basic realm=\"dashboard\"".into()));
        });
    }),
];
