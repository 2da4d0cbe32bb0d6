//! What must be seen of each object, and what is seen of it, in the same words.

use reference_core::{asset::Asset, time::Timestamp};
use serde_json::Value;
use simulator::model::money;

use crate::{
    deed::{Place, Pricing, Read, Reader},
    rules::atto_per_unit,
    stage::Ids,
    world::{Book, Details, Event, Subject, World},
};

/// Every record of a list, newest first, a line each.
pub(crate) fn list(world: &World, ids: &Ids, place: Place, list: Read) -> String {
    let book = &world.books[place.0];
    let lines = (0..book.length(list)).rev();
    lines
        .map(|no| match list {
            Read::Charges => charge(book, ids, no),
            Read::Invoices => invoice(book, ids, no),
            Read::Links => link(book, ids, no, world.now),
            Read::Events => event(book, ids, no),
        })
        .collect()
}

/// A record as it is shown.
pub(crate) fn shown(list: Read, record: &Value) -> String {
    match list {
        Read::Charges => shown_charge(record),
        Read::Invoices => shown_invoice(record),
        Read::Links => shown_link(record),
        Read::Events => shown_event(record),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn fields(record: &Value, names: &[&str]) -> String {
    names.iter().map(|name| format!("{name} {}, ", text(&record[*name]))).collect()
}

fn each(list: &Value, line: impl Fn(&Value) -> String) -> String {
    list.as_array().into_iter().flatten().map(line).collect::<Vec<_>>().join("; ")
}

fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| "-".to_owned(), |at| at.to_string())
}

fn fiat(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Eight decimals, without trailing zeros.
fn rate(units: u64) -> String {
    let (whole, part) = (units / 100_000_000, units % 100_000_000);
    let part = format!("{part:08}");
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_string() } else { format!("{whole}.{part}") }
}

/// As webhooks write it: eighteen decimals, always.
fn padded(units: u128, asset: Asset) -> String {
    let atto = units * atto_per_unit(asset);
    let one = 10_u128.pow(18);
    format!("{}.{:018}", atto / one, atto % one)
}

fn code(ids: &[String], no: Option<usize>) -> String {
    no.map_or_else(|| "-".to_owned(), |no| ids[no].clone())
}

const CHARGE: [&str; 18] = [
    "id",
    "deposit_address",
    "code",
    "status",
    "fiat_amount",
    "fiat_currency",
    "asset",
    "asset_amount",
    "received_amount",
    "remaining_amount",
    "overpaid",
    "refunded_amount",
    "exchange_rate",
    "payment_link",
    "invoice",
    "created_at",
    "expires_at",
    "paid_at",
];

fn charge(book: &Book, ids: &Ids, no: usize) -> String {
    let charge = &book.charges[no];
    let it = &charge.it;
    let coin = |units| money::written(units, charge.asset);
    let refunded = charge.refunds.iter().sum::<u128>();
    let values = [
        ids.charges[no].clone(),
        ids.addresses[no].clone(),
        ids.charges[no].clone(),
        it.status.as_str().to_owned(),
        fiat(charge.cents),
        charge.currency.code().to_owned(),
        charge.asset.code().to_owned(),
        coin(it.due),
        coin(it.received()),
        coin(it.due.saturating_sub(it.received())),
        money::is_overpaid(it.received(), it.due, it.threshold).to_string(),
        coin(refunded),
        rate(charge.rate),
        code(&ids.links, charge.link),
        code(&ids.invoices, charge.invoice),
        charge.opened.to_string(),
        it.end.to_string(),
        time(it.paid_at),
    ];
    let refunds: Vec<String> = charge.refunds.iter().map(|units| coin(*units)).collect();
    let transfers: Vec<String> = it
        .money
        .iter()
        .map(|money| {
            let (amount, depth) = (coin(money.units), money.depth.unwrap_or(0));
            format!("{} {amount} {depth}/{} {}", money.txid, it.required, money.counted)
        })
        .collect();
    let named: String = CHARGE.iter().zip(values).map(|(name, value)| format!("{name} {value}, ")).collect();
    let (refunds, transfers) = (refunds.join("; "), transfers.join("; "));
    let timeline = timeline(book, Subject::Charge(no));
    format!("{named}refunds [{refunds}], transfers [{transfers}], {timeline}\n")
}

