//! Injects a fault into the responses of a server, or into the responses and deliveries of a recording.

use std::collections::BTreeMap;

use conformance_model::deliveries::Delivery;
use conformance_model::mode::Mode;
use conformance_model::raw_bytes::RawBytes;
use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, List, Purpose, ReceivedResponse, Recording, Side,
};
use serde_json::Value;
use url::form_urlencoded;

use crate::editable_response::EditableResponse;
use crate::fault::{Change, Fault};
use crate::injection_point::{EventView, InjectionPoint, PageCoordinates};

/// A request into whose response a fault may be injected.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRequest<'a> {
    /// The caller.
    pub caller: Caller,
    /// The path below the base address.
    pub path: &'a str,
    /// The query parameters by name.
    pub query: &'a BTreeMap<String, String>,
    /// For a request of a single object or with a filter: whether the id in it belongs to an object of the caller, of
    /// the other mode or of another account, or to none. `None` for other requests, or if this is unknown.
    pub side: Option<Side>,
}

impl Fault {
    /// Injects the fault into a response, if it affects the request.
    pub fn inject(&self, request: &ObservedRequest<'_>, response: &mut EditableResponse) {
        if !self.affects(request, response) {
            return;
        }
        match &self.change {
            Change::Response(change) => change(response),
            Change::Object(change) => {
                change_each_object(self.point, &mut response.body, |object| change(object))
            }
            Change::Header(..) => {}
        }
    }

    /// Returns `true` if the fault occurs in the response to this request.
    fn affects(&self, request: &ObservedRequest<'_>, response: &EditableResponse) -> bool {
        let key_mode = match request.caller {
            Caller::Own(mode) => Some(mode),
            // The second key is of the same account, in test mode.
            Caller::SecondKey => Some(Mode::Test),
            _ => None,
        };
        // The key is valid, of the tested account, and in a mode that the fault affects.
        let has_affected_key =
            key_mode.is_some_and(|key_mode| self.mode.is_none_or(|affected_mode| affected_mode == key_mode));
        let list = List::ALL.into_iter().find(|list| list.path() == request.path);
        let is_single_event = request.path.starts_with("/v1/events/");
        let is_served = has_affected_key && response.status == 200;
        // A path that ends with `/` stands for all paths below it.
        let is_at = |path: Option<&str>| {
            path.is_none_or(|path| {
                if path.ends_with('/') { request.path.starts_with(path) } else { request.path == path }
            })
        };
        match self.point {
            InjectionPoint::Account => is_served && request.path == "/v1/account",
            InjectionPoint::Page(affected_list) => {
                is_served
                    && list == Some(affected_list)
                    && self.position.matches(page_coordinates(request, response))
            }
            InjectionPoint::Row(affected_list) => is_served && list == Some(affected_list),
            InjectionPoint::Event(EventView::Listed)
            | InjectionPoint::Charge(EventView::Listed)
            | InjectionPoint::Invoice(EventView::Listed) => is_served && list == Some(List::Events),
            InjectionPoint::Event(EventView::Single)
            | InjectionPoint::Charge(EventView::Single)
            | InjectionPoint::Invoice(EventView::Single) => is_served && is_single_event,
            InjectionPoint::Unauthorized(caller, path) => request.caller == caller && is_at(path),
            InjectionPoint::AbsentEvent => {
                has_affected_key
                    && is_single_event
                    && matches!(request.side, Some(Side::AbsentBefore | Side::AbsentAfter))
            }
            InjectionPoint::ForeignEvent => {
                has_affected_key && is_single_event && request.side == Some(Side::Foreign)
            }
            InjectionPoint::ForeignObject(kind) => {
                let path = format!("/v1/{}s/", kind.as_str());
                has_affected_key && request.path.starts_with(&path) && request.side == Some(Side::Foreign)
            }
            InjectionPoint::ForeignFilter(name) => {
                has_affected_key && request.query.contains_key(name) && request.side == Some(Side::Foreign)
            }
            InjectionPoint::Filtered(name) => {
                is_served
                    && request.query.contains_key(name)
                    && request.side.is_none_or(|side| side == Side::Own)
            }
            InjectionPoint::RateLimited(path) => response.status == 429 && is_at(path),
            InjectionPoint::Delivery
            | InjectionPoint::DeliveryHeaders
            | InjectionPoint::DeliveredCharge
            | InjectionPoint::DeliveredInvoice => false,
        }
    }
}

