//! Steps on the simulated chains.

use reference_core::{asset::Asset, mode::Mode, money::Coin};
use serde_json::{Value, json};

use super::{Act, Player, failure::Stop, happening::in_mode, said};
use crate::{
    script::{
        At, Kind,
        step::{Congest, DoubleSpend, Drop, Keep, Mine, Pay, Rebroadcast, Reorg, Replace, Stall, Watcher},
        value::{Amount, AssetCode, InMode, Name},
    },
    witness::Whose,
};

/// How much is paid, and how the line says it.
struct Size {
    key: Option<(&'static str, String)>,
    said: String,
}

impl Player<'_> {
    pub(super) fn pay(&mut self, pay: &Pay) -> Result<(), Stop> {
        let name = pay.charge.as_ref().or(pay.address_of.as_ref());
        let name = name.ok_or_else(|| Stop::misled(self.here, "`pay` pays somebody", "say `charge`"))?;
        let charge = self.thing(name)?;
        let whose = self.whose(&charge);
        let size = self.size(pay, whose, &charge.id)?;
        let mut asset = pay.asset.map(|asset| asset.0.code().to_owned());
        let mut mode = charge.mode;
        let target = if pay.charge.is_some() {
            [("charge", Some(Value::from(charge.id))), ("address", None), ("mode", None)]
        } else {
            // An address says neither coin nor mode, so the payer does.
            let known = self.look(whose, &format!("/v1/charges/{}", charge.id))?;
            let address = self.text(&known, "/data/deposit_address")?;
            asset = Some(asset.map_or_else(|| self.text(&known, "/data/asset"), Ok)?);
            mode = pay.mode.map_or(mode, |mode| mode.0);
            [("charge", None), ("address", Some(address.into())), ("mode", Some(mode.as_str().into()))]
        };
        let about = format!("{} {}{}", name.value, manner(pay, &size.said, asset.as_deref()), in_mode(mode));
        let mut body = said([
            ("asset", asset.map(Value::from)),
            ("fee", pay.fee.map(|fee| fee.as_str().into())),
            ("outputs", pay.outputs.map(Value::from)),
            ("unseen", pay.unseen.then_some(Value::Bool(true))),
        ]);
        if let (Value::Object(body), Value::Object(target)) = (&mut body, said(target)) {
            body.extend(target);
            body.extend(size.key.map(|(key, value)| (key.to_owned(), Value::from(value))));
        }
        self.new_transaction("pay", &about, "/sandbox/pay", body, mode, pay.tx.as_ref(), pay.refused)
    }

    /// What remains, plus or minus what the step says, is known only now.
    fn size(&mut self, pay: &Pay, whose: Whose, code: &str) -> Result<Size, Stop> {
        let plain = |key, value: &str, said: String| Size { key: Some((key, value.to_owned())), said };
        if let Some(share) = &pay.share {
            return Ok(plain("share", &share.0, format!("{} of the rest", share.0)));
        }
        if let Some(amount) = &pay.amount {
            return Ok(plain("amount", &amount.0, amount.0.clone()));
        }
        let (by, more) = match (&pay.over, &pay.short) {
            (Some(over), _) => (over, true),
            (None, Some(short)) => (short, false),
            (None, None) => return Ok(Size { key: None, said: "the rest".to_owned() }),
        };
        let charge = self.look(whose, &format!("/v1/charges/{code}"))?;
        let asset = self.text(&charge, "/data/asset")?;
        let asset =
            Asset::parse(&asset).ok_or_else(|| Stop::broken(self.here, format!("`{asset}` is no coin")))?;
        let rest = self.text(&charge, "/data/remaining_amount")?;
        let rest = Coin::parse(&rest, asset)
            .map_err(|error| Stop::broken(self.here, format!("`{rest}` {error}")))?;
        let by_coin = self.coin(by, asset)?;
        let (amount, word) = if more { (rest.plus(by_coin), "over") } else { (rest.less(by_coin), "short") };
        Ok(plain("amount", &amount.to_string(), format!("the rest, {} {word}", by.0)))
    }

    fn coin(&self, amount: &At<Amount>, asset: Asset) -> Result<Coin, Stop> {
        Coin::parse(&amount.0, asset).map_err(|error| {
            Stop::misled(amount.spot, "this amount cannot be paid", format!("`{}` {error}", amount.0))
        })
    }

    pub(super) fn mine(&mut self, mine: &Mine) -> Result<(), Stop> {
        let blocks = mine.blocks.unwrap_or(1);
        let (mut body, mut about) = self.on_chain(mine.asset.value, mine.mode);
        body.insert("blocks".to_owned(), blocks.into());
        about = format!("{blocks} of {about}");
        if mine.at_once {
            body.insert("at_once".to_owned(), true.into());
            about.push_str(" at once");
        }
        self.plain_act("mine", &about, "POST", "/sandbox/mine", body.into(), None)
    }

    pub(super) fn reorg(&mut self, reorg: &Reorg) -> Result<(), Stop> {
        let (mut body, _) = self.on_chain(reorg.asset, reorg.mode);
        let mode = in_mode(self.mode(reorg.mode));
        let about = format!("{} {} deep{mode}", reorg.asset.0.code(), reorg.depth);
        let keep = match &reorg.keep {
            Keep::All => Value::from("all"),
            Keep::None => Value::from("none"),
            Keep::Only(names) => {
                let txids =
                    names.iter().map(|name| Ok(self.thing(name)?.id)).collect::<Result<Vec<_>, Stop>>()?;
                txids.into()
            }
        };
        body.insert("depth".to_owned(), reorg.depth.into());
        body.insert("keep".to_owned(), keep);
        let act = Act {
            verb: "reorg",
            about: &about,
            method: "POST",
            path: "/sandbox/reorg",
            whose: None,
            again: None,
            body: body.into(),
            refused: reorg.refused,
        };
        // What happened says it: no line of its own.
        self.try_act(&act).map(drop)
    }

