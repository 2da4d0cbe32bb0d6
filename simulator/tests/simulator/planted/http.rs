//! Planted faults in requests and responses.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    asset::Asset,
    sighting::{Depth, Sighting},
    time::{Span, Timestamp},
};
use reference_wire::{Request, Response};
use serde_json::{Value, json};
use simulator::{
    invariant::Invariant::{
        Confirmations, Conservation, Edges, Filters, LateMoney, Limit, LockEnd, ModesApart, Once, Order,
        Paging, PaidMoney, SameObject, Tolerance,
    },
    model::money,
    tamper::{OwnedRequest, Tamper},
};

use super::{PlantedFault, demo_fault};

/// A tamper that changes responses.
struct ChangedResponses<F>(F);

impl<F: FnMut(Timestamp, &Request<'_>, &mut Response) + Send> Tamper for ChangedResponses<F> {
    fn on_response(&mut self, now: Timestamp, request: &Request<'_>, response: &mut Response) {
        (self.0)(now, request, response);
    }
}

pub(super) fn change_responses(
    change: impl FnMut(Timestamp, &Request<'_>, &mut Response) + Send + 'static,
) -> Box<dyn Tamper> {
    Box::new(ChangedResponses(change))
}

/// A tamper that changes requests.
struct ChangedRequests<F>(F);

impl<F: FnMut(&mut OwnedRequest) + Send> Tamper for ChangedRequests<F> {
    fn on_request(&mut self, _: Timestamp, request: &Request<'_>) -> Option<OwnedRequest> {
        let mut changed = OwnedRequest::from_request(request);
        (self.0)(&mut changed);
        Some(changed)
    }
}

fn change_requests(change: impl FnMut(&mut OwnedRequest) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(ChangedRequests(change))
}

/// Changes the records of a list. `change` gets the query and the records.
fn change_list(
    path: &'static str,
    change: impl Fn(&str, &mut Vec<Value>) + Send + 'static,
) -> Box<dyn Tamper> {
    change_responses(move |_, request, response| {
        if request.method == "GET" && request.path == path && response.status == 200 {
            let mut page: Value = serde_json::from_slice(&response.body).expect("a list is JSON");
            if let Some(data) = page["data"].as_array_mut() {
                change(request.query.unwrap_or_default(), data);
            }
            response.body = page.to_string().into_bytes().into();
        }
    })
}

/// Replaces one status of POST requests to paths with this ending by another.
fn replace_status(refused: u16, path_end: &'static str, granted: u16) -> Box<dyn Tamper> {
    change_responses(move |_, request, response| {
        if request.method == "POST" && request.path.ends_with(path_end) && response.status == refused {
            response.status = granted;
        }
    })
}

/// A fault: a filter by charge finds charges of the other mode.
#[derive(Default)]
struct LeakyFilter {
    /// The keys that opened charges, by code.
    keys: BTreeMap<String, Vec<u8>>,
}

impl Tamper for LeakyFilter {
    fn on_request(&mut self, _: Timestamp, request: &Request<'_>) -> Option<OwnedRequest> {
        let code = request.query?.split('&').find_map(|part| part.strip_prefix("charge="))?;
        let key = self.keys.get(code)?;
        let mut changed = OwnedRequest::from_request(request);
        changed.authorization = Some(key.clone());
        Some(changed)
    }

    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" && response.status == 201 {
            let body: Value = serde_json::from_slice(&response.body).expect("a charge is JSON");
            let code = body["data"]["id"].as_str().unwrap_or_default().to_owned();
            self.keys.insert(code, request.authorization.unwrap_or_default().to_vec());
        }
    }
}

/// Changes one field of a request.
fn change_field(path: &'static str, field: &'static str, change: fn(&mut Value)) -> Box<dyn Tamper> {
    change_requests(move |request| {
        let body = serde_json::from_slice(&request.body);
        if request.path == path
            && let Ok(Value::Object(mut body)) = body
            && let Some(value) = body.get_mut(field)
        {
            change(value);
            request.body = Value::Object(body).to_string().into_bytes();
        }
    })
}

fn is_later_page(query: &str) -> bool {
    query.split('&').any(|part| part.starts_with("page=") && part != "page=1")
}

/// A fault: a charge cannot be canceled after a transfer to it was seen, even if it disappeared.
#[derive(Default)]
struct VanishedBlocksCancel {
    /// The addresses of charges, by code.
    addresses: BTreeMap<String, String>,
    vanished: BTreeSet<String>,
}

