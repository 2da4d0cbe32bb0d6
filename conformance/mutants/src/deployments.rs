//! Faults of deployed services: in caches, limiters, replicas, frameworks and serializers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conformance::Mode;
use serde_json::{Value, json};

use crate::fake::book::Book;
use crate::fake::{EditableResponse, FakeServer, Limiter, Request, http_server};
use crate::mutant::{
    Mutant, add_sender, delivery_body_fault, delivery_fault, event_fault, list_fault, response_fault,
    server_fault, single_event_fault,
};
use crate::variants::use_named_links;

/// The lifetime of a cached response in microseconds.
const CACHED_MICROS: u64 = 5_000_000;

pub(crate) const MUTANTS: &[Mutant] = &[
    // Caches.
    server_fault("a cache ignores the query of the events", &["paging.per_page"], |server| {
        add_cache(server, |request| (request.path == "/v1/events").then(|| request.authorization.clone().unwrap_or_default()), 200);
    })
    .may_fail(&["events.recorded", "filters.charge", "filters.combined", "filters.invoice", "filters.total", "filters.type", "limits.every_path", "paging.current_page", "paging.default_size", "paging.joined", "paging.links_lead"]),
    server_fault("a cache keeps a 404 for every key", &["auth.every_path"], |server| {
        add_cache(server, |request| request.is_event().then(|| request.path.clone()), 404);
    })
    .may_fail(&["auth.other_prefix", "auth.appended", "auth.other_scheme", "auth.revoked_key", "events.single"]),
    server_fault("the same URL gets 304 within five seconds", &["lists.served"], |server| {
        let (clock, mut last_served) = (server.clock.clone(), BTreeMap::new());
        server.rewrite_responses(move |request, response| {
            let key = format!("{:?} {} {:?}", request.authorization, request.path, request.query);
            let now = clock.micros();
            if response.status == 200 && last_served.get(&key).is_some_and(|at| at + CACHED_MICROS > now) {
                *response = EditableResponse::json(304, Value::Null);
                response.raw = Some(String::new());
            } else {
                last_served.insert(key, now);
            }
        });
    })
    .may_fail(&["auth.after_refusal", "events.single", "filters.type"]),
    server_fault("a cache serves the response of HEAD for GET", &["answers.json"], |server| {
        let (clock, mut head_requests) = (server.clock.clone(), BTreeMap::new());
        server.rewrite_responses(move |request, response| {
            let key = format!("{:?} {} {:?}", request.authorization, request.path, request.query);
            let now = clock.micros();
            match request.method.as_str() {
                "HEAD" if response.status == 200 => drop(head_requests.insert(key, now)),
                "GET" if head_requests.get(&key).is_some_and(|at| at + CACHED_MICROS > now) => {
                    response.raw = Some(String::new());
                }
                _ => {}
            }
        });
    }),
    // Limiters.
    server_fault("each URL with its query has a separate limit", &["limits.refused"], |server| {
        server.counted_identity = |request| format!("{:?} {} {:?}", request.authorization, request.path, request.query);
    }),
    response_fault("a 429 in JSON is labelled text/html", &["limits.json"], 429, |_, response| {
        response.set_header("content-type", "text/html");
    }),
    server_fault("all test keys share one limit", &["limits.second_key"], |server| {
        server.counted_identity = |request| {
            let authorization = request.authorization.clone().unwrap_or_default();
            authorization.chars().take("Bearer svc_test_".len()).collect()
        };
    }),
    server_fault("a refused key waits ten seconds longer than Retry-After", &["limits.retry_after_held"], |server| {
        server.limiter = Limiter::FromFirst;
        server.window = Duration::from_secs(70);
        server.clock.advance(Duration::from_secs(25));
        server.rewrite_responses(|_, response| {
            let delay = response.header("retry-after").and_then(|value| value.parse::<u64>().ok());
            if let Some(delay) = delay {
                response.set_header("retry-after", &delay.saturating_sub(10).to_string());
            }
        });
    }),
    server_fault("requests of the same millisecond count once", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        server.response_time = Duration::from_micros(300);
        let (clock, mut hits) = (server.clock.clone(), BTreeMap::<String, BTreeSet<u64>>::new());
        server.rewrite_responses(move |request, response| {
            let now = clock.micros();
            let hits = hits.entry(request.authorization.clone().unwrap_or_default()).or_default();
            hits.retain(|at| at * 1_000 + 60_000_000 > now);
            if response.status >= 400 {
            } else if hits.len() < 120 {
                hits.insert(now / 1_000);
            } else {
                *response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
                let first = hits.first().copied().unwrap_or_default();
                response.set_header("retry-after", &((first * 1_000 + 60_000_000 - now).div_ceil(1_000_000)).to_string());
            }
        });
    }),
    server_fault("every request restarts the window", &["limits.retry_after_held"], |server| {
        server.limiter = Limiter::Off;
        server.response_time = Duration::from_millis(5);
        server.clock.advance(Duration::from_secs(25));
        let (clock, mut counts) = (server.clock.clone(), BTreeMap::<String, (u64, u64)>::new());
        server.rewrite_responses(move |request, response| {
            let now = clock.micros();
            let (count, window_end) = counts.entry(request.authorization.clone().unwrap_or_default()).or_default();
            if response.status >= 400 {
                return;
            }
            *count = if now >= *window_end { 1 } else { *count + 1 };
            *window_end = now + 60_000_000;
            if *count > 120 {
                *response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
                response.set_header("retry-after", "60");
            }
        });
    }),
    // Replicas.
    server_fault("one of two replicas lacks the newest charge", &["paging.joined"], |server| {
        let mut requests = 0;
        server.rewrite_responses(move |request, response| {
            requests += 1;
            let is_first_page = request.number("page").is_none_or(|page| page == 1);
            if requests % 2 == 0 && request.path == "/v1/charges" && response.status == 200 {
                let total = response.body["meta"]["total"].as_u64().unwrap_or_default();
                response.body["meta"]["total"] = json!(total.saturating_sub(1));
                let rows = response.body["data"].as_array_mut();
                if let Some(rows) = rows.filter(|rows| is_first_page && !rows.is_empty()) {
                    rows.remove(0);
                }
            }
        });
    })
    .may_fail(&["filters.payment_link", "filters.status", "filters.total", "lists.complete", "paging.ends", "paging.last_page", "paging.length", "paging.links_lead"]),
    server_fault("one of two replicas accepts the revoked key", &["auth.revoked_key"], |server| {
        server.request_rewrites.push(Box::new({
            let mut requests = 0;
            move |request| {
                requests += 1;
                let is_revoked = request.authorization.as_deref() == Some(&format!("Bearer {}", crate::fake::REVOKED_KEY));
                if requests % 2 == 0 && is_revoked {
                    request.authorization = Some(format!("Bearer {}", crate::fake::LIVE_KEY));
                }
            }
        }));
    }),
    server_fault("one of two replicas has pages of 10 by default", &["paging.default_size"], |server| {
        let mut requests = 0;
        server.rewrite_requests(move |request| {
            requests += 1;
            if requests % 2 == 0 && request.is_list() && !request.query.contains_key("per_page") {
                request.query.insert("per_page".into(), "10".into());
            }
        });
    }),
    server_fault("one of three replicas sends a 404 in HTML", &["errors.not_found_json"], |server| {
        let mut requests = 0;
        server.rewrite_responses(move |_, response| {
            requests += 1;
            if requests % 3 == 0 && response.status == 404 {
                response.raw = Some("<html>Not Found</html>".into());
                response.set_header("content-type", "text/html");
            }
        });
    }),
    server_fault("one of two replicas lacks the newest event", &["events.single"], |server| {
        let newest: Vec<_> = [&server.live, &server.test]
            .into_iter()
            .map(|book| format!("/v1/events/{}", book.events[0]["id"].as_str().expect("the id is a string")))
            .collect();
        let mut requests = 0;
        server.rewrite_responses(move |request, response| {
            requests += 1;
            if requests % 2 == 0 && newest.contains(&request.path) && response.status == 200 {
                *response = EditableResponse::json(404, json!({ "message": "Not found." }));
            }
        });
    }),
    // Keys.
    response_fault("a 401 of a single event is HTML", &["auth.message"], 401, |_, response| {
        response.raw = Some("<html>Unauthorized</html>".into());
        response.set_header("content-type", "text/html");
    })
    .for_requests(Request::is_event),
    server_fault("an unknown event is looked up before the key is checked", &["auth.every_path"], |server| {
        let paths = event_paths(server);
        server.rewrite_responses(move |request, response| {
            if response.status == 401 && request.is_event() && !paths.contains(&request.path) {
                *response = EditableResponse::json(404, json!({ "message": "Not found." }));
            }
        });
    }),
    // Pages.
    server_fault("records of the same time are swapped between pages", &["paging.joined"], |server| {
        for book in [&mut server.live, &mut server.test] {
            for pair in book.charges.chunks_mut(2) {
                let time = pair[0]["created_at"].clone();
                pair.iter_mut().for_each(|charge| charge["created_at"] = time.clone());
            }
        }
        server.rewrite_responses(|request, response| {
            let is_later_page = request.number("page").is_some_and(|page| page > 1);
            if is_later_page && request.path == "/v1/charges"
                && let Some(rows) = response.body["data"].as_array_mut()
            {
                let mut i = 0;
                while i + 1 < rows.len() {
                    if rows[i]["created_at"] == rows[i + 1]["created_at"] {
                        rows.swap(i, i + 1);
                        i += 1;
                    }
                    i += 1;
                }
            }
        });
    })
    .may_fail(&["paging.newest_first_others"]),
    server_fault("per_page=100 returns 99 records", &["paging.length"], |server| {
        (server.live, server.test) = (Book::with_many_records(1), Book::with_many_records(2));
        server.rewrite_responses(|request, response| {
            if let Some(rows) = response.body["data"].as_array_mut().filter(|_| request.is_list()) {
                rows.truncate(99);
            }
        });
    })
    .may_fail(&["filters.charge", "filters.payment_link", "filters.total"]),
    server_fault("per_page=1 returns 25 records", &["paging.per_page"], |server| {
        server.rewrite_requests(|request| {
            if request.number("per_page") == Some(1) {
                request.query.remove("per_page");
            }
        });
    })
    .may_fail(&["filters.total"]),
    server_fault("totals are at most 250", &["paging.length"], |server| {
        (server.live, server.test) = (Book::with_many_records(1), Book::with_many_records(2));
        server.rewrite_responses(|request, response| {
            let total = response.body["meta"]["total"].as_u64().filter(|_| request.is_list());
            if let Some(total) = total {
                response.body["meta"]["total"] = json!(total.min(250));
            }
        });
    })
    .may_fail(&["filters.total", "filters.charge", "filters.payment_link", "paging.ends", "paging.last_page", "paging.links_lead"]),
    list_fault("meta.per_page is a string if it was requested", &["paging.meta"], |request, response| {
        if let Some(size) = request.query.get("per_page") {
            response.body["meta"]["per_page"] = json!(size);
        }
    }),
    list_fault("last_page of a page of 100 is that of the default size", &["paging.last_page"], |request, response| {
        if request.number("per_page") == Some(100)
            && let Some(total) = response.body["meta"]["total"].as_u64()
        {
            response.body["meta"]["last_page"] = json!(total.div_ceil(25).max(1));
        }
    }),
    // Filters.
    server_fault("the type filter compares only the part after the dot", &["filters.type"], |server| {
        for book in [&mut server.live, &mut server.test, &mut server.other_account] {
            book.filter_matches = |name, row_value, filter_value| {
                let last_part = |event_type: &str| event_type.rsplit('.').next().map(str::to_owned);
                if name == "type" { last_part(row_value) == last_part(filter_value) } else { row_value == filter_value }
            };
        }
    })
    .may_fail(&["filters.total"]),
    server_fault("the links of a foreign filter count foreign events", &["isolation.filter_charge"], |server| {
        let codes = server.live.charges.iter().filter_map(|charge| charge["code"].as_str());
        let foreign: Vec<_> = codes.map(str::to_owned).collect();
        server.rewrite_responses(move |request, response| {
            let is_foreign = request.query.get("charge").is_some_and(|code| foreign.contains(code));
            if request.mode == Some(Mode::Test) && is_foreign && let Some(last) = response.body["links"]["last"].as_str() {
                response.body["links"]["last"] = json!(last.replace("page=1", "page=2"));
            }
        });
    }),
    server_fault("a payment link is compared by its prefix", &["filters.payment_link"], |server| {
        set_filter_matching(server, |name, row_value, filter_value| {
            if name == "payment_link" { row_value.starts_with(filter_value) } else { row_value == filter_value }
        });
    }),
    server_fault("the name of a payment link is compared by its prefix", &["filters.payment_link"], |server| {
        use_named_links(server);
        set_filter_matching(server, |name, row_value, filter_value| {
            if name == "payment_link" { row_value.starts_with(filter_value) } else { row_value == filter_value }
        });
    }),
    server_fault("lists by type have at most 25 records", &["paging.per_page"], |server| {
        (server.live, server.test) = (Book::with_many_records(1), Book::with_many_records(2));
        server.rewrite_requests(|request| {
            if request.query.contains_key("type") && request.number("per_page").is_some_and(|size| size > 25) {
                request.query.insert("per_page".into(), "25".into());
            }
        });
    })
    .may_fail(&["filters.charge", "filters.payment_link", "filters.total"]),
    // Content.
    single_event_fault("amounts in a single event are numbers", &["charges.amounts"], |_, response| {
        if response.body["data"]["charge"].is_object() {
            response.body["data"]["charge"]["fiat_amount"] = json!(49.9);
        }
    }),
    event_fault("details of invoices are empty arrays", &["events.details"], |event| {
        if event["invoice"].is_object() {
            event["details"] = json!([]);
        }
    }),
    event_fault("the event of a paid charge has an invoice too", &["events.subject"], |event| {
        if event["type"] == "charge.paid" {
            event["invoice"] = json!({ "code": "in0000000001", "number": "INV-0001", "status": "paid", "amount": "49.90",
                "currency": "EUR", "customer": {}, "hosted_url": "https://pay.example/i/1", "charges": [] });
        }
    })
    .may_fail(&["filters.invoice", "filters.total"]),
    single_event_fault("the id of a single event is in upper case", &["events.single"], |_, response| {
        let id = response.body["data"]["id"].as_str().unwrap_or_default().to_uppercase();
        response.body["data"]["id"] = json!(id);
    }),
    list_fault("the second page is labelled text/html", &["answers.content_type"], |request, response| {
        if request.number("page") == Some(2) {
            response.set_header("content-type", "text/html");
        }
    }),
    response_fault("a 404 is labelled text/plain", &["errors.not_found_json"], 404, |_, response| {
        response.set_header("content-type", "text/plain");
    }),
    server_fault("the connection closes before a page of 100 events", &["lists.served"], |server| {
        server.rewrite_responses(|request, response| {
            let size = request.number("per_page").unwrap_or_default();
            if request.path == "/v1/events" && size == 100 && response.status == 200 {
                response.status = http_server::CLOSE_WITHOUT_RESPONSE;
            }
        });
    }),
    server_fault("bodies are truncated at 32 KiB", &["answers.json"], |server| {
        (server.live, server.test) = (Book::with_many_records(1), Book::with_many_records(2));
        server.rewrite_responses(|_, response| {
            let text = response.body.to_string();
            if text.len() > 32_768 {
                response.raw = Some(text[..32_768].to_owned());
            }
        });
    }),
    // Deliveries.
    delivery_body_fault("a paid charge is delivered as pending", &["charges.status"], |delivery, body| {
        if delivery.event_type == "charge.paid" {
            body["data"]["charge"]["status"] = json!("pending");
        }
    }),
    delivery_fault("the time of the signature has a fraction", &["webhooks.signature_shape"], |_, request| {
        for (name, value) in &mut request.headers {
            if name == "X-Service-Signature" {
                *value = value.replace(",v1", ".5,v1");
            }
        }
    }),
    delivery_body_fault("paid_at ends with an offset", &["charges.paid_at"], |_, body| {
        if let Some(time) = body["data"]["charge"]["paid_at"].as_str() {
            body["data"]["charge"]["paid_at"] = json!(time.replace('Z', "+00:00"));
        }
    }),
    delivery_body_fault("event_id has no hyphens", &["webhooks.event_id"], |_, body| {
        let id = body["event_id"].as_str().expect("the id is a string").replace('-', "");
        body["event_id"] = json!(id);
    }),
    server_fault("refunds are not delivered in live mode", &["webhooks.pushed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                endpoint.mode == Some(mode)
                    && endpoint.events.as_ref().is_some_and(|types| types.contains(event_type))
                    && !(mode == Mode::Live && event_type == "charge.refunded")
            };
        });
    }),
    server_fault("invoice events are delivered to the endpoints of both modes", &["webhooks.mode_endpoints"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                (endpoint.mode == Some(mode) || event_type.starts_with("invoice."))
                    && endpoint.events.as_ref().is_some_and(|types| types.contains(event_type))
            };
        });
    }),
    server_fault("a subscription to charge.paid includes charge.payment_detected", &["webhooks.subscribed"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                // Without its last two characters, `charge.paid` is also the start of `charge.payment_detected`.
                let is_subscribed = |types: &BTreeSet<String>| {
                    types.contains(event_type) || types.iter().any(|name| event_type.starts_with(&name[..name.len() - 2]))
                };
                endpoint.mode == Some(mode) && endpoint.events.as_ref().is_some_and(is_subscribed)
            };
        });
    }),
];

