//! [`ServedWorld`]: a served reference for `trigger` and `serve --demo`, with separate keys and one call at a time.

use std::{
    collections::BTreeMap,
    thread,
    time::{Duration, Instant},
};

use reference_core::{event::EventType, mode::Mode};
use serde_json::{Value, json};
use simulator::{
    api::{DeliveryRecord, WorldEvent, WorldEventKind},
    play::{Call, Stage as _},
};

use super::recipe::{Step, Terms, fill, recipe};
use crate::{Failure, remote::RemoteStage};

/// The time that first attempts of deliveries may take before they are reported as unfinished.
const FIRST_ATTEMPTS_WITHIN: Duration = Duration::from_secs(5);
const ATTEMPTS_READ_EVERY: Duration = Duration::from_millis(25);

/// A served reference.
pub(super) struct ServedWorld {
    stage: RemoteStage,
    /// The sandbox token for servers on other machines.
    token: Option<String>,
    /// The id of the first account.
    account: String,
    /// The keys created for this client, with the ids to revoke them by.
    keys: BTreeMap<Mode, (String, String)>,
}

/// The objects that a recipe created.
pub(super) struct CreatedObjects {
    pub(super) charge: Option<String>,
    pub(super) invoice: Option<String>,
    /// Events about these objects, and their finished delivery attempts.
    pub(super) happened: Vec<WorldEvent>,
}

