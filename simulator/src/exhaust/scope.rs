//! The scope of an exhaustive search: a few objects, and the inputs that may occur in any order.

use crate::invariant::ReadDepth;

/// A small world and its possible inputs, as steps of scenarios.
#[derive(Debug)]
pub struct Scope {
    /// The name for users.
    pub name: &'static str,
    /// A short description.
    pub description: &'static str,
    /// The default maximum length of sequences.
    pub depth: usize,
    /// The steps before the search.
    pub setup: &'static str,
    /// The inputs: name and steps of each.
    pub inputs: &'static [(&'static str, &'static str)],
    /// The objects to read through the API after each sequence.
    pub read_depth: ReadDepth,
    /// `true` if the rate limit is part of the state: the requests of the last minute distinguish states.
    pub distinguishes_rate_limit: bool,
    /// `true` if the scope tests state that no object shows, such as anchors of lists and stored responses: then every
    /// sequence counts as a separate state.
    pub has_hidden_state: bool,
}

/// The setup of an endpoint with the merchant `shop`.
const SHOP: &str = "- endpoint: shop";
/// The creation of a charge with the `Idempotency-Key` `k`.
const KEYED_OPEN: &str = "- request: { method: POST, path: /v1/charges, headers: { Idempotency-Key: k }, \
                          body: { asset: BTC, amount: '5.00' } }";

