//! The recipe of each event type: the calls of customers and of the account's owner that cause it in a served world.

use reference_core::{asset::Asset, event::EventType, mode::Mode};

/// One call. In path and body, placeholders such as `{charge}` are replaced by the terms and by values of earlier responses.
pub(super) struct Step {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) body: &'static str,
    /// The value of the response that later steps use: a name, and a JSON pointer to a string.
    pub(super) gives: Option<(&'static str, &'static str)>,
}

/// The values of the object of an event.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) mode: Mode,
    pub(super) asset: Asset,
    pub(super) amount: &'static str,
    pub(super) description: &'static str,
    /// The customer's address. In test mode, e-mails go to members of the account only.
    pub(super) email: &'static str,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            mode: Mode::Test,
            asset: Asset::Btc,
            amount: "49.90",
            description: "Triggered",
            email: "owner@acme.example",
        }
    }
}

const fn step(method: &'static str, path: &'static str, body: &'static str) -> Step {
    Step { method, path, body, gives: None }
}

const OPEN: Step = Step {
    gives: Some(("charge", "/data/id")),
    ..step(
        "POST",
        "/v1/charges",
        r#"{"asset":"{asset}","amount":"{amount}","currency":"EUR","customer_email":"{email}","description":"{description}"}"#,
    )
};
const PAY: Step =
    Step { gives: Some(("txid", "/txid")), ..step("POST", "/sandbox/pay", r#"{"charge":"{charge}"}"#) };
const PAY_HALF: Step = step("POST", "/sandbox/pay", r#"{"charge":"{charge}","share":"0.5"}"#);
const MINE: Step = step(
    "POST",
    "/sandbox/mine",
    r#"{"asset":"{asset}","mode":"{mode}","blocks":{confirmations},"at_once":true}"#,
);
const CANCEL: Step = step("POST", "/v1/charges/{charge}/cancel", "");
const REFUND: Step = step(
    "POST",
    "/v1/charges/{charge}/refunds",
    r#"{"amount":"0.0001","txid":"{txid}","reason":"Returned by the customer"}"#,
);
/// The rate lock lasts 30 minutes.
const LOCK_ENDS: Step = step("POST", "/sandbox/advance", r#"{"by":"31m"}"#);
const ISSUE: Step = Step {
    gives: Some(("invoice", "/data/id")),
    ..step(
        "POST",
        "/v1/invoices",
        r#"{"amount":"{amount}","currency":"EUR","customer_email":"{email}","description":"{description}"}"#,
    )
};
const SEND: Step = step("POST", "/v1/invoices/{invoice}/send", "");
const VIEW: Step = step("POST", "/sandbox/invoices/{invoice}/view", "");
const CHOOSE: Step = Step {
    gives: Some(("charge", "/charge")),
    ..step("POST", "/sandbox/invoices/{invoice}/choose", r#"{"asset":"{asset}"}"#)
};
const VOID: Step = step("POST", "/v1/invoices/{invoice}/void", "");

/// Returns the calls that cause an event of this type.
pub(super) fn recipe(kind: EventType) -> &'static [Step] {
    match kind {
        EventType::ChargeCreated => &[OPEN],
        EventType::ChargePaymentDetected => &[OPEN, PAY],
        EventType::ChargePaid => &[OPEN, PAY, MINE],
        EventType::ChargeUnderpaid => &[OPEN, PAY_HALF, MINE],
        EventType::ChargeLatePayment => &[OPEN, CANCEL, PAY],
        EventType::ChargeRefunded => &[OPEN, PAY, MINE, REFUND],
        EventType::ChargeExpired => &[OPEN, LOCK_ENDS],
        EventType::ChargeCanceled => &[OPEN, CANCEL],
        EventType::InvoiceCreated => &[ISSUE],
        EventType::InvoiceSent => &[ISSUE, SEND],
        EventType::InvoiceViewed => &[ISSUE, VIEW],
        EventType::InvoicePaid => &[ISSUE, VIEW, CHOOSE, PAY, MINE],
        EventType::InvoiceVoided => &[ISSUE, VOID],
    }
}

/// Replaces the names in braces by their values. Values contain no quotes: they are codes, ids and terms.
pub(super) fn fill(text: &str, values: &[(&str, String)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipe_names_are_defined_before_use() {
        for kind in EventType::ALL {
            let mut known: Vec<&str> =
                ["mode", "asset", "amount", "description", "email", "confirmations"].to_vec();
            for step in recipe(kind) {
                let values: Vec<_> = known.iter().map(|name| (*name, "1".to_owned())).collect();
                let body = fill(step.body, &values);
                assert!(!fill(step.path, &values).contains('{'), "{kind:?}: {}", step.path);
                let is_json = body.is_empty() || serde_json::from_str::<serde_json::Value>(&body).is_ok();
                assert!(is_json && !body.contains("\"{"), "{kind:?}: {body}");
                known.extend(step.gives.map(|(name, _)| name));
            }
        }
    }
}