impl ServedWorld {
    /// Connects to the server at a URL.
    pub(super) fn connect(url: &str, token: Option<String>) -> Result<ServedWorld, Failure> {
        let stage = RemoteStage::new(url).map_err(Failure::usage)?;
        let (account, keys) = (String::new(), BTreeMap::new());
        let mut world = ServedWorld { stage, token, account, keys };
        let overview = world.call("GET", "/sandbox", "")?;
        let first = overview.pointer("/accounts/0/id").and_then(Value::as_str);
        world.account = first
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

    /// Causes an event.
    pub(super) fn cause_event(&mut self, kind: EventType, terms: &Terms) -> Result<CreatedObjects, Failure> {
        let before = self.call("GET", "/sandbox", "")?["happenings"].as_u64().unwrap_or_default();
        let given = self.run_steps(recipe(kind), terms)?;
        self.await_first_attempts(terms.mode, &given)?;
        let events = self.call("GET", &format!("/sandbox/happenings?after={before}"), "")?;
        let events: Vec<WorldEvent> = serde_json::from_value(events["happened"].clone())
            .map_err(|error| Failure::usage(format!("the events of the server cannot be read: {error}")))?;
        let get = |name: &str| given.iter().rev().find(|(known, _)| *known == name).map(|(_, id)| id.clone());
        let (charge, invoice) = (get("charge"), get("invoice"));
        let is_about = |code: &str| [&charge, &invoice].iter().any(|known| known.as_deref() == Some(code));
        let happened: Vec<WorldEvent> = events
            .into_iter()
            .filter(|event| match &event.what {
                WorldEventKind::Event { subject, .. } => is_about(subject.as_str()),
                WorldEventKind::Post { subject, .. } => {
                    subject.as_ref().is_some_and(|code| is_about(code.as_str()))
                }
                _ => false,
            })
            .collect();
        let is_there = happened
            .iter()
            .any(|event| matches!(&event.what, WorldEventKind::Event { kind: found, .. } if *found == kind));
        if !is_there {
            return Err(Failure::usage(format!(
                "`{}` did not happen, although every call got a response; another client may use this world",
                kind.as_str()
            )));
        }
        Ok(CreatedObjects { charge, invoice, happened })
    }

    /// Waits until each delivery about these objects to a handler on the network was attempted. Deliveries inside the
    /// simulated network follow the service clock, so waiting does not help them.
    fn await_first_attempts(&mut self, mode: Mode, objects: &[(&str, String)]) -> Result<(), Failure> {
        let deadline = Instant::now() + FIRST_ATTEMPTS_WITHIN;
        for (name, code) in objects.iter().filter(|(name, _)| ["charge", "invoice"].contains(name)) {
            let path = format!("/sandbox/deliveries?mode={}&{name}={code}", mode.as_str());
            loop {
                let list = self.call("GET", &path, "")?;
                let deliveries: Vec<DeliveryRecord> = serde_json::from_value(list["deliveries"].clone())
                    .map_err(|error| Failure::usage(format!("the deliveries cannot be read: {error}")))?;
                let is_open = |delivery: &DeliveryRecord| {
                    let host = delivery.url.split('/').nth(2).unwrap_or_default();
                    delivery.attempts.is_empty() && !host.ends_with(".sim") && &*delivery.status != "canceled"
                };
                if !deliveries.iter().any(is_open) || Instant::now() >= deadline {
                    break;
                }
                thread::park_timeout(ATTEMPTS_READ_EVERY);
            }
        }
        Ok(())
    }

    /// Performs these calls. Returns the terms and the values of responses by name.
    pub(super) fn run_steps(
        &mut self,
        steps: &[Step],
        terms: &Terms,
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut values = vec![
            ("mode", terms.mode.as_str().to_owned()),
            ("asset", terms.asset.code().to_owned()),
            ("amount", terms.amount.to_owned()),
            ("description", terms.description.to_owned()),
            ("email", terms.email.to_owned()),
            ("confirmations", terms.asset.required_confirmations(terms.mode).to_string()),
        ];
        for step in steps {
            if step.path.starts_with("/v1") {
                self.ensure_key(terms.mode)?;
            }
            let (path, body) = (fill(step.path, &values), fill(step.body, &values));
            let answer = self.call_in(Some(terms.mode), step.method, &path, &body)?;
            if let Some((name, pointer)) = step.gives {
                let text = answer.pointer(pointer).and_then(Value::as_str);
                let text = text.ok_or_else(|| {
                    Failure::usage(format!(
                        "the response to {} {path} has no string at {pointer}",
                        step.method
                    ))
                })?;
                values.push((name, text.to_owned()));
            }
        }
        Ok(values)
    }

    fn ensure_key(&mut self, mode: Mode) -> Result<(), Failure> {
        if self.keys.contains_key(&mode) {
            return Ok(());
        }
        let answer = self.call("POST", "/sandbox/keys", &json!({ "mode": mode.as_str() }).to_string())?;
        let text = |name: &str| answer["key"][name].as_str().unwrap_or_default().to_owned();
        self.keys.insert(mode, (text("secret"), text("id")));
        Ok(())
    }

    /// Revokes the created keys.
    pub(super) fn revoke_keys(&mut self) -> Result<(), Failure> {
        for (_, (_, id)) in std::mem::take(&mut self.keys) {
            self.call("DELETE", &format!("/sandbox/keys/{id}"), "")?;
        }
        Ok(())
    }

    /// Calls the sandbox, with the sandbox token if there is one.
    pub(super) fn call(&mut self, method: &str, path: &str, body: &str) -> Result<Value, Failure> {
        self.call_in(None, method, path, body)
    }

    fn call_in(
        &mut self,
        mode: Option<Mode>,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<Value, Failure> {
        let key = mode.filter(|_| path.starts_with("/v1")).and_then(|mode| self.keys.get(&mode));
        let bearer = key.map(|(secret, _)| secret.as_str()).or(self.token.as_deref());
        let body: Option<Value> =
            (!body.is_empty()).then(|| serde_json::from_str(body).expect("recipes are valid JSON"));
        let call = Call { method, path, bearer, headers: &[], body: body.as_ref() };
        let answer = self.stage.call(&call).map_err(|error| {
            Failure::unreachable(format!("{error}; start a server with `chargeproof serve`"))
        })?;
        if (200..300).contains(&answer.status) {
            return Ok(answer.json());
        }
        let reason = answer.text("/message").unwrap_or_else(|| "no message".to_owned());
        Err(Failure::usage(format!("{method} {path} returned {}: {reason}", answer.status)))
    }
}
