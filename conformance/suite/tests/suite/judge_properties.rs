//! Property tests of the judge: on mutated recordings, and on reordered ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use ::mutants::fake::book::Book;
use ::mutants::fake::{EditableResponse, FakeServer, run};
use conformance::{
    Burst, Exchange, ExchangeOutcome, Outcome, Purpose, ReceivedResponse, Recording, StatementResult, judge,
    judged_statements, report,
};
use proptest::prelude::*;
use report::{Format, Style, render};
use serde_json::{Value, json};

/// The runs against correct and faulty servers whose recordings are mutated.
static RUNS: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
    let empty = FakeServer { live: Book::empty(), test: Book::empty(), ..FakeServer::default() };
    let mut without_limit = FakeServer { limiter: ::mutants::fake::Limiter::Off, ..FakeServer::default() };
    without_limit.rewrite_responses(|request, response| {
        if response.status == 404 {
            *response = EditableResponse::json(403, json!({ "message": request.path }));
        }
    });
    let mut broken = FakeServer::default();
    broken.rewrite_responses(|request, response| {
        if request.is_list() {
            response.body["links"]["next"] = json!("//elsewhere.example/v1/events?page=0");
            response.body["meta"]["total"] = json!(u64::MAX);
        }
    });
    [FakeServer::default(), empty, without_limit, broken].into_iter().map(run).collect()
});

const BODIES: &[&str] = &[
    "",
    "null",
    "[]",
    "\"text\"",
    "{",
    "\u{feff}{}",
    "-1e999",
    "{\"data\":{},\"links\":[],\"meta\":null}",
    "{\"data\":[null,1,\"a\",[[]],{\"id\":{}}],\"links\":{\"first\":1},\"meta\":{\"total\":-1,\"per_page\":0}}",
    "{\"data\":[{}],\"links\":{\"next\":\"\"},\"meta\":{\"current_page\":18446744073709551615,\"per_page\":\
     18446744073709551615,\"total\":18446744073709551615,\"last_page\":18446744073709551616}}",
    "{\"data\":[],\"links\":{\"next\":null},\"meta\":{\"current_page\":0,\"per_page\":0,\"total\":0,\"last_page\":0}}",
    "{\"meta\":{\"mode\":\"test\",\"mode\":\"live\",\"accepted_assets\":{\"0\":\"BTC\"}}}",
    "{\"id\":\"\u{202e}\u{0000}\",\"type\":\"charge.\",\"charge\":[],\"details\":[],\"created_at\":\"9999-99-99T99:99:99Z\"}",
    "{\"id\":\"é-ü-ß-ø-å\",\"type\":\".\",\"created_at\":\"-999999-01-01T00:00:00Z\"}",
];

const TEXTS: &[&str] = &[
    "",
    " ",
    "0",
    "-1",
    "18446744073709551615",
    "99999999999999999999999999",
    "é",
    "a\u{0}b",
    "https://[::1",
    "javascript:x",
    "http://user:pass@host/v1/events?%zz",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "2025-12-01T10:00:00.000000Z",
    "/v1/events?page=%F0%9F%92%A9",
];

const HEADERS: &[&str] = &["retry-after", "date", "content-type", "www-authenticate", "etag", "x-\u{7f}", ""];
const STATUSES: &[u16] = &[0, 99, 200, 204, 301, 401, 403, 404, 418, 429, 500, 502, 503, 504, 999, u16::MAX];

/// One mutation of a recording. `exchange`, `other_exchange` and `value` are indexes, modulo the number of elements.
#[derive(Clone, Debug)]
struct Mutation {
    kind: u8,
    exchange: usize,
    other_exchange: usize,
    value: usize,
    duration: u64,
}

fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    let mutation = (0..15_u8, any::<usize>(), any::<usize>(), any::<usize>(), any::<u64>()).prop_map(
        |(kind, exchange, other_exchange, value, duration)| Mutation {
            kind,
            exchange,
            other_exchange,
            value,
            duration,
        },
    );
    proptest::collection::vec(mutation, 1..60)
}

fn text(value: usize) -> String {
    TEXTS[value % TEXTS.len()].to_owned()
}

