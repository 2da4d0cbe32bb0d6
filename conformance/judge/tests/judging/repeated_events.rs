//! Events that report the same change twice.

use serde_json::{Value, json};

use super::{check, events_request, page, recording};

/// Checks the events of five charges that expire in second 20. `repeated` of them have another event of the expiry, in
/// `second` and with `details`.
#[track_caller]
fn check_expired(repeated: usize, second: u32, details: &Value, expected: &str) {
    let event = |charge: usize, index: usize, kind: &str, second: u32, details: &Value| {
        json!({
            "id": format!("00000000-0000-4000-8000-{charge:06}{index:06}"),
            "type": format!("charge.{kind}"),
            "details": details,
            "charge": { "code": format!("ch{charge}"), "status": kind },
            "invoice": null,
            "created_at": format!("2026-02-01T10:00:{second:02}Z"),
        })
    };
    let rows = (0..5).flat_map(|charge| {
        let first = event(charge, 2, "expired", 20, &json!({}));
        let second = event(charge, 3, "expired", second, details);
        let created = event(charge, 1, "created", 1, &json!({}));
        let expired = if charge < repeated { vec![second, first] } else { vec![first] };
        expired.into_iter().chain([created])
    });
    let rows: Vec<_> = rows.collect();
    let total = rows.len() as u64;
    let list = page(events_request(None, 100), &json!(rows), [1, 1, 100, total]);
    check(&recording(vec![list]), "events.recorded", expected);
}

#[test]
fn a_change_is_recorded_once() {
    check_expired(0, 20, &json!({}), "not judged");
    check_expired(3, 20, &json!({}), "fail");
    check_expired(2, 20, &json!({}), "not judged");
    // The rate may have been locked again.
    check_expired(3, 50, &json!({}), "not judged");
    // Other details show another change.
    check_expired(3, 20, &json!({ "transfer": 2 }), "not judged");
}

#[test]
fn a_refund_is_recorded_once_in_a_minute() {
    let judge = |kind: &str, distance: u32, expected: &str| {
        let event = |charge: usize, kind: &str, second: u32| {
            json!({
                "id": format!("00000000-0000-4000-8000-{charge:06}{second:06}"),
                "type": kind,
                "details": { "txid": format!("{charge:064}") },
                "charge": { "code": format!("ch{charge}"), "status": "open" },
                "invoice": null,
                "created_at": format!("2026-02-01T10:00:{second:02}Z"),
            })
        };
        let events = (0..4).flat_map(|charge| {
            let mut events = vec![event(charge, kind, 10 + distance), event(charge, kind, 10)];
            // A charge is paid before a refund.
            events.extend((kind == "charge.refunded").then(|| event(charge, "charge.paid", 5)));
            events.push(event(charge, "charge.created", 1));
            events
        });
        let rows: Vec<_> = events.collect();
        let list = page(events_request(None, 100), &json!(rows), [1, 1, 100, rows.len() as u64]);
        check(&recording(vec![list]), "events.recorded", expected);
    };
    judge("charge.refunded", 30, "fail");
    // The transfer was reported when it was broadcast and when it was mined.
    judge("charge.payment_detected", 30, "not judged");
    judge("charge.payment_detected", 1, "fail");
}
