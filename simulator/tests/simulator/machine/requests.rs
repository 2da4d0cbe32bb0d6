//! Sends the operations of clients to the service: API requests, dashboard operations, hosted pages.

use std::collections::BTreeSet;

use reference_core::{
    asset::Asset,
    call::Choice,
    charge::{CustomField, Customer},
    command::{BookCommand, CommandResult, Visit, VisitResult},
    error::ApiError,
    event::EventType,
    id::Code,
    money::Fiat,
    time::Timestamp,
};
use reference_wire::Response;
use serde_json::{Map, Value, json};
use simulator::{
    model::{Pricing, money},
    record::BookId,
    tamper::OwnedRequest,
};

use super::{
    driver::{Driver, Verdict},
    op::{By, Name, Op, QUESTION, labels},
    state::{Due, State},
};

impl Driver {
    /// Performs a write, and checks the response.
    pub(super) fn write(&mut self, op: &Op, state: &State) -> Verdict {
        let (status, response) = match self.request_of(op, state) {
            Some(request) => {
                let response = self.send(&request);
                (response.status, Some(response))
            }
            None => (self.dashboard_status(op, state), None),
        };
        let response_text = |response: &Option<Response>| {
            response.as_ref().map_or(String::new(), |it| String::from_utf8_lossy(&it.body).into_owned())
        };
        let is_replay =
            |response: &Response| response.headers.contains(&("idempotent-replayed", "true".to_owned()));
        match state.due {
            Due::Nothing => Err(format!("no expected answer for {op:?}")),
            Due::Status(expected) if expected != status => {
                Err(format!("it is answered {status}, not {expected} {}", response_text(&response)))
            }
            Due::Status(_) => {
                if response.as_ref().is_some_and(is_replay) {
                    return Err("a new request is marked as replayed".to_owned());
                }
                if let Some(response) = response.filter(|response| response.status < 300)
                    && op.once().is_some()
                {
                    self.kept.push(response);
                }
                Ok(())
            }
            Due::Replay(nth) => {
                let response = response.expect("only requests are repeated");
                let first = self.kept.get(nth).ok_or("the first response was not stored")?;
                if !is_replay(&response) {
                    return Err("a repeated request is processed again".to_owned());
                }
                if (response.status, &response.body) != (first.status, &first.body) {
                    return Err(format!(
                        "a repeated request gets another response: {}",
                        response_text(&Some(response))
                    ));
                }
                Ok(())
            }
        }
    }

