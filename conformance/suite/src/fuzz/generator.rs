//! Random requests from a seed: mostly plausible, some hostile.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use conformance_model::catalogue::EVENT_TYPES;

use super::request_template::{RequestKey, RequestTemplate};

/// The path of the account, and those of the lists.
const ENDPOINTS: [&str; 4] = ["/v1/account", "/v1/charges", "/v1/invoices", "/v1/events"];
const UNUSUAL_PATHS: &[&str] = &[
    "/v1",
    "/v1/",
    "/v1/event",
    "/v1/events/",
    "/v1/Events",
    "//v1/account",
    "/v1//account",
    "/v1/account/",
    "/v1/account/../events",
    "/v1/%61ccount",
    "/v1/events/%2e%2e/account",
    "/v1/events/%00",
    "/v1/events/..%2f..%2fetc%2fpasswd",
    "/v1/charges/%F0%9F%92%B0",
    "/v1/events/0",
    "/v1/events/-1",
    "/v1/events/null",
    "/v1/events/00000000-0000-0000-0000-000000000000",
    "/v1/events/ffffffff-ffff-ffff-ffff-ffffffffffff",
    "/v1/events/{event:test:0}/charge",
    "/v2/account",
];
const UNUSUAL_VALUES: &[&str] = &[
    "",
    "0",
    "-1",
    "1.5",
    "1e3",
    "101",
    "999999999999999999999999",
    "9223372036854775807",
    "NaN",
    "null",
    "true",
    "%00",
    "%FF%FE",
    "%F0%9F%92%B0",
    "%27%20OR%201%3D1--",
    "%7B%22%24gt%22%3A%22%22%7D",
    "..%2F..%2Fetc%2Fpasswd",
    "%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    "%E2%80%AE",
    "%0d%0aX-Injected:%201",
    "paid,expired",
    "*",
];
const PARAMETERS: &[&str] =
    &["page", "per_page", "status", "payment_link", "type", "charge", "invoice", "sort", "filter"];
const STATUSES: &[&str] = &["pending", "underpaid", "paid", "expired", "canceled", "open", "void"];
const BODIES: &[&str] = &[
    r#"{"asset":"BTC","amount":"10.00","currency":"EUR"}"#,
    r#"{"asset":"ETH","amount":"0.01","currency":"USD","metadata":{"order":"7","gift":true}}"#,
    r#"{"asset":"BTC","payment_link":"{link:test:0}"}"#,
    r#"{"asset":"BTC","payment_link":"{link:live:0}"}"#,
    r#"{"asset":"NONE","amount":"10.00"}"#,
    r#"{"asset":"BTC","amount":"-1"}"#,
    r#"{"asset":"BTC","amount":1e400}"#,
    r#"{"asset":"BTC","amount":"99999999999999999999999999999999"}"#,
    r#"{"asset":"BTC","amount":"1","metadata":[]}"#,
    r#"{"asset":"BTC","amount":"1","amount":"2"}"#,
    r#"{"asset":{"BTC":1},"amount":["1"]}"#,
    r#"{"asset":"BTC","amount":"1","customer":{"email":"\u0000@x"}}"#,
    "[]",
    "null",
    "\"BTC\"",
    "{",
    "",
];

/// A generator of requests.
pub(super) struct RequestGenerator {
    rng: ChaCha8Rng,
    allow_writes: bool,
    /// The requests so far. Some are repeated later.
    generated: Vec<RequestTemplate>,
}

impl RequestGenerator {
    pub(super) fn new(seed: u64, allow_writes: bool) -> RequestGenerator {
        RequestGenerator { rng: ChaCha8Rng::seed_from_u64(seed), allow_writes, generated: Vec::new() }
    }

    fn random_below(&mut self, limit: usize) -> usize {
        (self.rng.next_u64() % limit as u64) as usize
    }

