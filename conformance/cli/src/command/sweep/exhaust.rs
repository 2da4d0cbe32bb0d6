//! `sweep --exhaust`: tries every sequence of the inputs of a scope on several threads. A scope is a
//! small world with a few inputs. The code calls a sequence of inputs a path.

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
    terminal::{self, BAD, GOOD, print_line},
};

/// The version of the JSON, incremented when older readers would misread it.
const FORMAT: u32 = 1;

/// The result of a scope.
struct ScopeResult {
    scope: &'static Scope,
    extent: Extent,
    counterexample: Option<Counterexample>,
    elapsed: Duration,
    /// `true` if a signal or the time limit ended the search.
    was_stopped: bool,
}

/// A shortest sequence that violates an invariant.
struct Counterexample {
    inputs: String,
    violation: Violation,
    /// The scenario file with the shrunk sequence.
    file: PathBuf,
}

/// Explores the selected scopes exhaustively, one after the other.
pub(super) fn exhaust(args: &Sweep) -> Result<u8, Failure> {
    let (stop, started_at) = (signals::stop_flag()?, Instant::now());
    let bar = terminal::spinner();
    let must_stop = || {
        stop.load(Ordering::Relaxed) || args.run_for.is_some_and(|duration| started_at.elapsed() >= duration)
    };
    let mut results = Vec::new();
    for scope in &args.exhaust {
        let (mut search, scope_started_at) = (Exploration::new(scope), Instant::now());
        let (mut counterexample, mut was_stopped) = (None, false);
        for _length in 0..=args.depth.unwrap_or(scope.depth) {
            let paths = search.next_paths();
            bar.set_message(format!(
                "{}: {} sequences to try, {} states",
                scope.name,
                paths.len(),
                search.extent.states
            ));
            let Some(path_results) = try_paths(args, &search, paths, &must_stop) else {
                was_stopped = true;
                break;
            };
            if let Some((path, violation)) = search.record_results(path_results) {
                counterexample = Some(save(args, &search, &path, violation)?);
                break;
            }
        }
        results.push(ScopeResult {
            scope,
            extent: search.extent,
            counterexample,
            elapsed: scope_started_at.elapsed(),
            was_stopped,
        });
    }
    bar.finish_and_clear();
    let code = match () {
        () if results.iter().any(|result| result.counterexample.is_some()) => 1,
        () if stop.load(Ordering::Relaxed) => INTERRUPTED,
        () => 0,
    };
    match args.format {
        Format::Text => terminal::print(text(&results, args, code)),
        Format::Json => print_line!("{}", json_report(&results, args, code)),
    }
    Ok(code)
}

/// Tries sequences of one length up to the first that violates an invariant; `None` if `must_stop` returned `true`.
fn try_paths(
    args: &Sweep,
    search: &Exploration,
    paths: Vec<Path>,
    must_stop: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<(Path, PathResult)>> {
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let (next, end, was_stopped) =
        (AtomicUsize::new(0), AtomicUsize::new(paths.len()), AtomicBool::new(false));
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let (runner, mut thread_results) = (Runner::with_fault(args.demo_fault), Vec::new());
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= end.load(Ordering::Relaxed) {
                        break;
                    }
                    if must_stop() {
                        was_stopped.store(true, Ordering::Relaxed);
                        break;
                    }
                    let result = search.run(&runner, &paths[index]);
                    if result.violation.is_some() {
                        end.fetch_min(index, Ordering::Relaxed);
                    }
                    thread_results.push((index, result));
                }
                results.lock().unwrap_or_else(PoisonError::into_inner).extend(thread_results);
            });
        }
    });
    if was_stopped.into_inner() {
        return None;
    }
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    Some(results.into_iter().map(|(index, result)| (paths[index].clone(), result)).collect())
}

/// Shrinks the sequence and writes it to a file.
fn save(
    args: &Sweep,
    search: &Exploration,
    path: &Path,
    violation: Violation,
) -> Result<Counterexample, Failure> {
    let runner = Runner::with_fault(args.demo_fault);
    let script = shrink(&runner, &search.script(path), &violation).script;
    let name = format!("invariant-{}-{}.yaml", violation.invariant.number(), search.scope().name);
    let file = save_scenario(&args.save, &name, &script.to_yaml())?;
    Ok(Counterexample { inputs: search.input_names(path), violation, file })
}

fn text(results: &[ScopeResult], args: &Sweep, code: u8) -> String {
    let mut text = String::new();
    let failed = results.iter().filter(|result| result.counterexample.is_some()).count();
    let scopes = if results.len() == 1 { "1 scope".to_owned() } else { format!("{} scopes", results.len()) };
    let _ = match code {
        0 => writeln!(text, "{GOOD}pass{GOOD:#}  every invariant held in {scopes}"),
        1 => writeln!(text, "{BAD}fail{BAD:#}  an invariant was violated in {failed} of {scopes}"),
        _ => writeln!(text, "{BAD}interrupted{BAD:#}  every invariant held until then"),
    };
    let fault_option =
        args.demo_fault.map(|fault| format!(" --demo-fault {}", fault.name)).unwrap_or_default();
    if let Some(fault) = args.demo_fault {
        let _ = writeln!(text, "wrong on purpose (--demo-fault {}): {}", fault.name, fault.what);
    }
    for counterexample in results.iter().filter_map(|result| result.counterexample.as_ref()) {
        let file = counterexample.file.display();
        let _ = writeln!(text, "\n{BAD}fail{BAD:#}  {}", counterexample.violation);
        let _ = writeln!(text, "      rests on {}", counterexample.violation.invariant.rests_on());
        let _ = writeln!(text, "      shortest sequence: {}", counterexample.inputs);
        let _ = writeln!(text, "      again: chargeproof sweep {file}{fault_option}");
        let _ = writeln!(text, "             chargeproof play {file} --transcript{fault_option}");
    }
    text.push('\n');
    for ScopeResult { scope, extent, elapsed, was_stopped, .. } in results {
        let completeness = match (extent.is_exhausted, was_stopped) {
            (true, _) => "no longer sequence reaches a new state",
            (false, true) => "stopped before all sequences of the next length were tried",
            (false, false) => "longer sequences reach new states",
        };
        let _ = writeln!(
            text,
            "{:<9} {} inputs, sequences of up to {}: {} tried, {} states, {} checks, {}.{:03} s; {completeness}",
            scope.name,
            scope.inputs.len(),
            extent.depth,
            extent.sequences,
            extent.states,
            extent.checks,
            elapsed.as_secs(),
            elapsed.subsec_millis()
        );
    }
    text
}

fn json_report(results: &[ScopeResult], args: &Sweep, code: u8) -> Value {
    let scopes: Vec<Value> = results
        .iter()
        .map(|ScopeResult { scope, extent, counterexample, elapsed, was_stopped }| {
            let failure = counterexample.as_ref().map(|Counterexample { inputs, violation, file }| {
                json!({
                    "number": violation.invariant.number(), "law": violation.invariant.as_str(), "shape": violation.shape,
                    "what": violation.details, "inputs": inputs, "scenario": file.display().to_string(),
                })
            });
            json!({
                "scope": scope.name, "inputs": scope.inputs.len(), "depth": extent.depth,
                "sequences": extent.sequences, "states": extent.states, "checks": extent.checks,
                "exhausted": extent.is_exhausted, "cut": was_stopped, "failure": failure,
                "took_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
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