fn shown_charge(record: &Value) -> String {
    let refunds = each(&record["refunds"], |refund| text(&refund["amount"]));
    let transfers = each(&record["transactions"], |it| {
        let [txid, amount, depth, required, counted] =
            ["txid", "amount", "confirmations", "required_confirmations", "credited"]
                .map(|key| text(&it[key]));
        format!("{txid} {amount} {depth}/{required} {counted}")
    });
    let (named, timeline) = (fields(record, &CHARGE), shown_timeline(record));
    format!("{named}refunds [{refunds}], transfers [{transfers}], {timeline}\n")
}

const INVOICE: [&str; 10] = [
    "id",
    "number",
    "status",
    "amount",
    "currency",
    "created_at",
    "sent_at",
    "viewed_at",
    "paid_at",
    "voided_at",
];

fn invoice(book: &Book, ids: &Ids, no: usize) -> String {
    let it = &book.invoices[no];
    let values = [
        ids.invoices[no].clone(),
        format!("INV-{:04}", no + 1),
        it.status.as_str().to_owned(),
        fiat(it.cents),
        "EUR".to_owned(),
        it.issued.to_string(),
        time(it.sent_at),
        time(it.viewed_at),
        time(it.paid_at),
        time(it.voided_at),
    ];
    let charges = it.charges.iter().map(|no| {
        let charge = &book.charges[*no];
        format!("{} {} {}", ids.charges[*no], charge.it.status.as_str(), charge.asset.code())
    });
    let charges = charges.collect::<Vec<_>>().join("; ");
    let named: String = INVOICE.iter().zip(values).map(|(name, value)| format!("{name} {value}, ")).collect();
    let (mailed, timeline) = (it.reader != Reader::Nobody, timeline(book, Subject::Invoice(no)));
    format!("{named}mailed {mailed}, charges [{charges}], {timeline}\n")
}

fn shown_invoice(record: &Value) -> String {
    let charges = each(&record["charges"], |it| {
        format!("{} {} {}", text(&it["code"]), text(&it["status"]), text(&it["asset"]))
    });
    let mailed = record["customer_email"].is_string();
    let (named, timeline) = (fields(record, &INVOICE), shown_timeline(record));
    format!("{named}mailed {mailed}, charges [{charges}], {timeline}\n")
}

/// Oldest first.
pub(crate) fn timeline(book: &Book, of: Subject) -> String {
    let told = book.events.iter().filter(|event| event.subject == of);
    let told: Vec<String> = told.map(|event| format!("{} {}", event.kind, event.at)).collect();
    format!("timeline [{}]", told.join("; "))
}

pub(crate) fn shown_timeline(record: &Value) -> String {
    let told = each(&record["timeline"], |it| format!("{} {}", text(&it["event"]), text(&it["time"])));
    format!("timeline [{told}]")
}

const LINK: [&str; 10] = [
    "id",
    "status",
    "pricing_type",
    "amount",
    "min_amount",
    "max_amount",
    "max_payments",
    "expires_at",
    "accepting_payments",
    "views_count",
];

fn link(book: &Book, ids: &Ids, no: usize, now: Timestamp) -> String {
    let it = &book.links[no];
    let none = || "-".to_owned();
    let (kind, amount, min, max) = match it.pricing {
        Pricing::Fixed(cents) => ("fixed", fiat(cents), none(), none()),
        Pricing::Open { min, max } => ("open", none(), fiat(min), fiat(max)),
    };
    let values = [
        ids.links[no].clone(),
        if it.archived { "archived" } else { "active" }.to_owned(),
        kind.to_owned(),
        amount,
        min,
        max,
        it.max.map_or_else(none, |max| max.to_string()),
        time(it.ends),
        book.link_accepts(no, now).to_string(),
        it.views.to_string(),
    ];
    let only = it.only.map_or_else(none, |only| only.code().to_owned());
    let named: String = LINK.iter().zip(values).map(|(name, value)| format!("{name} {value}, ")).collect();
    format!("{named}only {only}\n")
}

fn shown_link(record: &Value) -> String {
    let only = &record["accepted_assets"];
    let only = if only.is_null() { "-".to_owned() } else { each(only, text) };
    format!("{}only {only}\n", fields(record, &LINK))
}

