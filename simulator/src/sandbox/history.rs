//! The history of a world, exported as a scenario that reproduces its state.
//!
//! It stores each call that changed something besides the clock, up to a bound. In the scenario each call is
//! a `request` step, the time between calls is a `wait` step, and a call that a scenario cannot express is a
//! comment.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    endpoint::address_rule,
    id::KeyNo,
    mode::Mode,
    time::{Span, Timestamp},
};
use reference_wire::{Request, Response};
use serde_json::{Value, json};

use super::{Setup, route};
use crate::{printable::is_invisible, script};

/// The maximum number of stored calls.
const CALLS_MAX: usize = 5_000;
/// The maximum total size of stored paths and bodies.
const BYTES_MAX: usize = 512 * 1_024;
/// The number of digits of a JSON number that every parser preserves.
const DIGITS_MAX: usize = 15;
/// The rate limit of worlds in which scenarios are played.
const SCENARIO_RATE_LIMIT: Option<u32> = Some(120);

/// The JSON pointers to the ids of new objects in sandbox responses, with the prefixes of their names.
const SANDBOX_OBJECTS: [(&str, &str); 5] =
    [("/txid", "t"), ("/charge", "c"), ("/endpoint/id", "shop"), ("/delivery", "d"), ("/key/id", "key")];
/// The lists of API objects, with the prefixes of their names.
const API_OBJECTS: [(&str, &str); 3] =
    [("/v1/charges", "c"), ("/v1/payment-links", "l"), ("/v1/invoices", "i")];

/// The stored calls of a world.
#[derive(Default)]
pub(super) struct History {
    calls: Vec<StoredCall>,
    /// The size of the paths and bodies. Omitted calls count, so that no call is stored after an omitted one.
    bytes: usize,
    /// The number of calls that were not stored for lack of space.
    omitted: u64,
}

/// A stored call.
struct StoredCall {
    /// The time on the clock of the world.
    at: Timestamp,
    method: String,
    /// The path and query.
    target: String,
    /// The API key of the call.
    key: Option<KeyNo>,
    /// The account and mode that a sandbox call was restricted to.
    within: Option<(String, Mode)>,
    idempotency_key: Option<String>,
    body: String,
    /// The new objects: JSON pointer in the response, and id.
    created: Vec<(String, String)>,
    /// The keys that the call created, and the JSON pointers to their secrets in the response.
    keys: Vec<(KeyNo, &'static str)>,
}

/// The authentication of a call.
pub(super) struct Caller {
    pub(super) key: Option<KeyNo>,
    /// The account and mode that a sandbox call is restricted to.
    pub(super) within: Option<(String, Mode)>,
}

/// Returns `true` for a successful call that changed something besides the clock, which the history records.
pub(super) fn is_recorded(request: &Request<'_>, response: &Response) -> bool {
    let is_read = matches!(request.method, "GET" | "HEAD");
    !is_read && (200..300).contains(&response.status) && !only_moves_clock(request)
}

impl History {
    /// Records a call. `keys`: the number of keys in the world after it.
    pub(super) fn record(
        &mut self,
        at: Timestamp,
        caller: Caller,
        request: &Request<'_>,
        response: &Response,
        keys: usize,
    ) {
        // The body is valid JSON, because the request succeeded.
        let mut body = String::from_utf8_lossy(request.body).into_owned();
        let (mut method, mut path) = (request.method, request.path);
        if path == "/sandbox/world" {
            // The scenario starts with the new world, so only the settings of its account remain to be written.
            let settings: Value = serde_json::from_str(&body).unwrap_or_default();
            if !settings["account"].is_object() {
                return;
            }
            (method, path, body) = ("PATCH", "/sandbox/accounts/acme", settings["account"].to_string());
        }
        let target = request.query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
        self.bytes += target.len() + body.len();
        if self.calls.len() >= CALLS_MAX || self.bytes > BYTES_MAX {
            self.omitted += 1;
            return;
        }
        let nth_last_key = |n: usize| KeyNo::from_index(keys.saturating_sub(n));
        self.calls.push(StoredCall {
            at,
            method: method.to_owned(),
            key: caller.key.filter(|_| path.starts_with("/v1")),
            within: caller.within,
            idempotency_key: request.idempotency_key.map(|key| String::from_utf8_lossy(key).into_owned()),
            body,
            created: created_objects(path, response),
            keys: match (method, path) {
                ("POST", "/sandbox/keys") => vec![(nth_last_key(1), "/key/secret")],
                ("POST", "/sandbox/accounts") => {
                    vec![(nth_last_key(2), "/keys/live"), (nth_last_key(1), "/keys/test")]
                }
                _ => Vec::new(),
            },
            target,
        });
    }

