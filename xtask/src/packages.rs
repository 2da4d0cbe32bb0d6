//! [`Workspace`]: the packages of this workspace, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// The packages of this workspace.
#[derive(Deserialize)]
pub(crate) struct Workspace {
    packages: Vec<Member>,
    /// The target directory of cargo: `target`, or the one set by CARGO_TARGET_DIR or a configuration.
    #[serde(default)]
    pub(crate) target_directory: PathBuf,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    #[serde(default)]
    version: String,
    dependencies: Vec<Dependency>,
    #[serde(default)]
    targets: Vec<Target>,
    #[serde(default)]
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// A dependency of one member of the workspace on another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkspaceDependency {
    /// The dependent package.
    pub(crate) from: String,
    /// The dependency.
    pub(crate) on: String,
    /// `true` for a dev-dependency, which only tests, benches and examples use.
    pub(crate) dev_only: bool,
}

impl Workspace {
    /// Loads the packages from cargo.
    pub(crate) fn load(root: &Path) -> Result<Workspace, String> {
        let metadata = stdout_of(cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        serde_json::from_str(&metadata)
            .map_err(|err| format!("cannot parse the output of `cargo metadata`: {err}"))
    }

    /// Returns the names of the packages.
    pub(crate) fn members(&self) -> BTreeSet<&str> {
        self.packages.iter().map(|package| package.name.as_str()).collect()
    }

    /// Returns the version of a package.
    pub(crate) fn version(&self, name: &str) -> Option<&str> {
        self.packages.iter().find(|package| package.name == name).map(|package| package.version.as_str())
    }

    /// Returns for each package the root files of its library and its programs.
    pub(crate) fn crates(&self) -> BTreeMap<&str, Vec<&Path>> {
        let is_crate = |target: &&Target| target.kind.iter().any(|kind| kind == "lib" || kind == "bin");
        self.packages
            .iter()
            .map(|package| {
                let roots = package.targets.iter().filter(is_crate).map(|target| target.src_path.as_path());
                (package.name.as_str(), roots.collect())
            })
            .collect()
    }

    /// Returns the directories of a package and of all packages of the workspace that it depends on, also for its tests.
    pub(crate) fn directories_with_dependencies(&self, name: &str) -> BTreeSet<&Path> {
        let dependencies = self.workspace_dependencies();
        let (mut names, mut new) = (BTreeSet::new(), vec![name]);
        while let Some(name) = new.pop() {
            if names.insert(name) {
                let of_name = dependencies.iter().filter(|dependency| dependency.from == name);
                new.extend(of_name.map(|dependency| dependency.on.as_str()));
            }
        }
        let packages = self.packages.iter().filter(|package| names.contains(package.name.as_str()));
        packages.filter_map(|package| package.manifest_path.parent()).collect()
    }

    /// Returns the dependencies inside the workspace.
    pub(crate) fn workspace_dependencies(&self) -> BTreeSet<WorkspaceDependency> {
        let members = self.members();
        let dependencies_of = |member: &Member| -> Vec<WorkspaceDependency> {
            let is_member = |dependency: &&Dependency| members.contains(dependency.name.as_str());
            let inside = member.dependencies.iter().filter(is_member);
            inside
                .map(|dependency| WorkspaceDependency {
                    from: member.name.clone(),
                    on: dependency.name.clone(),
                    dev_only: dependency.kind.as_deref() == Some("dev"),
                })
                .collect()
        };
        self.packages.iter().flat_map(dependencies_of).collect()
    }
}

/// Runs a command, which must succeed, and returns its standard output.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|err| format!("cannot start {command:?}: {err}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("the output of {command:?} is not UTF-8"))
}

/// Returns a command for the cargo that started this task, in the directory of the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    without_package_env(command)
}

/// Removes the variables about this package from a command. `cargo run` sets them for its program; build scripts that
/// read them would run again, and everything that depends on them would be rebuilt.
pub(crate) fn without_package_env(mut command: Command) -> Command {
    for (name, _) in env::vars_os() {
        let is_set_by_cargo = name.to_str().is_some_and(|variable| {
            variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
        });
        if is_set_by_cargo {
            command.env_remove(name);
        }
    }
    command
}

/// Returns the default target of the compiler, such as `x86_64-unknown-linux-gnu`.
pub(crate) fn host_platform() -> Result<String, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = stdout_of(Command::new(rustc).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` has no line `host:`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_inside_the_workspace_are_found() {
        let workspace: Workspace = serde_json::from_str(
            r#"{ "packages": [
                { "name": "simulator", "dependencies": [
                    { "name": "reference-core", "kind": null },
                    { "name": "reference-core", "kind": "dev" },
                    { "name": "serde", "kind": null }
                ], "manifest_path": "/w/simulator/Cargo.toml" },
                { "name": "reference-core", "dependencies": [], "manifest_path": "/w/reference/core/Cargo.toml" }
            ] }"#,
        )
        .expect("the metadata is valid");
        let edge = |dev_only| WorkspaceDependency {
            from: "simulator".into(),
            on: "reference-core".into(),
            dev_only,
        };
        assert_eq!(workspace.workspace_dependencies(), BTreeSet::from([edge(false), edge(true)]));
        let [simulator, core] = ["/w/simulator", "/w/reference/core"].map(Path::new);
        assert_eq!(workspace.directories_with_dependencies("simulator"), BTreeSet::from([simulator, core]));
        assert_eq!(workspace.directories_with_dependencies("reference-core"), BTreeSet::from([core]));
    }
}
