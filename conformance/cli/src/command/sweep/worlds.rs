//! Runs the simulations of a sweep, on the requested number of threads.

use std::{
    io::IsTerminal as _,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use indicatif::{ProgressBar, ProgressStyle};
use simulator::sweep::Runner;

use super::SweepTotals;
use crate::{args::Sweep, terminal::ProgressLog};

/// Runs the simulations of `seeds` seeds from `from + begin` until all have run, `--for` has
/// elapsed, or `stop` is set; with `--first`, until one violates an invariant.
pub(super) fn sweep(args: &Sweep, from: u64, (begin, seeds): (u64, u64), stop: &AtomicBool) -> SweepTotals {
    let jobs = args.jobs.or_else(|| thread::available_parallelism().ok()).map_or(1, usize::from);
    let started_at = Instant::now();
    let (next, has_failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let all_totals = Mutex::new(SweepTotals::default());
    let (bar, log) = (progress_bar(seeds, args.run_for.is_some()), ProgressLog::start());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let runner = Runner::with_fault(args.demo_fault);
                let mut totals = SweepTotals::default();
                while !stop.load(Ordering::Relaxed) {
                    let has_first_failure = args.first && has_failed.load(Ordering::Relaxed);
                    if has_first_failure
                        || args.run_for.is_some_and(|duration| started_at.elapsed() >= duration)
                    {
                        break;
                    }
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= seeds {
                        break;
                    }
                    // Seeds wrap around.
                    let seed = from.wrapping_add(begin).wrapping_add(index);
                    let verdict = runner.try_seed(seed);
                    if !verdict.findings.violations.is_empty() {
                        has_failed.store(true, Ordering::Relaxed);
                        bar.set_message(format!("seed {seed} violates an invariant"));
                    }
                    totals.add(seed, verdict);
                    bar.inc(1);
                    log.line(&bar, || {
                        format!("{} simulations in {} s", bar.position(), started_at.elapsed().as_secs())
                    });
                }
                all_totals.lock().unwrap_or_else(PoisonError::into_inner).absorb(totals);
            });
        }
    });
    bar.finish_and_clear();
    let mut totals = all_totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    (totals.elapsed, totals.jobs, totals.start_seed) = (started_at.elapsed(), jobs, from);
    if args.first {
        totals.keep_first_failure();
    }
    totals.interrupted = stop.load(Ordering::Relaxed);
    totals.fault = args.demo_fault;
    totals
}

/// Returns a progress bar, hidden without a terminal, where [`ProgressLog`] prints lines instead.
fn progress_bar(seeds: u64, is_timed: bool) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let (bar, template) = match is_timed {
        true => (ProgressBar::new_spinner(), "{spinner} {pos} simulations, {per_sec}, {elapsed} {msg}"),
        false => (ProgressBar::new(seeds), "{bar:40} {pos}/{len} simulations, {per_sec}, {eta} left {msg}"),
    };
    bar.with_style(ProgressStyle::with_template(template).expect("the template is a valid constant"))
}
