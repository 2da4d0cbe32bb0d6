//! [`ServedBranch`]: a branch in a running reference server as a target. A branch is a copy of a
//! world with its own keys, clock and endpoints, so the check does not change the world itself.

use std::env;

use conformance::Secret;
use reference_core::time::Timestamp;
use serde_json::{Value, json};
use simulator::play::{Stage, StageRequest};
use tokio::{runtime::Runtime, time::Duration};
use url::{Host, Url};

use super::{
    ProgressDisplay, event_sources,
    keys::{Keys, LIVE_KEY, OTHER_ACCOUNT_KEY, REVOKED_KEY, SECOND_KEY, TEST_KEY},
    sandbox_world::{SandboxTarget, SandboxWorld, call},
};
use crate::{
    Failure,
    args::Check,
    command::serve::demo,
    config::Config,
    remote::RemoteStage,
    terminal::{DIM, GOOD},
};

/// The time limit of each request that detects a reference server.
const DETECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// The path of the list of worlds of a reference server.
const WORLDS_PATH: &str = "/sandbox/worlds";
/// The idle time after which the server ends the branch of an aborted check.
const TTL: &str = "1h";

/// A branch in a running reference server.
pub(super) struct ServedBranch {
    /// The server that the branch was opened in.
    server: RemoteStage,
    id: String,
    world: SandboxWorld,
}

impl ServedBranch {
    /// Opens a branch; `None` if the address itself must be checked. A branch requires a reference server on this
    /// machine whose sandbox needs no token, and no options that provide records, further keys or a receiver. If keys
    /// are given, they must be keys of the server, and the address must be that of the server, not of a gateway: the
    /// faults of a gateway would not occur in a branch.
    pub(super) fn open(
        base: &Url,
        args: &Check,
        config: &Config,
        runtime: &Runtime,
        progress: &ProgressDisplay,
    ) -> Result<Option<ServedBranch>, Failure> {
        if !is_local(base) || has_inputs(args) {
            return Ok(None);
        }
        let mut warnings = Vec::new();
        let keys = match has_keys(config) {
            false => None,
            true => match Keys::read(config, args.key_set, &mut |warning| warnings.push(warning)) {
                Ok(keys) => Some(keys),
                // The check of the address itself reports the error.
                Err(_) => return Ok(None),
            },
        };
        progress.info(&format!("{DIM}first request: GET {WORLDS_PATH}, to detect a reference server{DIM:#}"));
        let url = base.as_str().trim_end_matches('/');
        let mut server = RemoteStage::new(url).map_err(Failure::usage)?;
        let prefix = &config.dialect.key_prefix;
        let Some(branch) = open_branch(&mut server, base, keys.as_ref(), prefix) else { return Ok(None) };
        warnings.iter().for_each(|warning| progress.warn(warning));
        let text = |name: &str| branch[name].as_str().unwrap_or_default().to_owned();
        let (id, branch_url) = (text("world"), text("base_url"));
        let mut stage = RemoteStage::new(&branch_url).map_err(Failure::usage)?;
        let receiver = event_sources::start_receiver(runtime)?;

        // The handlers of the original world must not receive the deliveries of the check.
        let forward_body = json!({ "to": format!("http://{}/", receiver.address()) });
        let forward = call(&mut stage, "POST", "/sandbox/forwards", None, &forward_body)?;
        let endpoints = call(&mut stage, "GET", "/sandbox/endpoints", None, &json!({}))?;
        for endpoint in endpoints["endpoints"].as_array().into_iter().flatten() {
            let id = endpoint["id"].as_str().unwrap_or_default();
            call(&mut stage, "DELETE", &format!("/sandbox/endpoints/{id}"), None, &json!({}))?;
        }
        // Sample data, because statements about lists need records.
        let start = Timestamp::parse(&text("now"))
            .ok_or_else(|| Failure::usage("the response to POST /sandbox/worlds has no `now`"))?;
        demo::add_sample_data(&branch_url, None, start)?;
        let endpoint_url = forward["forward"]["url"].as_str().unwrap_or_default();
        let target = SandboxTarget {
            base: base.clone(),
            live_key: Secret::new(text("live_key")),
            test_key: Secret::new(text("test_key")),
            receiver_origin: endpoint_url.trim_end_matches('/').to_owned(),
        };
        let parent = if keys.is_some() { "the world of these keys" } else { "its world" };
        progress.info(&format!(
            "{GOOD}reference server{GOOD:#}: checks a branch of {parent}, with keys, endpoints and sample data added"
        ));
        Ok(Some(ServedBranch { server, id, world: SandboxWorld::prepare(stage, target, receiver)? }))
    }

