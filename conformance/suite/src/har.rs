//! Imports a recording from a HAR file, as browsers, proxies and HTTP tools write it.
//!
//! The purpose of a request is inferred from its method, path, query and key prefix. Much less can be judged than in a
//! run of the suite, and statements that depend on the time of requests are excluded. Keys are redacted first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use url::Url;

use conformance_model::baseline::Baseline;
use conformance_model::budget::{Budget, Ledger};
use conformance_model::mode::Mode;
use conformance_model::recording::{
    Caller, Exchange, ExchangeOutcome, FORMAT_VERSION, Inserts, List, PageRequest, Purpose, ReceivedResponse,
    Recording, Side,
};
use conformance_model::secret::{KEY_PLACEHOLDER, Redactor, key_secret_part};
use conformance_model::selection::{Profile, Selection};

use conformance_probe::RunResult;

use crate::FileError;
use crate::check::Outcome;

/// The maximum number of imported exchanges.
const EXCHANGES_MAX: usize = 5000;
/// The patterns of the excluded statements. These compare responses of different times, between which data may have
/// changed.
const EXCLUDED_STATEMENTS: [&str; 3] = ["filters.combined", "filters.total", "paging.stable*"];
/// The response headers that are removed, because they contain secrets.
const SECRET_HEADERS: [&str; 2] = ["set-cookie", "set-cookie2"];

#[derive(Deserialize)]
struct Har {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
}

#[derive(Deserialize)]
struct HarEntry {
    #[serde(rename = "startedDateTime")]
    started_at: String,
    /// The duration in milliseconds.
    #[serde(default)]
    time: Option<serde_json::Number>,
    request: Request,
    response: Response,
}

#[derive(Deserialize)]
struct Request {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Header>,
}

#[derive(Deserialize)]
struct Response {
    status: i64,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    content: Content,
}

#[derive(Default, Deserialize)]
struct Content {
    text: Option<String>,
    encoding: Option<String>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    value: String,
}

impl Outcome {
    /// Judges a HAR file. `key_prefix`: the prefix of keys, before `_live_` or `_test_`. Also returns a message with
    /// the number of usable entries.
    ///
    /// # Errors
    ///
    /// [`FileError::Malformed`] if the text is not a HAR file, [`FileError::NoApiRequests`] or
    /// [`FileError::NoUsableEntries`] if it has no usable entry.
    pub fn from_har(text: &str, key_prefix: &str) -> Result<(Outcome, String), FileError> {
        let malformed = |error| FileError::Malformed { message: "not a HAR file", error };
        let har: Har = serde_json::from_str(text).map_err(|err| malformed(err.to_string()))?;
        let entries = har.log.entries;
        let Some(base) = entries.iter().find_map(|entry| base_address(&entry.request.url)) else {
            return Err(FileError::NoApiRequests);
        };
        let keys = entries.iter().filter_map(|entry| bearer_key(&entry.request));
        let tails = keys.map(|key| key_secret_part(key, key_prefix));
        let reader = HarReader {
            base: &base,
            redactor: Redactor::new(tails, KEY_PLACEHOLDER),
            keys: first_keys(&entries, key_prefix),
            start: entries.iter().filter_map(|entry| parse_time(&entry.started_at)).min(),
        };
        let mut exchanges: Vec<_> =
            entries.iter().filter_map(|entry| reader.exchange(entry)).take(EXCHANGES_MAX).collect();
        exchanges.sort_by_key(|exchange| exchange.sent);
        for (number, exchange) in (1..).zip(&mut exchanges) {
            exchange.number = number;
        }
        let summary = format!("{} of {} entries can be judged", exchanges.len(), entries.len());
        if exchanges.is_empty() {
            return Err(FileError::NoUsableEntries { entries: entries.len() });
        }
        let recording = Recording {
            format: FORMAT_VERSION,
            base: base.clone(),
            key_prefix: key_prefix.to_owned(),
            without: BTreeSet::new(),
            no_burst: Some("a HAR file is not a run of the suite".to_owned()),
            inserts: Inserts::default(),
            exact_amounts: true,
            deliveries: None,
            exchanges,
        };
        let skip = EXCLUDED_STATEMENTS.map(str::to_owned).to_vec();
        let selection = Selection { profile: Profile::Spec, only: Vec::new(), skip };
        let (baseline, budget, ledger) = (Baseline::default(), Budget::empty(), Ledger::default());
        Ok((
            Outcome::from_run(
                RunResult { recording, stop: None, budget, ledger, completed_if_interrupted: None },
                selection,
                baseline,
                false,
            ),
            summary,
        ))
    }

    /// Returns `true` if a string looks like a HAR file.
    pub fn is_har(text: &str) -> bool {
        let value: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        value["log"]["entries"].is_array()
    }
}

