//! A sweep: many random worlds, each drawn from a seed, played, checked by all invariants and counted.
//!
//! [`Runner::try_seed`] does it for one seed, in five stages. `workload` draws a script of merchants, customers,
//! payments and faults. The player plays it in a sandbox that records every request, sighting and delivery. Then
//! the world is healed (chains, watchers and network work again) and four more days pass, within which every
//! delivery must have ended. The invariants of [`crate::invariant`] compare the record, and what the API shows at the
//! end, with an executable model of the specification. The result is a [`Verdict`]: findings, counts, and the cells
//! of the coverage [`Matrix`] that this world reached.
//!
//! Some properties need a second world. For one seed in 16 a [`Twin`] is played: the same script with a change that
//! must not matter, such as restarts, other names, a later start, or only one of the two modes. The two records
//! must agree. Another seed in 16 is played twice unchanged and the fingerprints ([`Trace`]) must be equal: a
//! difference means that the program or the machine is not deterministic, which is reported apart from violations.
//!
//! The depth of the checks depends on the cost. One world in five is large; the others have a few charges, run three
//! to four times as fast and find most faults. Every small world and one large world in eight is read in full depth:
//! every event, every filter. Wallets come from one seed for all worlds, so their addresses are derived once.
//!
//! A seed is all that is needed to reproduce a finding:
//!
//! ```text
//! seed 4711 ── draw ── script ── play ── record ── heal, 4 days ── judge ── Verdict
//!                                           └──── model ─────────────┘
//! a finding, "a charge is paid with less than it needs"  →  shrink  →  a scenario of a few steps
//! ```
//!
//! A sweep is a pure function of its seeds. Hosts run seeds on as many threads and machines as they have and add up
//! the verdicts in any order. Must not contain: a thread, a clock (the host measures the speed), a file, or an
//! invariant.

mod matrix;
mod trace;
mod twins;

use bytes::Bytes;
use reference_core::{mode::Mode, rng::Seed, time::Span, wallet::WalletCache};
use reference_wire::Request;