/// Returns the coordinates of a page: its number from the request or else from the response, its size from the request
/// only, and the number of the last page from the response.
fn page_coordinates(request: &ObservedRequest<'_>, response: &EditableResponse) -> PageCoordinates {
    let meta_number = |name: &str| response.body["meta"][name].as_u64();
    let parameter = |name: &str| request.query.get(name).and_then(|text| text.parse().ok());
    PageCoordinates {
        number: parameter("page").or_else(|| meta_number("current_page")).unwrap_or(1),
        size: parameter("per_page"),
        last: meta_number("last_page").unwrap_or(1),
    }
}

/// Changes all objects of a body that are at the injection point.
fn change_each_object(point: InjectionPoint, body: &mut Value, mut change: impl FnMut(&mut Value)) {
    // The member of an event or a delivery that is changed; `None` to change the whole object.
    let member = match point {
        InjectionPoint::Charge(_) | InjectionPoint::DeliveredCharge => Some("charge"),
        InjectionPoint::Invoice(_) | InjectionPoint::DeliveredInvoice => Some("invoice"),
        _ => None,
    };
    let mut change_member = |holder: &mut Value| match member {
        None => change(holder),
        Some(name) => {
            if let Some(object) = holder.get_mut(name).filter(|object| object.is_object()) {
                change(object);
            }
        }
    };
    match point {
        InjectionPoint::Row(_)
        | InjectionPoint::Event(EventView::Listed)
        | InjectionPoint::Charge(EventView::Listed)
        | InjectionPoint::Invoice(EventView::Listed) => {
            body["data"].as_array_mut().into_iter().flatten().for_each(change_member);
        }
        InjectionPoint::Event(EventView::Single)
        | InjectionPoint::Charge(EventView::Single)
        | InjectionPoint::Invoice(EventView::Single) => {
            if let Some(event) = single_event(body) {
                change_member(event);
            }
        }
        InjectionPoint::DeliveredCharge | InjectionPoint::DeliveredInvoice => {
            change_member(&mut body["data"])
        }
        _ => change_member(body),
    }
}

/// Returns the event in the response to a request of a single event: the body itself, or one of its members.
fn single_event(body: &mut Value) -> Option<&mut Value> {
    let is_event = |value: &Value| value.get("id").is_some() && value.get("type").is_some();
    if is_event(body) {
        return Some(body);
    }
    body.as_object_mut()?.values_mut().find(|member| is_event(member))
}

/// The responses of a recording, parsed once for all faults.
pub(crate) struct ParsedResponses(Vec<ParsedResponse>);

struct ParsedResponse {
    /// The index of the exchange in the recording.
    index: usize,
    caller: Caller,
    path: String,
    query: BTreeMap<String, String>,
    side: Option<Side>,
    response: EditableResponse,
}

impl ParsedResponses {
    /// Parses the responses of all exchanges that have one.
    pub(crate) fn from_recording(recording: &Recording) -> ParsedResponses {
        // The path of the base address, with which the targets of all requests begin.
        let after_scheme = recording.base.split_once("://").map_or(recording.base.as_str(), |(_, rest)| rest);
        let base_path =
            after_scheme.find('/').map_or("", |start| after_scheme[start..].trim_end_matches('/'));
        let parse = |(index, exchange): (usize, &Exchange)| {
            let target = exchange.target.strip_prefix(base_path).unwrap_or(&exchange.target);
            let (path, query) = target.split_once('?').unwrap_or((target, ""));
            let side = match &exchange.purpose {
                Purpose::Event { side, .. }
                | Purpose::Object { side, .. }
                | Purpose::DeliveredEvent { side, .. }
                | Purpose::Filter { side, .. } => Some(*side),
                _ => None,
            };
            Some(ParsedResponse {
                index,
                caller: exchange.caller,
                path: path.to_owned(),
                query: form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
                side,
                response: EditableResponse::from_recorded(exchange.response()?),
            })
        };
        ParsedResponses(recording.exchanges.iter().enumerate().filter_map(parse).collect())
    }