    /// Returns the API request; `None` for an operation in the dashboard or on a hosted page.
    fn request_of(&self, op: &Op, state: &State) -> Option<OwnedRequest> {
        let charge = |name: &Name| self.id(*name, state);
        let post = |who: &BookId, path: String, body: Option<Value>, once: &Option<u8>| {
            Some(self.request("POST", *who, &path, body, *once))
        };
        match op {
            Op::Open { who, asset, cents, currency, link, answers, once, .. } => {
                let mut body = Map::new();
                body.insert("asset".to_owned(), json!(asset.code()));
                if *cents > 0 {
                    body.insert("amount".to_owned(), json!(money::fiat(*cents)));
                }
                match link {
                    Some(link) => body.insert("payment_link".to_owned(), json!(self.id(*link, state))),
                    None => body.insert("currency".to_owned(), json!(currency.code())),
                };
                if *answers > 0 {
                    let answer = |label| json!({"label": label, "value": "M"});
                    let given: Vec<Value> = labels(*answers).into_iter().map(answer).collect();
                    body.insert("custom_fields".to_owned(), Value::Array(given));
                }
                post(who, "/v1/charges".to_owned(), Some(Value::Object(body)), once)
            }
            Op::Cancel { by: By::Key(who), charge: name, once } => {
                post(who, format!("/v1/charges/{}/cancel", charge(name)), None, once)
            }
            Op::Refund { who, charge: name, units, txid, once } => {
                let amount = money::written(*units, state.charge(*name).terms.asset);
                let mut body = json!({"amount": amount});
                if let Some(txid) = txid {
                    body["txid"] = json!(format!("t{txid}"));
                }
                post(who, format!("/v1/charges/{}/refunds", charge(name)), Some(body), once)
            }
            Op::Issue { who, cents, reader, send, once, .. } => {
                let mut body = json!({"amount": money::fiat(*cents), "currency": "EUR", "send_email": send});
                if let Some(email) = reader.email() {
                    body["customer_email"] = json!(email);
                }
                post(who, "/v1/invoices".to_owned(), Some(body), once)
            }
            Op::Send { by: By::Key(who), invoice } => {
                post(who, format!("/v1/invoices/{}/send", charge(invoice)), None, &None)
            }
            Op::Void { by: By::Key(who), invoice } => {
                post(who, format!("/v1/invoices/{}/void", charge(invoice)), None, &None)
            }
            Op::MakeLink { who, pricing, only, max, lasts, asks, .. } => {
                let body = link_body(*pricing, *only, *max, lasts.map(|lasts| self.now.plus(lasts)));
                let body = match asks {
                    Some(required) => with_question(body, *required),
                    None => body,
                };
                post(who, "/v1/payment-links".to_owned(), Some(body), &None)
            }
            Op::Limit { who, link, max } => {
                let path = format!("/v1/payment-links/{}", charge(link));
                Some(self.request("PATCH", *who, &path, Some(json!({"max_payments": max})), None))
            }
            Op::Archive { who, link, on } => {
                let path = format!("/v1/payment-links/{}/archive", charge(link));
                Some(self.request(if *on { "POST" } else { "DELETE" }, *who, &path, None, None))
            }
            _ => None,
        }
    }

    /// Performs an operation in the dashboard or on a hosted page; returns its status.
    fn dashboard_status(&mut self, op: &Op, state: &State) -> u16 {
        let code = |driver: &Driver, name: &Name| Code::parse(&driver.id(*name, state)).expect("a code");
        let act = |driver: &mut Driver, name: &Name, act: BookCommand| {
            let (id, _) = state.home(*name);
            driver.act(id, act).map(drop)
        };
        let done = match op {
            Op::Cancel { by: By::Owner, charge, .. } => {
                let id = code(self, charge);
                act(self, charge, BookCommand::CancelCharge(id))
            }
            Op::Accept { charge, txid } => {
                let id = code(self, charge);
                let txid = txid.map(|txid| format!("t{txid}"));
                act(self, charge, BookCommand::AcceptLate { charge: id, txid })
            }
            Op::Send { by: By::Owner, invoice } => {
                let id = code(self, invoice);
                act(self, invoice, BookCommand::SendInvoice(id))
            }
            Op::Void { by: By::Owner, invoice } => {
                let id = code(self, invoice);
                act(self, invoice, BookCommand::VoidInvoice(id))
            }
            Op::View { invoice } => self.visit(Visit::ViewInvoice(code(self, invoice))),
            Op::Choose { invoice, asset, .. } => {
                let invoice = code(self, invoice);
                self.visit(Visit::ChooseCoin { invoice, asset: *asset })
            }
            Op::ViewLink { link } => self.visit(Visit::ViewLink(code(self, link))),
            Op::PayLink { link, asset, cents, answers, .. } => {
                let choice = Choice {
                    asset: *asset,
                    amount: cents.map(|cents| Fiat::from_minor(cents).expect("a price")),
                    customer: Customer::default(),
                    custom_fields: labels(*answers)
                        .into_iter()
                        .map(|label| CustomField { label, value: "M".to_owned() })
                        .collect(),
                };
                let link = code(self, link);
                self.visit(Visit::PayLink { link, choice: Box::new(choice) })
            }
            _ => self.dashboard_endpoint(op, state),
        };
        done.map_or_else(|error| error.status(), |()| 200)
    }

