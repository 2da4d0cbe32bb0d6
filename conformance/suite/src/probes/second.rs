//! A second key of the test key's account and mode: the same account, and the same events.

use crate::budget::Cost;
use crate::probes::lists::{LONG, sized};
use crate::probes::session::path_of;
use crate::probes::{Session, account};
use crate::recording::{Caller, List, Purpose};

pub(crate) const COST: Cost = Cost { live: 0, test: 0, other: 2, total: 2 };

pub(crate) async fn probe(session: &mut Session<'_>) {
    session.ask(Caller::Second, Purpose::Account, account::PATH).await;
    let events = sized(List::Events, None, LONG);
    let path = path_of(&events);
    session.ask(Caller::Second, Purpose::Page(events), &path).await;
}
