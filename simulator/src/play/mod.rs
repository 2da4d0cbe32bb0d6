//! The player: runs a script on a world and writes the transcript.
//!
//! A [`Script`] is a list of steps: actions of a merchant, a customer, a chain or an operator (`open`, `pay`, `reorg`,
//! …), the passing of time (`wait`, `until`), and expectations (`expect`). [`play`] performs them in order. An action
//! becomes calls to the world: requests to `/v1` with an API key where a client would send one, and requests to
//! `/sandbox` for the rest. Between two actions the clock advances by the script's pace, unless a `wait` or an `until`
//! takes its place.
//!
//! The world is behind the trait [`Stage`], which has one required method: send a request and return the response.
//! [`LocalStage`] calls a sandbox in this process. A stage that sends the same requests over HTTP runs the same
//! script against a server, and because the player has no other access to the world, the two transcripts are the same.
//!
//! After each action the player reads the events of the world since the last one and writes a line for each: the time,
//! a verb, the objects, the outcome. Identifiers are replaced by the names of the script (`c1`, `e1`), so that a
//! transcript reads like the script and does not depend on random ids. The last line is the digest of the lines before
//! it. A scenario's golden file is its transcript. A met expectation writes no line.
//!
//! ```text
//! script     - open: { charge: c1, asset: BTC, amount: 50.00 EUR }
//!            - pay: { charge: c1, amount: 0.0004 }
//!            - expect: { c1: { status: pending } }
//!
//! transcript  2.000s  open       c1 BTC 50.00 EUR                    -> 201 pending, due 0.001 BTC
//!             2.000s  event      e1 charge.created c1
//!             2.040s  POST shop  d1 e1 charge.created c1      try 1  -> 200
//!             3.000s  pay        c1 0.0004                           -> t1
//!             3.000s  transfer   t1 0.0004 BTC to c1: seen, 0 of 2
//! ```
//!
//! The result is a [`PlaySummary`] or a [`PlayError`], whose [`Cause`] is one of three: the world differs from an
//! expectation, the script requires something impossible, or a request to the world failed. [`dry_run()`] is for
//! random worlds: it plays without a transcript, records refused steps instead of stopping, and returns the world for
//! the invariants to check.
//!
//! Must not contain: a rule of the service, a socket, a clock, or access to the world's insides beyond a [`Stage`].

mod account;
mod alias;
mod chain;
mod dry_run;
mod expectation;
mod extract;
mod failure;
pub mod golden;
mod lines;
mod object;
mod requests;
mod stage;
mod until;
mod walk;

use std::collections::BTreeMap;

use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::{
    alias::{Aliases, NamedObject},
    failure::StepError,
    lines::{LineText, Tally},
};
pub use self::{
    dry_run::{DryRun, DryRunError, dry_run},
    failure::{Cause, PlayError},
    stage::{LocalStage, Stage, StageError, StageRequest, StageResponse},
};
use crate::{
    api::{self, AdvanceRequest, KeyRequest, WorldEvent, WorldRequest},
    digest::digest,
    record::BookId,
    sandbox::EVENTS_MAX,
    script::{
        At, Kind, Script, SourceSpan,
        step::Step,
        value::{ModeName, Name},
    },
    transcript::{Line, Transcript},
};

/// The result of a run that met all expectations.
#[derive(Clone, Debug)]
pub struct PlaySummary {
    /// The transcript; the last line is the digest of the lines before it.
    pub transcript: String,
    /// The digest of the transcript's lines.
    pub digest: String,
    /// The number of steps played.
    pub steps: usize,
    /// The number of recorded events.
    pub events: u64,
    /// The number of ended webhook attempts.
    pub attempts: u64,
    /// The time that passed on the clock of the world.
    pub duration: Span,
}

/// Plays a script on a stage, with its own seed or another. [`Script::parse`] has an example.
///
/// # Errors
///
/// The first step whose expectation is not met, that is impossible, or whose request to the stage failed:
/// [`PlayError::cause`] distinguishes them.
pub fn play(script: &Script, seed: Option<u64>, stage: &mut dyn Stage) -> Result<PlaySummary, PlayError> {
    let mut player = Player::new(script, stage);
    let result = player.create_world(seed.unwrap_or(script.seed)).and_then(|()| player.run());
    if let Err(error) = result {
        return Err(PlayError::new(script, player.transcript.as_str(), error));
    }
    let lines = player.transcript.as_str();
    let digest = digest(lines);
    Ok(PlaySummary {
        transcript: format!("{lines}digest {digest}\n"),
        digest,
        steps: script.steps.len(),
        events: player.tally.event_count,
        attempts: player.tally.attempt_count,
        duration: player.now.since(script.start),
    })
}