/// Puts a cache, which adds no headers, in front of a server. It stores responses to GET that have this status, by the
/// `key` of the request. Requests without a key bypass it.
fn add_cache(server: &mut FakeServer, key: fn(&Request) -> Option<String>, status: u16) {
    let (clock, mut stored) = (server.clock.clone(), BTreeMap::<String, (u64, EditableResponse)>::new());
    server.rewrite_responses(move |request, response| {
        let Some(key) = key(request).filter(|_| request.method == "GET") else { return };
        let now = clock.micros();
        if let Some((_, cached)) = stored.get(&key).filter(|(at, _)| at + CACHED_MICROS > now) {
            *response = cached.clone();
        } else if response.status == status {
            stored.insert(key, (now, response.clone()));
        }
    });
}

/// Returns the paths of all events of both modes.
fn event_paths(server: &FakeServer) -> Vec<String> {
    let path = |event: &Value| format!("/v1/events/{}", event["id"].as_str().expect("the id is a string"));
    [&server.live, &server.test].into_iter().flat_map(|book| book.events.iter().map(path)).collect()
}

/// Sets the comparison of rows with filters in all books.
fn set_filter_matching(server: &mut FakeServer, matches: fn(&str, &str, &str) -> bool) {
    for book in [&mut server.live, &mut server.test, &mut server.other_account] {
        book.filter_matches = matches;
    }
}
