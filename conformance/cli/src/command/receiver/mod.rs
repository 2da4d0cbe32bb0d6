//! `chargeproof receiver`: receives webhooks, verifies their signatures and explains errors, or tests a
//! webhook handler.

mod handler;
mod line;

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use conformance::{
    Secret,
    receiver::{
        Arrival, DeliveryCounter, Diagnosis, Keyring, Note, ReceivedRequest, ReceiverResponse,
        SecretRedaction, Settings, WebhookNames, diagnose, notes,
    },
};
use serde::Serialize;

use self::line::JudgedDelivery;
use super::serve::{listen_error_message, write_ready_file};
use crate::{
    Failure,
    args::{Format, JudgeDeliveries, Listen, Receiver, VerificationOptions},
    config::Config,
    files::{self, LineFile},
    signals::StopSignals,
    terminal::{self, DIM, GOOD, print_line},
};

const DEFAULT_PORT: u16 = 8403;
/// The minimum length of a secret. A shorter one could not be redacted without redacting other text.
const SECRET_LENGTH_MIN: usize = 8;
/// The maximum number of bytes in a line of a recording. A line is longer than its request, because
/// each byte of the request is encoded as several characters.
const RECORD_LINE_MAX: u64 = 16 * 1024 * 1024;

pub(crate) fn run(action: &Receiver, config: &Config) -> Result<u8, Failure> {
    match action {
        Receiver::Listen(args) => listen(args, config),
        Receiver::Judge(args) => judge(args, config),
        Receiver::Try(args) => handler::run(args, config),
    }
}

fn listen(args: &Listen, config: &Config) -> Result<u8, Failure> {
    let format = args.verification.format;
    let mut judge = DeliveryJudge::new(&args.verification, config)?;
    let mut recording = args.record.as_deref().map(LineFile::open).transpose()?;
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let address = args.listen.unwrap_or_else(|| local(args.port.unwrap_or(DEFAULT_PORT)));
    let settings = Settings {
        address,
        responses: args.answer.clone().unwrap_or_default(),
        forward_to: args.forward_to.clone(),
        ..Settings::default()
    };
    args.ready_file.as_deref().map_or(Ok(()), files::check_writable)?;
    super::runtime()?.block_on(async {
        // Catches signals before the first output, because a program that reads it may send one.
        let mut signals = StopSignals::catch()?;
        let mut receiver = conformance::receiver::Receiver::start(settings)
            .await
            .map_err(|error| Failure::usage(listen_error_message(address, &error)))?;
        if args.forward_to.as_ref().is_some_and(|handler| handler.listens_on(receiver.address())) {
            return Err(Failure::usage(
                "the address of --forward-to is that of this receiver; use the address of a handler",
            ));
        }
        let ready = ReceiverReady::new(receiver.address());
        if let Some(path) = &args.ready_file {
            write_ready_file(path, &ready)?;
        }
        print_banner(&ready, &judge.keyring, format);
        let mut is_stopped = false;
        loop {
            let arrival = tokio::select! {
                biased;
                () = signals.next(), if !is_stopped => None,
                arrival = receiver.next() => arrival,
            };
            // A closed stdout ends the command.
            match arrival.filter(|_| is_stopped || !terminal::has_stdout_failed()) {
                Some(Arrival::ReceivedRequest(received, response)) => {
                    let judged = judge.judge(&received, Some(response));
                    if let Some(recording) = &mut recording {
                        recording
                            .append(&serde_json::to_string(&judged.received).expect("a request is JSON"))?;
                    }
                    judged.print(format);
                }
                Some(Arrival::Rejected(rejection)) => {
                    judge.summary.turned_away += 1;
                    line::print_rejected(&judge.redaction.redact(&rejection.to_string()), format);
                }
                None if is_stopped => break,
                // Continues until the requests that have arrived are reported.
                None => {
                    receiver.stop();
                    is_stopped = true;
                }
            }
        }
        Ok(judge.finish())
    })
}

