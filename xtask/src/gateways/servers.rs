//! [`ReferenceServers`]: the servers behind the gateways. They open a populated world for each deployment.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};
use testkit::RunningProgram;

use crate::compare::call_for_json;
use crate::served;

/// The scenario that populates every world. It has data for every statement.
const SCENARIO: &str = "scenarios/check/populated.yaml";

/// Two reference servers, with and without a rate limit.
pub(crate) struct ReferenceServers {
    limited: Server,
    unlimited: Server,
    pub(crate) program: std::path::PathBuf,
}

struct Server {
    _served: RunningProgram,
    address: SocketAddr,
    /// The snapshot that every world starts from.
    snapshot: String,
}

/// The world of one deployment, and its API keys.
pub(crate) struct BranchedWorld {
    /// The address of the server.
    pub(crate) address: SocketAddr,
    pub(crate) live_key: String,
    pub(crate) test_key: String,
    /// A second key of test mode.
    pub(crate) second_key: String,
    /// A key of test mode that was revoked.
    pub(crate) revoked_key: String,
    /// A key of another account, in test mode.
    pub(crate) other_account_key: String,
}

impl ReferenceServers {
    /// Starts the servers and plays the scenario in both.
    pub(crate) fn start(program: &Path, root: &Path) -> Result<ReferenceServers, String> {
        Ok(ReferenceServers {
            limited: Server::start(program, root, &[])?,
            unlimited: Server::start(program, root, &["--rate-limit", "off"])?,
            program: program.to_owned(),
        })
    }

    /// Opens a new world from the snapshot, with further keys and another account.
    pub(crate) fn open_world(&self, is_unlimited: bool) -> Result<BranchedWorld, String> {
        let server = if is_unlimited { &self.unlimited } else { &self.limited };
        let address = server.address;
        let branch = json!({ "from": { "snapshot": server.snapshot }, "clock": "wall" });
        let world = post(address, "/sandbox/worlds", &branch)?;
        let sandbox = format!("/w/{}/sandbox", text(&world["world"]));
        let key = || post(address, &format!("{sandbox}/keys"), &json!({ "mode": "test" }));
        let (second, revoked) = (key()?, key()?);
        let path = format!("{sandbox}/keys/{}", text(&revoked["key"]["id"]));
        call_for_json(address, ("DELETE", &path), "", "")?;
        let account = post(address, &format!("{sandbox}/accounts"), &json!({ "id": "another" }))?;
        let other_account = text(&account["keys"]["test"]);
        let charge = json!({ "asset": "BTC", "amount": "10.00" }).to_string();
        call_for_json(address, ("POST", "/v1/charges"), &other_account, &charge)?;
        Ok(BranchedWorld {
            address,
            live_key: text(&world["live_key"]),
            test_key: text(&world["test_key"]),
            second_key: text(&second["key"]["secret"]),
            revoked_key: text(&revoked["key"]["secret"]),
            other_account_key: other_account,
        })
    }
}

impl Server {
    /// Starts a server, populates its world and takes the snapshot.
    fn start(program: &Path, root: &Path, options: &[&str]) -> Result<Server, String> {
        let scenario = root.join(SCENARIO).display().to_string();
        let served = served::start(program, &[&["--scenario", &scenario], options].concat())?;
        let address =
            served.value("address").parse().map_err(|err| format!("the server's address: {err}"))?;
        // A charge with non-ASCII text in each mode. Then the clock advances, so that these requests are outside of
        // the rate limit's window.
        let charge =
            json!({ "asset": "BTC", "amount": "11.00", "description": "Grüner Tee – 茶" }).to_string();
        for key in [served.value("live_key"), served.value("test_key")] {
            call_for_json(address, ("POST", "/v1/charges"), key, &charge)?;
        }
        post(address, "/sandbox/advance", &json!({ "by": "61s" }))?;
        let snapshot = post(address, "/sandbox/snapshots", &json!({ "name": "populated" }))?;
        Ok(Server { _served: served, address, snapshot: text(&snapshot["snapshot"]["id"]) })
    }
}

fn post(address: SocketAddr, path: &str, body: &Value) -> Result<Value, String> {
    call_for_json(address, ("POST", path), "", &body.to_string())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
