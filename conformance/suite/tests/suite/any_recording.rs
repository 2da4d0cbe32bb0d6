//! Property tests of the judge: on mutated recordings, and on reordered ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use ::mutants::fake::book::Book;
use ::mutants::fake::{FakeServer, Reply, run};
use conformance::{
    Answer, Burst, Ending, Exchange, Outcome, Purpose, Recording, Row, judge, judged_statements, report,
};
use proptest::prelude::*;
use report::{Format, Style, render};
use serde_json::{Value, json};

/// The recordings of correct and faulty services that are mutated.
static MATERIAL: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
    let empty = FakeServer { live: Book::empty(), test: Book::empty(), ..FakeServer::default() };
    let mut without_limit = FakeServer { limiter: ::mutants::fake::Limiter::Off, ..FakeServer::default() };
    without_limit.rewrite(|request, reply| {
        if reply.status == 404 {
            *reply = Reply::json(403, json!({ "message": request.path }));
        }
    });
    let mut broken = FakeServer::default();
    broken.rewrite(|request, reply| {
        if request.is_list() {
            reply.body["links"]["next"] = json!("//elsewhere.example/v1/events?page=0");
            reply.body["meta"]["total"] = json!(u64::MAX);
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

/// One mutation of a recording. The numbers select positions, modulo their count.
#[derive(Clone, Debug)]
struct Step {
    what: u8,
    at: usize,
    other: usize,
    pick: usize,
    span: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..15_u8, any::<usize>(), any::<usize>(), any::<usize>(), any::<u64>())
        .prop_map(|(what, at, other, pick, span)| Step { what, at, other, pick, span });
    proptest::collection::vec(step, 1..60)
}

fn text(pick: usize) -> String {
    TEXTS[pick % TEXTS.len()].to_owned()
}

fn answer(exchange: &mut Exchange) -> &mut Answer {
    if !matches!(exchange.ending, Ending::Answered(_)) {
        exchange.ending =
            Ending::Answered(Answer { status: 200, headers: Vec::new(), body: conformance::Body::default() });
    }
    let Ending::Answered(answer) = &mut exchange.ending else { unreachable!("it was just answered") };
    answer
}

/// Replaces a value in a JSON body.
fn graft(body: &str, pick: usize) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else { return body.to_owned() };
    let graft = match pick % 5 {
        0 => Value::Null,
        1 => json!(u64::MAX),
        2 => json!(text(pick / 7)),
        3 => json!([[], {}, [null]]),
        _ => serde_json::from_str(BODIES[pick / 5 % BODIES.len()]).unwrap_or(json!(-1.5)),
    };
    replace(&mut value, pick, graft);
    value.to_string()
}

fn replace(at: &mut Value, pick: usize, graft: Value) {
    let (choice, deeper) = (pick.wrapping_mul(31).wrapping_add(7), !pick.is_multiple_of(4));
    match at {
        Value::Object(members) if !members.is_empty() && deeper => {
            let index = choice % members.len();
            replace(members.values_mut().nth(index).expect("a member"), choice, graft);
        }
        Value::Array(items) if !items.is_empty() && deeper => {
            let index = choice % items.len();
            replace(&mut items[index], choice, graft);
        }
        end => *end = graft,
    }
}

fn apply_steps(mut recording: Recording, steps: &[Step]) -> Recording {
    for Step { what, at, other, pick, span } in steps {
        let all = &mut recording.exchanges;
        if all.is_empty() {
            break;
        }
        let (at, other, pick) = (at % all.len(), other % all.len(), *pick);
        match what {
            0 => all.swap(at, other),
            1 => drop(all.drain(at.min(other)..=at.max(other))),
            2 => all.push(all[at].clone()),
            3 => all[at].purpose = all[other].purpose.clone(),
            4 => all[at].caller = all[other].caller,
            5 => all[at].ending = all[other].ending.clone(),
            6 => (all[at].sent, all[at].ended) = (Duration::from_nanos(*span), Duration::from_millis(*span)),
            7 => (all[at].sent, all[at].ended) = (Duration::MAX, Duration::ZERO),
            8 => answer(&mut all[at]).body = BODIES[pick % BODIES.len()].into(),
            9 => answer(&mut all[at]).status = STATUSES[pick % STATUSES.len()],
            10 => answer(&mut all[at]).headers.push((HEADERS[pick % HEADERS.len()].into(), text(pick / 7))),
            11 => {
                let answer = answer(&mut all[at]);
                answer.body = graft(&answer.body, pick).into();
            }
            12 => all[at].target = text(pick),
            13 => all[at].number = [0, 1, u32::MAX, all[other].number][pick % 4],
            _ => match (&mut all[at].purpose, pick % 4) {
                (Purpose::Page(request), 0) => request.page = Some(*span),
                (Purpose::Page(request), 1) => request.per_page = Some(*span),
                (Purpose::Page(request), 2) => (request.page, request.per_page) = (Some(0), Some(0)),
                (Purpose::Page(request), _) => {
                    if let Some(link) = &mut request.link {
                        link.rel = text(pick);
                    }
                }
                (Purpose::Event { id, round, .. }, _) => {
                    *id = text(pick);
                    *round = u8::MAX;
                }
                (Purpose::Burst(Burst::Waited { span }), _) => *span = Duration::MAX,
                _ => recording.base = text(pick),
            },
        }
    }
    recording
}

/// The number of cases. Each judges a whole recording several times.
const CASES: u32 = 32;

/// Thins out bursts to a sixth, which suffices for this test.
fn thin_out_bursts(outcome: &Outcome) -> Recording {
    let mut recording = outcome.recording.clone();
    let is_shot = |exchange: &Exchange| matches!(exchange.purpose, Purpose::Burst(Burst::Shot { .. }));
    recording.exchanges.retain(|exchange| !is_shot(exchange) || exchange.number.is_multiple_of(6));
    recording
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_recording_makes_the_judge_panic(which in 0..4_usize, steps in steps()) {
        let outcome = &MATERIAL[which];
        let recording = apply_steps(thin_out_bursts(outcome), &steps);
        let rows = judge(&recording);
        prop_assert_eq!(rows.len(), judged_statements().len());
        let kept = Outcome { recording, ..outcome.clone() }.to_file();
        let again = Outcome::from_file(&kept).map_err(|err| TestCaseError::fail(err.to_string()))?;
        prop_assert_eq!(verdict_words(&again.rows), verdict_words(&rows));
        for format in
            [Format::Text, Format::Json, Format::Junit, Format::Markdown, Format::Html, Format::Github]
        {
            let report = render(&again, format, Style::Plain);
            let is_tame = report.chars().all(|character| !character.is_control() || character == '\n');
            prop_assert!(is_tame, "a control character in {:?}", format);
        }
    }

    #[test]
    fn the_judge_does_not_panic_on_any_body(body in any::<String>(), header in any::<String>(), at in 0..70_usize) {
        let mut recording = thin_out_bursts(&MATERIAL[0]);
        let at = at % recording.exchanges.len();
        let answer = answer(&mut recording.exchanges[at]);
        answer.body = body.into();
        answer.headers = vec![("retry-after".into(), header.clone()), ("content-type".into(), header)];
        prop_assert_eq!(judge(&recording).len(), judged_statements().len());
    }

    /// Related exchanges (equal requests of one caller, or bursts) must stay in order. All others may be in any
    /// order, with their numbers and times unchanged.
    #[test]
    fn unrelated_exchanges_may_stand_in_any_order(
        which in 0..4_usize,
        keys in proptest::collection::vec(any::<u32>(), 64),
    ) {
        let recording = &MATERIAL[which].recording;
        let mut shuffled = recording.clone();
        let mut order: Vec<_> = (0..shuffled.exchanges.len()).collect();
        let mixed = |at: usize| keys[at % keys.len()].wrapping_mul(at as u32 | 1).rotate_left(at as u32 % 31);
        order.sort_by_key(|at| mixed(*at));
        let mut by_kin: BTreeMap<String, Vec<Exchange>> = BTreeMap::new();
        for exchange in recording.exchanges.iter().rev() {
            by_kin.entry(exchange_kind(exchange)).or_default().push(exchange.clone());
        }
        for (index, from) in order.into_iter().enumerate() {
            let group = by_kin.get_mut(&exchange_kind(&recording.exchanges[from])).expect("a group");
            shuffled.exchanges[index] = group.pop().expect("one exchange for each index");
        }
        prop_assert_eq!(verdict_words(&judge(&shuffled)), verdict_words(&judge(recording)));
    }
}

fn exchange_kind(exchange: &Exchange) -> String {
    match &exchange.purpose {
        Purpose::Burst(_) => "burst".to_owned(),
        // The path that is refused without a key is only in the target.
        other => format!("{:?} {other:?} {}", exchange.caller, exchange.target),
    }
}

fn verdict_words(rows: &[Row]) -> BTreeMap<String, &'static str> {
    rows.iter().map(|row| (row.id.clone(), row.verdict.as_str())).collect()
}

#[test]
fn a_too_deeply_nested_body_is_not_json() {
    let deep = |depth: usize| format!("{}1{}", "{\"a\":[".repeat(depth), "]}".repeat(depth));
    for depth in [10, 60, 64, 100_000] {
        let mut recording = MATERIAL[0].recording.clone();
        for exchange in &mut recording.exchanges {
            answer(exchange).body = deep(depth).into();
        }
        assert_eq!(judge(&recording).len(), judged_statements().len());
    }
}

#[test]
fn missing_exchanges_are_never_a_violation() {
    let whole = &MATERIAL[0].recording;
    let kinds: BTreeSet<_> = whole.exchanges.iter().map(exchange_kind).collect();
    for missing in kinds {
        let mut recording = whole.clone();
        recording.exchanges.retain(|exchange| exchange_kind(exchange) != missing);
        for row in judge(&recording) {
            let word = row.verdict.as_str();
            assert!(word != "fail" && word != "warn", "{}: {:?} without {missing}", row.id, row.verdict);
        }
    }
}
