//! [`ServedWorld`]: a client of a running reference server for `trigger` and `serve --demo`. It
//! creates keys of its own.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use reference_core::{event::EventType, mode::Mode};
use serde_json::{Value, json};
use simulator::{
    api::{DeliveryRecord, WorldEvent, WorldEventKind},
    play::{Stage as _, StageRequest},
};

use super::recipe::{RecipeParameters, Step, fill_placeholders, recipe};
use crate::{Failure, remote::RemoteStage};

/// The maximum time to wait for the first attempts of deliveries.
const FIRST_ATTEMPTS_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(25);

/// A client of a running reference server.
pub(super) struct ServedWorld {
    stage: RemoteStage,
    /// The sandbox token for servers on other machines.
    token: Option<String>,
    /// The id of the first account.
    account: String,
    /// The API keys that this client created.
    keys: BTreeMap<Mode, CreatedKey>,
}

struct CreatedKey {
    /// The id, for the revocation.
    id: String,
    secret: String,
}

/// The objects that a recipe created, and their events.
pub(super) struct CreatedObjects {
    pub(super) charge: Option<String>,
    pub(super) invoice: Option<String>,
    /// The events about these objects, and the finished attempts to deliver them.
    pub(super) events: Vec<WorldEvent>,
}

impl ServedWorld {
    /// Connects to the server at a URL.
    pub(super) fn connect(url: &str, token: Option<String>) -> Result<ServedWorld, Failure> {
        let stage = RemoteStage::new(url).map_err(Failure::usage)?;
        let (account, keys) = (String::new(), BTreeMap::new());
        let mut world = ServedWorld { stage, token, account, keys };
        let overview = world.call("GET", "/sandbox", "")?;
        let first_account = overview.pointer("/accounts/0/id").and_then(Value::as_str);
        world.account = first_account
            .ok_or_else(|| {
                Failure::usage(format!("`{url}` is not a reference server: its /sandbox lists no account"))
            })?
            .to_owned();
        Ok(world)
    }

    /// Returns the id of the first account.
    pub(super) fn account(&self) -> &str {
        &self.account
    }

    /// Causes an event of a type, and waits for the first attempts of the deliveries. Returns an
    /// error if the event did not occur.
    pub(super) fn cause_event(
        &mut self,
        event_type: EventType,
        parameters: &RecipeParameters,
    ) -> Result<CreatedObjects, Failure> {
        let events_before = self.call("GET", "/sandbox", "")?["happenings"].as_u64().unwrap_or_default();
        let values = self.run_steps(recipe(event_type), parameters)?;
        self.await_first_attempts(parameters.mode, &values)?;
        let response = self.call("GET", &format!("/sandbox/happenings?after={events_before}"), "")?;
        let all_events: Vec<WorldEvent> = serde_json::from_value(response["happened"].clone())
            .map_err(|error| Failure::usage(format!("the events of the server cannot be read: {error}")))?;
        let last_id =
            |name: &str| values.iter().rev().find(|(output, _)| *output == name).map(|(_, id)| id.clone());
        let (charge, invoice) = (last_id("charge"), last_id("invoice"));
        let is_about = |code: &str| [&charge, &invoice].iter().any(|id| id.as_deref() == Some(code));
        let object_events: Vec<WorldEvent> = all_events
            .into_iter()
            .filter(|event| match &event.kind {
                WorldEventKind::Event { subject, .. } => is_about(subject.as_str()),
                WorldEventKind::Attempt { subject, .. } => {
                    subject.as_ref().is_some_and(|code| is_about(code.as_str()))
                }
                _ => false,
            })
            .collect();
        let has_occurred = object_events
            .iter()
            .any(|event| matches!(&event.kind, WorldEventKind::Event { kind, .. } if *kind == event_type));
        if !has_occurred {
            return Err(Failure::usage(format!(
                "`{}` did not occur, although every call succeeded; another client may use this world",
                event_type.as_str()
            )));
        }
        Ok(CreatedObjects { charge, invoice, events: object_events })
    }

