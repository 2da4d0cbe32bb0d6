//! Sweeps: many random worlds, each drawn from a seed, played, and checked by all invariants. The main type is
//! [`Runner`].
//!
//! [`Runner::try_seed`] tries one seed in five stages. `workload` draws a script of merchants, customers,
//! payments and faults. The player plays it in a sandbox that records every request, sighting and delivery. Then
//! the world is healed (chains, watchers and network work again) and four more days pass, within which every
//! delivery must have ended. The invariants of [`crate::invariant`] compare the record, and what the API shows at the
//! end, with an executable model of the specification. The result is a [`Verdict`]: findings, counts, and the cells
//! of the coverage [`Matrix`] that this world reached.
//!
//! Some properties need a second world. For one seed in 16 a [`WorldVariant`] is played: the same script with a change
//! that must not matter, such as restarts, other names, a later start, or only one of the two modes. The results must
//! be equal. Another seed in 16 is played twice unchanged and the fingerprints ([`Trace`]) must be equal: a
//! difference means that the program or the machine is not deterministic, which is reported apart from violations.
//!
//! The depth of the checks depends on the cost. One world in five is large; the others have a few charges, run three
//! to four times as fast and find most faults. Every small world, and one large world in eight, is checked in full
//! depth: every event, every filter. Wallets come from one seed for all worlds, so their addresses are derived once.
//!
//! A seed is all that is needed to reproduce a finding:
//!
//! ```text
//! seed 4711 ── draw ── script ── play ── record ── heal, 4 days ── judge ── Verdict
//!                                           └──── model ─────────────┘
//! a finding, "a charge is paid with less than it needs"  →  shrink  →  a scenario of a few steps
//! ```
//!
//! A sweep is a pure function of its seeds. Callers run seeds on any number of threads and machines, and add up the
//! verdicts in any order. Must not contain: a thread, a clock (the caller measures the speed), a file, or an invariant.

mod matrix;
mod trace;
mod variants;

use bytes::Bytes;
use reference_core::{mode::Mode, rng::Seed, time::Span, wallet::WalletCache};
use reference_wire::Request;

pub use self::{
    matrix::{Cell, Matrix},
    trace::{Trace, describe_entry, first_difference},
    variants::WorldVariant,
};
use crate::{
    demo::DemoFault,
    invariant::{
        self, ExpectedEvent, Findings, Invariant, ModelBook, ModelReplay, ReadDepth, ReadingContext,
        ReplayStart,
    },
    model::Account,
    play::{Cause, DryRun, DryRunError, dry_run},
    record::{BookId, Detail, Record},
    sandbox::{Sandbox, Setup},
    script::{
        Script,
        step::{Settings, Step},
    },
    tamper::Tamper,
    workload::{self, DrawnWorld},
};

/// The public URL of all worlds. It is never requested.
const BASE: &str = "https://pay.example";
/// The seed of the wallets of all worlds in a sweep, so that their addresses are derived once.
const WALLETS: Seed = Seed(0x5eed);
/// The time within which a healed world must settle: by then every delivery has used up its attempts.
const LIVENESS: Span = Span::days(4);
/// One large world in this number, and every small one, is checked in full depth: all events and all filters.
const DEEP_EVERY: u64 = 8;
/// A variant of one world in this number is played.
const VARIANT_EVERY: u64 = 16;
/// One world in this number is played twice.
const REPEAT_EVERY: u64 = 16;

/// Returns `true` if the world of a seed is played twice, and so has a fingerprint.
pub fn is_played_twice(seed: u64) -> bool {
    seed % REPEAT_EVERY == 3
}

/// Creates the tamper that makes a world's service faulty, in tests.
pub type TamperFactory<'a> = &'a dyn Fn() -> Box<dyn Tamper>;

/// The runner of random worlds.
#[derive(Clone)]
pub struct Runner<'a> {
    /// Wallets shared between worlds. Each thread should have its own.
    pub wallet_cache: WalletCache,
    /// Creates the fault of the service, if it has one.
    pub tamper: Option<TamperFactory<'a>>,
    /// Enables an invariant that every world violates, to test the reporting.
    pub canary: bool,
}

