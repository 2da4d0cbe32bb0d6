//! What the hosted pages show, one call a page. The words for where things stand are chosen here, because
//! choosing them takes the rules of the service; a page only draws them.

use reference_core::{
    asset::Asset,
    book::Book,
    charge::{Charge, ChargeStatus, Standing},
    error::ApiError,
    id::{AccountNo, ChargeNo, Code},
    invoice::{Invoice, InvoiceStatus},
    link::{Link, Pricing},
    mode::Mode,
    money::{Coin, Fiat},
    wire::{self, http::Request},
};
use serde_json::{Map, Value, json};

use super::{Outcome, book::shape_transfer, find_book};
use crate::sandbox::Sandbox;

type Place = (AccountNo, Mode);

/// An object as a reader of the API sees it.
fn object(sandbox: &Sandbox, request: &Request<'_>, place: Place, path: &str) -> Result<Value, ApiError> {
    let body = wire::look(sandbox.service(), sandbox.now, place, (path, None), request.base)?;
    let mut answer: Value = serde_json::from_slice(&body).expect("answers of the API are JSON");
    Ok(answer["data"].take())
}

/// Whose page it is, as far as customers may know.
fn frame(sandbox: &Sandbox, (account, mode): Place) -> Map<String, Value> {
    let owner = sandbox.service().account(account);
    let settings = &owner.settings;
    let account = json!({
        "id": owner.id,
        "display_name": settings.display_name,
        "brand_color": settings.brand_color,
        "website_url": settings.website_url,
        "support_email": settings.support_email,
    });
    Map::from_iter([("account".to_owned(), account), ("mode".to_owned(), json!(mode.as_str()))])
}

fn book(sandbox: &Sandbox, (account, mode): Place) -> &Book {
    sandbox.service().account(account).book(mode)
}

/// `GET /sandbox/pages/c/{code}`: a charge.
pub(super) fn charge(sandbox: &Sandbox, request: &Request<'_>, code: Code) -> Outcome {
    let place = find_book(sandbox, |book| book.find_charge(code).is_ok())?;
    let no = book(sandbox, place).find_charge(code)?;
    let mut page = frame(sandbox, place);
    page.append(&mut charge_part(sandbox, request, place, no)?);
    Ok(page)
}

fn charge_part(sandbox: &Sandbox, request: &Request<'_>, place: Place, no: ChargeNo) -> Outcome {
    let book = book(sandbox, place);
    let charge = book.charge(no);
    let asset = charge.terms.asset;
    let invoice = charge.terms.invoice.map(|no| {
        let invoice = book.invoice(no);
        json!({
            "code": invoice.code.as_str(), "number": invoice.number, "status": invoice.status().as_str(),
        })
    });
    let link = charge.terms.link.map(|no| {
        let link = book.link(no);
        json!({
            "code": link.code.as_str(),
            "title": link.terms.title,
            "success_url": link.terms.success_url,
            "cancel_url": link.terms.cancel_url,
            "success_message": link.terms.success_message,
            "accepting_payments": link.accepts_payments(sandbox.now),
        })
    });
    let required = asset.required_confirmations(book.mode());
    let coming = coming(charge, required);
    let transfers = charge.transfers().iter().map(|transfer| shape_transfer(book, charge, transfer));
    Ok(Map::from_iter([
        ("charge".to_owned(), object(sandbox, request, place, &format!("/v1/charges/{}", charge.code))?),
        ("stage".to_owned(), json!(stage(charge, required))),
        (
            "covered".to_owned(),
            json!(charge.received().plus(coming).covers(charge.terms.asset_amount, charge.bounds.tolerance)),
        ),
        ("missing".to_owned(), json!(charge.remaining().less(coming).to_string())),
        ("coin".to_owned(), coin(asset, book.mode())),
        ("transfers".to_owned(), transfers.collect()),
        ("invoice".to_owned(), json!(invoice)),
        ("link".to_owned(), json!(link)),
    ]))
}

/// Money that is on its way and will count.
fn coming(charge: &Charge, required: u32) -> Coin {
    let on_its_way = charge.transfers().iter().filter(|it| {
        it.standing == Standing::OnTime && it.is_alive() && !it.credited && !it.is_confirmed(required)
    });
    on_its_way.map(|transfer| transfer.amount).sum()
}

/// What the customer should know about a charge first, in a word.
fn stage(charge: &Charge, required: u32) -> &'static str {
    let comes = |standing| charge.transfers().iter().any(move |it| it.standing == standing && it.is_alive());
    let confirming = charge
        .transfers()
        .iter()
        .any(|it| it.standing == Standing::OnTime && it.is_alive() && !it.is_confirmed(required));
    match charge.status() {
        ChargeStatus::Paid => "paid",
        ChargeStatus::Pending | ChargeStatus::Underpaid if confirming => "confirming",
        ChargeStatus::Pending => "waiting",
        ChargeStatus::Underpaid => "underpaid",
        ChargeStatus::Expired | ChargeStatus::Canceled if comes(Standing::Late) => "late",
        // Late money was taken, and was not enough.
        ChargeStatus::Expired | ChargeStatus::Canceled if comes(Standing::Accepted) => "short",
        ChargeStatus::Expired => "expired",
        ChargeStatus::Canceled => "canceled",
    }
}

