//! Where people's deeds enter the service: requests, the dashboard, the hosted pages.

use std::collections::BTreeSet;

use reference_core::{
    action::{Act, Done, Seen, Visit},
    call::Choice,
    charge::Customer,
    error::ApiError,
    event::EventType,
    id::Code,
    money::Fiat,
    wire::http::Response,
};
use serde_json::{Map, Value, json};
use simulator::{model::money, tamper::OwnRequest};

use crate::{
    deed::{By, Deed, Name, Place, Pricing, Reader},
    stage::{MEMBER, STRANGER, Stage, Verdict},
    world::{Due, World},
};

fn euros(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

impl Stage {
    /// Does it, and judges the answer.
    pub(crate) fn write(&mut self, deed: &Deed, world: &World) -> Verdict {
        let (status, response) = match self.request_of(deed, world) {
            Some(request) => {
                let response = self.send(&request);
                (response.status, Some(response))
            }
            None => (self.door(deed, world), None),
        };
        let told = |response: &Option<Response>| {
            response.as_ref().map_or(String::new(), |it| String::from_utf8_lossy(&it.body).into_owned())
        };
        let is_replay =
            |response: &Response| response.headers.contains(&("idempotent-replayed", "true".to_owned()));
        match world.due {
            Due::Nothing => Err(format!("nobody knows what to answer {deed:?}")),
            Due::Status(expected) if expected != status => {
                Err(format!("it is answered {status}, not {expected} {}", told(&response)))
            }
            Due::Status(_) => {
                if response.as_ref().is_some_and(is_replay) {
                    return Err("a new request is answered as a repeated one".to_owned());
                }
                if let Some(response) = response.filter(|response| response.status < 300)
                    && once(deed).is_some()
                {
                    self.kept.push(response);
                }
                Ok(())
            }
            Due::Replay(nth) => {
                let response = response.expect("only requests are repeated");
                let first = self.kept.get(nth).ok_or("the first answer was not kept")?;
                if !is_replay(&response) {
                    return Err("a repeated request is done again".to_owned());
                }
                if (response.status, &response.body) != (first.status, &first.body) {
                    return Err(format!(
                        "a repeated request is answered otherwise: {}",
                        told(&Some(response))
                    ));
                }
                Ok(())
            }
        }
    }

    /// What a client sends; nothing for what is done in the dashboard or on a hosted page.
    fn request_of(&self, deed: &Deed, world: &World) -> Option<OwnRequest> {
        let charge = |name: &Name| self.id(*name, world);
        let post = |who: &Place, path: String, body: Option<Value>, once: &Option<u8>| {
            Some(self.request("POST", *who, &path, body, *once))
        };
        match deed {
            Deed::Open { who, asset, cents, currency, link, once, .. } => {
                let mut body = Map::new();
                body.insert("asset".to_owned(), json!(asset.code()));
                if *cents > 0 {
                    body.insert("amount".to_owned(), json!(euros(*cents)));
                }
                match link {
                    Some(link) => body.insert("payment_link".to_owned(), json!(self.id(*link, world))),
                    None => body.insert("currency".to_owned(), json!(currency.code())),
                };
                post(who, "/v1/charges".to_owned(), Some(Value::Object(body)), once)
            }
            Deed::Cancel { by: By::Key(who), charge: name, once } => {
                post(who, format!("/v1/charges/{}/cancel", charge(name)), None, once)
            }
            Deed::Refund { who, charge: name, units, once } => {
                let amount = money::written(*units, world.charge(*name).asset);
                post(
                    who,
                    format!("/v1/charges/{}/refunds", charge(name)),
                    Some(json!({"amount": amount})),
                    once,
                )
            }
            Deed::Issue { who, cents, reader, send, once, .. } => {
                let mut body = json!({"amount": euros(*cents), "currency": "EUR", "send_email": send});
                match reader {
                    Reader::Nobody => {}
                    Reader::Member => body["customer_email"] = json!(MEMBER),
                    Reader::Stranger => body["customer_email"] = json!(STRANGER),
                }
                post(who, "/v1/invoices".to_owned(), Some(body), once)
            }
            Deed::Send { by: By::Key(who), invoice } => {
                post(who, format!("/v1/invoices/{}/send", charge(invoice)), None, &None)
            }
            Deed::Void { by: By::Key(who), invoice } => {
                post(who, format!("/v1/invoices/{}/void", charge(invoice)), None, &None)
            }
            Deed::MakeLink { who, pricing, only, max, lasts, .. } => {
                let mut body = json!({"title": "Tea", "currency": "EUR", "max_payments": max});
                match pricing {
                    Pricing::Fixed(cents) => {
                        (body["pricing_type"], body["amount"]) = (json!("fixed"), json!(euros(*cents)));
                    }
                    Pricing::Open { min, max } => {
                        body["pricing_type"] = json!("open");
                        (body["min_amount"], body["max_amount"]) = (json!(euros(*min)), json!(euros(*max)));
                    }
                }
                if let Some(only) = only {
                    body["accepted_assets"] = json!([only.code()]);
                }
                if let Some(lasts) = lasts {
                    body["expires_at"] = json!(self.now.plus(*lasts).to_string());
                }
                post(who, "/v1/payment-links".to_owned(), Some(body), &None)
            }
            Deed::Limit { who, link, max } => {
                let path = format!("/v1/payment-links/{}", charge(link));
                Some(self.request("PATCH", *who, &path, Some(json!({"max_payments": max})), None))
            }
            Deed::Archive { who, link, on } => {
                let path = format!("/v1/payment-links/{}/archive", charge(link));
                Some(self.request(if *on { "POST" } else { "DELETE" }, *who, &path, None, None))
            }
            _ => None,
        }
    }

    /// The status of what is done in the dashboard or on a hosted page.
    fn door(&mut self, deed: &Deed, world: &World) -> u16 {
        let code = |stage: &Stage, name: &Name| Code::parse(&stage.id(*name, world)).expect("a code");
        let act = |stage: &mut Stage, name: &Name, act: Act| {
            let (place, _) = world.home(*name);
            stage.act(place, act).map(drop)
        };
        let done = match deed {
            Deed::Cancel { by: By::Owner, charge, .. } => {
                let id = code(self, charge);
                act(self, charge, Act::CancelCharge(id))
            }
            Deed::Accept { charge, txid } => {
                let id = code(self, charge);
                let txid = txid.map(|txid| format!("t{txid}"));
                act(self, charge, Act::AcceptLate { charge: id, txid })
            }
            Deed::Send { by: By::Owner, invoice } => {
                let id = code(self, invoice);
                act(self, invoice, Act::SendInvoice(id))
            }
            Deed::Void { by: By::Owner, invoice } => {
                let id = code(self, invoice);
                act(self, invoice, Act::VoidInvoice(id))
            }
            Deed::View { invoice } => self.visit(Visit::ViewInvoice(code(self, invoice))),
            Deed::Choose { invoice, asset, .. } => {
                let invoice = code(self, invoice);
                self.visit(Visit::ChooseCoin { invoice, asset: *asset })
            }
            Deed::ViewLink { link } => self.visit(Visit::ViewLink(code(self, link))),
            Deed::PayLink { link, asset, cents, .. } => {
                let choice = Choice {
                    asset: *asset,
                    amount: cents.map(|cents| Fiat::from_minor(cents).expect("a price")),
                    customer: Customer::default(),
                    custom_fields: Vec::new(),
                };
                let link = code(self, link);
                self.visit(Visit::PayLink { link, choice: Box::new(choice) })
            }
            Deed::Hook { of, kinds, .. } => {
                let url = format!("https://hook{}.example/", self.ids[of.0].hooks.len());
                let done = self.act(*of, Act::AddEndpoint { url, events: chosen(*kinds) });
                done.map(|done| self.learn_hook(*of, &done))
            }
            Deed::Choices { hook, kinds } => {
                let events = Some(chosen(*kinds));
                self.at_hook(hook, world, |id| Act::ChangeEndpoint { id, url: None, events, enabled: None })
            }
            Deed::Switch { hook, on } => {
                let enabled = Some(*on);
                self.at_hook(hook, world, |id| Act::ChangeEndpoint { id, url: None, events: None, enabled })
            }
            Deed::Unhook { hook } => self.at_hook(hook, world, Act::RemoveEndpoint),
            Deed::Test { hook } => self.at_hook(hook, world, Act::SendTest),
            Deed::Rotate { hook } => {
                let (place, no) = world.home(*hook);
                let id = self.ids[place.0].hooks[no];
                let done = self.act(place, Act::RotateSecret(id));
                done.map(|done| self.learn_hook(place, &done))
            }
            Deed::Resend { of, delivery } => {
                let id = self.ids[of.0].deliveries[*delivery];
                self.act(*of, Act::Resend(id)).map(drop)
            }
            _ => unreachable!("no door for {deed:?}"),
        };
        done.map_or_else(|error| error.status(), |()| 200)
    }

    fn at_hook(&mut self, hook: &Name, world: &World, act: impl FnOnce(Code) -> Act) -> Result<(), ApiError> {
        let (place, no) = world.home(*hook);
        let id = self.ids[place.0].hooks[no];
        self.act(place, act(id)).map(drop)
    }

    fn visit(&mut self, visit: Visit) -> Result<(), ApiError> {
        match self.service.on_visit(self.now, visit)? {
            Seen::Page | Seen::Charge(..) => Ok(()),
        }
    }

    fn learn_hook(&mut self, place: Place, done: &Done) {
        let Done::Endpoint(no) = done else { panic!("an endpoint was asked for: {done:?}") };
        let endpoint = self.book(place).endpoint(*no);
        let (id, secret) = (endpoint.id, endpoint.secret.reveal().to_owned());
        let ids = &mut self.ids[place.0];
        if !ids.hooks.contains(&id) {
            ids.hooks.push(id);
        }
        ids.secrets.push(secret);
    }

    /// The public id of an object.
    fn id(&self, name: Name, world: &World) -> String {
        let (place, no) = world.home(name);
        let ids = &self.ids[place.0];
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
    EventType::ALL
        .into_iter()
        .enumerate()
        .filter(|(no, _)| kinds & (1 << no) != 0)
        .map(|(_, kind)| kind)
        .collect()
}

/// The idempotency key of a deed.
fn once(deed: &Deed) -> Option<u8> {
    match deed {
        Deed::Open { once, .. }
        | Deed::Cancel { by: By::Key(_), once, .. }
        | Deed::Refund { once, .. }
        | Deed::Issue { once, .. } => *once,
        _ => None,
    }
}
