//! The plan of a check: target, keys, statements and limits.

use std::collections::BTreeSet;
use std::time::Duration;

use url::Url;

use conformance_model::baseline::Baseline;
use conformance_model::catalogue::{extended_statements, judged_statements};
use conformance_model::mode::Mode;
use conformance_model::part::Part;
use conformance_model::recording::ObjectKind;
use conformance_model::redaction::Redaction;
use conformance_model::secret::{KEY_SECRET_LEN_MIN, Secret};
use conformance_model::selection::{Profile, Selection};

use crate::delivery_source::Webhooks;
use crate::http_client::trust;
use crate::interrupt::Interrupt;

/// The request that creates a record, to test paging while records are created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRequest {
    /// The path below the base address.
    pub path: String,
    /// The JSON body. `{asset}` is replaced by the first accepted asset of the account.
    pub body: String,
}

impl Default for CreateRequest {
    /// Returns the request that opens a charge at the reference server.
    fn default() -> CreateRequest {
        let body = r#"{"asset":"{asset}","amount":"10.00","currency":"EUR"}"#.to_owned();
        CreateRequest { path: "/v1/charges".to_owned(), body }
    }
}

/// The paths of single objects, with the placeholder `{id}`. The specification leaves them open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPaths {
    /// The path of a charge.
    pub charge: Option<String>,
    /// The path of an invoice.
    pub invoice: Option<String>,
    /// The path of a payment link.
    pub payment_link: Option<String>,
}

impl ObjectPaths {
    /// Returns the path of each kind of object, if it has one.
    pub(crate) fn by_kind(&self) -> [(ObjectKind, Option<&String>); 3] {
        [
            (ObjectKind::Charge, self.charge.as_ref()),
            (ObjectKind::Invoice, self.invoice.as_ref()),
            (ObjectKind::PaymentLink, self.payment_link.as_ref()),
        ]
    }

    fn validate(&self) -> Result<(), String> {
        let is_invalid = |path: &&String| {
            !path.starts_with("/v1/") || path.matches("{id}").count() != 1 || path.contains(['?', '#', ' '])
        };
        match self.by_kind().into_iter().filter_map(|(_, path)| path).find(is_invalid) {
            None => Ok(()),
            Some(path) => Err(format!(
                "`{path}` is not a path of single objects; it must start with /v1/ and contain {{id}} once, such as \
                 /v1/charges/{{id}}"
            )),
        }
    }
}

/// A command of the operator with a time limit. One that creates a record must exit when the record exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The command for `sh -c`.
    pub command: String,
    /// The time limit, in real time.
    pub time_limit: Duration,
}

/// The plan of a check.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The base address of the service. Its path is the prefix of all paths.
    pub base: Url,
    /// A live key, used only for reads.
    pub live_key: Secret,
    /// A test key that no other client uses during the run.
    pub test_key: Secret,
    /// A second key of the test key's account and mode.
    pub second_key: Option<Secret>,
    /// A key of another account, in either mode.
    pub other_account_key: Option<Secret>,
    /// A key that was revoked.
    pub revoked_key: Option<Secret>,
    /// The patterns of the selected statements; all if empty.
    pub only: Vec<String>,
    /// The patterns of the skipped statements.
    pub skip: Vec<String>,
    /// The parts that the operator excluded.
    pub without: BTreeSet<Part>,
    /// The source of deliveries, if there is one.
    pub webhooks: Option<Webhooks>,
    /// Excludes the burst, and with it the wait for the next window.
    pub quick: bool,
    /// Sends another burst in the next minute of the server's clock: the limit must hold there, too, and the burst
    /// distinguishes kinds of limiters.
    pub thorough: bool,
    /// Allows the creation of records with the test key, by this request.
    pub create_request: Option<CreateRequest>,
    /// The command that creates records.
    pub hook: Option<Hook>,
    /// The paths of single objects.
    pub paths: ObjectPaths,
    /// The profile: the specification, or also the choices of the reference server.
    pub profile: Profile,
    /// The prefix of keys, before `_live_` or `_test_`.
    pub key_prefix: String,
    /// The time limit of a request, in real time.
    pub time_limit: Duration,
    /// The known failures, and the day of the run.
    pub baseline: Baseline,
    /// Additional trusted certificates for an https target, in PEM.
    pub ca_pem: Option<String>,
    /// The pseudonymization of personal values and amounts in the recording, and so in every report.
    pub redaction: Option<Redaction>,
    /// The seed of nonexistent identifiers and keys. Equal seeds send equal requests.
    pub seed: u64,
    /// The interrupt that ends the run early. The recording so far is judged.
    pub interrupt: Interrupt,
}

