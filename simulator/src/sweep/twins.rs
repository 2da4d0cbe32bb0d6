//! Twins: the same world with a change that must not affect the result.

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Run, Runner, first_difference};
use crate::{
    invariant::{Depth, Findings, Invariant},
    model::{TRIES, TimelineEntry},
    record::{Entry, Observation, Record},
    script::{
        At, Kind, Script, is_numbered,
        step::{Request, Step},
        value::InMode,
    },
};

/// The change that makes a twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Live mode only: test mode is empty.
    LiveAlone,
    /// Test mode only: live mode is empty.
    TestAlone,
    /// The service restarts several times.
    Restarted,
    /// All times are some years and a day later.
    Later,
    /// Objects have different names.
    Renamed,
    /// Each payment is split over two outputs.
    Split,
    /// Charges that open at the same time open in another order.
    Shuffled,
}

impl Twin {
    /// All twins.
    pub const ALL: [Twin; 7] = [
        Twin::LiveAlone,
        Twin::TestAlone,
        Twin::Restarted,
        Twin::Later,
        Twin::Renamed,
        Twin::Split,
        Twin::Shuffled,
    ];

    /// Returns the invariant that requires equal results.
    pub const fn invariant(self) -> Invariant {
        match self {
            Twin::LiveAlone | Twin::TestAlone => Invariant::ModesApart,
            Twin::Restarted => Invariant::Restart,
            Twin::Later | Twin::Renamed | Twin::Split | Twin::Shuffled => Invariant::Metamorphic,
        }
    }

    /// Returns the twin of a script.
    pub fn transform(self, script: &Script, seed: u64) -> Script {
        let mut twin = script.clone();
        match self {
            Twin::LiveAlone => twin.steps = steps_of_mode(&script.steps, Mode::Live),
            Twin::TestAlone => twin.steps = steps_of_mode(&script.steps, Mode::Test),
            Twin::Restarted => {
                // After at most a third of the steps, as drawn from the seed.
                let mut draw =
                    reference_core::rng::Seed(seed).rng_key("twins", "restarts", "places").stream(0);
                let mut steps = Vec::new();
                for step in &script.steps {
                    let waits = matches!(step.value, Step::Wait(_));
                    steps.push(step.clone());
                    if waits && draw.chance(1, 24) && steps.len() < script.steps.len() {
                        steps.push(At { value: Step::Restart, span: step.span });
                    }
                }
                twin.steps = steps;
            }
            Twin::Later => {
                twin.start = script.start.plus(YEAR);
                for step in &mut twin.steps {
                    if let Step::Request(Request { body: Some(body), .. }) = &mut step.value {
                        move_times(body);
                    }
                }
            }
            Twin::Renamed => {
                let text = rename_objects(&script.to_yaml());
                let read = Script::parse(&script.path, &text).expect("a written script can be parsed");
                twin.steps = read.steps;
            }
            Twin::Split => {
                for step in &mut twin.steps {
                    if let Step::Pay(pay) = &mut step.value
                        && pay.0.outputs.is_none()
                        && pay.0.charge.is_some()
                        && pay.0.asset.is_none()
                    {
                        pay.0.outputs = Some(2);
                    }
                }
            }
            Twin::Shuffled => {
                let mut index = 0;
                while index + 1 < twin.steps.len() {
                    if let (Step::Open(_), Step::Open(_)) =
                        (&twin.steps[index].value, &twin.steps[index + 1].value)
                    {
                        twin.steps.swap(index, index + 1);
                        index += 1;
                    }
                    index += 1;
                }
            }
        }
        twin
    }
}