impl Default for Runner<'_> {
    fn default() -> Self {
        Runner { wallet_cache: WalletCache::new(WALLETS), tamper: None, canary: false }
    }
}

impl Runner<'static> {
    /// Creates a runner, with a demo fault in each world if one is given.
    pub fn with_fault(fault: Option<&'static DemoFault>) -> Runner<'static> {
        Runner { tamper: fault.map(|fault| &fault.make as TamperFactory<'static>), ..Runner::default() }
    }
}

/// A played world.
pub struct Run {
    /// The dry run, with the world at the end.
    pub dry_run: DryRun,
    /// The record.
    pub record: Record,
}

/// The verdict on one world.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The findings of the invariants.
    pub findings: Findings,
    /// The number of recorded events.
    pub events: u64,
    /// The number of webhook attempts.
    pub attempts: u64,
    /// The reached cells of the coverage matrix.
    pub cells: Vec<Cell>,
    /// The fingerprint of the record, for worlds that were played twice.
    pub digest: Option<String>,
    /// The number of additional runs: variants, and second runs of the same world.
    pub extra_runs: u64,
    /// The first difference between two runs of this world, if there is one: the machine or the program is not
    /// deterministic.
    pub run_difference: Option<String>,
    /// The statuses of refused steps, by index.
    pub refusals: std::collections::BTreeMap<usize, u16>,
    /// The steps that could not be performed, with the reasons.
    pub skipped: Vec<String>,
}

impl Runner<'_> {
    /// Draws, plays and checks the world of a seed. For some seeds also compares it with a variant, or with a second
    /// run.
    pub fn try_seed(&self, seed: u64) -> Verdict {
        let DrawnWorld { script, .. } = workload::draw(seed);
        let is_deep = seed.is_multiple_of(DEEP_EVERY) || !workload::is_large(seed);
        let depth = if is_deep { ReadDepth::Events } else { ReadDepth::Objects };
        let has_variant = seed % VARIANT_EVERY == 5;
        let is_compared = is_played_twice(seed) || has_variant;
        let detail = if is_compared { Detail::Bytes } else { Detail::Values };
        let mut run = self.heal_and_settle(self.dry_run_in(&script, detail));
        let mut verdict = self.judge(&script, &mut run, depth);
        if has_variant {
            let index = (seed / VARIANT_EVERY) as usize % WorldVariant::ALL.len();
            let variant = WorldVariant::ALL[index];
            verdict.extra_runs += 1;
            verdict.findings.merge(self.compare(variant, &script, &mut run, seed));
        }
        if is_played_twice(seed) {
            verdict.extra_runs += 1;
            let second_run = self.play(&script);
            verdict.run_difference = first_difference(&run.record, &second_run.record);
            verdict.digest = Some(Trace::from_record(&run.record).digest());
        }
        verdict
    }

    /// Plays and checks a script, in full depth.
    pub fn try_script(&self, script: &Script) -> Verdict {
        let mut run = self.play(script);
        self.judge(script, &mut run, ReadDepth::Events)
    }

    /// Plays a script, then heals the world and waits until everything must be settled.
    pub fn play(&self, script: &Script) -> Run {
        self.heal_and_settle(self.dry_run(script))
    }

    /// Plays a script in a world that records all bytes.
    pub(crate) fn dry_run(&self, script: &Script) -> DryRun {
        self.dry_run_in(script, Detail::Bytes)
    }

    fn dry_run_in(&self, script: &Script, detail: Detail) -> DryRun {
        let mut settings = Sandbox::first_settings();
        settings.apply(settings_draft(&script.account));
        let has_restarts = script.steps.iter().any(|step| matches!(step.value, Step::Restart));
        let mut sandbox = Sandbox::with_account(
            &Setup {
                rate_limit: Some(120),
                journal: has_restarts,
                wallet_cache: Some(self.wallet_cache.clone()),
                ..Setup::new(Seed(script.seed), script.start, BASE)
            },
            settings,
        );
        sandbox.disable_log();
        sandbox.start_recording(detail);
        if let Some(tamper) = self.tamper {
            sandbox.install_tamper(tamper());
        }
        dry_run(script, sandbox)
    }

    /// Removes all faults around the service, and advances the clock until everything must be settled.
    pub(crate) fn heal_and_settle(&self, mut dry_run: DryRun) -> Run {
        let world = &mut dry_run.sandbox;
        world.heal();
        world.advance_to(world.now().plus(LIVENESS));
        let record = dry_run.sandbox.take_record();
        Run { dry_run, record }
    }

    /// Checks a played world by every invariant that needs only one world.
    pub fn judge(&self, script: &Script, run: &mut Run, depth: ReadDepth) -> Verdict {
        let Run { dry_run, record } = run;
        let mut findings = Findings::default();
        if self.canary {
            findings
                .check(Invariant::Liveness, None, || Some(("the canary".to_owned(), "always".to_owned())));
        }
        for DryRunError { message, cause, step: index } in &dry_run.errors {
            let is_walk = matches!(script.steps[*index].value, Step::Walk(_));
            let invariant = if is_walk { Invariant::Paging } else { Invariant::Edges };
            findings.check(invariant, None, || {
                (is_walk && *cause == Cause::UnmetExpectation)
                    .then(|| ("a growing list repeats or omits records".to_owned(), message.clone()))
            });
        }
        let now = dry_run.sandbox.now();
        findings.check(Invariant::Liveness, None, || {
            let due = dry_run.sandbox.next_service_due()?;
            Some(("the service has work left at the end".to_owned(), format!("something is due at {due}")))
        });
        findings.merge(invariant::judge_limits(record));
        let heights = dry_run.sandbox.heights();
        let state = match api_state(dry_run, depth) {
            Ok(state) => state,
            Err(error) => {
                findings.check(Invariant::Paging, None, || Some(("a list cannot be read".to_owned(), error)));
                return Verdict { findings, ..Verdict::default() };
            }
        };
        let mut replay = ModelReplay::run(replay_start(script, dry_run, &state), record, now);
        findings.merge(invariant::judge_books(&replay, &state, &dry_run.sandbox, &heights));
        findings.merge(replay.compare_event_ids(&state));
        if depth == ReadDepth::Events {
            let books = state.books.keys().map(|id| {
                let reading =
                    ReadingContext { now, blocks_mined: &|_| 0, public_url: BASE, request_base_url: BASE };
                (*id, ModelBook { book: replay.model.book(*id), ids: &replay.ids[id], reading })
            });
            findings.merge(invariant::judge_lists(dry_run, &books.collect()));
        }
        let (events, cells) =
            (replay.expected.len(), replay.expected.iter().flat_map(Cell::for_event).collect());
        findings.merge(std::mem::take(&mut replay.findings));
        findings.name_objects(replay.delivery_names());
        sort_and_name(&mut findings, dry_run, &state);
        let attempts = record
            .entries
            .iter()
            .filter(|entry| matches!(entry.observation, crate::record::Observation::AttemptStart(_)))
            .count();
        Verdict {
            events: events as u64,
            attempts: attempts as u64,
            cells,
            digest: None,
            extra_runs: 0,
            run_difference: None,
            refusals: dry_run.refusals.clone(),
            skipped: dry_run
                .errors
                .iter()
                .filter(|error| error.cause != Cause::UnmetExpectation)
                .map(|DryRunError { step: index, message, .. }| format!("step {}: {message}", index + 1))
                .collect(),
            findings,
        }
    }

    /// Returns the events that the model expects in a played world, and the state that the API shows at the
    /// end. Both are empty if that state cannot be read.
    pub fn expected_events(
        &self,
        script: &Script,
        run: &mut Run,
    ) -> (Vec<ExpectedEvent>, invariant::ApiState) {
        let now = run.dry_run.sandbox.now();
        let Ok(state) = api_state(&mut run.dry_run, ReadDepth::Objects) else { return Default::default() };
        let replay_start = replay_start(script, &run.dry_run, &state);
        (ModelReplay::run(replay_start, &run.record, now).expected, state)
    }

    /// Returns everything that the API shows of a played world as text, or the error.
    pub(crate) fn final_api_state(&self, run: &mut Run) -> String {
        format!("{:?}", api_state(&mut run.dry_run, ReadDepth::Objects))
    }

    /// Returns the fingerprint of the world of a seed.
    pub fn digest(&self, seed: u64) -> String {
        Trace::from_record(&self.play(&workload::draw(seed).script).record).digest()
    }
}

