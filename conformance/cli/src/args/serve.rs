//! The command line of `serve`.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf};

use clap::{Args, ValueEnum};
use reference_core::time::Timestamp;
use reference_server::{Forward, LocalHandler};

use super::{Format, RateLimit, parse_listen, parse_rate_limit, whole_number};

/// The source of the service clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Clock {
    /// Real time
    Wall,
    /// Faster than real time, by the factor `--speed`
    Fast,
    /// Frozen until `POST /sandbox/advance` advances it
    Frozen,
}

/// The format of the log on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// No log
    Off,
    /// One line of text per entry
    Text,
    /// One JSON object per entry
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
    /// Format of the message that is printed when the server is ready
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Log requests, events and deliveries to stderr [default: text on a terminal, otherwise off]
    #[arg(long, value_enum)]
    pub(crate) log: Option<Log>,
    /// Address and port to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8402", value_parser = parse_listen)]
    pub(crate) listen: SocketAddr,
    /// Port to listen on; overrides the port in `--listen`
    #[arg(long, value_name = "N", value_parser = whole_number::<u16>(0..=u64::from(u16::MAX)))]
    pub(crate) port: Option<u16>,
    /// Open the dashboard in the default browser, or in the one set in the environment variable BROWSER
    #[arg(long)]
    pub(crate) open: bool,
    /// Start with three days of sample data, which end now or, with `--start`, begin at that time
    #[arg(long)]
    pub(crate) demo: bool,
    /// Store the world in this directory. If the directory already contains a world, continue it
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// With `--data`: number of calls between checkpoints, which make the next start faster; `off`: write no
    /// checkpoints and replay all calls at start
    #[arg(long, value_name = "N|off", default_value = "5000", value_parser = parse_checkpoint_after)]
    pub(crate) checkpoint_after: CheckpointAfter,
    /// With `--data`: start a damaged world from its last intact commit. The damaged file is kept in the same directory
    #[arg(long, requires = "data")]
    pub(crate) recover: bool,
    /// With `--data`: if the world's clock is ahead of real time, restore the latest state that is not in the future.
    /// The newer state is kept as a snapshot
    #[arg(long, requires = "data")]
    pub(crate) clock_reset: bool,
    /// Start from this snapshot file, as downloaded from GET /sandbox/snapshots/{id}
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "start", "demo"])]
    pub(crate) from: Option<PathBuf>,
    /// Run this scenario and serve the resulting world, with a frozen clock
    #[arg(long, value_name = "FILE", conflicts_with_all = ["start", "demo", "data", "from", "clock", "speed"])]
    pub(crate) scenario: Option<PathBuf>,
    /// With `--scenario`: run only its first STEP steps
    #[arg(long, value_name = "STEP", value_parser = whole_number::<usize>(1..=u64::from(u32::MAX)), requires = "scenario")]
    pub(crate) until: Option<usize>,
    /// Forward the webhooks of both modes to this handler on your machine: registers one endpoint per mode and prints
    /// their secrets; repeatable
    #[arg(long, value_name = "URL", value_parser = LocalHandler::parse)]
    pub(crate) forward_to: Vec<LocalHandler>,
    /// Seed of all keys, codes and ids; the same seed and requests produce identical responses [default: random]
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>(0..=u64::MAX))]
    pub(crate) seed: Option<u64>,
    /// Source of the service clock
    #[arg(long, value_enum, default_value_t = Clock::Wall)]
    pub(crate) clock: Clock,
    /// Seconds of service time per second of real time, with `--clock fast` [default: 60]
    #[arg(long, value_name = "N", value_parser = whole_number::<NonZeroU32>(1..=u64::from(u32::MAX)))]
    pub(crate) speed: Option<NonZeroU32>,
    /// Start time of the service clock, such as 2026-01-05T09:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_start)]
    pub(crate) start: Option<Timestamp>,
    /// Public base URL of the server if clients reach it at a different address, for example through a tunnel
    #[arg(long, value_name = "URL")]
    pub(crate) public_url: Option<String>,
    /// Also serve HTTPS on the same port, with a self-signed certificate unless `--tls-cert` is given
    #[arg(long)]
    pub(crate) tls: bool,
    /// PEM file with the server certificate, followed by any intermediate certificates
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// PEM file with the private key of `--tls-cert`
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Do not require the sandbox token from loopback, even with --public-url
    #[arg(long)]
    pub(crate) trust_loopback: bool,
    /// Environment variable with the token that other machines need for /sandbox and the dashboard [default: a random
    /// token]
    #[arg(long, value_name = "NAME")]
    pub(crate) sandbox_token_env: Option<String>,
    /// Allow MCP tools to advance the service clock even if it follows real time
    #[arg(long)]
    pub(crate) mcp_clock: bool,
    /// Rate limit in requests per minute for each key, or `off`
    #[arg(long, value_name = "N|off", default_value = "120", value_parser = parse_rate_limit)]
    pub(crate) rate_limit: RateLimit,
    /// Memory limit in MiB for all worlds together, estimated. At the limit, no more worlds can be opened, and only the
    /// server's own world accepts changes
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = whole_number::<usize>(1..=1_048_576))]
    pub(crate) worlds_memory: usize,
    /// Deliver webhooks for this host to a local address instead; repeatable
    #[arg(long, value_name = "https://HOST=http://LOCAL", value_parser = Forward::parse)]
    pub(crate) forward: Vec<Forward>,
    /// PEM file with additional certificate authorities to trust when delivering webhooks
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Write the address, keys and seed to this file as JSON when the server is ready
    #[arg(long, value_name = "FILE")]
    pub(crate) ready_file: Option<PathBuf>,
}

fn parse_start(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "allowed: a UTC time such as 2026-01-05T09:00:00Z".to_owned())
}

/// The number of calls between two checkpoints of a world; `None` for no checkpoints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointAfter(pub(crate) Option<u64>);

fn parse_checkpoint_after(text: &str) -> Result<CheckpointAfter, String> {
    match text.parse() {
        _ if text == "off" => Ok(CheckpointAfter(None)),
        Ok(calls) if calls > 0 => Ok(CheckpointAfter(Some(calls))),
        _ => Err("allowed: `off` or a whole number of at least 1".to_owned()),
    }
}
