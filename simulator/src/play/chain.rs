//! Steps on the simulated chains.

use reference_core::{asset::Asset, mode::Mode, money::Coin};

use super::{Action, Player, StageResponse, failure::StepError, lines::mode_suffix};
use crate::{
    api::{
        self, CongestRequest, KeepRequest, Mine, PayRequest, ReorgRequest, ReplaceRequest, Stall,
        TransactionRequest, Watcher,
    },
    record::BookId,
    script::{
        At, Kind,
        step::{Congest, Pay, Reorg, Replace, TransactionStep},
        value::{Amount, AssetCode, ModeName, Name, Share},
    },
};

/// The size of a payment, and its text in the transcript. Without amount and share, the whole remaining amount is paid.
struct PaymentSize {
    amount: Option<Amount>,
    /// The part of the remaining amount.
    share: Option<Share>,
    summary: String,
}

impl Player<'_> {
    pub(super) fn pay(&mut self, pay: &Pay) -> Result<(), StepError> {
        let name = pay.charge.as_ref().or(pay.address_of.as_ref());
        let name = name.ok_or_else(|| {
            StepError::impossible(self.step_span, "`pay` needs a recipient", "add `charge`")
        })?;
        let charge = self.named_object(name)?;
        let book = self.book_of(&charge);
        let size = self.payment_size(pay, book, &charge.id)?;
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
            let response = self.read_object(book, &format!("/v1/charges/{}", charge.id))?;
            body.address = Some(self.string_at(&response, "/data/deposit_address")?);
            if body.asset.is_none() {
                body.asset = Some(self.asset_of(&response)?);
            }
            mode = pay.mode.map_or(mode, |mode| mode.0);
            body.mode = Some(mode);
        }
        let summary = format!(
            "{} {}{}",
            name.value,
            payment_details(pay, &size.summary, body.asset),
            mode_suffix(mode)
        );
        let action = Action::post("pay", &summary, "/sandbox/pay", api::json(&body));
        self.create_transaction(&Action { refused: pay.refused, ..action }, mode, pay.tx.as_ref())
    }

    /// Returns the amount to pay. For `over` and `short`, reads the remaining amount of the charge, to which
    /// they are relative.
    fn payment_size(&mut self, pay: &Pay, book: BookId, code: &str) -> Result<PaymentSize, StepError> {
        let fixed_amount =
            |amount: String, summary| PaymentSize { amount: Some(Amount(amount)), share: None, summary };
        if let Some(share) = &pay.share {
            let summary = format!("{} of the rest", share.0);
            return Ok(PaymentSize { amount: None, share: Some(share.value.clone()), summary });
        }
        if let Some(amount) = &pay.amount {
            return Ok(fixed_amount(amount.0.clone(), amount.0.clone()));
        }
        let (difference, is_over) = match (&pay.over, &pay.short) {
            (Some(over), _) => (over, true),
            (None, Some(short)) => (short, false),
            (None, None) => {
                return Ok(PaymentSize { amount: None, share: None, summary: "the rest".to_owned() });
            }
        };
        let charge = self.read_object(book, &format!("/v1/charges/{code}"))?;
        let asset = self.asset_of(&charge)?;
        let rest = self.string_at(&charge, "/data/remaining_amount")?;
        let rest = Coin::parse(&rest, asset)
            .map_err(|error| StepError::stage_failure(self.step_span, format!("`{rest}` {error}")))?;
        let coins = self.parse_coin(difference, asset)?;
        let (amount, direction) =
            if is_over { (rest.plus(coins), "over") } else { (rest.saturating_sub(coins), "short") };
        Ok(fixed_amount(amount.to_string(), format!("the rest, {} {direction}", difference.0)))
    }

    /// Returns the coin of a charge.
    fn asset_of(&self, charge: &StageResponse) -> Result<Asset, StepError> {
        let asset = self.string_at(charge, "/data/asset")?;
        Asset::parse(&asset)
            .ok_or_else(|| StepError::stage_failure(self.step_span, format!("`{asset}` is not a known coin")))
    }

    fn parse_coin(&self, amount: &At<Amount>, asset: Asset) -> Result<Coin, StepError> {
        Coin::parse(&amount.0, asset).map_err(|error| {
            StepError::impossible(
                amount.span,
                "this amount cannot be paid",
                format!("`{}` {error}", amount.0),
            )
        })
    }

    pub(super) fn mine(&mut self, mine: &Mine) -> Result<(), StepError> {
        let blocks = mine.blocks.unwrap_or(1);
        let (mode, chain) = self.resolve_chain(mine.asset, mine.mode);
        let mut summary = format!("{blocks} of {chain}");
        if mine.at_once {
            summary.push_str(" at once");
        }
        let body = api::json(&Mine { mode, blocks: Some(blocks), ..mine.clone() });
        self.perform_action(&Action::post("mine", &summary, "/sandbox/mine", body))
    }

    pub(super) fn reorg(&mut self, reorg: &Reorg) -> Result<(), StepError> {
        let (asset, mode) = (reorg.asset.0, self.mode_or_default(reorg.mode));
        let summary = format!("{asset} {} deep{}", reorg.depth, mode_suffix(mode));
        let keep = match &reorg.keep {
            KeepRequest::All => KeepRequest::All,
            KeepRequest::None => KeepRequest::None,
            KeepRequest::Only(names) => {
                let txids = names.iter().map(|name| Ok(self.named_object(name)?.id));
                KeepRequest::Only(txids.collect::<Result<_, StepError>>()?)
            }
        };
        let body = ReorgRequest { asset, mode: Some(mode), account: None, depth: reorg.depth, keep };
        let action = Action::post("reorg", &summary, "/sandbox/reorg", api::json(&body));
        // The line is written for the event that the reorganisation causes.
        self.try_action(&Action { refused: reorg.refused, ..action }).map(drop)
    }

    pub(super) fn replace(&mut self, step: &Replace) -> Result<(), StepError> {
        let tx = self.named_object(&step.tx)?;
        let mut summary = step.tx.value.to_string();
        if let Some(amount) = &step.amount {
            summary.push_str(&format!(" by {}", amount.0));
        }
        if step.elsewhere {
            summary.push_str(" elsewhere");
        }
        if let Some(fee) = step.fee {
            summary.push_str(&format!(", {} fee", fee.as_str()));
        }
        summary.push_str(mode_suffix(tx.mode));
        let body = ReplaceRequest {
            txid: tx.id,
            amount: step.amount.as_ref().map(|amount| amount.value.clone()),
            elsewhere: step.elsewhere,
            fee: step.fee,
        };
        let action = Action::post("replace", &summary, "/sandbox/replace", api::json(&body));
        self.create_transaction(&Action { refused: step.refused, ..action }, tx.mode, step.named.as_ref())
    }

    pub(super) fn stall(&mut self, stall: &Stall) -> Result<(), StepError> {
        let (mode, chain) = self.resolve_chain(stall.asset, stall.mode);
        let summary = format!("{chain} for {}", stall.r#for.0);
        let body = api::json(&Stall { mode, ..stall.clone() });
        self.perform_action(&Action::post("stall", &summary, "/sandbox/stall", body))
    }

    pub(super) fn congest(&mut self, congest: &Congest) -> Result<(), StepError> {
        let (mode, chain) = self.resolve_chain(congest.asset, congest.mode);
        let if_positive = |percent: u32| (percent > 0).then_some(percent);
        let (empty, full) = (if_positive(congest.empty), if_positive(congest.full));
        let body = CongestRequest { asset: congest.asset.0, mode: mode.map(Into::into), empty, full };
        let summary = format!("{chain} {}% empty, {}% full", congest.empty, congest.full);
        let action = Action::post("congest", &summary, "/sandbox/congest", api::json(&body));
        self.perform_action(&Action { refused: congest.refused, ..action })
    }

    pub(super) fn watcher(&mut self, watcher: &Watcher) -> Result<(), StepError> {
        let (mode, chain) = self.resolve_chain(watcher.asset, watcher.mode);
        let summary = format!("{chain} {}", watcher.notices.as_str());
        let body = api::json(&Watcher { mode, ..watcher.clone() });
        self.perform_action(&Action::post("watcher", &summary, "/sandbox/watchers", body))
    }

    /// Returns the mode of a chain (the script's, unless the step has one), and the chain's name in transcript lines.
    fn resolve_chain(&self, asset: AssetCode, mode: Option<ModeName>) -> (Option<ModeName>, String) {
        let mode = self.mode_or_default(mode);
        (Some(ModeName(mode)), format!("{}{}", asset.0, mode_suffix(mode)))
    }

    /// Performs an operation on a transaction that needs only its id.
    pub(super) fn act_on_transaction(
        &mut self,
        verb: &str,
        path: &str,
        step: &TransactionStep,
    ) -> Result<(), StepError> {
        let tx = self.named_object(&step.tx)?;
        let summary = format!("{}{}", step.tx.value, mode_suffix(tx.mode));
        let body = api::json(&TransactionRequest { txid: tx.id });
        self.perform_action(&Action { refused: step.refused, ..Action::post(verb, &summary, path, body) })
    }

    /// Performs an action that creates a transaction, and names it.
    fn create_transaction(
        &mut self,
        action: &Action<'_>,
        mode: Mode,
        name: Option<&At<Name>>,
    ) -> Result<(), StepError> {
        let Some(granted) = self.try_action(action)? else { return Ok(()) };
        let txid = self.string_at(&granted.response, "/txid")?;
        if let Some(name) = name {
            // A transaction belongs to no account; the first one is the default.
            self.assign_name(name, Kind::Transaction, (0, mode), txid.clone());
        }
        let tx = self.aliases.name_or_assign(Kind::Transaction, mode, &txid);
        self.write_line(granted.at, action.verb, action.summary, Some(&tx));
        Ok(())
    }
}

/// Returns the description of a payment: `0.5 of the rest in LTC, low fee, 2 outputs, unseen`.
fn payment_details(pay: &Pay, size: &str, asset: Option<Asset>) -> String {
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