/// Returns the part of an address before `/v1/`.
fn base_address(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok()?;
    let end = url.path().find("/v1/")?;
    let prefix = url.path()[..=end].to_owned();
    url.set_path(&prefix);
    url.set_query(None);
    url.set_fragment(None);
    // These two fail only for addresses that cannot have a user name.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(url.to_string())
}

fn bearer_key(request: &Request) -> Option<&str> {
    let header = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case("authorization"))?;
    Some(header.value.strip_prefix("Bearer ").unwrap_or(&header.value))
}

/// Returns the first key of each mode that was not refused. A second one may belong to another account.
fn first_keys(entries: &[HarEntry], key_prefix: &str) -> BTreeMap<Mode, String> {
    let mut keys = BTreeMap::new();
    for key in entries
        .iter()
        .filter(|entry| entry.response.status != 401)
        .filter_map(|entry| bearer_key(&entry.request))
    {
        if let Some((mode, _)) = Mode::split_key(key, key_prefix) {
            keys.entry(mode).or_insert_with(|| key.to_owned());
        }
    }
    keys
}

fn parse_time(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

struct HarReader<'a> {
    base: &'a str,
    redactor: Redactor,
    keys: BTreeMap<Mode, String>,
    start: Option<OffsetDateTime>,
}

impl HarReader<'_> {
    /// Returns the exchange of an entry, if the entry can be judged and its purpose inferred.
    fn exchange(&self, entry: &HarEntry) -> Option<Exchange> {
        let HarEntry { request, response, .. } = entry;
        let status = u16::try_from(response.status).ok().filter(|status| (200..500).contains(status))?;
        // Redirects and responses from a browser's cache are not from the service. A 429 can be judged in a burst only.
        if request.method != "GET" || (300..400).contains(&status) || status == 429 {
            return None;
        }
        if response.content.encoding.is_some() || base_address(&request.url)? != self.base {
            return None;
        }
        let url = Url::parse(&request.url).ok()?;
        let path = format!("/v1/{}", url.path().split_once("/v1/")?.1);
        let caller = match bearer_key(request) {
            None => Caller::NoKey,
            Some(key) => Caller::Own(*self.keys.iter().find(|(_, known)| *known == key)?.0),
        };
        let purpose = match (caller, status) {
            (Caller::NoKey, 401) => Purpose::Refusal,
            // The export may have removed the key.
            (Caller::NoKey, _) | (_, 401) => return None,
            _ => infer_purpose(&path, &url, status)?,
        };
        let sent = self.sent_at(entry)?;
        let duration = entry.time.as_ref().and_then(serde_json::Number::as_f64).unwrap_or_default();
        // A HAR file has durations in milliseconds.
        let duration = Duration::try_from_secs_f64(duration).unwrap_or_default() / 1000;
        let query = url.query().map_or(String::new(), |query| format!("?{query}"));
        let headers =
            response.headers.iter().map(|header| (header.name.to_ascii_lowercase(), header.value.clone()));
        let headers = headers.filter(|(name, _)| !SECRET_HEADERS.contains(&name.as_str()));
        let body = response.content.text.as_deref().unwrap_or_default();
        Some(Exchange {
            number: 0,
            caller,
            purpose,
            target: self.redactor.redact(&format!("{}{query}", url.path())),
            sent,
            ended: sent.saturating_add(duration),
            outcome: ExchangeOutcome::Answered(ReceivedResponse {
                status,
                headers: headers.map(|(name, value)| (name, self.redactor.redact(&value))).collect(),
                body: self.redactor.redact(body).into(),
            }),
        })
    }

    /// Returns the time of the request since the first one.
    fn sent_at(&self, entry: &HarEntry) -> Option<Duration> {
        Duration::try_from(parse_time(&entry.started_at)? - self.start?).ok()
    }
}

/// Returns the purpose of a request with a key. `None` if its path or a parameter is not specified, or its value is
/// invalid.
fn infer_purpose(path: &str, url: &Url, status: u16) -> Option<Purpose> {
    if path == "/v1/account" {
        return url.query().is_none().then_some(Purpose::Account);
    }
    if let Some(list) = List::ALL.into_iter().find(|list| list.path() == path) {
        let allowed: &[&str] = match list {
            List::Charges => &["status", "payment_link"],
            List::Invoices => &["status"],
            List::Events => &["type", "charge", "invoice"],
        };
        let mut request = PageRequest { list, filters: Vec::new(), page: None, per_page: None, link: None };
        for (name, value) in url.query_pairs().into_owned() {
            match name.as_str() {
                "page" => request.page = Some(value.parse().ok().filter(|page| *page > 0)?),
                "per_page" => request.per_page = Some(value.parse().ok()?),
                name if allowed.contains(&name) => request.filters.push((name.to_owned(), value)),
                _ => return None,
            }
        }
        return Some(Purpose::Page(request));
    }
    let id = path.strip_prefix("/v1/events/").filter(|id| !id.contains('/') && url.query().is_none())?;
    (status == 200).then(|| Purpose::Event { id: id.to_owned(), side: Side::Own, round: 1 })
}
