//! Shrinking: the search for the shortest script that violates the same invariant in the same way.
//!
//! A random world that fails has hundreds of steps, most of them unrelated to the failure. [`shrink`] removes what it
//! can and returns a script that is short enough to read. Each candidate is a complete script, which is played and
//! checked, so the result is always a real failure. A candidate counts as failing if it has a violation of the same
//! invariant with the same [shape](Violation::shape), which is the message without names and amounts. Without the second
//! condition the search would drift to another, easier fault.
//!
//! Passes go from coarse to fine and are repeated until none of them makes the script smaller:
//!
//! 1. `drop_objects` removes all steps that define or reference some name: first half of the names, then quarters, down
//!    to one. A charge disappears with its payments.
//! 2. `drop_steps` removes runs of steps in the same manner. Waits stay, because removing one moves everything
//!    after it.
//! 3. `shorten_waits` tries 0, 1 second, 1 minute, half an hour, and the wait rounded down to minutes and to
//!    seconds.
//! 4. `simplify` removes account settings, optional fields and elements of lists within steps, and shortens strings.
//!
//! After a removal, steps that reference a name which no step defines any more are removed too, and neighbouring waits
//! are merged. The search stops after 1,500 worlds. Steps that the world refuses then get `refused` with their status,
//! or are removed if their kind of step has no such field, so that the result can be played as a scenario file.
//!
//! ```text
//! before: 212 steps, 41 charges, 9 days
//!         drop_objects    14 steps, 1 charge
//!         drop_steps       5 steps
//!         shorten_waits    9 days → 31 minutes
//! after:  open c1 · pay c1 share 50 % · wait 31m · pay c1 share 50 %
//! ```
//!
//! Must not contain: an invariant, random draws (equal input gives an equal result), or knowledge of one particular
//! fault.

use std::collections::BTreeSet;

use reference_core::time::Span;
use serde_json::{Value, json};

use crate::{
    invariant::{Invariant, Violation},
    play::{Cause, DryRun},
    script::{
        At, Script, in_line, names_defined_by, parse_steps,
        step::{Settings, Step},
        value::Duration,
        without_unknown_names,
    },
    sweep::{Runner, Verdict, WorldVariant},
};

/// The maximum number of worlds played to shrink one failure.
const ATTEMPTS_MAX: u32 = 1_500;

/// Strings are not shortened below this number of characters.
const HALF_LENGTH_MIN: usize = 16;

/// The result of shrinking a failure.
#[derive(Clone, Debug)]
pub struct ShrinkResult {
    /// The smallest script found. Its refused steps expect their refusal, so it can be played.
    pub script: Script,
    /// The violation in that script.
    pub violation: Violation,
    /// The number of worlds played.
    pub attempts: u32,
}

/// Shrinks a script that has this violation.
pub fn shrink(runner: &Runner<'_>, script: &Script, violation: &Violation) -> ShrinkResult {
    let mut search = Search { runner, violation, attempts: 0, best: script.clone() };
    if !search.try_candidate(script.clone()) {
        // Playing the script again does not reproduce the violation.
        return ShrinkResult {
            script: script.clone(),
            violation: violation.clone(),
            attempts: search.attempts,
        };
    }
    loop {
        let before = (search.best.steps.len(), size_of(&search.best));
        search.drop_objects();
        search.drop_steps();
        search.shorten_waits();
        search.simplify();
        if (search.best.steps.len(), size_of(&search.best)) >= before || search.attempts >= ATTEMPTS_MAX {
            break;
        }
    }
    search.finish()
}

/// The state of the search.
struct Search<'a> {
    runner: &'a Runner<'a>,
    violation: &'a Violation,
    /// The number of worlds played.
    attempts: u32,
    /// The smallest script that fails.
    best: Script,
}

/// Returns the length of a script's file, which shrinking reduces when the number of steps stays.
fn size_of(script: &Script) -> usize {
    script.to_yaml().len()
}

