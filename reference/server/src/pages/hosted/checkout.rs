//! The checkout of a charge, and its receipt.

use std::time::Duration;

use askama::Template;
use http::StatusCode;
use reference_core::{id::Code, mode::Mode};
use simulator::api::{
    PageAccount as Account, PaymentStage as Stage, TransferRecord, TransferStanding, WorldEventKind,
};

use super::{
    coin, load,
    model::{AccountDisplay as _, ChargePage, CoinDisplay as _, Payment, TransferDisplay as _},
    page_not_found, panel,
};
use crate::{
    pages::{
        PageRequest, Part, Site, Topic, WorldClient, formats, formats::TimeFormats as _, html, qr::Qr,
        see_other, stream_parts,
    },
    refusal::Refusal,
    response::HttpResponse,
};

#[derive(Template)]
#[template(path = "hosted/checkout.html")]
struct Checkout {
    site: Site,
    account: Account,
    mode: Mode,
    title: String,
    is_settled: bool,
    payment: Part,
    panel: Option<Part>,
}

/// Handles `GET /c/{code}`.
pub(super) async fn page(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    let path = format!("/c/{code}");
    let client = request.client();
    let Some(content) = load::<ChargePage>(&client, &path).await? else { return page_not_found(request) };
    let mut site = client.site()?;
    site.live = Some(site.to(&format!("{path}/live")));
    let ChargePage { account, mode, payment } = content;
    let page = Checkout {
        title: format!("{} · {}", heading(&payment), account.display_name),
        is_settled: is_settled(&payment),
        panel: match request.admit_owner() {
            Ok(()) => {
                Some(panel::part(&site, &path, (&account, mode), &panel::PanelSubject::Payment(&payment))?)
            }
            Err(_) => None,
        },
        payment: part(&site, &account, mode, &payment, PaymentPage::Checkout)?,
        site,
        account,
        mode,
    };
    html(StatusCode::OK, &page)
}

/// Handles `GET /c/{code}/live`.
pub(super) async fn live_updates(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    let (path, is_owner) = (format!("/c/{code}"), request.admit_owner().is_ok());
    // A browser reconnects to a stream that ends, but not to a 404.
    if load::<ChargePage>(&request.client(), &path).await?.is_none() {
        return page_not_found(request);
    }
    // The owner's page also has the test panel, so it is a topic of its own.
    let topic = match Code::parse(code) {
        Some(code) => Topic::new(format!("{path} {is_owner}"), move |event| may_change_charge(event, code)),
        None => return page_not_found(request),
    };
    stream_parts(request.client(), topic, move |client| parts(client, path.clone(), is_owner))
}

/// Returns `true` if an event may change the page of a charge.
fn may_change_charge(event: &WorldEventKind, code: Code) -> bool {
    match event {
        WorldEventKind::Event { subject, .. } => *subject == code,
        WorldEventKind::Transfer { charge, .. } => *charge == Some(code),
        WorldEventKind::Reorg { .. } | WorldEventKind::Restart => true,
        WorldEventKind::Attempt { .. }
        | WorldEventKind::Mail { .. }
        | WorldEventKind::EndpointDisabled { .. } => false,
    }
}

async fn parts(client: WorldClient, path: String, is_owner: bool) -> Result<Vec<Part>, Refusal> {
    let content: ChargePage = load(&client, &path).await?.ok_or(Refusal::NotFound)?;
    let site = client.site()?;
    let ChargePage { account, mode, payment } = &content;
    let mode = *mode;
    let mut parts = vec![part(&site, account, mode, payment, PaymentPage::Checkout)?];
    if is_owner {
        parts.push(panel::part(&site, &path, (account, mode), &panel::PanelSubject::Payment(payment))?);
    }
    Ok(parts)
}

/// The page that contains a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PaymentPage {
    /// The page of the charge.
    Checkout,
    /// The page of an invoice, which already shows the amount and purpose.
    Invoice,
}

#[derive(Template)]
#[template(path = "hosted/payment.html")]
struct PaymentView<'a> {
    site: &'a Site,
    account: &'a Account,
    payment: &'a Payment,
    heading: &'static str,
    is_checkout: bool,
    is_live: bool,
    uri: String,
    qr: Option<Qr>,
    time_left: Duration,
}

