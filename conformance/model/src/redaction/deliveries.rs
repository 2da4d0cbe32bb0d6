//! Redacts personal values in deliveries. Header fields that a statement needs are unchanged.

use std::collections::BTreeSet;

use super::{Redaction, is_public_header};
use crate::deliveries::Deliveries;
use crate::raw_bytes::RawBytes;

/// The names of header fields of a request that contain no personal data.
const PUBLIC_REQUEST_HEADERS: &[&str] = &["accept", "accept-encoding", "user-agent"];
/// A byte that never occurs in UTF-8.
const INVALID_UTF8: u8 = 0xff;

impl Redaction {
    pub(super) fn redact_deliveries(&self, deliveries: &mut Deliveries, ids: &BTreeSet<String>) {
        let webhook_prefix = format!("{}-", deliveries.header_prefix).to_ascii_lowercase();
        for delivery in &mut deliveries.received {
            let (path, query) = delivery.path.split_once('?').unwrap_or((&delivery.path, ""));
            if !query.is_empty() {
                delivery.path = format!("{path}?{}", self.0.encrypt_text(query));
            }
            for (name, value) in &mut delivery.headers {
                let name = name.to_ascii_lowercase();
                if !(is_public_header(&name)
                    || PUBLIC_REQUEST_HEADERS.contains(&name.as_str())
                    || name.starts_with(&webhook_prefix))
                {
                    *value = RawBytes(self.hide_except_ids(&value.to_string_lossy(), ids).into_bytes());
                }
            }
            delivery.body = self.redact_raw_body(&delivery.body, ids).into();
        }
    }

    fn redact_raw_body(&self, body: &RawBytes, ids: &BTreeSet<String>) -> RawBytes {
        match std::str::from_utf8(&body.0) {
            Ok(text) => RawBytes(self.redact_body(text, ids).into_bytes()),
            // Invalid UTF-8 must not become valid, or the body could be read as JSON.
            Err(_) => {
                let mut hidden = self.hide_except_ids(&body.to_string_lossy(), ids).into_bytes();
                hidden.push(INVALID_UTF8);
                RawBytes(hidden)
            }
        }
    }
}
