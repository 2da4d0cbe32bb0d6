//! Charges, invoices and their events: as they are shown, against the model, and against each other.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{mode::Mode, time::Timestamp};

use super::{ChargeSeen, Findings, InvoiceSeen, Law, Line, Shown};
use crate::{
    model::{InvoiceStatus, Model, Owned, Status, Told, money},
    sandbox::Sandbox,
    witness::Whose,
};

/// Judges everything that is shown of charges and invoices: laws 1 to 9, 11 and 17.
pub fn judge_books(model: &Model<'_>, shown: &Shown, sandbox: &Sandbox) -> Findings {
    let mut findings = Findings::default();
    let mut stories: BTreeMap<&str, Vec<&Told>> = BTreeMap::new();
    for told in &model.told {
        stories.entry(&told.subject).or_default().push(told);
    }
    let none = Vec::new();
    for (whose, book) in &shown.books {
        for seen in &book.charges {
            findings.check(Law::Once, None, || {
                let known = model.charges.get(&seen.code).is_some_and(|owned| owned.whose() == *whose);
                (!known).then(|| {
                    ("a charge is listed that nobody opened in this book".to_owned(), seen.code.clone())
                })
            });
            let Some(owned) = model.charges.get(&seen.code) else { continue };
            let story = stories.get(seen.code.as_str()).unwrap_or(&none);
            judge_timeline(&mut findings, &seen.code, &seen.timeline, story, Some(owned));
            judge_path(&mut findings, seen);
            judge_charge(&mut findings, seen, owned);
            judge_ledger(&mut findings, sandbox, owned.mode, seen, owned);
        }
        for seen in &book.invoices {
            let Some((_, invoice)) = model.invoices.get(&seen.code) else {
                findings.check(Law::Once, None, || {
                    Some(("an invoice is listed that nobody issued".to_owned(), seen.code.clone()))
                });
                continue;
            };
            let story = stories.get(seen.code.as_str()).unwrap_or(&none);
            judge_timeline(&mut findings, &seen.code, &seen.timeline, story, None);
            judge_invoice(&mut findings, seen, invoice);
        }
        let codes: BTreeSet<&str> = book.invoices.iter().map(|invoice| invoice.code.as_str()).collect();
        for (code, _) in model.invoices.iter().filter(|(_, (of, _))| of == whose) {
            findings.check(Law::Once, None, || {
                (!codes.contains(code.as_str()))
                    .then(|| ("an invoice that was issued is not in the list".to_owned(), code.clone()))
            });
        }
        judge_links(&mut findings, &book.links, model);
        judge_events(&mut findings, *whose, &book.events, model);
    }
    judge_addresses(&mut findings, shown);
    findings
}

/// Which law an event is about, when it is missing, too much or another than it must be.
fn law_of(expected: Option<&str>, actual: Option<&str>, at_lock_end: bool) -> Law {
    let about = |kind: &str| expected == Some(kind) || actual == Some(kind);
    if at_lock_end
        && (about("charge.expired") || about("charge.late_payment") || about("charge.payment_detected"))
    {
        return Law::LockEnd;
    }
    if about("charge.paid") && about("charge.underpaid") {
        return Law::Tolerance;
    }
    if expected == actual {
        return Law::Confirmations;
    }
    if about("charge.late_payment") {
        return Law::LateMoney;
    }
    if about("charge.paid") || about("charge.underpaid") || about("charge.payment_detected") {
        return Law::Confirmations;
    }
    if about("charge.refunded") {
        return Law::Conservation;
    }
    if about("charge.expired") {
        return Law::LockEnd;
    }
    if about("invoice.paid") || about("invoice.sent") || about("invoice.viewed") {
        Law::Once
    } else {
        Law::Edges
    }
}

