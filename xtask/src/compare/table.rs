//! Formats the tables, and replaces the tables in a Markdown page.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::CaseFigures;
use super::figures::{Figures, Spread};
use super::mock_servers::MockServer;
use super::process::Cores;

const TABLES_BEGIN: &str = "<!-- measured: written by `cargo xtask compare --write` -->\n";
const TABLES_END: &str = "<!-- end of the measured part -->\n";

pub(crate) fn heading(rounds: u32, seconds: u32) -> String {
    let stdout_of = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output().ok();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    format!(
        "{}, {cores} cores ({model}), Linux {}, {}; load before: {}. Medians of {rounds} rounds of {seconds} s, \
         which alternate between both servers, over 32 keep-alive connections; minimum and maximum in brackets.\n",
        stdout_of("date", &["-u", "+%Y-%m-%d"]),
        stdout_of("uname", &["-r"]),
        stdout_of("rustc", &["--version"]),
        load.split(' ').next().unwrap_or_default(),
    )
}

pub(crate) fn ratio_table(cores: Cores, rows: &[CaseFigures]) -> String {
    let mut text = match cores {
        Cores::Pinned => "\n**Pinned**: the server on one core, the client on the other.\n\n".to_owned(),
        Cores::Shared => {
            "\n**Shared**: server and client (two threads) on the same two cores.\n\n".to_owned()
        }
    };
    text.push_str(
        "| response | bytes | rate relative to bare hyper | goal | CPU relative to bare | CPU per response | CPU of bare | \
         responses/s |\n",
    );
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    for row in rows {
        let figures = &row.figures;
        let (reference, bare) = figures.cpu_ns();
        let goal = match cores {
            Cores::Pinned => two_decimals(u64::from(row.case.ratio_goal) * 10),
            Cores::Shared => "–".to_owned(),
        };
        text.push_str(&format!(
            "| {} | {} | {} | {goal} | {} | {} µs | {} µs | {} |\n",
            row.case.title,
            row.bytes,
            spread(figures.ratio()),
            spread(figures.cpu_ratio()),
            micros(reference.median),
            micros(bare.median),
            figures.rate().median,
        ));
    }
    text
}

pub(crate) fn mock_server_table(mock_servers: &[MockServer]) -> String {
    let mut text =
        "\n**Other mock servers**, shared cores: responses per second for the same bytes, relative to bare \
                    hyper.\n\n"
            .to_owned();
    text.push_str("| mock server | page | event | account | memory at the end |\n|---|---|---|---|---|\n");
    for server in mock_servers {
        match &server.figures {
            Err(reason) => text.push_str(&format!("| {} | skipped: {reason} | | | |\n", server.name)),
            Ok((ratios, kib)) => {
                text.push_str(&format!("| {}", server.name));
                for ratio in ratios {
                    text.push_str(&format!(" | {}", three_decimals(ratio.median)));
                }
                text.push_str(&format!(" | {} MiB |\n", kib / 1_024));
            }
        }
    }
    text
}

pub(crate) fn durability_table(figures: &Figures) -> String {
    format!(
        "\n**Stored**: charges opened (BTC) per second with `serve --data`, relative to a server in memory, shared cores. Every \
         response waits for the disk. The goal is 0.70.\n\n| relative to in memory | charges/s |\n|---|---|\n| {} | {} |\n",
        spread(figures.ratio()),
        figures.rate().median
    )
}

pub(crate) fn one_off_table(durations: &[(&str, u128)]) -> String {
    let mut text = "\n| single action | median of 5 |\n|---|---|\n".to_owned();
    for (operation, micros) in durations {
        text.push_str(&format!("| {operation} | {}.{} ms |\n", micros / 1_000, micros / 100 % 10));
    }
    text
}

fn spread(spread: Spread) -> String {
    format!("**{}** ({}–{})", two_decimals(spread.median), two_decimals(spread.min), two_decimals(spread.max))
}

/// Formats thousandths with two decimals.
fn two_decimals(thousandths: u64) -> String {
    let n = (thousandths + 5) / 10;
    format!("{}.{:02}", n / 100, n % 100)
}

/// Formats thousandths with three decimals.
fn three_decimals(thousandths: u64) -> String {
    format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
}

/// Formats nanoseconds as microseconds with one decimal.
fn micros(nanos: u64) -> String {
    let n = (nanos + 50) / 100;
    format!("{}.{}", n / 10, n % 10)
}

/// Replaces the text between the markers of a page by the tables.
pub(crate) fn write(path: &Path, tables: &str) -> Result<(), String> {
    let page = fs::read_to_string(path).map_err(|err| format!("cannot read `{}`: {err}", path.display()))?;
    let page = replace_tables(&page, tables)
        .ok_or(format!("`{}` has no markers around its tables", path.display()))?;
    fs::write(path, page).map_err(|err| format!("cannot write `{}`: {err}", path.display()))
}

fn replace_tables(page: &str, tables: &str) -> Option<String> {
    let (before, rest) = page.split_once(TABLES_BEGIN)?;
    let (_, after) = rest.split_once(TABLES_END)?;
    Some(format!("{before}{TABLES_BEGIN}{tables}{TABLES_END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_between_the_markers() {
        let page = format!("# A\n{TABLES_BEGIN}old\n{TABLES_END}rest\n");
        assert_eq!(
            replace_tables(&page, "new\n"),
            Some(format!("# A\n{TABLES_BEGIN}new\n{TABLES_END}rest\n"))
        );
        assert_eq!(replace_tables("# A\n", "new\n"), None);
    }

    #[test]
    fn figures_are_rounded() {
        assert_eq!(
            (two_decimals(895), two_decimals(894), two_decimals(1_004)),
            ("0.90".into(), "0.89".into(), "1.00".into())
        );
        assert_eq!((micros(7_649), micros(7_650)), ("7.6".into(), "7.7".into()));
        assert_eq!(three_decimals(35), "0.035");
    }
}
