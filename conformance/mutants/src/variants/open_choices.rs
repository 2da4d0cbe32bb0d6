//! Correct services with other choices that the specification leaves open: in JSON, payments, filters, texts, headers
//! and limits.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Variant, replace_links, rewrite_body_text, rewrite_status, set_choices, variant};
use crate::fake::book::{ChargeEvent, has_event_id_of_other_account};
use crate::fake::{EditableResponse, FakeServer, Limiter, Request, http_server};
use crate::mutant::rewrite_matching;

/// The statement that services without HEAD do not satisfy. It follows from HTTP, not from the specification.
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
    variant("`meta` is a member of the account, without an envelope", |server| {
        server.rewrite_responses(|request, response| {
            if request.path == "/v1/account" && response.status == 200 {
                let mut body = response.body["data"].take();
                body["meta"] = response.body["meta"].take();
                response.body = body;
            }
        });
    }),
    variant("`meta` is a member of the account, in an envelope", |server| {
        server.rewrite_responses(|request, response| {
            if request.path == "/v1/account" && response.status == 200 {
                response.body["data"]["meta"] = response.body["meta"].take();
                drop(response.body.as_object_mut().and_then(|body| body.remove("meta")));
            }
        });
    }),
    variant("each mode numbers its own charges and invoices", use_sequential_codes),
    variant("both modes have payment links with the same names", use_named_links),
    variant("an event of the other account gets 403", |server| {
        rewrite_matching(server, 404, has_event_id_of_other_account, |_, response| response.status = 403);
    }),
    variant("payments are partial, late and excessive", |server| record_odd_payments(server, false)),
    variant("payments are partial, late and excessive, and events show the current charge", |server| {
        record_odd_payments(server, true)
    }),
    variant("filters are case-insensitive", |server| {
        set_filter_matching(server, |_, row_value, filter_value| row_value.eq_ignore_ascii_case(filter_value))
    }),
    variant("filter values are trimmed", |server| {
        set_filter_matching(server, |_, row_value, filter_value| row_value == filter_value.trim())
    }),
    variant("a page past the end shows the last page", |server| {
        set_choices(server, |choices| choices.shows_last_page = true);
    }),
    variant("texts are not ASCII", |server| {
        set_descriptions(server, "Grüner Tee – 茶 🍵");
        rewrite_status(server, 401, |response| {
            response.body = json!({ "message": "Ungültiger Schlüssel – 無効" })
        });
        rewrite_status(server, 404, |response| {
            response.body = json!({ "message": "Nicht gefunden – 見つかりません" })
        });
    }),
    variant("descriptions contain U+FFFD", |server| {
        // As a character, U+FFFD would be sent as an invalid byte, so a placeholder is replaced by an escape.
        set_descriptions(server, "T&#65533;");
        rewrite_body_text(server, |body| body.to_string().replace("&#65533;", "\\ufffd"));
    }),
    variant("non-ASCII text is escaped", |server| {
        set_descriptions(server, "Grüner Tee");
        rewrite_body_text(server, |body| body.to_string().replace('ü', "\\u00fc"));
    }),
    variant("ampersands are escaped, as in Go", |server| {
        set_descriptions(server, "Tea & <cake>");
        rewrite_body_text(server, |body| {
            body.to_string().replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e")
        });
    }),
    variant("every response has an ETag and is cacheable by the client", |server| {
        server.rewrite_responses(|_, response| {
            let tag = response
                .body
                .to_string()
                .bytes()
                .fold(7_u64, |sum, byte| sum * 31 % 1_000_003 + u64::from(byte));
            response.set_header("etag", &format!("W/\"{tag:x}\""));
            response.set_header("cache-control", "private, max-age=0, must-revalidate");
            response.set_header("vary", "Authorization, Accept");
        });
    }),
    variant("every response sets a cookie", |server| {
        let mut count = 0;
        server.rewrite_responses(move |_, response| {
            count += 1;
            response.set_header("set-cookie", &format!("session={count:08x}; HttpOnly; SameSite=Lax"));
        });
    }),
    variant("an error has a request id", |server| {
        let mut count = 0;
        server.rewrite_responses(move |_, response| {
            count += 1;
            if response.status >= 400 {
                response.body =
                    json!({ "error": { "message": "Refused.", "request_id": format!("req_{count:06}") } });
            }
        });
    }),
    variant("an error has a timestamp", |server| {
        let clock = server.clock.clone();
        server.rewrite_responses(move |request, response| {
            if response.status >= 400 {
                let now = http_server::timestamp(clock.micros());
                response.body = json!({ "timestamp": now, "status": response.status, "error": "Refused", "message": "Refused.", "path": request.path });
            }
        });
    }),
    variant("details contain numbers, nulls and lists", |server| {
        for book in [&mut server.live, &mut server.test] {
            for event in &mut book.events {
                event["details"] = json!({ "attempt": 2, "reason": null, "transactions": [{ "txid": "ab", "confirmations": 3 }] });
            }
        }
    }),
    variant("amounts in events have a varying number of decimals", |server| {
        for book in [&mut server.live, &mut server.test] {
            for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
                event["charge"]["fiat_amount"] = json!("49.9");
                event["charge"]["asset_amount"] = json!("0.000761920");
            }
        }
    }),
    variant("amounts of invoices are numbers, and customers are strings", |server| {
        for book in [&mut server.live, &mut server.test] {
            let change = |invoice: &mut Value| {
                invoice["amount"] = json!(4990);
                invoice["customer"] = json!("Ann Leerick");
                invoice["number"] = json!(17);
            };
            book.invoices.iter_mut().for_each(change);
            book.events
                .iter_mut()
                .filter(|event| event["invoice"].is_object())
                .for_each(|event| change(&mut event["invoice"]));
        }
    }),
    variant("an invoice lists only the codes of its charges", |server| {
        for book in [&mut server.live, &mut server.test] {
            let change = |invoice: &mut Value| {
                let codes: Vec<_> = invoice["charges"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|charge| charge["code"].clone())
                    .collect();
                invoice["charges"] = json!(codes);
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
            for (index, charge) in book.charges.iter_mut().enumerate() {
                charge["id"] = json!(count - index);
            }
        }
    }),
    variant("rows of charges have times in seconds since 1970", |server| {
        server.rewrite_responses(|request, response| {
            if request.path == "/v1/charges"
                && let Some(rows) = response.body["data"].as_array_mut()
            {
                let count = rows.len() as u64;
                for (index, charge) in (0..).zip(rows) {
                    charge["created_at"] = json!(1_764_547_200 + (count - index) * 60);
                }
            }
        });
    }),
    Variant {
        name: "HEAD is refused",
        warns: NO_HEAD,
        choose: |server| {
            server.rewrite_responses(|request, response| {
                if request.method == "HEAD" && response.status < 400 {
                    *response = EditableResponse::json(405, json!({ "message": "Method not allowed." }));
                    response.set_header("allow", "GET");
                }
            });
        },
    },
    variant("an unknown status gets 422 with a list of the valid ones", |server| {
        server.rewrite_responses(|request, response| {
            let is_known = |status: &String| {
                matches!(status.as_str(), "paid" | "canceled" | "open" | "void" | "pending" | "expired")
            };
            if request.is_list()
                && response.status == 200
                && request.query.get("status").is_some_and(|status| !is_known(status))
            {
                *response = EditableResponse::json(
                    422,
                    json!({ "message": "status must be paid or canceled", "errors": { "status": ["unknown"] } }),
                );
            }
        });
    }),
    variant("last of an empty filtered list is the first page", |server| {
        server.rewrite_responses(|request, response| {
            if request.is_list() && response.body["meta"]["total"] == 0 && request.query.len() > 1 {
                response.body["links"]["last"] = response.body["links"]["first"].clone();
                response.body["meta"]["from"] = Value::Null;
            }
        });
    }),
    variant("links encode dots and underscores too", |server| {
        server.rewrite_responses(|_, response| {
            replace_links(response, |link| match link.split_once('?') {
                Some((path, query)) => format!("{path}?{}", query.replace('_', "%5F").replace('.', "%2E")),
                None => link.to_owned(),
            });
        });
    }),
    variant("links have a trailing slash in their path", |server| {
        server.rewrite_requests(|request| request.path = request.path.trim_end_matches('/').to_owned());
        server.rewrite_responses(|request, response| {
            if request.is_list() {
                replace_links(response, |link| link.replacen('?', "/?", 1));
            }
        });
    }),
    variant("quota headers with the end of the window in all responses except 401", |server| {
        server.limiter = Limiter::FromFirst;
        server.reports_quota = true;
        server.response_time = Duration::from_millis(7);
        let clock = server.clock.clone();
        server.rewrite_responses(move |_, response| {
            if response.status != 401 {
                response.set_header(
                    "x-ratelimit-reset",
                    &(http_server::EPOCH_UNIX_SECONDS + clock.micros() / 60_000_000 * 60 + 60).to_string(),
                );
            }
        });
    }),
    variant("GCRA, and Retry-After is always 1", |server| {
        server.limiter = Limiter::Gcra;
        server.response_time = Duration::from_millis(3);
        rewrite_status(server, 429, |response| response.set_header("retry-after", "1"));
    }),
    variant("the first response takes two seconds", |server| {
        let (clock, mut is_first) = (server.clock.clone(), true);
        server.rewrite_responses(move |_, _| {
            if std::mem::replace(&mut is_first, false) {
                clock.advance(Duration::from_secs(2));
            }
        });
    }),
    variant("one response is a 503 with Retry-After", |server| {
        let mut count = 0;
        server.rewrite_responses(move |_, response| {
            count += 1;
            if count == 170 {
                *response = EditableResponse::json(503, json!({ "message": "Restarting." }));
                response.set_header("retry-after", "1");
            }
        });
    }),
    variant("an id that is not a UUID gets 400", |server| {
        let has_invalid_id =
            |request: &Request| request.path.strip_prefix("/v1/events/").is_some_and(|id| id.len() != 36);
        rewrite_matching(server, 404, has_invalid_id, |_, response| {
            *response = EditableResponse::json(400, json!({ "message": "The id is not a UUID." }));
        });
    }),
    variant("one charge is expired", |server| {
        for book in [&mut server.live, &mut server.test] {
            let code = book.charges[1]["code"].clone();
            for event in &mut book.events {
                if event["charge"]["code"] == code && event["type"] == "charge.canceled" {
                    event["type"] = json!("charge.expired");
                }
                if event["charge"]["code"] == code && event["charge"].is_object() {
                    event["charge"]["status"] = json!("expired");
                }
            }
            book.charges[1]["status"] = json!("expired");
        }
    }),
];

