//! The table of trials: deliveries, their expected responses, and the allowed number of actions.

use serde_json::{Map, Value, json};

use conformance_model::catalogue::{EVENT_TYPES, Level};
use conformance_model::mode::Mode;

use super::delivery::{DeliveryContent, DeliveryKey, PreparedDelivery, SignatureVariant, charge, invoice};

/// Deliveries that are sent concurrently. The next wave is sent after all responses.
pub(super) type DeliveryBatch = Vec<PreparedDelivery>;

/// The expected responses to the deliveries of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedResponses {
    /// All are 2xx.
    Accepted,
    /// At least one is 2xx. Of two concurrent deliveries, one may be refused and retried.
    OneAccepted,
    /// None is 2xx.
    Refused,
    /// None is 5xx or missing.
    NoServerError,
}

/// The name, level and text of a statement.
pub(super) type TrialStatement = (&'static str, Level, &'static str);

/// A trial. Each has separate objects, so trials do not affect each other.
pub(super) struct Trial {
    pub(super) name: &'static str,
    /// The statement about the responses.
    pub(super) answers: Option<(TrialStatement, ExpectedResponses)>,
    /// The statement about the actions, and their expected number.
    pub(super) actions: Option<(TrialStatement, u64)>,
    pub(super) batches: fn(&TrialContext<'_>) -> Vec<DeliveryBatch>,
}

/// The objects of a trial's deliveries.
pub(super) struct TrialContext<'a> {
    pub(super) draw: DeliveryKey,
    pub(super) trial: &'static str,
    pub(super) mode: Mode,
    pub(super) created_at: &'a str,
    pub(super) sample: Option<&'a Map<String, Value>>,
}

impl TrialContext<'_> {
    /// Returns the code of the trial's charge.
    pub(super) fn charge_code(&self) -> String {
        self.draw.code(&format!("{} charge", self.trial))
    }

    /// Returns the code of the trial's invoice.
    pub(super) fn invoice_code(&self) -> String {
        self.draw.code(&format!("{} invoice", self.trial))
    }

    fn id(&self, what: &str) -> String {
        self.draw.uuid(&format!("{} {what}", self.trial))
    }

    fn charge(&self, status: &str) -> Map<String, Value> {
        charge(self.sample, &self.charge_code(), status)
    }

    /// Returns a delivery of a charge event. The names determine its ids.
    fn content(&self, kind: &'static str, delivery: &str, event: &str, status: &str) -> DeliveryContent<'_> {
        DeliveryContent {
            delivery: self.id(&format!("delivery {delivery}")),
            event: Some(self.id(&format!("event {event}"))),
            kind,
            mode: self.mode,
            created_at: self.created_at,
            data: json!({ "charge": self.charge(status) }),
            more: "",
        }
    }

    fn paid_delivery(&self, sign: SignatureVariant) -> PreparedDelivery {
        self.content("charge.paid", "1", "1", "paid").delivery(sign)
    }

    fn paid_delivery_with(&self, change: impl FnOnce(&mut DeliveryContent<'_>)) -> PreparedDelivery {
        let mut content = self.content("charge.paid", "1", "1", "paid");
        change(&mut content);
        content.delivery(SignatureVariant::Right)
    }

    fn invoice_delivery(&self, kind: &'static str, status: &str) -> PreparedDelivery {
        let mut content = self.content(kind, kind, kind, "paid");
        content.data = json!({ "invoice": invoice(&self.invoice_code(), &self.charge_code(), status) });
        content.delivery(SignatureVariant::Right)
    }
}

/// Returns the status of the charge at an event of this type.
fn status_at(kind: &str) -> &'static str {
    match kind {
        "charge.paid" | "charge.refunded" => "paid",
        "charge.underpaid" => "underpaid",
        "charge.expired" | "charge.late_payment" => "expired",
        "charge.canceled" => "canceled",
        _ => "pending",
    }
}

fn deliveries_of_each_type(scene: &TrialContext<'_>) -> Vec<DeliveryBatch> {
    let delivery = |kind: &'static str| match kind {
        "invoice.paid" => scene.invoice_delivery(kind, "paid"),
        "invoice.voided" => scene.invoice_delivery(kind, "void"),
        kind if kind.starts_with("invoice.") => scene.invoice_delivery(kind, "open"),
        kind => scene.content(kind, kind, kind, status_at(kind)).delivery(SignatureVariant::Right),
    };
    EVENT_TYPES.into_iter().map(|kind| vec![delivery(kind)]).collect()
}

/// Rewrites the body to equal JSON in an unusual format.
fn in_unusual_format(delivery: PreparedDelivery) -> PreparedDelivery {
    let body = delivery.body.replace("\":\"", "\" : \"").replace("pay", "p\\u0061y").replacen('{', "{ \n", 1);
    PreparedDelivery { body, ..delivery }
}

