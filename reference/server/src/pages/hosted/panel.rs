//! The test panel on the page of a charge, an invoice or a payment link: a button for each way to pay and each possible
//! problem. An action is a list of requests to `/sandbox`.

use std::collections::BTreeMap;

use askama::Template;
use http::StatusCode;
use reference_core::{asset::Asset, mode::Mode, time::Span};
use serde::{Deserialize, Serialize};
use simulator::api::{
    AdvanceRequest, CoinOffer, KeepRequest, LinkCoinRequest, Mine, PageAccount as Account, PayRequest,
    PaymentStage as Stage, ReorgRequest, ReplaceRequest, TransactionRequest,
};
use simulator::value::{Amount, AssetCode, ModeName, Share};

use super::{
    error_page, load,
    model::{ChargePage, InvoicePage, LinkPage, Payment, TransferDisplay as _},
    wants_json,
};
use crate::{
    pages::{
        PageRequest, Part, Site, WorldClient,
        dashboard::read_own_form,
        json,
        objects::{Invoice, Link},
        see_other,
    },
    refusal::Refusal,
    response::{self, HttpResponse},
};

/// An action that is possible in the present state, with its button.
pub(super) struct PanelAction {
    /// The value that the button sends.
    name: String,
    label: String,
    hint: String,
    /// Paths and bodies, in order. [`OPENED_CHARGE`] is replaced by the charge that the previous request opened.
    requests: Vec<(String, PanelRequest)>,
    success_message: &'static str,
}

