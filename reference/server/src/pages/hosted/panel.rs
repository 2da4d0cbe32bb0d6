//! The test panel on the page of a charge, an invoice or a payment link: buttons for each way to pay and each possible
//! problem, as calls of `/sandbox`. The buttons and their actions come from one list.

use std::collections::BTreeMap;

use askama::Template;
use http::StatusCode;
use reference_core::{asset::Asset, mode::Mode, time::Span};
use serde::{Deserialize, Serialize};
use simulator::api::{
    AdvanceRequest, ChoiceRequest, CoinOffer, KeepRequest, Mine, PageAccount as Account, PayRequest,
    PaymentStage as Stage, ReorgRequest, ReplaceRequest, TransactionRequest,
};
use simulator::value::{Amount, AssetCode, InMode, Share};

use super::{
    load,
    model::{ChargePage, InvoicePage, LinkPage, Payment, TransferWords as _},
    notice, wants_json,
};
use crate::{
    answer::{self, Answer},
    pages::{
        Call, Part, Site, WorldClient,
        dashboard::own_form,
        json,
        objects::{Invoice, Link},
        see_other,
    },
    refusal::Refusal,
};

/// An action that is possible now.
pub(super) struct PanelAction {
    /// The fields of the form.
    name: String,
    label: String,
    hint: String,
    /// Paths and bodies, in order. [`OPENED`] is replaced by the charge that the previous call opened.
    calls: Vec<(String, PanelRequest)>,
    /// The message on success.
    done: &'static str,
}