impl Tamper for VanishedBlocksCancel {
    fn on_sightings(&mut self, now: Timestamp, sightings: &mut Vec<Sighting>) -> Timestamp {
        let disappeared = sightings.iter().filter(|sighting| matches!(sighting.depth, Depth::Absent(_)));
        self.vanished.extend(disappeared.map(|sighting| sighting.address.clone()));
        now
    }

    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method != "POST" {
            return;
        }
        if request.path == "/v1/charges" && response.status == 201 {
            let body: Value = serde_json::from_slice(&response.body).expect("a charge is JSON");
            let text = |key: &str| body["data"][key].as_str().unwrap_or_default().to_owned();
            self.addresses.insert(text("id"), text("deposit_address"));
        }
        let code = request.path.split('/').nth(3).unwrap_or_default();
        let is_vanished = self.addresses.get(code).is_some_and(|address| self.vanished.contains(address));
        if request.path.ends_with("/cancel") && response.status == 200 && is_vanished {
            response.status = 409;
        }
    }
}

/// A fault: a late payment cannot be refunded before it was accepted. The refund is recorded, but refused with 422.
fn refuse_late_refunds() -> Box<dyn Tamper> {
    change_responses(|_, request, response| {
        if request.method == "POST" && request.path.ends_with("/refunds") && response.status == 201 {
            let body: Value = serde_json::from_slice(&response.body).expect("a charge is JSON");
            let status = body["data"]["status"].as_str().unwrap_or_default();
            if matches!(status, "expired" | "canceled") && body["data"]["received_amount"] == "0" {
                response.status = 422;
            }
        }
    })
}

/// A fault: an unpaid charge counts refunded amounts as received.
fn count_refunds_as_received(data: &mut [Value]) {
    for charge in data.iter_mut().filter(|charge| charge["status"] != "paid") {
        let units =
            |field: &str| money::parse_units(charge[field].as_str().unwrap_or_default(), 18).unwrap_or(0);
        let (due, received) = (units("asset_amount"), units("received_amount"));
        if units("refunded_amount") > 0 && received > 0 {
            // Amounts of every coin have at most 18 decimals, and this coin has exactly 18.
            charge["remaining_amount"] = json!(money::format_units(due.saturating_sub(received), Asset::Eth));
            if received >= due {
                charge["status"] = json!("paid");
            }
        }
    }
}

/// A fault: a refunded late payment is accepted.
#[derive(Default)]
struct RefundedIsAccepted {
    /// The codes of charges with a refund.
    refunded: BTreeSet<String>,
}

impl Tamper for RefundedIsAccepted {
    fn on_response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        let code = request.path.split('/').nth(3).unwrap_or_default();
        if request.path.ends_with("/refunds") && response.status == 201 {
            self.refunded.insert(code.to_owned());
        }
        if request.path.ends_with("/accept") && response.status == 409 && self.refunded.contains(code) {
            response.status = 200;
        }
    }
}

/// A fault: after a link received its last payment, charges with a disappeared transfer stay open.
fn keep_vanished_open(data: &mut [Value]) {
    for charge in data {
        let last_line = charge["timeline"].as_array().and_then(|lines| lines.last());
        let is_canceled = last_line.is_some_and(|line| line["event"] == "charge.canceled");
        let was_seen = charge["transactions"].as_array().is_some_and(|all| !all.is_empty());
        if charge["payment_link"].is_string() && is_canceled && was_seen {
            charge["status"] = json!("pending");
            charge["timeline"].as_array_mut().map(Vec::pop);
        }
    }
}

/// A fault: confirmations are counted only up to the required number.
fn cap_confirmations(data: &mut [Value]) {
    for charge in data {
        for transaction in charge["transactions"].as_array_mut().into_iter().flatten() {
            let required = transaction["required_confirmations"].as_u64();
            let shown = transaction["confirmations"].as_u64();
            transaction["confirmations"] = json!(shown.min(required));
        }
    }
}

