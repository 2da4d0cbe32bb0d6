//! Generates the code that embeds the scenarios and their transcripts into the program, so that it needs no other
//! files at run time.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets the variable")).join("../../scenarios");
    let root = root.canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut scenarios = Vec::new();
    find_scenarios(&root, &mut scenarios)?;
    scenarios.sort();
    let mut code = String::from("pub(crate) const BUILT_IN: &[BuiltInScenario] = &[\n");
    for path in scenarios {
        let name = path.strip_prefix(&root).expect("only files below the root are listed").with_extension("");
        let transcript_path = path.with_extension("transcript");
        let transcript = match transcript_path.exists() {
            true => format!("Some(include_str!({transcript_path:?}))"),
            false => "None".to_owned(),
        };
        code.push_str(&format!(
            "    BuiltInScenario {{ name: {:?}, text: include_str!({path:?}), transcript: {transcript} }},\n",
            name.to_string_lossy().replace('\\', "/"),
        ));
    }
    code.push_str("];\n");
    let out = env::var("OUT_DIR").expect("cargo sets the variable");
    fs::write(Path::new(&out).join("built_in.rs"), code)
}

/// Adds the paths of the scenario files below a directory to `scenarios`.
fn find_scenarios(directory: &Path, scenarios: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find_scenarios(&path, scenarios)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            scenarios.push(path);
        }
    }
    Ok(())
}
