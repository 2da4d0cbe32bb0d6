//! `chargeproof serve`: the reference server, until it is told to stop.

use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    num::NonZeroU32,
    path::Path,
};

use reference_core::{draw::Seed, limit::REQUESTS_PER_MINUTE};
use reference_server::{Bounds, ClockKind, Config as ServerConfig, CourierConfig, Reach, Server};
use serde::Serialize;
use tokio::{
    runtime::Runtime,
    signal::unix::{Signal, SignalKind, signal},
};

use crate::{
    Failure,
    args::{Clock, Format, RateLimit, Serve},
    config::Config,
    screen::{DIM, GOOD},
};

const DEFAULT_PORT: u16 = 8402;
const DEFAULT_SPEED: u32 = 60;
const PEM_MARK: &[u8] = b"BEGIN CERTIFICATE";

/// What a script needs to know of a server that is ready.
#[derive(Serialize)]
struct Ready {
    url: String,
    address: SocketAddr,
    live_key: String,
    test_key: String,
    seed: u64,
    clock: &'static str,
    sandbox_token: String,
}

pub(crate) fn run(args: &Serve, config: &Config, format: Format) -> Result<u8, Failure> {
    let server_config = server_config(args, config)?;
    let clock = match server_config.clock {
        ClockKind::Wall => "wall",
        ClockKind::Fast { .. } => "fast",
        ClockKind::Frozen => "frozen",
    };
    let runtime =
        Runtime::new().map_err(|error| Failure::usage(format!("no threads to serve with: {error}")))?;
    runtime.block_on(async {
        // Before anything is printed, so that whoever reads it may already send a signal.
        let mut stop = StopSignals::catch()
            .map_err(|error| Failure::usage(format!("signals can't be caught: {error}")))?;
        let address = server_config.address;
        let server = Server::start(server_config)
            .await
            .map_err(|error| Failure::usage(cannot_listen(address, &error)))?;
        let keys = server.first_keys().expect("a server that just started is well");
        let ready = Ready {
            url: server.url().to_owned(),
            address: server.address(),
            live_key: keys.live,
            test_key: keys.test,
            seed: server.seed().0,
            clock,
            sandbox_token: server.sandbox_token().to_owned(),
        };
        if let Some(path) = &args.ready_file {
            write_ready_file(path, &ready)
                .map_err(|error| Failure::usage(format!("`{}` can't be written: {error}", path.display())))?;
        }
        announce(&ready, format);
        stop.told().await;
        anstream::eprintln!("stopping; a second Ctrl-C does not wait for what was begun");
        tokio::select! {
            cut_off = server.run_until(std::future::ready(())) => match cut_off {
                0 => anstream::eprintln!("stopped"),
                n => anstream::eprintln!("stopped; connections cut off: {n}"),
            },
            () = stop.told() => anstream::eprintln!("stopped at once"),
        }
        Ok(0)
    })
}

/// Ctrl-C and SIGTERM.
struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

