//! Faults in the rate limit and in deliveries.

use std::collections::BTreeMap;
use std::time::Duration;

use conformance::Mode;
use serde_json::json;

use crate::fake::{self, Limiter, Reply, wire};
use crate::mutant::{Mutant, add_sender, body, charge, delivery, remove, reply, rule};

pub(crate) const MUTANTS: &[Mutant] = &[
    // The limit.
    rule("every tenth request is not counted", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let (clock, mut minute, mut requests, mut counted) = (server.clock.clone(), 0, 0_u64, 0);
        server.tick = Duration::from_millis(5);
        server.rewrite(move |request, response| {
            if request.authorization.as_deref() != Some(&format!("Bearer {}", fake::TEST_KEY)) {
                return;
            }
            let now = clock.micros() / 60_000_000;
            if now != minute {
                (minute, counted) = (now, 0);
            }
            requests += 1;
            counted += u64::from(!requests.is_multiple_of(10));
            if counted > 120 {
                *response = Reply::json(429, json!({ "message": "Too many requests." }));
                response.set("retry-after", &(60 - clock.micros() / 1_000_000 % 60).to_string());
            }
        });
    }),
    rule("the date of Retry-After is local time", &["limits.retry_after"], |server| {
        let clock = server.clock.clone();
        server.rewrite(move |_, response| {
            if response.status == 429 {
                let now = clock.micros() / 1_000_000;
                response.set("date", &wire::http_date(now));
                response.set("retry-after", &wire::http_date(now + 3_660));
            }
        });
    }),
    rule("a refused key is locked out for five minutes", &["limits.retry_after_held"], |server| {
        let (clock, mut lockouts) = (server.clock.clone(), BTreeMap::new());
        server.rewrite(move |request, response| {
            let now = clock.micros();
            let locked_until = lockouts.entry(request.authorization.clone()).or_insert(0);
            if response.status == 429 && *locked_until < now {
                *locked_until = now + 300_000_000;
            } else if now < *locked_until && response.status == 200 {
                *response = Reply::json(429, json!({ "message": "Too many requests." }));
                response.set("retry-after", "60");
            }
        });
    })
    .may_fail(&["limits.retry_after"]),
    rule("three replicas count separately", &["limits.refused"], |server| server.replicas = 3),
    reply("a 429 has an empty message", &["limits.json"], 429, |_, response| {
        response.body = json!({ "message": "" })
    }),
    reply("too many requests get 420", &["limits.refused"], 429, |_, response| response.status = 420),
    rule("a limit of 240 requests in two minutes", &["limits.retry_after"], |server| {
        (server.limiter, server.limit) = (Limiter::FromFirst, 240);
        (server.window, server.tick) = (Duration::from_secs(120), Duration::from_millis(5));
    })
    .may_fail(&["limits.refused", "limits.retry_after", "limits.retry_after_held"]),
    rule("fixed windows of 55 s", &["limits.refused"], |server| {
        (server.limiter, server.window) = (Limiter::AlignedMinute, Duration::from_secs(55));
        server.tick = Duration::from_millis(5);
        server.clock.advance(Duration::from_secs(20));
    }),
    rule("a window of 10 s from the first request", &["limits.refused"], |server| {
        (server.limiter, server.window) = (Limiter::FromFirst, Duration::from_secs(10));
        server.tick = Duration::from_millis(5);
    }),
    // Deliveries.
    body("timestamps of deliveries have an offset of two hours", &["webhooks.created_at"], |_, body| {
        let time = body["created_at"].as_str().expect("the time is a string").replace('Z', "+02:00");
        body["created_at"] = json!(time);
    })
    .may_fail(&["webhooks.clock"]),
    delivery("the event header has an underscore", &["webhooks.event_header"], |delivery, request| {
        request.set("X-Service-Event", &delivery.kind.replace('.', "_"))
    }),
    delivery("the event header is in upper case", &["webhooks.event_header"], |delivery, request| {
        request.set("X-Service-Event", &delivery.kind.to_uppercase())
    }),
    charge("crypto amounts are written with an exponent", &["charges.amounts"], "charge.paid", |charge| {
        charge["asset_amount"] = json!("7.6192E-4")
    })
    .may_fail(&["charges.asset_amount", "webhooks.event_id"]),
    charge("crypto amounts have 19 decimals", &["charges.asset_amount"], "charge.paid", |charge| {
        charge["asset_amount"] = json!("0.0007619200000000000")
    }),
    charge("fiat amounts have no decimals", &["charges.fiat_amount"], "charge.paid", |charge| {
        charge["fiat_amount"] = json!("49")
    })
    .may_fail(&["webhooks.event_id"]),
    charge("paid_at has milliseconds", &["charges.paid_at"], "charge.paid", |charge| {
        charge["paid_at"] = json!("2026-02-01T10:00:00.123Z")
    }),
    charge("a charge without a payment link omits the field", &["charges.fields"], "charge.paid", |charge| {
        remove(charge, "payment_link")
    }),
    charge("the received amount of a delivery is wrong", &["webhooks.event_id"], "charge.paid", |charge| {
        charge["received_amount"] = json!("0.000761930000000000")
    }),
    body("invoices of deliveries have no charges", &["invoices.fields"], |delivery, body| {
        if delivery.kind.starts_with("invoice.") {
            remove(&mut body["data"]["invoice"], "charges");
        }
    }),
    body("modes start with a capital letter", &["webhooks.mode"], |delivery, body| {
        body["mode"] = json!(if delivery.mode == Mode::Live { "Live" } else { "Test" })
    })
    .may_fail(&["webhooks.mode_endpoints"]),
    rule("live endpoints get test events too", &["webhooks.mode_endpoints"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_of_mode = endpoint.mode == Some(mode) || endpoint.mode == Some(Mode::Live);
                is_of_mode && endpoint.events.as_ref().is_some_and(|types| types.contains(event_type))
            };
        });
    }),
    delivery("deliveries have the Content-Type text/json", &["webhooks.content_type"], |_, request| {
        request.set("Content-Type", "text/json")
    }),
    delivery("the User-Agent has an extra minor version", &["webhooks.user_agent"], |_, request| {
        request.set("User-Agent", "Service-Webhooks/1.0.3")
    }),
];