impl Search<'_> {
    /// Plays a script. Returns its verdict and the violation if the same invariant fails in the same way.
    fn find_violation(&self, script: &Script) -> Option<(Violation, Verdict)> {
        let mut verdict = self.runner.try_script(script);
        if matches!(
            self.violation.invariant,
            Invariant::ModesApart | Invariant::Restart | Invariant::Metamorphic
        ) {
            let variants = WorldVariant::ALL.into_iter();
            for variant in variants.filter(|variant| variant.invariant() == self.violation.invariant) {
                let mut run = self.runner.play(script);
                verdict.findings.merge(self.runner.compare(variant, script, &mut run, script.seed));
            }
        }
        let is_same = |violation: &&Violation| {
            violation.invariant == self.violation.invariant && violation.shape == self.violation.shape
        };
        let found = verdict.findings.violations.iter().find(is_same).cloned();
        found.map(|violation| (violation, verdict))
    }

    /// Plays a candidate, which becomes the best script if it still fails. Returns `true` if it does.
    fn try_candidate(&mut self, mut candidate: Script) -> bool {
        if self.attempts >= ATTEMPTS_MAX {
            return false;
        }
        candidate.steps = merge_waits(without_unknown_names(candidate.steps));
        if candidate.steps.is_empty() {
            return false;
        }
        self.attempts += 1;
        let fails = self.find_violation(&candidate).is_some();
        if fails {
            self.best = candidate;
        }
        fails
    }

    /// Returns the best script without the steps at some indexes.
    fn without_steps(&self, is_removed: impl Fn(usize) -> bool) -> Script {
        let mut script = self.best.clone();
        let mut index = 0;
        script.steps.retain(|_| {
            index += 1;
            !is_removed(index - 1)
        });
        script
    }

    /// Tries to remove all steps that define or reference half of the names, then a quarter, down to one.
    fn drop_objects(&mut self) {
        let names: BTreeSet<String> =
            self.best.steps.iter().flat_map(|step| names_defined_by(step)).map(str::to_owned).collect();
        let mut names: Vec<String> = names.into_iter().collect();
        let mut size = names.len().div_ceil(2);
        while size > 0 {
            let mut start = 0;
            while start < names.len() {
                let removed: BTreeSet<&str> =
                    names[start..(start + size).min(names.len())].iter().map(String::as_str).collect();
                let mut script = self.best.clone();
                // Steps that reference a removed name are removed too.
                script.steps.retain(|step| !names_defined_by(step).iter().any(|name| removed.contains(name)));
                if self.try_candidate(script) {
                    names.drain(start..(start + size).min(names.len()));
                } else {
                    start += size;
                }
            }
            size /= 2;
        }
    }

    /// Tries to remove half of the steps, then a quarter, down to one.
    fn drop_steps(&mut self) {
        let mut size = self.best.steps.len().div_ceil(2);
        while size > 0 {
            let mut start = 0;
            while start < self.best.steps.len() {
                let end = start + size;
                // Waits stay, because removing one moves everything after it.
                let is_wait: Vec<bool> =
                    self.best.steps.iter().map(|step| matches!(step.value, Step::Wait(_))).collect();
                let has_others = (start..end.min(is_wait.len())).any(|index| !is_wait[index]);
                let script = self.without_steps(|index| (start..end).contains(&index) && !is_wait[index]);
                if !has_others || !self.try_candidate(script) {
                    start += size;
                }
            }
            size /= 2;
        }
    }

    /// Tries shorter, round durations for each wait.
    fn shorten_waits(&mut self) {
        let mut index = 0;
        while index < self.best.steps.len() {
            if let Step::Wait(span) = &self.best.steps[index].value {
                let current = span.value.0.0;
                let second = Span::secs(1).0;
                let minute = 60 * second;
                let round =
                    [0, second, minute, 30 * minute, current - current % minute, current - current % second];
                let mut candidates: Vec<u64> = round.into_iter().filter(|wait| *wait < current).collect();
                candidates.dedup();
                for wait in candidates {
                    let mut script = self.best.clone();
                    script.steps[index] = wait_step(wait);
                    if self.try_candidate(script) {
                        break;
                    }
                }
            }
            index += 1;
        }
    }

    /// Tries to simplify the settings and the values within steps.
    fn simplify(&mut self) {
        let mut script = self.best.clone();
        script.account = Settings::default();
        if size_of(&script) < size_of(&self.best) {
            self.try_candidate(script);
        }
        let mut index = 0;
        while index < self.best.steps.len() {
            let mut nth = 0;
            while let Some(step) = self.best.steps.get(index)
                && let Some(simpler) = simplifications(&json!(step.value)).get(nth)
            {
                let mut script = self.best.clone();
                let is_accepted = parse_step(simpler).is_some_and(|simpler| {
                    script.steps[index].value = simpler;
                    size_of(&script) < size_of(&self.best) && self.try_candidate(script)
                });
                // After a success, the next simplifications are those of the new step.
                nth += usize::from(!is_accepted);
            }
            index += 1;
        }
    }

    /// Makes the best script playable as a scenario file, and returns it.
    fn finish(mut self) -> ShrinkResult {
        // A refused step that cannot expect its refusal would stop a play. It changes nothing, so it is removed.
        let (mut violation, mut verdict) = self.find_violation(&self.best).expect("the best script fails");
        let can_expect = |index: &&usize| can_expect_refusal(&self.best.steps[**index].value);
        let unplayable: BTreeSet<usize> =
            verdict.refusals.keys().filter(|index| !can_expect(index)).copied().collect();
        if !unplayable.is_empty() {
            let script = self.without_steps(|index| unplayable.contains(&index));
            // One more attempt is always allowed here.
            self.attempts = self.attempts.min(ATTEMPTS_MAX - 1);
            if self.try_candidate(script) {
                (violation, verdict) = self.find_violation(&self.best).expect("the best script fails");
            }
        }
        if self.extend_to(&violation) {
            (violation, verdict) = self.find_violation(&self.best).expect("the best script fails");
        }
        let mut script = self.best;
        for (index, status) in &verdict.refusals {
            expect_refusal(&mut script.steps[*index].value, *status);
        }
        script.title = format!(
            "Invariant {} ({}): {}",
            violation.invariant.number(),
            violation.invariant.as_str(),
            violation.shape
        );
        ShrinkResult { script, violation, attempts: self.attempts }
    }

    /// Appends a wait until the violation if it occurs after the last step. A sweep continues after that
    /// step, but playing the file does not. Returns `true` if a wait was needed and the script still fails.
    fn extend_to(&mut self, violation: &Violation) -> bool {
        let waited: u64 = self.best.steps.iter().map(|step| waited_micros(&step.value)).sum();
        let end = self.best.start.0 + waited;
        let missing = violation.at.map_or(0, |at| at.0.saturating_sub(end));
        if missing == 0 {
            return false;
        }
        let second = Span::secs(1).0;
        let mut script = self.best.clone();
        script.steps.push(wait_step(missing.next_multiple_of(second)));
        // One more attempt is always allowed here.
        self.attempts = self.attempts.min(ATTEMPTS_MAX - 1);
        self.try_candidate(script)
    }
}

