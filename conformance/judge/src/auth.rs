//! Chapter "auth": the refusal of requests without a valid key.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use conformance_model::group::Group;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::has_text;
use conformance_model::recording::{
    Caller, Exchange, Forgery, List, PageRequest, Purpose, ReceivedResponse, Recording, Side,
};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult};

use super::evidence::{check_media_type, missing_response};
use crate::check::Check;

const NEEDS: &[Group] = &[Group::Account, Group::Auth];
const NEEDS_REVOKED: &[Group] = &[Group::Account, Group::Revoked];
const NEEDS_LISTS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation, Group::Auth];

pub(super) const CHECKS: &[Check] = &[
    Check::new("auth.no_header", NEEDS, judge_no_header),
    Check::new("auth.empty_bearer", NEEDS, |recording| judge_forgery(recording, Forgery::EmptyBearer)),
    Check::new("auth.other_scheme", NEEDS, judge_other_scheme),
    Check::new("auth.token_scheme", NEEDS, |recording| judge_forgery(recording, Forgery::OtherScheme)),
    Check::new("auth.unknown_key", NEEDS, judge_unknown_key),
    Check::new("auth.last_character", NEEDS, judge_changed_character),
    Check::new("auth.letter_case", NEEDS, judge_letter_case),
    Check::new("auth.appended", NEEDS, judge_appended),
    Check::new("auth.encoded", NEEDS, |recording| judge_forgery(recording, Forgery::Encoded)),
    Check::new("auth.shortened", NEEDS, |recording| judge_forgery(recording, Forgery::Shortened)),
    Check::new("auth.other_prefix", NEEDS, judge_other_prefix),
    Check::new("auth.revoked_key", NEEDS_REVOKED, judge_revoked_key),
    Check::new("auth.every_path", NEEDS_LISTS, judge_every_path).with_optional_probes(&[Group::Objects]),
    Check::new("auth.after_refusal", NEEDS, judge_request_after_refusal),
    Check::new("auth.head", NEEDS, judge_head),
    Check::new("auth.message", NEEDS, judge_message),
    Check::new("auth.www_authenticate", NEEDS, judge_www_authenticate),
];

fn judge_no_header(recording: &Recording) -> CheckResult {
    check_both_keys_served(recording)?;
    judge_refused(last_refusal_trial(recording, Caller::NoKey, ACCOUNT_PATH)?)
}

/// Judges the last request with this forgery at a path where a valid key got 200.
fn judge_forgery(recording: &Recording, forgery: Forgery) -> CheckResult {
    check_both_keys_served(recording)?;
    let refused = refusal_trials(recording)
        .filter(|exchange| exchange.caller == Caller::Forged(forgery) && is_path_served(recording, exchange));
    judge_refused(refused.last().ok_or_else(|| missing_response(None, "a request that must be refused"))?)
}

/// Judges a forgery, and similar ones if they are in the recording: older versions of the suite sent only the first.
fn judge_forgeries(recording: &Recording, first: Forgery, more: &[Forgery]) -> CheckResult {
    let was_sent = |forgery: &&Forgery| {
        recording.find_last(|exchange| exchange.caller == Caller::Forged(**forgery)).is_some()
    };
    let forgeries = [&first].into_iter().chain(more.iter().filter(was_sent));
    let results: Vec<_> = forgeries.map(|forgery| judge_forgery(recording, *forgery)).collect();
    // A violation by one of them counts, even if another is not judged.
    let is_violation = |result: &&CheckResult| matches!(result, Err(CheckError::Violation(_)));
    let violation = results.iter().find(is_violation);
    violation.or(results.iter().find(|result| result.is_err())).cloned().unwrap_or(Ok(CheckOutcome::Holds))
}

fn judge_unknown_key(recording: &Recording) -> CheckResult {
    judge_forgeries(recording, Forgery::Unknown, &[Forgery::UnknownLive])
}

fn judge_changed_character(recording: &Recording) -> CheckResult {
    judge_forgeries(recording, Forgery::LastCharacter, &[Forgery::FirstCharacter])
}

