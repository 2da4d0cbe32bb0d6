//! Coverage by sentence: the verdicts of the statements that restate each sentence of the specification.

use std::collections::BTreeMap;

use serde::Serialize;

use conformance_model::catalogue::{SENTENCES, catalogue};
use conformance_model::verdict::{StatementResult, Verdict};

/// A sentence of the specification, by its position, and the statements that restate it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
pub(super) struct Sentence {
    /// The section of the specification.
    pub(super) section: String,
    /// The position in the section.
    #[serde(rename = "place")]
    pub(super) position: String,
    /// The first 16 digits of the sentence's SHA-256.
    pub(super) source: String,
    /// The statements that restate it.
    pub(super) statements: Vec<RestatingStatement>,
}

/// A statement that restates a sentence.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema, serde::Deserialize))]
#[cfg_attr(test, serde(deny_unknown_fields))]
pub(super) struct RestatingStatement {
    /// The statement's name.
    pub(super) id: String,
    /// Its verdict; `unjudged` if no check judges it, `not asked` if it was not selected.
    pub(super) verdict: String,
    /// The reason why no check judges it.
    #[serde(rename = "because", skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

impl RestatingStatement {
    /// Returns the verdict as a CSS class.
    pub(super) fn class(&self) -> String {
        self.verdict.replace(' ', "-")
    }
}

impl Sentence {
    /// Returns `true` if a statement of it was judged or observed.
    pub(super) fn is_judged(&self) -> bool {
        let judged_verdicts = ["pass", "fail", "warn", "known", "observed"];
        self.statements.iter().any(|statement| judged_verdicts.contains(&statement.verdict.as_str()))
    }
}

/// Returns all sentences in the order of the specification. Empty if nothing was judged.
pub(super) fn coverage(rows: &[StatementResult]) -> Vec<Sentence> {
    if rows.is_empty() {
        return Vec::new();
    }
    let verdicts: BTreeMap<&str, &Verdict> = rows.iter().map(|row| (row.id.as_str(), &row.verdict)).collect();
    let mut restating: BTreeMap<String, Vec<(String, Option<String>)>> = BTreeMap::new();
    for (id, requirement) in catalogue() {
        for hash in &requirement.source {
            restating.entry(hash.clone()).or_default().push((id.clone(), requirement.unjudged.clone()));
        }
    }
    let statement = |(id, unjudged): &(String, Option<String>)| {
        let verdict = match (verdicts.get(id.as_str()), unjudged) {
            (Some(verdict), _) => verdict.as_str(),
            (None, Some(_)) => "unjudged",
            (None, None) => "not asked",
        };
        RestatingStatement { id: id.clone(), verdict: verdict.to_owned(), reason: unjudged.clone() }
    };
    let sentence = |line: &str| {
        let mut parts = line.splitn(3, ' ').map(str::to_owned);
        let (source, section, position) = (parts.next()?, parts.next()?, parts.next()?);
        let statements = restating.get(&source).into_iter().flatten().map(statement).collect();
        Some(Sentence { section, position, source, statements })
    };
    SENTENCES.lines().filter(|line| !line.starts_with('#')).filter_map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn every_sentence_has_a_statement_and_every_source_a_sentence() {
        let sentences = coverage(&samples::mixed().rows);
        // The first line is a comment.
        assert_eq!(sentences.len(), SENTENCES.lines().count() - 1);
        for sentence in &sentences {
            assert!(
                !sentence.statements.is_empty(),
                "{} {} has no statement",
                sentence.section,
                sentence.position
            );
        }
        let known: Vec<_> = sentences.iter().map(|sentence| sentence.source.as_str()).collect();
        for (id, requirement) in catalogue() {
            assert!(
                requirement.source.iter().all(|hash| known.contains(&hash.as_str())),
                "{id} cites an unknown sentence"
            );
        }
    }

    #[test]
    fn a_sentence_has_the_verdicts_of_its_statements() {
        let found = coverage(&samples::mixed().rows);
        let verdicts_at = |position: &str| {
            let is_at = |sentence: &&Sentence| {
                format!("{} {}", sentence.section, sentence.position).starts_with(position)
            };
            let statements = found.iter().filter(is_at).flat_map(|sentence| &sentence.statements);
            let verdicts = statements.map(|statement| format!("{} {}", statement.id, statement.verdict));
            verdicts.collect::<Vec<_>>().join(", ")
        };
        let row = verdicts_at("8 row 1");
        for part in ["limits.refused pass", "limits.mcp unjudged", "limits.per_key not asked"] {
            assert!(row.contains(part), "{part} in {row}");
        }
    }
}