/// The state of a run.
struct Player<'a> {
    script: &'a Script,
    stage: &'a mut dyn Stage,
    now: Timestamp,
    /// API keys by name: `live` and `test` from the start, and those that the step `key` creates.
    keys: BTreeMap<String, String>,
    /// The ids of the accounts, in order of opening; the first is the world's own.
    accounts: Vec<String>,
    /// The keys that each account started with.
    own_keys: BTreeMap<BookId, String>,
    /// Keys for reading state, so that reads do not count towards a rate limit.
    observers: BTreeMap<BookId, String>,
    /// The index of the owning account, by code or id, for each named object that does not belong to the first account.
    owners: BTreeMap<String, usize>,
    /// The requests that opened charges and can be repeated, by the name of the charge.
    repeatable: BTreeMap<String, SentRequest>,
    aliases: Aliases,
    tally: Tally,
    /// The number of the last event that was read.
    last_event_read: u64,
    transcript: Transcript,
    /// The current step, for errors without a more precise position.
    step_span: SourceSpan,
    /// In a dry run: the statuses of refused actions, by the index of the step.
    refusals: Option<BTreeMap<usize, u16>>,
    /// The index of the current step.
    step_index: usize,
    /// In a dry run: `true` if a step refers to a delivery, so that deliveries need names.
    names_deliveries: bool,
}

