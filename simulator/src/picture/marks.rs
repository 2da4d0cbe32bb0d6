//! The marks of a record, in lanes: one mark for each request, transfer, event and delivery attempt.

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
    record::{Entry, Observation, RecordedCall, RecordedPost},
    sweep::Run,
};

/// The lanes of every world; one lane per merchant follows.
const LANES: [&str; 3] = ["requests", "chains", "events"];
/// The maximum number of shown bytes of a body.
const BODY_MAX: usize = 1_500;

/// A mark.
pub(super) struct Mark {
    pub(super) at: Timestamp,
    pub(super) lane: usize,
    pub(super) class: &'static str,
    pub(super) label: String,
    /// The outcome.
    pub(super) outcome: String,
    /// The names of its objects.
    pub(super) objects: Vec<String>,
    /// The ids of the delivery, event or transaction, as a violation may name them.
    pub(super) ids: Vec<String>,
    /// The codes and ids of its objects.
    pub(super) about: Vec<String>,
    /// `true` if a violation names it.
    pub(super) is_named: bool,
    /// The number of its step, from 1; one more than the number of steps if it is after the last.
    pub(super) step: usize,
    pub(super) details: Vec<(&'static str, String)>,
}

/// The names of codes, ids and addresses.
#[derive(Default)]
pub(super) struct ObjectNames {
    names: BTreeMap<String, String>,
    kinds: BTreeMap<String, &'static str>,
    /// The code of a charge by its address.
    charges: BTreeMap<String, String>,
    /// The parent of each charge: its link or invoice.
    parents: BTreeMap<String, String>,
}

impl ObjectNames {
    pub(super) fn new(given: &BTreeMap<String, String>, shown: &ApiState) -> ObjectNames {
        let mut names = ObjectNames::default();
        names.names.extend(given.iter().map(|(name, id)| (id.clone(), name.clone())));
        for book in shown.books.values() {
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

    fn name(&self, id: &str) -> String {
        self.get(id).map_or_else(|| id.chars().take(12).collect(), str::to_owned)
    }

    /// Returns the names of objects, and of their parents.
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

/// Returns the lanes of a played world, and the marks in order.
pub(super) fn marks(run: &Run, expected: &[ExpectedEvent], names: &ObjectNames) -> (Vec<String>, Vec<Mark>) {
    let mut hosts: Vec<&str> = Vec::new();
    for entry in &run.record.seen {
        if let Observation::Post(post) = &entry.observation
            && !hosts.contains(&post.host.as_str())
        {
            hosts.push(&post.host);
        }
    }
    hosts.sort_unstable();
    let mut drawing = Drawing {
        names,
        hosts: &hosts,
        step_starts: &run.dry_run.step_starts,
        entry_index: 0,
        marks: Vec::new(),
        transfers: BTreeMap::new(),
        posts: BTreeMap::new(),
    };
    let mut coming = expected.iter().peekable();
    for (index, entry) in run.record.seen.iter().enumerate() {
        while let Some(event) = coming.next_if(|event| event.position <= 2 * index) {
            drawing.event(event);
        }
        drawing.entry_index = index;
        drawing.entry(entry);
    }
    coming.for_each(|event| drawing.event(event));
    let mut marks = drawing.marks;
    // A transfer or attempt has one mark for all its changes, at the time of its start.
    marks.sort_by_key(|mark| mark.at);
    let lanes = LANES.into_iter().chain(hosts.iter().copied()).map(str::to_owned).collect();
    (lanes, marks)
}

/// Returns the answers that a merchant gives before those of its state, such as `500 500, then`.
fn first_answers(request: &Value) -> Option<String> {
    let answers = request["answers"].as_array().filter(|answers| !answers.is_empty())?;
    let answers: Vec<&str> = answers.iter().filter_map(Value::as_str).collect();
    Some(format!("{}, then", answers.join(" ")))
}

struct Drawing<'a> {
    names: &'a ObjectNames,
    hosts: &'a [&'a str],
    /// The length of the record when each step began.
    step_starts: &'a [usize],
    /// The index of the current entry.
    entry_index: usize,
    marks: Vec<Mark>,
    /// By transaction, address and output: the mark, and the first and last number of confirmations.
    transfers: BTreeMap<(String, String, u32), (usize, u32, u32)>,
    /// By delivery: the mark of the attempt in flight, and the number of attempts.
    posts: BTreeMap<Uuid, (usize, u32)>,
}

impl Drawing<'_> {
    fn mark(
        &mut self,
        (at, lane): (Timestamp, usize),
        class: &'static str,
        label: String,
        about: Vec<String>,
    ) {
        self.marks.push(Mark {
            at,
            lane,
            class,
            label,
            outcome: String::new(),
            objects: self.names.objects(&about),
            ids: Vec::new(),
            about,
            is_named: false,
            step: self.step_starts.partition_point(|began| *began <= self.entry_index),
            details: Vec::new(),
        });
    }

