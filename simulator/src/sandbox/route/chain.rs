//! The operations on the chains: pay, mine, and every hazard.

use reference_core::{
    asset::Asset,
    error::ApiError,
    id::Code,
    mode::Mode,
    money::Coin,
    time::{Span, Timestamp},
    wallet::spelled,
};
use reference_wire::fields::{Fields, TEXT_MAX};

use super::{
    Outcome,
    advance::AdvanceTarget,
    answer,
    call::{SandboxCall, read_asset, required},
    nothing,
};
use crate::{
    api::{ReorgAnswer, TransactionAnswer},
    chain::{Chain, ChainError, Congestion, FeeLevel, KeptTransactions, Output, Payment, TxId},
    sandbox::{money, watcher, world::World},
};

const OUTPUTS_MAX: u32 = 100;
const BLOCKS_MAX: u32 = 100_000;

/// Returns the API error for a chain's refusal.
fn refusal(error: ChainError) -> ApiError {
    ApiError::conflict(format!("The chain refuses: {error}."))
}

fn read_fee(f: &mut Fields<'_>) -> FeeLevel {
    f.word("fee", &FeeLevel::ALL.map(FeeLevel::as_str), FeeLevel::parse).unwrap_or(FeeLevel::Normal)
}

/// The destination, coin and amount of a payment.
struct Transfer {
    mode: Mode,
    asset: Asset,
    address: String,
    amount: Coin,
}

pub(super) fn pay(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let charge = f.word_like("charge", "k3v9x0q2m8ab", Code::parse);
    let address = f.text("address", TEXT_MAX);
    let asset = f.asset("asset");
    let amount = f.decimal("amount");
    let share = f.decimal("share");
    let mode = call.mode(&mut f);
    let fee = read_fee(&mut f);
    let outputs = f.count("outputs").unwrap_or(1);
    let unseen = f.truth("unseen").unwrap_or(false);
    if charge.is_some() == address.is_some() {
        f.wrong("charge", "Give either {} (its code) or address, asset and amount.");
    }
    if amount.is_some() && share.is_some() {
        f.wrong("share", "Give either {} or amount.");
    }
    if charge.is_some() && f.gives("mode") {
        f.wrong("mode", "The {} field goes with address; a charge is paid in its own mode.");
    }
    if address.is_some() && share.is_some() {
        f.wrong("share", "The {} field goes with charge; to an address give amount.");
    }
    if outputs > OUTPUTS_MAX {
        f.wrong("outputs", &format!("The {{}} field must be at most {OUTPUTS_MAX}."));
    }
    f.finish()?;
    let transfer = match (charge, address) {
        (Some(code), _) => to_charge(call, code, asset, amount.as_deref(), share.as_deref())?,
        (None, address) => {
            let (asset, amount) = (required(asset, "asset")?, required(amount, "amount")?);
            let amount = Coin::parse(&amount, asset)
                .map_err(|error| ApiError::field("amount", format!("The amount field {error}.")))?;
            let address = spelled(asset.facts().form, mode, &required(address, "address")?);
            if call.within.is_some_and(|own| call.book(own).charge_at(&address).is_none()) {
                let message = "The address field is invalid: with an API key it takes the deposit address of a charge of \
                               the key's account and mode.";
                return Err(ApiError::field("address", message));
            }
            Transfer { mode, asset, address, amount }
        }
    };
    if transfer.amount == Coin::ZERO {
        return Err(ApiError::field("amount", "The amount is less than this coin's smallest unit."));
    }
    let outputs = split(&transfer, outputs)?;
    let (chain, now) = chain(call, transfer.mode, transfer.asset);
    new_transaction(&chain.broadcast(now, Payment { outputs, fee, unseen }))
}

fn to_charge(
    call: &SandboxCall<'_>,
    code: Code,
    asset: Option<Asset>,
    amount: Option<&str>,
    share: Option<&str>,
) -> Result<Transfer, ApiError> {
    let place = call
        .find_book(|book| book.find_charge(code).is_ok())
        .map_err(|_| ApiError::field("charge", "The selected charge is invalid."))?;
    let book = call.book(place);
    let charge = book.charge(book.find_charge(code)?);
    let asset = asset.unwrap_or(charge.terms.asset);
    let amount = money::payment(charge, asset, amount, share)?;
    Ok(Transfer { mode: place.1, asset, address: charge.terms.deposit_address.clone(), amount })
}

