//! `cargo xtask worlds`: test suites in other languages that open a world per test, on one served reference.
//!
//! The suites lie in `xtask/worlds`, to be copied from. One is skipped, with a word, where its language is not installed
//! or its registry cannot be reached.

use std::path::Path;
use std::process::Command;

use crate::served::Served;
use crate::tools::{self, succeeds};

/// The exact packages.
const PYTEST: [&str; 2] = ["pytest==8.4.2", "pytest-xdist==3.8.0"];
const VITEST: [&str; 1] = ["vitest@3.2.4"];

/// Runs both. Whether every test passed and every world has ended.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let program = Served::build(root)?;
    let mut good = true;
    for (name, suite) in [("pytest", pytest as Suite), ("vitest", vitest)] {
        println!("==> {name}");
        let home = root.join("target/worlds").join(name);
        match suite(&root.join("xtask/worlds").join(name), &home) {
            Err(why) => println!("skipped: {why}"),
            Ok(mut command) => {
                let served = Served::start(&program, &["--clock", "frozen"])?;
                command.env("CHARGEPROOF_URL", &served.ready.url);
                good &= succeeds(&mut command)?;
            }
        }
    }
    Ok(good)
}

/// The command that runs a suite, or why there is none. First its directory, then where its tools are installed.
type Suite = fn(&Path, &Path) -> Result<Command, String>;

fn pytest(suite: &Path, home: &Path) -> Result<Command, String> {
    if !tools::is_there("python3") {
        return Err("there is no `python3` here".to_owned());
    }
    let programs = tools::python(home, &PYTEST)?;
    let mut command = Command::new(programs.join("pytest"));
    command.current_dir(suite).args(["-q", "-n", "4", "-p", "no:cacheprovider"]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn vitest(suite: &Path, home: &Path) -> Result<Command, String> {
    if !tools::is_there("node") || !tools::is_there(&tools::npm()) {
        return Err("there is no `node` or no `npm` here".to_owned());
    }
    tools::node(home, &VITEST)?;
    // Node.js finds packages beside the files that use them.
    for file in ["world.mjs", "worlds.test.mjs"] {
        std::fs::copy(suite.join(file), home.join(file))
            .map_err(|err| format!("cannot copy `{file}`: {err}"))?;
    }
    let mut command = Command::new(tools::node_program(home, "vitest"));
    command.current_dir(home).args(["run", "--dir", "."]);
    Ok(command)
}
