//! The extended profile: what the reference server chose where the specification leaves a choice.
//!
//! Nothing here is asked of another implementation unless its operator wants it.

mod refusals;
mod shapes;

use serde_json::Value;

use super::Check;
use super::evidence::unanswered;
use crate::plan::Mode;
use crate::probes::Group;
use crate::reading::{Page, parse};
use crate::recording::{Answer, Caller, Exchange, List, PageAsk, Purpose, Recording};
use crate::verdict::{Halt, Held, Judged};

const NEEDS: &[Group] = &[Group::Account, Group::Lists, Group::Filters, Group::Isolation, Group::Extended];
const NEEDS_AUTH: &[Group] = &[Group::Account, Group::Auth, Group::Extended];
const NEEDS_BURST: &[Group] = &[Group::Account, Group::Burst];

pub(super) const CHECKS: &[Check] = &[
    Check { id: "extended.envelope", needs: NEEDS, judge: shapes::envelope },
    Check { id: "extended.objects", needs: NEEDS, judge: shapes::objects },
    Check { id: "extended.account_fields", needs: NEEDS, judge: shapes::account_fields },
    Check { id: "extended.charge_fields", needs: NEEDS, judge: shapes::charge_fields },
    Check { id: "extended.invoice_fields", needs: NEEDS, judge: shapes::invoice_fields },
    Check { id: "extended.states", needs: NEEDS, judge: shapes::states },
    Check { id: "extended.assets", needs: NEEDS, judge: shapes::assets },
    Check { id: "extended.details", needs: NEEDS, judge: shapes::details },
    Check { id: "extended.codes", needs: NEEDS, judge: shapes::codes },
    Check { id: "extended.invoice_numbers", needs: NEEDS, judge: shapes::invoice_numbers },
    Check { id: "extended.event_ids", needs: NEEDS, judge: shapes::event_ids },
    Check { id: "extended.amounts", needs: NEEDS, judge: shapes::amounts },
    Check { id: "extended.times", needs: NEEDS, judge: shapes::times },
    Check { id: "extended.meta", needs: NEEDS, judge: shapes::meta },
    Check { id: "extended.links", needs: NEEDS, judge: shapes::links },
    Check { id: "extended.single_objects", needs: NEEDS, judge: shapes::single_objects },
    Check { id: "extended.error_body", needs: NEEDS, judge: refusals::error_body },
    Check { id: "extended.challenge", needs: NEEDS_AUTH, judge: refusals::challenge },
    Check { id: "extended.page_values", needs: NEEDS, judge: refusals::page_values },
    Check { id: "extended.filter_values", needs: NEEDS, judge: refusals::filter_values },
    Check { id: "extended.anchors", needs: NEEDS, judge: refusals::anchors },
    Check { id: "extended.past_the_end", needs: NEEDS, judge: refusals::past_the_end },
    Check { id: "extended.foreign_filters", needs: NEEDS, judge: refusals::foreign_filters },
    Check { id: "extended.method", needs: NEEDS, judge: refusals::method },
    Check { id: "extended.unknown_path", needs: NEEDS, judge: refusals::unknown_path },
    Check { id: "extended.rate_headers", needs: NEEDS, judge: refusals::rate_headers },
    Check { id: "extended.retry_after", needs: NEEDS_BURST, judge: refusals::retry_after },
];

/// A thing to judge, and the exchange that shows it.
type Found = (u32, Value);

/// What is wrong with one thing: what was expected, and what it is.
type Flaw = Option<(String, String)>;

/// The statement holds if nothing is wrong with any of these, and there is at least one.
fn each(found: impl IntoIterator<Item = Found>, what: &str, flaw: impl Fn(&Value) -> Flaw) -> Judged {
    let mut judged = false;
    for (number, value) in found {
        if let Some((expected, actual)) = flaw(&value) {
            return Err(Halt::broken(number, expected, actual));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(none(what)) }
}

fn none(what: &str) -> Halt {
    Halt::unjudged(
        format!("the recording shows no {what}"),
        "let both modes have charges, invoices, payment links and events, then check again",
    )
}

/// Successful answers to the account's own keys, as JSON.
fn successes(recording: &Recording) -> impl Iterator<Item = (&Exchange, Value)> {
    recording.exchanges.iter().filter(|it| matches!(it.caller, Caller::Own(_))).filter_map(|it| {
        let answer = it.answer().filter(|answer| answer.status == 200)?;
        Some((it, parse(answer)?))
    })
}

/// The rows of a list, in every page of it.
fn rows(recording: &Recording, list: List) -> impl Iterator<Item = Found> {
    let of_list = move |it: &&Exchange| match &it.purpose {
        Purpose::Page(PageAsk { list: asked, .. }) | Purpose::Between { list: asked, .. } => *asked == list,
        _ => false,
    };
    let pages = recording.exchanges.iter().filter(of_list).filter_map(|it| Some((it.number, Page::of(it)?)));
    pages.flat_map(|(number, page)| {
        let rows = page.rows().cloned().unwrap_or_default();
        rows.into_iter().map(move |row| (number, row)).collect::<Vec<_>>()
    })
}

/// The charges or invoices of the lists and of the events.
fn subjects(recording: &Recording, list: List, member: &'static str) -> Vec<Found> {
    let inside = rows(recording, List::Events)
        .filter_map(|(number, event)| Some((number, event.get(member).filter(|it| it.is_object())?.clone())));
    rows(recording, list).chain(inside).collect()
}

fn accounts(recording: &Recording) -> impl Iterator<Item = Found> {
    Mode::BOTH.into_iter().filter_map(|mode| {
        let exchange = recording.account(mode)?;
        Some((exchange.number, parse(exchange.answer()?)?))
    })
}

/// The answer that shows a choice.
fn choice<'a>(recording: &'a Recording, wanted: &str) -> Result<(&'a Exchange, &'a Answer), Halt> {
    let asked = recording.last(|it| matches!(&it.purpose, Purpose::Choice { what } if what == wanted));
    let clear = asked.and_then(|it| Some((it, it.answer()?)));
    clear
        .filter(|(_, answer)| !matches!(answer.status, 429 | 502..=504))
        .ok_or_else(|| unanswered(asked, wanted))
}

/// A value as it stands in a report.
fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "missing".to_owned(), |it| crate::recording::shorten(&it.to_string()))
}
