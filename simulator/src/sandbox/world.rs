//! The state of a world: a service, its chains, its watchers and its network, at one moment.
//!
//! It changes only by a call, or by [`World::work`] when something is due. Its observers are separate, in
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

/// A service, its chains, its watchers and its network, at one moment.
#[derive(Serialize, Deserialize)]
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) now: Timestamp,
    pub(super) service: JournaledService,
    pub(super) chains: Chains,
    pub(super) watchers: Watchers,
    pub(super) network: Network,
    pub(super) external: External,
    /// The latest result of resolving each real name.
    names: BTreeMap<String, KnownName>,
    /// `true` if a slice of work ended before everything due at this moment was done.
    pub(super) is_behind: bool,
    /// The estimated bytes of memory used by inputs so far.
    pub(super) input_bytes: u64,
    /// The time of the next due event; `None` if it has to be computed again after a change.
    #[serde(skip)]
    pub(super) due: Cell<Option<Option<Timestamp>>>,
}

/// The host's result of resolving a name.
#[derive(Serialize, Deserialize)]
enum KnownName {
    /// The addresses of the name.
    Addresses(Vec<IpAddr>),
    /// The host reaches the name itself.
    OwnWay,
}

/// Attempts that go outside the simulated network, posted by the host.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct External {
    /// Attempts that the host has not taken yet.
    outgoing: Vec<OutgoingAttempt>,
    /// Attempts that have not ended.
    pub(super) open: BTreeMap<AttemptId, (AccountNo, Mode, AttemptRequest)>,
    /// The number of attempts so far, in this world and those before it.
    pub(super) count: u64,
}

impl External {
    /// Queues an attempt for the host, which takes it with its body.
    pub(super) fn send(&mut self, account: AccountNo, mode: Mode, post: AttemptRequest) {
        self.count += 1;
        let id = AttemptId(self.count);
        self.open.insert(id, (account, mode, post.clone()));
        self.outgoing.push(OutgoingAttempt { id, account, mode, post });
    }

    /// Takes the attempts that the host has not taken yet.
    pub(super) fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        std::mem::take(&mut self.outgoing)
    }

    /// Drops all attempts because the service stopped; returns the open ones.
    pub(super) fn drop_all(&mut self) -> impl Iterator<Item = (AccountNo, Mode, AttemptRequest)> + use<> {
        self.outgoing.clear();
        std::mem::take(&mut self.open).into_values()
    }
}

impl World {
    pub(super) fn new(setup: &Setup) -> World {
        let start = ServiceConfig {
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
            service: JournaledService::new(start, setup.journal),
            chains: Chains::new(setup.seed, setup.start),
            watchers: Watchers::default(),
            network: Network::default(),
            external: External::default(),
            names: BTreeMap::new(),
            is_behind: false,
            input_bytes: 0,
            due: Cell::new(None),
        };
        for (asset, currency, rate) in market::rates(setup.seed) {
            world.service.rate(setup.start, asset, currency, Some(rate));
        }
        world
    }

    /// Returns the service, read-only.
    pub(super) fn service(&self) -> &Service {
        self.service.service()
    }

    /// Returns the view of the world that observers get.
    pub(super) fn view(&self) -> WorldView<'_> {
        WorldView { now: self.now, service: self.service() }
    }

    /// Performs an operation of the account owner.
    pub(super) fn act(
        &mut self,
        account: AccountNo,
        mode: Mode,
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.service.command(self.now, (account, mode), command.into())
    }

    /// Creates a key in each mode.
    pub(super) fn create_keys(&mut self, account: AccountNo) -> FirstKeys {
        let [live, test] = Mode::ALL.map(|mode| match self.act(account, mode, Command::CreateKey) {
            Ok(CommandResult::Key(_, text)) => text.reveal().to_owned(),
            other => unreachable!("creating a key returns a key, not {other:?}"),
        });
        FirstKeys { live, test }
    }

    /// Stores the result of resolving a name. Endpoint addresses are checked against it when they are saved.
    pub(super) fn learn_name(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.names.insert(host.to_owned(), KnownName::Addresses(addresses));
    }

    /// Declares that the host reaches this name itself, so that it needs no resolution.
    pub(super) fn declare_forwarded(&mut self, host: &str) {
        self.names.insert(host.to_owned(), KnownName::OwnWay);
    }

    /// Checks that an endpoint may be saved: none of the addresses of its host may be private.
    pub(super) fn judge_endpoint(&self, url: &str) -> Result<(), ApiError> {
        let wrong = |why: String| ApiError::field("url", format!("The url field is invalid: {why}."));
        let url = address_rule::judge_url(url).map_err(|refusal| wrong(refusal.to_string()))?;
        let host = url.host().to_string();
        let addresses = match url.host() {
            _ if url.is_simulated() => self.network.resolve(&host),
            _ if self.setup.reach == Reach::Simulated => {
                return Err(wrong(format!(
                    "this world posts to hosts of the simulated network only, such as shop.sim, not to {host}"
                )));
            }
            Host::Address(ip) => vec![*ip],
            Host::Name(_) => match self.names.get(&host) {
                Some(KnownName::OwnWay) => return Ok(()),
                Some(KnownName::Addresses(addresses)) => addresses.clone(),
                None => Vec::new(),
            },
        };
        address_rule::judge_resolved(&addresses).map_err(|refusal| wrong(format!("{host}: {refusal}")))
    }
}
