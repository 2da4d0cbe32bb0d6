//! The fuzz target `recording`: run files and HAR files.

use conformance::{Outcome, Row};

/// Parses the bytes in both formats. Writing and parsing the result must not change the verdicts.
pub(crate) fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(outcome) = Outcome::from_file(text) {
        check_round_trip(&outcome);
    }
    if Outcome::is_har(text)
        && let Ok((outcome, _)) = Outcome::from_har(text, "svc")
    {
        check_round_trip(&outcome);
    }
}

fn check_round_trip(outcome: &Outcome) {
    let written = outcome.to_file();
    let again = Outcome::from_file(&written)
        .unwrap_or_else(|why| panic!("the written file cannot be parsed: {why}\n\n{written}"));
    assert_eq!(again.to_file(), written, "written twice");
    assert_eq!(verdicts(&again.rows), verdicts(&outcome.rows), "judged twice");
    assert_eq!(again.exit_code(), outcome.exit_code());
}

/// Returns the verdict on each statement, findings included.
pub(crate) fn verdicts(rows: &[Row]) -> Vec<String> {
    rows.iter().map(|row| format!("{}: {:?}", row.id, row.verdict)).collect()
}