    fn choose<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.random_below(choices.len())]
    }

    /// Returns the next request. The first eight read the existing objects with each key.
    pub(super) fn next(&mut self) -> RequestTemplate {
        let initial_reads = [
            "/v1/account",
            "/v1/events?per_page=100",
            "/v1/charges?per_page=100",
            "/v1/invoices?per_page=100",
        ];
        let index = self.generated.len();
        let template = match initial_reads.get(index / 2) {
            Some(target) => RequestTemplate::get(
                if index.is_multiple_of(2) { RequestKey::Live } else { RequestKey::Test },
                *target,
            ),
            None => self.random_request(),
        };
        self.generated.push(template.clone());
        template
    }

    fn random_request(&mut self) -> RequestTemplate {
        let mut template = match self.random_below(100) {
            0..=29 => self.list_request(),
            30..=49 => self.event_request(),
            50..=54 => RequestTemplate::get(self.valid_key(), "/v1/account"),
            55..=71 => self.list_request_with_unusual_values(),
            72..=81 => self.request_with_invalid_key(),
            82..=88 => RequestTemplate::get(self.valid_key(), self.choose(UNUSUAL_PATHS)),
            89..=93 => {
                let index = self.random_below(self.generated.len());
                self.generated[index].clone()
            }
            94..=96 => {
                let method = self.choose(&["HEAD", "OPTIONS"]);
                RequestTemplate { method: method.to_owned(), ..self.list_request() }
            }
            _ if self.allow_writes => self.create_request(),
            _ => self.list_request(),
        };
        // One request in twelve has an unusual header.
        if self.random_below(12) == 0 {
            let headers: [(&str, &str); 6] = [
                ("accept", "text/html"),
                ("accept", "application/xml;q=0.9, */*;q=0"),
                ("accept-language", "ar"),
                ("x-http-method-override", "DELETE"),
                ("content-type", "application/x-www-form-urlencoded"),
                ("if-none-match", "*"),
            ];
            let (name, value) = headers[self.random_below(headers.len())];
            template.headers.push((name.to_owned(), value.to_owned()));
        }
        template
    }

    fn valid_key(&mut self) -> RequestKey {
        if self.random_below(2) == 0 { RequestKey::Live } else { RequestKey::Test }
    }

    /// Returns a placeholder of an identifier of a random mode. One in five is for a nonexistent identifier.
    fn id_placeholder(&mut self, kind: &str) -> String {
        let mode = self.choose(&["live", "test"]);
        let index = self.random_below(40);
        match self.random_below(5) {
            0 => format!("{{absent:{kind}:{mode}:{index}}}"),
            _ => format!("{{{kind}:{mode}:{index}}}"),
        }
    }

    fn list_request(&mut self) -> RequestTemplate {
        let path = self.choose(&ENDPOINTS[1..]);
        let mut query = Vec::new();
        let filters: &[&str] = match path {
            "/v1/events" => &["type", "charge", "invoice"],
            "/v1/charges" => &["status", "payment_link"],
            _ => &["status"],
        };
        for filter in filters {
            if self.random_below(3) == 0 {
                let value = match *filter {
                    "type" => self.choose(&EVENT_TYPES).to_owned(),
                    "status" => self.choose(STATUSES).to_owned(),
                    "payment_link" => self.id_placeholder("link"),
                    kind => self.id_placeholder(kind),
                };
                query.push(format!("{filter}={value}"));
            }
        }
        if self.random_below(2) == 0 {
            let size = [1, 2, 3, 5, 7, 10, 24, 25, 26, 50, 99, 100][self.random_below(12)];
            query.push(format!("per_page={size}"));
        }
        if self.random_below(2) == 0 {
            query.push(format!("page={}", 1 + self.random_below(6)));
        }
        // Parameters are in random order.
        for index in (1..query.len()).rev() {
            let other = self.random_below(index + 1);
            query.swap(index, other);
        }
        RequestTemplate::get(self.valid_key(), with_query(path, &query))
    }

    fn list_request_with_unusual_values(&mut self) -> RequestTemplate {
        let path = self.choose(&ENDPOINTS);
        let mut query = Vec::new();
        for _ in 0..=self.random_below(3) {
            let (name, value) = (self.choose(PARAMETERS), self.choose(UNUSUAL_VALUES));
            query.push(match self.random_below(6) {
                0 => format!("{name}[]={value}"),
                1 => format!("{name}={value}&{name}=1"),
                2 => format!("{name}={}", "9".repeat(1 + self.random_below(300))),
                _ => format!("{name}={value}"),
            });
        }
        RequestTemplate::get(self.valid_key(), with_query(path, &query))
    }

    fn event_request(&mut self) -> RequestTemplate {
        let name = self.id_placeholder("event");
        let target = match self.random_below(10) {
            0 => format!("/v1/events/{name}x"),
            1 => format!("/v1/events/{name}?per_page=0&page=-1"),
            2 => format!("/v1/events/%20{name}"),
            _ => format!("/v1/events/{name}"),
        };
        RequestTemplate::get(self.valid_key(), target)
    }

    fn request_with_invalid_key(&mut self) -> RequestTemplate {
        let key = RequestKey::INVALID[self.random_below(RequestKey::INVALID.len())];
        match self.random_below(3) {
            0 => RequestTemplate { key, ..self.event_request() },
            1 => RequestTemplate { key, ..self.list_request() },
            _ => RequestTemplate::get(key, self.choose(&ENDPOINTS)),
        }
    }

    fn create_request(&mut self) -> RequestTemplate {
        let body = self.choose(BODIES).to_owned();
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        if self.random_below(3) == 0 {
            headers.push(("idempotency-key".to_owned(), format!("fuzz-{}", self.random_below(4))));
        }
        RequestTemplate {
            key: RequestKey::Test,
            method: "POST".to_owned(),
            target: "/v1/charges".to_owned(),
            headers,
            body: Some(body),
        }
    }
}

fn with_query(path: &str, query: &[String]) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}
