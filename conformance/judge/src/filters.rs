//! Chapter "filters": what a filter lets through, and what it counts.

use std::collections::BTreeSet;

use serde_json::Value;

use conformance_model::group::Group;
use conformance_model::reading::{holds_charge, names_invoice, text_at};
use conformance_model::recording::{Exchange, List, PageAsk, Purpose, Recording};
use conformance_model::verdict::{CheckError, Held, Judged};

use super::evidence::{Sheet, long, moved, sheets};
use crate::check::Check;

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Filters];

pub(super) const CHECKS: &[Check] = &[
    Check::of("filters.type", NEEDS, |it| events(it, "type")),
    Check::of("filters.charge", NEEDS, |it| events(it, "charge")),
    Check::of("filters.invoice", NEEDS, |it| events(it, "invoice")),
    Check::of("filters.total", NEEDS, total),
    Check::of("filters.status", NEEDS, status),
    Check::of("filters.payment_link", NEEDS, payment_link),
    Check::of("filters.combined", NEEDS, combined),
];

/// How far a filter by charge or invoice reaches: to the events of that object only, or also to the events
/// of its invoice or its charges. Both readings are honest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Narrow,
    Wide,
}

const REACHES: [Reach; 2] = [Reach::Narrow, Reach::Wide];

/// Whether a row fits a filter. `None` where the row does not show it.
fn fits(list: List, row: &Value, name: &str, value: &str, reach: Reach) -> Option<bool> {
    let is = |path: &[&str]| text_at(row, path) == Some(value);
    let wide = reach == Reach::Wide;
    match (list, name) {
        (List::Events, "type") => Some(is(&["type"])),
        (List::Events, "charge") => Some(is(&["charge", "code"]) || (wide && holds_charge(row, value))),
        (List::Events, _) => Some(is(&["invoice", "code"]) || (wide && names_invoice(row, value))),
        (_, "payment_link") if row.get("payment_link").is_some_and(Value::is_null) => Some(false),
        (_, "payment_link") => shown_link(row).map(|told| told == value),
        (_, name) => text_at(row, &[name]).map(|told| told == value),
    }
}

fn shown_link(row: &Value) -> Option<&str> {
    text_at(row, &["payment_link"]).or_else(|| text_at(row, &["payment_link", "code"]))
}

/// A row that fits no reading of the filters of its page, and the filter that it breaks.
pub(super) fn stranger<'s>(sheet: &'s Sheet<'_>) -> Option<(&'s Value, &'s (String, String))> {
    sheet.rows().iter().find_map(|row| {
        let broken = |filter: &&(String, String)| {
            fits(sheet.ask.list, row, &filter.0, &filter.1, Reach::Wide) == Some(false)
        };
        Some((row, sheet.ask.filters.iter().find(broken)?))
    })
}

/// Whether a page has rows, all of which show what it was filtered by.
pub(super) fn shows_its_filters(sheet: &Sheet<'_>) -> bool {
    let shown = |row: &Value| {
        let told = |(name, value): &(String, String)| fits(sheet.ask.list, row, name, value, Reach::Wide);
        sheet.ask.filters.iter().all(|filter| told(filter).is_some())
    };
    !sheet.rows().is_empty() && sheet.rows().iter().all(shown)
}

/// How many rows of a list may be selected, by every honest reading. `None` where some row does not tell.
fn counts(list: List, rows: &[Value], filters: &[(String, String)]) -> Option<BTreeSet<u64>> {
    let mut found = BTreeSet::new();
    for charge in REACHES {
        for invoice in REACHES {
            let mut count = 0;
            for row in rows {
                let mut all = true;
                for (name, value) in filters {
                    let reach = if name == "charge" { charge } else { invoice };
                    all &= fits(list, row, name, value, reach)?;
                }
                count += u64::from(all);
            }
            found.insert(count);
        }
    }
    Some(found)
}

/// The whole list that a filtered page was cut from, if it was read whole and stood still.
fn whole<'s, 'a>(sheets: &'s [Sheet<'a>], sheet: &Sheet<'_>) -> Option<&'s Sheet<'a>> {
    long(sheets, sheet.ask.list, sheet.mode)
        .filter(|it| it.page.meta("total") == Some(it.rows().len() as u64))
        .filter(|_| !moved(sheets, sheet.ask.list, sheet.mode))
}

