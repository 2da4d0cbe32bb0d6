//! Lists of files.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Returns every file below a directory with this extension, sorted by path.
///
/// # Panics
///
/// If a directory cannot be read.
#[must_use]
pub fn files_below(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let entries =
            fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        for entry in entries {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|actual| actual == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
