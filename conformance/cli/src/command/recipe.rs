//! The recipe of each event type: the calls of the API and the sandbox that cause such an event in a reference server.

use reference_core::{asset::Asset, event::EventType, mode::Mode};

/// One call. Placeholders such as `{charge}` in path and body are replaced by the parameters of the
/// recipe and by values of earlier responses.
pub(super) struct Step {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) body: &'static str,
    /// The value of the response that later steps use: the name of its placeholder, and a JSON pointer to the string.
    pub(super) output: Option<(&'static str, &'static str)>,
}

/// The parameters of a recipe: the mode of its calls, and the values of the charge or invoice.
#[derive(Clone, Copy)]
pub(super) struct RecipeParameters {
    pub(super) mode: Mode,
    pub(super) asset: Asset,
    pub(super) amount: &'static str,
    pub(super) description: &'static str,
    /// The customer's e-mail address. In test mode, e-mails go to members of the account only.
    pub(super) email: &'static str,
}

impl Default for RecipeParameters {
    fn default() -> RecipeParameters {
        RecipeParameters {
            mode: Mode::Test,
            asset: Asset::Btc,
            amount: "49.90",
            description: "Triggered",
            email: "owner@acme.example",
        }
    }
}

const fn step(method: &'static str, path: &'static str, body: &'static str) -> Step {
    Step { method, path, body, output: None }
}

const CREATE_CHARGE: Step = Step {
    output: Some(("charge", "/data/id")),
    ..step(
        "POST",
        "/v1/charges",
        r#"{"asset":"{asset}","amount":"{amount}","currency":"EUR","customer_email":"{email}","description":"{description}"}"#,
    )
};
const PAY_CHARGE: Step =
    Step { output: Some(("txid", "/txid")), ..step("POST", "/sandbox/pay", r#"{"charge":"{charge}"}"#) };
const PAY_HALF: Step = step("POST", "/sandbox/pay", r#"{"charge":"{charge}","share":"0.5"}"#);
const MINE_BLOCKS: Step = step(
    "POST",
    "/sandbox/mine",
    r#"{"asset":"{asset}","mode":"{mode}","blocks":{confirmations},"at_once":true}"#,
);
const CANCEL_CHARGE: Step = step("POST", "/v1/charges/{charge}/cancel", "");
const REFUND_CHARGE: Step = step(
    "POST",
    "/v1/charges/{charge}/refunds",
    r#"{"amount":"0.0001","txid":"{txid}","reason":"Returned by the customer"}"#,
);
/// Advances the clock past the rate lock of 30 minutes.
const PASS_RATE_LOCK: Step = step("POST", "/sandbox/advance", r#"{"by":"31m"}"#);
const CREATE_INVOICE: Step = Step {
    output: Some(("invoice", "/data/id")),
    ..step(
        "POST",
        "/v1/invoices",
        r#"{"amount":"{amount}","currency":"EUR","customer_email":"{email}","description":"{description}"}"#,
    )
};
const SEND_INVOICE: Step = step("POST", "/v1/invoices/{invoice}/send", "");
const VIEW_INVOICE: Step = step("POST", "/sandbox/invoices/{invoice}/view", "");
const CHOOSE_ASSET: Step = Step {
    output: Some(("charge", "/charge")),
    ..step("POST", "/sandbox/invoices/{invoice}/choose", r#"{"asset":"{asset}"}"#)
};
const VOID_INVOICE: Step = step("POST", "/v1/invoices/{invoice}/void", "");

/// Returns the calls that cause an event of this type.
pub(super) fn recipe(event_type: EventType) -> &'static [Step] {
    match event_type {
        EventType::ChargeCreated => &[CREATE_CHARGE],
        EventType::ChargePaymentDetected => &[CREATE_CHARGE, PAY_CHARGE],
        EventType::ChargePaid => &[CREATE_CHARGE, PAY_CHARGE, MINE_BLOCKS],
        EventType::ChargeUnderpaid => &[CREATE_CHARGE, PAY_HALF, MINE_BLOCKS],
        EventType::ChargeLatePayment => &[CREATE_CHARGE, CANCEL_CHARGE, PAY_CHARGE],
        EventType::ChargeRefunded => &[CREATE_CHARGE, PAY_CHARGE, MINE_BLOCKS, REFUND_CHARGE],
        EventType::ChargeExpired => &[CREATE_CHARGE, PASS_RATE_LOCK],
        EventType::ChargeCanceled => &[CREATE_CHARGE, CANCEL_CHARGE],
        EventType::InvoiceCreated => &[CREATE_INVOICE],
        EventType::InvoiceSent => &[CREATE_INVOICE, SEND_INVOICE],
        EventType::InvoiceViewed => &[CREATE_INVOICE, VIEW_INVOICE],
        EventType::InvoicePaid => &[CREATE_INVOICE, VIEW_INVOICE, CHOOSE_ASSET, PAY_CHARGE, MINE_BLOCKS],
        EventType::InvoiceVoided => &[CREATE_INVOICE, VOID_INVOICE],
    }
}

/// Replaces names in braces by their values. No value contains a quote, so a JSON body stays valid.
pub(super) fn fill_placeholders(text: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_defined_and_every_body_is_json() {
        for event_type in EventType::ALL {
            let mut defined: Vec<&str> =
                ["mode", "asset", "amount", "description", "email", "confirmations"].to_vec();
            for step in recipe(event_type) {
                let values: Vec<_> = defined.iter().map(|name| (*name, "1".to_owned())).collect();
                let body = fill_placeholders(step.body, &values);
                assert!(
                    !fill_placeholders(step.path, &values).contains('{'),
                    "{event_type:?}: {}",
                    step.path
                );
                let is_json = body.is_empty() || serde_json::from_str::<serde_json::Value>(&body).is_ok();
                assert!(is_json && !body.contains("\"{"), "{event_type:?}: {body}");
                defined.extend(step.output.map(|(name, _)| name));
            }
        }
    }
}
