//! Forms that create or change an object by a request to the API: charges, refunds, invoices, payment links.

use serde::{Deserialize, Serialize};
use simulator::api::{NewCharge, NewInvoice, NewItem, NewLink, NewRefund};

use super::{ActionResult, Outcome, send_with_notice};
use crate::pages::{
    dashboard::{
        context::PageContext,
        flash::Notice,
        paths::{BookId, Page},
    },
    form::Form,
    json,
};

/// The response with a new object.
#[derive(Deserialize)]
struct NewObject {
    data: ObjectCode,
}

#[derive(Deserialize)]
struct ObjectCode {
    code: String,
}

/// The metadata key of an order number.
pub(in super::super) const ORDER_KEY: &str = "order_id";

/// Returns the path of an API operation in this book.
fn book_path(context: &PageContext, rest: &str) -> String {
    let BookId { account, mode } = &context.book_id;
    format!("/sandbox/books/{account}/{mode}/{rest}")
}

/// Creates an object in a list of the book. Returns its page, or the page of the form after an error.
async fn create(
    context: &PageContext,
    (list, request): (&str, impl Serialize),
    (form_page, object_page): (Page, fn(String) -> Page),
    notice: &str,
) -> ActionResult {
    Ok(match context.client.send("POST", &book_path(context, list), &json(&request)).await? {
        Ok(NewObject { data: ObjectCode { code } }) => {
            (object_page(code), Outcome::Success(Notice::text(notice)))
        }
        Err(error_response) => (form_page, Outcome::Error(error_response)),
    })
}

fn text(form: &Form, name: &str) -> Option<String> {
    form.text(name).map(str::to_owned)
}

pub(super) async fn charge(context: &PageContext, form: &Form) -> ActionResult {
    let request = NewCharge {
        asset: text(form, "asset"),
        amount: text(form, "amount"),
        currency: text(form, "currency"),
        customer_email: text(form, "customer_email"),
        description: text(form, "description"),
        metadata: text(form, "metadata").map(|order| (ORDER_KEY.to_owned(), order)).into_iter().collect(),
    };
    let notice = "The charge is open. Pay it as a customer would, or share its checkout page.";
    create(context, ("charges", request), (Page::NewCharge, Page::Charge), notice).await
}

pub(super) async fn invoice(context: &PageContext, form: &Form) -> ActionResult {
    let request = NewInvoice {
        customer_name: text(form, "customer_name"),
        customer_email: text(form, "customer_email"),
        currency: text(form, "currency"),
        amount: text(form, "amount"),
        items: line_items(form),
        memo: text(form, "memo"),
        due_at: text(form, "due_at"),
        send_email: form.text("send_email").is_some(),
    };
    let notice = "The invoice is issued. Its hosted page is where the customer pays it.";
    create(context, ("invoices", request), (Page::NewInvoice, Page::Invoice), notice).await
}

/// Returns the line items that have a description or a price. The quantity does not count, because it is preset.
fn line_items(form: &Form) -> Vec<NewItem> {
    let non_empty = |value: &str| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
    let rows = form.values("item").zip(form.values("quantity")).zip(form.values("unit_amount"));
    rows.map(|((item, quantity), price)| NewItem {
        description: non_empty(item),
        quantity: non_empty(quantity),
        unit_amount: non_empty(price),
    })
    .filter(|item| item.description.is_some() || item.unit_amount.is_some())
    .collect()
}

pub(super) async fn link(context: &PageContext, form: &Form) -> ActionResult {
    let request = NewLink {
        title: text(form, "title"),
        description: text(form, "description"),
        pricing_type: text(form, "pricing_type"),
        amount: text(form, "amount"),
        min_amount: text(form, "min_amount"),
        max_amount: text(form, "max_amount"),
        currency: text(form, "currency"),
        accepted_assets: form.values("accepted_assets").map(str::to_owned).collect(),
        collect_name: form.text("collect_name").is_some(),
        require_email: form.text("require_email").is_some(),
    };
    let notice = "The link was created. Anyone with the address of its page can pay.";
    create(context, ("payment-links", request), (Page::NewLink, Page::Link), notice).await
}

/// Records a refund.
pub(super) async fn refund(context: &PageContext, code: &str, form: &Form) -> ActionResult {
    let request =
        NewRefund { amount: text(form, "amount"), txid: text(form, "txid"), reason: text(form, "reason") };
    let path = book_path(context, &format!("charges/{code}/refunds"));
    let notice = "The refund is recorded. No coins moved: you sent them yourself.";
    send_with_notice(context, Page::Charge(code.to_owned()), ("POST", &path, &json(&request)), notice).await
}

/// Archives or restores a payment link.
pub(super) async fn set_archived(context: &PageContext, code: &str, action: &str) -> ActionResult {
    let path = book_path(context, &format!("payment-links/{code}/archive"));
    let (method, notice) = match action {
        "archive" => ("POST", "The link was archived. Its open charges stay open."),
        _ => ("DELETE", "The link is active again."),
    };
    send_with_notice(context, Page::Link(code.to_owned()), (method, &path, ""), notice).await
}