fn coin(asset: Asset, mode: Mode) -> Value {
    let facts = asset.facts();
    json!({
        "asset": facts.code,
        "network": facts.network,
        "decimals": facts.decimals,
        "required_confirmations": asset.required_confirmations(mode),
    })
}

/// The coins to choose from, each with what a price comes to in it now, if there is a price. A coin without
/// a rate can't be chosen now, and is not among them.
fn coins(
    sandbox: &Sandbox,
    place: Place,
    (price, currency): (Option<Fiat>, reference_core::asset::Currency),
    takes: impl Fn(Asset) -> bool,
) -> Value {
    let service = sandbox.service();
    let accepted = book(sandbox, place).payouts();
    let all = Asset::ALL.into_iter().filter(|&asset| accepted.accepts(asset) && takes(asset));
    all.filter_map(|asset| {
        let rate = service.exchange().rate(asset, currency)?;
        let mut shape = coin(asset, place.1);
        shape["amount"] = match price {
            // What is too large to be paid in this coin is refused when it is chosen.
            Some(price) => json!(rate.quote(price, asset)?.to_string()),
            None => Value::Null,
        };
        Some(shape)
    })
    .collect()
}

/// `GET /sandbox/pages/i/{code}`: an invoice.
pub(super) fn invoice(sandbox: &Sandbox, request: &Request<'_>, code: Code) -> Outcome {
    let place = find_book(sandbox, |book| book.find_invoice(code).is_ok())?;
    let book = book(sandbox, place);
    let invoice = book.invoice(book.find_invoice(code)?);
    let terms = &invoice.terms;
    let payment = match telling_charge(book, invoice) {
        Some(no) => Value::Object(charge_part(sandbox, request, place, no)?),
        None => Value::Null,
    };
    let choosable = may_choose(book, invoice);
    let coins = match choosable {
        true => coins(sandbox, place, (Some(terms.amount), terms.currency), |_| true),
        false => Value::Array(Vec::new()),
    };
    let mut page = frame(sandbox, place);
    page.extend([
        ("invoice".to_owned(), object(sandbox, request, place, &format!("/v1/invoices/{code}"))?),
        ("payment".to_owned(), payment),
        ("may_choose".to_owned(), json!(choosable)),
        ("coins".to_owned(), coins),
    ]);
    Ok(page)
}

/// The charge that says most about an invoice: the one that was paid, or else the newest.
fn telling_charge(book: &Book, invoice: &Invoice) -> Option<ChargeNo> {
    let paid = |no: &&ChargeNo| book.charge(**no).status() == ChargeStatus::Paid;
    invoice.charges.iter().find(paid).or(invoice.charges.last()).copied()
}

/// A coin can be chosen, or another one: the invoice is open, and no money for it is on its way.
fn may_choose(book: &Book, invoice: &Invoice) -> bool {
    let newest = invoice.charges.last().map(|&no| book.charge(no));
    invoice.status() == InvoiceStatus::Open
        && newest.is_none_or(|charge| match charge.status() {
            ChargeStatus::Pending => !charge.was_touched(),
            status => !status.is_open(),
        })
}

/// `GET /sandbox/pages/pay/{code}`: a payment link.
pub(super) fn link(sandbox: &Sandbox, request: &Request<'_>, code: Code) -> Outcome {
    let place = find_book(sandbox, |book| book.find_link(code).is_ok())?;
    let book = book(sandbox, place);
    let link = book.link(book.find_link(code)?);
    let terms = &link.terms;
    let price = match &terms.pricing {
        Pricing::Fixed(price) => Some(*price),
        Pricing::Open { .. } => None,
    };
    let takes = |asset| terms.accepted_assets.as_ref().is_none_or(|taken| taken.contains(&asset));
    let mut page = frame(sandbox, place);
    page.extend([
        ("link".to_owned(), object(sandbox, request, place, &format!("/v1/payment-links/{code}"))?),
        ("closed".to_owned(), json!(closed(sandbox, link))),
        ("coins".to_owned(), coins(sandbox, place, (price, terms.currency), takes)),
    ]);
    Ok(page)
}

/// Why a link takes no payments; nothing if it does.
fn closed(sandbox: &Sandbox, link: &Link) -> Option<&'static str> {
    if link.accepts_payments(sandbox.now) {
        None
    } else if link.archived {
        Some("archived")
    } else if link.terms.expires_at.is_some_and(|end| end <= sandbox.now) {
        Some("expired")
    } else {
        Some("exhausted")
    }
}
