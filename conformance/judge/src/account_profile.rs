//! The facts that an account must state: its kind, public profile, default currency and payment tolerances.
//!
//! The specification leaves the names and formats of these fields open. A fact counts as missing only if no member of
//! the response could state it, neither by its name nor by its value.

use serde_json::Value;

use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::recording::{Caller, Exchange, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::missing_response;

/// A fact about an account, and the members that may state it.
struct AccountFact {
    name: &'static str,
    /// The parts of the names of members that state it by any value other than null or an empty one.
    names: &'static [&'static str],
    /// The parts of the names of members that state it by any value, also by null.
    optional_names: &'static [&'static str],
    /// Returns `true` if a value could state it under any name.
    is_possible_value: fn(&Value) -> bool,
}

const FACTS: [AccountFact; 4] = [
    AccountFact {
        name: "the kind of the account, personal or organization",
        names: &["type", "kind", "class", "category"],
        optional_names: &["personal", "organi", "individual", "business", "company", "entity", "team"],
        is_possible_value: |value| {
            let text = value.as_str().unwrap_or_default().to_ascii_lowercase();
            ["personal", "organi", "individual", "business", "company"].iter().any(|part| text.contains(part))
        },
    },
    AccountFact {
        name: "the public profile of the account",
        names: &[],
        optional_names: &[
            "name", "logo", "site", "url", "mail", "support", "color", "colour", "brand", "profile",
        ],
        is_possible_value: |_| false,
    },
    AccountFact {
        name: "the default currency of the account",
        names: &["currency", "fiat"],
        optional_names: &[],
        is_possible_value: |value| value.as_str().is_some_and(is_currency_code),
    },
    AccountFact {
        name: "the payment tolerances of the account",
        names: &[
            "toleran",
            "underpa",
            "overpa",
            "threshold",
            "shortfall",
            "deviation",
            "margin",
            "slack",
            "allowance",
        ],
        optional_names: &[],
        is_possible_value: |value| value.is_number() || value.as_str().is_some_and(is_short_number),
    },
];

/// The members of `meta` that state none of these facts.
const OTHER_MEMBERS: [&str; 2] = ["mode", "accepted_assets"];

/// Judges every account that the live or the test key read.
pub(super) fn judge_profile(recording: &Recording) -> CheckResult {
    let is_account = |exchange: &&Exchange| {
        matches!(exchange.caller, Caller::Own(_))
            && exchange.target.ends_with(ACCOUNT_PATH)
            && exchange.method() == "GET"
            && exchange.status() == Some(200)
    };
    let mut judged = false;
    for exchange in recording.exchanges.iter().filter(is_account) {
        let body = exchange.response().and_then(|response| response.body.json());
        let Some(body) = body.filter(|body| body.is_object()) else { continue };
        judged = true;
        let Some(missing) = FACTS.iter().find(|fact| !states(&body, fact)) else { continue };
        if !recording.exact_amounts {
            return Err(CheckError::unjudged(
                format!("no member is named like {}, and the values are not recorded", missing.name),
                "check again without --privacy",
            ));
        }
        return Err(CheckError::violation(exchange.number, missing.name, exchange.summary()));
    }
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(missing_response(recording.account_exchange(Mode::Test), "the account"))
    }
}

/// Returns `true` if a member at any depth may state a fact.
fn states(value: &Value, fact: &AccountFact) -> bool {
    let is_named = |name: &str, parts: &[&str]| {
        let name = name.to_ascii_lowercase();
        parts.iter().any(|part| name.contains(part))
    };
    match value {
        Value::Object(members) => {
            let relevant = members.iter().filter(|(name, _)| !OTHER_MEMBERS.contains(&name.as_str()));
            relevant.into_iter().any(|(name, member)| {
                is_named(name, fact.optional_names)
                    || is_named(name, fact.names) && !is_empty(member)
                    || states(member, fact)
            })
        }
        Value::Array(items) => items.iter().any(|item| states(item, fact)),
        scalar => (fact.is_possible_value)(scalar),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns `true` for a text like the code of a currency.
fn is_currency_code(text: &str) -> bool {
    const CODE_LEN: usize = 3;
    text.len() == CODE_LEN && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Returns `true` for a text like `0.5`, `1 %` or `EUR 0.50`, but not for a UUID, a time, an address or a color.
fn is_short_number(text: &str) -> bool {
    const LEN_MAX: usize = 16;
    text.len() <= LEN_MAX
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && !text.starts_with('#')
        && !text.contains(['@', ':', '/'])
}
