//! Requests with a second key of the test key's account and mode: the account and the events.

use conformance_model::budget::Cost;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::recording::{Caller, List, Purpose};

use crate::probes::positions::{LONG, sized};
use crate::session::{Session, path_of};

pub(crate) const COST: Cost = Cost { live: 0, test: 1, other: 2, total: 3 };

pub(crate) async fn probe(session: &mut Session<'_>) {
    session.ask(Caller::Second, Purpose::Account, ACCOUNT_PATH).await;
    let events = sized(List::Events, None, LONG);
    let path = path_of(&events);
    session.ask(Caller::Second, Purpose::Page(events.clone()), &path).await;
    // Events may have been recorded since the test key read them.
    if session.has_room() {
        session.page(Mode::Test, events).await;
    }
}
