//! Variants of a world: the same script with a change that must not affect the result. The main type is
//! [`WorldVariant`].

use std::collections::{BTreeMap, BTreeSet};

use reference_core::{
    mode::Mode,
    time::{Span, Timestamp},
};
use serde_json::Value;
use uuid::Uuid;

use super::{Run, Runner, first_difference};
use crate::{
    invariant::{Findings, Invariant, ReadDepth},
    model::{SCHEDULED_ATTEMPTS_MAX, TimelineEntry},
    record::{Entry, Observation, Record},
    script::{
        At, Kind, Script, is_numbered,
        step::{Request, Step},
        value::ModeName,
    },
};

/// A change of a script that must not affect the result (metamorphic testing).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldVariant {
    /// Live mode only: test mode is empty.
    LiveOnly,
    /// Test mode only: live mode is empty.
    TestOnly,
    /// The service restarts several times.
    WithRestarts,
    /// All times are a year and a day later.
    LaterStart,
    /// Objects have different names.
    OtherNames,
    /// Each payment is split over two outputs.
    SplitPayments,
    /// Charges that open at the same time open in another order.
    OtherOrder,
}

impl WorldVariant {
    /// All variants.
    pub const ALL: [WorldVariant; 7] = [
        WorldVariant::LiveOnly,
        WorldVariant::TestOnly,
        WorldVariant::WithRestarts,
        WorldVariant::LaterStart,
        WorldVariant::OtherNames,
        WorldVariant::SplitPayments,
        WorldVariant::OtherOrder,
    ];

    /// Returns the invariant that requires equal results.
    pub const fn invariant(self) -> Invariant {
        match self {
            WorldVariant::LiveOnly | WorldVariant::TestOnly => Invariant::ModesApart,
            WorldVariant::WithRestarts => Invariant::Restart,
            WorldVariant::LaterStart
            | WorldVariant::OtherNames
            | WorldVariant::SplitPayments
            | WorldVariant::OtherOrder => Invariant::Metamorphic,
        }
    }

    /// Returns the changed script. `seed` determines where restarts are added.
    pub fn transform(self, script: &Script, seed: u64) -> Script {
        let mut variant = script.clone();
        match self {
            WorldVariant::LiveOnly => variant.steps = steps_of_mode(&script.steps, Mode::Live),
            WorldVariant::TestOnly => variant.steps = steps_of_mode(&script.steps, Mode::Test),
            WorldVariant::WithRestarts => {
                // After one wait in 24 on average, drawn from the seed.
                let mut draw =
                    reference_core::rng::Seed(seed).rng_key("twins", "restarts", "places").stream(0);
                let mut steps = Vec::new();
                for step in &script.steps {
                    let is_wait = matches!(step.value, Step::Wait(_));
                    steps.push(step.clone());
                    if is_wait && draw.chance(1, 24) && steps.len() < script.steps.len() {
                        steps.push(At { value: Step::Restart, span: step.span });
                    }
                }
                variant.steps = steps;
            }
            WorldVariant::LaterStart => {
                variant.start = script.start.plus(YEAR_AND_DAY);
                for step in &mut variant.steps {
                    if let Step::Request(Request { body: Some(body), .. }) = &mut step.value {
                        move_times(body);
                    }
                }
            }
            WorldVariant::OtherNames => {
                let text = rename_objects(&script.to_yaml());
                let renamed = Script::parse(&script.path, &text).expect("a written script can be parsed");
                variant.steps = renamed.steps;
            }
            WorldVariant::SplitPayments => {
                for step in &mut variant.steps {
                    if let Step::Pay(pay) = &mut step.value
                        && pay.0.outputs.is_none()
                        && pay.0.charge.is_some()
                        && pay.0.asset.is_none()
                    {
                        pay.0.outputs = Some(2);
                    }
                }
            }
            WorldVariant::OtherOrder => {
                let mut index = 0;
                while index + 1 < variant.steps.len() {
                    if let (Step::Open(_), Step::Open(_)) =
                        (&variant.steps[index].value, &variant.steps[index + 1].value)
                    {
                        variant.steps.swap(index, index + 1);
                        index += 1;
                    }
                    index += 1;
                }
            }
        }
        variant
    }
}

