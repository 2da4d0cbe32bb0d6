//! Known failures: reads them before a run, and writes those of the run to a file after it.

use std::path::Path;

use conformance::{Baseline, Outcome, Verdict, fingerprint};
use reference_core::time::{Span, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

use super::today;
use crate::{
    Failure,
    args::Check,
    config::{self, Config},
    files::{self, SETTINGS_MAX},
};

/// The time until an entry for a new failure expires.
const EXPIRES_AFTER: Span = Span::hours(90 * 24);

/// Reads the known failures of chargeproof.toml and of `--baseline-file`.
pub(super) fn read(args: &Check, config: &Config) -> Result<Baseline, Failure> {
    let mut baseline = config.check.baseline(today()).map_err(Failure::usage)?;
    if let Some(path) = &args.baseline_file {
        let text = files::text_of(path, SETTINGS_MAX)?;
        let invalid = |error: String| {
            let error = files::truncate_message(&error);
            Failure::usage(format!("`{}` is not a file of known failures: {error}", path.display()))
        };
        baseline.known.extend(config::known_failures(&text).map_err(invalid)?);
    }
    Ok(baseline)
}

/// An entry of the file.
#[derive(Serialize)]
struct Entry<'a> {
    reason: &'a str,
    fingerprint: String,
    expires: toml::value::Datetime,
}

/// Writes the failures of a run. Failures that were known keep their reasons and expiry dates.
pub(super) fn write(path: &Path, outcome: &Outcome) -> Result<(), Failure> {
    let today = Timestamp::parse(&format!("{}T00:00:00Z", today())).expect("every date has a midnight");
    let date =
        |text: &str| text.split('T').next().unwrap_or_default().parse().expect("the text starts with a date");
    let expires = date(&today.plus(EXPIRES_AFTER).to_string());
    let mut entries = BTreeMap::new();
    for row in &outcome.rows {
        let entry = match &row.verdict {
            Verdict::Fail(finding) => {
                Entry { reason: "", fingerprint: fingerprint(&row.id, finding), expires }
            }
            Verdict::Known { known, .. } => Entry {
                reason: &known.reason,
                fingerprint: known.fingerprint.clone(),
                expires: date(&known.expires),
            },
            _ => continue,
        };
        entries.insert(&row.id, entry);
    }
    let entries = toml::to_string(&entries).expect("strings and dates serialize to TOML");
    let header = "# Failures that are known. Every entry needs a reason; after its `expires` day the failure counts again.\n";
    files::write_atomically(path, &format!("{header}{entries}"))
}
