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
use crate::sources;
use crate::tools::{copy, fresh, read_bytes, succeeds, write};

pub(crate) const HELP: &str = "\
Builds what is published for this platform into target/packages, and tries each part in an empty directory.

usage: cargo xtask dist [--target PLATFORM] [--profile NAME] [--repository URL]

  --target PLATFORM  such as x86_64-unknown-linux-musl, which must run on this machine; this platform if not given
  --profile NAME     a profile of Cargo.toml; `dist` if not given. `dev` tries the packaging without a long build
  --repository URL   the public address of the repository, for the links of the packages; on GitHub's runners it is that of the
                     workflow. Without one the packages have no links

The archive holds the program, completions, man pages and licences. The wheel needs python3, the npm package node and npm;
without them that part is skipped with a message.
";

/// The largest size of a published program.
const PROGRAM_BYTES_MAX: u64 = 25_000_000;
const PUBLISHED: &str = "dist";

/// The options of `dist`.
struct DistOptions<'a> {
    profile: &'a str,
    target: Option<&'a str>,
    repository: Option<String>,
}

/// The build: packages, and their places.
struct Build<'a> {
    root: &'a Path,
    profile: &'a str,
    /// The requested platform.
    target: Option<&'a str>,
    /// The public address of the repository, without a slash at the end.
    repository: Option<String>,
    /// The licences of everything that is linked into the program.
    licences: String,
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
    let mut options = read_options(options)?;
    options.repository = options.repository.or_else(repository_of_workflow);
    let build = Build::make(root, options)?;
    match &build.repository {
        Some(repository) => println!("    repository: {repository}"),
        None => println!("    without --repository the packages have no links"),
    }
    if let Some(minor) = glibc_needed(&read_bytes(&build.program)?) {
        println!(
            "    the program needs glibc 2.{minor} or later; --target x86_64-unknown-linux-musl needs none"
        );
    }
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

fn read_options<'a>(options: &[&'a str]) -> Result<DistOptions<'a>, String> {
    let mut read = DistOptions { profile: PUBLISHED, target: None, repository: None };
    for pair in options.chunks(2) {
        match *pair {
            ["--profile", name] => read.profile = name,
            ["--target", platform] => read.target = Some(platform),
            ["--repository", url] if url.starts_with("https://") => {
                read.repository = Some(url.trim_end_matches('/').to_owned());
            }
            ["--repository", url] => {
                return Err(format!("`--repository {url}`: it takes an address that begins with https://"));
            }
            [option @ ("--profile" | "--target" | "--repository")] => {
                return Err(format!("`{option}` needs a value"));
            }
            _ => {
                return Err(format!(
                    "`{}` is not an option; `dist` takes --target, --profile and --repository",
                    pair.join(" ")
                ));
            }
        }
    }
    Ok(read)
}

/// The repository whose workflow runs this task, on a runner of GitHub.
fn repository_of_workflow() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(format!("{}/{}", variable("GITHUB_SERVER_URL")?, variable("GITHUB_REPOSITORY")?))
}

/// The `N` of the newest version `GLIBC_2.N` that a program asks the dynamic linker for; `None` if it asks for none.
fn glibc_needed(program: &[u8]) -> Option<u32> {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let found = program.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    let minor = |(at, _)| {
        let digits = program[at + PREFIX.len()..].iter().take(3).take_while(|byte| byte.is_ascii_digit());
        digits.map(|byte| char::from(*byte)).collect::<String>().parse().ok()
    };
    found.filter_map(minor).max()
}

impl Build<'_> {
    fn make<'a>(root: &'a Path, options: DistOptions<'a>) -> Result<Build<'a>, String> {
        let DistOptions { profile, target, repository } = options;
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
        let licences = licences::of_dependencies(root, &platform)?;
        Ok(Build { root, profile, target, repository, licences, version, platform, program, out })
    }

    /// Where the repository shows the files of this version.
    fn files(&self) -> Option<String> {
        let repository = self.repository.as_ref()?;
        Some(format!("{repository}/blob/v{}", self.version))
    }

    /// Writes what every package carries: licences and README.
    fn write_texts(&self, directory: &Path) -> Result<(), String> {
        for text in ["LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&self.root.join(text), &directory.join(text))?;
        }
        write(&directory.join("LICENSES-OF-DEPENDENCIES.txt"), &self.licences)?;
        write(&directory.join("README.md"), sources::readme(self.root, self.files().as_deref())?)
    }

    /// An empty directory below `target/packages-work`.
    fn room(&self, name: &str) -> Result<PathBuf, String> {
        let room = self.root.join("target/packages-work").join(name);
        fresh(&room)?;
        Ok(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(options: &str, expected: &str) {
        let options: Vec<&str> = options.split_whitespace().collect();
        let read = read_options(&options).map_or_else(
            |error| error,
            |read| format!("{} {:?} {:?}", read.profile, read.target, read.repository),
        );
        assert_eq!(read, expected);
    }

    #[test]
    fn options_are_read() {
        check("", "dist None None");
        check("--profile dev", "dev None None");
        check("--target x86_64-unknown-linux-musl", "dist Some(\"x86_64-unknown-linux-musl\") None");
        check("--repository https://host/a/b/", "dist None Some(\"https://host/a/b\")");
    }

    #[test]
    fn wrong_options_are_refused() {
        check("--profile", "`--profile` needs a value");
        check("--repository a/b", "`--repository a/b`: it takes an address that begins with https://");
        check(
            "--fast yes",
            "`--fast yes` is not an option; `dist` takes --target, --profile and --repository",
        );
    }

    #[test]
    fn the_newest_glibc_version_counts() {
        assert_eq!(glibc_needed(b"..GLIBC_2.17\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_PRIVATE"), Some(34));
        assert_eq!(glibc_needed(b"GLIBC_2."), None);
    }
}