impl<'a> Player<'a> {
    fn new(script: &'a Script, stage: &'a mut dyn Stage) -> Player<'a> {
        let script_names = crate::script::defined_names(&script.steps);
        let verbs: Vec<String> = script.steps.iter().filter_map(|step| long_verb(step)).collect();
        Player {
            script,
            stage,
            now: script.start,
            keys: BTreeMap::new(),
            accounts: Vec::new(),
            own_keys: BTreeMap::new(),
            observers: BTreeMap::new(),
            owners: BTreeMap::new(),
            repeatable: BTreeMap::new(),
            aliases: Aliases::new(script_names),
            tally: Tally::default(),
            last_event_read: 0,
            transcript: Transcript::new(script.start, verbs.iter().map(String::as_str)),
            step_span: SourceSpan::default(),
            refusals: None,
            step_index: 0,
            names_deliveries: false,
        }
    }

    /// Creates the world, and an observer key in each mode for the player's own reads.
    fn create_world(&mut self, seed: u64) -> Result<(), StepError> {
        let world = WorldRequest {
            seed: Some(seed),
            start: Some(self.script.start),
            account: Some(self.script.account.clone()),
            journal: Some(true),
        };
        let response = self.request_ok("POST", "/sandbox/world", Some(api::json(&world)))?;
        self.accounts = vec![self.string_at(&response, "/account")?];
        for mode in Mode::ALL {
            let key = self.string_at(&response, &format!("/keys/{mode}"))?;
            self.keys.insert(mode.to_string(), key.clone());
            self.own_keys.insert((0, mode), key);
            let body = KeyRequest { account: None, mode: Some(mode) };
            let created = self.request_ok("POST", "/sandbox/keys", Some(api::json(&body)))?;
            let observer = self.string_at(&created, "/key/secret")?;
            self.observers.insert((0, mode), observer);
        }
        self.write_pending_events()
    }

    fn run(&mut self) -> Result<(), StepError> {
        // `wait` and `until` replace the pace before the next action.
        let mut is_paced = false;
        for step in &self.script.steps {
            self.step_span = step.span;
            match &step.value {
                Step::Expect(expect) => self.expect(expect)?,
                Step::Wait(span) => {
                    self.advance_to(self.now.plus(span.0))?;
                    is_paced = false;
                }
                Step::Until(until) => {
                    self.wait_until(until)?;
                    is_paced = false;
                }
                action => {
                    if is_paced {
                        self.advance_to(self.now.plus(self.script.pace))?;
                    }
                    self.perform_step(action)?;
                    self.write_pending_events()?;
                    is_paced = true;
                }
            }
        }
        // The pace after the last action includes its events in the transcript.
        if is_paced { self.advance_to(self.now.plus(self.script.pace)) } else { Ok(()) }
    }

    fn perform_step(&mut self, step: &Step) -> Result<(), StepError> {
        match step {
            Step::Account(settings) => self.change_account(settings),
            Step::OpenAccount(account) => self.open_account(&account.0),
            Step::Wallet(wallet) => self.set_wallet(wallet),
            Step::Rate(rate) => self.set_rate(rate),
            Step::Key(key) => self.create_key(&key.0),
            Step::Revoke(name) => self.revoke_key(name),
            Step::Endpoint(endpoint) => self.add_endpoint(&endpoint.0),
            Step::Enable(name) => self.operate_endpoint(name, account::EndpointOperation::Enable),
            Step::Disable(name) => self.operate_endpoint(name, account::EndpointOperation::Disable),
            Step::Remove(name) => self.operate_endpoint(name, account::EndpointOperation::Remove),
            Step::Rotate(name) => self.operate_endpoint(name, account::EndpointOperation::Rotate),
            Step::Test(name) => self.operate_endpoint(name, account::EndpointOperation::Test),
            Step::Resend(resend) => self.resend(&resend.0),
            Step::Merchant(merchants) => self.set_merchants(merchants),
            Step::Open(open) => self.open_charge(open),
            Step::Repeat(repeat) => self.repeat_open(&repeat.0),
            Step::Link(link) => self.create_link(&link.0),
            Step::Invoice(invoice) => self.issue_invoice(invoice),
            Step::Send(send) => self.send_invoice(&send.0),
            Step::View(page) => self.view_page(page),
            Step::Choose(choose) => self.choose_asset(choose),
            Step::Cancel(cancel) => self.cancel_charge(&cancel.0),
            Step::Refund(refund) => self.refund_charge(refund),
            Step::Accept(accept) => self.accept_payment(&accept.0),
            Step::Void(void) => self.void_invoice(&void.0),
            Step::Pay(pay) => self.pay(&pay.0),
            Step::Mine(mine) => self.mine(&mine.0),
            Step::Reorg(reorg) => self.reorg(reorg),
            Step::DoubleSpend(step) => {
                self.act_on_transaction("double_spend", "/sandbox/double-spend", &step.0)
            }
            Step::Replace(step) => self.replace(step),
            Step::Drop(step) => self.act_on_transaction("drop", "/sandbox/drop", &step.0),
            Step::Rebroadcast(step) => {
                self.act_on_transaction("rebroadcast", "/sandbox/rebroadcast", &step.0)
            }
            Step::Stall(stall) => self.stall(stall),
            Step::Congest(congest) => self.congest(congest),
            Step::Watcher(watcher) => self.watcher(watcher),
            // The line is written for the event that the restart causes.
            Step::Restart => self.request_ok("POST", "/sandbox/restart", Some(json!({}))).map(drop),
            Step::Request(request) => self.request(request),
            Step::Walk(walk) => self.walk(walk),
            Step::Wait(_) | Step::Until(_) | Step::Expect(_) => Ok(()),
        }
    }

    /// Advances the clock and writes the lines of the events on the way. A dry run writes none.
    fn advance_to(&mut self, to: Timestamp) -> Result<(), StepError> {
        if let Some(sandbox) = self.stage.local_world() {
            self.now = self.now.max(to);
            sandbox.advance_to(self.now);
            return Ok(());
        }
        if to <= self.now {
            return self.write_pending_events();
        }
        let response = self.advance(AdvanceRequest { to: Some(to), ..AdvanceRequest::default() })?;
        self.now = to;
        self.write_new_events(&response)
    }

    /// Advances the clock to the next event, or to `latest`; returns the new time.
    fn advance_to_next_event(&mut self, latest: Timestamp) -> Result<Timestamp, StepError> {
        let request = AdvanceRequest { to: Some(latest), stop_early: true, ..AdvanceRequest::default() };
        let response = self.advance(request)?;
        self.write_new_events(&response)?;
        let now = self.string_at(&response, "/now")?;
        self.now = Timestamp::parse(&now)
            .ok_or_else(|| StepError::stage_failure(self.step_span, format!("`{now}` is not a time")))?;
        Ok(self.now)
    }

    fn advance(&mut self, request: AdvanceRequest) -> Result<StageResponse, StepError> {
        let request = AdvanceRequest { after: Some(self.last_event_read), ..request };
        self.request_ok("POST", "/sandbox/advance", Some(api::json(&request)))
    }

    /// Reads the events since the last read, and writes their lines.
    fn write_pending_events(&mut self) -> Result<(), StepError> {
        if self.stage.local_world().is_some() {
            return Ok(());
        }
        loop {
            let path = format!("/sandbox/happenings?after={}", self.last_event_read);
            let response = self.request_ok("GET", &path, None)?;
            if self.write_some_events(&response)? < EVENTS_MAX {
                return Ok(());
            }
        }
    }

    /// Writes the events in a response, and reads the rest if there are more.
    fn write_new_events(&mut self, response: &StageResponse) -> Result<(), StepError> {
        if self.write_some_events(response)? < EVENTS_MAX { Ok(()) } else { self.write_pending_events() }
    }

    /// Writes the events in a response, and returns their number.
    fn write_some_events(&mut self, response: &StageResponse) -> Result<usize, StepError> {
        let NewEvents { happened } = serde_json::from_slice(&response.body).map_err(|error| {
            StepError::stage_failure(self.step_span, format!("the events cannot be read: {error}"))
        })?;
        self.last_event_read = happened.last().map_or(self.last_event_read, |last| last.n);
        for event in &happened {
            self.tally.add_event(&event.kind);
            let LineText { verb, body, outcome } = lines::event_line(&event.kind, &mut self.aliases);
            self.transcript.push(&Line {
                at: event.at,
                verb: &verb,
                body: &body,
                outcome: outcome.as_deref(),
            });
        }
        Ok(happened.len())
    }

    /// Writes the line of an action, with the time at which it began.
    fn write_line(&mut self, at: Timestamp, verb: &str, body: &str, outcome: Option<&str>) {
        if self.refusals.is_some() {
            return;
        }
        self.transcript.push(&Line { at, verb, body, outcome });
    }

    fn send_request(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StepError> {
        self.stage.call(call).map_err(|error| StepError::from_stage_error(self.step_span, &error))
    }

    /// Sends a request that must succeed. The scenario cannot expect a refusal of it.
    fn request_ok(
        &mut self,
        method: &str,
        path: &str,
        body: Option<Value>,
    ) -> Result<StageResponse, StepError> {
        let call = StageRequest { method, path, bearer: None, headers: &[], body: body.as_ref() };
        let response = self.send_request(&call)?;
        match response.status {
            200..300 => Ok(response),
            status => Err(StepError::stage_failure(
                self.step_span,
                format!("{method} {path} responded with {status} {}", error_message(&response)),
            )),
        }
    }

    /// Performs an action, which must succeed, or be refused as the step expects. Writes the line of a refused action;
    /// the caller writes that of a successful one. A dry run accepts any result, and records refusals.
    fn try_action(&mut self, action: &Action<'_>) -> Result<Option<GrantedAction>, StepError> {
        let at = self.now;
        let bearer = action.book_id.map(|book| self.own_keys[&book].clone());
        let headers: Vec<_> = action
            .idempotency_key
            .map(|key| ("idempotency-key".to_owned(), key.to_owned()))
            .into_iter()
            .collect();
        let call = StageRequest {
            method: action.method,
            path: action.path,
            bearer: bearer.as_deref(),
            headers: &headers,
            body: Some(&action.body),
        };
        let response = self.send_request(&call)?;
        let is_granted = (200..300).contains(&response.status);
        match action.refused {
            None if is_granted => {
                // A dry run reads the time from the world itself.
                if self.refusals.is_none()
                    && let Some(now) = response.string_at("/now").as_deref().and_then(Timestamp::parse)
                {
                    self.now = now;
                }
                Ok(Some(GrantedAction { at, response }))
            }
            Some(status) if status == response.status => {
                self.write_line(at, action.verb, action.summary, Some(&status.to_string()));
                Ok(None)
            }
            _ if self.refusals.is_some() => {
                // A dry run records the refusal that a scenario would have to expect.
                if !is_granted && let Some(refusals) = &mut self.refusals {
                    refusals.insert(self.step_index, response.status);
                }
                Ok(is_granted.then_some(GrantedAction { at, response }))
            }
            expected => Err(StepError::unmet_expectation(
                self.step_span,
                format!("`{}` had an unexpected result", action.verb),
                if is_granted { "is granted" } else { "is refused" },
                expected.map_or_else(|| "granted".to_owned(), |status| format!("refused with {status}")),
                format!("{} {}", response.status, error_message(&response)).trim_end().to_owned(),
            )),
        }
    }

    /// Reads an object with an observer key. Returns the response.
    fn read_object(&mut self, book: BookId, path: &str) -> Result<StageResponse, StepError> {
        let bearer = self.observers.get(&book).cloned();
        let call = StageRequest { method: "GET", path, bearer: bearer.as_deref(), headers: &[], body: None };
        let response = self.send_request(&call)?;
        match response.status {
            200 => Ok(response),
            status => Err(StepError::stage_failure(
                self.step_span,
                format!("GET {path} responded with {status} {}", error_message(&response)),
            )),
        }
    }

    /// Reads an object with an observer key. Returns the response's field `data`.
    fn read_json(&mut self, book: BookId, path: &str) -> Result<Value, StepError> {
        Ok(self.read_object(book, path)?.json().get_mut("data").map(Value::take).unwrap_or_default())
    }

    /// Returns the mode of a step; the script's if the step has none.
    fn mode_or_default(&self, mode: Option<ModeName>) -> Mode {
        mode.map_or(self.script.mode, |mode| mode.0)
    }

    /// Returns the object of a name in this run.
    fn named_object(&self, name: &At<Name>) -> Result<NamedObject, StepError> {
        self.find_object(&name.value.0, name.span)
    }

    fn find_object(&self, name: &str, span: SourceSpan) -> Result<NamedObject, StepError> {
        self.aliases.get(name).cloned().ok_or_else(|| {
            // In a dry run the hint is not shown, and names of missing objects are common.
            let is_shown = self.refusals.is_none();
            let hint = is_shown.then(|| crate::value::did_you_mean(name, self.aliases.all_names())).flatten();
            let label = hint.unwrap_or_else(|| "it has not appeared in this run".to_owned());
            StepError::impossible(span, format!("no object is named `{name}` yet"), label)
        })
    }

    /// Returns the book of an object.
    fn book_of(&self, object: &NamedObject) -> BookId {
        (self.owners.get(&object.id).copied().unwrap_or(0), object.mode)
    }

    /// Returns the index of an account; the first one if no name is given.
    fn account_index(&self, name: Option<&At<Name>>) -> Result<usize, StepError> {
        let Some(name) = name else { return Ok(0) };
        let id = self.named_object(name)?.id;
        self.accounts.iter().position(|known| *known == id).ok_or_else(|| {
            StepError::impossible(name.span, format!("no account is called `{id}`"), "see `open_account`")
        })
    }

    fn assign_name(&mut self, name: &At<Name>, kind: Kind, (account, mode): BookId, id: String) {
        if account > 0 {
            self.owners.insert(id.clone(), account);
        }
        self.aliases.assign(&name.value.0, NamedObject { kind, mode, id });
    }

    /// Returns the string at a JSON pointer of a response, which must be present.
    fn string_at(&self, response: &StageResponse, pointer: &str) -> Result<String, StepError> {
        response.string_at(pointer).ok_or_else(|| {
            StepError::stage_failure(self.step_span, format!("the response has no string at {pointer}"))
        })
    }
}

