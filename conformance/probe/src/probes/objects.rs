//! Requests single charges, invoices and payment links, if the operator configured their paths. The key of each mode
//! requests an object of its own mode, one of the other mode, and nonexistent ones, as for events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::catalogue::FINAL_EVENT_TYPES;
use conformance_model::mode::Mode;
use conformance_model::reading::{events_before_deliveries, observed_ids, text_at};
use conformance_model::recording::{Caller, Exchange, ObjectKind, Purpose, Recording, Side};

use crate::plan::Plan;
use crate::probes::filter_values::FilterValues;
use crate::request_paths::percent_encode;
use crate::session::Session;

/// The number of comparisons of absent and foreign objects.
const ROUNDS: u8 = 2;
/// The most further own objects of a kind and mode, each with another status.
const OTHER_STATUSES_MAX: usize = 2;
/// The kinds of which an object is read at the start of a run and again at its end.
const WATCHED_KINDS: [ObjectKind; 2] = [ObjectKind::Charge, ObjectKind::Invoice];
/// The round number of these reads, different from those of comparisons.
const WATCHED_ROUND: u8 = 9;
const REQUESTS_PER_KIND: u32 =
    Mode::BOTH.len() as u32 * (1 + 3 * ROUNDS as u32 + 2 * OTHER_STATUSES_MAX as u32);

/// Returns the number of requests for single objects with both keys together, including those for a charge and an invoice
/// of the other account.
pub(crate) fn requests(plan: &Plan) -> u32 {
    let kinds = plan.paths.by_kind().iter().filter(|(_, path)| path.is_some()).count() as u32;
    let listed = [&plan.paths.charge, &plan.paths.invoice];
    let of_other_account = listed.into_iter().filter(|path| path.is_some()).count() as u32;
    let watched = listed.into_iter().filter(|path| path.is_some() && plan.webhooks.is_some()).count() as u32;
    kinds * REQUESTS_PER_KIND
        + if plan.other_account_key.is_some() { of_other_account } else { 0 }
        + watched * 2 * Mode::BOTH.len() as u32
}

/// Reads the newest charge and the newest invoice of each mode that has not ended, by the events that were read before the
/// deliveries.
pub(crate) async fn read_watched(session: &mut Session<'_>) {
    for mode in Mode::BOTH {
        for kind in WATCHED_KINDS {
            let events = events_before_deliveries(&session.recording, mode);
            let Some(code) = newest_open(&events, kind.json_name()) else { continue };
            request_watched(session, mode, kind, &code).await;
        }
    }
}

/// Reads the objects of [`read_watched`] again.
pub(super) async fn read_watched_again(session: &mut Session<'_>) {
    let watched = |exchange: &Exchange| match (&exchange.purpose, exchange.caller) {
        (Purpose::Object { kind, id, round: WATCHED_ROUND, .. }, Caller::Own(mode)) => {
            Some((mode, *kind, id.clone()))
        }
        _ => None,
    };
    let watched: Vec<_> = session.recording.exchanges.iter().filter_map(watched).collect();
    for (mode, kind, code) in watched {
        request_watched(session, mode, kind, &code).await;
    }
}

async fn request_watched(session: &mut Session<'_>, mode: Mode, kind: ObjectKind, code: &str) {
    if let Some(path) = object_path(session.plan, kind, code) {
        let purpose = Purpose::Object { kind, id: code.to_owned(), side: Side::Own, round: WATCHED_ROUND };
        session.send(Caller::Own(mode), purpose, &path).await;
    }
}

/// Returns the code of the newest object of a kind that has no event of [`FINAL_EVENT_TYPES`].
fn newest_open(events: &[&Value], member: &str) -> Option<String> {
    let code = |event: &&Value| text_at(event, &[member, "code"]).map(str::to_owned);
    let is_end =
        |event: &&&Value| text_at(event, &["type"]).is_some_and(|kind| FINAL_EVENT_TYPES.contains(&kind));
    let ended: BTreeSet<_> = events.iter().filter(is_end).filter_map(code).collect();
    events.iter().filter_map(code).find(|code| !code.is_empty() && !ended.contains(code))
}

/// Returns the path of a single object, if the operator configured one for its kind.
pub(super) fn object_path(plan: &Plan, kind: ObjectKind, id: &str) -> Option<String> {
    let paths = plan.paths.by_kind().into_iter();
    let path = paths.filter(|(path_kind, _)| *path_kind == kind).find_map(|(_, path)| path)?;
    Some(with_id(path, id))
}

/// Returns a configured path with an id in place of `{id}`.
fn with_id(path: &str, id: &str) -> String {
    path.replace("{id}", &percent_encode(id))
}

