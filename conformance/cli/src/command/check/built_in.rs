//! The built-in server as a target.

use conformance::Secret;
use reference_core::{limit::REQUESTS_PER_MINUTE, rng::Seed, time::Timestamp};
use reference_server::{ClockKind, Config as ServerConfig, Reach, SenderConfig, Server};
use tokio::runtime::Runtime;
use url::Url;

use super::{
    ProgressDisplay, event_sources, play,
    sandbox_world::{SandboxTarget, SandboxWorld},
};
use crate::{Failure, config::Config, remote::RemoteStage, terminal::GOOD};

/// The scenario that creates the data for all statements.
const DATA_SCENARIO: &str = "check/populated";
/// The seed of keys, codes and ids.
const SEED: Seed = Seed(1);
const START: &str = "2026-01-05T09:00:00Z";

/// The built-in server, with data for all statements.
pub(super) struct BuiltInServer {
    server: Server,
    world: SandboxWorld,
}

impl BuiltInServer {
    pub(super) fn start(
        runtime: &Runtime,
        config: &Config,
        progress: &ProgressDisplay,
    ) -> Result<BuiltInServer, Failure> {
        let receiver = event_sources::start_receiver(runtime)?;
        let server_config = ServerConfig {
            address: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            seed: SEED,
            start: Timestamp::parse(START),
            rate_limit: Some(REQUESTS_PER_MINUTE),
            clock: ClockKind::Frozen,
            dialect: config.dialect.clone(),
            sender: SenderConfig {
                reach: Reach::Network,
                forwards: vec![event_sources::forward_to_receiver(receiver.address())],
                ..SenderConfig::default()
            },
            ..ServerConfig::local()
        };
        let server = runtime
            .block_on(Server::start(server_config))
            .map_err(|error| Failure::unreachable(format!("the built-in server does not start: {error}")))?;
        let mut stage = RemoteStage::new(server.url()).map_err(Failure::unreachable)?;
        let violation = |message: String| Failure { code: 1, message };
        let count = play::play_built_ins(&mut stage, &mut |name| {
            progress.bar.set_message(format!("scenario {name}"))
        })
        .map_err(violation)?;
        // Played last, because the check runs in the world that the last scenario leaves.
        play::play_built_in(DATA_SCENARIO, &mut stage).map_err(violation)?;
        progress.info(&format!("{GOOD}{count} scenarios{GOOD:#} passed over HTTP"));
        let keys = server.first_keys().expect("the server has not failed");
        let base = Url::parse(server.url()).expect("the server's URL is valid");
        let target = SandboxTarget {
            base,
            live_key: Secret::new(keys.live),
            test_key: Secret::new(keys.test),
            receiver_origin: event_sources::ENDPOINT_ORIGIN.to_owned(),
        };
        Ok(BuiltInServer { server, world: SandboxWorld::prepare(stage, target, receiver)? })
    }

    pub(super) fn world(&self) -> &SandboxWorld {
        &self.world
    }

    pub(super) fn stop(self, runtime: &Runtime) {
        runtime.block_on(self.server.stop());
    }
}
