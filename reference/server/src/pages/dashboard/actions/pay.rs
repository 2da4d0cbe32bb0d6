//! The form that pays an invoice or a payment link as a customer would.

use simulator::api::{CausedEvents, ChargeResponse, PayRequest};

use super::{ActionResult, Outcome, notice_with_count, send};
use crate::pages::{
    dashboard::{context::PageContext, paths::Page},
    form::{CustomerChoice, Form},
    json,
};

/// Chooses a coin, which opens a charge, and pays that charge. `list`: `invoices` or `links`.
pub(super) async fn pay_as_customer(
    context: &PageContext,
    (list, page): (&str, Page),
    code: &str,
    form: &Form,
) -> ActionResult {
    let input = |name| form.text(name).unwrap_or_default();
    let mut choice =
        CustomerChoice { asset: input("asset"), amount: input("amount"), ..CustomerChoice::default() };
    if list == "links" {
        let link = context.read(|book| book.link(code)).await?;
        choice.custom_fields = link.sample_answers();
        choice.customer_email = link.sample_email().unwrap_or_default();
    } else {
        context.read(|book| book.invoice(code)).await?;
    }
    let path = format!("/sandbox/{list}/{code}/choose");
    let charge = match context.client.send("POST", &path, &json(&choice)).await? {
        Ok(ChargeResponse { charge }) => charge.to_string(),
        Err(error_response) => return Ok((page, Outcome::Error(error_response))),
    };
    let notice = format!("A simulated customer opened charge {charge} and paid it.");
    let request = json(&PayRequest { charge: Some(charge), ..PayRequest::default() });
    let request = ("POST", "/sandbox/pay", request.as_str());
    send(context, page, request, |caused: CausedEvents| notice_with_count(&notice, &caused)).await
}
