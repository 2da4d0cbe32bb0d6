//! Worlds that are extreme in one dimension: many events of one object, an endpoint that fails until it is disabled,
//! months of time. The numbers of their charges start with 9, so that their names are unique.

use reference_core::{asset::Asset, event::EventType, mode::Mode, outbox::DeliveryState, rng::RngStream};
use serde_json::json;

use super::{DAY, HOUR, MINUTE, Plan, SECOND, steps};
use crate::script::{
    step::{Endpoint, Shorthand, Step},
    value::{DeliveryStatus, EventTypeName},
};

/// One world in this number is extreme.
const EXTREME_EVERY: u64 = 16;
/// The name of the endpoint that fails for weeks.
const FAILING_ENDPOINT: &str = "ruin";
/// The number of consecutive failed deliveries after which an endpoint is disabled.
const FAILURES_TO_DISABLE: u64 = 15;

impl Plan {
    /// Adds one extreme plan in some worlds.
    pub(super) fn add_extremes(&mut self, seed: u64) {
        if seed % EXTREME_EVERY != EXTREME_EVERY - 1 {
            return;
        }
        match seed / EXTREME_EVERY % 4 {
            0 => self.add_many_events(),
            2 => self.add_months(),
            _ => self.add_long_failure(),
        }
    }

    /// Plans a charge with dozens of events, and reads of them by type and page by page.
    fn add_many_events(&mut self) {
        let mut draw = self.stream("many-events");
        let (mode, asset) = (self.draw_mode(&mut draw), self.draw_coin(&mut draw));
        let at = draw.between(HOUR, 4 * HOUR);
        self.open_simple_charge("c900", (mode, asset), at);
        for n in 1..=40 {
            let mut pay = steps::pay("c900", &format!("t900-{n}"));
            pay.amount = Some(steps::amount("0.0001".to_owned()));
            self.add(at + n * SECOND, steps::pay_step(pay));
        }
        let refunds_start = at + 6 * HOUR;
        for n in 1..=draw.between(2, 8) {
            self.add(refunds_start + n * SECOND, steps::refund("c900", "0.0001".to_owned()));
        }
        for (kind, page) in [("payment_detected", 2), ("late_payment", 1), ("refunded", 1), ("created", 1)] {
            let path = format!("/v1/events?charge=${{c900}}&type=charge.{kind}&per_page=7&page={page}");
            self.plan_read(refunds_start + MINUTE, mode, &path);
        }
    }

    /// Plans an endpoint that fails for weeks. Between its failures there are resends, and everything that may reset
    /// the count of consecutive failures. Then the count reaches, or just misses, the number at which it is disabled.
    fn add_long_failure(&mut self) {
        let mut draw = self.stream("long-failure");
        let chain = (self.draw_mode(&mut draw), self.draw_coin(&mut draw));
        // At that time no other charge is opened.
        let mut at = 2 * DAY;
        self.add(
            at,
            Step::Endpoint(Shorthand(Endpoint {
                name: steps::name(FAILING_ENDPOINT),
                mode: steps::mode(chain.0),
                events: Some(vec![EventTypeName(EventType::ChargeCreated)]),
                url: None,
                account: None,
                refused: None,
            })),
        );
        self.add(at, steps::merchant(FAILING_ENDPOINT, &[], "down"));
        let mut consecutive = 0;
        for _ in 0..draw.between(1, 3) {
            let failures = if draw.chance(1, 4) { FAILURES_TO_DISABLE + 2 } else { draw.between(2, 8) };
            at = self.exhaust_deliveries(chain, at, failures, &mut draw);
            consecutive += failures;
            for _ in 0..draw.between(1, 3) {
                at += HOUR;
                consecutive = self.plan_interruption(chain, at, consecutive, &mut draw);
            }
        }
        let target = FAILURES_TO_DISABLE - draw.below(2);
        at = self.exhaust_deliveries(chain, at, target.saturating_sub(consecutive).max(1), &mut draw);
        self.open_simple_charge("c998", chain, at);
        self.healed_at = self.healed_at.max(at + DAY);
        self.add(self.healed_at, steps::merchant(FAILING_ENDPOINT, &[], "up"));
        self.open_simple_charge("c999", chain, self.healed_at + HOUR);
    }

    /// Plans deliveries to the failing endpoint, and returns a time at which they have used up their attempts.
    fn exhaust_deliveries(&mut self, chain: (Mode, Asset), at: u64, count: u64, draw: &mut RngStream) -> u64 {
        for n in 1..=count {
            self.deliver_to_failing_endpoint(chain, at + n * MINUTE, draw);
        }
        at + 4 * DAY
    }

    /// Plans an event for the failing endpoint: a new charge, or a test.
    fn deliver_to_failing_endpoint(&mut self, chain: (Mode, Asset), at: u64, draw: &mut RngStream) {
        if draw.chance(1, 4) {
            self.add(at, Step::Test(steps::name(FAILING_ENDPOINT)));
        } else {
            self.open_simple_charge(&format!("c9{}", at / SECOND), chain, at);
        }
    }

    /// Plans something that may reset the count of consecutive failures. Returns the count after it.
    fn plan_interruption(
        &mut self,
        chain: (Mode, Asset),
        at: u64,
        consecutive: u64,
        draw: &mut RngStream,
    ) -> u64 {
        let works_once = steps::merchant(FAILING_ENDPOINT, &["200"], "down");
        let status = draw.chance(2, 3).then_some(DeliveryStatus(DeliveryState::Failed.as_str()));
        match draw.below(7) {
            0 | 1 => {
                for n in 0..draw.between(1, 4) {
                    self.add(at + n * MINUTE, steps::resend(FAILING_ENDPOINT, status));
                }
                consecutive
            }
            2 | 3 if consecutive < FAILURES_TO_DISABLE => {
                self.add(at, works_once);
                self.add(at, steps::resend(FAILING_ENDPOINT, status));
                0
            }
            4 if consecutive < FAILURES_TO_DISABLE => {
                self.add(at, works_once);
                self.deliver_to_failing_endpoint(chain, at, draw);
                0
            }
            5 => {
                self.add(at, Step::Restart);
                consecutive
            }
            _ => {
                if draw.chance(1, 2) {
                    self.add(at, Step::Disable(steps::name(FAILING_ENDPOINT)));
                }
                self.add(at + MINUTE, Step::Enable(steps::name(FAILING_ENDPOINT)));
                0
            }
        }
    }

    /// Plans two months, after which old deliveries are resent.
    fn add_months(&mut self) {
        let mut draw = self.stream("months");
        let (mode, asset) = (self.draw_mode(&mut draw), self.draw_coin(&mut draw));
        for (n, at) in [(1, 29 * DAY), (2, 31 * DAY), (3, 62 * DAY)] {
            self.open_simple_charge(&format!("c90{n}"), (mode, asset), at);
            self.add(at + HOUR, steps::pay_step(steps::pay(&format!("c90{n}"), &format!("t90{n}"))));
            self.add(at + 2 * HOUR, steps::resend(&format!("d{}", draw.between(1, 6)), None));
            self.plan_read(at + 3 * HOUR, mode, "/v1/charges?per_page=2&page=2");
        }
    }

    /// Plans a charge of 25 EUR.
    fn open_simple_charge(&mut self, name: &str, (mode, asset): (Mode, Asset), at: u64) {
        let body = json!({ "asset": asset.code(), "amount": "25.00", "currency": "EUR" });
        self.open_by_request(name, mode, at, body);
    }
}
