//! The operations on the chains: pay, mine, and every fault.

use reference_core::{
    asset::Asset, error::ApiError, id::Code, mode::Mode, money::Coin, time::Timestamp,
    wallet::normalize_address,
};

use super::{
    Outcome,
    advance::AdvanceTarget,
    call::{SandboxCall, required},
    empty_response, json_response,
};
use crate::{
    api::{
        Body, CongestRequest, KeepRequest, Mine, PayRequest, ReorgRequest, ReorgResponse, ReplaceRequest,
        Stall, TransactionRequest, TransactionResponse, Watcher,
    },
    chain::{Chain, ChainError, Congestion, FeeLevel, KeptTransactions, Output, Payment, TxId},
    sandbox::{money, world::World},
    value::{Amount, Share},
};

/// The maximum number of outputs of one payment.
const OUTPUTS_MAX: u32 = 100;
/// The maximum number of blocks that one call mines.
const BLOCKS_MAX: u32 = 100_000;

/// Returns the API error for a chain's refusal.
fn refusal(error: ChainError) -> ApiError {
    ApiError::conflict(format!("The chain refuses: {error}."))
}

/// The chain, address and amount of a payment.
struct Transfer {
    mode: Mode,
    asset: Asset,
    address: String,
    amount: Coin,
}

pub(super) fn pay(call: &mut SandboxCall<'_>, mut body: Body<'_, PayRequest>) -> Outcome {
    let mode = call.mode(body.mode, &mut body.fields);
    let code = body.charge.as_deref().and_then(Code::parse);
    if code.is_none() && body.charge.is_some() {
        body.fields.add_error("charge", "The {} field must be a code such as k3v9x0q2m8ab.");
    }
    if code.is_some() == body.address.is_some() {
        body.fields.add_error("charge", "Give either {} (its code) or address, asset and amount.");
    }
    if body.amount.is_some() && body.share.is_some() {
        body.fields.add_error("share", "Give either {} or amount.");
    }
    if code.is_some() && body.fields.has_value("mode") {
        body.fields.add_error(
            "mode",
            "The {} field is only allowed with address; a charge is paid in its own mode.",
        );
    }
    if body.address.is_some() && body.share.is_some() {
        body.fields
            .add_error("share", "The {} field is only allowed with charge; with address, give amount.");
    }
    body.require_at_most("outputs", body.outputs, OUTPUTS_MAX);
    let PayRequest { address, asset, amount, share, fee, outputs, unseen, .. } = body.finish()?;
    let transfer = match (code, address) {
        (Some(code), _) => transfer_to_charge(call, code, asset, amount, share)?,
        (None, address) => {
            let (asset, amount) = (required(asset, "asset")?, required(amount, "amount")?);
            let amount = Coin::parse(&amount.0, asset)
                .map_err(|error| ApiError::field("amount", format!("The amount field {error}.")))?;
            let address =
                normalize_address(asset.facts().address_format, mode, &required(address, "address")?);
            if call.within.is_some_and(|book_id| call.book(book_id).charge_by_address(&address).is_none()) {
                let message = "The address field is invalid; with an API key, it must be the deposit address of a charge \
                               of the key's account and mode.";
                return Err(ApiError::field("address", message));
            }
            Transfer { mode, asset, address, amount }
        }
    };
    if transfer.amount == Coin::ZERO {
        return Err(ApiError::field("amount", "The amount is less than this coin's smallest unit."));
    }
    let outputs = split_outputs(&transfer, outputs.unwrap_or(1))?;
    let fee = fee.unwrap_or(FeeLevel::Normal);
    let (chain, now) = chain_and_now(call, transfer.mode, transfer.asset);
    transaction_response(&chain.broadcast(now, Payment { outputs, fee, unseen }))
}

fn transfer_to_charge(
    call: &SandboxCall<'_>,
    code: Code,
    asset: Option<Asset>,
    amount: Option<Amount>,
    share: Option<Share>,
) -> Result<Transfer, ApiError> {
    let book_id = call
        .find_book(|book| book.find_charge(code).is_ok())
        .map_err(|_| ApiError::field("charge", "The selected charge is invalid."))?;
    let book = call.book(book_id);
    let charge = book.charge(book.find_charge(code)?);
    let asset = asset.unwrap_or(charge.terms.asset);
    let amount = money::payment(
        charge,
        asset,
        amount.as_ref().map(|amount| &*amount.0),
        share.as_ref().map(|share| &*share.0),
    )?;
    Ok(Transfer { mode: book_id.1, asset, address: charge.terms.deposit_address.clone(), amount })
}