impl Runner<'_> {
    /// Plays a variant of a world, and compares the results.
    pub fn compare(&self, variant: WorldVariant, script: &Script, run: &mut Run, seed: u64) -> Findings {
        let mut findings = Findings::default();
        let invariant = variant.invariant();
        let mut other = self.play(&variant.transform(script, seed));
        let shape = match variant {
            WorldVariant::LiveOnly | WorldVariant::TestOnly => {
                let mode = if variant == WorldVariant::LiveOnly { Mode::Live } else { Mode::Test };
                // A step that involves both modes has another effect when one mode is empty. It is removed
                // from both worlds.
                let mut separable = script.clone();
                separable.steps.retain(|step| !crosses_modes(&step.value));
                let base = match separable.steps.len() == script.steps.len() {
                    true => record_of_mode(&run.record, &first_key(run, mode), mode),
                    false => {
                        let run = self.play(&separable);
                        other = self.play(&variant.transform(&separable, seed));
                        record_of_mode(&run.record, &first_key(&run, mode), mode)
                    }
                };
                let alone = record_of_mode(&other.record, &first_key(&other, mode), mode);
                findings.check(invariant, None, || {
                    let difference = first_difference(&base, &alone)?;
                    Some((format!("{mode} mode differs without the other mode"), difference))
                });
                return findings;
            }
            WorldVariant::WithRestarts => "a world ends differently with restarts",
            WorldVariant::LaterStart => "a world ends differently a year later",
            WorldVariant::OtherNames => "a world ends differently under other names",
            WorldVariant::SplitPayments => "a world ends differently with split payments",
            WorldVariant::OtherOrder => "a world ends differently with charges in another order",
        };
        if variant == WorldVariant::SplitPayments && other.dry_run.refusals != run.dry_run.refusals {
            // A single unit cannot be split, so the results may differ.
            return findings;
        }
        let changed_script = variant.transform(script, seed);
        let mut base_states = final_states(run, script, variant);
        let mut variant_states = final_states(&mut other, &changed_script, variant);
        if variant == WorldVariant::WithRestarts {
            add_deliveries(&mut base_states, &mut variant_states, &run.record, &other.record);
        }
        let names: BTreeSet<&String> = base_states.keys().chain(variant_states.keys()).collect();
        for name in names {
            let state_in = |states: &BTreeMap<String, String>| {
                states.get(name).cloned().unwrap_or_else(|| "missing".to_owned())
            };
            let (base, changed) = (state_in(&base_states), state_in(&variant_states));
            findings.check(invariant, None, || {
                (changed != base).then(|| (shape.to_owned(), format!("{name}: {base} / {changed}")))
            });
        }
        findings
    }
}

/// A year and a day.
const YEAR_AND_DAY: Span = Span::days(366);

/// Moves the times and dates in a body by [`YEAR_AND_DAY`].
fn move_times(body: &mut Value) {
    let move_time = |text: &str| {
        let day = format!("{text}T00:00:00Z");
        match Timestamp::parse(text) {
            Some(at) => Some(at.plus(YEAR_AND_DAY).to_string()),
            None => Timestamp::parse(&day).map(|at| at.plus(YEAR_AND_DAY).to_string()[..10].to_owned()),
        }
    };
    for name in ["expires_at", "due_at"] {
        if let Some(moved) = body[name].as_str().and_then(move_time) {
            body[name] = moved.into();
        }
    }
}

/// Returns the final states of the charges and invoices that the script names, as strings that must be equal in a
/// variant.
fn final_states(run: &mut Run, script: &Script, variant: WorldVariant) -> BTreeMap<String, String> {
    let depth = if variant == WorldVariant::WithRestarts { ReadDepth::Events } else { ReadDepth::Objects };
    let dry_run = &mut run.dry_run;
    let Ok(state) = super::api_state(dry_run, depth) else { return BTreeMap::new() };
    let since = |time: &str| {
        reference_core::time::Timestamp::parse(time).map_or(0, |time| time.since(script.start).0).to_string()
    };
    let format_timeline = |timeline: &[TimelineEntry]| match variant {
        // Each output is detected separately.
        WorldVariant::SplitPayments => String::new(),
        _ => timeline
            .iter()
            .map(|entry| format!(" {}@{}", entry.event, since(&entry.time)))
            .collect::<String>(),
    };
    let names_by_code: BTreeMap<&String, &String> =
        dry_run.names.iter().map(|(name, code)| (code, name)).collect();
    let original_name = |name: &str| match variant {
        WorldVariant::OtherNames => replace_first_letter(name, REPLACEMENT_LETTERS, FIRST_LETTERS),
        _ => name.to_owned(),
    };
    let mut states = BTreeMap::new();
    for book in state.books.values() {
        for charge in &book.charges {
            let Some(name) = names_by_code.get(&charge.code) else { continue };
            if variant == WorldVariant::SplitPayments && charge.refunded_amount != "0" {
                // Splitting changes the transfers that refunds cover, and a fully refunded transfer is not accepted.
                states.insert(original_name(name), "refunded".to_owned());
                continue;
            }
            let paid_at = charge.paid_at.as_deref().map_or_else(|| "-".to_owned(), since);
            let state = format!(
                "{} {} {} {paid_at}{}",
                charge.status,
                charge.received_amount,
                charge.refunded_amount,
                format_timeline(&charge.timeline)
            );
            states.insert(original_name(name), state);
        }
        for invoice in &book.invoices {
            let Some(name) = names_by_code.get(&invoice.code) else { continue };
            let state = format!("{}{}", invoice.status, format_timeline(&invoice.timeline));
            states.insert(original_name(name), state);
        }
        for event in &book.events {
            let state = format!("{} {} {:?}", event.kind, event.subject(), event.details);
            states.insert(format!("event {}", event.id), state);
        }
    }
    states
}

