//! Faults of the whole world: stalls and reorganisations of chains, faulty watchers, restarts of the service, and
//! reads during writes; and the end of all faults.

use reference_core::mode::Mode;

use super::{DAY, Fault, HOUR, MINUTE, Plan, SECOND, steps};
use crate::script::{
    step::{Congest, Key, NoticePolicy, Settings, Shorthand, Stall, Step, Walk, WalkBy},
    value::Name,
};

impl Plan {
    /// Adds the faults of chains, watchers and the service.
    pub(super) fn add_faults(&mut self) {
        for mode in self.modes.clone() {
            for asset in self.coins.clone() {
                self.add_chain_faults(mode, asset);
            }
        }
        self.add_resends();
        self.add_interruptions();
        let mut draw = self.stream("service");
        for _ in 0..self.swarm.draw_count(Fault::Restart, &mut draw, 3) {
            self.add(draw.between(MINUTE, DAY), Step::Restart);
        }
        let mut draw = self.stream("settings");
        for _ in 0..self.swarm.draw_count(Fault::Settings, &mut draw, 4) {
            let percent =
                |draw: &mut reference_core::rng::RngStream| Some(steps::percent(draw.below(500) as u32));
            let change = Settings {
                underpayment_tolerance: percent(&mut draw),
                overpayment_threshold: percent(&mut draw),
                ..Settings::default()
            };
            self.add(draw.between(MINUTE, DAY), Step::Account(change));
        }
        self.add_walks();
        self.add_bursts();
    }

    fn add_chain_faults(&mut self, mode: Mode, asset: reference_core::asset::Asset) {
        let mut draw = self.stream(&format!("weather/{mode}/{}", asset.code()));
        let block = asset.facts().block_time.0;
        self.faulty_chains.push((mode, asset));
        for _ in 0..self.swarm.draw_count(Fault::Reorg, &mut draw, 6) {
            let depth = draw.between(1, u64::from(asset.required_confirmations(mode)) + 2) as u32;
            let at = draw.between(HOUR, DAY);
            self.plan_reorg(mode, asset, at, depth, &mut draw);
        }
        for _ in 0..self.swarm.draw_count(Fault::Stall, &mut draw, 3) {
            let r#for = steps::duration(draw.between(block, block + 3 * HOUR));
            let stall = Stall { asset: steps::coin(asset), mode: steps::mode(mode), r#for };
            self.add(draw.between(MINUTE, DAY - HOUR), Step::Stall(stall));
        }
        for _ in 0..self.swarm.draw_count(Fault::Congestion, &mut draw, 3) {
            let (empty, full) = (draw.below(46) as u32, draw.below(45) as u32);
            let at = draw.between(MINUTE, DAY - 6 * HOUR);
            let congest = |empty, full| {
                let (asset, mode) = (steps::coin(asset), steps::mode(mode));
                Step::Congest(Congest { asset, mode, empty, full, refused: None })
            };
            self.add(at, congest(empty, full));
            self.add(at + draw.between(MINUTE, 6 * HOUR), congest(0, 0));
        }
        for _ in 0..self.swarm.draw_count(Fault::Watcher, &mut draw, 5) {
            let notices =
                [NoticePolicy::Late, NoticePolicy::Reversed, NoticePolicy::Lost, NoticePolicy::Twice]
                    [draw.below(4) as usize];
            let at = draw.between(MINUTE, DAY - 4 * HOUR);
            self.add(at, steps::watcher(mode, asset, notices));
            self.add(at + draw.between(MINUTE, 3 * HOUR), steps::watcher(mode, asset, NoticePolicy::Up));
        }
    }

    /// Adds reads of growing lists, with separate keys that have their own rate limits.
    fn add_walks(&mut self) {
        let mut draw = self.stream("walks");
        for n in 0..self.swarm.draw_count(Fault::Walk, &mut draw, 3) {
            let mode = self.draw_mode(&mut draw);
            let at = draw.between(HOUR, DAY);
            let key = self.add_key(at, &format!("walker{n}"), mode);
            let list = ["/v1/charges", "/v1/events", "/v1/invoices"][draw.below(3) as usize];
            let walk = Walk {
                path: steps::without_span(list.to_owned()),
                per_page: draw.between(5, 40) as u32,
                // Charges need a rate, so only invoices can always be created.
                insert: if list == "/v1/invoices" { draw.below(3) as u32 } else { 0 },
                by: if draw.chance(1, 2) { WalkBy::Links } else { WalkBy::Numbers },
                key: Some(steps::name(&key)),
            };
            self.add(at, Step::Walk(walk));
        }
    }

    /// Adds bursts with separate keys: the 120 requests that are allowed in a minute, in two halves, and one
    /// more. A minute after the first half the same number is allowed again, but not a microsecond earlier.
    fn add_bursts(&mut self) {
        /// Half of the allowed requests.
        const HALF: u32 = 60;
        let mut draw = self.stream("bursts");
        for n in 0..self.swarm.draw_count(Fault::Burst, &mut draw, 2) {
            let mode = self.draw_mode(&mut draw);
            let at = draw.between(HOUR, DAY - HOUR);
            let key = self.add_key(at, &format!("burst{n}"), mode);
            let spread = draw.below(50) * SECOND;
            let burst_of = |times, status: u16| {
                let mut burst = steps::request("GET", "/v1/account".to_owned(), &key);
                burst.times = Some(times);
                burst.expect.status = Some(steps::without_span(status));
                Step::Request(burst)
            };
            self.add(at, burst_of(HALF, 200));
            self.add(at + spread, burst_of(HALF, 200));
            self.add(at + spread, burst_of(1, 429));
            self.add(at + MINUTE - 1, burst_of(1, 429));
            // Refused requests do not count. The first half no longer counts; the second does unless it was
            // sent with it.
            self.add(at + MINUTE, burst_of(HALF, 200));
            self.add(at + MINUTE, burst_of(1, if spread == 0 { 200 } else { 429 }));
        }
    }

    /// Adds an API key. Returns its name.
    fn add_key(&mut self, at: u64, name: &str, mode: Mode) -> String {
        let key =
            Key { name: steps::without_span(Name(name.to_owned())), mode: steps::mode(mode), account: None };
        self.add(at, Step::Key(Shorthand(key)));
        name.to_owned()
    }

    /// Ends all faults. Everything must settle after that.
    pub(super) fn heal(&mut self) {
        let at = self.healed_at;
        self.heal_merchants();
        for (mode, asset) in self.faulty_chains.clone() {
            if self.has_mode(mode) {
                self.add(at, steps::watcher(mode, asset, NoticePolicy::Up));
                let (asset, mode) = (steps::coin(asset), steps::mode(mode));
                self.add(at, Step::Congest(Congest { asset, mode, empty: 0, full: 0, refused: None }));
            }
        }
        for (sent_at, tx) in self.stuck.clone() {
            // A customer may pay after that time.
            let at = at.max(sent_at);
            self.add(at, Step::Drop(steps::transaction_step(&tx)));
        }
    }
}
