//! A mutant, and a constructor for each place of a fault.

use serde_json::{Value, json};

use crate::fake::sender::{Delivery, DeliveryRequest, Sender};
use crate::fake::{FakeServer, Reply, Request};

/// A server with one fault.
pub struct Mutant {
    /// The fault, in words.
    pub name: &'static str,
    /// The statements that must fail, or warn where they are derived ones.
    pub breaks: &'static [&'static str],
    /// The statements that may fail too, because the fault reaches them.
    pub may: &'static [&'static str],
    fault: Fault,
}

/// The place of the fault.
enum Fault {
    /// In a rule of the server.
    Rule(fn(&mut FakeServer)),
    /// In how requests are read.
    Requests(fn(&mut Request)),
    /// In the answers of a status to the requests that fit.
    Replies { status: u16, fits: fn(&Request) -> bool, change: fn(&Request, &mut Reply) },
    /// In every event, in lists and alone.
    Events(fn(&mut Value)),
    /// In what deliveries say, before they are signed.
    Bodies(fn(&Delivery, &mut Value)),
    /// In the charge of deliveries of one type.
    Charges { kind: &'static str, change: fn(&mut Value) },
    /// In deliveries as they are sent, after they were signed.
    Deliveries(fn(&Delivery, &mut DeliveryRequest)),
}

type Statements = &'static [&'static str];

const fn mutant(name: &'static str, breaks: Statements, fault: Fault) -> Mutant {
    Mutant { name, breaks, may: &[], fault }
}

/// A fault in a rule of the server.
pub(crate) const fn rule(name: &'static str, breaks: Statements, change: fn(&mut FakeServer)) -> Mutant {
    mutant(name, breaks, Fault::Rule(change))
}

/// A fault in how requests are read.
pub(crate) const fn requests(name: &'static str, breaks: Statements, change: fn(&mut Request)) -> Mutant {
    mutant(name, breaks, Fault::Requests(change))
}

/// A fault in the answers of a status.
pub(crate) const fn reply(
    name: &'static str,
    breaks: Statements,
    status: u16,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    mutant(name, breaks, Fault::Replies { status, fits: |_| true, change })
}

/// A fault in the lists that are served.
pub(crate) const fn list(name: &'static str, breaks: Statements, change: fn(&Request, &mut Reply)) -> Mutant {
    reply(name, breaks, 200, change).at(Request::is_list)
}

/// A fault in the list of charges.
pub(crate) const fn charges(
    name: &'static str,
    breaks: Statements,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    reply(name, breaks, 200, change).at(|request| request.path == "/v1/charges")
}

/// A fault in the account.
pub(crate) const fn account(
    name: &'static str,
    breaks: Statements,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    reply(name, breaks, 200, change).at(|request| request.path == "/v1/account")
}

/// A fault in events that are asked for alone.
pub(crate) const fn single_event(
    name: &'static str,
    breaks: Statements,
    change: fn(&Request, &mut Reply),
) -> Mutant {
    reply(name, breaks, 200, change).at(Request::is_event)
}

/// A fault in every event, in lists and alone.
pub(crate) const fn events(name: &'static str, breaks: Statements, change: fn(&mut Value)) -> Mutant {
    mutant(name, breaks, Fault::Events(change))
}

/// A fault in what deliveries say.
pub(crate) const fn body(
    name: &'static str,
    breaks: Statements,
    change: fn(&Delivery, &mut Value),
) -> Mutant {
    mutant(name, breaks, Fault::Bodies(change))
}

/// A fault in the charge of deliveries of one type.
pub(crate) const fn charge(
    name: &'static str,
    breaks: Statements,
    kind: &'static str,
    change: fn(&mut Value),
) -> Mutant {
    mutant(name, breaks, Fault::Charges { kind, change })
}

/// A fault in deliveries as they are sent.
pub(crate) const fn delivery(
    name: &'static str,
    breaks: Statements,
    change: fn(&Delivery, &mut DeliveryRequest),
) -> Mutant {
    mutant(name, breaks, Fault::Deliveries(change))
}

impl Mutant {
    /// The same fault, where it also reaches these statements.
    pub(crate) const fn may(self, may: Statements) -> Mutant {
        Mutant { may, ..self }
    }

    /// The same fault, only in answers to the requests that fit.
    ///
    /// # Panics
    ///
    /// If the fault is not one in answers; at compile time, where the mutant is a constant.
    pub(crate) const fn at(self, fits: fn(&Request) -> bool) -> Mutant {
        let Fault::Replies { status, change, .. } = self.fault else { panic!("not a fault in answers") };
        Mutant { fault: Fault::Replies { status, fits, change }, ..self }
    }

    /// Puts the fault into an honest server.
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
            Fault::Bodies(change) => sends(server, |it| it.change_body = Box::new(change)),
            Fault::Charges { kind, change } => sends(server, |it| {
                it.change_body = Box::new(move |delivery, body| {
                    if delivery.kind == kind {
                        change(&mut body["data"]["charge"]);
                    }
                });
            }),
            Fault::Deliveries(change) => sends(server, |it| it.change_request = change),
        }
    }
}

/// A server that sends, with a change to how.
pub(crate) fn sends(server: &mut FakeServer, change: impl FnOnce(&mut Sender)) {
    let mut sender = Sender::default();
    change(&mut sender);
    server.sender = Some(sender);
}

/// Rewrites every answer of a status to a request that fits.
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
pub(crate) fn empty(reply: &Reply) -> bool {
    reply.body["data"].as_array().is_some_and(Vec::is_empty)
}

/// Takes a member away.
pub(crate) fn remove(holder: &mut Value, name: &str) {
    holder.as_object_mut().expect("an object").remove(name);
}

/// Writes the links of a page anew.
pub(crate) fn each_link(reply: &mut Reply, write: impl Fn(&str) -> String) {
    for rel in ["first", "last", "prev", "next"] {
        if let Some(link) = reply.body["links"][rel].as_str() {
            reply.body["links"][rel] = json!(write(link));
        }
    }
}
