//! Honest services that made other choices: at least one for each line of what may differ, and several
//! that chose as people do who know one framework well. None may fail anything that is required.

use std::time::Duration;

use serde_json::{Value, json};

use crate::mini::book::Manners;
use crate::mini::{Limiter, Mini, Reply, RetryAfter};

mod deliveries;
mod frameworks;

/// An honest service.
pub struct Variant {
    /// The choice, in words.
    pub name: &'static str,
    /// The derived statements that it does not keep, and may not.
    pub warns: &'static [&'static str],
    /// Makes the choice.
    pub choose: fn(&mut Mini),
}

/// What most honest services keep although nobody asked them to, and some do not.
const NO_CHALLENGE: &[&str] = &["auth.www_authenticate"];

pub(crate) const TABLES: &[&[Variant]] = &[SINGLE, frameworks::VARIANTS, deliveries::VARIANTS];

const SINGLE: &[Variant] = &[
    plain("no choice at all", |_| {}),
    plain("paths have a prefix", |mini| mini.prefix = "/pay/api"),
    // The body and the media type of errors.
    plain("a 401 tells an error, not a message", |mini| {
        on(mini, 401, |reply| reply.body = json!({ "error": "unauthorized" }));
    }),
    plain("a 401 lists its errors", |mini| {
        on(mini, 401, |reply| {
            reply.body = json!({ "errors": [{ "status": "401", "title": "Unauthorized" }] })
        });
    }),
    plain("a 401 speaks as OAuth does", |mini| {
        on(mini, 401, |reply| {
            reply.body = json!({ "error": "invalid_token", "error_description": "The token is not known." });
            reply.set("www-authenticate", "Bearer realm=\"api\", error=\"invalid_token\"");
        });
    }),
    Variant {
        name: "a 401 names no scheme",
        warns: NO_CHALLENGE,
        choose: |mini| on(mini, 401, |reply| reply.drop_header("www-authenticate")),
    },
    plain("refusals are problem details", |mini| {
        manners(mini, |it| it.problem_json = true);
        on(mini, 401, |reply| problem(reply, "Unauthorized"));
        on(mini, 429, |reply| problem(reply, "Too Many Requests"));
    }),
    plain("a 404 repeats the path", |mini| {
        mini.warp(|asked, reply| {
            if reply.status == 404 {
                reply.body = json!({ "message": format!("Cannot GET {}", asked.path) });
            }
        });
    }),
    // When to come back, and what is counted.
    plain("Retry-After is a date", |mini| mini.retry_after = RetryAfter::Date),
    plain("Retry-After always asks for a minute", |mini| {
        on(mini, 429, |reply| reply.set("retry-after", "60"));
    }),
    plain("Retry-After asks for more patience than it takes", |mini| {
        on(mini, 429, |reply| reply.set("retry-after", "75"));
    }),
    plain("Retry-After is rounded down", |mini| {
        mini.clock.advance(Duration::from_millis(700));
        on(mini, 429, |reply| {
            let told = reply.header("retry-after").and_then(|it| it.parse::<u64>().ok());
            reply.set("retry-after", &(told.expect("seconds") - 1).to_string());
        });
    }),
    plain("refused requests count as well", |mini| mini.refusals_count = true),
    plain("what is not found does not count", |mini| {
        mini.counted = |asked| match asked.path.strip_prefix("/v1/events/") {
            Some(id) if !id.contains("-8def-") => "nobody".to_owned(),
            _ => asked.authorization.clone().unwrap_or_default(),
        };
    }),
    plain("a window begins with its first request", |mini| mini.limiter = Limiter::FromFirst),
    plain("a window begins with its first request, and time passes", |mini| {
        mini.limiter = Limiter::FromFirst;
        mini.tick = Duration::from_millis(45);
    }),
    plain("a window is a minute of the clock", |mini| mini.limiter = Limiter::AlignedMinute),
    plain("a window is a minute of the clock, and ends during the burst", |mini| {
        mini.limiter = Limiter::AlignedMinute;
        mini.tick = Duration::from_millis(20);
        mini.clock.advance(Duration::from_secs(59));
    }),
    plain("a bucket refills quickly", |mini| {
        mini.limiter = Limiter::Bucket;
        mini.tick = Duration::from_millis(20);
    }),
    plain("a bucket refills while answers are slow", |mini| {
        mini.limiter = Limiter::Bucket;
        mini.tick = Duration::from_millis(100);
    }),
    plain("somebody else used the key a moment ago", |mini| {
        mini.hits.insert(format!("Bearer {}", crate::mini::TEST_KEY), vec![0; 30]);
    }),
    // Pages and filters.
    plain("per_page out of range is clamped", |mini| manners(mini, |it| it.clamps = true)),
    plain("per_page out of range is refused with 400", |mini| on(mini, 422, |reply| reply.status = 400)),
    plain("a filter that names nothing is answered 404", |mini| {
        manners(mini, |it| it.foreign_filter_404 = true);
    }),
    plain("a filter that names nothing is answered 422", |mini| {
        manners(mini, |it| it.foreign_filter_404 = true);
        mini.warp(|asked, reply| {
            if reply.status == 404 && asked.is_list() {
                *reply = Reply::json(422, json!({ "message": "The selected value is invalid." }));
            }
        });
    }),
    plain("an empty list has no page", |mini| manners(mini, |it| it.empty_last_page = 0)),
    plain("an empty list has null for all links", |mini| {
        mini.warp(|asked, reply| {
            if asked.is_list() && crate::empty(reply) {
                reply.body["links"] = json!({ "first": null, "last": null, "prev": null, "next": null });
            }
        });
    }),
    plain("a page past the end is answered 404", |mini| {
        mini.warp(|asked, reply| {
            if asked.is_list() && crate::empty(reply) && asked.number("page").is_some_and(|page| page > 1) {
                *reply = Reply::json(404, json!({ "message": "There is no such page." }));
            }
        });
    }),
    plain("links have no host", |mini| manners(mini, |it| it.relative_links = true)),
    plain("links have no host, below a prefix", |mini| {
        mini.prefix = "/pay";
        manners(mini, |it| it.relative_links = true);
    }),
    plain("links name page first, and a parameter of their own", |mini| {
        each_link(mini, |link| {
            let (path, query) = link.split_once('?').unwrap_or((link, ""));
            let mut pairs: Vec<_> = query.split('&').collect();
            pairs.reverse();
            format!("{path}?{}&lang=en", pairs.join("&"))
        });
    }),
    plain("the filter of an invoice also finds the events of its charges", |mini| {
        for book in [&mut mini.live, &mut mini.test] {
            let code = book.invoices[0]["code"].clone();
            for event in book.events.iter_mut().filter(|it| it["charge"].is_object()) {
                event["charge"]["invoice"] = code.clone();
            }
            book.wide = true;
        }
    }),
    plain("invoices are paid and void, and charges have states of their own", |mini| {
        for book in [&mut mini.live, &mut mini.test, &mut mini.second] {
            let states = |it: &mut Value| {
                if it["status"] == "canceled" {
                    it["status"] = json!("CANCELLED_BY_MERCHANT");
                }
            };
            book.charges.iter_mut().for_each(states);
            book.events.iter_mut().for_each(|it| states(&mut it["charge"]));
            book.invoices[0]["status"] = json!("void");
        }
    }),
    plain("items of the lists show a code and little else", |mini| {
        mini.warp(|asked, reply| {
            if reply.status == 200 && matches!(asked.path.as_str(), "/v1/charges" | "/v1/invoices") {
                for row in reply.body["data"].as_array_mut().into_iter().flatten() {
                    *row = json!({ "code": row["code"], "url": "https://pay.example/x" });
                }
            }
        });
    }),
    plain("items of the lists show nothing to tell them apart", |mini| {
        mini.warp(|asked, reply| {
            if reply.status == 200 && matches!(asked.path.as_str(), "/v1/charges" | "/v1/invoices") {
                for row in reply.body["data"].as_array_mut().into_iter().flatten() {
                    *row = json!({ "status": row["status"] });
                }
            }
        });
    }),
    // Events.
    plain("a single event stands bare", |mini| manners(mini, |it| it.bare_event = true)),
    plain("ids are random", |mini| {
        for (world, book) in [(1, &mut mini.live), (2, &mut mini.test), (3, &mut mini.second)] {
            for (at, event) in (0_u64..).zip(&mut book.events) {
                let mixed = (at + world * 1_000 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (head, tail) = (mixed >> 32, mixed & 0xffff_ffff_ffff);
                event["id"] = json!(format!("{head:08x}-5f3e-4ab1-9def-{tail:012x}"));
            }
        }
    }),
    plain("ids are in capitals", |mini| {
        for book in [&mut mini.live, &mut mini.test, &mut mini.second] {
            for event in &mut book.events {
                event["id"] = json!(event["id"].as_str().expect("an id").to_uppercase());
            }
        }
    }),
    plain("UTC is written as an offset of zero", |mini| manners(mini, |it| it.utc = "+00:00")),
    plain("times have no fractions", |mini| times(mini, |time| time.replace(".000000", ""))),
    plain("times are exact to the millisecond", |mini| times(mini, |time| time.replace(".000000", ".123"))),
    plain("times are exact to the nanosecond", |mini| times(mini, |time| time.replace('Z', "321Z"))),
    plain("all events are of the same second", |mini| {
        times(mini, |_| "2025-12-01T10:00:00.000000Z".to_owned());
    }),
    plain("details say what changed", |mini| {
        for book in [&mut mini.live, &mut mini.test] {
            book.events
                .iter_mut()
                .for_each(|it| it["details"] = json!({ "txid": "ab12", "received": "0.5" }));
        }
    }),
    plain("events have members of their own", |mini| {
        for book in [&mut mini.live, &mut mini.test] {
            book.events.iter_mut().for_each(|it| it["livemode"] = json!(false));
        }
    }),
    // More than was asked for, and how it is written.
    plain("answers carry more members and more headers", |mini| {
        let mut request = 0;
        mini.warp(move |_, reply| {
            request += 1;
            reply.set("x-request-id", &format!("r-{request}"));
            reply.set("x-served-by", ["a", "b", "b", "a", "c"][request % 5]);
            reply.set("content-type", "application/json; charset=utf-8");
            if let Some(body) = reply.body.as_object_mut() {
                body.insert("trace".into(), json!(format!("t-{request}")));
            }
        });
    }),
    plain("headers tell what is left of the limit", |mini| {
        let mut left = 10_000;
        mini.warp(move |_, reply| {
            left -= 1;
            reply.set("x-ratelimit-remaining", &left.to_string());
        });
    }),
    plain("names stand in another order", |mini| raw(mini, backwards)),
    plain("slashes are escaped", |mini| raw(mini, |body| body.to_string().replace('/', "\\/"))),
    plain("JSON is written over many lines", |mini| {
        raw(mini, |body| serde_json::to_string_pretty(body).expect("JSON"));
    }),
    plain("bodies come in chunks", |mini| mini.wire.chunked = true),
    plain("each connection serves one request", |mini| mini.wire.closed = true),
    plain("HTTP is that of 1996", |mini| {
        mini.wire.old = true;
        mini.wire.closed = true;
    }),
    plain("names of headers begin with a capital", |mini| mini.wire.title_case = true),
    plain("answers are slow", |mini| mini.tick = Duration::from_millis(200)),
    plain("one answer is a 502 of the proxy", |mini| {
        let mut request = 0;
        mini.warp(move |_, reply| {
            request += 1;
            if request == 160 {
                *reply = Reply::json(502, Value::Null);
                reply.raw = Some("<html>502 Bad Gateway</html>".into());
                reply.set("content-type", "text/html");
            }
        });
    }),
];

const fn plain(name: &'static str, choose: fn(&mut Mini)) -> Variant {
    Variant { name, warns: &[], choose }
}

/// A choice is one of the whole service.
pub fn manners(mini: &mut Mini, choose: impl Fn(&mut Manners)) {
    for book in [&mut mini.live, &mut mini.test, &mut mini.second] {
        choose(&mut book.manners);
    }
}

fn on(mini: &mut Mini, status: u16, change: fn(&mut Reply)) {
    mini.warp(move |_, reply| {
        if reply.status == status {
            change(reply);
        }
    });
}

fn problem(reply: &mut Reply, title: &str) {
    reply.body = json!({ "type": "about:blank", "title": title, "status": reply.status });
    reply.set("content-type", "application/problem+json");
}

fn times(mini: &mut Mini, write: fn(&str) -> String) {
    for book in [&mut mini.live, &mut mini.test, &mut mini.second] {
        for row in book.events.iter_mut().chain(&mut book.charges).chain(&mut book.invoices) {
            row["created_at"] = json!(write(row["created_at"].as_str().expect("a time")));
        }
    }
}

fn each_link(mini: &mut Mini, write: fn(&str) -> String) {
    mini.warp(move |_, reply| {
        for rel in ["first", "last", "prev", "next"] {
            if let Some(link) = reply.body["links"][rel].as_str() {
                reply.body["links"][rel] = json!(write(link));
            }
        }
    });
}

fn raw(mini: &mut Mini, write: fn(&Value) -> String) {
    mini.warp(move |_, reply| reply.raw = Some(write(&reply.body)));
}

/// JSON with the names of each object in falling order.
fn backwards(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().rev();
            let members: Vec<_> =
                members.map(|(name, inner)| format!("{}:{}", json!(name), backwards(inner))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(backwards).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}
