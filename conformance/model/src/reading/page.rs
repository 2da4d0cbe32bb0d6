//! A page of a list, and the identifiers in its rows.

use serde_json::{Map, Value};

use crate::recording::{Exchange, List, PageRequest, Purpose, Step};

/// The JSON body of a list response with status 200. Its members may still be missing or of another type.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a>(&'a Value);

impl<'a> Page<'a> {
    /// Returns the page of a response with status 200 and a JSON body.
    pub fn from_exchange(exchange: &'a Exchange) -> Option<Page<'a>> {
        exchange.response().filter(|response| response.status == 200)?.body.json().map(Page)
    }

    /// Returns the body, if it is an object.
    pub fn object(self) -> Option<&'a Map<String, Value>> {
        self.0.as_object()
    }

    /// Returns the rows: the items of the array `data`, one for each record.
    pub fn rows(self) -> Option<&'a [Value]> {
        self.0.get("data")?.as_array().map(Vec::as_slice)
    }

    /// Returns the object `links`.
    pub fn links(self) -> Option<&'a Map<String, Value>> {
        self.0.get("links")?.as_object()
    }

    /// Returns a number of `meta`; `None` if it is missing or not an unsigned integer.
    pub fn meta_number(self, name: &str) -> Option<u64> {
        self.0.get("meta")?.get(name)?.as_u64()
    }

    /// Returns the address of a link; `None` if it is null or missing.
    pub fn link(self, rel: &str) -> Option<&'a str> {
        self.links()?.get(rel)?.as_str()
    }
}

/// The query parameters of the lists that the specification defines.
const SPECIFIED_PARAMETERS: [&str; 7] =
    ["page", "per_page", "status", "payment_link", "type", "charge", "invoice"];

/// Returns the query of a link, and `true` if it has only parameters of the specification. The target of such a
/// link is known, so it need not be followed.
pub fn link_query(link: &str) -> (Vec<(String, String)>, bool) {
    let query =
        link.split('#').next().and_then(|address| address.split_once('?')).map_or("", |(_, query)| query);
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let has_only_specified = pairs.iter().all(|(name, _)| SPECIFIED_PARAMETERS.contains(&name.as_str()));
    (pairs, has_only_specified)
}

/// Returns the request of a page of a list. `None` if an exchange requested something else, or a page by a link while
/// records were created.
pub fn page_request(exchange: &Exchange) -> Option<PageRequest> {
    match &exchange.purpose {
        Purpose::Page(request) => return Some(request.clone()),
        // The target is the link, whose parameters may be the service's own. Below, they would be filters.
        Purpose::DuringInserts { step: Step::ByLink { .. } | Step::FilteredByLink, .. } => return None,
        Purpose::Burst(_)
        | Purpose::DuringInserts { .. }
        | Purpose::BeforeDeliveries
        | Purpose::AfterDeliveries
        | Purpose::ListAfterDeliveries(_) => {}
        _ => return None,
    }
    request_of_target(&exchange.target)
}

/// Returns the request of a page of a list by its path and query. `None` if the path is that of no list.
pub fn request_of_target(target: &str) -> Option<PageRequest> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let list = List::ALL.into_iter().find(|list| path.ends_with(list.path()))?;
    let mut request = PageRequest { list, filters: Vec::new(), page: None, per_page: None, link: None };
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()).into_owned() {
        match name.as_str() {
            "page" => request.page = Some(value.parse().ok()?),
            "per_page" => request.per_page = Some(value.parse().ok()?),
            _ => request.filters.push((name, value)),
        }
    }
    Some(request)
}

/// Returns the id or code of a row, or its JSON text if it has neither.
pub fn id_or_json(row: &Value) -> String {
    id_or_code(row).unwrap_or_else(|| row.to_string())
}

