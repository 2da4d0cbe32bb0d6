//! Report options of `check` and `judge`, and the command line of `judge`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use conformance::{Accept, Part, report};

/// The format of a conformance report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Human-readable text
    Text,
    /// Machine-readable JSON, described by report.schema.json
    Json,
    /// JUnit XML for CI systems
    Junit,
    /// Markdown for a job summary
    Markdown,
    /// One self-contained HTML page
    Html,
    /// Annotations for GitHub Actions
    Github,
}

impl From<ReportFormat> for report::Format {
    fn from(format: ReportFormat) -> report::Format {
        match format {
            ReportFormat::Text => report::Format::Text,
            ReportFormat::Json => report::Format::Json,
            ReportFormat::Junit => report::Format::Junit,
            ReportFormat::Markdown => report::Format::Markdown,
            ReportFormat::Html => report::Format::Html,
            ReportFormat::Github => report::Format::Github,
        }
    }
}

/// The value of `--report`: a format and a file, such as `html=report.html`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportFile {
    pub(crate) format: ReportFormat,
    pub(crate) path: PathBuf,
}

/// The report options that `check` and `judge` share.
#[derive(Debug, Args)]
pub(crate) struct Reports {
    /// Format of the report on stdout
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    pub(crate) format: ReportFormat,
    /// Also write the report to a file, such as junit=report.xml; repeatable
    #[arg(long, value_name = "FORMAT=FILE", value_parser = parse_report_file)]
    pub(crate) report: Vec<ReportFile>,
    /// Exit with 0 if the run is incomplete but found no violation. `incomplete` accepts every statement that was not
    /// judged; `incomplete=second,other` only those that need these inputs. The report states that they were accepted
    #[arg(long, value_name = "incomplete[=PART,…]", value_parser = parse_accept)]
    pub(crate) accept: Option<Accept>,
    /// List every statement and observation in text reports, including passed ones
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Also report how many known server faults this run would have detected in each chapter, and what it would need to
    /// detect the others
    #[arg(long)]
    pub(crate) power: bool,
}

fn parse_accept(text: &str) -> Result<Accept, String> {
    let allowed = || {
        let parts = Part::ALL.map(Part::as_str).join(", ");
        format!("allowed: `incomplete`, or `incomplete=` and some of {parts}")
    };
    match text.strip_prefix("incomplete").ok_or_else(allowed)? {
        "" => Ok(Accept::Incomplete),
        rest => {
            let names = rest.strip_prefix('=').ok_or_else(allowed)?.split(',');
            let parts = names.map(Part::from_name).collect::<Option<_>>().ok_or_else(allowed)?;
            Ok(Accept::Lacking(parts))
        }
    }
}

fn parse_report_file(text: &str) -> Result<ReportFile, String> {
    const ALLOWED: &str = "allowed: FORMAT=FILE such as html=report.html";
    let (format, path) = text.split_once('=').ok_or(ALLOWED)?;
    let format = ReportFormat::from_str(format, false).map_err(|_| {
        let formats = ReportFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<_> = formats.map(|format| format.get_name().to_owned()).collect();
        format!("{ALLOWED}; a FORMAT is one of {}", names.join(", "))
    })?;
    if path.is_empty() {
        return Err(ALLOWED.to_owned());
    }
    Ok(ReportFile { format, path: path.into() })
}

const EXAMPLES: &str = "\
Examples:
  chargeproof judge run.json
  chargeproof judge run.json --report html=report.html
  chargeproof judge browser.har --format json";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JudgeRecording {
    #[command(flatten)]
    pub(crate) reports: Reports,
    /// A recording made with `check --record`, or a HAR file from a browser or proxy. A HAR file allows fewer
    /// statements to be judged
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}
