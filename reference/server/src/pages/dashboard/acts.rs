//! What each form does: one call of `/sandbox`, and the page to go on to.

use serde_json::{Map, Value, json};

use super::{
    desk::{Complaint, Desk},
    flash::{Notice, Secret},
    place::{Page, is_id},
};
use crate::{pages::form::Form, refusal::Refusal};

/// What came of a form.
pub(super) enum Outcome {
    /// It is done, and this is said of it.
    Done(Notice),
    /// The world is against it.
    Refused(Complaint),
}

type Acted = Result<(Page, Outcome), Refusal>;

/// Does what a form says. `segments`: where it was sent to, below the place.
pub(super) async fn act(desk: &Desk, segments: &[&str], form: &Form) -> Acted {
    if !segments.iter().all(|segment| is_id(segment)) {
        return Err(Refusal::NotFound);
    }
    match segments {
        ["keys"] => create_key(desk).await,
        ["keys", id, "revoke"] => revoke_key(desk, id).await,
        ["endpoints"] => add_endpoint(desk, form).await,
        ["endpoints", id] => change_endpoint(desk, id, form).await,
        ["endpoints", id, what] => on_endpoint(desk, id, what).await,
        ["deliveries", id, "resend"] => resend(desk, id, form).await,
        ["wallets", asset] => set_wallet(desk, asset, form).await,
        ["wallets", asset, "remove"] => remove_wallet(desk, asset).await,
        ["charges", code, what] => on_charge(desk, code, what, form).await,
        ["invoices", code, what] => on_invoice(desk, code, what).await,
        ["settings"] => change_settings(desk, form).await,
        ["world", what] => on_world(desk, what, form).await,
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
    desk: &Desk,
    page: Page,
    (method, path, body): (&str, &str, Option<Value>),
    said: impl FnOnce(&Value) -> Notice,
) -> Acted {
    let outcome = match desk.act(method, path, body.as_ref()).await? {
        Ok(answer) => Outcome::Done(said(&answer)),
        Err(complaint) => Outcome::Refused(complaint),
    };
    Ok((page, outcome))
}

/// A body with this place's account and mode, and what was typed into these fields.
fn placed(desk: &Desk, form: &Form, fields: &[&str]) -> Value {
    let mut body = typed(form, fields);
    body["account"] = json!(desk.place.account);
    body["mode"] = json!(desk.place.mode);
    body
}

/// What was typed into these fields, as it is. A field that was left empty is left out.
fn typed(form: &Form, fields: &[&str]) -> Value {
    let typed = fields.iter().filter_map(|name| Some(((*name).to_owned(), json!(form.text(name)?))));
    Value::Object(typed.collect::<Map<_, _>>())
}

/// A field of whole numbers: what is no number goes on as it is, for the world to refuse.
fn number(body: &mut Value, form: &Form, name: &str) {
    if let Some(text) = form.text(name) {
        body[name] = text.parse::<u32>().map_or(json!(text), |n| json!(n));
    }
}

/// What happened because of an act, counted.
fn with_count(said: &str, answer: &Value) -> Notice {
    let count = answer["happened"].as_array().map_or(0, Vec::len);
    Notice::said(match count {
        0 => said.to_owned(),
        1 => format!("{said} One thing happened."),
        many => format!("{said} {many} things happened."),
    })
}

async fn create_key(desk: &Desk) -> Acted {
    let mode = desk.place.mode;
    let body = json!({ "account": desk.place.account, "mode": mode });
    let base = desk.site.base.clone();
    call(desk, Page::Keys, ("POST", "/sandbox/keys", Some(body)), |answer| Notice {
        text: "The key is made. Copy it now: it is not shown again.".to_owned(),
        secret: Some(Secret {
            label: format!("API key, mode {mode}"),
            text: answer["key"]["secret"].as_str().unwrap_or_default().to_owned(),
            hint: format!("curl -s -H \"Authorization: Bearer $KEY\" {base}/v1/account"),
        }),
    })
    .await
}

async fn revoke_key(desk: &Desk, id: &str) -> Acted {
    if !desk.keys().await?.iter().any(|key| key.id == id) {
        return Err(Refusal::NotFound);
    }
    let path = format!("/sandbox/keys/{id}");
    call(desk, Page::Keys, ("DELETE", &path, None), |_| {
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
    }
}

async fn add_endpoint(desk: &Desk, form: &Form) -> Acted {
    let mut body = placed(desk, form, &["url"]);
    body["events"] = events(form);
    call(desk, Page::Endpoints, ("POST", "/sandbox/endpoints", Some(body)), |answer| {
        secret_of(answer, "The endpoint is added. Copy its signing secret now: it is not shown again.")
    })
    .await
}

async fn change_endpoint(desk: &Desk, id: &str, form: &Form) -> Acted {
    desk.endpoint(id).await?;
    let mut body = typed(form, &["url"]);
    body["events"] = events(form);
    let (page, path) = (Page::Endpoint(id.to_owned()), format!("/sandbox/endpoints/{id}"));
    call(desk, page, ("PATCH", &path, Some(body)), |_| Notice::said("The endpoint is changed.")).await
}

async fn on_endpoint(desk: &Desk, id: &str, what: &str) -> Acted {
    desk.endpoint(id).await?;
    let path = format!("/sandbox/endpoints/{id}");
    let page = Page::Endpoint(id.to_owned());
    match what {
        "on" => {
            let body = json!({ "status": "enabled" });
            let said = "The endpoint is on. Events from now on are delivered.";
            call(desk, page, ("PATCH", &path, Some(body)), |_| Notice::said(said)).await
        }
        "off" => {
            let body = json!({ "status": "disabled" });
            let said = "The endpoint is off. What waited for it is canceled.";
            call(desk, page, ("PATCH", &path, Some(body)), |_| Notice::said(said)).await
        }
        "rotate" => {
            call(desk, page, ("POST", &format!("{path}/rotate"), None), |answer| {
                secret_of(
                    answer,
                    "The old secret signs nothing more. Copy the new one now: it is not shown again.",
                )
            })
            .await
        }
        "remove" => {
            let said = "The endpoint is removed. Its deliveries stay in the log.";
            call(desk, Page::Endpoints, ("DELETE", &path, None), |_| Notice::said(said)).await
        }
        "test" => {
            let (mut page, outcome) = call(desk, page, ("POST", &format!("{path}/test"), None), |answer| {
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

async fn resend(desk: &Desk, id: &str, form: &Form) -> Acted {
    desk.delivery(id).await?;
    let page = back(form, Page::Delivery(id.to_owned()));
    call(desk, page, ("POST", &format!("/sandbox/deliveries/{id}/resend"), None), |_| {
        Notice::said("The delivery is on its way again, under the same id.")
    })
    .await
}

async fn set_wallet(desk: &Desk, asset: &str, form: &Form) -> Acted {
    let mut body = placed(desk, form, &["key"]);
    body["asset"] = json!(asset);
    if let Some(text) = form.text("addresses") {
        body["addresses"] = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    }
    let outcome = call(desk, Page::Wallets, ("PUT", "/sandbox/wallets", Some(body)), |_| {
        Notice::said(format!(
            "New {asset} charges are paid to this wallet. Open charges keep their addresses."
        ))
    })
    .await?;
    Ok(match outcome {
        (_, refused @ Outcome::Refused(_)) => (Page::Wallet(asset.to_owned()), refused),
        done => done,
    })
}

async fn remove_wallet(desk: &Desk, asset: &str) -> Acted {
    let body = json!({ "account": desk.place.account, "mode": desk.place.mode, "asset": asset });
    call(desk, Page::Wallets, ("DELETE", "/sandbox/wallets", Some(body)), |_| {
        Notice::said(format!("{asset} is not accepted any more in this mode."))
    })
    .await
}

async fn on_charge(desk: &Desk, code: &str, what: &str, form: &Form) -> Acted {
    let super::facts::One { data: charge } =
        desk.book::<super::facts::One<super::facts::Charge>>(&format!("/charges/{code}")).await?;
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
            call(desk, back(form, page), ("POST", "/sandbox/pay", Some(body)), |answer| {
                with_count(&format!("A simulated customer sent {asset}."), answer)
            })
            .await
        }
        "accept" => {
            let body = typed(form, &["txid"]);
            let path = format!("/sandbox/charges/{code}/accept");
            call(desk, back(form, page), ("POST", &path, Some(body)), |_| {
                Notice::said(format!("The late payment to {code} is accepted."))
            })
            .await
        }
        "cancel" => {
            let path = format!("/sandbox/charges/{code}/cancel");
            call(desk, page, ("POST", &path, None), |_| Notice::said("The charge is canceled.")).await
        }
        _ => Err(Refusal::NotFound),
    }
}

async fn on_invoice(desk: &Desk, code: &str, what: &str) -> Acted {
    let super::facts::One { data: _ } =
        desk.book::<super::facts::One<super::facts::Invoice>>(&format!("/invoices/{code}")).await?;
    let page = Page::Invoice(code.to_owned());
    let said = match what {
        "send" => "The invoice is in the outbox.",
        "void" => "The invoice is void and can't be paid any more.",
        _ => return Err(Refusal::NotFound),
    };
    let path = format!("/sandbox/invoices/{code}/{what}");
    call(desk, page, ("POST", &path, None), |_| Notice::said(said)).await
}

async fn change_settings(desk: &Desk, form: &Form) -> Acted {
    let mut body = typed(
        form,
        &["name", "display_name", "default_currency", "underpayment_tolerance", "overpayment_threshold"],
    );
    // These may be taken away.
    for name in ["website_url", "support_email"] {
        body[name] = json!(form.text(name));
    }
    let members = form.text("members").unwrap_or_default();
    body["members"] = members.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let path = format!("/sandbox/accounts/{}", desk.place.account);
    call(desk, Page::Settings, ("PATCH", &path, Some(body)), |_| Notice::said("The settings are saved."))
        .await
}

async fn on_world(desk: &Desk, what: &str, form: &Form) -> Acted {
    let page = back(form, Page::World);
    let mode = desk.place.mode;
    match what {
        "advance" => {
            let body = typed(form, &["by"]);
            call(desk, page, ("POST", "/sandbox/advance", Some(body)), |answer| {
                let now = answer["now"].as_str().unwrap_or_default();
                with_count(
                    &format!("The service clock shows {}.", super::facts::Moment(now.to_owned()).said()),
                    answer,
                )
            })
            .await
        }
        "mine" => {
            let mut body = typed(form, &["asset"]);
            body["mode"] = json!(mode);
            number(&mut body, form, "blocks");
            body["at_once"] = json!(form.text("at_once").is_some());
            call(desk, page, ("POST", "/sandbox/mine", Some(body)), |answer| {
                with_count("The blocks have come.", answer)
            })
            .await
        }
        "reorg" => {
            let mut body = typed(form, &["asset", "keep"]);
            body["mode"] = json!(mode);
            number(&mut body, form, "depth");
            call(desk, page, ("POST", "/sandbox/reorg", Some(body)), |answer| {
                with_count("The newest blocks are replaced.", answer)
            })
            .await
        }
        "stall" => {
            let mut body = typed(form, &["asset", "for"]);
            body["mode"] = json!(mode);
            call(desk, page, ("POST", "/sandbox/stall", Some(body)), |_| {
                Notice::said("No block comes on this chain for that long.")
            })
            .await
        }
        "rate" => {
            let mut body = typed(form, &["asset", "currency"]);
            body["rate"] = json!(form.text("rate"));
            call(desk, page, ("POST", "/sandbox/rates", Some(body)), |_| {
                Notice::said("The rate is set. Charges that are open keep theirs.")
            })
            .await
        }
        "transaction" => {
            let act = form.text("act").unwrap_or_default();
            let (path, said) = match act {
                "double-spend" => ("/sandbox/double-spend", "The same money is spent elsewhere."),
                "drop" => ("/sandbox/drop", "The mempool forgot the transaction."),
                "rebroadcast" => ("/sandbox/rebroadcast", "The transaction is in the mempool again."),
                "replace" => ("/sandbox/replace", "Another transaction takes its place."),
                _ => return Err(Refusal::NotFound),
            };
            let fields: &[&str] = if act == "replace" { &["txid", "amount", "fee"] } else { &["txid"] };
            call(desk, page, ("POST", path, Some(typed(form, fields))), |answer| with_count(said, answer))
                .await
        }
        "merchant" => {
            let body = typed(form, &["name", "state"]);
            call(desk, page, ("POST", "/sandbox/merchants", Some(body)), |_| {
                Notice::said("From now on the handler answers like that.")
            })
            .await
        }
        _ => Err(Refusal::NotFound),
    }
}