/// Returns the id or code of a row. `None` if it has neither, because its JSON may be the same as that of another record.
pub fn id_or_code(row: &Value) -> Option<String> {
    ["id", "code"].iter().find_map(|name| match row.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Returns the codes of the charges in the invoice of an event.
pub fn event_charge_codes(event: &Value) -> Option<Vec<&str>> {
    invoice_charge_codes(event.get("invoice")?)
}

/// Returns the codes of an invoice's charges, which may be objects or codes. `None` if one of them has no code.
pub fn invoice_charge_codes(invoice: &Value) -> Option<Vec<&str>> {
    let charges = invoice.get("charges")?.as_array()?;
    charges.iter().map(|charge| charge.as_str().or_else(|| text_at(charge, &["code"]))).collect()
}

/// Returns `true` if the invoice of an event lists that charge.
pub fn lists_charge(event: &Value, charge: &str) -> bool {
    event_charge_codes(event).is_some_and(|codes| codes.contains(&charge))
}

/// Returns `true` if the charge of an event names that invoice.
pub fn names_invoice(event: &Value, invoice: &str) -> bool {
    let has_invoice_at = |path: &[&str]| text_at(event, path) == Some(invoice);
    has_invoice_at(&["charge", "invoice"]) || has_invoice_at(&["charge", "invoice", "code"])
}

/// Returns the string at a path of member names.
pub fn text_at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(value, |value, name| value.get(name))?.as_str()
}

/// Returns an identifier of the same format, which is very probably unused. The last 12 digits of a UUID are replaced
/// by random ones. In other identifiers, each ASCII letter or digit after the last `_` or `-` is replaced by a random one
/// of the same class. Another format would test a validator instead of the isolation of the modes.
pub fn unused_id_like(id: &str, seed: u64) -> String {
    const UUID_LEN: usize = 36;
    const UUID_NODE_LEN: usize = 12;
    let is_uuid = id.len() == UUID_LEN && id.bytes().filter(|byte| *byte == b'-').count() == 4;
    let prefix_len =
        if is_uuid { UUID_LEN - UUID_NODE_LEN } else { id.rfind(['_', '-']).map_or(0, |at| at + 1) };
    let mut state = seed;
    let mut unused = String::with_capacity(id.len());
    for (index, character) in id.char_indices() {
        let class: &[u8] = match character {
            _ if index < prefix_len => b"",
            '0'..='9' | 'a'..='f' if is_uuid => b"0123456789abcdef",
            'A'..='F' if is_uuid => b"0123456789ABCDEF",
            '0'..='9' => b"0123456789",
            'a'..='z' => b"abcdefghijklmnopqrstuvwxyz",
            'A'..='Z' => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            _ => b"",
        };
        match class.len() as u64 {
            0 => unused.push(character),
            size => unused.push(char::from(class[(next_random(&mut state) % size) as usize])),
        }
    }
    unused
}

/// Returns the next number of SplitMix64, which is deterministic for a seed.
pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_unused_id(id: &str, prefix: &str) {
        let unused = unused_id_like(id, 7);
        assert_ne!(unused, id);
        assert!(unused.starts_with(prefix), "{unused}");
        let class = |character: char| {
            (character.is_ascii_digit(), character.is_ascii_lowercase(), character.is_ascii_uppercase())
        };
        // In a UUID, a hexadecimal digit may become a letter.
        let is_uuid = id.len() == 36;
        if !is_uuid {
            assert!(id.chars().zip(unused.chars()).all(|(a, b)| class(a) == class(b)), "{unused}");
        }
        assert_eq!(unused.len(), id.len());
        assert_eq!(unused, unused_id_like(id, 7), "equal seeds make equal ids");
        assert_ne!(unused, unused_id_like(id, 8), "different seeds make different ids");
    }

    #[test]
    fn an_unused_id_has_the_same_format() {
        check_unused_id("0190a5c4-7f3e-7abc-8def-0123456789ab", "0190a5c4-7f3e-7abc-8def-");
        check_unused_id("k3m9x2q7w1ab", "");
        check_unused_id("ch_9XyZ04aaQQ", "ch_");
    }
}
