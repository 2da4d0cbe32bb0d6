//! The forms that change the clock, the chains, the market and the handlers.

use reference_core::time::Timestamp;
use simulator::api::CausedEvents;

use super::{ActionResult, FormBody, FormValue, Outcome, call, call_with_notice, return_page, with_count};
use crate::{
    pages::{
        Complaint, WorldClient,
        dashboard::{context::PageContext, flash::Notice, paths::Page},
        form::Form,
        formats::MomentWords as _,
    },
    refusal::Refusal,
};

/// Adds a number field; other text is passed unchanged, for the world to refuse.
fn number<'f>(body: FormBody<'f>, form: &'f Form, name: &'static str) -> FormBody<'f> {
    match form.text(name) {
        Some(text) => body.with(name, text.parse().map_or(FormValue::Text(text), FormValue::Number)),
        None => body,
    }
}

pub(super) async fn on_world(context: &PageContext, action: &str, form: &Form) -> ActionResult {
    let page = return_page(form, Page::World);
    let typed = |fields: &[&'static str]| FormBody::from_form(form, fields);
    let in_mode = |fields: &[&'static str]| typed(fields).with_text("mode", context.place.mode.as_str());
    match action {
        "advance" => {
            let request = ("POST", "/sandbox/advance", &*typed(&["by"]).json());
            call(context, page, request, |caused: CausedEvents| {
                with_count(&format!("The service clock shows {}.", caused.now.date_time()), &caused)
            })
            .await
        }
        "mine" => {
            let at_once = FormValue::Flag(form.text("at_once").is_some());
            let body = number(in_mode(&["asset"]), form, "blocks").with("at_once", at_once).json();
            let request = ("POST", "/sandbox/mine", body.as_str());
            call(context, page, request, |caused| with_count("The blocks were mined.", &caused)).await
        }
        "reorg" => {
            let body = number(in_mode(&["asset", "keep"]), form, "depth").json();
            let request = ("POST", "/sandbox/reorg", body.as_str());
            call(context, page, request, |caused| with_count("The newest blocks are replaced.", &caused))
                .await
        }
        "stall" => {
            let request = ("POST", "/sandbox/stall", &*in_mode(&["asset", "for"]).json());
            call_with_notice(context, page, request, "No block is mined on this chain for that time.").await
        }
        "rate" => {
            let rate = form.text("rate").map_or(FormValue::Null, FormValue::Text);
            let request =
                ("POST", "/sandbox/rates", &*typed(&["asset", "currency"]).with("rate", rate).json());
            call_with_notice(context, page, request, "The rate was set. Open charges keep theirs.").await
        }
        "transaction" => on_transaction(context, page, form).await,
        "branch" => branch(context, form).await,
        "merchant" => {
            let request = ("POST", "/sandbox/merchants", &*typed(&["name", "state"]).json());
            call_with_notice(context, page, request, "The handler answers this way from now on.").await
        }
        _ => Err(Refusal::NotFound),
    }
}

/// Opens a world that continues from a time of this one.
async fn branch(context: &PageContext, form: &Form) -> ActionResult {
    let page = return_page(form, Page::History);
    let at = form.text("at").and_then(Timestamp::parse).ok_or(Refusal::NotFound)?;
    let WorldClient { pages, backend, .. } = &context.client;
    let outcome = match pages.worlds.branch(backend, at).await? {
        Ok(world) => Outcome::Opened {
            notice: Notice {
                text: format!("This is world {}, a branch that continues from {}.", world.id, at.date_time()),
                link: Some(("Back to the history of the other world", context.to("/history"))),
                ..Notice::default()
            },
            dashboard: world.backend.addresses.prefix().to_owned() + &context.place.path(""),
        },
        Err(refused) => Outcome::Refused(Complaint::from_response(&refused)?),
    };
    Ok((page, outcome))
}

/// Double-spends, drops, announces or replaces a waiting transaction.
async fn on_transaction(context: &PageContext, page: Page, form: &Form) -> ActionResult {
    let act = form.text("act").unwrap_or_default();
    // Typed input overrides a selected option.
    let txid = form.text("other").or_else(|| form.text("txid"));
    let (path, notice) = match act {
        "double-spend" => ("/sandbox/double-spend", "The inputs were spent elsewhere."),
        "drop" => ("/sandbox/drop", "The mempool dropped the transaction."),
        "rebroadcast" => ("/sandbox/rebroadcast", "The transaction is in the mempool again."),
        "replace" => ("/sandbox/replace", "Another transaction replaced it."),
        _ => return Err(Refusal::NotFound),
    };
    let body = FormBody::from_form(form, if act == "replace" { &["amount", "fee"] } else { &[] });
    let body = body.with_text("txid", txid.unwrap_or_default()).json();
    call(context, page, ("POST", path, &body), |caused| with_count(notice, &caused)).await
}
