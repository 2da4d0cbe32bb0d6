//! Objects whose creation was acknowledged by a response: the requests that create them, and the comparison after a
//! kill.

use serde_json::Value;

use testkit::{Connection, Request};

/// Fields of a charge that may change after its creation. The URLs contain the port, which differs after each start.
const CHANGING: [&str; 8] = [
    "status",
    "received_amount",
    "remaining_amount",
    "refunded_amount",
    "checkout_url",
    "receipt_url",
    "timeline",
    "transactions",
];

/// A charge from a response with status 201, and its request.
#[derive(Clone)]
pub(crate) struct AcknowledgedCharge {
    /// The `Idempotency-Key`, which is also the member `order` of the metadata.
    pub(crate) order: String,
    /// The body of the request.
    pub(crate) body: String,
    pub(crate) charge: Value,
}

impl AcknowledgedCharge {
    pub(crate) fn code(&self) -> &str {
        self.charge["code"].as_str().unwrap_or_default()
    }
}

/// The acknowledged objects other than charges of the first world, whose paths do not start with `/w/<id>`.
#[derive(Default)]
pub(crate) struct AcknowledgedObjects {
    /// The secrets of created API keys.
    pub(crate) keys: Vec<String>,
    /// The ids of created snapshots.
    pub(crate) snapshots: Vec<String>,
    pub(crate) worlds: Vec<AcknowledgedWorld>,
}

/// A world that was opened by a client, and a charge in it.
pub(crate) struct AcknowledgedWorld {
    pub(crate) id: String,
    pub(crate) live_key: String,
    pub(crate) charge: Value,
}

impl AcknowledgedObjects {
    pub(crate) fn extend(&mut self, more: AcknowledgedObjects) {
        self.keys.extend(more.keys);
        self.snapshots.extend(more.snapshots);
        self.worlds.extend(more.worlds);
    }
}

/// Describes the first field that differs from the acknowledged object. Fields that may change are ignored, and a
/// field without a value may get one.
pub(crate) fn first_difference(acknowledged: &Value, found: &Value) -> Option<String> {
    let fields = acknowledged.as_object()?.iter();
    let fixed = fields.filter(|(name, value)| {
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        !CHANGING.contains(&name.as_str()) && !is_empty
    });
    fixed
        .filter(|(name, value)| found[name.as_str()] != **value)
        .map(|(name, value)| format!("its `{name}` was {value} and is {}", found[name.as_str()]))
        .next()
}

/// Opens a charge with `order` as the `Idempotency-Key`. Returns the status and the body.
pub(crate) fn open_charge(
    connection: &mut Connection,
    (address, key): (&str, &str),
    order: &str,
    body: &str,
) -> std::io::Result<(u16, Value)> {
    let header_lines = &format!("Idempotency-Key: {order}\r\n");
    let request = Request {
        method: "POST",
        host: address,
        key: Some(key),
        header_lines,
        body,
        ..Request::get("/v1/charges")
    };
    connection.send(request.to_string())?;
    connection.message().map(|response| (response.status, response.json()))
}

/// Creates a snapshot and a world with a charge, then API keys until the program is killed. Always returns `None`.
pub(crate) fn create_objects_until_killed(
    address: &str,
    round: u32,
    created: &mut AcknowledgedObjects,
) -> Option<()> {
    let mut connection = Connection::open(address).ok()?;
    let mut post = |path: &str, key: Option<&str>, body: &str| {
        connection.call("POST", path, key, body).ok()?.success().ok()
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let snapshot = post("/sandbox/snapshots", None, &format!(r#"{{"name":"round {round}"}}"#))?;
    created.snapshots.push(text(&snapshot["snapshot"]["id"])?);
    let world = post("/sandbox/worlds", None, r#"{"clock":"frozen"}"#)?;
    let (id, live_key) = (text(&world["world"])?, text(&world["live_key"])?);
    let body = r#"{"asset":"BTC","amount":"49.90","currency":"EUR"}"#;
    let mut charge = post(&format!("/w/{id}/v1/charges"), Some(&live_key), body)?;
    created.worlds.push(AcknowledgedWorld { id, live_key, charge: charge["data"].take() });
    loop {
        let key = post("/sandbox/keys", None, r#"{"mode":"live"}"#)?;
        created.keys.push(text(&key["key"]["secret"])?);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(acknowledged: Value, found: Value, expected: Option<&str>) {
        assert_eq!(first_difference(&acknowledged, &found).as_deref(), expected);
    }

    #[test]
    fn changing_and_new_values_are_no_difference() {
        check(json!({ "amount": "5.00" }), json!({ "amount": "5.00", "more": 1 }), None);
        check(json!({ "status": "pending" }), json!({ "status": "paid" }), None);
        check(json!({ "paid_at": null, "refunds": [] }), json!({ "paid_at": "now", "refunds": [1] }), None);
    }

    #[test]
    fn a_changed_or_missing_value_is_a_difference() {
        check(
            json!({ "amount": "5.00" }),
            json!({ "amount": "6.00" }),
            Some(r#"its `amount` was "5.00" and is "6.00""#),
        );
        check(
            json!({ "metadata": { "order": "1" } }),
            json!({}),
            Some(r#"its `metadata` was {"order":"1"} and is null"#),
        );
    }
}
