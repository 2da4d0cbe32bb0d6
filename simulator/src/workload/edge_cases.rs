//! Edge cases: a second account, repeated requests, and values at the limits of what is allowed. Each has draws of
//! its own, so that it changes no other draw.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{DAY, HOUR, MINUTE, Plan, SECOND, words};
use crate::script::{
    At,
    step::{Brief, Holds, Key, OpenAccount, Repeat, Request, Step},
    value::Name,
};

/// The second account.
pub(super) const NEIGHBOUR: &str = "bakery";
/// Characters of the longest prose, text, key and value of metadata, and the most keys.
const PROSE_MAX: usize = 2_000;
const TEXT_MAX: usize = 255;
const METADATA_KEY_MAX: usize = 40;
const METADATA_VALUE_MAX: usize = 500;
const METADATA_KEYS_MAX: usize = 20;
const IDEMPOTENCY_KEY_MAX: usize = 255;
/// The highest price whose amount due can be worked out in every coin.
const CENTS_MAX: u64 = 999_999_999_999;

/// Texts that programs stumble over: other scripts, joined and turned letters, quotes, what looks like code.
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
    /// In some worlds a second account does business beside the first: the same modes, coins and chains.
    pub(super) fn add_neighbour(&mut self) {
        let mut draw = self.stream("neighbour");
        if draw.chance(1, 2) {
            return;
        }
        let percents = [0, 100, 300, 1_000];
        let mut percent = || percents[draw.below(percents.len() as u64) as usize];
        let (tolerance, threshold) = (percent(), percent());
        self.neighbour = Some((tolerance, threshold));
        let open = OpenAccount {
            account: words::name(NEIGHBOUR),
            underpayment_tolerance: Some(words::percent(tolerance)),
            overpayment_threshold: Some(words::percent(threshold)),
        };
        self.add(0, Step::OpenAccount(Brief(open)));
    }

    /// Returns the account of an object, and the bounds of that account.
    pub(super) fn pick_account(&self, thing: &str) -> (Option<At<Name>>, (u32, u32)) {
        match self.neighbour {
            Some(bounds) if self.stream(&format!("account/{thing}")).chance(1, 4) => {
                (Some(words::name(NEIGHBOUR)), bounds)
            }
            _ => (None, self.bounds),
        }
    }

    /// The second account tries to read and to change what is the first one's: it finds nothing, or its own.
    pub(super) fn add_intrusions(&mut self, charges: u64) {
        if self.neighbour.is_none() {
            return;
        }
        let mut draw = self.stream("intrusions");
        for n in 0..draw.below(3) {
            let mode = self.pick_mode(&mut draw);
            let at = draw.between(HOUR, DAY);
            let key = format!("intruder{n}");
            let made = Key {
                name: words::name(&key),
                mode: words::mode(mode),
                account: Some(words::name(NEIGHBOUR)),
            };
            self.add(at, Step::Key(Brief(made)));
            for _ in 0..draw.between(1, 3) {
                let charge = draw.between(1, charges);
                let (method, tail) = match draw.below(3) {
                    0 => ("GET", ""),
                    1 => ("POST", "/cancel"),
                    _ => ("POST", "/refunds"),
                };
                let body = (method == "POST").then(|| json!({ "amount": "0.000001" }));
                self.add(
                    at + draw.below(3 * HOUR),
                    Step::Request(Request {
                        method: Some(method.to_owned()),
                        path: words::at(format!("/v1/charges/${{c{charge}}}{tail}")),
                        key: Some(words::name(&key)),
                        body: body.filter(|_| tail == "/refunds"),
                        headers: BTreeMap::new(),
                        times: None,
                        save: BTreeMap::new(),
                        expect: Holds { status: Some(words::at(404)), ..Holds::default() },
                    }),
                );
            }
        }
    }

    /// Some charges are opened under a key.
    pub(super) fn pick_key(&self, charge: &str) -> Option<String> {
        let mut draw = self.stream(&format!("key/{charge}"));
        draw.chance(1, 10).then(|| match draw.below(4) {
            0 => format!("{:x<IDEMPOTENCY_KEY_MAX$}", format!("order-{charge}-")),
            _ => format!("order-{charge}"),
        })
    }

    /// A request that opened a charge under a key comes again: soon, as long as its answer is kept, and when it is
    /// kept no more; and another request under the same key.
    pub(super) fn tell_repeats(&mut self, charge: &str, at: u64) {
        let mut draw = self.stream(&format!("again/{charge}"));
        for _ in 0..draw.between(1, 3) {
            let later = match draw.below(6) {
                0 => DAY - 1 + draw.below(2),
                1 => 0,
                2 | 3 => draw.between(1, 10 * SECOND),
                _ => draw.between(MINUTE, 3 * HOUR),
            };
            let other = draw.chance(1, 4).then(|| "Another order".to_owned());
            let repeat = Repeat { charge: words::name(charge), description: other, refused: None };
            self.add(at + later, Step::Repeat(Brief(repeat)));
        }
    }

    /// The lowest and the highest price.
    pub(super) fn edge_price(&self, charge: &str) -> Option<u64> {
        let mut draw = self.stream(&format!("price/{charge}"));
        match draw.below(60) {
            0 => Some(1),
            1 => Some(CENTS_MAX),
            _ => None,
        }
    }

    /// Prose: mostly none, now and then one that is hard to carry, seldom the longest.
    pub(super) fn edge_text(&self, what: &str) -> Option<String> {
        let mut draw = self.stream(&format!("text/{what}"));
        let text = TEXTS[draw.below(TEXTS.len() as u64) as usize];
        match draw.below(40) {
            0 => Some(longest(text, PROSE_MAX)),
            1..=5 => Some(text.to_owned()),
            _ => None,
        }
    }

    /// A short text of the same kind.
    pub(super) fn edge_name(&self, what: &str) -> Option<String> {
        let mut draw = self.stream(&format!("name/{what}"));
        let text = TEXTS[draw.below(TEXTS.len() as u64) as usize];
        match draw.below(12) {
            0 => Some(longest(text, TEXT_MAX)),
            1 | 2 => Some(text.to_owned()),
            _ => None,
        }
    }

    /// Metadata of every type, seldom as many and as long as may be.
    pub(super) fn edge_metadata(&self, charge: &str) -> Option<BTreeMap<String, Value>> {
        let mut draw = self.stream(&format!("metadata/{charge}"));
        let text = TEXTS[draw.below(TEXTS.len() as u64) as usize];
        match draw.below(60) {
            0 => {
                let keys = (0..METADATA_KEYS_MAX).map(|n| longest(&format!("{n} é"), METADATA_KEY_MAX));
                let value = Value::from(longest(text, METADATA_VALUE_MAX));
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

/// A text of so many characters that begins like this one.
fn longest(text: &str, chars: usize) -> String {
    text.chars().chain(std::iter::repeat('é')).take(chars).collect()
}
