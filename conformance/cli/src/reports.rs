//! Where reports go: one to the terminal, any number into files.

use std::{fs, io::Write, path::Path};

use conformance::{Outcome, report};

use crate::{
    Failure,
    args::{ReportFile, Reports},
};

/// Finds out before the first request whether the files can be written at all.
pub(crate) fn prepare(files: &[ReportFile]) -> Result<(), Failure> {
    files.iter().try_for_each(|file| writable(&file.path))
}

/// Whether a file can be made there.
pub(crate) fn writable(path: &Path) -> Result<(), Failure> {
    let refused = |why: String| Err(Failure::usage(format!("`{}` can't be written: {why}", path.display())));
    let directory = directory_of(path);
    match (path.file_name(), directory.is_dir()) {
        (None, _) => refused("it names no file".into()),
        (_, false) => refused(format!("`{}` is no directory", directory.display())),
        _ if path.is_dir() => refused("it is a directory".into()),
        _ => Ok(()),
    }
}

/// Prints the report and writes the others.
pub(crate) fn tell(outcome: &Outcome, reports: &Reports) -> Result<(), Failure> {
    let format = report::Format::from(reports.format);
    // Colours that nobody sees are taken out on the way. Other formats go out byte for byte.
    let written = match format {
        report::Format::Text => {
            write!(anstream::stdout(), "{}", report::render(outcome, format, report::Style::Colour))
        }
        _ => write!(std::io::stdout(), "{}", report::render(outcome, format, report::Style::Plain)),
    };
    // Whoever closed the pipe has read enough; the files and the exit code are still theirs.
    let _ = written;
    for file in &reports.report {
        let text = report::render(outcome, file.format.into(), report::Style::Plain);
        write_whole(&file.path, &text)?;
    }
    Ok(())
}

/// Writes a file whole or not at all: whoever looks at it meanwhile sees the old one, or none.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let part = directory_of(path).join(format!(".{name}.{}.part", std::process::id()));
    let write = || {
        let mut file = fs::File::create(&part)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    write().map_err(|error| {
        // It may not even have come to be.
        let _ = fs::remove_file(&part);
        Failure::usage(format!("`{}` can't be written: {error}", path.display()))
    })
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_leaves_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.txt");
        for text in ["one", "two"] {
            write_whole(&path, text).map_err(|failure| failure.message).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[track_caller]
    fn check(path: &str, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("there")).unwrap();
        let failure = writable(&directory.path().join(path)).expect_err("it is refused");
        assert_eq!(failure.code, 2);
        assert!(failure.message.contains(expected), "{}", failure.message);
    }

    #[test]
    fn a_place_that_takes_no_file_is_named_beforehand() {
        check("nowhere/report.txt", "is no directory");
        check("there", "it is a directory");
    }
}
