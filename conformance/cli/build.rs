//! Embeds the scenarios into the program, so that it needs no other files at run time.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let root =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets the variable")).join("../../scenarios");
    let root = root.canonicalize()?;
    println!("cargo::rerun-if-changed={}", root.display());
    let mut found = Vec::new();
    find(&root, &mut found)?;
    found.sort();
    let mut code = String::from("pub(crate) const BUILT_IN: &[BuiltIn] = &[\n");
    for path in found {
        let name = path.strip_prefix(&root).expect("the file was found below the root").with_extension("");
        let transcript = path.with_extension("transcript");
        let golden = match transcript.exists() {
            true => format!("Some(include_str!({transcript:?}))"),
            false => "None".to_owned(),
        };
        code.push_str(&format!(
            "    BuiltIn {{ name: {:?}, text: include_str!({path:?}), transcript: {golden} }},\n",
            name.to_string_lossy().replace('\\', "/"),
        ));
    }
    code.push_str("];\n");
    let out = env::var("OUT_DIR").expect("cargo sets the variable");
    fs::write(Path::new(&out).join("built_in.rs"), code)
}

fn find(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            found.push(path);
        }
    }
    Ok(())
}
