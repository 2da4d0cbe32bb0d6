//! `chargeproof receiver`: catch webhook deliveries and say what is wrong with their signatures.

mod handler;
mod line;

use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use conformance::{
    Secret,
    receiver::{
        Arrival, Caught, Diagnosis, Given, Keyring, Names, Note, Settings, Tally, Withheld, diagnose, notes,
    },
};
use serde::Serialize;
use tokio::{
    runtime::Runtime,
    signal::unix::{SignalKind, signal},
};

use self::line::Shown;
use super::serve::{cannot_listen, write_ready_file};
use crate::{
    Failure,
    args::{Format, JudgeDeliveries, Listen, Receiver, Secrets},
    config::Config,
    screen::{DIM, GOOD},
};

const DEFAULT_PORT: u16 = 8403;
/// A shorter one could not be told from other text, and so not be withheld.
const SECRET_LETTERS_MIN: usize = 8;
/// A recorded request is at most a head and a body, each byte written as several letters.
pub(super) const RECORD_LINE_MAX: usize = 16 * 1024 * 1024;

pub(crate) fn run(action: &Receiver, config: &Config) -> Result<u8, Failure> {
    match action {
        Receiver::Listen(args) => listen(args, config),
        Receiver::Judge(args) => judge(args, config),
        Receiver::Try(args) => handler::run(args, config),
    }
}

fn listen(args: &Listen, config: &Config) -> Result<u8, Failure> {
    let format = args.secrets.format;
    let mut reader = Reader::new(&args.secrets, config)?;
    let mut record = args.record.as_deref().map(Record::open).transpose()?;
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let address = args.listen.unwrap_or_else(|| local(args.port.unwrap_or(DEFAULT_PORT)));
    let settings = Settings {
        address,
        answers: args.answer.clone().unwrap_or_default(),
        forward_to: args.forward_to.clone(),
        ..Settings::default()
    };
    let runtime =
        Runtime::new().map_err(|error| Failure::usage(format!("no threads to listen with: {error}")))?;
    runtime.block_on(async {
        // Before anything is printed, so that whoever reads it may already send a signal.
        let cant = |error| Failure::usage(format!("signals can't be caught: {error}"));
        let mut terminate = signal(SignalKind::terminate()).map_err(cant)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(cant)?;
        let mut receiver = conformance::receiver::Receiver::start(settings)
            .await
            .map_err(|error| Failure::usage(cannot_listen(address, &error)))?;
        if args.forward_to.as_ref().is_some_and(|handler| handler.leads_to(receiver.address())) {
            return Err(Failure::usage(
                "--forward-to leads back to this receiver; it takes a handler's address",
            ));
        }
        let ready = Ready::new(receiver.address());
        if let Some(path) = &args.ready_file {
            write_ready_file(path, &ready)
                .map_err(|error| Failure::usage(format!("`{}` can't be written: {error}", path.display())))?;
        }
        announce(&ready, &reader.keyring, format);
        let mut stopped = false;
        loop {
            let arrival = tokio::select! {
                biased;
                _ = interrupt.recv(), if !stopped => None,
                _ = terminate.recv(), if !stopped => None,
                arrival = receiver.next() => arrival,
            };
            match arrival {
                Some(Arrival::Caught(caught, given)) => {
                    let now = caught.unix_secs();
                    let shown = reader.read(&caught, Some(given), now);
                    if let Some(record) = &mut record {
                        record.append(&shown.caught)?;
                    }
                    shown.print(format);
                }
                Some(Arrival::Turned(turned)) => {
                    reader.summary.turned_away += 1;
                    line::print_turned(&reader.withheld.clean(&turned.to_string()), format);
                }
                None if stopped => break,
                // What has arrived is still told.
                None => {
                    receiver.stop();
                    stopped = true;
                }
            }
        }
        Ok(reader.finish())
    })
}

fn judge(args: &JudgeDeliveries, config: &Config) -> Result<u8, Failure> {
    let format = args.secrets.format;
    let mut reader = Reader::new(&args.secrets, config)?;
    let path = args.file.display();
    let cant = |error| Failure::usage(format!("`{path}` can't be read: {error}"));
    let mut file = BufReader::new(fs::File::open(&args.file).map_err(cant)?);
    let mut text = Vec::new();
    for number in 1_u64.. {
        text.clear();
        let count = std::io::Read::take(&mut file, RECORD_LINE_MAX as u64)
            .read_until(b'\n', &mut text)
            .map_err(cant)?;
        if count == 0 {
            break;
        }
        let caught: Caught = serde_json::from_slice(&text).map_err(|error| {
            Failure::usage(format!("`{path}` line {number} is not a recorded request: {error}"))
        })?;
        let now = caught.unix_secs();
        reader.read(&caught, None, now).print(format);
    }
    Ok(reader.finish())
}

/// Judges requests in the order in which they came, and counts.
struct Reader {
    keyring: Keyring,
    withheld: Withheld,
    tally: Tally,
    summary: Summary,
    format: Format,
}

/// How it went in all.
#[derive(Debug, Default, Serialize)]
struct Summary {
    received: u64,
    verified: u64,
    not_verified: u64,
    not_judged: u64,
    duplicates: u64,
    turned_away: u64,
}

