//! A customer chooses a coin, on an invoice or a payment link, and pays.

use serde::Serialize;
use simulator::api::{AnswerRequest, Caused, ChargeAnswer, PayRequest};

use super::{Acted, Outcome, call, with_count};
use crate::pages::{
    dashboard::{context::PageContext, place::Page},
    form::Form,
    json,
};

/// The choice of a customer, as the owner typed it.
#[derive(Default, Serialize)]
struct Choice<'f> {
    #[serde(skip_serializing_if = "Option::is_none")]
    asset: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    amount: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_email: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    custom_fields: Vec<AnswerRequest>,
}

/// Chooses a coin as a customer would, and pays the charge that this opens.
pub(super) async fn pay_in(
    context: &PageContext,
    (list, page): (&str, Page),
    code: &str,
    form: &Form,
) -> Acted {
    let mut choice = Choice { asset: form.text("asset"), amount: form.text("amount"), ..Choice::default() };
    if list == "links" {
        let link = context.read(|book| book.link(code)).await?;
        choice.custom_fields = link.sample_answers();
        choice.customer_email = link.sample_email();
    } else {
        context.read(|book| book.invoice(code)).await?;
    }
    let path = format!("/sandbox/{list}/{code}/choose");
    let charge = match context.asker.act("POST", &path, &json(&choice)).await? {
        Ok(ChargeAnswer { charge }) => charge.to_string(),
        Err(complaint) => return Ok((page, Outcome::Refused(complaint))),
    };
    let said = format!("A simulated customer opened charge {charge} and paid it.");
    let request = json(&PayRequest { charge: Some(charge), ..PayRequest::default() });
    let asked = ("POST", "/sandbox/pay", request.as_str());
    call(context, page, asked, |caused: Caused| with_count(&said, &caused)).await
}
