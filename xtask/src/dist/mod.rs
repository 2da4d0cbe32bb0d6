//! `cargo xtask dist`: builds the packages for this platform and tests each.
//!
//! An archive, a Python wheel and an npm package contain the same program. Each published file is installed into an
//! empty directory, and the program runs `check --built-in` there.

mod action;
mod archive;
mod licences;
mod npm;
mod trial;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::packages::{Workspace, cargo, host_platform};
use crate::sources;
use crate::tools::{copy, create_empty_dir, read_bytes, succeeds, write};

/// The largest size of a published program.
const PROGRAM_BYTES_MAX: u64 = 25_000_000;
/// The profile of published programs in Cargo.toml.
const PUBLISHED_PROFILE: &str = "dist";

/// The options of the task.
#[derive(Args)]
#[command(
    after_help = "The archive holds the program, completions, man pages and licences. The wheel needs python3, the npm \
package node and npm; without them that part is skipped with a message."
)]
pub(crate) struct DistOptions {
    /// A platform such as x86_64-unknown-linux-musl, which must run on this machine; by default this platform
    #[arg(long, value_name = "PLATFORM")]
    target: Option<String>,
    /// A profile of Cargo.toml; `dev` tries the packaging without a long build
    #[arg(long, value_name = "NAME", default_value = PUBLISHED_PROFILE)]
    profile: String,
    /// The public URL of the repository, for links in the packages; the default on GitHub's runners is that of the workflow.
    /// Without a URL the packages have no links
    #[arg(long, value_name = "URL", value_parser = https_url)]
    repository: Option<String>,
}

/// Checks that a URL starts with https; removes a trailing slash.
fn https_url(text: &str) -> Result<String, String> {
    if !text.starts_with("https://") {
        return Err("the value must be a URL that begins with https://".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// A built program, and what its packages contain.
struct Build<'a> {
    root: &'a Path,
    profile: &'a str,
    /// The value of `--target`; `None` for this platform.
    target: Option<&'a str>,
    /// The public URL of the repository, without a trailing slash.
    repository: Option<String>,
    /// The licences of all linked packages.
    licences: String,
    /// The version, such as `0.1.0`.
    version: String,
    /// The platform of the program, such as `x86_64-unknown-linux-gnu`.
    platform: String,
    /// The built program.
    program: PathBuf,
    /// The directory of the packages.
    output_dir: PathBuf,
}

/// Builds and tests all packages for which the tools are installed. Returns `true`; a failure is an error.
///
/// # Errors
/// The program cannot be built or is too large, a tool fails, or a package does not work.
pub(crate) fn run(root: &Path, options: &DistOptions) -> Result<bool, String> {
    let build = Build::make(root, options)?;
    match &build.repository {
        Some(repository) => println!("    repository: {repository}"),
        None => println!("    without --repository the packages have no links"),
    }
    if let Some(minor) = glibc_needed(&read_bytes(&build.program)?) {
        println!(
            "    the program needs glibc 2.{minor} or later; with --target x86_64-unknown-linux-musl it needs none"
        );
    }
    archive::build_and_try(&build)?;
    wheel::build_and_try(&build)?;
    npm::build_and_try(&build)?;
    action::try_script(&build)?;
    archive::write_checksums(&build.output_dir)?;
    println!(
        "\nin {}:\n{}",
        build.output_dir.display(),
        fs::read_to_string(build.output_dir.join(archive::CHECKSUMS)).unwrap_or_default()
    );
    Ok(true)
}

/// Returns the repository of the workflow that runs this task, on a runner of GitHub.
fn repository_of_workflow() -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Some(format!("{}/{}", variable("GITHUB_SERVER_URL")?, variable("GITHUB_REPOSITORY")?))
}

/// Returns the `N` of the newest version `GLIBC_2.N` that a program requires; `None` if it requires none.
fn glibc_needed(program: &[u8]) -> Option<u32> {
    const PREFIX: &[u8] = b"GLIBC_2.";
    let matches = program.windows(PREFIX.len()).enumerate().filter(|(_, window)| *window == PREFIX);
    let minor = |(offset, _)| {
        let digits = program[offset + PREFIX.len()..].iter().take(3).take_while(|byte| byte.is_ascii_digit());
        digits.map(|byte| char::from(*byte)).collect::<String>().parse().ok()
    };
    matches.filter_map(minor).max()
}

impl Build<'_> {
    fn make<'a>(root: &'a Path, options: &'a DistOptions) -> Result<Build<'a>, String> {
        let (profile, target) = (options.profile.as_str(), options.target.as_deref());
        let repository = options.repository.clone().or_else(repository_of_workflow);
        println!("==> chargeproof, profile {profile}");
        let mut command = cargo(root);
        command.args(["build", "--locked", "--package", "chargeproof", "--profile", profile]);
        command.args(target.map(|target| format!("--target={target}")));
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
        if profile == PUBLISHED_PROFILE && bytes > PROGRAM_BYTES_MAX {
            return Err(format!("the program has {bytes} bytes; at most {PROGRAM_BYTES_MAX}"));
        }
        let version = workspace.version("chargeproof").ok_or("no package `chargeproof`")?.to_owned();
        let out = root.join("target/packages");
        create_empty_dir(&out)?;
        let platform = target.map_or_else(host_platform, |target| Ok(target.to_owned()))?;
        let licences = licences::dependency_licences(root, &platform)?;
        Ok(Build { root, profile, target, repository, licences, version, platform, program, output_dir: out })
    }

    /// Returns the URL of this version's files in the repository.
    fn files_url(&self) -> Option<String> {
        let repository = self.repository.as_ref()?;
        Some(format!("{repository}/blob/v{}", self.version))
    }

    /// Writes the files that all packages include: licences and README.
    fn write_common_files(&self, directory: &Path) -> Result<(), String> {
        for text in ["LICENSE-APACHE", "LICENSE-MIT"] {
            copy(&self.root.join(text), &directory.join(text))?;
        }
        write(&directory.join("LICENSES-OF-DEPENDENCIES.txt"), &self.licences)?;
        write(&directory.join("README.md"), sources::readme(self.root, self.files_url().as_deref())?)
    }

    /// Creates an empty directory below `target/packages-work`. Removes its earlier content.
    fn work_directory(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.root.join("target/packages-work").join(name);
        create_empty_dir(&directory)?;
        Ok(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_an_https_url() {
        assert_eq!(https_url("https://host/a/b/").as_deref(), Ok("https://host/a/b"));
        assert!(https_url("a/b").is_err());
    }

    #[test]
    fn the_newest_required_glibc_version_is_found() {
        assert_eq!(glibc_needed(b"..GLIBC_2.17\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_PRIVATE"), Some(34));
        assert_eq!(glibc_needed(b"GLIBC_2."), None);
    }
}
