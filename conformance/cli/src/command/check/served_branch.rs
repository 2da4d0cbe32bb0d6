//! A branch of a served reference as a target: a copy of its world with its own keys, clock and endpoints, so that the
//! served world stays unchanged.

use std::env;

use conformance::Secret;
use reference_core::time::Timestamp;
use serde_json::json;
use simulator::play::{Call, Stage};
use tokio::{runtime::Runtime, time::Duration};
use url::{Host, Url};

use super::{
    ProgressDisplay, event_sources,
    keys::{LIVE_KEY, OTHER_ACCOUNT_KEY, REVOKED_KEY, SECOND_KEY, TEST_KEY},
    sandbox_world::{SandboxTarget, SandboxWorld, ask},
};
use crate::{
    Failure, args::Check, command::serve::demo, config::Config, remote::RemoteStage, terminal::GOOD,
};

/// The time limit of the request that recognises a served reference.
const RECOGNISED_WITHIN: Duration = Duration::from_secs(1);
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
    /// leave it to `check` to provide keys, records and a receiver.
    pub(super) fn open(
        base: &Url,
        args: &Check,
        config: &Config,
        runtime: &Runtime,
        screen: &ProgressDisplay,
    ) -> Result<Option<ServedBranch>, Failure> {
        if !is_local(base) || provides(args, config) {
            return Ok(None);
        }
        let address = base.as_str().trim_end_matches('/');
        let mut server = RemoteStage::new(address).map_err(Failure::usage)?;
        let Some(opened) = branch(&mut server, address) else { return Ok(None) };
        let text = |name: &str| opened[name].as_str().unwrap_or_default().to_owned();
        let (id, url) = (text("world"), text("base_url"));
        let mut stage = RemoteStage::new(&url).map_err(Failure::usage)?;
        let receiver = event_sources::receiver(runtime)?;

        // The handlers of the served world must not receive the deliveries of the check.
        let to = json!({ "to": format!("http://{}/", receiver.address()) });
        let forward = ask(&mut stage, "POST", "/sandbox/forwards", None, &to)?;
        let endpoints = ask(&mut stage, "GET", "/sandbox/endpoints", None, &json!({}))?;
        for endpoint in endpoints["endpoints"].as_array().into_iter().flatten() {
            let id = endpoint["id"].as_str().unwrap_or_default();
            ask(&mut stage, "DELETE", &format!("/sandbox/endpoints/{id}"), None, &json!({}))?;
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
        screen.say(&format!(
            "{GOOD}reference server{GOOD:#}: checks a branch of its world, with keys, endpoints and sample data added"
        ));
        Ok(Some(ServedBranch { server, id, world: SandboxWorld::prepare(stage, target, receiver)? }))
    }

    pub(super) fn world(&self) -> &SandboxWorld {
        &self.world
    }

    /// Ends the branch.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        let path = format!("/sandbox/worlds/{}", self.id);
        ask(&mut self.server, "DELETE", &path, None, &json!({})).map(drop)
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

/// Returns `true` if options, settings or variables provide what the statements need, or exclude statements that need it.
fn provides(args: &Check, config: &Config) -> bool {
    let files = [
        &config.check.live_key_file,
        &config.check.test_key_file,
        &config.check.second_key_file,
        &config.check.other_account_key_file,
        &config.check.revoked_key_file,
    ];
    let Check { without, allow_writes, hook, prepare, receiving, .. } = args;
    // A user with keys means the very address, which may be a gateway in front of a reference server.
    let keys = [LIVE_KEY, TEST_KEY, SECOND_KEY, OTHER_ACCOUNT_KEY, REVOKED_KEY];
    !without.is_empty()
        || *allow_writes
        || hook.is_some()
        || prepare.is_some()
        || receiving.receiver.is_some()
        || receiving.deliveries.is_some()
        || files.iter().any(|file| file.is_some())
        || keys.iter().any(|name| env::var_os(name).is_some())
}

/// Opens a branch with a frozen clock; `None` if the server is not a reference server or refuses.
fn branch(server: &mut RemoteStage, address: &str) -> Option<serde_json::Value> {
    let mut probe = RemoteStage::new(address).ok()?.within(RECOGNISED_WITHIN);
    let call = |method, path, body| Call { method, path, bearer: None, headers: &[], body };
    let overview = probe.call(&call("GET", "/sandbox", None)).ok()?;
    let is_reference = overview.status == 200 && overview.json().pointer("/chains/0/asset").is_some();
    let body = json!({ "name": "check", "from": {}, "clock": "frozen", "ttl": TTL });
    let opened = is_reference.then(|| server.call(&call("POST", "/sandbox/worlds", Some(&body)))).transpose();
    opened.ok()?.filter(|answer| answer.status == 201).map(|answer| answer.json())
}