impl PanelAction {
    /// Returns the curl commands for the action.
    fn curl(&self, base: &str) -> String {
        let line = |(path, request): &(String, PanelRequest)| {
            let body = json(request);
            format!("curl -X POST {base}{path} -H 'Content-Type: application/json' -d '{body}'")
        };
        self.calls.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A request of the panel.
#[derive(Clone, Serialize)]
#[serde(untagged)]
enum PanelRequest {
    Advance(AdvanceRequest),
    Choose(ChoiceRequest),
    Mine(Mine),
    Pay(PayRequest),
    Reorg(ReorgRequest),
    Replace(ReplaceRequest),
    Transaction(TransactionRequest),
}

/// The part of a response that the panel reads.
#[derive(Deserialize)]
struct PanelAnswer {
    /// The charge that was opened.
    charge: Option<String>,
}

/// A group of actions.
pub(super) struct ActionGroup {
    title: &'static str,
    acts: Vec<PanelAction>,
}

/// The placeholder for the code of the charge that the previous call opened.
const OPENED: &str = "CHARGE";
/// The number of coins with a button if none is chosen.
const COINS_SHOWN: usize = 3;
const SENT: &str = "Sent. The page updates when the payment is detected.";
const MOVED: &str = "The clock was advanced.";

/// The object of the panel's page.
pub(super) enum PanelSubject<'a> {
    /// A charge with its transfers.
    Payment(&'a Payment),
    /// An invoice without a chosen coin.
    Coins(&'a Invoice, &'a [CoinOffer]),
    /// A payment link that accepts payments.
    Link(&'a Link, &'a [CoinOffer]),
}

/// Returns all possible actions.
pub(super) fn groups(mode: Mode, subject: &PanelSubject<'_>) -> Vec<ActionGroup> {
    let groups = match subject {
        PanelSubject::Payment(payment) => vec![
            ActionGroup { title: "Pay", acts: ways_to_pay(payment) },
            ActionGroup { title: "What can go wrong", acts: failure_actions(mode, payment) },
            ActionGroup { title: "Blocks and time", acts: chain_actions(mode, payment) },
        ],
        PanelSubject::Coins(invoice, offers) => {
            let path = format!("/sandbox/invoices/{}/choose", invoice.code);
            vec![
                ActionGroup { title: "Pay", acts: coin_actions(&path, offers, choice) },
                ActionGroup { title: "Time", acts: advance_actions() },
            ]
        }
        PanelSubject::Link(link, offers) => {
            let path = format!("/sandbox/links/{}/choose", link.code);
            vec![
                ActionGroup {
                    title: "Pay",
                    acts: coin_actions(&path, offers, |asset| link_choice(link, asset)),
                },
                ActionGroup { title: "Time", acts: advance_actions() },
            ]
        }
    };
    groups.into_iter().filter(|group| !group.acts.is_empty()).collect()
}

/// Returns a customer's choice of a coin.
fn choice(asset: Asset) -> ChoiceRequest {
    ChoiceRequest {
        asset,
        amount: None,
        customer_email: None,
        customer_name: None,
        custom_fields: Vec::new(),
    }
}

/// Returns a customer's choice on a payment link, with all required input.
fn link_choice(link: &Link, asset: Asset) -> ChoiceRequest {
    ChoiceRequest {
        amount: link.sample_amount(),
        customer_email: link.sample_email().map(str::to_owned),
        custom_fields: link.sample_answers(),
        ..choice(asset)
    }
}

/// Returns an action for each of the first coins: choose it and pay.
fn coin_actions(
    path: &str,
    offers: &[CoinOffer],
    choose: impl Fn(Asset) -> ChoiceRequest,
) -> Vec<PanelAction> {
    let act = |offer: &CoinOffer| {
        let asset = offer.coin.asset;
        PanelAction {
            name: format!("pay-{}", asset.code().to_ascii_lowercase()),
            label: format!("Pay in {asset}"),
            hint: "A customer chooses this coin and pays the amount due.".to_owned(),
            calls: vec![
                (path.to_owned(), PanelRequest::Choose(choose(asset))),
                pay(PayRequest::default(), OPENED),
            ],
            done: SENT,
        }
    };
    offers.iter().take(COINS_SHOWN).map(act).collect()
}

/// Returns the call that pays a charge.
fn pay(request: PayRequest, charge: &str) -> (String, PanelRequest) {
    let request = PayRequest { charge: Some(charge.to_owned()), ..request };
    ("/sandbox/pay".to_owned(), PanelRequest::Pay(request))
}

fn ways_to_pay(payment: &Payment) -> Vec<PanelAction> {
    let pay = |request: PayRequest| pay(request, payment.charge.code.as_str());
    let part = |share: &str| PayRequest { share: Some(Share(share.to_owned())), ..PayRequest::default() };
    let act = |name: &str, label: &str, hint: &str, calls| PanelAction {
        name: name.to_owned(),
        label: label.to_owned(),
        hint: hint.to_owned(),
        calls,
        done: SENT,
    };
    match payment.stage {
        // Another payment would pay twice.
        Stage::Confirming if payment.covered => Vec::new(),
        Stage::Confirming => {
            let rest = PayRequest { amount: Some(Amount(payment.missing.clone())), ..PayRequest::default() };
            vec![act(
                "exact",
                "Pay the rest",
                "The amount that is neither received nor pending.",
                vec![pay(rest)],
            )]
        }
        Stage::Waiting | Stage::Underpaid => {
            let parts = PayRequest { outputs: Some(2), ..PayRequest::default() };
            let wait = AdvanceRequest { to: Some(payment.charge.expires_at), ..AdvanceRequest::default() };
            let wait = ("/sandbox/advance".to_owned(), PanelRequest::Advance(wait));
            vec![
                act(
                    "exact",
                    "Pay exactly",
                    "The amount due that is not credited yet.",
                    vec![pay(PayRequest::default())],
                ),
                act(
                    "short",
                    "Pay half",
                    "Too little: underpaid once it is confirmed.",
                    vec![pay(part("0.5"))],
                ),
                act("over", "Pay too much", "20 % more than the amount due.", vec![pay(part("1.2"))]),
                act("split", "In two parts", "One transaction with two outputs.", vec![pay(parts)]),
                act(
                    "late",
                    "Pay too late",
                    "Lets the charge expire first.",
                    vec![wait, pay(PayRequest::default())],
                ),
            ]
        }
        Stage::Paid => {
            let hint = "A second payment of a paid charge.";
            vec![act("again", "Pay once more", hint, vec![pay(PayRequest::default())])]
        }
        Stage::Late | Stage::Short | Stage::Expired | Stage::Canceled => {
            let hint = "The payment awaits the merchant's decision.";
            vec![act("late", "Pay too late", hint, vec![pay(PayRequest::default())])]
        }
    }
}

fn failure_actions(mode: Mode, payment: &Payment) -> Vec<PanelAction> {
    let mut acts = Vec::new();
    let mut act = |name: &str, label: &str, hint: String, path: &str, body| {
        acts.push(PanelAction {
            name: name.to_owned(),
            label: label.to_owned(),
            hint,
            calls: vec![(path.to_owned(), body)],
            done: "Done. The page follows.",
        });
    };
    if payment.stage == Stage::Confirming && payment.covered {
        let (path, body) = pay(PayRequest::default(), payment.charge.code.as_str());
        let hint = "The customer sends the same amount a second time.".to_owned();
        act("twice", "Pay a second time", hint, &path, body);
    }
    if let Some(fresh) = payment.transfers.iter().rev().find(|transfer| transfer.is_unconfirmed()) {
        let (txid, short) = (fresh.txid.clone(), fresh.short_txid());
        let elsewhere = ReplaceRequest { txid: txid.clone(), amount: None, elsewhere: true, fee: None };
        act(
            "replaced",
            "Replace it",
            format!("The sender spends the same money elsewhere, instead of {short}."),
            "/sandbox/replace",
            PanelRequest::Replace(elsewhere),
        );
        let request = PanelRequest::Transaction(TransactionRequest { txid });
        act(
            "double-spent",
            "Double-spend it",
            format!("The inputs of {short} are spent elsewhere; the next block shows it."),
            "/sandbox/double-spend",
            request.clone(),
        );
        act("dropped", "Drop it", format!("The network drops {short}."), "/sandbox/drop", request);
    }
    let buried =
        payment.transfers.iter().filter(|transfer| transfer.gone.is_none() && transfer.confirmations > 0);
    if let Some(buried) = buried.min_by_key(|transfer| transfer.confirmations) {
        let hint = match buried.confirmations {
            1 => "Another block replaces the newest.".to_owned(),
            depth => format!("Other blocks replace the newest {depth}."),
        };
        let request = ReorgRequest {
            asset: payment.coin.asset,
            mode: Some(mode),
            account: None,
            depth: buried.confirmations,
            keep: KeepRequest::None,
        };
        act("reorganised", "Reorganise", hint, "/sandbox/reorg", PanelRequest::Reorg(request));
    }
    acts
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
                calls: vec![("/sandbox/advance".to_owned(), PanelRequest::Advance(request))],
                done: MOVED,
            }
        })
        .into()
}