/// The events of one subject, in order, with their times.
fn judge_timeline(
    findings: &mut Findings,
    code: &str,
    seen: &[Line],
    story: &[&Told],
    owned: Option<&Owned>,
) {
    for place in 0..seen.len().max(story.len()) {
        let (expected, actual) = (story.get(place), seen.get(place));
        let kinds = (expected.map(|told| told.kind), actual.map(|line| line.event.as_str()));
        let time = expected.map(|told| told.at.to_string());
        if kinds.0 == kinds.1 && time.as_deref() == actual.map(|line| line.time.as_str()) {
            findings.checks[law_of(kinds.0, kinds.1, false) as usize] += 1;
            continue;
        }
        let shown = actual.and_then(|line| Timestamp::parse(&line.time));
        let at = expected.map(|told| told.at).into_iter().chain(shown).min();
        let at_lock_end = owned.zip(at).is_some_and(|(owned, at)| {
            let end = owned.charge.end;
            at.0.abs_diff(end.0) <= 1 || shown.is_some_and(|shown| shown.0.abs_diff(end.0) <= 1)
        });
        let law = law_of(kinds.0, kinds.1, at_lock_end);
        findings.check(law, at, || {
            let word = |kind: Option<&str>| kind.unwrap_or("nothing").to_owned();
            let shape = match kinds.0 == kinds.1 {
                true => format!("{} comes at another time", word(kinds.0)),
                false => format!("{} where {} must be", word(kinds.1), word(kinds.0)),
            };
            let when = |time: Option<&str>| time.unwrap_or("-").to_owned();
            let actual = actual.map(|line| line.time.as_str());
            Some((shape, format!("{code}: expected {}, got {}", when(time.as_deref()), when(actual))))
        });
        // What follows the first difference follows from it.
        return;
    }
}

/// The timeline alone must be a way along allowed edges, in order, and say each thing once.
fn judge_path(findings: &mut Findings, seen: &ChargeSeen) {
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
            (Some("expired" | "canceled" | "paid"), "charge.late_payment") => status,
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

fn judge_charge(findings: &mut Findings, seen: &ChargeSeen, owned: &Owned) {
    let Owned { charge, asset, .. } = owned;
    let code = &seen.code;
    findings.check(Law::Edges, None, || {
        let expected = charge.status.as_str();
        (seen.status != expected)
            .then(|| (format!("status {} where {expected} must be", seen.status), code.clone()))
    });
    let law = if charge.status == Status::Paid { Law::PaidMoney } else { Law::Confirmations };
    let received = money::written(charge.received(), *asset);
    findings.same(law, "received_amount", code, &received, &seen.received_amount);
    let refunded = money::written(charge.refunded, *asset);
    findings.same(Law::Conservation, "refunded_amount", code, &refunded, &seen.refunded_amount);
    let overpaid = money::is_overpaid(charge.received(), charge.due, charge.threshold);
    findings.same(Law::Tolerance, "overpaid", code, &overpaid, &seen.overpaid);
    let paid_at = charge.paid_at.map(|at| at.to_string());
    findings.check(Law::PaidMoney, charge.paid_at, || {
        (paid_at != seen.paid_at).then(|| {
            let word = |time: &Option<String>| time.clone().unwrap_or_else(|| "none".to_owned());
            (
                "paid_at is another".to_owned(),
                format!("{code}: expected {}, got {}", word(&paid_at), word(&seen.paid_at)),
            )
        })
    });
    findings.check(Law::Liveness, None, || {
        // A transfer that no block will ever take holds its charge open for good.
        (matches!(seen.status.as_str(), "pending" | "underpaid") && !charge.is_held())
            .then(|| (format!("a charge is still {} at the end", seen.status), code.clone()))
    });
}

/// What the chain holds at a charge's address is what the charge shows, and what it counts is there.
fn judge_ledger(findings: &mut Findings, sandbox: &Sandbox, mode: Mode, seen: &ChargeSeen, owned: &Owned) {
    let chain = sandbox.chain(mode, owned.asset);
    let decimals = owned.asset.facts().decimals;
    let units = |text: &str| money::read(text, decimals).unwrap_or(u128::MAX / 4);
    let unit = 10_u128.pow(18) / money::units_per_coin(owned.asset);
    let on_chain = chain.balance(&seen.deposit_address).atto() / unit;
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
    let coin = |units: u128| money::written(units, owned.asset);
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
        (reversed > 0 && seen.status != "paid").then(|| {
            ("money that is not on the chain is counted on an unpaid charge".to_owned(), seen.code.clone())
        })
    });
    findings.check(Law::Conservation, None, || {
        (units(&seen.refunded_amount) > units(&seen.received_amount).max(owned.charge.refunded))
            .then(|| ("more was refunded than received".to_owned(), seen.code.clone()))
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
            let depth = chain.transaction(&it.txid.as_str().into()).map_or(0, |tx| chain.confirmations(tx));
            let required = u64::from(owned.charge.required);
            // The watcher stops counting where it is enough.
            depth.min(required) != u64::from(it.confirmations).min(required)
        });
        wrong.map(|it| {
            let what = format!("{} {} shows {}", seen.code, it.txid, it.confirmations);
            ("confirmations are not those of the active branch".to_owned(), what)
        })
    });
}

