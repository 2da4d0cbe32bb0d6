//! Steps of the account owner in the dashboard, and of merchants.

use std::collections::BTreeMap;

use reference_core::{endpoint::EndpointStatus, event::EventType, mode::Mode};
use serde_json::{Value, json};

use super::{Action, Player, alias::NamedObject, failure::StepError, lines::mode_suffix};
use crate::api::{
    self, AccountRequest, EndpointChangeRequest, EndpointRequest, KeyRequest, MerchantRequest, RateRequest,
    WalletRequest,
};
use crate::script::{
    At, Kind,
    step::{Answers, Endpoint, Key, OpenAccount, Rate, Resend, Settings, Wallet},
    value::Name,
};

/// An operation on an existing endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum EndpointOperation {
    Enable,
    Disable,
    Remove,
    Rotate,
    Test,
}

impl Player<'_> {
    pub(super) fn change_account(&mut self, changed: &Settings) -> Result<(), StepError> {
        let at = self.now;
        let body = api::json(changed);
        let summary = format_settings(&body);
        let path = format!("/sandbox/accounts/{}", self.accounts[0]);
        self.request_ok("PATCH", &path, Some(body))?;
        self.write_line(at, "account", &summary, None);
        Ok(())
    }

    pub(super) fn open_account(&mut self, open: &OpenAccount) -> Result<(), StepError> {
        let at = self.now;
        let id = &open.account.value.0;
        let settings = Settings {
            underpayment_tolerance: open.underpayment_tolerance.clone(),
            overpayment_threshold: open.overpayment_threshold.clone(),
            ..Settings::default()
        };
        let body = AccountRequest { id: id.clone(), kind: None, settings };
        let response = self.request_ok("POST", "/sandbox/accounts", Some(api::json(&body)))?;
        let account_no = self.accounts.len();
        self.accounts.push(id.clone());
        for mode in Mode::ALL {
            let key = self.string_at(&response, &format!("/keys/{mode}"))?;
            self.own_keys.insert((account_no, mode), key);
            let body = KeyRequest { account: Some(id.clone()), mode: Some(mode) };
            let created = self.request_ok("POST", "/sandbox/keys", Some(api::json(&body)))?;
            let observer = self.string_at(&created, "/key/secret")?;
            self.observers.insert((account_no, mode), observer);
        }
        self.assign_name(&open.account, Kind::Account, (account_no, self.script.mode), id.clone());
        self.write_line(at, "account", &format!("{id} opened"), None);
        Ok(())
    }

    /// Returns the index and id of the account that a step names; `None` if it names none.
    fn named_account(&self, name: Option<&At<Name>>) -> Result<Option<(usize, String)>, StepError> {
        let no = self.account_index(name)?;
        Ok(name.map(|_| (no, self.accounts[no].clone())))
    }

    pub(super) fn set_wallet(&mut self, wallet: &Wallet) -> Result<(), StepError> {
        let mode = self.mode_or_default(wallet.mode);
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
        let summary = format!("{asset} {change}{}", mode_suffix(mode));
        let action = Action::post("wallet", &summary, "/sandbox/wallets", api::json(&body));
        self.perform_action(&Action { method, refused: wallet.refused, ..action })
    }

    pub(super) fn set_rate(&mut self, rate: &Rate) -> Result<(), StepError> {
        let at = self.now;
        let (asset, currency) = (rate.asset.0, rate.currency.0);
        let body = RateRequest { asset, currency, rate: rate.rate.clone() };
        self.request_ok("POST", "/sandbox/rates", Some(api::json(&body)))?;
        let value = rate.rate.0.as_deref().unwrap_or("off");
        self.write_line(at, "rate", &format!("{asset} {value} {currency}"), None);
        Ok(())
    }

    pub(super) fn create_key(&mut self, key: &Key) -> Result<(), StepError> {
        let at = self.now;
        let mode = self.mode_or_default(key.mode);
        let account = self.named_account(key.account.as_ref())?;
        let body = KeyRequest { account: account.as_ref().map(|(_, id)| id.clone()), mode: Some(mode) };
        let created = self.request_ok("POST", "/sandbox/keys", Some(api::json(&body)))?;
        let (id, secret) = (self.string_at(&created, "/key/id")?, self.string_at(&created, "/key/secret")?);
        self.keys.insert(key.name.value.0.clone(), secret);
        let book = (account.map_or(0, |(no, _)| no), mode);
        self.assign_name(&key.name, Kind::Key, book, id);
        self.write_line(at, "key", &format!("{}{}", key.name.value, mode_suffix(mode)), None);
        Ok(())
    }

    pub(super) fn revoke_key(&mut self, name: &At<Name>) -> Result<(), StepError> {
        if ["live", "test"].contains(&name.value.0.as_str()) {
            let label = "a scenario can revoke only keys that it creates, with `- key: k1`";
            return Err(StepError::impossible(name.span, "this key cannot be revoked", label));
        }
        let at = self.now;
        let key = self.named_object(name)?;
        self.request_ok("DELETE", &format!("/sandbox/keys/{}", key.id), None)?;
        self.write_line(at, "revoke", &format!("{}{}", name.value, mode_suffix(key.mode)), None);
        Ok(())
    }

    pub(super) fn add_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), StepError> {
        let mode = self.mode_or_default(endpoint.mode);
        let name = &endpoint.name.value;
        let url = endpoint.url.clone().unwrap_or_else(|| format!("https://{name}.sim/webhooks"));
        let events: Option<Vec<EventType>> =
            endpoint.events.as_ref().map(|types| types.iter().map(|kind| kind.0).collect());
        let list_types = |events: &Vec<EventType>| {
            format!(" for {}", events.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" "))
        };
        let types = events.as_ref().map(list_types).unwrap_or_default();
        let summary = format!("{name}{types}{}", mode_suffix(mode));
        let account = self.named_account(endpoint.account.as_ref())?;
        let body = EndpointRequest {
            account: account.as_ref().map(|(_, id)| id.clone()),
            mode: Some(mode),
            url,
            events,
        };
        let (refused, body) = (endpoint.refused, api::json(&body));
        let action = Action { refused, ..Action::post("endpoint", &summary, "/sandbox/endpoints", body) };
        let Some(granted) = self.try_action(&action)? else { return Ok(()) };
        let id = self.string_at(&granted.response, "/endpoint/id")?;
        self.assign_name(&endpoint.name, Kind::Endpoint, (account.map_or(0, |(no, _)| no), mode), id);
        self.write_line(granted.at, "endpoint", &summary, None);
        Ok(())
    }

    pub(super) fn operate_endpoint(
        &mut self,
        name: &At<Name>,
        operation: EndpointOperation,
    ) -> Result<(), StepError> {
        let at = self.now;
        let endpoint = self.named_object(name)?;
        let path = format!("/sandbox/endpoints/{}", endpoint.id);
        let status_change = |status| {
            Some(api::json(&EndpointChangeRequest {
                status: Some(status),
                ..EndpointChangeRequest::default()
            }))
        };
        let (verb, method, path, body) = match operation {
            EndpointOperation::Enable => ("enable", "PATCH", path, status_change(EndpointStatus::Enabled)),
            EndpointOperation::Disable => ("disable", "PATCH", path, status_change(EndpointStatus::Disabled)),
            EndpointOperation::Remove => ("remove", "DELETE", path, None),
            EndpointOperation::Rotate => ("rotate", "POST", format!("{path}/rotate"), Some(json!({}))),
            EndpointOperation::Test => ("test", "POST", format!("{path}/test"), Some(json!({}))),
        };
        let response = self.request_ok(method, &path, body)?;
        let outcome = match response.string_at("/delivery") {
            Some(delivery) => Some(self.aliases.name_or_assign(Kind::Delivery, endpoint.mode, &delivery)),
            None => None,
        };
        self.write_line(
            at,
            verb,
            &format!("{}{}", name.value, mode_suffix(endpoint.mode)),
            outcome.as_deref(),
        );
        Ok(())
    }

    pub(super) fn resend(&mut self, resend: &Resend) -> Result<(), StepError> {
        let object = self.named_object(&resend.delivery)?;
        let id = match object.kind {
            Kind::Endpoint => self.newest_delivery(&object, resend)?,
            _ => object.id,
        };
        let name = self.aliases.name_or_assign(Kind::Delivery, object.mode, &id);
        let summary = format!("{name}{}", mode_suffix(object.mode));
        let path = format!("/sandbox/deliveries/{id}/resend");
        let action = Action::post("resend", &summary, &path, json!({}));
        self.perform_action(&Action { refused: resend.refused, ..action })
    }

    /// Returns the id of the newest delivery to an endpoint, with the status that the step requires, if any.
    fn newest_delivery(&mut self, endpoint: &NamedObject, resend: &Resend) -> Result<String, StepError> {
        let mut path = format!("/sandbox/deliveries?endpoint={}&limit=1", endpoint.id);
        if let Some(status) = resend.status {
            path.push_str("&status=");
            path.push_str(status.0);
        }
        let list = self.request_ok("GET", &path, None)?.json();
        let newest = list.pointer("/deliveries/0/id").and_then(Value::as_str);
        newest.map(str::to_owned).ok_or_else(|| {
            let label = "this endpoint has no such delivery";
            StepError::impossible(resend.delivery.span, "there is nothing to resend", label)
        })
    }

    pub(super) fn set_merchants(
        &mut self,
        merchants: &BTreeMap<String, At<Answers>>,
    ) -> Result<(), StepError> {
        let at = self.now;
        for (name, responses) in merchants {
            let body = MerchantRequest {
                name: name.clone(),
                state: Some(responses.then.0.clone()),
                answers: responses.first.clone(),
            };
            self.request_ok("POST", "/sandbox/merchants", Some(api::json(&body)))?;
            let summary = match responses.first.as_slice() {
                [] => format!("{name} {}", responses.then.0),
                first => format!("{name} {}, then {}", first.join(" "), responses.then.0),
            };
            self.write_line(at, "merchant", &summary, None);
        }
        Ok(())
    }

    /// Performs an action and writes its line without an outcome.
    pub(super) fn perform_action(&mut self, action: &Action<'_>) -> Result<(), StepError> {
        if let Some(granted) = self.try_action(action)? {
            self.write_line(granted.at, action.verb, action.summary, None);
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
