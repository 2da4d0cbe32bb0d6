//! Faults in the rate limit and in deliveries.

use std::collections::BTreeMap;
use std::time::Duration;

use conformance::Mode;
use serde_json::json;

use crate::fake::{self, EditableResponse, Limiter, http_server};
use crate::mutant::{
    Mutant, add_sender, delivered_charge_fault, delivery_body_fault, delivery_fault, remove_member,
    response_fault, server_fault,
};

pub(crate) const MUTANTS: &[Mutant] = &[
    // The limit.
    server_fault("every tenth request is not counted", &["limits.refused"], |server| {
        server.limiter = Limiter::Off;
        let (clock, mut minute, mut requests, mut counted) = (server.clock.clone(), 0, 0_u64, 0);
        server.response_time = Duration::from_millis(5);
        server.rewrite_responses(move |request, response| {
            if request.authorization.as_deref() != Some(&format!("Bearer {}", fake::TEST_KEY)) {
                return;
            }
            let current_minute = clock.micros() / 60_000_000;
            if current_minute != minute {
                (minute, counted) = (current_minute, 0);
            }
            requests += 1;
            counted += u64::from(!requests.is_multiple_of(10));
            if counted > 120 {
                *response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
                response.set_header("retry-after", &(60 - clock.micros() / 1_000_000 % 60).to_string());
            }
        });
    }),
    server_fault("the date of Retry-After is local time", &["limits.retry_after"], |server| {
        let clock = server.clock.clone();
        server.rewrite_responses(move |_, response| {
            if response.status == 429 {
                let now = clock.micros() / 1_000_000;
                response.set_header("date", &http_server::http_date(now));
                response.set_header("retry-after", &http_server::http_date(now + 3_660));
            }
        });
    }),
    server_fault("a refused key is locked out for five minutes", &["limits.retry_after_held"], |server| {
        let (clock, mut lockouts) = (server.clock.clone(), BTreeMap::new());
        server.rewrite_responses(move |request, response| {
            let now = clock.micros();
            let locked_until = lockouts.entry(request.authorization.clone()).or_insert(0);
            if response.status == 429 && *locked_until < now {
                *locked_until = now + 300_000_000;
            } else if now < *locked_until && response.status == 200 {
                *response = EditableResponse::json(429, json!({ "message": "Too many requests." }));
                response.set_header("retry-after", "60");
            }
        });
    })
    .may_fail(&["limits.retry_after"]),
    server_fault("three replicas count separately", &["limits.refused"], |server| server.replicas = 3),
    response_fault("a 429 has an empty message", &["limits.json"], 429, |_, response| {
        response.body = json!({ "message": "" })
    }),
    response_fault("too many requests get 420", &["limits.refused"], 429, |_, response| {
        response.status = 420
    }),
    server_fault("a limit of 240 requests in two minutes", &["limits.retry_after"], |server| {
        (server.limiter, server.limit) = (Limiter::FromFirst, 240);
        (server.window, server.response_time) = (Duration::from_secs(120), Duration::from_millis(5));
    })
    .may_fail(&["limits.refused", "limits.retry_after", "limits.retry_after_held"]),
    server_fault("fixed windows of 55 s", &["limits.refused"], |server| {
        (server.limiter, server.window) = (Limiter::AlignedWindow, Duration::from_secs(55));
        server.response_time = Duration::from_millis(5);
        server.clock.advance(Duration::from_secs(20));
    }),
    server_fault("a window of 10 s from the first request", &["limits.refused"], |server| {
        (server.limiter, server.window) = (Limiter::FromFirst, Duration::from_secs(10));
        server.response_time = Duration::from_millis(5);
    }),
    // Deliveries.
    delivery_body_fault(
        "timestamps of deliveries have an offset of two hours",
        &["webhooks.created_at"],
        |_, body| {
            let time = body["created_at"].as_str().expect("the time is a string").replace('Z', "+02:00");
            body["created_at"] = json!(time);
        },
    )
    .may_fail(&["webhooks.clock"]),
    delivery_fault("the event header has an underscore", &["webhooks.event_header"], |delivery, request| {
        request.set_header("X-Service-Event", &delivery.event_type.replace('.', "_"))
    }),
    delivery_fault("the event header is in upper case", &["webhooks.event_header"], |delivery, request| {
        request.set_header("X-Service-Event", &delivery.event_type.to_uppercase())
    }),
    delivered_charge_fault(
        "crypto amounts are written with an exponent",
        &["charges.amounts"],
        "charge.paid",
        |charge| charge["asset_amount"] = json!("7.6192E-4"),
    )
    .may_fail(&["charges.asset_amount", "webhooks.event_id"]),
    delivered_charge_fault(
        "crypto amounts have 19 decimals",
        &["charges.asset_amount"],
        "charge.paid",
        |charge| charge["asset_amount"] = json!("0.0007619200000000000"),
    ),
    delivered_charge_fault(
        "fiat amounts have no decimals",
        &["charges.fiat_amount"],
        "charge.paid",
        |charge| charge["fiat_amount"] = json!("49"),
    )
    .may_fail(&["webhooks.event_id"]),
    delivered_charge_fault("paid_at has milliseconds", &["charges.paid_at"], "charge.paid", |charge| {
        charge["paid_at"] = json!("2026-02-01T10:00:00.123Z")
    }),
    delivered_charge_fault(
        "a charge without a payment link omits the field",
        &["charges.fields"],
        "charge.paid",
        |charge| remove_member(charge, "payment_link"),
    ),
    delivered_charge_fault(
        "the received amount of a delivery is wrong",
        &["webhooks.event_id"],
        "charge.paid",
        |charge| charge["received_amount"] = json!("0.000761930000000000"),
    ),
    delivery_body_fault("invoices of deliveries have no charges", &["invoices.fields"], |delivery, body| {
        if delivery.event_type.starts_with("invoice.") {
            remove_member(&mut body["data"]["invoice"], "charges");
        }
    }),
    delivery_body_fault("modes start with a capital letter", &["webhooks.mode"], |delivery, body| {
        body["mode"] = json!(if delivery.mode == Mode::Live { "Live" } else { "Test" })
    })
    .may_fail(&["webhooks.mode_endpoints"]),
    server_fault("live endpoints get test events too", &["webhooks.mode_endpoints"], |server| {
        add_sender(server, |sender| {
            sender.delivers = |endpoint, mode, event_type| {
                let is_of_mode = endpoint.mode == Some(mode) || endpoint.mode == Some(Mode::Live);
                is_of_mode && endpoint.events.as_ref().is_some_and(|types| types.contains(event_type))
            };
        });
    }),
    delivery_fault("deliveries have the Content-Type text/json", &["webhooks.content_type"], |_, request| {
        request.set_header("Content-Type", "text/json")
    }),
    delivery_fault("the User-Agent has an extra minor version", &["webhooks.user_agent"], |_, request| {
        request.set_header("User-Agent", "Service-Webhooks/1.0.3")
    }),
];