/// Returns a script that can be played as a file: refused steps expect their refusal, and impossible steps are removed.
pub(crate) fn playable_script(runner: &Runner<'_>, script: &Script) -> Script {
    let DryRun { refusals, errors, .. } = runner.dry_run(script);
    let is_impossible =
        |index| errors.iter().any(|error| error.step == index && error.cause != Cause::UnmetExpectation);
    let mut script = script.clone();
    let mut index = 0..;
    script.steps.retain_mut(|step| {
        let index = index.next().expect("the range is unbounded");
        !is_impossible(index)
            && refusals.get(&index).is_none_or(|status| expect_refusal(&mut step.value, *status))
    });
    script.steps = without_unknown_names(script.steps);
    script
}

/// Returns a step that waits.
fn wait_step(micros: u64) -> At<Step> {
    let wait = At { value: Duration(Span::micros(micros)), span: Default::default() };
    At { value: Step::Wait(wait), span: Default::default() }
}

/// Returns the time that a step waits; 0 for other steps.
fn waited_micros(step: &Step) -> u64 {
    if let Step::Wait(span) = step { span.value.0.0 } else { 0 }
}

/// Merges neighbouring waits, and removes empty ones.
fn merge_waits(steps: Vec<At<Step>>) -> Vec<At<Step>> {
    let mut merged: Vec<At<Step>> = Vec::new();
    for step in steps {
        match (&step.value, merged.last_mut().map(|last| &mut last.value)) {
            (Step::Wait(span), _) if span.value.0.0 == 0 => {}
            (Step::Wait(span), Some(Step::Wait(before))) => {
                before.value = Duration(Span::micros(before.value.0.0 + span.value.0.0));
            }
            _ => merged.push(step),
        }
    }
    merged
}

