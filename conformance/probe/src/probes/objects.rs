//! Single charges, invoices and payment links, where the operator has named their paths: an own one, and
//! absent, foreign, absent, as with events.

use conformance_model::reading::learn;
use conformance_model::recording::{Caller, Kind, Purpose, Side};
use conformance_model::words::Mode;

use crate::plan::Plan;
use crate::session::Session;

const PER_KIND: u32 = 4;

/// What this costs beyond all else, with either key.
pub(crate) fn requests(plan: &Plan) -> u32 {
    plan.paths.all().iter().filter(|(_, path)| path.is_some()).count() as u32 * PER_KIND
}

pub(crate) async fn probe(session: &mut Session<'_>) {
    let plan = session.plan;
    for (place, (kind, path)) in plan.paths.all().into_iter().enumerate() {
        let Some(path) = path else { continue };
        // In turns: one direction for each kind is enough.
        let turn = Mode::BOTH[place % 2];
        let found = [turn, turn.other()].into_iter().find_map(|mode| {
            let code = |mode| {
                let learnt = learn(&session.recording, mode);
                match kind {
                    Kind::Charge => learnt.charge,
                    Kind::Invoice => learnt.invoice,
                    Kind::PaymentLink => learnt.payment_link,
                }
            };
            Some((mode, code(mode)?, code(mode.other())?))
        });
        let Some((mode, own, foreign)) = found else { continue };
        let (before, after) = (session.absent_twin(&foreign, 2), session.absent_twin(&foreign, 3));
        let wanted = [
            (own, Side::Own),
            (before, Side::AbsentBefore),
            (foreign, Side::Foreign),
            (after, Side::AbsentAfter),
        ];
        for (id, side) in wanted {
            let encoded: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
            let path = path.replace("{id}", &encoded);
            session.ask(Caller::Own(mode), Purpose::Object { kind, id, side }, &path).await;
        }
    }
}
