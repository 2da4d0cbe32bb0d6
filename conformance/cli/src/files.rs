//! File access: bounded reads and atomic writes.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use crate::Failure;

/// The maximum size in bytes of settings, keys, certificates and sample objects.
pub(crate) const SETTINGS_MAX: u64 = 1024 * 1024;
/// The maximum size in bytes of a scenario or a transcript.
pub(crate) const SCENARIO_MAX: u64 = 4 * 1024 * 1024;
/// The maximum size in bytes of a recording, a HAR file or the results of a sweep.
pub(crate) const RECORDING_MAX: u64 = 256 * 1024 * 1024;

/// Reads a file of at most `max` bytes.
pub(crate) fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        let why = format!("it is larger than {} MiB", max / (1024 * 1024));
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a text file of at most `max` bytes.
pub(crate) fn read_text(path: &Path, max: u64) -> io::Result<String> {
    let not_utf8 = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text");
    String::from_utf8(read(path, max)?).map_err(not_utf8)
}

/// Reads a text file that was named on the command line or in the configuration.
pub(crate) fn text_of(path: &Path, max: u64) -> Result<String, Failure> {
    read_text(path, max).map_err(|error| read_failure(path, &error))
}

/// Returns the error for a file that cannot be read.
pub(crate) fn read_failure(path: &Path, error: &io::Error) -> Failure {
    let shown_path = path.display();
    let why = match error.kind() {
        io::ErrorKind::NotFound if shown_path.to_string().contains("://") => {
            "it is an address; give the path of a file".to_owned()
        }
        io::ErrorKind::NotFound => missing_path_message(path),
        io::ErrorKind::IsADirectory => "it is a directory; name a file in it".to_owned(),
        _ => error.to_string(),
    };
    Failure::usage(format!("`{shown_path}` can't be read: {why}"))
}

/// Returns a message that names the missing part of a path: the file, or its first missing directory.
fn missing_path_message(path: &Path) -> String {
    let missing = path
        .ancestors()
        .filter(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .last()
        .unwrap_or(path);
    let location =
        std::env::current_dir().map(|directory| format!(" in `{}`", directory.display())).unwrap_or_default();
    let location = if path.is_relative() { location } else { String::new() };
    format!("there is no `{}`{location}", missing.display())
}

/// Returns the error for a file that cannot be written.
fn write_failure(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("`{}` can't be written: {why}", path.display()))
}

/// Shortens an error message that quotes a file: at most 12 lines of 160 characters.
pub(crate) fn truncate_message(text: &str) -> String {
    const LINE_MAX: usize = 160;
    const LINES_MAX: usize = 12;
    let truncate = |line: &str| match line.char_indices().nth(LINE_MAX) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    };
    text.lines().take(LINES_MAX).map(truncate).collect::<Vec<_>>().join("\n")
}

/// Checks that a file can be created or replaced, before any work is done.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let directory = directory_of(path);
    if path.file_name().is_none() {
        return Err(write_failure(path, "it does not end with a file name"));
    }
    if path.is_dir() {
        return Err(write_failure(path, "it is a directory"));
    }
    if !directory.is_dir() {
        let directory = directory.display();
        let why = format_args!("`{directory}` is not a directory; create it first: mkdir -p {directory}");
        return Err(write_failure(path, why));
    }
    match is_special(path) {
        true => fs::OpenOptions::new().write(true).open(path).map(drop),
        // An unnamed file, which leaves nothing behind.
        false => tempfile::tempfile_in(directory).map(drop),
    }
    .map_err(|error| write_failure(path, error))
}

/// Writes a file atomically: readers see the old content or the new one, never a part.
pub(crate) fn write_atomically(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text.as_bytes(), 0o666).map_err(|error| write_failure(path, error))
}

/// Writes a file with secrets atomically: only its owner can read it, and links are not followed.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        create_temp_file(path, text.as_bytes(), 0o600)?.persist(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| write_failure(path, error))
}

/// Writes a new file. An existing one is an error of kind `AlreadyExists` and is not changed.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    create_temp_file(path, text.as_bytes(), 0o666)?
        .persist_noclobber(path)
        .map(drop)
        .map_err(|error| error.error)
}

/// Replaces a file by a new one with these permissions, or writes to a device or a pipe.
fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if is_special(path) {
        return fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    // Replaces the target of a symbolic link, not the link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    create_temp_file(&path, bytes, mode)?.persist(&path).map(drop).map_err(|error| error.error)
}

/// Creates a temporary file with this content in the directory of `path`, removed on drop.
fn create_temp_file(path: &Path, bytes: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    let mut file = tempfile::Builder::new()
        .prefix(".chargeproof-")
        .suffix(".part")
        .permissions(fs::Permissions::from_mode(mode))
        .tempfile_in(directory_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns `true` for a device or a pipe, which cannot be replaced by a file.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// An append-only file of lines. If a line cannot be written completely, its written part is removed.
pub(crate) struct LineFile {
    path: PathBuf,
    file: fs::File,
}

impl LineFile {
    /// Opens or creates the file; only the owner can read a new one.
    pub(crate) fn open(path: &Path) -> Result<LineFile, Failure> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        Ok(LineFile { path: path.to_owned(), file: file.map_err(|error| write_failure(path, error))? })
    }

    /// Appends a line.
    pub(crate) fn append(&mut self, line: &str) -> Result<(), Failure> {
        let length_before = self.file.metadata().map(|metadata| metadata.len());
        let result = self.file.write_all(format!("{line}\n").as_bytes());
        result.map_err(|error| {
            if let Ok(length) = length_before {
                // Only the error of the write is reported, not a failure to truncate the file.
                let _ = self.file.set_len(length);
            }
            write_failure(&self.path, error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_without_leftovers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.txt");
        for text in ["one", "two"] {
            check_writable(&path).map_err(|failure| failure.message).unwrap();
            write_atomically(&path, text).map_err(|failure| failure.message).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn symlinks_and_devices_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target"), directory.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_atomically(&link, "new").map_err(|failure| failure.message).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write_atomically(Path::new("/dev/null"), "new").map_err(|failure| failure.message).unwrap();
        assert!(is_special(Path::new("/dev/null")));
    }

    #[track_caller]
    fn check_rejected(path: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("directory")).unwrap();
        let failure = check_writable(&directory.path().join(path)).expect_err("the path is rejected");
        assert_eq!(failure.code, 2);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }

    #[test]
    fn unwritable_paths_are_reported_in_advance() {
        check_rejected("missing/report.txt", "is not a directory");
        check_rejected("directory", "it is a directory");
    }

    #[test]
    fn oversized_files_are_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large");
        fs::write(&path, vec![b'x'; SETTINGS_MAX as usize + 1]).unwrap();
        let failure = text_of(&path, SETTINGS_MAX).expect_err("the file is rejected");
        assert!(failure.message.contains("larger than 1 MiB"), "{}", failure.message);
        assert!(text_of(&path, SCENARIO_MAX).is_ok());
    }

    #[test]
    fn long_messages_are_truncated() {
        let text = format!("{}\nb", "a".repeat(1_000));
        assert_eq!(truncate_message(&text), format!("{}…\nb", "a".repeat(160)));
        assert_eq!(truncate_message(&"x\n".repeat(1_000)).lines().count(), 12);
    }
}