/// Returns outputs that pay the address several times, in nearly equal parts.
fn split_outputs(transfer: &Transfer, outputs: u32) -> Result<Vec<Output>, ApiError> {
    let part = transfer.amount.share(1, u64::from(outputs), transfer.asset);
    let part = part.filter(|part| *part > Coin::ZERO).ok_or_else(|| {
        ApiError::field("outputs", "The amount is too small to be split into so many outputs.")
    })?;
    let mut rest = transfer.amount;
    let mut all = Vec::new();
    for n in 1..=outputs {
        let amount = if n == outputs { rest } else { part };
        rest = rest.saturating_sub(amount);
        all.push(Output { address: transfer.address.clone(), amount });
    }
    Ok(all)
}

fn transaction_response(txid: &TxId) -> Outcome {
    json_response(TransactionResponse { txid: txid.as_str().to_owned() })
}

/// Returns the chain of a coin, and the current time.
fn chain_and_now<'s>(call: &'s mut SandboxCall<'_>, mode: Mode, asset: Asset) -> (&'s mut Chain, Timestamp) {
    let world = call.world_mut();
    (world.chains.get_mut(mode, asset), world.now)
}

/// Returns the chain that contains a transaction, and the current time. With an API key, only transactions that pay a
/// charge of the key's book are found.
fn find_chain<'s>(
    call: &'s mut SandboxCall<'_>,
    txid: &TxId,
) -> Result<(&'s mut Chain, Timestamp), ApiError> {
    let within = call.within;
    let World { chains, service, now, .. } = call.world_mut();
    let contains = |chain: &Chain| match within {
        None => chain.transaction(txid).is_some(),
        Some((account, mode)) => {
            let book = service.service().account(account).book(mode);
            chain.mode() == mode && chain.pays(txid, |address| book.charge_by_address(address).is_some())
        }
    };
    let chain = chains.values_mut().find(|chain| contains(chain));
    chain
        .map(|chain| (chain, *now))
        .ok_or_else(|| ApiError::field("txid", "The txid field is invalid: no chain has this transaction."))
}

pub(super) fn mine(call: &mut SandboxCall<'_>, mut body: Body<'_, Mine>) -> Outcome {
    let mode = call.mode(body.mode, &mut body.fields);
    body.require_at_most("blocks", body.blocks, BLOCKS_MAX);
    let Mine { asset, blocks, at_once, .. } = body.finish()?;
    let (chain, now) = chain_and_now(call, mode, asset.0);
    let blocks = blocks.unwrap_or(1);
    if at_once {
        chain.mine_at_once(now, blocks);
    } else {
        let until = chain.block_after(now, blocks);
        call.set_target("blocks", AdvanceTarget { until, stop_early: false, after: None })?;
    }
    empty_response()
}

pub(super) fn reorganise(call: &mut SandboxCall<'_>, mut body: Body<'_, ReorgRequest>) -> Outcome {
    let mode = call.mode(body.mode, &mut body.fields);
    // For one account, only transfers to its charges lose confirmations.
    let is_limited = call.within.is_some() || body.account.is_some();
    let account = is_limited.then(|| call.account(body.account.clone(), &mut body.fields));
    let ReorgRequest { asset, depth, keep, .. } = body.finish()?;
    let World { chains, service, now, .. } = call.world_mut();
    let (chain, now) = (chains.get_mut(mode, asset), *now);
    let keep = match keep {
        KeepRequest::All => KeptTransactions::All,
        KeepRequest::None => KeptTransactions::None,
        KeepRequest::Only(txids) => {
            KeptTransactions::Some(txids.iter().map(|txid| TxId::from(txid.as_str())).collect())
        }
    };
    let orphaned = match account.map(|account| service.service().account(account).book(mode)) {
        None => chain.reorganise(now, depth, &keep),
        Some(book) => {
            chain.reorganise_among(now, depth, &keep, |address| book.charge_by_address(address).is_some())
        }
    };
    let orphaned = orphaned.map_err(|error| match error {
        ChainError::Unknown { .. } => ApiError::field("keep", format!("The keep field is invalid: {error}.")),
        _ => refusal(error),
    })?;
    call.sandbox.observers.on_reorg(now, (mode, asset), depth);
    json_response(ReorgResponse { orphaned: orphaned.iter().map(|txid| txid.as_str().to_owned()).collect() })
}

