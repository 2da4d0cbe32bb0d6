//! `cargo xtask planted`: plants bugs in the core and the API, and measures which searches find them.
//!
//! `bugs.toml` lists the bugs: a part of the source, and its replacement. A copy of the packages under
//! `target/planted/` contains both, and the environment variable `PLANTED` selects one bug, so one build serves
//! all. The shipped source has no such switch.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::{Args, value_parser};
use serde::Deserialize;

use crate::packages::{Workspace, cargo};

/// The package with the searches, which is copied with all packages that it depends on.
const SEARCHING_PACKAGE: &str = "simulator";
/// The data of the searches.
const SCENARIOS: &str = "scenarios";
/// The list of bugs.
const LIST: &str = "xtask/src/planted/bugs.toml";
/// The module that is added to the copied core: it reads the number of the selected bug.
const SELECTOR: &str = "

/// The planted bug of this process.
#[allow(missing_docs, clippy::all)]
pub mod planted {
    use std::sync::LazyLock;

    static BUG: LazyLock<usize> =
        LazyLock::new(|| std::env::var(\"PLANTED\").ok().and_then(|text| text.parse().ok()).unwrap_or(0));

    /// Returns `true` if this bug is selected.
    pub fn is(number: usize) -> bool {
        *BUG == number
    }
}
";

#[derive(Deserialize)]
struct Bugs {
    bug: Vec<Bug>,
}

/// A bug: a part of the source and its replacement.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    area: String,
    name: String,
    /// The file, from the root of the workspace.
    file: String,
    /// The replaced source, which occurs once in the file.
    before: String,
    /// The faulty source: an expression instead of an expression, or any source with the condition `$bug`.
    after: String,
    /// The reason why no search finds it; `None` if one must.
    unseen: Option<String>,
}

/// The options of the task.
#[derive(Args)]
pub(crate) struct PlantedOptions {
    /// The number of random worlds after which a bug counts as missed
    #[arg(long, value_name = "N", default_value_t = 600)]
    worlds: u64,
    /// The seed of the first world
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    from: u64,
    /// The maximum length of sequences in the exhaustive search
    #[arg(long, value_name = "N", default_value_t = 3)]
    depth: u64,
    /// The number of bugs that are searched for in parallel
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u8).range(1..))]
    jobs: u8,
    /// Only bugs whose area or name contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// The list of bugs, in the format of xtask/src/planted/bugs.toml
    #[arg(long, value_name = "FILE")]
    bugs: Option<PathBuf>,
}

/// Runs the task. Returns `true` if the searches find exactly the bugs that have no reason under `unseen`, or with
/// `--only`, which only prints the results.
///
/// # Errors
///
/// A bug does not match the source, the copy does not build, or a search fails.
pub(crate) fn run(root: &Path, options: &PlantedOptions) -> Result<bool, String> {
    let list = options.bugs.clone().unwrap_or_else(|| root.join(LIST));
    let bugs = load_bugs(root, &list)?;
    let copy = root.join("target/planted");
    copy_packages(root, &copy, &bugs)?;
    let program = build(root, &copy)?;
    let selected: Vec<(usize, &Bug)> = (1..)
        .zip(&bugs)
        .filter(|(_, bug)| bug.area.contains(&options.only) || bug.name.contains(&options.only))
        .collect();
    // No bug has the number 0.
    let without_bug = search(&program, 0, [options.worlds, options.from, options.depth])?;
    if without_bug.iter().any(|(_, found)| found != "-") {
        return Err(format!("a search has findings without a bug: {without_bug:?}"));
    }
    let results = search_all(&program, &selected, options)?;
    let table = format_table(&selected, &results);
    print!("{table}");
    if !options.only.is_empty() {
        return Ok(true);
    }
    let unexpected = selected
        .iter()
        .zip(&results)
        .filter(|((_, bug), found)| bug.unseen.is_some() != found.iter().all(|(_, found)| found == "-"));
    for ((_, bug), _) in unexpected.clone() {
        match bug.unseen {
            Some(_) => println!("found although `unseen` states a reason: {}", bug.name),
            None => println!("not found: {}", bug.name),
        }
    }
    Ok(unexpected.count() == 0)
}

