//! The forms that change the clock, the chains, the exchange rates and the handlers, and the form that branches the
//! world.

use reference_core::time::Timestamp;
use simulator::api::CausedEvents;

use super::{
    ActionResult, FormBody, FormValue, Outcome, notice_with_count, return_page, send, send_with_notice,
};
use crate::{
    pages::{
        ErrorResponse, WorldClient,
        dashboard::{context::PageContext, flash::Notice, paths::Page},
        form::Form,
        formats::TimeFormats as _,
    },
    refusal::Refusal,
};

/// Adds a number field. Input that is not a number is passed unchanged, for the world to refuse.
fn with_number<'f>(body: FormBody<'f>, form: &'f Form, name: &'static str) -> FormBody<'f> {
    match form.text(name) {
        Some(text) => body.with(name, text.parse().map_or(FormValue::Text(text), FormValue::Number)),
        None => body,
    }
}

pub(super) async fn world_action(context: &PageContext, action: &str, form: &Form) -> ActionResult {
    let page = return_page(form, Page::World);
    let body = |fields: &[&'static str]| FormBody::from_form(form, fields);
    let in_mode = |fields: &[&'static str]| body(fields).with_text("mode", context.book_id.mode.as_str());
    match action {
        "advance" => {
            let request = ("POST", "/sandbox/advance", &*body(&["by"]).json());
            send(context, page, request, |caused: CausedEvents| {
                notice_with_count(&format!("The service clock shows {}.", caused.now.date_time()), &caused)
            })
            .await
        }
        "mine" => {
            let at_once = FormValue::Flag(form.text("at_once").is_some());
            let mine = with_number(in_mode(&["asset"]), form, "blocks").with("at_once", at_once).json();
            let request = ("POST", "/sandbox/mine", mine.as_str());
            send(context, page, request, |caused| notice_with_count("The blocks were mined.", &caused)).await
        }
        "reorg" => {
            let reorg = with_number(in_mode(&["asset", "keep"]), form, "depth").json();
            let request = ("POST", "/sandbox/reorg", reorg.as_str());
            send(context, page, request, |caused| {
                notice_with_count("The newest blocks are replaced.", &caused)
            })
            .await
        }
        "stall" => {
            let request = ("POST", "/sandbox/stall", &*in_mode(&["asset", "for"]).json());
            send_with_notice(context, page, request, "No block is mined on this chain for that time.").await
        }
        "rate" => {
            let rate = form.text("rate").map_or(FormValue::Null, FormValue::Text);
            let request =
                ("POST", "/sandbox/rates", &*body(&["asset", "currency"]).with("rate", rate).json());
            send_with_notice(context, page, request, "The rate was set. Open charges keep theirs.").await
        }
        "transaction" => transaction_action(context, page, form).await,
        "branch" => branch(context, form).await,
        "merchant" => {
            let request = ("POST", "/sandbox/merchants", &*body(&["name", "state"]).json());
            send_with_notice(context, page, request, "The handler responds this way from now on.").await
        }
        _ => Err(Refusal::NotFound),
    }
}

/// Opens a world that continues from an earlier time of this one.
async fn branch(context: &PageContext, form: &Form) -> ActionResult {
    let page = return_page(form, Page::History);
    let at = form.text("at").and_then(Timestamp::parse).ok_or(Refusal::NotFound)?;
    let WorldClient { pages, backend, .. } = &context.client;
    let outcome = match pages.worlds.branch(backend, at).await? {
        Ok(world) => Outcome::NewWorld {
            notice: Notice {
                text: format!("This is world {}, a branch that continues from {}.", world.id, at.date_time()),
                link: Some(("Back to the history of the other world", context.to("/history"))),
                ..Notice::default()
            },
            dashboard_path: world.backend.addresses.prefix().to_owned() + &context.book_id.path(""),
        },
        Err(response) => Outcome::Error(ErrorResponse::from_response(&response)?),
    };
    Ok((page, outcome))
}

/// Double-spends, drops, broadcasts again or replaces an unconfirmed transaction.
async fn transaction_action(context: &PageContext, page: Page, form: &Form) -> ActionResult {
    let action = form.text("act").unwrap_or_default();
    // A typed id overrides a selected one.
    let txid = form.text("other").or_else(|| form.text("txid"));
    let (path, notice) = match action {
        "double-spend" => ("/sandbox/double-spend", "The inputs were spent elsewhere."),
        "drop" => ("/sandbox/drop", "The mempool dropped the transaction."),
        "rebroadcast" => ("/sandbox/rebroadcast", "The transaction is in the mempool again."),
        "replace" => ("/sandbox/replace", "Another transaction replaced it."),
        _ => return Err(Refusal::NotFound),
    };
    let body = FormBody::from_form(form, if action == "replace" { &["amount", "fee"] } else { &[] });
    let body = body.with_text("txid", txid.unwrap_or_default()).json();
    send(context, page, ("POST", path, &body), |caused| notice_with_count(notice, &caused)).await
}