fn judge(args: &JudgeDeliveries, config: &Config) -> Result<u8, Failure> {
    let format = args.verification.format;
    let mut judge = DeliveryJudge::new(&args.verification, config)?;
    for received in RecordedRequests::open(&args.file)? {
        judge.judge(&received?, None).print(format);
    }
    Ok(judge.finish())
}

/// Reads a file of `receiver listen --record` with at most `max` requests.
pub(super) fn read_captured(path: &Path, max: usize) -> Result<Vec<ReceivedRequest>, Failure> {
    // One more than `max`, to detect a file with too many.
    let received: Vec<ReceivedRequest> =
        RecordedRequests::open(path)?.take(max + 1).collect::<Result<_, _>>()?;
    match received.len() > max {
        true => Err(Failure::usage(format!("`{}` has more than {max} requests; split it", path.display()))),
        false => Ok(received),
    }
}

/// An iterator over the requests in a file of `receiver listen --record`, one request per line.
struct RecordedRequests<'a> {
    path: &'a Path,
    file: BufReader<fs::File>,
    /// The number of the line that was read last, from 1.
    line: u64,
}

impl RecordedRequests<'_> {
    fn open(path: &Path) -> Result<RecordedRequests<'_>, Failure> {
        let file = fs::File::open(path).map_err(|error| files::read_failure(path, &error))?;
        Ok(RecordedRequests { path, file: BufReader::new(file), line: 0 })
    }
}

impl Iterator for RecordedRequests<'_> {
    type Item = Result<ReceivedRequest, Failure>;

    fn next(&mut self) -> Option<Result<ReceivedRequest, Failure>> {
        self.line += 1;
        let mut text = Vec::new();
        let mut bounded = std::io::Read::take(&mut self.file, RECORD_LINE_MAX);
        match bounded.read_until(b'\n', &mut text) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_slice(&text).map_err(|error| {
                let (path, line) = (self.path.display(), self.line);
                Failure::usage(format!("`{path}` line {line} is not a recorded request: {error}"))
            })),
            Err(error) => Some(Err(files::read_failure(self.path, &error))),
        }
    }
}

/// Judges requests in their order of arrival and counts the results.
struct DeliveryJudge {
    keyring: Keyring,
    redaction: SecretRedaction,
    attempts: DeliveryCounter,
    summary: Summary,
    format: Format,
}

/// The summary of all deliveries.
#[derive(Debug, Default, Serialize)]
struct Summary {
    received: u64,
    verified: u64,
    not_verified: u64,
    not_judged: u64,
    duplicates: u64,
    turned_away: u64,
}

impl DeliveryJudge {
    fn new(args: &VerificationOptions, config: &Config) -> Result<DeliveryJudge, Failure> {
        let format = args.format;
        let dialect = config.dialect.clone();
        let header_prefix = args.header_prefix.clone().unwrap_or(dialect.header_prefix);
        let keyring = Keyring {
            names: WebhookNames { header_prefix, user_agent: dialect.user_agent },
            secrets: secrets_from_environment(&args.secret_env)?,
            other_endpoints: secrets_from_environment(&args.other_mode_secret_env)?,
        };
        let all_secrets = keyring.secrets.iter().chain(&keyring.other_endpoints);
        let redaction = SecretRedaction::new(all_secrets.map(|(_, secret)| secret));
        Ok(DeliveryJudge {
            keyring,
            redaction,
            attempts: DeliveryCounter::default(),
            summary: Summary::default(),
            format,
        })
    }

