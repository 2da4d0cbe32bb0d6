//! [`FileError`]: the reasons why a stored file cannot be used.

use std::error::Error;
use std::fmt;

/// The reason why a recording, a HAR file or a file of `fuzz --save` cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileError {
    /// The text is not a file of this kind.
    Malformed {
        /// The message that names the expected kind: `not a HAR file`.
        message: &'static str,
        /// The error of the parser.
        error: String,
    },
    /// The file has a version of the format that this program cannot read.
    UnsupportedFormat {
        /// The version of the file.
        found: u64,
        /// The version that this program reads.
        supported: u32,
    },
    /// A HAR file has no request under `/v1`.
    NoApiRequests,
    /// No entry of a HAR file can be judged, usually because the `Authorization` headers are missing.
    NoUsableEntries {
        /// The number of entries.
        entries: usize,
    },
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Malformed { message, error } => write!(f, "{message}: {error}"),
            FileError::UnsupportedFormat { found, supported } => {
                write!(f, "a file of format {found}; this program reads {supported}, so record again")
            }
            FileError::NoApiRequests => f.write_str("a HAR file without requests for paths under /v1"),
            FileError::NoUsableEntries { entries } => write!(
                f,
                "a HAR file of which 0 of {entries} entries can be judged; record requests with their Authorization \
                 headers, which some tools omit by default (they are redacted on reading)"
            ),
        }
    }
}

impl Error for FileError {}
