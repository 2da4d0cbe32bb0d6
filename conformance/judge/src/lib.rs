//! The judge: pure functions from a recording to verdicts. Each file with checks starts with a table of them, `CHECKS`.
//!
//! The judge opens no socket and does not depend on the probes: the recording contains all
//! evidence. So old recordings can be judged again, and the tests need no server.

mod account;
mod account_profile;
mod answers;
mod auth;
mod cached_responses;
mod charge_versions;
mod charges;
mod check;
mod current_states;
mod diff;
mod endpoints;
mod event_copies;
mod event_sequences;
mod events;
mod evidence;
mod exchanged_values;
mod extended;
mod filters;
mod final_statuses;
mod inserts;
mod invoice_charges;
mod invoice_settlement;
mod invoices;
mod isolation;
mod limits;
mod links;
mod listed_objects;
mod listed_values;
mod lists_vs_events;
mod object_copies;
mod object_history;
mod observe;
mod paging;
mod parsed_deliveries;
mod payment_amounts;
mod persistent_failures;
mod record_order;
mod repeated_events;
mod second_key;
mod status_names;
mod subjects;
mod totals;
mod underpayments;
mod values_by_type;
mod webhooks;

use std::cell::OnceCell;

use conformance_model::catalogue::{extended_statements as extended_catalogue, judged_statements};
use conformance_model::group::Group;
use conformance_model::recording::Recording;
use conformance_model::selection::Profile;
use conformance_model::verdict::{StatementResult, Verdict, verdict};

pub use check::Check;
pub use observe::{Observation, observations};

/// Returns all checks, chapter by chapter, in the order of reports.
pub fn checks(profile: Profile) -> impl Iterator<Item = &'static Check> {
    let extended_checks = if profile == Profile::Extended { extended::CHECKS } else { &[] };
    [
        account::CHECKS,
        answers::CHECKS,
        auth::CHECKS,
        isolation::CHECKS,
        limits::CHECKS,
        second_key::CHECKS,
        paging::CHECKS,
        links::CHECKS,
        inserts::CHECKS,
        filters::CHECKS,
        events::CHECKS,
        lists_vs_events::CHECKS,
        invoice_settlement::CHECKS,
        underpayments::CHECKS,
        webhooks::ENVELOPE,
        webhooks::SIGNATURE,
        webhooks::ROUTING,
        webhooks::CLOCK,
        webhooks::API_CONSISTENCY,
        charges::CHECKS,
        invoices::CHECKS,
        endpoints::CHECKS,
        extended_checks,
    ]
    .into_iter()
    .flatten()
}

/// Returns `true` if deliveries are evidence for a statement, alone or with other evidence.
pub fn uses_deliveries(id: &str) -> bool {
    checks(Profile::Spec).any(|check| {
        check.id == id && check.needs.iter().chain(check.optional).any(|group| *group == Group::Webhooks)
    })
}

/// Judges a recording by all statements of the specification.
pub fn judge(recording: &Recording) -> Vec<StatementResult> {
    judge_selected(recording, Profile::Spec, |_| true, |_| false)
}

/// Judges a recording by the selected statements. `selected` and `skipped` decide by name; a skipped statement gets a
/// row with the verdict "left out".
pub fn judge_selected(
    recording: &Recording,
    profile: Profile,
    selected: impl Fn(&str) -> bool,
    skipped: impl Fn(&str) -> bool,
) -> Vec<StatementResult> {
    judge_with(checks(profile).copied(), recording, selected, skipped)
}

/// Judges a recording by the selected ones of these checks; see [`judge_selected`].
///
/// # Panics
///
/// If the statement of a check is not in the catalogue, or is marked `unjudged` there.
pub fn judge_with(
    checks: impl Iterator<Item = Check>,
    recording: &Recording,
    selected: impl Fn(&str) -> bool,
    skipped: impl Fn(&str) -> bool,
) -> Vec<StatementResult> {
    let mut catalogue = judged_statements();
    catalogue.extend(extended_catalogue());
    let cached = cached_responses::cached_exchanges(recording);
    let without_cached_bursts = cached_responses::without_cached_burst_requests(recording, &cached);
    let uncached = OnceCell::new();
    let mut rows = Vec::new();
    for check in checks.filter(|check| selected(check.id)) {
        let requirement =
            catalogue.remove(check.id).expect("every check has a statement that is not marked `unjudged`");
        let verdict = if skipped(check.id) {
            Verdict::LeftOut { by: "--skip".into() }
        } else if let Some(part) = recording.without.iter().find(|part| check.is_excluded_by(**part)) {
            Verdict::LeftOut { by: recording.exclusion_option(*part) }
        } else {
            let judge = |recording: &Recording| {
                persistent_failures::with_persistent_failures(check.id, recording, (check.judge)(recording))
            };
            let uncounted = without_cached_bursts.as_ref().filter(|_| check.needs.contains(&Group::Burst));
            let judged = match uncounted {
                None => judge(recording),
                Some(uncounted) => cached_responses::more_favourable(judge(uncounted), || judge(recording)),
            };
            let uncached =
                || judge(uncached.get_or_init(|| cached_responses::without_cached(recording, &cached)));
            let judged = cached_responses::excuse_cached(&check, judged, &cached, uncached);
            verdict(requirement.level, judged)
        };
        rows.push(StatementResult { id: check.id.to_owned(), requirement, verdict });
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[track_caller]
    fn check_same_ids(checks: &BTreeSet<String>, statements: &BTreeSet<String>) {
        let unjudged: Vec<_> = statements.difference(checks).collect();
        let unknown: Vec<_> = checks.difference(statements).collect();
        assert!(
            unjudged.is_empty(),
            "statements without a check that are not marked `unjudged`: {unjudged:?}"
        );
        assert!(unknown.is_empty(), "checks without a judged statement: {unknown:?}");
    }

    #[test]
    fn every_judged_statement_has_exactly_one_check() {
        let ids: Vec<_> = checks(Profile::Extended).map(|check| check.id.to_owned()).collect();
        let distinct: BTreeSet<_> = ids.iter().cloned().collect();
        assert_eq!(ids.len(), distinct.len(), "a statement is judged twice");
        let all = judged_statements().into_keys().chain(extended_catalogue().into_keys());
        check_same_ids(&distinct, &all.collect());
        let specified: BTreeSet<_> = checks(Profile::Spec).map(|check| check.id.to_owned()).collect();
        check_same_ids(&specified, &judged_statements().into_keys().collect());
    }

    #[test]
    fn every_check_needs_a_group_of_probes() {
        for check in checks(Profile::Extended) {
            assert!(!check.needs.is_empty(), "{} needs no probe", check.id);
        }
    }
}
