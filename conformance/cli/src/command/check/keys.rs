//! The keys of a target: from the environment, or from files that the configuration names.

use std::{
    env,
    path::{Path, PathBuf},
};

use conformance::Secret;

use crate::{
    Failure,
    args::KeySet,
    config::Config,
    files::{self, SETTINGS_MAX},
};

/// The environment variables that hold keys.
pub(super) const LIVE_KEY: &str = "CHARGEPROOF_LIVE_KEY";
pub(super) const TEST_KEY: &str = "CHARGEPROOF_TEST_KEY";
pub(super) const SECOND_KEY: &str = "CHARGEPROOF_SECOND_KEY";
pub(super) const OTHER_ACCOUNT_KEY: &str = "CHARGEPROOF_OTHER_ACCOUNT_KEY";
pub(super) const REVOKED_KEY: &str = "CHARGEPROOF_REVOKED_KEY";

/// The minimum length of a webhook secret. A shorter one could not be redacted without redacting other text.
const SECRET_LENGTH_MIN: usize = 8;

/// The source of a key or a secret: an environment variable, or else a file.
struct KeySource<'a> {
    variable: String,
    /// The setting that names the file.
    setting: &'static str,
    file: Option<&'a Path>,
}

/// The available keys.
pub(super) struct Keys {
    pub(super) live: Secret,
    pub(super) test: Secret,
    pub(super) second: Option<Secret>,
    pub(super) other_account: Option<Secret>,
    pub(super) revoked: Option<Secret>,
}

impl Keys {
    /// Reads the keys. `warn` receives a message for each file that other users can read.
    pub(super) fn read(
        config: &Config,
        key_set: KeySet,
        warn: &mut dyn FnMut(String),
    ) -> Result<Keys, Failure> {
        let check = &config.check;
        let mut read = |variable: &str, setting, file: &Option<PathBuf>| {
            if key_set == KeySet::SecondTarget {
                // `CHARGEPROOF_LIVE_KEY` becomes `CHARGEPROOF_B_LIVE_KEY`.
                let variable = variable.replacen('_', "_B_", 1);
                let key = KeySource { variable, setting, file: None }.read(warn)?;
                if key.is_some() {
                    return Ok(key);
                }
            }
            KeySource { variable: variable.to_owned(), setting, file: file.as_deref() }.read(warn)
        };
        let live = read(LIVE_KEY, "live_key_file", &check.live_key_file)?;
        let test = read(TEST_KEY, "test_key_file", &check.test_key_file)?;
        let required = |key: Option<Secret>, variable: &str, setting: &str| {
            key.ok_or_else(|| {
                Failure::usage(format!(
                    "the check needs a key of the target; set `{variable}` or `check.{setting}`"
                ))
            })
        };
        Ok(Keys {
            live: required(live, LIVE_KEY, "live_key_file")?,
            test: required(test, TEST_KEY, "test_key_file")?,
            second: read(SECOND_KEY, "second_key_file", &check.second_key_file)?,
            other_account: read(OTHER_ACCOUNT_KEY, "other_account_key_file", &check.other_account_key_file)?,
            revoked: read(REVOKED_KEY, "revoked_key_file", &check.revoked_key_file)?,
        })
    }
}

/// Returns the available secrets of the live and the test endpoint.
pub(super) fn webhook_secrets(
    config: &Config,
    warn: &mut dyn FnMut(String),
) -> Result<[Option<Secret>; 2], Failure> {
    let check = &config.check;
    let mut read = |variable: &str, setting, file: &Option<PathBuf>| {
        let secret =
            KeySource { variable: variable.to_owned(), setting, file: file.as_deref() }.read(warn)?;
        match secret {
            Some(secret) if secret.len() < SECRET_LENGTH_MIN => Err(Failure::usage(format!(
                "`{variable}` has fewer than {SECRET_LENGTH_MIN} characters, or the file that `check.{setting}` names has; \
                 set the endpoint's complete secret"
            ))),
            secret => Ok(secret),
        }
    };
    let live =
        read("CHARGEPROOF_LIVE_WEBHOOK_SECRET", "live_webhook_secret_file", &check.live_webhook_secret_file)?;
    let test =
        read("CHARGEPROOF_TEST_WEBHOOK_SECRET", "test_webhook_secret_file", &check.test_webhook_secret_file)?;
    Ok([live, test])
}

impl KeySource<'_> {
    /// Reads the key; the environment overrides the file.
    fn read(&self, warn: &mut dyn FnMut(String)) -> Result<Option<Secret>, Failure> {
        match env::var(&self.variable) {
            Ok(text) if !text.trim().is_empty() => return Ok(Some(Secret::new(text.trim()))),
            Err(env::VarError::NotUnicode(_)) => {
                return Err(Failure::usage(format!("`{}` is not UTF-8; set it to a key", self.variable)));
            }
            _ => {}
        }
        self.file.map(|path| self.read_file(path, warn)).transpose()
    }

    fn read_file(&self, path: &Path, warn: &mut dyn FnMut(String)) -> Result<Secret, Failure> {
        let file = format!("`{}`, which `check.{}` names,", path.display(), self.setting);
        let text = files::read_text(path, SETTINGS_MAX)
            .map_err(|error| Failure::usage(format!("{file} can't be read: {error}")))?;
        let key = text.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(Failure::usage(format!("{file} must contain one key and nothing else")));
        }
        if is_readable_by_others(path) {
            let path = path.display();
            warn(format!(
                "warning: `{path}` contains a key and is readable by other users; run: chmod 600 {path}"
            ));
        }
        Ok(Secret::new(key))
    }
}

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const GROUP_AND_OTHERS: u32 = 0o077;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & GROUP_AND_OTHERS != 0)
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check_file(text: &str, mode: u32, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.key");
        fs::write(&path, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let source = KeySource {
            variable: "CHARGEPROOF_NO_SUCH_KEY".into(),
            setting: "live_key_file",
            file: Some(&path),
        };
        let mut warnings = String::new();
        let found = match source.read(&mut |warning| warnings += &warning) {
            Ok(key) => {
                format!("{} {warnings}", if key == Some(Secret::new("svc_live_abc")) { "read" } else { "?" })
            }
            Err(failure) => failure.message,
        };
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("svc_live_abc"), "the message contains the key");
    }

    #[test]
    fn a_key_file_contains_one_key() {
        check_file("svc_live_abc\n", 0o600, "read");
        check_file("svc_live_abc\nsvc_live_def\n", 0o600, "must contain one key and nothing else");
        check_file("\n", 0o600, "must contain one key");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_that_others_can_read_is_reported() {
        check_file("svc_live_abc", 0o640, "readable by other users; run: chmod 600");
        check_file("svc_live_abc", 0o604, "readable by other users");
    }
}
