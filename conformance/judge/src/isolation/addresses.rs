//! Deposit addresses of charges in both modes.
//!
//! The specification does not name the field, so every member of a charge counts whose name contains `address` and whose
//! value has the form of an address on a chain. An e-mail or IP address has not.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::needs_both_modes;
use crate::evidence::pages;

/// The length of the shortest address that any chain uses.
const LENGTH_MIN: usize = 20;

/// A charge that shows an address.
struct Shown {
    mode: Mode,
    number: u32,
    code: String,
}

/// Judges that no deposit address is shown in both modes.
pub(super) fn deposit_addresses(recording: &Recording) -> CheckResult {
    let views = pages(recording);
    let mut addresses: BTreeMap<&str, Shown> = BTreeMap::new();
    let mut modes = Vec::new();
    for view in &views {
        let charges = view.rows().iter().filter_map(|row| match view.request.list {
            List::Charges => Some(row),
            List::Events => row.get("charge"),
            List::Invoices => None,
        });
        for charge in charges.filter(|charge| charge.is_object()) {
            modes.push(view.mode);
            let code = text_at(charge, &["code"]).unwrap_or("without a code");
            for address in addresses_of(charge) {
                let shown = Shown { mode: view.mode, number: view.number(), code: code.to_owned() };
                let other = addresses.entry(address).or_insert(shown);
                // A charge that is listed in both modes is judged by isolation.lists.
                if other.mode != view.mode && other.code != code {
                    return Err(CheckError::broken(
                        view.number(),
                        format!(
                            "other addresses in {} mode than in {} mode",
                            view.mode.as_str(),
                            other.mode.as_str()
                        ),
                        format!(
                            "{address} at {code}, and in {} mode at {} (exchange {})",
                            other.mode.as_str(),
                            other.code,
                            other.number
                        ),
                    ));
                }
            }
        }
    }
    if !Mode::BOTH.into_iter().all(|mode| modes.contains(&mode)) {
        return Err(needs_both_modes("a charge"));
    }
    let is_shown = |mode| addresses.values().any(|shown| shown.mode == mode);
    if Mode::BOTH.into_iter().all(is_shown) {
        return Ok(CheckOutcome::Holds);
    }
    Err(CheckError::Inapplicable("charges of both modes show no member named as an address".into()))
}

fn addresses_of(charge: &Value) -> impl Iterator<Item = &str> {
    let members = charge.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| {
        let text = value.as_str().filter(|_| name.to_ascii_lowercase().contains("address"))?;
        // The prefix of a CashAddr address ends with a colon; an IPv6 address has several.
        let is_address = text.len() >= LENGTH_MIN
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
            && text.bytes().filter(|byte| *byte == b':').count() <= 1;
        is_address.then_some(text)
    })
}
