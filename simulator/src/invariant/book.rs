//! Checks of charges and invoices as the API shows them, against each other and against the chain.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use reference_core::{asset::Asset, mode::Mode};

use super::{ApiState, BookReading, Findings, Invariant, ModelReplay, compare::compare_book};
use crate::{
    chain::Chain,
    model::{ChargeView, InvoiceView, money},
    sandbox::Sandbox,
};

/// Checks everything shown of charges, invoices, payment links and events: invariants 1 to 9, 11 and 17. `before`: the
/// heights of the chains when reading began.
pub fn judge_books(
    replay: &ModelReplay<'_>,
    shown: &ApiState,
    sandbox: &Sandbox,
    before: &BTreeMap<(Mode, Asset), u64>,
) -> Findings {
    let mut findings = Findings::default();
    for (id, book) in &shown.books {
        let of_book = replay.model.book(*id);
        let heights = |asset| before[&(id.1, asset)]..=sandbox.chain(id.1, asset).height(sandbox.now());
        let blocks = |asset| {
            let heights = heights(asset);
            heights.end() - heights.start()
        };
        let reading = BookReading {
            now: sandbox.now(),
            blocks: &blocks,
            public_url: replay.public_url,
            base: replay.public_url,
        };
        compare_book(&mut findings, (of_book, &replay.ids[id]), book, reading);
        for seen in &book.charges {
            judge_path(&mut findings, seen);
            let known = replay.ids[id].charges.iter().position(|code| *code == seen.code);
            if let Some(no) = known {
                let charge = &of_book.charges[no];
                judge_rest(&mut findings, seen);
                let chain = (sandbox.chain(id.1, charge.terms.asset), heights(charge.terms.asset));
                judge_ledger(&mut findings, chain, seen);
            }
        }
        book.invoices.iter().for_each(|seen| judge_invoice(&mut findings, seen));
    }
    judge_addresses(&mut findings, shown);
    findings
}

/// Checks that a timeline follows allowed transitions, in order, with each unique event once.
fn judge_path(findings: &mut Findings, seen: &ChargeView) {
    let mut status = None;
    let mut wrong = None;
    for line in &seen.timeline {
        let next = match (status, line.event.as_str()) {
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
            wrong = Some((status.unwrap_or("nothing"), line.event.clone()));
            break;
        }
        status = next;
    }
    findings.check(Invariant::Edges, None, || {
        wrong.map(|(from, event)| (format!("{event} from {from}"), seen.code.clone()))
    });
    findings.check(Invariant::Edges, None, || {
        (status.is_some_and(|status| status != seen.status)).then(|| {
            let derived = status.unwrap_or("nothing");
            (format!("events lead to {derived}, the status is {}", seen.status), seen.code.clone())
        })
    });
    findings.check(Invariant::Edges, None, || {
        ((seen.status == "paid") != seen.paid_at.is_some())
            .then(|| ("paid_at is not set exactly when it is paid".to_owned(), seen.code.clone()))
    });
    let times: Vec<&str> = seen.timeline.iter().map(|line| line.time.as_str()).collect();
    findings.check(Invariant::Order, None, || {
        (!times.is_sorted()).then(|| ("times of a timeline fall".to_owned(), seen.code.clone()))
    });
    let paid = seen.timeline.iter().filter(|line| line.event == "charge.paid").count();
    findings.check(Invariant::Once, None, || {
        (paid > 1 || (paid == 1) != (seen.status == "paid")).then(|| {
            (format!("{paid} times charge.paid for a charge that is {}", seen.status), seen.code.clone())
        })
    });
}

/// Checks that no charge is open at the end: a hold lasts at most a day.
fn judge_rest(findings: &mut Findings, seen: &ChargeView) {
    findings.check(Invariant::Liveness, None, || {
        matches!(seen.status.as_str(), "pending" | "underpaid")
            .then(|| (format!("a charge is still {} at the end", seen.status), seen.code.clone()))
    });
}

