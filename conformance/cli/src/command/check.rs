//! `chargeproof check`: judge an implementation, or the built-in server.

mod keys;
mod occasion;
mod receiving;

use std::{
    fs,
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use conformance::{
    Budget, Create, Hook, Ledger, Part, Paths, Plan, Progress, RealTime, Requirement, Secret, Selection,
    Veil, Wait, Waiter, catalogue, check, extended, receiver::Catch,
};
use indicatif::ProgressBar;
use reference_core::{draw::Seed, limit::REQUESTS_PER_MINUTE, time::Timestamp};
use reference_server::{Bounds, ClockKind, Config as ServerConfig, CourierConfig, Reach, Server};
use serde_json::json;
use simulator::play::{Call, Stage};
use tokio::runtime::Runtime;
use url::Url;

use self::keys::Keys;
use super::play;
use crate::{
    Failure,
    args::{Check, Profile, ReportFormat},
    config::{COMMENTED, Config},
    remote::RemoteStage,
    reports,
    screen::{DIM, GOOD, spinner},
};

/// The scenario that leaves behind what every statement needs.
const POPULATED: &str = "check/populated";
/// The built-in server's world is always the same.
const SEED: Seed = Seed(1);
const START: &str = "2026-01-05T09:00:00Z";
/// A hook that takes longer than this is ended, unless the configuration says otherwise.
const HOOK_TIME_LIMIT: Duration = Duration::from_secs(30);
/// Nobody remembers a request that is so old.
const REST: Duration = Duration::from_secs(600);

pub(crate) fn run(args: &Check, config: &Config) -> Result<u8, Failure> {
    let format = args.reports.format;
    if args.list {
        list(format, args.profile);
        return Ok(0);
    }
    if let Some(path) = &args.init {
        return init(path);
    }
    // Before anything is played or asked.
    selection(args, config).validate().map_err(Failure::usage)?;
    config.check.validate(&today()).map_err(Failure::usage)?;
    reports::prepare(&args.reports.report)?;
    args.record.as_deref().map_or(Ok(()), reports::writable)?;
    let runtime =
        Runtime::new().map_err(|error| Failure::usage(format!("no threads to check with: {error}")))?;
    let bar = spinner();
    let mut screen = Screen { bar: bar.clone(), format };
    let target = args.url.as_ref().or(config.check.target.as_ref().filter(|_| !args.built_in));
    let outcome = match target {
        Some(url) => {
            let mut plan = plan_for(url, args, config, &mut screen)?;
            plan.webhooks = receiving::webhooks(&args.receiving, config, &runtime, &screen)?;
            let mut waiter = RealTime::start();
            runtime.block_on(check(plan, &mut waiter, &mut screen))
        }
        None if args.cacert.is_some() => {
            return Err(Failure::usage("`--cacert` is for a target over https; name its URL"));
        }
        None => {
            let built_in = BuiltInServer::start(&runtime, config, &mut screen)?;
            let plan = built_in.plan(args, config)?;
            let mut waiter = MovedClock { stage: built_in.stage.clone(), moved: Duration::ZERO };
            let outcome = runtime.block_on(check(plan, &mut waiter, &mut screen));
            runtime.block_on(built_in.server.stop());
            outcome
        }
    };
    bar.finish_and_clear();
    if let Some(path) = &args.record {
        reports::write_whole(path, &outcome.to_file())?;
    }
    reports::tell(&outcome, &args.reports)?;
    Ok(outcome.exit_code())
}

/// Writes the commented configuration where there is none yet.
fn init(path: &Path) -> Result<u8, Failure> {
    let shown = path.display();
    let written = fs::File::create_new(path).and_then(|mut file| file.write_all(COMMENTED.as_bytes()));
    match written {
        Ok(()) => {
            anstream::println!("{GOOD}written{GOOD:#}  {shown}; take the # from the settings that you want");
            Ok(0)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Failure::usage(format!(
            "`{shown}` is there already and stays as it is; name another file: chargeproof check --init FILE"
        ))),
        Err(error) => Err(Failure::usage(format!("`{shown}` can't be written: {error}"))),
    }
}

/// Which statements are asked for: by the command line, or else by the file.
fn selection(args: &Check, config: &Config) -> Selection {
    let first = |args: &Vec<String>, file: &Vec<String>| if args.is_empty() { file } else { args }.clone();
    let profile = args.profile.or(config.check.profile).map(Into::into).unwrap_or_default();
    Selection {
        profile,
        only: first(&args.only, &config.check.only),
        skip: first(&args.skip, &config.check.skip),
    }
}

fn list(format: ReportFormat, profile: Option<Profile>) {
    let mut catalogue = catalogue();
    if profile == Some(Profile::Extended) {
        catalogue.extend(extended());
    }
    if format == ReportFormat::Json {
        anstream::println!("{}", serde_json::to_string_pretty(&catalogue).expect("a catalogue is JSON"));
        return;
    }
    for (id, requirement) in &catalogue {
        let Requirement { level, spec, text, unjudged, .. } = requirement;
        anstream::println!("{id:<32} {:<6} {DIM}{spec}{DIM:#}", level.word());
        anstream::println!("    {text}");
        if let Some(why) = unjudged {
            anstream::println!("    {DIM}not judged: {why}{DIM:#}");
        }
    }
    let judged = catalogue.values().filter(|it| it.unjudged.is_none()).count();
    anstream::println!("{} statements, {judged} of them judged", catalogue.len());
}

/// A foreign server: its keys come from the environment or from files, never from the command line.
fn plan_for(url: &str, args: &Check, config: &Config, screen: &mut Screen) -> Result<Plan, Failure> {
    let base = Url::parse(url).map_err(|error| {
        Failure::usage(format!(
            "`{url}` is not an address: {error}; it takes one such as http://127.0.0.1:8402"
        ))
    })?;
    let keys = Keys::gather(config, &mut |warning| screen.warn(&warning))?;
    let mut plan = Plan::new(base, keys.live, keys.test);
    plan.second_key = keys.second;
    plan.other_account_key = keys.other_account;
    plan.revoked_key = keys.revoked;
    plan.paths = config.check.paths();
    if args.allow_writes || config.check.allow_writes {
        plan.writes = Some(config.check.create());
    }
    if let Some(path) = args.cacert.as_ref().or(config.check.cacert.as_ref()) {
        let pem = fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("`{}` can't be read: {error}", path.display())))?;
        plan.ca_pem = Some(pem);
    }
    choose(&mut plan, args, config)?;
    Ok(plan)
}

