//! The consistency of deliveries with the events of the API.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use time::OffsetDateTime;

use conformance_model::mode::Mode;
use conformance_model::reading::{
    Page, cache_evidence, events_after_deliveries, listed_events, single_event, text_at,
};
use conformance_model::recording::{Caller, Exchange, List, Purpose, Recording, Side};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::NEEDS;
use super::clock::{
    check_between, check_events_after_creation, check_not_before_events, created_at, signed_at,
};
use super::delivered_copies::{
    DeliveredEvent, check_copies, check_expired_statuses, check_fiat_amounts, check_lasting_statuses,
    check_no_payment_time,
};
use super::objects::check_zone;
use crate::check::Check;
use crate::diff::{
    IMMUTABLE_FIELDS, LIST_DELAY_MAX, LISTED_KINDS, contradict_as_written, contradict_unless_rounded,
    first_contradiction,
};
use crate::evidence::{PageView, first_long_page_reads, joined_rows, readable_pages, recorded_at};
use crate::object_history::CHARGE_END_TYPES;
use crate::parsed_deliveries::{
    ParsedDelivery, ReceivedDeliveries, is_uuid, member_text, received_deliveries,
};

pub(crate) const CHECKS: &[Check] = &[
    Check::new("webhooks.event_id", NEEDS, judge_event_id),
    Check::new("webhooks.mode", NEEDS, judge_mode),
    Check::new("isolation.delivered", NEEDS, judge_isolated),
];

/// The fields that a payment changes. Events and deliveries show them with 18 decimals.
const RECEIVED: [(&str, &[&str]); 2] = [("charge", &["received_amount"]), ("invoice", &[])];

/// Returns the last request of a delivered event with the key of a mode.
fn event_request<'a>(recording: &'a Recording, id: &str, mode: Mode, side: Side) -> Option<&'a Exchange> {
    let purpose = Purpose::DeliveredEvent { id: id.to_owned(), side };
    recording.find_last(|exchange| exchange.caller == Caller::Own(mode) && exchange.purpose == purpose)
}

/// The minimum number of events that are not listed although newer ones are, for a violation.
const OVERTAKEN_MIN: usize = 2;
/// The minimum time from the delivery of such an event to the read of the list.
const OVERTAKEN_DELAY_MIN: Duration = Duration::from_secs(20);
/// The minimum time from such an event to the newest listed one.
const OVERTAKEN_BY_MIN: time::Duration = time::Duration::seconds(10);
/// The maximum time from a delivery that shows a transfer to the event of the transfer in the list.
const TRANSFER_EVENT_DELAY_MAX: Duration = Duration::from_secs(10);

/// The events that the API returned in both modes.
struct ApiEvents<'a> {
    recording: &'a Recording,
    listed_events: BTreeMap<Mode, BTreeMap<&'a str, &'a Value>>,
}

impl<'a> ApiEvents<'a> {
    fn from_recording(recording: &'a Recording) -> ApiEvents<'a> {
        let listed = Mode::BOTH.map(|mode| (mode, listed_events(recording, mode)));
        ApiEvents { recording, listed_events: listed.into() }
    }

    /// Returns an event as read with the key of `key_mode`, if it was read. `claimed`: the mode in its delivery.
    fn event(&self, id: &str, claimed: Mode, key_mode: Mode) -> Option<&'a Value> {
        let side = if claimed == key_mode { Side::Own } else { Side::Foreign };
        let single = event_request(self.recording, id, key_mode, side)
            .filter(|exchange| exchange.status() == Some(200));
        // The response may contain another event.
        let single = single.and_then(single_event).filter(|event| text_at(event, &["id"]) == Some(id));
        single.or_else(|| self.listed_events[&key_mode].get(id).copied())
    }

    /// Returns `true` if no listed event of the charge or invoice of an event is newer.
    fn is_newest(&self, event: &Value, member: &str, mode: Mode) -> bool {
        let code = |event: &Value| text_at(event, &[member, "code"]).map(str::to_owned);
        let mut of_object = self.listed_events[&mode].values().filter(|other| code(other) == code(event));
        of_object.all(|other| other["id"] == event["id"] || recorded_at(other) < recorded_at(event))
    }

