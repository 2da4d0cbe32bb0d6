//! The npm package: a launcher, and beside it a package with the program of this platform.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::{Build, copy, trial, write};
use crate::tools::{fresh, is_there, node_program, npm as npm_program, succeeds};

/// Node's names of the platforms that programs are published for: `process.platform`, `process.arch`.
const PLATFORMS: [(&str, &str); 5] =
    [("linux", "x64"), ("linux", "arm64"), ("darwin", "x64"), ("darwin", "arm64"), ("win32", "x64")];
const LAUNCHER: &str = "chargeproof.js";

/// Makes both packages, installs them into an empty directory and tries the command.
pub(super) fn make(build: &Build) -> Result<(), String> {
    println!("==> npm packages");
    if !is_there("node") || !is_there(&npm_program()) {
        println!("skipped: node and npm are not installed");
        return Ok(());
    }
    let (os, cpu) = node_platform()?;
    let stage = build.room("npm")?;
    let (launcher, native) = (stage.join("launcher"), stage.join("native"));
    fresh(&launcher)?;
    fresh(&native)?;

    copy(&build.root.join("conformance/cli/npm").join(LAUNCHER), &launcher.join(LAUNCHER))?;
    copy(&build.root.join("README.md"), &launcher.join("README.md"))?;
    let all = PLATFORMS.iter().map(|(os, cpu)| (native_name(os, cpu), json!(build.version)));
    let mut manifest = manifest("chargeproof", &build.version);
    manifest["bin"] = json!({ "chargeproof": LAUNCHER });
    manifest["engines"] = json!({ "node": ">=18" });
    manifest["optionalDependencies"] = Value::Object(all.collect());
    write(&launcher.join("package.json"), manifest.to_string())?;

    let program = build.program.file_name().ok_or("a program without a name")?;
    copy(&build.program, &native.join(program))?;
    let mut manifest = self::manifest(&native_name(&os, &cpu), &build.version);
    manifest["os"] = json!([os]);
    manifest["cpu"] = json!([cpu]);
    write(&native.join("package.json"), manifest.to_string())?;

    for text in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&build.root.join(text), &launcher.join(text))?;
        copy(&build.root.join(text), &native.join(text))?;
    }
    let pack = |directory: &Path| {
        npm(Command::new(npm_program()).arg("pack").arg(directory).arg("--pack-destination").arg(&build.out))
    };
    pack(&launcher)?;
    pack(&native)?;

    let prefix = build.room("trial-npm")?;
    let packed = |name: &str| build.out.join(format!("{name}-{}.tgz", build.version));
    npm(Command::new(npm_program())
        .args(["install", "--no-fund", "--no-audit", "--prefix"])
        .arg(&prefix)
        .arg(packed(&format!("chargeproof-{os}-{cpu}")))
        .arg(packed("chargeproof")))?;
    let launcher = node_program(&prefix, "chargeproof");
    trial::judge_built_in(&launcher, &prefix)?;
    if cfg!(unix) { trial::serves_until_told(&launcher, &prefix) } else { Ok(()) }
}

fn native_name(os: &str, cpu: &str) -> String {
    format!("@chargeproof/{os}-{cpu}")
}

fn manifest(name: &str, version: &str) -> Value {
    json!({
        "name": name,
        "version": version,
        "description": "Reference server, simulator and conformance suite for the crypto payment service API",
        "license": "MIT OR Apache-2.0",
    })
}

fn npm(command: &mut Command) -> Result<(), String> {
    if succeeds(command.args(["--loglevel", "error"]))? { Ok(()) } else { Err(format!("{command:?} failed")) }
}

/// Returns Node's name of this platform.
fn node_platform() -> Result<(String, String), String> {
    let output = Command::new("node")
        .args(["--print", "process.platform + ' ' + process.arch"])
        .output()
        .map_err(|err| format!("cannot start node: {err}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (os, cpu) = said.trim().split_once(' ').ok_or("node does not name its platform")?;
    Ok((os.to_owned(), cpu.to_owned()))
}
