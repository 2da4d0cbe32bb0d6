//! Chapter "filters": what a filter lets through, and what it counts.

use serde_json::Value;

use super::Check;
use super::evidence::{Sheet, long, moved, sheets};
use crate::probes::Group;
use crate::reading::text_at;
use crate::recording::{List, Recording};
use crate::verdict::{Halt, Held, Judged};

const NEEDS: &[Group] = &[Group::Account, Group::Lists];

pub(super) const CHECKS: &[Check] = &[
    Check { id: "filters.type", needs: NEEDS, judge: |it| events(it, "type") },
    Check { id: "filters.charge", needs: NEEDS, judge: |it| events(it, "charge") },
    Check { id: "filters.invoice", needs: NEEDS, judge: |it| events(it, "invoice") },
    Check { id: "filters.total", needs: NEEDS, judge: total },
    Check { id: "filters.status", needs: NEEDS, judge: status },
    Check { id: "filters.payment_link", needs: NEEDS, judge: payment_link },
];

/// Whether an event is of that type, charge or invoice. `wide` also takes the charge events of an
/// invoice, and the invoice events of a charge: both readings are honest.
fn fits(event: &Value, name: &str, value: &str, wide: bool) -> bool {
    let is = |path: &[&str]| text_at(event, path) == Some(value);
    let holds_charge = |event: &Value| {
        let charges = event.get("invoice").and_then(|it| it.get("charges")).and_then(Value::as_array);
        charges.into_iter().flatten().any(|charge| text_at(charge, &["code"]) == Some(value))
    };
    match name {
        "type" => is(&["type"]),
        "charge" => is(&["charge", "code"]) || (wide && holds_charge(event)),
        _ => {
            is(&["invoice", "code"])
                || (wide && (is(&["charge", "invoice"]) || is(&["charge", "invoice", "code"])))
        }
    }
}

fn filtered<'s, 'a>(sheets: &'s [Sheet<'a>], list: List, name: &str) -> Vec<(&'s str, &'s Sheet<'a>)> {
    let by_name = |it: &'s Sheet<'a>| {
        let (filter, value) = it.ask.filter.as_ref()?;
        let wanted = it.ask.list == list && it.ask.link.is_none() && filter == name;
        wanted.then_some((value.as_str(), it))
    };
    sheets.iter().filter_map(by_name).collect()
}

fn nothing_to_name(what: &str) -> Halt {
    Halt::unjudged(
        format!("no event shows a {what} to filter by, or the filtered list was not served"),
        "open a charge, an invoice and a payment link with the test key's account, then check again",
    )
}

fn events(recording: &Recording, name: &str) -> Judged {
    let sheets = sheets(recording);
    let found = filtered(&sheets, List::Events, name);
    for (value, sheet) in &found {
        if let Some(row) = sheet.rows().iter().find(|row| !fits(row, name, value, true)) {
            let id = text_at(row, &["id"]).unwrap_or("without an id");
            let expected = format!("only events of {name} {value}");
            return Err(Halt::broken(sheet.number(), expected, format!("event {id} is not one")));
        }
        if sheet.page.rows().is_some_and(Vec::is_empty) {
            let expected = format!("the events of {name} {value}, which the whole list shows");
            return Err(Halt::broken(sheet.number(), expected, "an empty list"));
        }
    }
    if found.is_empty() { Err(nothing_to_name(name)) } else { Ok(Held::Plainly) }
}

fn total(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let mut judged = false;
    for sheet in sheets.iter().filter(|it| it.ask.link.is_none()) {
        let (Some((name, value)), Some(told)) = (&sheet.ask.filter, sheet.page.meta("total")) else {
            continue;
        };
        let Some(counts) = counts(&sheets, sheet, name, value) else { continue };
        if !counts.contains(&told) {
            let expected = format!("meta.total {} for {name} {value}", counts[0]);
            return Err(Halt::broken(sheet.number(), expected, format!("meta.total {told}")));
        }
        judged |= sheet.ask.list == List::Events;
    }
    if judged {
        return Ok(Held::Plainly);
    }
    Err(Halt::unjudged(
        "no filtered list could be counted in a list of 100 events or fewer",
        "check again with an account of 3 to 100 events, while nothing is created",
    ))
}

/// What `total` may be, if that can be counted.
fn counts(sheets: &[Sheet<'_>], sheet: &Sheet<'_>, name: &str, value: &str) -> Option<Vec<u64>> {
    if sheet.ask.list == List::Events {
        let whole = long(sheets, List::Events, sheet.mode)
            .filter(|it| it.page.meta("total") == Some(it.rows().len() as u64))
            .filter(|_| !moved(sheets, List::Events, sheet.mode))?;
        let count = |wide| whole.rows().iter().filter(|row| fits(row, name, value, wide)).count() as u64;
        return Some(vec![count(false), count(true)]);
    }
    // Items of the other lists are open. But a page that has room left shows all there is.
    let (rows, size) = (sheet.page.rows()?.len() as u64, sheet.page.meta("per_page")?);
    (sheet.ask.page.is_none() && rows < size).then(|| vec![rows])
}

fn status(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let found =
        [filtered(&sheets, List::Charges, "status"), filtered(&sheets, List::Invoices, "status")].concat();
    let shown = |row: &Value| text_at(row, &["status"]).map(str::to_owned);
    as_far_as_shown(&found, "status", shown)
}

fn payment_link(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let found = filtered(&sheets, List::Charges, "payment_link");
    // The link was learnt from an event of a charge that has it, and no charge goes away.
    let empty = |it: &&(&str, &Sheet<'_>)| it.1.page.rows().is_some_and(Vec::is_empty);
    if let Some((value, sheet)) = found.iter().find(empty) {
        let expected = format!("the charges of payment_link {value}, which the events show");
        return Err(Halt::broken(sheet.number(), expected, "an empty list"));
    }
    let shown = |row: &Value| match row.get("payment_link")? {
        Value::Null => Some("null".to_owned()),
        it => it.as_str().or_else(|| text_at(it, &["code"])).map(str::to_owned),
    };
    as_far_as_shown(&found, "payment_link", shown)
}

/// The items of these lists are open: a row that does not show the value proves nothing.
fn as_far_as_shown(
    found: &[(&str, &Sheet<'_>)],
    name: &str,
    shown: impl Fn(&Value) -> Option<String>,
) -> Judged {
    let mut judged = false;
    for (value, sheet) in found {
        for told in sheet.rows().iter().filter_map(&shown) {
            if told != *value {
                return Err(Halt::broken(
                    sheet.number(),
                    format!("only {name} {value}"),
                    format!("{name} {told}"),
                ));
            }
            judged = true;
        }
    }
    match (judged, found.is_empty()) {
        (true, _) => Ok(Held::Plainly),
        (false, true) => Err(nothing_to_name(name)),
        (false, false) => Err(Halt::Inapplicable(format!("the items of the list show no {name}"))),
    }
}
