//! Steps of the account owner in the dashboard, and of merchants.

use std::collections::BTreeMap;

use reference_core::{endpoint::EndpointStatus, event::EventType, mode::Mode};
use serde_json::{Value, json};

use super::{Action, Player, alias::NamedObject, failure::Stop, lines::in_mode};
use crate::api::{
    self, AccountRequest, EndpointChange, EndpointRequest, KeyRequest, MerchantRequest, RateRequest,
    WalletRequest,
};
use crate::script::{
    At, Kind,
    step::{Answers, Endpoint, Key, OpenAccount, Rate, Resend, Settings, Wallet},
    value::Name,
};

/// An operation on an existing endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Switch {
    Enable,
    Disable,
    Remove,
    Rotate,
    Test,
}

impl Player<'_> {
    pub(super) fn change_account(&mut self, changed: &Settings) -> Result<(), Stop> {
        let at = self.now;
        let body = api::json(changed);
        let summary = format_settings(&body);
        let path = format!("/sandbox/accounts/{}", self.accounts[0]);
        self.call_ok("PATCH", &path, Some(body))?;
        self.write_line(at, "account", &summary, None);
        Ok(())
    }

    pub(super) fn open_account(&mut self, open: &OpenAccount) -> Result<(), Stop> {
        let at = self.now;
        let id = &open.account.value.0;
        let settings = Settings {
            underpayment_tolerance: open.underpayment_tolerance.clone(),
            overpayment_threshold: open.overpayment_threshold.clone(),
            ..Settings::default()
        };
        let body = AccountRequest { id: id.clone(), kind: None, settings };
        let response = self.call_ok("POST", "/sandbox/accounts", Some(api::json(&body)))?;
        let account_no = self.accounts.len();
        self.accounts.push(id.clone());
        for mode in Mode::ALL {
            let key = self.text(&response, &format!("/keys/{mode}"))?;
            self.own_keys.insert((account_no, mode), key);
            let body = KeyRequest { account: Some(id.clone()), mode: Some(mode) };
            let created = self.call_ok("POST", "/sandbox/keys", Some(api::json(&body)))?;
            let observer = self.text(&created, "/key/secret")?;
            self.observers.insert((account_no, mode), observer);
        }
        self.assign_name(&open.account, Kind::Account, (account_no, self.script.mode), id.clone());
        self.write_line(at, "account", &format!("{id} opened"), None);
        Ok(())
    }

    /// Returns the index and id of the account that a step names.
    fn account_id(&self, name: Option<&At<Name>>) -> Result<Option<(usize, String)>, Stop> {
        let no = self.account_no(name)?;
        Ok(name.map(|_| (no, self.accounts[no].clone())))
    }

    pub(super) fn set_wallet(&mut self, wallet: &Wallet) -> Result<(), Stop> {
        let mode = self.mode(wallet.mode);
        let asset = wallet.asset.0;
        let (method, change) = if wallet.remove { ("DELETE", "removed") } else { ("PUT", "set") };
        let body = WalletRequest {
            account: None,
            mode: Some(mode),
            asset,
            key: wallet.key.clone(),
            script: wallet.script.clone(),
            addresses: wallet.addresses.clone(),
        };
        let summary = format!("{asset} {change}{}", in_mode(mode));
        let action = Action::post("wallet", &summary, "/sandbox/wallets", api::json(&body));
        self.plain_act(&Action { method, refused: wallet.refused, ..action })
    }

    pub(super) fn set_rate(&mut self, rate: &Rate) -> Result<(), Stop> {
        let at = self.now;
        let (asset, currency) = (rate.asset.0, rate.currency.0);
        let body = RateRequest { asset, currency, rate: rate.rate.clone() };
        self.call_ok("POST", "/sandbox/rates", Some(api::json(&body)))?;
        let value = rate.rate.0.as_deref().unwrap_or("off");
        self.write_line(at, "rate", &format!("{asset} {value} {currency}"), None);
        Ok(())
    }

    pub(super) fn make_key(&mut self, key: &Key) -> Result<(), Stop> {
        let at = self.now;
        let mode = self.mode(key.mode);
        let account = self.account_id(key.account.as_ref())?;
        let body = KeyRequest { account: account.as_ref().map(|(_, id)| id.clone()), mode: Some(mode) };
        let created = self.call_ok("POST", "/sandbox/keys", Some(api::json(&body)))?;
        let (id, secret) = (self.text(&created, "/key/id")?, self.text(&created, "/key/secret")?);
        self.keys.insert(key.name.value.0.clone(), secret);
        let book = (account.map_or(0, |(no, _)| no), mode);
        self.assign_name(&key.name, Kind::Key, book, id);
        self.write_line(at, "key", &format!("{}{}", key.name.value, in_mode(mode)), None);
        Ok(())
    }

    pub(super) fn revoke_key(&mut self, name: &At<Name>) -> Result<(), Stop> {
        if ["live", "test"].contains(&name.value.0.as_str()) {
            let label = "a scenario can revoke only keys that it creates, with `- key: k1`";
            return Err(Stop::impossible(name.span, "this key cannot be revoked", label));
        }
        let at = self.now;
        let key = self.named_object(name)?;
        self.call_ok("DELETE", &format!("/sandbox/keys/{}", key.id), None)?;
        self.write_line(at, "revoke", &format!("{}{}", name.value, in_mode(key.mode)), None);
        Ok(())
    }

    pub(super) fn add_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), Stop> {
        let mode = self.mode(endpoint.mode);
        let name = &endpoint.name.value;
        let url = endpoint.url.clone().unwrap_or_else(|| format!("https://{name}.sim/webhooks"));
        let events: Option<Vec<EventType>> =
            endpoint.events.as_ref().map(|types| types.iter().map(|kind| kind.0).collect());
        let list_types = |events: &Vec<EventType>| {
            format!(" for {}", events.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" "))
        };
        let types = events.as_ref().map(list_types).unwrap_or_default();
        let summary = format!("{name}{types}{}", in_mode(mode));
        let account = self.account_id(endpoint.account.as_ref())?;
        let body = EndpointRequest {
            account: account.as_ref().map(|(_, id)| id.clone()),
            mode: Some(mode),
            url,
            events,
        };
        let (refused, body) = (endpoint.refused, api::json(&body));
        let action = Action { refused, ..Action::post("endpoint", &summary, "/sandbox/endpoints", body) };
        let Some(granted) = self.try_act(&action)? else { return Ok(()) };
        let id = self.text(&granted.response, "/endpoint/id")?;
        self.assign_name(&endpoint.name, Kind::Endpoint, (account.map_or(0, |(no, _)| no), mode), id);
        self.write_line(granted.at, "endpoint", &summary, None);
        Ok(())
    }

    pub(super) fn switch_endpoint(&mut self, name: &At<Name>, switch: Switch) -> Result<(), Stop> {
        let at = self.now;
        let endpoint = self.named_object(name)?;
        let path = format!("/sandbox/endpoints/{}", endpoint.id);
        let status_change =
            |status| Some(api::json(&EndpointChange { status: Some(status), ..EndpointChange::default() }));
        let (verb, method, path, body) = match switch {
            Switch::Enable => ("enable", "PATCH", path, status_change(EndpointStatus::Enabled)),
            Switch::Disable => ("disable", "PATCH", path, status_change(EndpointStatus::Disabled)),
            Switch::Remove => ("remove", "DELETE", path, None),
            Switch::Rotate => ("rotate", "POST", format!("{path}/rotate"), Some(json!({}))),
            Switch::Test => ("test", "POST", format!("{path}/test"), Some(json!({}))),
        };
        let response = self.call_ok(method, &path, body)?;
        let outcome = match response.text("/delivery") {
            Some(delivery) => Some(self.aliases.name(Kind::Delivery, endpoint.mode, &delivery)),
            None => None,
        };
        self.write_line(at, verb, &format!("{}{}", name.value, in_mode(endpoint.mode)), outcome.as_deref());
        Ok(())
    }

    pub(super) fn resend(&mut self, resend: &Resend) -> Result<(), Stop> {
        let object = self.named_object(&resend.delivery)?;
        let id = match object.kind {
            Kind::Endpoint => self.newest_delivery(&object, resend)?,
            _ => object.id,
        };
        let name = self.aliases.name(Kind::Delivery, object.mode, &id);
        let summary = format!("{name}{}", in_mode(object.mode));
        let path = format!("/sandbox/deliveries/{id}/resend");
        let action = Action::post("resend", &summary, &path, json!({}));
        self.plain_act(&Action { refused: resend.refused, ..action })
    }

    /// Returns the id of the newest delivery to an endpoint, with the requested status if there is one.
    fn newest_delivery(&mut self, endpoint: &NamedObject, resend: &Resend) -> Result<String, Stop> {
        let mut path = format!("/sandbox/deliveries?endpoint={}&limit=1", endpoint.id);
        if let Some(status) = resend.status {
            path.push_str("&status=");
            path.push_str(status.0);
        }
        let list = self.call_ok("GET", &path, None)?.json();
        let newest = list.pointer("/deliveries/0/id").and_then(Value::as_str);
        newest.map(str::to_owned).ok_or_else(|| {
            let label = "this endpoint has no such delivery";
            Stop::impossible(resend.delivery.span, "there is nothing to resend", label)
        })
    }

    pub(super) fn set_merchants(&mut self, merchants: &BTreeMap<String, At<Answers>>) -> Result<(), Stop> {
        let at = self.now;
        for (name, responses) in merchants {
            let body = MerchantRequest {
                name: name.clone(),
                state: Some(responses.then.0.clone()),
                answers: responses.first.clone(),
            };
            self.call_ok("POST", "/sandbox/merchants", Some(api::json(&body)))?;
            let summary = match responses.first.as_slice() {
                [] => format!("{name} {}", responses.then.0),
                first => format!("{name} {}, then {}", first.join(" "), responses.then.0),
            };
            self.write_line(at, "merchant", &summary, None);
        }
        Ok(())
    }

    /// Performs an action and writes its line without an outcome.
    pub(super) fn plain_act(&mut self, action: &Action<'_>) -> Result<(), Stop> {
        if let Some(granted) = self.try_act(action)? {
            self.write_line(granted.at, action.verb, action.about, None);
        }
        Ok(())
    }
}

/// Formats settings as `underpayment_tolerance 2, name Shop`.
fn format_settings(settings: &Value) -> String {
    let entries = settings.as_object().into_iter().flatten();
    let entries = entries.map(|(key, value)| match value {
        Value::String(text) => format!("{key} {text}"),
        other => format!("{key} {other}"),
    });
    entries.collect::<Vec<_>>().join(", ")
}
