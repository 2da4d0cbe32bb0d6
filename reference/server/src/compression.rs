//! Compression of responses without secrets.
//!
//! Only `/docs`, `/openapi.json` and the assets are compressed. Pages with forms contain a token and text from the
//! request, so the length of a compressed page would reveal the token (BREACH).

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY},
};

use crate::response::{HttpResponse, ResponseBody};

/// The smallest body that is compressed; smaller ones fit into one packet.
const BODY_BYTES_MIN: usize = 1_024;

/// Compresses the body with gzip if the client accepts it.
pub(crate) fn compress(mut response: HttpResponse, request_headers: &HeaderMap) -> HttpResponse {
    response.headers_mut().append(VARY, HeaderValue::from_static("Accept-Encoding"));
    let ResponseBody::Complete(body) = response.body_mut() else { return response };
    if body.len() < BODY_BYTES_MIN || !accepts_gzip(request_headers) {
        return response;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    // Writing to a vector does not fail.
    let Ok(compressed) = encoder.write_all(body).and_then(|()| encoder.finish()) else { return response };
    *body = compressed.into();
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response
}

/// Returns `true` if `Accept-Encoding` lists gzip, or `*`, with a weight above 0.
fn accepts_gzip(request_headers: &HeaderMap) -> bool {
    let values = request_headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    let listed: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    let is_accepted = |coding: &str| {
        listed.iter().find_map(|entry| {
            let (name, parameters) = entry.split_once(';').unwrap_or((entry, ""));
            let weight = parameters.trim().strip_prefix("q=").unwrap_or("1");
            name.trim()
                .eq_ignore_ascii_case(coding)
                // A weight such as `0.5` is above 0 if any of its digits is.
                .then(|| weight.bytes().any(|byte| (b'1'..=b'9').contains(&byte)))
        })
    };
    is_accepted("gzip").or_else(|| is_accepted("*")).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;
    use http::{StatusCode, header::CONTENT_TYPE};

    use super::*;
    use crate::response;

    #[track_caller]
    fn check(accept_encoding: &str, body: &str, is_compressed: bool) {
        let mut request = HeaderMap::new();
        request.insert(
            ACCEPT_ENCODING,
            HeaderValue::from_str(accept_encoding).expect("headers in tests are valid"),
        );
        let response = compress(response::json(StatusCode::OK, body.to_owned()), &request);
        assert_eq!(response.headers().contains_key(CONTENT_ENCODING), is_compressed, "{accept_encoding}");
        assert_eq!(response.headers()[VARY], "Accept-Encoding");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
        let ResponseBody::Complete(received) = response.into_body() else {
            panic!("the response is not a stream")
        };
        let mut text = String::new();
        if is_compressed {
            assert!(received.len() < body.len());
            GzDecoder::new(&received[..]).read_to_string(&mut text).expect("the body is gzip");
        } else {
            text.push_str(std::str::from_utf8(&received).expect("the body is UTF-8"));
        }
        assert_eq!(text, body);
    }

    #[test]
    fn only_clients_that_accept_gzip_get_gzip() {
        let long = "long ".repeat(1_000);
        for accepted in ["gzip", "gzip, deflate, br", "br;q=1.0, GZIP;q=0.5", "*", "deflate, *;q=0.001"] {
            check(accepted, &long, true);
        }
        for accepted in ["", "identity", "br", "gzip;q=0", "gzip;q=0.0, *", "*;q=0", "xgzip"] {
            check(accepted, &long, false);
        }
        check("gzip", "short", false);
    }
}