    fn last_mark(&mut self) -> &mut Mark {
        self.marks.last_mut().expect("a mark was added")
    }

    fn event(&mut self, event: &ExpectedEvent) {
        let label = format!("{} {}", event.kind, self.names.name(&event.subject));
        self.mark((event.at, 2), "event", label, vec![event.subject.clone()]);
        self.last_mark().details = vec![
            ("status", event.status.to_owned()),
            ("transfers", event.situation.as_str().to_owned()),
            ("code", event.subject.clone()),
        ];
    }

    fn entry(&mut self, entry: &Entry) {
        let at = entry.at;
        match &entry.observation {
            Observation::Heights(_) => {}
            Observation::Call(call) if call.method == "GET" => {}
            Observation::Call(call) => self.call(at, call),
            Observation::Sightings(notices) => notices.iter().for_each(|notice| self.notice(at, notice)),
            Observation::Post(post) => self.post(at, post),
            Observation::PostResult { delivery, outcome } => self.end_attempt(at, *delivery, outcome),
            Observation::Restart => {
                self.mark((at, 2), "restart", "the service restarts".to_owned(), Vec::new())
            }
        }
    }

    fn call(&mut self, at: Timestamp, call: &RecordedCall) {
        let request: Value = serde_json::from_slice(&call.body).unwrap_or_default();
        let answered: Value = serde_json::from_slice(&call.answer).unwrap_or_default();
        let made = std::iter::once(&answered).chain(answered.as_object().into_iter().flat_map(Map::values));
        let path: Vec<&str> = call.path.split('/').skip(2).filter(|part| !part.is_empty()).collect();
        let names = self.names;
        let named = path.iter().filter(|part| names.get(part).is_some()).map(|part| (*part).to_owned());
        let mut ids: Vec<String> = named.chain(names.ids_in(&request)).collect();
        const SAID: [&str; 4] = ["code", "id", "charge", "txid"];
        ids.extend(made.flat_map(|object| SAID.iter().flat_map(|key| names.ids_in(&object[*key]))));
        let mut words: Vec<String> =
            path.iter().map(|part| names.get(part).unwrap_or(part).to_owned()).collect();
        words.extend(request["name"].as_str().map(str::to_owned));
        words.extend(first_answers(&request));
        let stated = ["state", "asset", "status"].iter().filter_map(|key| request[*key].as_str());
        words.extend(stated.map(str::to_owned));
        words.extend(ids.iter().map(|id| self.names.name(id)));
        let mut label: Vec<String> = Vec::new();
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            if !label.contains(&word) {
                label.push(word);
            }
        }
        let class = if (200..300).contains(&call.status) { "call" } else { "refused" };
        self.mark((at, 0), class, label.join(" "), ids);
        let mark = self.last_mark();
        mark.outcome = format!("{}{}", call.status, if call.is_replayed() { " replayed" } else { "" });
        mark.details = vec![
            ("request", format!("{} {}", call.method, call.path)),
            ("idempotency key", call.idempotency_key.clone().unwrap_or_default()),
            ("body", body(&call.body)),
            ("status", mark.outcome.clone()),
            ("answer", body(&call.answer)),
        ];
        mark.details.retain(|(_, text)| !text.is_empty());
    }

