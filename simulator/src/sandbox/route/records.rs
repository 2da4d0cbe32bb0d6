//! Conversions of keys, wallets, endpoints, coins, deliveries and transfers to the records that responses contain.

use reference_core::{
    asset::Asset,
    book::Book,
    charge::{Charge, Standing, Transfer},
    endpoint::{Endpoint, Secret, address_rule::EndpointUrl},
    key::ApiKey,
    mode::Mode,
    outbox::{Attempt, AttemptResult, Delivery, DeliveryState, SentHeaders},
    service::{Service, ServiceConfig},
    sighting::Disappearance,
    wallet::Wallet,
};

use crate::{
    api::{
        AttemptRecord, AttemptTrace, CoinRecord, DeliveryRecord, EndpointRecord, HeaderRecord, KeyRecord,
        TransferDisappearance, TransferRecord, TransferStanding, WalletRecord,
    },
    network::delivery_headers,
    sandbox::observe::AccountBook,
};

const MICROS_PER_MILLI: u64 = 1_000;

/// Returns a key, without its secret.
pub(super) fn key_record(service: &Service, key: &ApiKey) -> KeyRecord {
    KeyRecord {
        id: key.id,
        account: service.account(key.principal.account).id.to_string(),
        mode: key.principal.mode,
        hint: key.hint.to_string(),
        created_at: key.created_at,
        revoked_at: key.revoked_at,
        secret: None,
    }
}

/// Returns a wallet.
pub(super) fn wallet_record(account: &str, mode: Mode, asset: Asset, wallet: &Wallet) -> WalletRecord {
    WalletRecord {
        account: account.to_owned(),
        mode,
        asset,
        key: wallet.extended_key().map(ToString::to_string),
        script: wallet.script().map(|script| script.as_str().into()),
        listed: wallet.listed_addresses().len(),
        first_address: wallet.address(0),
    }
}

/// Returns a webhook endpoint, without its secret.
pub(super) fn endpoint_record(
    service: &Service,
    (account, mode): AccountBook,
    endpoint: &Endpoint,
) -> EndpointRecord {
    EndpointRecord {
        id: endpoint.id,
        account: service.account(account).id.to_string(),
        mode,
        url: endpoint.url.to_string(),
        events: endpoint.events.iter().copied().collect(),
        status: endpoint.status.as_str().into(),
        failed_in_a_row: endpoint.failed_in_a_row,
        created_at: endpoint.created_at,
        secret: None,
    }
}

/// Returns a coin on its network.
pub(super) fn coin_record(asset: Asset, mode: Mode) -> CoinRecord {
    let facts = asset.facts();
    CoinRecord {
        asset,
        network: facts.network.into(),
        decimals: facts.decimals,
        required_confirmations: asset.required_confirmations(mode),
    }
}

/// Returns a transfer to a charge.
pub(super) fn transfer_record(
    service: &Service,
    book: &Book,
    charge: &Charge,
    transfer: &Transfer,
) -> TransferRecord {
    let (mode, asset) = (book.mode(), charge.terms.asset);
    let required = asset.required_confirmations(mode);
    TransferRecord {
        txid: transfer.txid.to_string(),
        output: transfer.output,
        amount: transfer.amount.to_string(),
        confirmations: transfer.confirmations_at(service.heights().get(mode, asset), required),
        required_confirmations: required,
        confirmed: transfer.is_confirmed(required),
        credited: transfer.is_credited,
        standing: match transfer.standing {
            Standing::OnTime => TransferStanding::OnTime,
            Standing::Late => TransferStanding::Late,
            Standing::Accepted => TransferStanding::Accepted,
            Standing::Extra => TransferStanding::Extra,
        },
        gone: transfer.disappearance.map(|reason| match reason {
            Disappearance::DoubleSpent => TransferDisappearance::DoubleSpent,
            Disappearance::Replaced => TransferDisappearance::Replaced,
            Disappearance::Dropped => TransferDisappearance::Dropped,
        }),
        seen_at: transfer.seen_at,
        confirmed_at: transfer.confirmed_at,
        sent_back: is_sent_back(charge, transfer),
    }
}

