//! Requests that must be refused. Few, since servers lock out who guesses.

use crate::budget::Cost;
use crate::plan::Mode;
use crate::probes::{Session, account, session};
use crate::recording::{Caller, Forgery, List, Purpose};

pub(crate) const COST: Cost = Cost { live: 0, test: 0, other: 13, total: 13 };

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
    session.ask_past_weakness(Caller::Nobody, Purpose::Refusal, account::PATH).await;
    let has_letters =
        session.plan.tail(&session.plan.test_key).bytes().any(|byte| byte.is_ascii_alphabetic());
    for forgery in FORGERIES {
        if forgery == Forgery::LetterCase && !has_letters {
            continue;
        }
        session.ask_past_weakness(Caller::Forged(forgery), Purpose::Refusal, account::PATH).await;
    }
    if session.plan.revoked_key.is_some() {
        session.ask_past_weakness(Caller::Revoked, Purpose::Refusal, account::PATH).await;
    }
    for list in List::ALL {
        session.ask_past_weakness(Caller::Nobody, Purpose::Refusal, list.path()).await;
    }
    if let Some(id) = Mode::BOTH.into_iter().rev().find_map(|mode| super::isolation::own_event(session, mode))
    {
        session.ask_past_weakness(Caller::Nobody, Purpose::Refusal, &session::event_path(&id)).await;
    }
}