    pub(super) fn double_spend(&mut self, step: &DoubleSpend) -> Result<(), Stop> {
        self.at_transaction("double_spend", "/sandbox/double-spend", &step.tx, step.refused)
    }

    pub(super) fn drop(&mut self, step: &Drop) -> Result<(), Stop> {
        self.at_transaction("drop", "/sandbox/drop", &step.tx, step.refused)
    }

    pub(super) fn rebroadcast(&mut self, step: &Rebroadcast) -> Result<(), Stop> {
        self.at_transaction("rebroadcast", "/sandbox/rebroadcast", &step.tx, step.refused)
    }

    pub(super) fn replace(&mut self, step: &Replace) -> Result<(), Stop> {
        let tx = self.thing(&step.tx)?;
        let mut about = step.tx.value.to_string();
        if let Some(amount) = &step.amount {
            about.push_str(&format!(" by {}", amount.0));
        }
        if step.elsewhere {
            about.push_str(" elsewhere");
        }
        if let Some(fee) = step.fee {
            about.push_str(&format!(", {} fee", fee.as_str()));
        }
        about.push_str(in_mode(tx.mode));
        let body = said([
            ("txid", Some(tx.id.into())),
            ("amount", step.amount.as_ref().map(|amount| amount.0.clone().into())),
            ("elsewhere", step.elsewhere.then_some(Value::Bool(true))),
            ("fee", step.fee.map(|fee| fee.as_str().into())),
        ]);
        let named = step.named.as_ref();
        self.new_transaction("replace", &about, "/sandbox/replace", body, tx.mode, named, step.refused)
    }

    pub(super) fn stall(&mut self, stall: &Stall) -> Result<(), Stop> {
        let (mut body, about) = self.on_chain(stall.asset, stall.mode);
        let lasting = stall.lasting.0.to_string();
        let about = format!("{about} for {lasting}");
        body.insert("for".to_owned(), lasting.into());
        self.plain_act("stall", &about, "POST", "/sandbox/stall", body.into(), None)
    }

    pub(super) fn congest(&mut self, congest: &Congest) -> Result<(), Stop> {
        let (mut body, about) = self.on_chain(congest.asset, congest.mode);
        let about = format!("{about} {}% empty, {}% full", congest.empty, congest.full);
        for (share, percent) in [("empty", congest.empty), ("full", congest.full)] {
            if percent > 0 {
                body.insert(share.to_owned(), percent.into());
            }
        }
        self.plain_act("congest", &about, "POST", "/sandbox/congest", body.into(), congest.refused)
    }

    pub(super) fn watcher(&mut self, watcher: &Watcher) -> Result<(), Stop> {
        let (mut body, about) = self.on_chain(watcher.asset, watcher.mode);
        let notices = watcher.notices.as_str();
        body.insert("notices".to_owned(), notices.into());
        let about = format!("{about} {notices}");
        self.plain_act("watcher", &about, "POST", "/sandbox/watchers", body.into(), None)
    }

    fn on_chain(&self, asset: AssetCode, mode: Option<InMode>) -> (serde_json::Map<String, Value>, String) {
        let mode = self.mode(mode);
        let asset = asset.0.code();
        let entries = [("asset".to_owned(), asset.into()), ("mode".to_owned(), mode.as_str().into())];
        (entries.into_iter().collect(), format!("{asset}{}", in_mode(mode)))
    }

    fn at_transaction(
        &mut self,
        verb: &str,
        path: &str,
        name: &At<Name>,
        refused: Option<u16>,
    ) -> Result<(), Stop> {
        let tx = self.thing(name)?;
        let about = format!("{}{}", name.value, in_mode(tx.mode));
        self.plain_act(verb, &about, "POST", path, json!({ "txid": tx.id }), refused)
    }

    #[expect(clippy::too_many_arguments, reason = "an act, and the name of what comes of it")]
    fn new_transaction(
        &mut self,
        verb: &str,
        about: &str,
        path: &str,
        body: Value,
        mode: Mode,
        name: Option<&At<Name>>,
        refused: Option<u16>,
    ) -> Result<(), Stop> {
        let act = Act { verb, about, method: "POST", path, whose: None, again: None, body, refused };
        let Some(granted) = self.try_act(&act)? else { return Ok(()) };
        let txid = self.text(&granted.answer, "/txid")?;
        if let Some(name) = name {
            self.name_it(name, Kind::Transaction, (0, mode), txid.clone());
        }
        let tx = self.aliases.name(Kind::Transaction, mode, &txid);
        self.wrote(granted.at, verb, about, Some(&tx));
        Ok(())
    }
}

/// `0.5 of the rest in LTC, low fee, 2 outputs, unseen`.
fn manner(pay: &Pay, size: &str, asset: Option<&str>) -> String {
    let mut manner = size.to_owned();
    if let Some(asset) = asset {
        manner.push_str(&format!(" in {asset}"));
    }
    if let Some(fee) = pay.fee {
        manner.push_str(&format!(", {} fee", fee.as_str()));
    }
    if let Some(outputs) = pay.outputs {
        manner.push_str(&format!(", {outputs} outputs"));
    }
    if pay.unseen {
        manner.push_str(", unseen");
    }
    manner
}
