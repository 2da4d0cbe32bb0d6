//! Steps on charges, payment links and invoices: API requests, dashboard operations and actions on hosted pages.

use serde_json::{Value, json};

use super::{
    Action, GrantedAction, Player, SentRequest, failure::StepError, json_object, lines::mode_suffix,
    lines::trim_trailing_zeros,
};
use crate::{
    api::{self, AcceptRequest, LinkCoinRequest},
    record::BookId,
    script::{
        At, Kind,
        step::{Accept, By, Cancel, Choose, Invoice, Item, Link, Open, Refund, Repeat, Send, Void},
        value::Name,
    },
};

impl Player<'_> {
    pub(super) fn open_charge(&mut self, open: &Open) -> Result<(), StepError> {
        let mode = self.mode_or_default(open.mode);
        let link = match &open.link {
            Some(link) => Some(self.named_object(link)?.id),
            None => None,
        };
        let asset = open.asset.0.code();
        let mut summary = format!("{} {asset}", open.charge.value);
        if let Some(price) = &open.amount {
            summary.push_str(&format!(" {price}"));
        }
        if let Some(link) = &open.link {
            summary.push_str(&format!(" by {}", link.value));
        }
        let book = (self.account_index(open.account.as_ref())?, mode);
        summary.push_str(&self.owner_suffix(book));
        let metadata = open.metadata.as_ref().map(|map| json!(map));
        let body = json_object([
            ("asset", Some(asset.into())),
            ("amount", open.amount.as_ref().map(|price| price.amount.clone().into())),
            ("currency", open.amount.as_ref().map(|price| price.currency.code().into())),
            ("payment_link", link.map(Value::from)),
            ("customer_email", open.customer_email.clone().map(Value::from)),
            ("description", open.description.clone().map(Value::from)),
            ("metadata", metadata),
            ("custom_fields", open.custom_fields.as_ref().map(|values| json!(values))),
        ]);
        let idempotency_key = open.idempotency_key.as_deref();
        let action = Action {
            book_id: Some(book),
            idempotency_key,
            refused: open.refused,
            ..Action::post("open", &summary, "/v1/charges", body)
        };
        let Some(granted) = self.try_action(&action)? else { return Ok(()) };
        if let Some(key) = idempotency_key {
            let request = SentRequest { book_id: book, idempotency_key: key.to_owned(), body: action.body };
            self.repeatable.insert(open.charge.value.0.clone(), request);
        }
        let code = self.string_at(&granted.response, "/data/id")?;
        self.assign_name(&open.charge, Kind::Charge, book, code);
        if self.refusals.is_some() {
            return Ok(());
        }
        let due = self.string_at(&granted.response, "/data/asset_amount")?;
        let status = self.string_at(&granted.response, "/data/status")?;
        let outcome =
            format!("{} {status}, due {} {asset}", granted.response.status, trim_trailing_zeros(&due));
        self.write_line(granted.at, "open", &summary, Some(&outcome));
        Ok(())
    }

    /// Repeats the request that opened a charge.
    pub(super) fn repeat_open(&mut self, repeat: &Repeat) -> Result<(), StepError> {
        let name = &repeat.charge;
        let request = self.repeatable.get(&name.value.0).cloned();
        let Some(SentRequest { book_id: book, idempotency_key, mut body }) = request else {
            let label = "its step has no `idempotency_key`, or it was refused";
            return Err(StepError::impossible(
                name.span,
                format!("`{}` cannot be repeated", name.value),
                label,
            ));
        };
        let mut summary = name.value.to_string();
        if let (Some(text), Value::Object(body)) = (&repeat.description, &mut body) {
            body.insert("description".to_owned(), text.clone().into());
            summary.push_str(&format!(" as {text}"));
        }
        summary.push_str(&self.owner_suffix(book));
        let action = Action {
            book_id: Some(book),
            idempotency_key: Some(&idempotency_key),
            refused: repeat.refused,
            ..Action::post("repeat", &summary, "/v1/charges", body)
        };
        let Some(granted) = self.try_action(&action)? else { return Ok(()) };
        let code = self.string_at(&granted.response, "/data/id")?;
        let charge = self.aliases.name_or_assign(Kind::Charge, book.1, &code);
        self.write_line(
            granted.at,
            "repeat",
            &summary,
            Some(&format!("{} {charge}", granted.response.status)),
        );
        Ok(())
    }

    /// Returns a suffix such as ` of bakery (test)`; the first account and live mode are omitted.
    fn owner_suffix(&self, (account, mode): BookId) -> String {
        match account {
            0 => mode_suffix(mode).to_owned(),
            _ => format!(" of {}{}", self.accounts[account], mode_suffix(mode)),
        }
    }

    pub(super) fn create_link(&mut self, link: &Link) -> Result<(), StepError> {
        let mode = self.mode_or_default(link.mode);
        let price = link.amount.as_ref();
        let pricing = if price.is_some() { "fixed" } else { "open" };
        let currency = price.map(|price| price.currency).or(link.currency.map(|currency| currency.0));
        let assets: Option<Vec<&str>> =
            link.accepted_assets.as_ref().map(|assets| assets.iter().map(|asset| asset.0.code()).collect());
        let title = link.title.clone().unwrap_or_else(|| link.link.value.0.clone());
        let body = json_object([
            ("title", Some(title.into())),
            ("pricing_type", Some(pricing.into())),
            ("amount", price.map(|price| price.amount.clone().into())),
            ("currency", currency.map(|currency| currency.code().into())),
            ("accepted_assets", assets.map(Value::from)),
            ("max_payments", link.max_payments.map(Value::from)),
            ("custom_fields", link.custom_fields.as_ref().map(|fields| json!(fields))),
        ]);
        let shown_price = price.map_or_else(|| "open price".to_owned(), ToString::to_string);
        let book = (self.account_index(link.account.as_ref())?, mode);
        let summary = format!("{} {shown_price}{}", link.link.value, self.owner_suffix(book));
        let granted = self.post_api("link", &summary, "/v1/payment-links", book, body, link.refused)?;
        self.record_created(granted, "link", &summary, &link.link, Kind::Link, book)
    }

    pub(super) fn issue_invoice(&mut self, invoice: &Invoice) -> Result<(), StepError> {
        let mode = self.mode_or_default(invoice.mode);
        let price = invoice.amount.as_ref();
        let currency = price.map(|price| price.currency).or(invoice.currency.map(|currency| currency.0));
        let items = invoice.items.as_ref().map(|items| items.iter().map(item_json).collect::<Value>());
        let body = json_object([
            ("customer_email", invoice.customer_email.clone().map(Value::from)),
            ("customer_name", invoice.customer_name.clone().map(Value::from)),
            ("amount", price.map(|price| price.amount.clone().into())),
            ("items", items),
            ("currency", currency.map(|currency| currency.code().into())),
            ("memo", invoice.memo.clone().map(Value::from)),
            ("due_at", invoice.due_at.clone().map(Value::from)),
            ("send_email", invoice.send.then_some(Value::Bool(true))),
        ]);
        let mut summary = invoice.invoice.value.to_string();
        if let Some(price) = price {
            summary.push_str(&format!(" {price}"));
        }
        if let Some(items) = &invoice.items {
            summary.push_str(&format!(
                " {} {}",
                items.len(),
                if items.len() == 1 { "item" } else { "items" }
            ));
        }
        let book = (self.account_index(invoice.account.as_ref())?, mode);
        summary.push_str(&self.owner_suffix(book));
        let granted = self.post_api("invoice", &summary, "/v1/invoices", book, body, invoice.refused)?;
        self.record_created(granted, "invoice", &summary, &invoice.invoice, Kind::Invoice, book)
    }

    pub(super) fn send_invoice(&mut self, send: &Send) -> Result<(), StepError> {
        self.act_on_object("send", "invoices", &send.invoice, send.by, send.refused)
    }

    pub(super) fn void_invoice(&mut self, void: &Void) -> Result<(), StepError> {
        self.act_on_object("void", "invoices", &void.invoice, void.by, void.refused)
    }

    pub(super) fn cancel_charge(&mut self, cancel: &Cancel) -> Result<(), StepError> {
        self.act_on_object("cancel", "charges", &cancel.charge, cancel.by, cancel.refused)
    }

    pub(super) fn view_page(&mut self, page: &At<Name>) -> Result<(), StepError> {
        let object = self.named_object(page)?;
        let path = format!("/sandbox/{}/{}/view", list_name(object.kind), object.id);
        let summary = format!("{}{}", page.value, mode_suffix(object.mode));
        self.perform_action(&Action::post("view", &summary, &path, json!({})))
    }

    pub(super) fn choose_asset(&mut self, choose: &Choose) -> Result<(), StepError> {
        let page = choose.invoice.as_ref().or(choose.link.as_ref());
        let page = page.ok_or_else(|| {
            StepError::impossible(self.step_span, "`choose` needs a page", "add `invoice` or `link`")
        })?;
        let object = self.named_object(page)?;
        let asset = choose.asset.0;
        let summary = format!("{} {asset}{}", page.value, mode_suffix(object.mode));
        let body = LinkCoinRequest {
            asset,
            amount: choose.amount.as_ref().map(|amount| amount.0.clone()),
            customer_email: choose.customer_email.clone(),
            customer_name: None,
            custom_fields: choose.custom_fields.clone().unwrap_or_default(),
        };
        let body = api::json(&body);
        let path = format!("/sandbox/{}/{}/choose", list_name(object.kind), object.id);
        let action = Action { refused: choose.refused, ..Action::post("choose", &summary, &path, body) };
        let Some(granted) = self.try_action(&action)? else { return Ok(()) };
        let code = self.string_at(&granted.response, "/charge")?;
        let book = self.book_of(&object);
        self.assign_name(&choose.charge, Kind::Charge, book, code);
        self.write_line(granted.at, "choose", &summary, Some(&choose.charge.value.0));
        Ok(())
    }

    pub(super) fn refund_charge(&mut self, refund: &Refund) -> Result<(), StepError> {
        let charge = self.named_object(&refund.charge)?;
        let summary = format!("{} {}{}", refund.charge.value, refund.amount.0, mode_suffix(charge.mode));
        let body = json_object([
            ("amount", Some(refund.amount.0.clone().into())),
            ("reason", refund.reason.clone().map(Value::from)),
            ("txid", refund.txid.clone().map(Value::from)),
        ]);
        let path = format!("/v1/charges/{}/refunds", charge.id);
        if let Some(granted) =
            self.post_api("refund", &summary, &path, self.book_of(&charge), body, refund.refused)?
        {
            self.write_line(granted.at, "refund", &summary, Some(&granted.response.status.to_string()));
        }
        Ok(())
    }

    pub(super) fn accept_payment(&mut self, accept: &Accept) -> Result<(), StepError> {
        let charge = self.named_object(&accept.charge)?;
        let mut summary = accept.charge.value.to_string();
        let mut txid = None;
        if let Some(name) = &accept.tx {
            txid = Some(self.named_object(name)?.id);
            summary.push_str(&format!(" {}", name.value));
        }
        summary.push_str(mode_suffix(charge.mode));
        let path = format!("/sandbox/charges/{}/accept", charge.id);
        let action = Action::post("accept", &summary, &path, api::json(&AcceptRequest { txid }));
        self.perform_action(&Action { refused: accept.refused, ..action })
    }

    /// Performs an action on an object, by the API or in the dashboard.
    fn act_on_object(
        &mut self,
        verb: &str,
        list: &str,
        name: &At<Name>,
        by: By,
        refused: Option<u16>,
    ) -> Result<(), StepError> {
        let object = self.named_object(name)?;
        let summary = format!("{}{}", name.value, mode_suffix(object.mode));
        match by {
            By::Api => {
                let path = format!("/v1/{list}/{}/{verb}", object.id);
                if let Some(granted) =
                    self.post_api(verb, &summary, &path, self.book_of(&object), json!({}), refused)?
                {
                    self.write_line(granted.at, verb, &summary, Some(&granted.response.status.to_string()));
                }
                Ok(())
            }
            By::Dashboard => {
                let summary = format!("{summary} in the dashboard");
                let path = format!("/sandbox/{list}/{}/{verb}", object.id);
                self.perform_action(&Action { refused, ..Action::post(verb, &summary, &path, json!({})) })
            }
        }
    }

    /// Sends a `POST` under `/v1` with the account's own key of this mode.
    fn post_api(
        &mut self,
        verb: &str,
        summary: &str,
        path: &str,
        book: BookId,
        body: Value,
        refused: Option<u16>,
    ) -> Result<Option<GrantedAction>, StepError> {
        self.try_action(&Action { book_id: Some(book), refused, ..Action::post(verb, summary, path, body) })
    }

    /// Assigns the name of a new object, and writes the line of the action that created it.
    fn record_created(
        &mut self,
        granted: Option<GrantedAction>,
        verb: &str,
        summary: &str,
        name: &At<Name>,
        kind: Kind,
        book: BookId,
    ) -> Result<(), StepError> {
        let Some(granted) = granted else { return Ok(()) };
        let code = self.string_at(&granted.response, "/data/id")?;
        self.assign_name(name, kind, book, code);
        if self.refusals.is_some() {
            return Ok(());
        }
        let status = self.string_at(&granted.response, "/data/status")?;
        self.write_line(granted.at, verb, summary, Some(&format!("{} {status}", granted.response.status)));
        Ok(())
    }
}

/// Returns the name of the sandbox list that contains a hosted page.
fn list_name(kind: Kind) -> &'static str {
    if kind == Kind::Link { "links" } else { "invoices" }
}

fn item_json(item: &Item) -> Value {
    json!({
        "description": item.description,
        "quantity": item.quantity.0,
        "unit_amount": item.unit_amount.0,
    })
}
