//! `sweep --exhaust`: tries every sequence of inputs of a small world, on several threads.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use simulator::{
    exhaust::{Exploration, Extent, Path, PathResult, Scope},
    invariant::Violation,
    shrink::shrink,
    sweep::Runner,
};

use super::save_scenario;
use crate::{
    Failure,
    args::{Format, Sweep},
    signals::{self, INTERRUPTED},
    terminal::{self, BAD, GOOD, say},
};

/// The version of the JSON, incremented when older readers would misread it.
const FORMAT: u32 = 1;

/// The result of a scope.
struct ScopeResult {
    scope: &'static Scope,
    extent: Extent,
    counterexample: Option<CounterExample>,
    took: Duration,
    /// `true` if a signal or the time limit ended the search early.
    is_cut: bool,
}

/// A shortest sequence that violates an invariant.
struct CounterExample {
    inputs: String,
    violation: Violation,
    path: PathBuf,
}

/// Explores the selected scopes exhaustively, one after the other.
pub(super) fn exhaust(args: &Sweep) -> Result<u8, Failure> {
    let (stop, begun) = (signals::stop_flag()?, Instant::now());
    let bar = terminal::spinner();
    let is_over =
        || stop.load(Ordering::Relaxed) || args.lasting.is_some_and(|lasting| begun.elapsed() >= lasting);
    let mut all = Vec::new();
    for scope in &args.exhaust {
        let (mut search, since) = (Exploration::new(scope), Instant::now());
        let (mut found, mut is_cut) = (None, false);
        for _ in 0..=args.depth.unwrap_or(scope.depth) {
            let paths = search.next_paths();
            bar.set_message(format!(
                "{}: {} sequences to try, {} states",
                scope.name,
                paths.len(),
                search.extent.states
            ));
            let Some(tried) = attempt(args, &search, paths, &is_over) else {
                is_cut = true;
                break;
            };
            if let Some((path, violation)) = search.record_results(tried) {
                found = Some(save(args, &search, &path, violation)?);
                break;
            }
        }
        all.push(ScopeResult {
            scope,
            extent: search.extent,
            counterexample: found,
            took: since.elapsed(),
            is_cut,
        });
    }
    bar.finish_and_clear();
    let code = match () {
        () if all.iter().any(|report| report.counterexample.is_some()) => 1,
        () if stop.load(Ordering::Relaxed) => INTERRUPTED,
        () => 0,
    };
    match args.format {
        Format::Text => terminal::print(text(&all, args, code)),
        Format::Json => say!("{}", report(&all, args, code)),
    }
    Ok(code)
}

/// Tries sequences of one length up to the first that violates an invariant; `None` if time is up.
fn attempt(
    args: &Sweep,
    search: &Exploration,
    paths: Vec<Path>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<(Path, PathResult)>> {
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let (next, last, is_cut) = (AtomicUsize::new(0), AtomicUsize::new(paths.len()), AtomicBool::new(false));
    let all = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let (runner, mut own) = (Runner::with_fault(args.demo_fault), Vec::new());
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= last.load(Ordering::Relaxed) {
                        break;
                    }
                    if is_over() {
                        is_cut.store(true, Ordering::Relaxed);
                        break;
                    }
                    let tried = search.attempt(&runner, &paths[n]);
                    if tried.violation.is_some() {
                        last.fetch_min(n, Ordering::Relaxed);
                    }
                    own.push((n, tried));
                }
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
            });
        }
    });
    if is_cut.into_inner() {
        return None;
    }
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(n, _)| *n);
    Some(all.into_iter().map(|(n, tried)| (paths[n].clone(), tried)).collect())
}

/// Shrinks the sequence and writes it to a file.
fn save(
    args: &Sweep,
    search: &Exploration,
    path: &Path,
    violation: Violation,
) -> Result<CounterExample, Failure> {
    let runner = Runner::with_fault(args.demo_fault);
    let script = shrink(&runner, &search.script(path), &violation).script;
    let name = format!("invariant-{}-{}.yaml", violation.invariant.number(), search.scope().name);
    let file = save_scenario(&args.save, &name, &script.to_yaml())?;
    Ok(CounterExample { inputs: search.input_names(path), violation, path: file })
}

fn text(all: &[ScopeResult], args: &Sweep, code: u8) -> String {
    let mut text = String::new();
    let broken = all.iter().filter(|report| report.counterexample.is_some()).count();
    let scopes = if all.len() == 1 { "1 scope".to_owned() } else { format!("{} scopes", all.len()) };
    let _ = match code {
        0 => writeln!(text, "{GOOD}pass{GOOD:#}  every invariant held in {scopes}"),
        1 => writeln!(text, "{BAD}fail{BAD:#}  an invariant broke in {broken} of {scopes}"),
        _ => writeln!(text, "{BAD}interrupted{BAD:#}  until then every invariant held"),
    };
    let switch = args.demo_fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
    if let Some(fault) = args.demo_fault {
        let _ = writeln!(text, "wrong on purpose (--demo-fault {}): {}", fault.name, fault.what);
    }
    for found in all.iter().filter_map(|report| report.counterexample.as_ref()) {
        let path = found.path.display();
        let _ = writeln!(text, "\n{BAD}fail{BAD:#}  {}", found.violation);
        let _ = writeln!(text, "      rests on {}", found.violation.invariant.rests_on());
        let _ = writeln!(text, "      a shortest way there: {}", found.inputs);
        let _ = writeln!(text, "      again: chargeproof sweep {path}{switch}");
        let _ = writeln!(text, "             chargeproof play {path} --transcript{switch}");
    }
    text.push('\n');
    for ScopeResult { scope, extent, took, is_cut, .. } in all {
        let how_far = match (extent.is_exhausted, is_cut) {
            (true, _) => "no longer sequence reaches a new state",
            (false, true) => "stopped before the next length was done",
            (false, false) => "longer sequences reach new states",
        };
        let _ = writeln!(
            text,
            "{:<9} {} inputs, sequences of up to {}: {} tried, {} states, {} checks, {}.{:03} s; {how_far}",
            scope.name,
            scope.inputs.len(),
            extent.depth,
            extent.sequences,
            extent.states,
            extent.checks,
            took.as_secs(),
            took.subsec_millis()
        );
    }
    text
}

fn report(all: &[ScopeResult], args: &Sweep, code: u8) -> Value {
    let scopes: Vec<Value> = all
        .iter()
        .map(|ScopeResult { scope, extent, counterexample: found, took, is_cut }| {
            let failure = found.as_ref().map(|CounterExample { inputs: words, violation, path }| {
                json!({
                    "number": violation.invariant.number(), "law": violation.invariant.as_str(), "shape": violation.shape,
                    "what": violation.details, "inputs": words, "scenario": path.display().to_string(),
                })
            });
            json!({
                "scope": scope.name, "inputs": scope.inputs.len(), "depth": extent.depth,
                "sequences": extent.sequences, "states": extent.states, "checks": extent.checks,
                "exhausted": extent.is_exhausted, "cut": is_cut, "failure": failure,
                "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            })
        })
        .collect();
    json!({
        "format": FORMAT,
        "result": match code { 0 => "pass", 1 => "fail", _ => "interrupted" },
        "demo_fault": args.demo_fault.map(|fault| fault.name),
        "scopes": scopes,
    })
}
