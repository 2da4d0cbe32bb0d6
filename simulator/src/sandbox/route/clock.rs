//! Calls on the world as a whole: its overview, events, history, clock and market, its restart and its replacement.

use reference_core::{
    error::ApiError, mode::Mode, money::Rate, rng::Seed, time::Timestamp, wallet::needs_address_list,
};
use reference_wire::fields::Fields;

use super::{
    EVENTS_MAX, Outcome, SETTINGS, account::read_settings, advance::AdvanceTarget, call::SandboxCall,
    empty_response, events_after, json_response,
};
use crate::{
    api::{
        AccountRecord, AdvanceRequest, Body, ChainRecord, KeyPair, NewAccount, Overview, RateRecord,
        RateRequest, ScenarioResponse, WorldEvents,
    },
    sandbox::{Sandbox, Setup},
};

pub(super) fn overview(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    json_response(call.sandbox.overview())
}

impl Sandbox {
    /// Returns the accounts, chains and rates of the world.
    pub fn overview(&self) -> Overview {
        let (world, service) = (&self.world, self.service());
        // Every account has one live book.
        let accounts = service.books().filter(|(_, mode, _)| *mode == Mode::Live).map(|(no, _, _)| {
            let account = service.account(no);
            AccountRecord {
                id: account.id.to_string(),
                kind: account.kind.as_str().into(),
                members: account.settings.members.clone(),
            }
        });
        let chains = world.chains.values().map(|chain| {
            let facts = chain.asset().facts();
            ChainRecord {
                mode: chain.mode(),
                asset: chain.asset(),
                height: chain.height(world.now),
                required_confirmations: chain.asset().required_confirmations(chain.mode()),
                network: facts.network.into(),
                decimals: facts.decimals,
                wallet: if needs_address_list(facts.address_format) { "addresses" } else { "key" }.into(),
                next_block_at: chain.block_after(world.now, 1),
            }
        });
        let rates = service.exchange().iter();
        let rates =
            rates.map(|(asset, currency, rate)| RateRecord { asset, currency, rate: rate.to_string() });
        Overview {
            seed: world.setup.seed.0,
            accounts: accounts.collect(),
            chains: chains.collect(),
            rates: rates.collect(),
            happenings: self.log().count(),
            next_due: world.next_due(),
        }
    }
}

pub(super) fn world_events(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let after = f.whole_number("after").unwrap_or(0);
    f.finish()?;
    let happened: Vec<_> = events_after(call.sandbox, after, call.within).take(EVENTS_MAX).cloned().collect();
    let next = happened.last().map_or(after, |last| last.n);
    json_response(WorldEvents { happened, next })
}

/// Returns the recorded calls as a scenario.
pub(super) fn scenario(call: &mut SandboxCall<'_>, _: Fields<'_>) -> Outcome {
    let Sandbox { history, world, .. } = &*call.sandbox;
    let history = history
        .as_ref()
        .ok_or_else(|| ApiError::conflict("This world records no history, so there is no scenario."))?;
    let (scenario, omitted) = history.write_scenario(&world.setup, world.now);
    json_response(ScenarioResponse { scenario, untold: omitted })
}

/// Replaces this world with a new one. The host allows it only with a frozen clock.
pub(super) fn replace_world(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let seed = f.whole_number("seed");
    let start = f.parsed_text("start", "2026-01-05T09:00:00Z", Timestamp::parse);
    let journal = f.bool("journal");
    let mut settings = Sandbox::first_settings();
    let draft = f.object("account", |f| {
        f.reject_unknown(&SETTINGS);
        Some(read_settings(f))
    });
    f.finish()?;
    if let Some(draft) = draft {
        settings.apply(draft);
    }
    let old = &call.world().setup;
    let setup = Setup {
        seed: seed.map_or(old.seed, Seed),
        start: start.unwrap_or(old.start),
        journal: journal.unwrap_or(old.journal),
        ..old.clone()
    };
    call.sandbox.replace_world(&setup, settings);
    let keys = call.sandbox.first_keys();
    let account = Sandbox::FIRST_ACCOUNT.to_owned();
    json_response(NewAccount { account, keys: KeyPair { live: keys.live, test: keys.test } })
}

pub(super) fn advance(call: &mut SandboxCall<'_>, mut body: Body<'_, AdvanceRequest>) -> Outcome {
    if body.fields.has_value("by") == body.fields.has_value("to") {
        body.fields.add_error("by", "Give either {} (such as 30s or 1h30m) or to (a time).");
    }
    let AdvanceRequest { by, to, stop_early, after } = body.finish()?;
    let is_relative = by.is_some();
    let now = call.world().now;
    let until = match (by, to) {
        (Some(by), _) => now.plus(by),
        (None, Some(to)) => to,
        (None, None) => {
            return Err(ApiError::field("by", "The by field is required when to is not present."));
        }
    };
    if until < now {
        let message = format!("The time of the clock is already {now}, and it cannot be moved back.");
        return Err(ApiError::field("to", message));
    }
    let field = if is_relative { "by" } else { "to" };
    call.set_target(field, AdvanceTarget { until, stop_early, after })?;
    empty_response()
}

pub(super) fn restart(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    f.finish()?;
    let Sandbox { world, observers, .. } = &mut *call.sandbox;
    world.restart(observers)?;
    empty_response()
}

pub(super) fn set_rate(call: &mut SandboxCall<'_>, body: Body<'_, RateRequest>) -> Outcome {
    let RateRequest { asset, currency, rate } = body.finish()?;
    let rate = rate.0.and_then(|text| Rate::parse(&text).ok());
    let world = call.world_mut();
    world.service.on_rate(world.now, asset, currency, rate);
    empty_response()
}
