//! A world that is restored from its written state continues identically.

use reference_core::{rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use serde_json::Value;
use simulator::{
    play::{Stage, StageError, StageRequest, StageResponse, play},
    sandbox::{Sandbox, Setup},
    script::Script,
    workload,
};

use crate::scenarios::scenarios;

const BASE: &str = "https://pay.example";
/// The number of random worlds besides the scenarios.
const RANDOM_WORLDS: u64 = 16;

fn setup() -> Setup {
    Setup { rate_limit: Some(120), ..Setup::new(Seed(1), Timestamp::default(), BASE) }
}

/// A stage that serializes and restores its world before each call whose number is a multiple of
/// `restore_interval`.
struct RestoringStage {
    sandbox: Sandbox,
    /// `None`: never.
    restore_interval: Option<usize>,
    /// The number of calls so far.
    calls: usize,
}

impl RestoringStage {
    fn new(restore_interval: Option<usize>) -> RestoringStage {
        RestoringStage { sandbox: Sandbox::new(&setup()), restore_interval, calls: 0 }
    }

    fn restore(&mut self) {
        let mut state = Vec::new();
        self.sandbox.write_state(&mut state).expect("writing to memory never fails");
        let restored = Sandbox::read_state(&state, &setup()).expect("a written state can be read");
        assert_eq!(restored.state_digest(), self.sandbox.state_digest());
        self.sandbox = restored;
    }
}

impl Stage for RestoringStage {
    fn call(&mut self, call: &StageRequest<'_>) -> Result<StageResponse, StageError> {
        self.calls += 1;
        if self.restore_interval.is_some_and(|interval| self.calls.is_multiple_of(interval)) {
            self.restore();
        }
        let (path, query) =
            call.path.split_once('?').map_or((call.path, None), |(path, query)| (path, Some(query)));
        let header = |name: &str| {
            let found = call.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.as_bytes())
        };
        let bearer = call.bearer.map(|key| format!("Bearer {key}"));
        let body = call.body.map(Value::to_string).unwrap_or_default();
        let request = Request {
            query,
            authorization: header("authorization").or(bearer.as_deref().map(str::as_bytes)),
            content_type: header("content-type").or(call.body.map(|_| b"application/json".as_slice())),
            idempotency_key: header("idempotency-key"),
            ..Request::json(BASE, call.method, path, &body)
        };
        let Response { status, headers, body } = self.sandbox.respond(self.sandbox.now(), &request);
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(StageResponse { status, headers, body })
    }
}

/// Plays a script. Returns its transcript or error, and the digest of the world.
fn play_with_digest(script: &Script, stage: &mut RestoringStage) -> (String, [u8; 32]) {
    let result = match play(script, None, stage) {
        Ok(played) => played.transcript,
        Err(error) => error.to_string(),
    };
    (result, stage.sandbox.state_digest())
}

#[test]
fn a_restored_world_continues_identically() {
    let scripts = scenarios().into_iter().map(|(path, text)| {
        let name = path.display().to_string();
        Script::parse(&name, &text).unwrap_or_else(|error| panic!("{error}"))
    });
    let random = (0..RANDOM_WORLDS).map(|seed| workload::draw(seed).script);
    for (n, script) in scripts.chain(random).enumerate() {
        let mut unrestored = RestoringStage::new(None);
        let expected = play_with_digest(&script, &mut unrestored);
        // Each world is restored at different calls.
        let mut stage = RestoringStage::new(Some(4 + n % 9));
        assert!(play_with_digest(&script, &mut stage) == expected, "{}, seed {}", script.path, script.seed);
    }
}

#[test]
fn shared_values_are_written_once() {
    let mut stage = RestoringStage::new(None);
    let size = |sandbox: &Sandbox| {
        let mut state = Vec::new();
        sandbox.write_state(&mut state).expect("writing to memory never fails");
        state.len()
    };
    let post = |stage: &mut RestoringStage, path: &str, body: &str| {
        let key = format!("Bearer {}", stage.sandbox.first_keys().live);
        let request =
            Request { authorization: Some(key.as_bytes()), ..Request::json(BASE, "POST", path, body) };
        let status = stage.sandbox.respond(stage.sandbox.now(), &request).status;
        assert!((200..300).contains(&status), "{path}: {status}");
    };
    for n in 0..8 {
        post(&mut stage, "/sandbox/endpoints", &format!(r#"{{"mode":"live","url":"https://shop{n}.sim/"}}"#));
    }
    let before = size(&stage.sandbox);
    let text = "x".repeat(2_000);
    let charge = format!(r#"{{"asset":"BTC","amount":"5","currency":"EUR","description":"{text}"}}"#);
    post(&mut stage, "/v1/charges", &charge);
    // Every delivery of the event contains the charge, and so does the book.
    let growth = size(&stage.sandbox) - before;
    assert!((2_000..8_000).contains(&growth), "{growth} bytes more");
    stage.restore();
    assert_eq!(size(&stage.sandbox) - before, growth, "values stay shared after a restore");
}

#[test]
fn invalid_state_is_rejected() {
    let mut state = Vec::new();
    Sandbox::new(&setup()).write_state(&mut state).expect("writing to memory never fails");
    assert!(Sandbox::read_state(&state, &setup()).is_some());
    assert!(Sandbox::read_state(&[], &setup()).is_none());
    assert!(Sandbox::read_state(&state[..state.len() - 1], &setup()).is_none(), "truncated");
    state.push(0);
    assert!(Sandbox::read_state(&state, &setup()).is_none(), "trailing bytes");
}
