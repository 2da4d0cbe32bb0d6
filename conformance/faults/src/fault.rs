//! [`Fault`], a known fault of an implementation.

use std::fmt;

use conformance_model::mode::Mode;
use serde_json::Value;

use crate::editable_response::EditableResponse;
use crate::injection_point::{InjectionPoint, Position};

/// A fault of an implementation, at one injection point.
pub struct Fault {
    /// The description of the fault, such as `is missing`. If there is a `field`, it is the subject of the sentence.
    pub description: &'static str,
    /// The affected field or header, if it is a single one.
    pub field: Option<&'static str>,
    /// The ids of the statements that the fault violates. At least one must fail if the fault is noticed.
    pub violates: Vec<&'static str>,
    /// The affected responses or objects.
    pub point: InjectionPoint,
    /// The affected pages, if the injection point is a page.
    pub position: Position,
    /// The mode of the key or of the delivery; `None` for both.
    pub mode: Option<Mode>,
    pub(crate) change: Change,
}

pub(crate) enum Change {
    /// A change of a response.
    Response(Box<dyn Fn(&mut EditableResponse) + Send + Sync>),
    /// A change of each object at the injection point.
    Object(Box<dyn Fn(&mut Value) + Send + Sync>),
    /// A change of a header of a delivery: its name, in which `X-` stands for the service's prefix, and the new value;
    /// `None` removes it.
    Header(&'static str, Option<&'static str>),
}

impl Fault {
    /// Returns the chapter of the first violated statement: the part of its id before the dot.
    pub fn chapter(&self) -> &'static str {
        let first = self.violates.first().copied().unwrap_or_default();
        first.split('.').next().unwrap_or_default()
    }

    /// Returns a description of the data that a run needs to reveal the fault, such as `page 2 of the list of charges
    /// in live mode`.
    pub fn required_data(&self) -> String {
        let mode = self.mode.map_or(String::new(), |mode| format!(" in {} mode", mode.as_str()));
        match (self.point, self.position) {
            (point, Position::Any) => format!("{point}{mode}"),
            (point, position) => format!("{position} of {point}{mode}"),
        }
    }
}

/// Formats the fault as in `page 2 of the list of charges in live mode: a record is missing`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{}: `{field}` {}", self.required_data(), self.description),
            None => write!(f, "{}: {}", self.required_data(), self.description),
        }
    }
}

/// Returns a fault in responses.
pub(crate) fn response_fault(
    description: &'static str,
    violates: &[&'static str],
    point: InjectionPoint,
    mode: Option<Mode>,
    change: fn(&mut EditableResponse),
) -> Fault {
    let change = Change::Response(Box::new(change));
    Fault {
        description,
        field: None,
        violates: violates.to_vec(),
        point,
        position: Position::Any,
        mode,
        change,
    }
}
