//! The action of each form: requests to `/sandbox`, and the page to show next.

mod create;
mod pay;
mod world;

use std::collections::BTreeMap;

use reference_core::mode::Mode;
use serde::{Serialize, de::DeserializeOwned};
use simulator::api::{
    CausedEvents, EmptyResponse, EndpointResponse, KeyRequest, KeyResponse, TestDeliveryResponse,
    WalletResponse,
};

use super::{
    context::PageContext,
    flash::{Notice, Secret},
    paths::{BookId, Page, is_id},
};
use crate::{
    pages::{ErrorResponse, form::Form, json},
    refusal::Refusal,
};

/// The result of a form's action.
pub(super) enum Outcome {
    /// The action succeeded; the next page shows the notice.
    Success(Notice),
    /// A new world was opened. Its dashboard at this path shows the notice.
    NewWorld { dashboard_path: String, notice: Notice },
    /// The world refused the action.
    Error(ErrorResponse),
}

/// The page to show next, and the result.
type ActionResult = Result<(Page, Outcome), Refusal>;

/// Returns `true` if a path below account and mode may accept forms. [`perform`] refuses unknown actions.
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
pub(super) async fn perform(context: &PageContext, segments: &[&str], form: &Form) -> ActionResult {
    if !segments.iter().all(|segment| is_id(segment)) {
        return Err(Refusal::NotFound);
    }
    match segments {
        ["keys"] => create_key(context).await,
        ["keys", id, "revoke"] => revoke_key(context, id).await,
        ["endpoints"] => add_endpoint(context, form).await,
        ["endpoints", id] => change_endpoint(context, id, form).await,
        ["endpoints", id, action] => endpoint_action(context, id, action).await,
        ["deliveries", id, "resend"] => resend(context, id, form).await,
        ["wallets", asset] => set_wallet(context, asset, form).await,
        ["wallets", asset, "remove"] => remove_wallet(context, asset, form).await,
        ["charges"] => create::charge(context, form).await,
        ["invoices"] => create::invoice(context, form).await,
        ["links"] => create::link(context, form).await,
        ["charges", code, "refund"] => create::refund(context, code, form).await,
        ["links", code, action @ ("archive" | "restore")] => {
            create::set_archived(context, code, action).await
        }
        ["charges", code, action] => charge_action(context, code, action, form).await,
        ["invoices", code, "pay"] => {
            pay::pay_as_customer(context, ("invoices", Page::Invoice((*code).to_owned())), code, form).await
        }
        ["links", code, "pay"] => {
            pay::pay_as_customer(context, ("links", Page::Link((*code).to_owned())), code, form).await
        }
        ["invoices", code, action] => invoice_action(context, code, action).await,
        ["settings"] => change_settings(context, form).await,
        ["world", action] => world::world_action(context, action, form).await,
        _ => Err(Refusal::NotFound),
    }
}

/// Returns the page that the field `back` of the form names, otherwise `default`. The path is parsed like any other, so
/// it cannot lead to another site.
fn return_page(form: &Form, default: Page) -> Page {
    let path = form.text("back").unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match path {
        // An empty path names the overview.
        "" if form.values("back").next().is_none() => default,
        _ => Page::parse(&segments).unwrap_or(default),
    }
}

/// Sends a request to the world. `notice` creates the notice from a successful response; without one, the response is
/// an internal error.
async fn send<T: DeserializeOwned, N: Into<Option<Notice>>>(
    context: &PageContext,
    page: Page,
    (method, path, body): (&str, &str, &str),
    notice: impl FnOnce(T) -> N,
) -> ActionResult {
    let outcome = match context.client.send(method, path, body).await? {
        Ok(response) => Outcome::Success(notice(response).into().ok_or(Refusal::Broken)?),
        Err(error_response) => Outcome::Error(error_response),
    };
    Ok((page, outcome))
}

