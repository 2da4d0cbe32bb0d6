//! The test panel beside a charge: each way to pay and each thing that can go wrong, as the calls to
//! `/sandbox` that do it. What is drawn and what is done come from the same list.

use askama::Template;
use http::StatusCode;
use reference_core::mode::Mode;
use serde_json::{Value, json};
use simulator::api::{PageAccount as Account, PaymentStage as Stage};

use super::{
    load,
    model::{ChargePage, InvoicePage, Payment, TransferWords as _},
    notice, wants_json,
};
use crate::{
    answer::{self, Answer},
    pages::{Asker, Call, Part, Site, form::Form, see_other},
    refusal::Refusal,
};

/// One thing that can be done now.
pub(super) struct Act {
    /// What the form says.
    name: &'static str,
    label: &'static str,
    hint: String,
    /// Paths and bodies, in order.
    calls: Vec<(&'static str, Value)>,
    /// What to say when it is done.
    done: &'static str,
}

impl Act {
    /// The same by hand.
    fn curl(&self, base: &str) -> String {
        let line = |(path, body): &(&str, Value)| {
            format!("curl -X POST {base}{path} -H 'Content-Type: application/json' -d '{body}'")
        };
        self.calls.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Acts that belong together.
pub(super) struct ActionGroup {
    title: &'static str,
    acts: Vec<Act>,
}

const SENT: &str = "Sent. The page follows as soon as the payment is seen.";
const MOVED: &str = "Done. The clock was moved on.";

/// Everything that can be done about a charge now.
pub(super) fn groups(mode: Mode, payment: &Payment) -> Vec<ActionGroup> {
    let groups = [
        ActionGroup { title: "Pay", acts: ways_to_pay(payment) },
        ActionGroup { title: "What can go wrong", acts: troubles(mode, payment) },
        ActionGroup { title: "Blocks and time", acts: time(mode, payment) },
    ];
    groups.into_iter().filter(|group| !group.acts.is_empty()).collect()
}

fn ways_to_pay(payment: &Payment) -> Vec<Act> {
    let charge = &payment.charge.code;
    let pay = |more: &[(&str, Value)]| {
        let mut body = json!({ "charge": charge });
        for (name, value) in more {
            body[*name] = value.clone();
        }
        ("/sandbox/pay", body)
    };
    let act = |name, label, hint: &str, calls| Act { name, label, hint: hint.to_owned(), calls, done: SENT };
    match payment.stage {
        Stage::Waiting | Stage::Confirming | Stage::Underpaid => {
            let mut acts = vec![
                act("exact", "Pay exactly", "What is due and not credited yet.", vec![pay(&[])]),
                act(
                    "short",
                    "Pay half",
                    "Too little: underpaid once it is confirmed.",
                    vec![pay(&[("share", json!("0.5"))])],
                ),
                act(
                    "over",
                    "Pay too much",
                    "A fifth more than is due.",
                    vec![pay(&[("share", json!("1.2"))])],
                ),
                act(
                    "split",
                    "In two parts",
                    "One transaction with two outputs.",
                    vec![pay(&[("outputs", json!(2))])],
                ),
            ];
            if payment.stage != Stage::Confirming {
                let wait = ("/sandbox/advance", json!({ "to": payment.charge.expires_at.to_string() }));
                acts.push(act("late", "Pay too late", "Lets the time run out first.", vec![wait, pay(&[])]));
            }
            acts
        }
        Stage::Paid => vec![act("again", "Pay once more", "Money for what is paid already.", vec![pay(&[])])],
        Stage::Late | Stage::Short | Stage::Expired | Stage::Canceled => {
            vec![act("late", "Pay too late", "The money waits for the merchant.", vec![pay(&[])])]
        }
    }
}

fn troubles(mode: Mode, payment: &Payment) -> Vec<Act> {
    let mut acts = Vec::new();
    let mut act = |name, label, hint: String, path, body| {
        acts.push(Act { name, label, hint, calls: vec![(path, body)], done: "Done. The page follows." });
    };
    if let Some(fresh) = payment.transfers.iter().rev().find(|it| it.is_unconfirmed()) {
        let (txid, short) = (&fresh.txid, fresh.short_txid());
        act(
            "replaced",
            "Replace it",
            format!("The sender pays somebody else instead of {short}."),
            "/sandbox/replace",
            json!({ "txid": txid, "elsewhere": true }),
        );
        act(
            "double-spent",
            "Double-spend it",
            format!("The money of {short} goes elsewhere; that is seen with the next block."),
            "/sandbox/double-spend",
            json!({ "txid": txid }),
        );
        act(
            "dropped",
            "Drop it",
            format!("The network forgets {short}."),
            "/sandbox/drop",
            json!({ "txid": txid }),
        );
    }
    let buried = payment.transfers.iter().filter(|it| it.gone.is_none() && it.confirmations > 0);
    if let Some(buried) = buried.min_by_key(|it| it.confirmations) {
        act(
            "reorganised",
            "Reorganise",
            match buried.confirmations {
                1 => "Another block takes the place of the newest.".to_owned(),
                depth => format!("Other blocks take the place of the newest {depth}."),
            },
            "/sandbox/reorg",
            json!({ "asset": payment.charge.asset, "mode": mode.as_str(), "depth": buried.confirmations }),
        );
    }
    acts
}

fn time(mode: Mode, payment: &Payment) -> Vec<Act> {
    let mine = |name, label, hint: String, blocks: u32| Act {
        name,
        label,
        hint,
        calls: vec![(
            "/sandbox/mine",
            json!({ "asset": payment.charge.asset, "mode": mode.as_str(), "blocks": blocks }),
        )],
        done: MOVED,
    };
    let advance = |name, label, by: &str| Act {
        name,
        label,
        hint: "Moves the service clock.".to_owned(),
        calls: vec![("/sandbox/advance", json!({ "by": by }))],
        done: MOVED,
    };
    let enough = payment.coin.required_confirmations;
    let mut acts = vec![mine("mine", "Mine a block", "Lets time run until it has come.".to_owned(), 1)];
    if enough > 1 {
        acts.push(mine(
            "mine-enough",
            "Mine enough",
            format!("{enough} blocks: that confirms a payment."),
            enough,
        ));
    }
    acts.push(advance("advance", "Wait 10 s", "10s"));
    acts.push(advance("advance-more", "Wait 10 min", "10m"));
    acts
}

#[derive(Template)]
#[template(path = "hosted/panel.html")]
struct Panel<'a> {
    groups: &'a [ActionGroup],
    base: &'a str,
    action: String,
    dashboard: String,
    is_late: bool,
    is_frozen: bool,
}

/// The panel as a part of the page at `path`.
pub(super) fn part(
    site: &Site,
    path: &str,
    (account, mode): (&Account, Mode),
    payment: &Payment,
) -> Result<Part, Refusal> {
    let panel = Panel {
        groups: &groups(mode, payment),
        base: &site.base,
        action: site.to(&format!("{path}/sandbox")),
        dashboard: site.to(&format!("/dashboard/{}/{mode}/charges/{}", account.id, payment.charge.code)),
        is_late: payment.stage == Stage::Late,
        is_frozen: site.pace == 0,
    };
    Ok(Part { id: "sandbox", html: panel.render().map_err(|_| Refusal::Broken)? })
}

/// The charge that the page at `path` shows.
async fn find(asker: &Asker, path: &str) -> Result<Option<(Mode, Payment)>, Refusal> {
    Ok(if path.starts_with("/i/") {
        let page: Option<InvoicePage> = load(asker, path).await?;
        page.and_then(|page| page.payment.map(|payment| (page.mode, payment)))
    } else {
        let page: Option<ChargePage> = load(asker, path).await?;
        page.map(|page| (page.mode, page.payment))
    })
}

/// Does what a button of the panel says. `path`: of the page.
pub(super) async fn act(call: &Call<'_>, path: &str) -> Result<Answer, Refusal> {
    call.admit_owner()?;
    call.admit_form()?;
    let form = Form::read(&call.head.headers, &call.body)?;
    let asker = call.asker();
    let Some((mode, payment)) = find(&asker, path).await? else { return Err(Refusal::NotFound) };
    let mut acts = groups(mode, &payment).into_iter().flat_map(|group| group.acts);
    let (status, message) = match acts.find(|act| form.text("act") == Some(act.name)) {
        None => (
            StatusCode::CONFLICT,
            "This can't be done any more: things have moved on. Look at the page again.".to_owned(),
        ),
        Some(act) => perform(&asker, &act).await?,
    };
    if wants_json(call) {
        return Ok(answer::json(status, json!({ "message": message }).to_string()));
    }
    let site = call.site()?;
    if status.is_success() { see_other(&site, path) } else { notice(site, status, &message, path) }
}

async fn perform(asker: &Asker, act: &Act) -> Result<(StatusCode, String), Refusal> {
    for (path, body) in &act.calls {
        let reply = asker.ask("POST", path, Some(body)).await?;
        if !reply.is_good() {
            return Ok((reply.status, reply.message().to_owned()));
        }
    }
    Ok((StatusCode::OK, act.done.to_owned()))
}
