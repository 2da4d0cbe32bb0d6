//! Forms that make or change an object as the API does: a charge, a refund of it, an invoice, a payment link.

use serde::{Deserialize, Serialize};
use simulator::api::{NewCharge, NewInvoice, NewItem, NewLink, NewRefund};

use super::{Acted, Outcome, call_saying};
use crate::pages::{
    dashboard::{
        context::PageContext,
        flash::Notice,
        place::{Page, Place},
    },
    form::Form,
    json,
};

/// The answer that shows a new object.
#[derive(Deserialize)]
struct NewObject {
    data: ObjectCode,
}

#[derive(Deserialize)]
struct ObjectCode {
    code: String,
}

/// The name under which an order's number is kept.
pub(in super::super) const ORDER: &str = "order_id";

/// A path of the API in this place's book.
fn in_book(context: &PageContext, rest: &str) -> String {
    let Place { account, mode } = &context.place;
    format!("/sandbox/books/{account}/{mode}/{rest}")
}

/// Makes an object in a list of the book and goes on to its page; what is refused is shown on the page of the form.
async fn make(
    context: &PageContext,
    (list, request): (&str, impl Serialize),
    (form, made): (Page, fn(String) -> Page),
    said: &str,
) -> Acted {
    Ok(match context.asker.act("POST", &in_book(context, list), &json(&request)).await? {
        Ok(NewObject { data: ObjectCode { code } }) => (made(code), Outcome::Done(Notice::said(said))),
        Err(complaint) => (form, Outcome::Refused(complaint)),
    })
}

fn text(form: &Form, name: &str) -> Option<String> {
    form.text(name).map(str::to_owned)
}

pub(super) async fn charge(context: &PageContext, form: &Form) -> Acted {
    let request = NewCharge {
        asset: text(form, "asset"),
        amount: text(form, "amount"),
        currency: text(form, "currency"),
        customer_email: text(form, "customer_email"),
        description: text(form, "description"),
        metadata: text(form, "metadata").map(|order| (ORDER.to_owned(), order)).into_iter().collect(),
    };
    let said = "The charge is open. Pay it as a customer would, or share its checkout page.";
    make(context, ("charges", request), (Page::NewCharge, Page::Charge), said).await
}

pub(super) async fn invoice(context: &PageContext, form: &Form) -> Acted {
    let request = NewInvoice {
        customer_name: text(form, "customer_name"),
        customer_email: text(form, "customer_email"),
        currency: text(form, "currency"),
        amount: text(form, "amount"),
        items: items(form),
        memo: text(form, "memo"),
        due_at: text(form, "due_at"),
        send_email: form.text("send_email").is_some(),
    };
    let said = "The invoice is issued. Its hosted page is where the customer pays it.";
    make(context, ("invoices", request), (Page::NewInvoice, Page::Invoice), said).await
}

/// The lines of which something was typed; the number stands there at first, and counts for nothing by itself.
fn items(form: &Form) -> Vec<NewItem> {
    let full = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
    let rows = form.all("item").zip(form.all("quantity")).zip(form.all("unit_amount"));
    rows.map(|((item, quantity), price)| NewItem {
        description: full(item),
        quantity: full(quantity),
        unit_amount: full(price),
    })
    .filter(|item| item.description.is_some() || item.unit_amount.is_some())
    .collect()
}

pub(super) async fn link(context: &PageContext, form: &Form) -> Acted {
    let request = NewLink {
        title: text(form, "title"),
        description: text(form, "description"),
        pricing_type: text(form, "pricing_type"),
        amount: text(form, "amount"),
        min_amount: text(form, "min_amount"),
        max_amount: text(form, "max_amount"),
        currency: text(form, "currency"),
        accepted_assets: form.all("accepted_assets").map(str::to_owned).collect(),
        collect_name: form.text("collect_name").is_some(),
        require_email: form.text("require_email").is_some(),
    };
    let said = "The link was created. Anyone with the address of its page can pay.";
    make(context, ("payment-links", request), (Page::NewLink, Page::Link), said).await
}

/// Records money that the owner sent back.
pub(super) async fn refund(context: &PageContext, code: &str, form: &Form) -> Acted {
    let request =
        NewRefund { amount: text(form, "amount"), txid: text(form, "txid"), reason: text(form, "reason") };
    let path = in_book(context, &format!("charges/{code}/refunds"));
    let said = "The refund is recorded. No coins moved: you sent them yourself.";
    call_saying(context, Page::Charge(code.to_owned()), ("POST", &path, &json(&request)), said).await
}

/// Puts a link into the archive, or takes it out.
pub(super) async fn archive(context: &PageContext, code: &str, what: &str) -> Acted {
    let path = in_book(context, &format!("payment-links/{code}/archive"));
    let (method, said) = match what {
        "archive" => ("POST", "The link was archived. Its open charges stay open."),
        _ => ("DELETE", "The link is active again."),
    };
    call_saying(context, Page::Link(code.to_owned()), (method, &path, ""), said).await
}