fn details(event: &Event, book: &Book) -> String {
    let coin = |units| match event.subject {
        Subject::Charge(no) => money::written(units, book.charges[no].asset),
        Subject::Invoice(_) => "?".to_owned(),
    };
    match &event.details {
        Details::None => "{}".to_owned(),
        Details::Transfer { txid, units } => format!("amount {} txid {txid} ", coin(*units)),
        Details::Refund { units } => format!("amount {} ", coin(*units)),
        Details::Reason(why) => format!("reason {why} "),
    }
}

fn shown_details(details: &Value) -> String {
    let Some(details) = details.as_object() else { return "no object".to_owned() };
    if details.is_empty() {
        return "{}".to_owned();
    }
    // Names in order, whatever order they came in.
    let mut named: Vec<_> = details.iter().collect();
    named.sort_by_key(|(name, _)| name.as_str());
    named.into_iter().map(|(name, value)| format!("{name} {} ", text(value))).collect()
}

/// Read through the API, an event shows its object as it is now.
fn event(book: &Book, ids: &Ids, no: usize) -> String {
    let event = &book.events[no];
    let now = book.then(event.subject);
    let (kind, code) = match event.subject {
        Subject::Charge(no) => ("charge", &ids.charges[no]),
        Subject::Invoice(no) => ("invoice", &ids.invoices[no]),
    };
    let details = details(event, book);
    format!(
        "{} {} {} of {kind} {code}, now {}, {details}\n",
        ids.events[no], event.kind, event.at, now.status
    )
}

fn shown_event(record: &Value) -> String {
    let (kind, it) = match (&record["charge"], &record["invoice"]) {
        (it, Value::Null) => ("charge", it),
        (Value::Null, it) => ("invoice", it),
        _ => ("two things", &Value::Null),
    };
    let [id, of, at] = ["id", "type", "created_at"].map(|key| text(&record[key]));
    let (code, now) = (text(&it["code"]), text(&it["status"]));
    format!("{id} {of} {at} of {kind} {code}, now {now}, {}\n", shown_details(&record["details"]))
}

/// The body of a delivery, as it must be from the first attempt to the last.
pub(crate) fn post(book: &Book, ids: &Ids, delivery: usize, attempt: u32) -> String {
    let it = &book.deliveries[delivery];
    let id = ids.deliveries[delivery];
    let Some(no) = it.event else {
        return format!(
            "{id} - charge.paid charge.paid {} {} test, attempt {attempt}\n",
            book.mode(),
            it.opened
        );
    };
    let event = &book.events[no];
    let then = &event.then;
    let object = match event.subject {
        Subject::Charge(no) => {
            let charge = &book.charges[no];
            let (due, received) = (padded(charge.it.due, charge.asset), padded(then.received, charge.asset));
            format!("charge {} {} {received} of {due}", ids.charges[no], then.status)
        }
        Subject::Invoice(no) => {
            format!("invoice {} {} [{}]", ids.invoices[no], then.status, then.charges.join("; "))
        }
    };
    let (event_id, kind) = (&ids.events[no], event.kind);
    format!("{id} {event_id} {kind} {kind} {} {} {object}, attempt {attempt}\n", book.mode(), event.at)
}

/// The same of what is posted. `header`: the type that the header names.
pub(crate) fn shown_post(body: &Value, header: &str, attempt: u32) -> String {
    let [id, event_id, kind, mode, at] =
        ["id", "event_id", "event", "mode", "created_at"].map(|key| text(&body[key]));
    let data = &body["data"];
    let object = if body["test"] == true {
        "test".to_owned()
    } else if data["charge"].is_object() {
        let [code, status, received, due] =
            ["code", "status", "received_amount", "asset_amount"].map(|key| text(&data["charge"][key]));
        format!("charge {code} {status} {received} of {due}")
    } else {
        let it = &data["invoice"];
        let charges = each(&it["charges"], |charge| text(&charge["status"]));
        format!("invoice {} {} [{charges}]", text(&it["code"]), text(&it["status"]))
    };
    format!("{id} {event_id} {header} {kind} {mode} {at} {object}, attempt {attempt}\n")
}