pub(super) const FAULTS: &[PlantedFault] = &[
    PlantedFault::new(
        "a refunded part payment still counts",
        &[Conservation, Tolerance, Edges, Once, Filters],
        || change_list("/v1/charges", |_, data| count_refunds_as_received(data)),
    ),
    PlantedFault::new("a refunded late payment is accepted", &[LateMoney], || {
        Box::<RefundedIsAccepted>::default()
    }),
    PlantedFault::new(
        "a vanished transfer keeps a charge of a full link open",
        &[Edges, Once, Filters, LockEnd, LateMoney, Paging],
        || change_list("/v1/charges", |_, data| keep_vanished_open(data)),
    ),
    PlantedFault::new("confirmations stop when there are enough", &[Confirmations], || {
        change_list("/v1/charges", |_, data| cap_confirmations(data))
    }),
    PlantedFault::new("a vanished transfer prevents canceling", &[Edges], || {
        Box::<VanishedBlocksCancel>::default()
    }),
    PlantedFault::new("late payments are not refunded", &[Conservation, Edges], refuse_late_refunds),
    PlantedFault::new(
        "a full link leaves its other charges open",
        &[Edges, Once, SameObject, Filters, LockEnd, LateMoney],
        || {
            change_list("/v1/charges", |_, data| {
                for charge in data {
                    if charge["payment_link"].is_string() && charge["status"] == "canceled" {
                        charge["status"] = json!("pending");
                        charge["timeline"].as_array_mut().map(Vec::pop);
                    }
                }
            })
        },
    ),
    PlantedFault::new("a refund above what was received", &[Conservation], || {
        replace_status(422, "/refunds", 201)
    }),
    PlantedFault::new("a charge with a detected payment is canceled", &[Edges], || {
        replace_status(409, "/cancel", 200)
    }),
    PlantedFault::new("a completed invoice is voided", &[Edges, Once], || replace_status(409, "/void", 200)),
    PlantedFault::new("a late payment is accepted although there is none", &[LateMoney], || {
        replace_status(409, "/accept", 200)
    }),
    PlantedFault::new("a later page lacks its first record", &[Paging, Once, SameObject, Filters], || {
        demo_fault("page-gap")
    }),
    PlantedFault::new("a later page repeats a record", &[Paging, Once, SameObject, Order, Filters], || {
        change_list("/v1/events", |query, data| {
            if is_later_page(query) && data.len() > 1 {
                data[0] = data[1].clone();
            }
        })
    }),
    PlantedFault::new("an event is left out of the list", &[Once, Paging, Filters], || {
        change_list("/v1/events", |_, data| data.retain(|event| event["type"] != "charge.late_payment"))
    }),
    // Also violates the paging: the anchors in the links are the ids that the deliveries have.
    PlantedFault::new("the list has other event ids than the deliveries", &[SameObject, Paging], || {
        change_list("/v1/events", |_, data| {
            for event in data {
                event["id"] = json!(event["id"].as_str().unwrap_or_default().replacen("-8", "-9", 1));
            }
        })
    }),
    // Also violates the paging: the links of the page lack the filter.
    PlantedFault::new("a filter by status is ignored", &[Filters, Paging], || {
        change_requests(|request| {
            request.query = request.query.take().map(|query| query.replace("status=canceled&", ""));
        })
    }),
    PlantedFault::new("a filter by type is ignored together with a filter by charge", &[Filters], || {
        change_requests(|request| {
            request.query = request.query.take().map(|query| match query.contains("charge=") {
                true => query.replace("&type=charge.paid", ""),
                false => query,
            });
        })
    }),
    PlantedFault::new("an isolation leak through one filter", &[ModesApart, Filters], || {
        Box::<LeakyFilter>::default()
    }),
    PlantedFault::new(
        "objects of the other mode are refused with a different message",
        &[ModesApart],
        || {
            let mut codes = BTreeSet::new();
            change_responses(move |_, request, response| {
                if request.method == "POST" && request.path == "/v1/charges" && response.status == 201 {
                    let body: Value = serde_json::from_slice(&response.body).expect("a charge is JSON");
                    codes.insert(body["data"]["id"].as_str().unwrap_or_default().to_owned());
                }
                let code = request.path.strip_prefix("/v1/charges/").unwrap_or_default();
                if response.status == 404 && codes.contains(code) {
                    response.body = br#"{"message":"This key is of the other mode."}"#.as_slice().into();
                }
            })
        },
    ),
    // Also violates the isolation: a request beyond the limit gets 200 for an object of another book.
    PlantedFault::new("there is no limit", &[Limit, ModesApart, Edges], || {
        change_responses(|_, request, response| {
            if response.status == 429 && request.method == "GET" {
                response.status = 200;
            }
        })
    }),
    PlantedFault::new("the limit counts all keys of the account", &[Limit, Edges], || {
        let mut accepted: Vec<Timestamp> = Vec::new();
        change_responses(move |now, request, response| {
            if request.path.starts_with("/v1/account") && response.status == 200 {
                accepted.retain(|at| now.since(*at) < Span::mins(2));
                if accepted.len() >= 120 {
                    response.status = 429;
                }
                accepted.push(now);
            }
        })
    }),
    PlantedFault::new("Retry-After is always a second", &[Limit], || {
        change_responses(|_, _, response| {
            for (name, value) in &mut response.headers {
                if *name == "retry-after" && value.len() > 1 {
                    "1".clone_into(value);
                }
            }
        })
    }),
    PlantedFault::new("nothing is ever overpaid", &[Tolerance], || {
        change_list("/v1/charges", |_, data| {
            data.iter_mut().for_each(|charge| charge["overpaid"] = json!(false))
        })
    }),
    PlantedFault::new("the amount due is rounded down", &[Tolerance], || {
        change_list("/v1/charges", |_, data| {
            for charge in data {
                let text = charge["asset_amount"].as_str().unwrap_or_default().to_owned();
                if text.contains('.') && text.len() > 6 {
                    charge["asset_amount"] = json!(&text[..text.len() - 1]);
                }
            }
        })
    }),
    PlantedFault::new("paid_at is the end of the lock", &[PaidMoney, Confirmations], || {
        change_list("/v1/charges", |_, data| {
            for charge in data {
                if !charge["paid_at"].is_null() {
                    charge["paid_at"] = charge["expires_at"].clone();
                }
            }
        })
    }),
    PlantedFault::new("an underpaid charge shows as paid", &[Edges, Once, PaidMoney, Confirmations], || {
        change_list("/v1/charges", |_, data| {
            for charge in data {
                let is_underpaid = charge["received_amount"] != "0" && charge["status"] == "expired";
                if is_underpaid {
                    charge["status"] = json!("paid");
                }
            }
        })
    }),
    PlantedFault::new(
        "two charges share an address",
        &[Conservation, Confirmations, Edges, LockEnd, LateMoney, PaidMoney, Once],
        || {
            change_list("/v1/charges", |_, data| {
                if data.len() > 1 {
                    data[1]["deposit_address"] = data[0]["deposit_address"].clone();
                }
            })
        },
    ),
    PlantedFault::new(
        "a timeline is listed backwards",
        &[Edges, Order, Confirmations, Once, LockEnd, Conservation, LateMoney],
        || {
            change_list("/v1/charges", |_, data| {
                for charge in data {
                    if let Some(lines) = charge["timeline"].as_array_mut() {
                        lines.reverse();
                    }
                }
            })
        },
    ),
    PlantedFault::new("an invoice is paid by each of its charges", &[Once], || {
        change_list("/v1/invoices", |_, data| {
            for invoice in data {
                if let Some(lines) = invoice["timeline"].as_array_mut()
                    && let Some(paid) = lines.iter().find(|line| line["event"] == "invoice.paid").cloned()
                {
                    lines.push(paid);
                }
            }
        })
    }),
    PlantedFault::new("a repeated request is executed twice", &[Once, Edges], || {
        change_requests(|request| request.idempotency_key = None)
    }),
    PlantedFault::new("an idempotency key counts for any request", &[Once, Edges], || {
        replace_status(409, "/v1/charges", 201)
    }),
    PlantedFault::new("a payment link accepts any number of payments", &[Edges, Once, SameObject], || {
        change_field("/v1/payment-links", "max_payments", |max| *max = Value::Null)
    }),
    PlantedFault::new("a payment link has a different price", &[SameObject, Tolerance, Edges], || {
        change_field("/v1/payment-links", "amount", |amount| *amount = json!("7.77"))
    }),
    PlantedFault::new("a charge of another account is refused like an existing one", &[ModesApart], || {
        replace_status(404, "/refunds", 409)
    }),
    PlantedFault::new("a description loses its non-ASCII characters", &[SameObject, Edges], || {
        change_field("/v1/charges", "description", |text| {
            let ascii = text.as_str().unwrap_or_default().chars().filter(char::is_ascii);
            *text = ascii.collect::<String>().into();
        })
    }),
];
