//! Chapter "auth": what is not a key is refused.

use std::collections::BTreeMap;

use super::Check;
use super::evidence::unanswered;
use crate::plan::Mode;
use crate::probes::{Group, account};
use crate::reading::{has_text, parse};
use crate::recording::{Answer, Caller, Exchange, Forgery, List, PageAsk, Purpose, Recording, Side};
use crate::verdict::{Halt, Held, Judged};

const NEEDS: &[Group] = &[Group::Account, Group::Auth];
const NEEDS_LISTS: &[Group] = &[Group::Account, Group::Lists, Group::Isolation, Group::Auth];

pub(super) const CHECKS: &[Check] = &[
    Check { id: "auth.no_header", needs: NEEDS, judge: no_header },
    Check { id: "auth.empty_bearer", needs: NEEDS, judge: |it| refused(it, Forgery::EmptyBearer) },
    Check { id: "auth.other_scheme", needs: NEEDS, judge: |it| refused(it, Forgery::OtherScheme) },
    Check { id: "auth.unknown_key", needs: NEEDS, judge: |it| refused(it, Forgery::Unknown) },
    Check { id: "auth.last_character", needs: NEEDS, judge: |it| refused(it, Forgery::LastCharacter) },
    Check { id: "auth.letter_case", needs: NEEDS, judge: letter_case },
    Check { id: "auth.appended", needs: NEEDS, judge: |it| refused(it, Forgery::Appended) },
    Check { id: "auth.other_prefix", needs: NEEDS, judge: |it| refused(it, Forgery::OtherPrefix) },
    Check { id: "auth.revoked_key", needs: NEEDS, judge: revoked_key },
    Check { id: "auth.every_path", needs: NEEDS_LISTS, judge: every_path },
    Check { id: "auth.message", needs: NEEDS, judge: message },
    Check { id: "auth.www_authenticate", needs: NEEDS, judge: www_authenticate },
];

fn no_header(recording: &Recording) -> Judged {
    served_account(recording)?;
    must_be_refused(refusal(recording, Caller::Nobody, account::PATH)?)
}

fn refused(recording: &Recording, forgery: Forgery) -> Judged {
    served_account(recording)?;
    must_be_refused(refusal(recording, Caller::Forged(forgery), account::PATH)?)
}

fn letter_case(recording: &Recording) -> Judged {
    let asked = recording.last(|it| it.caller == Caller::Forged(Forgery::LetterCase));
    if asked.is_none() && refusals(recording).next().is_some() {
        return Err(Halt::Inapplicable("the test key has no letters".into()));
    }
    refused(recording, Forgery::LetterCase)
}

fn revoked_key(recording: &Recording) -> Judged {
    if recording.last(|it| it.caller == Caller::Revoked).is_none() {
        return Err(Halt::unjudged(
            "there was no revoked key to ask with",
            "revoke a key in the dashboard and set CHARGEPROOF_REVOKED_KEY to it, or say --without revoked",
        ));
    }
    served_account(recording)?;
    must_be_refused(refusal(recording, Caller::Revoked, account::PATH)?)
}

fn every_path(recording: &Recording) -> Judged {
    let mut judged = 0;
    // The last for each path, since a passing weakness is asked past.
    let asked: BTreeMap<_, _> =
        refusals(recording).filter(|it| it.caller == Caller::Nobody).map(|it| (path(it), it)).collect();
    for exchange in asked.into_values() {
        // Without a 200 on the same path, a wrong path would look like a refusal.
        let beside = recording.last(|it| {
            matches!(it.caller, Caller::Own(_)) && it.status() == Some(200) && path(it) == path(exchange)
        });
        if beside.is_some() {
            must_be_refused(exchange)?;
            judged += 1;
        }
    }
    let paths = 2 + List::ALL.len();
    if judged == paths {
        return Ok(Held::Plainly);
    }
    let event = recording.last(|it| matches!(it.purpose, Purpose::Event { side: Side::Own, .. }));
    let page = recording.last(|it| matches!(&it.purpose, Purpose::Page(PageAsk { link: None, .. })));
    match (event, page) {
        (None, Some(_)) => Err(Halt::unjudged(
            format!("{judged} of {paths} paths could be asked; there is no event to ask for"),
            "open a charge with the test key's account, then check again",
        )),
        _ => Err(unanswered(event.or(page), "a path that also answers 200 to a key")),
    }
}

fn message(recording: &Recording) -> Judged {
    for (exchange, answer) in answers_401(recording)? {
        if !parse(answer).is_some_and(|body| body.is_object() && has_text(&body)) {
            return Err(Halt::broken(exchange.number, "a JSON object with a message", exchange.summary()));
        }
    }
    Ok(Held::Plainly)
}

fn www_authenticate(recording: &Recording) -> Judged {
    for (exchange, answer) in answers_401(recording)? {
        if answer.header("www-authenticate").is_none() {
            return Err(Halt::broken(exchange.number, "WWW-Authenticate: Bearer", "no such header"));
        }
    }
    Ok(Held::Plainly)
}

fn refusals(recording: &Recording) -> impl Iterator<Item = &Exchange> {
    recording.exchanges.iter().filter(|it| it.purpose == Purpose::Refusal)
}

fn answers_401(recording: &Recording) -> Result<Vec<(&Exchange, &Answer)>, Halt> {
    let answered = |it| Exchange::answer(it).filter(|answer| answer.status == 401).map(|answer| (it, answer));
    let found: Vec<_> = refusals(recording).filter_map(answered).collect();
    if found.is_empty() {
        Err(unanswered(refusals(recording).next(), "a refusal with 401"))
    } else {
        Ok(found)
    }
}

fn refusal<'a>(recording: &'a Recording, caller: Caller, path: &str) -> Result<&'a Exchange, Halt> {
    refusals(recording)
        .filter(|it| it.caller == caller && it.target.ends_with(path))
        .last()
        .ok_or_else(|| unanswered(None, "a request that must be refused"))
}

/// A refusal counts only beside a 200 on the same path with the right key.
fn served_account(recording: &Recording) -> Result<(), Halt> {
    for mode in Mode::BOTH {
        let account = recording.account(mode);
        if account.and_then(Exchange::status) != Some(200) {
            return Err(unanswered(account, "the same path with the right key"));
        }
    }
    Ok(())
}

fn must_be_refused(exchange: &Exchange) -> Judged {
    match exchange.status() {
        Some(401) => Ok(Held::Plainly),
        // A lock against guessing, or a passing weakness, says nothing about the key.
        None | Some(429 | 502..=504) => Err(unanswered(Some(exchange), "a request that must be refused")),
        Some(_) => Err(Halt::broken(exchange.number, "401", exchange.summary())),
    }
}

fn path(exchange: &Exchange) -> &str {
    exchange.target.split('?').next().unwrap_or_default()
}