/// Requests an object of the other account with the own key of a mode, if the last read of an own object of that kind with
/// that key got 200. Otherwise the configured path may be wrong.
pub(super) async fn request_object_of_other_account(
    session: &mut Session<'_>,
    mode: Mode,
    kind: ObjectKind,
    code: &str,
) {
    let caller = Caller::Own(mode);
    let is_own_object = |exchange: &Exchange| {
        exchange.caller == caller
            && matches!(exchange.purpose, Purpose::Object { kind: requested, side: Side::Own, .. } if requested == kind)
    };
    let own = session.recording.find_last(is_own_object);
    let Some(path) = object_path(session.plan, kind, code) else { return };
    if own.is_some_and(|exchange| exchange.status() == Some(200)) {
        let purpose = Purpose::Object { kind, id: code.to_owned(), side: Side::OtherAccount, round: 1 };
        session.send(caller, purpose, &path).await;
    }
}

/// Returns the order of the requests of a round: absent, foreign, absent, or in every second round foreign, absent,
/// foreign.
pub(super) fn round_order(round: u8) -> Vec<Side> {
    match round % 2 {
        1 => vec![Side::AbsentBefore, Side::Foreign, Side::AbsentAfter],
        _ => vec![Side::Foreign, Side::AbsentAfter, Side::Foreign],
    }
}

/// Sends the requests for each configured kind.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let plan = session.plan;
    for (kind, path) in plan.paths.by_kind() {
        let Some(path) = path else { continue };
        for mode in Mode::BOTH {
            let code = |mode| {
                let observed = observed_ids(&session.recording, mode);
                match kind {
                    ObjectKind::Charge => observed.charge,
                    ObjectKind::Invoice => observed.invoice,
                    ObjectKind::PaymentLink => observed.payment_link,
                }
            };
            if let (Some(own), Some(foreign)) = (code(mode), code(mode.other())) {
                let requests = ObjectRequests { kind, path, mode };
                for code in codes_with_other_statuses(&session.recording, mode, kind, &own) {
                    let found = requests.request_object(session, &code, Side::Own, 1).await;
                    // Only a repeated 404 counts.
                    if found.status() == Some(404) {
                        requests.request_object(session, &code, Side::Own, 1).await;
                    }
                }
                requests.send_rounds(session, &own, &foreign).await;
            }
        }
    }
}

/// Returns the oldest listed object of some statuses other than that of `known`: a server may hide objects in some
/// statuses. The two modes begin with different statuses.
fn codes_with_other_statuses(
    recording: &Recording,
    mode: Mode,
    kind: ObjectKind,
    known: &str,
) -> Vec<String> {
    let Some(list) = kind.list() else { return Vec::new() };
    let available = FilterValues::from_recording(recording, mode, |_| true);
    let mut oldest = BTreeMap::new();
    for row in available.rows(list) {
        if let (Some(code), Some(status)) = (text_at(row, &["code"]), text_at(row, &["status"])) {
            oldest.insert(status, code);
        }
    }
    let row_of_known = available.rows(list).iter().find(|row| text_at(row, &["code"]) == Some(known));
    if let Some(status) = row_of_known.and_then(|row| text_at(row, &["status"])) {
        oldest.remove(status);
    }
    let mut codes: Vec<_> = oldest.into_values().map(str::to_owned).collect();
    if mode == Mode::Test {
        codes.reverse();
    }
    codes.truncate(OTHER_STATUSES_MAX);
    codes
}

/// The requests for single objects of a kind with the key of a mode.
struct ObjectRequests<'a> {
    kind: ObjectKind,
    path: &'a str,
    mode: Mode,
}

impl ObjectRequests<'_> {
    /// Sends two rounds in different order, to distinguish a real difference from an effect of a load balancer.
    async fn send_rounds(&self, session: &mut Session<'_>, own: &str, foreign: &str) {
        for round in 1..=ROUNDS {
            if round == ROUNDS {
                // Sent between the rounds, so that an effect on every second response affects different requests in
                // each round.
                self.request_object(session, own, Side::Own, 1).await;
            }
            // Each request for a nonexistent id has an id of its own; a round has three requests.
            for (variant, side) in (u64::from(round) * 4..).zip(round_order(round)) {
                let absent = session.unused_id_like(foreign, variant);
                let id = if side == Side::Foreign { foreign } else { &absent };
                self.request_object(session, id, side, round).await;
            }
        }
    }

    async fn request_object(&self, session: &mut Session<'_>, id: &str, side: Side, round: u8) -> Exchange {
        let path = with_id(self.path, id);
        let purpose = Purpose::Object { kind: self.kind, id: id.to_owned(), side, round };
        session.send(Caller::Own(self.mode), purpose, &path).await
    }
}
