//! `serve --demo`: three days of sample data of a small shop, with content for every page.
//!
//! The history is a table of sales. Each sale performs the calls of a recipe, as `trigger` does,
//! and time passes in between.

use reference_core::{
    asset::Asset,
    event::EventType,
    mode::Mode,
    time::{Span, Timestamp},
};
use serde_json::json;

use crate::{
    Failure,
    command::{
        recipe::{RecipeParameters, Step},
        served_world::ServedWorld,
    },
};

/// The duration of the history.
pub(super) const HISTORY_DURATION: Span = Span::days(3);

/// The sale of an item by a charge or an invoice.
struct Sale {
    mode: Mode,
    /// The type of the event that the calls of the sale cause last.
    last_event: EventType,
    asset: Asset,
    /// The price in EUR.
    amount: &'static str,
    description: &'static str,
    /// The e-mail address of the buyer.
    email: &'static str,
}

/// A step of the history.
enum DemoStep {
    Sale(Sale),
    /// Sets the state of the shop's handler at shop.sim: `up` or `down`.
    Handler(&'static str),
    /// Advances the clock by this many hours.
    Hours(u64),
}

const fn sale(
    last_event: EventType,
    asset: Asset,
    amount: &'static str,
    description: &'static str,
    email: &'static str,
) -> DemoStep {
    DemoStep::Sale(Sale { mode: Mode::Live, last_event, asset, amount, description, email })
}

const fn test_sale(
    last_event: EventType,
    asset: Asset,
    amount: &'static str,
    description: &'static str,
) -> DemoStep {
    let email = "owner@acme.example";
    DemoStep::Sale(Sale { mode: Mode::Test, last_event, asset, amount, description, email })
}

const ANN: &str = "ann@example.com";
const BOB: &str = "bob@example.org";
const EVE: &str = "eve@example.net";

/// The sales of three days.
const HISTORY: &[DemoStep] = &[
    test_sale(EventType::ChargePaid, Asset::Btc, "10.00", "A first try"),
    test_sale(EventType::InvoicePaid, Asset::Eth, "25.00", "A first invoice"),
    test_sale(EventType::ChargeExpired, Asset::Ltc, "5.00", "Nobody pays"),
    DemoStep::Hours(4),
    sale(EventType::ChargePaid, Asset::Btc, "49.90", "Order 1001", ANN),
    sale(EventType::ChargePaid, Asset::Eth, "120.00", "Order 1002", BOB),
    DemoStep::Hours(5),
    sale(EventType::InvoicePaid, Asset::Btc, "840.00", "Consulting, October", EVE),
    sale(EventType::ChargeCanceled, Asset::Ltc, "15.00", "Order 1003", ANN),
    DemoStep::Hours(7),
    sale(EventType::ChargePaid, Asset::Ltc, "15.00", "Order 1004", ANN),
    sale(EventType::ChargeUnderpaid, Asset::Btc, "60.00", "Order 1005", BOB),
    DemoStep::Hours(8),
    DemoStep::Handler("down"),
    sale(EventType::ChargePaid, Asset::Doge, "8.50", "Order 1006", EVE),
    DemoStep::Hours(1),
    DemoStep::Handler("up"),
    DemoStep::Hours(9),
    sale(EventType::ChargeRefunded, Asset::Btc, "35.00", "Order 1007", BOB),
    sale(EventType::InvoiceVoided, Asset::Btc, "99.00", "Sent to the wrong customer", ANN),
    DemoStep::Hours(8),
    sale(EventType::ChargeExpired, Asset::Eth, "70.00", "Order 1008", EVE),
    sale(EventType::ChargeLatePayment, Asset::Btc, "20.00", "Order 1009", ANN),
    DemoStep::Hours(10),
    sale(EventType::InvoiceSent, Asset::Btc, "310.00", "Repair", BOB),
    sale(EventType::InvoiceViewed, Asset::Btc, "42.00", "Two tickets", ANN),
    DemoStep::Hours(10),
    sale(EventType::ChargePaid, Asset::UsdcBase, "19.00", "Order 1010", EVE),
];

/// The sales at the end of the history, which are not completed.
const OPEN_SALES: &[DemoStep] = &[
    sale(EventType::ChargePaymentDetected, Asset::Btc, "65.00", "Order 1011", BOB),
    sale(EventType::ChargeCreated, Asset::Eth, "27.50", "Order 1012", ANN),
];

const fn step(path: &'static str, body: &'static str) -> Step {
    Step { method: "POST", path, body, output: None }
}

/// The calls that set up each mode before the history.
const SETUP: &[Step] = &[
    step("/sandbox/endpoints", r#"{"url":"https://shop.sim/hooks","mode":"{mode}"}"#),
    step(
        "/v1/payment-links",
        r#"{"title":"A cup of coffee","pricing_type":"fixed","amount":"3.50","currency":"EUR"}"#,
    ),
    Step {
        output: Some(("link", "/data/id")),
        ..step("/v1/payment-links", r#"{"title":"A donation","pricing_type":"open","currency":"EUR"}"#)
    },
    Step {
        output: Some(("charge", "/data/id")),
        ..step(
            "/v1/charges",
            r#"{"asset":"{asset}","payment_link":"{link}","amount":"5.00","currency":"EUR"}"#,
        )
    },
    step("/sandbox/pay", r#"{"charge":"{charge}"}"#),
    step("/sandbox/mine", r#"{"asset":"{asset}","mode":"{mode}","blocks":{confirmations},"at_once":true}"#),
];

/// Creates the sample data in a world whose clock is at `start`. The history ends `HISTORY_DURATION` later.
pub(in crate::command) fn add_sample_data(
    url: &str,
    token: Option<String>,
    start: Timestamp,
) -> Result<(), Failure> {
    let mut world = ServedWorld::connect(url, token)?;
    for mode in Mode::ALL {
        world.run_steps(SETUP, &RecipeParameters { mode, ..RecipeParameters::default() })?;
    }
    run_history(&mut world, HISTORY)?;
    let end = json!({ "to": start.plus(HISTORY_DURATION).to_string() });
    world.call("POST", "/sandbox/advance", &end.to_string())?;
    run_history(&mut world, OPEN_SALES)?;
    world.revoke_keys()
}

fn run_history(world: &mut ServedWorld, steps: &[DemoStep]) -> Result<(), Failure> {
    for step in steps {
        match step {
            DemoStep::Sale(sale) => {
                let Sale { mode, last_event, asset, amount, description, email } = *sale;
                let parameters = RecipeParameters { mode, asset, amount, description, email };
                world.cause_event(last_event, &parameters)?;
            }
            DemoStep::Handler(state) => {
                let body = json!({ "name": "shop", "state": state });
                world.call("POST", "/sandbox/merchants", &body.to_string())?;
            }
            DemoStep::Hours(hours) => {
                let body = json!({ "by": format!("{hours}h") });
                world.call("POST", "/sandbox/advance", &body.to_string())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_fits_its_duration_and_has_every_event_type() {
        let hours: u64 =
            HISTORY.iter().map(|step| if let DemoStep::Hours(hours) = step { *hours } else { 0 }).sum();
        // The recipe of each expired charge takes another half hour.
        assert!((60..70).contains(&hours), "{hours}");
        for event_type in EventType::ALL {
            let has_sale = HISTORY
                .iter()
                .chain(OPEN_SALES)
                .any(|step| matches!(step, DemoStep::Sale(sale) if sale.last_event == event_type));
            // Every sale by invoice creates one.
            assert!(has_sale || event_type == EventType::InvoiceCreated, "no sale ends with {event_type:?}");
        }
    }
}
