//! The table of trials: deliveries, their expected responses, and the expected number of actions.

use serde_json::{Map, Value, json};

use conformance_model::catalogue::{EVENT_TYPES, Level};
use conformance_model::mode::Mode;

use super::delivery::{DeliveryContent, IdGenerator, PreparedDelivery, SignatureVariant, charge, invoice};

/// Deliveries that are sent concurrently. The next batch is sent after all their responses.
pub(super) type DeliveryBatch = Vec<PreparedDelivery>;

/// The expected responses to the deliveries of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExpectedResponses {
    /// All are 2xx.
    Accepted,
    /// At least one is 2xx: of two concurrent deliveries, the handler may refuse one, which is then retried.
    OneAccepted,
    /// None is 2xx.
    Refused,
    /// None is 5xx or missing.
    NoServerError,
}

/// A statement about a handler.
#[derive(Clone, Copy, Debug)]
pub struct TrialStatement {
    /// The id of the statement.
    pub id: &'static str,
    /// The level.
    pub level: Level,
    /// The statement.
    pub text: &'static str,
}

const fn must(id: &'static str, text: &'static str) -> TrialStatement {
    TrialStatement { id, level: Level::Must, text }
}

const fn should(id: &'static str, text: &'static str) -> TrialStatement {
    TrialStatement { id, level: Level::Should, text }
}

/// A trial. Each has separate objects, so trials do not affect each other.
pub(super) struct Trial {
    pub(super) name: &'static str,
    /// The statement about the responses.
    pub(super) responses: Option<(TrialStatement, ExpectedResponses)>,
    /// The statement about the actions, and their expected number.
    pub(super) actions: Option<(TrialStatement, u64)>,
    pub(super) batches: fn(&TrialContext<'_>) -> Vec<DeliveryBatch>,
}

/// The values that the deliveries of a trial contain.
pub(super) struct TrialContext<'a> {
    pub(super) ids: IdGenerator,
    pub(super) trial: &'static str,
    pub(super) mode: Mode,
    pub(super) created_at: &'a str,
    pub(super) sample: Option<&'a Map<String, Value>>,
}

impl TrialContext<'_> {
    /// Returns the code of the trial's charge.
    pub(super) fn charge_code(&self) -> String {
        self.ids.code(&format!("{} charge", self.trial))
    }

    /// Returns the code of the trial's invoice.
    pub(super) fn invoice_code(&self) -> String {
        self.ids.code(&format!("{} invoice", self.trial))
    }

    fn id(&self, name: &str) -> String {
        self.ids.uuid(&format!("{} {name}", self.trial))
    }

    fn charge(&self, status: &str) -> Map<String, Value> {
        charge(self.sample, &self.charge_code(), status)
    }

    /// Returns the content of a delivery of a charge event. `delivery` and `event` are names that determine the two
    /// ids.
    fn content(
        &self,
        event_type: &'static str,
        delivery: &str,
        event: &str,
        status: &str,
    ) -> DeliveryContent<'_> {
        DeliveryContent {
            delivery_id: self.id(&format!("delivery {delivery}")),
            event_id: Some(self.id(&format!("event {event}"))),
            event_type,
            mode: self.mode,
            created_at: self.created_at,
            data: json!({ "charge": self.charge(status) }),
            extra_members: "",
        }
    }

    fn paid_delivery(&self, signature: SignatureVariant) -> PreparedDelivery {
        self.content("charge.paid", "1", "1", "paid").prepare(signature)
    }

    fn paid_delivery_with(&self, change: impl FnOnce(&mut DeliveryContent<'_>)) -> PreparedDelivery {
        let mut content = self.content("charge.paid", "1", "1", "paid");
        change(&mut content);
        content.prepare(SignatureVariant::Valid)
    }

    fn invoice_delivery(&self, event_type: &'static str, status: &str) -> PreparedDelivery {
        let mut content = self.content(event_type, event_type, event_type, "paid");
        content.data = json!({ "invoice": invoice(&self.invoice_code(), &self.charge_code(), status) });
        content.prepare(SignatureVariant::Valid)
    }
}

/// Returns the status of the charge at an event of this type.
fn status_at(event_type: &str) -> &'static str {
    match event_type {
        "charge.paid" | "charge.refunded" => "paid",
        "charge.underpaid" => "underpaid",
        "charge.expired" | "charge.late_payment" => "expired",
        "charge.canceled" => "canceled",
        _ => "pending",
    }
}

fn deliveries_of_each_type(context: &TrialContext<'_>) -> Vec<DeliveryBatch> {
    let delivery = |event_type: &'static str| match event_type {
        "invoice.paid" => context.invoice_delivery(event_type, "paid"),
        "invoice.voided" => context.invoice_delivery(event_type, "void"),
        event_type if event_type.starts_with("invoice.") => context.invoice_delivery(event_type, "open"),
        event_type => context
            .content(event_type, event_type, event_type, status_at(event_type))
            .prepare(SignatureVariant::Valid),
    };
    EVENT_TYPES.into_iter().map(|event_type| vec![delivery(event_type)]).collect()
}

