//! The content coding of a response body.

use std::io::Read;

use flate2::read::MultiGzDecoder;

/// The headers that describe an encoded body.
const CODING_HEADERS: [&str; 2] = ["content-encoding", "content-length"];

/// The header fields of a response, names in lower case.
type Headers = Vec<(String, String)>;

/// Decodes a body whose only content coding is gzip, and removes the headers that described the encoded one. Returns other
/// bodies as they are, and those that cannot be decoded: the headers and the bytes show the fault. `bytes_max`: the largest
/// decoded body.
pub(super) fn decode(mut headers: Headers, body: Vec<u8>, bytes_max: usize) -> (Headers, Vec<u8>) {
    let codings: Vec<_> = headers
        .iter()
        .filter(|(name, _)| name == "content-encoding")
        .map(|(_, value)| value.trim())
        .collect();
    let [coding] = codings[..] else { return (headers, body) };
    if !["gzip", "x-gzip"].iter().any(|known| coding.eq_ignore_ascii_case(known)) {
        return (headers, body);
    }
    match decompress(&body, bytes_max) {
        Some(decoded) => {
            headers.retain(|(name, _)| !CODING_HEADERS.contains(&name.as_str()));
            (headers, decoded)
        }
        None => (headers, body),
    }
}

/// Returns the decompressed bytes; `None` if the input is empty, not gzip or incomplete, or if they are too many.
fn decompress(bytes: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    // One more byte shows that there are too many.
    let mut reader = MultiGzDecoder::new(bytes).take(bytes_max as u64 + 1);
    reader.read_to_end(&mut decoded).ok().filter(|_| !bytes.is_empty() && decoded.len() <= bytes_max)?;
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    const BODY: &[u8] = b"{\"data\":[]}";

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("a write to memory succeeds");
        encoder.finish().expect("a write to memory succeeds")
    }

    /// Checks the decoded body of a response with these values of `Content-Encoding`; `None` if it is not decoded.
    #[track_caller]
    fn check(codings: &[&str], body: &[u8], expected: Option<&[u8]>) {
        let mut headers = vec![("content-length".to_owned(), body.len().to_string())];
        headers.extend(codings.iter().map(|coding| ("content-encoding".to_owned(), (*coding).to_owned())));
        let (left, decoded) = decode(headers.clone(), body.to_vec(), 100);
        assert_eq!(decoded, expected.unwrap_or(body), "{codings:?}");
        assert_eq!(left.len(), if expected.is_some() { 0 } else { headers.len() }, "{codings:?}");
    }

    #[test]
    fn a_gzip_body_is_decoded() {
        check(&["gzip"], &gzip(BODY), Some(BODY));
        check(&[" X-GZIP"], &[gzip(BODY), gzip(b" ")].concat(), Some(b"{\"data\":[]} "));
    }

    #[test]
    fn other_bodies_are_unchanged() {
        check(&[], &gzip(BODY), None);
        check(&["identity"], BODY, None);
        check(&["br"], &gzip(BODY), None);
        check(&["gzip", "gzip"], &gzip(BODY), None);
        // The header is wrong, or the body is empty, incomplete or too large.
        check(&["gzip"], BODY, None);
        check(&["gzip"], b"", None);
        check(&["gzip"], &gzip(BODY)[..12], None);
        check(&["gzip"], &gzip(&[b'0'; 101]), None);
    }
}