    /// Returns the member and field of the first value in a delivered object (`sent`) that differs in the API, with the
    /// value in the API. Each change of a charge is recorded as an event, so the received amount must be equal if this
    /// event is the newest listed one of the charge and shows the same status.
    fn first_contradiction(
        &self,
        event: &Value,
        sent: &Value,
        mode: Mode,
    ) -> Option<(&'static str, &'static str, String)> {
        let is_same_state = |row: &Value| row["charge"]["status"] == sent["charge"]["status"];
        let listed = text_at(event, &["id"]).and_then(|id| self.listed_events[&mode].get(id).copied());
        let listed = listed.filter(|row| self.is_newest(row, "charge", mode) && is_same_state(row));
        let contradicts =
            if self.recording.exact_amounts { contradict_unless_rounded } else { contradict_as_written };
        let compared = [(Some(event), IMMUTABLE_FIELDS), (listed, RECEIVED)];
        compared.into_iter().find_map(|(shown, fields)| {
            let shown = shown?;
            let (member, name) = first_contradiction(shown, sent, &fields, contradicts)?;
            Some((member, name, shown[member][name].to_string()))
        })
    }

    /// Returns the id of a listed event that differs from an id in letter case only. Receivers compare ids as text.
    fn id_in_other_case(&self, id: &str, mode: Mode) -> Option<&'a str> {
        let mut listed = self.listed_events[&mode].keys();
        listed.find(|listed| **listed != id && listed.eq_ignore_ascii_case(id)).copied()
    }

    /// Returns the exchange in which the key of the mode in the delivery (`claimed`) got a 404 for the event.
    fn not_found_exchange(&self, id: &str, claimed: Mode) -> Option<&'a Exchange> {
        event_request(self.recording, id, claimed, Side::Own)
            .filter(|exchange| exchange.status() == Some(404))
    }
}

/// Returns the deliveries of events, not those of "Send test event", each with its event id and mode.
fn deliveries_with_event<'a>(
    parsed: &'a [ParsedDelivery<'a>],
) -> impl Iterator<Item = (&'a ParsedDelivery<'a>, &'a str, Mode)> {
    let with_event = parsed.iter().filter(|parsed| !parsed.is_test());
    with_event.filter_map(|parsed| Some((parsed, parsed.text(&["event_id"])?, parsed.mode()?)))
}

/// Returns the deliveries whose events the API shows, each with its event.
fn delivered_events<'a>(
    received: &'a ReceivedDeliveries<'_>,
    api: &ApiEvents<'a>,
) -> Vec<DeliveredEvent<'a>> {
    let shown = deliveries_with_event(&received.parsed);
    shown.filter_map(|(parsed, id, mode)| Some((parsed, api.event(id, mode, mode)?))).collect()
}

/// Judges the times of deliveries by those of their events: their time zone and order, and that they are not all equal;
/// webhooks.created_at judges their format.
pub(super) fn check_delivery_times(recording: &Recording) -> Result<(), CheckError> {
    let received = received_deliveries(recording)?;
    let delivered_events = delivered_events(&received, &ApiEvents::from_recording(recording));
    check_zone(&delivered_events)?;
    check_times_differ(&delivered_events)?;
    check_not_before_events(&delivered_events)?;
    check_events_after_creation(&delivered_events)?;
    check_between(&received, &delivered_events, "created_at", created_at)
}

/// Checks `t` of the deliveries by the times of their events.
pub(super) fn check_signing_times(recording: &Recording) -> Result<(), CheckError> {
    let received = received_deliveries(recording)?;
    let delivered_events = delivered_events(&received, &ApiEvents::from_recording(recording));
    check_between(&received, &delivered_events, "t", |parsed| signed_at(received.deliveries, parsed))
}

/// The minimum number of deliveries with one time, and the minimum time between their events, for a violation.
const EQUAL_TIMES_MIN: usize = 5;
const EVENTS_SPAN_MIN: time::Duration = time::Duration::seconds(10);

