//! Absent, foreign, absent: the same question three times, of which only the middle one names
//! something that exists in the other mode.

use conformance_model::budget::Cost;
use conformance_model::reading::{Learnt, Page, first_event_id, learn, mode_told};
use conformance_model::recording::{Caller, Exchange, List, Purpose, Side};
use conformance_model::words::{ACCOUNT_PATH, Mode};

use crate::session::{Session, event_path};

pub(crate) const COST: Cost = Cost { live: 13, test: 13, other: 0, total: 22 };
pub(crate) const OTHER_COST: Cost = Cost { live: 1, test: 1, other: 2, total: 3 };

pub(crate) async fn probe(session: &mut Session<'_>) {
    for mode in Mode::BOTH {
        if let Some(id) = own_event(session, mode) {
            ask_event(session, mode, &id, Side::Own, 1).await;
        }
    }
    for mode in Mode::BOTH {
        let foreign = learn(&session.recording, mode.other());
        if let Some(id) = foreign.event {
            trio(session, mode, &id).await;
        }
        if let Some(code) = foreign.charge {
            twins(session, mode, List::Events, "charge", &code).await;
        }
    }
    one_way(session, List::Events, "invoice", |learnt| learnt.invoice).await;
    one_way(session, List::Charges, "payment_link", |learnt| learnt.payment_link).await;
}

/// One direction is enough where both would cost more requests than they tell.
async fn one_way(
    session: &mut Session<'_>,
    list: List,
    filter: &str,
    pick: impl Fn(Learnt) -> Option<String>,
) {
    for mode in Mode::BOTH {
        if let Some(code) = pick(learn(&session.recording, mode.other())) {
            twins(session, mode, list, filter, &code).await;
            return;
        }
    }
}

/// A second round tells a lasting difference from the whims of a load balancer.
async fn trio(session: &mut Session<'_>, mode: Mode, foreign: &str) {
    for round in 1..=2 {
        let which = u64::from(round) * 2;
        let before = session.absent_twin(foreign, which);
        let after = session.absent_twin(foreign, which + 1);
        let first = ask_event(session, mode, &before, Side::AbsentBefore, round).await;
        let middle = ask_event(session, mode, foreign, Side::Foreign, round).await;
        ask_event(session, mode, &after, Side::AbsentAfter, round).await;
        if seems_alike(&first, &middle, &before, foreign) {
            return;
        }
    }
}

fn seems_alike(first: &Exchange, middle: &Exchange, absent: &str, foreign: &str) -> bool {
    match (first.answer(), middle.answer()) {
        (Some(a), Some(b)) => {
            a.status == b.status && a.headers == b.headers && a.body.replace(absent, foreign) == b.body
        }
        _ => true,
    }
}

pub(crate) async fn ask_event(
    session: &mut Session<'_>,
    mode: Mode,
    id: &str,
    side: Side,
    round: u8,
) -> Exchange {
    let purpose = Purpose::Event { id: id.to_owned(), side, round };
    session.ask(Caller::Own(mode), purpose, &event_path(id)).await
}

async fn twins(session: &mut Session<'_>, mode: Mode, list: List, filter: &str, foreign: &str) {
    let absent = session.absent_twin(foreign, 1);
    for (code, side) in [(absent.as_str(), Side::AbsentBefore), (foreign, Side::Foreign)] {
        let purpose = Purpose::Twin { list, filter: filter.to_owned(), side };
        let code: String = url::form_urlencoded::byte_serialize(code.as_bytes()).collect();
        let path = format!("{}?{filter}={code}", list.path());
        session.ask(Caller::Own(mode), purpose, &path).await;
    }
}

/// The other account: one of its events, asked for with our key of the same mode.
pub(crate) async fn probe_other(session: &mut Session<'_>) {
    let account = session.ask(Caller::OtherAccount, Purpose::Account, ACCOUNT_PATH).await;
    let told = mode_told(&account);
    let Some(mode) = Mode::BOTH.into_iter().find(|mode| told.as_deref() == Some(mode.word())) else { return };
    let path = format!("{}?per_page=1", List::Events.path());
    let events = session.ask(Caller::OtherAccount, Purpose::OtherEvents, &path).await;
    if let Some(id) = Page::of(&events).and_then(|page| first_event_id(page.rows()?)) {
        ask_event(session, mode, &id, Side::OtherAccount, 1).await;
    }
}

/// An event that the key of a mode may see.
pub(crate) fn own_event(session: &Session<'_>, mode: Mode) -> Option<String> {
    learn(&session.recording, mode).event
}
