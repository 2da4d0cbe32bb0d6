//! Worlds that are extreme in one dimension: many events of one object, an endpoint that fails until it is disabled,
//! months of time.

use reference_core::mode::Mode;
use serde_json::json;

use super::{DAY, HOUR, MINUTE, Plan, SECOND, steps};
use crate::script::{
    step::{Endpoint, Shorthand, Step},
    value::{EventTypeName, Name},
};

/// One world in this number has an extreme.
const EXTREME_EVERY: u64 = 16;

impl Plan {
    pub(super) fn add_extremes(&mut self, seed: u64) {
        if seed % EXTREME_EVERY != EXTREME_EVERY - 1 {
            return;
        }
        match seed / EXTREME_EVERY % 3 {
            0 => self.add_many_events(),
            1 => self.add_long_failure(),
            _ => self.add_months(),
        }
    }

    /// Plans a charge with more events than an unindexed timeline holds, read by type and page by page.
    fn add_many_events(&mut self) {
        let mut draw = self.stream("many-events");
        let (mode, asset) = (self.pick_mode(&mut draw), self.pick_coin(&mut draw));
        let at = draw.between(HOUR, 4 * HOUR);
        self.open_plainly("c900", (mode, asset), at);
        for n in 1..=40 {
            let mut pay = steps::pay("c900", &format!("t900-{n}"));
            pay.amount = Some(steps::amount("0.0001".to_owned()));
            self.add(at + n * SECOND, steps::paid(pay));
        }
        let moment = at + 6 * HOUR;
        for n in 1..=draw.between(2, 8) {
            self.add(moment + n * SECOND, steps::refund("c900", "0.0001".to_owned()));
        }
        for (kind, page) in [("payment_detected", 2), ("late_payment", 1), ("refunded", 1), ("created", 1)] {
            let path = format!("/v1/events?charge=${{c900}}&type=charge.{kind}&per_page=7&page={page}");
            self.read(moment + MINUTE, mode, &path);
        }
    }

    /// Plans an endpoint that is disabled by its failures, enabled while it still fails, and repaired later.
    fn add_long_failure(&mut self) {
        let mut draw = self.stream("long-failure");
        let (mode, asset) = (self.pick_mode(&mut draw), self.pick_coin(&mut draw));
        let kind = reference_core::event::EventType::ChargeCreated;
        self.add(
            0,
            Step::Endpoint(Shorthand(Endpoint {
                name: steps::name("ruin"),
                mode: steps::mode(mode),
                events: Some(vec![EventTypeName(kind)]),
                url: None,
                account: None,
                refused: None,
            })),
        );
        self.add(SECOND, steps::merchant("ruin", &[], "down"));
        for n in 0..17 {
            self.open_plainly(&format!("c9{n:02}"), (mode, asset), HOUR + n * MINUTE);
        }
        // After three and a half days every delivery is exhausted.
        self.add(4 * DAY, Step::Enable(steps::at(Name("ruin".to_owned()))));
        for n in 17..20 {
            self.open_plainly(&format!("c9{n:02}"), (mode, asset), 4 * DAY + n * MINUTE);
        }
        self.healed_at = self.healed_at.max(9 * DAY);
        self.add(self.healed_at, steps::merchant("ruin", &[], "up"));
        self.open_plainly("c920", (mode, asset), self.healed_at + HOUR);
    }

    /// Plans months of time, after which old deliveries are sent again.
    fn add_months(&mut self) {
        let mut draw = self.stream("months");
        let (mode, asset) = (self.pick_mode(&mut draw), self.pick_coin(&mut draw));
        for (n, at) in [(1, 29 * DAY), (2, 31 * DAY), (3, 62 * DAY)] {
            self.open_plainly(&format!("c90{n}"), (mode, asset), at);
            self.add(at + HOUR, steps::paid(steps::pay(&format!("c90{n}"), &format!("t90{n}"))));
            self.add(at + 2 * HOUR, Step::Resend(steps::name(&format!("d{}", draw.between(1, 6)))));
            self.read(at + 3 * HOUR, mode, "/v1/charges?per_page=2&page=2");
        }
    }

    fn open_plainly(&mut self, name: &str, (mode, asset): (Mode, reference_core::asset::Asset), at: u64) {
        let body = json!({ "asset": asset.code(), "amount": "25.00", "currency": "EUR" });
        self.open_by_request(name, mode, at, body);
    }
}
