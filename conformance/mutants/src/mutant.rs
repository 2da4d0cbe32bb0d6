//! [`Mutant`]: a server with one fault, and a constructor for each kind of fault.

use serde_json::{Value, json};

use crate::fake::sender::{Delivery, DeliveryRequest, Sender};
use crate::fake::{EditableResponse, FakeServer, Request};

/// A server with one fault.
pub struct Mutant {
    /// The name of the mutant: its fault in a few words.
    pub name: &'static str,
    /// The statements that must fail, or warn if they are a `should`.
    pub violates: &'static [&'static str],
    /// The statements that may fail too.
    pub may_fail: &'static [&'static str],
    fault: Fault,
}

/// The fault of a mutant, by its kind.
enum Fault {
    /// A change of the server: its settings, records or behavior.
    Server(fn(&mut FakeServer)),
    /// A change of requests before they are processed.
    Requests(fn(&mut Request)),
    /// A change of responses with this status to matching requests.
    Responses { status: u16, matches: fn(&Request) -> bool, change: fn(&Request, &mut EditableResponse) },
    /// A change of every event, in lists and in responses with a single event.
    Events(fn(&mut Value)),
    /// A change of the bodies of deliveries before they are signed.
    DeliveryBodies(fn(&Delivery, &mut Value)),
    /// A change of the charge in deliveries of one type.
    DeliveredCharges { event_type: &'static str, change: fn(&mut Value) },
    /// A change of deliveries after they were signed.
    Deliveries(fn(&Delivery, &mut DeliveryRequest)),
}

type Statements = &'static [&'static str];

const fn mutant(name: &'static str, violates: Statements, fault: Fault) -> Mutant {
    Mutant { name, violates, may_fail: &[], fault }
}

/// Returns a mutant with a change of the server.
pub(crate) const fn server_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&mut FakeServer),
) -> Mutant {
    mutant(name, violates, Fault::Server(change))
}

/// Returns a mutant with a change of requests before they are processed.
pub(crate) const fn request_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&mut Request),
) -> Mutant {
    mutant(name, violates, Fault::Requests(change))
}

/// Returns a mutant with a change of responses with this status.
pub(crate) const fn response_fault(
    name: &'static str,
    violates: Statements,
    status: u16,
    change: fn(&Request, &mut EditableResponse),
) -> Mutant {
    mutant(name, violates, Fault::Responses { status, matches: |_| true, change })
}

/// Returns a mutant with a change of the responses with a list.
pub(crate) const fn list_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&Request, &mut EditableResponse),
) -> Mutant {
    response_fault(name, violates, 200, change).for_requests(Request::is_list)
}

/// Returns a mutant with a change of the responses with the list of charges.
pub(crate) const fn charge_list_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&Request, &mut EditableResponse),
) -> Mutant {
    response_fault(name, violates, 200, change).for_requests(|request| request.path == "/v1/charges")
}

/// Returns a mutant with a change of the responses with the account.
pub(crate) const fn account_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&Request, &mut EditableResponse),
) -> Mutant {
    response_fault(name, violates, 200, change).for_requests(|request| request.path == "/v1/account")
}

/// Returns a mutant with a change of the responses with a single event.
pub(crate) const fn single_event_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&Request, &mut EditableResponse),
) -> Mutant {
    response_fault(name, violates, 200, change).for_requests(Request::is_event)
}

/// Returns a mutant with a change of every event, in lists and in responses with a single event.
pub(crate) const fn event_fault(name: &'static str, violates: Statements, change: fn(&mut Value)) -> Mutant {
    mutant(name, violates, Fault::Events(change))
}

/// Returns a mutant with a change of the bodies of deliveries before they are signed.
pub(crate) const fn delivery_body_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&Delivery, &mut Value),
) -> Mutant {
    mutant(name, violates, Fault::DeliveryBodies(change))
}

/// Returns a mutant with a change of the charge in deliveries of one type.
pub(crate) const fn delivered_charge_fault(
    name: &'static str,
    violates: Statements,
    event_type: &'static str,
    change: fn(&mut Value),
) -> Mutant {
    mutant(name, violates, Fault::DeliveredCharges { event_type, change })
}

/// Returns a mutant with a change of deliveries after they were signed.
pub(crate) const fn delivery_fault(
    name: &'static str,
    violates: Statements,
    change: fn(&Delivery, &mut DeliveryRequest),
) -> Mutant {
    mutant(name, violates, Fault::Deliveries(change))
}

impl Mutant {
    /// Sets the statements that may fail too.
    pub(crate) const fn may_fail(self, statements: Statements) -> Mutant {
        Mutant { may_fail: statements, ..self }
    }

    /// Restricts the fault to the responses to matching requests.
    ///
    /// # Panics
    ///
    /// Panics if the fault is not a change of responses. In a constant, this is a compile error.
    pub(crate) const fn for_requests(self, matches: fn(&Request) -> bool) -> Mutant {
        let Fault::Responses { status, change, .. } = self.fault else { panic!("not a change of responses") };
        Mutant { fault: Fault::Responses { status, matches, change }, ..self }
    }

    /// Injects the fault into a correct server.
    pub fn inject(&self, server: &mut FakeServer) {
        match self.fault {
            Fault::Server(change) => change(server),
            Fault::Requests(change) => server.rewrite_requests(change),
            Fault::Responses { status, matches, change } => rewrite_matching(server, status, matches, change),
            Fault::Events(change) => server.rewrite_responses(move |request, response| {
                if response.status != 200 {
                    return;
                }
                if request.path == "/v1/events" {
                    response.body["data"].as_array_mut().into_iter().flatten().for_each(change);
                } else if request.is_event() {
                    change(&mut response.body["data"]);
                }
            }),
            Fault::DeliveryBodies(change) => {
                add_sender(server, |sender| sender.change_body = Box::new(change))
            }
            Fault::DeliveredCharges { event_type, change } => add_sender(server, |sender| {
                sender.change_body = Box::new(move |delivery, body| {
                    if delivery.event_type == event_type {
                        change(&mut body["data"]["charge"]);
                    }
                });
            }),
            Fault::Deliveries(change) => add_sender(server, |sender| sender.change_request = change),
        }
    }
}

/// Adds a webhook sender, changed by `change`, to a server.
pub(crate) fn add_sender(server: &mut FakeServer, change: impl FnOnce(&mut Sender)) {
    let mut sender = Sender::default();
    change(&mut sender);
    server.sender = Some(sender);
}

/// Makes a server change all responses with this status to matching requests.
pub fn rewrite_matching(
    server: &mut FakeServer,
    status: u16,
    matches: fn(&Request) -> bool,
    change: fn(&Request, &mut EditableResponse),
) {
    server.rewrite_responses(move |request, response| {
        if response.status == status && matches(request) {
            change(request, response);
        }
    });
}

/// Returns `true` if a response has an empty list.
pub(crate) fn is_empty_list(response: &EditableResponse) -> bool {
    response.body["data"].as_array().is_some_and(Vec::is_empty)
}

/// Removes a member of an object.
pub(crate) fn remove_member(object: &mut Value, name: &str) {
    object.as_object_mut().expect("the value is an object").remove(name);
}

/// Replaces each link of a page that is not null.
pub(crate) fn replace_links(response: &mut EditableResponse, change: impl Fn(&str) -> String) {
    for rel in ["first", "last", "prev", "next"] {
        if let Some(link) = response.body["links"][rel].as_str() {
            response.body["links"][rel] = json!(change(link));
        }
    }
}
