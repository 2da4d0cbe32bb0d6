//! The deliveries, read as far as possible, and the verdict when there are none.

use std::fmt::Write;

use serde_json::Value;

use crate::check::Flaw;
use conformance_model::deliveries::{Deliveries, Delivery};
use conformance_model::reading::text_at;
use conformance_model::recording::Recording;
use conformance_model::verdict::{CheckError, Held, Judged};
use conformance_model::words::Mode;

/// A delivery and what its body says.
pub(super) struct Seen<'a> {
    pub(super) delivery: &'a Delivery,
    /// The body, if it is JSON.
    pub(super) body: Option<Value>,
}

impl Seen<'_> {
    /// A text of the body.
    pub(super) fn text(&self, path: &[&str]) -> Option<&str> {
        text_at(self.body.as_ref()?, path)
    }

    /// The type of the event, as the body says.
    pub(super) fn kind(&self) -> Option<&str> {
        self.text(&["event"])
    }

    /// The mode that the body names.
    pub(super) fn mode(&self) -> Option<Mode> {
        let told = self.text(&["mode"])?;
        Mode::BOTH.into_iter().find(|mode| mode.word() == told)
    }

    /// Returns `true` for "Send test event": there is no such event, and no endpoint has to subscribe to it.
    pub(super) fn is_test(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.get("test") == Some(&Value::Bool(true)))
    }

    /// Returns the name in findings.
    pub(super) fn name(&self) -> String {
        let mut name = format!("delivery {}", self.delivery.number);
        if let Some(kind) = self.kind() {
            let _ = write!(name, ", {}", conformance_model::recording::shorten(kind));
        }
        name
    }

    pub(super) fn broken(&self, expected: impl Into<String>, actual: impl Into<String>) -> CheckError {
        CheckError::broken(None, expected, format!("{} ({})", actual.into(), self.name()))
    }
}

/// Deliveries, without requests that merely followed a redirect.
pub(super) struct Catch<'a> {
    pub(super) all: &'a Deliveries,
    pub(super) seen: Vec<Seen<'a>>,
}

impl Catch<'_> {
    /// The deliveries of which the body could be read.
    pub(super) fn readable(&self) -> impl Iterator<Item = &Seen<'_>> {
        self.seen.iter().filter(|it| it.body.as_ref().is_some_and(Value::is_object))
    }

    /// The mode of the endpoint that a delivery came to, if it was declared.
    pub(super) fn endpoint_mode(&self, seen: &Seen<'_>) -> Option<Mode> {
        self.all.endpoints.get(seen.delivery.endpoint?)?.mode
    }
}

/// Everything that came, or why nothing can be said.
pub(super) fn caught(recording: &Recording) -> Result<Catch<'_>, CheckError> {
    let Some(all) = &recording.deliveries else {
        return Err(CheckError::unjudged(
            "nobody received deliveries",
            "receive them with `--receiver ADDR:PORT`, read captured ones with `--deliveries FILE`, \
             or declare `--without webhooks`",
        ));
    };
    let parse = |delivery| Seen { delivery, body: serde_json::from_slice(&delivery.body.0).ok() };
    let seen: Vec<_> = all.caught.iter().filter(|it| !it.redirected).map(parse).collect();
    if seen.is_empty() {
        return Err(nothing_came(all));
    }
    Ok(Catch { all, seen })
}

fn nothing_came(all: &Deliveries) -> CheckError {
    let mut why = match all.receiver {
        Some(_) => format!("no delivery came within {} s", all.lasted.as_secs()),
        None => "no delivery is among the captured requests".to_owned(),
    };
    if let Some(trouble) = &all.trouble {
        let _ = write!(why, "; {trouble}");
    }
    if all.strays > 0 {
        let _ = write!(why, "; {} requests came that had nothing of one", all.strays);
    }
    CheckError::unjudged(
        why,
        "cause one while the suite receives: add its public address as an endpoint, then open and cancel a charge",
    )
}

/// Judges every delivery that the statement is about. `flaw` says nothing of the others.
pub(super) fn each(
    recording: &Recording,
    wants: &str,
    is_meant: impl Fn(&Seen<'_>) -> bool,
    flaw: impl Fn(&Deliveries, &Seen<'_>) -> Flaw,
) -> Judged {
    let catch = caught(recording)?;
    let mut judged = false;
    for seen in catch.seen.iter().filter(|it| is_meant(it)) {
        if let Some((expected, actual)) = flaw(catch.all, seen) {
            return Err(seen.broken(expected, actual));
        }
        judged = true;
    }
    if judged { Ok(Held::Plainly) } else { Err(missing(wants)) }
}

/// Returns the error for missing deliveries of a kind, where others came.
pub(super) fn missing(wants: &str) -> CheckError {
    CheckError::unjudged(
        format!("no delivery came with {wants}"),
        format!("cause one with {wants} while the suite receives"),
    )
}

/// A value as it stands, short enough for a line.
pub(super) fn told(holder: &Value, name: &str) -> String {
    match holder.get(name) {
        None => format!("{name} missing"),
        Some(value) => format!("{name} {}", conformance_model::recording::shorten(&value.to_string())),
    }
}

/// `an ISO 8601 time in UTC with microseconds` and nothing else. `Z` and `+00:00` mean the same.
pub(super) fn has_microseconds(text: &str) -> bool {
    let clock = text.strip_suffix('Z').or_else(|| text.strip_suffix("+00:00"));
    let digits = clock.and_then(|clock| clock.rsplit_once('.')).map(|(_, digits)| digits);
    conformance_model::reading::utc(text).is_ok()
        && digits.is_some_and(|it| it.len() == 6 && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Any version: the specification names none.
pub(super) fn is_uuid(text: &str) -> bool {
    let groups: Vec<_> = text.split('-').collect();
    let lengths: Vec<_> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}
