//! The catalogue of statements, read from the chapters in `requirements`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// The 13 event types that the specification names.
pub const EVENT_TYPES: [&str; 13] = [
    "charge.created",
    "charge.payment_detected",
    "charge.paid",
    "charge.underpaid",
    "charge.late_payment",
    "charge.refunded",
    "charge.expired",
    "charge.canceled",
    "invoice.created",
    "invoice.sent",
    "invoice.viewed",
    "invoice.paid",
    "invoice.voided",
];

/// The event types that end the life of an object; an expired or refunded charge may still get a payment.
pub const FINAL_EVENT_TYPES: [&str; 6] =
    ["charge.paid", "charge.expired", "charge.canceled", "charge.refunded", "invoice.paid", "invoice.voided"];

/// The level of a statement: must, should or open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The specification requires it.
    Must,
    /// It is derived from the specification or from HTTP.
    Should,
    /// The specification leaves it open.
    Open,
}

impl Level {
    /// Returns the name of the level in the catalogue.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Must => "must",
            Level::Should => "should",
            Level::Open => "open",
        }
    }
}

/// A statement of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The section of the specification.
    pub spec: String,
    /// The level.
    pub level: Level,
    /// The text of the statement.
    pub text: String,
    /// The hashes of the sentences that it restates. Empty if it follows from HTTP or the reference server instead of
    /// the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source: Vec<String>,
    /// The reason why a statement is a `should`: the detail that the specification leaves open. Every `should` has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived: Option<String>,
    /// The reason why no check judges it. `None` if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
}

/// The name and the file of each chapter.
const CHAPTERS: &[(&str, &str)] = &[
    ("account", include_str!("../requirements/account.toml")),
    ("answers", include_str!("../requirements/answers.toml")),
    ("auth", include_str!("../requirements/auth.toml")),
    ("charges", include_str!("../requirements/charges.toml")),
    ("endpoints", include_str!("../requirements/endpoints.toml")),
    ("errors", include_str!("../requirements/errors.toml")),
    ("events", include_str!("../requirements/events.toml")),
    ("filters", include_str!("../requirements/filters.toml")),
    ("invoices", include_str!("../requirements/invoices.toml")),
    ("isolation", include_str!("../requirements/isolation.toml")),
    ("limits", include_str!("../requirements/limits.toml")),
    ("lists", include_str!("../requirements/lists.toml")),
    ("paging", include_str!("../requirements/paging.toml")),
    ("service", include_str!("../requirements/service.toml")),
    ("types", include_str!("../requirements/types.toml")),
    ("webhooks", include_str!("../requirements/webhooks.toml")),
];

/// The sentences of the specification, one per line: its hash, its section and its position there.
pub const SENTENCES: &str = include_str!("../requirements/sentences.txt");

/// Returns all statements of the chapters by id, including those without a check.
pub fn catalogue() -> BTreeMap<String, Requirement> {
    // Parsed once, because every judgement and every report uses the catalogue.
    static CATALOGUE: LazyLock<BTreeMap<String, Requirement>> = LazyLock::new(|| {
        let mut found = BTreeMap::new();
        for (chapter, text) in CHAPTERS {
            for (name, requirement) in statements(chapter, text) {
                found.insert(format!("{chapter}.{name}"), requirement);
            }
        }
        found
    });
    CATALOGUE.clone()
}

/// Returns the statements about the reference server's own choices by id, such as `extended.amounts`. They are judged
/// on demand.
pub fn extended_statements() -> BTreeMap<String, Requirement> {
    static STATEMENTS: LazyLock<BTreeMap<String, Requirement>> = LazyLock::new(|| {
        let text = include_str!("../requirements/extended/choices.toml");
        let with_id = |(name, requirement)| (format!("extended.{name}"), requirement);
        statements("extended", text).into_iter().map(with_id).collect()
    });
    STATEMENTS.clone()
}

/// Returns the statements of the chapters that have a check, by id. A full run reports on these.
pub fn judged_statements() -> BTreeMap<String, Requirement> {
    catalogue().into_iter().filter(|(_, requirement)| requirement.unjudged.is_none()).collect()
}

