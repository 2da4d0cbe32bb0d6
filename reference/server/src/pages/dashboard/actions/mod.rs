//! The action of each form: one call of `/sandbox`, and the page that follows.

mod make;
mod pay;
mod world;

use std::collections::BTreeMap;

use reference_core::mode::Mode;
use serde::{Serialize, de::DeserializeOwned};
use simulator::api::{CausedEvents, Empty, EndpointAnswer, KeyAnswer, KeyRequest, TestAnswer, WalletAnswer};

use super::{
    context::PageContext,
    flash::{Notice, Secret},
    paths::{BookId, Page, is_id},
};
use crate::{
    pages::{Complaint, form::Form, json},
    refusal::Refusal,
};

/// The result of a form.
pub(super) enum Outcome {
    /// The action succeeded; with the notice.
    Done(Notice),
    /// A new world was opened. Its dashboard at this path shows the notice.
    Opened { dashboard: String, notice: Notice },
    /// The world refused the action.
    Refused(Complaint),
}

type ActionResult = Result<(Page, Outcome), Refusal>;

/// Returns `true` if a path below account and mode accepts forms.
pub(super) fn accepts_form(segments: &[&str]) -> bool {
    matches!(
        segments,
        ["keys" | "endpoints" | "charges" | "invoices" | "links" | "settings"]
            | ["endpoints" | "wallets" | "world", _]
            | ["keys", _, "revoke"]
            | ["deliveries", _, "resend"]
            | ["wallets", _, "remove"]
            | ["endpoints" | "charges" | "invoices" | "links", _, _]
    )
}

/// Performs the action of a form. `segments`: the path that it was sent to, below account and mode.
pub(super) async fn act(context: &PageContext, segments: &[&str], form: &Form) -> ActionResult {
    if !segments.iter().all(|segment| is_id(segment)) {
        return Err(Refusal::NotFound);
    }
    match segments {
        ["keys"] => create_key(context).await,
        ["keys", id, "revoke"] => revoke_key(context, id).await,
        ["endpoints"] => add_endpoint(context, form).await,
        ["endpoints", id] => change_endpoint(context, id, form).await,
        ["endpoints", id, action] => on_endpoint(context, id, action).await,
        ["deliveries", id, "resend"] => resend(context, id, form).await,
        ["wallets", asset] => set_wallet(context, asset, form).await,
        ["wallets", asset, "remove"] => remove_wallet(context, asset, form).await,
        ["charges"] => make::charge(context, form).await,
        ["invoices"] => make::invoice(context, form).await,
        ["links"] => make::link(context, form).await,
        ["charges", code, "refund"] => make::refund(context, code, form).await,
        ["links", code, action @ ("archive" | "restore")] => make::set_archived(context, code, action).await,
        ["charges", code, action] => on_charge(context, code, action, form).await,
        ["invoices", code, "pay"] => {
            pay::pay_in(context, ("invoices", Page::Invoice((*code).to_owned())), code, form).await
        }
        ["links", code, "pay"] => {
            pay::pay_in(context, ("links", Page::Link((*code).to_owned())), code, form).await
        }
        ["invoices", code, action] => on_invoice(context, code, action).await,
        ["settings"] => change_settings(context, form).await,
        ["world", action] => world::on_world(context, action, form).await,
        _ => Err(Refusal::NotFound),
    }
}

/// Returns the page that contained the form, if the form names it. The path is parsed like any other, so it cannot lead
/// to another site.
fn return_page(form: &Form, otherwise: Page) -> Page {
    let path = form.text("back").unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match path {
        "" if form.values("back").next().is_none() => otherwise,
        _ => Page::read(&segments).unwrap_or(otherwise),
    }
}

/// Calls the world; `notice` makes the notice from a successful response.
async fn call<T: DeserializeOwned, N: Into<Option<Notice>>>(
    context: &PageContext,
    page: Page,
    (method, path, body): (&str, &str, &str),
    notice: impl FnOnce(T) -> N,
) -> ActionResult {
    let outcome = match context.client.act(method, path, body).await? {
        Ok(answer) => Outcome::Done(notice(answer).into().ok_or(Refusal::Broken)?),
        Err(complaint) => Outcome::Refused(complaint),
    };
    Ok((page, outcome))
}

/// Calls the world; a successful response gives this notice.
async fn call_with_notice(
    context: &PageContext,
    page: Page,
    request: (&str, &str, &str),
    notice: impl Into<String>,
) -> ActionResult {
    call(context, page, request, |Empty {}| Notice::text(notice)).await
}

