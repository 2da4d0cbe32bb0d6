//! Requests that must be refused. Few, since servers lock out who guesses.

use conformance_model::budget::Cost;
use conformance_model::recording::{Caller, Forgery, List, Purpose};
use conformance_model::words::{ACCOUNT_PATH, Mode};

use crate::session;
use crate::session::Session;

pub(crate) const COST: Cost = Cost { live: 0, test: 0, other: 12, total: 12 };
pub(crate) const REVOKED_COST: Cost = Cost { live: 0, test: 0, other: 1, total: 1 };

const FORGERIES: [Forgery; 7] = [
    Forgery::EmptyBearer,
    Forgery::OtherScheme,
    Forgery::Unknown,
    Forgery::LastCharacter,
    Forgery::LetterCase,
    Forgery::Appended,
    Forgery::OtherPrefix,
];

pub(crate) async fn probe(session: &mut Session<'_>) {
    session.ask_past_weakness(Caller::Nobody, Purpose::Refusal, ACCOUNT_PATH).await;
    let has_letters =
        session.plan.tail(&session.plan.test_key).bytes().any(|byte| byte.is_ascii_alphabetic());
    for forgery in FORGERIES {
        if forgery == Forgery::LetterCase && !has_letters {
            continue;
        }
        session.ask_past_weakness(Caller::Forged(forgery), Purpose::Refusal, ACCOUNT_PATH).await;
    }
    for list in List::ALL {
        session.ask_past_weakness(Caller::Nobody, Purpose::Refusal, list.path()).await;
    }
    if let Some(id) = Mode::BOTH.into_iter().rev().find_map(|mode| super::isolation::own_event(session, mode))
    {
        session.ask_past_weakness(Caller::Nobody, Purpose::Refusal, &session::event_path(&id)).await;
    }
}

pub(crate) async fn probe_revoked(session: &mut Session<'_>) {
    session.ask_past_weakness(Caller::Revoked, Purpose::Refusal, ACCOUNT_PATH).await;
}