/// Returns simpler values: without one entry or element, or with one string halved. Large removals come first.
fn simplifications(value: &Value) -> Vec<Value> {
    let mut simpler = Vec::new();
    match value {
        Value::Object(map) => {
            for name in map.keys() {
                let mut without = map.clone();
                without.remove(name);
                simpler.push(Value::Object(without));
            }
            for (name, value) in map {
                simpler.extend(simplifications(value).into_iter().map(|value| {
                    let mut changed = map.clone();
                    changed.insert(name.clone(), value);
                    Value::Object(changed)
                }));
            }
        }
        Value::Array(list) => {
            for index in 0..list.len() {
                let mut without = list.clone();
                without.remove(index);
                simpler.push(Value::Array(without));
            }
            for (index, value) in list.iter().enumerate() {
                simpler.extend(simplifications(value).into_iter().map(|value| {
                    let mut changed = list.clone();
                    changed[index] = value;
                    Value::Array(changed)
                }));
            }
        }
        Value::String(text) => {
            let half = text.chars().count() / 2;
            if half >= HALF_LENGTH_MIN {
                simpler.push(text.chars().take(half).collect::<String>().into());
            }
        }
        _ => {}
    }
    simpler
}

/// Parses a step from JSON; returns `None` if it is invalid, such as without a required field.
fn parse_step(value: &Value) -> Option<Step> {
    parse_steps(&format!("- {}", in_line(value))).ok()?.pop().map(|step| step.value)
}

/// Returns `true` if a step can expect a refusal.
fn can_expect_refusal(step: &Step) -> bool {
    expect_refusal(&mut step.clone(), 409)
}

/// Sets the expected refusal of a step. Returns `false` if the step cannot expect one.
fn expect_refusal(step: &mut Step, status: u16) -> bool {
    let refused = match step {
        Step::Wallet(step) => &mut step.refused,
        Step::Resend(step) => &mut step.0.refused,
        Step::Endpoint(step) => &mut step.0.refused,
        Step::Accept(step) => &mut step.0.refused,
        Step::Open(step) => &mut step.refused,
        Step::Link(step) => &mut step.0.refused,
        Step::Invoice(step) => &mut step.refused,
        Step::Send(step) => &mut step.0.refused,
        Step::Choose(step) => &mut step.refused,
        Step::Cancel(step) => &mut step.0.refused,
        Step::Refund(step) => &mut step.refused,
        Step::Void(step) => &mut step.0.refused,
        Step::Pay(step) => &mut step.0.refused,
        Step::Reorg(step) => &mut step.refused,
        Step::DoubleSpend(step) => &mut step.0.refused,
        Step::Replace(step) => &mut step.refused,
        Step::Drop(step) => &mut step.0.refused,
        Step::Rebroadcast(step) => &mut step.0.refused,
        Step::Congest(step) => &mut step.refused,
        Step::Request(step) => {
            step.expect.status = Some(At { value: status, span: Default::default() });
            return true;
        }
        _ => return false,
    };
    *refused = Some(status);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simplifications_remove_entries_and_elements_and_halve_long_strings() {
        let value = json!({ "a": [1, 2], "b": { "c": "x".repeat(40) } });
        let simpler: Vec<String> = simplifications(&value).iter().map(Value::to_string).collect();
        let long = "x".repeat(40);
        let expected = [
            format!(r#"{{"b":{{"c":"{long}"}}}}"#),
            r#"{"a":[1,2]}"#.to_owned(),
            format!(r#"{{"a":[2],"b":{{"c":"{long}"}}}}"#),
            format!(r#"{{"a":[1],"b":{{"c":"{long}"}}}}"#),
            r#"{"a":[1,2],"b":{}}"#.to_owned(),
            format!(r#"{{"a":[1,2],"b":{{"c":"{}"}}}}"#, "x".repeat(20)),
        ];
        assert_eq!(simpler, expected);
    }

    #[test]
    fn parse_step_requires_the_required_fields() {
        let request = json!({ "request": { "path": "/v1/charges", "body": { "asset": "BTC" } } });
        assert!(matches!(parse_step(&request), Some(Step::Request(_))));
        assert!(parse_step(&json!({ "request": { "body": {} } })).is_none());
        assert!(matches!(parse_step(&json!("restart")), Some(Step::Restart)));
    }
}