/// A value of a request. Input is passed unchanged, for the world to validate.
#[derive(Serialize)]
#[serde(untagged)]
enum FormValue<'f> {
    Text(&'f str),
    Number(u32),
    Flag(bool),
    Texts(Vec<&'f str>),
    Null,
}

/// The body of a request, built from a form.
#[derive(Serialize)]
struct FormBody<'f>(BTreeMap<&'static str, FormValue<'f>>);

impl<'f> FormBody<'f> {
    /// Takes fields from the form, unchanged. Empty fields are omitted.
    fn from_form(form: &'f Form, fields: &[&'static str]) -> FormBody<'f> {
        let typed = fields.iter().filter_map(|name| Some((*name, FormValue::Text(form.text(name)?))));
        FormBody(typed.collect())
    }

    /// Takes fields from the form and adds the account and mode of the page.
    fn from_book_form(context: &'f PageContext, form: &'f Form, fields: &[&'static str]) -> FormBody<'f> {
        let place = &context.place;
        let body = FormBody::from_form(form, fields).with("account", FormValue::Text(&place.account));
        body.with("mode", FormValue::Text(place.mode.as_str()))
    }

    fn with(mut self, name: &'static str, value: FormValue<'f>) -> FormBody<'f> {
        self.0.insert(name, value);
        self
    }

    fn with_text(self, name: &'static str, text: &'f str) -> FormBody<'f> {
        self.with(name, FormValue::Text(text))
    }

    fn json(&self) -> String {
        json(self)
    }
}

/// Returns the non-empty lines.
fn non_empty_lines(text: &str) -> FormValue<'_> {
    FormValue::Texts(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
}

/// Returns a notice with the number of events that an action caused.
fn with_count(notice: &str, caused: &CausedEvents) -> Notice {
    Notice::text(match caused.happened.len() {
        0 => notice.to_owned(),
        1 => format!("{notice} One entry was added to the history."),
        many => format!("{notice} {many} entries were added to the history."),
    })
}

/// Returns a notice that shows a secret once; `None` if the answer has none.
fn with_secret(text: &str, label: String, secret: Option<String>, hint: String) -> Option<Notice> {
    let secret = Secret { label, text: secret?, hint };
    Some(Notice { text: text.to_owned(), secret: Some(secret), ..Notice::default() })
}

async fn create_key(context: &PageContext) -> ActionResult {
    let BookId { account, mode } = &context.place;
    let request = json(&KeyRequest { account: Some(account.clone()), mode: Some(*mode) });
    let hint = context.curl_get("/v1/account");
    call(context, Page::Keys, ("POST", "/sandbox/keys", &request), |KeyAnswer { key }| {
        let text = "The key was created. Copy it now: it is not shown again.";
        with_secret(text, format!("API key, mode {mode}"), key.secret, hint)
    })
    .await
}

async fn revoke_key(context: &PageContext, id: &str) -> ActionResult {
    if !context.keys().await?.iter().any(|key| key.id.as_str() == id) {
        return Err(Refusal::NotFound);
    }
    let path = format!("/sandbox/keys/{id}");
    let notice = "The key is revoked. Requests with it are answered with 401.";
    call_with_notice(context, Page::Keys, ("DELETE", &path, ""), notice).await
}

fn events(form: &Form) -> FormValue<'_> {
    FormValue::Texts(form.values("events").collect())
}

/// Returns a notice that shows the signing secret of an endpoint.
fn signing_secret(mode: Mode, text: &str, EndpointAnswer { endpoint }: EndpointAnswer) -> Option<Notice> {
    let variable = format!("CHARGEPROOF_{}_WEBHOOK_SECRET", mode.as_str().to_uppercase());
    let hint = format!("{variable}=whsec_… chargeproof receiver listen --secret-env {variable}");
    with_secret(text, "Signing secret".to_owned(), endpoint.secret, hint)
}

async fn add_endpoint(context: &PageContext, form: &Form) -> ActionResult {
    let body = FormBody::from_book_form(context, form, &["url"]).with("events", events(form)).json();
    let text = "The endpoint is added. Copy its signing secret now: it is not shown again.";
    let request = ("POST", "/sandbox/endpoints", body.as_str());
    call(context, Page::Endpoints, request, |answer| signing_secret(context.place.mode, text, answer)).await
}

async fn change_endpoint(context: &PageContext, id: &str, form: &Form) -> ActionResult {
    context.endpoint(id).await?;
    let body = FormBody::from_form(form, &["url"]).with("events", events(form)).json();
    let (page, path) = (Page::Endpoint(id.to_owned()), format!("/sandbox/endpoints/{id}"));
    call_with_notice(context, page, ("PATCH", &path, &body), "The endpoint is changed.").await
}