impl Scope {
    /// All scopes.
    pub const ALL: &'static [Scope] = &[
        Scope {
            name: "charge",
            description: "a charge with two transfers, the end of its rate lock, blocks, a reorganisation, cancel, refund and late acceptance",
            depth: 4,
            setup: "- open: { charge: c1, asset: BTC, amount: 49.90 EUR }",
            inputs: &[
                ("pay half", "- pay: { charge: c1, tx: first, share: 0.5 }"),
                ("pay the rest with a low fee", "- pay: { charge: c1, tx: second, fee: low }"),
                ("a block", "- mine: { asset: BTC, blocks: 1 }"),
                ("10 minutes", "- wait: 10m"),
                ("the lock ends", "- until: { expiry: c1 }"),
                ("a day", "- wait: 1d"),
                ("reorganise", "- reorg: { asset: BTC, depth: 1 }"),
                ("bump the first", "- replace: { tx: first, as: bumped, fee: high }"),
                (
                    "redirect the second to another address",
                    "- replace: { tx: second, as: gone, fee: high, elsewhere: true }",
                ),
                ("cancel", "- cancel: c1"),
                ("refund", "- refund: { charge: c1, amount: 0.0001 }"),
                ("accept", "- accept: c1"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: false,
            has_hidden_state: false,
        },
        Scope {
            name: "invoice",
            description: "an invoice with two charges in two coins",
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
                ("void the invoice", "- void: i1"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: false,
            has_hidden_state: false,
        },
        Scope {
            name: "endpoint",
            description: "an endpoint with retries, secret rotation, disabling, enabling and restarts",
            depth: 4,
            setup: SHOP,
            inputs: &[
                ("open a charge", "- open: { charge: c1, asset: BTC, amount: 49.90 EUR }"),
                ("cancel it", "- cancel: c1"),
                ("down", "- merchant: { shop: down }"),
                ("up", "- merchant: { shop: up }"),
                ("fail with 500, then lose a response", "- merchant: { shop: [500, lost] }"),
                ("a second", "- wait: 1s"),
                ("a minute", "- wait: 1m"),
                ("an hour", "- wait: 1h"),
                ("rotate", "- rotate: shop"),
                ("disable", "- disable: shop"),
                ("enable", "- enable: shop"),
                ("restart", "- restart"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: false,
            has_hidden_state: false,
        },
        Scope {
            name: "limit",
            description: "the rate limit, with two keys and restarts",
            depth: 4,
            setup: "- key: k1",
            inputs: &[
                ("50 requests", "- request: { path: /v1/account, key: live, times: 50 }"),
                ("one request", "- request: { path: /v1/account, key: live }"),
                ("70 requests of another key", "- request: { path: /v1/charges, key: k1, times: 70 }"),
                ("20 seconds", "- wait: 20s"),
                ("40 seconds less a microsecond", "- wait: 39s999999us"),
                ("a microsecond", "- wait: 1us"),
                ("restart", "- restart"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: true,
            has_hidden_state: false,
        },
        Scope {
            name: "paging",
            description: "paging through lists that grow",
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
            read_depth: ReadDepth::Events,
            distinguishes_rate_limit: false,
            has_hidden_state: false,
        },
        Scope {
            name: "idempotency",
            description: "one Idempotency-Key for requests with different methods, modes and objects, and its expiry after a day",
            depth: 3,
            setup: "- open: { charge: c1, asset: BTC, amount: 10.00 EUR }\n- link: { link: l1, amount: 20.00 EUR }",
            inputs: &[
                ("open", KEYED_OPEN),
                (
                    "open with another list",
                    "- request: { method: POST, path: /v1/payment-links, headers: { Idempotency-Key: k }, \
                     body: { title: Tea, amount: '5.00', accepted_assets: [BTC, LTC] } }",
                ),
                (
                    "open with the list reversed",
                    "- request: { method: POST, path: /v1/payment-links, headers: { Idempotency-Key: k }, \
                     body: { title: Tea, amount: '5.00', accepted_assets: [LTC, BTC] } }",
                ),
                (
                    "open in test mode",
                    "- request: { method: POST, path: /v1/charges, key: test, headers: { Idempotency-Key: k }, \
                     body: { asset: BTC, amount: '5.00' } }",
                ),
                (
                    "open with a query",
                    "- request: { method: POST, path: '/v1/charges?x=1', headers: { Idempotency-Key: k }, \
                     body: { asset: BTC, amount: '5.00' } }",
                ),
                (
                    "cancel",
                    "- request: { method: POST, path: '/v1/charges/${c1}/cancel', headers: { Idempotency-Key: k } }",
                ),
                (
                    "archive",
                    "- request: { method: POST, path: '/v1/payment-links/${l1}/archive', \
                     headers: { Idempotency-Key: k } }",
                ),
                (
                    "restore",
                    "- request: { method: DELETE, path: '/v1/payment-links/${l1}/archive', \
                     headers: { Idempotency-Key: k } }",
                ),
                (
                    "refund",
                    "- request: { method: POST, path: '/v1/charges/${c1}/refunds', headers: { Idempotency-Key: k }, \
                     body: { amount: '0.000001' } }",
                ),
                ("pay", "- pay: c1\n- mine: { asset: BTC, blocks: 2 }"),
                ("a day less a microsecond", "- wait: 23h59m59s999999us"),
                ("a microsecond", "- wait: 1us"),
                ("restart", "- restart"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: false,
            has_hidden_state: true,
        },
        Scope {
            name: "filters",
            description: "filtered lists read in two page sizes, with pauses and new objects",
            depth: 3,
            setup: "- key: reader\n- link: { link: l1, amount: 20.00 EUR }\n- open: { charge: c1, asset: BTC, link: l1 }\n\
                    - open: { charge: c2, asset: BTC, link: l1 }\n- open: { charge: c3, asset: BTC, amount: 30.00 EUR }",
            inputs: &[
                ("page 1, one record per page", "- request: { path: '/v1/charges?per_page=1', key: reader }"),
                (
                    "page 2, one record per page",
                    "- request: { path: '/v1/charges?per_page=1&page=2', key: reader }",
                ),
                (
                    "page 1, two records per page",
                    "- request: { path: '/v1/charges?per_page=2', key: reader }",
                ),
                (
                    "page 2, two records per page",
                    "- request: { path: '/v1/charges?per_page=2&page=2', key: reader }",
                ),
                (
                    "pending charges of the link",
                    "- request: { path: '/v1/charges?payment_link=${l1}&status=pending&per_page=1', key: reader }",
                ),
                (
                    "invoices with a charge as anchor",
                    "- request: { path: '/v1/invoices?anchor=${c1}', key: reader }",
                ),
                ("open another by the link", "- open: { charge: c4, asset: BTC, link: l1 }"),
                ("cancel the first", "- cancel: c1"),
                ("9 minutes", "- wait: 9m"),
                ("a minute", "- wait: 1m"),
                ("restart", "- restart"),
            ],
            read_depth: ReadDepth::Events,
            distinguishes_rate_limit: false,
            has_hidden_state: true,
        },
        Scope {
            name: "wallet",
            description: "address lists that are set, edited, removed, and set in the other mode",
            depth: 4,
            setup: "- key: reader",
            inputs: &[
                (
                    "set two addresses",
                    "- wallet: { asset: SOL, addresses: [ABCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUV, BCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVW] }",
                ),
                (
                    "reverse them",
                    "- wallet: { asset: SOL, addresses: [BCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVW, ABCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUV] }",
                ),
                (
                    "set one in test mode",
                    "- wallet: { asset: SOL, mode: test, addresses: [ABCDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUV] }",
                ),
                (
                    "set another in test mode",
                    "- wallet: { asset: SOL, mode: test, addresses: [CDEFGHJKLMNPQRSTUVWXYZABCDEFGHJKLMNPQRSTUVWX] }",
                ),
                ("remove", "- wallet: { asset: SOL, remove: true }"),
                ("read the account", "- request: { path: /v1/account, key: reader }"),
                (
                    "open",
                    "- request: { method: POST, path: /v1/charges, key: reader, body: { asset: SOL, amount: '5.00' } }",
                ),
                ("restart", "- restart"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: false,
            has_hidden_state: true,
        },
        Scope {
            name: "link",
            description: "a payment link that is changed, paid, archived and expires",
            depth: 3,
            setup: "- request: { method: POST, path: /v1/payment-links, save: { l1: /data/id }, body: { title: Tea, \
                    pricing_type: open, min_amount: '5.00', max_amount: '9.00', max_payments: 1, require_email: true, \
                    accepted_assets: [BTC], custom_fields: [{ label: Size, required: true }], \
                    expires_at: '2026-01-05T10:00:00Z' } }",
            inputs: &[
                (
                    "open at the minimum",
                    "- request: { method: POST, path: /v1/charges, save: { c1: /data/id }, body: { asset: BTC, amount: '5.00', \
                     payment_link: '${l1}', customer_email: a@b.example, custom_fields: [{ label: Size, value: M }] } }",
                ),
                (
                    "open with missing fields",
                    "- request: { method: POST, path: /v1/charges, body: { asset: LTC, amount: '9.01', \
                     payment_link: '${l1}', custom_fields: [{ label: Size, value: '' }] } }",
                ),
                ("pay", "- pay: c1\n- mine: { asset: BTC, blocks: 2 }"),
                (
                    "allow any number of payments",
                    "- request: { method: PATCH, path: '/v1/payment-links/${l1}', body: { max_payments: null } }",
                ),
                (
                    "remove the expiry",
                    "- request: { method: PATCH, path: '/v1/payment-links/${l1}', body: { expires_at: null } }",
                ),
                (
                    "accept all coins",
                    "- request: { method: PATCH, path: '/v1/payment-links/${l1}', body: { accepted_assets: null, title: Tea } }",
                ),
                (
                    "remove the required fields",
                    "- request: { method: PATCH, path: '/v1/payment-links/${l1}', body: { custom_fields: [], require_email: false } }",
                ),
                (
                    "set a fixed price",
                    "- request: { method: PATCH, path: '/v1/payment-links/${l1}', body: { pricing_type: fixed, amount: '9.01' } }",
                ),
                ("archive", "- request: { method: POST, path: '/v1/payment-links/${l1}/archive' }"),
                ("restore", "- request: { method: DELETE, path: '/v1/payment-links/${l1}/archive' }"),
                ("an hour less a microsecond", "- wait: 59m59s999999us"),
                ("a microsecond", "- wait: 1us"),
            ],
            read_depth: ReadDepth::Objects,
            distinguishes_rate_limit: false,
            has_hidden_state: true,
        },
        Scope {
            name: "restart",
            description: "restarts with stored objects, list anchors, idempotent responses and deliveries",
            depth: 3,
            setup: "- endpoint: shop\n- link: { link: l1, amount: 20.00 EUR, max_payments: 1 }",
            inputs: &[
                ("open by the link", "- open: { charge: c1, asset: BTC, link: l1 }"),
                ("open another by the link", "- open: { charge: c2, asset: BTC, link: l1 }"),
                ("pay", "- pay: c1"),
                ("blocks", "- mine: { asset: BTC, blocks: 2 }"),
                (
                    "an invoice",
                    "- invoice: { invoice: i1, amount: 9.00 EUR, customer_email: a@b.example, send: true }",
                ),
                ("void it", "- void: i1"),
                ("open under a key", KEYED_OPEN),
                ("down", "- merchant: { shop: down }"),
                ("a minute", "- wait: 1m"),
                ("half an hour", "- wait: 30m"),
                ("restart", "- restart"),
            ],
            read_depth: ReadDepth::Events,
            distinguishes_rate_limit: false,
            has_hidden_state: false,
        },
    ];

    /// Returns the scope with this name.
    pub fn find(name: &str) -> Option<&'static Scope> {
        Scope::ALL.iter().find(|scope| scope.name == name)
    }
}
