//! What the world has to know of a name before it saves an endpoint with it.

use std::{io, net::IpAddr};

use reference_core::endpoint::address_rule::{self, EndpointUrl, Host};
use reference_wire::Request;
use serde::Deserialize;
use tokio::time::Instant;

use super::{WebhookSender, lookups::Share};

/// What was heard of a name.
pub(crate) enum Hearsay {
    /// It resolves to these; to none if nobody knows it.
    Resolved {
        /// The name.
        host: String,
        /// Its addresses.
        addresses: Vec<IpAddr>,
    },
    /// There was no answer in time.
    TimedOut {
        /// The name.
        host: String,
    },
    /// It is forwarded.
    Forwarded {
        /// The name.
        host: String,
    },
}

impl WebhookSender {
    /// Looks up the name in a request that saves an endpoint; `None` if the request does no such thing, or
    /// says all by itself.
    pub(crate) async fn hear(&self, request: &Request<'_>) -> Option<Hearsay> {
        let url = url_to_save(request)?;
        let Host::Name(name) = url.host() else { return None };
        let host = name.clone();
        if self.forwards.iter().any(|forward| forward.serves(&url)) {
            return Some(Hearsay::Forwarded { host });
        }
        let until = Instant::now() + self.bounds.connect_time;
        Some(match self.lookups.resolve(Share::Saving, name, until).await {
            Ok(addresses) => Hearsay::Resolved { host, addresses },
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Hearsay::TimedOut { host },
            Err(_) => Hearsay::Resolved { host, addresses: Vec::new() },
        })
    }
}

/// Whether a request may save an endpoint. Cheap, because every request is asked.
pub(crate) fn may_save(request: &Request<'_>) -> bool {
    matches!(request.method, "POST" | "PATCH") && request.path.starts_with("/sandbox/endpoints")
}

/// The URL of an endpoint about to be saved. What is no good in it, the world itself will say.
fn url_to_save(request: &Request<'_>) -> Option<EndpointUrl> {
    #[derive(Deserialize)]
    struct Body {
        url: String,
    }
    if !may_save(request) {
        return None;
    }
    let body: Body = serde_json::from_slice(request.body).ok()?;
    address_rule::judge_url(&body.url).ok().filter(|url| !url.is_simulated())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(method: &str, path: &str, body: &str, expected: Option<&str>) {
        let request = Request {
            method,
            path,
            query: None,
            authorization: None,
            content_type: None,
            idempotency_key: None,
            base: "http://localhost",
            body: body.as_bytes(),
        };
        let found = url_to_save(&request).map(|url| url.to_string());
        assert_eq!(found.as_deref(), expected, "{method} {path} {body}");
    }

    #[test]
    fn only_saving_an_endpoint_asks_for_a_name() {
        let body = r#"{"url":"https://Shop.example/hooks","events":["charge.paid"]}"#;
        let url = Some("https://shop.example/hooks");
        check("POST", "/sandbox/endpoints", body, url);
        check("PATCH", "/sandbox/endpoints/abc", body, url);
        check("GET", "/sandbox/endpoints", body, None);
        check("POST", "/v1/charges", body, None);
        check("POST", "/sandbox/pay", body, None);
    }

    #[test]
    fn a_url_that_the_world_refuses_or_knows_is_not_looked_up() {
        for url in ["https://localhost", "http://shop.example", "https://shop.sim", "nonsense"] {
            check("POST", "/sandbox/endpoints", &format!(r#"{{"url":"{url}"}}"#), None);
        }
        check("PATCH", "/sandbox/endpoints/abc", "{}", None);
        check("POST", "/sandbox/endpoints", "[", None);
        check("POST", "/sandbox/endpoints", r#"{"url":"https://a.example","url":"https://b.example"}"#, None);
    }
}
