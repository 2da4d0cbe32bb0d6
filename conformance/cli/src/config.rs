//! `chargeproof.toml`: settings for every command. What the command line says goes before.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    net::SocketAddr,
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::Duration,
};

use conformance::{Baseline, Create, Known, Part, Paths};
use reference_core::{dialect::Dialect, time::Timestamp};
use reference_server::Forward;
use serde::Deserialize;

use crate::args::{Clock, Profile, RateLimit, parse_rate_limit, parse_seconds};

/// The file that is read when none is named.
const DEFAULT: &str = "chargeproof.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) dialect: DialectSection,
    #[serde(default)]
    pub(crate) serve: ServeSection,
    #[serde(default)]
    pub(crate) check: CheckSection,
}

/// A configuration with everything in it, commented out.
pub(crate) const COMMENTED: &str = include_str!("chargeproof.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CheckSection {
    pub(crate) target: Option<String>,
    pub(crate) live_key_file: Option<PathBuf>,
    pub(crate) test_key_file: Option<PathBuf>,
    pub(crate) second_key_file: Option<PathBuf>,
    pub(crate) other_account_key_file: Option<PathBuf>,
    pub(crate) revoked_key_file: Option<PathBuf>,
    pub(crate) live_webhook_secret_file: Option<PathBuf>,
    pub(crate) test_webhook_secret_file: Option<PathBuf>,
    pub(crate) cacert: Option<PathBuf>,
    #[serde(default)]
    without: Vec<String>,
    #[serde(default)]
    pub(crate) only: Vec<String>,
    #[serde(default)]
    pub(crate) skip: Vec<String>,
    #[serde(default)]
    pub(crate) quick: bool,
    #[serde(default)]
    pub(crate) thorough: bool,
    pub(crate) profile: Option<Profile>,
    time_limit: Option<i64>,
    #[serde(default)]
    pub(crate) allow_writes: bool,
    pub(crate) hook: Option<String>,
    hook_time_limit: Option<i64>,
    #[serde(default)]
    create: CreateSection,
    #[serde(default)]
    paths: PathsSection,
    /// Known failures by the statement they break.
    #[serde(default)]
    baseline: BTreeMap<String, KnownFailure>,
}

/// The call that creates a record.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreateSection {
    path: Option<String>,
    body: Option<String>,
}

/// Where single objects are read.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct PathsSection {
    charge: Option<String>,
    invoice: Option<String>,
    payment_link: Option<String>,
}

/// `"auth.www_authenticate" = { reason = "ticket 7", fingerprint = "…", expires = 2027-01-31 }`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFailure {
    reason: String,
    fingerprint: String,
    expires: toml::value::Datetime,
}

impl CheckSection {
    /// Whether every setting can be used, so that nothing is played or asked before it is known.
    pub(crate) fn validate(&self, today: &str) -> Result<(), String> {
        self.without()?;
        self.time_limit()?;
        self.hook_time_limit()?;
        self.baseline(today.to_owned()).map(drop)
    }

    /// What the operator declares to be left out.
    pub(crate) fn without(&self) -> Result<BTreeSet<Part>, String> {
        let part = |word: &String| {
            Part::named(word).ok_or_else(|| {
                format!("`check.without` names `{word}`; it takes {}", Part::ALL.map(Part::word).join(", "))
            })
        };
        self.without.iter().map(part).collect()
    }

    /// How long one request may take.
    pub(crate) fn time_limit(&self) -> Result<Option<Duration>, String> {
        seconds("check.time_limit", self.time_limit)
    }

    /// How long the hook may take.
    pub(crate) fn hook_time_limit(&self) -> Result<Option<Duration>, String> {
        seconds("check.hook_time_limit", self.hook_time_limit)
    }

    /// The call that creates a record.
    pub(crate) fn create(&self) -> Create {
        let default = Create::default();
        Create {
            path: self.create.path.clone().unwrap_or(default.path),
            body: self.create.body.clone().unwrap_or(default.body),
        }
    }

    /// Where single objects are read.
    pub(crate) fn paths(&self) -> Paths {
        let PathsSection { charge, invoice, payment_link } = &self.paths;
        Paths { charge: charge.clone(), invoice: invoice.clone(), payment_link: payment_link.clone() }
    }

    /// The known failures as they stand on that day.
    pub(crate) fn baseline(&self, today: String) -> Result<Baseline, String> {
        let mut known = BTreeMap::new();
        for (id, it) in &self.baseline {
            let expires = it.expires.to_string();
            if it.expires.date.is_none() || it.expires.time.is_some() {
                return Err(format!(
                    "`check.baseline.{id}` expires on `{expires}`; it takes a day such as 2027-01-31"
                ));
            }
            if it.reason.trim().is_empty() {
                return Err(format!("`check.baseline.{id}` has no reason; it takes one"));
            }
            let (reason, fingerprint) = (it.reason.clone(), it.fingerprint.clone());
            known.insert(id.clone(), Known { reason, fingerprint, expires });
        }
        Ok(Baseline { today, known })
    }
}

