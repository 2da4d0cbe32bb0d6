//! Requests of every operation with every field, drawn from the table of operations.
//!
//! Each plan draws from a separate stream. The names of created charges start with `q`, of payment links with
//! `m`, and of invoices with `j`. The numbers after `q` start at 1, at 11 for charges of links, and at 20 and
//! 40 for charges that use new wallets, so that the names are unique.

mod objects;
mod reads;
mod settings;

use reference_core::{
    mode::Mode,
    rng::RngStream,
    time::{Span, Timestamp},
};
use serde_json::{Value, json};

use super::{
    Plan,
    edge_cases::draw_repeat_delay,
    steps,
    values::{self, Context},
};
use crate::{
    model::operation::{BODY_MAX, IDEMPOTENCY_KEY_MAX, Operation},
    script::step::{Request, Step},
};

/// Values of `Idempotency-Key`. They are few, so that different requests use the same one.
const IDEMPOTENCY_KEYS: [&str; 3] = ["order", "again", "ключ"];

/// Values of `Content-Type`: the first two are JSON.
const CONTENT_TYPES: [&str; 3] =
    ["Application/JSON; charset=utf-8", "application/merge-patch+json", "text/json"];

/// Returns a request with the key of a mode.
fn request_in(method: &str, path: &str, mode: Mode) -> Request {
    steps::request(method, path.to_owned(), mode.as_str())
}

fn find_operation(method: &str, path: &str) -> Operation {
    let matches = |operation: &Operation| (operation.method, operation.path) == (method, path);
    Operation::ALL.into_iter().find(matches).unwrap_or_else(|| panic!("no operation {method} {path}"))
}

/// Returns the path of the account owner's call in the dashboard with the same effect; `None` if there is none.
fn owner_path(request: &Request) -> Option<String> {
    let rest = request.path.value.strip_prefix("/v1")?;
    let is_creation = ["/charges", "/invoices", "/payment-links"].contains(&rest);
    let is_supported = is_creation || rest.ends_with("/refunds") || rest.ends_with("/archive");
    let mode = request.key.as_ref().filter(|_| is_supported)?;
    Some(format!("/sandbox/books/acme/{}{rest}", mode.value.0))
}

/// Removes fields from a body.
fn drop_fields(body: &mut Value, names: &[&str]) {
    if let Value::Object(map) = body {
        map.retain(|name, _| !names.contains(&name.as_str()));
    }
}

impl Plan {
    /// Plans requests of every operation, also with revoked keys, and changes of settings and of wallets.
    pub(super) fn add_requests(&mut self) {
        let mut draw = self.stream("requests");
        for n in 1..=draw.below(3) {
            self.plan_request_charge(n);
        }
        for n in 1..=draw.below(3) {
            self.plan_request_link(n);
        }
        for n in 1..=draw.below(3) {
            self.plan_request_invoice(n);
        }
        self.add_reads();
        self.add_revoked_keys();
        self.add_settings();
        self.add_account_with_settings();
        self.add_wallets();
        self.add_key_wallets();
    }

    /// Converts microseconds since the start to a time.
    fn time_at(&self, offset: u64) -> Timestamp {
        self.start.plus(Span::micros(offset))
    }

    /// Draws a body for an operation. One in ten has an invalid value.
    fn draw_body(&self, method: &str, path: &str, at: u64, draw: &mut RngStream) -> Value {
        let fields = find_operation(method, path).fields;
        let (coins, now) = (self.coins.clone(), self.time_at(at));
        let context = Context { now, coins: &coins };
        let mut body = values::draw_object(fields, context, draw);
        if !fields.is_empty() && draw.chance(1, 10) {
            let field = fields[draw.below(fields.len() as u64) as usize];
            body[field.name] = values::draw_invalid(field.kind, context, draw);
        }
        body
    }