async fn on_endpoint(context: &PageContext, id: &str, action: &str) -> ActionResult {
    context.endpoint(id).await?;
    let path = format!("/sandbox/endpoints/{id}");
    let page = Page::Endpoint(id.to_owned());
    match action {
        "on" => {
            let notice = "The endpoint is on. Events from now on are delivered.";
            call_with_notice(context, page, ("PATCH", &path, r#"{"status":"enabled"}"#), notice).await
        }
        "off" => {
            let notice = "The endpoint is off. Its waiting deliveries are canceled.";
            call_with_notice(context, page, ("PATCH", &path, r#"{"status":"disabled"}"#), notice).await
        }
        "rotate" => {
            let text = "The old secret is no longer used. Copy the new one now: it is not shown again.";
            let path = format!("{path}/rotate");
            call(context, page, ("POST", &path, ""), |answer| {
                signing_secret(context.place.mode, text, answer)
            })
            .await
        }
        "remove" => {
            let notice = "The endpoint is removed. Its deliveries stay in the log.";
            call_with_notice(context, Page::Endpoints, ("DELETE", &path, ""), notice).await
        }
        "test" => {
            let test: Result<TestAnswer, _> = context.client.act("POST", &format!("{path}/test"), "").await?;
            Ok(match test {
                // The delivery's page shows the result.
                Ok(TestAnswer { delivery }) => {
                    let notice = Notice::text("A test event is on its way.");
                    (Page::Delivery(delivery.to_string()), Outcome::Done(notice))
                }
                Err(complaint) => (page, Outcome::Refused(complaint)),
            })
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn resend(context: &PageContext, id: &str, form: &Form) -> ActionResult {
    context.delivery(id).await?;
    let page = return_page(form, Page::Delivery(id.to_owned()));
    let path = format!("/sandbox/deliveries/{id}/resend");
    call_with_notice(
        context,
        page,
        ("POST", &path, ""),
        "The delivery is on its way again, under the same id.",
    )
    .await
}

async fn set_wallet(context: &PageContext, asset: &str, form: &Form) -> ActionResult {
    let mut body = FormBody::from_book_form(context, form, &["key", "script"]).with_text("asset", asset);
    if let Some(text) = form.text("addresses") {
        body = body.with("addresses", non_empty_lines(text));
    }
    let request = ("PUT", "/sandbox/wallets", &*body.json());
    let outcome = call(context, Page::Wallets, request, |WalletAnswer { wallet }| {
        let first = wallet.first_address.unwrap_or_default();
        Notice::text(format!(
            "New {asset} charges are paid to this wallet. Open charges keep their addresses. Compare its first address \
             with the one that your own wallet shows: {first}"
        ))
    })
    .await?;
    Ok(match outcome {
        (_, refused @ Outcome::Refused(_)) => (Page::Wallet(asset.to_owned()), refused),
        done => done,
    })
}

async fn remove_wallet(context: &PageContext, asset: &str, form: &Form) -> ActionResult {
    let body = FormBody::from_book_form(context, form, &[]).with_text("asset", asset).json();
    let notice = format!("{asset} is not accepted any more in this mode.");
    call_with_notice(context, Page::Wallets, ("DELETE", "/sandbox/wallets", &body), notice).await
}

async fn on_charge(context: &PageContext, code: &str, action: &str, form: &Form) -> ActionResult {
    let asset = context.read(|book| Ok(book.charge(code)?.terms.asset)).await?;
    let page = Page::Charge(code.to_owned());
    match action {
        "pay" => {
            let body = FormBody::from_form(form, &["fee"]).with_text("charge", code);
            let body = match form.text("how").unwrap_or("rest") {
                "amount" => body.with_text("amount", form.text("amount").unwrap_or_default()),
                "rest" => body,
                share => body.with_text("share", share),
            };
            let notice = format!("A simulated customer sent {asset}.");
            let request = ("POST", "/sandbox/pay", &*body.json());
            call(context, return_page(form, page), request, |caused| with_count(&notice, &caused)).await
        }
        "accept" => {
            let body = FormBody::from_form(form, &["txid"]).json();
            let path = format!("/sandbox/charges/{code}/accept");
            let notice = format!("The late payment to {code} is accepted.");
            call_with_notice(context, return_page(form, page), ("POST", &path, &body), notice).await
        }
        "cancel" => {
            let path = format!("/sandbox/charges/{code}/cancel");
            call_with_notice(context, page, ("POST", &path, ""), "The charge is canceled.").await
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn on_invoice(context: &PageContext, code: &str, action: &str) -> ActionResult {
    context.read(|book| book.invoice(code)).await?;
    let page = Page::Invoice(code.to_owned());
    let notice = match action {
        "send" => "The invoice is in the outbox.",
        "void" => "The invoice is void and can't be paid any more.",
        _ => return Err(Refusal::NotFound),
    };
    let path = format!("/sandbox/invoices/{code}/{action}");
    call_with_notice(context, page, ("POST", &path, ""), notice).await
}

async fn change_settings(context: &PageContext, form: &Form) -> ActionResult {
    let mut body = FormBody::from_form(
        form,
        &[
            "name",
            "display_name",
            "brand_color",
            "default_currency",
            "underpayment_tolerance",
            "overpayment_threshold",
        ],
    );
    // These fields may be cleared.
    for name in ["logo_url", "website_url", "support_email", "support_phone"] {
        body = body.with(name, form.text(name).map_or(FormValue::Null, FormValue::Text));
    }
    let body = body.with("members", non_empty_lines(form.text("members").unwrap_or_default())).json();
    let path = format!("/sandbox/accounts/{}", context.place.account);
    call_with_notice(context, Page::Settings, ("PATCH", &path, &body), "The settings are saved.").await
}
