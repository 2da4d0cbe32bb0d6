//! Reads: pages of lists, single objects, invalid targets, and requests with revoked keys.

use reference_core::{event::EventType, mode::Mode, rng::RngStream};
use serde_json::{Value, json};

use super::{
    super::{DAY, HOUR, MINUTE, Plan, SECOND, steps},
    request_in,
};
use crate::{
    model::operation::Operation,
    script::step::{Key, Shorthand, Step},
};

impl Plan {
    /// Plans reads: pages of filtered lists in two sizes, beyond the end, by anchors, with pauses; single objects; invalid
    /// paths and parameters. They use separate keys, so that they do not count towards the limits of other requests.
    pub(super) fn add_reads(&mut self) {
        let mut draw = self.stream("reads");
        for mode in self.modes.clone() {
            let key = format!("reader-{mode}");
            self.add(
                0,
                Step::Key(Shorthand(Key { name: steps::name(&key), mode: steps::mode(mode), account: None })),
            );
            for n in 0..draw.between(1, 2) {
                self.add_reading(&key, mode, &format!("{mode}/{n}"));
            }
            // Later requests use the id of this event.
            let mut first_event = request_in("GET", "/v1/events?per_page=1&page=1", mode);
            first_event.key = Some(steps::name(&key));
            first_event.save.insert(format!("ev-{mode}"), "/data/0/id".to_owned());
            self.add(draw.between(HOUR, 8 * HOUR), Step::Request(first_event));
            for _ in 0..draw.between(2, 6) {
                let target = self.draw_rare_target(mode, &mut draw);
                let mut read =
                    request_in(["GET", "GET", "HEAD", "PUT"][draw.below(4) as usize], &target, mode);
                read.key = Some(steps::name(&key));
                self.add(draw.between(HOUR, DAY), Step::Request(read));
            }
        }
    }

    /// Plans reads of the pages of one list: in two sizes, with pauses, and with new records between the pages.
    fn add_reading(&mut self, key: &str, mode: Mode, name: &str) {
        let mut draw = self.stream(&format!("reading/{name}"));
        let (path, insertion) = self.draw_list(&mut draw);
        let sizes = [draw.between(1, 3), draw.between(1, 4)];
        let grows = draw.chance(1, 2);
        let mut at = draw.between(HOUR, DAY);
        for n in 0..draw.between(4, 8) {
            let method = if n > 1 && draw.chance(1, 6) { "HEAD" } else { "GET" };
            // The first page is read in both sizes, then the following pages of both.
            let (size, page) = match (n, method) {
                (0 | 1, _) => (sizes[n as usize], 1),
                (_, "HEAD") => (sizes[draw.below(2) as usize], draw.between(1, 2)),
                _ => (sizes[usize::from(draw.chance(1, 4))], [1, 2, 2, 2, 2, 3, 30][draw.below(7) as usize]),
            };
            // A page with an `anchor` must not change the position from which the following pages continue.
            let anchor = if n > 1 && draw.chance(1, 4) {
                anchor_parameter(&path, mode, &mut draw)
            } else {
                String::new()
            };
            let mut read = request_in(method, &format!("{path}per_page={size}&page={page}{anchor}"), mode);
            read.key = Some(steps::name(key));
            self.add(at, Step::Request(read));
            if grows && draw.chance(1, 2) {
                let (path, body) = &insertion;
                let mut insert = request_in("POST", path, mode);
                insert.body = Some(body.clone());
                self.add(at + 1, Step::Request(insert));
            }
            // The service remembers for ten minutes from where the pages continue.
            at += [SECOND, 6 * MINUTE, 9 * MINUTE, 10 * MINUTE - 1, 10 * MINUTE][draw.below(5) as usize];
        }
    }

    /// Draws the target of a list with filters, without the parameters of the page. Also returns the path and body of a
    /// request that adds a record.
    fn draw_list(&self, draw: &mut RngStream) -> (String, (&'static str, Value)) {
        let lists: Vec<Operation> =
            Operation::ALL.into_iter().filter(|operation| operation.parameters.contains(&"page")).collect();
        let list = lists[draw.below(lists.len() as u64) as usize];
        let mut filters = String::new();
        for name in list.parameters {
            if draw.chance(2, 5)
                && let Some(value) = draw_filter_value(list.path, name, draw)
            {
                filters.push_str(&format!("{name}={value}&"));
            }
        }
        let insertion = match list.path {
            "/v1/payment-links" => ("/v1/payment-links", json!({ "title": "Tea", "amount": "3.00" })),
            "/v1/charges" => {
                ("/v1/charges", json!({ "asset": self.coins[0].code(), "amount": "3.00", "currency": "EUR" }))
            }
            // An invoice adds a record to `/v1/events`, too.
            _ => ("/v1/invoices", json!({ "amount": "3.00" })),
        };
        (format!("{}?{filters}", list.path), insertion)
    }

    /// Draws a rare or an invalid target.
    fn draw_rare_target(&self, mode: Mode, draw: &mut RngStream) -> String {
        let (list, _) = self.draw_list(draw);
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
            let (mode, at) = (self.draw_mode(&mut draw), draw.between(HOUR, DAY));
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
            for (minute, (method, path, body)) in (0..).zip(targets.into_iter().cycle().take(5)) {
                let mut request = request_in(method, &path, mode);
                (request.key, request.body) = (Some(steps::name(&key)), body);
                self.add(at + minute * MINUTE, Step::Request(request));
            }
            // Between the third and the fourth request.
            self.add(at + 150 * SECOND, Step::Revoke(steps::name(&key)));
        }
    }
}

/// Draws the parameter `anchor`: an early record of the list.
fn anchor_parameter(list: &str, mode: Mode, draw: &mut RngStream) -> String {
    let n = draw.between(1, 2);
    let record = match list.split('?').next() {
        Some("/v1/charges") => format!("c{n}"),
        Some("/v1/invoices") => ["i", "j"][draw.below(2) as usize].to_owned() + &n.to_string(),
        Some("/v1/payment-links") => ["l", "m"][draw.below(2) as usize].to_owned() + &n.to_string(),
        _ => format!("ev-{mode}"),
    };
    format!("&anchor=${{{record}}}")
}

/// Draws the value of a filter; returns `None` for the parameters of the page.
fn draw_filter_value(list: &str, name: &str, draw: &mut RngStream) -> Option<String> {
    let mut pick = |values: &[&str]| values[draw.below(values.len() as u64) as usize].to_owned();
    Some(match (name, list) {
        ("status", "/v1/charges") => pick(&["pending", "underpaid", "paid", "expired", "canceled"]),
        ("status", _) => pick(&["open", "paid", "void"]),
        ("type", _) => pick(&EventType::ALL.map(EventType::as_str)),
        ("payment_link", _) => pick(&["${l1}", "${l2}", "${m1}", "${m2}"]),
        ("charge", _) => pick(&["${c1}", "${c2}", "${c3}", "${q1}"]),
        ("invoice", _) => pick(&["${i1}", "${i2}", "${j1}"]),
        _ => return None,
    })
}
