//! Chapter "endpoints": the allowed addresses of webhook endpoints.

use conformance_model::group::Group;
use conformance_model::part::Part;
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use crate::check::Check;

pub(super) const CHECKS: &[Check] =
    &[Check::new("endpoints.address", &[Group::Account, Group::Webhooks], judge_addresses)
        .excluded_with(Part::Registration)];

/// Judges the refusal of private addresses. It counts only if a public address was accepted.
fn judge_addresses(recording: &Recording) -> CheckResult {
    let registrations = recording.deliveries.iter().flat_map(|deliveries| &deliveries.registrations);
    let (public, private): (Vec<_>, Vec<_>) = registrations.partition(|registration| registration.public);
    if let Some(accepted) = private.iter().find(|registration| registration.accepted) {
        return Err(CheckError::violation(
            None,
            format!("a refusal of the endpoint {}", accepted.address),
            format!("it was accepted: {}", accepted.response),
        ));
    }
    if private.is_empty() {
        return Err(CheckError::unjudged(
            "the suite registered no endpoint",
            "endpoints are added in the dashboard: name a command that adds one with `--register COMMAND`, or declare \
             `--without registration`",
        ));
    }
    if !public.iter().any(|registration| registration.accepted) {
        return Err(CheckError::unjudged(
            "a public address was refused too",
            "check the output of the command, and whether it can add an endpoint",
        ));
    }
    Ok(CheckOutcome::HoldsWith(format!(
        "{} addresses were refused, and a public one was accepted",
        private.len()
    )))
}
