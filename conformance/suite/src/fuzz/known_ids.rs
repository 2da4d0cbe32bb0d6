//! The identifiers that the key of each mode has received.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use conformance_model::mode::Mode;
use conformance_model::reading::{text_at, unused_id_like};

/// The largest number of stored identifiers per kind and mode. Leaks are detected without storing all.
const IDS_MAX: usize = 400;

/// An identifier in a request, and the mode that owns it; `None` if it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedId {
    pub(super) id: String,
    pub(super) owner: Option<Mode>,
}

/// The kind of object that an identifier names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IdKind {
    Event,
    Charge,
    Invoice,
    Link,
}

impl IdKind {
    fn from_name(name: &str) -> Option<IdKind> {
        Some(match name {
            "event" => IdKind::Event,
            "charge" => IdKind::Charge,
            "invoice" => IdKind::Invoice,
            "link" => IdKind::Link,
            _ => return None,
        })
    }

    /// Returns a nonexistent identifier of this kind, for use before an existing one is known.
    fn nonexistent_id(self, index: usize) -> String {
        let like = match self {
            IdKind::Event => "0197f2c0-9d2e-7c4a-8f10-3b5d7e9f1a2c",
            _ => "k3v9q0zj7t2m",
        };
        unused_id_like(like, index as u64 + 1)
    }
}

/// The first identifiers that the keys have received, at most [`IDS_MAX`] per kind and mode.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownIds {
    /// In order of receipt.
    ids: BTreeMap<(IdKind, Mode), Vec<String>>,
    /// The same identifiers, of all kinds.
    received: BTreeSet<(Mode, String)>,
    /// The constant part of each event, by mode and id.
    events: BTreeMap<(Mode, String), String>,
}

impl KnownIds {
    /// Returns the identifier for a placeholder; `None` if the placeholder is invalid. `event:live:2` is the third event
    /// id that the live key received, or the last one if there are fewer; `absent:event:live:2` is a nonexistent id of
    /// the same format.
    pub(super) fn id_for_placeholder(&self, name: &str) -> Option<NamedId> {
        let (is_absent, name) = match name.strip_prefix("absent:") {
            Some(rest) => (true, rest),
            None => (false, name),
        };
        let mut parts = name.split(':');
        let kind = IdKind::from_name(parts.next()?)?;
        let mode = Mode::BOTH.into_iter().find(|mode| Some(mode.as_str()) == name.split(':').nth(1))?;
        let index: usize = parts.nth(1)?.parse().ok()?;
        let ids = self.ids.get(&(kind, mode)).map_or(&[][..], Vec::as_slice);
        Some(match (ids.get(index).or(ids.last()), is_absent) {
            (Some(id), false) => NamedId { id: id.clone(), owner: Some(mode) },
            (Some(id), true) => NamedId { id: unused_id_like(id, index as u64 + 1), owner: None },
            (None, _) => NamedId { id: kind.nonexistent_id(index), owner: None },
        })
    }

    /// Returns `true` if the key of a mode has received an identifier that is stored.
    pub(super) fn has_received(&self, mode: Mode, id: &str) -> bool {
        self.received.contains(&(mode, id.to_owned()))
    }

    /// Returns the constant part of an event as last received; `None` if its id is not stored.
    pub(super) fn received_event(&self, mode: Mode, id: &str) -> Option<&str> {
        self.events.get(&(mode, id.to_owned())).map(String::as_str)
    }

    /// Adds the identifier of an object and that of its payment link, and for an event those of its charge and invoice.
    pub(super) fn add_object(&mut self, mode: Mode, kind: IdKind, row: &Value) {
        match kind {
            IdKind::Event => {
                if let Some(id) = text_at(row, &["id"]) {
                    self.insert(IdKind::Event, mode, id);
                    if self.received.contains(&(mode, id.to_owned())) {
                        self.events.insert((mode, id.to_owned()), constant_part(row));
                    }
                }
                for (name, kind) in [("charge", IdKind::Charge), ("invoice", IdKind::Invoice)] {
                    if let Some(object) = row.get(name).filter(|object| object.is_object()) {
                        self.add_object(mode, kind, object);
                    }
                }
            }
            _ => {
                if let Some(id) = text_at(row, &["code"]).or_else(|| text_at(row, &["id"])) {
                    self.insert(kind, mode, id);
                }
                if let Some(link) = text_at(row, &["payment_link"]) {
                    self.insert(IdKind::Link, mode, link);
                }
            }
        }
    }

    fn insert(&mut self, kind: IdKind, mode: Mode, id: &str) {
        let ids = self.ids.entry((kind, mode)).or_default();
        if ids.len() < IDS_MAX && self.received.insert((mode, id.to_owned())) {
            ids.push(id.to_owned());
        }
    }

    /// Returns the identifiers that only the key of the other mode has received.
    pub(super) fn foreign_ids(&self, mode: Mode) -> impl Iterator<Item = &str> {
        let ids_of_other_mode = self.ids.iter().filter(move |((_, owner), _)| *owner == mode.other());
        ids_of_other_mode
            .flat_map(|(_, ids)| ids)
            .map(String::as_str)
            .filter(move |id| !self.has_received(mode, id))
    }
}

/// Returns the members of an event that never change, as text. The charge in it, in contrast, may show a later state.
pub(super) fn constant_part(row: &Value) -> String {
    let part = |name: &str| row.get(name).cloned().unwrap_or_default();
    format!("{} {} {}", part("type"), part("details"), part("created_at"))
}