/// The pages that were asked for by this one filter and no other.
fn alone<'s, 'a>(sheets: &'s [Sheet<'a>], list: List, name: &str) -> Vec<(&'s str, &'s Sheet<'a>)> {
    let by_name = |it: &'s Sheet<'a>| match &it.ask.filters[..] {
        [(filter, value)] if it.ask.list == list && it.ask.link.is_none() && filter == name => {
            Some((value.as_str(), it))
        }
        _ => None,
    };
    sheets.iter().filter_map(by_name).collect()
}

fn nothing_to_name(what: &str) -> CheckError {
    CheckError::unjudged(
        format!("no event shows a {what} to filter by, or the filtered list was not served"),
        "open a charge, an invoice and a payment link with the test key's account, then check again",
    )
}

/// A refusal counts only beside a page of the whole list that was as long.
fn is_listed(recording: &Recording, refused: &Exchange) -> bool {
    let Purpose::Page(PageAsk { list: wanted, per_page: size, .. }) = &refused.purpose else { return false };
    recording.exchanges.iter().any(|it| {
        let plain = matches!(
            &it.purpose,
            Purpose::Page(PageAsk { list, filters, per_page, .. })
                if list == wanted && filters.is_empty() && per_page == size
        );
        plain && it.caller == refused.caller && it.status() == Some(200)
    })
}

/// A list is promised for every value that the API itself has shown: a refusal of it breaks the filter.
fn refused(recording: &Recording, list: List, name: &str) -> Result<(), CheckError> {
    let refusal = recording.exchanges.iter().find(|it| {
        let by_name = matches!(
            &it.purpose,
            Purpose::Page(PageAsk { list: asked, filters, link: None, .. })
                if *asked == list && matches!(&filters[..], [(filter, _)] if filter == name)
        );
        by_name
            && is_listed(recording, it)
            && it.status().is_some_and(|status| status > 200 && !matches!(status, 429 | 502..=504))
    });
    refusal.map_or(Ok(()), |it| Err(CheckError::broken(it.number, "200", it.summary())))
}

fn events(recording: &Recording, name: &str) -> Judged {
    refused(recording, List::Events, name)?;
    let sheets = sheets(recording);
    let found = alone(&sheets, List::Events, name);
    for (value, sheet) in &found {
        if let Some((row, _)) = stranger(sheet) {
            let id = text_at(row, &["id"]).unwrap_or("without an id");
            let expected = format!("only events of {name} {value}");
            return Err(CheckError::broken(sheet.number(), expected, format!("event {id} is not one")));
        }
        let known = |it: &Sheet<'_>| {
            let plain = it.mode == sheet.mode && it.ask.list == List::Events && it.ask.filters.is_empty();
            let fits = |row: &Value| fits(List::Events, row, name, value, Reach::Narrow) == Some(true);
            plain && it.rows().iter().any(fits)
        };
        if sheet.page.rows().is_some_and(Vec::is_empty) && sheets.iter().any(known) {
            let expected = format!("the events of {name} {value}, which the whole list shows");
            return Err(CheckError::broken(sheet.number(), expected, "an empty list"));
        }
    }
    if found.is_empty() { Err(nothing_to_name(name)) } else { Ok(Held::Plainly) }
}

