//! Chapter "webhooks": the format of a delivery, its signature, its endpoint, and its consistency with the API.

mod agreement;
mod clock;
mod envelope;
mod objects;
mod route;
mod signature;

pub(super) use agreement::CHECKS as AGREEMENT;
pub(super) use clock::CHECKS as CLOCK;
pub(super) use envelope::CHECKS as ENVELOPE;
pub(super) use route::CHECKS as ROUTE;
pub(super) use signature::CHECKS as SIGNATURE;

use conformance_model::group::Group;

/// The probes that cause deliveries.
const NEEDS: &[Group] = &[Group::Account, Group::Webhooks];
