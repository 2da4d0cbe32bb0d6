//! Reads: pages of lists, single objects, invalid targets, and requests with revoked keys.

use reference_core::{event::EventType, mode::Mode, rng::RngStream};
use serde_json::json;

use super::{
    super::{DAY, HOUR, MINUTE, Plan, SECOND, steps},
    request,
};
use crate::script::step::{Key, Shorthand, Step};

impl Plan {
    /// Plans reads: pages of filtered lists in two sizes, beyond the end, by anchors, with pauses; single objects; invalid
    /// paths and parameters. They use separate keys, so that they do not count against the limits of other requests.
    pub(super) fn add_reads(&mut self) {
        let mut draw = self.stream("reads");
        for mode in self.modes.clone() {
            let key = format!("reader-{mode}");
            self.add(
                0,
                Step::Key(Shorthand(Key { name: steps::name(&key), mode: steps::mode(mode), account: None })),
            );
            for _ in 0..draw.between(1, 2) {
                let path = self.list_target(&mut draw);
                let sizes = [draw.between(1, 4), draw.between(1, 4)];
                let mut at = draw.between(HOUR, DAY);
                for _ in 0..draw.between(2, 6) {
                    let size = sizes[draw.below(2) as usize];
                    let page = [1, 2, 2, 3, 30][draw.below(5) as usize];
                    let mut read = request("GET", &format!("{path}per_page={size}&page={page}"), mode);
                    read.key = Some(steps::name(&key));
                    self.add(at, Step::Request(read));
                    at += [0, SECOND, 9 * MINUTE, 10 * MINUTE - 1, 10 * MINUTE, HOUR][draw.below(6) as usize];
                }
            }
            // Later requests use the id of this event.
            let mut first = request("GET", "/v1/events?per_page=1&page=1", mode);
            first.key = Some(steps::name(&key));
            first.save.insert(format!("ev-{mode}"), "/data/0/id".to_owned());
            self.add(draw.between(HOUR, 8 * HOUR), Step::Request(first));
            for _ in 0..draw.between(2, 6) {
                let target = self.odd_target(mode, &mut draw);
                let mut read = request(["GET", "GET", "HEAD", "PUT"][draw.below(4) as usize], &target, mode);
                read.key = Some(steps::name(&key));
                self.add(draw.between(HOUR, DAY), Step::Request(read));
            }
        }
    }

    /// Returns the target of a list with filters, without the parameters of the page.
    fn list_target(&self, draw: &mut RngStream) -> String {
        let name = |kind: &str, draw: &mut RngStream| format!("${{{kind}{}}}", draw.between(1, 3));
        let mut filters = Vec::new();
        let list = match draw.below(4) {
            0 => {
                let statuses = ["pending", "underpaid", "paid", "expired", "canceled"];
                if draw.chance(1, 2) {
                    filters.push(format!("status={}", statuses[draw.below(5) as usize]));
                }
                if draw.chance(1, 3) {
                    filters.push(format!("payment_link={}", name("l", draw)));
                }
                "charges"
            }
            1 => {
                if draw.chance(1, 2) {
                    filters.push(format!("status={}", ["open", "paid", "void"][draw.below(3) as usize]));
                }
                "invoices"
            }
            2 => "payment-links",
            _ => {
                if draw.chance(1, 2) {
                    let kinds = EventType::ALL;
                    filters.push(format!("type={}", kinds[draw.below(kinds.len() as u64) as usize].as_str()));
                }
                match draw.below(4) {
                    0 => filters.push(format!("charge={}", name("c", draw))),
                    1 => filters.push(format!("invoice={}", name("i", draw))),
                    _ => {}
                }
                "events"
            }
        };
        let filters: String = filters.iter().map(|filter| format!("{filter}&")).collect();
        format!("/v1/{list}?{filters}")
    }

    /// Returns a rare or an invalid target.
    fn odd_target(&self, mode: Mode, draw: &mut RngStream) -> String {
        let list = self.list_target(draw);
        let n = draw.between(1, 2);
        match draw.below(20) {
            0 => format!("{list}page=0"),
            1 => format!("{list}page=x"),
            2 => format!("{list}per_page=101"),
            3 => format!("{list}per_page=0"),
            4 => format!("{list}page=1&page=2"),
            5 => format!("{list}status=gone&type=gone"),
            6 => format!("{list}anchor=aaaaaaaaaaaa"),
            7 => format!("{list}anchor=${{c{n}}}"),
            11 => format!("/v1/charges?per_page=2&anchor=${{c{n}}}"),
            12 => format!("/v1/invoices?per_page=1&anchor=${{i{n}}}"),
            13 => format!("/v1/payment-links?per_page=1&anchor=${{l{n}}}"),
            14 => format!("/v1/events?per_page=3&anchor=${{ev-{mode}}}"),
            15 => format!("/v1/events/${{ev-{mode}}}"),
            16 => format!("/v1/payment-links/${{m{n}}}"),
            17 => format!("/v1/invoices/${{i{n}}}"),
            18 => format!("/v1/payment-links?per_page=1&anchor=${{m{n}}}"),
            8 => "/v1/charges/aaaaaaaaaaaa".to_owned(),
            9 => "/v1/nothing".to_owned(),
            10 => format!("/v1/invoices/${{c{}}}", draw.between(1, 3)),
            _ => "/v1/account".to_owned(),
        }
    }

    /// Plans requests with keys that are revoked between them.
    pub(super) fn add_revoked_keys(&mut self) {
        let mut draw = self.stream("revoked");
        for n in 0..draw.below(3) {
            let (mode, at) = (self.pick_mode(&mut draw), draw.between(HOUR, DAY));
            let key = format!("spare{n}");
            self.add(
                at,
                Step::Key(Shorthand(Key { name: steps::name(&key), mode: steps::mode(mode), account: None })),
            );
            let targets = [
                ("GET", "/v1/account".to_owned(), None),
                ("POST", format!("/v1/charges/${{c{}}}/cancel", draw.between(1, 3)), Some(json!({ "x": 1 }))),
                (
                    "PATCH",
                    format!("/v1/payment-links/${{m{}}}", draw.between(1, 2)),
                    Some(json!({ "title": 1 })),
                ),
            ];
            for (moment, (method, path, body)) in (0..).zip(targets.into_iter().cycle().take(5)) {
                let mut asked = request(method, &path, mode);
                (asked.key, asked.body) = (Some(steps::name(&key)), body);
                self.add(at + moment * MINUTE, Step::Request(asked));
            }
            self.add(at + 150 * SECOND, Step::Revoke(steps::name(&key)));
        }
    }
}
