//! `cargo xtask fleet`: tests the files of `simulator/fleet`.
//!
//! The files for Kubernetes and GitHub are validated against their schemas. The script for Slurm runs a sweep on
//! two Slurm nodes of this machine. During the sweep, one node is killed together with its job steps, then the
//! controller. The merged result must equal that of one process.
//!
//! Installs nothing in the system; prints the names of missing Debian packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::served;
use crate::tools::{self, succeeds};

/// The validators, which include the schemas.
const VALIDATORS: [&str; 2] = ["check-jsonschema==0.39.0", "kubernetes-validate==1.37.0"];

/// The required programs, and their packages.
const SLURM_PROGRAMS: [(&str, &str); 5] = [
    ("munged", "munge"),
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("sbatch", "slurm-client"),
    ("squeue", "slurm-client"),
];
const NODES: [&str; 2] = ["a", "b"];
/// The value of `--night`, from which the first seed is derived.
const NIGHT: &str = "fleet";
/// The number of tasks, each of which sweeps a part of the seeds.
const SHARDS: u32 = 8;
/// Enough seeds that the first tasks are still running when a node is killed.
const SEEDS: u32 = 160;
/// The timeout of each wait; all tasks together take less.
const TIMEOUT: Duration = Duration::from_secs(1_800);
/// The fields of a sweep's result that must not depend on the number of processes.
const COMPARED: [&str; 8] = ["seeds", "events", "posts", "checks", "digests", "failures", "matrix", "gaps"];

/// Runs all tests. Returns `true` if the files are valid and the merged result is that of one process.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    println!("==> Kubernetes and GitHub");
    let is_valid = validate(root)?;
    println!("==> Slurm");
    Ok(slurm(root)? && is_valid)
}

/// Checks the files against their schemas.
fn validate(root: &Path) -> Result<bool, String> {
    let programs = tools::install_python_packages(&root.join("target/validators"), &VALIDATORS)?;
    let file = |name| root.join("simulator/fleet").join(name);
    let mut github = Command::new(programs.join("check-jsonschema"));
    github.args(["--builtin-schema", "vendor.github-workflows"]).arg(file("github.yaml"));
    let mut kubernetes = Command::new(programs.join("kubernetes-validate"));
    kubernetes.arg("--strict").arg(file("kubernetes.yaml"));
    Ok(succeeds(&mut github)? & succeeds(&mut kubernetes)?)
}

/// Runs the sweep on the cluster, with the kills. Returns `true` if the merged result equals that of one process.
fn slurm(root: &Path) -> Result<bool, String> {
    let missing: Vec<&str> =
        SLURM_PROGRAMS.iter().filter(|(name, _)| !is_installed(name)).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        return Err(format!(
            "Slurm is not installed: install Debian's packages {} (apt-get install --no-install-recommends) as root",
            missing.join(", ")
        ));
    }
    let program = served::build(root)?;
    let home = root.join("target/fleet");
    let _ = fs::remove_dir_all(&home);
    let mut cluster = Cluster::start(&home, program.parent().ok_or("the program has no directory")?)?;
    cluster.wait_until("both nodes are idle", |cluster| {
        Ok(cluster.run_program("sinfo", &["-h", "-N", "-o", "%t"])? == "idle\nidle")
    })?;
    let (array, script) = (format!("--array=1-{SHARDS}"), root.join("simulator/fleet/slurm.sh"));
    let script = script.display().to_string();
    println!("{}", cluster.run_program("sbatch", &[&array, "--cpus-per-task=1", &script])?);
    cluster.wait_until("tasks run on both nodes", |cluster| {
        Ok(NODES.iter().all(|node| !cluster.step_processes(node).is_empty()))
    })?;
    let step_pids = cluster.step_processes("b");
    cluster.kill("b")?;
    for pid in &step_pids {
        // The process may have just ended.
        let _ = testkit::signal(*pid, "KILL");
    }
    println!("killed node b and {} processes of its steps", step_pids.len());
    cluster.kill("slurmctld")?;
    cluster.start_controller()?;
    cluster.start_node("b")?;
    println!("killed the controller; restarted it and node b");
    cluster.wait_until("every task has ended", |cluster| {
        Ok(cluster.run_program("squeue", &["-h"])?.is_empty())
    })?;
    let shards = home.join("shards");
    let mut merged = merge_shards(&program, &shards)?;
    for shard in merged["missing"].as_array().cloned().unwrap_or_default() {
        println!("missing shard, repeated here: {shard}");
    }
    if merged["missing"].as_array().is_some_and(|missing| !missing.is_empty()) {
        for shard in (1..=SHARDS).filter(|shard| !shards.join(format!("{shard}.json")).exists()) {
            let part = format!("{shard}/{SHARDS}");
            let out = shards.join(format!("{shard}.json")).display().to_string();
            sweep(&program, &home, &["--shard", &part, "--out", &out])?;
        }
        merged = merge_shards(&program, &shards)?;
    }
    let single_process = sweep(&program, &home, &[])?;
    let differing: Vec<&str> =
        COMPARED.into_iter().filter(|key| merged[*key] != single_process[*key]).collect();
    for key in &differing {
        println!("{key} differs: {} merged, {} in one process", merged[*key], single_process[*key]);
    }
    let is_complete = merged["missing"].as_array().is_some_and(Vec::is_empty);
    println!(
        "{} worlds in {SHARDS} shards, {} events: {}",
        merged["seeds"], merged["events"], single_process["result"]
    );
    Ok(differing.is_empty() && is_complete)
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-V").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Without a cluster some programs fail although they are installed.
    command.status().is_ok()
}

