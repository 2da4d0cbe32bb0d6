//! Objects that were seen in events, deliveries or other reads, and are missing in a later read of their list.
//!
//! The times are those of the run's clock. An object may be missing for a minute, even if newer objects are listed: the parts of
//! an index may refresh separately.

use std::collections::{BTreeMap, BTreeSet};

use time::{Duration, OffsetDateTime};

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::CheckError;

use crate::diff::LISTED_KINDS;
use crate::evidence::{PER_PAGE_MAX, PageView, first_long_page_reads};
use crate::object_copies::{CopySource, CopySources, ObjectCopy, UPDATE_DELAY_MAX, known_events, run_time};

/// The minimum number of objects that are missing in one read, for a violation.
const MISSING_MIN: usize = 2;
/// The minimum time from the creation of the oldest record of a full page to that of an object that must be on the page.
const PAGE_END_DISTANCE: Duration = Duration::minutes(1);

/// The first copy of an object, and the time of its creation, if the API returned its event. A delivery has a time of its own.
struct KnownObject {
    seen: Duration,
    created_at: Option<OffsetDateTime>,
}

/// The known objects of a kind and mode by code.
type KnownObjects<'a> = BTreeMap<&'a str, KnownObject>;

/// Checks the first long pages of both lists in both modes.
pub(super) fn check(recording: &Recording) -> Result<(), CheckError> {
    let sources = CopySources::from_recording(recording);
    let copies = sources.copies();
    for mode in Mode::BOTH {
        for (list, member) in LISTED_KINDS {
            let known = known_objects(&copies, mode, member);
            for view in first_long_page_reads(&sources.views, list, mode) {
                check_page(view, list, member, &known)?;
            }
        }
    }
    Ok(())
}

/// Returns the objects of a kind in a mode. The charges of invoices are left out: their list may contain no others.
fn known_objects<'a>(copies: &[ObjectCopy<'a>], mode: Mode, member: &str) -> KnownObjects<'a> {
    let of_kind = |copy: &&ObjectCopy<'_>| {
        (copy.mode, copy.member) == (mode, member) && copy.source != CopySource::InInvoice
    };
    let mut known = KnownObjects::new();
    for copy in copies.iter().filter(of_kind) {
        let object = known.entry(copy.code).or_insert(KnownObject { seen: copy.seen, created_at: None });
        object.seen = object.seen.min(copy.seen);
    }
    for ((event_mode, event_member, code), events) in known_events(copies) {
        let is_creation = |kind: &str| kind.ends_with(".created");
        let created = events.iter().find(|event| is_creation(event.kind));
        if let (true, Some(created)) = ((event_mode, event_member) == (mode, member), created)
            && created.copy.number.is_some()
            && let Some(object) = known.get_mut(code)
        {
            object.created_at = Some(created.recorded_at);
        }
    }
    known
}

/// Checks that a page has the known objects, if they cannot be on the next page.
fn check_page(
    view: &PageView<'_>,
    list: List,
    member: &str,
    known: &KnownObjects<'_>,
) -> Result<(), CheckError> {
    let rows = view.rows();
    let codes: BTreeSet<&str> = rows.iter().filter_map(|row| text_at(row, &["code"])).collect();
    if codes.len() != rows.len() || rows.is_empty() {
        return Ok(());
    }
    let sent = run_time(view.exchange.sent);
    let listed: Vec<_> = codes.iter().filter_map(|code| known.get(code)?.created_at).collect();
    let oldest = listed.iter().min();
    let is_full = rows.len() as u64 >= PER_PAGE_MAX;
    let is_on_page = |object: &KnownObject| {
        !is_full
            || object
                .created_at
                .zip(oldest)
                .is_some_and(|(created_at, oldest)| created_at - *oldest > PAGE_END_DISTANCE)
    };
    let must_be_listed = |object: &KnownObject| is_on_page(object) && sent - object.seen >= UPDATE_DELAY_MAX;
    let missing: Vec<_> =
        known.iter().filter(|(code, object)| !codes.contains(*code) && must_be_listed(object)).collect();
    match missing.last().filter(|_| missing.len() >= MISSING_MIN) {
        None => Ok(()),
        Some((code, object)) => Err(CheckError::violation(
            view.number(),
            format!(
                "{member} {code} in the list of {}, {} s after it was seen",
                list.as_str(),
                (sent - object.seen).whole_seconds()
            ),
            format!("{} others, but neither this one nor {} more", codes.len(), missing.len() - 1),
        )),
    }
}