/// Sorts violations, probable causes first, and replaces ids in their text by the names of the scenario.
fn sort_and_name(findings: &mut Findings, dry_run: &DryRun, state: &invariant::ApiState) {
    // A faulty object is also delivered, so violations of deliveries are consequences and come last.
    let is_consequence =
        |invariant| matches!(invariant, Invariant::Deliveries | Invariant::SameObject | Invariant::Liveness);
    findings.violations.sort_by_key(|violation| {
        (is_consequence(violation.invariant), violation.at.is_none(), violation.at, violation.invariant)
    });
    let events = state.books.values().flat_map(|book| &book.events);
    let events = events.map(|event| (format!("{} of {}", event.kind, event.subject()), event.id.clone()));
    let objects = dry_run.names.iter().map(|(name, code)| (name.clone(), code.clone()));
    findings.name_objects(events.chain(objects));
}

/// Returns the state of a played world as the API shows it.
fn api_state(dry_run: &mut DryRun, depth: ReadDepth) -> Result<invariant::ApiState, String> {
    let books: Vec<BookId> = dry_run.observers.keys().copied().collect();
    invariant::read_api_state(dry_run, books, depth)
}

impl invariant::Reader for DryRun {
    /// Sends a `GET` now, or a minute later if it exceeds the rate limit.
    fn get(&mut self, book: BookId, target: &str) -> (u16, Bytes) {
        let (path, query) =
            target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let authorization = format!("Bearer {}", self.observers[&book]);
        let request = Request {
            query,
            authorization: Some(authorization.as_bytes()),
            ..Request::new(BASE, "GET", path)
        };
        let now = self.sandbox.now();
        let mut response = self.sandbox.respond(now, &request);
        if response.status == 429 {
            // Reads count towards the rate limit.
            response = self.sandbox.respond(now.plus(Span::secs(60)), &request);
        }
        (response.status, response.body)
    }
}

