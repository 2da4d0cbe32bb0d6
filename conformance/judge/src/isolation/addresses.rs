//! Deposit addresses of charges in both modes.
//!
//! The specification does not name the field. A member of a charge counts if its name contains
//! `address` and its value has the format of an address on a chain, not of an e-mail or IP address.

use std::collections::BTreeMap;

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::text_at;
use conformance_model::recording::{List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::needs_both_modes;
use crate::evidence::{PageView, readable_pages};

/// The minimum length of a chain address.
const ADDRESS_LEN_MIN: usize = 20;

/// A charge that shows an address.
struct AddressUse<'a> {
    mode: Mode,
    /// The number of the exchange.
    number: u32,
    code: &'a str,
}

/// Judges that no live charge and test charge with different codes have the same deposit address.
pub(super) fn judge_deposit_addresses(recording: &Recording) -> CheckResult {
    let views = readable_pages(recording);
    let mut addresses: BTreeMap<&str, AddressUse<'_>> = BTreeMap::new();
    for view in &views {
        for charge in charges(view) {
            let code = text_at(charge, &["code"]).unwrap_or("without a code");
            for address in addresses_of(charge) {
                let address_use = AddressUse { mode: view.mode, number: view.number(), code };
                let other = addresses.entry(address).or_insert(address_use);
                // A charge that is listed in both modes is judged by isolation.lists.
                if other.mode != view.mode && other.code != code {
                    return Err(CheckError::violation(
                        view.number(),
                        format!(
                            "different addresses in {} mode and in {} mode",
                            view.mode.as_str(),
                            other.mode.as_str()
                        ),
                        format!(
                            "{address} of charge {code}, and in {} mode of charge {} (exchange {})",
                            other.mode.as_str(),
                            other.code,
                            other.number
                        ),
                    ));
                }
            }
        }
    }
    let has_charge = |mode| views.iter().any(|view| view.mode == mode && charges(view).next().is_some());
    if !Mode::BOTH.into_iter().all(has_charge) {
        return Err(needs_both_modes("a charge"));
    }
    let is_shown = |mode| addresses.values().any(|address_use| address_use.mode == mode);
    if Mode::BOTH.into_iter().all(is_shown) {
        return Ok(CheckOutcome::Holds);
    }
    Err(CheckError::Inapplicable("the charges of at least one mode show no deposit address".into()))
}

/// Returns the charges of a page: its rows, or those of its events.
fn charges<'a>(view: &'a PageView<'_>) -> impl Iterator<Item = &'a Value> {
    let charges = view.rows().iter().filter_map(|row| match view.request.list {
        List::Charges => Some(row),
        List::Events => row.get("charge"),
        List::Invoices => None,
    });
    charges.filter(|charge| charge.is_object())
}

fn addresses_of(charge: &Value) -> impl Iterator<Item = &str> {
    let members = charge.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| {
        let text = value.as_str().filter(|_| name.to_ascii_lowercase().contains("address"))?;
        // The prefix of a CashAddr address ends with a colon; an IPv6 address has several.
        let is_address = text.len() >= ADDRESS_LEN_MIN
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':')
            && text.bytes().filter(|byte| *byte == b':').count() <= 1;
        is_address.then_some(text)
    })
}