impl Plan {
    /// Creates a plan with all statements and the names of the specification.
    pub fn new(base: Url, live_key: Secret, test_key: Secret) -> Plan {
        Plan {
            base,
            live_key,
            test_key,
            second_key: None,
            other_account_key: None,
            revoked_key: None,
            only: Vec::new(),
            skip: Vec::new(),
            without: BTreeSet::new(),
            webhooks: None,
            quick: false,
            thorough: false,
            create_request: None,
            hook: None,
            paths: ObjectPaths::default(),
            profile: Profile::Spec,
            key_prefix: "svc".to_owned(),
            time_limit: Duration::from_secs(10),
            baseline: Baseline::default(),
            ca_pem: None,
            redaction: None,
            seed: 0,
            interrupt: Interrupt::default(),
        }
    }

    /// Returns the base address without user name, password, query and fragment, which may contain keys.
    pub(crate) fn base_without_secrets(&self) -> Url {
        let mut base = self.base.clone();
        // These two calls fail only for URLs that cannot have a user.
        let _ = base.set_username("");
        let _ = base.set_password(None);
        base.set_query(None);
        base.set_fragment(None);
        base
    }

    /// Returns the excluded parts: those of `--without`, and the burst of a quick run.
    pub fn excluded_parts(&self) -> BTreeSet<Part> {
        self.without.iter().copied().chain(self.quick.then_some(Part::Burst)).collect()
    }

    /// Returns the prefix of a mode's keys.
    pub(crate) fn mode_prefix(&self, mode: Mode) -> String {
        mode.mode_prefix(&self.key_prefix)
    }

    pub(crate) fn key(&self, mode: Mode) -> &Secret {
        match mode {
            Mode::Live => &self.live_key,
            Mode::Test => &self.test_key,
        }
    }

    /// Returns the secret part of each key.
    pub(crate) fn key_secret_parts(&self) -> impl Iterator<Item = &str> {
        let keys = [
            Some(&self.live_key),
            Some(&self.test_key),
            self.second_key.as_ref(),
            self.other_account_key.as_ref(),
            self.revoked_key.as_ref(),
        ];
        keys.into_iter().flatten().map(|key| key.secret_part(&self.key_prefix))
    }

    /// Returns the selection of statements.
    pub fn selection(&self) -> Selection {
        Selection { profile: self.profile, only: self.only.clone(), skip: self.skip.clone() }
    }

    /// Checks the plan, before any request. The error is a message for the operator.
    #[expect(clippy::too_many_lines, reason = "one line for each setting that can be wrong")]
    pub(crate) fn validate(&self) -> Result<(), String> {
        let (base, base_for_messages) = (&self.base, self.base_without_secrets());
        match base.scheme() {
            "http" | "https" => {}
            other => {
                return Err(format!(
                    "the scheme of the base address is `{other}`; only http:// and https:// are allowed"
                ));
            }
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(
                "the base address contains a user name or a password; keys come from the environment".into(),
            );
        }
        if base.host_str().is_none() || base.query().is_some() || base.fragment().is_some() {
            return Err(format!(
                "the base address `{base_for_messages}` has no host, or has a query or a fragment; only scheme, host, port and a path \
                 prefix are allowed"
            ));
        }
        if let Some(pem) = &self.ca_pem {
            trust::parse_certificates(pem)?;
        }
        for mode in Mode::BOTH {
            self.validate_mode_key(mode)?;
        }
        let others = [
            ("second", &self.second_key),
            ("other account's", &self.other_account_key),
            ("revoked", &self.revoked_key),
        ];
        for (name, key) in others {
            if let Some(key) = key {
                self.validate_key(name, key)?;
            }
        }
        if let Some(key) = &self.second_key {
            if !key.expose().starts_with(&self.mode_prefix(Mode::Test)) {
                return Err(
                    "the second key is not a test key; give another test key of the same account".into()
                );
            }
            if *key == self.test_key {
                return Err(
                    "the second key equals the test key; give another test key of the same account".into()
                );
            }
        }
        if self.live_key == self.test_key {
            return Err("the live key and the test key are the same; each mode has its own keys".into());
        }
        self.paths.validate()?;
        if let Some(create) = &self.create_request {
            if !create.path.starts_with("/v1/") || create.path.contains(['?', '#']) {
                return Err(format!(
                    "the path of the create request is `{}`; it must start with /v1/ and have no query, such as \
                     /v1/charges",
                    create.path
                ));
            }
            if let Err(err) = serde_json::from_str::<serde_json::Value>(&create.body) {
                return Err(format!("the body of the create request is not JSON: {err}"));
            }
        }
        if self.webhooks.is_some() && self.without.contains(&Part::Webhooks) {
            return Err(
                "`--without webhooks` excludes deliveries, but a source of deliveries is set; remove one of \
                        the two"
                    .into(),
            );
        }
        for id in self.baseline.known.keys() {
            if !judged_statements().contains_key(id) && !extended_statements().contains_key(id) {
                return Err(format!(
                    "the baseline lists the unknown statement `{id}`; `chargeproof check --list` prints all of them"
                ));
            }
        }
        self.selection().validate().map_err(|err| err.to_string())
    }