impl PanelAction {
    /// Returns the curl commands for the action.
    fn curl(&self, base: &str) -> String {
        let line = |(path, request): &(String, PanelRequest)| {
            let body = json(request);
            format!("curl -X POST {base}{path} -H 'Content-Type: application/json' -d '{body}'")
        };
        self.requests.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The body of a request to `/sandbox`.
#[derive(Clone, Serialize)]
#[serde(untagged)]
enum PanelRequest {
    Advance(AdvanceRequest),
    Choose(LinkCoinRequest),
    Mine(Mine),
    Pay(PayRequest),
    Reorg(ReorgRequest),
    Replace(ReplaceRequest),
    Transaction(TransactionRequest),
}

/// The part of a response that the panel reads.
#[derive(Deserialize)]
struct PanelResponse {
    /// The charge that was opened.
    charge: Option<String>,
}

/// A group of actions.
pub(super) struct ActionGroup {
    title: &'static str,
    actions: Vec<PanelAction>,
}

/// The placeholder for the code of the charge that the previous request opened.
const OPENED_CHARGE: &str = "CHARGE";
/// The maximum number of coins with a button if none is chosen.
const COIN_BUTTONS_MAX: usize = 3;
const PAID_MESSAGE: &str = "Sent. The page updates when the payment is detected.";
const ADVANCED_MESSAGE: &str = "The clock was advanced.";

/// The object of the panel's page.
pub(super) enum PanelSubject<'a> {
    /// A charge with its transfers.
    Payment(&'a Payment),
    /// An invoice without a chosen coin, and the coins to choose from.
    Invoice(&'a Invoice, &'a [CoinOffer]),
    /// A payment link that accepts payments, and the coins to choose from.
    Link(&'a Link, &'a [CoinOffer]),
}

/// Returns all actions that are possible in the present state, in groups.
pub(super) fn groups(mode: Mode, subject: &PanelSubject<'_>) -> Vec<ActionGroup> {
    let groups = match subject {
        PanelSubject::Payment(payment) => vec![
            ActionGroup { title: "Pay", actions: ways_to_pay(payment) },
            ActionGroup { title: "What can go wrong", actions: failure_actions(mode, payment) },
            ActionGroup { title: "Blocks and time", actions: chain_actions(mode, payment) },
        ],
        PanelSubject::Invoice(invoice, offers) => {
            let path = format!("/sandbox/invoices/{}/choose", invoice.code);
            vec![
                ActionGroup { title: "Pay", actions: coin_actions(&path, offers, coin_choice) },
                ActionGroup { title: "Time", actions: advance_actions() },
            ]
        }
        PanelSubject::Link(link, offers) => {
            let path = format!("/sandbox/links/{}/choose", link.code);
            vec![
                ActionGroup {
                    title: "Pay",
                    actions: coin_actions(&path, offers, |asset| link_choice(link, asset)),
                },
                ActionGroup { title: "Time", actions: advance_actions() },
            ]
        }
    };
    groups.into_iter().filter(|group| !group.actions.is_empty()).collect()
}

/// Returns a customer's choice of a coin.
fn coin_choice(asset: Asset) -> LinkCoinRequest {
    LinkCoinRequest {
        asset,
        amount: None,
        customer_email: None,
        customer_name: None,
        custom_fields: Vec::new(),
    }
}

/// Returns a customer's choice on a payment link, with all required input.
fn link_choice(link: &Link, asset: Asset) -> LinkCoinRequest {
    LinkCoinRequest {
        amount: link.sample_amount(),
        customer_email: link.sample_email().map(str::to_owned),
        custom_fields: link.sample_answers(),
        ..coin_choice(asset)
    }
}

/// Returns an action for each of the first coins: choose the coin and pay.
fn coin_actions(
    path: &str,
    offers: &[CoinOffer],
    choose: impl Fn(Asset) -> LinkCoinRequest,
) -> Vec<PanelAction> {
    let action = |offer: &CoinOffer| {
        let asset = offer.coin.asset;
        PanelAction {
            name: format!("pay-{}", asset.code().to_ascii_lowercase()),
            label: format!("Pay in {asset}"),
            hint: "A customer chooses this coin and pays the amount due.".to_owned(),
            requests: vec![
                (path.to_owned(), PanelRequest::Choose(choose(asset))),
                pay(PayRequest::default(), OPENED_CHARGE),
            ],
            success_message: PAID_MESSAGE,
        }
    };
    offers.iter().take(COIN_BUTTONS_MAX).map(action).collect()
}

/// Returns the request that pays a charge.
fn pay(request: PayRequest, charge: &str) -> (String, PanelRequest) {
    let request = PayRequest { charge: Some(charge.to_owned()), ..request };
    ("/sandbox/pay".to_owned(), PanelRequest::Pay(request))
}

fn ways_to_pay(payment: &Payment) -> Vec<PanelAction> {
    let pay = |request: PayRequest| pay(request, payment.charge.code.as_str());
    let share_of_due =
        |share: &str| PayRequest { share: Some(Share(share.to_owned())), ..PayRequest::default() };
    let action = |name: &str, label: &str, hint: &str, requests| PanelAction {
        name: name.to_owned(),
        label: label.to_owned(),
        hint: hint.to_owned(),
        requests,
        success_message: PAID_MESSAGE,
    };
    match payment.stage {
        // Another payment would pay twice.
        Stage::Confirming if payment.covered => Vec::new(),
        Stage::Confirming => {
            let remainder =
                PayRequest { amount: Some(Amount(payment.missing.clone())), ..PayRequest::default() };
            vec![action(
                "exact",
                "Pay the rest",
                "The amount that is neither received nor pending.",
                vec![pay(remainder)],
            )]
        }
        Stage::Waiting | Stage::Underpaid => {
            let two_outputs = PayRequest { outputs: Some(2), ..PayRequest::default() };
            let expire = AdvanceRequest { to: Some(payment.charge.expires_at), ..AdvanceRequest::default() };
            let expire = ("/sandbox/advance".to_owned(), PanelRequest::Advance(expire));
            vec![
                action(
                    "exact",
                    "Pay exactly",
                    "The amount due that is not credited yet.",
                    vec![pay(PayRequest::default())],
                ),
                action(
                    "short",
                    "Pay half",
                    "Too little: underpaid once it is confirmed.",
                    vec![pay(share_of_due("0.5"))],
                ),
                action(
                    "over",
                    "Pay too much",
                    "20 % more than the amount due.",
                    vec![pay(share_of_due("1.2"))],
                ),
                action("split", "In two parts", "One transaction with two outputs.", vec![pay(two_outputs)]),
                action(
                    "late",
                    "Pay too late",
                    "Lets the charge expire first.",
                    vec![expire, pay(PayRequest::default())],
                ),
            ]
        }
        Stage::Paid => {
            let hint = "A second payment of a paid charge.";
            vec![action("again", "Pay once more", hint, vec![pay(PayRequest::default())])]
        }
        Stage::Late | Stage::Short | Stage::Expired | Stage::Canceled => {
            let hint = "The payment awaits the merchant's decision.";
            vec![action("late", "Pay too late", hint, vec![pay(PayRequest::default())])]
        }
    }
}

fn failure_actions(mode: Mode, payment: &Payment) -> Vec<PanelAction> {
    let mut actions = Vec::new();
    let mut add = |name: &str, label: &str, hint: String, path: &str, body| {
        actions.push(PanelAction {
            name: name.to_owned(),
            label: label.to_owned(),
            hint,
            requests: vec![(path.to_owned(), body)],
            success_message: "Done. The page updates soon.",
        });
    };
    if payment.stage == Stage::Confirming && payment.covered {
        let (path, body) = pay(PayRequest::default(), payment.charge.code.as_str());
        let hint = "The customer sends the same amount a second time.".to_owned();
        add("twice", "Pay a second time", hint, &path, body);
    }
    if let Some(unconfirmed) = payment.transfers.iter().rev().find(|transfer| transfer.is_unconfirmed()) {
        let (txid, short) = (unconfirmed.txid.clone(), unconfirmed.short_txid());
        let replacement = ReplaceRequest { txid: txid.clone(), amount: None, elsewhere: true, fee: None };
        add(
            "replaced",
            "Replace it",
            format!("The sender spends the same money elsewhere, instead of {short}."),
            "/sandbox/replace",
            PanelRequest::Replace(replacement),
        );
        let request = PanelRequest::Transaction(TransactionRequest { txid });
        add(
            "double-spent",
            "Double-spend it",
            format!("The inputs of {short} are spent elsewhere; the next block shows it."),
            "/sandbox/double-spend",
            request.clone(),
        );
        add("dropped", "Drop it", format!("The network drops {short}."), "/sandbox/drop", request);
    }
    let mined =
        payment.transfers.iter().filter(|transfer| transfer.gone.is_none() && transfer.confirmations > 0);
    if let Some(newest) = mined.min_by_key(|transfer| transfer.confirmations) {
        let hint = match newest.confirmations {
            1 => "Another block replaces the newest.".to_owned(),
            depth => format!("Other blocks replace the newest {depth}."),
        };
        let request = ReorgRequest {
            asset: payment.coin.asset,
            mode: Some(mode),
            account: None,
            depth: newest.confirmations,
            keep: KeepRequest::None,
        };
        add("reorganised", "Reorganise", hint, "/sandbox/reorg", PanelRequest::Reorg(request));
    }
    actions
}

/// Returns the actions that advance the clock.
fn advance_actions() -> Vec<PanelAction> {
    [("advance", "Wait 10 s", Span::secs(10)), ("advance-more", "Wait 10 min", Span::secs(600))]
        .map(|(name, label, by)| {
            let request = AdvanceRequest { by: Some(by), ..AdvanceRequest::default() };
            PanelAction {
                name: name.to_owned(),
                label: label.to_owned(),
                hint: "Moves the service clock.".to_owned(),
                requests: vec![("/sandbox/advance".to_owned(), PanelRequest::Advance(request))],
                success_message: ADVANCED_MESSAGE,
            }
        })
        .into()
}

fn chain_actions(mode: Mode, payment: &Payment) -> Vec<PanelAction> {
    let mine = |name: &str, label: &str, hint: String, blocks: u32| {
        let (asset, mode) = (AssetCode(payment.coin.asset), Some(ModeName(mode)));
        let request = Mine { asset, mode, blocks: Some(blocks), at_once: false };
        PanelAction {
            name: name.to_owned(),
            label: label.to_owned(),
            hint,
            requests: vec![("/sandbox/mine".to_owned(), PanelRequest::Mine(request))],
            success_message: ADVANCED_MESSAGE,
        }
    };
    let required = payment.coin.required_confirmations;
    let mut actions = vec![mine("mine", "Mine a block", "Advances the clock until it exists.".to_owned(), 1)];
    if required > 1 {
        let hint = format!("{required} blocks: that confirms a payment.");
        actions.push(mine("mine-enough", "Mine enough", hint, required));
    }
    actions.extend(advance_actions());
    actions
}

#[derive(Template)]
#[template(path = "hosted/panel.html")]
struct Panel<'a> {
    groups: &'a [ActionGroup],
    base: &'a str,
    form_url: String,
    form_token: &'a str,
    /// `true` if the browser stays on the page, which updates itself.
    stays_on_page: bool,
    dashboard_url: String,
    dashboard_label: &'static str,
    is_frozen: bool,
}

/// Renders the panel as a part of the page at `path`.
pub(super) fn part(
    site: &Site,
    path: &str,
    (account, mode): (&Account, Mode),
    subject: &PanelSubject<'_>,
) -> Result<Part, Refusal> {
    let (target, dashboard_label) = match subject {
        PanelSubject::Payment(payment) if payment.stage == Stage::Late => {
            (format!("charges/{}", payment.charge.code), "Accept the late payment in the dashboard")
        }
        PanelSubject::Payment(payment) => {
            (format!("charges/{}", payment.charge.code), "This charge in the dashboard")
        }
        PanelSubject::Invoice(invoice, _) => {
            (format!("invoices/{}", invoice.code), "This invoice in the dashboard")
        }
        PanelSubject::Link(link, _) => (format!("links/{}", link.code), "This link in the dashboard"),
    };
    let panel = Panel {
        groups: &groups(mode, subject),
        base: &site.base,
        form_url: site.to(&format!("{path}/sandbox")),
        form_token: &site.form_token,
        stays_on_page: !matches!(subject, PanelSubject::Link(..)),
        dashboard_url: site.to(&format!("/dashboard/{}/{mode}/{target}", account.id)),
        dashboard_label,
        is_frozen: site.speed == 0,
    };
    Ok(Part { id: "sandbox", html: panel.render().map_err(|_| Refusal::Broken)? })
}

/// The content of a page with a panel.
enum PanelPage {
    Charge(Box<ChargePage>),
    Invoice(Box<InvoicePage>),
    Link(Box<LinkPage>),
}

impl PanelPage {
    /// Returns the content of the page at `path`.
    async fn load(client: &WorldClient, path: &str) -> Result<Option<PanelPage>, Refusal> {
        Ok(match path.split('/').nth(1) {
            Some("i") => load(client, path).await?.map(|page| PanelPage::Invoice(Box::new(page))),
            Some("pay") => load(client, path).await?.map(|page| PanelPage::Link(Box::new(page))),
            _ => load(client, path).await?.map(|page| PanelPage::Charge(Box::new(page))),
        })
    }

