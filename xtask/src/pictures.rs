//! `cargo xtask pictures`: takes the README's screenshots of pages of the program.
//!
//! Each picture exists in a light and a dark version. The server has a fixed seed and a frozen clock, so a new
//! picture differs from the stored one only if the program changed. [`PICTURES`] lists them; the files are stored
//! in `.github/pictures`.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::served;
use crate::tools::{create_empty_dir, is_installed, succeeds};

const DIRECTORY: &str = ".github/pictures";
/// The browsers that can take screenshots, in order of preference.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Options of a headless browser: no sandbox, no updates, no background requests, no scroll bars in the picture.
const BROWSER_OPTIONS: [&str; 8] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
];
/// The value of Chromium's `preferredColorScheme` for each suffix of a file name.
const COLOR_SCHEMES: [(&str, u8); 2] = [("dark", 0), ("light", 1)];

/// A screenshot: start of the file name, page, and size in CSS pixels.
struct Picture {
    name: &'static str,
    page: Page,
    size: (u32, u32),
}

enum Page {
    /// The overview of the demo account in live mode, which has the charges of three days.
    Dashboard,
    /// The checkout page of a charge whose payment is confirming.
    Checkout,
    /// A page that the program writes to a file. The name of the file follows these arguments.
    Generated(&'static [&'static str]),
}

const PICTURES: [Picture; 4] = [
    Picture { name: "dashboard", page: Page::Dashboard, size: (1120, 760) },
    Picture { name: "checkout", page: Page::Checkout, size: (1120, 760) },
    Picture { name: "report", page: Page::Generated(&["check", "--report"]), size: (1120, 700) },
    Picture {
        name: "world",
        page: Page::Generated(&["play", "scenarios/delivery/shop_is_down.yaml", "--html"]),
        size: (1120, 437),
    },
];

/// Takes all pictures again. Returns `true`; a picture that cannot be taken is an error.
///
/// # Errors
/// No browser is installed, the program cannot be built or served, or a picture cannot be written.
pub(crate) fn run(root: &Path) -> Result<bool, String> {
    let browser = BROWSERS
        .into_iter()
        .find(|name| is_installed(name))
        .ok_or_else(|| format!("no browser is installed; supported browsers: {}", BROWSERS.join(", ")))?;
    let program = served::build(root)?;
    let work = root.join("target/pictures");
    create_empty_dir(&work)?;
    let options = ["--demo", "--clock", "frozen", "--start", "2026-01-05T09:00:00Z"];
    let served = served::start(&program, &options)?;
    for picture in PICTURES {
        let url = match picture.page {
            Page::Dashboard => format!("{}/dashboard/acme/live", served.value("url")),
            Page::Checkout => checkout_url(&program, served.value("url"))?,
            Page::Generated(arguments) => {
                let file = work.join(format!("{}.html", picture.name));
                write_page(root, &program, arguments, &file)?
            }
        };
        for (scheme, scheme_value) in COLOR_SCHEMES {
            let file = root.join(DIRECTORY).join(format!("{}-{scheme}.png", picture.name));
            let (width, height) = picture.size;
            let mut command = Command::new(browser);
            command
                .args(BROWSER_OPTIONS)
                .arg(format!("--user-data-dir={}", work.join("profile").display()))
                .arg(format!("--window-size={width},{height}"))
                .arg(format!("--blink-settings=preferredColorScheme={scheme_value}"))
                .arg(format!("--screenshot={}", file.display()))
                .arg(&url)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if !succeeds(&mut command)? {
                return Err(format!("{browser} cannot take a picture of {url}"));
            }
            println!("{}", file.display());
        }
    }
    Ok(true)
}

/// Creates a charge with a payment, and returns the URL of its checkout page.
fn checkout_url(program: &Path, url: &str) -> Result<String, String> {
    let mut trigger = Command::new(program);
    trigger.args(["trigger", "charge.payment_detected", "--format", "json", "--to", url]);
    let output = trigger.output().map_err(|err| format!("cannot start {trigger:?}: {err}"))?;
    let result: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    match result["charge"].as_str() {
        Some(code) => Ok(format!("{url}/c/{code}")),
        None => Err(format!("{trigger:?} printed no charge: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// Runs a command that writes an HTML page to `file`. Returns the URL of the file.
fn write_page(root: &Path, program: &Path, arguments: &[&str], file: &Path) -> Result<String, String> {
    // The value of `--report` is `html=FILE`; that of `--html` is `FILE`.
    let prefix = if arguments.ends_with(&["--report"]) { "html=" } else { "" };
    let mut command = Command::new(program);
    command.args(arguments).arg(format!("{prefix}{}", file.display())).current_dir(root);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    if succeeds(&mut command)? {
        Ok(format!("file://{}", file.display()))
    } else {
        Err(format!("{command:?} failed"))
    }
}
