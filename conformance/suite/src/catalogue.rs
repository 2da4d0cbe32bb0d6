//! The catalogue: every statement by name, read from `requirements.toml`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How firmly a statement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The specification says so.
    Must,
    /// It follows from what the specification says, or from HTTP itself.
    Should,
    /// The specification leaves it open.
    Open,
}

impl Level {
    /// The word that stands in the catalogue.
    pub fn word(self) -> &'static str {
        match self {
            Level::Must => "must",
            Level::Should => "should",
            Level::Open => "open",
        }
    }
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Where the specification says it.
    pub spec: String,
    /// How firmly.
    pub level: Level,
    /// The statement in our words.
    pub text: String,
}

/// Every statement by its name.
pub fn catalogue() -> BTreeMap<String, Requirement> {
    let table: toml::Table =
        include_str!("../requirements.toml").parse().expect("requirements.toml is valid TOML");
    let mut found = BTreeMap::new();
    gather("", table, &mut found);
    found
}

/// A table with a `text` is a statement; any other table is a chapter.
fn gather(chapter: &str, table: toml::Table, found: &mut BTreeMap<String, Requirement>) {
    for (name, value) in table {
        let id = if chapter.is_empty() { name } else { format!("{chapter}.{name}") };
        let toml::Value::Table(inner) = value else {
            panic!("requirements.toml: `{id}` is neither a chapter nor a statement");
        };
        if inner.contains_key("text") {
            let requirement =
                inner.try_into().unwrap_or_else(|err| panic!("requirements.toml: `{id}`: {err}"));
            found.insert(id, requirement);
        } else {
            gather(&id, inner, found);
        }
    }
}

/// Whether a name fits a pattern in which `*` stands for anything: `paging.*`, `*.json`.
pub(crate) fn fits(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((head, rest)) => id.strip_prefix(head).is_some_and(|tail| {
            tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| fits(rest, &tail[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, id: &str, expected: bool) {
        assert_eq!(fits(pattern, id), expected, "{pattern} on {id}");
    }

    #[test]
    fn a_star_stands_for_anything() {
        check("paging.*", "paging.joined", true);
        check("*.json", "limits.json", true);
        check("a*c*e", "abcde", true);
        check("*", "", true);
    }

    #[test]
    fn without_a_star_only_the_name_itself_fits() {
        check("paging.joined", "paging.joined", true);
        check("paging", "paging.joined", false);
        check("paging.*", "limits.json", false);
    }

    #[test]
    fn every_statement_is_a_sentence_with_a_source() {
        for (id, it) in catalogue() {
            assert!(it.text.ends_with('.'), "{id}: a statement ends with a full stop");
            assert!(!it.spec.is_empty(), "{id}: a statement names its source");
        }
    }
}
