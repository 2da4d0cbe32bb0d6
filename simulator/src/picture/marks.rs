//! The marks of a record: buttons in the lanes of the page, one for each request that is not a `GET`, each
//! transfer, event, delivery attempt and restart.

use std::collections::BTreeMap;

use reference_core::{
    outbox::AttemptResult,
    sighting::{Depth, Sighting},
    time::Timestamp,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::formatting::format_elapsed;
use crate::{
    invariant::{ApiState, ExpectedEvent},
    record::{Entry, Observation, RecordedAttempt, RecordedCall},
    sweep::Run,
};

/// The lanes of every world; one lane per merchant follows.
const LANES: [&str; 3] = ["requests", "chains", "events"];
/// The index of each lane in [`LANES`].
const REQUEST_LANE: usize = 0;
const CHAIN_LANE: usize = 1;
const EVENT_LANE: usize = 2;
/// The maximum number of shown characters of a body.
const BODY_MAX: usize = 1_500;

/// A button of the page: one request, transfer, event, attempt or restart.
pub(super) struct Mark {
    pub(super) at: Timestamp,
    pub(super) lane: usize,
    /// The CSS class.
    pub(super) class: &'static str,
    pub(super) label: String,
    /// The outcome, such as a status code; empty if there is none.
    pub(super) outcome: String,
    /// The names of its objects and of their parents.
    pub(super) objects: Vec<String>,
    /// The ids of the mark's own delivery, event or transaction, as a violation may name them.
    pub(super) ids: Vec<String>,
    /// The codes and ids of its objects.
    pub(super) object_ids: Vec<String>,
    /// `true` if a violation names it.
    pub(super) is_in_violation: bool,
    /// The number of its step, from 1; the number of steps plus 1 if it is after the last step.
    pub(super) step: usize,
    pub(super) details: Vec<(&'static str, String)>,
}

/// The names under which the page shows objects.
#[derive(Default)]
pub(super) struct ObjectNames {
    /// The name of each code or id.
    names: BTreeMap<String, String>,
    /// The kind of each named object.
    kinds: BTreeMap<String, &'static str>,
    /// The code of each charge, by its deposit address.
    charges: BTreeMap<String, String>,
    /// The parent (payment link or invoice) of each charge, by its code.
    parents: BTreeMap<String, String>,
}

impl ObjectNames {
    pub(super) fn new(script_names: &BTreeMap<String, String>, state: &ApiState) -> ObjectNames {
        let mut names = ObjectNames::default();
        names.names.extend(script_names.iter().map(|(name, id)| (id.clone(), name.clone())));
        for book in state.books.values() {
            for charge in &book.charges {
                names.add(&charge.code, "charges");
                names.charges.insert(charge.deposit_address.clone(), charge.code.clone());
                let parents = charge.invoice.iter().chain(&charge.payment_link);
                names.parents.extend(parents.map(|parent| (charge.code.clone(), parent.clone())));
            }
            book.invoices.iter().for_each(|invoice| names.add(&invoice.code, "invoices"));
            book.links.iter().for_each(|link| names.add(&link.code, "payment links"));
        }
        names
    }

    fn add(&mut self, code: &str, kind: &'static str) {
        let name = self.names.entry(code.to_owned()).or_insert_with(|| code.to_owned());
        self.kinds.insert(name.clone(), kind);
    }

    pub(super) fn kind(&self, name: &str) -> &'static str {
        self.kinds.get(name).copied().unwrap_or("other")
    }

    fn get(&self, id: &str) -> Option<&str> {
        self.names.get(id).map(String::as_str)
    }

    /// Returns the name of an id; the first 12 characters of the id if it has none.
    fn name(&self, id: &str) -> String {
        self.get(id).map_or_else(|| id.chars().take(12).collect(), str::to_owned)
    }

    /// Returns the names of objects and of their parents, each once.
    fn objects(&self, ids: &[String]) -> Vec<String> {
        let mut objects: Vec<String> = Vec::new();
        for id in ids.iter().flat_map(|id| [Some(id), self.parents.get(id)]).flatten() {
            let Some(name) = self.get(id).map(str::to_owned) else { continue };
            if !objects.contains(&name) {
                objects.push(name);
            }
        }
        objects
    }

    /// Returns the known codes and ids in a JSON value.
    fn ids_in(&self, json: &Value) -> Vec<String> {
        match json {
            Value::String(text) => self.get(text).map(|_| text.clone()).into_iter().collect(),
            Value::Array(list) => list.iter().flat_map(|element| self.ids_in(element)).collect(),
            Value::Object(map) => map.values().flat_map(|element| self.ids_in(element)).collect(),
            _ => Vec::new(),
        }
    }
}

/// Returns the lanes of a played world, and the marks in order of time.
pub(super) fn build_marks(
    run: &Run,
    expected: &[ExpectedEvent],
    names: &ObjectNames,
) -> (Vec<String>, Vec<Mark>) {
    let mut hosts: Vec<&str> = Vec::new();
    for entry in &run.record.entries {
        if let Observation::AttemptStart(attempt) = &entry.observation
            && !hosts.contains(&attempt.host.as_str())
        {
            hosts.push(&attempt.host);
        }
    }
    hosts.sort_unstable();
    let mut builder = MarkBuilder {
        names,
        hosts: &hosts,
        step_starts: &run.dry_run.step_starts,
        entry_index: 0,
        marks: Vec::new(),
        transfers: BTreeMap::new(),
        attempts: BTreeMap::new(),
    };
    let mut events = expected.iter().peekable();
    for (index, entry) in run.record.entries.iter().enumerate() {
        // An event at `2 * index` precedes the entry; one at `2 * index + 1` is caused by it.
        while let Some(event) = events.next_if(|event| event.position <= 2 * index) {
            builder.add_event(event);
        }
        builder.entry_index = index;
        builder.add_entry(entry);
    }
    events.for_each(|event| builder.add_event(event));
    let mut marks = builder.marks;
    // All changes of a transfer or attempt are in one mark, at the time of its start.
    marks.sort_by_key(|mark| mark.at);
    let lanes = LANES.into_iter().chain(hosts.iter().copied()).map(str::to_owned).collect();
    (lanes, marks)
}

/// Returns the scripted responses of a merchant, which precede those of its state, such as `500 500, then`.
fn scripted_responses(request: &Value) -> Option<String> {
    let responses = request["answers"].as_array().filter(|responses| !responses.is_empty())?;
    let responses: Vec<&str> = responses.iter().filter_map(Value::as_str).collect();
    Some(format!("{}, then", responses.join(" ")))
}

/// Builds the marks while it reads the record.
struct MarkBuilder<'a> {
    names: &'a ObjectNames,
    hosts: &'a [&'a str],
    /// The length of the record at the start of each step.
    step_starts: &'a [usize],
    /// The index of the current entry.
    entry_index: usize,
    marks: Vec<Mark>,
    /// By transaction, address and output.
    transfers: BTreeMap<(String, String, u32), TransferMark>,
    /// By delivery: the index of the latest attempt's mark, and the number of attempts.
    attempts: BTreeMap<Uuid, (usize, u32)>,
}

