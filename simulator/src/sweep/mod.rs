//! A sweep: many random worlds, each drawn from a seed, played, judged by all invariants and counted.
//!
//! [`Runner::try_seed`] does it for one seed, in five stages. `workload` draws a script of merchants, customers,
//! payments and faults. The player plays it in a sandbox that records every request, sighting and delivery. Then
//! the world is healed (chains, watchers and network work again) and four more days pass, within which every
//! delivery must have ended. The invariants of [`crate::law`] compare the record, and what the API shows at the
//! end, with an executable model of the specification. The result is a [`Verdict`]: findings, counts, and the cells
//! of the coverage [`Matrix`] that this world reached.
//!
//! Some properties need a second world. For one seed in 16 a [`Twin`] is played: the same script with a change that
//! must not matter, such as restarts, other names, a later start, or only one of the two modes. The two records
//! must agree. Another seed in 16 is played twice unchanged and the fingerprints ([`Trace`]) must be equal: a
//! difference means that the program or the machine is not deterministic, which is reported apart from violations.
//!
//! Cost decides the rest. One world in five is large; the others have a few charges, run three to four times as
//! fast and find most faults. Every small world and one large world in eight is read in full depth: every event,
//! every filter. Wallets come from one seed for all worlds, so their addresses are derived once.
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
use reference_core::{
    asset::Asset, dialect::Dialect, mode::Mode, rng::Seed, time::Span, wallet::WalletCache,
};
use reference_wire::Request;

pub use self::{
    matrix::{Cell, Matrix},
    trace::{Trace, first_difference, in_words},
    twins::Twin,
};
use crate::{
    demo::DemoFault,
    law::{self, Beginning, BookReading, Depth, ExpectedEvent, Findings, Follower, Law, ModelBook},
    model::{Account, money},
    play::{Cause, Rehearsal, Trouble, rehearse},
    sandbox::{Reach, Sandbox, Setup},
    script::{
        Script,
        step::{Settings, Step},
    },
    tamper::Tamper,
    witness::{BookId, Detail, Record},
    workload::{self, DrawnWorld},
};

const BASE: &str = "https://pay.example";
/// Wallets of all worlds of a sweep come from this seed, so that their addresses are derived once.
const WALLETS: Seed = Seed(0x5eed);
/// The time within which a healed world must settle: by then a delivery has used up its attempts.
const LIVENESS: Span = Span::days(4);
/// Of so many large worlds one is looked at in depth, and every small one: every event read, every filter tried.
const DEEP_EVERY: u64 = 8;
/// Of so many worlds one has its twins played.
const TWINS_EVERY: u64 = 16;
/// Of so many worlds one is played twice.
const AGAIN_EVERY: u64 = 16;

/// Returns `true` if the world of a seed is played twice, and so has a fingerprint.
pub fn is_played_twice(seed: u64) -> bool {
    seed % AGAIN_EVERY == 3
}

/// Makes the service of each world a wrong one, in tests.
pub type Wrong<'a> = &'a dyn Fn() -> Box<dyn Tamper>;

/// The runner of random worlds.
#[derive(Clone)]
pub struct Runner<'a> {
    /// Wallets that the worlds share. A thread does best with its own.
    pub wallet_cache: WalletCache,
    /// The fault of the service.
    pub wrong: Option<Wrong<'a>>,
    /// A law that no world keeps, to try the alarm.
    pub canary: bool,
}

impl Default for Runner<'_> {
    fn default() -> Self {
        Runner { wallet_cache: WalletCache::new(WALLETS), wrong: None, canary: false }
    }
}