/// Checks that a charge shows exactly the transfers that the chain has at its address.
fn judge_ledger(findings: &mut Findings, (chain, heights): (&Chain, RangeInclusive<u64>), seen: &ChargeView) {
    let asset = chain.asset();
    let decimals = asset.facts().decimals;
    let units = |text: &str| money::parse_units(text, decimals).unwrap_or(u128::MAX / 4);
    let on_chain = chain.balance(&seen.deposit_address).atto() / money::atto_per_unit(asset);
    let credited_transfers = seen.transactions.iter().filter(|transfer| transfer.credited);
    let credited: u128 = credited_transfers.map(|transfer| units(&transfer.amount)).sum();
    // Credited and confirmed, waiting, and reversed amounts together are the balance on the chain.
    let reversed: u128 = seen
        .transactions
        .iter()
        .filter(|transfer| transfer.credited && transfer.confirmations == 0)
        .map(|transfer| units(&transfer.amount))
        .sum();
    let waiting: u128 = seen
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
                seen.code,
                coin(on_chain),
                coin(credited),
                coin(waiting),
                coin(reversed)
            );
            ("a charge does not show the balance on the chain".to_owned(), details)
        })
    });
    findings.check(Invariant::Conservation, None, || {
        (coin(credited) != seen.received_amount).then(|| {
            ("received_amount is not the sum of the credited transfers".to_owned(), seen.code.clone())
        })
    });
    findings.check(Invariant::PaidMoney, None, || {
        (reversed > 0)
            .then(|| ("a transfer that is not on the chain is counted".to_owned(), seen.code.clone()))
    });
    findings.check(Invariant::Confirmations, None, || {
        let mut known = BTreeSet::new();
        let twice = seen.transactions.iter().find(|transfer| {
            let outputs = chain.transaction(&transfer.txid.as_str().into()).map_or(0, |tx| {
                tx.outputs.iter().filter(|output| output.address == seen.deposit_address).count()
            });
            outputs <= 1 && !known.insert(&transfer.txid)
        });
        twice.map(|transfer| {
            ("a transaction counts twice".to_owned(), format!("{} {}", seen.code, transfer.txid))
        })
    });
    findings.check(Invariant::Confirmations, None, || {
        let wrong = seen.transactions.iter().find(|transfer| {
            let depth = |height| {
                let transaction = chain.transaction(&transfer.txid.as_str().into());
                transaction.map_or(0, |transaction| transaction.depth_at(height))
            };
            !(depth(*heights.start())..=depth(*heights.end())).contains(&transfer.confirmations)
        });
        wrong.map(|transfer| {
            let details = format!("{} {} shows {}", seen.code, transfer.txid, transfer.confirmations);
            ("confirmations are not those of the active branch".to_owned(), details)
        })
    });
}

/// Checks that an invoice settles once, and that a closed one has no waiting charge.
fn judge_invoice(findings: &mut Findings, seen: &InvoiceView) {
    let code = &seen.code;
    let settled = seen.timeline.iter().filter(|entry| entry.event == "invoice.paid").count();
    findings.check(Invariant::Once, None, || {
        (settled > 1 || (settled == 1) != (seen.status == "paid")).then(|| {
            (format!("{settled} times invoice.paid for an invoice that is {}", seen.status), code.clone())
        })
    });
    findings.check(Invariant::Once, None, || {
        let waits = seen.charges.iter().any(|charge| charge.status == "pending");
        (seen.status != "open" && waits)
            .then(|| (format!("an invoice that is {} has a pending charge", seen.status), code.clone()))
    });
}

/// Checks that no two charges of any mode share an address.
pub fn judge_addresses(findings: &mut Findings, shown: &ApiState) {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for charge in shown.books.values().flat_map(|book| &book.charges) {
        let before = owners.insert(&charge.deposit_address, &charge.code);
        findings.check(Invariant::Conservation, None, || {
            before.map(|other| {
                ("two charges share an address".to_owned(), format!("{other} and {}", charge.code))
            })
        });
    }
}
