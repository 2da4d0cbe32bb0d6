//! `chargeproof serve`: runs the reference server until a signal stops it.

mod banner;
pub(super) mod demo;
mod log;
mod scenario;
mod tls;

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    num::NonZeroU32,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use reference_core::{rng::Seed, time::Timestamp};
use reference_server::{
    Bounds, ClockKind, Config as ServerConfig, ForwardRecord, McpClockAccess, OpeningProgress, Reach,
    SandboxAccess, SenderConfig, Server, StorageConfig, UnavailableWorld, WORLD_FILE_MAX,
};
use serde::Serialize;
use tokio::sync::watch;

use crate::{
    Failure,
    args::{Clock, RateLimit, Serve},
    config::Config,
    files::{self, SETTINGS_MAX},
    signals::StopSignals,
    terminal::{note, note_briefly},
};

/// The maximum time that tasks may take to end after the server has stopped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
const DEFAULT_SPEED: u32 = 60;
/// A part of the first line of a PEM certificate.
const PEM_MARKER: &[u8] = b"BEGIN CERTIFICATE";

/// The description of a ready server, for scripts.
#[derive(Serialize)]
struct ServerReady {
    /// The version of the format, incremented when older readers would misread it.
    format: u32,
    url: String,
    address: SocketAddr,
    live_key: String,
    test_key: String,
    seed: u64,
    clock: &'static str,
    sandbox_token: String,
    /// The file with the certificate that clients must trust, with `--tls`.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<PathBuf>,
    forwards: Vec<ForwardRecord>,
}

pub(crate) fn run(args: &Serve, config: &Config) -> Result<u8, Failure> {
    let scenario =
        args.scenario.as_deref().map(|path| scenario::read(path, args.until, args.seed)).transpose()?;
    let mut server_config = server_config(args, config)?;
    if let Some(script) = &scenario {
        // The scenario determines the seed, and advances the clock itself.
        (server_config.seed, server_config.clock) = (Seed(script.seed), ClockKind::Frozen);
    }
    let printer = log::Printer::start(args.log)?;
    server_config.log = printer.as_ref().map(log::Printer::sink);
    let certificate = tls::Certificate::from_args(args, server_config.address)?;
    server_config.tls = certificate.as_ref().map(|certificate| certificate.identity.clone());
    let demo_start = server_config.start.filter(|_| args.demo && !has_world(args));
    if args.demo && has_world(args) {
        note!("--demo is ignored, because the world in --data already has a history");
    }
    let clock = match server_config.clock {
        ClockKind::Wall => "wall",
        ClockKind::Fast { .. } => "fast",
        ClockKind::Frozen => "frozen",
    };
    args.ready_file.as_deref().map_or(Ok(()), files::check_writable)?;
    let runtime = super::runtime()?;
    let result = runtime.block_on(async {
        // Catches signals before the first output, because a program that reads it may send one.
        let mut signals = StopSignals::catch()?;
        let server = start_server(server_config).await?;
        if let Some(start) = demo_start {
            let add_sample_data =
                move |url: &str, token: &str| demo::add_sample_data(url, Some(token.to_owned()), start);
            prepare_world(&server, add_sample_data).await?;
        }
        if let Some(script) = scenario {
            prepare_world(&server, move |url, token| scenario::run(url, token, &script)).await?;
        }
        let mut forwards = Vec::new();
        for handler in &args.forward_to {
            forwards
                .push(server.forward_to(handler).await.map_err(|error| Failure::usage(error.to_string()))?);
        }
        let keys = server.first_keys().expect("the server has not failed");
        let ready = ServerReady {
            format: 1,
            url: server.url().to_owned(),
            address: server.address(),
            live_key: keys.live,
            test_key: keys.test,
            seed: server.seed().0,
            clock,
            sandbox_token: server.sandbox_token().to_owned(),
            certificate: certificate.as_ref().map(|certificate| certificate.path.clone()),
            forwards,
        };
        if let Some(path) = &args.ready_file {
            write_ready_file(path, &ready)?;
        }
        // The calls that prepared the world are not logged. Clients send requests as soon as the banner is printed.
        printer.iter().for_each(log::Printer::start_printing);
        banner::print(&ready, args.format);
        if args.open {
            banner::open_browser(&format!("{}/dashboard", ready.url));
        }
        signals.next().await;
        stop(server, signals).await;
        Ok(0)
    });
    // A timeout, because a task that writes to a blocked stderr never ends.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
}

