//! Checks the invariants on scenario files.

use simulator::{
    picture::{self, PageInput},
    script::Script,
    sweep::Runner,
};

use super::{report, write};
use crate::{
    Failure,
    args::{Format, Sweep},
    files::{self, SCENARIO_MAX},
    terminal::{self, print_line},
};

/// Checks scenario files. With `--html`, writes the page of the first failing one, or else of the first one.
pub(super) fn judge_files(args: &Sweep) -> Result<u8, Failure> {
    let runner = Runner::with_fault(args.demo_fault);
    let (mut rows, mut scripts) = (Vec::new(), Vec::new());
    for path in &args.files {
        let name = path.display().to_string();
        let text = files::text_of(path, SCENARIO_MAX)?;
        let script = Script::parse(&name, &text).map_err(|error| Failure::usage(error.to_string()))?;
        rows.push((name, runner.try_script(&script)));
        scripts.push(script);
    }
    let first_failed = rows.iter().position(|(_, verdict)| !verdict.findings.violations.is_empty());
    if let Some(path) = &args.html {
        let index = first_failed.unwrap_or(0);
        let violation = rows[index].1.findings.violations.first();
        let picture = PageInput { script: &scripts[index], fault: args.demo_fault, violation, failure: None };
        write(path, &picture::page(&picture))?;
    }
    match args.format {
        Format::Text => terminal::print(report::files_text(&rows)),
        Format::Json => print_line!("{}", report::files_json(&rows)),
    }
    Ok(u8::from(first_failed.is_some()))
}
