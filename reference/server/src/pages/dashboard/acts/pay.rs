//! A customer chooses a coin, on an invoice or a payment link, and pays.

use serde_json::json;
use simulator::api::{self, PayRequest};

use super::{Acted, Outcome, call, typed, with_count};
use crate::pages::{
    dashboard::{context::PageContext, facts::One, place::Page},
    form::Form,
    objects::{Invoice, Link},
};

/// Chooses a coin as a customer would, and pays the charge that this opens.
pub(super) async fn pay_in(
    context: &PageContext,
    (list, page): (&str, Page),
    code: &str,
    form: &Form,
) -> Acted {
    let mut choice = typed(form, &["asset", "amount"]);
    if list == "links" {
        let One { data: link } = context.book::<One<Link>>(&format!("/payment-links/{code}")).await?;
        let answers = link.custom_fields.iter().filter(|question| question.required);
        let answers: Vec<_> =
            answers.map(|question| json!({ "label": question.label, "value": "simulated" })).collect();
        choice["custom_fields"] = json!(answers);
        if link.require_email {
            choice["customer_email"] = json!("customer@shop.example");
        }
    } else {
        context.book::<One<Invoice>>(&format!("/invoices/{code}")).await?;
    }
    let chosen = context.act("POST", &format!("/sandbox/{list}/{code}/choose"), Some(&choice)).await?;
    let charge = match chosen {
        Ok(answer) => answer["charge"].as_str().unwrap_or_default().to_owned(),
        Err(complaint) => return Ok((page, Outcome::Refused(complaint))),
    };
    let request = PayRequest { charge: Some(charge.clone()), ..PayRequest::default() };
    call(context, page, ("POST", "/sandbox/pay", Some(api::json(&request))), |answer| {
        with_count(&format!("A simulated customer opened charge {charge} and paid it."), answer)
    })
    .await
}
