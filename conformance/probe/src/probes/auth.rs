//! Requests that must be refused. Only a few, because servers lock out clients that guess keys.

use conformance_model::budget::Cost;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::recording::{Caller, Exchange, Forgery, List, Purpose};

use crate::probes::isolation::events_with_most_data;
use crate::session::{Session, event_path};

/// Includes a valid request after a refusal, and HEAD requests.
pub(crate) const COST: Cost = Cost { live: 0, test: 3, other: 26, total: 29 };
pub(crate) const REVOKED_COST: Cost = Cost { live: 0, test: 0, other: PATHS, total: PATHS };
/// The account, the three lists and a single event.
const PATHS: u32 = 5;

const FORGERIES: [Forgery; 14] = [
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
];
/// A request with an invalid parameter, which gets 401 without a key, and a later page of a filtered list.
const QUERIES: [&str; 2] = ["/v1/events?per_page=0", "/v1/events?type=charge.created&per_page=2&page=2"];
/// A page that no other probe requests, so that no cache has it before.
const UNREAD: &str = "/v1/events?per_page=4";
/// The seed of the nonexistent event, different from those of other probes.
const ABSENT: u64 = 91;
const KEY: Caller = Caller::Own(Mode::Test);

pub(crate) async fn probe(session: &mut Session<'_>) {
    let has_letters =
        session.plan.test_key.tail(&session.plan.key_prefix).bytes().any(|byte| byte.is_ascii_alphabetic());
    for path in paths(session) {
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, &path).await;
    }
    let mut unusual: Vec<_> = QUERIES.map(str::to_owned).to_vec();
    // Some frameworks look up the object before they check the key.
    unusual.extend(some_event(session).map(|id| event_path(&session.unused_id_like(&id, ABSENT))));
    for path in unusual {
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, &path).await;
    }
    // The forgeries alternate between all paths, because some services check the key separately on each path.
    let mut served = paths(session);
    served.retain(|path| is_served(session, path));
    for (turn, forgery) in FORGERIES.into_iter().enumerate() {
        if forgery == Forgery::LetterCase && !has_letters {
            continue;
        }
        let path = served.get(turn % served.len().max(1)).map_or(ACCOUNT_PATH, String::as_str);
        session.send_retrying_5xx(Caller::Forged(forgery), Purpose::Refusal, path).await;
    }
    if session.has_room() {
        // A cache that ignores the method would return the empty response of HEAD to a GET. A cache that ignores the
        // key would return a refusal to a client with a valid key, or the reverse.
        session.send(KEY, Purpose::Head, UNREAD).await;
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, UNREAD).await;
        session.send(KEY, Purpose::AfterRefusal, UNREAD).await;
        session.send_retrying_5xx(Caller::NoKey, Purpose::Refusal, UNREAD).await;
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

pub(crate) async fn probe_revoked(session: &mut Session<'_>) {
    for path in paths(session) {
        session.send_retrying_5xx(Caller::Revoked, Purpose::Refusal, &path).await;
    }
}

fn is_served(session: &Session<'_>, path: &str) -> bool {
    let is_at = |target: &str| target.split('?').next().is_some_and(|base| base.ends_with(path));
    let is_own =
        |exchange: &Exchange| matches!(exchange.caller, Caller::Own(_)) && exchange.status() == Some(200);
    session.recording.find_last(|exchange| is_own(exchange) && is_at(&exchange.target)).is_some()
}

/// Returns the paths that are known to exist.
fn paths(session: &Session<'_>) -> Vec<String> {
    let mut paths = vec![ACCOUNT_PATH.to_owned()];
    paths.extend(List::ALL.map(|list| list.path().to_owned()));
    paths.extend(some_event(session).map(|id| event_path(&id)));
    paths
}

fn some_event(session: &Session<'_>) -> Option<String> {
    Mode::BOTH.into_iter().rev().flat_map(|mode| events_with_most_data(session, mode)).next()
}