/// Stops the server: after its open requests, or at once after another signal.
async fn stop(server: Server, mut signals: StopSignals) {
    note_briefly("stopping; press Ctrl-C again to stop without waiting for open requests".to_owned());
    note_briefly(tokio::select! {
        open_connections = server.run_until(std::future::ready(())) => match open_connections {
            0 => "stopped".to_owned(),
            count => format!("stopped; open connections closed: {count}"),
        },
        () = signals.next() => "stopped at once".to_owned(),
    });
}

/// Starts the server, and a task that reports the opening of stored worlds.
async fn start_server(config: ServerConfig) -> Result<Server, Failure> {
    let address = config.address;
    let server =
        Server::start(config).await.map_err(|error| Failure::usage(listen_error_message(address, &error)))?;
    tokio::spawn(report_opened_worlds(server.openings()));
    Ok(server)
}

/// Reports how many stored worlds are still to be opened, those that cannot be opened, and notices about the others.
async fn report_opened_worlds(mut openings: watch::Receiver<OpeningProgress>) {
    let (mut unavailable_reported, mut notices_reported, total) = (0, 0, openings.borrow().waiting);
    // Progress is reported after each tenth of the worlds.
    let mut report_at = total;
    loop {
        let OpeningProgress { waiting, unavailable, notices } = openings.borrow_and_update().clone();
        for UnavailableWorld { id, why } in &unavailable[unavailable_reported..] {
            note!("the stored world {id} cannot be opened: {why}");
        }
        for notice in &notices[notices_reported..] {
            note!("{notice}");
        }
        (unavailable_reported, notices_reported) = (unavailable.len(), notices.len());
        if waiting > 0 && waiting <= report_at {
            note!("stored worlds to open: {waiting}; requests to them wait until they are open");
            report_at = waiting.saturating_sub(total.div_ceil(10));
        }
        if waiting == 0 || openings.changed().await.is_err() {
            break;
        }
    }
    if total > 0 && openings.borrow().waiting == 0 {
        note!("all stored worlds are open, except for those that cannot be opened");
    }
}

/// Returns `true` if the directory of `--data` contains a world.
fn has_world(args: &Serve) -> bool {
    args.data.as_deref().is_some_and(StorageConfig::has_world)
}

/// Returns `start`, or else the start time with which the sample data ends now.
fn demo_start_or_default(start: Option<Timestamp>) -> Timestamp {
    start.unwrap_or_else(|| {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = Timestamp(u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX));
        Timestamp(now.0.saturating_sub(demo::HISTORY_DURATION.0))
    })
}

/// Runs `prepare` with the URL of the server and its sandbox token, on a separate thread, while the
/// server responds to its calls.
async fn prepare_world(
    server: &Server,
    prepare: impl FnOnce(&str, &str) -> Result<(), Failure> + Send + 'static,
) -> Result<(), Failure> {
    let mut address = server.address();
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    let (url, token) = (format!("http://{address}"), server.sandbox_token().to_owned());
    let result = tokio::task::spawn_blocking(move || prepare(&url, &token)).await;
    result.map_err(|_| Failure::machine("an internal error occurred while the world was prepared"))?
}

/// Returns an error message for a server that cannot listen at an address.
pub(super) fn listen_error_message(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        // The error is about a setting, not about the address.
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::WouldBlock => {
            error.to_string()
        }
        io::ErrorKind::AddrInUse => format!(
            "can't listen on `{address}`: {error}; stop the other program, or choose another port with `--port`"
        ),
        _ => format!("can't listen on `{address}`: {error}"),
    }
}

