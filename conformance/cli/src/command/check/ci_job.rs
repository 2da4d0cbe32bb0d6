//! `check --init github` and `--init gitlab`: writes a CI job that leaves out the statements whose keys are not set in
//! the environment, and prints what it leaves out.

use std::{env, fs, path::Path};

use conformance::Part;

use super::keys::{LIVE_KEY, OTHER_ACCOUNT_KEY, REVOKED_KEY, SECOND_KEY, TEST_KEY};
use crate::{
    Failure,
    terminal::{GOOD, print_line},
};

struct CiSystem {
    name: &'static str,
    /// The path of the file to write.
    path: &'static str,
    /// The content of the file, with placeholders such as `COMMAND`.
    template: &'static str,
    /// The next steps for the user.
    next_steps: &'static str,
}

const CI_SYSTEMS: [CiSystem; 2] = [
    CiSystem {
        name: "github",
        path: ".github/workflows/chargeproof.yml",
        template: include_str!("jobs/github.yml"),
        next_steps: "set the repository variables CHARGEPROOF_TARGET and CHARGEPROOF_WHEEL and these secrets",
    },
    CiSystem {
        name: "gitlab",
        path: ".gitlab/chargeproof.yml",
        template: include_str!("jobs/gitlab.yml"),
        next_steps: "include it in .gitlab-ci.yml; set the variables CHARGEPROOF_TARGET and CHARGEPROOF_WHEEL and these \
         masked variables",
    },
];

/// The optional keys, each with the part of the statements that requires it.
const OPTIONAL_KEYS: [(&str, Part); 3] =
    [(SECOND_KEY, Part::SecondKey), (OTHER_ACCOUNT_KEY, Part::OtherAccount), (REVOKED_KEY, Part::Revoked)];

/// Writes the job for the CI system with this name; `None` if it is unknown.
pub(super) fn init(name: &Path) -> Option<Result<u8, Failure>> {
    let system = CI_SYSTEMS.iter().find(|system| Path::new(system.name) == name)?;
    Some(write_job(system))
}

fn write_job(system: &CiSystem) -> Result<u8, Failure> {
    let CiSystem { path, template, next_steps, .. } = system;
    let is_set = |name: &str| env::var(name).is_ok_and(|text| !text.is_empty());
    let (available, missing): (Vec<_>, Vec<_>) = OPTIONAL_KEYS.iter().partition(|(name, _)| is_set(name));
    let keys: Vec<&str> =
        [LIVE_KEY, TEST_KEY].into_iter().chain(available.iter().map(|(name, _)| *name)).collect();
    let parts = missing.iter().map(|(_, part)| *part).chain([Part::Inserts, Part::Webhooks]);
    let without: Vec<&str> = parts.map(Part::as_str).collect();
    let command = format!(
        "chargeproof check \"$CHARGEPROOF_TARGET\" --quick --without {} --accept incomplete",
        without.join(",")
    );
    let secrets: Vec<_> = keys.iter().map(|key| format!("      {key}: ${{{{ secrets.{key} }}}}")).collect();
    // A line `KEYS` becomes the secrets as YAML; `KEYS` within a line becomes a list of names.
    let job = template
        .replace("COMMAND", &command)
        .replace("VERSION", env!("CARGO_PKG_VERSION"))
        .replace("WITHOUT", &without.join(", "))
        .replace("\nKEYS\n", &format!("\n{}\n", secrets.join("\n")))
        .replace("KEYS", &keys.join(", "));
    let to_failure = |error| Failure::usage(format!("`{path}` can't be written: {error}"));
    let file = Path::new(path);
    if file.exists() {
        return Err(Failure::usage(format!("`{path}` already exists; not overwritten. Move it away first")));
    }
    file.parent().map_or(Ok(()), fs::create_dir_all).map_err(to_failure)?;
    crate::files::write_new(file, &job).map_err(to_failure)?;
    print_line!("{GOOD}written{GOOD:#}  {path}");
    print_line!("next: {next_steps}: {}", keys.join(", "));
    print_line!(
        "left out: {}, and the rate limit (--quick); gaps are accepted (--accept incomplete)",
        without.join(", ")
    );
    Ok(0)
}