/// Runs the sweep in one process: all seeds, or the shard that `options` select.
fn sweep(program: &Path, home: &Path, options: &[&str]) -> Result<Value, String> {
    let seeds = SEEDS.to_string();
    let mut command = Command::new(program);
    command.args(["sweep", "--night", NIGHT, "--seeds", &seeds, "--format", "json"]).args(options);
    command.arg("--save").arg(home.join("failures"));
    json_output(&mut command)
}

fn merge_shards(program: &Path, shards: &Path) -> Result<Value, String> {
    let files = fs::read_dir(shards).map_err(|error| format!("no task wrote a result: {error}"))?;
    let files = files.filter_map(|entry| Some(entry.ok()?.path()));
    let files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect();
    let mut command = Command::new(program);
    command.args(["sweep", "merge", "--format", "json", "--save"]).arg(shards).args(files);
    json_output(&mut command)
}

fn json_output(command: &mut Command) -> Result<Value, String> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{command:?} did not print JSON: {error}"))
}

/// The daemons of two nodes and of their controller, on the loopback interface. Killed on drop.
struct Cluster {
    home: PathBuf,
    /// The search path, with the directory of the program first.
    path: String,
    daemons: Vec<(&'static str, Child)>,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.run_program("scancel", &["--me"]);
        for (_, process) in &mut self.daemons {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Cluster {
    fn start(home: &Path, programs: &Path) -> Result<Cluster, String> {
        let unwritable = |error: std::io::Error| format!("cannot write `{}`: {error}", home.display());
        for directory in ["state", "spool-a", "spool-b", "munge"] {
            fs::create_dir_all(home.join(directory)).map_err(unwritable)?;
        }
        fs::write(home.join("slurm.conf"), settings(home)?).map_err(unwritable)?;
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
        let mut cluster = Cluster { home: home.to_owned(), path, daemons: Vec::new() };
        let munge_file = |name: &str| home.join("munge").join(name).display().to_string();
        cluster.run_program("mungekey", &["--create", "--keyfile", &munge_file("key")])?;
        let options = [
            ("key-file", "key"),
            ("socket", "socket"),
            ("pid-file", "pid"),
            ("log-file", "log"),
            ("seed-file", "seed"),
        ];
        let options = options.map(|(option, name)| format!("--{option}={}", munge_file(name)));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        cluster.start_daemon("munged", "munged", &[&["--foreground", "--force"], &options[..]].concat())?;
        cluster.wait_until("munged listens", |cluster| Ok(cluster.home.join("munge/socket").exists()))?;
        cluster.start_controller()?;
        NODES.iter().try_for_each(|node| cluster.start_node(node))?;
        Ok(cluster)
    }

    fn start_controller(&mut self) -> Result<(), String> {
        self.start_daemon("slurmctld", "slurmctld", &["-D"])
    }

    fn start_node(&mut self, name: &'static str) -> Result<(), String> {
        self.start_daemon(name, "slurmd", &["-D", "-N", name])
    }

    fn start_daemon(&mut self, name: &'static str, program: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = self.command(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
        self.daemons.push((name, process));
        Ok(())
    }

    /// Kills the daemon with this name.
    fn kill(&mut self, name: &str) -> Result<(), String> {
        let index = self.daemons.iter().position(|(running, _)| *running == name).ok_or("no such daemon")?;
        let (_, mut process) = self.daemons.remove(index);
        process
            .kill()
            .and_then(|()| process.wait())
            .map_err(|error| format!("cannot kill {name}: {error}"))?;
        Ok(())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.home)
            .env("SLURM_CONF", self.home.join("slurm.conf"))
            .env("PATH", &self.path);
        command.env("NIGHT", NIGHT).env("SEEDS", SEEDS.to_string()).env_remove("SHARDS");
        command
    }

    /// Runs a program to completion and returns its output.
    fn run_program(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = self.command(program).args(arguments).output();
        let output = output.map_err(|error| format!("cannot start {program}: {error}"))?;
        if !output.status.success() {
            return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Polls a condition until it holds. Errors count as `false`, because commands fail while the controller starts.
    fn wait_until(
        &self,
        description: &str,
        condition: impl Fn(&Cluster) -> Result<bool, String>,
    ) -> Result<(), String> {
        let started = Instant::now();
        loop {
            match condition(self) {
                Ok(true) => return Ok(()),
                result if started.elapsed() > TIMEOUT => {
                    let reason = result.err().unwrap_or_default();
                    return Err(format!(
                        "timed out waiting until {description}; {reason} (logs: {})",
                        self.home.display()
                    ));
                }
                _ => thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// Returns the ids of the processes of job steps on a node, and of the `slurmstepd` processes above them.
    fn step_processes(&self, node: &str) -> Vec<u32> {
        let variables = [
            format!("SLURMD_NODENAME={node}"),
            format!("SLURM_CONF={}", self.home.join("slurm.conf").display()),
        ];
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            let has = |variable: &String| {
                environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
            };
            if !variables.iter().all(has) {
                continue;
            }
            found.push(pid);
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            // The fields after the name of the program are its state and its parent.
            let parent =
                stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse::<u32>().ok());
            let is_supervisor = |pid: &u32| {
                fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|name| name.starts_with("slurmstepd"))
            };
            found.extend(parent.filter(is_supervisor).filter(|pid| !found.contains(pid)));
        }
        found
    }
}

/// Returns the minimal configuration for two nodes on one machine.
fn settings(home: &Path) -> Result<String, String> {
    let output = Command::new("hostname")
        .arg("-s")
        .output()
        .map_err(|error| format!("cannot start hostname: {error}"))?;
    let host = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let ports = testkit::free_ports::<3>()?;
    let home = home.display();
    let nodes = NODES.iter().zip(&ports[1..]);
    let nodes: String = nodes
        .map(|(node, port)| {
            format!("NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2\n")
        })
        .collect();
    Ok(format!(
        "ClusterName=fleet\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={home}/munge/socket\nCredType=cred/munge\n\
         StateSaveLocation={home}/state\nSlurmdSpoolDir={home}/spool-%n\n\
         SlurmctldPidFile={home}/slurmctld.pid\nSlurmdPidFile={home}/%n.pid\n\
         SlurmctldLogFile={home}/slurmctld.log\nSlurmdLogFile={home}/%n.log\n\
         ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
         SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\nSlurmdTimeout=10\n\
         JobAcctGatherType=jobacct_gather/none\n{nodes}PartitionName=all Nodes=ALL Default=YES State=UP\n",
        ports[0]
    ))
}