/// What the command line and the file say about any plan.
fn choose(plan: &mut Plan, args: &Check, config: &Config) -> Result<(), Failure> {
    Selection { profile: plan.profile, only: plan.only, skip: plan.skip } = selection(args, config);
    plan.quick = args.quick || (config.check.quick && !args.thorough);
    plan.thorough = args.thorough || (config.check.thorough && !plan.quick);
    plan.without = match args.without.is_empty() {
        true => config.check.without().map_err(Failure::usage)?,
        false => args.without.iter().filter_map(|word| Part::named(word)).collect(),
    };
    plan.baseline = config.check.baseline(today()).map_err(Failure::usage)?;
    let time_limit = config.check.time_limit().map_err(Failure::usage)?;
    plan.time_limit = args.time_limit.map(Duration::from_secs).or(time_limit).unwrap_or(plan.time_limit);
    let time_limit = config.check.hook_time_limit().map_err(Failure::usage)?.unwrap_or(HOOK_TIME_LIMIT);
    let command = args.hook.as_ref().or(config.check.hook.as_ref());
    plan.hook = command.map(|command| Hook { command: command.clone(), time_limit });
    if args.privacy {
        let mut key = [0; 32];
        getrandom::fill(&mut key)
            .map_err(|error| Failure::usage(format!("the system gives no random key: {error}")))?;
        plan.privacy = Some(Veil::new(key));
    }
    plan.key_prefix = config.dialect().map_err(Failure::usage)?.key_prefix;
    Ok(())
}

/// The day in UTC, for entries of the baseline that expire.
#[allow(clippy::disallowed_methods, reason = "days pass outside of every simulated world")]
fn today() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Timestamp(u64::try_from(since.as_micros()).expect("a clock of this age")).to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}

/// The built-in server, with a world in which every statement can be put to the test.
struct BuiltInServer {
    server: Server,
    stage: Arc<Mutex<RemoteStage>>,
    /// Where its deliveries come.
    catch: Arc<Catch>,
    second_key: String,
    other_account_key: String,
    revoked_key: String,
}

