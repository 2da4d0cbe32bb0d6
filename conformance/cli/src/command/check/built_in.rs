//! The built-in server as a target: its data, its keys and its clock.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use conformance::{Create, Part, Paths, Plan, Secret, Wait, Waiter, receiver::BackgroundReceiver};
use reference_core::{limit::REQUESTS_PER_MINUTE, rng::Seed, time::Timestamp};
use reference_server::{ClockKind, Config as ServerConfig, Reach, SenderConfig, Server};
use serde_json::json;
use simulator::play::{Call, Stage};
use tokio::runtime::Runtime;
use url::Url;

use super::{ProgressDisplay, choose, event_sources, play};
use crate::{Failure, args::Check, config::Config, remote::RemoteStage, terminal::GOOD};

/// The scenario that creates the data for all statements.
const POPULATED: &str = "check/populated";
/// The seed of keys, codes and ids.
const SEED: Seed = Seed(1);
const START: &str = "2026-01-05T09:00:00Z";
/// The time after which no rate limit counts earlier requests.
const REST: Duration = Duration::from_secs(600);

/// The built-in server, with data for all statements.
pub(super) struct BuiltInServer {
    server: Server,
    stage: Arc<Mutex<RemoteStage>>,
    /// The receiver of the server's deliveries.
    catch: Arc<BackgroundReceiver>,
    second_key: String,
    other_account_key: String,
    revoked_key: String,
}

impl BuiltInServer {
    pub(super) fn start(
        runtime: &Runtime,
        config: &Config,
        screen: &ProgressDisplay,
    ) -> Result<BuiltInServer, Failure> {
        let catch = Arc::new(event_sources::receiver(runtime)?);
        let server_config = ServerConfig {
            address: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            seed: SEED,
            start: Timestamp::parse(START),
            rate_limit: Some(REQUESTS_PER_MINUTE),
            clock: ClockKind::Frozen,
            dialect: config.dialect.clone(),
            sender: SenderConfig {
                reach: Reach::Network,
                forwards: vec![event_sources::way(catch.address())],
                ..SenderConfig::default()
            },
            ..ServerConfig::local()
        };
        let server = runtime
            .block_on(Server::start(server_config))
            .map_err(|error| Failure::unreachable(format!("the built-in server does not start: {error}")))?;
        let mut stage = RemoteStage::new(server.url()).map_err(Failure::unreachable)?;
        let violated = |message: String| Failure { code: 1, message };
        let count =
            play::play_built_ins(&mut stage, &mut |name| screen.bar.set_message(format!("scenario {name}")))
                .map_err(violated)?;
        play::play_built_in(POPULATED, &mut stage).map_err(violated)?;
        screen.say(&format!("{GOOD}{count} scenarios{GOOD:#} passed over HTTP"));

        let mut ask = |method: &str, path: &str, bearer: Option<&str>, body: serde_json::Value| {
            let call = Call { method, path, bearer, headers: &[], body: Some(&body) };
            let answer = stage.call(&call).map_err(|error| Failure::unreachable(error.to_string()))?;
            match answer.status {
                200..=299 => Ok(answer.json()),
                status => Err(violated(format!("{method} {path} answered {status}: {}", answer.json()))),
            }
        };
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let another = ask("POST", "/sandbox/accounts", None, json!({ "id": "another" }))?;
        let other_account_key = text(&another["keys"]["test"]);
        let charge = json!({ "asset": "BTC", "amount": "10.00" });
        ask("POST", "/v1/charges", Some(&other_account_key), charge)?;
        let second = ask("POST", "/sandbox/keys", None, json!({ "mode": "test" }))?;
        let revoked = ask("POST", "/sandbox/keys", None, json!({ "mode": "test" }))?;
        let id = text(&revoked["key"]["id"]);
        ask("DELETE", &format!("/sandbox/keys/{id}"), None, json!({}))?;
        ask("POST", "/sandbox/advance", None, json!({ "by": format!("{}s", REST.as_secs()) }))?;
        Ok(BuiltInServer {
            server,
            second_key: text(&second["key"]["secret"]),
            other_account_key,
            revoked_key: text(&revoked["key"]["secret"]),
            stage: Arc::new(Mutex::new(stage)),
            catch,
        })
    }

    /// Returns the server's clock, which is frozen until it is moved.
    pub(super) fn clock(&self) -> MovedClock {
        MovedClock { stage: self.stage.clone(), moved: Duration::ZERO }
    }

    pub(super) async fn stop(self) {
        self.server.stop().await;
    }

    pub(super) fn plan(&self, args: &Check, config: &Config) -> Result<Plan, Failure> {
        let keys = self.server.first_keys().expect("a server that plays its scenarios is well");
        let base = Url::parse(self.server.url()).expect("a server's own address is one");
        let mut plan = Plan::new(base, Secret::new(keys.live), Secret::new(keys.test));
        plan.second_key = Some(Secret::new(self.second_key.clone()));
        plan.other_account_key = Some(Secret::new(self.other_account_key.clone()));
        plan.revoked_key = Some(Secret::new(self.revoked_key.clone()));
        // Creating two charges is allowed here, and the paths of objects are known.
        plan.writes = Some(Create::default());
        plan.paths = Paths {
            charge: Some("/v1/charges/{id}".to_owned()),
            invoice: Some("/v1/invoices/{id}".to_owned()),
            payment_link: Some("/v1/payment-links/{id}".to_owned()),
        };
        choose(&mut plan, args, config)?;
        if !plan.without.contains(&Part::Webhooks) {
            plan.webhooks = Some(event_sources::webhooks(&self.catch, &self.stage, config)?);
        }
        Ok(plan)
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
