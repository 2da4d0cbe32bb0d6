//! The target `recording`: recordings and HAR files.

use conformance::{Outcome, Row};

/// Reads the bytes as both formats. Writing and reading the result again must give the same verdicts.
pub(crate) fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(outcome) = Outcome::from_file(text) {
        must_come_back(&outcome);
    }
    if Outcome::is_har(text)
        && let Ok((outcome, _)) = Outcome::from_har(text, "svc")
    {
        must_come_back(&outcome);
    }
}

fn must_come_back(outcome: &Outcome) {
    let written = outcome.to_file();
    let again = Outcome::from_file(&written)
        .unwrap_or_else(|why| panic!("what was written cannot be read: {why}\n\n{written}"));
    assert_eq!(again.to_file(), written, "written twice");
    assert_eq!(verdicts(&again.rows), verdicts(&outcome.rows), "judged twice");
    assert_eq!(again.exit_code(), outcome.exit_code());
}

/// Returns the verdict on each statement, findings included.
pub(crate) fn verdicts(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| format!("{}: {:?}", row.id, row.verdict)).collect()
}