    /// Judges a request as of its arrival and counts the result.
    fn judge(&mut self, received: &ReceivedRequest, response: Option<ReceiverResponse>) -> JudgedDelivery {
        let arrived_at = received.unix_secs();
        let names = &self.keyring.names;
        let redacted = self.redaction.redact_request(received);
        let mut diagnosis = diagnose(received, &self.keyring, arrived_at);
        let mut notes = notes(&redacted, names);
        if redacted != *received {
            notes.push(Note::SecretContained);
            // Reasons quote the request, so they are computed again from the redacted one.
            if let Diagnosis::NotVerified { .. } = diagnosis {
                diagnosis = diagnose(&redacted, &self.keyring, arrived_at);
            }
        }
        let summary = redacted.summary(names);
        let attempt_number = summary.delivery.as_deref().map(|id| self.attempts.count(id));
        if let Some(try_number @ 2..) = attempt_number {
            notes.push(Note::Retry { try_number });
            self.summary.duplicates += 1;
        }
        self.summary.received += 1;
        match diagnosis {
            Diagnosis::Verified { .. } => self.summary.verified += 1,
            Diagnosis::NotVerified { .. } => self.summary.not_verified += 1,
            Diagnosis::NotJudged => self.summary.not_judged += 1,
        }
        JudgedDelivery { received: redacted, summary, diagnosis, notes, attempt_number, response }
    }

    /// Prints the summary and returns the exit code.
    fn finish(self) -> u8 {
        let summary = &self.summary;
        match self.format {
            Format::Json => line::print_json("summary", summary),
            Format::Text => {
                let Summary { received, verified, not_verified, not_judged, duplicates, turned_away } =
                    summary;
                let mut text =
                    format!("{received} received: {verified} verified, {not_verified} not verified");
                for (count, name) in
                    [(not_judged, "not judged"), (duplicates, "duplicates"), (turned_away, "rejected")]
                {
                    if *count > 0 {
                        text.push_str(&format!(", {count} {name}"));
                    }
                }
                print_line!("{text}");
            }
        }
        match summary {
            Summary { not_verified: 1.., .. } => 1,
            // No request was received or no secret was given, so nothing is verified.
            Summary { verified: 0, .. } => 3,
            _ => 0,
        }
    }
}

/// Reads secrets from environment variables; returns each with the name of its variable.
fn secrets_from_environment(names: &[String]) -> Result<Vec<(String, Secret)>, Failure> {
    names.iter().map(|name| Ok((name.clone(), Secret::new(read_secret(name)?)))).collect()
}

/// Reads a secret from an environment variable. White space around it is kept, so that the diagnosis can report it.
fn read_secret(name: &str) -> Result<String, Failure> {
    let remedy = "set it to the secret of the endpoint, such as `whsec_…`";
    let text = match env::var(name) {
        Ok(text) => text,
        Err(env::VarError::NotPresent) => {
            return Err(Failure::usage(format!("the variable `{name}` is not set; {remedy}")));
        }
        Err(env::VarError::NotUnicode(_)) => {
            return Err(Failure::usage(format!("the variable `{name}` is not UTF-8; {remedy}")));
        }
    };
    if text.trim().len() < SECRET_LENGTH_MIN {
        return Err(Failure::usage(format!(
            "the variable `{name}` has fewer than {SECRET_LENGTH_MIN} characters; {remedy}"
        )));
    }
    Ok(text)
}

/// The description of a ready receiver, for scripts.
#[derive(Serialize)]
struct ReceiverReady {
    url: String,
    address: SocketAddr,
}

impl ReceiverReady {
    fn new(address: SocketAddr) -> ReceiverReady {
        ReceiverReady { url: format!("http://{address}"), address }
    }
}

fn print_banner(ready: &ReceiverReady, keyring: &Keyring, format: Format) {
    if format == Format::Json {
        line::print_json("ready", ready);
        return;
    }
    print_line!("{GOOD}receiving{GOOD:#} {}   {DIM}(any path){DIM:#}", ready.url);
    let own_mode = keyring.secrets.iter().map(|(name, _)| name.clone());
    let other_mode = keyring.other_endpoints.iter().map(|(name, _)| format!("{name} (other mode)"));
    let secrets: Vec<String> = own_mode.chain(other_mode).collect();
    match secrets.is_empty() {
        true => print_line!("secrets   none; add --secret-env NAME to verify signatures"),
        false => print_line!("secrets   {}", secrets.join(", ")),
    }
    if !ready.address.ip().is_loopback() {
        print_line!("{DIM}other machines can reach this receiver{DIM:#}");
    }
    print_line!("{DIM}Press Ctrl-C to stop.{DIM:#}");
    print_line!();
}