    /// Waits until each delivery of events about these objects to a real handler has been attempted, at
    /// most for `FIRST_ATTEMPTS_TIMEOUT` in total. Attempts in the simulated network (hosts `*.sim`)
    /// follow the service clock, so they are not waited for.
    fn await_first_attempts(&mut self, mode: Mode, objects: &[(&str, String)]) -> Result<(), Failure> {
        let deadline = Instant::now() + FIRST_ATTEMPTS_TIMEOUT;
        for (name, code) in objects.iter().filter(|(name, _)| ["charge", "invoice"].contains(name)) {
            let path = format!("/sandbox/deliveries?mode={}&{name}={code}", mode.as_str());
            loop {
                let list = self.call("GET", &path, "")?;
                let deliveries: Vec<DeliveryRecord> = serde_json::from_value(list["deliveries"].clone())
                    .map_err(|error| Failure::usage(format!("the deliveries cannot be read: {error}")))?;
                let is_pending = |delivery: &DeliveryRecord| {
                    let host = delivery.url.split('/').nth(2).unwrap_or_default();
                    delivery.attempts.is_empty() && !host.ends_with(".sim") && &*delivery.status != "canceled"
                };
                if !deliveries.iter().any(is_pending) || Instant::now() >= deadline {
                    break;
                }
                thread::park_timeout(POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Performs these calls. Returns the values of all placeholders, by name.
    pub(super) fn run_steps(
        &mut self,
        steps: &[Step],
        parameters: &RecipeParameters,
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut values = vec![
            ("mode", parameters.mode.as_str().to_owned()),
            ("asset", parameters.asset.code().to_owned()),
            ("amount", parameters.amount.to_owned()),
            ("description", parameters.description.to_owned()),
            ("email", parameters.email.to_owned()),
            ("confirmations", parameters.asset.required_confirmations(parameters.mode).to_string()),
        ];
        for step in steps {
            if step.path.starts_with("/v1") {
                self.ensure_key(parameters.mode)?;
            }
            let (path, body) = (fill_placeholders(step.path, &values), fill_placeholders(step.body, &values));
            let response = self.call_with_key(Some(parameters.mode), step.method, &path, &body)?;
            if let Some((name, pointer)) = step.output {
                let value = response.pointer(pointer).and_then(Value::as_str);
                let value = value.ok_or_else(|| {
                    Failure::usage(format!(
                        "the response to {} {path} has no string at {pointer}",
                        step.method
                    ))
                })?;
                values.push((name, value.to_owned()));
            }
        }
        Ok(values)
    }

    /// Creates an API key for the mode, unless there is one.
    fn ensure_key(&mut self, mode: Mode) -> Result<(), Failure> {
        if self.keys.contains_key(&mode) {
            return Ok(());
        }
        let response = self.call("POST", "/sandbox/keys", &json!({ "mode": mode.as_str() }).to_string())?;
        let text = |name: &str| response["key"][name].as_str().unwrap_or_default().to_owned();
        self.keys.insert(mode, CreatedKey { id: text("id"), secret: text("secret") });
        Ok(())
    }

    /// Revokes the API keys that this client created.
    pub(super) fn revoke_keys(&mut self) -> Result<(), Failure> {
        for (_, CreatedKey { id, .. }) in std::mem::take(&mut self.keys) {
            self.call("DELETE", &format!("/sandbox/keys/{id}"), "")?;
        }
        Ok(())
    }

    /// Calls the sandbox, with the sandbox token if there is one.
    pub(super) fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Value, Failure> {
        self.call_with_key(None, method, path, body)
    }

    /// Performs a call that must succeed: of the API with the key of this mode, or of the sandbox with its token.
    fn call_with_key(
        &mut self,
        mode: Option<Mode>,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Value, Failure> {
        let key = mode.filter(|_| path.starts_with("/v1")).and_then(|mode| self.keys.get(&mode));
        let bearer = key.map(|key| key.secret.as_str()).or(self.token.as_deref());
        let body: Option<Value> =
            (!body.is_empty()).then(|| serde_json::from_str(body).expect("recipes are valid JSON"));
        let call = StageRequest { method, path, bearer, headers: &[], body: body.as_ref() };
        let response = self.stage.call(&call).map_err(|error| {
            Failure::unreachable(format!("{error}; start a server with `chargeproof serve`"))
        })?;
        if (200..300).contains(&response.status) {
            return Ok(response.json());
        }
        let reason = response.string_at("/message").unwrap_or_else(|| "no message".to_owned());
        Err(Failure::usage(format!("{method} {path} responded with {}: {reason}", response.status)))
    }
}