/// Checks that the deliveries of events with different times do not all have the same time, as one cut to the day.
fn check_times_differ(delivered_events: &[DeliveredEvent<'_>]) -> Result<(), CheckError> {
    let times: BTreeSet<_> =
        delivered_events.iter().map(|(parsed, _)| parsed.text(&["created_at"])).collect();
    let recorded = || delivered_events.iter().filter_map(|(_, event)| recorded_at(event));
    let span = recorded().max().zip(recorded().min()).map(|(newest, oldest)| newest - oldest);
    match (delivered_events.first(), times.first()) {
        (Some((first, _)), Some(Some(time)))
            if times.len() == 1
                && delivered_events.len() >= EQUAL_TIMES_MIN
                && span.is_some_and(|span| span >= EVENTS_SPAN_MIN) =>
        {
            let actual = format!("{time} in all {} deliveries", delivered_events.len());
            Err(first.violation("different times of deliveries whose events have different times", actual))
        }
        _ => Ok(()),
    }
}

fn judge_event_id(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = ApiEvents::from_recording(recording);
    check_delivered_events_are_listed(recording, &received, &api)?;
    check_events_of_new_objects(recording, &received, &api)?;
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut confirmed = 0;
    for (parsed, id, mode) in deliveries_with_event(&received.parsed) {
        if !is_uuid(id) {
            return Err(parsed.violation(
                "event_id as a UUID",
                member_text(parsed.body.unwrap_or(&Value::Null), "event_id"),
            ));
        }
        let kind = parsed.event_type().unwrap_or_default();
        if *types.entry(id).or_insert(kind) != kind {
            return Err(
                parsed.violation(format!("one type of event {id}"), format!("{} and {kind}", types[id]))
            );
        }
        let Some(event) = api.event(id, mode, mode) else {
            if let Some(listed) = api.id_in_other_case(id, mode) {
                return Err(
                    parsed.violation(format!("event_id {listed}, as in the API"), format!("event_id {id}"))
                );
            }
            let is_in_other_mode = api.event(id, mode, mode.other()).is_some();
            match api.not_found_exchange(id, mode) {
                // webhooks.mode judges an event that only the other key can read.
                Some(exchange) if !is_in_other_mode => {
                    return Err(CheckError::violation(
                        exchange.number,
                        format!("event {id} in the API"),
                        format!("{} ({})", exchange.summary(), parsed.name()),
                    ));
                }
                _ => continue,
            }
        };
        let sent = parsed.body.and_then(|body| body.get("data")).unwrap_or(&Value::Null);
        let difference = match (text_at(event, &["type"]), parsed.event_type()) {
            (Some(shown), Some(sent)) if shown != sent => {
                Some(("type".to_owned(), sent.to_owned(), shown.to_owned()))
            }
            _ => api.first_contradiction(event, sent, mode).map(|(member, name, shown)| {
                (format!("{member}.{name}"), sent[member][name].to_string(), shown)
            }),
        };
        if let Some((field, sent, shown)) = difference {
            let expected = format!("{field} {sent} of event {id} in the API");
            return Err(parsed.violation(expected, format!("{field} {shown}")));
        }
        confirmed += 1;
    }
    let delivered_events = delivered_events(&received, &api);
    check_copies(&delivered_events)?;
    if recording.exact_amounts {
        check_fiat_amounts(&delivered_events)?;
    }
    check_statuses(recording, &api, &delivered_events)?;
    check_unpaid_charges(&received, &api, &delivered_events)?;
    match confirmed {
        0 => Err(CheckError::unjudged(
            "the API returned none of the delivered events",
            "see events.single; then cause a delivery of an event that is new",
        )),
        count => Ok(CheckOutcome::HoldsWith(format!("{count} deliveries name events that the API shows"))),
    }
}

/// Checks with [`check_lasting_statuses`] the deliveries of events that are the newest of their objects.
fn check_statuses(
    recording: &Recording,
    api: &ApiEvents<'_>,
    delivered_events: &[DeliveredEvent<'_>],
) -> Result<(), CheckError> {
    let views = readable_pages(recording);
    let mut statuses = BTreeSet::new();
    for (list, member) in LISTED_KINDS {
        let in_events = views.iter().filter(|view| view.request.list == List::Events);
        let in_events =
            in_events.flat_map(PageView::rows).filter_map(|row| text_at(row, &[member, "status"]));
        let listed = views.iter().filter(|view| view.request.list == list);
        let listed = listed.flat_map(PageView::rows).filter_map(|row| text_at(row, &["status"]));
        let in_api = delivered_events.iter().filter_map(|(_, event)| text_at(event, &[member, "status"]));
        statuses.extend(in_events.chain(listed).chain(in_api).map(|status| (member, status.to_lowercase())));
    }
    let is_newest = |(parsed, event): &&DeliveredEvent<'_>| {
        let member = parsed.event_type().and_then(|kind| kind.split('.').next());
        member.zip(parsed.mode()).is_some_and(|(member, mode)| api.is_newest(event, member, mode))
    };
    let newest: Vec<_> = delivered_events.iter().filter(is_newest).cloned().collect();
    check_expired_statuses(delivered_events, &newest)?;
    check_lasting_statuses(&newest, &statuses)
}

/// Checks with [`check_no_payment_time`] the deliveries that arrived some time before the list of events was read.
fn check_unpaid_charges(
    received: &ReceivedDeliveries<'_>,
    api: &ApiEvents<'_>,
    delivered_events: &[DeliveredEvent<'_>],
) -> Result<(), CheckError> {
    let Some(listed_at) = received.deliveries.listed_at else { return Ok(()) };
    let listed = api.listed_events.values().flat_map(BTreeMap::values);
    let of_lists = listed.map(|row| (text_at(row, &["type"]), text_at(row, &["charge", "code"])));
    let of_deliveries = received
        .readable_deliveries()
        .map(|parsed| (parsed.event_type(), parsed.text(&["data", "charge", "code"])));
    let has_transfer = |kind: &str| kind != "charge.created" && !CHARGE_END_TYPES.contains(&kind);
    let with_transfer = of_lists.chain(of_deliveries).filter(|(kind, _)| kind.is_none_or(has_transfer));
    let other_codes = with_transfer.filter_map(|(_, code)| code.map(str::to_owned)).collect();
    let has_arrived =
        |(parsed, _): &&DeliveredEvent<'_>| parsed.delivery.arrived + TRANSFER_EVENT_DELAY_MAX <= listed_at;
    check_no_payment_time(delivered_events.iter().filter(has_arrived), &other_codes)
}

/// An event that was delivered, but is not in the list that was read last.
struct UnlistedEvent<'a> {
    /// The time from the arrival of the delivery to the read of the list.
    delay: Duration,
    list: &'a Exchange,
    recorded_at: OffsetDateTime,
}

/// Returns the event of a delivery if the list lacks it although it is newer than the oldest listed event.
fn unlisted_event<'a>(
    recording: &'a Recording,
    api: &ApiEvents<'_>,
    listed_at: Duration,
    (parsed, id, mode): (&ParsedDelivery<'_>, &str, Mode),
) -> Option<UnlistedEvent<'a>> {
    if api.listed_events[&mode].contains_key(id) {
        return None;
    }
    let list = recording
        .find_last(|exchange| {
            exchange.caller == Caller::Own(mode) && exchange.purpose == Purpose::AfterDeliveries
        })
        .filter(|exchange| exchange.response().is_some_and(|response| cache_evidence(response).is_none()))?;
    let rows = events_after_deliveries(recording, mode)?;
    let oldest = rows.into_iter().filter_map(recorded_at).min()?;
    let recorded_at = recorded_at(api.event(id, mode, mode)?)?;
    let delay = listed_at.saturating_sub(parsed.delivery.arrived);
    (recorded_at > oldest).then_some(UnlistedEvent { delay, list, recorded_at })
}