fn chain_actions(mode: Mode, payment: &Payment) -> Vec<PanelAction> {
    let mine = |name: &str, label: &str, hint: String, blocks: u32| {
        let (asset, mode) = (AssetCode(payment.coin.asset), Some(InMode(mode)));
        let request = Mine { asset, mode, blocks: Some(blocks), at_once: false };
        PanelAction {
            name: name.to_owned(),
            label: label.to_owned(),
            hint,
            calls: vec![("/sandbox/mine".to_owned(), PanelRequest::Mine(request))],
            done: MOVED,
        }
    };
    let enough = payment.coin.required_confirmations;
    let mut acts = vec![mine("mine", "Mine a block", "Advances the clock until it exists.".to_owned(), 1)];
    if enough > 1 {
        let hint = format!("{enough} blocks: that confirms a payment.");
        acts.push(mine("mine-enough", "Mine enough", hint, enough));
    }
    acts.extend(advance_actions());
    acts
}

#[derive(Template)]
#[template(path = "hosted/panel.html")]
struct Panel<'a> {
    groups: &'a [ActionGroup],
    base: &'a str,
    action: String,
    form_token: &'a str,
    /// `true` if the browser stays on the page, which updates itself.
    is_quiet: bool,
    dashboard: String,
    about: &'static str,
    is_frozen: bool,
}

