//! Injects a fault into responses: those of a recording, or those of a server.

use std::collections::BTreeMap;

use conformance_model::deliveries::Delivery;
use conformance_model::mode::Mode;
use conformance_model::raw_bytes::RawBytes;
use conformance_model::recording::{Answer, Caller, Ending, Exchange, List, Purpose, Recording, Side};
use serde_json::Value;
use url::form_urlencoded;

use crate::fault::{Change, Fault};
use crate::injection_point::{EventView, InjectionPoint, PageCoordinates};
use crate::reply::Reply;

/// A request, and the owner of the requested object. A fault may be injected into its response.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRequest<'a> {
    /// The caller.
    pub caller: Caller,
    /// The path below the base address.
    pub path: &'a str,
    /// The parameters, each once.
    pub query: &'a BTreeMap<String, String>,
    /// The owner of the requested object or of the filter's value, if known.
    pub side: Option<Side>,
}

impl Fault {
    /// Injects the fault into a response, if it affects the request.
    pub fn inject(&self, seen: &ObservedRequest<'_>, reply: &mut Reply) {
        if !self.affects(seen, reply) {
            return;
        }
        match &self.change {
            Change::Reply(change) => change(reply),
            Change::Object(change) => each_object(self.point, &mut reply.body, |object| change(object)),
            Change::Header(..) => {}
        }
    }

    fn affects(&self, seen: &ObservedRequest<'_>, reply: &Reply) -> bool {
        let own = |mode: Option<Mode>| match seen.caller {
            Caller::Own(of) => mode.is_none_or(|mode| mode == of),
            Caller::Second => mode.is_none_or(|mode| mode == Mode::Test),
            _ => false,
        };
        let list = List::ALL.into_iter().find(|list| list.path() == seen.path);
        let is_event = seen.path.starts_with("/v1/events/");
        let is_own = own(self.mode);
        let is_served = is_own && reply.status == 200;
        let on = |path: Option<&str>| {
            path.is_none_or(
                |path| if path.ends_with('/') { seen.path.starts_with(path) } else { seen.path == path },
            )
        };
        match self.point {
            InjectionPoint::Account => is_served && seen.path == "/v1/account",
            InjectionPoint::Page(wanted) => {
                is_served && list == Some(wanted) && self.position.matches(page_coordinates(seen, reply))
            }
            InjectionPoint::Row(wanted) => is_served && list == Some(wanted),
            InjectionPoint::Event(EventView::Listed)
            | InjectionPoint::Charge(EventView::Listed)
            | InjectionPoint::Invoice(EventView::Listed) => is_served && list == Some(List::Events),
            InjectionPoint::Event(EventView::Single)
            | InjectionPoint::Charge(EventView::Single)
            | InjectionPoint::Invoice(EventView::Single) => is_served && is_event,
            InjectionPoint::Unauthorized(caller, path) => seen.caller == caller && on(path),
            InjectionPoint::Absent => {
                is_own && is_event && matches!(seen.side, Some(Side::AbsentBefore | Side::AbsentAfter))
            }
            InjectionPoint::Foreign => is_own && is_event && seen.side == Some(Side::Foreign),
            InjectionPoint::ForeignObject(kind) => {
                let path = format!("/v1/{}s/", kind.as_str());
                is_own && seen.path.starts_with(&path) && seen.side == Some(Side::Foreign)
            }
            InjectionPoint::ForeignFilter(name) => {
                is_own && seen.query.contains_key(name) && seen.side == Some(Side::Foreign)
            }
            InjectionPoint::Filtered(name) => {
                is_served
                    && seen.query.contains_key(name)
                    && !matches!(seen.side, Some(side) if side != Side::Own)
            }
            InjectionPoint::TooMany(path) => reply.status == 429 && on(path),
            InjectionPoint::Delivery
            | InjectionPoint::DeliveryHeaders
            | InjectionPoint::DeliveredCharge
            | InjectionPoint::DeliveredInvoice => false,
        }
    }
}

fn page_coordinates(seen: &ObservedRequest<'_>, reply: &Reply) -> PageCoordinates {
    let meta = |name: &str| reply.body["meta"][name].as_u64();
    let number = |name: &str| seen.query.get(name).and_then(|text| text.parse().ok());
    PageCoordinates {
        number: number("page").or_else(|| meta("current_page")).unwrap_or(1),
        size: number("per_page"),
        last: meta("last_page").unwrap_or(1),
    }
}

/// Changes all objects of a body at an injection point.
fn each_object(place: InjectionPoint, body: &mut Value, mut change: impl FnMut(&mut Value)) {
    let member = match place {
        InjectionPoint::Charge(_) | InjectionPoint::DeliveredCharge => Some("charge"),
        InjectionPoint::Invoice(_) | InjectionPoint::DeliveredInvoice => Some("invoice"),
        _ => None,
    };
    let mut one = |holder: &mut Value| match member {
        None => change(holder),
        Some(name) => {
            if let Some(inner) = holder.get_mut(name).filter(|inner| inner.is_object()) {
                change(inner);
            }
        }
    };
    match place {
        InjectionPoint::Row(_)
        | InjectionPoint::Event(EventView::Listed)
        | InjectionPoint::Charge(EventView::Listed)
        | InjectionPoint::Invoice(EventView::Listed) => {
            body["data"].as_array_mut().into_iter().flatten().for_each(one);
        }
        InjectionPoint::Event(EventView::Single)
        | InjectionPoint::Charge(EventView::Single)
        | InjectionPoint::Invoice(EventView::Single) => {
            if let Some(event) = single_event(body) {
                one(event);
            }
        }
        InjectionPoint::DeliveredCharge | InjectionPoint::DeliveredInvoice => one(&mut body["data"]),
        _ => one(body),
    }
}

