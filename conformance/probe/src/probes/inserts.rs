//! Paging while the create request or the operator's hook creates records.

use std::collections::BTreeSet;
use std::time::Duration;

use conformance_model::mode::Mode;
use conformance_model::reading::{Page, account_meta, asset_code, id_or_json, text_at};
use conformance_model::recording::{Caller, Exchange, List, Purpose, Step};

use crate::hook;
use crate::plan::Plan;
use crate::probes::lists::RECORDS_MIN;
use crate::probes::positions::{LONG_PAGE_SIZE, filtered_request, sized_request};
use crate::request_paths::page_path;
use crate::session::Session;

const KEY: Caller = Caller::Own(Mode::Test);
/// The page size: small, so that short lists have several pages, but not 1.
const PAGE_SIZE: u64 = 2;
/// The most requests per list: the long page, the first page, the second and third page by number and by link, and
/// the final long page: three times, and once of another size if it lacks the created record.
const PER_LIST: u32 = 10;
/// The time after which a new record should be in its list.
const LIST_DELAY: Duration = Duration::from_secs(2);
/// The number of created records.
const CREATIONS: u32 = 2;
/// The type of the events that are also read with a filter. Every created charge has one.
const FILTERED_TYPE: &str = "charge.created";
/// The fewest events of this type for which the filtered list is read: two pages.
const FILTERED_MIN: usize = 2 * PAGE_SIZE as usize;
/// The requests for the filtered list: its first page, and the second by its link.
const FILTERED_REQUESTS: u32 = 2;

/// Returns the most requests of this probe.
pub(crate) fn requests(plan: &Plan) -> u32 {
    growing_lists(plan).len() as u32 * PER_LIST + FILTERED_REQUESTS + writes(plan)
}

/// Returns the number of these requests that create records.
pub(crate) fn writes(plan: &Plan) -> u32 {
    if plan.create_request.is_some() { CREATIONS } else { 0 }
}

/// Returns the number of create requests without a key, which must be refused.
pub(crate) fn refused_writes(plan: &Plan) -> u32 {
    u32::from(plan.create_request.is_some())
}

/// Returns the lists that grow: all of them with a hook, whose records are unknown. The create request opens charges.
fn growing_lists(plan: &Plan) -> &'static [List] {
    if plan.hook.is_some() { &List::ALL } else { &[List::Charges, List::Events] }
}