/// Returns the facts that the model needs before it replays a record.
fn replay_start<'s>(script: &Script, dry_run: &DryRun, state: &'s invariant::ApiState) -> ReplayStart<'s> {
    let DryRun { sandbox, observers, .. } = dry_run;
    let settings = Sandbox::first_settings();
    let mut account = Account::new(Sandbox::FIRST_ACCOUNT, &settings.name, script.start);
    account.members = settings.members;
    account.change(&serde_json::to_value(&script.account).expect("settings can be serialized"));
    let keys = sandbox.first_keys();
    ReplayStart {
        account,
        keys: [(keys.live, Mode::Live), (keys.test, Mode::Test)],
        observers: observers.clone(),
        api_state: state,
        public_url: BASE,
    }
}

/// Converts the settings of a script to those of the service.
fn settings_draft(settings: &Settings) -> reference_core::command::SettingsDraft {
    let percent = |text: &Option<String>| {
        text.as_deref().and_then(|text| reference_core::money::Percent::parse(text).ok())
    };
    reference_core::command::SettingsDraft {
        name: settings.name.clone(),
        display_name: settings.display_name.clone(),
        default_currency: settings.default_currency.map(|currency| currency.0),
        underpayment_tolerance: percent(&settings.underpayment_tolerance),
        overpayment_threshold: percent(&settings.overpayment_threshold),
        members: settings.members.clone(),
        ..Default::default()
    }
}
