//! `cargo xtask dist`: what is published for this platform, and a trial of each part.
//!
//! An archive, a Python wheel and an npm package hold the same program. Each is installed into an empty directory and
//! judges the built-in server there, so that what is published is what was tried.

mod action;
mod archive;
mod licences;
mod npm;
mod trial;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use crate::packages::{Workspace, cargo, platform};
use crate::tools::{fresh, succeeds};

pub(crate) const HELP: &str = "\
Builds what is published for this platform into target/packages, and tries each part in an empty directory.

usage: cargo xtask dist [--target PLATFORM] [--profile NAME]

  --target PLATFORM  such as x86_64-unknown-linux-musl, which must run on this machine; this platform if not given
  --profile NAME     a profile of Cargo.toml; `dist` if not given. `dev` tries the packaging without a long build

The archive holds the program, completions, man pages and licences. The wheel needs python3, the npm package node and npm;
without them that part is skipped with a message.
";

/// The largest size of a published program.
const PROGRAM_BYTES_MAX: u64 = 25_000_000;
const PUBLISHED: &str = "dist";

/// The build: packages, and their places.
struct Build<'a> {
    root: &'a Path,
    profile: &'a str,
    /// The platform that was asked for.
    target: Option<&'a str>,
    /// Such as `0.1.0`.
    version: String,
    /// Such as `x86_64-unknown-linux-gnu`.
    platform: String,
    /// The built program.
    program: PathBuf,
    /// The output directory.
    out: PathBuf,
}

/// Builds and tries everything that can be built here. Returns `true` if all of it works.
///
/// # Errors
/// Wrong options; a program that cannot be built or is too large; a tool that fails.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<bool, String> {
    let (profile, target) = read(options)?;
    let build = Build::make(root, profile, target)?;
    archive::make(&build)?;
    wheel::make(&build)?;
    npm::make(&build)?;
    action::try_script(&build)?;
    archive::write_checksums(&build.out)?;
    println!(
        "\nin {}:\n{}",
        build.out.display(),
        fs::read_to_string(build.out.join(archive::CHECKSUMS)).unwrap_or_default()
    );
    Ok(true)
}

/// Profile and platform.
fn read<'a>(options: &[&'a str]) -> Result<(&'a str, Option<&'a str>), String> {
    let (mut profile, mut target) = (PUBLISHED, None);
    for pair in options.chunks(2) {
        match *pair {
            ["--profile", name] => profile = name,
            ["--target", platform] => target = Some(platform),
            [option @ ("--profile" | "--target")] => return Err(format!("`{option}` needs a value")),
            _ => {
                return Err(format!(
                    "`{}` is not an option; `dist` takes --target and --profile",
                    pair.join(" ")
                ));
            }
        }
    }
    Ok((profile, target))
}

impl Build<'_> {
    fn make<'a>(root: &'a Path, profile: &'a str, target: Option<&'a str>) -> Result<Build<'a>, String> {
        println!("==> chargeproof, profile {profile}");
        let mut command = cargo(root);
        command.args(["build", "--locked", "--package", "chargeproof", "--profile", profile]);
        command.args(target.map(|it| format!("--target={it}")));
        if !succeeds(&mut command)? {
            return Err("the program cannot be built".to_owned());
        }
        let directory = if profile == "dev" { "debug" } else { profile };
        let workspace = Workspace::load(root)?;
        let program = workspace.target_directory.join(target.unwrap_or_default()).join(directory);
        let program = program.join(format!("chargeproof{}", std::env::consts::EXE_SUFFIX));
        let bytes = fs::metadata(&program)
            .map_err(|err| format!("cannot read `{}`: {err}", program.display()))?
            .len();
        if profile == PUBLISHED && bytes > PROGRAM_BYTES_MAX {
            return Err(format!("the program has {bytes} bytes; at most {PROGRAM_BYTES_MAX}"));
        }
        let version = workspace.version("chargeproof").ok_or("no package `chargeproof`")?.to_owned();
        let out = root.join("target/packages");
        fresh(&out)?;
        let platform = target.map_or_else(platform, |it| Ok(it.to_owned()))?;
        Ok(Build { root, profile, target, version, platform, program, out })
    }

    /// An empty directory below `target/packages-work`.
    fn room(&self, name: &str) -> Result<PathBuf, String> {
        let room = self.root.join("target/packages-work").join(name);
        fresh(&room)?;
        Ok(room)
    }
}

fn write(file: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    fs::write(file, text).map_err(|err| format!("cannot write `{}`: {err}", file.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|err| format!("cannot copy `{}` to `{}`: {err}", from.display(), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(options: &str, expected: &str) {
        let options: Vec<&str> = options.split_whitespace().collect();
        let said = read(&options).map_or_else(|why| why, |(profile, target)| format!("{profile} {target:?}"));
        assert_eq!(said, expected);
    }

    #[test]
    fn options_are_read() {
        check("", "dist None");
        check("--profile dev", "dev None");
        check("--target x86_64-unknown-linux-musl", "dist Some(\"x86_64-unknown-linux-musl\")");
    }

    #[test]
    fn wrong_options_are_told() {
        check("--profile", "`--profile` needs a value");
        check("--fast yes", "`--fast yes` is not an option; `dist` takes --target and --profile");
    }
}
