//! The redaction of known secrets in output and files.

use conformance_model::raw_bytes::RawBytes;
use conformance_model::secret::{Redactor, Secret};

use super::received_request::ReceivedRequest;

const REPLACEMENT: &str = "<secret>";
/// The prefix of every secret.
const PREFIX: &str = "whsec_";

/// Redacts secrets in a request, in any encoding.
#[derive(Clone)]
pub struct SecretRedaction(Redactor);

impl SecretRedaction {
    /// Creates a redaction of these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> SecretRedaction {
        let tail = |secret: &'a Secret| {
            let whole = secret.expose().trim();
            whole.strip_prefix(PREFIX).unwrap_or(whole)
        };
        SecretRedaction(Redactor::for_whole_secrets(secrets.into_iter().map(tail), REPLACEMENT))
    }

    /// Returns the text without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.0.redact(text)
    }

    /// Returns the request without secrets. A request that contained one cannot be judged again: its bytes changed.
    pub fn redact_request(&self, received: &ReceivedRequest) -> ReceivedRequest {
        ReceivedRequest {
            at: received.at,
            method: self.redact(&received.method),
            path: self.redact(&received.path),
            headers: received
                .headers
                .iter()
                .map(|(name, value)| (self.redact(name), self.redact_body(value)))
                .collect(),
            body: self.redact_body(&received.body),
        }
    }

    fn redact_body(&self, body: &RawBytes) -> RawBytes {
        RawBytes(self.0.redact_bytes(&body.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redaction =
            SecretRedaction::new([&Secret::new("whsec_0123456789abcdef "), &Secret::new("short")]);
        assert_eq!(redaction.redact(text), expected);
        assert_eq!(redaction.redact_body(&text.as_bytes().into()), expected.as_bytes().into());
    }

    #[test]
    fn a_secret_is_redacted_with_and_without_its_prefix() {
        check("a whsec_0123456789abcdef b", "a whsec_<secret> b");
        check("a 0123456789abcdef b 0123456789abcdef", "a <secret> b <secret>");
    }

    #[test]
    fn other_text_stays() {
        check("short whsec_0123", "short whsec_0123");
    }
}
