//! The actions of customers on hosted pages.

use reference_core::{
    call::Choice,
    charge::Customer,
    command::{Visit, VisitResult},
};
use reference_wire::fields::{Fields, TEXT_MAX};

use super::{
    Outcome, answer,
    call::{SandboxCall, read_asset, required},
    nothing,
};
use crate::api::ChargeAnswer;

fn visit(call: &mut SandboxCall<'_>, visit: Visit) -> Outcome {
    call.find_book(|book| match &visit {
        Visit::ViewInvoice(code) | Visit::ChooseCoin { invoice: code, .. } => {
            book.find_invoice(*code).is_ok()
        }
        Visit::ViewLink(code) | Visit::PayLink { link: code, .. } => book.find_link(*code).is_ok(),
    })?;
    let world = call.world_mut();
    match world.service.visit(world.now, visit)? {
        VisitResult::Page => nothing(),
        VisitResult::Charge(account, mode, no) => {
            answer(ChargeAnswer { charge: call.book((account, mode)).charge(no).code })
        }
    }
}

pub(super) fn view_invoice(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    f.finish()?;
    visit(call, Visit::ViewInvoice(call.id()?))
}

pub(super) fn choose_coin(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let invoice = call.id()?;
    let asset = read_asset(&mut f);
    f.finish()?;
    visit(call, Visit::ChooseCoin { invoice, asset: required(asset, "asset")? })
}

pub(super) fn view_link(call: &mut SandboxCall<'_>, f: Fields<'_>) -> Outcome {
    f.finish()?;
    visit(call, Visit::ViewLink(call.id()?))
}

pub(super) fn pay_link(call: &mut SandboxCall<'_>, mut f: Fields<'_>) -> Outcome {
    let link = call.id()?;
    let asset = read_asset(&mut f);
    let amount = f.fiat("amount");
    let customer = Customer {
        email: f.email("customer_email"),
        name: f.text("customer_name", TEXT_MAX),
        ..Customer::default()
    };
    let custom_fields = f.custom_fields("custom_fields");
    f.finish()?;
    let choice = Box::new(Choice { asset: required(asset, "asset")?, amount, customer, custom_fields });
    visit(call, Visit::PayLink { link, choice })
}
