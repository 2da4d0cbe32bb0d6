//! `chargeproof serve`: the reference server, until a signal stops it.

use std::{io, net::SocketAddr, num::NonZeroU32, path::Path};

use reference_core::rng::Seed;
use reference_server::{
    ClockKind, Config as ServerConfig, McpClock, Reach, SandboxAccess, SenderConfig, Server,
};
use serde::Serialize;

use crate::{
    Failure,
    args::{Clock, Format, RateLimit, Serve},
    config::Config,
    files::{self, SETTINGS_MAX},
    screen::{DIM, GOOD, note, say},
    signals::StopSignals,
};

const DEFAULT_SPEED: u32 = 60;
const PEM_MARK: &[u8] = b"BEGIN CERTIFICATE";

/// A server that is ready, for scripts.
#[derive(Serialize)]
struct ServerReady {
    url: String,
    address: SocketAddr,
    live_key: String,
    test_key: String,
    seed: u64,
    clock: &'static str,
    sandbox_token: String,
}

pub(crate) fn run(args: &Serve, config: &Config) -> Result<u8, Failure> {
    let server_config = server_config(args, config)?;
    let clock = match server_config.clock {
        ClockKind::Wall => "wall",
        ClockKind::Fast { .. } => "fast",
        ClockKind::Frozen => "frozen",
    };
    args.ready_file.as_deref().map_or(Ok(()), files::check_writable)?;
    super::runtime()?.block_on(async {
        // Before anything is printed, so that whoever reads it may already send a signal.
        let mut stop = StopSignals::catch()?;
        let address = server_config.address;
        let server = Server::start(server_config)
            .await
            .map_err(|error| Failure::usage(cannot_listen(address, &error)))?;
        let keys = server.first_keys().expect("a server that just started is well");
        let ready = ServerReady {
            url: server.url().to_owned(),
            address: server.address(),
            live_key: keys.live,
            test_key: keys.test,
            seed: server.seed().0,
            clock,
            sandbox_token: server.sandbox_token().to_owned(),
        };
        if let Some(path) = &args.ready_file {
            write_ready_file(path, &ready)?;
        }
        announce(&ready, args.format);
        stop.next().await;
        note!("stopping; press Ctrl-C again to stop without waiting for open requests");
        tokio::select! {
            cut_off = server.run_until(std::future::ready(())) => match cut_off {
                0 => note!("stopped"),
                n => note!("stopped; connections cut off: {n}"),
            },
            () = stop.next() => note!("stopped at once"),
        }
        Ok(0)
    })
}

/// Why a server can't listen, and what to do about it.
pub(super) fn cannot_listen(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        // A setting is wrong, and the error names it: the address has nothing to do with it.
        io::ErrorKind::InvalidInput => error.to_string(),
        io::ErrorKind::AddrInUse => format!(
            "can't listen on `{address}`: {error}; stop the other program, or choose another port with `--listen`"
        ),
        _ => format!("can't listen on `{address}`: {error}"),
    }
}

fn server_config(args: &Serve, config: &Config) -> Result<ServerConfig, Failure> {
    let seed = match args.seed {
        Some(seed) => seed,
        // Keys are drawn from the seed: nobody may guess it.
        None => getrandom::u64().map_err(|error| Failure::machine(format!("no random seed: {error}")))?,
    };
    if args.speed.is_some() && args.clock != Clock::Fast {
        return Err(Failure::usage("`--speed` is for `--clock fast`; give both or neither"));
    }
    let default_speed = NonZeroU32::new(DEFAULT_SPEED).expect("a constant above zero");
    let clock = match args.clock {
        Clock::Wall => ClockKind::Wall,
        Clock::Fast => ClockKind::Fast { factor: args.speed.unwrap_or(default_speed) },
        Clock::Frozen => ClockKind::Frozen,
    };
    let RateLimit(rate_limit) = args.rate_limit;
    Ok(ServerConfig {
        address: args.listen,
        seed: Seed(seed),
        start: args.start,
        rate_limit,
        public_url: args.public_url.clone(),
        clock,
        dialect: config.dialect.clone(),
        sandbox_access: if args.trust_loopback {
            SandboxAccess::TrustLoopback
        } else {
            SandboxAccess::TokenWhenPublic
        },
        mcp_clock: if args.mcp_clock { McpClock::Any } else { McpClock::FrozenOnly },
        sender: sender(args)?,
        ..ServerConfig::local()
    })
}

/// How deliveries reach real receivers.
fn sender(args: &Serve) -> Result<SenderConfig, Failure> {
    let extra_roots = args.cacert.as_deref().map(read_certificates).transpose()?;
    Ok(SenderConfig {
        reach: Reach::Network,
        forwards: args.forward.clone(),
        extra_roots,
        ..SenderConfig::default()
    })
}

/// What is inside is read when the server starts; this much can be said with the file's name.
fn read_certificates(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display();
    let pem = files::read(path, SETTINGS_MAX).map_err(|error| files::cannot_read(path, &error))?;
    if pem.windows(PEM_MARK.len()).any(|part| part == PEM_MARK) {
        return Ok(pem);
    }
    Err(Failure::usage(format!("`{name}` holds no certificate; it takes PEM")))
}

fn announce(ready: &ServerReady, format: Format) {
    if format == Format::Json {
        say!("{}", serde_json::to_string(ready).expect("texts and a number are JSON"));
        return;
    }
    let ServerReady { url, live_key, test_key, seed, clock, sandbox_token, .. } = ready;
    say!("{GOOD}serving{GOOD:#}  {url}");
    say!("live key  {live_key}");
    say!("test key  {test_key}");
    say!("seed      {seed}   {DIM}(--seed {seed} gives the same keys and ids again){DIM:#}");
    say!("clock     {clock}");
    say!("dashboard {url}/dashboard");
    say!("sandbox   {url}/sandbox   {DIM}(from other machines both need the token {sandbox_token}){DIM:#}");
    if !ready.address.ip().is_loopback() {
        say!("{DIM}other machines can reach this server; everything on it is simulated{DIM:#}");
    }
    say!();
    say!("  curl -H \"Authorization: Bearer {live_key}\" {url}/v1/account");
    say!();
    say!("Press Ctrl-C to stop.");
}

/// Tells a script that the server is ready. Only the owner can read the keys in the file.
pub(super) fn write_ready_file(path: &Path, ready: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(ready).expect("texts and numbers are JSON");
    files::write_private(
        path,
        &(text
            + "
"),
    )
}