/// Returns `true` if a transfer is a late payment that the owner has refunded.
pub(super) fn is_sent_back(charge: &Charge, transfer: &Transfer) -> bool {
    charge
        .refunded_late_transfers()
        .any(|refunded| (&refunded.txid, refunded.output) == (&transfer.txid, transfer.output))
}

/// Returns a delivery with its attempts.
pub(super) fn delivery_record(account: &str, book: &Book, delivery: &Delivery) -> DeliveryRecord {
    let next_at = match delivery.state {
        DeliveryState::Waiting(at) => Some(at),
        _ => None,
    };
    let endpoint = book.endpoint(delivery.endpoint);
    DeliveryRecord {
        id: delivery.id,
        account: account.to_owned(),
        mode: book.mode(),
        endpoint: endpoint.id,
        url: endpoint.url.to_string(),
        event: delivery.payload.event.map(|(_, id)| id),
        kind: delivery.payload.kind,
        test: delivery.payload.event.is_none(),
        status: delivery.state.as_str().into(),
        attempts: (1..).zip(&delivery.attempts).map(|(n, attempt)| attempt_record(n, attempt)).collect(),
        next_at,
        created_at: delivery.payload.created_at,
        request_body: None,
    }
}

/// Returns a delivery with the requests and responses of its attempts.
pub(super) fn full_delivery_record(
    account: &str,
    book: &Book,
    delivery: &Delivery,
    config: &ServiceConfig,
) -> DeliveryRecord {
    let mut record = delivery_record(account, book, delivery);
    let body = reference_wire::delivery_body(book, delivery, &config.public_url);
    for (attempt, attempt_record) in delivery.attempts.iter().zip(&mut record.attempts) {
        attempt_record.trace = Some(attempt_trace(attempt, |url, secret| {
            let signature = secret.sign(attempt.started_at.unix_secs(), &body);
            let (url, kind) = (url.authority(), delivery.payload.kind);
            delivery_headers(&config.dialect, (url, kind, delivery.id), body.len(), signature)
        }));
    }
    record.request_body = Some(String::from_utf8_lossy(&body).into_owned());
    record
}

fn attempt_record(n: u32, attempt: &Attempt) -> AttemptRecord {
    let (status, error) = match &attempt.result {
        AttemptResult::Response(status) => (Some(*status), None),
        AttemptResult::Unreachable(reason) => (None, Some(format!("unreachable: {reason}"))),
        AttemptResult::TimedOut => (None, Some("timeout".to_owned())),
        AttemptResult::NotPublic(reason) => (None, Some(format!("refused: {reason}"))),
    };
    AttemptRecord { n, at: attempt.started_at, ended_at: attempt.ended_at, status, error, trace: None }
}

/// Returns the request and response of an attempt, as far as the host recorded them. `write_headers` computes request
/// headers that are not stored. Inside the simulated network the duration is in service time, and a response is only a
/// status.
fn attempt_trace(
    attempt: &Attempt,
    write_headers: impl FnOnce(&EndpointUrl, &Secret) -> Vec<(String, String)>,
) -> AttemptTrace {
    let trace = attempt.trace.as_deref().cloned().unwrap_or_default();
    let request_headers = match trace.request_headers {
        SentHeaders::Stored(headers) => headers,
        SentHeaders::Derived { url, secret } => write_headers(&url, &secret),
    };
    let headers = |list: Vec<(String, String)>| {
        list.into_iter().map(|(name, value)| HeaderRecord { name, value }).collect()
    };
    AttemptTrace {
        duration_ms: trace.took_ms.unwrap_or(attempt.ended_at.since(attempt.started_at).0 / MICROS_PER_MILLI),
        address: trace.address,
        request_headers: headers(request_headers),
        response_headers: headers(trace.response_headers),
        response_body: trace.response_body,
        note: trace.note,
    }
}
