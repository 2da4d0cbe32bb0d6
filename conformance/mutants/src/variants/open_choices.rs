//! Correct services with other choices where the specification leaves one: shapes, orders, caches, limits and texts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Variant, each_link, rewrite_body_text, rewrite_status, set_choices, variant};
use crate::fake::{FakeServer, Limiter, Reply, Request};
use crate::mutant::rewrite;

/// The statement about HEAD, which follows from HTTP and not from the specification.
const NO_HEAD: &[&str] = &["answers.head"];

pub(super) const VARIANTS: &[Variant] = &[
    variant("accepted assets are objects with a code", |server| {
        change_account_meta(server, |meta| {
            meta["accepted_assets"] = json!([{ "code": "BTC", "network": "bitcoin" }])
        });
    }),
    variant(super::NO_ASSETS, |server| {
        change_account_meta(server, |meta| meta["accepted_assets"] = json!([]));
    }),
    variant("the account has its meta as a member", |server| {
        server.rewrite(|request, reply| {
            if request.path == "/v1/account" && reply.status == 200 {
                let mut body = reply.body["data"].take();
                body["meta"] = reply.body["meta"].take();
                reply.body = body;
            }
        });
    }),
    variant("each mode numbers its own charges and invoices", use_sequential_codes),
    variant("both modes have payment links of the same names", use_named_links),
    variant("an event of the other account is forbidden", |server| {
        let of_second = |request: &Request| request.path.contains("-7ab3-");
        rewrite(server, 404, of_second, |_, reply| reply.status = 403);
    }),
    variant("payments are in parts, late and in excess", |server| record_odd_payments(server, false)),
    variant("events of payments show the current charge", |server| record_odd_payments(server, true)),
    variant("filters compare without case", |server| {
        set_filter_matching(server, |_, shown, wanted| shown.eq_ignore_ascii_case(wanted))
    }),
    variant("filter values are trimmed", |server| {
        set_filter_matching(server, |_, shown, wanted| shown == wanted.trim())
    }),
    variant("a page past the end shows the last page", |server| {
        set_choices(server, |choices| choices.shows_last_page = true);
    }),
    variant("texts contain characters beyond ASCII", |server| {
        set_descriptions(server, "Grüner Tee – 茶 🍵");
        rewrite_status(server, 401, |reply| reply.body = json!({ "message": "Ungültiger Schlüssel – 無効" }));
        rewrite_status(server, 404, |reply| {
            reply.body = json!({ "message": "Nicht gefunden – 見つかりません" })
        });
    }),
    variant("texts hold the replacement character itself", |server| {
        set_descriptions(server, "T&#65533;");
        rewrite_body_text(server, |body| body.to_string().replace("&#65533;", "\\ufffd"));
    }),
    variant("text beyond ASCII is escaped", |server| {
        set_descriptions(server, "Grüner Tee");
        rewrite_body_text(server, |body| body.to_string().replace('ü', "\\u00fc"));
    }),
    variant("ampersands are escaped, as Go does it", |server| {
        set_descriptions(server, "Tea & <cake>");
        rewrite_body_text(server, |body| {
            body.to_string().replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
        });
    }),
    variant("every response has an ETag and is privately cacheable", |server| {
        server.rewrite(|_, reply| {
            let tag = reply
                .body
                .to_string()
                .bytes()
                .fold(7_u64, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte));
            reply.set("etag", &format!("W/\"{tag:x}\""));
            reply.set("cache-control", "private, max-age=0, must-revalidate");
            reply.set("vary", "Authorization, Accept");
        });
    }),
    variant("every response sets a cookie", |server| {
        let mut count = 0;
        server.rewrite(move |_, reply| {
            count += 1;
            reply.set("set-cookie", &format!("session={count:08x}; HttpOnly; SameSite=Lax"));
        });
    }),
    variant("a refusal has a request id", |server| {
        let mut count = 0;
        server.rewrite(move |_, reply| {
            count += 1;
            if reply.status >= 400 {
                reply.body =
                    json!({ "error": { "message": "Refused.", "request_id": format!("req_{count:06}") } });
            }
        });
    }),
    variant("a refusal has a timestamp", |server| {
        let clock = server.clock.clone();
        server.rewrite(move |request, reply| {
            if reply.status >= 400 {
                let at = crate::fake::wire::timestamp(clock.micros());
                reply.body = json!({ "timestamp": at, "status": reply.status, "error": "Refused", "message": "Refused.", "path": request.path });
            }
        });
    }),
    variant("details hold numbers, nulls and lists", |server| {
        for book in [&mut server.live, &mut server.test] {
            for event in &mut book.events {
                event["details"] = json!({ "attempt": 2, "reason": null, "transactions": [{ "txid": "ab", "confirmations": 3 }] });
            }
        }
    }),
    variant("amounts of events have as many decimals as they need", |server| {
        for book in [&mut server.live, &mut server.test] {
            for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
                event["charge"]["fiat_amount"] = json!("49.9");
                event["charge"]["asset_amount"] = json!("0.000761920");
            }
        }
    }),
    variant("invoices have amounts in numbers and customers in texts", |server| {
        for book in [&mut server.live, &mut server.test] {
            let change = |value: &mut Value| {
                value["amount"] = json!(4990);
                value["customer"] = json!("Ann Leerick");
                value["number"] = json!(17);
            };
            book.invoices.iter_mut().for_each(change);
            book.events
                .iter_mut()
                .filter(|event| event["invoice"].is_object())
                .for_each(|event| change(&mut event["invoice"]));
        }
    }),
    variant("charges of an invoice are their codes", |server| {
        for book in [&mut server.live, &mut server.test] {
            let change = |value: &mut Value| {
                let codes: Vec<_> = value["charges"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|charge| charge["code"].clone())
                    .collect();
                value["charges"] = json!(codes);
            };
            book.invoices.iter_mut().for_each(change);
            book.events
                .iter_mut()
                .filter(|event| event["invoice"].is_object())
                .for_each(|event| change(&mut event["invoice"]));
        }
    }),
    variant("rows have numeric ids in addition to their codes", |server| {
        for book in [&mut server.live, &mut server.test, &mut server.other_account] {
            let count = book.charges.len();
            for (at, charge) in book.charges.iter_mut().enumerate() {
                charge["id"] = json!(count - at);
            }
        }
    }),
    variant("rows of charges have times in seconds since 1970", |server| {
        server.rewrite(|request, reply| {
            if request.path == "/v1/charges"
                && let Some(rows) = reply.body["data"].as_array_mut()
            {
                let count = rows.len() as u64;
                for (at, charge) in (0..).zip(rows) {
                    charge["created_at"] = json!(1_764_547_200 + (count - at) * 60);
                }
            }
        });
    }),
    Variant {
        name: "HEAD is refused",
        warns: NO_HEAD,
        choose: |server| {
            server.rewrite(|request, reply| {
                if request.method == "HEAD" && reply.status < 400 {
                    *reply = Reply::json(405, json!({ "message": "Method not allowed." }));
                    reply.set("allow", "GET");
                }
            });
        },
    },
    variant("an unknown status is refused with a list of the valid ones", |server| {
        server.rewrite(|request, reply| {
            let known = |text: &String| {
                matches!(text.as_str(), "paid" | "canceled" | "open" | "void" | "pending" | "expired")
            };
            if request.is_list()
                && reply.status == 200
                && request.query.get("status").is_some_and(|value| !known(value))
            {
                *reply = Reply::json(
                    422,
                    json!({ "message": "status takes paid, canceled", "errors": { "status": ["unknown"] } }),
                );
            }
        });
    }),
    variant("a filter with an unknown value has no last page", |server| {
        server.rewrite(|request, reply| {
            if request.is_list() && reply.body["meta"]["total"] == 0 && request.query.len() > 1 {
                reply.body["links"]["last"] = reply.body["links"]["first"].clone();
                reply.body["meta"]["from"] = Value::Null;
            }
        });
    }),
    variant("links encode dots and underscores too", |server| {
        server.rewrite(|_, reply| {
            each_link(reply, |link| match link.split_once('?') {
                Some((path, query)) => format!("{path}?{}", query.replace('_', "%5F").replace('.', "%2E")),
                None => link.to_owned(),
            });
        });
    }),
    variant("links have a trailing slash in their path", |server| {
        server.rewrite_requests(|request| request.path = request.path.trim_end_matches('/').to_owned());
        server.rewrite(|request, reply| {
            if request.is_list() {
                each_link(reply, |link| link.replacen('?', "/?", 1));
            }
        });
    }),
    variant("quota headers with the window's end in all responses but 401", |server| {
        server.limiter = Limiter::FromFirst;
        server.reports_quota = true;
        server.tick = Duration::from_millis(7);
        let clock = server.clock.clone();
        server.rewrite(move |_, reply| {
            if reply.status != 401 {
                reply.set(
                    "x-ratelimit-reset",
                    &(1_767_225_600 + clock.micros() / 60_000_000 * 60 + 60).to_string(),
                );
            }
        });
    }),
    variant("GCRA, and Retry-After is always 1", |server| {
        server.limiter = Limiter::Gcra;
        server.tick = Duration::from_millis(3);
        rewrite_status(server, 429, |reply| reply.set("retry-after", "1"));
    }),
    variant("the first response takes two seconds", |server| {
        let (clock, mut is_first) = (server.clock.clone(), true);
        server.rewrite(move |_, _| {
            if std::mem::replace(&mut is_first, false) {
                clock.advance(Duration::from_secs(2));
            }
        });
    }),
    variant("one response is a 503 with Retry-After", |server| {
        let mut count = 0;
        server.rewrite(move |_, reply| {
            count += 1;
            if count == 170 {
                *reply = Reply::json(503, json!({ "message": "Restarting." }));
                reply.set("retry-after", "1");
            }
        });
    }),
    variant("a request with an id that is not a UUID is refused", |server| {
        let odd =
            |request: &Request| request.path.strip_prefix("/v1/events/").is_some_and(|id| id.len() != 36);
        rewrite(server, 404, odd, |_, reply| {
            *reply = Reply::json(400, json!({ "message": "The id is not a UUID." }));
        });
    }),
    variant("charges are pending, underpaid and expired too", |server| {
        for book in [&mut server.live, &mut server.test] {
            let codes = [1, 3, 5].map(|at| book.charges[at]["code"].clone());
            for event in &mut book.events {
                if event["charge"]["code"] == codes[0] && event["type"] == "charge.canceled" {
                    event["type"] = json!("charge.expired");
                }
                if event["charge"]["code"] == codes[0] && event["charge"].is_object() {
                    event["charge"]["status"] = json!("expired");
                }
            }
            book.charges[1]["status"] = json!("expired");
        }
    }),
];

