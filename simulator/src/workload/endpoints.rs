//! Webhook endpoints, their merchants, and faults of the network between them and the service.

use reference_core::{event::EventType, mode::Mode, outbox::DeliveryState, rng::RngStream};
use serde_json::json;

use super::{DAY, Fault, HOUR, MINUTE, Plan, SECOND, edge_cases::SECOND_ACCOUNT, steps};
use crate::script::{
    step::{Endpoint, Shorthand, Step},
    value::{DeliveryStatus, EventTypeName},
};

/// The statuses of failed responses.
const STATUSES: [&str; 8] = ["500", "503", "404", "400", "302", "100", "429", "410"];

impl Plan {
    /// Adds one or two endpoints in each mode, with faults of their merchants.
    pub(super) fn add_endpoints(&mut self) {
        if self.second_account.is_some() {
            self.add_second_account_endpoints();
        }
        for mode in self.modes.clone() {
            let mut draw = self.stream(&format!("hooks/{mode}"));
            for n in 1..=draw.between(1, 2) {
                let host = format!("shop-{mode}{n}");
                // Some endpoints are added later, when events exist already.
                let at = if n > 1 && draw.chance(1, 2) { draw.below(12 * HOUR) } else { 0 };
                let events = draw.chance(1, 3).then(|| {
                    let types: Vec<EventTypeName> =
                        EventType::ALL.into_iter().filter(|_| draw.chance(1, 2)).map(EventTypeName).collect();
                    if types.is_empty() { vec![EventTypeName(EventType::ChargePaid)] } else { types }
                });
                let endpoint = Endpoint {
                    name: steps::name(&host),
                    mode: steps::mode(mode),
                    events,
                    url: None,
                    account: None,
                    refused: None,
                };
                self.add(at, Step::Endpoint(Shorthand(endpoint)));
                self.merchants.push((host.clone(), at));
                self.add_merchant_failures(&host, mode, at);
            }
        }
    }

    /// Adds an endpoint of the second account in some modes, with the same faults.
    fn add_second_account_endpoints(&mut self) {
        for mode in self.modes.clone() {
            if self.stream(&format!("hooks/{SECOND_ACCOUNT}/{mode}")).chance(1, 3) {
                continue;
            }
            let host = format!("oven-{mode}");
            let endpoint = Endpoint {
                name: steps::name(&host),
                mode: steps::mode(mode),
                events: None,
                url: None,
                account: Some(steps::name(SECOND_ACCOUNT)),
                refused: None,
            };
            self.add(0, Step::Endpoint(Shorthand(endpoint)));
            self.merchants.push((host.clone(), 0));
            self.add_merchant_failures(&host, mode, 0);
        }
    }

    /// Adds faults of a merchant and its endpoint, after the time `from`.
    fn add_merchant_failures(&mut self, host: &str, mode: Mode, from: u64) {
        let mut draw = self.stream(&format!("merchant/{host}"));
        let draw_time = |draw: &mut RngStream| from + draw.between(MINUTE, DAY - 14 * HOUR);
        for _ in 0..self.swarm.draw_count(Fault::Outage, &mut draw, 4) {
            let at = draw_time(&mut draw);
            let state = ["down", "slow", "redirect", "private", "500"][draw.below(5) as usize];
            self.add(at, steps::merchant(host, &[], state));
            self.add(at + draw.between(MINUTE, 9 * HOUR), steps::merchant(host, &[], "up"));
        }
        for _ in 0..self.swarm.draw_count(Fault::BadAnswer, &mut draw, 6) {
            let first: Vec<&str> = (0..draw.between(1, 5))
                .map(|_| STATUSES[draw.below(STATUSES.len() as u64) as usize])
                .collect();
            self.add(draw_time(&mut draw), steps::merchant(host, &first, "up"));
        }
        for (fault, behavior) in
            [(Fault::AnswerLost, "lost"), (Fault::DoublePost, "twice"), (Fault::Lag, "lagging")]
        {
            for _ in 0..self.swarm.draw_count(fault, &mut draw, 5) {
                let first = vec![behavior; draw.between(1, 6) as usize];
                self.add(draw_time(&mut draw), steps::merchant(host, &first, "up"));
            }
        }
        for _ in 0..self.swarm.draw_count(Fault::Rotation, &mut draw, 3) {
            self.add(draw_time(&mut draw), Step::Rotate(steps::name(host)));
        }
        for _ in 0..self.swarm.draw_count(Fault::EndpointChange, &mut draw, 3) {
            let at = draw_time(&mut draw);
            match draw.below(8) {
                0 => self.add(at + 8 * HOUR, Step::Remove(steps::name(host))),
                1 => self.add(at, Step::Test(steps::name(host))),
                2 | 3 => self.change_endpoint(at, host, mode, &mut draw),
                _ => {
                    self.add(at, Step::Disable(steps::name(host)));
                    self.add(at + draw.between(1, 4 * HOUR), Step::Enable(steps::name(host)));
                }
            }
        }
        if self.healed_at > DAY && draw.chance(2, 3) {
            // Long enough for deliveries to use up their attempts, and for the endpoint to be disabled.
            self.add(draw.between(MINUTE, 6 * HOUR), steps::merchant(host, &[], "down"));
        }
    }

