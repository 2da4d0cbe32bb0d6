//! [`Coverage`]: sentences without a statement, and citations of sentences that do not exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;

use super::sentences::Sentence;

/// The end of sentences about behaviour that the specification leaves open.
const LEFT_OPEN: &str = "not shown.";

/// The part of a statement that this task reads.
#[derive(Debug, Deserialize)]
pub(super) struct Statement {
    /// The stated sections of the specification: `5 items 2 and 6; 7`.
    spec: String,
    /// `must`, `should` or `open`.
    level: String,
    /// The hashes of the cited sentences.
    #[serde(default)]
    source: Vec<String>,
}

/// The comparison of the catalogue with the text.
pub(super) struct Coverage {
    /// The number of sentences in the text.
    sentences: usize,
    /// The number of statements in the catalogue.
    statements: usize,
    /// Sentences that no statement cites.
    uncited: Vec<Sentence>,
    /// Sentences that leave something open, but that no statement with the level `open` cites.
    not_cited_as_open: Vec<Sentence>,
    /// The ids of statements that cite an unknown sentence, each with the hash of that sentence.
    stale: Vec<(String, String)>,
    misplaced: Vec<Misplaced>,
}

/// A statement whose sections differ from those of the sentences that it cites.
struct Misplaced {
    id: String,
    stated: String,
    actual: String,
}

