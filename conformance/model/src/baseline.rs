//! Known failures, with the reason, the fingerprint of the evidence and the last day of each.
//!
//! A stale entry would hide later failures. So an entry fails the run if its statement holds, if it has expired, or if
//! the evidence has another fingerprint.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::verdict::{Finding, KnownFailure, Row, Verdict};

/// The known failures by statement, and the day of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// The day of the run, such as `2026-11-21`.
    pub today: String,
    /// The known failures.
    pub known: BTreeMap<String, KnownFailure>,
}

impl Baseline {
    /// Replaces known failures by [`Verdict::Known`]. Returns a message for each stale entry.
    pub fn apply(&self, rows: &mut [Row]) -> Vec<String> {
        let mut faults = Vec::new();
        for row in rows {
            let Some(known) = self.known.get(&row.id) else { continue };
            let id = &row.id;
            match &row.verdict {
                Verdict::Pass { .. } => faults.push(format!("{id} holds now; take its entry out")),
                Verdict::Fail(_) | Verdict::Warn(_) if known.expires < self.today => {
                    faults.push(format!("{id} was to be mended by {}", known.expires));
                }
                Verdict::Fail(finding) | Verdict::Warn(finding) => {
                    let seen = fingerprint(id, finding);
                    if seen == known.fingerprint {
                        let (finding, known) = (finding.clone(), known.clone());
                        row.verdict = Verdict::Known { finding, known };
                    } else {
                        faults.push(format!(
                            "{id} fails in another way than is known: its fingerprint is {seen}, not {}",
                            known.fingerprint
                        ));
                    }
                }
                _ => {}
            }
        }
        faults
    }
}

/// Returns the fingerprint by which a failure is recognised in the next run.
pub fn fingerprint(id: &str, finding: &Finding) -> String {
    const BYTES: usize = 8;
    let text = [id, &mask_varying_words(&finding.expected), &mask_varying_words(&finding.actual)].join("\n");
    Sha256::digest(text.as_bytes()).iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the text with each word that contains a digit replaced by `#`: ids, times and counts change between runs. The
/// first word, which may be a status, is unchanged.
fn mask_varying_words(text: &str) -> String {
    let (first, rest) = text.split_at(text.find(' ').unwrap_or(0));
    let words = rest.split_inclusive(|character: char| !character.is_alphanumeric());
    let mark = |word: &str| {
        let end = word.find(|character: char| !character.is_alphanumeric()).unwrap_or(word.len());
        let changes = word[..end].contains(|character: char| character.is_ascii_digit());
        if changes { format!("#{}", &word[end..]) } else { word.to_owned() }
    };
    first.to_owned() + &words.map(mark).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Level, Requirement};

    const ID: &str = "isolation.not_found";

    fn finding(actual: &str) -> Finding {
        Finding { expected: "404".into(), actual: actual.into(), exchange: None }
    }

    fn rows() -> Vec<Row> {
        let row = |id: &str, verdict| {
            let requirement = Requirement {
                spec: "7".into(),
                level: Level::Must,
                text: String::new(),
                source: Vec::new(),
                derived: None,
                unjudged: None,
            };
            Row { id: id.into(), requirement, verdict }
        };
        vec![
            row(ID, Verdict::Fail(finding("403 {\"message\":\"no\"}"))),
            row("account.served", Verdict::Pass { note: None }),
            row("paging.joined", Verdict::NotJudged { why: "empty".into(), remedy: "fill it".into() }),
        ]
    }

    #[track_caller]
    fn check_fingerprints(one: &str, other: &str, expected: bool) {
        assert_eq!(fingerprint(ID, &finding(one)) == fingerprint(ID, &finding(other)), expected);
    }

    #[test]
    fn evidence_is_recognised_in_the_next_run() {
        check_fingerprints("403 {\"id\":\"0190a5c4-7f3e\"}", "403 {\"id\":\"0191bbbb-7000\"}", true);
        check_fingerprints("403 {\"message\":\"no\"}", "500 {\"message\":\"no\"}", false);
        check_fingerprints("403 {\"message\":\"no\"}", "403 {\"message\":\"never\"}", false);
    }

    /// Applies a baseline of one entry. `word`: the verdict on `id`; `fault`: the expected message, empty for none.
    #[track_caller]
    fn check(id: &str, fingerprint: &str, today: &str, word: &str, fault: &str) {
        let mut rows = rows();
        let (reason, expires) = ("ticket 7".to_owned(), "2026-11-30".to_owned());
        let known = KnownFailure { reason, fingerprint: fingerprint.into(), expires };
        let baseline = Baseline { today: today.into(), known: [(id.to_owned(), known)].into() };
        let faults = baseline.apply(&mut rows).join("; ");
        let row = rows.iter().find(|row| row.id == id).expect("a row");
        assert_eq!(row.verdict.as_str(), word);
        assert!(faults.contains(fault) && (faults.is_empty() == fault.is_empty()), "{faults}");
    }

    #[test]
    fn a_known_failure_is_known_until_its_day() {
        let rows = rows();
        let row = rows.iter().find(|row| row.id == ID).expect("a row");
        let Verdict::Fail(finding) = &row.verdict else { panic!("{:?}", row.verdict) };
        let print = fingerprint(ID, finding);
        check(ID, &print, "2026-11-30", "known", "");
        check(ID, &print, "2026-12-01", "fail", "was to be mended by 2026-11-30");
    }

    #[test]
    fn another_failure_of_the_same_statement_is_not_known() {
        check(ID, "0000000000000000", "2026-11-01", "fail", "fails in another way than is known");
    }

    #[test]
    fn an_entry_of_a_statement_that_holds_is_stale() {
        check("account.served", "0000000000000000", "2026-11-01", "pass", "holds now; take its entry out");
    }

    #[test]
    fn an_entry_of_an_unjudged_statement_is_not_stale() {
        check("paging.joined", "0000000000000000", "2026-11-01", "not judged", "");
    }
}
