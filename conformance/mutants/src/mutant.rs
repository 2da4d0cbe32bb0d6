//! [`Mutant`], a server with one fault, and a constructor for each kind of fault.

use serde_json::{Value, json};

use crate::fake::sender::{Delivery, DeliveryRequest, Sender};
use crate::fake::{FakeServer, Reply, Request};

/// A server with one fault.
pub struct Mutant {
    /// The description of the fault.
    pub name: &'static str,
    /// The statements that must fail, or warn if they are a `should`.
    pub breaks: &'static [&'static str],
    /// The statements that may fail too.
    pub may_fail: &'static [&'static str],
    fault: Fault,
}

/// The fault of a mutant, by its kind.
enum Fault {
    /// A changed rule of the server.
    Rule(fn(&mut FakeServer)),
    /// A change of requests before they are processed.
    Requests(fn(&mut Request)),
    /// A change of responses with a status to matching requests.
    Replies { status: u16, fits: fn(&Request) -> bool, change: fn(&Request, &mut Reply) },
    /// A change of every event, in lists and single.
    Events(fn(&mut Value)),
    /// A change of the bodies of deliveries before they are signed.
    Bodies(fn(&Delivery, &mut Value)),
    /// A change of the charge in deliveries of one type.
    Charges { kind: &'static str, change: fn(&mut Value) },
    /// A change of deliveries after they were signed.
    Deliveries(fn(&Delivery, &mut DeliveryRequest)),
}

type Statements = &'static [&'static str];

const fn mutant(name: &'static str, breaks: Statements, fault: Fault) -> Mutant {
    Mutant { name, breaks, may_fail: &[], fault }
}

/// Returns a mutant with a changed rule of the server.
pub(crate) const fn rule(name: &'static str, breaks: Statements, change: fn(&mut FakeServer)) -> Mutant {
    mutant(name, breaks, Fault::Rule(change))
}

/// Returns a mutant with a change of requests before they are processed.
pub(crate) const fn requests(name: &'static str, breaks: Statements, change: fn(&mut Request)) -> Mutant {
    mutant(name, breaks, Fault::Requests(change))
}

/// Returns a mutant with a change of responses with a status.
pub(crate) const fn reply(
    name: &'static str,
    breaks: Statements,
    status: u16,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    mutant(name, breaks, Fault::Replies { status, fits: |_| true, change })
}

/// Returns a mutant with a change of lists.
pub(crate) const fn list(name: &'static str, breaks: Statements, change: fn(&Request, &mut Reply)) -> Mutant {
    reply(name, breaks, 200, change).for_requests(Request::is_list)
}

/// Returns a mutant with a change of the list of charges.
pub(crate) const fn charges(
    name: &'static str,
    breaks: Statements,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    reply(name, breaks, 200, change).for_requests(|request| request.path == "/v1/charges")
}

/// Returns a mutant with a change of the account.
pub(crate) const fn account(
    name: &'static str,
    breaks: Statements,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    reply(name, breaks, 200, change).for_requests(|request| request.path == "/v1/account")
}

/// Returns a mutant with a change of single events.
pub(crate) const fn single_event(
    name: &'static str,
    breaks: Statements,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    reply(name, breaks, 200, change).for_requests(Request::is_event)
}

/// Returns a mutant with a change of every event, in lists and single.
pub(crate) const fn events(name: &'static str, breaks: Statements, change: fn(&mut Value)) -> Mutant {
    mutant(name, breaks, Fault::Events(change))
}

/// Returns a mutant with a change of the bodies of deliveries.
pub(crate) const fn body(
    name: &'static str,
    breaks: Statements,
    change: fn(&Delivery, &mut Value),
) -> Mutant {
    mutant(name, breaks, Fault::Bodies(change))
}

/// Returns a mutant with a change of the charge in deliveries of one type.
pub(crate) const fn charge(
    name: &'static str,
    breaks: Statements,
    kind: &'static str,
    change: fn(&mut Value),
) -> Mutant {
    mutant(name, breaks, Fault::Charges { kind, change })
}

/// Returns a mutant with a change of deliveries after they were signed.
pub(crate) const fn delivery(
    name: &'static str,
    breaks: Statements,
    change: fn(&Delivery, &mut DeliveryRequest),
) -> Mutant {
    mutant(name, breaks, Fault::Deliveries(change))
}

impl Mutant {
    /// Adds statements that may fail too.
    pub(crate) const fn may_fail(self, may: Statements) -> Mutant {
        Mutant { may_fail: may, ..self }
    }

    /// Restricts the fault to matching requests.
    ///
    /// # Panics
    ///
    /// If the fault is not a change of responses; at compile time for a constant.
    pub(crate) const fn for_requests(self, fits: fn(&Request) -> bool) -> Mutant {
        let Fault::Replies { status, change, .. } = self.fault else { panic!("not a change of responses") };
        Mutant { fault: Fault::Replies { status, fits, change }, ..self }
    }

    /// Injects the fault into a correct server.
    pub fn inject(&self, server: &mut FakeServer) {
        match self.fault {
            Fault::Rule(change) => change(server),
            Fault::Requests(change) => server.rewrite_requests(change),
            Fault::Replies { status, fits, change } => rewrite(server, status, fits, change),
            Fault::Events(change) => server.rewrite(move |request, reply| {
                if reply.status != 200 {
                } else if request.path == "/v1/events" {
                    reply.body["data"].as_array_mut().into_iter().flatten().for_each(change);
                } else if request.is_event() {
                    change(&mut reply.body["data"]);
                }
            }),
            Fault::Bodies(change) => add_sender(server, |sender| sender.change_body = Box::new(change)),
            Fault::Charges { kind, change } => add_sender(server, |sender| {
                sender.change_body = Box::new(move |delivery, body| {
                    if delivery.kind == kind {
                        change(&mut body["data"]["charge"]);
                    }
                });
            }),
            Fault::Deliveries(change) => add_sender(server, |sender| sender.change_request = change),
        }
    }
}

/// Adds a webhook sender to a server, with a change.
pub(crate) fn add_sender(server: &mut FakeServer, change: impl FnOnce(&mut Sender)) {
    let mut sender = Sender::default();
    change(&mut sender);
    server.sender = Some(sender);
}

/// Changes all responses with a status to matching requests.
pub fn rewrite(
    server: &mut FakeServer,
    status: u16,
    fits: fn(&Request) -> bool,
    change: fn(&Request, &mut Reply),
) {
    server.rewrite(move |request, reply| {
        if reply.status == status && fits(request) {
            change(request, reply);
        }
    });
}

/// Returns `true` if a list has no records.
pub(crate) fn is_empty_list(reply: &Reply) -> bool {
    reply.body["data"].as_array().is_some_and(Vec::is_empty)
}

/// Removes a member.
pub(crate) fn remove(holder: &mut Value, name: &str) {
    holder.as_object_mut().expect("an object").remove(name);
}

/// Replaces the links of a page.
pub(crate) fn each_link(reply: &mut Reply, write: impl Fn(&str) -> String) {
    for rel in ["first", "last", "prev", "next"] {
        if let Some(link) = reply.body["links"][rel].as_str() {
            reply.body["links"][rel] = json!(write(link));
        }
    }
}
