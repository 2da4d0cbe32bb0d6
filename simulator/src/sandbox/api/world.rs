//! The world as a whole: its clock, its market, its beginning.

use reference_core::{
    asset::{Asset, Currency},
    draw::Seed,
    error::ApiError,
    money::Rate,
    time::{Span, Timestamp},
    wallet::takes_list,
    wire::fields::Fields,
};
use serde_json::{Map, Value, json};

use super::{Outcome, account::read_settings, nothing, parameter, read_asset};
use crate::sandbox::{FIRST_ACCOUNT, HAPPENINGS_MAX, Sandbox, Setup, journey::Heading};

pub(super) fn overview(sandbox: &Sandbox) -> Outcome {
    let service = sandbox.service();
    let accounts: Vec<Value> = {
        let mut seen = Vec::new();
        for (no, mode, _) in service.books() {
            if mode == reference_core::mode::Mode::Live {
                let account = service.account(no);
                seen.push(json!({
                    "id": account.id, "type": account.kind.as_str(), "members": account.settings.members,
                }));
            }
        }
        seen
    };
    let chains: Vec<Value> = sandbox
        .chains
        .values()
        .map(|chain| {
            json!({
                "mode": chain.mode().as_str(), "asset": chain.asset().code(),
                "height": chain.height(sandbox.now),
                "required_confirmations": chain.asset().required_confirmations(chain.mode()),
                "network": chain.asset().facts().network,
                "decimals": chain.asset().facts().decimals,
                "wallet": if takes_list(chain.asset().facts().form) { "addresses" } else { "key" },
                "next_block_at": chain.block_after(sandbox.now, 1).to_string(),
            })
        })
        .collect();
    let rates: Vec<Value> = service
        .exchange()
        .iter()
        .map(|(asset, currency, rate)| {
            json!({ "asset": asset.code(), "currency": currency.code(), "rate": rate.to_string() })
        })
        .collect();
    Ok(Map::from_iter([
        ("seed".to_owned(), json!(sandbox.setup.seed.0)),
        ("accounts".to_owned(), Value::Array(accounts)),
        ("chains".to_owned(), Value::Array(chains)),
        ("rates".to_owned(), Value::Array(rates)),
        ("happenings".to_owned(), json!(sandbox.chronicle.count())),
        ("next_due".to_owned(), json!(sandbox.next_due().map(|at| at.to_string()))),
    ]))
}

pub(super) fn happenings(sandbox: &Sandbox, query: &str) -> Outcome {
    let after = match parameter(query, "after") {
        None => 0,
        Some(text) => {
            text.parse().map_err(|_| ApiError::field("after", "The after field must be a whole number."))?
        }
    };
    let happened: Vec<_> = super::happenings(sandbox, after, sandbox.within).take(HAPPENINGS_MAX).collect();
    let next = happened.last().map_or(after, |last| last.n);
    Ok(Map::from_iter([("happened".to_owned(), json!(happened)), ("next".to_owned(), json!(next))]))
}

/// A new world in place of this one. The host allows it only while nobody's clock is running.
pub(super) fn begin(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["seed", "start", "account", "journal"]);
    let seed = f.decimal("seed").map(|text| text.parse::<u64>());
    if matches!(seed, Some(Err(_))) {
        f.wrong("seed", "The {} field must be a whole number below 2^64.");
    }
    let start = f.word_like("start", "2026-01-05T09:00:00Z", Timestamp::parse);
    let journal = f.truth("journal");
    let mut settings = Sandbox::first_settings();
    if let Some(draft) = f.object("account", |f| Some(read_settings(f, &[]))) {
        settings.change(draft);
    }
    f.finish()?;
    let setup = Setup {
        seed: seed.and_then(Result::ok).map_or(sandbox.setup.seed, Seed),
        start: start.unwrap_or(sandbox.setup.start),
        journal: journal.unwrap_or(sandbox.setup.journal),
        ..sandbox.setup.clone()
    };
    // Tickets go on counting, so that a post of the old world can't land in the new one.
    let before = std::mem::replace(sandbox, Sandbox::with_account(&setup, settings));
    (sandbox.tickets, sandbox.era) = (before.tickets, before.era + 1);
    (sandbox.terse, sandbox.record, sandbox.tamper) = (before.terse, before.record, before.tamper);
    let keys = sandbox.first_keys();
    Ok(Map::from_iter([
        ("account".to_owned(), json!(FIRST_ACCOUNT)),
        ("keys".to_owned(), json!({ "live": keys.live, "test": keys.test })),
    ]))
}

pub(super) fn advance(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["by", "to", "stop_early", "after"]);
    let by = f.word_like("by", "30s, 250us or 1h30m", Span::parse);
    let to = f.word_like("to", "2026-01-05T09:00:00Z", Timestamp::parse);
    let stop_early = f.truth("stop_early").unwrap_or(false);
    let after = match f.decimal("after").map(|text| text.parse::<u64>()) {
        Some(Err(_)) => {
            f.wrong("after", "The {} field must be the number of a happening.");
            None
        }
        after => after.and_then(Result::ok),
    };
    if f.has("by") == f.has("to") {
        f.wrong("by", "Give either {} (such as 30s or 1h30m) or to (a moment).");
    }
    f.finish()?;
    let target = match (by, to) {
        (Some(by), _) => sandbox.now.plus(by),
        (None, Some(to)) => to,
        (None, None) => {
            return Err(ApiError::field("by", "The by field is required when to is not present."));
        }
    };
    if target < sandbox.now {
        let message = format!("The clock shows {} already and never goes back.", sandbox.now);
        return Err(ApiError::field("to", message));
    }
    sandbox.heading = Some(Heading { until: target, stop_early, after });
    nothing()
}

pub(super) fn restart(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&[]);
    f.finish()?;
    sandbox.restart()?;
    nothing()
}

pub(super) fn set_rate(sandbox: &mut Sandbox, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["asset", "currency", "rate"]);
    let asset: Option<Asset> = read_asset(&mut f);
    let currency = f.word("currency", Currency::parse);
    if !f.has("currency") {
        f.wrong("currency", "The {} field is required.");
    }
    if !f.has("rate") {
        f.wrong("rate", "The {} field is required; null means that no rate is available.");
    }
    let rate = f.parsed("rate", Rate::parse);
    f.finish()?;
    let required = |name: &str| ApiError::field(name, format!("The {name} field is required."));
    let (asset, currency) =
        (asset.ok_or_else(|| required("asset"))?, currency.ok_or_else(|| required("currency"))?);
    sandbox.desk.rate(sandbox.now, asset, currency, rate);
    nothing()
}
