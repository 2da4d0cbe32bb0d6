//! Requests with a second key of the test key's account and mode: the account, the lists and one event.

use conformance_model::budget::Cost;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::recording::{Caller, List, Purpose, Side};

use crate::probes::positions::{LONG_PAGE_SIZE, sized_request};
use crate::request_paths::{event_path, page_path};
use crate::session::Session;

pub(crate) const COST: Cost = Cost { live: 0, test: 1, other: 5, total: 6 };

/// Sends these requests, and reads the events again with the test key.
pub(crate) async fn probe(session: &mut Session<'_>) {
    session.send(Caller::SecondKey, Purpose::Account, ACCOUNT_PATH).await;
    for list in List::ALL {
        let request = sized_request(list, None, LONG_PAGE_SIZE);
        let path = page_path(&request);
        session.send(Caller::SecondKey, Purpose::Page(request), &path).await;
    }
    let own_event = session.recording.find_last(|exchange| {
        let is_own = matches!(&exchange.purpose, Purpose::Event { side: Side::Own, .. });
        is_own && exchange.caller == Caller::Own(Mode::Test) && exchange.status() == Some(200)
    });
    if let Some(purpose @ Purpose::Event { id, .. }) =
        own_event.map(|exchange| exchange.purpose.clone()).as_ref()
    {
        session.send(Caller::SecondKey, purpose.clone(), &event_path(id)).await;
    }
    // Events may have been recorded since the test key read them.
    if session.has_room() {
        session.read_page(Mode::Test, sized_request(List::Events, None, LONG_PAGE_SIZE)).await;
    }
}
