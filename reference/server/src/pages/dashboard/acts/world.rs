//! The actions of forms on the clock, the chains, the market and the handlers.

use http::StatusCode;
use reference_core::time::Timestamp;
use serde_json::{Value, json};

use super::{Acted, Outcome, back, call, typed, with_count};
use crate::{
    pages::{
        Asker,
        dashboard::{context::PageContext, draft::Complaint, flash::Notice, place::Page},
        form::Form,
        words::MomentWords as _,
    },
    refusal::Refusal,
};

/// A field of whole numbers: what is no number goes on as it is, for the world to refuse.
fn number(body: &mut Value, form: &Form, name: &str) {
    if let Some(text) = form.text(name) {
        body[name] = text.parse::<u32>().map_or(json!(text), |n| json!(n));
    }
}

pub(super) async fn on_world(context: &PageContext, what: &str, form: &Form) -> Acted {
    let page = back(form, Page::World);
    let mode = context.place.mode;
    match what {
        "advance" => {
            let body = typed(form, &["by"]);
            call(context, page, ("POST", "/sandbox/advance", Some(body)), |answer| {
                let now = answer["now"].as_str().and_then(Timestamp::parse).unwrap_or_default();
                with_count(&format!("The service clock shows {}.", now.said()), answer)
            })
            .await
        }
        "mine" => {
            let mut body = typed(form, &["asset"]);
            body["mode"] = json!(mode);
            number(&mut body, form, "blocks");
            body["at_once"] = json!(form.text("at_once").is_some());
            call(context, page, ("POST", "/sandbox/mine", Some(body)), |answer| {
                with_count("The blocks have come.", answer)
            })
            .await
        }
        "reorg" => {
            let mut body = typed(form, &["asset", "keep"]);
            body["mode"] = json!(mode);
            number(&mut body, form, "depth");
            call(context, page, ("POST", "/sandbox/reorg", Some(body)), |answer| {
                with_count("The newest blocks are replaced.", answer)
            })
            .await
        }
        "stall" => {
            let mut body = typed(form, &["asset", "for"]);
            body["mode"] = json!(mode);
            call(context, page, ("POST", "/sandbox/stall", Some(body)), |_| {
                Notice::said("No block comes on this chain for that long.")
            })
            .await
        }
        "rate" => {
            let mut body = typed(form, &["asset", "currency"]);
            body["rate"] = json!(form.text("rate"));
            call(context, page, ("POST", "/sandbox/rates", Some(body)), |_| {
                Notice::said("The rate is set. Charges that are open keep theirs.")
            })
            .await
        }
        "transaction" => on_transaction(context, page, form).await,
        "branch" => branch(context, form).await,
        "merchant" => {
            let body = typed(form, &["name", "state"]);
            call(context, page, ("POST", "/sandbox/merchants", Some(body)), |_| {
                Notice::said("From now on the handler answers like that.")
            })
            .await
        }
        _ => Err(Refusal::NotFound),
    }
}

/// Opens a world that goes on from a moment of this one.
async fn branch(context: &PageContext, form: &Form) -> Acted {
    let page = back(form, Page::History);
    let at = form.text("at").and_then(Timestamp::parse).ok_or(Refusal::NotFound)?;
    let Asker { pages, backend, .. } = &context.asker;
    let outcome = match pages.worlds.branch(backend, at).await? {
        Ok(world) => {
            let dashboard = world.backend.addresses.prefix().to_owned() + &context.place.path("");
            Outcome::Done(Notice {
                text: format!("World {} goes on from {}, and this one stays as it is.", world.id, at.said()),
                link: Some(("Open its dashboard", dashboard)),
                ..Notice::default()
            })
        }
        Err(refused) => {
            let status = StatusCode::from_u16(refused.status).map_err(|_| Refusal::Broken)?;
            Outcome::Refused(Complaint::read(status, &refused.body)?)
        }
    };
    Ok((page, outcome))
}

/// Spends a waiting transaction's money elsewhere, or drops, announces or replaces it.
async fn on_transaction(context: &PageContext, page: Page, form: &Form) -> Acted {
    let act = form.text("act").unwrap_or_default();
    // Typed counts more than picked, if a form has both.
    let txid = form.text("other").or_else(|| form.text("txid"));
    let (path, said) = match act {
        "double-spend" => ("/sandbox/double-spend", "The same money is spent elsewhere."),
        "drop" => ("/sandbox/drop", "The mempool forgot the transaction."),
        "rebroadcast" => ("/sandbox/rebroadcast", "The transaction is in the mempool again."),
        "replace" => ("/sandbox/replace", "Another transaction takes its place."),
        _ => return Err(Refusal::NotFound),
    };
    let mut body = typed(form, if act == "replace" { &["amount", "fee"] } else { &[] });
    body["txid"] = json!(txid.unwrap_or_default());
    call(context, page, ("POST", path, Some(body)), |answer| with_count(said, answer)).await
}
