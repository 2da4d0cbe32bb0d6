//! Confirmations continue to count after a transfer is confirmed, in every response.

use reference_core::{asset::Asset, event::EventType, mode::Mode, outbox::AttemptResult};
use serde_json::{Value, json};

use crate::test_service::{DROPPED, MEMPOOL, TestService, confirmed};

/// Returns a charge with a transfer of 0.0025 BTC, seen at height 100. Two confirmations are required.
fn charge_with_transfer(confirmations: u32) -> (TestService, String) {
    let mut service = TestService::new();
    let charge = service.charge();
    service.height = 100;
    service.report_sighting(&charge, "a", "0.0025", confirmed(confirmations));
    (service, charge)
}

/// Returns the confirmations of the first transfer, which are equal in the charge, the list and the events.
#[track_caller]
fn confirmations(service: &mut TestService, charge: &str) -> u64 {
    let of = |charge: &Value| charge["transactions"][0]["confirmations"].as_u64().unwrap();
    let alone = of(&service.show_charge(charge));
    assert_eq!(of(&service.list("/v1/charges")[0]), alone);
    assert_eq!(of(&service.list("/v1/events")[0]["charge"]), alone);
    alone
}

fn set_height(service: &mut TestService, height: u64) {
    service.api.service.on_height(Mode::Live, Asset::Btc, height);
}

#[test]
fn every_block_adds_a_confirmation_to_what_is_confirmed() {
    for (first, expected) in [(0, [0, 0, 0]), (1, [1, 1, 1]), (2, [2, 3, 902]), (7, [7, 8, 907])] {
        let (mut service, charge) = charge_with_transfer(first);
        let shown = [100, 101, 1_000].map(|height| {
            set_height(&mut service, height);
            confirmations(&mut service, &charge)
        });
        assert_eq!(shown, expected, "seen with {first}");
    }
}

#[test]
fn only_the_charges_own_chain_counts() {
    let (mut service, charge) = charge_with_transfer(2);
    service.api.service.on_height(Mode::Test, Asset::Btc, 200);
    service.api.service.on_height(Mode::Live, Asset::Ltc, 200);
    assert_eq!(confirmations(&mut service, &charge), 2);
    set_height(&mut service, 99);
    assert_eq!(confirmations(&mut service, &charge), 2, "a chain does not shrink");
}

#[test]
fn a_reorganisation_restarts_the_count() {
    let (mut service, charge) = charge_with_transfer(2);
    set_height(&mut service, 110);
    assert_eq!(confirmations(&mut service, &charge), 12);
    service.height = 111;
    for depth in [MEMPOOL, DROPPED] {
        service.report_sighting(&charge, "a", "0.0025", depth);
        set_height(&mut service, 120);
        assert_eq!(confirmations(&mut service, &charge), 0);
    }
    service.height = 121;
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    set_height(&mut service, 123);
    assert_eq!(confirmations(&mut service, &charge), 4);
}

#[test]
fn a_late_notice_counts_from_the_height_at_which_it_was_seen() {
    let (mut service, charge) = charge_with_transfer(0);
    set_height(&mut service, 150);
    service.height = 102;
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    assert_eq!(confirmations(&mut service, &charge), 50);
}

#[test]
fn a_delivery_keeps_the_confirmations_of_its_event() {
    let mut service = TestService::new();
    let kinds = [EventType::ChargePaid, EventType::ChargeRefunded];
    service.add_endpoint(Mode::Live, "https://shop.example/hook", &kinds);
    let charge = service.charge();
    service.height = 100;
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    set_height(&mut service, 105);
    service.post(&format!("/v1/charges/{charge}/refunds"), &json!({"amount": "0.001"})).data();
    set_height(&mut service, 200);
    let posts = service.attempt_all(&AttemptResult::Answered(200));
    let bodies = posts.iter().map(|(_, post)| serde_json::from_slice::<Value>(&post.body).unwrap());
    let shown: Vec<Value> =
        bodies.map(|body| body["data"]["charge"]["transactions"][0]["confirmations"].clone()).collect();
    assert_eq!(shown, [json!(2), json!(7)]);
}
