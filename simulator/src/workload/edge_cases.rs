//! Edge cases: a second account, repeated requests, and values at the allowed limits. Each draws from a separate
//! stream, so that it does not affect the others.

use std::collections::BTreeMap;

use reference_core::rng::RngStream;
use serde_json::{Value, json};

use super::{DAY, HOUR, MINUTE, Plan, SECOND, steps};
use crate::{
    model::operation::{
        IDEMPOTENCY_KEY_MAX, METADATA_KEY_MAX, METADATA_KEYS_MAX, METADATA_VALUE_MAX, PROSE_MAX, TEXT_MAX,
    },
    script::{
        At,
        step::{Key, OpenAccount, Repeat, Shorthand, Step},
        value::Name,
    },
};

/// The id of the second account.
pub(super) const SECOND_ACCOUNT: &str = "bakery";
/// The highest price for which the amount due can be computed in every coin.
const CENTS_MAX: u64 = 999_999_999_999;

/// Strings that programs often mishandle: other scripts, combining characters, quotes, and code.
const TEXTS: [&str; 8] = [
    "Zażółć gęślą jaźń",
    "支払い 🧾 お茶",
    "شكرا \u{202e}abc",
    "👩\u{200d}👩\u{200d}👧 e\u{301}",
    "a\"b\\c/d\te\nf",
    "<script>alert(1)</script> & ${c1} {{c1}}",
    "null",
    "\u{feff}\u{1}",
];

impl Plan {
    /// Adds a second account in some worlds, with the same modes, coins and chains.
    pub(super) fn add_second_account(&mut self) {
        let mut draw = self.stream("neighbour");
        if draw.chance(1, 2) {
            return;
        }
        let percents = [0, 100, 300, 1_000];
        let mut percent = || percents[draw.below(percents.len() as u64) as usize];
        let (tolerance, threshold) = (percent(), percent());
        self.second_account = Some((tolerance, threshold));
        let open = OpenAccount {
            account: steps::name(SECOND_ACCOUNT),
            underpayment_tolerance: Some(steps::percent(tolerance)),
            overpayment_threshold: Some(steps::percent(threshold)),
        };
        self.add(0, Step::OpenAccount(Shorthand(open)));
    }

    /// Draws the account of an object. Returns it (`None` for the first account), and its tolerance and threshold.
    pub(super) fn draw_account(&self, object: &str) -> (Option<At<Name>>, (u32, u32)) {
        match self.second_account {
            Some(bounds) if self.stream(&format!("account/{object}")).chance(1, 4) => {
                (Some(steps::name(SECOND_ACCOUNT)), bounds)
            }
            _ => (None, self.bounds),
        }
    }

    /// Adds requests of the second account to objects of the first one, which must get 404.
    pub(super) fn add_foreign_requests(&mut self, charges: u64) {
        if self.second_account.is_none() {
            return;
        }
        let mut draw = self.stream("intrusions");
        for n in 0..draw.below(3) {
            let mode = self.draw_mode(&mut draw);
            let at = draw.between(HOUR, DAY);
            let key = format!("intruder{n}");
            let new_key = Key {
                name: steps::name(&key),
                mode: steps::mode(mode),
                account: Some(steps::name(SECOND_ACCOUNT)),
            };
            self.add(at, Step::Key(Shorthand(new_key)));
            for _ in 0..draw.between(1, 3) {
                let charge = draw.between(1, charges);
                let (method, action) = match draw.below(3) {
                    0 => ("GET", ""),
                    1 => ("POST", "/cancel"),
                    _ => ("POST", "/refunds"),
                };
                let body = (method == "POST").then(|| json!({ "amount": "0.000001" }));
                let path = format!("/v1/charges/${{c{charge}}}{action}");
                let mut intrusion = steps::request(method, path, &key);
                intrusion.body = body.filter(|_| action == "/refunds");
                intrusion.expect.status = Some(steps::without_span(404));
                self.add(at + draw.below(3 * HOUR), Step::Request(intrusion));
            }
        }
    }

