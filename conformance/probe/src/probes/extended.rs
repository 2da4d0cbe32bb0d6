//! GET requests that show whether a server makes the choices of the reference server where the specification leaves a choice.

use conformance_model::mode::Mode;
use conformance_model::reading::observed_ids;
use conformance_model::recording::{Caller, Purpose};

use crate::session::Session;

pub(crate) const REQUESTS_MAX: u32 = 13;
/// A page beyond the end of every list.
const PAGE_BEYOND_END: u32 = 1_000_000;
/// The seed of the nonexistent event, different from those of other probes.
const ABSENT_EVENT_SEED: u64 = 11;

/// The names of the choices, with the path of the request for each. Placeholders such as `{charge}` are replaced by
/// objects of the test mode.
const CHOICES: [(&str, &str); REQUESTS_MAX as usize] = [
    ("page=0", "/v1/events?page=0"),
    ("page=x", "/v1/events?page=x"),
    ("per_page=0", "/v1/events?per_page=0"),
    ("per_page=101", "/v1/charges?per_page=101"),
    ("type=", "/v1/events?type=charge.melted"),
    ("status=", "/v1/charges?status=melted"),
    ("far", "/v1/events?page={far}"),
    ("anchor=", "/v1/events?page=2&anchor={absent}"),
    ("method", "/v1/charges/{charge}/cancel"),
    ("path", "/v1/no-such-thing"),
    ("charge", "/v1/charges/{charge}"),
    ("invoice", "/v1/invoices/{invoice}"),
    ("payment link", "/v1/payment-links/{payment_link}"),
];

/// Sends the request of each choice.
pub(crate) async fn probe(session: &mut Session<'_>) {
    let observed = observed_ids(&session.recording, Mode::Test);
    let absent = observed.event.as_deref().map(|id| session.unused_id_like(id, ABSENT_EVENT_SEED));
    let replacements = [
        ("{charge}", observed.charge),
        ("{invoice}", observed.invoice),
        ("{payment_link}", observed.payment_link),
        ("{absent}", absent),
        ("{far}", Some(PAGE_BEYOND_END.to_string())),
    ];
    for (name, path) in CHOICES {
        let mut path = path.to_owned();
        for (placeholder, value) in &replacements {
            if let Some(value) = value {
                let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
                path = path.replace(placeholder, &value);
            }
        }
        // If there is no object for a placeholder, the choice is skipped.
        if !path.contains('{') {
            session.send(Caller::Own(Mode::Test), Purpose::Choice { name: name.to_owned() }, &path).await;
        }
    }
}