fn change_account_meta(server: &mut FakeServer, change: fn(&mut Value)) {
    server.rewrite(move |request, reply| {
        if request.path == "/v1/account" && reply.status == 200 {
            change(&mut reply.body["meta"]);
        }
    });
}

fn set_descriptions(server: &mut FakeServer, text: &'static str) {
    for book in [&mut server.live, &mut server.test, &mut server.other_account] {
        book.charges.iter_mut().for_each(|charge| charge["description"] = json!(text));
        for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
            event["charge"]["description"] = json!(text);
        }
    }
}

fn set_filter_matching(server: &mut FakeServer, compares: fn(&str, &str, &str) -> bool) {
    for book in [&mut server.live, &mut server.test] {
        book.filter_matches = compares;
    }
}

/// Replaces the codes of charges, invoices and payment links by consecutive numbers, in each mode and each account.
fn use_sequential_codes(server: &mut FakeServer) {
    replace_codes(server, |kind, _, number| format!("{kind}-{}", number + 1001));
}

/// Replaces the codes of payment links by names that merchants chose, equal in both modes, and all other codes by random
/// ones.
pub(crate) fn use_named_links(server: &mut FakeServer) {
    replace_codes(server, |kind, book, number| match kind {
        "PL" => ["spring-sale", "donations"][number % 2].to_owned(),
        _ => {
            let mut state = (book * 1000 + number) as u64 + 1;
            let mut letter = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'A' + ((state >> 33) % 26) as u8)
            };
            (0..9).map(|_| letter()).collect()
        }
    });
}

