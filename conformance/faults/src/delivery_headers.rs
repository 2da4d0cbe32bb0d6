//! Faults in the headers of deliveries.

use conformance_model::mode::Mode;

use crate::fault::{Change, Fault};
use crate::injection_point::{InjectionPoint, Position};

/// The name of a header, in which `X-` stands for the service's prefix; the new value (`None` removes the header); the
/// description of the fault, whose subject is the header; and the violated statements.
type HeaderFault = (&'static str, Option<&'static str>, &'static str, &'static [&'static str]);

const HEADER_FAULTS: &[HeaderFault] = &[
    ("Content-Type", None, "is missing", &["webhooks.content_type"]),
    (
        "Content-Type",
        Some("application/x-www-form-urlencoded"),
        "is the media type of a form",
        &["webhooks.content_type"],
    ),
    ("User-Agent", None, "is missing", &["webhooks.user_agent"]),
    (
        "User-Agent",
        Some("python-requests/2.32.0"),
        "is the default of an HTTP library",
        &["webhooks.user_agent"],
    ),
    ("X-Event", None, "is missing", &["webhooks.event_header"]),
    ("X-Event", Some("charge.updated"), "differs from the type in the body", &["webhooks.event_header"]),
    ("X-Delivery", None, "is missing", &["webhooks.delivery_id"]),
    (
        "X-Delivery",
        Some("0190a5c7-7f3e-7ddd-8def-aaaaaaaaaaaa"),
        "differs from the id in the body",
        &["webhooks.delivery_id"],
    ),
    ("X-Signature", None, "is missing", &["webhooks.signature_shape", "webhooks.signed"]),
    (
        "X-Signature",
        Some("t=1767603600"),
        "has no signature",
        &["webhooks.signature_shape", "webhooks.signed"],
    ),
    (
        "X-Signature",
        Some("t=1767603600000,v1=00"),
        "has a time in milliseconds",
        &["webhooks.signature_shape"],
    ),
];

pub(crate) fn add_faults(all: &mut Vec<Fault>) {
    for (name, value, description, violates) in HEADER_FAULTS {
        for mode in Mode::BOTH {
            all.push(Fault {
                description,
                field: Some(name),
                violates: violates.to_vec(),
                point: InjectionPoint::DeliveryHeaders,
                position: Position::Any,
                mode: Some(mode),
                change: Change::Header(name, *value),
            });
        }
    }
}