/// Returns the chain that contains the transaction in the body, the current time, and the transaction's id.
fn find_requested<'s>(
    call: &'s mut SandboxCall<'_>,
    body: Body<'_, TransactionRequest>,
) -> Result<(&'s mut Chain, Timestamp, TxId), ApiError> {
    let txid = TxId::from(body.finish()?.txid.as_str());
    let (chain, now) = find_chain(call, &txid)?;
    Ok((chain, now, txid))
}

pub(super) fn double_spend(call: &mut SandboxCall<'_>, body: Body<'_, TransactionRequest>) -> Outcome {
    let (chain, now, txid) = find_requested(call, body)?;
    transaction_response(&chain.double_spend(now, &txid).map_err(refusal)?)
}

pub(super) fn drop_transaction(call: &mut SandboxCall<'_>, body: Body<'_, TransactionRequest>) -> Outcome {
    let (chain, now, txid) = find_requested(call, body)?;
    chain.drop_from_mempool(now, &txid).map_err(refusal)?;
    empty_response()
}

pub(super) fn rebroadcast(call: &mut SandboxCall<'_>, body: Body<'_, TransactionRequest>) -> Outcome {
    let (chain, now, txid) = find_requested(call, body)?;
    chain.rebroadcast(now, &txid).map_err(refusal)?;
    empty_response()
}

pub(super) fn replace(call: &mut SandboxCall<'_>, mut body: Body<'_, ReplaceRequest>) -> Outcome {
    if body.amount.is_some() && body.elsewhere {
        body.fields.add_error(
            "amount",
            "Give either {} or elsewhere: a replacement that pays elsewhere pays nothing here.",
        );
    }
    let ReplaceRequest { txid, amount, elsewhere, fee } = body.finish()?;
    let txid = TxId::from(txid.as_str());
    let (chain, now) = find_chain(call, &txid)?;
    let asset = chain.asset();
    let old = chain.transaction(&txid).expect("the chain contains the transaction");
    let outputs = match amount {
        _ if elsewhere => Vec::new(),
        None => old.outputs.clone(),
        Some(amount) => {
            let amount = Coin::parse(&amount.0, asset)
                .map_err(|error| ApiError::field("amount", format!("The amount field {error}.")))?;
            let address = old.outputs.first().map(|output| output.address.clone());
            vec![Output { address: required(address, "txid")?, amount }]
        }
    };
    let fee = fee.unwrap_or(FeeLevel::Normal);
    transaction_response(&chain.replace(now, &txid, outputs, fee).map_err(refusal)?)
}

pub(super) fn stall(call: &mut SandboxCall<'_>, mut body: Body<'_, Stall>) -> Outcome {
    let mode = call.mode(body.mode, &mut body.fields);
    let stall = body.finish()?;
    let has_other_accounts = |own| call.service().books().any(|(account, _, _)| account != own);
    if call.within.is_some_and(|(own, _)| has_other_accounts(own)) {
        return Err(ApiError::conflict(
            "This world has other accounts, whose transfers a stall would delay. With an API key, pay with the fee `stuck` \
             instead, or stall in a world with one account.",
        ));
    }
    let (chain, now) = chain_and_now(call, mode, stall.asset.0);
    chain.stall(now, stall.r#for.0);
    empty_response()
}

pub(super) fn congest(call: &mut SandboxCall<'_>, mut body: Body<'_, CongestRequest>) -> Outcome {
    let mode = call.mode(body.mode, &mut body.fields);
    let CongestRequest { asset, empty, full, .. } = body.finish()?;
    let (chain, now) = chain_and_now(call, mode, asset);
    let congestion = Congestion { empty_percent: empty.unwrap_or(0), full_percent: full.unwrap_or(0) };
    chain.congest(now, congestion).map_err(refusal)?;
    empty_response()
}

pub(super) fn watch(call: &mut SandboxCall<'_>, mut body: Body<'_, Watcher>) -> Outcome {
    let mode = call.mode(body.mode, &mut body.fields);
    let Watcher { asset, notices, .. } = body.finish()?;
    // Chain events up to now are reported under the previous setting.
    call.sandbox.perform_due();
    if call.world_mut().watchers.set_fault((mode, asset.0), notices) {
        let (chain, now) = chain_and_now(call, mode, asset.0);
        chain.rescan(now);
    }
    empty_response()
}
