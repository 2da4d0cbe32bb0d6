//! Requests single charges, invoices and payment links, if the operator configured their paths. The key of each mode
//! requests an object of its own mode, one of the other mode, and nonexistent ones, as for events.

use conformance_model::mode::Mode;
use conformance_model::reading::observed_ids;
use conformance_model::recording::{Caller, Exchange, ObjectKind, Purpose, Side};

use crate::plan::Plan;
use crate::probes::isolation::round_order;
use crate::request_paths::percent_encode;
use crate::session::Session;

/// The number of comparisons of absent and foreign objects.
const ROUNDS: u8 = 2;
const REQUESTS_PER_KIND: u32 = Mode::BOTH.len() as u32 * (1 + 3 * ROUNDS as u32);

/// Returns the number of requests of this probe, with both keys together.
pub(crate) fn requests(plan: &Plan) -> u32 {
    plan.paths.by_kind().iter().filter(|(_, path)| path.is_some()).count() as u32 * REQUESTS_PER_KIND
}

/// Sends the requests for each configured kind.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let plan = session.plan;
    for (kind, path) in plan.paths.by_kind() {
        let Some(path) = path else { continue };
        for mode in Mode::BOTH {
            let code = |mode| {
                let observed = observed_ids(&session.recording, mode);
                match kind {
                    ObjectKind::Charge => observed.charge,
                    ObjectKind::Invoice => observed.invoice,
                    ObjectKind::PaymentLink => observed.payment_link,
                }
            };
            if let (Some(own), Some(foreign)) = (code(mode), code(mode.other())) {
                ObjectRequests { kind, path, mode }.send_rounds(session, &own, &foreign).await;
            }
        }
    }
}

/// The requests for single objects of a kind with the key of a mode.
struct ObjectRequests<'a> {
    kind: ObjectKind,
    path: &'a str,
    mode: Mode,
}

impl ObjectRequests<'_> {
    /// Sends two rounds in different order, to distinguish a real difference from an effect of a load balancer.
    async fn send_rounds(&self, session: &mut Session<'_>, own: &str, foreign: &str) {
        for round in 1..=ROUNDS {
            if round == ROUNDS {
                // Sent between the rounds, so that an effect on every second response affects different requests in
                // each round.
                self.request_object(session, own, Side::Own, 1).await;
            }
            // Each request for a nonexistent id has an id of its own; a round has three requests.
            for (variant, side) in (u64::from(round) * 4..).zip(round_order(round)) {
                let absent = session.unused_id_like(foreign, variant);
                let id = if side == Side::Foreign { foreign } else { &absent };
                self.request_object(session, id, side, round).await;
            }
        }
    }

    async fn request_object(&self, session: &mut Session<'_>, id: &str, side: Side, round: u8) -> Exchange {
        let path = self.path.replace("{id}", &percent_encode(id));
        let purpose = Purpose::Object { kind: self.kind, id: id.to_owned(), side, round };
        session.send(Caller::Own(self.mode), purpose, &path).await
    }
}
