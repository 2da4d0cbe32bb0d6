//! A world of the reference server as a target: it gets the keys, endpoints and events that all statements need, by
//! calls of its sandbox.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use conformance::{Create, Part, Paths, Plan, Secret, Wait, Waiter, receiver::BackgroundReceiver};
use serde_json::{Value, json};
use simulator::play::{Call, Stage};
use url::Url;

use super::{choose, event_sources};
use crate::{Failure, args::Check, config::Config, remote::RemoteStage};

/// The time after which no rate limit counts earlier requests.
const REST: Duration = Duration::from_secs(600);

/// The address and the keys of a world whose clock is frozen.
pub(super) struct SandboxTarget {
    pub(super) base: Url,
    pub(super) live_key: Secret,
    pub(super) test_key: Secret,
    /// The origin of endpoints whose deliveries go to the receiver: `https://shop.example`.
    pub(super) receiver_origin: String,
}

/// A world with keys of every kind and a receiver.
pub(super) struct SandboxWorld {
    target: SandboxTarget,
    stage: Arc<Mutex<RemoteStage>>,
    receiver: Arc<BackgroundReceiver>,
    second_key: Secret,
    other_account_key: Secret,
    revoked_key: Secret,
}

impl SandboxWorld {
    /// Creates the keys of every kind.
    pub(super) fn prepare(
        mut stage: RemoteStage,
        target: SandboxTarget,
        receiver: BackgroundReceiver,
    ) -> Result<SandboxWorld, Failure> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let another = call(&mut stage, "POST", "/sandbox/accounts", None, &json!({ "id": "another" }))?;
        let other_account_key = text(&another["keys"]["test"]);
        let charge = json!({ "asset": "BTC", "amount": "10.00" });
        call(&mut stage, "POST", "/v1/charges", Some(&other_account_key), &charge)?;
        let mut key = || call(&mut stage, "POST", "/sandbox/keys", None, &json!({ "mode": "test" }));
        let (second, revoked) = (key()?, key()?);
        let id = text(&revoked["key"]["id"]);
        call(&mut stage, "DELETE", &format!("/sandbox/keys/{id}"), None, &json!({}))?;
        let rest = json!({ "by": format!("{}s", REST.as_secs()) });
        call(&mut stage, "POST", "/sandbox/advance", None, &rest)?;
        Ok(SandboxWorld {
            target,
            stage: Arc::new(Mutex::new(stage)),
            receiver: Arc::new(receiver),
            second_key: Secret::new(text(&second["key"]["secret"])),
            other_account_key: Secret::new(other_account_key),
            revoked_key: Secret::new(text(&revoked["key"]["secret"])),
        })
    }

    pub(super) fn plan(&self, args: &Check, config: &Config) -> Result<Plan, Failure> {
        let SandboxTarget { base, live_key, test_key, receiver_origin } = &self.target;
        let mut plan = Plan::new(base.clone(), live_key.clone(), test_key.clone());
        plan.second_key = Some(self.second_key.clone());
        plan.other_account_key = Some(self.other_account_key.clone());
        plan.revoked_key = Some(self.revoked_key.clone());
        // Creating two charges is allowed here, and the paths of objects are known.
        plan.writes = Some(Create::default());
        plan.paths = Paths {
            charge: Some("/v1/charges/{id}".to_owned()),
            invoice: Some("/v1/invoices/{id}".to_owned()),
            payment_link: Some("/v1/payment-links/{id}".to_owned()),
        };
        choose(&mut plan, args, config)?;
        if !plan.without.contains(&Part::Webhooks) {
            plan.webhooks =
                Some(event_sources::webhooks(&self.receiver, &self.stage, receiver_origin, config)?);
        }
        Ok(plan)
    }

    /// Returns the world's clock, which is frozen until it is moved.
    pub(super) fn clock(&self) -> MovedClock {
        MovedClock { stage: self.stage.clone(), moved: Duration::ZERO }
    }
}

/// Performs a call that must succeed.
pub(super) fn call(
    stage: &mut RemoteStage,
    method: &str,
    path: &str,
    bearer: Option<&str>,
    body: &Value,
) -> Result<Value, Failure> {
    let call = Call { method, path, bearer, headers: &[], body: Some(body) };
    let answer = stage.call(&call).map_err(|error| Failure::unreachable(error.to_string()))?;
    match answer.status {
        200..=299 => Ok(answer.json()),
        status => {
            Err(Failure { code: 1, message: format!("{method} {path} answered {status}: {}", answer.json()) })
        }
    }
}

/// A clock that requests to the server move.
pub(super) struct MovedClock {
    stage: Arc<Mutex<RemoteStage>>,
    moved: Duration,
}

impl Waiter for MovedClock {
    fn now(&self) -> Duration {
        self.moved
    }

    fn wait(&mut self, span: Duration) -> Wait<'_> {
        let stage = self.stage.clone();
        Box::pin(async move {
            let body = json!({ "by": format!("{}us", span.as_micros()) });
            // The stage has its own runtime, which must not be entered from within another.
            let moving = tokio::task::spawn_blocking(move || {
                let call = Call {
                    method: "POST",
                    path: "/sandbox/advance",
                    bearer: None,
                    headers: &[],
                    body: Some(&body),
                };
                let answer = stage.lock().expect("calls do not panic").call(&call);
                match answer {
                    Ok(answer) if answer.status == 200 => Ok(()),
                    Ok(answer) => Err(format!("cannot advance the clock: {}", answer.json())),
                    Err(error) => Err(error.to_string()),
                }
            });
            moving.await.map_err(|error| error.to_string())??;
            self.moved += span;
            Ok(())
        })
    }
}
