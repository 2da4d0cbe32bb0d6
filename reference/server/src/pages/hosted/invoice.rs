//! The page of an invoice, and its printable document.

use std::collections::BTreeMap;

use askama::Template;
use http::StatusCode;
use reference_core::{asset::Asset, mode::Mode};
use simulator::api::{
    ChargeResponse, CoinOffer, EmptyResponse, PageAccount as Account, PaymentStage as Stage,
};

use super::{
    checkout::{self, PaymentPage},
    load,
    model::{AccountDisplay as _, CoinDisplay as _, InvoicePage, OfferDisplay as _},
    page_not_found, panel,
};
use crate::{
    pages::{
        PageRequest, Part, Site, Topic, WorldClient, formats, formats::TimeFormats as _, html, json,
        objects::Invoice, see_other, stream_parts,
    },
    refusal::Refusal,
    response::HttpResponse,
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
struct InvoiceState<'a> {
    site: &'a Site,
    /// The title of the browser's tab.
    title: String,
    invoice: &'a Invoice,
    payment: Option<String>,
    /// The coin of the open charge.
    chosen_coin: Option<Asset>,
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
pub(super) async fn page(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    if request.is_view() {
        let path = format!("/sandbox/invoices/{code}/view");
        if request.client().send::<EmptyResponse>("POST", &path, "").await?.is_err() {
            return page_not_found(request);
        }
    }
    render(request, code, (StatusCode::OK, None)).await
}

/// Renders the page, with an error if a form was refused.
async fn render(
    request: &PageRequest<'_>,
    code: &str,
    (status, error): (StatusCode, Option<String>),
) -> Result<HttpResponse, Refusal> {
    let path = format!("/i/{code}");
    let client = request.client();
    let Some(content) = load::<InvoicePage>(&client, &path).await? else { return page_not_found(request) };
    let mut site = client.site()?;
    site.live = Some(site.to(&format!("{path}/live")));
    let page = InvoiceTemplate {
        state: state(&site, &content)?,
        panel: match request.admit_owner() {
            Ok(()) => panel(&site, &path, &content)?,
            Err(_) => None,
        },
        is_settled: content.payment.as_ref().is_none_or(checkout::is_settled),
        site,
        account: content.account,
        mode: content.mode,
        invoice: content.invoice,
        error,
    };
    html(status, &page)
}

/// Handles `GET /i/{code}/live`.
pub(super) async fn live_updates(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    let (path, is_owner) = (format!("/i/{code}"), request.admit_owner().is_ok());
    let Some(InvoicePage { account, mode, .. }) = load(&request.client(), &path).await? else {
        return page_not_found(request);
    };
    // Each chosen coin opens another charge, so every transfer of the mode may change the page.
    let topic =
        Topic::new(format!("{path} {is_owner}"), move |event| event.concerns(&account.id, mode, |_| true));
    stream_parts(request.client(), topic, move |client| parts(client, path.clone(), is_owner))
}

async fn parts(client: WorldClient, path: String, is_owner: bool) -> Result<Vec<Part>, Refusal> {
    let content: InvoicePage = load(&client, &path).await?.ok_or(Refusal::NotFound)?;
    let site = client.site()?;
    let mut parts = vec![state(&site, &content)?];
    if is_owner {
        parts.extend(panel(&site, &path, &content)?);
    }
    Ok(parts)
}

/// Renders the test panel; `None` if no action is possible.
fn panel(site: &Site, path: &str, content: &InvoicePage) -> Result<Option<Part>, Refusal> {
    let owner = (&content.account, content.mode);
    panel::invoice_subject(content).map(|subject| panel::part(site, path, owner, &subject)).transpose()
}

/// Renders the part of the page that changes.
fn state(site: &Site, content: &InvoicePage) -> Result<Part, Refusal> {
    // A charge that was canceled for another coin or with the invoice is not shown.
    let shown_payment = content.payment.as_ref().filter(|payment| payment.stage != Stage::Canceled);
    let payment = shown_payment
        .map(|payment| checkout::part(site, &content.account, content.mode, payment, PaymentPage::Invoice))
        .transpose()?;
    let unpaid = shown_payment.filter(|payment| payment.stage == Stage::Waiting);
    let state = InvoiceState {
        site,
        title: title(&content.invoice, &content.account),
        invoice: &content.invoice,
        payment: payment.map(|part| part.html),
        chosen_coin: unpaid.map(|payment| payment.charge.terms.asset),
        may_choose: content.may_choose,
        coins: &content.coins,
    };
    Ok(Part { id: "invoice", html: state.render().map_err(|_| Refusal::Broken)? })
}

/// Returns the title of the browser's tab: state, number and account of the invoice.
fn title(invoice: &Invoice, account: &Account) -> String {
    format!("{} · Invoice {} · {}", invoice.status().as_str(), invoice.number, account.display_name)
}

/// Handles `POST /i/{code}/coin`.
pub(super) async fn choose_coin(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    request.admit_form()?;
    if load::<InvoicePage>(&request.client(), &format!("/i/{code}")).await?.is_none() {
        return page_not_found(request);
    }
    let form = request.form().await?;
    let body = json(&BTreeMap::from([("asset", form.text("asset"))]));
    let path = format!("/sandbox/invoices/{code}/choose");
    match request.client().send("POST", &path, &body).await? {
        Ok(ChargeResponse { .. }) => see_other(&request.site()?, &format!("/i/{code}#payment")),
        Err(error_response) => {
            render(request, code, (error_response.status, Some(error_response.message))).await
        }
    }
}

/// Handles `GET /i/{code}/document`.
pub(super) async fn document(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    let client = request.client();
    let Some(content) = load::<InvoicePage>(&client, &format!("/i/{code}")).await? else {
        return page_not_found(request);
    };
    let InvoicePage { account, mode, invoice, payment, .. } = content;
    let payment = payment.filter(|payment| payment.stage == Stage::Paid);
    html(StatusCode::OK, &InvoiceDocument { site: client.site()?, account, mode, invoice, payment })
}