/// Parses the file of a chapter. Returns its statements by name, without the chapter.
fn statements(chapter: &str, text: &str) -> BTreeMap<String, Requirement> {
    let mut chapters: BTreeMap<String, BTreeMap<String, Requirement>> =
        toml::from_str(text).unwrap_or_else(|err| panic!("requirements/{chapter}.toml: {err}"));
    let statements = chapters.remove(chapter).unwrap_or_default();
    assert!(chapters.is_empty(), "requirements/{chapter}.toml contains statements of another chapter");
    statements
}

/// Returns `true` if the id of a statement matches a pattern, in which `*` matches any text: `paging.*`, `*.json`.
pub fn matches_pattern(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((head, rest)) => id.strip_prefix(head).is_some_and(|tail| {
            tail.char_indices()
                .map(|(index, _)| index)
                .chain([tail.len()])
                .any(|index| matches_pattern(rest, &tail[index..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, id: &str, expected: bool) {
        assert_eq!(matches_pattern(pattern, id), expected, "{pattern} on {id}");
    }

    #[test]
    fn a_star_matches_any_text() {
        check("paging.*", "paging.joined", true);
        check("*.json", "limits.json", true);
        check("a*c*e", "abcde", true);
        check("*", "", true);
    }

    #[test]
    fn a_pattern_without_a_star_matches_only_the_equal_id() {
        check("paging.joined", "paging.joined", true);
        check("paging", "paging.joined", false);
        check("paging.*", "limits.json", false);
    }

    #[test]
    fn every_should_statement_states_what_the_specification_leaves_open() {
        for (id, requirement) in catalogue() {
            assert_eq!(requirement.derived.is_some(), requirement.level == Level::Should, "{id}");
        }
    }

    #[test]
    fn every_file_is_a_chapter() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/requirements");
        let mut files: Vec<_> = std::fs::read_dir(directory)
            .expect("the directory of chapters exists")
            .map(|file| {
                file.expect("the directory can be listed")
                    .file_name()
                    .into_string()
                    .expect("the name is UTF-8")
            })
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        let chapters: Vec<_> = CHAPTERS.iter().map(|(chapter, _)| *chapter).collect();
        assert_eq!(chapters, files);
    }

    #[test]
    fn statements_are_sorted_by_name() {
        for (chapter, text) in CHAPTERS {
            let names: Vec<_> = text.lines().filter_map(|line| line.strip_prefix('[')).collect();
            let unsorted = names.windows(2).find(|pair| pair[0] > pair[1]);
            assert_eq!(unsorted, None, "{chapter}.toml: the first belongs after the second");
            assert_eq!(names.len(), statements(chapter, text).len(), "{chapter}");
        }
    }

    #[test]
    fn every_statement_ends_with_a_full_stop() {
        for (id, requirement) in catalogue() {
            assert!(requirement.text.ends_with('.'), "{id}: a statement ends with a full stop");
        }
    }

    #[test]
    fn every_statement_cites_the_specification_or_names_another_document() {
        let is_hash =
            |hash: &String| hash.len() == 16 && hash.bytes().all(|byte| b"0123456789abcdef".contains(&byte));
        for (id, requirement) in catalogue() {
            let is_specified = requirement.spec.starts_with(|character: char| character.is_ascii_digit());
            assert_eq!(
                is_specified,
                !requirement.source.is_empty(),
                "{id}: {} and {:?}",
                requirement.spec,
                requirement.source
            );
            assert!(
                is_specified || requirement.level == Level::Should,
                "{id}: only the specification makes a `must`"
            );
            assert!(requirement.source.iter().all(is_hash), "{id}: {:?}", requirement.source);
        }
    }

    #[test]
    fn extended_statements_cite_no_sentence_and_have_ids_of_their_own() {
        let all = catalogue();
        for (id, requirement) in extended_statements() {
            assert!(
                requirement.spec.starts_with("reference: ") && requirement.source.is_empty(),
                "{id}: {}",
                requirement.spec
            );
            assert!(
                requirement.text.ends_with('.') && requirement.unjudged.is_none(),
                "{id}: {}",
                requirement.text
            );
            assert!(!all.contains_key(&id), "{id}");
        }
    }

    #[test]
    fn the_reason_for_no_check_starts_in_lower_case_and_has_no_full_stop() {
        for (id, requirement) in catalogue() {
            if let Some(why) = requirement.unjudged {
                assert!(why.starts_with(char::is_lowercase) && !why.ends_with('.'), "{id}: {why}");
            }
        }
    }
}