    /// Draws an idempotency key for one charge in ten.
    pub(super) fn draw_idempotency_key(&self, charge: &str) -> Option<String> {
        let mut draw = self.stream(&format!("key/{charge}"));
        draw.chance(1, 10).then(|| match draw.below(4) {
            0 => format!("{:x<IDEMPOTENCY_KEY_MAX$}", format!("order-{charge}-")),
            _ => format!("order-{charge}"),
        })
    }

    /// Plans repetitions of a request with an idempotency key: early, while its response is stored, after it expired,
    /// and with another request under the same key.
    pub(super) fn plan_repeats(&mut self, charge: &str, at: u64) {
        let mut draw = self.stream(&format!("again/{charge}"));
        for _ in 0..draw.between(1, 3) {
            let delay = draw_repeat_delay(&mut draw);
            let description = draw.chance(1, 4).then(|| "Another order".to_owned());
            let repeat = Repeat { charge: steps::name(charge), description, refused: None };
            self.add(at + delay, Step::Repeat(Shorthand(repeat)));
        }
    }

    /// Draws the lowest or the highest price for a few charges.
    pub(super) fn draw_edge_price(&self, charge: &str) -> Option<u64> {
        let mut draw = self.stream(&format!("price/{charge}"));
        match draw.below(60) {
            0 => Some(1),
            1 => Some(CENTS_MAX),
            _ => None,
        }
    }

    /// Draws prose: usually none, sometimes a difficult text, rarely one of the maximum length.
    pub(super) fn draw_prose(&self, key: &str) -> Option<String> {
        let mut draw = self.stream(&format!("text/{key}"));
        let text = TEXTS[draw.below(TEXTS.len() as u64) as usize];
        match draw.below(40) {
            0 => Some(pad_to(text, PROSE_MAX)),
            1..=5 => Some(text.to_owned()),
            _ => None,
        }
    }

    /// Draws a short text in the same way.
    pub(super) fn draw_short_text(&self, key: &str) -> Option<String> {
        let mut draw = self.stream(&format!("name/{key}"));
        let text = TEXTS[draw.below(TEXTS.len() as u64) as usize];
        match draw.below(12) {
            0 => Some(pad_to(text, TEXT_MAX)),
            1 | 2 => Some(text.to_owned()),
            _ => None,
        }
    }

    /// Draws metadata: usually none, sometimes with a value of every type, rarely of the maximum number and length.
    pub(super) fn draw_metadata(&self, charge: &str) -> Option<BTreeMap<String, Value>> {
        let mut draw = self.stream(&format!("metadata/{charge}"));
        let text = TEXTS[draw.below(TEXTS.len() as u64) as usize];
        match draw.below(60) {
            0 => {
                let keys = (0..METADATA_KEYS_MAX).map(|n| pad_to(&format!("{n} é"), METADATA_KEY_MAX));
                let value = Value::from(pad_to(text, METADATA_VALUE_MAX));
                Some(keys.map(|key| (key, value.clone())).collect())
            }
            1..=6 => Some(BTreeMap::from([
                ("order".to_owned(), json!(draw.below(1 << 53))),
                ("gift".to_owned(), json!(draw.chance(1, 2))),
                ("note".to_owned(), Value::from(text)),
                ("none".to_owned(), Value::Null),
            ])),
            _ => None,
        }
    }
}

/// Returns a string of this number of characters with this prefix.
fn pad_to(text: &str, chars: usize) -> String {
    text.chars().chain(std::iter::repeat('é')).take(chars).collect()
}

/// Draws the time from a request with an idempotency key to its repetition: at once, within seconds or hours,
/// or at the end of the 24 hours for which responses are stored.
pub(super) fn draw_repeat_delay(draw: &mut RngStream) -> u64 {
    match draw.below(6) {
        0 => DAY - 1 + draw.below(2),
        1 => 0,
        2 | 3 => draw.between(1, 10 * SECOND),
        _ => draw.between(MINUTE, 3 * HOUR),
    }
}