/// Adds the deliveries to the states: id, event type and host. Not the number of attempts, because an attempt in flight
/// is repeated after a restart. Omits hosts with so many failures that their endpoint may have been disabled, because
/// that may happen at different times in the two worlds.
fn add_deliveries(
    base_states: &mut BTreeMap<String, String>,
    variant_states: &mut BTreeMap<String, String>,
    base_record: &Record,
    variant_record: &Record,
) {
    // By host and delivery: the event type, and the number of attempts.
    let deliveries = |record: &Record| {
        let mut deliveries: BTreeMap<(String, Uuid), (&'static str, usize)> = BTreeMap::new();
        for entry in &record.entries {
            if let Observation::AttemptStart(attempt) = &entry.observation {
                let key = (attempt.host.clone(), attempt.delivery);
                deliveries.entry(key).or_insert((attempt.kind, 0)).1 += 1;
            }
        }
        deliveries
    };
    let both = [deliveries(base_record), deliveries(variant_record)];
    let failing_hosts: BTreeSet<String> = both
        .iter()
        .flatten()
        .filter(|(_, (_, attempts))| *attempts >= SCHEDULED_ATTEMPTS_MAX)
        .map(|((host, _), _)| host.clone())
        .collect();
    for (states, deliveries) in [base_states, variant_states].into_iter().zip(both) {
        for ((host, delivery), (kind, _)) in deliveries {
            if !failing_hosts.contains(&host) {
                states.insert(format!("delivery {delivery}"), format!("{kind} to {host}"));
            }
        }
    }
}

/// Returns the mode of a step; `None` if it affects the whole world. Records the modes of the names that it defines in
/// `known`.
fn record_mode<'s>(step: &'s Step, known: &mut BTreeMap<&'s str, Mode>) -> Option<Mode> {
    let or_live = |mode: Option<ModeName>| mode.map_or(Mode::Live, |mode| mode.0);
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
            let object = match other {
                Step::Merchant(step) => step.keys().next().map(String::as_str),
                _ => name.map(|name| name.value.0.as_str()),
            };
            let chain_mode = match other {
                Step::Mine(step) => Some(or_live(step.0.mode)),
                Step::Reorg(step) => Some(or_live(step.mode)),
                Step::Stall(step) => Some(or_live(step.mode)),
                Step::Congest(step) => Some(or_live(step.mode)),
                Step::Watcher(step) => Some(or_live(step.mode)),
                _ => None,
            };
            return chain_mode.or(object.and_then(|object| known.get(object).copied()));
        }
    };
    if let (Some(name), Some(mode)) = (name, mode) {
        known.insert(&name.value.0, mode);
    }
    mode
}

/// Returns the steps of one mode and those of the whole world.
fn steps_of_mode(steps: &[At<Step>], mode: Mode) -> Vec<At<Step>> {
    let mut known = BTreeMap::new();
    steps
        .iter()
        .filter(|step| record_mode(&step.value, &mut known).is_none_or(|step_mode| step_mode == mode))
        .cloned()
        .collect()
}

/// Returns `true` if a step may involve both modes: a payment to an address, whose network may be that of the other
/// mode, or a reference to a numbered delivery, because the numbers are shared between the modes.
fn crosses_modes(step: &Step) -> bool {
    match step {
        Step::Pay(pay) => pay.0.address_of.is_some(),
        Step::Resend(step) => is_numbered(Kind::Delivery, &step.0.delivery.value.0),
        _ => false,
    }
}