fn response_mut(exchange: &mut Exchange) -> &mut ReceivedResponse {
    if !matches!(exchange.outcome, ExchangeOutcome::Answered(_)) {
        exchange.outcome = ExchangeOutcome::Answered(ReceivedResponse {
            status: 200,
            headers: Vec::new(),
            body: conformance::Body::default(),
        });
    }
    let ExchangeOutcome::Answered(response) = &mut exchange.outcome else {
        unreachable!("the outcome was just set to a response")
    };
    response
}

/// Replaces a value in a JSON body. The seed selects the value and its replacement.
fn with_replaced_value(body: &str, seed: usize) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    let replacement = match seed % 5 {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(text(seed / 7)),
        3 => json!([[], {}, [null]]),
        _ => serde_json::from_str(BODIES[seed / 5 % BODIES.len()]).unwrap_or(json!(-1.5)),
    };
    replace(&mut value, seed, replacement);
    value.to_string()
}

/// Replaces `target` or a value within it, as the seed selects.
fn replace(target: &mut Value, seed: usize, replacement: Value) {
    let (next_seed, descends) = (seed.wrapping_mul(31).wrapping_add(7), !seed.is_multiple_of(4));
    match target {
        Value::Object(members) if !members.is_empty() && descends => {
            let index = next_seed % members.len();
            replace(members.values_mut().nth(index).expect("a member"), next_seed, replacement);
        }
        Value::Array(items) if !items.is_empty() && descends => {
            let index = next_seed % items.len();
            replace(&mut items[index], next_seed, replacement);
        }
        selected => *selected = replacement,
    }
}

fn apply_mutations(mut recording: Recording, mutations: &[Mutation]) -> Recording {
    for Mutation { kind, exchange, other_exchange, value, duration } in mutations {
        let all = &mut recording.exchanges;
        if all.is_empty() {
            break;
        }
        let (index, other_index, value) = (exchange % all.len(), other_exchange % all.len(), *value);
        match kind {
            0 => all.swap(index, other_index),
            1 => drop(all.drain(index.min(other_index)..=index.max(other_index))),
            2 => all.push(all[index].clone()),
            3 => all[index].purpose = all[other_index].purpose.clone(),
            4 => all[index].caller = all[other_index].caller,
            5 => all[index].outcome = all[other_index].outcome.clone(),
            6 => {
                (all[index].sent, all[index].ended) =
                    (Duration::from_nanos(*duration), Duration::from_millis(*duration))
            }
            7 => (all[index].sent, all[index].ended) = (Duration::MAX, Duration::ZERO),
            8 => response_mut(&mut all[index]).body = BODIES[value % BODIES.len()].into(),
            9 => response_mut(&mut all[index]).status = STATUSES[value % STATUSES.len()],
            10 => response_mut(&mut all[index])
                .headers
                .push((HEADERS[value % HEADERS.len()].into(), text(value / 7))),
            11 => {
                let response = response_mut(&mut all[index]);
                response.body = with_replaced_value(&response.body, value).into();
            }
            12 => all[index].target = text(value),
            13 => all[index].number = [0, 1, u32::MAX, all[other_index].number][value % 4],
            _ => match (&mut all[index].purpose, value % 4) {
                (Purpose::Page(request), 0) => request.page = Some(*duration),
                (Purpose::Page(request), 1) => request.per_page = Some(*duration),
                (Purpose::Page(request), 2) => (request.page, request.per_page) = (Some(0), Some(0)),
                (Purpose::Page(request), _) => {
                    if let Some(link) = &mut request.link {
                        link.rel = text(value);
                    }
                }
                (Purpose::Event { id, round, .. }, _) => {
                    *id = text(value);
                    *round = u8::MAX;
                }
                (Purpose::Burst(Burst::AfterRetryAfter { span }), _) => *span = Duration::MAX,
                _ => recording.base = text(value),
            },
        }
    }
    recording
}

/// The number of cases. Few, because each judges a recording several times.
const CASES: u32 = 32;