fn without_optional(scene: &TrialContext<'_>) -> PreparedDelivery {
    let mut bare = scene.charge("pending");
    for name in ["customer_email", "description", "payment_link", "invoice", "paid_at"] {
        bare.insert(name.to_owned(), Value::Null);
    }
    let mut content = scene.content("charge.created", "1", "1", "pending");
    content.data = json!({ "charge": bare });
    content.delivery(SignatureVariant::Right)
}

const MUST: Level = Level::Must;
const SHOULD: Level = Level::Should;

/// All trials. The first one is the precondition of all others.
pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "delivery",
        answers: Some((
            ("answers.delivery", MUST, "A delivery signed with the endpoint's secret is accepted with 2xx."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((("acts.delivery", MUST, "A paid charge is acted on."), 1)),
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::Right)]],
    },
    Trial {
        name: "types",
        answers: Some((
            (
                "answers.types",
                MUST,
                "Events of all types are accepted, even if the handler does not use them.",
            ),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: deliveries_of_each_type,
    },
    Trial {
        name: "retry",
        answers: Some((
            ("answers.retry", MUST, "A retried delivery with the same id is accepted again."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((("acts.retry", MUST, "A retried delivery with the same id is acted on once."), 1)),
        batches: |scene| {
            vec![
                vec![scene.paid_delivery(SignatureVariant::Right)],
                vec![scene.paid_delivery(SignatureVariant::Right)],
            ]
        },
    },
    Trial {
        name: "resent",
        answers: Some((
            ("answers.resent", MUST, "An event in a second delivery is accepted again."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((("acts.resent", MUST, "An event in two deliveries is acted on once."), 1)),
        batches: |scene| {
            let again = scene.content("charge.paid", "2", "1", "paid").delivery(SignatureVariant::Right);
            vec![vec![scene.paid_delivery(SignatureVariant::Right)], vec![again]]
        },
    },
    Trial {
        name: "together",
        answers: Some((
            (
                "answers.together",
                MUST,
                "Of two concurrent deliveries of one event, at least one is accepted.",
            ),
            ExpectedResponses::OneAccepted,
        )),
        actions: Some((
            ("acts.together", MUST, "Two concurrent deliveries of one event are acted on once."),
            1,
        )),
        batches: |scene| {
            let again = scene.content("charge.paid", "2", "1", "paid").delivery(SignatureVariant::Right);
            vec![vec![scene.paid_delivery(SignatureVariant::Right), again]]
        },
    },
    Trial {
        name: "order",
        answers: Some((
            ("answers.order", MUST, "Events that arrive out of order are all accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((
            (
                "acts.order",
                MUST,
                "A charge whose payment event arrives before its creation event is acted on once.",
            ),
            1,
        )),
        batches: |scene| {
            let earlier = |kind, name| {
                vec![scene.content(kind, name, name, "pending").delivery(SignatureVariant::Right)]
            };
            vec![
                vec![scene.paid_delivery(SignatureVariant::Right)],
                earlier("charge.payment_detected", "2"),
                earlier("charge.created", "3"),
            ]
        },
    },
    Trial {
        name: "invoice",
        answers: Some((
            ("answers.invoice", MUST, "Both events of a paid invoice are accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((
            ("acts.invoice", MUST, "Of the two events of a paid invoice only one is acted on."),
            1,
        )),
        batches: |scene| {
            let mut paid = scene.charge("paid");
            paid.insert("invoice".to_owned(), json!(scene.invoice_code()));
            let mut content = scene.content("charge.paid", "1", "1", "paid");
            content.data = json!({ "charge": paid });
            vec![
                vec![content.delivery(SignatureVariant::Right)],
                vec![scene.invoice_delivery("invoice.paid", "paid")],
            ]
        },
    },
    Trial {
        name: "raw_body",
        answers: Some((
            (
                "answers.raw_body",
                MUST,
                "The signature is verified over the raw body, in any JSON formatting.",
            ),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |scene| vec![vec![in_unusual_format(scene.paid_delivery(SignatureVariant::Right))]],
    },
    Trial {
        name: "tampered",
        answers: Some((
            ("answers.tampered", MUST, "A body that was changed after it was signed is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((
            ("acts.tampered", MUST, "A body that was changed after it was signed is not acted on."),
            0,
        )),
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::Tampered)]],
    },
    Trial {
        name: "wrong_secret",
        answers: Some((
            ("answers.wrong_secret", MUST, "A delivery that is signed with another secret is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((
            ("acts.wrong_secret", MUST, "A delivery that is signed with another secret is not acted on."),
            0,
        )),
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::WrongSecret)]],
    },
    Trial {
        name: "unsigned",
        answers: Some((
            ("answers.unsigned", MUST, "A delivery without a signature is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((("acts.unsigned", MUST, "A delivery without a signature is not acted on."), 0)),
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::Missing)]],
    },
    Trial {
        name: "time_changed",
        answers: Some((
            (
                "answers.time_changed",
                MUST,
                "A delivery whose time was changed after it was signed is refused.",
            ),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::TimeChanged)]],
    },
    Trial {
        name: "body_only",
        answers: Some((
            (
                "answers.body_only",
                MUST,
                "A signature over the body alone is refused, because it would never expire.",
            ),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::BodyOnly)]],
    },
    Trial {
        name: "malformed",
        answers: Some((
            ("answers.malformed", MUST, "A malformed signature header is refused."),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: malformed_signatures,
    },
    Trial {
        name: "calm",
        answers: Some((
            ("answers.calm", SHOULD, "A malformed signature gets a response that is not a server error."),
            ExpectedResponses::NoServerError,
        )),
        actions: None,
        batches: malformed_signatures,
    },
    Trial {
        name: "stale",
        answers: Some((
            ("answers.stale", SHOULD, "A delivery that was signed an hour ago is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((("acts.stale", SHOULD, "A delivery that was signed an hour ago is not acted on."), 0)),
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::At(-3_600))]],
    },
    Trial {
        name: "future",
        answers: Some((
            ("answers.future", SHOULD, "A delivery with a time an hour in the future is refused."),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::At(3_600))]],
    },
    Trial {
        name: "slow_clock",
        answers: Some((
            (
                "answers.slow_clock",
                SHOULD,
                "A delivery that was signed a minute ago is accepted, because clocks differ.",
            ),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |scene| vec![vec![scene.paid_delivery(SignatureVariant::At(-60))]],
    },
    Trial {
        name: "unknown_type",
        answers: Some((
            ("answers.unknown_type", SHOULD, "An event of an unknown type is accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((("acts.unknown_type", SHOULD, "An event of an unknown type is not acted on."), 0)),
        batches: |scene| {
            vec![vec![
                scene.content("charge.celebrated", "1", "1", "pending").delivery(SignatureVariant::Right),
            ]]
        },
    },
    Trial {
        name: "more_fields",
        answers: Some((
            ("answers.more_fields", SHOULD, "Unknown fields are ignored."),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |scene| {
            vec![vec![scene.paid_delivery_with(|content| {
                content.more = r#","api_version":"v1","tags":["new",{"deep":[1,2.5,null]}]"#
            })]]
        },
    },
    Trial {
        name: "nulls",
        answers: Some((
            ("answers.nulls", MUST, "A charge without optional values is accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |scene| vec![vec![without_optional(scene)]],
    },
    Trial {
        name: "test_delivery",
        answers: Some((
            ("answers.test_delivery", SHOULD, "A test delivery of the dashboard is accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((
            ("acts.test_delivery", SHOULD, "A test delivery of the dashboard is not acted on."),
            0,
        )),
        batches: |scene| {
            let delivery = scene.paid_delivery_with(|content| {
                content.event = None;
                content.more = r#","test":true"#;
            });
            vec![vec![delivery]]
        },
    },
    Trial {
        name: "other_mode",
        answers: None,
        actions: Some((("acts.other_mode", MUST, "An event of the other mode is not acted on."), 0)),
        batches: |scene| {
            let mut content = scene.content("charge.paid", "1", "1", "paid");
            content.mode = scene.mode.other();
            vec![vec![content.delivery(SignatureVariant::OtherMode)]]
        },
    },
];

fn malformed_signatures(scene: &TrialContext<'_>) -> Vec<DeliveryBatch> {
    let texts = ["", "v1", "t=,v1=", "t=now,v1=00", "t=99999999999999999999,v1=zz", "v1=00,v1=00;t=1"];
    let delivery = |(n, text): (usize, &'static str)| {
        let name = n.to_string();
        vec![scene.content("charge.paid", &name, &name, "paid").delivery(SignatureVariant::Malformed(text))]
    };
    texts.into_iter().enumerate().map(delivery).collect()
}

/// Returns all statements about a handler: name, level and text.
pub fn statements() -> impl Iterator<Item = (&'static str, Level, &'static str)> {
    let of = |trial: &'static Trial| {
        let answers = trial.answers.iter().map(|(statement, _)| *statement);
        answers.chain(trial.actions.iter().map(|(statement, _)| *statement))
    };
    TRIALS.iter().flat_map(of)
}
