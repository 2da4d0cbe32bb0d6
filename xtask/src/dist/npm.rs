//! The npm packages: a launcher, and a package with the program of this platform.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Build, trial};
use crate::sources;
use crate::tools::{copy, create_empty_dir, is_installed, node_program, npm_program, read, succeeds, write};
use crate::worlds;

/// Node's names of the supported platforms: `process.platform`, `process.arch`.
const PLATFORMS: [(&str, &str); 5] =
    [("linux", "x64"), ("linux", "arm64"), ("darwin", "x64"), ("darwin", "arm64"), ("win32", "x64")];
/// The fields of the manifest that are copied into the package with the program.
const PROGRAM_FIELDS: [&str; 7] =
    ["version", "description", "license", "keywords", "repository", "homepage", "bugs"];

/// Creates both packages, installs them into an empty directory, and tests the command and the fixtures.
pub(super) fn build_and_try(build: &Build) -> Result<(), String> {
    println!("==> npm packages");
    if !is_installed("node") || !is_installed(&npm_program()) {
        println!("skipped: node and npm are not installed");
        return Ok(());
    }
    let (os, cpu) = node_platform()?;
    let stage = build.work_directory("npm")?;
    let (launcher, native) = (stage.join("launcher"), stage.join("native"));
    create_empty_dir(&launcher)?;
    create_empty_dir(&native)?;

    sources::write_npm_package(build.root, &launcher)?;
    let native_packages = PLATFORMS.iter().map(|(os, cpu)| (native_name(os, cpu), json!(build.version)));
    let mut manifest = read_manifest(build)?;
    manifest["optionalDependencies"] = Value::Object(native_packages.collect());
    write(&launcher.join("package.json"), format!("{manifest:#}"))?;

    let program = build.program.file_name().ok_or("the program has no file name")?;
    copy(&build.program, &native.join(program))?;
    let mut manifest = read_manifest(build)?;
    if let Some(fields) = manifest.as_object_mut() {
        fields.retain(|field, _| PROGRAM_FIELDS.contains(&field.as_str()));
    }
    manifest["name"] = json!(native_name(&os, &cpu));
    manifest["description"] = json!(format!("The program of the package chargeproof for {os}-{cpu}"));
    manifest["os"] = json!([os]);
    manifest["cpu"] = json!([cpu]);
    write(&native.join("package.json"), format!("{manifest:#}"))?;

    for package in [&launcher, &native] {
        build.write_common_files(package)?;
    }
    let pack = |directory: &Path| {
        run_npm(
            Command::new(npm_program())
                .arg("pack")
                .arg(directory)
                .arg("--pack-destination")
                .arg(&build.output_dir),
        )
    };
    pack(&launcher)?;
    pack(&native)?;

    let prefix = build.work_directory("trial-npm")?;
    let packed = |name: &str| build.output_dir.join(format!("{name}-{}.tgz", build.version));
    run_npm(
        Command::new(npm_program())
            .args(["install", "--no-fund", "--no-audit", "--prefix"])
            .arg(&prefix)
            .arg(packed(&format!("chargeproof-{os}-{cpu}")))
            .arg(packed("chargeproof")),
    )?;
    let launcher = node_program(&prefix, "chargeproof");
    trial::check_built_in_server(&launcher, &prefix)?;
    if cfg!(unix) {
        trial::check_server_stops_with_launcher(&launcher, &prefix)?;
    }
    try_fixtures(build, &prefix)
}

/// Runs the tests of the guide with the installed package, and checks its type declarations.
fn try_fixtures(build: &Build, prefix: &Path) -> Result<(), String> {
    run_npm(
        Command::new(npm_program())
            .args(["install", "--no-fund", "--no-audit", "--prefix"])
            .arg(prefix)
            .args(worlds::VITEST),
    )?;
    for (suite, mut command) in worlds::node_suites(build.root, prefix)? {
        if !succeeds(&mut command)? {
            return Err(format!("the tests of {suite} fail with the installed package"));
        }
    }
    Ok(())
}

/// Returns the name of the package with the program of a platform.
fn native_name(os: &str, cpu: &str) -> String {
    format!("@chargeproof/{os}-{cpu}")
}

/// Returns the manifest of the launcher, with the version and the URLs of the repository.
fn read_manifest(build: &Build) -> Result<Value, String> {
    let file = build.root.join("conformance/cli/npm/package.json");
    let mut manifest: Value = serde_json::from_str(&read(&file)?)
        .map_err(|err| format!("`{}` is not JSON: {err}", file.display()))?;
    manifest["version"] = json!(build.version);
    if let Some(repository) = &build.repository {
        manifest["repository"] = json!({ "type": "git", "url": format!("git+{repository}.git") });
        manifest["homepage"] = json!(format!("{repository}#readme"));
        manifest["bugs"] = json!(format!("{repository}/issues"));
    }
    Ok(manifest)
}

fn run_npm(command: &mut Command) -> Result<(), String> {
    if succeeds(command.args(["--loglevel", "error"]))? { Ok(()) } else { Err(format!("{command:?} failed")) }
}

/// Returns Node's name of this platform.
fn node_platform() -> Result<(String, String), String> {
    let output = Command::new("node")
        .args(["--print", "process.platform + ' ' + process.arch"])
        .output()
        .map_err(|err| format!("cannot start node: {err}"))?;
    let platform = String::from_utf8_lossy(&output.stdout).into_owned();
    let (os, cpu) = platform.trim().split_once(' ').ok_or("node does not print its platform")?;
    Ok((os.to_owned(), cpu.to_owned()))
}
