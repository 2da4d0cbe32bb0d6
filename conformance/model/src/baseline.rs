//! Known failures, with the reason, the fingerprint of the evidence and the last day of each.
//!
//! A stale entry would hide later failures. So an entry fails the run if its statement holds, or if the statement
//! fails after the entry expired or with another fingerprint. The entry of any other statement, such as one that was
//! not judged, is ignored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::verdict::{Finding, KnownFailure, StatementResult, Verdict};

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
    pub fn apply(&self, rows: &mut [StatementResult]) -> Vec<String> {
        let mut errors = Vec::new();
        for row in rows {
            let Some(known) = self.known.get(&row.id) else { continue };
            let id = &row.id;
            match &row.verdict {
                Verdict::Pass { .. } => errors.push(format!("{id} holds now; remove its entry")),
                Verdict::Fail(_) | Verdict::Warn(_) if known.expires < self.today => {
                    errors.push(format!("{id} still fails, but its entry expired after {}", known.expires));
                }
                Verdict::Fail(finding) | Verdict::Warn(finding) => {
                    let actual = fingerprint(id, finding);
                    if actual == known.fingerprint {
                        let (finding, known) = (finding.clone(), known.clone());
                        row.verdict = Verdict::Known { finding, known };
                    } else {
                        errors.push(format!(
                            "{id} fails differently than its entry states: its fingerprint is {actual}, not {}",
                            known.fingerprint
                        ));
                    }
                }
                _ => {}
            }
        }
        errors
    }
}

/// Returns the fingerprint by which a failure is recognised in the next run.
pub fn fingerprint(id: &str, finding: &Finding) -> String {
    const BYTES: usize = 8;
    let text = [id, &mask_varying_words(&finding.expected), &mask_varying_words(&finding.actual)].join("\n");
    Sha256::digest(text.as_bytes()).iter().take(BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Replaces each word (a run of letters and digits) that contains an ASCII digit by `#`, because ids, times and counts
/// change between runs. Everything before the first space is unchanged, because it may be a status.
fn mask_varying_words(text: &str) -> String {
    let (first, rest) = text.split_at(text.find(' ').unwrap_or(0));
    let words = rest.split_inclusive(|character: char| !character.is_alphanumeric());
    let mask = |word: &str| {
        let end = word.find(|character: char| !character.is_alphanumeric()).unwrap_or(word.len());
        let varies = word[..end].contains(|character: char| character.is_ascii_digit());
        if varies { format!("#{}", &word[end..]) } else { word.to_owned() }
    };
    first.to_owned() + &words.map(mask).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Level, Requirement};

    const ID: &str = "isolation.not_found";

    fn finding(actual: &str) -> Finding {
        Finding { expected: "404".into(), actual: actual.into(), exchange: None }
    }

    fn rows() -> Vec<StatementResult> {
        let row = |id: &str, verdict| {
            let requirement = Requirement {
                spec: "7".into(),
                level: Level::Must,
                text: String::new(),
                source: Vec::new(),
                derived: None,
                unjudged: None,
            };
            StatementResult { id: id.into(), requirement, verdict }
        };
        vec![
            row(ID, Verdict::Fail(finding("403 {\"message\":\"no\"}"))),
            row("account.served", Verdict::Pass { note: None }),
            row("paging.joined", Verdict::NotJudged { why: "empty".into(), remedy: "fill it".into() }),
        ]
    }

    #[track_caller]
    fn check_fingerprints(first: &str, second: &str, are_equal: bool) {
        assert_eq!(fingerprint(ID, &finding(first)) == fingerprint(ID, &finding(second)), are_equal);
    }

    #[test]
    fn a_fingerprint_ignores_ids_and_includes_status_and_text() {
        check_fingerprints("403 {\"id\":\"0190a5c4-7f3e\"}", "403 {\"id\":\"0191bbbb-7000\"}", true);
        check_fingerprints("403 {\"message\":\"no\"}", "500 {\"message\":\"no\"}", false);
        check_fingerprints("403 {\"message\":\"no\"}", "403 {\"message\":\"never\"}", false);
    }

    /// Applies a baseline of one entry. `verdict`: the expected verdict on `id`; `error`: part of the expected
    /// message, empty if no message is expected.
    #[track_caller]
    fn check(id: &str, fingerprint: &str, today: &str, verdict: &str, error: &str) {
        let mut rows = rows();
        let (reason, expires) = ("ticket 7".to_owned(), "2026-11-30".to_owned());
        let known = KnownFailure { reason, fingerprint: fingerprint.into(), expires };
        let baseline = Baseline { today: today.into(), known: [(id.to_owned(), known)].into() };
        let errors = baseline.apply(&mut rows).join("; ");
        let row = rows.iter().find(|row| row.id == id).expect("the statement has a row");
        assert_eq!(row.verdict.as_str(), verdict);
        assert!(errors.contains(error) && (errors.is_empty() == error.is_empty()), "{errors}");
    }

    #[test]
    fn a_known_failure_is_tolerated_until_it_expires() {
        let rows = rows();
        let row = rows.iter().find(|row| row.id == ID).expect("the statement has a row");
        let Verdict::Fail(finding) = &row.verdict else { panic!("{:?}", row.verdict) };
        let expected = fingerprint(ID, finding);
        check(ID, &expected, "2026-11-30", "known", "");
        check(ID, &expected, "2026-12-01", "fail", "its entry expired after 2026-11-30");
    }

    #[test]
    fn another_failure_of_the_same_statement_is_not_known() {
        check(ID, "0000000000000000", "2026-11-01", "fail", "fails differently than its entry states");
    }

    #[test]
    fn an_entry_of_a_statement_that_holds_is_stale() {
        check("account.served", "0000000000000000", "2026-11-01", "pass", "holds now; remove its entry");
    }

    #[test]
    fn an_entry_of_an_unjudged_statement_is_not_stale() {
        check("paging.joined", "0000000000000000", "2026-11-01", "not judged", "");
    }
}
