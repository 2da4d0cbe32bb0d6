//! `cargo xtask hostile`: fuzzes a target of the package `hostile` with libFuzzer.
//!
//! Requires a C++ compiler, but neither cargo-fuzz nor a nightly compiler, because the flags that cargo-fuzz sets
//! work on stable. The build has its own directory, because all packages are built with these flags.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use clap::{Args, value_parser};

use crate::packages::{cargo, host_platform};

/// The flags for coverage counters and traced comparisons, as libFuzzer reads them.
const FLAGS: &str = "\
-Cpasses=sancov-module \
-Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares \
-Cdebug-assertions=on \
--cfg fuzzing \
--cap-lints allow";
/// The maximum time and memory for one input. An input that exceeds them is a finding.
const SECONDS_MAX: u32 = 10;
const MEGABYTES_MAX: u32 = 2048;

/// The options of the task.
#[derive(Args)]
#[command(
    after_help = "The corpus grows in target/hostile/learned/TARGET, and the next run starts with it. An input that \
violates a property is written to target/hostile/found/TARGET. Needs a C++ compiler, for libFuzzer.\n\n\
exit code: 0 no finding, 1 at least one finding, 2 fuzzing failed"
)]
pub(crate) struct HostileOptions {
    /// The target to fuzz
    #[arg(required_unless_present = "list")]
    target: Option<String>,
    /// Lists the targets
    #[arg(long)]
    list: bool,
    /// The duration of the run, such as 90s, 5m or 1h, up to 48h
    #[arg(long = "for", value_name = "SPAN", default_value = "60s", value_parser = parse_duration)]
    seconds: u64,
    /// The number of processes, which share their corpus
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=256))]
    jobs: u32,
}

/// Parses `90s`, `5m` or `1h` as seconds.
fn parse_duration(text: &str) -> Result<u64, String> {
    let units = [('s', 1), ('m', 60), ('h', 3600)];
    let number_and_unit = units.iter().find_map(|(suffix, unit)| Some((text.strip_suffix(*suffix)?, unit)));
    let seconds = number_and_unit.and_then(|(number, unit)| number.parse::<u64>().ok()?.checked_mul(*unit));
    let seconds = seconds.filter(|seconds| (1..=48 * 3600).contains(seconds));
    seconds.ok_or_else(|| "the value must be a duration such as 90s, 5m or 1h, from 1s to 48h".to_owned())
}

/// Lists the targets or fuzzes one. Returns `true` if there are no new findings.
pub(crate) fn run(root: &Path, options: &HostileOptions) -> Result<bool, String> {
    let targets = targets(root)?;
    let HostileOptions { target: Some(target), list: false, seconds, jobs } = options else {
        println!("{}", targets.join("\n"));
        return Ok(true);
    };
    if !targets.contains(target) {
        return Err(format!("`{target}` is not a target; targets: {}", targets.join(", ")));
    }
    let program = build(root)?;
    let directory_of = |kind: &str| root.join("target/hostile").join(kind).join(target);
    let (corpus, found) = (directory_of("learned"), directory_of("found"));
    for directory in [&corpus, &found] {
        fs::create_dir_all(directory)
            .map_err(|err| format!("cannot make `{}`: {err}", directory.display()))?;
    }
    let started = SystemTime::now();
    let mut fuzzer = Command::new(program);
    fuzzer.current_dir(root).env("HOSTILE_TARGET", target).arg(&corpus).args(seeds(root, target)?);
    fuzzer.arg(format!("-artifact_prefix={}/", found.display()));
    fuzzer.arg(format!("-max_total_time={seconds}"));
    fuzzer.args([format!("-timeout={SECONDS_MAX}"), format!("-rss_limit_mb={MEGABYTES_MAX}")]);
    fuzzer.args(["-print_final_stats=1", "-reload=1"]);
    if *jobs > 1 {
        fuzzer.arg(format!("-fork={jobs}"));
    }
    let status = fuzzer.status().map_err(|err| format!("cannot start {fuzzer:?}: {err}"))?;
    // A finding of an earlier run that occurs again is rewritten, so its time changes.
    let is_new = |file: &PathBuf| {
        fs::metadata(file).and_then(|metadata| metadata.modified()).is_ok_and(|modified| modified >= started)
    };
    let new_findings: Vec<PathBuf> = entries(&found)?.into_iter().filter(is_new).collect();
    if new_findings.is_empty() {
        // Without a finding, an error means that fuzzing failed.
        return if status.success() { Ok(true) } else { Err(format!("libFuzzer ended with {status}")) };
    }
    for file in &new_findings {
        let file = file.strip_prefix(root).unwrap_or(file).display();
        println!("\nfound   {file}\nreplay  cargo run -p hostile -- {target} {file}");
    }
    println!("\nfix the bug, then add the input as conformance/hostile/corpus/{target}/<description>");
    Ok(false)
}

/// Returns the names of the targets, from the directories of their corpora, so that nothing has to be built. A test
/// of the package `hostile` compares both.
fn targets(root: &Path) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = entries(&root.join("conformance/hostile/corpus"))?
        .iter()
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Returns the directories with the initial inputs of a target, besides those found by earlier runs.
fn seeds(root: &Path, target: &str) -> Result<Vec<PathBuf>, String> {
    let mut seeds = vec![root.join("conformance/hostile/corpus").join(target)];
    if target == "scenario" {
        // The directories with scenarios, without the README and the schema beside them.
        seeds.extend(entries(&root.join("scenarios"))?.into_iter().filter(|path| path.is_dir()));
        seeds.sort();
    }
    Ok(seeds)
}

/// Returns the paths of the files and directories in a directory.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let unread = |err| format!("cannot read `{}`: {err}", directory.display());
    let listed = fs::read_dir(directory).map_err(unread)?;
    listed.map(|entry| entry.map(|entry| entry.path()).map_err(unread)).collect()
}

/// Builds the targets. With an explicit `--target`, cargo does not apply the flags to build scripts and macros.
fn build(root: &Path) -> Result<PathBuf, String> {
    let platform = host_platform()?;
    let directory = root.join("target/hostile");
    let mut build = cargo(root);
    build.args(["build", "--locked", "--release", "--package", "hostile", "--target", &platform]);
    build.arg("--target-dir").arg(&directory);
    build.env("RUSTFLAGS", FLAGS).env_remove("CARGO_ENCODED_RUSTFLAGS");
    let status = build.status().map_err(|err| format!("cannot start {build:?}: {err}"))?;
    if !status.success() {
        return Err(format!("{build:?} ended with {status}"));
    }
    Ok(directory.join(platform).join("release/hostile"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_parsed_as_seconds() {
        for (text, seconds) in [("90s", Some(90)), ("5m", Some(300)), ("48h", Some(172_800))] {
            assert_eq!(parse_duration(text).ok(), seconds, "{text}");
        }
        for text in ["0s", "5", "49h", "m", "-1s"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
