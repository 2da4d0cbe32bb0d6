//! The facts that an account must state: its kind, default currency and payment tolerances.
//!
//! The specification leaves the names and formats of these fields open. A fact counts as missing only if no member of
//! the response could state it, neither by its name nor by its value. The public profile is not judged: it may be empty, and
//! its members omitted. The values of one key must not alternate between responses; this includes the accepted assets.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{account_meta, asset_code, text_at};
use conformance_model::recording::{Caller, Exchange, List, Recording};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{PageView, missing_response, readable_pages, recorded_at, response_date};
use crate::diff::{FAULTY_OBJECTS_MIN, are_most};
use crate::parsed_deliveries::member_text;
use crate::subjects::{Subject, subjects};

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

const FACTS: [AccountFact; 3] = [
    AccountFact {
        name: "the kind of the account, personal or organization",
        names: &["type", "kind", "class", "category", "owner", "holder"],
        optional_names: &[
            "person",
            "org",
            "individual",
            "business",
            "company",
            "entity",
            "team",
            "user",
            "legal",
            "merchant",
        ],
        is_possible_value: |value| {
            let text = value.as_str().unwrap_or_default().to_ascii_lowercase();
            ["org", "user"].contains(&text.as_str())
                || ["person", "organi", "individual", "business", "company"]
                    .iter()
                    .any(|part| text.contains(part))
        },
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

/// The members that state none of these facts.
const OTHER_MEMBERS: [&str; 4] = ["mode", "accepted_assets", "id", "code"];

/// The members of the account, at any depth outside `meta`, whose values are compared between responses.
const COMPARED_MEMBERS: [&str; 5] = ["default_currency", "display_name", "account_type", "kind", "type"];

/// The minimum number of changes back to an earlier value, for a violation. A merchant may change a setting and change it
/// back.
const RETURNS_MIN: usize = 4;
/// The minimum time from the first change back to an earlier value to the last, for a violation. Replicas may lag by up to a
/// minute after a change.
const ALTERNATION_TIME_MIN: Duration = Duration::from_secs(60);

/// Returns the accounts that the key of a mode read, with their JSON objects.
fn account_reads(recording: &Recording, mode: Mode) -> Vec<(&Exchange, &Value)> {
    let is_account = |exchange: &&Exchange| {
        exchange.caller == Caller::Own(mode)
            && exchange.target.ends_with(ACCOUNT_PATH)
            && exchange.method() == "GET"
            && exchange.status() == Some(200)
    };
    let accounts = recording.exchanges.iter().filter(is_account);
    let with_body = accounts.filter_map(|exchange| Some((exchange, exchange.response()?.body.json()?)));
    with_body.filter(|(_, body)| body.is_object()).collect()
}

/// Judges every account that the live or the test key read, and that its values do not alternate.
pub(super) fn judge_profile(recording: &Recording) -> CheckResult {
    for mode in Mode::BOTH {
        check_not_alternating(recording, mode, &|body| {
            let mut values = BTreeMap::new();
            collect_compared(body, "", &mut values);
            values
        })?;
    }
    let mut judged = false;
    for (exchange, body) in Mode::BOTH.into_iter().flat_map(|mode| account_reads(recording, mode)) {
        judged = true;
        let Some(missing) = FACTS.iter().find(|fact| !states(body, fact)) else { continue };
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

/// Checks that the accepted assets, in any order, do not alternate between responses.
pub(super) fn check_accepted_assets_are_stable(recording: &Recording, mode: Mode) -> Result<(), CheckError> {
    check_not_alternating(recording, mode, &|body| {
        let assets = account_meta(body).and_then(|meta| meta.get("accepted_assets")?.as_array());
        let assets = assets.into_iter().flatten();
        let assets: BTreeSet<_> = assets.map(Value::to_string).collect();
        let text = assets.into_iter().collect::<Vec<_>>().join(",");
        [("meta.accepted_assets".to_owned(), text)].into()
    })
}

/// Checks that the assets of the charges of a mode are codes. They are names, such as `Bitcoin`, if most look like names, the
/// accepted assets look like codes, and no charge has one of these.
pub(super) fn check_asset_codes(recording: &Recording) -> Result<(), CheckError> {
    let charges = subjects(recording, "charge")?;
    for mode in Mode::BOTH {
        let Some(accepted) = accepted_codes(recording, mode) else { continue };
        let of_mode = charges.iter().filter(|charge| charge.mode == Some(mode));
        let assets: BTreeMap<&str, (&str, &Subject<'_>)> = of_mode
            .filter_map(|charge| {
                let [code, asset] = ["code", "asset"].map(|name| text_at(charge.object, &[name]));
                Some((code?, (asset?, charge)))
            })
            .collect();
        let is_any_accepted =
            assets.values().any(|(asset, _)| accepted.contains(&asset.to_ascii_uppercase()));
        let named: Vec<_> = assets.values().filter(|(asset, _)| is_coin_name(asset)).collect();
        if let Some((_, charge)) =
            named.last().filter(|_| !is_any_accepted && are_most(named.len(), assets.len()))
        {
            let codes = accepted.into_iter().collect::<Vec<_>>().join(", ");
            let actual = format!(
                "{}, and no accepted asset in {} more charges",
                member_text(charge.object, "asset"),
                assets.len() - 1
            );
            return Err(
                charge.violation(format!("a coin code as asset, such as the accepted {codes}"), actual)
            );
        }
    }
    Ok(())
}

/// Checks that the accepted assets of a mode are coins: none is the fiat currency of a charge, unless it is also the asset of one.
pub(super) fn check_no_fiat_is_accepted(recording: &Recording, mode: Mode) -> Result<(), CheckError> {
    let (Ok(charges), Some(accepted)) = (subjects(recording, "charge"), accepted_codes(recording, mode))
    else {
        return Ok(());
    };
    let values_of = |name: &str| -> BTreeSet<&str> {
        charges.iter().filter_map(|charge| text_at(charge.object, &[name])).collect()
    };
    let (assets, currencies) = (values_of("asset"), values_of("fiat_currency"));
    let is_fiat = |code: &&String| currencies.contains(code.as_str()) && !assets.contains(code.as_str());
    match accepted.iter().find(is_fiat) {
        Some(code) if !assets.is_empty() => Err(CheckError::violation(
            recording.account_exchange(mode).map(|exchange| exchange.number),
            "only coins in meta.accepted_assets",
            format!("{code}, the fiat currency of charges"),
        )),
        _ => Ok(()),
    }
}

/// Checks that the account of a mode accepts the coins in which charges are opened. Only charges that were opened between two
/// equal lists of accepted assets count, and only if most of them have an accepted asset.
pub(super) fn check_assets_of_new_charges(recording: &Recording, mode: Mode) -> Result<(), CheckError> {
    let reads = account_reads(recording, mode);
    let (Some((first, body)), Some((last, _))) = (reads.first(), reads.last()) else { return Ok(()) };
    let accepted = codes_in(body).unwrap_or_default();
    let are_equal = reads.iter().all(|(_, body)| codes_in(body).as_ref() == Some(&accepted));
    let (Some(start), Some(end)) = (response_date(first), response_date(last)) else { return Ok(()) };
    let views = readable_pages(recording);
    let events = views.iter().filter(|view| view.mode == mode && view.request.list == List::Events);
    // `Date` has whole seconds.
    let is_opened_between = |row: &&Value| {
        text_at(row, &["type"]) == Some("charge.created")
            && recorded_at(row).is_some_and(|at| at > start + Duration::from_secs(1) && at < end)
    };
    let opened: BTreeMap<&str, &str> = events
        .flat_map(PageView::rows)
        .filter(is_opened_between)
        .filter_map(|row| Some((text_at(row, &["charge", "code"])?, text_at(row, &["charge", "asset"])?)))
        .collect();
    // A coin may be accepted in several networks.
    let coin = |asset: &str| {
        asset.split(|letter: char| !letter.is_ascii_alphanumeric()).next().map(str::to_ascii_lowercase)
    };
    let is_accepted = |asset: &str| accepted.iter().any(|known| coin(known) == coin(asset));
    let others: Vec<_> = opened.iter().filter(|(_, asset)| !is_accepted(asset)).collect();
    match others.last() {
        Some((code, asset))
            if are_equal && others.len() >= FAULTY_OBJECTS_MIN && others.len() * 2 <= opened.len() =>
        {
            let expected = format!("the assets of new charges, such as {asset} of charge {code}, accepted");
            let accepted = accepted.into_iter().collect::<Vec<_>>().join(", ");
            Err(CheckError::violation(last.number, expected, format!("meta.accepted_assets {accepted}")))
        }
        _ => Ok(()),
    }
}

/// Returns the codes of the accepted assets in an account: strings, or objects with a `code`. `None` if one has none.
fn codes_in(account: &Value) -> Option<BTreeSet<String>> {
    let assets = account_meta(account).and_then(|meta| meta.get("accepted_assets")?.as_array());
    assets.into_iter().flatten().map(|asset| asset_code(asset).map(str::to_owned)).collect()
}

/// Returns the accepted assets that the account of a mode stated, if all look like codes.
fn accepted_codes(recording: &Recording, mode: Mode) -> Option<BTreeSet<String>> {
    let mut codes = BTreeSet::new();
    for (_, body) in account_reads(recording, mode) {
        codes.extend(codes_in(body)?);
    }
    let is_code_byte = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let are_codes = codes.iter().all(|code| !code.is_empty() && code.bytes().all(is_code_byte));
    (are_codes && !codes.is_empty()).then_some(codes)
}

/// Returns `true` for a text like `Bitcoin` or `USD Coin`, but not for a code in upper or lower case, such as `btc`.
fn is_coin_name(text: &str) -> bool {
    const LOWER_CASE_MIN: usize = 3;
    let mut words = text.split(|letter: char| !letter.is_ascii_lowercase());
    text.trim().contains(' ')
        || text.contains(|letter: char| letter.is_ascii_uppercase())
            && words.any(|word| word.len() >= LOWER_CASE_MIN)
}

/// Checks that no value of the account of one key alternates: changes back to an earlier value [`RETURNS_MIN`] times or more,
/// during [`ALTERNATION_TIME_MIN`] or longer.
fn check_not_alternating(
    recording: &Recording,
    mode: Mode,
    values_of: &dyn Fn(&Value) -> BTreeMap<String, String>,
) -> Result<(), CheckError> {
    let mut histories: BTreeMap<String, Vec<(String, Duration)>> = BTreeMap::new();
    for (exchange, body) in account_reads(recording, mode) {
        for (path, value) in values_of(body) {
            let history = histories.entry(path.clone()).or_default();
            if history.last().is_none_or(|(last, _)| *last != value) {
                history.push((value, exchange.sent));
            }
            let is_return =
                |index: &usize| history[..*index].iter().any(|(value, _)| *value == history[*index].0);
            let returns: Vec<_> =
                (1..history.len()).filter(is_return).map(|index| history[index].1).collect();
            let [first, .., last] = returns[..] else { continue };
            if returns.len() >= RETURNS_MIN && last.saturating_sub(first) >= ALTERNATION_TIME_MIN {
                let expected = format!("one value of {path}, or a lasting change");
                let values: Vec<_> = history.iter().map(|(value, _)| value.as_str()).collect();
                let actual = format!("{}, one after the other", values.join("; "));
                return Err(CheckError::violation(exchange.number, expected, actual));
            }
        }
    }
    Ok(())
}

/// Collects the scalar values of the compared members by their paths.
fn collect_compared(value: &Value, path: &str, values: &mut BTreeMap<String, String>) {
    for (name, member) in value.as_object().into_iter().flatten().filter(|(name, _)| *name != "meta") {
        let member_path = format!("{path}{name}");
        if COMPARED_MEMBERS.contains(&name.as_str()) && !member.is_object() && !member.is_array() {
            values.insert(member_path, member.to_string());
        } else {
            collect_compared(member, &format!("{member_path}."), values);
        }
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

/// Returns `true` for a text with one number, like `0.5`, `1 %` or `EUR 0.50`, but not for an identifier, a time, an address
/// or a color.
fn is_short_number(text: &str) -> bool {
    const LEN_MAX: usize = 16;
    let is_of_number = |character: char| character.is_ascii_digit() || matches!(character, '.' | ',');
    let numbers = text.split(|character| !is_of_number(character)).filter(|part| !part.is_empty()).count();
    text.len() <= LEN_MAX
        && numbers == 1
        && text.bytes().any(|byte| byte.is_ascii_digit())
        && !text.starts_with('#')
        && !text.contains(['@', ':', '/', '_'])
}
