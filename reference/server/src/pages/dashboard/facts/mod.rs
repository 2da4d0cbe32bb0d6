//! What the world answers, as far as the dashboard shows it.
//!
//! Nothing here is reckoned: amounts stay the text they came as.

mod hooks;
mod objects;
mod world;

use std::fmt;

use reference_core::time::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

pub(super) use self::{hooks::*, objects::*, world::*};

/// A moment as the world writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct Moment(pub(super) String);

impl Moment {
    /// As machines read it.
    pub(super) fn iso(&self) -> &str {
        &self.0
    }

    /// The day: `2026-09-20`.
    pub(super) fn day(&self) -> &str {
        self.0.split('T').next().unwrap_or_default()
    }

    /// The time of day, in seconds: `10:05:41`.
    pub(super) fn time(&self) -> &str {
        self.0.split_once('T').and_then(|(_, time)| time.get(..8)).unwrap_or_default()
    }

    /// Day and time.
    pub(super) fn said(&self) -> String {
        format!("{} {}", self.day(), self.time())
    }

    /// How far it is from `now`, in words: `in 5 minutes`, `2 hours ago`.
    pub(super) fn from(&self, now: &Timestamp) -> String {
        let Some(at) = Timestamp::parse(&self.0) else { return String::new() };
        if at.since(*now).0.max(now.since(at).0) < 1_000_000 {
            return "now".to_owned();
        }
        let said = |micros: u64| crate::pages::words::length(std::time::Duration::from_micros(micros));
        if at > *now {
            format!("in {}", said(at.since(*now).0))
        } else {
            format!("{} ago", said(now.since(at).0))
        }
    }
}

/// Key/value pairs in the order in which they came, values as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                // Raw, because a number may be larger than any that this program can hold.
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    let text = serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned());
                    pairs.push((key, text));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// One object under `data`.
#[derive(Debug, Deserialize)]
pub(super) struct One<T> {
    pub(super) data: T,
}

/// A list of the API.
#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    pub(super) links: Links,
    pub(super) meta: ListMeta,
}

#[derive(Debug, Deserialize)]
pub(super) struct Links {
    first: String,
    pub(super) prev: Option<String>,
    pub(super) next: Option<String>,
}

impl Links {
    /// The newest record of this reading of the list.
    pub(super) fn anchor(&self) -> Option<String> {
        let url = url::Url::parse(&self.first).ok()?;
        url.query_pairs().find(|(name, _)| name == "anchor").map(|(_, value)| value.into_owned())
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ListMeta {
    pub(super) current_page: u64,
    pub(super) last_page: u64,
    pub(super) from: Option<u64>,
    pub(super) to: Option<u64>,
    pub(super) total: u64,
}
