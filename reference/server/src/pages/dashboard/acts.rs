//! The action of each form: one call of `/sandbox`, and the page that follows.

mod make;
mod pay;
mod world;

use serde_json::{Map, Value, json};

use super::{
    context::PageContext,
    draft::Complaint,
    facts::One,
    flash::{Notice, Secret},
    place::{Page, is_id},
};
use crate::{
    pages::{
        form::Form,
        objects::{Charge, Invoice},
    },
    refusal::Refusal,
};

/// The result of a form.
pub(super) enum Outcome {
    /// It is done, and this is said of it.
    Done(Notice),
    /// The world is against it.
    Refused(Complaint),
}

type Acted = Result<(Page, Outcome), Refusal>;

/// Returns `true` if forms are sent to a path below the place.
pub(super) fn takes_form(segments: &[&str]) -> bool {
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

/// Does what a form says. `segments`: where it was sent to, below the place.
pub(super) async fn act(context: &PageContext, segments: &[&str], form: &Form) -> Acted {
    if !segments.iter().all(|segment| is_id(segment)) {
        return Err(Refusal::NotFound);
    }
    match segments {
        ["keys"] => create_key(context).await,
        ["keys", id, "revoke"] => revoke_key(context, id).await,
        ["endpoints"] => add_endpoint(context, form).await,
        ["endpoints", id] => change_endpoint(context, id, form).await,
        ["endpoints", id, what] => on_endpoint(context, id, what).await,
        ["deliveries", id, "resend"] => resend(context, id, form).await,
        ["wallets", asset] => set_wallet(context, asset, form).await,
        ["wallets", asset, "remove"] => remove_wallet(context, asset).await,
        ["charges"] => make::charge(context, form).await,
        ["invoices"] => make::invoice(context, form).await,
        ["links"] => make::link(context, form).await,
        ["charges", code, "refund"] => make::refund(context, code, form).await,
        ["links", code, what @ ("archive" | "restore")] => make::archive(context, code, what).await,
        ["charges", code, what] => on_charge(context, code, what, form).await,
        ["invoices", code, "pay"] => {
            pay::pay_in(context, ("invoices", Page::Invoice((*code).to_owned())), code, form).await
        }
        ["links", code, "pay"] => {
            pay::pay_in(context, ("links", Page::Link((*code).to_owned())), code, form).await
        }
        ["invoices", code, what] => on_invoice(context, code, what).await,
        ["settings"] => change_settings(context, form).await,
        ["world", what] => world::on_world(context, what, form).await,
        _ => Err(Refusal::NotFound),
    }
}

/// The page that a form was on, if it stands on several; it is read like any path, so it leads nowhere else.
fn back(form: &Form, otherwise: Page) -> Page {
    let path = form.text("back").unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match path {
        "" if form.all("back").next().is_none() => otherwise,
        _ => Page::read(&segments).unwrap_or(otherwise),
    }
}

/// Calls the world; `said` makes a sentence of a good answer.
async fn call(
    context: &PageContext,
    page: Page,
    (method, path, body): (&str, &str, Option<Value>),
    said: impl FnOnce(&Value) -> Notice,
) -> Acted {
    let outcome = match context.act(method, path, body.as_ref()).await? {
        Ok(answer) => Outcome::Done(said(&answer)),
        Err(complaint) => Outcome::Refused(complaint),
    };
    Ok((page, outcome))
}

/// A body with this place's account and mode, and what was typed into these fields.
fn placed(context: &PageContext, form: &Form, fields: &[&str]) -> Value {
    let mut body = typed(form, fields);
    body["account"] = json!(context.place.account);
    body["mode"] = json!(context.place.mode);
    body
}

/// Returns the fields as they were typed. An empty field is left out.
fn typed(form: &Form, fields: &[&str]) -> Value {
    let typed = fields.iter().filter_map(|name| Some(((*name).to_owned(), json!(form.text(name)?))));
    Value::Object(typed.collect::<Map<_, _>>())
}

/// Returns a notice with the number of events that an action caused.
fn with_count(said: &str, answer: &Value) -> Notice {
    let count = answer["happened"].as_array().map_or(0, Vec::len);
    Notice::said(match count {
        0 => said.to_owned(),
        1 => format!("{said} One thing happened."),
        many => format!("{said} {many} things happened."),
    })
}

async fn create_key(context: &PageContext) -> Acted {
    let mode = context.place.mode;
    let body = json!({ "account": context.place.account, "mode": mode });
    let base = context.site.base.clone();
    call(context, Page::Keys, ("POST", "/sandbox/keys", Some(body)), |answer| Notice {
        text: "The key is made. Copy it now: it is not shown again.".to_owned(),
        secret: Some(Secret {
            label: format!("API key, mode {mode}"),
            text: answer["key"]["secret"].as_str().unwrap_or_default().to_owned(),
            hint: format!("curl -s -H \"Authorization: Bearer $KEY\" {base}/v1/account"),
        }),
        ..Notice::default()
    })
    .await
}

async fn revoke_key(context: &PageContext, id: &str) -> Acted {
    if !context.keys().await?.iter().any(|key| key.id.as_str() == id) {
        return Err(Refusal::NotFound);
    }
    let path = format!("/sandbox/keys/{id}");
    call(context, Page::Keys, ("DELETE", &path, None), |_| {
        Notice::said("The key is revoked. Requests with it are answered with 401.")
    })
    .await
}

fn events(form: &Form) -> Value {
    form.all("events").collect()
}

fn secret_of(answer: &Value, text: &str) -> Notice {
    Notice {
        text: text.to_owned(),
        secret: Some(Secret {
            label: "Signing secret".to_owned(),
            text: answer["endpoint"]["secret"].as_str().unwrap_or_default().to_owned(),
            hint: "SHOP_SECRET=whsec_… chargeproof receiver listen --secret-env SHOP_SECRET".to_owned(),
        }),
        ..Notice::default()
    }
}

async fn add_endpoint(context: &PageContext, form: &Form) -> Acted {
    let mut body = placed(context, form, &["url"]);
    body["events"] = events(form);
    call(context, Page::Endpoints, ("POST", "/sandbox/endpoints", Some(body)), |answer| {
        secret_of(answer, "The endpoint is added. Copy its signing secret now: it is not shown again.")
    })
    .await
}

async fn change_endpoint(context: &PageContext, id: &str, form: &Form) -> Acted {
    context.endpoint(id).await?;
    let mut body = typed(form, &["url"]);
    body["events"] = events(form);
    let (page, path) = (Page::Endpoint(id.to_owned()), format!("/sandbox/endpoints/{id}"));
    call(context, page, ("PATCH", &path, Some(body)), |_| Notice::said("The endpoint is changed.")).await
}

async fn on_endpoint(context: &PageContext, id: &str, what: &str) -> Acted {
    context.endpoint(id).await?;
    let path = format!("/sandbox/endpoints/{id}");
    let page = Page::Endpoint(id.to_owned());
    match what {
        "on" => {
            let body = json!({ "status": "enabled" });
            let said = "The endpoint is on. Events from now on are delivered.";
            call(context, page, ("PATCH", &path, Some(body)), |_| Notice::said(said)).await
        }
        "off" => {
            let body = json!({ "status": "disabled" });
            let said = "The endpoint is off. What waited for it is canceled.";
            call(context, page, ("PATCH", &path, Some(body)), |_| Notice::said(said)).await
        }
        "rotate" => {
            call(context, page, ("POST", &format!("{path}/rotate"), None), |answer| {
                secret_of(
                    answer,
                    "The old secret signs nothing more. Copy the new one now: it is not shown again.",
                )
            })
            .await
        }
        "remove" => {
            let said = "The endpoint is removed. Its deliveries stay in the log.";
            call(context, Page::Endpoints, ("DELETE", &path, None), |_| Notice::said(said)).await
        }
        "test" => {
            let (mut page, outcome) =
                call(context, page, ("POST", &format!("{path}/test"), None), |answer| {
                    Notice::said(answer["delivery"].as_str().unwrap_or_default())
                })
                .await?;
            let outcome = match outcome {
                // The delivery is where the owner wants to look next.
                Outcome::Done(Notice { text: id, .. }) => {
                    page = Page::Delivery(id);
                    Outcome::Done(Notice::said("A test event is on its way."))
                }
                refused => refused,
            };
            Ok((page, outcome))
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn resend(context: &PageContext, id: &str, form: &Form) -> Acted {
    context.delivery(id).await?;
    let page = back(form, Page::Delivery(id.to_owned()));
    call(context, page, ("POST", &format!("/sandbox/deliveries/{id}/resend"), None), |_| {
        Notice::said("The delivery is on its way again, under the same id.")
    })
    .await
}

async fn set_wallet(context: &PageContext, asset: &str, form: &Form) -> Acted {
    let mut body = placed(context, form, &["key", "script"]);
    body["asset"] = json!(asset);
    if let Some(text) = form.text("addresses") {
        body["addresses"] = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    }
    let outcome = call(context, Page::Wallets, ("PUT", "/sandbox/wallets", Some(body)), |answer| {
        let first = answer["wallet"]["first_address"].as_str().unwrap_or_default();
        Notice::said(format!(
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

async fn remove_wallet(context: &PageContext, asset: &str) -> Acted {
    let body = json!({ "account": context.place.account, "mode": context.place.mode, "asset": asset });
    call(context, Page::Wallets, ("DELETE", "/sandbox/wallets", Some(body)), |_| {
        Notice::said(format!("{asset} is not accepted any more in this mode."))
    })
    .await
}

async fn on_charge(context: &PageContext, code: &str, what: &str, form: &Form) -> Acted {
    let One { data: charge } = context.book::<One<Charge>>(&format!("/charges/{code}")).await?;
    let page = Page::Charge(code.to_owned());
    match what {
        "pay" => {
            let mut body = typed(form, &["fee"]);
            body["charge"] = json!(code);
            match form.text("how").unwrap_or("rest") {
                "amount" => body["amount"] = json!(form.text("amount").unwrap_or_default()),
                "rest" => {}
                share => body["share"] = json!(share),
            }
            let asset = charge.asset;
            call(context, back(form, page), ("POST", "/sandbox/pay", Some(body)), |answer| {
                with_count(&format!("A simulated customer sent {asset}."), answer)
            })
            .await
        }
        "accept" => {
            let body = typed(form, &["txid"]);
            let path = format!("/sandbox/charges/{code}/accept");
            call(context, back(form, page), ("POST", &path, Some(body)), |_| {
                Notice::said(format!("The late payment to {code} is accepted."))
            })
            .await
        }
        "cancel" => {
            let path = format!("/sandbox/charges/{code}/cancel");
            call(context, page, ("POST", &path, None), |_| Notice::said("The charge is canceled.")).await
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn on_invoice(context: &PageContext, code: &str, what: &str) -> Acted {
    context.book::<One<Invoice>>(&format!("/invoices/{code}")).await?;
    let page = Page::Invoice(code.to_owned());
    let said = match what {
        "send" => "The invoice is in the outbox.",
        "void" => "The invoice is void and can't be paid any more.",
        _ => return Err(Refusal::NotFound),
    };
    let path = format!("/sandbox/invoices/{code}/{what}");
    call(context, page, ("POST", &path, None), |_| Notice::said(said)).await
}

async fn change_settings(context: &PageContext, form: &Form) -> Acted {
    let mut body = typed(
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
    // These may be taken away.
    for name in ["logo_url", "website_url", "support_email", "support_phone"] {
        body[name] = json!(form.text(name));
    }
    let members = form.text("members").unwrap_or_default();
    body["members"] = members.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let path = format!("/sandbox/accounts/{}", context.place.account);
    call(context, Page::Settings, ("PATCH", &path, Some(body)), |_| Notice::said("The settings are saved."))
        .await
}
