//! [`Backend`]: a world with everything that its requests need, and the state that all worlds of a server share.

use std::sync::{Arc, Mutex};

use reference_core::{dialect::Dialect, rng::Seed, time::Timestamp};
use simulator::sandbox::{Reach, Setup};
use tokio::sync::mpsc::UnboundedSender;

#[cfg(feature = "mcp")]
use crate::config::McpClockAccess;
use crate::{
    address::Addresses,
    clock::{Clock, ClockKind},
    config::Bounds,
    host::{Durability, Host, SenderHandle},
    journal::RunningWorld,
    log::{LogSink, RequestLog},
    memory::MemoryShare,
    response_budget::ResponseBudget,
    sandbox_access::SandboxToken,
    sender::{WebhookSender, WorldAttempt, WorldNo},
};

/// A world with its addresses, the sandbox token, the limits on clients, the budget for responses, and the log of its
/// requests.
pub(crate) struct Backend {
    pub(crate) host: Arc<Host>,
    pub(crate) addresses: Addresses,
    pub(crate) token: Arc<SandboxToken>,
    pub(crate) bounds: Bounds,
    pub(crate) in_flight: Arc<ResponseBudget>,
    pub(crate) requests: RequestLog,
    #[cfg(feature = "mcp")]
    pub(crate) mcp_clock: McpClockAccess,
}

/// The state that all worlds of a server share.
pub(crate) struct SharedState {
    /// The addresses of the first world.
    pub(crate) addresses: Addresses,
    pub(crate) token: Arc<SandboxToken>,
    pub(crate) bounds: Bounds,
    pub(crate) in_flight: Arc<ResponseBudget>,
    pub(crate) dialect: Dialect,
    pub(crate) log: Option<LogSink>,
    /// The webhook sender and the queue of its attempts; `None` if deliveries are simulated.
    pub(crate) webhook_sender: Option<(Arc<WebhookSender>, UnboundedSender<WorldAttempt>)>,
    #[cfg(feature = "mcp")]
    pub(crate) mcp_clock: McpClockAccess,
}

/// The parameters of a new world: seed, clock and rate limit.
#[derive(Clone, Debug)]
pub(crate) struct WorldParameters {
    pub(crate) seed: Seed,
    /// The start of the clock; `None` for the time of day.
    pub(crate) start: Option<Timestamp>,
    pub(crate) clock: ClockKind,
    /// Requests per minute and key; `None` for no limit.
    pub(crate) rate_limit: Option<u32>,
}

/// The identity of a world in its server, and its limits.
pub(crate) struct WorldIdentity<'a> {
    /// The number by which the webhook sender distinguishes worlds.
    pub(crate) no: WorldNo,
    /// The id in its paths and keys; empty for the first world, which has none.
    pub(crate) id: &'a str,
    /// The maximum number of requests that are stored for the dashboard.
    pub(crate) requests_max: usize,
    /// The world's share of the memory budget.
    pub(crate) memory: MemoryShare,
}

impl Backend {
    /// Returns the parameters of the world; `None` if it cannot be recreated.
    pub(crate) fn parameters(&self) -> Option<WorldParameters> {
        self.host.setup_and_clock().map(|(setup, clock)| WorldParameters {
            seed: setup.seed,
            start: Some(setup.start),
            clock,
            rate_limit: setup.rate_limit,
        })
    }

    /// Creates the backend of the new or stored world that `create_world` returns. A new world starts now; a stored one
    /// continues from its last commit.
    ///
    /// # Errors
    ///
    /// The errors of `create_world`.
    pub(crate) fn start<E>(
        shared: &SharedState,
        parameters: &WorldParameters,
        identity: WorldIdentity<'_>,
        create_world: impl FnOnce(&Setup) -> Result<RunningWorld, E>,
    ) -> Result<Backend, E> {
        let WorldIdentity { no, id, requests_max, memory } = identity;
        let is_first = id.is_empty();
        let addresses = if is_first { shared.addresses.clone() } else { shared.addresses.for_world(id) };
        let log = shared.log.as_ref().map(|sink| if is_first { sink.clone() } else { sink.for_world(id) });
        let mut clock = Clock::new(parameters.clock, parameters.start);
        let now = clock.read();
        let RunningWorld { world, journal, setup, in_flight: attempts, last_end } = create_world(&Setup {
            rate_limit: parameters.rate_limit,
            dialect: shared.dialect.clone(),
            reach: if shared.webhook_sender.is_some() { Reach::Network } else { Reach::Simulated },
            key_tag: id.to_owned(),
            ..Setup::new(parameters.seed, clock.time_at(now), addresses.url())
        })?;
        if let Some((last_position, wall_micros)) = last_end {
            let time = Timestamp(last_position.now);
            clock.set(now, Clock::resume_time(parameters.clock, time, wall_micros));
        }
        let durability = journal.map(|journal| Durability { journal, setup, clock: parameters.clock });
        let sender_handle = shared.webhook_sender.as_ref().map(|(sender, dispatches)| SenderHandle {
            sender: Arc::clone(sender),
            dispatches: dispatches.clone(),
            world: no,
            forwards: Mutex::default(),
        });
        let token = shared.token.as_str();
        let requests =
            RequestLog::new(&shared.dialect, token, log.clone(), requests_max, memory.unbounded_share());
        let host = Arc::new(Host::new(world, clock, sender_handle, log, durability, memory));
        host.dispatch(attempts);
        Ok(Backend {
            host,
            addresses,
            token: Arc::clone(&shared.token),
            bounds: shared.bounds,
            in_flight: Arc::clone(&shared.in_flight),
            requests,
            #[cfg(feature = "mcp")]
            mcp_clock: shared.mcp_clock,
        })
    }
}
