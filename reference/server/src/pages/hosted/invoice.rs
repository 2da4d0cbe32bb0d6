//! The page of an invoice, and its printable document.

use std::collections::BTreeMap;

use askama::Template;
use http::{Method, StatusCode};
use reference_core::{asset::Asset, mode::Mode};
use simulator::api::{ChargeAnswer, CoinOffer, Empty, PageAccount as Account, PaymentStage as Stage};

use super::{
    checkout::{self, PaymentPlace},
    load,
    model::{AccountWords as _, CoinWords as _, InvoicePage, OfferWords as _},
    page_not_found, panel,
};
use crate::{
    answer::Answer,
    pages::{
        Call, Part, Site, Topic, WorldClient, follow, formats, formats::MomentWords as _, html, json,
        objects::Invoice, see_other,
    },
    refusal::Refusal,
};

#[derive(Template)]
#[template(path = "hosted/invoice.html")]
struct InvoiceTemplate {
    site: Site,
    account: Account,
    mode: Mode,
    invoice: Invoice,
    error: Option<String>,
    is_settled: bool,
    state: Part,
    panel: Option<Part>,
}

/// The changing part of an invoice's page: its state, and the payment options.
#[derive(Template)]
#[template(path = "hosted/invoice_state.html")]
struct State<'a> {
    site: &'a Site,
    /// The title of the browser's tab.
    title: String,
    invoice: &'a Invoice,
    payment: Option<String>,
    /// The coin of the open charge.
    chosen: Option<Asset>,
    may_choose: bool,
    coins: &'a [CoinOffer],
}

#[derive(Template)]
#[template(path = "hosted/document.html")]
struct InvoiceDocument {
    site: Site,
    account: Account,
    mode: Mode,
    invoice: Invoice,
    payment: Option<super::model::Payment>,
}

/// Handles `GET /i/{code}`.
pub(super) async fn page(call: &Call<'_>, code: &str) -> Result<Answer, Refusal> {
    // `HEAD` requests and prefetching browsers do not count as the first view.
    let guesses =
        call.head.headers.get("sec-purpose").is_some_and(|value| value.as_bytes().starts_with(b"prefetch"));
    if call.head.method == Method::GET && !guesses {
        let path = format!("/sandbox/invoices/{code}/view");
        if call.client().act::<Empty>("POST", &path, "").await?.is_err() {
            return page_not_found(call);
        }
    }
    draw(call, code, (StatusCode::OK, None)).await
}

async fn draw(
    call: &Call<'_>,
    code: &str,
    (status, error): (StatusCode, Option<String>),
) -> Result<Answer, Refusal> {
    let path = format!("/i/{code}");
    let client = call.client();
    let Some(shown) = load::<InvoicePage>(&client, &path).await? else { return page_not_found(call) };
    let mut site = client.site()?;
    site.live = Some(site.to(&format!("{path}/live")));
    let page = InvoiceTemplate {
        state: state(&site, &shown)?,
        panel: match call.admit_owner() {
            Ok(()) => panel(&site, &path, &shown)?,
            Err(_) => None,
        },
        is_settled: shown.payment.as_ref().is_none_or(checkout::is_settled),
        site,
        account: shown.account,
        mode: shown.mode,
        invoice: shown.invoice,
        error,
    };
    html(status, &page)
}

/// Handles `GET /i/{code}/live`.
pub(super) async fn live_updates(call: &Call<'_>, code: &str) -> Result<Answer, Refusal> {
    let (path, is_owner) = (format!("/i/{code}"), call.admit_owner().is_ok());
    let Some(InvoicePage { account, mode, .. }) = load(&call.client(), &path).await? else {
        return page_not_found(call);
    };
    // Each chosen coin opens another charge, so every transfer of the mode concerns the page.
    let topic =
        Topic::new(format!("{path} {is_owner}"), move |event| event.concerns(&account.id, mode, |_| true));
    follow(call.client(), topic, move |client| parts(client, path.clone(), is_owner))
}

async fn parts(client: WorldClient, path: String, is_owner: bool) -> Result<Vec<Part>, Refusal> {
    let shown: InvoicePage = load(&client, &path).await?.ok_or(Refusal::NotFound)?;
    let site = client.site()?;
    let mut parts = vec![state(&site, &shown)?];
    if is_owner {
        parts.extend(panel(&site, &path, &shown)?);
    }
    Ok(parts)
}

fn panel(site: &Site, path: &str, shown: &InvoicePage) -> Result<Option<Part>, Refusal> {
    let owner = (&shown.account, shown.mode);
    panel::invoice_subject(shown).map(|subject| panel::part(site, path, owner, &subject)).transpose()
}

fn state(site: &Site, shown: &InvoicePage) -> Result<Part, Refusal> {
    // A charge that was canceled for another coin or with the invoice is not shown.
    let shown_payment = shown.payment.as_ref().filter(|payment| payment.stage != Stage::Canceled);
    let payment = shown_payment
        .map(|payment| checkout::part(site, &shown.account, shown.mode, payment, PaymentPlace::OnInvoice))
        .transpose()?;
    let waits = shown_payment.filter(|payment| payment.stage == Stage::Waiting);
    let state = State {
        site,
        title: title(&shown.invoice, &shown.account),
        invoice: &shown.invoice,
        payment: payment.map(|part| part.html),
        chosen: waits.map(|payment| payment.charge.terms.asset),
        may_choose: shown.may_choose,
        coins: &shown.coins,
    };
    Ok(Part { id: "invoice", html: state.render().map_err(|_| Refusal::Broken)? })
}

/// Returns the state, number and account of the invoice.
fn title(invoice: &Invoice, account: &Account) -> String {
    format!("{} · Invoice {} · {}", invoice.status().as_str(), invoice.number, account.display_name)
}

/// Handles `POST /i/{code}/coin`.
pub(super) async fn choose(call: &Call<'_>, code: &str) -> Result<Answer, Refusal> {
    call.admit_form()?;
    if load::<InvoicePage>(&call.client(), &format!("/i/{code}")).await?.is_none() {
        return page_not_found(call);
    }
    let form = call.form().await?;
    let choice = json(&BTreeMap::from([("asset", form.text("asset"))]));
    let path = format!("/sandbox/invoices/{code}/choose");
    match call.client().act("POST", &path, &choice).await? {
        Ok(ChargeAnswer { .. }) => see_other(&call.site()?, &format!("/i/{code}#payment")),
        Err(complaint) => draw(call, code, (complaint.status, Some(complaint.message))).await,
    }
}

/// Handles `GET /i/{code}/document`.
pub(super) async fn document(call: &Call<'_>, code: &str) -> Result<Answer, Refusal> {
    let client = call.client();
    let Some(shown) = load::<InvoicePage>(&client, &format!("/i/{code}")).await? else {
        return page_not_found(call);
    };
    let InvoicePage { account, mode, invoice, payment, .. } = shown;
    let payment = payment.filter(|payment| payment.stage == Stage::Paid);
    html(StatusCode::OK, &InvoiceDocument { site: client.site()?, account, mode, invoice, payment })
}
