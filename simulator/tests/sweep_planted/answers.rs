//! Clients get other answers than those of the service, or ask something else than they meant.

use std::collections::BTreeMap;

use reference_core::{
    time::Timestamp,
    wire::http::{Request, Response},
};
use serde_json::{Value, json};
use simulator::{
    law::Law,
    tamper::{OwnRequest, Tamper},
};

use crate::Bug;

struct Answers<F>(F);

impl<F: FnMut(Timestamp, &Request<'_>, &mut Response) + Send> Tamper for Answers<F> {
    fn response(&mut self, now: Timestamp, request: &Request<'_>, response: &mut Response) {
        (self.0)(now, request, response);
    }
}

fn answers(change: impl FnMut(Timestamp, &Request<'_>, &mut Response) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Answers(change))
}

struct Requests<F>(F);

impl<F: FnMut(&mut OwnRequest) + Send> Tamper for Requests<F> {
    fn request(&mut self, _: Timestamp, request: &Request<'_>) -> Option<OwnRequest> {
        let mut other = OwnRequest::of(request);
        (self.0)(&mut other);
        Some(other)
    }
}

fn requests(change: impl FnMut(&mut OwnRequest) + Send + 'static) -> Box<dyn Tamper> {
    Box::new(Requests(change))
}

/// Changes the JSON of a list.
fn list(path: &'static str, change: impl Fn(&str, &mut Vec<Value>) + Send + 'static) -> Box<dyn Tamper> {
    answers(move |_, request, response| {
        if request.method == "GET" && request.path == path && response.status == 200 {
            let mut page: Value = serde_json::from_slice(&response.body).expect("a list is JSON");
            if let Some(data) = page["data"].as_array_mut() {
                change(request.query.unwrap_or_default(), data);
            }
            response.body = page.to_string().into_bytes().into();
        }
    })
}

fn refused(status: u16, end: &'static str, granted: u16) -> Box<dyn Tamper> {
    answers(move |_, request, response| {
        if request.method == "POST" && request.path.ends_with(end) && response.status == status {
            response.status = granted;
        }
    })
}

/// A filter by charge finds charges of the other mode.
#[derive(Default)]
struct LeakyFilter {
    /// The key that opened a charge, by its code.
    keys: BTreeMap<String, Vec<u8>>,
}

impl Tamper for LeakyFilter {
    fn request(&mut self, _: Timestamp, request: &Request<'_>) -> Option<OwnRequest> {
        let code = request.query?.split('&').find_map(|part| part.strip_prefix("charge="))?;
        let key = self.keys.get(code)?;
        let mut other = OwnRequest::of(request);
        other.authorization = Some(key.clone());
        Some(other)
    }

    fn response(&mut self, _: Timestamp, request: &Request<'_>, response: &mut Response) {
        if request.method == "POST" && request.path == "/v1/charges" && response.status == 201 {
            let body: Value = serde_json::from_slice(&response.body).expect("a charge is JSON");
            let code = body["data"]["id"].as_str().unwrap_or_default().to_owned();
            self.keys.insert(code, request.authorization.unwrap_or_default().to_vec());
        }
    }
}

/// Changes one field of what is asked for.
fn asked(path: &'static str, field: &'static str, change: fn(&mut Value)) -> Box<dyn Tamper> {
    requests(move |request| {
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

pub(crate) fn bugs() -> Vec<Bug> {
    use Law::{
        Confirmations, Conservation, Edges, Filters, LateMoney, Limit, LockEnd, ModesApart, Once, Order,
        Paging, PaidMoney, SameObject, Tolerance,
    };
    vec![
        Bug {
            name: "a refund above what was received",
            laws: &[Conservation],
            make: || refused(422, "/refunds", 201),
        },
        Bug {
            name: "a charge that money was seen for is canceled",
            laws: &[Edges],
            make: || refused(409, "/cancel", 200),
        },
        Bug {
            name: "an invoice that is over is withdrawn",
            laws: &[Edges],
            make: || refused(409, "/void", 200),
        },
        Bug {
            name: "late money is accepted where there is none",
            laws: &[LateMoney],
            make: || refused(409, "/accept", 200),
        },
        Bug {
            name: "a later page lacks its first record",
            laws: &[Paging, Once, SameObject, Filters],
            make: || {
                list("/v1/events", |query, data| {
                    if is_later_page(query) && !data.is_empty() {
                        data.remove(0);
                    }
                })
            },
        },
        Bug {
            name: "a later page repeats a record",
            laws: &[Paging, Once, SameObject, Order, Filters],
            make: || {
                list("/v1/events", |query, data| {
                    if is_later_page(query) && data.len() > 1 {
                        data[0] = data[1].clone();
                    }
                })
            },
        },
        Bug {
            name: "an event is left out of the list",
            laws: &[Once, Paging, Filters],
            make: || {
                list("/v1/events", |_, data| data.retain(|event| event["type"] != "charge.late_payment"))
            },
        },
        Bug {
            name: "the list names events otherwise than deliveries do",
            laws: &[SameObject],
            make: || {
                list("/v1/events", |_, data| {
                    for event in data {
                        event["id"] = json!(event["id"].as_str().unwrap_or_default().replacen("-8", "-9", 1));
                    }
                })
            },
        },
        Bug {
            name: "a filter by status is not heard",
            laws: &[Filters],
            make: || {
                requests(|request| {
                    request.query = request.query.take().map(|query| query.replace("status=canceled&", ""));
                })
            },
        },
        Bug {
            name: "a filter by type is not heard beside one by charge",
            laws: &[Filters],
            make: || {
                requests(|request| {
                    request.query = request.query.take().map(|query| match query.contains("charge=") {
                        true => query.replace("&type=charge.paid", ""),
                        false => query,
                    });
                })
            },
        },
        Bug {
            name: "an isolation leak through one filter",
            laws: &[ModesApart],
            make: || Box::<LeakyFilter>::default(),
        },
        Bug {
            name: "what the other mode holds is refused in other words",
            laws: &[ModesApart],
            make: || {
                let mut codes = std::collections::BTreeSet::new();
                answers(move |_, request, response| {
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
        },
        Bug {
            name: "there is no limit",
            laws: &[Limit],
            make: || {
                answers(|_, request, response| {
                    if response.status == 429 && request.method == "GET" {
                        response.status = 200;
                    }
                })
            },
        },
        Bug {
            name: "the limit counts all keys of the account",
            laws: &[Limit],
            make: || {
                let mut asked: Vec<Timestamp> = Vec::new();
                answers(move |now, request, response| {
                    if request.path.starts_with("/v1/account") && response.status == 200 {
                        asked.retain(|at| now.since(*at).0 < 120_000_000);
                        if asked.len() >= 120 {
                            response.status = 429;
                        }
                        asked.push(now);
                    }
                })
            },
        },
        Bug {
            name: "Retry-After is a second, always",
            laws: &[Limit],
            make: || {
                answers(|_, _, response| {
                    for (name, value) in &mut response.headers {
                        if *name == "retry-after" && value.len() > 1 {
                            "1".clone_into(value);
                        }
                    }
                })
            },
        },
        Bug {
            name: "nothing is ever overpaid",
            laws: &[Tolerance],
            make: || {
                list("/v1/charges", |_, data| {
                    data.iter_mut().for_each(|charge| charge["overpaid"] = json!(false))
                })
            },
        },
        Bug {
            name: "what is due is rounded down",
            laws: &[Tolerance],
            make: || {
                list("/v1/charges", |_, data| {
                    for charge in data {
                        let text = charge["asset_amount"].as_str().unwrap_or_default().to_owned();
                        if text.contains('.') && text.len() > 6 {
                            charge["asset_amount"] = json!(&text[..text.len() - 1]);
                        }
                    }
                })
            },
        },
        Bug {
            name: "paid_at is the end of the lock",
            laws: &[PaidMoney, Confirmations],
            make: || {
                list("/v1/charges", |_, data| {
                    for charge in data {
                        if !charge["paid_at"].is_null() {
                            charge["paid_at"] = charge["expires_at"].clone();
                        }
                    }
                })
            },
        },
        Bug {
            name: "an underpaid charge shows as paid",
            laws: &[Edges, Once, PaidMoney, Confirmations],
            make: || {
                list("/v1/charges", |_, data| {
                    for charge in data {
                        let got_some = charge["received_amount"] != "0" && charge["status"] == "expired";
                        if got_some {
                            charge["status"] = json!("paid");
                        }
                    }
                })
            },
        },
        Bug {
            name: "two charges share an address",
            laws: &[Conservation, Confirmations, Edges, LockEnd, LateMoney, PaidMoney, Once],
            make: || {
                list("/v1/charges", |_, data| {
                    if data.len() > 1 {
                        data[1]["deposit_address"] = data[0]["deposit_address"].clone();
                    }
                })
            },
        },
        Bug {
            name: "a timeline is told backwards",
            laws: &[Edges, Order, Confirmations, Once, LockEnd, Conservation],
            make: || {
                list("/v1/charges", |_, data| {
                    for charge in data {
                        if let Some(lines) = charge["timeline"].as_array_mut() {
                            lines.reverse();
                        }
                    }
                })
            },
        },
        Bug {
            name: "an invoice is paid by each of its charges",
            laws: &[Once],
            make: || {
                list("/v1/invoices", |_, data| {
                    for invoice in data {
                        if let Some(lines) = invoice["timeline"].as_array_mut()
                            && let Some(paid) =
                                lines.iter().find(|line| line["event"] == "invoice.paid").cloned()
                        {
                            lines.push(paid);
                        }
                    }
                })
            },
        },
        Bug {
            name: "a request that is repeated is done twice",
            laws: &[Once],
            make: || requests(|request| request.idempotency_key = None),
        },
        Bug {
            name: "an idempotency key counts for whatever is asked",
            laws: &[Once],
            make: || refused(409, "/v1/charges", 201),
        },
        Bug {
            name: "a payment link takes any number of payments",
            laws: &[Edges, Once, SameObject],
            make: || asked("/v1/payment-links", "max_payments", |most| *most = Value::Null),
        },
        Bug {
            name: "a payment link asks another price",
            laws: &[SameObject, Tolerance],
            make: || asked("/v1/payment-links", "amount", |amount| *amount = json!("7.77")),
        },
        Bug {
            name: "a charge of another account is refused as if it were there",
            laws: &[ModesApart],
            make: || refused(404, "/refunds", 409),
        },
        Bug {
            name: "a description is kept without what is not ASCII",
            laws: &[SameObject],
            make: || {
                asked("/v1/charges", "description", |text| {
                    let ascii = text.as_str().unwrap_or_default().chars().filter(char::is_ascii);
                    *text = ascii.collect::<String>().into();
                })
            },
        },
    ]
}
