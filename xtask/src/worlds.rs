//! `cargo xtask worlds`: runs test suites in Python and JavaScript that use the fixtures of our packages, which
//! open a world for each test.
//!
//! The suites are in `xtask/worlds`; `cargo xtask dist` runs them with the installed packages, this task with the
//! sources. A suite is skipped, with a message, if its language is not installed or its registry cannot be reached.

use std::path::Path;
use std::process::Command;

use crate::served;
use crate::sources;
use crate::tools::{self, succeeds};

/// The exact packages.
pub(crate) const PYTEST: [&str; 2] = ["pytest==8.4.2", "pytest-xdist==3.8.0"];
pub(crate) const VITEST: [&str; 2] = ["vitest@3.2.4", "typescript@5.9.3"];
/// The file that TypeScript checks against the declared types.
const TYPES_FILE: &str = "types.mts";

/// Runs every suite that is not skipped. Returns `true` if each passed.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let program = served::build(root)?;
    let home = root.join("target/worlds");
    let mut all_passed = true;
    for (language, suites) in
        [("Python", python(root, &home.join("pytest"))), ("JavaScript", node(root, &home.join("vitest")))]
    {
        match suites {
            Err(reason) => println!("==> {language}\nskipped: {reason}"),
            Ok(suites) => {
                for (name, mut command) in suites {
                    println!("==> {name}");
                    all_passed &= succeeds(command.env("CHARGEPROOF_PROGRAM", &program))?;
                }
            }
        }
    }
    Ok(all_passed)
}

/// Suites: the name and the command of each.
type Suites = Vec<(&'static str, Command)>;

fn python(root: &Path, home: &Path) -> Result<Suites, String> {
    if !tools::is_installed("python3") {
        return Err("`python3` is not installed".to_owned());
    }
    let programs = tools::install_python_packages(home, &PYTEST)?;
    let source_dir = home.join("sources");
    sources::write_python_package(root, &source_dir)?;
    let mut command = pytest_suite(root, &programs);
    command.args(["-p", "chargeproof.pytest_plugin"]).env("PYTHONPATH", source_dir);
    Ok(vec![("pytest", command)])
}

/// Returns the command of the pytest suite. `programs`: the directory of the Python environment's programs.
pub(crate) fn pytest_suite(root: &Path, programs: &Path) -> Command {
    let mut command = Command::new(programs.join("pytest"));
    command.current_dir(root.join("xtask/worlds/pytest")).args(["-q", "-n", "2", "-p", "no:cacheprovider"]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

fn node(root: &Path, home: &Path) -> Result<Suites, String> {
    if !tools::is_installed("node") || !tools::is_installed(&tools::npm_program()) {
        return Err("`node` or `npm` is not installed".to_owned());
    }
    tools::install_npm_packages(home, &VITEST)?;
    sources::write_npm_package(root, &home.join("node_modules/chargeproof"))?;
    node_suites(root, home)
}

/// Copies the JavaScript suites into a directory in which the package is installed. Returns their commands.
pub(crate) fn node_suites(root: &Path, home: &Path) -> Result<Suites, String> {
    // Node.js finds packages in the directories of the files that use them.
    for suite in ["vitest", "node"] {
        sources::copy_files(&root.join("xtask/worlds").join(suite), &home.join("suites").join(suite))?;
    }
    let mut vitest = Command::new(tools::node_program(home, "vitest"));
    vitest.current_dir(home).args(["run", "--dir", "suites/vitest"]);
    let mut node = Command::new("node");
    node.current_dir(home.join("suites/node")).arg("--test");
    let mut types = Command::new(tools::node_program(home, "tsc"));
    types.current_dir(home.join("suites/vitest"));
    types.args(["--noEmit", "--strict", "--module", "nodenext", "--skipLibCheck", TYPES_FILE]);
    Ok(vec![("vitest", vitest), ("node:test", node), ("TypeScript", types)])
}