impl Runner<'static> {
    /// The usual one, or one of worlds in which a user has switched a fault on.
    pub fn with_fault(fault: Option<&'static DemoFault>) -> Runner<'static> {
        Runner { wrong: fault.map(|fault| &fault.make as Wrong<'static>), ..Runner::default() }
    }
}

/// A world that was played.
pub struct Run {
    /// The world as it stands at the end.
    pub rehearsal: Rehearsal,
    /// All that was written down.
    pub record: Record,
}

/// The verdict on one world.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The findings of the invariants.
    pub findings: Findings,
    /// Events that were recorded.
    pub events: u64,
    /// Posts that left.
    pub posts: u64,
    /// The reached cells.
    pub cells: Vec<Cell>,
    /// The fingerprint of all that was written down, of worlds that were played twice.
    pub digest: Option<String>,
    /// Twins and second runs that were played beside it.
    pub beside: u64,
    /// Two runs of this world differ, and where first: the machine or the program is broken.
    pub differs: Option<String>,
    /// The statuses of refused steps.
    pub refusals: std::collections::BTreeMap<usize, u16>,
    /// The steps that could not be taken, with the reason. What they would have shown is not judged.
    pub skipped: Vec<String>,
}

impl Runner<'_> {
    /// Draws, plays and judges the world of a seed; of some seeds also its twins, and once more.
    pub fn try_seed(&self, seed: u64) -> Verdict {
        let DrawnWorld { script, .. } = workload::draw(seed);
        let is_deep = seed.is_multiple_of(DEEP_EVERY) || !workload::is_large(seed);
        let depth = if is_deep { Depth::Events } else { Depth::Objects };
        let has_twin = seed % TWINS_EVERY == 5;
        let is_exact = is_played_twice(seed) || has_twin;
        let detail = if is_exact { Detail::Bytes } else { Detail::Values };
        let mut run = self.leave_alone(self.rehearse_in(&script, detail));
        let mut verdict = self.judge(&script, &mut run, depth);
        if has_twin {
            let twin = Twin::ALL[(seed / TWINS_EVERY) as usize % Twin::ALL.len()];
            verdict.beside += 1;
            verdict.findings.absorb(self.compare(twin, &script, &mut run, seed));
        }
        if is_played_twice(seed) {
            verdict.beside += 1;
            let again = self.play(&script);
            verdict.differs = first_difference(&run.record, &again.record);
            verdict.digest = Some(Trace::of(&run.record).digest());
        }
        verdict
    }

    /// Plays and judges a script, in depth.
    pub fn try_script(&self, script: &Script) -> Verdict {
        let mut run = self.play(script);
        self.judge(script, &mut run, Depth::Events)
    }

    /// Plays a script, and then leaves the world alone until all must be settled.
    pub fn play(&self, script: &Script) -> Run {
        self.leave_alone(self.rehearse(script))
    }

    /// Plays a script in a world that writes down everything, byte for byte.
    pub(crate) fn rehearse(&self, script: &Script) -> Rehearsal {
        self.rehearse_in(script, Detail::Bytes)
    }

    fn rehearse_in(&self, script: &Script, detail: Detail) -> Rehearsal {
        let mut settings = Sandbox::first_settings();
        settings.change(draft(&script.account));
        let restarts = script.steps.iter().any(|step| matches!(step.value, Step::Restart));
        let mut sandbox = Sandbox::with_account(
            &Setup {
                seed: Seed(script.seed),
                start: script.start,
                public_url: BASE.to_owned(),
                rate_limit: Some(120),
                dialect: Dialect::default(),
                journal: restarts,
                reach: Reach::Simulated,
                wallet_cache: Some(self.wallet_cache.clone()),
                key_tag: String::new(),
            },
            settings,
        );
        sandbox.be_terse();
        sandbox.keep_record(detail);
        if let Some(wrong) = self.wrong {
            sandbox.tamper_with(wrong());
        }
        rehearse(script, sandbox)
    }

    /// Mends what is broken around the service, and lets time pass.
    pub(crate) fn leave_alone(&self, mut rehearsal: Rehearsal) -> Run {
        let world = &mut rehearsal.sandbox;
        world.heal();
        world.advance_to(world.now().plus(LIVENESS));
        let record = rehearsal.sandbox.take_record();
        Run { rehearsal, record }
    }

    /// Judges a world that was played, by every law that needs no other world.
    pub fn judge(&self, script: &Script, run: &mut Run, depth: Depth) -> Verdict {
        let Run { rehearsal, record } = run;
        let mut findings = Findings::default();
        if self.canary {
            findings.check(Law::Liveness, None, || Some(("the canary".to_owned(), "always".to_owned())));
        }
        for Trouble { what, cause, place } in &rehearsal.troubles {
            let is_walk = matches!(script.steps[*place].value, Step::Walk(_));
            let law = if is_walk { Law::Paging } else { Law::Edges };
            findings.check(law, None, || {
                (is_walk && *cause == Cause::Unmet)
                    .then(|| ("a list that grows is not read as page 1 counted it".to_owned(), what.clone()))
            });
        }
        let now = rehearsal.sandbox.now();
        findings.check(Law::Liveness, None, || {
            let due = rehearsal.sandbox.next_of_service()?;
            Some(("the service has work left at the end".to_owned(), format!("something is due at {due}")))
        });
        findings.absorb(law::judge_limits(record));
        let before = rehearsal.sandbox.heights();
        let shown = match shown(rehearsal, depth) {
            Ok(shown) => shown,
            Err(error) => {
                findings.check(Law::Paging, None, || Some(("a list cannot be read".to_owned(), error)));
                return Verdict { findings, ..Verdict::default() };
            }
        };
        let follower = Follower::follow(beginning(script, rehearsal, &shown), record, now);
        findings.absorb(law::judge_books(&follower, &shown, &rehearsal.sandbox, &before));
        findings.absorb(follower.compare_event_ids(&shown));
        if depth == Depth::Events {
            let heights = Mode::ALL.map(|mode| {
                let before = &before;
                move |asset: Asset| before[&(mode, asset)]..=before[&(mode, asset)]
            });
            let books = shown.books.keys().map(|id| {
                let heights = &heights[id.1 as usize];
                let reading = BookReading { now, heights, public_url: BASE, base: BASE };
                (*id, ModelBook { book: follower.model.book(*id), ids: &follower.ids[id], reading })
            });
            findings.absorb(law::judge_lists(rehearsal, &books.collect()));
        }
        let (events, cells) =
            (follower.expected.len(), follower.expected.iter().flat_map(Cell::of).collect());
        findings.absorb(follower.findings);
        // A wrong object is delivered wrongly as well: what deliveries show comes last.
        let is_echo = |law| matches!(law, Law::Deliveries | Law::SameObject | Law::Liveness);
        findings.breaches.sort_by_key(|it| (is_echo(it.law), it.at.is_none(), it.at, it.law));
        let posts = record
            .seen
            .iter()
            .filter(|seen| matches!(seen.what, crate::witness::Observation::Post(_)))
            .count();
        Verdict {
            events: events as u64,
            posts: posts as u64,
            cells,
            digest: None,
            beside: 0,
            differs: None,
            refusals: rehearsal.refusals.clone(),
            skipped: rehearsal
                .troubles
                .iter()
                .filter(|trouble| trouble.cause != Cause::Unmet)
                .map(|Trouble { place, what, .. }| format!("step {}: {what}", place + 1))
                .collect(),
            findings,
        }
    }

    /// Returns the events that the model expects in a played world, and the state that the API shows at the end.
    pub fn expected(&self, script: &Script, run: &mut Run) -> (Vec<ExpectedEvent>, law::Shown) {
        let now = run.rehearsal.sandbox.now();
        let Ok(shown) = shown(&mut run.rehearsal, Depth::Objects) else { return Default::default() };
        let beginning = beginning(script, &run.rehearsal, &shown);
        (Follower::follow(beginning, &run.record, now).expected, shown)
    }

    /// Everything that the API shows of a world that was played, as text; or why it cannot be read.
    pub(crate) fn shown_in_the_end(&self, run: &mut Run) -> String {
        format!("{:?}", shown(&mut run.rehearsal, Depth::Objects))
    }

    /// The fingerprint of the world of a seed.
    pub fn digest(&self, seed: u64) -> String {
        Trace::of(&self.play(&workload::draw(seed).script).record).digest()
    }
}