/// Loads a list of bugs, and checks that each matches the source of its file.
fn load_bugs(root: &Path, list: &Path) -> Result<Vec<Bug>, String> {
    let Bugs { bug: bugs } = toml::from_str(&read(list)?).map_err(|err| err.to_string())?;
    for name in bugs.iter().map(|bug| &bug.file).collect::<BTreeSet<_>>() {
        plant(name, read(&root.join(name))?, &bugs)?;
    }
    Ok(bugs)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))
}

/// Copies the packages, plants the bugs, and deletes copies of deleted files. Unchanged files are not written, so
/// that cargo builds only what has changed.
fn copy_packages(root: &Path, copy: &Path, bugs: &[Bug]) -> Result<(), String> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let (before_members, after_members) =
        manifest.split_once("members = [").ok_or("the workspace has no members")?;
    let (_, after_members) = after_members.split_once(']').ok_or("the members have no end")?;
    let workspace = Workspace::load(root)?;
    let directories = workspace.directories_with_dependencies(SEARCHING_PACKAGE);
    let packages: Vec<&Path> =
        directories.into_iter().map(|path| path.strip_prefix(root).unwrap_or(path)).collect();
    let members: Vec<String> = packages.iter().map(|path| format!("\"{}\"", path.display())).collect();
    let manifest = format!("{before_members}members = [{}]{after_members}", members.join(", "));
    write(&copy.join("Cargo.toml"), manifest.as_bytes())?;
    if !copy.join("Cargo.lock").exists() {
        write(&copy.join("Cargo.lock"), read(&root.join("Cargo.lock"))?.as_bytes())?;
    }
    let (mut files, mut earlier_copies) = (Vec::new(), Vec::new());
    for directory in packages.into_iter().chain([Path::new(SCENARIOS)]) {
        collect(&root.join(directory), &mut files)?;
        if copy.join(directory).exists() {
            collect(&copy.join(directory), &mut earlier_copies)?;
        }
    }
    for path in earlier_copies {
        let original = root.join(path.strip_prefix(copy).expect("listed files are below the copy"));
        if !original.exists() {
            fs::remove_file(&path).map_err(|err| format!("{}: {err}", path.display()))?;
        }
    }
    for path in files {
        let relative_path = path
            .strip_prefix(root)
            .expect("listed files are below the root")
            .to_string_lossy()
            .replace('\\', "/");
        let mut content = fs::read(&path).map_err(|err| format!("{relative_path}: {err}"))?;
        if relative_path.ends_with(".rs") {
            content =
                plant(&relative_path, String::from_utf8_lossy(&content).into_owned(), bugs)?.into_bytes();
        }
        write(&copy.join(&relative_path), &content)?;
    }
    Ok(())
}

/// Plants the bugs of a file in its source, and adds the module that selects a bug. Each `before` must occur once.
fn plant(name: &str, mut source: String, bugs: &[Bug]) -> Result<String, String> {
    for (number, bug) in (1..).zip(bugs).filter(|(_, bug)| bug.file == name) {
        let (before, after) = (bug.before.trim_matches('\n'), bug.after.trim_matches('\n'));
        let count = source.matches(before).count();
        if count != 1 {
            return Err(format!("{}: its `before` must occur once in {name}, not {count} times", bug.name));
        }
        let condition = format!("crate::planted::is({number})");
        let selectable = match after.contains("$bug") {
            true => after.replace("$bug", &condition),
            false => format!("(if {condition} {{ {after} }} else {{ {before} }})"),
        };
        source = source.replace(before, &selectable);
    }
    if name.ends_with("/src/lib.rs") {
        let docs_end =
            source.lines().take_while(|line| line.starts_with("//!")).map(|line| line.len() + 1).sum();
        source.insert_str(docs_end, "#![allow(unused_parens)]\n");
    }
    match name {
        "reference/core/src/lib.rs" => source.push_str(SELECTOR),
        "reference/wire/src/lib.rs" => source.push_str("\nuse reference_core::planted;\n"),
        _ => {}
    }
    Ok(source)
}

