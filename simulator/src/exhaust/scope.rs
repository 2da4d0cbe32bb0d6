//! The scope of an exhaustive search: a few objects, and the inputs that may occur in any order.

use crate::law::Depth;

/// A small world and an alphabet of inputs, as steps of scenarios.
#[derive(Debug)]
pub struct Scope {
    /// The name for users.
    pub name: &'static str,
    /// A short description.
    pub what: &'static str,
    /// The default maximum length of sequences.
    pub depth: usize,
    /// The steps before the search.
    pub setup: &'static str,
    /// The inputs: name and steps of each.
    pub inputs: &'static [(&'static str, &'static str)],
    /// The state to read after each sequence: with or without events and filters.
    pub reading: Depth,
    /// `true` if the rate limit is part of the state: the requests of the last minute distinguish states.
    pub is_limited: bool,
}

const SHOP: &str = "- endpoint: shop";

impl Scope {
    /// All scopes.
    pub const ALL: &'static [Scope] = &[
        Scope {
            name: "charge",
            what: "a charge with two transfers around lock, hold, blocks, cancel, refund and late acceptance",
            depth: 4,
            setup: "- open: { charge: c1, asset: BTC, amount: 49.90 EUR }",
            inputs: &[
                ("pay half", "- pay: { charge: c1, tx: first, share: 0.5 }"),
                ("pay the rest slowly", "- pay: { charge: c1, tx: second, fee: low }"),
                ("a block", "- mine: { asset: BTC, blocks: 1 }"),
                ("10 minutes", "- wait: 10m"),
                ("the lock ends", "- until: { expiry: c1 }"),
                ("a day", "- wait: 1d"),
                ("reorganise", "- reorg: { asset: BTC, depth: 1 }"),
                ("bump the first", "- replace: { tx: first, as: bumped, fee: high }"),
                (
                    "the second goes elsewhere",
                    "- replace: { tx: second, as: gone, fee: high, elsewhere: true }",
                ),
                ("cancel", "- cancel: c1"),
                ("refund", "- refund: { charge: c1, amount: 0.0001 }"),
                ("accept", "- accept: c1"),
            ],
            reading: Depth::Objects,
            is_limited: false,
        },
        Scope {
            name: "invoice",
            what: "an invoice with two charges in two coins",
            depth: 4,
            setup: "- invoice: { invoice: i1, amount: 99.00 EUR }",
            inputs: &[
                ("choose BTC", "- choose: { invoice: i1, asset: BTC, charge: c1 }"),
                ("choose LTC", "- choose: { invoice: i1, asset: LTC, charge: c2 }"),
                ("pay BTC", "- pay: { charge: c1, tx: first }"),
                ("pay LTC", "- pay: { charge: c2, tx: second }"),
                ("BTC blocks", "- mine: { asset: BTC, blocks: 2 }"),
                ("LTC blocks", "- mine: { asset: LTC, blocks: 6 }"),
                ("reorganise BTC", "- reorg: { asset: BTC, depth: 2 }"),
                ("half an hour", "- wait: 30m"),
                ("cancel BTC", "- cancel: c1"),
                ("withdraw", "- void: i1"),
            ],
            reading: Depth::Objects,
            is_limited: false,
        },
        Scope {
            name: "endpoint",
            what: "an endpoint with retries, a rotation, switching and restarts",
            depth: 4,
            setup: SHOP,
            inputs: &[
                ("open a charge", "- open: { charge: c1, asset: BTC, amount: 49.90 EUR }"),
                ("cancel it", "- cancel: c1"),
                ("down", "- merchant: { shop: down }"),
                ("up", "- merchant: { shop: up }"),
                ("answers go missing", "- merchant: { shop: [500, lost] }"),
                ("a second", "- wait: 1s"),
                ("a minute", "- wait: 1m"),
                ("an hour", "- wait: 1h"),
                ("rotate", "- rotate: shop"),
                ("switch off", "- disable: shop"),
                ("switch on", "- enable: shop"),
                ("restart", "- restart"),
            ],
            reading: Depth::Objects,
            is_limited: false,
        },
        Scope {
            name: "limit",
            what: "the limit of requests, with two keys and restarts",
            depth: 4,
            setup: "- key: k1",
            inputs: &[
                ("50 requests", "- request: { path: /v1/account, key: live, times: 50 }"),
                ("one request", "- request: { path: /v1/account, key: live }"),
                ("70 of another key", "- request: { path: /v1/charges, key: k1, times: 70 }"),
                ("20 seconds", "- wait: 20s"),
                ("40 seconds less a microsecond", "- wait: 39s999999us"),
                ("a microsecond", "- wait: 1us"),
                ("restart", "- restart"),
            ],
            reading: Depth::Objects,
            is_limited: true,
        },
        Scope {
            name: "paging",
            what: "lists that are read while they grow",
            depth: 4,
            setup: "- open: { charge: c1, asset: BTC, amount: 10.00 EUR }\n- open: { charge: c2, asset: LTC, amount: 20.00 EUR }",
            inputs: &[
                ("read by links", "- walk: { path: /v1/charges, per_page: 1, insert: 1 }"),
                ("read by numbers", "- walk: { path: /v1/charges, per_page: 2, insert: 1, by: numbers }"),
                ("read the events", "- walk: { path: /v1/events, per_page: 1, insert: 1 }"),
                ("open one more", "- open: { charge: c3, asset: BTC, amount: 30.00 EUR }"),
                ("cancel the first", "- cancel: c1"),
                ("pay the second", "- pay: c2"),
                ("half an hour", "- wait: 30m"),
            ],
            reading: Depth::Events,
            is_limited: false,
        },
    ];

    /// Returns the scope with this name.
    pub fn find(name: &str) -> Option<&'static Scope> {
        Scope::ALL.iter().find(|scope| scope.name == name)
    }
}