/// Rewrites the body to equal JSON in an unusual format.
fn in_unusual_format(delivery: PreparedDelivery) -> PreparedDelivery {
    let body = delivery.body.replace("\":\"", "\" : \"").replace("pay", "p\\u0061y").replacen('{', "{ \n", 1);
    PreparedDelivery { body, ..delivery }
}

fn delivery_without_optional_values(context: &TrialContext<'_>) -> PreparedDelivery {
    let mut charge = context.charge("pending");
    for name in ["customer_email", "description", "payment_link", "invoice", "paid_at"] {
        charge.insert(name.to_owned(), Value::Null);
    }
    let mut content = context.content("charge.created", "1", "1", "pending");
    content.data = json!({ "charge": charge });
    content.prepare(SignatureVariant::Valid)
}

/// All trials. The first one is the precondition of all others.
pub(super) const TRIALS: &[Trial] = &[
    Trial {
        name: "delivery",
        responses: Some((
            must("answers.delivery", "A delivery signed with the endpoint's secret is accepted with 2xx."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((must("acts.delivery", "A paid charge is acted on."), 1)),
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::Valid)]],
    },
    Trial {
        name: "types",
        responses: Some((
            must("answers.types", "Events of all types are accepted, even if the handler does not use them."),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: deliveries_of_each_type,
    },
    Trial {
        name: "retry",
        responses: Some((
            must("answers.retry", "A retried delivery with the same id is accepted again."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((must("acts.retry", "A retried delivery with the same id is acted on once."), 1)),
        batches: |context| {
            vec![
                vec![context.paid_delivery(SignatureVariant::Valid)],
                vec![context.paid_delivery(SignatureVariant::Valid)],
            ]
        },
    },
    Trial {
        name: "resent",
        responses: Some((
            must("answers.resent", "An event in a second delivery is accepted again."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((must("acts.resent", "An event in two deliveries is acted on once."), 1)),
        batches: |context| {
            let second_delivery =
                context.content("charge.paid", "2", "1", "paid").prepare(SignatureVariant::Valid);
            vec![vec![context.paid_delivery(SignatureVariant::Valid)], vec![second_delivery]]
        },
    },
    Trial {
        name: "together",
        responses: Some((
            must("answers.together", "Of two concurrent deliveries of one event, at least one is accepted."),
            ExpectedResponses::OneAccepted,
        )),
        actions: Some((
            must("acts.together", "Two concurrent deliveries of one event are acted on once."),
            1,
        )),
        batches: |context| {
            let second_delivery =
                context.content("charge.paid", "2", "1", "paid").prepare(SignatureVariant::Valid);
            vec![vec![context.paid_delivery(SignatureVariant::Valid), second_delivery]]
        },
    },
    Trial {
        name: "order",
        responses: Some((
            must("answers.order", "Events that arrive out of order are all accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((
            must(
                "acts.order",
                "A charge whose payment event arrives before its creation event is acted on once.",
            ),
            1,
        )),
        batches: |context| {
            let earlier_event = |event_type, name| {
                vec![context.content(event_type, name, name, "pending").prepare(SignatureVariant::Valid)]
            };
            vec![
                vec![context.paid_delivery(SignatureVariant::Valid)],
                earlier_event("charge.payment_detected", "2"),
                earlier_event("charge.created", "3"),
            ]
        },
    },
    Trial {
        name: "invoice",
        responses: Some((
            must("answers.invoice", "Both events of a paid invoice are accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((must("acts.invoice", "Of the two events of a paid invoice only one is acted on."), 1)),
        batches: |context| {
            let mut paid = context.charge("paid");
            paid.insert("invoice".to_owned(), json!(context.invoice_code()));
            let mut content = context.content("charge.paid", "1", "1", "paid");
            content.data = json!({ "charge": paid });
            vec![
                vec![content.prepare(SignatureVariant::Valid)],
                vec![context.invoice_delivery("invoice.paid", "paid")],
            ]
        },
    },
    Trial {
        name: "raw_body",
        responses: Some((
            must("answers.raw_body", "The signature is verified over the raw body, in any JSON formatting."),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |context| vec![vec![in_unusual_format(context.paid_delivery(SignatureVariant::Valid))]],
    },
    Trial {
        name: "tampered",
        responses: Some((
            must("answers.tampered", "A body that was changed after it was signed is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((
            must("acts.tampered", "A body that was changed after it was signed is not acted on."),
            0,
        )),
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::Tampered)]],
    },
    Trial {
        name: "wrong_secret",
        responses: Some((
            must("answers.wrong_secret", "A delivery that is signed with another secret is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((
            must("acts.wrong_secret", "A delivery that is signed with another secret is not acted on."),
            0,
        )),
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::WrongSecret)]],
    },
    Trial {
        name: "unsigned",
        responses: Some((
            must("answers.unsigned", "A delivery without a signature is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((must("acts.unsigned", "A delivery without a signature is not acted on."), 0)),
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::Missing)]],
    },
    Trial {
        name: "time_changed",
        responses: Some((
            must("answers.time_changed", "A delivery whose time was changed after it was signed is refused."),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::TimeChanged)]],
    },
    Trial {
        name: "body_only",
        responses: Some((
            must(
                "answers.body_only",
                "A signature over the body alone is refused, because it would never expire.",
            ),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::BodyOnly)]],
    },
    Trial {
        name: "malformed",
        responses: Some((
            must("answers.malformed", "A malformed signature header is refused."),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: malformed_signatures,
    },
    Trial {
        name: "calm",
        responses: Some((
            should("answers.calm", "A malformed signature gets a response that is not a server error."),
            ExpectedResponses::NoServerError,
        )),
        actions: None,
        batches: malformed_signatures,
    },
    Trial {
        name: "stale",
        responses: Some((
            should("answers.stale", "A delivery that was signed an hour ago is refused."),
            ExpectedResponses::Refused,
        )),
        actions: Some((should("acts.stale", "A delivery that was signed an hour ago is not acted on."), 0)),
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::TimeOffset(-3_600))]],
    },
    Trial {
        name: "future",
        responses: Some((
            should("answers.future", "A delivery with a time an hour in the future is refused."),
            ExpectedResponses::Refused,
        )),
        actions: None,
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::TimeOffset(3_600))]],
    },
    Trial {
        name: "slow_clock",
        responses: Some((
            should(
                "answers.slow_clock",
                "A delivery that was signed a minute ago is accepted, because clocks differ.",
            ),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |context| vec![vec![context.paid_delivery(SignatureVariant::TimeOffset(-60))]],
    },
    Trial {
        name: "unknown_type",
        responses: Some((
            should("answers.unknown_type", "An event of an unknown type is accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((should("acts.unknown_type", "An event of an unknown type is not acted on."), 0)),
        batches: |context| {
            vec![vec![
                context.content("charge.celebrated", "1", "1", "pending").prepare(SignatureVariant::Valid),
            ]]
        },
    },
    Trial {
        name: "more_fields",
        responses: Some((
            should("answers.more_fields", "Unknown fields are ignored."),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |context| {
            vec![vec![context.paid_delivery_with(|content| {
                content.extra_members = r#","api_version":"v1","tags":["new",{"deep":[1,2.5,null]}]"#
            })]]
        },
    },
    Trial {
        name: "nulls",
        responses: Some((
            must("answers.nulls", "A charge without optional values is accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: None,
        batches: |context| vec![vec![delivery_without_optional_values(context)]],
    },
    Trial {
        name: "test_delivery",
        responses: Some((
            should("answers.test_delivery", "A test delivery of the dashboard is accepted."),
            ExpectedResponses::Accepted,
        )),
        actions: Some((should("acts.test_delivery", "A test delivery of the dashboard is not acted on."), 0)),
        batches: |context| {
            let delivery = context.paid_delivery_with(|content| {
                content.event_id = None;
                content.extra_members = r#","test":true"#;
            });
            vec![vec![delivery]]
        },
    },
    Trial {
        name: "other_mode",
        responses: None,
        actions: Some((must("acts.other_mode", "An event of the other mode is not acted on."), 0)),
        batches: |context| {
            let mut content = context.content("charge.paid", "1", "1", "paid");
            content.mode = context.mode.other();
            vec![vec![content.prepare(SignatureVariant::OtherModeSecret)]]
        },
    },
];

fn malformed_signatures(context: &TrialContext<'_>) -> Vec<DeliveryBatch> {
    let headers = ["", "v1", "t=,v1=", "t=now,v1=00", "t=99999999999999999999,v1=zz", "v1=00,v1=00;t=1"];
    let delivery = |(index, header): (usize, &'static str)| {
        let name = index.to_string();
        vec![
            context.content("charge.paid", &name, &name, "paid").prepare(SignatureVariant::Malformed(header)),
        ]
    };
    headers.into_iter().enumerate().map(delivery).collect()
}

/// Returns all statements about a handler.
pub fn statements() -> impl Iterator<Item = TrialStatement> {
    let of_trial = |trial: &'static Trial| {
        let responses = trial.responses.iter().map(|(statement, _)| *statement);
        responses.chain(trial.actions.iter().map(|(statement, _)| *statement))
    };
    TRIALS.iter().flat_map(of_trial)
}