impl PaymentView<'_> {
    fn has_stage(&self, stage: Stage) -> bool {
        self.payment.stage == stage
    }

    /// Returns `true` if the customer still has to pay.
    fn requests_payment(&self) -> bool {
        match self.payment.stage {
            Stage::Waiting | Stage::Underpaid => true,
            Stage::Confirming => !self.payment.covered,
            _ => false,
        }
    }

    /// Returns `true` if all late payments were refunded.
    fn is_late_money_refunded(&self) -> bool {
        let is_late = |transfer: &&TransferRecord| {
            transfer.gone.is_none() && transfer.standing == TransferStanding::Late
        };
        self.payment.transfers.iter().filter(is_late).all(|transfer| transfer.sent_back)
    }

    /// Returns `true` if the charge is open or paid, so that the page shows its progress.
    fn shows_progress(&self) -> bool {
        self.requests_payment() || matches!(self.payment.stage, Stage::Confirming | Stage::Paid)
    }

    /// Returns `true` if the expiry has passed. A charge stays open after it while a payment is being confirmed.
    fn is_past_expiry(&self) -> bool {
        self.time_left == Duration::ZERO
    }

    fn time_left_text(&self) -> String {
        formats::duration_text(self.time_left)
    }

    /// Returns `true` if the charge is paid and its transfers are still on the chain.
    fn is_paid(&self) -> bool {
        self.has_stage(Stage::Paid) && !self.payment.reorganised
    }

    /// Returns the current step: 1 (pay), 2 (confirm) or 3 (paid).
    fn step(&self) -> usize {
        match self.payment.stage {
            Stage::Confirming => 2,
            Stage::Paid if self.payment.reorganised => 2,
            Stage::Paid => 3,
            _ => 1,
        }
    }

    /// Returns `true` if the payment has expired or was canceled.
    fn has_ended(&self) -> bool {
        matches!(self.payment.stage, Stage::Expired | Stage::Canceled)
    }
}

/// Renders the payment as a part of a page.
pub(super) fn part(
    site: &Site,
    account: &Account,
    mode: Mode,
    payment: &Payment,
    page: PaymentPage,
) -> Result<Part, Refusal> {
    let Payment { charge, coin, .. } = payment;
    let is_live = mode == Mode::Live;
    let uri = coin::uri(&coin::PaymentRequest {
        asset: coin.asset.code(),
        network: &coin.network,
        decimals: coin.decimals as usize,
        is_live,
        address: &charge.terms.deposit_address,
        amount: &payment.missing,
    });
    let expires_at = charge.expires_at;
    let time_left =
        Duration::from_micros(if expires_at > site.now { expires_at.since(site.now).0 } else { 0 });
    let view = PaymentView {
        site,
        account,
        payment,
        heading: heading(payment),
        is_checkout: page == PaymentPage::Checkout,
        is_live,
        qr: Qr::encode(&uri),
        uri,
        time_left,
    };
    Ok(Part { id: "payment", html: view.render().map_err(|_| Refusal::Broken)? })
}

/// Returns the heading of a charge.
fn heading(payment: &Payment) -> &'static str {
    match payment.stage {
        Stage::Paid if payment.reorganised => "Paid, but no longer confirmed",
        Stage::Waiting => "Waiting for your payment",
        Stage::Confirming => "Payment seen, confirming",
        Stage::Underpaid => "Partially paid",
        Stage::Paid => "Paid",
        Stage::Late => "Your payment arrived too late",
        Stage::Short => "A part is missing",
        Stage::Expired => "This payment has expired",
        Stage::Canceled => "This payment was canceled",
    }
}

/// Returns `true` if the state can no longer change by itself.
pub(super) fn is_settled(payment: &Payment) -> bool {
    !payment.reorganised && matches!(payment.stage, Stage::Paid | Stage::Expired | Stage::Canceled)
}

#[derive(Template)]
#[template(path = "hosted/receipt.html")]
struct Receipt {
    site: Site,
    account: Account,
    mode: Mode,
    payment: Payment,
}

/// Handles `GET /c/{code}/receipt`. A charge that was never paid redirects to the checkout.
pub(super) async fn receipt(request: &PageRequest<'_>, code: &str) -> Result<HttpResponse, Refusal> {
    let path = format!("/c/{code}");
    let client = request.client();
    let Some(content) = load::<ChargePage>(&client, &path).await? else { return page_not_found(request) };
    let site = client.site()?;
    let ChargePage { account, mode, payment } = content;
    if payment.charge.paid_at().is_none() {
        return see_other(&site, &path);
    }
    html(StatusCode::OK, &Receipt { site, account, mode, payment })
}