    /// Returns the text of a scenario file, and the number of calls that it omits.
    pub(super) fn write_scenario(&self, setup: &Setup, now: Timestamp) -> (String, u64) {
        let mut text = format!(
            "title: Recorded calls of a served world\nseed: {}\nstart: {}\npace: 0s\n",
            setup.seed.0,
            script::in_line(&Value::from(setup.start.to_string())),
        );
        if setup.rate_limit != SCENARIO_RATE_LIMIT {
            let limit = setup.rate_limit.map_or_else(|| "no limit".to_owned(), |n| format!("{n} a minute"));
            text.push_str(&format!("# This world had {limit} for one key; a scenario has 120 a minute.\n"));
        }
        text.push_str("steps:\n");
        let mut writer = ScenarioWriter::default();
        let mut time_in_scenario = setup.start;
        let mut is_empty = true;
        for call in &self.calls {
            match writer.step(call) {
                Ok(step) => {
                    text.push_str(&wait_step(time_in_scenario, call.at));
                    time_in_scenario = call.at.max(time_in_scenario);
                    is_empty = false;
                    text.push_str(&format!("  - request: {}\n", script::in_line(&step)));
                }
                Err(reason) => {
                    let omitted_call = format!("{} {}", call.method, call.target);
                    text.push_str(&format!("  # omitted: {}: {reason}\n", one_line(&omitted_call)));
                }
            }
        }
        if self.omitted > 0 {
            text.push_str(&format!("  # omitted: {} later calls, beyond the size limit\n", self.omitted));
        }
        // A scenario needs at least one step, so an empty one waits for a microsecond.
        let earliest_end = time_in_scenario.plus(Span::micros(u64::from(is_empty)));
        text.push_str(&wait_step(time_in_scenario, now.max(earliest_end)));
        (text, writer.omitted + self.omitted)
    }
}

/// Writes steps. Names the objects created so far, so that later steps can refer to them.
struct ScenarioWriter {
    /// The name of each code or id.
    names: BTreeMap<String, String>,
    /// The name of each API key.
    keys: BTreeMap<KeyNo, String>,
    /// The number of names with each prefix.
    counts: BTreeMap<&'static str, u32>,
    /// Objects that were created by omitted calls.
    missing: BTreeSet<String>,
    /// The number of omitted calls.
    omitted: u64,
}

impl Default for ScenarioWriter {
    fn default() -> ScenarioWriter {
        let keys = Mode::ALL.into_iter().enumerate();
        ScenarioWriter {
            names: BTreeMap::new(),
            keys: keys.map(|(index, mode)| (KeyNo::from_index(index), mode.to_string())).collect(),
            counts: BTreeMap::new(),
            missing: BTreeSet::new(),
            omitted: 0,
        }
    }
}

impl ScenarioWriter {
    /// Returns the step for a call, or the reason why the call is omitted.
    fn step(&mut self, call: &StoredCall) -> Result<Value, String> {
        let step = self.step_for(call);
        if step.is_err() {
            self.omitted += 1;
            self.missing.extend(call.created.iter().map(|(_, id)| id.clone()));
        }
        step
    }

    fn step_for(&mut self, call: &StoredCall) -> Result<Value, String> {
        if call.target.contains("${") || call.body.contains("${") {
            return Err("`${` denotes a name in a scenario".to_owned());
        }
        if has_long_number(&call.body) {
            return Err("a number has more digits than a scenario preserves; write it as a string".to_owned());
        }
        let mut step = json!({ "method": call.method, "path": self.reference_names(&call.target)? });
        let body: Value = serde_json::from_str(&call.body).unwrap_or(Value::Null);
        if call.target.starts_with("/sandbox/endpoints") {
            check_receiver(&body)?;
        }
        let body = self.reference_json_names(&with_book(call, body))?;
        if !body.is_null() {
            step["body"] = body;
        }
        if let Some(key) = call.key {
            let name = self.keys.get(&key).ok_or("its key was created by an omitted call")?;
            step["key"] = Value::from(name.as_str());
        }
        if let Some(key) = &call.idempotency_key {
            step["headers"] = json!({ "Idempotency-Key": self.reference_names(key)? });
        }
        let mut save = serde_json::Map::new();
        for (pointer, id) in &call.created {
            if self.names.contains_key(id) {
                continue;
            }
            let name = self.next_name(name_prefix(&call.target, pointer));
            save.insert(name.clone(), Value::from(pointer.as_str()));
            self.names.insert(id.clone(), name);
        }
        for (key, pointer) in &call.keys {
            let name = self.next_name("k");
            save.insert(name.clone(), Value::from(*pointer));
            self.keys.insert(*key, name);
        }
        if !save.is_empty() {
            step["save"] = Value::Object(save);
        }
        Ok(step)
    }

    fn next_name(&mut self, prefix: &'static str) -> String {
        let count = self.counts.entry(prefix).or_default();
        *count += 1;
        format!("{prefix}{count}")
    }

    /// Replaces the ids of known objects in a string by `${name}`.
    fn reference_names(&self, text: &str) -> Result<String, String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let mut result = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(is_part) {
            let end = rest[start..].find(|c| !is_part(c)).map_or(rest.len(), |length| start + length);
            let id = &rest[start..end];
            if self.missing.contains(id) {
                return Err(format!("{id} was created by an omitted call"));
            }
            result.push_str(&rest[..start]);
            match self.names.get(id) {
                Some(name) => result.push_str(&format!("${{{name}}}")),
                None => result.push_str(id),
            }
            rest = &rest[end..];
        }
        result.push_str(rest);
        Ok(result)
    }