    /// Plans a write. Some are made by the account owner in the dashboard. A few have another `Content-Type`,
    /// or a body of about the maximum size. Some have an `Idempotency-Key`, and most of these are repeated
    /// after [`draw_repeat_delay`], with the same or another query or body.
    fn plan_write(&mut self, at: u64, mut request: Request, draw: &mut RngStream) {
        let has_idempotency_key = draw.chance(1, 3);
        if !has_idempotency_key
            && let Some(path) = owner_path(&request)
            && draw.chance(1, 4)
        {
            request.path.value = path;
            return self.add(at, Step::Request(request));
        }
        match draw.below(100) {
            n @ 0..3 => {
                let content_type = CONTENT_TYPES[n as usize].to_owned();
                request.headers.insert("Content-Type".to_owned(), content_type);
            }
            3 => {
                let bytes = BODY_MAX + draw.below(2) as usize;
                request.body.iter_mut().for_each(|body| pad_body(body, bytes));
            }
            _ => {}
        }
        if has_idempotency_key {
            let key = match draw.below(12) {
                0 => " ".to_owned(),
                1 => "k".repeat(IDEMPOTENCY_KEY_MAX + 1),
                2 => "ö".repeat(IDEMPOTENCY_KEY_MAX),
                n => IDEMPOTENCY_KEYS[n as usize % IDEMPOTENCY_KEYS.len()].to_owned(),
            };
            request.headers.insert("Idempotency-Key".to_owned(), key);
        }
        self.add(at, Step::Request(request.clone()));
        if !has_idempotency_key || draw.chance(1, 3) {
            return;
        }
        for _ in 0..draw.between(1, 2) {
            let delay = draw_repeat_delay(draw);
            let mut repetition = request.clone();
            repetition.save.clear();
            match draw.below(6) {
                0 => repetition.path.value.push_str("?again=1"),
                1 | 2 => change_one_value(repetition.body.get_or_insert_default(), draw),
                _ => {}
            }
            self.add(at + delay, Step::Request(repetition));
        }
    }

    /// Plans a write with this body.
    fn plan_write_of(&mut self, at: u64, mut request: Request, body: Value, draw: &mut RngStream) {
        request.body = Some(body);
        self.plan_write(at, request, draw);
    }

    /// Plans a request that opens a charge.
    pub(super) fn open_by_request(&mut self, name: &str, mode: Mode, at: u64, body: Value) {
        let mut request = request_in("POST", "/v1/charges", mode);
        request.save.insert(name.to_owned(), "/data/id".to_owned());
        request.body = Some(body);
        self.add(at, Step::Request(request));
    }

    /// Plans a read with the key of a mode.
    pub(super) fn plan_read(&mut self, at: u64, mode: Mode, path: &str) {
        self.add(at, Step::Request(request_in("GET", path, mode)));
    }
}

/// Replaces the description in a body, so that the body has this length.
fn pad_body(body: &mut Value, bytes: usize) {
    if let Value::Object(map) = body {
        map.insert("description".to_owned(), json!(""));
        let missing = bytes.saturating_sub(body.to_string().len());
        body["description"] = json!("x".repeat(missing));
    }
}

/// Changes one drawn value in a body: multiplies a number by ten, reorders a list, and so on.
fn change_one_value(body: &mut Value, draw: &mut RngStream) {
    match body {
        Value::Object(map) if !map.is_empty() => {
            let index = draw.below(map.len() as u64) as usize;
            if let Some(value) = map.values_mut().nth(index) {
                change_one_value(value, draw);
            }
        }
        Value::Array(list) if list.len() > 1 => match draw.below(3) {
            0 => list.reverse(),
            1 => drop(list.pop()),
            _ => change_one_value(&mut list[0], draw),
        },
        Value::Array(list) => list.push(json!("BTC")),
        Value::Number(number) => *body = json!(number.as_u64().unwrap_or_default() * 10),
        Value::String(text) => text.push('0'),
        Value::Bool(value) => *value = !*value,
        Value::Null => *body = json!(false),
        Value::Object(map) => drop(map.insert("description".to_owned(), json!("Another order"))),
    }
}
