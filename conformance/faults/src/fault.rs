//! One known fault.

use std::fmt;

use conformance_model::words::Mode;
use serde_json::Value;

use crate::place::{Place, Position};
use crate::reply::Reply;

/// A fault of an implementation, at one place.
pub struct Fault {
    /// The description of the fault.
    pub what: &'static str,
    /// The field that it is about, if it is about one.
    pub field: Option<&'static str>,
    /// The statements of which at least one must notice it.
    pub breaks: Vec<&'static str>,
    /// The place.
    pub place: Place,
    /// At which pages.
    pub position: Position,
    /// With the key of which mode, or of which mode the delivery is; in both if there is none.
    pub mode: Option<Mode>,
    pub(crate) change: Change,
}

pub(crate) enum Change {
    /// Of a whole answer.
    Reply(Box<dyn Fn(&mut Reply) + Send + Sync>),
    /// Of each object at the place.
    Object(Box<dyn Fn(&mut Value) + Send + Sync>),
    /// Of the headers of a delivery: a name without the service's prefix, and what becomes of the value.
    Header(&'static str, Option<&'static str>),
}

impl Fault {
    /// The chapter of the first statement that notices it.
    pub fn chapter(&self) -> &'static str {
        let first = self.breaks.first().copied().unwrap_or_default();
        first.split('.').next().unwrap_or_default()
    }

    /// Returns the data that a run needs so that the fault can show in it.
    pub fn needs(&self) -> String {
        let mode = self.mode.map_or(String::new(), |mode| format!(" in {} mode", mode.word()));
        match (self.place, self.position) {
            (place, Position::Any) => format!("{place}{mode}"),
            (place, position) => format!("{position} of {place}{mode}"),
        }
    }
}

/// `page 2 of the list of charges in live mode: a record is missing`
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{}: `{field}` {}", self.needs(), self.what),
            None => write!(f, "{}: {}", self.needs(), self.what),
        }
    }
}

/// A fault in answers.
pub(crate) fn reply(
    what: &'static str,
    breaks: &[&'static str],
    place: Place,
    mode: Option<Mode>,
    change: fn(&mut Reply),
) -> Fault {
    let change = Change::Reply(Box::new(change));
    Fault { what, field: None, breaks: breaks.to_vec(), place, position: Position::Any, mode, change }
}