/// Sends a request to the world. A successful response gives this notice.
async fn send_with_notice(
    context: &PageContext,
    page: Page,
    request: (&str, &str, &str),
    notice: impl Into<String>,
) -> ActionResult {
    send(context, page, request, |EmptyResponse {}| Notice::text(notice)).await
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
    /// Copies fields of the form, unchanged. Empty fields are omitted.
    fn from_form(form: &'f Form, fields: &[&'static str]) -> FormBody<'f> {
        let filled = fields.iter().filter_map(|name| Some((*name, FormValue::Text(form.text(name)?))));
        FormBody(filled.collect())
    }

    /// Copies fields of the form, and adds the account and mode of the page.
    fn from_book_form(context: &'f PageContext, form: &'f Form, fields: &[&'static str]) -> FormBody<'f> {
        let book_id = &context.book_id;
        let body = FormBody::from_form(form, fields).with("account", FormValue::Text(&book_id.account));
        body.with("mode", FormValue::Text(book_id.mode.as_str()))
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

/// Returns the non-empty lines as a JSON list.
fn non_empty_lines(text: &str) -> FormValue<'_> {
    FormValue::Texts(text.lines().map(str::trim).filter(|line| !line.is_empty()).collect())
}

/// Returns a notice with the number of events that an action caused.
fn notice_with_count(notice: &str, caused: &CausedEvents) -> Notice {
    Notice::text(match caused.happened.len() {
        0 => notice.to_owned(),
        1 => format!("{notice} One entry was added to the history."),
        count => format!("{notice} {count} entries were added to the history."),
    })
}

/// Returns a notice that shows a secret once; `None` if there is no secret.
fn notice_with_secret(text: &str, label: String, secret: Option<String>, hint: String) -> Option<Notice> {
    let secret = Secret { label, value: secret?, hint };
    Some(Notice { text: text.to_owned(), secret: Some(secret), ..Notice::default() })
}

async fn create_key(context: &PageContext) -> ActionResult {
    let BookId { account, mode } = &context.book_id;
    let request = json(&KeyRequest { account: Some(account.clone()), mode: Some(*mode) });
    let hint = context.curl_get("/v1/account");
    send(context, Page::Keys, ("POST", "/sandbox/keys", &request), |KeyResponse { key }| {
        let text = "The key was created. Copy it now: it is not shown again.";
        notice_with_secret(text, format!("API key, mode {mode}"), key.secret, hint)
    })
    .await
}

async fn revoke_key(context: &PageContext, id: &str) -> ActionResult {
    if !context.keys().await?.iter().any(|key| key.id.as_str() == id) {
        return Err(Refusal::NotFound);
    }
    let path = format!("/sandbox/keys/{id}");
    let notice = "The key is revoked. Requests with it get 401.";
    send_with_notice(context, Page::Keys, ("DELETE", &path, ""), notice).await
}

/// Returns the selected event types.
fn event_types(form: &Form) -> FormValue<'_> {
    FormValue::Texts(form.values("events").collect())
}

/// Returns a notice that shows the signing secret of an endpoint.
fn signing_secret_notice(
    mode: Mode,
    text: &str,
    EndpointResponse { endpoint }: EndpointResponse,
) -> Option<Notice> {
    let variable = format!("CHARGEPROOF_{}_WEBHOOK_SECRET", mode.as_str().to_uppercase());
    let hint = format!("{variable}=whsec_… chargeproof receiver listen --secret-env {variable}");
    notice_with_secret(text, "Signing secret".to_owned(), endpoint.secret, hint)
}

async fn add_endpoint(context: &PageContext, form: &Form) -> ActionResult {
    let body = FormBody::from_book_form(context, form, &["url"]).with("events", event_types(form)).json();
    let text = "The endpoint is added. Copy its signing secret now: it is not shown again.";
    let request = ("POST", "/sandbox/endpoints", body.as_str());
    send(context, Page::Endpoints, request, |response| {
        signing_secret_notice(context.book_id.mode, text, response)
    })
    .await
}

async fn change_endpoint(context: &PageContext, id: &str, form: &Form) -> ActionResult {
    // Fails if this account and mode has no such endpoint.
    context.endpoint(id).await?;
    let body = FormBody::from_form(form, &["url"]).with("events", event_types(form)).json();
    let (page, path) = (Page::Endpoint(id.to_owned()), format!("/sandbox/endpoints/{id}"));
    send_with_notice(context, page, ("PATCH", &path, &body), "The endpoint is changed.").await
}

async fn endpoint_action(context: &PageContext, id: &str, action: &str) -> ActionResult {
    context.endpoint(id).await?;
    let path = format!("/sandbox/endpoints/{id}");
    let page = Page::Endpoint(id.to_owned());
    match action {
        "on" => {
            let notice = "The endpoint is on. Events from now on are delivered.";
            send_with_notice(context, page, ("PATCH", &path, r#"{"status":"enabled"}"#), notice).await
        }
        "off" => {
            let notice = "The endpoint is off. Its waiting deliveries are canceled.";
            send_with_notice(context, page, ("PATCH", &path, r#"{"status":"disabled"}"#), notice).await
        }
        "rotate" => {
            let text = "The old secret is no longer used. Copy the new one now: it is not shown again.";
            let path = format!("{path}/rotate");
            send(context, page, ("POST", &path, ""), |response| {
                signing_secret_notice(context.book_id.mode, text, response)
            })
            .await
        }
        "remove" => {
            let notice = "The endpoint is removed. Its deliveries stay in the log.";
            send_with_notice(context, Page::Endpoints, ("DELETE", &path, ""), notice).await
        }
        "test" => {
            let test: Result<TestDeliveryResponse, _> =
                context.client.send("POST", &format!("{path}/test"), "").await?;
            Ok(match test {
                // The delivery's page shows the result.
                Ok(TestDeliveryResponse { delivery }) => {
                    let notice = Notice::text("A test event is on its way.");
                    (Page::Delivery(delivery.to_string()), Outcome::Success(notice))
                }
                Err(error_response) => (page, Outcome::Error(error_response)),
            })
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn resend(context: &PageContext, id: &str, form: &Form) -> ActionResult {
    context.delivery(id).await?;
    let page = return_page(form, Page::Delivery(id.to_owned()));
    let path = format!("/sandbox/deliveries/{id}/resend");
    send_with_notice(
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
    let outcome = send(context, Page::Wallets, request, |WalletResponse { wallet }| {
        let first = wallet.first_address.unwrap_or_default();
        Notice::text(format!(
            "New {asset} charges are paid to this wallet. Open charges keep their addresses. Compare its first address \
             with the one that your own wallet shows: {first}"
        ))
    })
    .await?;
    Ok(match outcome {
        (_, error @ Outcome::Error(_)) => (Page::Wallet(asset.to_owned()), error),
        success => success,
    })
}

async fn remove_wallet(context: &PageContext, asset: &str, form: &Form) -> ActionResult {
    let body = FormBody::from_book_form(context, form, &[]).with_text("asset", asset).json();
    let notice = format!("{asset} is not accepted any more in this mode.");
    send_with_notice(context, Page::Wallets, ("DELETE", "/sandbox/wallets", &body), notice).await
}

async fn charge_action(context: &PageContext, code: &str, action: &str, form: &Form) -> ActionResult {
    let asset = context.read(|book| Ok(book.charge(code)?.terms.asset)).await?;
    let page = Page::Charge(code.to_owned());
    match action {
        "pay" => {
            let body = FormBody::from_form(form, &["fee"]).with_text("charge", code);
            let body = match form.text("how").unwrap_or("rest") {
                "amount" => body.with_text("amount", form.text("amount").unwrap_or_default()),
                "rest" => body,
                // A decimal such as `0.5`: a share of the remaining amount.
                share => body.with_text("share", share),
            };
            let notice = format!("A simulated customer sent {asset}.");
            let request = ("POST", "/sandbox/pay", &*body.json());
            send(context, return_page(form, page), request, |caused| notice_with_count(&notice, &caused))
                .await
        }
        "accept" => {
            let body = FormBody::from_form(form, &["txid"]).json();
            let path = format!("/sandbox/charges/{code}/accept");
            let notice = format!("The late payment to {code} is accepted.");
            send_with_notice(context, return_page(form, page), ("POST", &path, &body), notice).await
        }
        "cancel" => {
            let path = format!("/sandbox/charges/{code}/cancel");
            send_with_notice(context, page, ("POST", &path, ""), "The charge is canceled.").await
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn invoice_action(context: &PageContext, code: &str, action: &str) -> ActionResult {
    context.read(|book| book.invoice(code)).await?;
    let page = Page::Invoice(code.to_owned());
    let notice = match action {
        "send" => "The invoice is in the outbox.",
        "void" => "The invoice is void and can't be paid any more.",
        _ => return Err(Refusal::NotFound),
    };
    let path = format!("/sandbox/invoices/{code}/{action}");
    send_with_notice(context, page, ("POST", &path, ""), notice).await
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
    let path = format!("/sandbox/accounts/{}", context.book_id.account);
    send_with_notice(context, Page::Settings, ("PATCH", &path, &body), "The settings are saved.").await
}
