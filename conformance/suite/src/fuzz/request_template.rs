//! A fuzz request as data, which can be generated, sent, shrunk, stored and printed.

use serde::{Deserialize, Serialize};
use url::Url;

use conformance_model::mode::Mode;
use conformance_model::reading::unused_id_like;
use conformance_model::secret::Secret;

use super::known_ids::{KnownIds, NamedId};

/// The key that a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKey {
    /// The live key.
    Live,
    /// The test key.
    Test,
    /// No key.
    #[serde(rename = "nobody")]
    NoKey,
    /// An unknown key of the correct format.
    Unknown,
    /// The test key without its last character.
    Shortened,
    /// The test key with the prefix of a live key.
    Swapped,
    /// The test key under another scheme.
    OtherScheme,
    /// The test key without a scheme.
    NoScheme,
}

impl RequestKey {
    /// The keys that a server must refuse.
    pub(super) const INVALID: [RequestKey; 6] = [
        RequestKey::NoKey,
        RequestKey::Unknown,
        RequestKey::Shortened,
        RequestKey::Swapped,
        RequestKey::OtherScheme,
        RequestKey::NoScheme,
    ];

    /// Returns the mode of a valid key.
    pub(super) fn mode(self) -> Option<Mode> {
        match self {
            RequestKey::Live => Some(Mode::Live),
            RequestKey::Test => Some(Mode::Test),
            _ => None,
        }
    }
}

/// One request. In `target` and `body`, the placeholder `{event:live:2}` stands for the id of the third event that the
/// live key received (of the last one if there are fewer); the same for `{charge:…}`, `{invoice:…}` and `{link:…}`.
/// `{absent:event:live:2}` stands for a nonexistent id of the same format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestTemplate {
    /// The key that it carries.
    #[serde(rename = "by")]
    pub key: RequestKey,
    /// The method.
    pub method: String,
    /// Path and query below the base address.
    pub target: String,
    /// Additional headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// The body, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// A request as sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentRequest {
    /// Path and query below the base address.
    pub target: String,
    /// The body, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// A request with its placeholders replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedRequest {
    pub(super) sent: SentRequest,
    /// The identifiers that replaced placeholders, in order.
    pub(super) used_ids: Vec<NamedId>,
}

/// The keys of a plan.
pub(super) struct Keys<'a> {
    pub(super) live: &'a Secret,
    pub(super) test: &'a Secret,
    pub(super) prefix: &'a str,
}

impl Keys<'_> {
    /// Returns the value of the `Authorization` header; `None` for a request without a key.
    pub(super) fn authorization(&self, key: RequestKey) -> Option<String> {
        let (live, test) = (self.live.expose(), self.test.expose());
        let tail = self.test.secret_part(self.prefix);
        Some(match key {
            RequestKey::Live => format!("Bearer {live}"),
            RequestKey::Test => format!("Bearer {test}"),
            RequestKey::NoKey => return None,
            RequestKey::Unknown => format!("Bearer {}_test_{}", self.prefix, unused_id_like(tail, 7)),
            RequestKey::Shortened => {
                let end = test.char_indices().last().map_or(0, |(index, _)| index);
                format!("Bearer {}", &test[..end])
            }
            RequestKey::Swapped => format!("Bearer {}_live_{tail}", self.prefix),
            RequestKey::OtherScheme => format!("Token {test}"),
            RequestKey::NoScheme => test.to_owned(),
        })
    }
}

impl RequestTemplate {
    pub(super) fn get(key: RequestKey, target: impl Into<String>) -> RequestTemplate {
        RequestTemplate {
            key,
            method: "GET".to_owned(),
            target: target.into(),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Returns `true` if the request may change data.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    /// Replaces the placeholders by identifiers.
    pub(super) fn resolve(&self, known: &KnownIds) -> ResolvedRequest {
        let mut used_ids = Vec::new();
        let target = fill_placeholders(&self.target, known, &mut used_ids);
        let body = self.body.as_deref().map(|body| fill_placeholders(body, known, &mut used_ids));
        ResolvedRequest { sent: SentRequest { target, body }, used_ids }
    }

    /// Returns a curl command that sends the same request.
    pub(super) fn curl(&self, base: &Url, prefix: &str, sent: &SentRequest) -> String {
        let mut command = "curl -i".to_owned();
        if self.method != "GET" {
            command.push_str(&format!(" -X {}", self.method));
        }
        if let Some(value) = curl_authorization(self.key, prefix) {
            command.push_str(&format!(" -H \"Authorization: {value}\""));
        }
        for (name, value) in &self.headers {
            command.push_str(&format!(" -H {}", shell_quote(&format!("{name}: {value}"))));
        }
        if let Some(body) = &sent.body {
            command.push_str(&format!(" --data-binary {}", shell_quote(body)));
        }
        format!("{command} --path-as-is {}", shell_quote(&address(base, &sent.target)))
    }
}

/// Returns the absolute address of a path and query below the base address.
pub(super) fn address(base: &Url, target: &str) -> String {
    format!("{}{}{target}", base.origin().ascii_serialization(), base.path().trim_end_matches('/'))
}

/// Returns the value of the `Authorization` header in a `curl` command, with the keys as environment variables. For an
/// unknown key, the command has another unknown key than the request.
pub(super) fn curl_authorization(key: RequestKey, prefix: &str) -> Option<String> {
    const TEST: &str = "CHARGEPROOF_TEST_KEY";
    Some(match key {
        RequestKey::Live => "Bearer $CHARGEPROOF_LIVE_KEY".to_owned(),
        RequestKey::Test => format!("Bearer ${TEST}"),
        RequestKey::NoKey => return None,
        RequestKey::Unknown => format!("Bearer {prefix}_test_0000000000000000000000000000000000000000"),
        RequestKey::Shortened => format!("Bearer ${{{TEST}%?}}"),
        RequestKey::Swapped => format!("Bearer {prefix}_live_${{{TEST}#{prefix}_test_}}"),
        RequestKey::OtherScheme => format!("Token ${TEST}"),
        RequestKey::NoScheme => format!("${TEST}"),
    })
}

/// Quotes an argument for the shell.
fn shell_quote(argument: &str) -> String {
    format!("'{}'", argument.replace('\'', r"'\''"))
}

fn fill_placeholders(text: &str, known: &KnownIds, used_ids: &mut Vec<NamedId>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        match rest.find('}').and_then(|end| Some((end, known.id_for_placeholder(&rest[1..end])?))) {
            Some((end, id)) => {
                out.push_str(&id.id);
                used_ids.push(id);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('{');
                rest = &rest[1..];
            }
        }
    }
    out + rest
}
