//! The fuzz target `recording`: run files and HAR files.

use conformance::{Outcome, StatementResult};

/// Parses the bytes in both formats. Writing and parsing the result must change neither the file nor the verdicts nor
/// the exit code.
pub(crate) fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(outcome) = Outcome::from_file(text) {
        check_round_trip(&outcome);
    }
    // A HAR file does not name the prefix of the API keys; `svc` is the default.
    if Outcome::is_har(text)
        && let Ok((outcome, _)) = Outcome::from_har(text, "svc")
    {
        check_round_trip(&outcome);
    }
}

fn check_round_trip(outcome: &Outcome) {
    let written = outcome.to_file();
    let parsed = Outcome::from_file(&written)
        .unwrap_or_else(|error| panic!("the written file cannot be parsed: {error}\n\n{written}"));
    assert_eq!(parsed.to_file(), written, "the file changed when it was written again");
    assert_eq!(
        verdicts(&parsed.rows),
        verdicts(&outcome.rows),
        "the verdicts changed when the file was parsed"
    );
    assert_eq!(parsed.exit_code(), outcome.exit_code());
}

/// Returns the verdict on each statement, findings included.
pub(crate) fn verdicts(rows: &[StatementResult]) -> Vec<String> {
    rows.iter().map(|row| format!("{}: {:?}", row.id, row.verdict)).collect()
}
