//! Rules that require an untouched charge: one without an unconfirmed or credited transfer.

use reference_core::{
    asset::Asset,
    sighting::{Depth, Disappearance},
};
use serde_json::json;

use crate::test_service::{MEMPOOL, TestService, code_of, confirmed};

/// The depths at which the first transfer to a charge is sighted, one after the other, and `true` if the charge is
/// untouched after that.
const DEPTH_HISTORIES: [(&[Depth], bool); 7] = [
    (&[], true),
    (&[MEMPOOL], false),
    (&[MEMPOOL, confirmed(1)], false),
    // An orphaned transfer is unconfirmed again.
    (&[confirmed(1), MEMPOOL], false),
    (&[MEMPOOL, Depth::Absent(Disappearance::Dropped)], true),
    (&[MEMPOOL, Depth::Absent(Disappearance::Replaced)], true),
    (&[confirmed(1), MEMPOOL, Depth::Absent(Disappearance::DoubleSpent)], true),
];

/// Reports a sighting at each of these depths of one transfer to the charge, which pays less than the amount due.
fn report_all(service: &mut TestService, charge: &str, depths: &[Depth]) {
    depths.iter().for_each(|depth| service.report_sighting(charge, "first", "0.001", *depth));
}

/// Returns a service, the code of its invoice, and that of the invoice's charge, which has a transfer with these depths.
fn invoice_with_charge(depths: &[Depth]) -> (TestService, String, String) {
    let mut service = TestService::new();
    let invoice = service.create("/v1/invoices", &json!({"amount": "150.00", "currency": "EUR"}));
    let charge = service.choose_coin(&invoice, Asset::Btc).unwrap();
    report_all(&mut service, &charge, depths);
    (service, invoice, charge)
}

#[test]
fn only_an_untouched_charge_can_be_canceled() {
    for (depths, is_untouched) in DEPTH_HISTORIES {
        let mut service = TestService::new();
        let charge = service.create_charge();
        report_all(&mut service, &charge, depths);
        let status = service.post(&format!("/v1/charges/{charge}/cancel"), &json!({})).status();
        assert_eq!(status, if is_untouched { 200 } else { 409 }, "{depths:?}");
    }
}

#[test]
fn choosing_another_coin_cancels_an_untouched_charge() {
    for (depths, is_untouched) in DEPTH_HISTORIES {
        let (mut service, invoice, charge) = invoice_with_charge(depths);
        let chosen = service.choose_coin(&invoice, Asset::Eth).map_err(|error| error.status());
        assert_eq!(chosen.is_ok(), is_untouched, "{depths:?}: {chosen:?}");
        assert_eq!(
            service.charge_status(&charge),
            if is_untouched { "canceled" } else { "pending" },
            "{depths:?}"
        );
    }
}

#[test]
fn voiding_an_invoice_cancels_its_untouched_charge() {
    for (depths, is_untouched) in DEPTH_HISTORIES {
        let (mut service, invoice, charge) = invoice_with_charge(depths);
        let status = service.post(&format!("/v1/invoices/{invoice}/void"), &json!({})).status();
        assert_eq!(status, if is_untouched { 200 } else { 409 }, "{depths:?}");
        assert_eq!(
            service.charge_status(&charge),
            if is_untouched { "canceled" } else { "pending" },
            "{depths:?}"
        );
    }
}

#[test]
fn an_untouched_charge_is_canceled_when_its_invoice_is_settled() {
    for (depths, is_untouched) in DEPTH_HISTORIES {
        let (mut service, invoice, first) = invoice_with_charge(&[]);
        let second = service.choose_coin(&invoice, Asset::Ltc).unwrap();
        report_all(&mut service, &second, depths);
        // Choosing another coin canceled the first charge, so a payment to it is late.
        service.report_sighting(&first, "late", "0.0025", confirmed(2));
        service.accept_late_payments(&first, None).unwrap();
        assert_eq!(service.read_invoice(&invoice)["status"], "paid");
        assert_eq!(
            service.charge_status(&second),
            if is_untouched { "canceled" } else { "pending" },
            "{depths:?}"
        );
    }
}

#[test]
fn the_last_payment_of_a_link_cancels_its_untouched_charges() {
    for (depths, is_untouched) in DEPTH_HISTORIES {
        let mut service = TestService::new();
        let terms = json!({"title": "A hat", "amount": "150", "max_payments": 1});
        let link = service.create("/v1/payment-links", &terms);
        let charge_body = json!({"asset": "BTC", "payment_link": link});
        let [other, paid] = [(); 2].map(|()| code_of(&service.post("/v1/charges", &charge_body).data()));
        report_all(&mut service, &other, depths);
        service.report_sighting(&paid, "pays", "0.0025", confirmed(2));
        assert_eq!(
            service.charge_status(&other),
            if is_untouched { "canceled" } else { "pending" },
            "{depths:?}"
        );
        if is_untouched {
            // A payment of the canceled charge is not a second payment of the link.
            service.report_sighting(&other, "again", "0.0025", confirmed(2));
            assert_eq!(service.charge_status(&other), "canceled", "{depths:?}");
        }
    }
}
