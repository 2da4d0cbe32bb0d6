//! The state of a world: a service, its chains, its watchers and its network, at one moment.
//!
//! Changes only by a call, or by [`World::work`] when something is due. Who watches it stands beside it, in
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
    observe::Scene, watcher::Watchers,
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
    /// A slice ended before everything was done that is due at this moment.
    pub(super) is_behind: bool,
    /// Bytes held of what it was told, estimated: see `held`.
    pub(super) told_bytes: u64,
    /// The time of the next event that happens by itself; `None` after a change, until it is computed again.
    #[serde(skip)]
    pub(super) due: Cell<Option<Option<Timestamp>>>,
}

/// The host's result for a name.
#[derive(Serialize, Deserialize)]
enum KnownName {
    /// It resolves to these.
    Addresses(Vec<IpAddr>),
    /// The host reaches it by a way of its own.
    OwnWay,
}

/// Attempts that go outside the simulated network: the host posts them.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct External {
    /// Those that the host has yet to fetch.
    outgoing: Vec<OutgoingAttempt>,
    /// Those that have not ended.
    pub(super) open: BTreeMap<AttemptId, (AccountNo, Mode, AttemptRequest)>,
    /// Attempts so far, in this world and those before it.
    pub(super) count: u64,
}

impl External {
    /// Hands an attempt to the host, who fetches it with its body.
    pub(super) fn send(&mut self, account: AccountNo, mode: Mode, post: AttemptRequest) {
        self.count += 1;
        let id = AttemptId(self.count);
        self.open.insert(id, (account, mode, post.clone()));
        self.outgoing.push(OutgoingAttempt { id, account, mode, post });
    }

    /// The attempts that the host has yet to fetch.
    pub(super) fn take_outgoing(&mut self) -> Vec<OutgoingAttempt> {
        std::mem::take(&mut self.outgoing)
    }

    /// The service stopped: nobody waits for how they end.
    pub(super) fn cut(&mut self) -> impl Iterator<Item = (AccountNo, Mode, AttemptRequest)> + use<> {
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
            told_bytes: 0,
            due: Cell::new(None),
        };
        for (asset, currency, rate) in market::rates(setup.seed) {
            world.service.rate(setup.start, asset, currency, Some(rate));
        }
        world
    }

    /// The service, to be looked at.
    pub(super) fn service(&self) -> &Service {
        self.service.service()
    }

    /// Returns the observers' view of it.
    pub(super) fn scene(&self) -> Scene<'_> {
        Scene { now: self.now, service: self.service() }
    }

    /// Something that the owner of a book does.
    pub(super) fn act(
        &mut self,
        account: AccountNo,
        mode: Mode,
        command: impl Into<Command>,
    ) -> Result<CommandResult, ApiError> {
        self.service.command(self.now, (account, mode), command.into())
    }

    /// A new key in each mode.
    pub(super) fn create_keys(&mut self, account: AccountNo) -> FirstKeys {
        let [live, test] = Mode::ALL.map(|mode| match self.act(account, mode, Command::CreateKey) {
            Ok(CommandResult::Key(_, text)) => text.reveal().to_owned(),
            other => unreachable!("making a key gives a key, not {other:?}"),
        });
        FirstKeys { live, test }
    }

    /// The host looked a name up: an endpoint's address is judged by it when it is saved.
    pub(super) fn learn_name(&mut self, host: &str, addresses: Vec<IpAddr>) {
        self.names.insert(host.to_owned(), KnownName::Addresses(addresses));
    }

    /// The host has a way of its own to this name, so nobody is asked what it resolves to.
    pub(super) fn vouch_for(&mut self, host: &str) {
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
