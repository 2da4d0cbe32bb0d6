//! [`Config`]: the settings of `chargeproof.toml` that are not command-line options. `settings` reads the others.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use conformance::{Baseline, CreateRequest, KnownFailure, ObjectPaths};
use reference_core::dialect::Dialect;
use serde::{Deserialize, de::DeserializeOwned};
use toml::{Table, Value};

use crate::{Failure, files};

/// The default configuration file.
const DEFAULT_PATH: &str = "chargeproof.toml";
/// The settings of `[check]` that are not options.
pub(crate) const NON_OPTION_SETTINGS: [&str; 10] = [
    "live_key_file",
    "test_key_file",
    "second_key_file",
    "other_account_key_file",
    "revoked_key_file",
    "live_webhook_secret_file",
    "test_webhook_secret_file",
    "create",
    "paths",
    "baseline",
];

/// A sample configuration with every setting, commented out.
pub(crate) const SAMPLE_CONFIG: &str = include_str!("chargeproof.toml");

/// A parsed configuration file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    /// The other settings, which are options, by command.
    pub(crate) settings: Table,
}

/// The settings that are not options.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Config {
    pub(crate) dialect: Dialect,
    pub(crate) check: CheckSection,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckSection {
    pub(crate) live_key_file: Option<PathBuf>,
    pub(crate) test_key_file: Option<PathBuf>,
    pub(crate) second_key_file: Option<PathBuf>,
    pub(crate) other_account_key_file: Option<PathBuf>,
    pub(crate) revoked_key_file: Option<PathBuf>,
    pub(crate) live_webhook_secret_file: Option<PathBuf>,
    pub(crate) test_webhook_secret_file: Option<PathBuf>,
    #[serde(default)]
    create: CreateSection,
    #[serde(default)]
    paths: PathsSection,
    /// The known failures by statement.
    #[serde(default)]
    baseline: BTreeMap<String, BaselineEntry>,
}

/// The settings of the request that creates a record.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct CreateSection {
    path: Option<String>,
    body: Option<String>,
}

/// The settings of the paths of single objects.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct PathsSection {
    charge: Option<String>,
    invoice: Option<String>,
    payment_link: Option<String>,
}

/// A known failure: `"auth.json" = { reason = "ticket 7", fingerprint = "…", expires = 2027-01-31 }`
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct BaselineEntry {
    reason: String,
    fingerprint: String,
    expires: toml::value::Datetime,
}

impl CheckSection {
    /// Returns the settings of the request that creates a record.
    pub(crate) fn create(&self) -> CreateRequest {
        let default = CreateRequest::default();
        CreateRequest {
            path: self.create.path.clone().unwrap_or(default.path),
            body: self.create.body.clone().unwrap_or(default.body),
        }
    }

    /// Returns the settings of the paths of single objects.
    pub(crate) fn paths(&self) -> ObjectPaths {
        let PathsSection { charge, invoice, payment_link } = &self.paths;
        ObjectPaths { charge: charge.clone(), invoice: invoice.clone(), payment_link: payment_link.clone() }
    }

    /// Returns the known failures, with `today`, which determines the entries that have expired.
    pub(crate) fn baseline(&self, today: String) -> Result<Baseline, String> {
        let known = self
            .baseline
            .iter()
            .map(|(id, entry)| Ok((id.clone(), entry.to_known_failure("check.baseline.", id)?)));
        Ok(Baseline { today, known: known.collect::<Result<_, String>>()? })
    }
}

/// Parses a file of known failures; returns the entries by statement.
pub(crate) fn known_failures(text: &str) -> Result<BTreeMap<String, KnownFailure>, String> {
    let entries: BTreeMap<String, BaselineEntry> = toml::from_str(text).map_err(|error| error.to_string())?;
    entries.iter().map(|(id, entry)| Ok((id.clone(), entry.to_known_failure("", id)?))).collect()
}