/// Returns `true` if one page of the list has older events and newer ones. Two pages may be from two replicas.
fn is_overtaken(recording: &Recording, mode: Mode, event_time: OffsetDateTime) -> bool {
    let reads = recording.exchanges.iter().filter(|exchange| {
        exchange.caller == Caller::Own(mode) && exchange.purpose == Purpose::AfterDeliveries
    });
    reads.filter_map(Page::from_exchange).any(|page| {
        let times: Vec<_> = page.rows().into_iter().flatten().filter_map(recorded_at).collect();
        times.iter().any(|time| *time < event_time)
            && times.iter().any(|time| *time - event_time >= OVERTAKEN_BY_MIN)
    })
}

/// Checks that an event which was delivered a minute or more before the last read of the list is listed, if it is newer
/// than the oldest listed one. If the list has newer events, several unlisted events are a violation after a shorter time.
fn check_delivered_events_are_listed(
    recording: &Recording,
    received: &ReceivedDeliveries<'_>,
    api: &ApiEvents<'_>,
) -> Result<(), CheckError> {
    let Some(listed_at) = received.deliveries.listed_at else { return Ok(()) };
    let mut overtaken: BTreeMap<&str, _> = BTreeMap::new();
    for (parsed, id, mode) in deliveries_with_event(&received.parsed) {
        let Some(unlisted) = unlisted_event(recording, api, listed_at, (parsed, id, mode)) else { continue };
        if unlisted.delay >= OVERTAKEN_DELAY_MIN && is_overtaken(recording, mode, unlisted.recorded_at) {
            overtaken.insert(id, mode);
        }
        let overtaken_count = overtaken.values().filter(|other| **other == mode).count();
        if unlisted.delay >= LIST_DELAY_MAX || overtaken_count >= OVERTAKEN_MIN {
            return Err(CheckError::violation(
                unlisted.list.number,
                format!(
                    "event {id} in the list of events, {} s after its delivery",
                    unlisted.delay.as_secs()
                ),
                format!("other events, but not this one ({})", parsed.name()),
            ));
        }
    }
    Ok(())
}

/// The minimum number of events that are not listed although the creations of their objects are, for a violation.
const UNLISTED_MIN: usize = 2;

