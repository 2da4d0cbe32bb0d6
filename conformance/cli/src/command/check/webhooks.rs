//! Webhooks of a target: from a receiver during the run, or from a file of captured requests.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use conformance::{
    DeliverySource, DeliveryTrigger, Endpoint, Hook, Interrupt, Mode, Registration, Secret, TriggerFuture,
    TriggeredDeliveries, Webhooks,
    receiver::{BackgroundReceiver, WebhookNames},
    run_shell,
};
use reference_core::event::EventType;
use tokio::runtime::Runtime;

use super::{ProgressDisplay, keys};
use crate::{
    Failure,
    args::WebhookOptions,
    command::{receiver::read_captured, serve::listen_error_message},
    config::Config,
    terminal::{DIM, GOOD},
};

/// The default of `--receive-for`.
const RECEIVE_FOR_DEFAULT: Duration = Duration::from_secs(60);
/// Time limit of one run of the `--register` command.
const REGISTER_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum number of deliveries in a file of `--deliveries`.
const CAPTURED_MAX: usize = 5_000;
const LIVE_PATH: &str = "/live";
const TEST_PATH: &str = "/test";
/// The path of the endpoint that the `--register` command registers, separate from the others.
const REGISTERED_PATH: &str = "/added";

/// URLs that must be refused: loopback, private networks, cloud metadata services.
pub(super) const FORBIDDEN_URLS: [&str; 15] = [
    "https://localhost/hooks",
    "https://127.0.0.1/hooks",
    "https://127.0.0.2/hooks",
    "https://[::1]/hooks",
    "https://0.0.0.0/hooks",
    "https://10.0.0.1/hooks",
    "https://172.16.0.1/hooks",
    "https://192.168.1.1/hooks",
    "https://169.254.169.254/latest/meta-data",
    "https://metadata.google.internal/computeMetadata/v1",
    "https://[fd00::1]/hooks",
    "https://[::ffff:127.0.0.1]/hooks",
    "https://2130706433/hooks",
    "https://hooks.example.com@127.0.0.1/hooks",
    HTTP_URL,
];
/// An http URL, which must be refused: endpoints require https.
const HTTP_URL: &str = "http://example.com/hooks";

/// Returns the webhook plan that the options describe; `None` without webhook options.
pub(super) fn webhook_plan(
    args: &WebhookOptions,
    config: &Config,
    runtime: &Runtime,
    progress: &ProgressDisplay,
    interrupt: &Interrupt,
) -> Result<Option<Webhooks>, Failure> {
    let dialect = config.dialect.clone();
    let names = WebhookNames { header_prefix: dialect.header_prefix, user_agent: dialect.user_agent };
    let secrets = || keys::webhook_secrets(config, &mut |warning| progress.warn(&warning));
    let source = if let Some(path) = &args.deliveries {
        DeliverySource::Captured {
            received: read_captured(path, CAPTURED_MAX)?,
            endpoints: endpoints(args, secrets()?)?.into(),
        }
    } else if let Some(address) = args.receiver {
        listen(args, address, endpoints(args, secrets()?)?, runtime, progress, interrupt)?
    } else if args.subscribed.is_empty() {
        return Ok(None);
    } else {
        return Err(Failure::usage(
            "`--subscribed` needs a source of webhooks; add --receiver or --deliveries",
        ));
    };
    let public_url = args.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    Ok(Some(Webhooks { names, source, public_url }))
}

/// Starts the receiver of `--receiver` and returns it as the source of deliveries.
fn listen(
    args: &WebhookOptions,
    address: SocketAddr,
    endpoints: [Endpoint; 2],
    runtime: &Runtime,
    progress: &ProgressDisplay,
    interrupt: &Interrupt,
) -> Result<DeliverySource, Failure> {
    let receiver = runtime
        .block_on(BackgroundReceiver::start(address))
        .map_err(|error| Failure::usage(listen_error_message(address, &error)))?;
    let public_url = match &args.public_url {
        Some(url) => url.as_str().trim_end_matches('/').to_owned(),
        None => format!("http://{}", receiver.address()),
    };
    endpoints.into_iter().for_each(|endpoint| receiver.declare(endpoint));
    if args.redirect_trial {
        receiver
            .set_responses(TEST_PATH, "302,307,200".parse().expect("the constant has three valid statuses"));
    }
    progress.info(&format!("{GOOD}receiving{GOOD:#}  http://{}", receiver.address()));
    progress.info(&format!(
        "{DIM}register {public_url}{LIVE_PATH} in live mode and {public_url}{TEST_PATH} in test mode{DIM:#}"
    ));
    let trigger = args.register.as_ref().map(|command| {
        let registrar = Registrar {
            command: Hook { command: command.clone(), time_limit: REGISTER_TIMEOUT },
            receiver_url: format!("{public_url}{REGISTERED_PATH}"),
            interrupt: interrupt.clone(),
        };
        Arc::new(registrar) as Arc<dyn DeliveryTrigger>
    });
    let receive_for = args.receive_for.unwrap_or(RECEIVE_FOR_DEFAULT);
    Ok(DeliverySource::Receiver { receiver: Arc::new(receiver), receive_for, trigger })
}

