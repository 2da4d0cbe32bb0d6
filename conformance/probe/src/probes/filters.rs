//! Every filter alone, in pairs, and all three of the events together.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::budget::Cost;
use conformance_model::reading::{Page, events, holds_charge, names_invoice, text_at};
use conformance_model::recording::{Exchange, List, PageAsk, Purpose};
use conformance_model::words::Mode;

use crate::probes::lists::{LONG, RECORDS_MIN, filtered};
use crate::session::Session;

/// Links that are followed only because they seem to have lost something.
const DOUBTS_MAX: u32 = 3;
const ALONE: u32 = 7;
const TOGETHER: u32 = 5;
const ALL: u32 = ALONE + TOGETHER + DOUBTS_MAX;
/// Either key may turn out to show what there is to filter by.
pub(crate) const COST: Cost = Cost { live: ALL, test: ALL, other: 0, total: ALL };

pub(crate) async fn probe(session: &mut Session<'_>) {
    let mut doubts = 0;
    if let Some((mode, kind)) = telling_type(session) {
        let (first, _) = session.page(mode, filtered(List::Events, &[("type", &kind)], 2)).await;
        session.follow(mode, &first, "next").await;
    }
    let wanted: [(List, &str, &[&str]); 5] = [
        (List::Events, "charge", &["charge", "code"]),
        (List::Events, "invoice", &["invoice", "code"]),
        (List::Charges, "status", &["charge", "status"]),
        (List::Invoices, "status", &["invoice", "status"]),
        (List::Charges, "payment_link", &["charge", "payment_link"]),
    ];
    for (list, name, path) in wanted {
        let value = |event: &Value| Some(vec![(name, text_at(event, path)?.to_owned())]);
        if let Some((mode, filters)) = first(session, |events| events.iter().find_map(value)) {
            ask(session, mode, list, &filters, &mut doubts).await;
        }
    }
    let together: [(List, Pick); 5] = [
        (List::Events, |events| type_of(events, "charge")),
        (List::Events, |events| type_of(events, "invoice")),
        (List::Events, |events| charge_and_invoice(events).map(|(_, pair)| pair)),
        (List::Events, |events| {
            let (kind, mut pair) = charge_and_invoice(events)?;
            pair.insert(0, ("type", kind));
            Some(pair)
        }),
        (List::Charges, status_and_link),
    ];
    for (list, pick) in together {
        if let Some((mode, filters)) = first(session, pick) {
            ask(session, mode, list, &filters, &mut doubts).await;
        }
    }
}

type Filters = Vec<(&'static str, String)>;
type Pick = fn(&[Value]) -> Option<Filters>;

/// What the events of either mode offer, the test mode's first.
fn first<F>(session: &Session<'_>, pick: impl Fn(&[Value]) -> Option<F>) -> Option<(Mode, F)> {
    let modes = Mode::BOTH.into_iter().rev();
    modes.map(|mode| (mode, pick(&events(&session.recording, mode)))).find_map(|(mode, it)| Some((mode, it?)))
}

async fn ask(
    session: &mut Session<'_>,
    mode: Mode,
    list: List,
    filters: &[(&str, String)],
    doubts: &mut u32,
) {
    let filters: Vec<_> = filters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let (exchange, page) = session.page(mode, filtered(list, &filters, LONG)).await;
    // A link that names all that was asked for is believed; what another one keeps, only its page shows.
    if *doubts < DOUBTS_MAX
        && let Some(rel) = page.and_then(|page| doubtful(&exchange, &page))
    {
        *doubts += 1;
        session.follow(mode, &exchange, rel).await;
    }
}

/// The first link whose query lacks something of what was asked for.
fn doubtful(exchange: &Exchange, page: &Page) -> Option<&'static str> {
    let Purpose::Page(PageAsk { filters, per_page, .. }) = &exchange.purpose else { return None };
    let mut wanted = filters.clone();
    wanted.extend(per_page.map(|size| ("per_page".to_owned(), size.to_string())));
    ["next", "last", "first", "prev"].into_iter().find(|rel| {
        page.link(rel).filter(|link| !link.is_empty()).is_some_and(|link| {
            let query = link.split_once('?').map_or("", |(_, query)| query);
            let query = query.split('#').next().unwrap_or_default();
            let pairs: Vec<(String, String)> =
                url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            !wanted.iter().all(|pair| pairs.contains(pair))
        })
    })
}

