//! The account of each key, before any other request.

use conformance_model::budget::Cost;
use conformance_model::mode::{ACCOUNT_PATH, Mode};
use conformance_model::reading::{Page, stated_mode};
use conformance_model::recording::{Caller, Exchange, ExchangeOutcome, List, Purpose, ReceivedResponse};
use conformance_model::verdict::Stop;

use crate::probes::positions::{LONG_PAGE_SIZE, sized_request};
use crate::session::Session;

pub(crate) const COST: Cost = Cost { live: 1, test: 1, other: 0, total: 2 };

/// The number of malformed responses or refusals of one request after which the suite assumes that all fail.
const FAILURES_MAX: u32 = 3;

/// Requests the account with both keys. An error ends the run: the target is not reachable, or a key is refused on every path.
pub(crate) async fn probe(session: &mut Session<'_>) -> Result<(), Stop> {
    for mode in Mode::BOTH {
        let mut exchange = session.send(Caller::Own(mode), Purpose::Account, ACCOUNT_PATH).await;
        for _ in 1..FAILURES_MAX {
            // If only some requests are refused, the server is judged; the key is valid.
            if exchange.is_malformed() || exchange.status() == Some(401) {
                exchange = session.send_again(exchange).await;
            }
        }
        // The judge reports it. No other request would get a readable response.
        if exchange.is_malformed() {
            session.recording.no_burst = Some("no response was complete".into());
            return Ok(());
        }
        if let Err(stop) = check_usable(&exchange, mode) {
            let is_refused = matches!(exchange.status(), Some(401 | 403 | 404));
            if !(is_refused && serves_list(session, mode).await) {
                return Err(stop);
            }
        }
    }
    if session.recording.account_exchange(Mode::Test).and_then(stated_mode).as_deref()
        != Some(Mode::Test.as_str())
    {
        // A burst must never use a key that might be live.
        session.recording.no_burst = Some("the account does not report test mode for the test key".into());
    }
    Ok(())
}

/// Requests a list with the key of a mode. If it is served, key and address are correct, and the judge reports that the account
/// is not served.
async fn serves_list(session: &mut Session<'_>, mode: Mode) -> bool {
    let exchange = session.read_page(mode, sized_request(List::Events, None, LONG_PAGE_SIZE)).await;
    Page::from_exchange(&exchange).and_then(Page::rows).is_some()
}

/// Returns an error if no probe can use the key of a mode.
fn check_usable(exchange: &Exchange, mode: Mode) -> Result<(), Stop> {
    let name = mode.as_str();
    let response = match &exchange.outcome {
        ExchangeOutcome::Answered(response) => response,
        ExchangeOutcome::NoResponse(why) => return Err(Stop::Unreachable(why.clone())),
    };
    let configuration_error = |message: String| Err(Stop::Configuration(message));
    match response.status {
        401 | 403 => configuration_error(format!(
            "the {name} key is refused with {}; is it revoked, or a key of another server?",
            response.status
        )),
        404 => configuration_error(format!(
            "{ACCOUNT_PATH} is not found below the base address; does it need a path prefix?"
        )),
        300..=399 => configuration_error(format!(
            "{ACCOUNT_PATH} responds with {} to `{}`; redirects are not followed, so use that address",
            response.status,
            response.header("location").unwrap_or("nowhere")
        )),
        // A gateway without a service behind it. Any other 5xx is a response of the service, and judged.
        502..=504 => Err(Stop::Unreachable(format!("{ACCOUNT_PATH} responds with {}", response.status))),
        200..=299 if is_html_page(response) => configuration_error(format!(
            "{ACCOUNT_PATH} responds with an HTML page; is this the API's base address?"
        )),
        // A key whose account has the other mode is a violation, not a mistake of the operator: its prefix is correct.
        _ => Ok(()),
    }
}

/// Returns `true` for an HTML page, such as a login page or an error page of a gateway.
fn is_html_page(response: &ReceivedResponse) -> bool {
    let has_html_type =
        response.header("content-type").is_some_and(|value| value.to_ascii_lowercase().contains("text/html"));
    // JSON of another type is a response of the service, and judged.
    let is_json = serde_json::from_str::<serde_json::Value>(&response.body).is_ok();
    (has_html_type && !is_json) || response.body.trim_start().starts_with('<')
}
