//! The state of a world: a service, its chains, its watchers and its network. The main type is [`World`].
//!
//! It changes only by a call, or by [`World::perform_due`] when something is due. Its observers are separate, in
//! [`super::observe`].

use std::{cell::Cell, collections::BTreeMap, net::IpAddr};

use reference_core::{
    command::{Command, CommandResult},
    endpoint::address_rule::{self, Host},
    error::ApiError,
    id::AccountNo,
    mode::Mode,
    service::{Service, ServiceConfig},
    time::Timestamp,
};
use reference_wire::AttemptRequest;
use serde::{Deserialize, Serialize};

use super::{
    AttemptId, FirstKeys, OutgoingAttempt, Reach, Setup, chains::Chains, journal::JournaledService, market,
    observe::WorldView, watcher::Watchers,
};
use crate::network::Network;

/// A service, its chains, its watchers and its network.
#[derive(Serialize, Deserialize)]
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) now: Timestamp,
    pub(super) service: JournaledService,
    pub(super) chains: Chains,
    pub(super) watchers: Watchers,
    pub(super) network: Network,
    pub(super) external: External,
    /// The latest result of resolving each real host name.
    resolutions: BTreeMap<String, NameResolution>,
    /// `true` if a slice of work ended before everything due at the current time was done.
    pub(super) is_behind: bool,
    /// The estimated bytes of memory used by inputs so far.
    pub(super) input_bytes: u64,
    /// The cached result of `next_due`; `None` if it has to be computed again after a change.
    #[serde(skip)]
    pub(super) cached_due: Cell<Option<Option<Timestamp>>>,
}

/// The result of resolving a host name.
#[derive(Serialize, Deserialize)]
enum NameResolution {
    /// The addresses of the name.
    Addresses(Vec<IpAddr>),
    /// The host of this world forwards deliveries for the name, so its addresses do not matter.
    Forwarded,
}

/// Attempts to addresses outside the simulated network, which the host makes.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct External {
    /// The attempts that the host has not fetched yet.
    outgoing: Vec<OutgoingAttempt>,
    /// The attempts that have not ended.
    pub(super) open: BTreeMap<AttemptId, (AccountNo, Mode, AttemptRequest)>,
    /// The number of attempts so far, in this world and those before it.
    pub(super) count: u64,
}

impl External {
    /// Queues an attempt for the host.
    pub(super) fn send(&mut self, account: AccountNo, mode: Mode, attempt: AttemptRequest) {
        self.count += 1;
        let id = AttemptId(self.count);
        self.open.insert(id, (account, mode, attempt.clone()));
        self.outgoing.push(OutgoingAttempt { id, account, mode, request: attempt });
    }

    /// Removes and returns the attempts that the host has not fetched yet.
    pub(super) fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        std::mem::take(&mut self.outgoing)
    }

    /// Drops all attempts because the service stopped. Returns those that had not ended.
    pub(super) fn drop_all(&mut self) -> impl Iterator<Item = (AccountNo, Mode, AttemptRequest)> + use<> {
        self.outgoing.clear();
        std::mem::take(&mut self.open).into_values()
    }
}

impl World {
    pub(super) fn new(setup: &Setup) -> World {
        let config = ServiceConfig {
            seed: setup.seed,
            dialect: setup.dialect.clone(),
            public_url: setup.public_url.clone(),
            rate_limit: setup.rate_limit,
            wallet_cache: setup.wallet_cache.clone(),
            key_tag: setup.key_tag.clone(),
        };
        let mut world = World {
            setup: setup.clone(),
            now: setup.start,
            service: JournaledService::new(config, setup.journal),
            chains: Chains::new(setup.seed, setup.start),
            watchers: Watchers::default(),
            network: Network::default(),
            external: External::default(),
            resolutions: BTreeMap::new(),
            is_behind: false,
            input_bytes: 0,
            cached_due: Cell::new(None),
        };
        for (asset, currency, rate) in market::rates(setup.seed) {
            world.service.on_rate(setup.start, asset, currency, Some(rate));
        }
        world
    }

    /// Returns the service, read-only.
    pub(super) fn service(&self) -> &Service {
        self.service.service()
    }

    /// Returns the state of the world that observers can read.
    pub(super) fn view(&self) -> WorldView<'_> {
        WorldView { now: self.now, service: self.service() }
    }

    /// Performs an operation of the account owner.
    pub(super) fn execute(
        &mut self,
        account: AccountNo,
        mode: Mode,
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.service.command(self.now, (account, mode), command.into())
    }

    /// Creates a key in each mode.
    pub(super) fn create_keys(&mut self, account: AccountNo) -> FirstKeys {
        let [live, test] = Mode::ALL.map(|mode| match self.execute(account, mode, Command::CreateKey) {
            Ok(CommandResult::Key(_, secret)) => secret.reveal().to_owned(),
            other => unreachable!("`CreateKey` returns a key, not {other:?}"),
        });
        FirstKeys { live, test }
    }

    /// Stores the addresses that a host name resolves to. The URLs of new endpoints are checked against them.
    pub(super) fn set_resolution(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.resolutions.insert(host.to_owned(), NameResolution::Addresses(addresses));
    }

    /// Declares that the host forwards deliveries to this name, so that it needs no resolution.
    pub(super) fn declare_forwarded(&mut self, host: &str) {
        self.resolutions.insert(host.to_owned(), NameResolution::Forwarded);
    }

    /// Checks that an endpoint may have this URL: none of the addresses of its host may be private.
    pub(super) fn check_endpoint_url(&self, url: &str) -> Result<(), ApiError> {
        let invalid = |reason: String| ApiError::field("url", format!("The url field is invalid: {reason}."));
        let url = address_rule::parse_endpoint_url(url).map_err(|refusal| invalid(refusal.to_string()))?;
        let host = url.host().to_string();
        let addresses = match url.host() {
            _ if url.is_simulated() => self.network.resolve(&host),
            _ if self.setup.reach == Reach::Simulated => {
                return Err(invalid(format!(
                    "this world delivers only to hosts of the simulated network, such as shop.sim, not to {host}"
                )));
            }
            Host::Address(ip) => vec![*ip],
            Host::Name(_) => match self.resolutions.get(&host) {
                Some(NameResolution::Forwarded) => return Ok(()),
                Some(NameResolution::Addresses(addresses)) => addresses.clone(),
                None => Vec::new(),
            },
        };
        address_rule::check_resolved(&addresses).map_err(|refusal| invalid(format!("{host}: {refusal}")))
    }
}