/// Makes a server change `meta` of the account.
fn change_account_meta(server: &mut FakeServer, change: fn(&mut Value)) {
    server.rewrite_responses(move |request, response| {
        if request.path == "/v1/account" && response.status == 200 {
            change(&mut response.body["meta"]);
        }
    });
}

/// Sets the description of all charges.
fn set_descriptions(server: &mut FakeServer, description: &'static str) {
    for book in [&mut server.live, &mut server.test, &mut server.other_account] {
        book.charges.iter_mut().for_each(|charge| charge["description"] = json!(description));
        for event in book.events.iter_mut().filter(|event| event["charge"].is_object()) {
            event["charge"]["description"] = json!(description);
        }
    }
}

/// Sets the comparison of rows with filters in both modes.
fn set_filter_matching(server: &mut FakeServer, matches: fn(&str, &str, &str) -> bool) {
    for book in [&mut server.live, &mut server.test] {
        book.filter_matches = matches;
    }
}

/// Replaces the codes of charges, invoices and payment links by consecutive numbers, which start anew in each book.
fn use_sequential_codes(server: &mut FakeServer) {
    replace_codes(server, |kind, _, number| format!("{kind}-{}", number + 1001));
}

/// Replaces the codes of payment links by names that merchants chose, equal in both modes, and all other codes by random
/// ones.
pub(crate) fn use_named_links(server: &mut FakeServer) {
    replace_codes(server, |kind, book_index, number| match kind {
        "PL" => ["spring-sale", "donations"][number % 2].to_owned(),
        _ => {
            let mut state = (book_index * 1000 + number) as u64 + 1;
            let mut letter = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'A' + ((state >> 33) % 26) as u8)
            };
            (0..9).map(|_| letter()).collect()
        }
    });
}