/// Checks that the events of objects whose creation is in the last list of events are in this list too, a minute after their
/// delivery: they are newer than the creation. So the time of an event that no list shows need not be known.
fn check_events_of_new_objects(
    recording: &Recording,
    received: &ReceivedDeliveries<'_>,
    api: &ApiEvents<'_>,
) -> Result<(), CheckError> {
    let Some(listed_at) = received.deliveries.listed_at else { return Ok(()) };
    let views = readable_pages(recording);
    for mode in Mode::BOTH {
        let first = first_long_page_reads(&views, List::Events, mode)
            .rfind(|view| view.exchange.purpose == Purpose::AfterDeliveries)
            .filter(|view| {
                view.exchange.response().is_some_and(|response| cache_evidence(response).is_none())
            });
        let Some(first) = first else { continue };
        let rows = joined_rows(&views, first);
        let created: BTreeSet<_> = rows
            .iter()
            .filter_map(|joined| {
                let (member, _) = text_at(joined.row, &["type"])?.split_once(".created")?;
                Some((member, text_at(joined.row, &[member, "code"])?))
            })
            .collect();
        let is_unlisted = |parsed: &ParsedDelivery<'_>, id: &str| {
            let object =
                parsed.event_type().and_then(|kind| kind.split_once('.')).and_then(|(member, change)| {
                    Some((member, parsed.text(&["data", member, "code"])?)).filter(|_| change != "created")
                });
            object.is_some_and(|object| created.contains(&object))
                && listed_at.saturating_sub(parsed.delivery.arrived) >= LIST_DELAY_MAX
                && !api.listed_events[&mode].contains_key(id)
                && api.id_in_other_case(id, mode).is_none()
        };
        let unlisted: BTreeMap<_, _> = deliveries_with_event(&received.parsed)
            .filter(|(parsed, id, stated)| *stated == mode && is_unlisted(parsed, id))
            .map(|(parsed, id, _)| (id, parsed))
            .collect();
        if let Some((id, parsed)) = unlisted.last_key_value().filter(|_| unlisted.len() >= UNLISTED_MIN) {
            return Err(CheckError::violation(
                first.number(),
                format!("event {id} in the list of events, a minute after its delivery"),
                format!(
                    "the creation of its object, but not this event, nor {} more ({})",
                    unlisted.len() - 1,
                    parsed.name()
                ),
            ));
        }
    }
    Ok(())
}

fn judge_mode(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = ApiEvents::from_recording(recording);
    let mut judged = false;
    for parsed in received.readable_deliveries() {
        let Some(stated_text) = parsed.text(&["mode"]) else { continue };
        let Some(stated) = parsed.mode() else {
            return Err(parsed.violation(
                "mode live or test",
                format!("mode {}", conformance_model::recording::shorten(stated_text)),
            ));
        };
        judged = true;
        let Some(id) = parsed.text(&["event_id"]).filter(|_| !parsed.is_test()) else { continue };
        let other = stated.other();
        if api.event(id, stated, stated).is_none() && api.event(id, stated, other).is_some() {
            return Err(parsed.violation(
                format!("mode {}, in which the API shows event {id}", other.as_str()),
                format!("mode {}", stated.as_str()),
            ));
        }
    }
    if judged { Ok(CheckOutcome::Holds) } else { Err(crate::parsed_deliveries::no_delivery_with("a mode")) }
}

/// Judges the 404 for a delivered event with the key of the other mode. It counts only if the key of its mode gets 200.
fn judge_isolated(recording: &Recording) -> CheckResult {
    let received = received_deliveries(recording)?;
    let api = ApiEvents::from_recording(recording);
    let mut judged = false;
    for (parsed, id, mode) in deliveries_with_event(&received.parsed) {
        if api.event(id, mode, mode).is_none() {
            continue;
        }
        let other = mode.other();
        if api.listed_events[&other].contains_key(id) {
            return Err(parsed.violation(
                format!("event {id} in no list of {} mode", other.as_str()),
                format!("the {} key lists it", other.as_str()),
            ));
        }
        let is_readable = event_request(recording, id, mode, Side::Own)
            .is_some_and(|exchange| exchange.status() == Some(200));
        let Some(foreign) = event_request(recording, id, other, Side::Foreign).filter(|_| is_readable) else {
            continue;
        };
        match foreign.status() {
            Some(404) => judged = true,
            None | Some(429 | 502..=504) => {}
            Some(_) => {
                return Err(CheckError::violation(
                    foreign.number,
                    format!("404 for the {} key", other.as_str()),
                    format!("{} ({})", foreign.summary(), parsed.name()),
                ));
            }
        }
    }
    if judged {
        return Ok(CheckOutcome::Holds);
    }
    Err(CheckError::unjudged(
        "no delivered event could be read with the key of its mode",
        "see events.single; then cause a delivery of an event that is new",
    ))
}
