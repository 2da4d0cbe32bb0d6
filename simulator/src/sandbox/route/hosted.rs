//! The actions of customers on hosted pages.

use reference_core::{
    call::PaymentChoice,
    charge::{CustomField, Customer},
    command::{Visit, VisitResult},
    money::Fiat,
};
use reference_wire::fields::Fields;

use super::{Outcome, call::SandboxCall, empty_response, json_response};
use crate::api::{Body, ChargeResponse, CustomFieldValue, InvoiceCoinRequest, LinkCoinRequest};

/// Performs a customer's action on a hosted page.
fn visit(call: &mut SandboxCall<'_>, visit: Visit) -> Outcome {
    call.find_book(|book| match &visit {
        Visit::ViewInvoice(code) | Visit::ChooseCoin { invoice: code, .. } => {
            book.find_invoice(*code).is_ok()
        }
        Visit::ViewLink(code) | Visit::PayLink { link: code, .. } => book.find_link(*code).is_ok(),
    })?;
    let world = call.world_mut();
    match world.service.visit(world.now, visit)? {
        VisitResult::Page => empty_response(),
        VisitResult::Charge(account, mode, no) => {
            json_response(ChargeResponse { charge: call.book((account, mode)).charge(no).code })
        }
    }
}

pub(super) fn view_invoice(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    f.finish()?;
    visit(call, Visit::ViewInvoice(call.id()?))
}

pub(super) fn choose_coin(call: &mut SandboxCall<'_>, body: Body<'_, InvoiceCoinRequest>) -> Outcome {
    let invoice = call.id()?;
    visit(call, Visit::ChooseCoin { invoice, asset: body.finish()?.asset })
}

pub(super) fn view_link(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    f.finish()?;
    visit(call, Visit::ViewLink(call.id()?))
}

pub(super) fn pay_link(call: &mut SandboxCall<'_>, body: Body<'_, LinkCoinRequest>) -> Outcome {
    let link = call.id()?;
    let LinkCoinRequest { asset, amount, customer_email, customer_name, custom_fields } = body.finish()?;
    let amount = amount.and_then(|amount| Fiat::parse(&amount).ok());
    let customer = Customer { email: customer_email, name: customer_name, ..Customer::default() };
    let fields = custom_fields.into_iter();
    let custom_fields =
        fields.map(|CustomFieldValue { label, value }| CustomField { label, value }).collect();
    let choice = Box::new(PaymentChoice { asset, amount, customer, custom_fields });
    visit(call, Visit::PayLink { link, choice })
}