fn seconds(name: &str, told: Option<i64>) -> Result<Option<Duration>, String> {
    let Some(number) = told else { return Ok(None) };
    parse_seconds(&number.to_string())
        .map(|seconds| Some(Duration::from_secs(seconds)))
        .map_err(|takes| format!("`{name}` is `{number}`; it {takes}"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DialectSection {
    key_prefix: Option<String>,
    header_prefix: Option<String>,
    user_agent: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServeSection {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) seed: Option<u64>,
    pub(crate) clock: Option<Clock>,
    pub(crate) speed: Option<NonZeroU32>,
    start: Option<String>,
    pub(crate) public_url: Option<String>,
    rate_limit: Option<Limit>,
    #[serde(default)]
    forward: Vec<String>,
    pub(crate) cacert: Option<PathBuf>,
}

/// `rate_limit = 120` or `rate_limit = "off"`.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "it takes \"off\" or a whole number from 1 to 1000000")]
enum Limit {
    Number(i64),
    Word(String),
}

impl ServeSection {
    pub(crate) fn start(&self) -> Result<Option<Timestamp>, String> {
        let Some(text) = &self.start else { return Ok(None) };
        let wrong =
            || format!("`serve.start` is `{text}`; it takes a moment in UTC such as 2026-01-05T09:00:00Z");
        Timestamp::parse(text).map(Some).ok_or_else(wrong)
    }

    pub(crate) fn forwards(&self) -> Result<Vec<Forward>, String> {
        let parse = |text: &String| Forward::parse(text).map_err(|error| format!("`serve.forward`: {error}"));
        self.forward.iter().map(parse).collect()
    }

    pub(crate) fn rate_limit(&self) -> Result<Option<RateLimit>, String> {
        let text = match &self.rate_limit {
            None => return Ok(None),
            Some(Limit::Number(n)) => n.to_string(),
            Some(Limit::Word(word)) => word.clone(),
        };
        parse_rate_limit(&text)
            .map(Some)
            .map_err(|takes| format!("`serve.rate_limit` is `{text}`; it {takes}"))
    }
}

impl Config {
    /// The named file, or the default one if it is there.
    pub(crate) fn read(named: Option<&Path>) -> Result<Config, String> {
        let path = named.unwrap_or(Path::new(DEFAULT));
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
                return Ok(Config::default());
            }
            Err(error) => return Err(format!("`{}` can't be read: {error}", path.display())),
        };
        toml::from_str(&text).map_err(|error| format!("`{}` is not a configuration\n{error}", path.display()))
    }

    /// The names of keys and headers.
    pub(crate) fn dialect(&self) -> Result<Dialect, String> {
        let section = &self.dialect;
        let mut dialect = Dialect::default();
        let letters = |text: &str, more: &[u8]| {
            !text.is_empty()
                && text.len() <= 40
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || more.contains(&b))
        };
        if let Some(prefix) = &section.key_prefix {
            if !letters(prefix, b"") {
                return Err(format!(
                    "`dialect.key_prefix` is `{prefix}`; it takes 1 to 40 letters and digits"
                ));
            }
            dialect.key_prefix.clone_from(prefix);
        }
        if let Some(prefix) = &section.header_prefix {
            if !letters(prefix, b"-") {
                return Err(format!(
                    "`dialect.header_prefix` is `{prefix}`; it takes 1 to 40 letters, digits and -"
                ));
            }
            dialect.header_prefix.clone_from(prefix);
        }
        if let Some(agent) = &section.user_agent {
            if agent.is_empty() || !agent.bytes().all(|b| (b' '..=b'~').contains(&b)) {
                return Err(format!("`dialect.user_agent` is `{agent}`; it takes printable ASCII"));
            }
            dialect.user_agent.clone_from(agent);
        }
        Ok(dialect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_setting_is_read() {
        let config = parse(
            r#"
            [dialect]
            key_prefix = "acme"
            [serve]
            listen = "127.0.0.1:0"
            seed = 7
            clock = "frozen"
            start = "2026-01-05T09:00:00Z"
            rate_limit = "off"
            forward = ["https://shop.example=http://127.0.0.1:3000"]
            cacert = "ca.pem"
            "#,
        )
        .unwrap();
        assert_eq!(config.dialect().unwrap().key_prefix, "acme");
        assert_eq!(config.serve.rate_limit().unwrap(), Some(RateLimit(None)));
        assert_eq!(config.serve.start().unwrap().unwrap().to_string(), "2026-01-05T09:00:00.000000Z");
        assert_eq!(config.serve.forwards().unwrap().len(), 1);
        assert_eq!((config.serve.seed, config.serve.clock), (Some(7), Some(Clock::Frozen)));
    }

    /// A line with a setting begins with `#` and no space; prose has one.
    fn uncommented() -> String {
        let setting =
            |line: &str| line.strip_prefix('#').filter(|it| !it.starts_with(' ')).map(str::to_owned);
        COMMENTED.lines().map(|line| setting(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn the_commented_configuration_says_nothing_as_it_is() {
        let config = parse(COMMENTED).unwrap();
        assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
    }

    #[test]
    fn every_line_of_it_can_be_uncommented() {
        let config = parse(&uncommented()).unwrap();
        let check = &config.check;
        assert_eq!(config.dialect().unwrap(), Dialect::default());
        assert_eq!(check.create(), Create::default(), "what stands there is the default");
        assert_eq!(check.time_limit().unwrap(), Some(Duration::from_secs(10)));
        assert_eq!(check.hook_time_limit().unwrap(), Some(Duration::from_secs(30)));
        assert_eq!(check.without().unwrap(), BTreeSet::new());
        assert_eq!(check.paths().charge.as_deref(), Some("/v1/charges/{id}"));
        assert!(!check.allow_writes && !check.quick && check.only.is_empty() && check.skip.is_empty());
        assert_eq!(check.baseline("2026-11-21".into()).unwrap().known.len(), 1);
        assert_eq!(config.serve.rate_limit().unwrap(), Some(RateLimit(Some(120))));
        assert_eq!((config.serve.forwards().unwrap().len(), config.serve.seed), (1, Some(7)));
        config.serve.start().unwrap();
    }

    /// Whoever adds a setting adds its line.
    #[test]
    fn it_holds_every_setting_there_is() {
        let wrong = toml::from_str::<Config>("[check]\nnone = 1").unwrap_err().to_string();
        let told = wrong.split("expected one of").nth(1).expect("the settings are named");
        let names = told.split('`').skip(1).step_by(2);
        for name in names {
            let there =
                COMMENTED.contains(&format!("#{name} = ")) || COMMENTED.contains(&format!("[check.{name}]"));
            assert!(there, "{name} is missing");
        }
    }

    #[track_caller]
    fn check(text: &str, part: &str) {
        let config = parse(text);
        let error = match config {
            Err(error) => error,
            Ok(config) => [
                config.dialect().map(drop),
                config.serve.start().map(drop),
                config.serve.rate_limit().map(drop),
                config.serve.forwards().map(drop),
                config.check.baseline("2026-11-21".into()).map(drop),
                config.check.without().map(drop),
                config.check.time_limit().map(drop),
                config.check.hook_time_limit().map(drop),
            ]
            .into_iter()
            .find_map(Result::err)
            .expect("it is refused"),
        };
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_baseline_names_reason_fingerprint_and_day() {
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
    fn wrong_settings_are_named() {
        let entry = |rest: &str| format!("[check.baseline]\n\"a.b\" = {{ fingerprint = \"0\", {rest} }}");
        check(&entry("reason = \"x\""), "expires");
        check(&entry("reason = \" \", expires = 2027-01-31"), "`check.baseline.a.b` has no reason");
        check(&entry("reason = \"x\", expires = 10:00:00"), "it takes a day such as 2027-01-31");
        check(
            "[check]\nwithout = [\"webhook\"]",
            "`check.without` names `webhook`; it takes revoked, second",
        );
        check("[check]\ntime_limit = 0", "`check.time_limit` is `0`; it takes a whole number of seconds");
        check("[check]\nhook_time_limit = 301", "`check.hook_time_limit` is `301`");
        check("[check.paths]\ncharges = \"/v1/charges/{id}\"", "unknown field `charges`");
        check("[serve]\nport = 1", "unknown field `port`");
        check("[serve]\nclock = \"slow\"", "slow");
        check("[serve]\nstart = \"today\"", "`serve.start` is `today`");
        check("[serve]\nrate_limit = true", "it takes \"off\" or a whole number");
        check("[serve]\nrate_limit = -1", "`serve.rate_limit` is `-1`");
        check("[serve]\nrate_limit = 0", "`serve.rate_limit` is `0`");
        check("[serve]\nforward = [\"shop\"]", "`serve.forward`");
        check("[dialect]\nkey_prefix = \"a_b\"", "`dialect.key_prefix` is `a_b`");
        check("[dialect]\nheader_prefix = \"X Y\"", "`dialect.header_prefix` is `X Y`");
    }
}