fn judge_other_prefix(recording: &Recording) -> CheckResult {
    let was_sent =
        |forgery| refusal_trials(recording).any(|exchange| exchange.caller == Caller::Forged(forgery));
    // The suite sends the forgeries in this order, and leaves out those that would be valid keys.
    let is_left_out = was_sent(Forgery::UnknownLive)
        && !was_sent(Forgery::OtherPrefix)
        && !was_sent(Forgery::LiveKeyOtherPrefix);
    if is_left_out {
        return Err(CheckError::Inapplicable("the keys of both modes have the same secret".into()));
    }
    judge_forgeries(recording, Forgery::OtherPrefix, &[Forgery::LiveKeyOtherPrefix])
}

fn judge_appended(recording: &Recording) -> CheckResult {
    judge_forgeries(recording, Forgery::Appended, &[Forgery::WordAppended, Forgery::ListAppended])
}

fn judge_other_scheme(recording: &Recording) -> CheckResult {
    judge_forgeries(recording, Forgery::NoScheme, &[Forgery::BasicScheme, Forgery::BasicUser])
}

fn judge_letter_case(recording: &Recording) -> CheckResult {
    let latest = recording.find_last(|exchange| exchange.caller == Caller::Forged(Forgery::LetterCase));
    if latest.is_none() && refusal_trials(recording).next().is_some() {
        return Err(CheckError::Inapplicable("the test key has no letters".into()));
    }
    judge_forgery(recording, Forgery::LetterCase)
}

fn judge_revoked_key(recording: &Recording) -> CheckResult {
    if recording.find_last(|exchange| exchange.caller == Caller::Revoked).is_none() {
        return Err(CheckError::unjudged(
            "no revoked key is configured",
            "revoke a key in the dashboard and set CHARGEPROOF_REVOKED_KEY to it, or pass --without revoked",
        ));
    }
    check_both_keys_served(recording)?;
    judge_refused(last_refusal_trial(recording, Caller::Revoked, ACCOUNT_PATH)?)?;
    for exchange in refusal_trials(recording).filter(|exchange| exchange.caller == Caller::Revoked) {
        if is_path_served(recording, exchange) && !is_unclear(exchange) {
            judge_refused(exchange)?;
        }
    }
    Ok(CheckOutcome::Holds)
}

/// The minimum number of 401s to valid keys, for a violation. A single one may come from a server that restarts.
const VALID_KEY_REFUSED_MIN: usize = 2;
/// The maximum time for which a server may refuse all keys after an invalid one.
const LOCKOUT_TIME_MAX: Duration = Duration::from_secs(30);

/// Judges that valid keys do not get 401, also right after a refused request at the same address: a cache must not repeat
/// the refusal.
fn judge_request_after_refusal(recording: &Recording) -> CheckResult {
    check_both_keys_served(recording)?;
    let mut refused = recording.exchanges.iter().filter(|exchange| is_valid_key_refused(recording, exchange));
    if let Some(exchange) = refused.nth(VALID_KEY_REFUSED_MIN - 1) {
        let expected = "no 401 to a key that is served before and afterwards";
        return Err(CheckError::violation(exchange.number, expected, exchange.summary()));
    }
    let latest = recording.find_last(|exchange| exchange.purpose == Purpose::AfterRefusal);
    let Some(exchange) = latest.filter(|exchange| !is_unclear(exchange)) else {
        return Err(missing_response(latest, "a valid request after a refusal"));
    };
    if exchange.status() != Some(200) {
        return Err(CheckError::violation(exchange.number, "200 right after a refusal", exchange.summary()));
    }
    Ok(CheckOutcome::Holds)
}

/// Returns `true` for a 401 to a key that got 200 before and afterwards, unless it follows a request with an invalid key. Only
/// paths of the specification count: the configured path of a single object may be wrong, and so may a link.
fn is_valid_key_refused(recording: &Recording, refused: &Exchange) -> bool {
    let is_specified_path = matches!(
        &refused.purpose,
        Purpose::Account
            | Purpose::AfterRefusal
            | Purpose::Burst(_)
            | Purpose::Event { .. }
            | Purpose::Filter { .. }
            | Purpose::Page(PageRequest { link: None, .. })
    );
    let has_valid_key = matches!(refused.caller, Caller::Own(_) | Caller::SecondKey | Caller::OtherAccount);
    let served = || {
        recording
            .exchanges
            .iter()
            .filter(|exchange| exchange.caller == refused.caller && exchange.status() == Some(200))
    };
    refused.status() == Some(401)
        && is_specified_path
        && has_valid_key
        && !follows_invalid_key(recording, refused)
        && served().any(|exchange| exchange.number < refused.number)
        && served().any(|exchange| exchange.number > refused.number)
}