/// What is wrong with the total of a filtered page: what was expected. `None` if nothing can be said.
fn total_of(sheets: &[Sheet<'_>], sheet: &Sheet<'_>) -> Option<Result<(), (String, String)>> {
    let told = sheet.page.meta("total")?;
    let shown = sheet.page.rows()?.len() as u64;
    let wrong = |expected: u64| Some(Err((format!("meta.total {expected}"), format!("meta.total {told}"))));
    let all_on_one_page =
        sheet.ask.page.unwrap_or(1) == 1 && sheet.ask.per_page.is_some_and(|size| shown < size);
    if all_on_one_page && told != shown {
        return wrong(shown);
    }
    let counted = whole(sheets, sheet).and_then(|it| counts(it.ask.list, it.rows(), &sheet.ask.filters));
    match counted {
        Some(counts) if !counts.contains(&told) => wrong(counts.first().copied().unwrap_or_default()),
        Some(_) => Some(Ok(())),
        None => all_on_one_page.then_some(Ok(())),
    }
}

fn total(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let mut judged = false;
    for sheet in sheets.iter().filter(|it| it.ask.link.is_none() && it.ask.filters.len() == 1) {
        // A page of strangers is the business of the filter's own statement.
        if sheet.ask.list != List::Events && stranger(sheet).is_some() {
            continue;
        }
        match total_of(&sheets, sheet) {
            None => {}
            Some(Ok(())) => judged = true,
            Some(Err((expected, actual))) => {
                let expected = format!("{expected} for {}", in_words(sheet));
                return Err(CheckError::broken(sheet.number(), expected, actual));
            }
        }
    }
    if judged {
        return Ok(Held::Plainly);
    }
    Err(CheckError::unjudged(
        "no filtered list could be counted in a list of 100 records or fewer",
        "check again with an account of 3 to 100 events, while nothing is created",
    ))
}

fn status(recording: &Recording) -> Judged {
    refused(recording, List::Charges, "status")?;
    refused(recording, List::Invoices, "status")?;
    let sheets = sheets(recording);
    let found = [alone(&sheets, List::Charges, "status"), alone(&sheets, List::Invoices, "status")].concat();
    as_far_as_shown(&found, "status")
}

fn payment_link(recording: &Recording) -> Judged {
    refused(recording, List::Charges, "payment_link")?;
    let sheets = sheets(recording);
    let found = alone(&sheets, List::Charges, "payment_link");
    // The link was learnt from an event of a charge that has it, and no charge goes away.
    let shown = |sheet: &Sheet<'_>, value: &str| {
        let of_mode = sheets.iter().filter(|it| it.mode == sheet.mode && it.ask.list == List::Events);
        of_mode.flat_map(Sheet::rows).any(|row| text_at(row, &["charge", "payment_link"]) == Some(value))
    };
    let empty = |it: &&(&str, &Sheet<'_>)| it.1.page.rows().is_some_and(Vec::is_empty) && shown(it.1, it.0);
    if let Some((value, sheet)) = found.iter().find(empty) {
        let expected = format!("the charges of payment_link {value}, which the events show");
        return Err(CheckError::broken(sheet.number(), expected, "an empty list"));
    }
    as_far_as_shown(&found, "payment_link")
}

/// The items of these lists are open: a row that does not show the value proves nothing.
fn as_far_as_shown(found: &[(&str, &Sheet<'_>)], name: &str) -> Judged {
    let mut judged = false;
    for (value, sheet) in found {
        if let Some((row, _)) = stranger(sheet) {
            let told = text_at(row, &[name]).or_else(|| shown_link(row)).unwrap_or_default();
            let expected = format!("only {name} {value}");
            return Err(CheckError::broken(sheet.number(), expected, format!("{name} {told}")));
        }
        judged |= shows_its_filters(sheet);
    }
    match (judged, found.is_empty()) {
        (true, _) => Ok(Held::Plainly),
        (false, true) => Err(nothing_to_name(name)),
        (false, false) => Err(CheckError::Inapplicable(format!("the items of the list show no {name}"))),
    }
}

fn in_words(sheet: &Sheet<'_>) -> String {
    let filters = sheet.ask.filters.iter().map(|(name, value)| format!("{name} {value}"));
    filters.collect::<Vec<_>>().join(" and ")
}

/// Filters given together. A list that is empty by one honest reading may also be answered otherwise.
fn combined(recording: &Recording) -> Judged {
    let sheets = sheets(recording);
    let mut judged = BTreeSet::new();
    for sheet in sheets.iter().filter(|it| it.ask.link.is_none() && it.ask.filters.len() > 1) {
        let names: Vec<_> = sheet.ask.filters.iter().map(|(name, _)| name.as_str()).collect();
        if let Some((row, (name, value))) = stranger(sheet) {
            let id = text_at(row, &["id"]).or_else(|| text_at(row, &["code"])).unwrap_or("without an id");
            let expected = format!("only records of {}", in_words(sheet));
            return Err(CheckError::broken(
                sheet.number(),
                expected,
                format!("{id} is not of {name} {value}"),
            ));
        }
        match total_of(&sheets, sheet) {
            Some(Err((expected, actual))) => {
                let expected = format!("{expected} for {}", in_words(sheet));
                return Err(CheckError::broken(sheet.number(), expected, actual));
            }
            Some(Ok(())) => drop(judged.insert(names.join("+"))),
            None if shows_its_filters(sheet) => drop(judged.insert(names.join("+"))),
            None => {}
        }
    }
    if judged.is_empty() {
        return Err(nothing_to_name("charge, an invoice or a payment link together with a type or a status"));
    }
    Ok(Held::With(format!("judged on {}", judged.into_iter().collect::<Vec<_>>().join(", "))))
}
