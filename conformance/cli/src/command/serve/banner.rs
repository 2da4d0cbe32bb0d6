//! The output of `serve` once the server is ready.

use std::{env, process::Stdio};

use tokio::process::Command;

use super::ServerReady;
use crate::{
    args::Format,
    terminal::{DIM, GOOD, note, say},
};

pub(super) fn print(ready: &ServerReady, format: Format) {
    if format == Format::Json {
        say!("{}", serde_json::to_string(ready).expect("strings and numbers serialize to JSON"));
        return;
    }
    let ServerReady { url, seed, clock, sandbox_token, .. } = ready;
    say!("{GOOD}serving{GOOD:#}   {url}");
    say!("dashboard {url}/dashboard");
    say!("sandbox   {url}/sandbox   {DIM}(other machines need the token {sandbox_token} for both){DIM:#}");
    say!("seed      {seed}   {DIM}(reproduce these keys and ids with --seed {seed}){DIM:#}");
    say!("clock     {clock}");
    if let Some(path) = &ready.certificate {
        say!(
            "trust     {}   {DIM}(curl --cacert, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE){DIM:#}",
            path.display()
        );
    }
    for forward in &ready.forwards {
        say!("forward   {}   {DIM}(registered as {}){DIM:#}", forward.to, forward.url);
    }
    if !ready.address.ip().is_loopback() {
        say!("{DIM}other machines can reach this server; everything on it is simulated{DIM:#}");
    }
    say!();
    for (name, value) in exports(ready) {
        say!("  export {name}={value}");
    }
    say!();
    let trust =
        ready.certificate.as_ref().map(|path| format!("--cacert {} ", path.display())).unwrap_or_default();
    say!("  curl {trust}-H \"Authorization: Bearer $CHARGEPROOF_TEST_KEY\" {url}/v1/account");
    say!();
    say!("Press Ctrl-C to stop.");
}

/// Returns the variables that a shop needs, under the names that the other commands read.
fn exports(ready: &ServerReady) -> Vec<(String, &str)> {
    let mut exports = vec![
        ("CHARGEPROOF_URL".to_owned(), ready.url.as_str()),
        ("CHARGEPROOF_LIVE_KEY".to_owned(), &ready.live_key),
        ("CHARGEPROOF_TEST_KEY".to_owned(), &ready.test_key),
    ];
    for (n, forward) in (1..).zip(&ready.forwards) {
        // One handler is the usual case; further ones are counted.
        let count = if n == 1 { String::new() } else { format!("_{n}") };
        let secrets = [("LIVE", &forward.live_secret), ("TEST", &forward.test_secret)];
        // The secret of an existing endpoint is not known: it was shown at creation.
        for (mode, secret) in
            secrets.into_iter().filter_map(|(mode, secret)| Some((mode, secret.as_deref()?)))
        {
            exports.push((format!("CHARGEPROOF_{mode}_WEBHOOK_SECRET{count}"), secret));
        }
    }
    exports
}

/// Opens a page in the user's browser, if one can be started.
pub(super) fn open_browser(url: &str) {
    let usual: &[&str] = match env::consts::OS {
        "macos" => &["open"],
        "windows" => &["cmd", "/C", "start", ""],
        _ => &["xdg-open"],
    };
    let chosen = env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let (program, rest) = match &chosen {
        Some(program) => (program.as_str(), &[][..]),
        None => (usual[0], &usual[1..]),
    };
    let quiet = Stdio::null;
    let mut command = Command::new(program);
    command.args(rest).arg(url).stdin(quiet()).stdout(quiet()).stderr(quiet());
    if let Err(error) = command.spawn() {
        note!("no browser can be started with `{program}`: {error}; open {url}");
    }
}
