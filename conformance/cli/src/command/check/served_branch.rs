//! A branch of a served reference as a target: a copy of its world with its own keys, clock and endpoints, so that the
//! served world stays unchanged.

use std::env;

use conformance::Secret;
use reference_core::time::Timestamp;
use serde_json::{Value, json};
use simulator::play::{Call, Stage};
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

/// The time limit of the request that recognises a served reference.
const RECOGNISED_WITHIN: Duration = Duration::from_secs(1);
/// The list of worlds of a reference server.
const WORLDS: &str = "/sandbox/worlds";
/// The idle time after which the server ends a branch of an aborted check.
const TTL: &str = "1h";

/// A branch of a served reference.
pub(super) struct ServedBranch {
    /// The server that the branch was opened in.
    server: RemoteStage,
    id: String,
    world: SandboxWorld,
}

impl ServedBranch {
    /// Opens a branch if the target is a reference server on this machine, its sandbox needs no token, and the options
    /// leave it to `check` to provide records, further keys and a receiver. Given keys must be the server's own, and
    /// there must be no gateway in between, because its faults occur at the named address only.
    pub(super) fn open(
        base: &Url,
        args: &Check,
        config: &Config,
        runtime: &Runtime,
        screen: &ProgressDisplay,
    ) -> Result<Option<ServedBranch>, Failure> {
        if !is_local(base) || has_inputs(args) {
            return Ok(None);
        }
        let mut warnings = Vec::new();
        let keys = match has_keys(config) {
            false => None,
            true => match Keys::gather(config, args.keys_of, &mut |warning| warnings.push(warning)) {
                Ok(keys) => Some(keys),
                // Reported by the check of the address itself.
                Err(_) => return Ok(None),
            },
        };
        screen.say(&format!("{DIM}first GET {WORLDS}, which only a reference server answers{DIM:#}"));
        let address = base.as_str().trim_end_matches('/');
        let mut server = RemoteStage::new(address).map_err(Failure::usage)?;
        let prefix = &config.dialect.key_prefix;
        let Some(opened) = branch(&mut server, base, keys.as_ref(), prefix) else { return Ok(None) };
        warnings.iter().for_each(|warning| screen.warn(warning));
        let text = |name: &str| opened[name].as_str().unwrap_or_default().to_owned();
        let (id, url) = (text("world"), text("base_url"));
        let mut stage = RemoteStage::new(&url).map_err(Failure::usage)?;
        let receiver = event_sources::receiver(runtime)?;

        // The handlers of the served world must not receive the deliveries of the check.
        let to = json!({ "to": format!("http://{}/", receiver.address()) });
        let forward = call(&mut stage, "POST", "/sandbox/forwards", None, &to)?;
        let endpoints = call(&mut stage, "GET", "/sandbox/endpoints", None, &json!({}))?;
        for endpoint in endpoints["endpoints"].as_array().into_iter().flatten() {
            let id = endpoint["id"].as_str().unwrap_or_default();
            call(&mut stage, "DELETE", &format!("/sandbox/endpoints/{id}"), None, &json!({}))?;
        }
        // Lists without records cannot be judged.
        let start = Timestamp::parse(&text("now"))
            .ok_or_else(|| Failure::usage("the response to POST /sandbox/worlds has no `now`"))?;
        demo::play(&url, None, start)?;
        let endpoint_url = forward["forward"]["url"].as_str().unwrap_or_default();
        let target = SandboxTarget {
            base: base.clone(),
            live_key: Secret::new(text("live_key")),
            test_key: Secret::new(text("test_key")),
            receiver_origin: endpoint_url.trim_end_matches('/').to_owned(),
        };
        let world = if keys.is_some() { "the world of these keys" } else { "its world" };
        screen.say(&format!(
            "{GOOD}reference server{GOOD:#}: checks a branch of {world}, with keys, endpoints and sample data added"
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

/// Returns `true` for the address of a server on this machine, without a path.
fn is_local(base: &Url) -> bool {
    let is_loopback = match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    is_loopback && base.scheme() == "http" && base.path() == "/"
}

/// Returns `true` if options provide what the statements need, or exclude statements that need it.
fn has_inputs(args: &Check) -> bool {
    let Check { without, allow_writes, hook, prepare, receiving, .. } = args;
    !without.is_empty()
        || *allow_writes
        || hook.is_some()
        || prepare.is_some()
        || receiving.receiver.is_some()
        || receiving.deliveries.is_some()
}

/// Returns `true` if variables or files name a key.
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

/// Opens a branch with a frozen clock; `None` if the server is not a reference server, refuses, or does not know the keys.
fn branch(server: &mut RemoteStage, base: &Url, keys: Option<&Keys>, prefix: &str) -> Option<Value> {
    let mut probe = RemoteStage::new(base.as_str()).ok()?.within(RECOGNISED_WITHIN);
    let mut read = |path, bearer| {
        let call = Call { method: "GET", path, bearer, headers: &[], body: None };
        probe.call(&call).ok().filter(|answer| answer.status == 200).map(|answer| answer.json())
    };
    let list = read(WORLDS, None)?;
    let worlds = list["worlds"].as_array()?;
    let mut from = json!({});
    if let Some(Keys { live, test, second: None, other_account: None, revoked: None }) = keys {
        // A gateway may be at the named address, and its faults would have to show for these very keys.
        let listening: Url = list["listening"].as_str()?.parse().ok()?;
        let host = |url: &Url| url.host_str().map(|host| host.replace("localhost", "127.0.0.1"));
        let is_direct = host(base) == host(&listening) && base.port() == listening.port();
        let world_of = |key: &Secret| {
            let mut ids = worlds.iter().filter_map(|world| world["world"].as_str());
            ids.find(|id| key.tail(prefix).starts_with(id)).map(str::to_owned)
        };
        let has_mode = |key: &Secret, mode: &str| key.expose().starts_with(&format!("{prefix}_{mode}_"));
        let are_own = is_direct
            && has_mode(live, "live")
            && has_mode(test, "test")
            && world_of(live) == world_of(test)
            && [live, test].into_iter().all(|key| read("/sandbox", Some(key.expose())).is_some());
        if !are_own {
            return None;
        }
        if let Some(id) = world_of(live) {
            from = json!({ "world": id });
        }
    } else if keys.is_some() {
        return None;
    }
    let body = json!({ "name": "check", "from": from, "clock": "frozen", "ttl": TTL });
    let call = Call { method: "POST", path: WORLDS, bearer: None, headers: &[], body: Some(&body) };
    server.call(&call).ok().filter(|answer| answer.status == 201).map(|answer| answer.json())
}