pub use self::{
    matrix::{Cell, Matrix},
    trace::{Trace, first_difference, in_words},
    twins::Twin,
};
use crate::{
    demo::DemoFault,
    invariant::{
        self, BookReading, Depth, ExpectedEvent, Findings, Invariant, ModelBook, ModelReplay, ReplayStart,
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

const BASE: &str = "https://pay.example";
/// The seed of the wallets of all worlds in a sweep, so that their addresses are derived once.
const WALLETS: Seed = Seed(0x5eed);
/// The time within which a healed world must settle: by then every delivery has used up its attempts.
const LIVENESS: Span = Span::days(4);
/// One large world in this number, and every small one, is read in full depth: all events and all filters.
const DEEP_EVERY: u64 = 8;
/// The twins of one world in this number are played.
const TWINS_EVERY: u64 = 16;
/// One world in this number is played twice.
const AGAIN_EVERY: u64 = 16;

/// Returns `true` if the world of a seed is played twice, and so has a fingerprint.
pub fn is_played_twice(seed: u64) -> bool {
    seed % AGAIN_EVERY == 3
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
    /// The number of posts.
    pub posts: u64,
    /// The reached cells of the coverage matrix.
    pub cells: Vec<Cell>,
    /// The fingerprint of the record, for worlds that were played twice.
    pub digest: Option<String>,
    /// The number of additional runs: twins, and second runs of the same world.
    pub extra_runs: u64,
    /// The first difference between two runs of this world: the machine or the program is not deterministic.
    pub differs: Option<String>,
    /// The statuses of refused steps.
    pub refusals: std::collections::BTreeMap<usize, u16>,
    /// The steps that could not be taken, with the reasons. Their effects were not checked.
    pub skipped: Vec<String>,
}

impl Runner<'_> {
    /// Generates, plays and checks the world of a seed; for some seeds also its twins, and a second run.
    pub fn try_seed(&self, seed: u64) -> Verdict {
        let DrawnWorld { script, .. } = workload::draw(seed);
        let is_deep = seed.is_multiple_of(DEEP_EVERY) || !workload::is_large(seed);
        let depth = if is_deep { Depth::Events } else { Depth::Objects };
        let has_twin = seed % TWINS_EVERY == 5;
        let is_exact = is_played_twice(seed) || has_twin;
        let detail = if is_exact { Detail::Bytes } else { Detail::Values };
        let mut run = self.heal_and_settle(self.dry_run_in(&script, detail));
        let mut verdict = self.judge(&script, &mut run, depth);
        if has_twin {
            let twin = Twin::ALL[(seed / TWINS_EVERY) as usize % Twin::ALL.len()];
            verdict.extra_runs += 1;
            verdict.findings.absorb(self.compare(twin, &script, &mut run, seed));
        }
        if is_played_twice(seed) {
            verdict.extra_runs += 1;
            let again = self.play(&script);
            verdict.differs = first_difference(&run.record, &again.record);
            verdict.digest = Some(Trace::from_record(&run.record).digest());
        }
        verdict
    }

    /// Plays and checks a script, in full depth.
    pub fn try_script(&self, script: &Script) -> Verdict {
        let mut run = self.play(script);
        self.judge(script, &mut run, Depth::Events)
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
        settings.change(settings_draft(&script.account));
        let restarts = script.steps.iter().any(|step| matches!(step.value, Step::Restart));
        let mut sandbox = Sandbox::with_account(
            &Setup {
                rate_limit: Some(120),
                journal: restarts,
                wallet_cache: Some(self.wallet_cache.clone()),
                ..Setup::new(Seed(script.seed), script.start, BASE)
            },
            settings,
        );
        sandbox.disable_log();
        sandbox.start_recording(detail);
        if let Some(tamper) = self.tamper {
            sandbox.tamper_with(tamper());
        }
        dry_run(script, sandbox)
    }

    /// Heals everything around the service, and lets time pass.
    pub(crate) fn heal_and_settle(&self, mut dry_run: DryRun) -> Run {
        let world = &mut dry_run.sandbox;
        world.heal();
        world.advance_to(world.now().plus(LIVENESS));
        let record = dry_run.sandbox.take_record();
        Run { dry_run, record }
    }

    /// Checks a played world by every invariant that needs no second world.
    pub fn judge(&self, script: &Script, run: &mut Run, depth: Depth) -> Verdict {
        let Run { dry_run, record } = run;
        let mut findings = Findings::default();
        if self.canary {
            findings
                .check(Invariant::Liveness, None, || Some(("the canary".to_owned(), "always".to_owned())));
        }
        for DryRunError { message: what, cause, step: index } in &dry_run.errors {
            let is_walk = matches!(script.steps[*index].value, Step::Walk(_));
            let invariant = if is_walk { Invariant::Paging } else { Invariant::Edges };
            findings.check(invariant, None, || {
                (is_walk && *cause == Cause::UnmetExpectation)
                    .then(|| ("a growing list is not read as of its page 1".to_owned(), what.clone()))
            });
        }
        let now = dry_run.sandbox.now();
        findings.check(Invariant::Liveness, None, || {
            let due = dry_run.sandbox.next_of_service()?;
            Some(("the service has work left at the end".to_owned(), format!("something is due at {due}")))
        });
        findings.absorb(invariant::judge_limits(record));
        let before = dry_run.sandbox.heights();
        let shown = match api_state(dry_run, depth) {
            Ok(shown) => shown,
            Err(error) => {
                findings.check(Invariant::Paging, None, || Some(("a list cannot be read".to_owned(), error)));
                return Verdict { findings, ..Verdict::default() };
            }
        };
        let mut replay = ModelReplay::run(replay_start(script, dry_run, &shown), record, now);
        findings.absorb(invariant::judge_books(&replay, &shown, &dry_run.sandbox, &before));
        findings.absorb(replay.compare_event_ids(&shown));
        if depth == Depth::Events {
            let books = shown.books.keys().map(|id| {
                let reading = BookReading { now, blocks: &|_| 0, public_url: BASE, base: BASE };
                (*id, ModelBook { book: replay.model.book(*id), ids: &replay.ids[id], reading })
            });
            findings.absorb(invariant::judge_lists(dry_run, &books.collect()));
        }
        let (events, cells) =
            (replay.expected.len(), replay.expected.iter().flat_map(Cell::for_event).collect());
        findings.absorb(std::mem::take(&mut replay.findings));
        findings.name_objects(replay.delivery_names());
        order_and_name(&mut findings, dry_run, &shown);
        let posts = record
            .seen
            .iter()
            .filter(|seen| matches!(seen.observation, crate::record::Observation::Post(_)))
            .count();
        Verdict {
            events: events as u64,
            posts: posts as u64,
            cells,
            digest: None,
            extra_runs: 0,
            differs: None,
            refusals: dry_run.refusals.clone(),
            skipped: dry_run
                .errors
                .iter()
                .filter(|error| error.cause != Cause::UnmetExpectation)
                .map(|DryRunError { step: index, message: what, .. }| format!("step {}: {what}", index + 1))
                .collect(),
            findings,
        }
    }

    /// Returns the events that the model expects in a played world, and the state that the API shows at the end.
    pub fn expected_events(
        &self,
        script: &Script,
        run: &mut Run,
    ) -> (Vec<ExpectedEvent>, invariant::ApiState) {
        let now = run.dry_run.sandbox.now();
        let Ok(shown) = api_state(&mut run.dry_run, Depth::Objects) else { return Default::default() };
        let replay_start = replay_start(script, &run.dry_run, &shown);
        (ModelReplay::run(replay_start, &run.record, now).expected, shown)
    }

    /// Returns everything that the API shows of a played world as text, or the error.
    pub(crate) fn final_api_state(&self, run: &mut Run) -> String {
        format!("{:?}", api_state(&mut run.dry_run, Depth::Objects))
    }

    /// Returns the fingerprint of the world of a seed.
    pub fn digest(&self, seed: u64) -> String {
        Trace::from_record(&self.play(&workload::draw(seed).script).record).digest()
    }
}

/// Orders violations by cause, and replaces ids in their text by the names of the scenario.
fn order_and_name(findings: &mut Findings, dry_run: &DryRun, shown: &invariant::ApiState) {
    // A faulty object is also delivered, so violations of deliveries come last.
    let is_echo =
        |invariant| matches!(invariant, Invariant::Deliveries | Invariant::SameObject | Invariant::Liveness);
    findings.violations.sort_by_key(|violation| {
        (is_echo(violation.invariant), violation.at.is_none(), violation.at, violation.invariant)
    });
    let events = shown.books.values().flat_map(|book| &book.events);
    let events = events.map(|event| (format!("{} of {}", event.kind, event.subject()), event.id.clone()));
    let objects = dry_run.names.iter().map(|(name, code)| (name.clone(), code.clone()));
    findings.name_objects(events.chain(objects));
}

/// Returns the state of a played world as the API shows it.
fn api_state(dry_run: &mut DryRun, depth: Depth) -> Result<invariant::ApiState, String> {
    let books: Vec<BookId> = dry_run.observers.keys().copied().collect();
    invariant::read_api_state(dry_run, books, depth)
}

impl invariant::Reader for DryRun {
    /// Gets a response now, or as soon as the rate limit allows.
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
            // The reader stays within the rate limit too.
            response = self.sandbox.respond(now.plus(Span::secs(60)), &request);
        }
        (response.status, response.body)
    }
}

/// Returns the facts known before a replay.
fn replay_start<'s>(script: &Script, dry_run: &DryRun, shown: &'s invariant::ApiState) -> ReplayStart<'s> {
    let DryRun { sandbox, observers, .. } = dry_run;
    let first = Sandbox::first_settings();
    let mut account = Account::new(Sandbox::FIRST_ACCOUNT, &first.name, script.start);
    account.members = first.members;
    account.change(&serde_json::to_value(&script.account).expect("settings can be serialized"));
    let keys = sandbox.first_keys();
    ReplayStart {
        account,
        keys: [(keys.live, Mode::Live), (keys.test, Mode::Test)],
        observers: observers.clone(),
        shown,
        public_url: BASE,
    }
}

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