impl Runner<'_> {
    /// Plays a twin of a world and compares the results.
    pub fn compare(&self, twin: Twin, script: &Script, run: &mut Run, seed: u64) -> Findings {
        let mut findings = Findings::default();
        let invariant = twin.invariant();
        let mut other = self.play(&twin.transform(script, seed));
        let shape = match twin {
            Twin::LiveAlone | Twin::TestAlone => {
                let mode = if twin == Twin::LiveAlone { Mode::Live } else { Mode::Test };
                // Steps that affect both modes of the world, but not of the service, are removed from both.
                let mut plain = script.clone();
                plain.steps.retain(|step| !crosses_modes(&step.value));
                let base = match plain.steps.len() == script.steps.len() {
                    true => of_mode(&run.record, &keys_of(run, mode), mode),
                    false => {
                        let run = self.play(&plain);
                        other = self.play(&twin.transform(&plain, seed));
                        of_mode(&run.record, &keys_of(&run, mode), mode)
                    }
                };
                let alone = of_mode(&other.record, &keys_of(&other, mode), mode);
                findings.check(invariant, None, || {
                    let difference = first_difference(&base, &alone)?;
                    Some((format!("{mode} mode differs without the other mode"), difference))
                });
                return findings;
            }
            Twin::Restarted => "a world ends differently with restarts",
            Twin::Later => "a world ends differently a year later",
            Twin::Renamed => "a world ends differently under other names",
            Twin::Split => "a world ends differently with split payments",
            Twin::Shuffled => "a world ends differently with charges in another order",
        };
        if twin == Twin::Split && other.dry_run.refusals != run.dry_run.refusals {
            // A single unit cannot be split, so the results may differ.
            return findings;
        }
        let (mut one, mut two) =
            (endings(run, script, twin), endings(&mut other, &twin.transform(script, seed), twin));
        if twin == Twin::Restarted {
            add_deliveries(&mut one, &mut two, &run.record, &other.record);
        }
        let names: BTreeSet<&String> = one.keys().chain(two.keys()).collect();
        for name in names {
            let in_world = |endings: &BTreeMap<String, String>| {
                endings.get(name).cloned().unwrap_or_else(|| "not there".to_owned())
            };
            let (ending, other) = (in_world(&one), in_world(&two));
            findings.check(invariant, None, || {
                (other != ending).then(|| (shape.to_owned(), format!("{name}: {ending} / {other}")))
            });
        }
        findings
    }
}

/// A year and a day.
const YEAR: Span = Span::days(366);

/// Moves the times and days in a body.
fn move_times(body: &mut Value) {
    let later = |text: &str| {
        let day = format!("{text}T00:00:00Z");
        match Timestamp::parse(text) {
            Some(at) => Some(at.plus(YEAR).to_string()),
            None => Timestamp::parse(&day).map(|at| at.plus(YEAR).to_string()[..10].to_owned()),
        }
    };
    for name in ["expires_at", "due_at"] {
        if let Some(moved) = body[name].as_str().and_then(later) {
            body[name] = moved.into();
        }
    }
}

/// Returns the final states of the charges and invoices that the script names, as strings that must be equal in a twin.
fn endings(run: &mut Run, script: &Script, twin: Twin) -> BTreeMap<String, String> {
    let depth = if twin == Twin::Restarted { Depth::Events } else { Depth::Objects };
    let dry_run = &mut run.dry_run;
    let Ok(shown) = super::api_state(dry_run, depth) else { return BTreeMap::new() };
    let since = |time: &str| {
        reference_core::time::Timestamp::parse(time).map_or(0, |time| time.since(script.start).0).to_string()
    };
    let story = |timeline: &[TimelineEntry]| match twin {
        // Each output is detected separately.
        Twin::Split => String::new(),
        _ => timeline.iter().map(|line| format!(" {}@{}", line.event, since(&line.time))).collect::<String>(),
    };
    let codes: BTreeMap<&String, &String> = dry_run.names.iter().map(|(name, code)| (code, name)).collect();
    let plain = |name: &str| match twin {
        Twin::Renamed => swap_first(name, OTHER_FIRST, FIRST),
        _ => name.to_owned(),
    };
    let mut endings = BTreeMap::new();
    for book in shown.books.values() {
        for charge in &book.charges {
            let Some(name) = codes.get(&charge.code) else { continue };
            if twin == Twin::Split && charge.refunded_amount != "0" {
                // A transfer that is refunded as a whole is not accepted. Refunds fill other transfers if they are split.
                endings.insert(plain(name), "refunded".to_owned());
                continue;
            }
            let paid_at = charge.paid_at.as_deref().map_or_else(|| "-".to_owned(), since);
            let ending = format!(
                "{} {} {} {paid_at}{}",
                charge.status,
                charge.received_amount,
                charge.refunded_amount,
                story(&charge.timeline)
            );
            endings.insert(plain(name), ending);
        }
        for invoice in &book.invoices {
            let Some(name) = codes.get(&invoice.code) else { continue };
            endings.insert(plain(name), format!("{}{}", invoice.status, story(&invoice.timeline)));
        }
        for event in &book.events {
            let ending = format!("{} {} {:?}", event.kind, event.subject(), event.details);
            endings.insert(format!("event {}", event.id), ending);
        }
    }
    endings
}

