//! Charges and invoices as they are shown, against each other and against the chain.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::RangeInclusive,
};

use reference_core::{asset::Asset, mode::Mode};

use super::{BookReading, Findings, Follower, Law, Shown, compare::compare_book};
use crate::{
    chain::Chain,
    model::{ChargeView, InvoiceView, money},
    sandbox::Sandbox,
};

/// Judges everything that is shown of charges, invoices, payment links and events: laws 1 to 9, 11 and 17.
/// `before`: the heights of the chains when reading began.
pub fn judge_books(
    follower: &Follower<'_>,
    shown: &Shown,
    sandbox: &Sandbox,
    before: &BTreeMap<(Mode, Asset), u64>,
) -> Findings {
    let mut findings = Findings::default();
    for (id, book) in &shown.books {
        let of_book = follower.model.book(*id);
        let heights = |asset| before[&(id.1, asset)]..=sandbox.chain(id.1, asset).height(sandbox.now());
        let reading = BookReading {
            now: sandbox.now(),
            heights: &heights,
            public_url: follower.public_url,
            base: follower.public_url,
        };
        compare_book(&mut findings, (of_book, &follower.ids[id]), book, reading);
        for seen in &book.charges {
            judge_path(&mut findings, seen);
            let known = follower.ids[id].charges.iter().position(|code| *code == seen.code);
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

/// The timeline alone must be a way along allowed edges, in order, and say each thing once.
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
            // What is first seen after the lock is late, even while a charge is held open.
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
    findings.check(Law::Edges, None, || {
        wrong.map(|(from, event)| (format!("{event} from {from}"), seen.code.clone()))
    });
    findings.check(Law::Edges, None, || {
        (status.is_some_and(|status| status != seen.status)).then(|| {
            let told = status.unwrap_or("nothing");
            (format!("events lead to {told}, the status is {}", seen.status), seen.code.clone())
        })
    });
    findings.check(Law::Edges, None, || {
        ((seen.status == "paid") != seen.paid_at.is_some())
            .then(|| ("paid_at is not set exactly when it is paid".to_owned(), seen.code.clone()))
    });
    let times: Vec<&str> = seen.timeline.iter().map(|line| line.time.as_str()).collect();
    findings.check(Law::Order, None, || {
        (!times.is_sorted()).then(|| ("times of a timeline fall".to_owned(), seen.code.clone()))
    });
    let paid = seen.timeline.iter().filter(|line| line.event == "charge.paid").count();
    findings.check(Law::Once, None, || {
        (paid > 1 || (paid == 1) != (seen.status == "paid")).then(|| {
            (format!("{paid} times charge.paid for a charge that is {}", seen.status), seen.code.clone())
        })
    });
}

/// A charge rests at the end: no transfer holds it open for more than a day.
fn judge_rest(findings: &mut Findings, seen: &ChargeView) {
    findings.check(Law::Liveness, None, || {
        matches!(seen.status.as_str(), "pending" | "underpaid")
            .then(|| (format!("a charge is still {} at the end", seen.status), seen.code.clone()))
    });
}

/// Checks that a charge shows the money that the chain holds at its address, and credits no other.
fn judge_ledger(findings: &mut Findings, (chain, heights): (&Chain, RangeInclusive<u64>), seen: &ChargeView) {
    let asset = chain.asset();
    let decimals = asset.facts().decimals;
    let units = |text: &str| money::read(text, decimals).unwrap_or(u128::MAX / 4);
    let on_chain = chain.balance(&seen.deposit_address).atto() / money::atto_per_unit(asset);
    let credited: u128 = seen.transactions.iter().filter(|it| it.credited).map(|it| units(&it.amount)).sum();
    // Credited and still there, waiting, reversed: together they are what the chain holds.
    let reversed: u128 = seen
        .transactions
        .iter()
        .filter(|it| it.credited && it.confirmations == 0)
        .map(|it| units(&it.amount))
        .sum();
    let waiting: u128 = seen
        .transactions
        .iter()
        .filter(|it| !it.credited && it.confirmations > 0)
        .map(|it| units(&it.amount))
        .sum();
    let coin = |units: u128| money::written(units, asset);
    findings.check(Law::Conservation, None, || {
        (on_chain + reversed != credited + waiting).then(|| {
            let what = format!(
                "{}: on chain {}, credited {}, waiting {}, reversed {}",
                seen.code,
                coin(on_chain),
                coin(credited),
                coin(waiting),
                coin(reversed)
            );
            ("what is on the chain is not what the charge shows".to_owned(), what)
        })
    });
    findings.check(Law::Conservation, None, || {
        (coin(credited) != seen.received_amount)
            .then(|| ("received_amount is not the sum of what is credited".to_owned(), seen.code.clone()))
    });
    findings.check(Law::PaidMoney, None, || {
        (reversed > 0).then(|| ("money that is not on the chain is counted".to_owned(), seen.code.clone()))
    });
    findings.check(Law::Confirmations, None, || {
        let mut known = BTreeSet::new();
        let twice = seen.transactions.iter().find(|it| {
            let outputs = chain.transaction(&it.txid.as_str().into()).map_or(0, |tx| {
                tx.outputs.iter().filter(|output| output.address == seen.deposit_address).count()
            });
            outputs <= 1 && !known.insert(&it.txid)
        });
        twice.map(|it| ("a transaction counts twice".to_owned(), format!("{} {}", seen.code, it.txid)))
    });
    findings.check(Law::Confirmations, None, || {
        let wrong = seen.transactions.iter().find(|it| {
            let depth = |height| {
                let transaction = chain.transaction(&it.txid.as_str().into());
                transaction.map_or(0, |transaction| transaction.depth_at(height))
            };
            !(depth(*heights.start())..=depth(*heights.end())).contains(&it.confirmations)
        });
        wrong.map(|it| {
            let what = format!("{} {} shows {}", seen.code, it.txid, it.confirmations);
            ("confirmations are not those of the active branch".to_owned(), what)
        })
    });
}

/// An invoice settles once, and nothing waits when it is over.
fn judge_invoice(findings: &mut Findings, seen: &InvoiceView) {
    let code = &seen.code;
    let settled = seen.timeline.iter().filter(|entry| entry.event == "invoice.paid").count();
    findings.check(Law::Once, None, || {
        (settled > 1 || (settled == 1) != (seen.status == "paid")).then(|| {
            (format!("{settled} times invoice.paid for an invoice that is {}", seen.status), code.clone())
        })
    });
    findings.check(Law::Once, None, || {
        let waits = seen.charges.iter().any(|it| it.status == "pending");
        (seen.status != "open" && waits).then(|| {
            (format!("an invoice that is {} has a charge that waits for money", seen.status), code.clone())
        })
    });
}

/// Judges that no address belongs to two charges, in whatever mode.
pub fn judge_addresses(findings: &mut Findings, shown: &Shown) {
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for charge in shown.books.values().flat_map(|book| &book.charges) {
        let before = owners.insert(&charge.deposit_address, &charge.code);
        findings.check(Law::Conservation, None, || {
            before.map(|other| {
                ("two charges share an address".to_owned(), format!("{other} and {}", charge.code))
            })
        });
    }
}