/// Returns the configuration of the server: the options, and the dialect of `chargeproof.toml`.
fn server_config(args: &Serve, config: &Config) -> Result<ServerConfig, Failure> {
    let seed = match args.seed {
        Some(seed) => seed,
        // The keys are derived from the seed, so it must be unpredictable.
        None => getrandom::u64()
            .map_err(|error| Failure::machine(format!("cannot draw a random seed: {error}")))?,
    };
    if args.speed.is_some() && args.clock != Clock::Fast {
        return Err(Failure::usage("`--speed` requires `--clock fast`; add it, or remove `--speed`"));
    }
    let default_speed = NonZeroU32::new(DEFAULT_SPEED).expect("the constant is not zero");
    let clock = match args.clock {
        Clock::Wall => ClockKind::Wall,
        Clock::Fast => ClockKind::Fast { factor: args.speed.unwrap_or(default_speed) },
        Clock::Frozen => ClockKind::Frozen,
    };
    let RateLimit(rate_limit) = args.rate_limit;
    let mut address = args.listen;
    address.set_port(args.port.unwrap_or(address.port()));
    Ok(ServerConfig {
        address,
        seed: Seed(seed),
        start: if args.demo { Some(demo_start_or_default(args.start)) } else { args.start },
        rate_limit,
        public_url: args.public_url.clone(),
        clock,
        dialect: config.dialect.clone(),
        sandbox_access: if args.trust_loopback {
            SandboxAccess::TrustLoopback
        } else {
            SandboxAccess::TokenWhenPublic
        },
        sandbox_token: args.sandbox_token_env.as_deref().map(super::environment_variable).transpose()?,
        bounds: Bounds { world_bytes: args.worlds_memory.saturating_mul(1 << 20), ..Bounds::default() },
        mcp_clock: if args.mcp_clock { McpClockAccess::Any } else { McpClockAccess::FrozenOnly },
        sender: sender_config(args)?,
        data: args.data.clone().map(|directory| StorageConfig {
            directory,
            // An existing world must have this seed and start, if they are given.
            seed: args.seed.map(Seed),
            start: args.start.filter(|_| !args.demo),
            checkpoint_after: args.checkpoint_after.0,
            recover: args.recover,
            clock_reset: args.clock_reset,
        }),
        exported_world: args.from.as_deref().map(read_snapshot).transpose()?,
        ..ServerConfig::local()
    })
}

/// Returns the settings of the webhook sender.
fn sender_config(args: &Serve) -> Result<SenderConfig, Failure> {
    let extra_roots = args.cacert.as_deref().map(read_certificates).transpose()?;
    Ok(SenderConfig {
        reach: Reach::Network,
        forwards: args.forward.clone(),
        extra_roots,
        ..SenderConfig::default()
    })
}

/// Reads a snapshot file. The server checks its content when it starts.
fn read_snapshot(path: &Path) -> Result<Vec<u8>, Failure> {
    files::read(path, WORLD_FILE_MAX).map_err(|error| files::read_failure(path, &error))
}

/// Reads a file that contains a certificate. The server checks the certificate when it starts.
fn read_certificates(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let pem = files::read(path, SETTINGS_MAX).map_err(|error| files::read_failure(path, &error))?;
    if pem.windows(PEM_MARKER.len()).any(|bytes| bytes == PEM_MARKER) {
        return Ok(pem);
    }
    Err(Failure::usage(format!("`{name}` does not contain a certificate in PEM format")))
}

/// Writes the file of `--ready-file`. Only its owner can read it, because it contains keys.
pub(super) fn write_ready_file(path: &Path, ready: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(ready).expect("strings and numbers serialize to JSON");
    files::write_private(path, &(text + "\n"))
}