/// A type that needs two pages of two, and that not every event has.
fn telling_type(session: &Session<'_>) -> Option<(Mode, String)> {
    let mut candidates = Vec::new();
    for mode in [Mode::Test, Mode::Live] {
        let events = events(&session.recording, mode);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for kind in events.iter().filter_map(|event: &Value| text_at(event, &["type"])) {
            *counts.entry(kind).or_default() += 1;
        }
        for (kind, count) in counts {
            let telling = count as u64 >= RECORDS_MIN && count < events.len();
            candidates.push((!telling, mode, kind.to_owned()));
        }
    }
    candidates.sort_by_key(|(dull, ..)| *dull);
    candidates.into_iter().next().map(|(_, mode, kind)| (mode, kind))
}

/// The type of one event and its charge or invoice, of which there are events of other types too.
fn type_of(events: &[Value], object: &'static str) -> Option<Filters> {
    let code = |event: &Value| text_at(event, &[object, "code"]).map(str::to_owned);
    let kind = |event: &Value| text_at(event, &["type"]).map(str::to_owned);
    let pair = |event: &Value| Some(vec![("type", kind(event)?), (object, code(event)?)]);
    let telling = |event: &&Value| {
        events.iter().any(|it| code(it).is_some() && code(it) == code(event) && kind(it) != kind(event))
    };
    events.iter().filter(telling).find_map(pair).or_else(|| events.iter().find_map(pair))
}

/// A charge and an invoice, of each other if there are such, and the type of an event of that charge.
fn charge_and_invoice(events: &[Value]) -> Option<(String, Filters)> {
    let charges = events.iter().filter_map(|event| Some((event, text_at(event, &["charge", "code"])?)));
    let invoices: Vec<_> =
        events.iter().filter_map(|event| Some((event, text_at(event, &["invoice", "code"])?))).collect();
    let mut pairs = Vec::new();
    for (event, charge) in charges {
        let kin = invoices
            .iter()
            .find(|(of, invoice)| holds_charge(of, charge) || names_invoice(event, invoice))
            .map(|(_, invoice)| *invoice);
        let invoice = kin.or(invoices.first().map(|(_, invoice)| *invoice));
        pairs.push((kin.is_none(), event, charge, invoice?));
    }
    pairs.sort_by_key(|(strangers, ..)| *strangers);
    let (_, event, charge, invoice) = pairs.into_iter().next()?;
    let kind = text_at(event, &["type"])?.to_owned();
    Some((kind, vec![("charge", charge.to_owned()), ("invoice", invoice.to_owned())]))
}

fn status_and_link(events: &[Value]) -> Option<Filters> {
    events.iter().find_map(|event| {
        let status = text_at(event, &["charge", "status"])?.to_owned();
        Some(vec![
            ("status", status),
            ("payment_link", text_at(event, &["charge", "payment_link"])?.to_owned()),
        ])
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, charge: &Value, invoice: &Value) -> Value {
        json!({ "type": kind, "charge": charge, "invoice": invoice })
    }

    #[track_caller]
    fn check(found: Option<Filters>, expected: &str) {
        let found = found.unwrap_or_default();
        let shown: Vec<_> = found.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(shown.join("&"), expected);
    }

    #[test]
    fn what_is_combined_tells_one_filter_from_the_other() {
        let lone = event("charge.created", &json!({ "code": "c1" }), &Value::Null);
        let paid = event("charge.paid", &json!({ "code": "c2", "invoice": "i2" }), &Value::Null);
        let created = event("charge.created", &json!({ "code": "c2", "invoice": "i2" }), &Value::Null);
        let bill = event("invoice.created", &Value::Null, &json!({ "code": "i1" }));
        let settled =
            event("invoice.paid", &Value::Null, &json!({ "code": "i2", "charges": [{ "code": "c2" }] }));
        let events = [lone.clone(), bill.clone(), paid, created, settled];
        check(type_of(&events, "charge"), "type=charge.paid&charge=c2");
        check(type_of(&events, "invoice"), "type=invoice.created&invoice=i1");
        check(charge_and_invoice(&events).map(|it| it.1), "charge=c2&invoice=i2");
        check(charge_and_invoice(&[lone.clone(), bill]).map(|it| it.1), "charge=c1&invoice=i1");
        check(charge_and_invoice(&[lone]).map(|it| it.1), "");
    }
}