/// Returns the two endpoints: one in live mode, one in test mode.
fn endpoints(args: &WebhookOptions, [live, test]: [Option<Secret>; 2]) -> Result<[Endpoint; 2], Failure> {
    let events = subscribed_types(&args.subscribed)?;
    let endpoint = |path: &str, mode, secret| Endpoint {
        path: path.to_owned(),
        mode: Some(mode),
        events: Some(events.clone()),
        secret,
    };
    Ok([endpoint(LIVE_PATH, Mode::Live, live), endpoint(TEST_PATH, Mode::Test, test)])
}

/// Returns the event types that match the patterns; all types if there are no patterns.
fn subscribed_types(patterns: &[String]) -> Result<BTreeSet<String>, Failure> {
    let all = || EventType::ALL.into_iter().map(|event_type| event_type.as_str().to_owned());
    if patterns.is_empty() {
        return Ok(all().collect());
    }
    let mut subscribed = BTreeSet::new();
    for pattern in patterns {
        let matches = |event_type: &String| match pattern.split_once('*') {
            None => event_type == pattern,
            Some((prefix, suffix)) => event_type.starts_with(prefix) && event_type.ends_with(suffix),
        };
        let matching: Vec<String> = all().filter(matches).collect();
        if matching.is_empty() {
            let types: Vec<String> = all().collect();
            return Err(Failure::usage(format!(
                "no event type matches `{pattern}`; the types are {}",
                types.join(", ")
            )));
        }
        subscribed.extend(matching);
    }
    Ok(subscribed)
}

/// A trigger that registers endpoints with the `--register` command.
#[derive(Debug)]
struct Registrar {
    command: Hook,
    /// The URL of an endpoint at the receiver, which the service must accept: otherwise rejections
    /// of other URLs prove nothing.
    receiver_url: String,
    /// Stops the command.
    interrupt: Interrupt,
}

impl DeliveryTrigger for Registrar {
    fn trigger<'a>(&'a self, _: &'a BackgroundReceiver) -> TriggerFuture<'a> {
        Box::pin(async move {
            let receiver_url = &self.receiver_url;
            let registration = self.register(receiver_url, true).await?;
            let is_accepted = registration.accepted;
            let mut registrations = vec![registration];
            // If the service rejects even the receiver's URL, only one other URL is tried. If the receiver's URL is
            // plain http, the http URL is not expected to be rejected.
            let is_http = receiver_url.starts_with("http://");
            let urls = FORBIDDEN_URLS.iter().filter(|url| !is_http || **url != HTTP_URL);
            for url in urls.take(if is_accepted { FORBIDDEN_URLS.len() } else { 1 }) {
                registrations.push(self.register(url, false).await?);
            }
            Ok(TriggeredDeliveries { settled: false, registrations })
        })
    }
}

impl Registrar {
    /// Runs the command for one URL. A failed command means that the service refused the URL. Returns an
    /// error if the command cannot be run or is killed.
    async fn register(&self, url: &str, is_public: bool) -> Result<Registration, String> {
        let environment =
            [("CHARGEPROOF_ENDPOINT_URL", url), ("CHARGEPROOF_ENDPOINT_MODE", Mode::Test.as_str())];
        let (status, _) = run_shell(&self.command, &environment, &self.interrupt)
            .await
            .map_err(|why| format!("the --register command {why}"))?;
        match status.code() {
            // Ended by a signal, or with the shell's exit codes for a command that cannot be run.
            None | Some(126 | 127) => Err(format!("the --register command ended with {status}")),
            Some(code) => Ok(Registration {
                address: url.to_owned(),
                public: is_public,
                accepted: code == 0,
                response: format!("the command ended with {code}"),
            }),
        }
    }
}