/// The current mark of a transfer.
#[derive(Clone, Copy)]
struct TransferMark {
    /// The index of the mark.
    index: usize,
    first_confirmations: u32,
    last_confirmations: u32,
}

impl MarkBuilder<'_> {
    fn add_mark(
        &mut self,
        (at, lane): (Timestamp, usize),
        class: &'static str,
        label: String,
        object_ids: Vec<String>,
    ) {
        self.marks.push(Mark {
            at,
            lane,
            class,
            label,
            outcome: String::new(),
            objects: self.names.objects(&object_ids),
            ids: Vec::new(),
            object_ids,
            is_in_violation: false,
            step: self.step_starts.partition_point(|start| *start <= self.entry_index),
            details: Vec::new(),
        });
    }

    fn last_mark(&mut self) -> &mut Mark {
        self.marks.last_mut().expect("a mark was added")
    }

    fn add_event(&mut self, event: &ExpectedEvent) {
        let label = format!("{} {}", event.kind, self.names.name(&event.subject));
        self.add_mark((event.at, EVENT_LANE), "event", label, vec![event.subject.clone()]);
        self.last_mark().details = vec![
            ("status", event.status.to_owned()),
            ("transfers", event.situation.as_str().to_owned()),
            ("code", event.subject.clone()),
        ];
    }

    fn add_entry(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.observation {
            Observation::Heights(_) => {}
            Observation::Call(call) if call.method == "GET" => {}
            Observation::Call(call) => self.add_call(at, call),
            Observation::Sightings(sightings) => {
                sightings.iter().for_each(|sighting| self.add_sighting(at, sighting));
            }
            Observation::AttemptStart(attempt) => self.add_attempt(at, attempt),
            Observation::AttemptEnd { delivery, outcome } => self.end_attempt(at, *delivery, outcome),
            Observation::Restart => {
                self.add_mark((at, EVENT_LANE), "restart", "the service restarts".to_owned(), Vec::new())
            }
        }
    }

    fn add_call(&mut self, at: Timestamp, call: &RecordedCall) {
        let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let response: Value = serde_json::from_slice(&call.response_body).unwrap_or_default();
        let objects =
            std::iter::once(&response).chain(response.as_object().into_iter().flat_map(Map::values));
        let path: Vec<&str> = call.path.split('/').skip(2).filter(|part| !part.is_empty()).collect();
        let names = self.names;
        let ids_in_path = path.iter().filter(|part| names.get(part).is_some()).map(|part| (*part).to_owned());
        let mut ids: Vec<String> = ids_in_path.chain(names.ids_in(&request)).collect();
        const ID_FIELDS: [&str; 4] = ["code", "id", "charge", "txid"];
        ids.extend(objects.flat_map(|object| ID_FIELDS.iter().flat_map(|key| names.ids_in(&object[*key]))));
        let mut parts: Vec<String> =
            path.iter().map(|part| names.get(part).unwrap_or(part).to_owned()).collect();
        parts.extend(request["name"].as_str().map(str::to_owned));
        parts.extend(scripted_responses(&request));
        let values = ["state", "asset", "status"].iter().filter_map(|key| request[*key].as_str());
        parts.extend(values.map(str::to_owned));
        parts.extend(ids.iter().map(|id| self.names.name(id)));
        let mut label: Vec<String> = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if !label.contains(&part) {
                label.push(part);
            }
        }
        let class = if (200..300).contains(&call.status) { "call" } else { "refused" };
        self.add_mark((at, REQUEST_LANE), class, label.join(" "), ids);
        let mark = self.last_mark();
        mark.outcome = format!("{}{}", call.status, if call.is_replayed() { " replayed" } else { "" });
        mark.details = vec![
            ("request", format!("{} {}", call.method, call.path)),
            ("idempotency key", call.idempotency_key.clone().unwrap_or_default()),
            ("body", format_body(&call.body)),
            ("status", mark.outcome.clone()),
            ("response", format_body(&call.response_body)),
        ];
        mark.details.retain(|(_, text)| !text.is_empty());
    }

    /// Adds a sighting. Growing confirmations of a transfer share one mark; its disappearance, and fewer
    /// confirmations after a reorganisation, get separate marks.
    fn add_sighting(&mut self, at: Timestamp, sighting: &Sighting) {
        let key = (sighting.txid.clone(), sighting.address.clone(), sighting.output);
        let known = self.transfers.get(&key).copied();
        let name = self.names.name(&sighting.txid);
        let (class, label) = match (sighting.depth, known) {
            (Depth::Confirmations(n), Some(known)) if n >= known.last_confirmations => {
                let mark = &mut self.marks[known.index];
                mark.outcome = format_confirmations(known.first_confirmations, n);
                let after = format_elapsed(at.since(mark.at));
                mark.details.push(("confirmations", format!("{n} after {}", after.trim_start_matches('+'))));
                self.transfers.insert(key, TransferMark { last_confirmations: n, ..known });
                return;
            }
            (Depth::Confirmations(_), None) => ("chain", name),
            (Depth::Confirmations(_), Some(_)) => ("gone", format!("{name} reorganized")),
            (Depth::Absent(reason), _) => ("gone", format!("{name} {}", reason.as_str().replace('_', " "))),
        };
        let charge = self.names.charges.get(&sighting.address).cloned();
        let object_ids = [sighting.txid.clone()].into_iter().chain(charge).collect();
        self.add_mark((at, CHAIN_LANE), class, label, object_ids);
        let mark = self.last_mark();
        mark.ids = vec![sighting.txid.clone()];
        mark.details = vec![
            ("amount", format!("{} {}, {}", sighting.amount, sighting.asset, sighting.mode)),
            ("transaction", sighting.txid.clone()),
            ("address", sighting.address.clone()),
        ];
        match sighting.depth {
            Depth::Absent(_) => {
                self.transfers.remove(&key);
            }
            Depth::Confirmations(n) => {
                mark.outcome = format_confirmations(n, n);
                mark.details.push(("confirmations", format!("{n} at first")));
                let index = self.marks.len() - 1;
                let known = TransferMark { index, first_confirmations: n, last_confirmations: n };
                self.transfers.insert(key, known);
            }
        }
    }

    fn add_attempt(&mut self, at: Timestamp, attempt: &RecordedAttempt) {
        let host = self.hosts.iter().position(|host| *host == attempt.host).unwrap_or(0);
        let number = self.attempts.get(&attempt.delivery).map_or(1, |(_, attempts)| attempts + 1);
        let body: Value = serde_json::from_slice(&attempt.body).unwrap_or_default();
        let object = body["data"].as_object().and_then(|data| data.values().next());
        let subject = object.and_then(|object| object["code"].as_str()).map(str::to_owned);
        let event_id = body["id"].as_str().map(str::to_owned);
        let name = subject.as_deref().map(|code| self.names.name(code)).unwrap_or_default();
        let object_ids = [attempt.endpoint.to_string()].into_iter().chain(subject).collect();
        let suffix = if number > 1 { format!(" try {number}") } else { String::new() };
        let label = format!("{} {name}{suffix}", attempt.kind);
        self.add_mark((at, LANES.len() + host), "post", label, object_ids);
        let index = self.marks.len() - 1;
        let mark = self.last_mark();
        mark.ids = [attempt.delivery.to_string()].into_iter().chain(event_id).collect();
        mark.outcome = "in flight".to_owned();
        mark.details = vec![
            ("delivery", format!("{}, attempt {number}", attempt.delivery)),
            (
                "arrived",
                match attempt.arrived_at {
                    None => "never".to_owned(),
                    Some(arrived_at) if attempt.copies == 1 => format_elapsed(arrived_at.since(at)),
                    Some(arrived_at) => {
                        format!("{}, {} copies", format_elapsed(arrived_at.since(at)), attempt.copies)
                    }
                },
            ),
            ("body", format_body(&attempt.body)),
        ];
        self.attempts.insert(attempt.delivery, (index, number));
    }

    fn end_attempt(&mut self, at: Timestamp, delivery: Uuid, outcome: &AttemptResult) {
        let Some((index, _)) = self.attempts.get(&delivery) else { return };
        let mark = &mut self.marks[*index];
        let (short, detail) = match outcome {
            AttemptResult::Response(status) => (status.to_string(), ""),
            AttemptResult::Unreachable(reason) => ("unreachable".to_owned(), reason.as_str()),
            AttemptResult::TimedOut => ("timeout".to_owned(), ""),
            AttemptResult::NotPublic(reason) => ("refused".to_owned(), reason.as_str()),
        };
        if !outcome.is_success() {
            mark.class = "failed";
        }
        let after = format_elapsed(at.since(mark.at));
        let result = format!("{short} after {} {detail}", after.trim_start_matches('+'));
        mark.details.insert(1, ("result", result.trim_end().to_owned()));
        mark.outcome = short;
    }
}

fn format_confirmations(first: u32, last: u32) -> String {
    match (first, last) {
        (0, 0) => "unconfirmed".to_owned(),
        (0, last) => format!("{last} conf."),
        (first, last) if first == last => format!("{last} conf."),
        (first, last) => format!("{first} to {last} conf."),
    }
}

/// Returns a body for display, up to [`BODY_MAX`] characters: JSON with line breaks, anything else unchanged.
fn format_body(bytes: &[u8]) -> String {
    let pretty = serde_json::from_slice::<Value>(bytes).and_then(|json| serde_json::to_string_pretty(&json));
    let text = pretty.unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned());
    match text.char_indices().nth(BODY_MAX) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
