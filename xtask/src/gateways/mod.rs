//! `cargo xtask gateways`: nginx, HAProxy, Varnish and Apache in front of the reference server, each judged by
//! `chargeproof check`. Legal deployments must pass; misconfigured ones must be detected.
//!
//! The deployments are data: a file for each gateway in `xtask/gateways`. Gateways come from the packages of the
//! distribution; one that is not installed is skipped. Nothing is installed or changed in the system.

mod deployment;
mod servers;
mod trial;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use clap::{Args, value_parser};
use serde_json::{Value, json};

use crate::OutputFormat;
use crate::served;
use crate::tools;
use deployment::Gateway;
use servers::ReferenceServers;
use trial::{DeploymentOutcome, GatewayDeployment, Trial};

/// The options of the task.
#[derive(Args)]
#[command(
    after_help = "Debian and Ubuntu: apt-get install --no-install-recommends nginx-light haproxy varnish apache2\n\
A gateway that is not installed is skipped.\n\n\
exit code: 0 if every legal deployment passes and every misconfiguration is detected, except those that have a \
reason in the table; otherwise 1"
)]
pub(crate) struct GatewayOptions {
    /// Runs the deployments whose gateway or name contains this text; may be given more than once
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// The number of deployments that are tested in parallel; they mostly wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// The format of the result
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

impl GatewayOptions {
    fn selects(&self, gateway: &str, name: &str) -> bool {
        let matches = |text: &String| gateway.contains(text.as_str()) || name.contains(text.as_str());
        self.only.is_empty() || self.only.iter().any(matches)
    }
}

/// Tests the selected deployments of the installed gateways. Returns `true` if every result is the expected one.
pub(crate) fn run(root: &Path, options: &GatewayOptions) -> Result<bool, String> {
    let started = Instant::now();
    let gateways = Gateway::load_all(&root.join("xtask/gateways"))?;
    let (installed, missing): (Vec<_>, Vec<_>) =
        gateways.iter().partition(|gateway| tools::runs_with(&gateway.program, &gateway.version));
    let servers = ReferenceServers::start(&served::build(root)?, root)?;
    let home = env::temp_dir().join(format!("chargeproof-gateways-{}", std::process::id()));
    let mut selected: Vec<_> = installed
        .iter()
        .flat_map(|gateway| {
            gateway.deployments.iter().map(|deployment| GatewayDeployment { gateway, deployment })
        })
        .filter(|tested| options.selects(&tested.gateway.name, &tested.deployment.name))
        .collect();
    // A check that exceeds the rate limit waits for a minute, so it starts first.
    selected.sort_by_key(|tested| !tested.deployment.has_burst());
    let trials = run_trials(&selected, &servers, &home, options.jobs.into());
    let _ = std::fs::remove_dir_all(&home);
    let skipped: BTreeMap<_, _> = missing
        .iter()
        .map(|gateway| (gateway.name.as_str(), format!("install {}", gateway.package)))
        .collect();
    let seconds = started.elapsed().as_secs();
    if options.format == OutputFormat::Json {
        println!("{}", document(&trials, &skipped, seconds));
    } else {
        print_table(&trials, &skipped, seconds);
    }
    if trials.is_empty() && skipped.is_empty() {
        return Err(format!("no deployment matches `{}`", options.only.join("`, `")));
    }
    Ok(trials.iter().all(Trial::is_expected))
}

/// Tests the deployments, `jobs` in parallel. Returns the results ordered by gateway: first the legal deployments,
/// then the misconfigurations, both in the order of the file.
fn run_trials(
    deployments: &[GatewayDeployment<'_>],
    servers: &ReferenceServers,
    home: &Path,
    jobs: usize,
) -> Vec<Trial> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..jobs.min(deployments.len()) {
            scope.spawn(|| {
                while let Some(deployment) = deployments.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let trial = trial::try_deployment(*deployment, servers, home);
                    let mut results = results.lock().expect("no trial panics");
                    results.push(trial);
                    eprintln!(
                        "{} of {}: {}",
                        results.len(),
                        deployments.len(),
                        results[results.len() - 1].name
                    );
                }
            });
        }
    });
    let mut results = results.into_inner().expect("no trial panics");
    results.sort_by_key(|trial| (trial.gateway.clone(), trial.is_faulty, trial.index));
    results
}

fn print_table(trials: &[Trial], skipped: &BTreeMap<&str, String>, seconds: u64) {
    let mut gateway = "";
    for trial in trials {
        if trial.gateway != gateway {
            gateway = &trial.gateway;
            println!("\n{gateway}");
        }
        println!("  {:<11} {:<70} {:>3} s  {}", trial.as_str(), trial.name, trial.seconds, trial.summary());
    }
    for trial in trials.iter().filter(|trial| !trial.is_expected()) {
        println!("\n==> {}: {}\n{}", trial.gateway, trial.name, trial.report);
    }
    for (gateway, installation) in skipped {
        println!("skipped: {gateway} is not installed; {installation}");
    }
    let count = |matches: fn(&Trial) -> bool| trials.iter().filter(|trial| matches(trial)).count();
    println!("\nmisconfigurations by chapter: {}", by_chapter(trials));
    println!(
        "{} of {} legal deployments pass, {} of {} misconfigurations are detected, {} known as undetected; {seconds} s",
        count(|trial| !trial.is_faulty && trial.is_expected()),
        count(|trial| !trial.is_faulty),
        count(|trial| matches!(trial.outcome, DeploymentOutcome::Detected(_))),
        count(|trial| trial.is_faulty),
        count(|trial| matches!(trial.outcome, DeploymentOutcome::Undetected { is_known: true })),
    );
}

/// Returns the detected misconfigurations of each chapter of statements, such as `auth 12 of 12, errors 5 of 6`, to
/// compare with the known faults in `chargeproof check --power`.
fn by_chapter(trials: &[Trial]) -> String {
    let mut chapters: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.is_faulty) {
        let (detected, all) = chapters.entry(&trial.chapter).or_default();
        *detected += usize::from(matches!(trial.outcome, DeploymentOutcome::Detected(_)));
        *all += 1;
    }
    let counts = chapters.iter().map(|(chapter, (detected, all))| format!("{chapter} {detected} of {all}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// Returns the results as JSON.
fn document(trials: &[Trial], skipped: &BTreeMap<&str, String>, seconds: u64) -> Value {
    let rows: Vec<_> = trials
        .iter()
        .map(|trial| {
            json!({
                "gateway": trial.gateway,
                "name": trial.name,
                "faulty": trial.is_faulty,
                "result": trial.as_str(),
                "expected": trial.is_expected(),
                "failed": trial.failed,
                "note": trial.undetected_reason,
                "seconds": trial.seconds,
            })
        })
        .collect();
    json!({ "deployments": rows, "skipped": skipped, "seconds": seconds })
}