/// Returns `true` if a request was sent shortly after one with a forged or revoked key, or without a key.
fn follows_invalid_key(recording: &Recording, request: &Exchange) -> bool {
    recording.exchanges.iter().any(|exchange| {
        matches!(exchange.caller, Caller::Forged(_) | Caller::NoKey | Caller::Revoked)
            && exchange.number < request.number
            && request.sent.saturating_sub(exchange.ended) <= LOCKOUT_TIME_MAX
    })
}

/// Judges HEAD without a key, which must not succeed. A server may refuse the method altogether.
fn judge_head(recording: &Recording) -> CheckResult {
    let heads = || {
        let heads = recording.exchanges.iter().filter(|exchange| exchange.purpose == Purpose::Head);
        heads.filter(|exchange| exchange.caller == Caller::NoKey)
    };
    let mut judged = false;
    for exchange in heads().filter(|exchange| !is_unclear(exchange)) {
        if exchange.status().is_some_and(|status| (200..300).contains(&status)) {
            return Err(CheckError::violation(
                exchange.number,
                "no 2xx to HEAD without a key",
                exchange.summary(),
            ));
        }
        judged = true;
    }
    if judged {
        Ok(CheckOutcome::Holds)
    } else {
        Err(missing_response(heads().next_back(), "HEAD without a key"))
    }
}

/// Returns `true` if a valid key got 200 at the same path. Otherwise a wrong path would look like a refusal.
fn is_path_served(recording: &Recording, refused: &Exchange) -> bool {
    recording.exchanges.iter().any(|exchange| is_served(exchange) && path(exchange) == path(refused))
}

/// Returns `true` if the live or the test key got 200.
fn is_served(exchange: &Exchange) -> bool {
    matches!(exchange.caller, Caller::Own(_)) && exchange.status() == Some(200)
}

/// Returns `true` for the path of a single charge, invoice or payment link, which not every recording has.
fn is_single_object(recording: &Recording, refused: &Exchange) -> bool {
    let is_object = |exchange: &Exchange| matches!(exchange.purpose, Purpose::Object { .. });
    recording.exchanges.iter().any(|exchange| is_object(exchange) && path(exchange) == path(refused))
}

/// Returns `true` for the path of a single event. The event need not exist.
fn is_event(exchange: &Exchange) -> bool {
    path(exchange).rsplit_once('/').is_some_and(|(parent, _)| parent.ends_with(List::Events.path()))
}

/// Returns `true` if there is no response, or one that does not depend on the key: a lockout after failed attempts, or
/// an outage.
fn is_unclear(exchange: &Exchange) -> bool {
    exchange.status().is_none_or(|status| matches!(status, 429 | 502..=504))
}

/// Returns the create requests without a key, at a path where one with a key succeeded.
fn creations_without_key(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    let creations = || recording.exchanges.iter().filter(|exchange| exchange.purpose == Purpose::Create);
    let succeeds_with_key = move |refused: &Exchange| {
        let is_created = |exchange: &Exchange| exchange.status().is_some_and(|status| status / 100 == 2);
        creations().any(|exchange| {
            matches!(exchange.caller, Caller::Own(_))
                && path(exchange) == path(refused)
                && is_created(exchange)
        })
    };
    creations().filter(move |exchange| {
        exchange.caller == Caller::NoKey && !is_unclear(exchange) && succeeds_with_key(exchange)
    })
}