    /// Returns the responses that the fault changes, as changed, with the indexes of their exchanges.
    fn changed_responses(&self, fault: &Fault) -> Vec<(usize, ReceivedResponse)> {
        let change_response = |parsed: &ParsedResponse| {
            let ParsedResponse { index, caller, path, query, side, response } = parsed;
            let request = ObservedRequest { caller: *caller, path, query, side: *side };
            if !fault.affects(&request, response) {
                return None;
            }
            let mut changed = response.clone();
            fault.inject(&request, &mut changed);
            (changed != *response).then(|| (*index, changed.into_recorded()))
        };
        self.0.iter().filter_map(change_response).collect()
    }
}

/// The changes of a recording by a fault. The first swap injects the fault, the second restores the recording.
pub(crate) struct InjectedChanges {
    /// The changed outcomes, with the indexes of their exchanges.
    outcomes: Vec<(usize, ExchangeOutcome)>,
    /// The changed deliveries, with their indexes among the received ones.
    deliveries: Vec<(usize, Delivery)>,
}

impl InjectedChanges {
    pub(crate) fn compute(
        fault: &Fault,
        recording: &Recording,
        responses: &ParsedResponses,
    ) -> InjectedChanges {
        let changed_responses = responses.changed_responses(fault).into_iter();
        let received = recording.deliveries.iter().flat_map(|deliveries| {
            deliveries.received.iter().map(|delivery| (delivery, &deliveries.header_prefix))
        });
        let change = |(index, (delivery, prefix)): (usize, (&Delivery, &String))| {
            let changed = changed_delivery(fault, prefix, delivery)?;
            (changed != *delivery).then_some((index, changed))
        };
        InjectedChanges {
            outcomes: changed_responses
                .map(|(index, response)| (index, ExchangeOutcome::Answered(response)))
                .collect(),
            deliveries: received.enumerate().filter_map(change).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.outcomes.is_empty() && self.deliveries.is_empty()
    }

    /// Swaps the changed parts with those of the recording.
    pub(crate) fn swap_with(&mut self, recording: &mut Recording) {
        for (index, outcome) in &mut self.outcomes {
            std::mem::swap(outcome, &mut recording.exchanges[*index].outcome);
        }
        let mut received = recording.deliveries.as_mut().map(|deliveries| &mut deliveries.received);
        for (index, delivery) in &mut self.deliveries {
            if let Some(received) = &mut received {
                std::mem::swap(delivery, &mut received[*index]);
            }
        }
    }
}

/// Returns a delivery as a service with the fault would have sent it; `None` if the fault affects no deliveries, or
/// none in this mode, or if the body is not JSON.
fn changed_delivery(fault: &Fault, prefix: &str, delivery: &Delivery) -> Option<Delivery> {
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
    let mut body: Value = delivery.body.json()?.clone();
    if fault.mode.is_some_and(|mode| body["mode"] != mode.as_str()) {
        return None;
    }
    let mut changed = delivery.clone();
    match &fault.change {
        Change::Header(name, value) => {
            let name = name.replace("X-", &format!("{prefix}-"));
            changed.headers.retain(|(header, _)| !header.eq_ignore_ascii_case(&name));
            changed.headers.extend(value.map(|value| (name, RawBytes(value.as_bytes().to_vec()))));
        }
        Change::Object(change) => {
            let before = body.clone();
            change_each_object(fault.point, &mut body, |object| change(object));
            if body != before {
                changed.body = body.to_string().into_bytes().into();
            }
        }
        Change::Response(_) => {}
    }
    Some(changed)
}
