//! Who is asking: the account with each key, before anything else.

use serde_json::Value;

use crate::budget::Cost;
use crate::plan::Mode;
use crate::probes::Session;
use crate::reading::{parse, text_at};
use crate::recording::{Caller, Ending, Exchange, Purpose};

pub(crate) const COST: Cost = Cost { live: 1, test: 1, other: 0, total: 2 };
pub(crate) const PATH: &str = "/v1/account";

/// Why a run ends before it has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    Configuration(String),
    Unreachable(String),
}

/// Asks for the account with both keys. A key that cannot be what its slot says ends the run.
pub(crate) async fn probe(session: &mut Session<'_>) -> Result<(), Closed> {
    for mode in Mode::BOTH {
        let exchange = session.ask(Caller::Own(mode), Purpose::Account, PATH).await;
        usable(&exchange, mode)?;
    }
    if session.recording.account(Mode::Test).and_then(mode_told).as_deref() != Some(Mode::Test.word()) {
        // A burst must never meet a key that might be live.
        session.recording.no_burst =
            Some("the account does not say that the test key is one of test mode".into());
    }
    Ok(())
}

/// What `meta.mode` says.
pub(crate) fn mode_told(exchange: &Exchange) -> Option<String> {
    let body: Value = parse(exchange.answer()?)?;
    text_at(&body, &["meta", "mode"]).map(str::to_owned)
}

fn usable(exchange: &Exchange, mode: Mode) -> Result<(), Closed> {
    let word = mode.word();
    let answer = match &exchange.ending {
        Ending::Answered(answer) => answer,
        Ending::Lost(why) => return Err(Closed::Unreachable(why.clone())),
    };
    let configuration = |text: String| Err(Closed::Configuration(text));
    match answer.status {
        401 | 403 => configuration(format!(
            "the {word} key is refused with {}; is it revoked, or a key of another server?",
            answer.status
        )),
        404 => {
            configuration(format!("{PATH} is not found below the base address; does it need a path prefix?"))
        }
        300..=399 => configuration(format!(
            "{PATH} is answered {} to `{}`; redirects are not followed, so give that address",
            answer.status,
            answer.header("location").unwrap_or("nowhere")
        )),
        500..=599 => Err(Closed::Unreachable(format!("{PATH} is answered {}", answer.status))),
        _ => match mode_told(exchange) {
            Some(told) if told == mode.other().word() => configuration(format!(
                "the account says `{told}` to the {word} key; are the keys swapped? \
                 (if not, the server breaks account.mode)"
            )),
            _ => Ok(()),
        },
    }
}