/// Returns outputs that pay the same address several times, in nearly equal parts.
fn split(transfer: &Transfer, outputs: u32) -> Result<Vec<Output>, ApiError> {
    let part = transfer.amount.share(1, u64::from(outputs), transfer.asset);
    let part = part.filter(|part| *part > Coin::ZERO).ok_or_else(|| {
        ApiError::field("outputs", "The amount is too small to be split into so many outputs.")
    })?;
    let mut left = transfer.amount;
    let mut all = Vec::new();
    for n in 1..=outputs {
        let amount = if n == outputs { left } else { part };
        left = left.less(amount);
        all.push(Output { address: transfer.address.clone(), amount });
    }
    Ok(all)
}

fn new_transaction(txid: &TxId) -> Outcome {
    answer(TransactionAnswer { txid: txid.as_str().to_owned() })
}

fn chain<'s>(call: &'s mut SandboxCall<'_>, mode: Mode, asset: Asset) -> (&'s mut Chain, Timestamp) {
    let world = call.world_mut();
    (world.chains.get_mut(mode, asset), world.now)
}

/// Returns the chain that contains a transaction; with an API key, only one to a charge of the key's book.
fn chain_of<'s>(call: &'s mut SandboxCall<'_>, txid: &TxId) -> Result<(&'s mut Chain, Timestamp), ApiError> {
    let within = call.within;
    let World { chains, service, now, .. } = call.world_mut();
    let reached = |chain: &Chain| match within {
        None => chain.transaction(txid).is_some(),
        Some((account, mode)) => {
            let book = service.service().account(account).book(mode);
            chain.mode() == mode && chain.pays(txid, |address| book.charge_at(address).is_some())
        }
    };
    let chain = chains.values_mut().find(|chain| reached(chain));
    chain
        .map(|chain| (chain, *now))
        .ok_or_else(|| ApiError::field("txid", "The txid field is invalid: no chain knows this transaction."))
}

pub(super) fn mine(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let asset = read_asset(&mut f);
    let mode = call.mode(&mut f);
    let blocks = f.count("blocks").unwrap_or(1);
    let at_once = f.truth("at_once").unwrap_or(false);
    if blocks > BLOCKS_MAX {
        f.wrong("blocks", &format!("The {{}} field must be at most {BLOCKS_MAX}."));
    }
    f.finish()?;
    let (chain, now) = chain(call, mode, required(asset, "asset")?);
    if at_once {
        chain.mine_at_once(now, blocks);
    } else {
        let until = chain.block_after(now, blocks);
        call.advance("blocks", AdvanceTarget { until, stop_early: false, after: None })?;
    }
    nothing()
}

pub(super) fn reorganise(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let asset = read_asset(&mut f);
    let mode = call.mode(&mut f);
    let is_limited = call.within.is_some() || f.gives("account");
    let account = if is_limited { call.account(&mut f) } else { None };
    let depth = f.count("depth");
    if !f.has("depth") {
        f.wrong("depth", "The {} field is required.");
    }
    let keep = if f.is_list("keep") {
        Some(KeptTransactions::Some(
            f.texts("keep", 1_000).iter().map(|txid| TxId::from(txid.as_str())).collect(),
        ))
    } else {
        f.word("keep", &["all", "none", "a list of txids"], |word| match word {
            "all" => Some(KeptTransactions::All),
            "none" => Some(KeptTransactions::None),
            _ => None,
        })
    };
    f.finish()?;
    let (asset, depth) = (required(asset, "asset")?, required(depth, "depth")?);
    let keep = keep.unwrap_or(KeptTransactions::None);
    let World { chains, service, now, .. } = call.world_mut();
    let (chain, now) = (chains.get_mut(mode, asset), *now);
    let orphaned = match account.map(|account| service.service().account(account).book(mode)) {
        None => chain.reorganise(now, depth, &keep),
        Some(book) => chain.reorganise_among(now, depth, &keep, |address| book.charge_at(address).is_some()),
    };
    let orphaned = orphaned.map_err(|error| match error {
        ChainError::Unknown { .. } => ApiError::field("keep", format!("The keep field is invalid: {error}.")),
        _ => refusal(error),
    })?;
    call.sandbox.observers.on_reorg(now, (mode, asset), depth);
    answer(ReorgAnswer { orphaned: orphaned.iter().map(|txid| txid.as_str().to_owned()).collect() })
}

