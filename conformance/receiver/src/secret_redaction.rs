//! [`SecretRedaction`]: redacts known secrets in output and files.

use conformance_model::raw_bytes::RawBytes;
use conformance_model::secret::{Redactor, Secret};

use super::received_request::ReceivedRequest;

const REPLACEMENT: &str = "<secret>";
/// The prefix of every secret. It is not redacted.
const PREFIX: &str = "whsec_";

/// Redacts secrets in text and in requests, in any encoding.
#[derive(Clone)]
pub struct SecretRedaction(Redactor);

impl SecretRedaction {
    /// Creates a redaction of these secrets. Secrets of fewer than 8 characters after the prefix are not redacted.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> SecretRedaction {
        let without_prefix = |secret: &'a Secret| {
            let secret = secret.expose().trim();
            secret.strip_prefix(PREFIX).unwrap_or(secret)
        };
        let secrets = secrets.into_iter().map(without_prefix);
        SecretRedaction(Redactor::for_whole_secrets(secrets, REPLACEMENT))
    }

    /// Returns the text without secrets.
    pub fn redact(&self, text: &str) -> String {
        self.0.redact(text)
    }

    /// Returns the request without secrets. A request that contained one cannot be judged again, because its bytes
    /// changed.
    pub fn redact_request(&self, received: &ReceivedRequest) -> ReceivedRequest {
        ReceivedRequest {
            at: received.at,
            method: self.redact(&received.method),
            path: self.redact(&received.path),
            headers: received
                .headers
                .iter()
                .map(|(name, value)| (self.redact(name), self.redact_bytes(value)))
                .collect(),
            body: self.redact_bytes(&received.body),
        }
    }

    fn redact_bytes(&self, bytes: &RawBytes) -> RawBytes {
        RawBytes(self.0.redact_bytes(&bytes.0))
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
        assert_eq!(redaction.redact_bytes(&text.as_bytes().into()), expected.as_bytes().into());
    }

    #[test]
    fn a_secret_is_redacted_with_and_without_its_prefix() {
        check("a whsec_0123456789abcdef b", "a whsec_<secret> b");
        check("a 0123456789abcdef b 0123456789abcdef", "a <secret> b <secret>");
    }

    #[test]
    fn text_without_secrets_is_unchanged() {
        check("short whsec_0123", "short whsec_0123");
    }
}