/// Replaces the codes of charges, payment links and invoices. `code_of` gets the kind (`CH`, `PL` or `IN`), the index
/// of the book, and the number of the object in the book. Each book gets a different amount.
fn replace_codes(server: &mut FakeServer, code_of: impl Fn(&str, usize, usize) -> String) {
    let books =
        [("49.10", &mut server.live), ("49.20", &mut server.test), ("49.30", &mut server.other_account)];
    for (index, (amount, book)) in books.into_iter().enumerate() {
        let mut codes = BTreeMap::new();
        let mut number = |value: &mut Value, kind: &str| {
            if let Some(code) = value.as_str() {
                let next = codes.len();
                let code: &String =
                    codes.entry(code.to_owned()).or_insert_with(|| code_of(kind, index, next));
                *value = json!(code);
            }
        };
        for charge in book.charges.iter_mut().rev() {
            number(&mut charge["code"], "CH");
            number(&mut charge["payment_link"], "PL");
            charge["fiat_amount"] = json!(amount);
        }
        for invoice in book.invoices.iter_mut().rev() {
            number(&mut invoice["code"], "IN");
            invoice["amount"] = json!(amount);
            for charge in invoice["charges"].as_array_mut().into_iter().flatten() {
                number(&mut charge["code"], "CH");
            }
        }
        for event in book.events.iter_mut().rev() {
            if event["charge"].is_object() {
                number(&mut event["charge"]["code"], "CH");
                number(&mut event["charge"]["payment_link"], "PL");
                event["charge"]["fiat_amount"] = json!(amount);
            }
            if event["invoice"].is_object() {
                number(&mut event["invoice"]["code"], "IN");
                event["invoice"]["amount"] = json!(amount);
                for charge in event["invoice"]["charges"].as_array_mut().into_iter().flatten() {
                    number(&mut charge["code"], "CH");
                }
            }
        }
    }
}