impl StopSignals {
    fn catch() -> io::Result<StopSignals> {
        Ok(StopSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn told(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Why it can't begin, and what can be done about it.
pub(super) fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        // A setting is wrong, and the error names it: the address has nothing to do with it.
        io::ErrorKind::InvalidInput => error.to_string(),
        io::ErrorKind::AddrInUse => format!(
            "can't listen on `{address}`: {error}; stop what listens there, or take another port with `--listen`"
        ),
        _ => format!("can't listen on `{address}`: {error}"),
    }
}

/// The command line first, then the file, then what is usual.
fn server_config(args: &Serve, config: &Config) -> Result<ServerConfig, Failure> {
    let file = &config.serve;
    let file_start = file.start().map_err(Failure::usage)?;
    let file_limit = file.rate_limit().map_err(Failure::usage)?;
    let seed = match args.seed.or(file.seed) {
        Some(seed) => seed,
        // Keys are drawn from the seed: nobody may guess it.
        None => {
            getrandom::u64().map_err(|error| Failure::usage(format!("no randomness for a seed: {error}")))?
        }
    };
    if args.speed.is_some() && args.clock.or(file.clock) != Some(Clock::Fast) {
        return Err(Failure::usage("`--speed` is for `--clock fast`; give both, or neither"));
    }
    let usual_speed = NonZeroU32::new(DEFAULT_SPEED).expect("a constant above zero");
    let clock = match args.clock.or(file.clock).unwrap_or(Clock::Wall) {
        Clock::Wall => ClockKind::Wall,
        Clock::Fast => ClockKind::Fast { factor: args.speed.or(file.speed).unwrap_or(usual_speed) },
        Clock::Frozen => ClockKind::Frozen,
    };
    let RateLimit(rate_limit) =
        args.rate_limit.or(file_limit).unwrap_or(RateLimit(Some(REQUESTS_PER_MINUTE)));
    Ok(ServerConfig {
        address: args.listen.or(file.listen).unwrap_or((Ipv4Addr::LOCALHOST, DEFAULT_PORT).into()),
        seed: Seed(seed),
        start: args.start.or(file_start),
        rate_limit,
        public_url: args.public_url.clone().or_else(|| file.public_url.clone()),
        clock,
        dialect: config.dialect().map_err(Failure::usage)?,
        bounds: Bounds::default(),
        courier: courier(args, config)?,
    })
}

/// How deliveries reach real receivers.
fn courier(args: &Serve, config: &Config) -> Result<CourierConfig, Failure> {
    let mut forwards = args.forward.clone();
    forwards.extend(config.serve.forwards().map_err(Failure::usage)?);
    let cacert = args.cacert.as_ref().or(config.serve.cacert.as_ref());
    let extra_roots = cacert.map(|path| read_certificates(path)).transpose()?;
    Ok(CourierConfig { reach: Reach::Abroad, forwards, extra_roots, ..CourierConfig::default() })
}

/// What is inside is read when the server starts; this much can be said with the file's name.
fn read_certificates(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let pem = fs::read(path).map_err(|error| Failure::usage(format!("`{name}` can't be read: {error}")))?;
    if pem.windows(PEM_MARK.len()).any(|part| part == PEM_MARK) {
        return Ok(pem);
    }
    Err(Failure::usage(format!("`{name}` holds no certificate; it takes PEM")))
}

fn announce(ready: &Ready, format: Format) {
    if format == Format::Json {
        anstream::println!("{}", serde_json::to_string(ready).expect("texts and a number are JSON"));
        return;
    }
    let Ready { url, live_key, test_key, seed, clock, sandbox_token, .. } = ready;
    anstream::println!("{GOOD}serving{GOOD:#}  {url}");
    anstream::println!("live key  {live_key}");
    anstream::println!("test key  {test_key}");
    anstream::println!("seed      {seed}   {DIM}(--seed {seed} makes the same world again){DIM:#}");
    anstream::println!("clock     {clock}");
    anstream::println!("dashboard {url}/dashboard");
    anstream::println!(
        "sandbox   {url}/sandbox   {DIM}(both from other machines with the token {sandbox_token}){DIM:#}"
    );
    if !ready.address.ip().is_loopback() {
        anstream::println!("{DIM}other machines can reach this server; everything on it is simulated{DIM:#}");
    }
    anstream::println!();
    anstream::println!("  curl -H \"Authorization: Bearer {live_key}\" {url}/v1/account");
    anstream::println!();
    anstream::println!("Ctrl-C stops it.");
}

/// Appears whole or not at all, and only its owner can read the keys in it.
pub(super) fn write_ready_file(path: &Path, ready: &impl Serialize) -> io::Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    // A file that lies there already would keep its own mode, and a link would lead the keys elsewhere.
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&part)?;
    serde_json::to_writer_pretty(&mut file, ready)?;
    file.write_all(b"\n")?;
    fs::rename(&part, path)
}
