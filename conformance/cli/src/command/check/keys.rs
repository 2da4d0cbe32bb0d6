//! The keys of a target: from the environment, or from files that the configuration names.

use std::{
    env,
    path::{Path, PathBuf},
};

use conformance::Secret;

use crate::{
    Failure,
    args::KeysOf,
    config::Config,
    files::{self, SETTINGS_MAX},
};

/// The environment variables that hold keys.
pub(super) const LIVE_KEY: &str = "CHARGEPROOF_LIVE_KEY";
pub(super) const TEST_KEY: &str = "CHARGEPROOF_TEST_KEY";
pub(super) const SECOND_KEY: &str = "CHARGEPROOF_SECOND_KEY";
pub(super) const OTHER_ACCOUNT_KEY: &str = "CHARGEPROOF_OTHER_ACCOUNT_KEY";
pub(super) const REVOKED_KEY: &str = "CHARGEPROOF_REVOKED_KEY";

/// The shortest secret that can be distinguished from other text, and so be redacted.
const SECRET_LETTERS_MIN: usize = 8;

/// The source of a key or a secret.
struct KeySource<'a> {
    variable: String,
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
    pub(super) fn gather(
        config: &Config,
        keys_of: KeysOf,
        warn: &mut dyn FnMut(String),
    ) -> Result<Keys, Failure> {
        let check = &config.check;
        let mut slot = |variable: &str, setting, file: &Option<PathBuf>| {
            if keys_of == KeysOf::Other {
                let variable = variable.replacen('_', "_B_", 1);
                let own = KeySource { variable, setting, file: None }.key(warn)?;
                if own.is_some() {
                    return Ok(own);
                }
            }
            KeySource { variable: variable.to_owned(), setting, file: file.as_deref() }.key(warn)
        };
        let live = slot(LIVE_KEY, "live_key_file", &check.live_key_file)?;
        let test = slot(TEST_KEY, "test_key_file", &check.test_key_file)?;
        let needed = |key: Option<Secret>, variable: &str, setting: &str| {
            key.ok_or_else(|| {
                Failure::usage(format!(
                    "`{variable}` is not set, and `check.{setting}` names no file; one of them must provide a key of \
                     the target"
                ))
            })
        };
        Ok(Keys {
            live: needed(live, LIVE_KEY, "live_key_file")?,
            test: needed(test, TEST_KEY, "test_key_file")?,
            second: slot(SECOND_KEY, "second_key_file", &check.second_key_file)?,
            other_account: slot(OTHER_ACCOUNT_KEY, "other_account_key_file", &check.other_account_key_file)?,
            revoked: slot(REVOKED_KEY, "revoked_key_file", &check.revoked_key_file)?,
        })
    }
}

/// Returns the available secrets of the live and the test endpoint.
pub(super) fn webhook_secrets(
    config: &Config,
    warn: &mut dyn FnMut(String),
) -> Result<[Option<Secret>; 2], Failure> {
    let check = &config.check;
    let mut slot = |variable: &str, setting, file: &Option<PathBuf>| {
        let secret = KeySource { variable: variable.to_owned(), setting, file: file.as_deref() }.key(warn)?;
        match secret {
            Some(secret) if secret.len() < SECRET_LETTERS_MIN => Err(Failure::usage(format!(
                "`{variable}` has fewer than {SECRET_LETTERS_MIN} characters, or the file that `check.{setting}` names has; \
                 set the endpoint's complete secret"
            ))),
            secret => Ok(secret),
        }
    };
    let live =
        slot("CHARGEPROOF_LIVE_WEBHOOK_SECRET", "live_webhook_secret_file", &check.live_webhook_secret_file)?;
    let test =
        slot("CHARGEPROOF_TEST_WEBHOOK_SECRET", "test_webhook_secret_file", &check.test_webhook_secret_file)?;
    Ok([live, test])
}

impl KeySource<'_> {
    /// Reads the key; the environment overrides the file.
    fn key(&self, warn: &mut dyn FnMut(String)) -> Result<Option<Secret>, Failure> {
        match env::var(&self.variable) {
            Ok(text) if !text.trim().is_empty() => return Ok(Some(Secret::new(text.trim()))),
            Err(env::VarError::NotUnicode(_)) => {
                return Err(Failure::usage(format!("`{}` is not UTF-8; set it to a key", self.variable)));
            }
            _ => {}
        }
        self.file.map(|path| self.read(path, warn)).transpose()
    }

    fn read(&self, path: &Path, warn: &mut dyn FnMut(String)) -> Result<Secret, Failure> {
        let named = format!("`{}`, which `check.{}` names,", path.display(), self.setting);
        let text = files::read_text(path, SETTINGS_MAX)
            .map_err(|error| Failure::usage(format!("{named} can't be read: {error}")))?;
        let key = text.trim();
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(Failure::usage(format!("{named} must contain one key and nothing else")));
        }
        if others_may_read(path) {
            let path = path.display();
            warn(format!(
                "warning: `{path}` contains a key and is readable by other users; run: chmod 600 {path}"
            ));
        }
        Ok(Secret::new(key))
    }
}

#[cfg(unix)]
fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const GROUP_AND_OTHERS: u32 = 0o077;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & GROUP_AND_OTHERS != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(text: &str, mode: u32, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("live.key");
        fs::write(&path, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        let slot = KeySource {
            variable: "CHARGEPROOF_NO_SUCH_KEY".into(),
            setting: "live_key_file",
            file: Some(&path),
        };
        let mut warnings = String::new();
        let found = match slot.key(&mut |warning| warnings += &warning) {
            Ok(key) => {
                format!("{} {warnings}", if key == Some(Secret::new("svc_live_abc")) { "read" } else { "?" })
            }
            Err(failure) => failure.message,
        };
        assert!(found.contains(expected), "{found}");
        assert!(!found.contains("svc_live_abc"), "a key shows");
    }

    #[test]
    fn a_file_holds_one_key() {
        check("svc_live_abc\n", 0o600, "read");
        check("svc_live_abc\nsvc_live_def\n", 0o600, "must contain one key and nothing else");
        check("\n", 0o600, "must contain one key");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_read_is_reported() {
        check("svc_live_abc", 0o640, "readable by other users; run: chmod 600");
        check("svc_live_abc", 0o604, "readable by other users");
    }
}