fn judge_invoice(findings: &mut Findings, seen: &InvoiceSeen, invoice: &crate::model::Invoice) {
    let code = &seen.code;
    findings.check(Law::Edges, None, || {
        let expected = invoice.status.as_str();
        (seen.status != expected)
            .then(|| (format!("invoice {} where {expected} must be", seen.status), code.clone()))
    });
    let paid_at = invoice.paid_at.map(|at| at.to_string());
    findings.check(Law::Edges, None, || {
        (paid_at != seen.paid_at).then(|| ("paid_at of an invoice is another".to_owned(), code.clone()))
    });
    findings.check(Law::Edges, None, || {
        ((invoice.status == InvoiceStatus::Void) != seen.voided_at.is_some())
            .then(|| ("voided_at is not set exactly when it is void".to_owned(), code.clone()))
    });
    let charges: Vec<&str> = seen.charges.iter().map(|it| it.code.as_str()).collect();
    findings.check(Law::SameObject, None, || {
        (charges != invoice.charges.iter().map(String::as_str).collect::<Vec<_>>())
            .then(|| ("an invoice names other charges".to_owned(), code.clone()))
    });
    let settled = seen.timeline.iter().filter(|line| line.event == "invoice.paid").count();
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

/// A link takes payments until as many were paid as it takes.
fn judge_links(findings: &mut Findings, links: &[super::LinkSeen], model: &Model<'_>) {
    for seen in links.iter().filter(|seen| model.knows_link(&seen.code)) {
        let expected = model.link_takes_payments(&seen.code);
        findings.check(Law::Once, None, || {
            (expected != Some(seen.accepting_payments)).then(|| {
                let shape = match expected {
                    None => "a payment link is listed that nobody made",
                    Some(true) => "a payment link takes no payments though it has room",
                    Some(false) => "a payment link takes payments beyond its number",
                };
                (shape.to_owned(), seen.code.clone())
            })
        });
    }
}

/// Events that were read through the API, newest first: in order, once each, and those that must be.
fn judge_events(findings: &mut Findings, whose: Whose, events: &[super::EventSeen], model: &Model<'_>) {
    if events.is_empty() {
        return;
    }
    findings.check(Law::Order, None, || {
        let ids: Vec<&str> = events.iter().rev().map(|event| event.id.as_str()).collect();
        (!ids.is_sorted_by(|one, two| one < two))
            .then(|| ("ids of events do not rise".to_owned(), whose.1.to_string()))
    });
    findings.check(Law::Order, None, || {
        let times: Vec<&str> = events.iter().rev().map(|event| event.created_at.as_str()).collect();
        (!times.is_sorted()).then(|| ("times of events fall".to_owned(), whose.1.to_string()))
    });
    let mut stories: BTreeMap<(&str, String, String), u32> = BTreeMap::new();
    for told in model.told.iter().filter(|told| (told.account, told.mode) == whose) {
        *stories.entry((told.kind, told.subject.clone(), details_of(told, model))).or_default() += 1;
    }
    for event in events {
        let amount = event.details.get("amount").cloned().unwrap_or_default();
        let txid = match event.kind.as_str() {
            "charge.refunded" => String::new(),
            _ => event.details.get("txid").cloned().unwrap_or_default(),
        };
        let place = (event.kind.as_str(), event.subject().to_owned(), format!("{amount} {txid}"));
        let found = stories.get_mut(&place).is_some_and(|left| {
            let some = *left > 0;
            *left -= u32::from(some);
            some
        });
        let law = match event.kind.as_str() {
            "charge.late_payment" => Law::LateMoney,
            "charge.paid" => Law::PaidMoney,
            _ => Law::SameObject,
        };
        findings.check(law, Timestamp::parse(&event.created_at), || {
            (!found).then(|| {
                let what =
                    format!("{} {} {amount} {txid} at {}", event.kind, event.subject(), event.created_at);
                (format!("an event {} that nothing led to, or with other details", event.kind), what)
            })
        });
    }
    for ((kind, subject, details), left) in stories {
        findings.check(Law::Once, None, || {
            (left > 0).then(|| {
                (format!("an event {kind} is missing from the list"), format!("{subject} {details}"))
            })
        });
    }
}

fn details_of(told: &Told, model: &Model<'_>) -> String {
    match &told.details {
        Some((txid, units)) => {
            format!("{} {txid}", money::written(*units, model.charges[&told.subject].asset))
        }
        None => " ".to_owned(),
    }
}

/// No address belongs to two charges, in whatever mode.
fn judge_addresses(findings: &mut Findings, shown: &Shown) {
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