/// Adds all files below a directory to `files`.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(directory).map_err(|err| format!("{}: {err}", directory.display()))?;
    for entry in entries {
        let path = entry.map_err(|err| err.to_string())?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Writes a file, unless it has this content.
fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|existing| existing == content) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().expect("a file has a directory")).map_err(|err| err.to_string())?;
    fs::write(path, content).map_err(|err| format!("{}: {err}", path.display()))
}

/// Builds the example `search` of the copy, and returns its path. Optimised worlds run three times as fast. Debug
/// assertions are off, as in the shipped program.
fn build(root: &Path, copy: &Path) -> Result<PathBuf, String> {
    let mut program = cargo(copy);
    program.current_dir(copy).env("CARGO_TARGET_DIR", root.join("target"));
    program.args(["build", "--quiet", "--package", "simulator", "--example", "search"]);
    for package in ["reference-core", "reference-wire", "simulator"] {
        for setting in ["opt-level=2", "debug-assertions=false", "overflow-checks=true"] {
            program.args(["--config", &format!("profile.dev.package.{package}.{setting}")]);
        }
    }
    let status = program.status().map_err(|err| format!("cannot start {program:?}: {err}"))?;
    status
        .success()
        .then(|| root.join("target/debug/examples/search"))
        .ok_or("the copy does not build".to_owned())
}

/// The results for one bug: the name of each search, and its first finding or `-`.
type SearchResults = Vec<(String, String)>;

/// Runs all searches for one bug. `limits`: the number of worlds, the first seed, and the maximum length of sequences.
fn search(program: &Path, number: usize, limits: [u64; 3]) -> Result<SearchResults, String> {
    let mut search = Command::new(program);
    search.args(limits.map(|n| n.to_string()));
    search.env("PLANTED", number.to_string());
    let output = search.output().map_err(|err| format!("cannot start {search:?}: {err}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let found: SearchResults = stdout
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, found)| (name.to_owned(), found.to_owned()))
        .collect();
    // Scenarios, random worlds, exhaustive search.
    if found.len() == 3 {
        Ok(found)
    } else {
        Err(format!("bug {number}: the search ended with {}", output.status))
    }
}

/// Runs all searches for each bug, several bugs in parallel.
fn search_all(
    program: &Path,
    bugs: &[(usize, &Bug)],
    options: &PlantedOptions,
) -> Result<Vec<SearchResults>, String> {
    let limits = [options.worlds, options.from, options.depth];
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                while let Some((number, bug)) = bugs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = search(program, *number, limits);
                    eprintln!("{number} {}: {found:?}", bug.name);
                    results.lock().expect("the lock is not poisoned").push((*number, found));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("the lock is not poisoned");
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, found)| found).collect()
}

/// Returns the table: for each bug the number of scenarios that differ, the number of worlds until it was found,
/// and the scope of the exhaustive search that found it.
fn format_table(bugs: &[(usize, &Bug)], results: &[SearchResults]) -> String {
    let mut table = String::from("scenarios  worlds  scope     area         planted bug\n");
    for ((_, bug), found) in bugs.iter().zip(results) {
        let first_word = |nth: usize| found[nth].1.split([' ', ':']).next().unwrap_or("-");
        let Bug { area, name, .. } = bug;
        let _ = writeln!(
            table,
            "{:>9}  {:>6}  {:<8}  {area:<11}  {name}",
            first_word(0),
            first_word(1),
            first_word(2)
        );
    }
    let is_found = |found: &&SearchResults| found.iter().any(|(_, finding)| finding != "-");
    let _ = writeln!(table, "{} of {} found", results.iter().filter(is_found).count(), results.len());
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A change of the core or the API must not leave a bug unplanted.
    #[test]
    fn every_bug_matches_its_source() {
        let root = crate::root().expect("the workspace is found");
        assert!(!load_bugs(&root, &root.join(LIST)).expect("the bugs match the source").is_empty());
    }
}
