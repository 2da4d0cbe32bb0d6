//! Tests one deployment: starts the gateway, runs `chargeproof check`, and stops the gateway.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::deployment::{Deployment, Gateway};
use super::servers::{BranchedWorld, ReferenceServers};
use crate::target::{self, Keys, output};

/// Parts of a check that the deployments do not support.
const WITHOUT: [&str; 1] = ["webhooks"];
/// The number of lines of a gateway's log that a report shows.
const LOG_LINES: usize = 20;

/// A deployment to test.
#[derive(Clone, Copy)]
pub(crate) struct GatewayDeployment<'a> {
    pub(crate) gateway: &'a Gateway,
    pub(crate) deployment: &'a Deployment,
}

/// The result of one deployment.
pub(crate) struct Trial {
    pub(crate) gateway: String,
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) is_faulty: bool,
    /// The chapter of the first pattern in [`Deployment::breaks`]; empty for a legal deployment.
    pub(crate) chapter: String,
    pub(crate) outcome: DeploymentOutcome,
    /// The statements that failed; for a legal deployment, also those with a warning.
    pub(crate) failed: Vec<String>,
    /// The known reason why a misconfiguration is not detected.
    pub(crate) undetected_reason: Option<String>,
    /// The exit code and the statements that explain it, or the error; printed if the result is not the expected one.
    pub(crate) report: String,
    pub(crate) seconds: u64,
}

/// The verdict on a deployment.
pub(crate) enum DeploymentOutcome {
    /// A legal deployment: nothing failed, and everything was judged.
    Passed,
    /// A legal deployment with a failed statement, a warning or an unjudged statement.
    Failed,
    /// A misconfiguration that these statements detected.
    Detected(Vec<String>),
    /// A misconfiguration that no expected statement detected. `is_known` is `true` if it has a reason in
    /// `undetected`.
    Undetected { is_known: bool },
    /// A misconfiguration that was detected although it has a reason in `undetected`.
    NoLongerUndetected,
    /// The gateway or the check could not run.
    NotJudged,
}

impl Trial {
    pub(crate) fn is_expected(&self) -> bool {
        match self.outcome {
            DeploymentOutcome::Passed | DeploymentOutcome::Detected(_) => true,
            DeploymentOutcome::Undetected { is_known } => is_known,
            DeploymentOutcome::Failed
            | DeploymentOutcome::NoLongerUndetected
            | DeploymentOutcome::NotJudged => false,
        }
    }

    pub(crate) fn as_str(&self) -> &'static str {
        match self.outcome {
            DeploymentOutcome::Passed => "pass",
            DeploymentOutcome::Failed => "ACCUSED",
            DeploymentOutcome::Detected(_) => "detected",
            DeploymentOutcome::Undetected { is_known: true } => "known",
            DeploymentOutcome::Undetected { is_known: false } => "UNDETECTED",
            DeploymentOutcome::NoLongerUndetected => "NOW DETECTED",
            DeploymentOutcome::NotJudged => "BROKEN",
        }
    }

    /// Returns the statements that detect a misconfiguration, the reason why none does, or the failed statements.
    pub(crate) fn summary(&self) -> String {
        match (&self.outcome, &self.undetected_reason) {
            (DeploymentOutcome::Detected(statements), _) => statements.join(" "),
            (DeploymentOutcome::Undetected { .. }, Some(reason)) => reason.clone(),
            _ => self.failed.join(" "),
        }
    }
}

/// Tests a deployment in a directory below `home`.
pub(crate) fn try_deployment(
    tested: GatewayDeployment<'_>,
    servers: &ReferenceServers,
    home: &Path,
) -> Trial {
    let GatewayDeployment { gateway, deployment } = tested;
    let started = Instant::now();
    let home = home.join(format!("{}-{}", gateway.name, deployment.index));
    let (outcome, failed, report) = match run_check(tested, servers, &home) {
        Ok((report, code)) => {
            // A warning counts against a legal deployment, but does not detect a misconfiguration.
            let verdicts: &[_] = if deployment.is_faulty() { &["fail"] } else { &["fail", "warn"] };
            let failed = statement_ids(&report, verdicts);
            (outcome(deployment, &failed, code), failed, explain_exit_code(&report, code))
        }
        Err(message) => (DeploymentOutcome::NotJudged, Vec::new(), format!("{message}\n{}", log_tail(&home))),
    };
    Trial {
        gateway: gateway.name.clone(),
        index: deployment.index,
        name: deployment.name.clone(),
        is_faulty: deployment.is_faulty(),
        chapter: deployment.breaks.first().and_then(|id| id.split('.').next()).unwrap_or_default().to_owned(),
        outcome,
        failed,
        undetected_reason: deployment.undetected.clone(),
        report,
        seconds: started.elapsed().as_secs(),
    }
}