/// Records charges with unusual payments: partial, late, additional and accepted ones.
fn record_odd_payments(server: &mut FakeServer, is_current: bool) {
    const HALF: &str = "0.00038096";
    const WHOLE: &str = "0.00076192";
    const MORE: &str = "0.00080000";
    let detected = |received| ("charge.payment_detected", received, false);
    let opened = ("charge.created", "0", false);
    let histories: [&[_]; 7] = [
        // The first of two transfers is confirmed, and both are shown as received.
        &[
            opened,
            detected(HALF),
            detected(WHOLE),
            ("charge.underpaid", WHOLE, false),
            ("charge.paid", WHOLE, true),
        ],
        &[opened, detected(HALF), ("charge.underpaid", HALF, false), ("charge.expired", HALF, false)],
        // The confirmation of an underpayment has a time.
        &[opened, detected(HALF), ("charge.underpaid", HALF, true), ("charge.expired", HALF, true)],
        // A late payment is accepted before a job records the expiry.
        &[
            opened,
            ("charge.late_payment", WHOLE, false),
            ("charge.paid", WHOLE, true),
            ("charge.expired", WHOLE, true),
        ],
        &[opened, ("charge.paid", WHOLE, true), ("charge.paid", MORE, true)],
        &[opened, detected(WHOLE), ("charge.paid", WHOLE, true), detected(MORE), ("charge.paid", MORE, true)],
        // The owner accepted an underpayment.
        &[opened, detected(HALF), ("charge.paid", HALF, true)],
    ];
    for (world, book) in [(1, &mut server.live), (2, &mut server.test)] {
        book.choices.current_objects = is_current;
        for (number, history) in (500..).zip(histories) {
            book.record_charge(world, number, history);
        }
    }
}