    /// Plans another URL or other event types of an endpoint.
    fn change_endpoint(&mut self, at: u64, host: &str, mode: Mode, draw: &mut RngStream) {
        let types = EventType::ALL.into_iter().filter(|_| draw.chance(2, 3)).map(EventType::as_str);
        let types: Vec<&str> = types.collect();
        let urls = [format!("https://{host}.sim/moved?v=2"), format!("https://other-{host}.sim/webhooks")];
        let url = &urls[draw.below(2) as usize];
        let change = match draw.below(3) {
            0 => json!({ "events": types }),
            1 => json!({ "url": url }),
            _ => json!({ "events": types, "url": url, "status": "enabled" }),
        };
        let path = format!("/sandbox/endpoints/${{{host}}}");
        let mut request = steps::request("PATCH", path, mode.as_str());
        request.body = Some(change);
        self.add(at, Step::Request(request));
    }

    /// Plans changes while an attempt is in flight: the first attempt of a delivery, a resend or a test. The receiver
    /// is slow and then fails, so the next attempts show whether the interrupted one was counted.
    pub(super) fn add_interruptions(&mut self) {
        let mut draw = self.stream("interruptions");
        if draw.chance(2, 3) {
            return;
        }
        // The first endpoint of a mode exists from the start.
        let mode = self.draw_mode(&mut draw);
        let host = format!("shop-{mode}1");
        for n in 0..draw.between(1, 3) {
            let at = draw.between(MINUTE, DAY);
            let failures = draw.between(1, 4) as usize;
            let body = json!({ "asset": self.coins[0].code(), "amount": "7.00", "currency": "EUR" });
            // 0 and 1: the first attempt of a new delivery; 2: a resend; 3: a test.
            let kind = draw.below(4);
            // A resend needs an earlier delivery, which was acknowledged or waits for its next attempt.
            let opened_at = if kind < 2 { at } else { at.saturating_sub(draw.between(MINUTE, HOUR)) };
            let slow = steps::merchant(&host, &["slow", "500", "slow", "500", "500"][..=failures], "up");
            self.add(at, slow);
            self.open_by_request(&format!("c8{n}"), mode, opened_at, body);
            match kind {
                2 => self.add(at, steps::resend(&host, None)),
                3 => self.add(at, Step::Test(steps::name(&host))),
                _ => {}
            }
            // The second attempt follows after seconds, the later ones after minutes.
            let changed_at = at + [1, SECOND, 5 * SECOND, MINUTE][draw.below(4) as usize];
            let name = steps::name(&host);
            match draw.below(6) {
                0 => self.add(changed_at, Step::Rotate(name)),
                1 => self.add(changed_at, Step::Remove(name)),
                2 => {
                    self.add(changed_at, Step::Disable(name.clone()));
                    self.add(changed_at + draw.between(1, HOUR), Step::Enable(name));
                }
                _ => self.add(changed_at, Step::Restart),
            }
        }
    }

    /// Adds resends: of any delivery, or of the newest one in a status, which may have failed after days.
    pub(super) fn add_resends(&mut self) {
        let mut draw = self.stream("resends");
        for _ in 0..self.swarm.draw_count(Fault::Resend, &mut draw, 8) {
            let at = draw.between(HOUR, self.healed_at - HOUR);
            if draw.chance(1, 3) {
                self.add(at, steps::resend(&format!("d{}", draw.between(1, 60)), None));
                continue;
            }
            let (host, added_at) = self.merchants[draw.below(self.merchants.len() as u64) as usize].clone();
            // A step cannot name an endpoint before it exists.
            let at = at.max(added_at);
            let status =
                draw.chance(3, 4).then(|| DeliveryStatus(DeliveryState::NAMES[draw.below(5) as usize]));
            for _ in 0..draw.between(1, 2) {
                self.add(at, steps::resend(&host, status));
            }
        }
    }

    /// Ends the faults of all merchants.
    pub(super) fn heal_merchants(&mut self) {
        for (host, _) in self.merchants.clone() {
            self.add(self.healed_at, steps::merchant(&host, &[], "up"));
        }
    }

    pub(super) fn has_mode(&self, mode: Mode) -> bool {
        self.modes.contains(&mode)
    }
}