/// Replaces the codes of charges, payment links and invoices. `new_code` gets the kind (`CH`, `PL` or `IN`), the index
/// of the book, and the number of the object in the book. Each book gets a different amount.
fn replace_codes(server: &mut FakeServer, new_code: impl Fn(&str, usize, usize) -> String) {
    let books =
        [("49.10", &mut server.live), ("49.20", &mut server.test), ("49.30", &mut server.other_account)];
    for (book_index, (amount, book)) in books.into_iter().enumerate() {
        let mut codes = BTreeMap::new();
        let mut replace = |value: &mut Value, kind: &str| {
            if let Some(code) = value.as_str() {
                let number = codes.len();
                let code: &String =
                    codes.entry(code.to_owned()).or_insert_with(|| new_code(kind, book_index, number));
                *value = json!(code);
            }
        };
        for charge in book.charges.iter_mut().rev() {
            replace(&mut charge["code"], "CH");
            replace(&mut charge["payment_link"], "PL");
            charge["fiat_amount"] = json!(amount);
        }
        for invoice in book.invoices.iter_mut().rev() {
            replace(&mut invoice["code"], "IN");
            invoice["amount"] = json!(amount);
            for charge in invoice["charges"].as_array_mut().into_iter().flatten() {
                replace(&mut charge["code"], "CH");
            }
        }
        for event in book.events.iter_mut().rev() {
            if event["charge"].is_object() {
                replace(&mut event["charge"]["code"], "CH");
                replace(&mut event["charge"]["payment_link"], "PL");
                event["charge"]["fiat_amount"] = json!(amount);
            }
            if event["invoice"].is_object() {
                replace(&mut event["invoice"]["code"], "IN");
                event["invoice"]["amount"] = json!(amount);
                for charge in event["invoice"]["charges"].as_array_mut().into_iter().flatten() {
                    replace(&mut charge["code"], "CH");
                }
            }
        }
    }
}