fn judge_every_path(recording: &Recording) -> CheckResult {
    // The last request to each address, because the suite retries after an outage.
    let last_trials: BTreeMap<_, _> = refusal_trials(recording)
        .filter(|exchange| {
            exchange.caller == Caller::NoKey && (exchange.status() == Some(200) || !is_unclear(exchange))
        })
        .map(|exchange| (exchange.target.as_str(), exchange))
        .collect();
    let mut judged = BTreeSet::new();
    for exchange in last_trials.values().filter(|exchange| is_path_served(recording, exchange)) {
        judge_refused(exchange)?;
        if !is_single_object(recording, exchange) {
            judged.insert(path(exchange));
        }
    }
    // A server checks the key first, so any event's path counts if one event was served.
    let is_event_served =
        recording.exchanges.iter().any(|exchange| is_event(exchange) && is_served(exchange));
    for exchange in last_trials.values().filter(|exchange| is_event_served && is_event(exchange)) {
        judge_refused(exchange)?;
    }
    for exchange in creations_without_key(recording) {
        judge_refused(exchange)?;
    }
    let judged = judged.len();
    // The account, a single event, and the lists.
    let paths = 2 + List::ALL.len();
    if judged == paths {
        return Ok(CheckOutcome::Holds);
    }
    let event =
        recording.find_last(|exchange| matches!(exchange.purpose, Purpose::Event { side: Side::Own, .. }));
    let page = recording
        .find_last(|exchange| matches!(&exchange.purpose, Purpose::Page(PageRequest { link: None, .. })));
    match (event, page) {
        (None, Some(_)) => Err(CheckError::unjudged(
            format!("{judged} of {paths} paths could be tested; there is no event to request"),
            "open a charge with the test key's account, then check again",
        )),
        _ => Err(missing_response(event.or(page), "a path that responds with 200 to a key")),
    }
}

fn judge_message(recording: &Recording) -> CheckResult {
    for (exchange, response) in responses_401(recording)? {
        if !response.body.is_utf8()
            || !response.body.json().is_some_and(|body| body.is_object() && has_text(body))
        {
            return Err(CheckError::violation(
                exchange.number,
                "a JSON object with a message",
                exchange.summary(),
            ));
        }
        check_media_type(exchange, response)?;
    }
    Ok(CheckOutcome::Holds)
}

fn judge_www_authenticate(recording: &Recording) -> CheckResult {
    for (exchange, response) in responses_401(recording)? {
        if response.header("www-authenticate").is_none() {
            return Err(CheckError::violation(exchange.number, "WWW-Authenticate: Bearer", "no such header"));
        }
    }
    Ok(CheckOutcome::Holds)
}

/// Returns the requests that must be refused with 401.
fn refusal_trials(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|exchange| exchange.purpose == Purpose::Refusal)
}

/// Returns the responses with 401 to requests that must be refused, including those that would create a record.
fn responses_401(recording: &Recording) -> Result<Vec<(&Exchange, &ReceivedResponse)>, CheckError> {
    let with_response = |exchange| {
        Exchange::response(exchange)
            .filter(|response| response.status == 401)
            .map(|response| (exchange, response))
    };
    let of_creations = creations_without_key(recording);
    let found: Vec<_> = refusal_trials(recording).chain(of_creations).filter_map(with_response).collect();
    if found.is_empty() {
        Err(missing_response(refusal_trials(recording).next(), "a refusal with 401"))
    } else {
        Ok(found)
    }
}

fn last_refusal_trial<'a>(
    recording: &'a Recording,
    caller: Caller,
    path: &str,
) -> Result<&'a Exchange, CheckError> {
    refusal_trials(recording)
        .filter(|exchange| exchange.caller == caller && exchange.target.ends_with(path))
        .last()
        .ok_or_else(|| missing_response(None, "a request that must be refused"))
}

/// Checks that both keys get 200 for the account. Only then does a refusal at that path count.
fn check_both_keys_served(recording: &Recording) -> Result<(), CheckError> {
    for mode in Mode::BOTH {
        let account = recording.account_exchange(mode);
        if account.and_then(Exchange::status) != Some(200) {
            return Err(missing_response(account, "the same path with the right key"));
        }
    }
    Ok(())
}

fn judge_refused(exchange: &Exchange) -> CheckResult {
    match exchange.status() {
        Some(401) => Ok(CheckOutcome::Holds),
        None | Some(429 | 502..=504) => {
            Err(missing_response(Some(exchange), "a request that must be refused"))
        }
        Some(_) => Err(CheckError::violation(exchange.number, "401", exchange.summary())),
    }
}

fn path(exchange: &Exchange) -> &str {
    exchange.target.split('?').next().unwrap_or_default()
}
