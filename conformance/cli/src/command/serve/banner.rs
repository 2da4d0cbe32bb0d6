//! The output of `serve` once the server is ready.

use std::{env, process::Stdio};

use tokio::process::Command;

use super::ServerReady;
use crate::{
    args::Format,
    terminal::{DIM, GOOD, note, print_line},
};

/// Prints the address, keys and settings of the server, or the same as one line of JSON.
pub(super) fn print(ready: &ServerReady, format: Format) {
    if format == Format::Json {
        print_line!("{}", serde_json::to_string(ready).expect("strings and numbers serialize to JSON"));
        return;
    }
    let ServerReady { url, seed, clock, sandbox_token, .. } = ready;
    print_line!("{GOOD}serving{GOOD:#}   {url}");
    print_line!("dashboard {url}/dashboard");
    print_line!(
        "sandbox   {url}/sandbox   {DIM}(other machines need the token {sandbox_token} for both){DIM:#}"
    );
    print_line!("seed      {seed}   {DIM}(reproduce these keys and ids with --seed {seed}){DIM:#}");
    print_line!("clock     {clock}");
    if let Some(path) = &ready.certificate {
        print_line!(
            "trust     {}   {DIM}(curl --cacert, NODE_EXTRA_CA_CERTS, SSL_CERT_FILE){DIM:#}",
            path.display()
        );
    }
    for forward in &ready.forwards {
        print_line!("forward   {}   {DIM}(registered as {}){DIM:#}", forward.to, forward.url);
    }
    if !ready.address.ip().is_loopback() {
        print_line!("{DIM}other machines can reach this server; everything on it is simulated{DIM:#}");
    }
    print_line!();
    for (name, value) in exports(ready) {
        print_line!("  export {name}={value}");
    }
    print_line!();
    let cacert_option =
        ready.certificate.as_ref().map(|path| format!("--cacert {} ", path.display())).unwrap_or_default();
    print_line!("  curl {cacert_option}-H \"Authorization: Bearer $CHARGEPROOF_TEST_KEY\" {url}/v1/account");
    print_line!();
    print_line!("Press Ctrl-C to stop.");
}

/// Returns the environment variables that a merchant's program needs, under the names that the other commands read.
fn exports(ready: &ServerReady) -> Vec<(String, &str)> {
    let mut exports = vec![
        ("CHARGEPROOF_URL".to_owned(), ready.url.as_str()),
        ("CHARGEPROOF_LIVE_KEY".to_owned(), &ready.live_key),
        ("CHARGEPROOF_TEST_KEY".to_owned(), &ready.test_key),
    ];
    for (n, forward) in (1..).zip(&ready.forwards) {
        // The variables of the first handler have no number.
        let suffix = if n == 1 { String::new() } else { format!("_{n}") };
        let secrets = [("LIVE", &forward.live_secret), ("TEST", &forward.test_secret)];
        // The secret of an endpoint that existed before is unknown: it is only returned on creation.
        for (mode, secret) in
            secrets.into_iter().filter_map(|(mode, secret)| Some((mode, secret.as_deref()?)))
        {
            exports.push((format!("CHARGEPROOF_{mode}_WEBHOOK_SECRET{suffix}"), secret));
        }
    }
    exports
}

/// Opens a page in the user's browser, or prints its URL if no browser can be started.
pub(super) fn open_browser(url: &str) {
    let default: &[&str] = match env::consts::OS {
        "macos" => &["open"],
        "windows" => &["cmd", "/C", "start", ""],
        _ => &["xdg-open"],
    };
    let configured = env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let (program, arguments) = match &configured {
        Some(program) => (program.as_str(), &[][..]),
        None => (default[0], &default[1..]),
    };
    let null = Stdio::null;
    let mut command = Command::new(program);
    command.args(arguments).arg(url).stdin(null()).stdout(null()).stderr(null());
    if let Err(error) = command.spawn() {
        note!("cannot start a browser with `{program}`: {error}; open {url}");
    }
}