/// Returns the single event, bare or under any member.
fn single_event(body: &mut Value) -> Option<&mut Value> {
    let is_event = |value: &Value| value.get("id").is_some() && value.get("type").is_some();
    if is_event(body) {
        return Some(body);
    }
    body.as_object_mut()?.values_mut().find(|member| is_event(member))
}

/// The responses of a recording, parsed once for all faults.
pub(crate) struct ParsedReplies(Vec<ParsedReply>);

struct ParsedReply {
    /// The index of its exchange in the recording.
    at: usize,
    caller: Caller,
    path: String,
    query: BTreeMap<String, String>,
    side: Option<Side>,
    reply: Reply,
}

impl ParsedReplies {
    pub(crate) fn from_recording(recording: &Recording) -> ParsedReplies {
        let origin = recording.base.split_once("://").map_or(recording.base.as_str(), |(_, rest)| rest);
        let prefix = origin.find('/').map_or("", |at| origin[at..].trim_end_matches('/'));
        let read = |(at, exchange): (usize, &Exchange)| {
            let target = exchange.target.strip_prefix(prefix).unwrap_or(&exchange.target);
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let side = match &exchange.purpose {
                Purpose::Event { side, .. }
                | Purpose::Object { side, .. }
                | Purpose::DeliveredEvent { side, .. }
                | Purpose::Filter { side, .. } => Some(*side),
                _ => None,
            };
            Some(ParsedReply {
                at,
                caller: exchange.caller,
                path: path.to_owned(),
                query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
                side,
                reply: Reply::from_answer(exchange.answer()?),
            })
        };
        ParsedReplies(recording.exchanges.iter().enumerate().filter_map(read).collect())
    }

    /// Returns the responses that the fault changes, with the indexes of their exchanges.
    fn changed_answers(&self, fault: &Fault) -> Vec<(usize, Answer)> {
        let inject = |reading: &ParsedReply| {
            let ParsedReply { at, caller, path, query, side, reply } = reading;
            let seen = ObservedRequest { caller: *caller, path, query, side: *side };
            if !fault.affects(&seen, reply) {
                return None;
            }
            let mut changed = reply.clone();
            fault.inject(&seen, &mut changed);
            (changed != *reply).then(|| (*at, changed.into_answer()))
        };
        self.0.iter().filter_map(inject).collect()
    }
}

/// The changes of a fault in a recording. Applying them twice restores it.
pub(crate) struct InjectedChanges {
    endings: Vec<(usize, Ending)>,
    deliveries: Vec<(usize, Delivery)>,
}

impl InjectedChanges {
    pub(crate) fn compute(fault: &Fault, recording: &Recording, readings: &ParsedReplies) -> InjectedChanges {
        let answers = readings.changed_answers(fault).into_iter();
        let sent = recording
            .deliveries
            .iter()
            .flat_map(|delivery| delivery.received.iter().map(|sent| (sent, &delivery.header_prefix)));
        let changed = |(at, (sent, prefix)): (usize, (&Delivery, &String))| {
            let changed = changed_delivery(fault, prefix, sent)?;
            (changed != *sent).then_some((at, changed))
        };
        InjectedChanges {
            endings: answers.map(|(at, answer)| (at, Ending::Answered(answer))).collect(),
            deliveries: sent.enumerate().filter_map(changed).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.endings.is_empty() && self.deliveries.is_empty()
    }

    /// Swaps the changed parts with those of the recording.
    pub(crate) fn swap_with(&mut self, recording: &mut Recording) {
        for (at, ending) in &mut self.endings {
            std::mem::swap(ending, &mut recording.exchanges[*at].ending);
        }
        let mut received = recording.deliveries.as_mut().map(|delivery| &mut delivery.received);
        for (at, delivery) in &mut self.deliveries {
            if let Some(received) = &mut received {
                std::mem::swap(delivery, &mut received[*at]);
            }
        }
    }
}

fn changed_delivery(fault: &Fault, prefix: &str, sent: &Delivery) -> Option<Delivery> {
    let affects = matches!(
        fault.point,
        InjectionPoint::Delivery
            | InjectionPoint::DeliveryHeaders
            | InjectionPoint::DeliveredCharge
            | InjectionPoint::DeliveredInvoice
    );
    if !affects {
        return None;
    }
    let mut body: Value = serde_json::from_slice(&sent.body.0).ok()?;
    if fault.mode.is_some_and(|mode| body["mode"] != mode.as_str()) {
        return None;
    }
    let mut changed = sent.clone();
    match &fault.change {
        Change::Header(name, to) => {
            let name = name.replace("X-", &format!("{prefix}-"));
            changed.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(&name));
            changed.headers.extend(to.map(|to| (name, RawBytes(to.as_bytes().to_vec()))));
        }
        Change::Object(change) => {
            let before = body.clone();
            each_object(fault.point, &mut body, |object| change(object));
            if body != before {
                changed.body = RawBytes(body.to_string().into_bytes());
            }
        }
        Change::Reply(_) => {}
    }
    Some(changed)
}
