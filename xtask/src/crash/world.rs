//! [`ServedProgram`]: the program with its directory, and the checks of the world that it serves.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::objects::{
    AcknowledgedCharge, AcknowledgedObjects, AcknowledgedWorld, first_difference, open_charge,
};
use super::receiver::{ReceivedAttempt, Receiver};
use crate::served;
use testkit::{Connection, RunningProgram};

/// The maximum number of simulated hours until all deliveries have succeeded.
const HOURS_MAX: u32 = 48;
/// The page size of lists.
const PAGE: usize = 100;

/// The objects whose creation was acknowledged by a response.
#[derive(Default)]
pub(crate) struct AcknowledgedWrites {
    /// The acknowledged charges.
    pub(crate) charges: Vec<AcknowledgedCharge>,
    /// The newest charges of each client in the last round. Their requests are repeated.
    pub(crate) recent: Vec<AcknowledgedCharge>,
    /// The number of requested charges, acknowledged or not.
    pub(crate) requested: usize,
    pub(crate) objects: AcknowledgedObjects,
}

impl AcknowledgedWrites {
    /// Adds the writes of a round.
    pub(crate) fn extend(&mut self, more: AcknowledgedWrites) {
        self.recent = more.recent;
        self.charges.extend(more.charges);
        self.requested += more.requested;
        self.objects.extend(more.objects);
    }
}

/// A running program.
pub(crate) struct ServedProgram {
    served: RunningProgram,
    connection: RefCell<Connection>,
    /// The time from the start of the process until it was ready.
    pub(crate) startup_duration: Duration,
}

impl ServedProgram {
    /// Starts the program. `checkpoint_after`: a number of calls, or `off`.
    pub(crate) fn start(
        program: &Path,
        directory: &Path,
        receiver: &Receiver,
        checkpoint_after: &str,
    ) -> Result<ServedProgram, String> {
        let directory = directory.to_str().ok_or("the path of the workspace is not UTF-8")?;
        let forward = format!("https://shop.example=http://{}", receiver.address);
        let options = [
            ["--data", directory],
            ["--checkpoint-after", checkpoint_after],
            ["--forward", &forward],
            ["--clock", "frozen"],
            ["--rate-limit", "off"],
        ];
        let started = Instant::now();
        let served = served::start(program, options.as_flattened())?;
        let took = started.elapsed();
        let connection = Connection::open(served.value("address"))
            .map_err(|error| format!("the server does not respond: {error}"))?;
        Ok(ServedProgram { served, connection: RefCell::new(connection), startup_duration: took })
    }

    pub(crate) fn address(&self) -> &str {
        self.served.value("address")
    }

    pub(crate) fn key(&self) -> &str {
        self.served.value("live_key")
    }

    /// Kills the program with SIGKILL. Data that it has not yet passed to the operating system is lost.
    pub(crate) fn kill(self) {
        drop(self.served);
    }

    pub(super) fn call(&self, method: &str, path: &str, body: &str) -> Result<Value, String> {
        self.call_as(self.key(), method, path, body)
    }

    pub(super) fn call_as(&self, key: &str, method: &str, path: &str, body: &str) -> Result<Value, String> {
        let response = self.connection.borrow_mut().call(method, path, Some(key), body);
        response
            .map_err(|error| error.to_string())
            .and_then(|response| response.success())
            .map_err(|reason| format!("{method} {path}: {reason}"))
    }

