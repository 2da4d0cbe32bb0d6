//! Checks of charges and invoices as the API shows them, against each other and against the chain.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use reference_core::{asset::Asset, mode::Mode};

use super::{ApiState, Findings, Invariant, ModelReplay, ReadingContext, compare::compare_book};
use crate::{
    chain::Chain,
    model::{ChargeView, InvoiceView, money},
    sandbox::Sandbox,
};

/// Checks all charges, invoices, payment links and events that the API shows: invariants 1 to 9, 11 and 17.
/// `heights_before` are the heights of the chains when reading began.
pub fn judge_books(
    replay: &ModelReplay<'_>,
    api_state: &ApiState,
    sandbox: &Sandbox,
    heights_before: &BTreeMap<(Mode, Asset), u64>,
) -> Findings {
    let mut findings = Findings::default();
    for (id, book) in &api_state.books {
        let model_book = replay.model.book(*id);
        let heights =
            |asset| heights_before[&(id.1, asset)]..=sandbox.chain(id.1, asset).height(sandbox.now());
        let blocks = |asset| {
            let heights = heights(asset);
            heights.end() - heights.start()
        };
        let reading = ReadingContext {
            now: sandbox.now(),
            blocks_mined: &blocks,
            public_url: replay.public_url,
            request_base_url: replay.public_url,
        };
        compare_book(&mut findings, (model_book, &replay.ids[id]), book, reading);
        for charge in &book.charges {
            check_transitions(&mut findings, charge);
            let known = replay.ids[id].charges.iter().position(|code| *code == charge.code);
            if let Some(number) = known {
                let asset = model_book.charges[number].terms.asset;
                check_closed(&mut findings, charge);
                let chain = (sandbox.chain(id.1, asset), heights(asset));
                check_transfers(&mut findings, chain, charge);
            }
        }
        book.invoices.iter().for_each(|invoice| check_invoice(&mut findings, invoice));
    }
    judge_addresses(&mut findings, api_state);
    findings
}

/// Checks that a timeline has only allowed transitions, in order of time, and leads to the status of the
/// charge. A charge has `paid_at` and exactly one `charge.paid` event if it is paid, and none otherwise.
fn check_transitions(findings: &mut Findings, charge: &ChargeView) {
    let mut status = None;
    let mut wrong_transition = None;
    for entry in &charge.timeline {
        let next = match (status, entry.event.as_str()) {
            (None, "charge.created") => Some("pending"),
            (Some("pending" | "underpaid"), "charge.payment_detected") => status,
            (Some("pending" | "underpaid"), "charge.underpaid") => Some("underpaid"),
            (Some("expired" | "canceled"), "charge.underpaid") => status,
            (Some("pending" | "underpaid" | "expired" | "canceled"), "charge.paid") => Some("paid"),
            (Some("pending" | "underpaid"), "charge.expired") => Some("expired"),
            (Some("pending"), "charge.canceled") => Some("canceled"),
            // A transfer first seen after the lock is late, even while a charge is held open.
            (Some(_), "charge.late_payment") => status,
            (Some(_), "charge.refunded") => status,
            _ => None,
        };
        if next.is_none() {
            wrong_transition = Some((status.unwrap_or("none"), entry.event.clone()));
            break;
        }
        status = next;
    }
    findings.check(Invariant::Edges, None, || {
        wrong_transition
            .map(|(from, event)| (format!("{event} after the status {from}"), charge.code.clone()))
    });
    findings.check(Invariant::Edges, None, || {
        (status.is_some_and(|status| status != charge.status)).then(|| {
            let derived = status.unwrap_or("none");
            (format!("events lead to {derived}, the status is {}", charge.status), charge.code.clone())
        })
    });
    findings.check(Invariant::Edges, None, || {
        ((charge.status == "paid") != charge.paid_at.is_some()).then(|| {
            ("paid_at is set although the charge is not paid, or the reverse".to_owned(), charge.code.clone())
        })
    });
    let times: Vec<&str> = charge.timeline.iter().map(|entry| entry.time.as_str()).collect();
    findings.check(Invariant::Order, None, || {
        (!times.is_sorted()).then(|| ("the times of a timeline decrease".to_owned(), charge.code.clone()))
    });
    let paid_events = charge.timeline.iter().filter(|entry| entry.event == "charge.paid").count();
    findings.check(Invariant::Once, None, || {
        (paid_events > 1 || (paid_events == 1) != (charge.status == "paid")).then(|| {
            (
                format!("{paid_events} charge.paid events for a charge that is {}", charge.status),
                charge.code.clone(),
            )
        })
    });
}

/// Checks that a charge is not open at the end: transfers hold it open after its rate lock for at most a day.
fn check_closed(findings: &mut Findings, charge: &ChargeView) {
    findings.check(Invariant::Liveness, None, || {
        matches!(charge.status.as_str(), "pending" | "underpaid")
            .then(|| (format!("a charge is still {} at the end", charge.status), charge.code.clone()))
    });
}