    pub(super) fn world(&self) -> &SandboxWorld {
        &self.world
    }

    /// Ends the branch.
    pub(super) fn close(mut self) -> Result<(), Failure> {
        let path = format!("/sandbox/worlds/{}", self.id);
        call(&mut self.server, "DELETE", &path, None, &json!({})).map(drop)
    }
}

/// Returns `true` for an http URL of this machine without a path.
fn is_local(base: &Url) -> bool {
    let is_loopback = match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_loopback && base.scheme() == "http" && base.path() == "/"
}

/// Returns `true` if options provide test input, or leave out the statements that need it.
fn has_inputs(args: &Check) -> bool {
    let Check { without, allow_writes, hook, prepare, .. } = args;
    !without.is_empty()
        || *allow_writes
        || hook.is_some()
        || prepare.is_some()
        || args.webhooks.receiver.is_some()
        || args.webhooks.deliveries.is_some()
}

/// Returns `true` if an environment variable or a file provides a key.
fn has_keys(config: &Config) -> bool {
    let files = [
        &config.check.live_key_file,
        &config.check.test_key_file,
        &config.check.second_key_file,
        &config.check.other_account_key_file,
        &config.check.revoked_key_file,
    ];
    let variables = [LIVE_KEY, TEST_KEY, SECOND_KEY, OTHER_ACCOUNT_KEY, REVOKED_KEY];
    files.iter().any(|file| file.is_some()) || variables.iter().any(|name| env::var_os(name).is_some())
}

/// Opens a branch with a frozen clock. Returns the response; `None` if the server is not a
/// reference server, refuses, or does not have the given keys.
fn open_branch(server: &mut RemoteStage, base: &Url, keys: Option<&Keys>, prefix: &str) -> Option<Value> {
    let mut probe = RemoteStage::new(base.as_str()).ok()?.with_time_limit(DETECTION_TIMEOUT);
    let mut read = |path, bearer| {
        let call = StageRequest { method: "GET", path, bearer, headers: &[], body: None };
        probe.call(&call).ok().filter(|response| response.status == 200).map(|response| response.json())
    };
    let overview = read(WORLDS_PATH, None)?;
    let worlds = overview["worlds"].as_array()?;
    let mut from = json!({});
    if let Some(Keys { live, test, second: None, other_account: None, revoked: None }) = keys {
        // At another address there may be a gateway, whose faults the check must find.
        let server_url: Url = overview["listening"].as_str()?.parse().ok()?;
        let host = |url: &Url| url.host_str().map(|host| host.replace("localhost", "127.0.0.1"));
        let is_direct = host(base) == host(&server_url) && base.port() == server_url.port();
        // A key of the first world contains no world id.
        let world_of = |key: &Secret| {
            let mut ids = worlds.iter().filter_map(|world| world["world"].as_str());
            ids.find(|id| key.secret_part(prefix).starts_with(id)).map(str::to_owned)
        };
        let has_mode = |key: &Secret, mode: &str| key.expose().starts_with(&format!("{prefix}_{mode}_"));
        let server_has_keys = is_direct
            && has_mode(live, "live")
            && has_mode(test, "test")
            && world_of(live) == world_of(test)
            && [live, test].into_iter().all(|key| read("/sandbox", Some(key.expose())).is_some());
        if !server_has_keys {
            return None;
        }
        if let Some(id) = world_of(live) {
            from = json!({ "world": id });
        }
    } else if keys.is_some() {
        // A branch gets a second, another and a revoked key of its own; those given must be checked.
        return None;
    }
    let body = json!({ "name": "check", "from": from, "clock": "frozen", "ttl": TTL });
    let call =
        StageRequest { method: "POST", path: WORLDS_PATH, bearer: None, headers: &[], body: Some(&body) };
    server.call(&call).ok().filter(|response| response.status == 201).map(|response| response.json())
}
