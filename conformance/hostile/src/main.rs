//! `hostile TARGET FILE…` runs a fuzz target on files, to reproduce a finding. If `cargo xtask hostile` builds it, it
//! is a libFuzzer program instead, and the environment variable `HOSTILE_TARGET` selects the target.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod libfuzzer {
    use std::sync::LazyLock;

    static TARGET: LazyLock<hostile::Target> = LazyLock::new(|| {
        let name = std::env::var("HOSTILE_TARGET").unwrap_or_default();
        hostile::target(&name).expect("`cargo xtask hostile` sets HOSTILE_TARGET to a target")
    });

    libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { (TARGET.feed)(bytes) });
}

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match replay(&arguments) {
        Ok(count) => {
            println!("{count} inputs, no invariant violated");
            std::process::ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}\n\nusage: hostile TARGET FILE…\n");
            for target in hostile::TARGETS {
                eprintln!("  {:<10} {}", target.name, target.description);
            }
            std::process::ExitCode::from(2)
        }
    }
}

/// Runs the target on files and returns their number. Panics if an invariant is violated.
#[cfg(not(fuzzing))]
fn replay(arguments: &[String]) -> Result<usize, String> {
    let [name, files @ ..] = arguments else { return Err("the target is missing".to_owned()) };
    let target = hostile::target(name).ok_or_else(|| {
        let names: Vec<_> = hostile::TARGETS.iter().map(|target| target.name).collect();
        format!("`{name}` is not a target; allowed are {}", names.join(", "))
    })?;
    if files.is_empty() {
        return Err("the files are missing".to_owned());
    }
    for file in files {
        let bytes = std::fs::read(file).map_err(|error| format!("cannot read `{file}`: {error}"))?;
        // Printed first, so that a panic follows the name of its file.
        println!("{file}");
        (target.feed)(&bytes);
    }
    Ok(files.len())
}