    fn subject(&self) -> Option<(Mode, PanelSubject<'_>)> {
        match self {
            PanelPage::Charge(page) => Some((page.mode, PanelSubject::Payment(&page.payment))),
            PanelPage::Invoice(page) => invoice_subject(page).map(|subject| (page.mode, subject)),
            PanelPage::Link(page) => link_subject(page).map(|subject| (page.mode, subject)),
        }
    }
}

/// Returns the object of the panel on an invoice; `None` if no action is possible.
pub(super) fn invoice_subject(page: &InvoicePage) -> Option<PanelSubject<'_>> {
    let payment =
        page.payment.as_ref().filter(|payment| payment.stage != Stage::Canceled || !page.may_choose);
    match payment {
        Some(payment) => Some(PanelSubject::Payment(payment)),
        None => page.may_choose.then_some(PanelSubject::Invoice(&page.invoice, &page.coins)),
    }
}

/// Returns the object of the panel on a payment link; `None` if it accepts no payments.
pub(super) fn link_subject(page: &LinkPage) -> Option<PanelSubject<'_>> {
    page.closed.is_none().then_some(PanelSubject::Link(&page.link, &page.coins))
}

/// Performs the action of a button. `path`: the page.
pub(super) async fn perform_action(request: &PageRequest<'_>, path: &str) -> Result<HttpResponse, Refusal> {
    request.admit_owner()?;
    let client = request.client();
    if PanelPage::load(&client, path).await?.is_none() {
        return Err(Refusal::NotFound);
    }
    let form = read_own_form(request).await?;
    let page = PanelPage::load(&client, path).await?;
    let Some((mode, subject)) = page.as_ref().and_then(PanelPage::subject) else {
        return Err(Refusal::NotFound);
    };
    let mut actions = groups(mode, &subject).into_iter().flat_map(|group| group.actions);
    let outcome = match actions.find(|action| form.text("act") == Some(&action.name)) {
        None => ActionOutcome {
            status: StatusCode::CONFLICT,
            message: "This is no longer possible: the state has changed. Reload the page.".to_owned(),
            charge: None,
        },
        Some(action) => send_requests(&client, &action).await?,
    };
    let ActionOutcome { status, message, charge } = outcome;
    if wants_json(request) {
        return Ok(response::json(status, json(&BTreeMap::from([("message", message)]))));
    }
    let site = request.site()?;
    match (status.is_success(), charge, &subject) {
        // The page of a link does not show the charges that it opened.
        (true, Some(charge), PanelSubject::Link(..)) => see_other(&site, &format!("/c/{charge}")),
        (true, ..) => see_other(&site, path),
        _ => error_page(site, status, &message, path),
    }
}

/// The result of an action.
struct ActionOutcome {
    status: StatusCode,
    message: String,
    /// The charge that the action opened.
    charge: Option<String>,
}

/// Sends the requests of an action, until one fails.
async fn send_requests(client: &WorldClient, action: &PanelAction) -> Result<ActionOutcome, Refusal> {
    let mut charge: Option<String> = None;
    for (path, request) in &action.requests {
        let mut request = request.clone();
        if let PanelRequest::Pay(pay) = &mut request
            && pay.charge.as_deref() == Some(OPENED_CHARGE)
        {
            pay.charge.clone_from(&charge);
        }
        match client.send("POST", path, &json(&request)).await? {
            Ok(PanelResponse { charge: opened }) => charge = opened.or(charge),
            Err(error_response) => {
                return Ok(ActionOutcome {
                    status: error_response.status,
                    message: error_response.message,
                    charge,
                });
            }
        }
    }
    Ok(ActionOutcome { status: StatusCode::OK, message: action.success_message.to_owned(), charge })
}