impl BuiltInServer {
    fn start(runtime: &Runtime, config: &Config, screen: &mut Screen) -> Result<BuiltInServer, Failure> {
        let catch = Arc::new(occasion::receiver(runtime)?);
        let server_config = ServerConfig {
            address: (std::net::Ipv4Addr::LOCALHOST, 0).into(),
            seed: SEED,
            start: Timestamp::parse(START),
            rate_limit: Some(REQUESTS_PER_MINUTE),
            public_url: None,
            clock: ClockKind::Frozen,
            dialect: config.dialect().map_err(Failure::usage)?,
            bounds: Bounds::default(),
            courier: CourierConfig {
                reach: Reach::Abroad,
                forwards: vec![occasion::way(catch.address())],
                ..CourierConfig::default()
            },
        };
        let server = runtime
            .block_on(Server::start(server_config))
            .map_err(|error| Failure::unreachable(format!("the built-in server does not start: {error}")))?;
        let mut stage = RemoteStage::new(server.url()).map_err(Failure::unreachable)?;
        let violated = |message: String| Failure { code: 1, message };
        let count = play::rehearse(&mut stage, &mut |name| screen.bar.set_message(format!("playing {name}")))
            .map_err(violated)?;
        play::perform_built_in(POPULATED, &mut stage).map_err(violated)?;
        screen.say(&format!("{GOOD}{count} scenarios{GOOD:#} played over HTTP, each as written"));

        let mut ask = |method: &str, path: &str, bearer: Option<&str>, body: serde_json::Value| {
            let call = Call { method, path, bearer, headers: &[], body: Some(&body) };
            let answer = stage.call(&call).map_err(|error| Failure::unreachable(error.to_string()))?;
            match answer.status {
                200..=299 => Ok(answer.json()),
                status => Err(violated(format!("{method} {path} answered {status}: {}", answer.json()))),
            }
        };
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let another = ask("POST", "/sandbox/accounts", None, json!({ "id": "another" }))?;
        let other_account_key = text(&another["keys"]["test"]);
        let charge = json!({ "asset": "BTC", "amount": "10.00" });
        ask("POST", "/v1/charges", Some(&other_account_key), charge)?;
        let second = ask("POST", "/sandbox/keys", None, json!({ "mode": "test" }))?;
        let revoked = ask("POST", "/sandbox/keys", None, json!({ "mode": "test" }))?;
        let id = text(&revoked["key"]["id"]);
        ask("DELETE", &format!("/sandbox/keys/{id}"), None, json!({}))?;
        ask("POST", "/sandbox/advance", None, json!({ "by": format!("{}s", REST.as_secs()) }))?;
        Ok(BuiltInServer {
            server,
            second_key: text(&second["key"]["secret"]),
            other_account_key,
            revoked_key: text(&revoked["key"]["secret"]),
            stage: Arc::new(Mutex::new(stage)),
            catch,
        })
    }

    fn plan(&self, args: &Check, config: &Config) -> Result<Plan, Failure> {
        let keys = self.server.first_keys().expect("a server that plays its scenarios is well");
        let base = Url::parse(self.server.url()).expect("a server's own address is one");
        let mut plan = Plan::new(base, Secret::new(keys.live), Secret::new(keys.test));
        plan.second_key = Some(Secret::new(self.second_key.clone()));
        plan.other_account_key = Some(Secret::new(self.other_account_key.clone()));
        plan.revoked_key = Some(Secret::new(self.revoked_key.clone()));
        // It is ours: nobody minds two more charges, and we know where its objects are.
        plan.writes = Some(Create::default());
        plan.paths = Paths {
            charge: Some("/v1/charges/{id}".to_owned()),
            invoice: Some("/v1/invoices/{id}".to_owned()),
            payment_link: Some("/v1/payment-links/{id}".to_owned()),
        };
        choose(&mut plan, args, config)?;
        if !plan.without.contains(&Part::Webhooks) {
            plan.webhooks = Some(occasion::webhooks(&self.catch, &self.stage, config)?);
        }
        Ok(plan)
    }
}

/// A target whose clock stands still until it is moved.
struct MovedClock {
    stage: Arc<Mutex<RemoteStage>>,
    moved: Duration,
}

impl Waiter for MovedClock {
    fn now(&self) -> Duration {
        self.moved
    }

    fn wait(&mut self, span: Duration) -> Wait<'_> {
        let stage = self.stage.clone();
        Box::pin(async move {
            let body = json!({ "by": format!("{}us", span.as_micros()) });
            // The stage has a runtime of its own, which may not be entered from within another.
            let moving = tokio::task::spawn_blocking(move || {
                let call = Call {
                    method: "POST",
                    path: "/sandbox/advance",
                    bearer: None,
                    headers: &[],
                    body: Some(&body),
                };
                let answer = stage.lock().expect("nobody panics while asking").call(&call);
                match answer {
                    Ok(answer) if answer.status == 200 => Ok(()),
                    Ok(answer) => Err(format!("the clock can't be moved: {}", answer.json())),
                    Err(error) => Err(error.to_string()),
                }
            });
            moving.await.map_err(|error| error.to_string())??;
            self.moved += span;
            Ok(())
        })
    }
}

/// What people see while they wait.
struct Screen {
    bar: ProgressBar,
    format: ReportFormat,
}

impl Screen {
    /// A line that stays, whatever the format: the report does not tell it.
    fn warn(&self, line: &str) {
        self.bar.suspend(|| anstream::eprintln!("{line}"));
    }

    /// A line that stays.
    fn say(&self, line: &str) {
        if self.format == ReportFormat::Text {
            self.bar.suspend(|| anstream::eprintln!("{line}"));
        }
    }
}

impl Progress for Screen {
    fn budget(&mut self, budget: &Budget) {
        self.say(&budget.to_string());
    }

    fn asked(&mut self, ledger: &Ledger) {
        self.bar.set_message(format!("{} requests", ledger.total()));
    }

    fn waiting(&mut self, span: Duration, why: &str) {
        self.bar.set_message(format!("waiting {} s: {why}", span.as_secs()));
    }
}