/// Thins out bursts to a sixth, which suffices for this test.
fn thin_out_bursts(outcome: &Outcome) -> Recording {
    let mut recording = outcome.recording.clone();
    let is_burst_request =
        |exchange: &Exchange| matches!(exchange.purpose, Purpose::Burst(Burst::UntilRefused { .. }));
    recording.exchanges.retain(|exchange| !is_burst_request(exchange) || exchange.number.is_multiple_of(6));
    recording
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_recording_makes_the_judge_panic(run in 0..4_usize, mutations in mutations()) {
        let outcome = &RUNS[run];
        let recording = apply_mutations(thin_out_bursts(outcome), &mutations);
        let rows = judge(&recording);
        prop_assert_eq!(rows.len(), judged_statements().len());
        let file = Outcome { recording, ..outcome.clone() }.to_file();
        let parsed = Outcome::from_file(&file).map_err(|err| TestCaseError::fail(err.to_string()))?;
        prop_assert_eq!(verdict_names(&parsed.rows), verdict_names(&rows));
        for format in
            [Format::Text, Format::Json, Format::Junit, Format::Markdown, Format::Html, Format::Github]
        {
            let report = render(&parsed, format, Style::Plain);
            let has_no_controls = report.chars().all(|character| !character.is_control() || character == '\n');
            prop_assert!(has_no_controls, "a control character in {:?}", format);
        }
    }

    #[test]
    fn the_judge_does_not_panic_on_any_body(body in any::<String>(), header in any::<String>(), index in 0..70_usize) {
        let mut recording = thin_out_bursts(&RUNS[0]);
        let index = index % recording.exchanges.len();
        let response = response_mut(&mut recording.exchanges[index]);
        response.body = body.into();
        response.headers = vec![("retry-after".into(), header.clone()), ("content-type".into(), header)];
        prop_assert_eq!(judge(&recording).len(), judged_statements().len());
    }

    /// Related exchanges (equal requests of one caller, or bursts) must stay in order. All others may be in any
    /// order, with their numbers and times unchanged.
    #[test]
    fn unrelated_exchanges_may_be_in_any_order(
        run in 0..4_usize,
        keys in proptest::collection::vec(any::<u32>(), 64),
    ) {
        let recording = &RUNS[run].recording;
        let mut shuffled = recording.clone();
        let mut order: Vec<_> = (0..shuffled.exchanges.len()).collect();
        let sort_key = |index: usize| {
            keys[index % keys.len()].wrapping_mul(index as u32 | 1).rotate_left(index as u32 % 31)
        };
        order.sort_by_key(|index| sort_key(*index));
        let mut by_kind: BTreeMap<String, Vec<Exchange>> = BTreeMap::new();
        for exchange in recording.exchanges.iter().rev() {
            by_kind.entry(exchange_kind(exchange)).or_default().push(exchange.clone());
        }
        for (index, source) in order.into_iter().enumerate() {
            let group = by_kind.get_mut(&exchange_kind(&recording.exchanges[source])).expect("a group");
            shuffled.exchanges[index] = group.pop().expect("one exchange for each index");
        }
        prop_assert_eq!(verdict_names(&judge(&shuffled)), verdict_names(&judge(recording)));
    }
}

/// Returns a text that is equal for exchanges that must stay in order.
fn exchange_kind(exchange: &Exchange) -> String {
    match &exchange.purpose {
        Purpose::Burst(_) => "burst".to_owned(),
        // The path that is refused without a key is only in the target.
        other => format!("{:?} {other:?} {}", exchange.caller, exchange.target),
    }
}

fn verdict_names(rows: &[StatementResult]) -> BTreeMap<String, &'static str> {
    rows.iter().map(|row| (row.id.clone(), row.verdict.as_str())).collect()
}

#[test]
fn deeply_nested_bodies_are_judged() {
    let nested = |depth: usize| format!("{}1{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
    for depth in [10, 60, 64, 100_000] {
        let mut recording = RUNS[0].recording.clone();
        for exchange in &mut recording.exchanges {
            response_mut(exchange).body = nested(depth).into();
        }
        assert_eq!(judge(&recording).len(), judged_statements().len());
    }
}

#[test]
fn missing_exchanges_are_never_a_violation() {
    let complete = &RUNS[0].recording;
    let kinds: BTreeSet<_> = complete.exchanges.iter().map(exchange_kind).collect();
    for missing in kinds {
        let mut recording = complete.clone();
        recording.exchanges.retain(|exchange| exchange_kind(exchange) != missing);
        for row in judge(&recording) {
            let verdict = row.verdict.as_str();
            assert!(
                verdict != "fail" && verdict != "warn",
                "{}: {:?} without {missing}",
                row.id,
                row.verdict
            );
        }
    }
}
