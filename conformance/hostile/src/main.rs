//! `hostile TARGET FILE…` feeds files to a target, to repeat a finding. Built by `cargo xtask hostile` it is libFuzzer's
//! own program instead, and the variable `HOSTILE_TARGET` names the target.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod guided {
    use std::sync::LazyLock;

    static TARGET: LazyLock<hostile::Target> = LazyLock::new(|| {
        let name = std::env::var("HOSTILE_TARGET").unwrap_or_default();
        hostile::target(&name).expect("`cargo xtask hostile` names a target")
    });

    libfuzzer_sys::fuzz_target!(|bytes: &[u8]| { (TARGET.feed)(bytes) });
}

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match replay(&arguments) {
        Ok(count) => {
            println!("{count} inputs, and every promise held");
            std::process::ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}\n\nusage: hostile TARGET FILE…\n");
            for target in hostile::TARGETS {
                eprintln!("  {:<10} {}", target.name, target.what);
            }
            std::process::ExitCode::from(2)
        }
    }
}

/// Feeds the files to the target. A broken promise panics and ends the program.
#[cfg(not(fuzzing))]
fn replay(arguments: &[String]) -> Result<usize, String> {
    let [name, files @ ..] = arguments else { return Err("no target is named".to_owned()) };
    let target = hostile::target(name)?;
    if files.is_empty() {
        return Err("no file is named".to_owned());
    }
    for file in files {
        let bytes = std::fs::read(file).map_err(|err| format!("cannot read `{file}`: {err}"))?;
        println!("{file}");
        (target.feed)(&bytes);
    }
    Ok(files.len())
}
