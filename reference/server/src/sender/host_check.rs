//! [`HostCheck`]: the DNS lookup that precedes saving an endpoint; the world itself has no network.

use std::{io, net::IpAddr};

use reference_core::{
    endpoint::address_rule::{self, Host},
    id::AccountNo,
};
use reference_wire::Request;
use serde::Deserialize;
use tokio::time::Instant;

use super::{LocalHandler, Tenant, WebhookSender, WorldNo, forward::is_local, lookups::LookupConsumer};

/// The result of a check of the host in an endpoint URL.
pub(crate) enum HostCheck {
    /// The name resolves to these addresses; none if the lookup failed.
    Resolved {
        /// The name.
        host: String,
        /// The addresses of the name.
        addresses: Vec<IpAddr>,
    },
    /// The lookup timed out.
    TimedOut {
        /// The name.
        host: String,
    },
    /// The host is forwarded.
    Forwarded {
        /// The name.
        host: String,
    },
    /// The address is refused because it is on this machine or in a private network; with the message.
    LocalAddress(String),
}

impl WebhookSender {
    /// Checks the host in a request that saves an endpoint; resolves it if it is a name. Returns `None` if the world needs no
    /// result: the request saves no endpoint, its URL is invalid, or the host is an IP address or in the simulated network.
    /// `account`: the account of the request's key, if it has one.
    pub(crate) async fn check_host(
        &self,
        world: WorldNo,
        account: Option<AccountNo>,
        request: &Request<'_>,
    ) -> Option<HostCheck> {
        let (url_text, account_name) = endpoint_url_and_account(request)?;
        let consumer = match account {
            Some(account) => LookupConsumer::SaveWithKey(Tenant { world, account }),
            None => LookupConsumer::SaveForAccount(world, account_name),
        };
        let url = match address_rule::parse_endpoint_url(&url_text) {
            Ok(url) if url.is_simulated() => return None,
            Ok(url) => url,
            Err(refusal) => {
                let handler = LocalHandler::from_refused_url(&url_text)?;
                return Some(local_refusal(&refusal.to_string(), &handler));
            }
        };
        let Host::Name(name) = url.host() else { return None };
        let host = name.clone();
        if self.target_of(&url).is_some() {
            return Some(HostCheck::Forwarded { host });
        }
        let deadline = Instant::now() + self.bounds.connect_timeout;
        Some(match self.lookups.resolve(&consumer, name, deadline).await {
            Ok(addresses) => match address_rule::check_resolved(&addresses) {
                Err(refusal) if is_local(&refusal) => {
                    local_refusal(&format!("{host}: {refusal}"), &LocalHandler::parse(&url_text).ok()?)
                }
                _ => HostCheck::Resolved { host, addresses },
            },
            Err(error) if error.kind() == io::ErrorKind::TimedOut => HostCheck::TimedOut { host },
            Err(_) => HostCheck::Resolved { host, addresses: Vec::new() },
        })
    }
}

/// Returns `true` if a request may save an endpoint. Checks only the method and the path, because it runs for every
/// request.
pub(crate) fn may_save_endpoint(request: &Request<'_>) -> bool {
    matches!(request.method, "POST" | "PATCH") && request.path.starts_with("/sandbox/endpoints")
}

/// Returns the error for a local address, with the command that forwards to it.
fn local_refusal(refusal: &str, handler: &LocalHandler) -> HostCheck {
    let target = handler.target();
    HostCheck::LocalAddress(format!(
        "The url field is invalid: {refusal}. To reach a handler on your own machine, start the server with \
         `--forward-to {target}`, or send {{\"to\":\"{target}\"}} to POST /sandbox/forwards."
    ))
}

/// Returns the endpoint URL in a request that saves an endpoint, and the account that the request names; `None` if the
/// body is invalid, which the world reports.
fn endpoint_url_and_account(request: &Request<'_>) -> Option<(String, Option<String>)> {
    #[derive(Deserialize)]
    struct Body {
        url: String,
        #[serde(default)]
        account: Option<String>,
    }
    if !may_save_endpoint(request) {
        return None;
    }
    let body: Body = serde_json::from_slice(request.body).ok()?;
    Some((body.url, body.account))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_url(method: &str, path: &str, body: &str, expected: Option<&str>) {
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
        let found = endpoint_url_and_account(&request).map(|(url, _)| url);
        assert_eq!(found.as_deref(), expected, "{method} {path} {body}");
    }

    #[test]
    fn only_a_request_that_saves_an_endpoint_has_an_endpoint_url() {
        let body = r#"{"url":"https://Shop.example/hooks","events":["charge.paid"]}"#;
        let url = Some("https://Shop.example/hooks");
        check_url("POST", "/sandbox/endpoints", body, url);
        check_url("PATCH", "/sandbox/endpoints/abc", body, url);
        check_url("GET", "/sandbox/endpoints", body, None);
        check_url("POST", "/v1/charges", body, None);
        check_url("POST", "/sandbox/pay", body, None);
    }

    #[test]
    fn a_body_without_a_url_is_left_to_the_world() {
        check_url("PATCH", "/sandbox/endpoints/abc", "{}", None);
        check_url("POST", "/sandbox/endpoints", "[", None);
        check_url(
            "POST",
            "/sandbox/endpoints",
            r#"{"url":"https://a.example","url":"https://b.example"}"#,
            None,
        );
    }
}
