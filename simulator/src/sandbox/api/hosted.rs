//! What customers do on hosted pages.

use reference_core::{
    action::{Seen, Visit},
    call::Choice,
    charge::Customer,
    error::ApiError,
    id::Code,
    wire::fields::Fields,
};
use serde_json::json;

use super::{Outcome, answer, find_book, nothing, read_asset};
use crate::sandbox::Sandbox;

fn visit(sandbox: &mut Sandbox, visit: Visit) -> Outcome {
    find_book(sandbox, |book| match &visit {
        Visit::ViewInvoice(code) | Visit::ChooseCoin { invoice: code, .. } => {
            book.find_invoice(*code).is_ok()
        }
        Visit::ViewLink(code) | Visit::PayLink { link: code, .. } => book.find_link(*code).is_ok(),
    })?;
    match sandbox.desk.visit(sandbox.now, visit)? {
        Seen::Page => nothing(),
        Seen::Charge(account, mode, no) => {
            let charge = sandbox.service().account(account).book(mode).charge(no);
            answer("charge", json!(charge.code.as_str()))
        }
    }
}

pub(super) fn view_invoice(sandbox: &mut Sandbox, invoice: Code) -> Outcome {
    visit(sandbox, Visit::ViewInvoice(invoice))
}

pub(super) fn choose_coin(sandbox: &mut Sandbox, invoice: Code, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["asset"]);
    let asset = read_asset(&mut f);
    f.finish()?;
    let asset = asset.ok_or_else(|| ApiError::field("asset", "The asset field is required."))?;
    visit(sandbox, Visit::ChooseCoin { invoice, asset })
}

pub(super) fn view_link(sandbox: &mut Sandbox, link: Code) -> Outcome {
    visit(sandbox, Visit::ViewLink(link))
}

pub(super) fn pay_link(sandbox: &mut Sandbox, link: Code, body: &[u8]) -> Outcome {
    let mut f = Fields::read(body)?;
    f.only(&["asset", "amount", "customer_email", "customer_name", "custom_fields"]);
    let asset = read_asset(&mut f);
    let amount = f.fiat("amount");
    let customer = Customer {
        email: f.email("customer_email"),
        name: f.text("customer_name", reference_core::wire::fields::TEXT_MAX),
        ..Customer::default()
    };
    let custom_fields = f.custom_fields("custom_fields");
    f.finish()?;
    let asset = asset.ok_or_else(|| ApiError::field("asset", "The asset field is required."))?;
    let choice = Box::new(Choice { asset, amount, customer, custom_fields });
    visit(sandbox, Visit::PayLink { link, choice })
}