/// Records charges with unusual payments: partial, late, additional and accepted ones. `shows_current_charge` makes their
/// events show the current charge.
fn record_odd_payments(server: &mut FakeServer, shows_current_charge: bool) {
    const HALF: &str = "0.00038096";
    const PRICE: &str = "0.00076192";
    const MORE: &str = "0.00080000";
    let created = ChargeEvent::unpaid("charge.created", "0");
    let detected = |received| ChargeEvent::unpaid("charge.payment_detected", received);
    let underpaid = |received| ChargeEvent::unpaid("charge.underpaid", received);
    let paid = |received| ChargeEvent::paid("charge.paid", received);
    let histories: [&[ChargeEvent]; 7] = [
        // The first of two transfers is confirmed, and both are shown as received.
        &[created, detected(HALF), detected(PRICE), underpaid(PRICE), paid(PRICE)],
        &[created, detected(HALF), underpaid(HALF), ChargeEvent::unpaid("charge.expired", HALF)],
        // An underpaid charge has `paid_at`.
        &[
            created,
            detected(HALF),
            ChargeEvent::paid("charge.underpaid", HALF),
            ChargeEvent::paid("charge.expired", HALF),
        ],
        // A late payment is accepted before a job records the expiry.
        &[
            created,
            ChargeEvent::unpaid("charge.late_payment", PRICE),
            paid(PRICE),
            ChargeEvent::paid("charge.expired", PRICE),
        ],
        &[created, paid(PRICE), paid(MORE)],
        &[created, detected(PRICE), paid(PRICE), detected(MORE), paid(MORE)],
        // The owner accepted an underpayment.
        &[created, detected(HALF), paid(HALF)],
    ];
    for (book_number, book) in [(1, &mut server.live), (2, &mut server.test)] {
        book.choices.events_show_current_objects = shows_current_charge;
        for (number, history) in (500..).zip(histories) {
            book.record_charge(book_number, number, history);
        }
    }
}