/// Renders the panel as a part of the page at `path`.
pub(super) fn part(
    site: &Site,
    path: &str,
    (account, mode): (&Account, Mode),
    subject: &PanelSubject<'_>,
) -> Result<Part, Refusal> {
    let (target, about) = match subject {
        PanelSubject::Payment(payment) if payment.stage == Stage::Late => {
            (format!("charges/{}", payment.charge.code), "Accept the late payment in the dashboard")
        }
        PanelSubject::Payment(payment) => {
            (format!("charges/{}", payment.charge.code), "This charge in the dashboard")
        }
        PanelSubject::Coins(invoice, _) => {
            (format!("invoices/{}", invoice.code), "This invoice in the dashboard")
        }
        PanelSubject::Link(link, _) => (format!("links/{}", link.code), "This link in the dashboard"),
    };
    let panel = Panel {
        groups: &groups(mode, subject),
        base: &site.base,
        action: site.to(&format!("{path}/sandbox")),
        form_token: &site.form_token,
        is_quiet: !matches!(subject, PanelSubject::Link(..)),
        dashboard: site.to(&format!("/dashboard/{}/{mode}/{target}", account.id)),
        about,
        is_frozen: site.pace == 0,
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
    let waiting =
        page.payment.as_ref().filter(|payment| payment.stage != Stage::Canceled || !page.may_choose);
    match waiting {
        Some(payment) => Some(PanelSubject::Payment(payment)),
        None => page.may_choose.then_some(PanelSubject::Coins(&page.invoice, &page.coins)),
    }
}

/// Returns the object of the panel on a payment link; `None` if it accepts no payments.
pub(super) fn link_subject(page: &LinkPage) -> Option<PanelSubject<'_>> {
    page.closed.is_none().then_some(PanelSubject::Link(&page.link, &page.coins))
}

/// Performs the action of a button. `path`: the page.
pub(super) async fn act(call: &Call<'_>, path: &str) -> Result<Answer, Refusal> {
    call.admit_owner()?;
    let client = call.client();
    if PanelPage::load(&client, path).await?.is_none() {
        return Err(Refusal::NotFound);
    }
    let form = own_form(call).await?;
    let shown = PanelPage::load(&client, path).await?;
    let Some((mode, subject)) = shown.as_ref().and_then(PanelPage::subject) else {
        return Err(Refusal::NotFound);
    };
    let mut acts = groups(mode, &subject).into_iter().flat_map(|group| group.acts);
    let done = match acts.find(|act| form.text("act") == Some(&act.name)) {
        None => ActionOutcome {
            status: StatusCode::CONFLICT,
            message: "This is no longer possible: the state has changed. Reload the page.".to_owned(),
            charge: None,
        },
        Some(act) => perform(&client, &act).await?,
    };
    let ActionOutcome { status, message, charge } = done;
    if wants_json(call) {
        return Ok(answer::json(status, json(&BTreeMap::from([("message", message)]))));
    }
    let site = call.site()?;
    match (status.is_success(), charge, &subject) {
        // The page of a link does not show the charges that it opened.
        (true, Some(charge), PanelSubject::Link(..)) => see_other(&site, &format!("/c/{charge}")),
        (true, ..) => see_other(&site, path),
        _ => notice(site, status, &message, path),
    }
}

/// The result of an action.
struct ActionOutcome {
    status: StatusCode,
    message: String,
    /// The charge that the action opened.
    charge: Option<String>,
}

async fn perform(client: &WorldClient, act: &PanelAction) -> Result<ActionOutcome, Refusal> {
    let mut charge: Option<String> = None;
    for (path, request) in &act.calls {
        let mut request = request.clone();
        if let PanelRequest::Pay(pay) = &mut request
            && pay.charge.as_deref() == Some(OPENED)
        {
            pay.charge.clone_from(&charge);
        }
        match client.act("POST", path, &json(&request)).await? {
            Ok(PanelAnswer { charge: opened }) => charge = opened.or(charge),
            Err(complaint) => {
                return Ok(ActionOutcome { status: complaint.status, message: complaint.message, charge });
            }
        }
    }
    Ok(ActionOutcome { status: StatusCode::OK, message: act.done.to_owned(), charge })
}