/// Adds the deliveries: content, receiver and id. Not their number: an attempt in flight is repeated after a restart.
/// Omits endpoints with so many failures that they may have been disabled, at slightly different times in the two
/// worlds.
fn add_deliveries(
    one: &mut BTreeMap<String, String>,
    two: &mut BTreeMap<String, String>,
    record: &Record,
    other: &Record,
) {
    let posts = |record: &Record| {
        let mut posts: BTreeMap<(String, Uuid), (&'static str, usize)> = BTreeMap::new();
        for seen in &record.seen {
            if let Observation::Post(posted) = &seen.observation {
                let key = (posted.host.clone(), posted.delivery);
                posts.entry(key).or_insert((posted.kind, 0)).1 += 1;
            }
        }
        posts
    };
    let both = [posts(record), posts(other)];
    let failing: BTreeSet<String> = both
        .iter()
        .flatten()
        .filter(|(_, (_, tries))| *tries >= TRIES)
        .map(|((host, _), _)| host.clone())
        .collect();
    for (endings, posts) in [one, two].into_iter().zip(both) {
        for ((host, delivery), (kind, _)) in posts {
            if !failing.contains(&host) {
                endings.insert(format!("delivery {delivery}"), format!("{kind} to {host}"));
            }
        }
    }
}

/// Returns the mode of a step; `None` if it affects the whole world. Records the modes of names.
fn mode_of<'s>(step: &'s Step, known: &mut BTreeMap<&'s str, Mode>) -> Option<Mode> {
    let or_live = |mode: Option<InMode>| mode.map_or(Mode::Live, |mode| mode.0);
    let (name, mode) = match step {
        Step::Key(step) => (Some(&step.0.name), Some(or_live(step.0.mode))),
        Step::Endpoint(step) => (Some(&step.0.name), Some(or_live(step.0.mode))),
        Step::Open(step) => (Some(&step.charge), Some(or_live(step.mode))),
        Step::Link(step) => (Some(&step.0.link), Some(or_live(step.0.mode))),
        Step::Invoice(step) => (Some(&step.invoice), Some(or_live(step.mode))),
        Step::Choose(step) => {
            let page = step.invoice.as_ref().or(step.link.as_ref());
            let mode = page.and_then(|page| known.get(page.value.0.as_str()).copied());
            (Some(&step.charge), mode)
        }
        Step::Pay(step) => {
            let charge = step.0.charge.as_ref().or(step.0.address_of.as_ref());
            (step.0.tx.as_ref(), charge.and_then(|charge| known.get(charge.value.0.as_str()).copied()))
        }
        Step::Replace(step) => (step.named.as_ref(), known.get(step.tx.value.0.as_str()).copied()),
        Step::Request(step) => {
            let mode = step.key.as_ref().and_then(|key| match key.value.0.as_str() {
                "live" => Some(Mode::Live),
                "test" => Some(Mode::Test),
                key => known.get(key).copied(),
            });
            known.extend(step.save.keys().zip(mode).map(|(name, mode)| (name.as_str(), mode)));
            return mode.filter(|_| !step.path.value.starts_with("/sandbox/accounts"));
        }
        other => {
            let name = match other {
                Step::Revoke(name)
                | Step::Enable(name)
                | Step::Disable(name)
                | Step::Remove(name)
                | Step::Rotate(name)
                | Step::Test(name)
                | Step::View(name) => Some(name),
                Step::Resend(step) => Some(&step.0.delivery),
                Step::Send(step) => Some(&step.0.invoice),
                Step::Void(step) => Some(&step.0.invoice),
                Step::Cancel(step) => Some(&step.0.charge),
                Step::Repeat(step) => Some(&step.0.charge),
                Step::Refund(step) => Some(&step.charge),
                Step::Accept(step) => Some(&step.0.charge),
                Step::DoubleSpend(step) => Some(&step.0.tx),
                Step::Drop(step) => Some(&step.0.tx),
                Step::Rebroadcast(step) => Some(&step.0.tx),
                Step::Walk(step) => step.key.as_ref(),
                _ => None,
            };
            let host = match other {
                Step::Merchant(step) => step.keys().next().map(String::as_str),
                _ => name.map(|name| name.value.0.as_str()),
            };
            let of_chain = match other {
                Step::Mine(step) => Some(or_live(step.0.mode)),
                Step::Reorg(step) => Some(or_live(step.mode)),
                Step::Stall(step) => Some(or_live(step.mode)),
                Step::Congest(step) => Some(or_live(step.mode)),
                Step::Watcher(step) => Some(or_live(step.mode)),
                _ => None,
            };
            return of_chain.or(host.and_then(|host| known.get(host).copied()));
        }
    };
    if let (Some(name), Some(mode)) = (name, mode) {
        known.insert(&name.value.0, mode);
    }
    mode
}

