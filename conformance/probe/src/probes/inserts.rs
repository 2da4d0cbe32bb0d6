//! Paging while the create request or the operator's hook creates records.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::mode::Mode;
use conformance_model::reading::{Page, identity};
use conformance_model::recording::{Caller, Exchange, List, Purpose, Step};

use crate::hook;
use crate::plan::Plan;
use crate::probes::lists::RECORDS_MIN;
use crate::probes::positions::{LONG, sized_request};
use crate::session::{Session, path_of};

const KEY: Caller = Caller::Own(Mode::Test);
/// The page size: small, so that short lists have several pages, but not 1.
const SIZE: u64 = 2;
/// The requests per list: the long page, the first page, the second and third page either way, and the final long page,
/// three times and once of another size if it lacks the created record.
const PER_LIST: u32 = 10;
/// The time until a new record is in its list.
const SETTLING: Duration = Duration::from_secs(2);
const TIMES: u32 = 2;

/// Returns the number of requests beyond all others.
pub(crate) fn requests(plan: &Plan) -> u32 {
    lists(plan).len() as u32 * PER_LIST + writes(plan)
}

/// Returns the number of these that create records.
pub(crate) fn writes(plan: &Plan) -> u32 {
    if plan.writes.is_some() { TIMES } else { 0 }
}

/// Returns the number of create requests without a key, which must be refused.
pub(crate) fn refused_writes(plan: &Plan) -> u32 {
    u32::from(plan.writes.is_some())
}

/// Returns the lists that grow: all of them with a hook, whose records are unknown. The create request opens charges.
fn lists(plan: &Plan) -> &'static [List] {
    if plan.hook.is_some() { &List::ALL } else { &[List::Charges, List::Events] }
}

pub(crate) async fn probe(session: &mut Session<'_>) {
    let plan = session.plan;
    session.recording.inserts.by = [
        plan.writes.as_ref().map(|_| "--allow-writes".to_owned()),
        plan.hook.as_ref().map(|_| "--hook".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut trails = Vec::new();
    for list in lists(plan) {
        let whole = send_during_inserts(session, *list, Step::Whole, &page_path(*list, None, LONG)).await;
        let known = ids(&whole);
        if known.len() as u64 >= RECORDS_MIN {
            let first =
                send_during_inserts(session, *list, Step::First, &page_path(*list, Some(1), SIZE)).await;
            trails.push((*list, Some(first), known));
        }
    }
    if trails.is_empty() {
        return;
    }
    for page in 2..2 + u64::from(TIMES) {
        create_record(session).await;
        for (list, last, _) in &mut trails {
            send_during_inserts(session, *list, Step::ByNumber { page }, &page_path(*list, Some(page), SIZE))
                .await;
            let path = last.take().and_then(|from| session.link_path(&from, *list, "next"));
            if let Some(path) = path {
                *last = Some(send_during_inserts(session, *list, Step::ByLink { page }, &path).await);
            }
        }
    }
    for (list, _, known) in trails {
        // The same address as before the creations, for which a cache would return the old response.
        let path = page_path(list, None, LONG);
        let fresh = send_during_inserts(session, list, Step::Fresh, &path).await;
        if may_have_grown(session, list) && ids(&fresh).is_subset(&known) {
            // A cache of the first address does not have this one.
            let other =
                send_during_inserts(session, list, Step::Fresh, &page_path(list, None, LONG - 1)).await;
            let has_grown = is_created(session, list) || !ids(&other).is_subset(&known);
            if has_grown && session.pause(SETTLING, "the list is read again").await {
                send_during_inserts(session, list, Step::Fresh, &path).await;
            }
        }
        // The next replica shows it as well.
        send_during_inserts(session, list, Step::Fresh, &path).await;
    }
    if let Some(create) = &plan.writes {
        // Some services read the body before they check the key.
        session.post(Caller::NoKey, &create.path, "{}").await;
    }
}

/// Returns `true` if a record was created in the list.
fn is_created(session: &Session<'_>, list: List) -> bool {
    session.recording.exchanges.iter().any(|exchange| exchange.created_in() == Some(list))
}

/// The same, for a hook too, which may have created a record in any list.
fn may_have_grown(session: &Session<'_>, list: List) -> bool {
    is_created(session, list) || session.plan.hook.is_some()
}

/// Returns the identifiers of a page's records.
fn ids(exchange: &Exchange) -> BTreeSet<String> {
    let page = Page::from_exchange(exchange);
    page.as_ref().and_then(Page::rows).into_iter().flatten().map(identity).collect()
}

fn page_path(list: List, page: Option<u64>, size: u64) -> String {
    path_of(&sized_request(list, page, size))
}

async fn send_during_inserts(session: &mut Session<'_>, list: List, step: Step, path: &str) -> Exchange {
    session.send(KEY, Purpose::DuringInserts { list, step }, path).await
}

async fn create_record(session: &mut Session<'_>) {
    let plan = session.plan;
    if let Some(create) = &plan.writes {
        let asset = accepted_asset(session).unwrap_or_else(|| "BTC".to_owned());
        let body = create.body.replace("{asset}", &asset);
        let answer = session.post(KEY, &create.path, &body).await;
        if !answer.status().is_some_and(|status| (200..300).contains(&status)) {
            record_fault(
                session,
                format!("POST {}: {} (exchange {})", create.path, answer.summary(), answer.number),
            );
        }
    }
    if let Some(hook) = &plan.hook {
        session.progress.on_wait(hook.time_limit, "the hook creates something");
        let base = plan.shown_base();
        let environment = [
            ("CHARGEPROOF_URL", base.as_str()),
            ("CHARGEPROOF_TEST_KEY", plan.test_key.expose()),
            ("CHARGEPROOF_WANTED", "insert"),
        ];
        if let Err(why) = hook::run(hook, &environment, &plan.interrupt).await {
            let why = session.redact_text(&why);
            record_fault(session, why);
        }
    }
}

fn record_fault(session: &mut Session<'_>, why: String) {
    let faults = &mut session.recording.inserts.faults;
    if !faults.contains(&why) {
        faults.push(why);
    }
}

/// Returns the first accepted asset of the test mode, which may be a code or an object with one.
fn accepted_asset(session: &Session<'_>) -> Option<String> {
    let body = session.recording.account(Mode::Test)?.answer()?.body.json()?;
    let first = body.get("meta")?.get("accepted_assets")?.get(0)?;
    let code = first.as_str().or_else(|| first.get("code")?.as_str())?;
    // It is inserted into a JSON text.
    code.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        .then(|| code.to_owned())
}