impl BaselineEntry {
    /// Converts the entry of a statement. `prefix` precedes the id in error messages.
    fn to_known_failure(&self, prefix: &str, id: &str) -> Result<KnownFailure, String> {
        let expires = self.expires.to_string();
        if self.expires.date.is_none() || self.expires.time.is_some() {
            return Err(format!(
                "`{prefix}{id}` expires on `{expires}`, which is not a date; allowed: a date such as 2027-01-31"
            ));
        }
        if self.reason.trim().is_empty() {
            return Err(format!("`{prefix}{id}` has no reason; fill it in"));
        }
        Ok(KnownFailure { reason: self.reason.clone(), fingerprint: self.fingerprint.clone(), expires })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectSection {
    key_prefix: Option<String>,
    header_prefix: Option<String>,
    user_agent: Option<String>,
}

impl DialectSection {
    /// Returns the dialect: the prefixes of keys and headers, and the user agent. A missing setting has its default.
    fn dialect(self) -> Result<Dialect, String> {
        let mut dialect = Dialect::default();
        let is_valid = |text: &str, other_allowed: &[u8]| {
            !text.is_empty()
                && text.len() <= 40
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || other_allowed.contains(&b))
        };
        if let Some(prefix) = self.key_prefix {
            if !is_valid(&prefix, b"") {
                return Err(format!(
                    "`dialect.key_prefix` is `{prefix}`; allowed: 1 to 40 letters and digits"
                ));
            }
            dialect.key_prefix = prefix;
        }
        if let Some(prefix) = self.header_prefix {
            if !is_valid(&prefix, b"-") {
                return Err(format!(
                    "`dialect.header_prefix` is `{prefix}`; allowed: 1 to 40 letters, digits and -"
                ));
            }
            dialect.header_prefix = prefix;
        }
        if let Some(agent) = self.user_agent {
            if agent.is_empty() || !agent.bytes().all(|b| (b' '..=b'~').contains(&b)) {
                return Err(format!("`dialect.user_agent` is `{agent}`; allowed: printable ASCII"));
            }
            dialect.user_agent = agent;
        }
        Ok(dialect)
    }
}

impl ConfigFile {
    /// Reads the file at `path_option`, the value of `--config`, or the default one if it exists.
    pub(crate) fn read(path_option: Option<&Path>) -> Result<ConfigFile, Failure> {
        let path = path_option.unwrap_or(Path::new(DEFAULT_PATH));
        let text = match files::read_text(path, files::SETTINGS_MAX) {
            Ok(text) => text,
            Err(error) if path_option.is_none() && error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(files::read_failure(path, &error)),
        };
        ConfigFile::parse(path, &text).map_err(|why| {
            Failure::usage(format!(
                "`{}` is not a valid configuration: {}",
                path.display(),
                files::truncate_message(&why)
            ))
        })
    }

    fn parse(path: &Path, text: &str) -> Result<ConfigFile, String> {
        let mut settings: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let dialect = section::<DialectSection>("dialect", settings.remove("dialect"))?.dialect()?;
        let mut check_settings = Table::new();
        if let Some(Value::Table(check)) = settings.get_mut("check") {
            check_settings.extend(
                NON_OPTION_SETTINGS.into_iter().filter_map(|key| Some((key.to_owned(), check.remove(key)?))),
            );
        }
        let check = section("check", Some(Value::Table(check_settings)))?;
        Ok(ConfigFile { path: path.to_owned(), config: Config { dialect, check }, settings })
    }
}

/// Parses a section; the default if it is missing.
fn section<T: DeserializeOwned + Default>(name: &str, value: Option<Value>) -> Result<T, String> {
    let Some(value) = value else { return Ok(T::default()) };
    value.try_into().map_err(|error| format!("in [{name}]: {}", error.to_string().trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        ConfigFile::parse(Path::new("x"), text).map(|file| file.config)
    }

    #[test]
    fn baseline_entry_has_reason_fingerprint_and_expiry() {
        let config = parse(
            r#"
            [check.baseline]
            "auth.www_authenticate" = { reason = "ticket 7", fingerprint = "0011", expires = 2027-01-31 }
            "#,
        )
        .unwrap();
        let baseline = config.check.baseline("2026-11-21".into()).unwrap();
        let known = &baseline.known["auth.www_authenticate"];
        assert_eq!((known.reason.as_str(), known.expires.as_str()), ("ticket 7", "2027-01-31"));
    }

    #[test]
    fn dialect_and_paths_are_read_and_options_remain_in_the_settings() {
        let text =
            "[dialect]\nkey_prefix = \"acme\"\n[check]\nquick = true\n[check.paths]\ncharge = \"/c/{id}\"";
        let file = ConfigFile::parse(Path::new("x"), text).unwrap();
        assert_eq!(file.config.dialect.key_prefix, "acme");
        assert_eq!(file.config.check.paths().charge.as_deref(), Some("/c/{id}"));
        assert_eq!(file.settings["check"].as_table().unwrap().len(), 1);
    }

    #[track_caller]
    fn check_rejected(text: &str, part: &str) {
        let baseline = |config: Config| config.check.baseline("2026-11-21".into());
        let error = parse(text).and_then(baseline).expect_err("the input is rejected");
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn error_names_the_invalid_setting() {
        let entry = |rest: &str| format!("[check.baseline]\n\"a.b\" = {{ fingerprint = \"0\", {rest} }}");
        check_rejected(&entry("reason = \"x\""), "expires");
        check_rejected(&entry("reason = \" \", expires = 2027-01-31"), "`check.baseline.a.b` has no reason");
        check_rejected(&entry("reason = \"x\", expires = 10:00:00"), "allowed: a date such as 2027-01-31");
        check_rejected("[check.paths]\ncharges = \"/v1/charges/{id}\"", "unknown field `charges`");
        check_rejected("[dialect]\nkey_prefix = \"a_b\"", "`dialect.key_prefix` is `a_b`");
        check_rejected("[dialect]\nheader_prefix = \"X Y\"", "`dialect.header_prefix` is `X Y`");
        check_rejected("[dialect", "line 1");
    }
}