fn outcome(deployment: &Deployment, failed: &[String], code: i32) -> DeploymentOutcome {
    if !deployment.is_faulty() {
        return if code == 0 && failed.is_empty() {
            DeploymentOutcome::Passed
        } else {
            DeploymentOutcome::Failed
        };
    }
    let is_expected = |id: &&String| deployment.breaks.iter().any(|pattern| matches_pattern(pattern, id));
    let detected_by: Vec<_> = failed.iter().filter(is_expected).cloned().collect();
    match (detected_by.is_empty(), &deployment.undetected) {
        (false, None) => DeploymentOutcome::Detected(detected_by),
        (false, Some(_)) => DeploymentOutcome::NoLongerUndetected,
        (true, reason) => DeploymentOutcome::Undetected { is_known: reason.is_some() },
    }
}

/// Returns `true` if a pattern such as `auth.*` matches the id of a statement.
fn matches_pattern(pattern: &str, id: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == id, |prefix| id.starts_with(prefix))
}

/// Runs the check; returns its report and exit code.
fn run_check(
    tested: GatewayDeployment<'_>,
    servers: &ReferenceServers,
    home: &Path,
) -> Result<(Value, i32), String> {
    let GatewayDeployment { gateway, deployment } = tested;
    let world = servers.open_world(deployment.unlimited)?;
    let [port, replica_a, replica_b] = testkit::free_ports()?;
    let values = values(&world, home, [port, replica_a, replica_b]);
    let unwritable = |err: std::io::Error| format!("cannot write `{}`: {err}", home.display());
    fs::create_dir_all(home).map_err(unwritable)?;
    make_public(home).map_err(unwritable)?;
    let configuration = gateway.configuration(deployment, &values);
    fs::write(home.join("gateway.conf"), configuration).map_err(unwritable)?;
    let log = File::create(home.join("log")).map_err(unwritable)?;
    let mut command = Command::new(&gateway.program);
    command.args(gateway.arguments(&values)).current_dir(home);
    command.stdout(log.try_clone().map_err(unwritable)?).stderr(log);
    let _listening = target::start_listening(&mut command, port)?;
    let keys = Keys { live: &world.live_key, test: &world.test_key };
    let mut check = target::check_command(&servers.program, port, keys, &WITHOUT);
    check.args(["--allow-writes", "--format", "json"]).current_dir(home);
    check.env("CHARGEPROOF_SECOND_KEY", &world.second_key).env("CHARGEPROOF_REVOKED_KEY", &world.revoked_key);
    check.env("CHARGEPROOF_OTHER_ACCOUNT_KEY", &world.other_account_key);
    if !deployment.has_burst() {
        check.arg("--quick");
    }
    let output = output(&mut check)?;
    let report = serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("the check failed: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((report, output.status.code().unwrap_or(-1)))
}

/// Returns the values for the template.
fn values(world: &BranchedWorld, home: &Path, ports: [u16; 3]) -> BTreeMap<&'static str, String> {
    let [port, replica_a, replica_b] = ports.map(|port| port.to_string());
    BTreeMap::from([
        ("home", home.display().to_string()),
        ("port", port),
        ("replica_a", replica_a),
        ("replica_b", replica_b),
        ("reference", world.address.to_string()),
        ("reference_port", world.address.port().to_string()),
        ("test_key", world.test_key.clone()),
        ("revoked_key", world.revoked_key.clone()),
    ])
}

/// Makes the directory writable for a gateway that drops its privileges (Unix only).
fn make_public(home: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    fs::set_permissions(home, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    Ok(())
}

/// Returns the statements of a report with one of these verdicts.
fn statements<'a>(report: &'a Value, verdicts: &'a [&str]) -> impl Iterator<Item = &'a Value> {
    let all = report["statements"].as_array().into_iter().flatten();
    all.filter(move |statement| {
        statement["verdict"].as_str().is_some_and(|verdict| verdicts.contains(&verdict))
    })
}

fn statement_ids(report: &Value, verdicts: &[&str]) -> Vec<String> {
    statements(report, verdicts).filter_map(|statement| statement["id"].as_str()).map(str::to_owned).collect()
}

/// Returns the exit code and the statements that explain it, one per line.
fn explain_exit_code(report: &Value, code: i32) -> String {
    let mut lines = vec![format!("exit code {code}")];
    for statement in statements(report, &["fail", "warn", "not_judged"]) {
        let mut line =
            format!("  {} {}:", statement["verdict"].as_str().unwrap_or_default(), statement["id"]);
        for name in ["expected", "actual", "because", "target"] {
            if let Some(text) = statement[name].as_str() {
                line.push_str(&format!(" {name} `{text}`"));
            }
        }
        lines.push(line);
    }
    lines.join("\n")
}

/// Returns the last lines of a gateway's output and of its error log.
fn log_tail(home: &Path) -> String {
    let texts = ["log", "error.log"].map(|name| fs::read_to_string(home.join(name)).unwrap_or_default());
    let lines: Vec<_> = texts.iter().flat_map(|text| text.lines()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
