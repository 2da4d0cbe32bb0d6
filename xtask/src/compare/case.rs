//! The compared requests, and the prepared responses.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::Programs;
use super::process::{Cores, MeasuredServer, call, call_for_json};

/// The number of charges in the world, each with its `charge.created`.
const CHARGES: usize = 400;

/// A request to compare.
pub(crate) struct Case {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// The name in tables.
    pub(crate) title: &'static str,
    /// The minimum rate relative to the bare server, in hundredths, on pinned cores.
    pub(crate) ratio_goal: u32,
    pub(crate) request: CaseRequest,
}

pub(crate) enum CaseRequest {
    /// Reads a path; `{event}` is replaced by an event's id.
    Get(&'static str),
    /// Opens a charge in this asset.
    Open(&'static str),
}

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "page",
        title: "page of 25 events",
        ratio_goal: 90,
        request: CaseRequest::Get("/v1/events?per_page=25"),
    },
    Case {
        name: "event",
        title: "one event",
        ratio_goal: 95,
        request: CaseRequest::Get("/v1/events/{event}"),
    },
    Case { name: "account", title: "account", ratio_goal: 90, request: CaseRequest::Get("/v1/account") },
    Case { name: "open-btc", title: "open a charge, BTC", ratio_goal: 60, request: CaseRequest::Open("BTC") },
    Case { name: "open-eth", title: "open a charge, ETH", ratio_goal: 60, request: CaseRequest::Open("ETH") },
    Case {
        name: "open-sol",
        title: "open a charge, SOL (address list)",
        ratio_goal: 60,
        request: CaseRequest::Open("SOL"),
    },
];

/// A request, and the file with its response, which the bare server sends.
pub(crate) struct PreparedRequest {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) file: PathBuf,
    /// The length of the response.
    pub(crate) bytes: usize,
    /// The asset of a charge to open; `None` for other requests.
    pub(crate) asset: Option<&'static str>,
}

/// The world of a reference server, with charges and events in test mode.
pub(crate) struct ReferenceWorld {
    address: SocketAddr,
    pub(crate) key: String,
    event: String,
    /// The file with the response for the account, which the client reads before it opens charges.
    pub(crate) account_file: PathBuf,
}

impl ReferenceWorld {
    /// Opens charges on a reference server, and stores the response for the account.
    pub(crate) fn create(reference: &MeasuredServer, work: &Path) -> Result<ReferenceWorld, String> {
        let (address, key) = (reference.address, reference.key.clone());
        for nth in 0..CHARGES {
            let body = format!(
                r#"{{"asset":"BTC","amount":"49.90","currency":"EUR","description":"order {nth}","metadata":{{"order":{nth}}}}}"#
            );
            call_for_json(address, ("POST", "/v1/charges"), &key, &body)?;
        }
        let newest = call_for_json(address, ("GET", "/v1/events?per_page=1"), &key, "")?;
        let event = newest["data"][0]["id"].as_str().unwrap_or_default().to_owned();
        let account = work.join("account-before-writes.json");
        let response = call(address, ("GET", "/v1/account"), &key, "")?;
        fs::write(&account, &response.body)
            .map_err(|err| format!("cannot write `{}`: {err}", account.display()))?;
        Ok(ReferenceWorld { address, key, event, account_file: account })
    }

    /// Sends the request of a case and stores its response.
    pub(crate) fn prepare(&self, case: &'static Case, work: &Path) -> Result<PreparedRequest, String> {
        let (method, path, asset) = match case.request {
            CaseRequest::Get(path) => ("GET", path.replace("{event}", &self.event), None),
            CaseRequest::Open(asset) => ("POST", "/v1/charges".to_owned(), Some(asset)),
        };
        let body =
            asset.map(|asset| format!(r#"{{"amount":"49.90","asset":"{asset}","description":"load"}}"#));
        let response = call(self.address, (method, &path), &self.key, &body.unwrap_or_default())?;
        response.success().map_err(|reason| format!("the request of `{}` failed: {reason}", case.name))?;
        let file = work.join(format!("{}.json", case.name));
        fs::write(&file, &response.body)
            .map_err(|err| format!("cannot write `{}`: {err}", file.display()))?;
        Ok(PreparedRequest { method, path, status: response.status, file, bytes: response.body.len(), asset })
    }

    /// Starts a bare server with the response of one case, and that of the account, which a client reads before it
    /// writes.
    pub(crate) fn start_bare_server(
        &self,
        programs: &Programs,
        cores: Cores,
        prepared: &PreparedRequest,
    ) -> Result<MeasuredServer, String> {
        let mut command = cores.server_command(programs.path("bare"));
        command.args([prepared.method, &prepared.path, &prepared.status.to_string()]).arg(&prepared.file);
        command.args(["GET", "/v1/account", "200"]).arg(&self.account_file);
        MeasuredServer::start_bare(command, &self.key)
    }
}