impl Coverage {
    /// Compares the sentences with the statements by id.
    pub(super) fn new(sentences: &[Sentence], statements: &BTreeMap<String, Statement>) -> Coverage {
        let mut sections: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for sentence in sentences {
            sections.entry(sentence.hash()).or_default().insert(&sentence.section);
        }
        let cited_by = |is_selected: fn(&Statement) -> bool| -> BTreeSet<&String> {
            let selected = statements.values().filter(|statement| is_selected(statement));
            selected.flat_map(|statement| &statement.source).collect()
        };
        let (cited, cited_as_open) = (cited_by(|_| true), cited_by(|statement| statement.level == "open"));
        let (mut uncited, mut not_cited_as_open) = (Vec::new(), Vec::new());
        for sentence in sentences {
            if !cited.contains(&sentence.hash()) {
                uncited.push(sentence.clone());
            } else if sentence.text.ends_with(LEFT_OPEN) && !cited_as_open.contains(&sentence.hash()) {
                not_cited_as_open.push(sentence.clone());
            }
        }

        let (mut stale, mut misplaced) = (Vec::new(), Vec::new());
        for (id, statement) in statements {
            let (known, unknown): (Vec<_>, Vec<_>) =
                statement.source.iter().partition(|hash| sections.contains_key(*hash));
            let (stated, actual) = (
                referenced_sections(&statement.spec),
                known.iter().flat_map(|hash| &sections[*hash]).copied().collect(),
            );
            // The section of an unknown sentence is unknown, too.
            if unknown.is_empty() && stated != actual {
                misplaced.push(Misplaced { id: id.clone(), stated: join(&stated), actual: join(&actual) });
            }
            stale.extend(unknown.into_iter().map(|hash| (id.clone(), hash.clone())));
        }
        Coverage {
            sentences: sentences.len(),
            statements: statements.len(),
            uncited,
            not_cited_as_open,
            stale,
            misplaced,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.uncited.is_empty()
            && self.not_cited_as_open.is_empty()
            && self.stale.is_empty()
            && self.misplaced.is_empty()
    }
}

/// Returns the sections that [`Statement::spec`] names: `4.1` and `8` in `4.1 items 1 and 2; 8`. References to
/// other documents have none.
fn referenced_sections(spec: &str) -> BTreeSet<&str> {
    spec.split(';')
        .filter_map(|part| part.trim().split([' ', ',']).next())
        .filter(|word| word.starts_with(|character: char| character.is_ascii_digit()))
        .collect()
}

fn join(sections: &BTreeSet<&str>) -> String {
    if sections.is_empty() {
        return "no section".to_owned();
    }
    sections.iter().copied().collect::<Vec<_>>().join(" and ")
}

impl fmt::Display for Coverage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for sentence in &self.uncited {
            writeln!(out, "no statement cites {sentence}")?;
        }
        for sentence in &self.not_cited_as_open {
            writeln!(out, "no open statement cites {sentence}")?;
        }
        for (id, hash) in &self.stale {
            writeln!(out, "`{id}` cites {hash}, which is not a sentence of the text")?;
        }
        for Misplaced { id, stated, actual } in &self.misplaced {
            writeln!(out, "`{id}` refers to section {stated}; the sentences that it cites are in {actual}")?;
        }
        writeln!(
            out,
            "{} sentences, {} without a statement, {} without an open one; \
             {} statements, {} citations of unknown sentences, {} misplaced",
            self.sentences,
            self.uncited.len(),
            self.not_cited_as_open.len(),
            self.statements,
            self.stale.len(),
            self.misplaced.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::sentences::sentences;
    use super::*;

    const TEXT: &str = "## 1. A\n\nIt is so. The rest: not shown.\n\n### 1.2 B\n\n- It is not.\n";
    const REST: Row = ("a.rest", "1", "open", &["The rest: not shown."]);
    const BOTH: Row = ("a.both", "1; 1.2 item 1", "must", &["It is so.", "It is not."]);

    /// A statement: its id, its sections, its level, and the cited sentences.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a [&'a str]);

    fn statement((id, spec, level, cited): Row) -> (String, Statement) {
        let hash = |text: &&str| sentences(&format!("## 1. X\n\n{text}"))[0].hash();
        let source = cited.iter().map(hash).collect();
        (id.to_owned(), Statement { spec: spec.to_owned(), level: level.to_owned(), source })
    }

    #[track_caller]
    fn check(rows: &[Row], expected: &str) {
        let statements = rows.iter().copied().map(statement).collect();
        let coverage = Coverage::new(&sentences(TEXT), &statements);
        let report = coverage.to_string();
        let lines: Vec<_> = report.lines().collect();
        let (_, findings) = lines.split_last().expect("the last line has the totals");
        assert_eq!(findings.join("\n"), expected);
        assert_eq!(coverage.is_complete(), expected.is_empty());
    }

    #[test]
    fn every_sentence_needs_a_statement() {
        check(&[BOTH, REST], "");
        check(
            &[("a.so", "1", "must", &["It is so."]), ("a.not", "1.2", "should", &["It is not."]), REST],
            "",
        );
        check(
            &[("a.so", "1", "must", &["It is so."]), REST],
            "no statement cites 1.2 item 1 (90483ed1a36143f0): It is not.",
        );
    }

    #[test]
    fn open_choices_need_an_open_statement() {
        check(
            &[BOTH, ("a.rest", "1", "must", &["The rest: not shown."])],
            "no open statement cites 1 paragraph 1 (3052fbee19ff3733): The rest: not shown.",
        );
    }

    #[test]
    fn a_statement_is_stale_without_its_sentence() {
        check(
            &[BOTH, REST, ("a.old", "1", "must", &["It was so."])],
            "`a.old` cites f8d354e292442065, which is not a sentence of the text",
        );
    }

    #[test]
    fn a_statement_names_the_sections_of_its_sentences() {
        check(
            &[("a.so", "2", "must", &["It is so."]), ("a.not", "1.2, row 1", "must", &["It is not."]), REST],
            "`a.so` refers to section 2; the sentences that it cites are in 1",
        );
    }

    #[test]
    fn a_statement_of_another_document_cites_nothing_here() {
        check(&[BOTH, REST, ("a.http", "HTTP (RFC 9110)", "should", &[])], "");
    }

    #[test]
    fn the_totals_come_last() {
        let statements = [statement(BOTH)].into_iter().collect();
        let report = Coverage::new(&sentences(TEXT), &statements).to_string();
        let totals = "3 sentences, 1 without a statement, 0 without an open one; \
                      1 statements, 0 citations of unknown sentences, 0 misplaced\n";
        assert!(report.ends_with(totals), "{report}");
    }
}
