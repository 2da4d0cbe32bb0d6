//! [`SandboxWorld`]: a world of the reference server as a target. Calls of the sandbox create the
//! keys, endpoints and events that all statements need.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use conformance::{
    ClockWait, CreateRequest, ObjectPaths, Part, Plan, Secret, TargetClock, receiver::BackgroundReceiver,
};
use serde_json::{Value, json};
use simulator::play::{Stage, StageRequest};
use url::Url;

use super::{apply_options, event_sources};
use crate::{Failure, args::Check, config::Config, remote::RemoteStage};

/// A time after which no rate limit counts earlier requests.
const PAST_RATE_WINDOW: Duration = Duration::from_secs(600);

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
    /// Creates keys of every kind and a charge of another account, and advances the clock so that
    /// these calls do not count for the rate limit.
    pub(super) fn prepare(
        mut stage: RemoteStage,
        target: SandboxTarget,
        receiver: BackgroundReceiver,
    ) -> Result<SandboxWorld, Failure> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let account = call(&mut stage, "POST", "/sandbox/accounts", None, &json!({ "id": "another" }))?;
        let other_account_key = text(&account["keys"]["test"]);
        // A record of the other account, which the keys of the first account must not reach.
        let charge = json!({ "asset": "BTC", "amount": "10.00" });
        call(&mut stage, "POST", "/v1/charges", Some(&other_account_key), &charge)?;
        let mut create_key = || call(&mut stage, "POST", "/sandbox/keys", None, &json!({ "mode": "test" }));
        let (second, revoked) = (create_key()?, create_key()?);
        let id = text(&revoked["key"]["id"]);
        call(&mut stage, "DELETE", &format!("/sandbox/keys/{id}"), None, &json!({}))?;
        let advance = json!({ "by": format!("{}s", PAST_RATE_WINDOW.as_secs()) });
        call(&mut stage, "POST", "/sandbox/advance", None, &advance)?;
        Ok(SandboxWorld {
            target,
            stage: Arc::new(Mutex::new(stage)),
            receiver: Arc::new(receiver),
            second_key: Secret::new(text(&second["key"]["secret"])),
            other_account_key: Secret::new(other_account_key),
            revoked_key: Secret::new(text(&revoked["key"]["secret"])),
        })
    }

    /// Returns the plan of a check of this world.
    pub(super) fn plan(&self, args: &Check, config: &Config) -> Result<Plan, Failure> {
        let SandboxTarget { base, live_key, test_key, receiver_origin } = &self.target;
        let mut plan = Plan::new(base.clone(), live_key.clone(), test_key.clone());
        plan.second_key = Some(self.second_key.clone());
        plan.other_account_key = Some(self.other_account_key.clone());
        plan.revoked_key = Some(self.revoked_key.clone());
        // In a sandbox world the check may create charges, and the paths of objects are known.
        plan.create_request = Some(CreateRequest::default());
        plan.paths = ObjectPaths {
            charge: Some("/v1/charges/{id}".to_owned()),
            invoice: Some("/v1/invoices/{id}".to_owned()),
            payment_link: Some("/v1/payment-links/{id}".to_owned()),
        };
        apply_options(&mut plan, args, config)?;
        if !plan.without.contains(&Part::Webhooks) {
            plan.webhooks =
                Some(event_sources::webhook_plan(&self.receiver, &self.stage, receiver_origin, config)?);
        }
        Ok(plan)
    }

    /// Returns the world's clock, which is frozen except for waits.
    pub(super) fn clock(&self) -> SandboxClock {
        SandboxClock { stage: self.stage.clone(), elapsed: Duration::ZERO }
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
    let call = StageRequest { method, path, bearer, headers: &[], body: Some(body) };
    let response = stage.call(&call).map_err(|error| Failure::unreachable(error.to_string()))?;
    match response.status {
        200..=299 => Ok(response.json()),
        status => Err(Failure {
            code: 1,
            message: format!("{method} {path} responded with {status}: {}", response.json()),
        }),
    }
}

/// The frozen clock of a world. A wait advances it by a sandbox call.
pub(super) struct SandboxClock {
    stage: Arc<Mutex<RemoteStage>>,
    /// The time by which waits have advanced the clock.
    elapsed: Duration,
}

impl TargetClock for SandboxClock {
    fn now(&self) -> Duration {
        self.elapsed
    }

    fn wait(&mut self, span: Duration) -> ClockWait<'_> {
        let stage = self.stage.clone();
        Box::pin(async move {
            let body = json!({ "by": format!("{}us", span.as_micros()) });
            // The stage has its own runtime, which cannot start inside another.
            let advance = tokio::task::spawn_blocking(move || {
                let call = StageRequest {
                    method: "POST",
                    path: "/sandbox/advance",
                    bearer: None,
                    headers: &[],
                    body: Some(&body),
                };
                let result = stage.lock().expect("no call panics while it holds the lock").call(&call);
                match result {
                    Ok(response) if response.status == 200 => Ok(()),
                    Ok(response) => Err(format!("cannot advance the clock: {}", response.json())),
                    Err(error) => Err(error.to_string()),
                }
            });
            advance.await.map_err(|error| error.to_string())??;
            self.elapsed += span;
            Ok(())
        })
    }
}