/// Returns the first key of a mode.
fn first_key(run: &Run, mode: Mode) -> String {
    let keys = run.dry_run.sandbox.first_keys();
    if mode == Mode::Live { keys.live } else { keys.test }
}

/// Returns the part of a record that belongs to one mode: the calls with its first key, the sightings and the attempts.
fn record_of_mode(record: &Record, key: &str, mode: Mode) -> Record {
    let mut deliveries = BTreeSet::new();
    let mut entries = Vec::new();
    for entry in &record.entries {
        let observation = match &entry.observation {
            Observation::Call(call) if call.bearer.as_deref() == Some(key) => entry.observation.clone(),
            Observation::Sightings(sightings) => {
                let own: Vec<_> =
                    sightings.iter().filter(|sighting| sighting.mode == mode).cloned().collect();
                if own.is_empty() {
                    continue;
                }
                Observation::Sightings(own)
            }
            Observation::AttemptStart(attempt) if attempt.mode == mode => {
                deliveries.insert(attempt.delivery);
                entry.observation.clone()
            }
            Observation::AttemptEnd { delivery, .. } if deliveries.contains(delivery) => {
                entry.observation.clone()
            }
            _ => continue,
        };
        entries.push(Entry { at: entry.at, observation });
    }
    Record::from_entries(entries)
}

/// The first letters of the names in random worlds: charges, transactions, invoices and so on.
const FIRST_LETTERS: &str = "ctixu";
/// Their replacements, in another alphabetical order. No name in a random world starts with them.
const REPLACEMENT_LETTERS: &str = "nkgfb";

/// Replaces the first letter of a name; unchanged if it is not in `from`.
fn replace_first_letter(name: &str, from: &str, to: &str) -> String {
    let position = name.chars().next().and_then(|first| from.find(first));
    match position {
        Some(position) => format!("{}{}", &to[position..=position], &name[1..]),
        None => name.to_owned(),
    }
}

/// Renames the charges, transactions and invoices in the text of a script. The length of names stays, because they may
/// occur in strings of the maximum length.
fn rename_objects(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let mut out = String::new();
    let mut word = String::new();
    // The preceding character: after a backslash a word is not a name.
    let mut previous = ' ';
    for c in text.chars().chain(['\n']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        let is_drawn_name = previous != '\\' && word.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        if is_drawn_name {
            word = replace_first_letter(&word, FIRST_LETTERS, REPLACEMENT_LETTERS);
        }
        out.push_str(&word);
        word.clear();
        previous = c;
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
        let renamed = rename_objects(text);
        assert_eq!(renamed.trim_end_matches('\n'), expected);
        assert_eq!(renamed.len(), text.len() + 1, "the same length and a line break");
    }

    #[test]
    fn renaming_preserves_lengths_and_replaces_every_use() {
        check("open: { amount: 1.00 EUR, charge: c55 }", "open: { amount: 1.00 EUR, charge: n55 }");
        check("pay: { charge: c1, as: t2 }", "pay: { charge: n1, as: k2 }");
        check("description: \"${c1} {{c1}}\"", "description: \"${n1} {{n1}}\"");
        check("- [i3, x4, u5, c, charge, 2c1]", "- [g3, f4, b5, c, charge, 2c1]");
        check("escape: \\u0041", "escape: \\u0041");
    }

    /// Otherwise a name could equal the new name of another object.
    #[test]
    fn no_drawn_name_starts_with_a_replacement_letter() {
        for seed in 0..100 {
            let text = workload::draw(seed).script.to_yaml();
            let is_part = |c: char| c.is_ascii_alphanumeric() || "-_\\".contains(c);
            let clash = text.split(|c| !is_part(c)).find(|word| {
                let mut letters = word.chars();
                letters.next().is_some_and(|first| REPLACEMENT_LETTERS.contains(first))
                    && letters.next().is_some_and(|second| second.is_ascii_digit())
            });
            assert_eq!(clash, None, "world {seed}");
        }
    }

    #[test]
    fn renaming_can_be_reversed() {
        for name in ["c55", "t1", "i2", "x3", "u4", "late"] {
            let renamed = replace_first_letter(name, FIRST_LETTERS, REPLACEMENT_LETTERS);
            assert_eq!(replace_first_letter(&renamed, REPLACEMENT_LETTERS, FIRST_LETTERS), name);
        }
    }
}