    fn validate_mode_key(&self, mode: Mode) -> Result<(), String> {
        let (name, other) = (mode.as_str(), mode.other());
        let key = self.key(mode).expose();
        if key.starts_with(&self.mode_prefix(other)) {
            return Err(format!(
                "the {name} key begins with `{}`: it is a {} key; swap the two keys",
                self.mode_prefix(other),
                other.as_str()
            ));
        }
        if !key.starts_with(&self.mode_prefix(mode)) {
            return Err(format!(
                "the {name} key does not begin with `{}`; if this API's keys begin with something else, set \
                 `key_prefix` in [dialect] of chargeproof.toml",
                self.mode_prefix(mode)
            ));
        }
        self.validate_key(name, self.key(mode))
    }

    fn validate_key(&self, name: &str, key: &Secret) -> Result<(), String> {
        if !key.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!(
                "the {name} key has a character that is not allowed in headers; only visible ASCII characters are allowed"
            ));
        }
        if key.secret_part(&self.key_prefix).len() < KEY_SECRET_LEN_MIN {
            return Err(format!(
                "the {name} key is too short; it must have {KEY_SECRET_LEN_MIN} characters after its prefix"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(base: &str, live: &str, test: &str) -> Plan {
        Plan::new(base.parse().unwrap(), Secret::new(live), Secret::new(test))
    }

    #[track_caller]
    fn check(base: &str, live: &str, test: &str, expected: &str) {
        let found = plan(base, live, test).validate().map_or_else(|err| err, |()| "valid".into());
        assert!(found.contains(expected), "{found}");
    }

    const LIVE: &str = "svc_live_0123456789";
    const TEST: &str = "svc_test_9876543210";

    #[test]
    fn a_base_address_may_have_a_path_prefix() {
        check("http://127.0.0.1:8080/pay/api", LIVE, TEST, "valid");
    }

    #[test]
    fn a_base_address_has_no_query_and_no_password() {
        check("http://127.0.0.1/?key=1", LIVE, TEST, "has a query or a fragment");
        check("http://me:pass@127.0.0.1/", LIVE, TEST, "contains a user name or a password");
        check(
            "ftp://127.0.0.1/",
            LIVE,
            TEST,
            "the scheme of the base address is `ftp`; only http:// and https:// are allowed",
        );
    }

    #[test]
    fn a_key_with_a_wrong_prefix_or_length_is_rejected() {
        check("http://a/", TEST, LIVE, "it is a test key; swap the two keys");
        check("http://a/", "acme_live_0123456789", TEST, "set `key_prefix`");
        check("http://a/", LIVE, "svc_test_12", "is too short");
    }

    #[test]
    fn no_message_shows_a_key() {
        let found = plan("http://a/", "secret-secret-secret", TEST).validate().unwrap_err();
        assert!(!found.contains("secret-secret"), "{found}");
        for base in ["http://u:secret-secret@a/", "https://u:secret-secret@a/", "http://a/?key=secret-secret"]
        {
            let plan = plan(base, LIVE, TEST);
            let found = plan.validate().unwrap_err() + plan.base_without_secrets().as_str();
            assert!(!found.contains("secret-secret"), "{found}");
        }
    }

    #[test]
    fn a_pattern_without_matches_is_rejected() {
        // No check judges `service.purpose`.
        for pattern in ["pagin.*", "service.purpose"] {
            let mut plan = plan("http://a/", LIVE, TEST);
            plan.only = vec![pattern.into()];
            let message = format!("no judged statement matches `{pattern}`");
            assert!(plan.validate().unwrap_err().contains(&message));
        }
    }
}
