//! Computes a version of the program from all sources that determine the replay of records and the format of
//! checkpoints.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

const SOURCES: [&str; 5] =
    ["../core/src", "../wire/src", "../../simulator/src", "src/journal", "../../Cargo.lock"];

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut hash = DefaultHasher::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        add(&mut hash, &package.join(source))?;
    }
    println!("cargo::rustc-env=PROGRAM_DIGEST={:016x}", hash.finish());
    Ok(())
}

/// Hashes a file, or all files below a directory in the order of their names.
fn add(hash: &mut DefaultHasher, path: &Path) -> io::Result<()> {
    path.file_name().hash(hash);
    if !path.is_dir() {
        fs::read(path)?.hash(hash);
        return Ok(());
    }
    let entries = fs::read_dir(path)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    entries.iter().try_for_each(|entry| add(hash, entry))
}
