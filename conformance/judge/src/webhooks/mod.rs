//! Chapter "webhooks": the format of a delivery, its signature, its endpoint, and its consistency with the API.

mod api_consistency;
mod clock;
mod delivered_copies;
mod endpoint_events;
mod envelope;
mod objects;
mod routing;
mod signature;
mod silence;

pub(super) use api_consistency::CHECKS as API_CONSISTENCY;
pub(super) use clock::CHECKS as CLOCK;
pub(super) use delivered_copies::{is_rewritten, unescape};
pub(super) use envelope::CHECKS as ENVELOPE;
pub(super) use routing::CHECKS as ROUTING;
pub(super) use signature::CHECKS as SIGNATURE;

use conformance_model::group::Group;

/// The groups of probes that checks of deliveries need.
const NEEDS: &[Group] = &[Group::Account, Group::Webhooks];