    fn dashboard_endpoint(&mut self, op: &Op, state: &State) -> Result<(), ApiError> {
        match op {
            Op::Hook { of, kinds, .. } => {
                let url = format!("https://hook{}.example/", self.known[of].hooks.len());
                let done = self.act(*of, BookCommand::AddEndpoint { url, events: chosen(*kinds) });
                done.map(|done| self.learn_hook(*of, &done))
            }
            Op::Choices { hook, kinds } => {
                let events = Some(chosen(*kinds));
                self.at_hook(hook, state, |id| BookCommand::ChangeEndpoint {
                    id,
                    url: None,
                    events,
                    enabled: None,
                })
            }
            Op::Switch { hook, on } => {
                let enabled = Some(*on);
                self.at_hook(hook, state, |id| BookCommand::ChangeEndpoint {
                    id,
                    url: None,
                    events: None,
                    enabled,
                })
            }
            Op::Unhook { hook } => self.at_hook(hook, state, BookCommand::RemoveEndpoint),
            Op::Test { hook } => self.at_hook(hook, state, BookCommand::SendTest),
            Op::Rotate { hook } => {
                let (home, no) = state.home(*hook);
                let id = self.known[&home].hooks[no];
                let done = self.act(home, BookCommand::RotateSecret(id));
                done.map(|done| self.learn_hook(home, &done))
            }
            Op::Resend { of, delivery } => {
                let id = self.known[of].deliveries[*delivery];
                self.act(*of, BookCommand::Resend(id)).map(drop)
            }
            _ => unreachable!("not a dashboard operation: {op:?}"),
        }
    }

    fn at_hook(
        &mut self,
        hook: &Name,
        state: &State,
        act: impl FnOnce(Code) -> BookCommand,
    ) -> Result<(), ApiError> {
        let (home, no) = state.home(*hook);
        let id = self.known[&home].hooks[no];
        self.act(home, act(id)).map(drop)
    }

    fn visit(&mut self, visit: Visit) -> Result<(), ApiError> {
        match self.api.service.on_visit(self.now, visit)? {
            VisitResult::Page | VisitResult::Charge(..) => Ok(()),
        }
    }

    fn learn_hook(&mut self, home: BookId, done: &CommandResult) {
        let CommandResult::Endpoint(no) = done else { panic!("an endpoint was asked for: {done:?}") };
        let endpoint = self.book(home).endpoint(*no);
        let (id, secret) = (endpoint.id, endpoint.secret.reveal().to_owned());
        let known = self.known.get_mut(&home).expect("every book is known");
        if !known.hooks.contains(&id) {
            known.hooks.push(id);
        }
        known.secrets.push(secret);
    }

    /// Returns the public id of an object.
    fn id(&self, name: Name, state: &State) -> String {
        let (home, no) = state.home(name);
        let ids = &self.known[&home].ids;
        match name.0 {
            'c' => &ids.charges[no],
            'i' => &ids.invoices[no],
            'l' => &ids.links[no],
            other => unreachable!("{other} has no public id"),
        }
        .clone()
    }
}

fn chosen(kinds: u16) -> BTreeSet<EventType> {
    let types = super::op::types(kinds);
    EventType::ALL.into_iter().filter(|kind| types.contains(kind.as_str())).collect()
}

fn link_body(pricing: Pricing, only: Option<Asset>, max: Option<u32>, ends: Option<Timestamp>) -> Value {
    let mut body = json!({"title": "Tea", "currency": "EUR", "max_payments": max});
    match pricing {
        Pricing::Fixed(cents) => {
            (body["pricing_type"], body["amount"]) = (json!("fixed"), json!(money::fiat(cents)));
        }
        Pricing::Open { min, max } => {
            body["pricing_type"] = json!("open");
            (body["min_amount"], body["max_amount"]) =
                (json!(min.map(money::fiat)), json!(max.map(money::fiat)));
        }
    }
    if let Some(only) = only {
        body["accepted_assets"] = json!([only.code()]);
    }
    if let Some(ends) = ends {
        body["expires_at"] = json!(ends.to_string());
    }
    body
}

fn with_question(mut body: Value, required: bool) -> Value {
    body["custom_fields"] = json!([{"label": QUESTION, "required": required}]);
    body
}
