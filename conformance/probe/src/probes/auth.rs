//! Requests that must be refused. Only a few, because servers lock out clients that guess keys.

use conformance_model::budget::Cost;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::recording::{Caller, Exchange, Forgery, List, Purpose, Side};

use crate::probes::isolation::events_with_most_data;
use crate::probes::objects::object_path;
use crate::request_paths::event_path;
use crate::session::Session;

/// Includes a valid request after a refusal, and HEAD requests.
pub(crate) const COST: Cost = Cost { live: 0, test: 3, other: 30, total: 33 };
pub(crate) const REVOKED_COST: Cost = Cost { live: 0, test: 0, other: PATHS, total: PATHS };
/// The number of paths: the account, the three lists and a single event.
const PATHS: u32 = 5;

const FORGERIES: [Forgery; 17] = [
    Forgery::EmptyBearer,
    Forgery::OtherScheme,
    Forgery::BasicScheme,
    Forgery::BasicUser,
    Forgery::NoScheme,
    Forgery::Unknown,
    Forgery::LastCharacter,
    Forgery::LetterCase,
    Forgery::Appended,
    Forgery::WordAppended,
    Forgery::ListAppended,
    Forgery::Encoded,
    Forgery::Shortened,
    Forgery::OtherPrefix,
    Forgery::LiveKeyOtherPrefix,
    Forgery::UnknownLive,
    Forgery::FirstCharacter,
];
/// Unusual requests, which must get 401 without a key: one with an invalid parameter, and a later page of a
/// filtered list.
const QUERIES: [&str; 2] = ["/v1/events?per_page=0", "/v1/events?type=charge.created&per_page=2&page=2"];
/// A page that no other probe requests, so that no cache has it before.
const UNREAD_PAGE: &str = "/v1/events?per_page=4";
/// The seed of the nonexistent event, different from those of other probes.
const ABSENT_EVENT_SEED: u64 = 91;
const KEY: Caller = Caller::Own(Mode::Test);

/// Sends requests without a key and with invalid tokens, and requests that show whether a cache ignores the key.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let [live_secret, test_secret] =
        Mode::BOTH.map(|mode| session.plan.key(mode).secret_part(&session.plan.key_prefix));
    let has_letters = test_secret.bytes().any(|byte| byte.is_ascii_alphabetic());
    let have_same_secret = live_secret == test_secret;
    for path in paths(session) {
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, &path).await;
    }
    let mut unusual: Vec<_> = QUERIES.map(str::to_owned).to_vec();
    // Some frameworks look up the object before they check the key.
    unusual.extend(some_event(session).map(|id| event_path(&session.unused_id_like(&id, ABSENT_EVENT_SEED))));
    for path in unusual {
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, &path).await;
    }
    // A page for customers may show the same object without a key, under another path.
    if let Some(path) = served_object(session) {
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, &path).await;
    }
    // The forgeries alternate between all paths, because some services check the key separately on each path.
    let mut served = paths(session);
    served.retain(|path| is_served(session, path));
    for (index, forgery) in FORGERIES.into_iter().enumerate() {
        // A key without letters has no other letter case.
        if forgery == Forgery::LetterCase && !has_letters {
            continue;
        }
        // If both keys have the same secret, each of them with the other prefix is a valid key.
        if have_same_secret && matches!(forgery, Forgery::OtherPrefix | Forgery::LiveKeyOtherPrefix) {
            continue;
        }
        let path = served.get(index % served.len().max(1)).map_or(ACCOUNT_PATH, String::as_str);
        session.send_retrying_5xx(Caller::Forged(forgery), Purpose::Refusal, path).await;
    }
    if session.has_room() {
        // A cache that ignores the method would return the empty response of HEAD to a GET. A cache that ignores the
        // key would return a refusal to a client with a valid key, or the reverse.
        session.send(KEY, Purpose::Head, UNREAD_PAGE).await;
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, UNREAD_PAGE).await;
        session.send(KEY, Purpose::AfterRefusal, UNREAD_PAGE).await;
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, UNREAD_PAGE).await;
    }
    for path in [ACCOUNT_PATH, List::Events.path()] {
        session.send_retrying_5xx(Caller::NoKey, Purpose::Head, path).await;
    }
    // HEAD must distinguish own events from those of the other mode as GET does.
    let foreign = events_with_most_data(session, Mode::Live).into_iter().next();
    if let Some(id) = foreign.filter(|_| session.has_room()) {
        session.send(KEY, Purpose::Head, &event_path(&id)).await;
    }
}

/// Sends requests with the revoked key.
pub(crate) async fn probe_revoked(session: &mut Session<'_>) {
    for path in paths(session) {
        session.send_retrying_5xx(Caller::Revoked, Purpose::Refusal, &path).await;
    }
}

/// Returns `true` if a live or test key got a 200 response at a path.
fn is_served(session: &Session<'_>, path: &str) -> bool {
    let has_path = |target: &str| target.split('?').next().is_some_and(|base| base.ends_with(path));
    let is_own =
        |exchange: &Exchange| matches!(exchange.caller, Caller::Own(_)) && exchange.status() == Some(200);
    session.recording.find_last(|exchange| is_own(exchange) && has_path(&exchange.target)).is_some()
}

/// Returns the paths of the account, the lists and, if one is known, an event.
fn paths(session: &Session<'_>) -> Vec<String> {
    let mut paths = vec![ACCOUNT_PATH.to_owned()];
    paths.extend(List::ALL.map(|list| list.path().to_owned()));
    paths.extend(some_event(session).map(|id| event_path(&id)));
    paths
}

/// Returns the path of the first single object that the test key read.
fn served_object(session: &Session<'_>) -> Option<String> {
    let own = session.recording.exchanges.iter().filter(|exchange| exchange.caller == KEY);
    let mut served = own.filter(|exchange| exchange.status() == Some(200));
    served.find_map(|exchange| match &exchange.purpose {
        Purpose::Object { kind, id, side: Side::Own, .. } => object_path(session.plan, *kind, id),
        _ => None,
    })
}

/// Returns the id of an event, of the test mode if possible.
fn some_event(session: &Session<'_>) -> Option<String> {
    Mode::BOTH.into_iter().rev().flat_map(|mode| events_with_most_data(session, mode)).next()
}