/// Returns the state of a played world as the API shows it.
fn shown(rehearsal: &mut Rehearsal, depth: Depth) -> Result<law::Shown, String> {
    let books: Vec<BookId> = rehearsal.observers.keys().copied().collect();
    law::look(rehearsal, books, depth)
}

impl law::Reader for Rehearsal {
    /// The answer at the moment that the world shows, or as soon as the limit allows.
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
            // Whoever judges keeps to the limit as well.
            response = self.sandbox.respond(now.plus(Span::secs(60)), &request);
        }
        (response.status, response.body)
    }
}

/// Returns the facts known when a record begins.
fn beginning<'s>(script: &Script, rehearsal: &Rehearsal, shown: &'s law::Shown) -> Beginning<'s> {
    let Rehearsal { sandbox, observers, .. } = rehearsal;
    let percent = |text: &Option<String>, usual| {
        let hundredths = text.as_deref().and_then(|text| money::read(text, 2));
        hundredths.and_then(|n| u32::try_from(n).ok()).unwrap_or(usual)
    };
    let (keys, usual) = (sandbox.first_keys(), Account::default());
    Beginning {
        account: Sandbox::FIRST_ACCOUNT,
        terms: Account {
            tolerance: percent(&script.account.underpayment_tolerance, usual.tolerance),
            threshold: percent(&script.account.overpayment_threshold, usual.threshold),
            default_currency: script.account.default_currency.map_or(usual.default_currency, |it| it.0),
            members: match &script.account.members {
                Some(members) => members.clone(),
                None => Sandbox::first_settings().members,
            },
        },
        keys: [(keys.live, Mode::Live), (keys.test, Mode::Test)],
        observers: observers.clone(),
        shown,
        public_url: BASE,
    }
}

fn draft(settings: &Settings) -> reference_core::command::SettingsDraft {
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