/// Checks the amounts and confirmations of a charge's transfers against the chain. `heights` is the range of
/// heights of the chain while the charge was read.
fn check_transfers(
    findings: &mut Findings,
    (chain, heights): (&Chain, RangeInclusive<u64>),
    charge: &ChargeView,
) {
    let asset = chain.asset();
    let decimals = asset.facts().decimals;
    // An invalid amount counts as a huge one, so that the sums differ; they must not overflow.
    let units = |text: &str| money::parse_units(text, decimals).unwrap_or(u128::MAX / 4);
    let on_chain = chain.balance(&charge.deposit_address).atto() / money::atto_per_unit(asset);
    let credited_transfers = charge.transactions.iter().filter(|transfer| transfer.credited);
    let credited: u128 = credited_transfers.map(|transfer| units(&transfer.amount)).sum();
    // The balance on the chain is the credited amount without the reversed one (credited, but no longer in a
    // block), plus the waiting one (in a block, but not yet credited).
    let reversed: u128 = charge
        .transactions
        .iter()
        .filter(|transfer| transfer.credited && transfer.confirmations == 0)
        .map(|transfer| units(&transfer.amount))
        .sum();
    let waiting: u128 = charge
        .transactions
        .iter()
        .filter(|transfer| !transfer.credited && transfer.confirmations > 0)
        .map(|transfer| units(&transfer.amount))
        .sum();
    let coin = |units: u128| money::format_units(units, asset);
    findings.check(Invariant::Conservation, None, || {
        (on_chain + reversed != credited + waiting).then(|| {
            let details = format!(
                "{}: on chain {}, credited {}, waiting {}, reversed {}",
                charge.code,
                coin(on_chain),
                coin(credited),
                coin(waiting),
                coin(reversed)
            );
            ("a charge does not show the balance on the chain".to_owned(), details)
        })
    });
    findings.check(Invariant::Conservation, None, || {
        (coin(credited) != charge.received_amount).then(|| {
            ("received_amount is not the sum of the credited transfers".to_owned(), charge.code.clone())
        })
    });
    findings.check(Invariant::PaidMoney, None, || {
        (reversed > 0)
            .then(|| ("a transfer that is not on the chain is counted".to_owned(), charge.code.clone()))
    });
    findings.check(Invariant::Confirmations, None, || {
        let mut known = BTreeSet::new();
        let duplicate = charge.transactions.iter().find(|transfer| {
            let outputs = chain.transaction(&transfer.txid.as_str().into()).map_or(0, |tx| {
                tx.outputs.iter().filter(|output| output.address == charge.deposit_address).count()
            });
            // A transaction with several outputs to the address is listed once for each.
            outputs <= 1 && !known.insert(&transfer.txid)
        });
        duplicate.map(|transfer| {
            ("a charge shows a transfer twice".to_owned(), format!("{} {}", charge.code, transfer.txid))
        })
    });
    findings.check(Invariant::Confirmations, None, || {
        let wrong = charge.transactions.iter().find(|transfer| {
            let depth = |height| {
                let transaction = chain.transaction(&transfer.txid.as_str().into());
                transaction.map_or(0, |transaction| transaction.depth_at(height))
            };
            !(depth(*heights.start())..=depth(*heights.end())).contains(&transfer.confirmations)
        });
        wrong.map(|transfer| {
            let details = format!("{} {} shows {}", charge.code, transfer.txid, transfer.confirmations);
            ("confirmations are not those of the active branch".to_owned(), details)
        })
    });
}

/// Checks that an invoice has one `invoice.paid` event if it is paid and none otherwise, and that a closed
/// invoice has no pending charge.
fn check_invoice(findings: &mut Findings, invoice: &InvoiceView) {
    let code = &invoice.code;
    let paid_events = invoice.timeline.iter().filter(|entry| entry.event == "invoice.paid").count();
    findings.check(Invariant::Once, None, || {
        (paid_events > 1 || (paid_events == 1) != (invoice.status == "paid")).then(|| {
            let shape =
                format!("{paid_events} invoice.paid events for an invoice that is {}", invoice.status);
            (shape, code.clone())
        })
    });
    findings.check(Invariant::Once, None, || {
        let has_pending = invoice.charges.iter().any(|charge| charge.status == "pending");
        (invoice.status != "open" && has_pending)
            .then(|| (format!("an invoice that is {} has a pending charge", invoice.status), code.clone()))
    });
}

/// Checks that no two charges of any mode share an address.
pub fn judge_addresses(findings: &mut Findings, api_state: &ApiState) {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for charge in api_state.books.values().flat_map(|book| &book.charges) {
        let before = owners.insert(&charge.deposit_address, &charge.code);
        findings.check(Invariant::Conservation, None, || {
            before.map(|other| {
                ("two charges share an address".to_owned(), format!("{other} and {}", charge.code))
            })
        });
    }
}
