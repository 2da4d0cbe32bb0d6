//! The identifiers that answers have shown to the key of each mode.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::reading::{text_at, twin_of};
use conformance_model::words::Mode;

/// So many of a kind are remembered. Leaks show in a few.
const IDS_MAX: usize = 400;

/// An identifier that a request names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) text: String,
    pub(super) of: Option<Mode>,
}

/// The kind of object that an identifier names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Event,
    Charge,
    Invoice,
    Link,
}

impl Kind {
    fn of(word: &str) -> Option<Kind> {
        Some(match word {
            "event" => Kind::Event,
            "charge" => Kind::Charge,
            "invoice" => Kind::Invoice,
            "link" => Kind::Link,
            _ => return None,
        })
    }

    /// An identifier of this kind that nobody has, for when none has been seen.
    fn made_up(self, n: usize) -> String {
        let like = match self {
            Kind::Event => "0197f2c0-9d2e-7c4a-8f10-3b5d7e9f1a2c",
            _ => "k3v9q0zj7t2m",
        };
        twin_of(like, n as u64 + 1)
    }
}

/// All that was learnt.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    ids: BTreeMap<(Kind, Mode), Vec<String>>,
    seen: BTreeSet<(Mode, String)>,
    /// The constant part of each event, by the key that was shown it.
    events: BTreeMap<(Mode, String), String>,
}

impl Known {
    /// Returns the object of a name such as `event:live:2`; `None` if it is no name.
    pub(super) fn look_up(&self, name: &str) -> Option<Named> {
        let (absent, name) = match name.strip_prefix("absent:") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let mut parts = name.split(':');
        let kind = Kind::of(parts.next()?)?;
        let mode = Mode::BOTH.into_iter().find(|mode| Some(mode.word()) == name.split(':').nth(1))?;
        let n: usize = parts.nth(1)?.parse().ok()?;
        let all = self.ids.get(&(kind, mode)).map_or(&[][..], Vec::as_slice);
        Some(match (all.get(n).or(all.last()), absent) {
            (Some(id), false) => Named { text: id.clone(), of: Some(mode) },
            (Some(id), true) => Named { text: twin_of(id, n as u64 + 1), of: None },
            (None, _) => Named { text: kind.made_up(n), of: None },
        })
    }

    /// Returns `true` if the key of this mode has been shown this identifier.
    pub(super) fn has_seen(&self, mode: Mode, id: &str) -> bool {
        self.seen.contains(&(mode, id.to_owned()))
    }

    /// Returns the constant part of an event as it was shown before, if it was.
    pub(super) fn told_before(&self, mode: Mode, id: &str) -> Option<&str> {
        self.events.get(&(mode, id.to_owned())).map(String::as_str)
    }

    /// Takes in the rows of a list, or one object.
    pub(super) fn learn(&mut self, mode: Mode, kind: Kind, row: &Value) {
        match kind {
            Kind::Event => {
                if let Some(id) = text_at(row, &["id"]) {
                    self.keep(Kind::Event, mode, id);
                    if self.seen.contains(&(mode, id.to_owned())) {
                        self.events.insert((mode, id.to_owned()), fixed(row));
                    }
                }
                for (name, kind) in [("charge", Kind::Charge), ("invoice", Kind::Invoice)] {
                    if let Some(object) = row.get(name).filter(|it| it.is_object()) {
                        self.learn(mode, kind, object);
                    }
                }
            }
            _ => {
                if let Some(code) = text_at(row, &["code"]).or_else(|| text_at(row, &["id"])) {
                    self.keep(kind, mode, code);
                }
                if let Some(link) = text_at(row, &["payment_link"]) {
                    self.keep(Kind::Link, mode, link);
                }
            }
        }
    }

    fn keep(&mut self, kind: Kind, mode: Mode, id: &str) {
        let all = self.ids.entry((kind, mode)).or_default();
        if all.len() < IDS_MAX && self.seen.insert((mode, id.to_owned())) {
            all.push(id.to_owned());
        }
    }

    /// Identifiers that only the other mode's key has been shown.
    pub(super) fn foreign(&self, mode: Mode) -> impl Iterator<Item = &str> {
        let of_other = self.ids.iter().filter(move |((_, of), _)| *of == mode.other());
        of_other.flat_map(|(_, ids)| ids).map(String::as_str).filter(move |id| !self.has_seen(mode, id))
    }
}

/// Returns the constant part of an event. Its charge may be shown as it is now.
pub(super) fn fixed(row: &Value) -> String {
    let part = |name: &str| row.get(name).cloned().unwrap_or_default();
    format!("{} {} {}", part("type"), part("details"), part("created_at"))
}
