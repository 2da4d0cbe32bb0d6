//! The number of confirmations of a confirmed transfer grows with the chain, in every response.

use reference_core::{asset::Asset, event::EventType, mode::Mode, outbox::AttemptResult};
use serde_json::{Value, json};

use crate::test_service::{DROPPED, MEMPOOL, TestService, confirmed};

/// Returns a service, and a charge with a transfer of 0.0025 BTC that was seen at height 100 with this number of
/// confirmations. Two are required.
fn charge_with_transfer(confirmations: u32) -> (TestService, String) {
    let mut service = TestService::new();
    let charge = service.create_charge();
    service.height = 100;
    service.report_sighting(&charge, "a", "0.0025", confirmed(confirmations));
    (service, charge)
}

/// Returns the confirmations of the first transfer, which are equal in the charge, the list and the events.
#[track_caller]
fn confirmations(service: &mut TestService, charge: &str) -> u64 {
    let confirmations_of = |charge: &Value| charge["transactions"][0]["confirmations"].as_u64().unwrap();
    let single = confirmations_of(&service.read_charge(charge));
    assert_eq!(confirmations_of(&service.list("/v1/charges")[0]), single);
    assert_eq!(confirmations_of(&service.list("/v1/events")[0]["charge"]), single);
    single
}

/// Reports a height of the live BTC chain to the service.
fn report_height(service: &mut TestService, height: u64) {
    service.api.service.on_height(Mode::Live, Asset::Btc, height);
}

#[test]
fn every_block_adds_a_confirmation_to_confirmed_transfers() {
    for (initial, expected) in [(0, [0, 0, 0]), (1, [1, 1, 1]), (2, [2, 3, 902]), (7, [7, 8, 907])] {
        let (mut service, charge) = charge_with_transfer(initial);
        let found = [100, 101, 1_000].map(|height| {
            report_height(&mut service, height);
            confirmations(&mut service, &charge)
        });
        assert_eq!(found, expected, "seen with {initial}");
    }
}

#[test]
fn blocks_of_other_chains_add_no_confirmation() {
    let (mut service, charge) = charge_with_transfer(2);
    service.api.service.on_height(Mode::Test, Asset::Btc, 200);
    service.api.service.on_height(Mode::Live, Asset::Ltc, 200);
    assert_eq!(confirmations(&mut service, &charge), 2);
    report_height(&mut service, 99);
    assert_eq!(confirmations(&mut service, &charge), 2, "a chain does not shrink");
}

#[test]
fn a_reorganisation_restarts_the_count() {
    let (mut service, charge) = charge_with_transfer(2);
    report_height(&mut service, 110);
    assert_eq!(confirmations(&mut service, &charge), 12);
    service.height = 111;
    for depth in [MEMPOOL, DROPPED] {
        service.report_sighting(&charge, "a", "0.0025", depth);
        report_height(&mut service, 120);
        assert_eq!(confirmations(&mut service, &charge), 0);
    }
    service.height = 121;
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    report_height(&mut service, 123);
    assert_eq!(confirmations(&mut service, &charge), 4);
}

#[test]
fn a_late_sighting_counts_from_its_own_height() {
    let (mut service, charge) = charge_with_transfer(0);
    report_height(&mut service, 150);
    service.height = 102;
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    assert_eq!(confirmations(&mut service, &charge), 50);
}

#[test]
fn a_delivery_keeps_the_confirmations_of_its_event() {
    let mut service = TestService::new();
    let kinds = [EventType::ChargePaid, EventType::ChargeRefunded];
    service.add_endpoint(Mode::Live, "https://shop.example/hook", &kinds);
    let charge = service.create_charge();
    service.height = 100;
    service.report_sighting(&charge, "a", "0.0025", confirmed(2));
    report_height(&mut service, 105);
    service.post(&format!("/v1/charges/{charge}/refunds"), &json!({"amount": "0.001"})).data();
    report_height(&mut service, 200);
    let attempts = service.attempt_all(&AttemptResult::Response(200));
    let bodies = attempts.iter().map(|(_, attempt)| serde_json::from_slice::<Value>(&attempt.body).unwrap());
    let found: Vec<Value> =
        bodies.map(|body| body["data"]["charge"]["transactions"][0]["confirmations"].clone()).collect();
    assert_eq!(found, [json!(2), json!(7)]);
}
