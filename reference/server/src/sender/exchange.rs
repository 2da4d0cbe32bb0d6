//! One request and one response on a new connection.

use std::{error::Error, pin::pin, time::Duration};

use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use reference_core::outbox::AttemptResult;
use reference_wire::AttemptRequest;
use tokio::time::timeout;

use super::{
    PartialReport,
    connector::Connection,
    head_limit::{HEAD_BYTES_MAX, LimitedHead},
};

/// The maximum bytes of a response body that are read before the connection is dropped.
const BODY_BYTES_MAX: usize = 64 * 1_024;
/// The maximum bytes of a response body that are stored in the log.
const EXCERPT_BYTES: usize = 2 * 1_024;
/// The maximum number of response headers that are stored.
const HEADERS_MAX: usize = 64;
/// The maximum bytes of each stored header value.
const HEADER_VALUE_BYTES_MAX: usize = 512;
/// The maximum time for an orderly shutdown of a connection.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Sends the request and reads the response. Updates `report` at every step, because the caller may cancel this future at
/// any time.
pub(super) async fn exchange(
    connection: Box<dyn Connection>,
    attempt: &AttemptRequest,
    headers: &[(String, String)],
    report: &mut PartialReport,
) -> Result<(), AttemptResult> {
    let unreachable = |error: &dyn Error| AttemptResult::Unreachable(with_causes(error));
    let mut request = Request::builder().method(Method::POST).uri(attempt.url.path_and_query());
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(attempt.body.clone())).map_err(|error| unreachable(&error))?;
    let (connection, limit) = LimitedHead::new(connection);
    let (mut sender, connection) = http1::Builder::new()
        .title_case_headers(true)
        .max_buf_size(HEAD_BYTES_MAX)
        .handshake(TokioIo::new(connection))
        .await
        .map_err(|error| unreachable(&error))?;
    let mut connection = pin!(connection);
    let mut exchange = pin!(async move {
        let response = sender.send_request(request).await.map_err(|error| unreachable(&error))?;
        limit.lift();
        report.status = Some(response.status().as_u16());
        report.trace.response_headers = stored_headers(response.headers());
        Ok(read_body(response.into_body(), &mut report.trace.response_body).await)
    });
    let result = tokio::select! {
        biased;
        result = &mut exchange => result,
        // An error of the connection also ends the exchange, which returns it.
        _ = &mut connection => return exchange.await.map(|_| ()),
    };
    if result? == BodyRead::Complete {
        // After an orderly shutdown the receiver need not log a broken connection.
        let _ = timeout(SHUTDOWN_TIMEOUT, connection).await;
    }
    Ok(())
}

/// Returns the error with its causes: hyper's own text omits the operating system's.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[derive(PartialEq, Eq)]
enum BodyRead {
    Complete,
    /// The body was truncated or exceeds the limit.
    Partial,
}

/// Reads a body up to the limit and stores its start.
async fn read_body(mut body: Incoming, excerpt_text: &mut String) -> BodyRead {
    let mut excerpt = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return BodyRead::Partial };
        let Some(data) = frame.data_ref() else { continue };
        if excerpt.len() < EXCERPT_BYTES {
            excerpt.extend_from_slice(&data[..data.len().min(EXCERPT_BYTES - excerpt.len())]);
            *excerpt_text = text_of(&excerpt);
        }
        length += data.len();
        if length >= BODY_BYTES_MAX {
            return BodyRead::Partial;
        }
    }
    BodyRead::Complete
}

/// Returns the bytes as text, without an incomplete character at the end.
fn text_of(bytes: &[u8]) -> String {
    let complete = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    };
    String::from_utf8_lossy(complete).into_owned()
}

fn stored_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let bounded = |value: &[u8]| text_of(&value[..value.len().min(HEADER_VALUE_BYTES_MAX)]);
    headers
        .iter()
        .take(HEADERS_MAX)
        .map(|(name, value)| (name.to_string(), bounded(value.as_bytes())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &str) {
        assert_eq!(text_of(bytes), expected);
    }

    #[test]
    fn an_error_is_reported_with_its_causes() {
        #[derive(Debug)]
        struct Outer(std::io::Error);
        impl std::fmt::Display for Outer {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("connection error")
            }
        }
        impl Error for Outer {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let error = Outer(std::io::Error::other("too many open files"));
        assert_eq!(with_causes(&error), "connection error: too many open files");
    }

    #[test]
    fn an_excerpt_is_valid_text_for_any_bytes() {
        check(b"ok", "ok");
        check(b"a\xe2\x82", "a");
        check(b"a\xffb", "a\u{fffd}b");
        check(b"a\xffb\xe2\x82", "a\u{fffd}b\u{fffd}");
    }
}