    fn reference_json_names(&self, value: &Value) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) => Value::String(self.reference_names(text)?),
            Value::Array(list) => Value::Array(
                list.iter().map(|item| self.reference_json_names(item)).collect::<Result<_, _>>()?,
            ),
            Value::Object(map) => {
                let named =
                    map.iter().map(|(key, value)| Ok((key.clone(), self.reference_json_names(value)?)));
                Value::Object(named.collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }
}

/// Returns `true` if a call only moves the clock.
fn only_moves_clock(request: &Request<'_>) -> bool {
    match request.path {
        "/sandbox/advance" => true,
        "/sandbox/mine" => {
            let body: Value = serde_json::from_slice(request.body).unwrap_or_default();
            body["at_once"] != true
        }
        _ => false,
    }
}

/// Returns the JSON pointers and ids of the new objects in a response.
fn created_objects(path: &str, response: &Response) -> Vec<(String, String)> {
    let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let is_api = API_OBJECTS.iter().any(|(list, _)| path.starts_with(list));
    let sandbox_pointers = SANDBOX_OBJECTS.map(|(pointer, _)| pointer);
    let pointers = is_api.then_some("/data/id").into_iter().chain(sandbox_pointers);
    pointers
        .filter_map(|pointer| Some((pointer.to_owned(), body.pointer(pointer)?.as_str()?.to_owned())))
        .collect()
}

/// Returns the name prefix of a new object.
fn name_prefix(target: &str, pointer: &str) -> &'static str {
    let lists = API_OBJECTS.iter().filter(|_| pointer == "/data/id");
    let api_object = lists.into_iter().find(|(list, _)| target.starts_with(list));
    let sandbox_object = SANDBOX_OBJECTS.iter().find(|(known, _)| *known == pointer);
    api_object.or(sandbox_object).map_or("o", |(_, prefix)| prefix)
}

/// Adds the account and mode to the body of a call that was restricted to one book.
fn with_book(call: &StoredCall, mut body: Value) -> Value {
    let Some((account, mode)) = &call.within else { return body };
    let path = call.target.split('?').next().unwrap_or_default();
    let accepts = |field| route::accepts_field(&call.method, path, field);
    // A charge determines its own book.
    if body.get("charge").is_none() && (accepts("account") || accepts("mode")) {
        if body.is_null() {
            body = json!({});
        }
        for (field, value) in [("account", account.as_str()), ("mode", mode.as_str())] {
            if accepts(field) && body.get(field).is_none_or(Value::is_null) {
                body[field] = Value::from(value);
            }
        }
    }
    body
}

/// Checks that the URL in a body, if any, is allowed in a scenario.
fn check_receiver(body: &Value) -> Result<(), String> {
    let Some(url) = body["url"].as_str() else { return Ok(()) };
    match address_rule::parse_endpoint_url(url) {
        Ok(known) if known.is_simulated() => Ok(()),
        _ => Err("a scenario delivers only to the simulated network, to hosts such as shop.sim".to_owned()),
    }
}

/// Returns `true` if a number outside of strings has more digits than every parser preserves.
fn has_long_number(json: &str) -> bool {
    let (mut in_string, mut is_escaped, mut digits) = (false, false, 0);
    for byte in json.bytes() {
        match byte {
            b'\\' => is_escaped = !is_escaped,
            b'"' if !is_escaped => (in_string, digits) = (!in_string, 0),
            b'0'..=b'9' if !in_string => digits += 1,
            b'.' => {}
            _ => (is_escaped, digits) = (false, 0),
        }
        if digits > DIGITS_MAX {
            return true;
        }
    }
    false
}

/// Returns the step that waits from one time to another; empty if no time passes.
fn wait_step(from: Timestamp, to: Timestamp) -> String {
    match to.since(from) {
        Span(0) => String::new(),
        span => format!("  - wait: {span}\n"),
    }
}

/// Replaces invisible characters, such as line breaks, by U+FFFD.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_invisible(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_number(json: &str, is_long: bool) {
        assert_eq!(has_long_number(json), is_long, "{json}");
    }

    #[test]
    fn numbers_that_a_parser_may_round_are_detected() {
        check_number(r#"{"amount":49.90,"seed":123456789012345}"#, false);
        check_number(r#"{"amount":0.100000000000000001}"#, true);
        check_number(r#"{"amount":1234567890.123456}"#, true);
        check_number(r#"{"amount":"0.100000000000000001"}"#, false);
        check_number(r#"{"a":"\"","amount":0.100000000000000001}"#, true);
        check_number(r#"{"a":"\\","b":"1234567890123456"}"#, false);
    }

    #[test]
    fn a_receiver_outside_the_simulated_network_is_not_allowed() {
        for (body, is_allowed) in [
            (json!({ "url": "https://shop.sim/hooks" }), true),
            (json!({ "status": "disabled" }), true),
            (json!({ "url": "https://shop.example/hooks" }), false),
            (json!({ "url": "http://shop.sim/hooks" }), false),
        ] {
            assert_eq!(check_receiver(&body).is_ok(), is_allowed, "{body}");
        }
    }
}