fn read_txid(f: &mut Fields<'_>) -> Option<TxId> {
    f.required_text("txid", TEXT_MAX).map(|text| TxId::from(text.as_str()))
}

/// Returns the chain that contains the transaction named in the body.
fn named<'s>(
    call: &'s mut SandboxCall<'_>,
    mut f: Fields<'_>,
) -> Result<(&'s mut Chain, Timestamp, TxId), ApiError> {
    let txid = read_txid(&mut f);
    f.finish()?;
    let txid = required(txid, "txid")?;
    let (chain, now) = chain_of(call, &txid)?;
    Ok((chain, now, txid))
}

pub(super) fn double_spend(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let (chain, now, txid) = named(call, f)?;
    new_transaction(&chain.double_spend(now, &txid).map_err(refusal)?)
}

pub(super) fn drop_transaction(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let (chain, now, txid) = named(call, f)?;
    chain.drop_from_mempool(now, &txid).map_err(refusal)?;
    nothing()
}

pub(super) fn rebroadcast(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    let (chain, now, txid) = named(call, f)?;
    chain.rebroadcast(now, &txid).map_err(refusal)?;
    nothing()
}

pub(super) fn replace(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let txid = read_txid(&mut f);
    let amount = f.decimal("amount");
    let elsewhere = f.truth("elsewhere").unwrap_or(false);
    let fee = read_fee(&mut f);
    if amount.is_some() && elsewhere {
        f.wrong(
            "amount",
            "Give either {} or elsewhere: a replacement that pays elsewhere pays nothing here.",
        );
    }
    f.finish()?;
    let txid = required(txid, "txid")?;
    let (chain, now) = chain_of(call, &txid)?;
    let asset = chain.asset();
    let old = chain.transaction(&txid).expect("the chain was found by it");
    let outputs = match amount {
        _ if elsewhere => Vec::new(),
        None => old.outputs.clone(),
        Some(text) => {
            let amount = Coin::parse(&text, asset)
                .map_err(|error| ApiError::field("amount", format!("The amount field {error}.")))?;
            let address = old.outputs.first().map(|output| output.address.clone());
            vec![Output { address: required(address, "txid")?, amount }]
        }
    };
    new_transaction(&chain.replace(now, &txid, outputs, fee).map_err(refusal)?)
}

pub(super) fn stall(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let asset = read_asset(&mut f);
    let mode = call.mode(&mut f);
    let span = f.word_like("for", "30s or 2h", Span::parse);
    if !f.has("for") {
        f.wrong("for", "The {} field is required: a length of time such as 2h.");
    }
    f.finish()?;
    let is_shared = |own| call.service().books().any(|(account, _, _)| account != own);
    if call.within.is_some_and(|(own, _)| is_shared(own)) {
        return Err(ApiError::conflict(
            "This world has other accounts, whose transfers a stall would delay. With an API key, pay with the fee `stuck` \
             instead, or stall in a world with one account.",
        ));
    }
    let span = required(span, "for")?;
    let (chain, now) = chain(call, mode, required(asset, "asset")?);
    chain.stall(now, span);
    nothing()
}

pub(super) fn congest(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let asset = read_asset(&mut f);
    let mode = call.mode(&mut f);
    let empty_percent = f.count("empty").unwrap_or(0);
    let full_percent = f.count("full").unwrap_or(0);
    f.finish()?;
    let (chain, now) = chain(call, mode, required(asset, "asset")?);
    chain.congest(now, Congestion { empty_percent, full_percent }).map_err(refusal)?;
    nothing()
}

pub(super) fn watch(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let asset = read_asset(&mut f);
    let mode = call.mode(&mut f);
    let fault = f.word("notices", &watcher::WORDS, watcher::parse);
    if !f.has("notices") {
        f.wrong("notices", "The {} field is required: up, late, reversed, lost or twice.");
    }
    f.finish()?;
    let (asset, fault) = (required(asset, "asset")?, required(fault, "notices")?);
    // Chain events until now are reported under the previous setting.
    call.sandbox.work();
    if call.world_mut().watchers.change((mode, asset), fault) {
        let (chain, now) = chain(call, mode, asset);
        chain.rescan(now);
    }
    nothing()
}