    /// Adds growing confirmations to one mark; a transfer that is reversed gets a separate one.
    fn notice(&mut self, at: Timestamp, notice: &Sighting) {
        let key = (notice.txid.clone(), notice.address.clone(), notice.output);
        let known = self.transfers.get(&key).copied();
        let name = self.names.name(&notice.txid);
        let (class, label) = match (notice.depth, known) {
            (Depth::Confirmations(n), Some((index, first, last))) if n >= last => {
                let mark = &mut self.marks[index];
                mark.outcome = confirmations(first, n);
                let after = format_elapsed(at.since(mark.at));
                mark.details.push(("confirmations", format!("{n} after {}", after.trim_start_matches('+'))));
                self.transfers.insert(key, (index, first, n));
                return;
            }
            (Depth::Confirmations(_), None) => ("chain", name),
            (Depth::Confirmations(_), Some(_)) => ("gone", format!("{name} reorganized")),
            (Depth::Gone(why), _) => ("gone", format!("{name} {}", why.as_str().replace('_', " "))),
        };
        let charge = self.names.charges.get(&notice.address).cloned();
        self.mark((at, 1), class, label, [notice.txid.clone()].into_iter().chain(charge).collect());
        let mark = self.last_mark();
        mark.ids = vec![notice.txid.clone()];
        mark.details = vec![
            ("amount", format!("{} {}, {}", notice.amount, notice.asset, notice.mode)),
            ("transaction", notice.txid.clone()),
            ("address", notice.address.clone()),
        ];
        match notice.depth {
            Depth::Gone(_) => {
                self.transfers.remove(&key);
            }
            Depth::Confirmations(n) => {
                mark.outcome = confirmations(n, n);
                mark.details.push(("confirmations", format!("{n} at first")));
                self.transfers.insert(key, (self.marks.len() - 1, n, n));
            }
        }
    }

    fn post(&mut self, at: Timestamp, post: &RecordedPost) {
        let host = self.hosts.iter().position(|host| *host == post.host).unwrap_or(0);
        let attempt = self.posts.get(&post.delivery).map_or(1, |(_, attempts)| attempts + 1);
        let sent: Value = serde_json::from_slice(&post.body).unwrap_or_default();
        let object = sent["data"].as_object().and_then(|data| data.values().next());
        let subject = object.and_then(|object| object["code"].as_str()).map(str::to_owned);
        let event = sent["id"].as_str().map(str::to_owned);
        let about = subject.as_deref().map(|code| self.names.name(code)).unwrap_or_default();
        let objects = [post.endpoint.to_string()].into_iter().chain(subject).collect();
        let again = if attempt > 1 { format!(" try {attempt}") } else { String::new() };
        self.mark((at, LANES.len() + host), "post", format!("{} {about}{again}", post.kind), objects);
        let index = self.marks.len() - 1;
        let mark = self.last_mark();
        mark.ids = [post.delivery.to_string()].into_iter().chain(event).collect();
        mark.outcome = "under way".to_owned();
        mark.details = vec![
            ("delivery", format!("{}, attempt {attempt}", post.delivery)),
            (
                "arrived",
                match post.arrived {
                    None => "never".to_owned(),
                    Some(then) if post.copies == 1 => format_elapsed(then.since(at)),
                    Some(then) => format!("{}, {} copies", format_elapsed(then.since(at)), post.copies),
                },
            ),
            ("body", body(&post.body)),
        ];
        self.posts.insert(post.delivery, (index, attempt));
    }

    fn end_attempt(&mut self, at: Timestamp, delivery: Uuid, outcome: &AttemptResult) {
        let Some((index, _)) = self.posts.get(&delivery) else { return };
        let mark = &mut self.marks[*index];
        let (word, more) = match outcome {
            AttemptResult::Answered(status) => (status.to_string(), ""),
            AttemptResult::Unreachable(why) => ("unreachable".to_owned(), why.as_str()),
            AttemptResult::TimedOut => ("timeout".to_owned(), ""),
            AttemptResult::Refused(why) => ("refused".to_owned(), why.as_str()),
        };
        if !outcome.is_success() {
            mark.class = "failed";
        }
        let after = format_elapsed(at.since(mark.at));
        let result = format!("{word} after {} {more}", after.trim_start_matches('+'));
        mark.details.insert(1, ("result", result.trim_end().to_owned()));
        mark.outcome = word;
    }
}

fn confirmations(first: u32, last: u32) -> String {
    match (first, last) {
        (0, 0) => "unconfirmed".to_owned(),
        (0, last) => format!("{last} conf."),
        (first, last) if first == last => format!("{last} conf."),
        (first, last) => format!("{first} to {last} conf."),
    }
}

/// Returns JSON with line breaks; other strings unchanged.
fn body(bytes: &[u8]) -> String {
    let read = serde_json::from_slice::<Value>(bytes).and_then(|json| serde_json::to_string_pretty(&json));
    let text = read.unwrap_or_else(|_| String::from_utf8_lossy(bytes).into_owned());
    match text.char_indices().nth(BODY_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