/// The field of a response that contains the new world events.
#[derive(Default, Deserialize)]
struct NewEvents {
    #[serde(default)]
    happened: Vec<WorldEvent>,
}

/// A request that opened a charge, for the step `repeat`.
#[derive(Clone)]
struct SentRequest {
    book_id: BookId,
    idempotency_key: String,
    body: Value,
}

/// An action of a step, as one request.
struct Action<'a> {
    verb: &'a str,
    /// The text of the transcript line after the verb.
    summary: &'a str,
    method: &'a str,
    path: &'a str,
    /// The book of the key; `None` if no key is needed.
    book_id: Option<BookId>,
    idempotency_key: Option<&'a str>,
    body: Value,
    /// The status of the expected refusal; `None` if the action must succeed.
    refused: Option<u16>,
}

impl<'a> Action<'a> {
    /// Creates a `POST` without an API key, which must succeed.
    fn post(verb: &'a str, summary: &'a str, path: &'a str, body: Value) -> Action<'a> {
        Action {
            verb,
            summary,
            method: "POST",
            path,
            book_id: None,
            idempotency_key: None,
            body,
            refused: None,
        }
    }
}

/// The response to a successful action.
struct GrantedAction {
    /// The time at which the request was sent.
    at: Timestamp,
    response: StageResponse,
}

/// Returns the error message of a response; empty if there is none.
fn error_message(response: &StageResponse) -> String {
    response.string_at("/message").unwrap_or_default()
}

/// Returns the verb of the lines that a step causes, if it may be wider than the usual column.
fn long_verb(step: &Step) -> Option<String> {
    match step {
        Step::Endpoint(endpoint) => Some(format!("POST {}", endpoint.0.name.value)),
        Step::DoubleSpend(_) => Some("double_spend".to_owned()),
        _ => None,
    }
}

/// Returns a JSON object of those entries that have a value.
fn json_object<const N: usize>(entries: [(&str, Option<Value>); N]) -> Value {
    let present = entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests;