/// Returns the steps of one mode, and those of the whole world.
fn steps_of_mode(steps: &[At<Step>], mode: Mode) -> Vec<At<Step>> {
    let mut known = BTreeMap::new();
    steps
        .iter()
        .filter(|step| mode_of(&step.value, &mut known).is_none_or(|of| of == mode))
        .cloned()
        .collect()
}

/// Returns `true` for a payment to an address of one mode on the network of the other, and for names that are numbered
/// across modes.
fn crosses_modes(step: &Step) -> bool {
    match step {
        Step::Pay(pay) => pay.0.address_of.is_some(),
        Step::Resend(step) => is_numbered(Kind::Delivery, &step.0.delivery.value.0),
        _ => false,
    }
}

/// Returns the first key of a mode.
fn keys_of(run: &Run, mode: Mode) -> String {
    let keys = run.dry_run.sandbox.first_keys();
    if mode == Mode::Live { keys.live } else { keys.test }
}

/// Returns the part of a record that belongs to one mode.
fn of_mode(record: &Record, key: &str, mode: Mode) -> Record {
    let mut deliveries = BTreeSet::new();
    let mut seen = Vec::new();
    for entry in &record.seen {
        let what = match &entry.observation {
            Observation::Call(call) if call.bearer.as_deref() == Some(key) => entry.observation.clone(),
            Observation::Sightings(notices) => {
                let own: Vec<_> = notices.iter().filter(|notice| notice.mode == mode).cloned().collect();
                if own.is_empty() {
                    continue;
                }
                Observation::Sightings(own)
            }
            Observation::Post(posted) if posted.mode == mode => {
                deliveries.insert(posted.delivery);
                entry.observation.clone()
            }
            Observation::PostResult { delivery, .. } if deliveries.contains(delivery) => {
                entry.observation.clone()
            }
            _ => continue,
        };
        seen.push(Entry { at: entry.at, observation: what });
    }
    Record::from_entries(seen)
}

/// The first letters of the names of drawn charges, transactions, invoices and so on.
const FIRST: &str = "ctixu";
/// Their replacements: in another order, and not used by any drawn name.
const OTHER_FIRST: &str = "nkgfb";

/// Replaces the first letter of a name; unchanged if it is not in `from`.
fn swap_first(name: &str, from: &str, to: &str) -> String {
    let position = name.chars().next().and_then(|first| from.find(first));
    match position {
        Some(position) => format!("{}{}", &to[position..=position], &name[1..]),
        None => name.to_owned(),
    }
}

/// Renames the charges, transactions and invoices of a script. The length of names stays, because they may occur in
/// strings of the maximum length.
fn rename_objects(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let mut out = String::new();
    let mut word = String::new();
    // The preceding character: after a backslash a word is not a name.
    let mut before = ' ';
    for c in text.chars().chain(['\n']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        let drawn = before != '\\' && word.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if drawn {
            word = swap_first(&word, FIRST, OTHER_FIRST);
        }
        out.push_str(&word);
        word.clear();
        before = c;
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let other = rename_objects(text);
        assert_eq!(other.trim_end_matches('\n'), expected);
        assert_eq!(other.len(), text.len() + 1, "as long, and a line");
    }

    #[test]
    fn renaming_preserves_lengths_and_replaces_every_use() {
        check("open: { amount: 1.00 EUR, charge: c55 }", "open: { amount: 1.00 EUR, charge: n55 }");
        check("pay: { charge: c1, as: t2 }", "pay: { charge: n1, as: k2 }");
        check("description: \"${c1} {{c1}}\"", "description: \"${n1} {{n1}}\"");
        check("- [i3, x4, u5, c, charge, 2c1]", "- [g3, f4, b5, c, charge, 2c1]");
        check("escape: \\u0041", "escape: \\u0041");
    }

    /// A drawn name with such a letter could equal the new name of another object.
    #[test]
    fn no_drawn_name_starts_with_a_replacement_letter() {
        for seed in 0..100 {
            let text = workload::draw(seed).script.to_yaml();
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-_\\".contains(c);
            let clash = text.split(|c| !is_part(c)).find(|word| {
                let mut letters = word.chars();
                letters.next().is_some_and(|first| OTHER_FIRST.contains(first))
                    && letters.next().is_some_and(|second| second.is_ascii_digit())
            });
            assert_eq!(clash, None, "world {seed}");
        }
    }

    #[test]
    fn renaming_can_be_reversed() {
        for name in ["c55", "t1", "i2", "x3", "u4", "late"] {
            assert_eq!(swap_first(&swap_first(name, FIRST, OTHER_FIRST), OTHER_FIRST, FIRST), name);
        }
    }
}