    /// Repeats the request for a charge with its `Idempotency-Key`. Returns the code of the charge in the response.
    pub(super) fn repeat(&self, charge: &AcknowledgedCharge) -> Result<String, String> {
        let credentials = (self.address(), self.key());
        let result = open_charge(&mut self.connection.borrow_mut(), credentials, &charge.order, &charge.body);
        let (_, created) = result.map_err(|error| error.to_string())?;
        Ok(created["data"]["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Adds the endpoint of the receiver, unless the world has an endpoint.
    pub(crate) fn add_endpoint(&self) -> Result<(), String> {
        let known = self.call("GET", "/sandbox/endpoints", "")?;
        if known["endpoints"].as_array().is_some_and(Vec::is_empty) {
            self.call("POST", "/sandbox/endpoints", r#"{"mode":"live","url":"https://shop.example/hooks"}"#)?;
        }
        Ok(())
    }

    /// Returns at most ten violations in the world after a kill.
    pub(crate) fn find_violations(
        &self,
        acknowledged: &AcknowledgedWrites,
        attempts: &[ReceivedAttempt],
    ) -> Result<Vec<String>, String> {
        let charges = self.read_whole_list("/v1/charges")?;
        let events = self.read_whole_list("/v1/events")?;
        let deliveries = self.deliveries()?;
        let mut findings = self.charge_findings((&acknowledged.charges, &acknowledged.recent), &charges);
        findings.extend(self.object_findings(&acknowledged.objects)?);
        if charges.len() > acknowledged.requested {
            let (found, requested) = (charges.len(), acknowledged.requested);
            findings.push(format!("there are {found} charges, but only {requested} were requested"));
        }
        let ids: BTreeSet<&str> = events.iter().filter_map(|event| event["id"].as_str()).collect();
        if ids.len() != events.len() {
            findings.push("two events have the same id".to_owned());
        }
        let mut created_events = BTreeMap::new();
        for event in events.iter().filter(|event| event["type"] == "charge.created") {
            *created_events.entry(event["charge"]["code"].as_str().unwrap_or_default()).or_insert(0) += 1;
        }
        findings.extend(
            created_events
                .iter()
                .filter(|(_, count)| **count != 1)
                .map(|(code, count)| format!("charge {code} has {count} `charge.created` events")),
        );
        let mut delivery_ids: BTreeMap<&str, &str> = BTreeMap::new();
        for delivery in &deliveries {
            let text = |name: &str| delivery[name].as_str().unwrap_or_default();
            if delivery_ids.insert(text("event"), text("id")).is_some() {
                findings.push(format!("event {} has two deliveries to one endpoint", text("event")));
            }
        }
        for attempt in attempts {
            if delivery_ids.get(attempt.event.as_str()) != Some(&attempt.delivery.as_str()) {
                findings.push(format!(
                    "the receiver got delivery {} of event {}, which the world has not recorded",
                    attempt.delivery, attempt.event
                ));
            }
        }
        findings.truncate(10);
        Ok(findings)
    }

    /// Advances the clock until all deliveries have succeeded, at most [`HOURS_MAX`]. Returns at most ten findings:
    /// deliveries that have not succeeded, or that the receiver did not get.
    pub(crate) fn deliver_all(&self, receiver: &Receiver) -> Result<Vec<String>, String> {
        let mut undelivered = Vec::new();
        for _ in 0..HOURS_MAX {
            self.call("POST", "/sandbox/advance", r#"{"by":"1h"}"#)?;
            undelivered = self.deliveries()?;
            undelivered.retain(|delivery| delivery["status"] != "delivered");
            if undelivered.is_empty() {
                break;
            }
        }
        let received: BTreeSet<String> =
            receiver.attempts().into_iter().map(|attempt| attempt.delivery).collect();
        let is_unreceived = |delivery: &&Value| {
            delivery["status"] == "delivered"
                && !received.contains(delivery["id"].as_str().unwrap_or_default())
        };
        let mut findings: Vec<String> = undelivered
            .iter()
            .map(|delivery| format!("delivery {} remains {}", delivery["id"], delivery["status"]))
            .collect();
        let all = self.deliveries()?;
        findings.extend(all.iter().filter(is_unreceived).map(|delivery| {
            format!("delivery {} has the status `delivered`, but the receiver did not get it", delivery["id"])
        }));
        findings.truncate(10);
        Ok(findings)
    }

    /// Returns the events, deliveries, keys and overviews of the world as JSON, with `here` instead of the server's
    /// address, because the port differs after each start.
    pub(crate) fn visible_state(&self) -> Result<Vec<String>, String> {
        let mut objects = self.read_whole_list("/v1/events")?;
        objects.extend(self.deliveries()?);
        for path in ["/sandbox", "/sandbox/happenings", "/sandbox/books/acme/live", "/sandbox/keys"] {
            objects.push(self.call("GET", path, "")?);
        }
        Ok(objects.iter().map(|value| value.to_string().replace(self.address(), "here")).collect())
    }

    /// Returns all records of a list. No other client changes it meanwhile.
    fn read_whole_list(&self, list: &str) -> Result<Vec<Value>, String> {
        let mut records_so_far = Vec::new();
        for page in 1.. {
            let response = self.call("GET", &format!("{list}?per_page={PAGE}&page={page}"), "")?;
            let records =
                response["data"].as_array().ok_or_else(|| format!("{list} is not a list: {response}"))?;
            records_so_far.extend_from_slice(records);
            if records.len() < PAGE {
                break;
            }
        }
        Ok(records_so_far)
    }

    /// Returns the whole delivery log.
    fn deliveries(&self) -> Result<Vec<Value>, String> {
        let mut all: Vec<Value> = Vec::new();
        loop {
            let before =
                all.last().and_then(|record| record["id"].as_str()).map(|id| format!("&before={id}"));
            let path = format!("/sandbox/deliveries?limit={PAGE}{}", before.unwrap_or_default());
            let page = self.call("GET", &path, "")?["deliveries"].as_array().cloned().unwrap_or_default();
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}

impl ServedProgram {
    /// Returns the violations for acknowledged objects other than charges.
    pub(crate) fn object_findings(&self, acknowledged: &AcknowledgedObjects) -> Result<Vec<String>, String> {
        let mut findings = Vec::new();
        for key in &acknowledged.keys {
            if let Err(reason) = self.call_as(key, "GET", "/v1/account", "") {
                findings.push(format!("an acknowledged key is not accepted: {reason}"));
            }
        }
        let snapshots = self.call("GET", "/sandbox/snapshots", "")?;
        let known: Vec<&str> = snapshots["snapshots"]
            .as_array()
            .map(|all| all.iter().filter_map(|object| object["id"].as_str()).collect())
            .unwrap_or_default();
        let lost = acknowledged.snapshots.iter().filter(|id| !known.contains(&id.as_str()));
        findings.extend(lost.map(|id| format!("snapshot {id} is lost")));
        for AcknowledgedWorld { id, live_key, charge } in &acknowledged.worlds {
            let path = format!("/w/{id}/v1/charges/{}", charge["code"].as_str().unwrap_or_default());
            match self.call_as(live_key, "GET", &path, "") {
                Ok(found) => findings.extend(
                    first_difference(charge, &found["data"])
                        .map(|reason| format!("the charge of world {id}: {reason}")),
                ),
                Err(reason) => findings.push(format!("the charge of world {id} is lost: {reason}")),
            }
        }
        Ok(findings)
    }

    /// Returns the violations for acknowledged charges. Requests for recent ones are repeated with their
    /// idempotency keys.
    pub(crate) fn charge_findings(
        &self,
        (acknowledged, recent): (&[AcknowledgedCharge], &[AcknowledgedCharge]),
        found: &[Value],
    ) -> Vec<String> {
        let mut findings = Vec::new();
        let by_code: BTreeMap<&str, &Value> =
            found.iter().filter_map(|charge| Some((charge["code"].as_str()?, charge))).collect();
        for charge in acknowledged {
            match by_code.get(charge.code()) {
                None => findings.push(format!("acknowledged charge {} is lost", charge.code())),
                Some(found) => findings.extend(
                    first_difference(&charge.charge, found)
                        .map(|reason| format!("charge {}: {reason}", charge.code())),
                ),
            }
        }
        for charge in recent {
            let repeated = self.repeat(charge);
            if repeated.as_deref() != Ok(charge.code()) {
                let (order, code) = (&charge.order, charge.code());
                findings.push(format!(
                    "charge {code} repeated with its idempotency key {order} returned {repeated:?}"
                ));
            }
        }
        findings
    }
}