impl Reader {
    fn new(secrets: &Secrets, config: &Config) -> Result<Reader, Failure> {
        let format = secrets.format;
        let dialect = config.dialect().map_err(Failure::usage)?;
        let header_prefix = secrets.header_prefix.clone().unwrap_or(dialect.header_prefix);
        let keyring = Keyring {
            names: Names { header_prefix, user_agent: dialect.user_agent },
            secrets: from_environment(&secrets.secret_env)?,
            other_mode: from_environment(&secrets.other_mode_secret_env)?,
        };
        let all = keyring.secrets.iter().chain(&keyring.other_mode);
        let withheld = Withheld::new(all.map(|(_, secret)| secret));
        Ok(Reader { keyring, withheld, tally: Tally::default(), summary: Summary::default(), format })
    }

    fn read(&mut self, caught: &Caught, given: Option<Given>, now: i64) -> Shown {
        let names = &self.keyring.names;
        let clean = self.withheld.clean_request(caught);
        let mut diagnosis = diagnose(caught, &self.keyring, now);
        let mut notes = notes(&clean, names);
        if clean != *caught {
            notes.push(Note::SecretQuoted);
            // Reasons quote the request: then they are to quote the clean one.
            if let Diagnosis::NotVerified { .. } = diagnosis {
                diagnosis = diagnose(&clean, &self.keyring, now);
            }
        }
        let glance = clean.glance(names);
        let try_number = glance.delivery.as_deref().map(|id| self.tally.count(id));
        if let Some(try_number @ 2..) = try_number {
            notes.push(Note::Retry { try_number });
            self.summary.duplicates += 1;
        }
        self.summary.received += 1;
        match diagnosis {
            Diagnosis::Verified { .. } => self.summary.verified += 1,
            Diagnosis::NotVerified { .. } => self.summary.not_verified += 1,
            Diagnosis::NotJudged => self.summary.not_judged += 1,
        }
        Shown { caught: clean, glance, diagnosis, notes, try_number, given }
    }

    fn finish(self) -> u8 {
        let summary = &self.summary;
        match self.format {
            Format::Json => line::print_json("summary", summary),
            Format::Text => {
                let Summary { received, verified, not_verified, not_judged, duplicates, turned_away } =
                    summary;
                let mut text =
                    format!("{received} received: {verified} verified, {not_verified} not verified");
                for (count, what) in
                    [(not_judged, "not judged"), (duplicates, "duplicates"), (turned_away, "turned away")]
                {
                    if *count > 0 {
                        text.push_str(&format!(", {count} {what}"));
                    }
                }
                anstream::println!("{text}");
            }
        }
        match summary {
            Summary { not_verified: 1.., .. } => 1,
            // Nothing came, or no secret was at hand: silence is no success.
            Summary { verified: 0, .. } => 3,
            _ => 0,
        }
    }
}

fn from_environment(names: &[String]) -> Result<Vec<(String, Secret)>, Failure> {
    names.iter().map(|name| Ok((name.clone(), Secret::new(secret(name)?)))).collect()
}

/// White space stays: that a secret has some is a fault that is worth a diagnosis.
fn secret(name: &str) -> Result<String, Failure> {
    let takes = "it takes the endpoint's secret, such as `whsec_…`";
    let text = match env::var(name) {
        Ok(text) => text,
        Err(env::VarError::NotPresent) => {
            return Err(Failure::usage(format!("the variable `{name}` is not set; {takes}")));
        }
        Err(env::VarError::NotUnicode(_)) => {
            return Err(Failure::usage(format!("the variable `{name}` is not UTF-8; {takes}")));
        }
    };
    if text.trim().len() < SECRET_LETTERS_MIN {
        return Err(Failure::usage(format!(
            "the variable `{name}` has fewer than {SECRET_LETTERS_MIN} characters; {takes}"
        )));
    }
    Ok(text)
}

/// What a script needs to know of a receiver that is ready.
#[derive(Serialize)]
struct Ready {
    url: String,
    address: SocketAddr,
}

impl Ready {
    fn new(address: SocketAddr) -> Ready {
        Ready { url: format!("http://{address}"), address }
    }
}

fn announce(ready: &Ready, keyring: &Keyring, format: Format) {
    if format == Format::Json {
        line::print_json("ready", ready);
        return;
    }
    anstream::println!("{GOOD}catching{GOOD:#}  {}   {DIM}(any path){DIM:#}", ready.url);
    let own = keyring.secrets.iter().map(|(name, _)| name.clone());
    let others = keyring.other_mode.iter().map(|(name, _)| format!("{name} (other mode)"));
    let secrets: Vec<String> = own.chain(others).collect();
    match secrets.is_empty() {
        true => anstream::println!("secrets   none: signatures are not verified without --secret-env NAME"),
        false => anstream::println!("secrets   {}", secrets.join(", ")),
    }
    if !ready.address.ip().is_loopback() {
        anstream::println!("{DIM}other machines can reach this receiver{DIM:#}");
    }
    anstream::println!("{DIM}Ctrl-C stops it.{DIM:#}");
    anstream::println!();
}

/// A file of requests, a line of JSON each.
struct Record<'a> {
    path: &'a Path,
    file: fs::File,
}

impl Record<'_> {
    fn open(path: &Path) -> Result<Record<'_>, Failure> {
        // Deliveries name customers: only the owner reads them.
        let file = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path);
        let cant = |error| Failure::usage(format!("`{}` can't be written: {error}", path.display()));
        Ok(Record { path, file: file.map_err(cant)? })
    }

    fn append(&mut self, caught: &Caught) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(caught).expect("a request can be written as JSON");
        text.push(b'\n');
        self.file
            .write_all(&text)
            .map_err(|error| Failure::usage(format!("`{}` can't be written: {error}", self.path.display())))
    }
}
