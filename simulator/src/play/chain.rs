//! Steps on the simulated chains.

use reference_core::{asset::Asset, mode::Mode, money::Coin};

use super::{Action, Answer, Player, failure::Stop, lines::in_mode};
use crate::{
    api::{
        self, CongestRequest, KeepRequest, Mine, PayRequest, ReorgRequest, ReplaceRequest, Stall,
        TransactionRequest, Watcher,
    },
    record::BookId,
    script::{
        At, Kind,
        step::{AtTransaction, Congest, Pay, Reorg, Replace},
        value::{Amount, AssetCode, InMode, Name, Share},
    },
};

/// The size of a payment, and its text in the transcript.
struct PaymentSize {
    amount: Option<Amount>,
    share: Option<Share>,
    summary: String,
}

impl Player<'_> {
    pub(super) fn pay(&mut self, pay: &Pay) -> Result<(), Stop> {
        let name = pay.charge.as_ref().or(pay.address_of.as_ref());
        let name =
            name.ok_or_else(|| Stop::impossible(self.step_span, "`pay` needs a recipient", "say `charge`"))?;
        let charge = self.named_object(name)?;
        let book = self.book_of(&charge);
        let size = self.size(pay, book, &charge.id)?;
        let mut mode = charge.mode;
        let mut body = PayRequest {
            asset: pay.asset.map(|asset| asset.0),
            amount: size.amount,
            share: size.share,
            fee: pay.fee,
            outputs: pay.outputs,
            unseen: pay.unseen,
            ..PayRequest::default()
        };
        if pay.charge.is_some() {
            body.charge = Some(charge.id);
        } else {
            // An address has no coin or mode, so the payment states them.
            let known = self.read_object(book, &format!("/v1/charges/{}", charge.id))?;
            body.address = Some(self.text(&known, "/data/deposit_address")?);
            if body.asset.is_none() {
                body.asset = Some(self.asset_of(&known)?);
            }
            mode = pay.mode.map_or(mode, |mode| mode.0);
            body.mode = Some(mode);
        }
        let about = format!("{} {}{}", name.value, details(pay, &size.summary, body.asset), in_mode(mode));
        let act = Action::post("pay", &about, "/sandbox/pay", api::json(&body));
        self.new_transaction(&Action { refused: pay.refused, ..act }, mode, pay.tx.as_ref())
    }

    /// Returns the amount to pay. The remaining amount, plus or minus the step's amount, is only known when the step
    /// is played.
    fn size(&mut self, pay: &Pay, book: BookId, code: &str) -> Result<PaymentSize, Stop> {
        let of_amount =
            |amount: String, summary| PaymentSize { amount: Some(Amount(amount)), share: None, summary };
        if let Some(share) = &pay.share {
            let summary = format!("{} of the rest", share.0);
            return Ok(PaymentSize { amount: None, share: Some(share.value.clone()), summary });
        }
        if let Some(amount) = &pay.amount {
            return Ok(of_amount(amount.0.clone(), amount.0.clone()));
        }
        let (by, more) = match (&pay.over, &pay.short) {
            (Some(over), _) => (over, true),
            (None, Some(short)) => (short, false),
            (None, None) => {
                return Ok(PaymentSize { amount: None, share: None, summary: "the rest".to_owned() });
            }
        };
        let charge = self.read_object(book, &format!("/v1/charges/{code}"))?;
        let asset = self.asset_of(&charge)?;
        let rest = self.text(&charge, "/data/remaining_amount")?;
        let rest = Coin::parse(&rest, asset)
            .map_err(|error| Stop::stage_failure(self.step_span, format!("`{rest}` {error}")))?;
        let by_coin = self.coin(by, asset)?;
        let (amount, word) =
            if more { (rest.plus(by_coin), "over") } else { (rest.saturating_sub(by_coin), "short") };
        Ok(of_amount(amount.to_string(), format!("the rest, {} {word}", by.0)))
    }

    /// Returns the coin of a charge.
    fn asset_of(&self, charge: &Answer) -> Result<Asset, Stop> {
        let asset = self.text(charge, "/data/asset")?;
        Asset::parse(&asset)
            .ok_or_else(|| Stop::stage_failure(self.step_span, format!("`{asset}` is not a known coin")))
    }

    fn coin(&self, amount: &At<Amount>, asset: Asset) -> Result<Coin, Stop> {
        Coin::parse(&amount.0, asset).map_err(|error| {
            Stop::impossible(amount.span, "this amount cannot be paid", format!("`{}` {error}", amount.0))
        })
    }

    pub(super) fn mine(&mut self, mine: &Mine) -> Result<(), Stop> {
        let blocks = mine.blocks.unwrap_or(1);
        let (mode, chain) = self.on_chain(mine.asset, mine.mode);
        let mut about = format!("{blocks} of {chain}");
        if mine.at_once {
            about.push_str(" at once");
        }
        let body = api::json(&Mine { mode, blocks: Some(blocks), ..mine.clone() });
        self.plain_act(&Action::post("mine", &about, "/sandbox/mine", body))
    }

    pub(super) fn reorg(&mut self, reorg: &Reorg) -> Result<(), Stop> {
        let (asset, mode) = (reorg.asset.0, self.mode(reorg.mode));
        let about = format!("{asset} {} deep{}", reorg.depth, in_mode(mode));
        let keep = match &reorg.keep {
            KeepRequest::All => KeepRequest::All,
            KeepRequest::None => KeepRequest::None,
            KeepRequest::Only(names) => {
                let txids = names.iter().map(|name| Ok(self.named_object(name)?.id));
                KeepRequest::Only(txids.collect::<Result<_, Stop>>()?)
            }
        };
        let body = ReorgRequest { asset, mode: Some(mode), account: None, depth: reorg.depth, keep };
        let act = Action::post("reorg", &about, "/sandbox/reorg", api::json(&body));
        // Its event writes the line.
        self.try_act(&Action { refused: reorg.refused, ..act }).map(drop)
    }

    pub(super) fn replace(&mut self, step: &Replace) -> Result<(), Stop> {
        let tx = self.named_object(&step.tx)?;
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
        let body = ReplaceRequest {
            txid: tx.id,
            amount: step.amount.as_ref().map(|amount| amount.value.clone()),
            elsewhere: step.elsewhere,
            fee: step.fee,
        };
        let act = Action::post("replace", &about, "/sandbox/replace", api::json(&body));
        self.new_transaction(&Action { refused: step.refused, ..act }, tx.mode, step.named.as_ref())
    }

    pub(super) fn stall(&mut self, stall: &Stall) -> Result<(), Stop> {
        let (mode, chain) = self.on_chain(stall.asset, stall.mode);
        let about = format!("{chain} for {}", stall.r#for.0);
        let body = api::json(&Stall { mode, ..stall.clone() });
        self.plain_act(&Action::post("stall", &about, "/sandbox/stall", body))
    }

    pub(super) fn congest(&mut self, congest: &Congest) -> Result<(), Stop> {
        let (mode, chain) = self.on_chain(congest.asset, congest.mode);
        let some = |percent: u32| (percent > 0).then_some(percent);
        let (empty, full) = (some(congest.empty), some(congest.full));
        let body = CongestRequest { asset: congest.asset.0, mode: mode.map(Into::into), empty, full };
        let about = format!("{chain} {}% empty, {}% full", congest.empty, congest.full);
        let act = Action::post("congest", &about, "/sandbox/congest", api::json(&body));
        self.plain_act(&Action { refused: congest.refused, ..act })
    }

    pub(super) fn watcher(&mut self, watcher: &Watcher) -> Result<(), Stop> {
        let (mode, chain) = self.on_chain(watcher.asset, watcher.mode);
        let about = format!("{chain} {}", watcher.notices.as_str());
        let body = api::json(&Watcher { mode, ..watcher.clone() });
        self.plain_act(&Action::post("watcher", &about, "/sandbox/watchers", body))
    }

    /// Returns the mode of a chain and its name in transcript lines.
    fn on_chain(&self, asset: AssetCode, mode: Option<InMode>) -> (Option<InMode>, String) {
        let mode = self.mode(mode);
        (Some(InMode(mode)), format!("{}{}", asset.0, in_mode(mode)))
    }

    /// Performs an operation on a transaction that needs only its id.
    pub(super) fn at_transaction(
        &mut self,
        verb: &str,
        path: &str,
        step: &AtTransaction,
    ) -> Result<(), Stop> {
        let tx = self.named_object(&step.tx)?;
        let about = format!("{}{}", step.tx.value, in_mode(tx.mode));
        let body = api::json(&TransactionRequest { txid: tx.id });
        self.plain_act(&Action { refused: step.refused, ..Action::post(verb, &about, path, body) })
    }

    fn new_transaction(&mut self, act: &Action<'_>, mode: Mode, name: Option<&At<Name>>) -> Result<(), Stop> {
        let Some(granted) = self.try_act(act)? else { return Ok(()) };
        let txid = self.text(&granted.answer, "/txid")?;
        if let Some(name) = name {
            self.assign_name(name, Kind::Transaction, (0, mode), txid.clone());
        }
        let tx = self.aliases.name(Kind::Transaction, mode, &txid);
        self.write_line(granted.at, act.verb, act.about, Some(&tx));
        Ok(())
    }
}

/// Returns the description of a payment: `0.5 of the rest in LTC, low fee, 2 outputs, unseen`.
fn details(pay: &Pay, size: &str, asset: Option<Asset>) -> String {
    let mut details = size.to_owned();
    if let Some(asset) = asset {
        details.push_str(&format!(" in {asset}"));
    }
    if let Some(fee) = pay.fee {
        details.push_str(&format!(", {} fee", fee.as_str()));
    }
    if let Some(outputs) = pay.outputs {
        details.push_str(&format!(", {outputs} outputs"));
    }
    if pay.unseen {
        details.push_str(", unseen");
    }
    details
}
