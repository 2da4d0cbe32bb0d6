//! Header fields that proxies, caches and load balancers add to responses.

use crate::recording::ReceivedResponse;

/// Header fields about the connection, the route of a response, or the time.
const INFRASTRUCTURE_NAMES: [&str; 21] = [
    "age",
    "alt-svc",
    "cf-ray",
    "connection",
    "date",
    "forwarded",
    "keep-alive",
    "nel",
    "report-to",
    "reporting-endpoints",
    "server",
    "server-timing",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-timer",
    "x-varnish",
];

/// Parts of the names of header fields that carry request ids, quotas, host names, durations or the state of a cache.
const NAME_PARTS: [&str; 32] = [
    "amz-",
    "amzn-",
    "backend",
    "b3-",
    "cache-",
    "cluster",
    "correlation",
    "dyno",
    "edge",
    "envoy",
    "hostname",
    "instance",
    "kong-",
    "latency",
    "machine",
    "node",
    "pod",
    "proxy-",
    "ratelimit",
    "rate-limit",
    "region",
    "replica",
    "requestid",
    "request-id",
    "response-time",
    "runtime",
    "served-by",
    "server-id",
    "span",
    "trace",
    "upstream",
    "worker",
];

/// Returns `true` if a header field, by its name in lower case, does not depend on the requested object.
pub fn is_infrastructure(name: &str) -> bool {
    // Its name contains `cache-`, but the service sets it.
    let is_set_by_service = name == "cache-control";
    !is_set_by_service
        && (INFRASTRUCTURE_NAMES.contains(&name)
            || name == "x-cache"
            || name.ends_with("-cache")
            || NAME_PARTS.iter().any(|part| name.contains(part)))
}

/// Returns a header field, as `name: value`, that proves that a cache served the response; `None` if there is none.
pub fn cache_evidence(response: &ReceivedResponse) -> Option<String> {
    let age = response.header("age").filter(|value| value.trim().parse::<u64>().is_ok_and(|age| age > 0));
    if let Some(age) = age {
        return Some(format!("Age: {age}"));
    }
    // On a hit, Varnish also lists the request that filled its cache.
    let filled_by = response.header("x-varnish").filter(|value| value.split_whitespace().count() > 1);
    if let Some(ids) = filled_by {
        return Some(format!("X-Varnish: {ids}"));
    }
    ["x-cache", "cf-cache-status", "x-cache-status", "cache-status"].into_iter().find_map(|name| {
        let value = response.header(name)?;
        let is_hit = value
            .split(|character: char| !character.is_ascii_alphabetic())
            .any(|word| word.eq_ignore_ascii_case("hit"));
        is_hit.then(|| format!("{name}: {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::is_infrastructure;

    #[track_caller]
    fn check(names: &[&str], expected: bool) {
        for name in names {
            assert_eq!(is_infrastructure(name), expected, "{name}");
        }
    }

    #[test]
    fn header_fields_of_gateways_are_infrastructure() {
        check(&["connection", "keep-alive", "proxy-connection", "date", "age", "via", "server-timing"], true);
        check(&["x-request-id", "x-amzn-requestid", "x-correlation-id", "x-b3-traceid", "traceparent"], true);
        check(&["x-ratelimit-remaining", "ratelimit", "x-rate-limit-reset", "ratelimit-policy"], true);
        check(&["x-served-by", "x-backend-server", "x-pod-name", "x-upstream-addr", "x-cache-hits"], true);
    }

    #[test]
    fn header_fields_of_the_service_are_not_infrastructure() {
        check(
            &["content-type", "content-length", "etag", "cache-control", "vary", "x-mode", "set-cookie"],
            false,
        );
        check(&["last-modified", "location", "www-authenticate", "x-reason", "x-resource-id"], false);
    }
}
