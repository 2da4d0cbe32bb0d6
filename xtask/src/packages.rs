//! The package graph, as cargo sees it.
//!
//! `cargo metadata` knows the workspace. What is shipped comes from `cargo tree`: metadata also lists
//! optional dependencies which only a weak feature (`rand?/std`) mentions and which nothing builds.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;

/// The platform whose dependencies are judged. One for every machine, so that all agree.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The program that users install.
const PROGRAM: &str = "chargeproof";

/// The packages of this workspace.
#[derive(Deserialize)]
pub(crate) struct Workspace {
    packages: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// A dependency of one member of the workspace on another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inside {
    /// Who depends.
    pub(crate) from: String,
    /// On whom.
    pub(crate) on: String,
    /// Whether only tests, benches and examples do.
    pub(crate) dev_only: bool,
}

/// A package of others that the program needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shipped {
    /// Its name in the registry.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Its licence as an SPDX expression; empty if it states none.
    pub(crate) licence: String,
}

/// How far from the program a package may stand.
#[derive(Clone, Copy)]
pub(crate) enum Reach {
    /// Its code is in the program.
    Linked,
    /// It is in the program or helps to build it: macros and build scripts too.
    Built,
}

impl Workspace {
    /// Asks cargo.
    pub(crate) fn load(root: &Path) -> Result<Workspace, String> {
        let answer = ask(cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
        serde_json::from_str(&answer).map_err(|err| format!("`cargo metadata` answers oddly: {err}"))
    }

    /// The names of the packages.
    pub(crate) fn members(&self) -> BTreeSet<&str> {
        self.packages.iter().map(|it| it.name.as_str()).collect()
    }

    /// Who depends on whom.
    pub(crate) fn inside(&self) -> BTreeSet<Inside> {
        let members = self.members();
        let of = |member: &Member| -> Vec<Inside> {
            let own = member.dependencies.iter().filter(|on| members.contains(on.name.as_str()));
            own.map(|on| Inside {
                from: member.name.clone(),
                on: on.name.clone(),
                dev_only: on.kind.as_deref() == Some("dev"),
            })
            .collect()
        };
        self.packages.iter().flat_map(of).collect()
    }
}

/// The packages of others within reach of the program, by name and version.
pub(crate) fn shipped(root: &Path, reach: Reach) -> Result<BTreeSet<Shipped>, String> {
    let edges = match reach {
        Reach::Linked => "normal,no-proc-macro",
        Reach::Built => "normal,build",
    };
    let answer = ask(cargo(root)
        .args(["tree", "--locked", "--package", PROGRAM, "--edges", edges, "--target", PLATFORM])
        .args(["--prefix", "none", "--format", "{p}|{l}"]))?;
    let workspace = Workspace::load(root)?;
    read_tree(&answer, &workspace.members())
}

fn read_tree(answer: &str, members: &BTreeSet<&str>) -> Result<BTreeSet<Shipped>, String> {
    let mut shipped = BTreeSet::new();
    for line in answer.lines() {
        // `name v1.2.3 (proc-macro)|MIT (*)`: the star marks a package seen before.
        let read = || {
            let (package, licence) = line.strip_suffix(" (*)").unwrap_or(line).split_once('|')?;
            let mut words = package.split(' ');
            let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
            Some(Shipped { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() })
        };
        let package = read().ok_or_else(|| format!("`cargo tree` answers oddly: `{line}`"))?;
        if !members.contains(package.name.as_str()) {
            shipped.insert(package);
        }
    }
    Ok(shipped)
}

fn ask(command: &mut Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|err| format!("cannot start {command:?}: {err}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{command:?} answers with other bytes than UTF-8"))
}

/// The cargo that started this task, in the directory of the workspace.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_tree(answer: &str, expected: &str) {
        let verdict = match read_tree(answer, &BTreeSet::from(["chargeproof", "reference-core"])) {
            Ok(shipped) => {
                let lines: Vec<String> = shipped
                    .into_iter()
                    .map(|it| format!("{} {}: {}", it.name, it.version, it.licence))
                    .collect();
                lines.join("; ")
            }
            Err(message) => message,
        };
        assert_eq!(verdict, expected);
    }

    #[test]
    fn a_tree_is_read_without_our_own_packages() {
        check_tree(
            "chargeproof v0.1.0 (/somewhere)|MIT OR Apache-2.0\n\
             reference-core v0.1.0 (/somewhere/core)|MIT OR Apache-2.0 (*)\n\
             serde v1.0.229|MIT OR Apache-2.0\n\
             serde_derive v1.0.229 (proc-macro)|MIT OR Apache-2.0\n\
             ring v0.17.14|Apache-2.0 AND ISC (*)\n\
             serde v1.0.229|MIT OR Apache-2.0 (*)\n\
             mute v0.1.0|\n",
            "mute 0.1.0: ; ring 0.17.14: Apache-2.0 AND ISC; serde 1.0.229: MIT OR Apache-2.0; \
             serde_derive 1.0.229: MIT OR Apache-2.0",
        );
    }

    #[test]
    fn a_tree_that_cannot_be_read_is_not_skipped() {
        check_tree("serde 1.0.229|MIT", "`cargo tree` answers oddly: `serde 1.0.229|MIT`");
        check_tree("serde v1.0.229", "`cargo tree` answers oddly: `serde v1.0.229`");
    }

    #[test]
    fn an_edge_inside_the_workspace_knows_whether_it_is_for_tests() {
        let workspace: Workspace = serde_json::from_str(
            r#"{ "packages": [
                { "name": "simulator", "dependencies": [
                    { "name": "reference-core", "kind": null },
                    { "name": "reference-core", "kind": "dev" },
                    { "name": "serde", "kind": null }
                ] },
                { "name": "reference-core", "dependencies": [] }
            ] }"#,
        )
        .expect("what cargo answers");
        let edge = |dev_only| Inside { from: "simulator".into(), on: "reference-core".into(), dev_only };
        assert_eq!(workspace.inside(), BTreeSet::from([edge(false), edge(true)]));
    }
}
