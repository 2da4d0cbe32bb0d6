//! The command line of `serve`.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf};

use clap::{Args, ValueEnum};
use reference_core::time::Timestamp;
use reference_server::{Forward, LocalHandler};

use super::{Format, RateLimit, parse_listen, parse_rate_limit, whole};

/// The source of the service clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// Real time
    Wall,
    /// Faster than real time: see `--speed`
    Fast,
    /// Frozen until `POST /sandbox/advance` moves it
    Frozen,
}

/// The format of the log on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// No log
    Off,
    /// One line of text for each entry
    Text,
    /// One JSON object for each entry
    Json,
}

const EXAMPLES: &str = "\
Examples:
  chargeproof serve
  chargeproof serve --forward-to http://localhost:3000/hooks
  chargeproof serve --demo --open
  chargeproof serve --tls
  chargeproof serve --data shop.world
  chargeproof serve --scenario scenarios/charge/paid.yaml --open
  chargeproof serve --listen 127.0.0.1:0 --seed 7 --ready-file ready.json
  chargeproof serve --clock frozen --start 2026-01-05T09:00:00Z
  chargeproof serve --forward https://shop.example=http://127.0.0.1:3000";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Format of the output once the server is ready
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// A line on stderr for each request, event and delivery [default: text on a terminal, otherwise off]
    #[arg(long, value_enum)]
    pub(crate) log: Option<Log>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8402", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,
    /// Port to listen on, in place of the one of `--listen`
    #[arg(long, value_name = "N", value_parser = whole::<u16>(0..=u64::from(u16::MAX)))]
    pub(crate) port: Option<u16>,
    /// Open the dashboard in the default browser, or in the one that the variable BROWSER names
    #[arg(long)]
    pub(crate) open: bool,
    /// Begin with three days of sample data, ending now, or 3 days after `--start`
    #[arg(long)]
    pub(crate) demo: bool,
    /// Store the world in this directory; the next server that is started with it continues the same world
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// With `--data`: write a checkpoint of a world after this many calls, so that it opens again in seconds; `off` replays
    /// all calls
    #[arg(long, value_name = "N|off", default_value = "5000", value_parser = parse_checkpoint_after)]
    pub(crate) checkpoint_after: CheckpointAfter,
    /// With `--data`: start a damaged world from its last sound commit; the damaged file is kept beside it
    #[arg(long, requires = "data")]
    pub(crate) recover: bool,
    /// With `--data`: if the world's clock is ahead of real time, return the world to its last moment that is not in the
    /// future; a snapshot of the newer state is kept
    #[arg(long, requires = "data")]
    pub(crate) clock_reset: bool,
    /// Begin with the world in this file of GET /sandbox/snapshots/{id}
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "start", "demo"])]
    pub(crate) from: Option<PathBuf>,
    /// Begin with the world after this scenario; its clock is frozen
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start", "demo", "data", "from", "clock", "speed"])]
    pub(crate) scenario: Option<PathBuf>,
    /// With `--scenario`: play only its first STEP steps
    #[arg(long, value_name = "STEP", value_parser = whole::<usize>(1..=u64::from(u32::MAX)), requires = "scenario")]
    pub(crate) until: Option<usize>,
    /// Forward the webhooks of both modes to this handler on your machine: registers endpoints, prints their secrets;
    /// repeatable
    #[arg(long, value_name = "URL", value_parser = LocalHandler::parse)]
    pub(crate) forward_to: Vec<LocalHandler>,
    /// Seed of every key, code and id; the same seed and requests give the same bytes [default: random]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Source of the service clock
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    pub(crate) clock: Clock,
    /// Seconds of service time per second of real time, with `--clock fast` [default: 60]
    #[arg(long, value_name = "N", value_parser = whole::<NonZeroU32>(1..=u64::from(u32::MAX)))]
    pub(crate) speed: Option<NonZeroU32>,
    /// Start time of the service clock, such as 2026-01-05T09:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_start)]
    pub(crate) start: Option<Timestamp>,
    /// Public base address of the server, if clients use another than it listens on, such as a tunnel's
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Serve https too, at the same address, with a self-signed certificate unless one is given
    #[arg(long)]
    pub(crate) tls: bool,
    /// Certificate of the server and its intermediate certificates, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of `--tls-cert`, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Do not require the sandbox token from loopback, even with --public-url
    #[arg(long)]
    pub(crate) trust_loopback: bool,
    /// Environment variable with the token for access to /sandbox and the dashboard from other machines [default: a random
    /// token]
    #[arg(long, value_name = "NAME")]
    pub(crate) sandbox_token_env: Option<String>,
    /// Let MCP tools move the service clock although it follows real time
    #[arg(long)]
    pub(crate) mcp_clock: bool,
    /// Rate limit in requests per minute and key, or `off`
    #[arg(long, value_name = "N|off", default_value = "120", value_parser = parse_rate_limit)]
    pub(crate) rate_limit: RateLimit,
    /// Memory limit in MiB for all worlds together, estimated; at the limit no world is opened, and only the server's own
    /// world continues
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = whole::<usize>(1..=1_048_576))]
    pub(crate) worlds_memory: usize,
    /// Deliver webhooks for this host to a local address instead, during development; repeatable
    #[arg(long, value_name = "https://HOST=http://LOCAL", value_parser = Forward::parse)]
    pub(crate) forward: Vec<Forward>,
    /// Trust the certificate authorities in this PEM file too, when delivering webhooks
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Write address, keys and seed to this file as JSON once the server is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

fn parse_start(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "takes a UTC time such as 2026-01-05T09:00:00Z".to_owned())
}

/// The number of calls between two checkpoints of a world; `None` for no checkpoints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointAfter(pub(crate) Option<u64>);

fn parse_checkpoint_after(text: &str) -> Result<CheckpointAfter, String> {
    match text.parse() {
        _ if text == "off" => Ok(CheckpointAfter(None)),
        Ok(calls) if calls > 0 => Ok(CheckpointAfter(Some(calls))),
        _ => Err("takes `off` or a whole number of at least 1".to_owned()),
    }
}
