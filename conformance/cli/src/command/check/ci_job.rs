//! `check --init github` and `--init gitlab`: writes a CI job that passes with the available keys and lists the skipped
//! statements.

use std::{env, fs, path::Path};

use conformance::Part;

use super::keys::{LIVE_KEY, OTHER_ACCOUNT_KEY, REVOKED_KEY, SECOND_KEY, TEST_KEY};
use crate::{
    Failure,
    terminal::{GOOD, say},
};

/// A CI system: its name, the job's path, the job, and the next steps for the user.
type CiSystem = (&'static str, &'static str, &'static str, &'static str);

const CI_SYSTEMS: [CiSystem; 2] = [
    (
        "github",
        ".github/workflows/chargeproof.yml",
        include_str!("jobs/github.yml"),
        "set the repository variables CHARGEPROOF_TARGET and CHARGEPROOF_WHEEL and these secrets",
    ),
    (
        "gitlab",
        ".gitlab/chargeproof.yml",
        include_str!("jobs/gitlab.yml"),
        "include it in .gitlab-ci.yml; set the variables CHARGEPROOF_TARGET and CHARGEPROOF_WHEEL and these masked \
         variables",
    ),
];

/// The optional keys, and the parts that require them.
const OPTIONAL: [(&str, Part); 3] =
    [(SECOND_KEY, Part::Second), (OTHER_ACCOUNT_KEY, Part::Other), (REVOKED_KEY, Part::Revoked)];

/// Writes the job for the CI system with this name; `None` if it is unknown.
pub(super) fn init(name: &Path) -> Option<Result<u8, Failure>> {
    let host = CI_SYSTEMS.iter().find(|(host, ..)| Path::new(host) == name)?;
    Some(write(host))
}

fn write((_, path, job, next): &CiSystem) -> Result<u8, Failure> {
    let is_set = |name: &str| env::var(name).is_ok_and(|text| !text.is_empty());
    let (at_hand, missing): (Vec<_>, Vec<_>) = OPTIONAL.iter().partition(|(name, _)| is_set(name));
    let keys: Vec<&str> =
        [LIVE_KEY, TEST_KEY].into_iter().chain(at_hand.iter().map(|(name, _)| *name)).collect();
    let parts = missing.iter().map(|(_, part)| *part).chain([Part::Inserts, Part::Webhooks]);
    let without: Vec<&str> = parts.map(Part::as_str).collect();
    let command = format!(
        "chargeproof check \"$CHARGEPROOF_TARGET\" --quick --without {} --accept incomplete",
        without.join(",")
    );
    let secrets: Vec<_> = keys.iter().map(|key| format!("      {key}: ${{{{ secrets.{key} }}}}")).collect();
    let job = job
        .replace("COMMAND", &command)
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("WITHOUT", &without.join(", "))
        .replace("\nKEYS\n", &format!("\n{}\n", secrets.join("\n")))
        .replace("KEYS", &keys.join(", "));
    let cannot = |error| Failure::usage(format!("`{path}` can't be written: {error}"));
    let file = Path::new(path);
    if file.exists() {
        return Err(Failure::usage(format!("`{path}` already exists; not overwritten. Move it away first")));
    }
    file.parent().map_or(Ok(()), fs::create_dir_all).map_err(cannot)?;
    crate::files::write_new(file, &job).map_err(cannot)?;
    say!("{GOOD}written{GOOD:#}  {path}");
    say!("next: {next}: {}", keys.join(", "));
    say!(
        "left out: {}, and the rate limit (--quick); gaps are accepted (--accept incomplete)",
        without.join(", ")
    );
    Ok(0)
}