/// Reads the lists page by page, creating a record before each later page.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let plan = session.plan;
    session.recording.inserts.options = [
        plan.create_request.as_ref().map(|_| "--allow-writes".to_owned()),
        plan.hook.as_ref().map(|_| "--hook".to_owned()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut paged_lists = Vec::new();
    let mut filtered_first = None;
    for list in growing_lists(plan) {
        let long_page = send_during_inserts(
            session,
            *list,
            Step::LongPageBefore,
            &sized_page_path(*list, None, LONG_PAGE_SIZE),
        )
        .await;
        let known = ids(&long_page);
        if known.len() as u64 >= RECORDS_MIN {
            let first = send_during_inserts(
                session,
                *list,
                Step::FirstPage,
                &sized_page_path(*list, Some(1), PAGE_SIZE),
            )
            .await;
            paged_lists.push((*list, Some(first), known));
        }
        if *list == List::Events && count_of_filtered_type(&long_page) >= FILTERED_MIN {
            let path = page_path(&filtered_request(List::Events, &[("type", FILTERED_TYPE)], PAGE_SIZE));
            filtered_first = Some(send_during_inserts(session, *list, Step::FilteredFirstPage, &path).await);
        }
    }
    if paged_lists.is_empty() {
        return;
    }
    for page in 2..2 + u64::from(CREATIONS) {
        create_record(session).await;
        for (list, last, _) in &mut paged_lists {
            send_during_inserts(
                session,
                *list,
                Step::ByNumber { page },
                &sized_page_path(*list, Some(page), PAGE_SIZE),
            )
            .await;
            let path = last.take().and_then(|previous| session.link_path(&previous, *list, "next"));
            if let Some(path) = path {
                *last = Some(send_during_inserts(session, *list, Step::ByLink { page }, &path).await);
            }
        }
    }
    // Before the first pages are read again, because a server may remember when that was.
    if let Some(path) = filtered_first.and_then(|first| session.link_path(&first, List::Events, "next")) {
        send_during_inserts(session, List::Events, Step::FilteredByLink, &path).await;
    }
    for (list, _, known) in paged_lists {
        read_after_creations(session, list, &known).await;
    }
    if let Some(create) = &plan.create_request {
        // Some services read the body before they check the key.
        session.post(Caller::NoKey, &create.path, "{}").await;
    }
}

/// Reads a list once more after the creations, and again if no new record is listed although one must be.
async fn read_after_creations(session: &mut Session<'_>, list: List, known: &BTreeSet<String>) {
    // The same address as before the creations, for which a cache would return the old response.
    let path = sized_page_path(list, None, LONG_PAGE_SIZE);
    let last_page = send_during_inserts(session, list, Step::LongPageAfter, &path).await;
    if may_have_grown(session, list) && ids(&last_page).is_subset(known) {
        // A cache of the first address does not have this address.
        let other_size = send_during_inserts(
            session,
            list,
            Step::LongPageAfter,
            &sized_page_path(list, None, LONG_PAGE_SIZE - 1),
        )
        .await;
        let has_grown = is_created(session, list) || !ids(&other_size).is_subset(known);
        if has_grown && session.pause(LIST_DELAY, "the list is read again").await {
            send_during_inserts(session, list, Step::LongPageAfter, &path).await;
        }
    }
    // Another replica should list the record, too.
    send_during_inserts(session, list, Step::LongPageAfter, &path).await;
}

/// Returns `true` if a record was created in the list.
fn is_created(session: &Session<'_>, list: List) -> bool {
    session.recording.exchanges.iter().any(|exchange| exchange.created_in() == Some(list))
}

/// Returns `true` if a record may have been created in the list: by a request, or by the hook, which may create any.
fn may_have_grown(session: &Session<'_>, list: List) -> bool {
    is_created(session, list) || session.plan.hook.is_some()
}

/// Returns the identifiers of a page's records.
fn ids(exchange: &Exchange) -> BTreeSet<String> {
    Page::from_exchange(exchange).and_then(Page::rows).into_iter().flatten().map(id_or_json).collect()
}

/// Returns the number of records of a page that have the filtered type.
fn count_of_filtered_type(exchange: &Exchange) -> usize {
    let rows = Page::from_exchange(exchange).and_then(Page::rows).into_iter().flatten();
    rows.filter(|row| text_at(row, &["type"]) == Some(FILTERED_TYPE)).count()
}

fn sized_page_path(list: List, page: Option<u64>, size: u64) -> String {
    page_path(&sized_request(list, page, size))
}

async fn send_during_inserts(session: &mut Session<'_>, list: List, step: Step, path: &str) -> Exchange {
    session.send(KEY, Purpose::DuringInserts { list, step }, path).await
}

/// Creates a record by the create request and one by the hook, as far as the plan has them.
async fn create_record(session: &mut Session<'_>) {
    let plan = session.plan;
    if let Some(create) = &plan.create_request {
        let asset = accepted_asset(session).unwrap_or_else(|| "BTC".to_owned());
        let body = create.body.replace("{asset}", &asset);
        let exchange = session.post(KEY, &create.path, &body).await;
        if !exchange.status().is_some_and(|status| (200..300).contains(&status)) {
            record_error(
                session,
                format!("POST {}: {} (exchange {})", create.path, exchange.summary(), exchange.number),
            );
        }
    }
    if let Some(hook) = &plan.hook {
        session.progress.on_wait(hook.time_limit, "the hook creates a record");
        let base = plan.base_without_secrets();
        let environment = [
            ("CHARGEPROOF_URL", base.as_str()),
            ("CHARGEPROOF_TEST_KEY", plan.test_key.expose()),
            ("CHARGEPROOF_WANTED", "insert"),
        ];
        if let Err(why) = hook::run(hook, &environment, &plan.interrupt).await {
            let why = session.redact_text(&why);
            record_error(session, why);
        }
    }
}

/// Records the reason why a record was not created, once.
fn record_error(session: &mut Session<'_>, why: String) {
    let errors = &mut session.recording.inserts.errors;
    if !errors.contains(&why) {
        errors.push(why);
    }
}

/// Returns the code of the first accepted asset of the test mode.
fn accepted_asset(session: &Session<'_>) -> Option<String> {
    let body = session.recording.account_exchange(Mode::Test)?.response()?.body.json()?;
    let code = asset_code(account_meta(body)?.get("accepted_assets")?.get(0)?)?;
    // The code is inserted into a JSON text without escapes.
    code.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        .then(|| code.to_owned())
}
