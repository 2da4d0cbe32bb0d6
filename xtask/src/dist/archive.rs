//! The archive: program, completions, man pages and licences. Also the checksums of all packages.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

use super::{Build, trial};
use crate::tools::{copy, create_empty_dir, succeeds, write};

pub(super) const CHECKSUMS: &str = "SHA256SUMS";

const SHELLS: [(&str, &str); 4] = [
    ("bash", "chargeproof.bash"),
    ("zsh", "_chargeproof"),
    ("fish", "chargeproof.fish"),
    ("powershell", "chargeproof.ps1"),
];

/// Files of the workspace's root that only the archive includes. Its README replaces the one of the other packages.
const TEXTS: [&str; 2] = ["README.md", "CHANGELOG.md"];

/// Creates the archive, unpacks it elsewhere and tests the program.
pub(super) fn build_and_try(build: &Build) -> Result<(), String> {
    println!("==> archive");
    let name = format!("chargeproof-{}-{}", build.version, build.platform);
    let stage = build.work_directory("stage")?;
    let content = stage.join(&name);
    let (completions, man) = (content.join("completions"), content.join("man"));
    for directory in [&content, &completions, &man] {
        create_empty_dir(directory)?;
    }
    let program = build.program.file_name().ok_or("the program has no file name")?;
    copy(&build.program, &content.join(program))?;
    build.write_common_files(&content)?;
    for text in TEXTS {
        copy(&build.root.join(text), &content.join(text))?;
    }
    for (shell, file) in SHELLS {
        let script = Command::new(&build.program)
            .args(["completions", shell])
            .output()
            .map_err(|err| format!("cannot start `chargeproof completions`: {err}"))?;
        if !script.status.success() || script.stdout.is_empty() {
            return Err(format!("`chargeproof completions {shell}` ended with {}", script.status));
        }
        write(&completions.join(file), script.stdout)?;
    }
    if !succeeds(Command::new(&build.program).arg("man").arg(&man))? {
        return Err("`chargeproof man` failed".to_owned());
    }
    let file = build.output_dir.join(format!("{name}.tar.gz"));
    run_tar(Command::new("tar").arg("-czf").arg(&file).arg("-C").arg(&stage).arg(&name))?;
    let prefix = build.work_directory("trial-archive")?;
    run_tar(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(&prefix))?;
    trial::check_built_in_server(&prefix.join(&name).join(program), &prefix)
}

fn run_tar(command: &mut Command) -> Result<(), String> {
    if succeeds(command)? { Ok(()) } else { Err(format!("{command:?} failed")) }
}

/// Writes [`CHECKSUMS`] with one line for each file of the directory, in the format of `sha256sum --check`.
pub(super) fn write_checksums(directory: &Path) -> Result<(), String> {
    let unread = |err| format!("cannot read `{}`: {err}", directory.display());
    let mut files: Vec<_> = fs::read_dir(directory)
        .map_err(unread)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(unread)?;
    files.sort();
    let mut lines = String::new();
    for file in files {
        let bytes = fs::read(&file).map_err(|err| format!("cannot read `{}`: {err}", file.display()))?;
        let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        lines.push_str(&format!("{digest}  {name}\n"));
    }
    write(&directory.join(CHECKSUMS), lines)
}
