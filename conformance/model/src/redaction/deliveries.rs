//! Redacts personal values in deliveries. Headers that a statement needs stay.

use std::collections::BTreeSet;

use super::{Redaction, is_plain};
use crate::deliveries::Deliveries;
use crate::octets::Octets;

/// Header fields of a request that say nothing about a person.
const PLAIN: &[&str] = &["accept", "accept-encoding", "user-agent"];
/// Follows no character of UTF-8.
const NO_TEXT: u8 = 0xff;

impl Redaction {
    pub(super) fn redact_deliveries(&self, deliveries: &mut Deliveries, ids: &BTreeSet<String>) {
        let own = format!("{}-", deliveries.header_prefix).to_ascii_lowercase();
        for delivery in &mut deliveries.caught {
            let (path, query) = delivery.path.split_once('?').unwrap_or((&delivery.path, ""));
            if !query.is_empty() {
                delivery.path = format!("{path}?{}", self.0.text(query));
            }
            for (name, value) in &mut delivery.headers {
                let name = name.to_ascii_lowercase();
                if !(is_plain(&name) || PLAIN.contains(&name.as_str()) || name.starts_with(&own)) {
                    *value = Octets(self.hide_around(&value.lossy(), ids).into_bytes());
                }
            }
            delivery.body = self.hidden_body(&delivery.body, ids);
        }
    }

    fn hidden_body(&self, body: &Octets, ids: &BTreeSet<String>) -> Octets {
        match std::str::from_utf8(&body.0) {
            Ok(text) => Octets(self.body(text, ids).into_bytes()),
            // What was no text must not become some: it would be read as JSON.
            Err(_) => {
                let mut hidden = self.hide_around(&body.lossy(), ids).into_bytes();
                hidden.push(NO_TEXT);
                Octets(hidden)
            }
        }
    }
}
