//! Handwritten outcomes: fixtures for the tests of all formats.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use conformance_model::baseline::{Baseline, fingerprint};
use conformance_model::budget::Ledger;
use conformance_model::catalogue::{Level, Requirement};
use conformance_model::mode::Mode;
use conformance_model::part::Part;
use conformance_model::recording::{
    Burst, Caller, Exchange, ExchangeOutcome, FORMAT_VERSION, Inserts, List, PageRequest, Purpose,
    ReceivedResponse, Recording, Side,
};
use conformance_model::secret::Secret;
use conformance_model::selection::{Profile, Selection};
use conformance_model::verdict::{Finding, KnownFailure, StatementResult, Stop, Verdict};
use conformance_probe::Plan;

use crate::check::{AcceptedGaps, Origin, Outcome};

/// Returns all samples by name.
pub(crate) fn all() -> [(&'static str, Outcome); 5] {
    [
        ("mixed", mixed()),
        ("known", known()),
        ("clean", clean()),
        ("unreachable", unreachable()),
        ("refused", refused()),
    ]
}

/// Returns an outcome with a row of each verdict except `known`, and a server's text that attacks every format.
pub(crate) fn mixed() -> Outcome {
    let hostile = "403 {\"message\":\"<script>alert('x')</script> | ```\\n::error::no, 50%\"} ]]>\u{1b}[2J\n::error::x ##[error]y \u{202e}z";
    let finding = |expected: &str, actual: &str, exchange| Finding {
        expected: expected.into(),
        actual: actual.into(),
        exchange,
    };
    let rows = vec![
        row("account.served", "4, row 1", Level::Must, Verdict::Pass { note: None }),
        row("auth.no_header", "5 item 6", Level::Must, Verdict::Pass { note: None }),
        row(
            "auth.revoked_key",
            "5 items 2 and 6",
            Level::Must,
            Verdict::LeftOut { by: "--without revoked".into() },
        ),
        row(
            "isolation.not_found",
            "5 item 5; 7",
            Level::Must,
            Verdict::Fail(finding("404, the same body as for an unknown id", hostile, Some(3))),
        ),
        row(
            "auth.www_authenticate",
            "HTTP (RFC 9110, 15.5.2)",
            Level::Should,
            Verdict::Warn(finding("WWW-Authenticate: Bearer", "no such header", None)),
        ),
        row(
            "limits.refused",
            "7; 8",
            Level::Must,
            Verdict::Pass { note: Some("exact: the 121st request".into()) },
        ),
        row(
            "paging.joined",
            "4.1 item 6",
            Level::Must,
            Verdict::NotJudged {
                why: "no list has 3 or more records in either mode".into(),
                remedy: "open and cancel a few charges with the test key's account".into(),
            },
        ),
        row(
            "events.envelope",
            "4, last paragraph",
            Level::Open,
            Verdict::Observed { seen: "under <data>".into() },
        ),
        row(
            "filters.payment_link",
            "4, row 2",
            Level::Must,
            Verdict::NotApplicable { why: "no charge has a payment link".into() },
        ),
    ];
    outcome(rows, None)
}

/// Returns the mixed sample with a known failure and a stale entry.
pub(crate) fn known() -> Outcome {
    let mut outcome = mixed();
    for row in &outcome.rows {
        if let Verdict::Fail(finding) = &row.verdict {
            let known = KnownFailure {
                reason: "ticket 7".into(),
                fingerprint: fingerprint(&row.id, finding),
                expires: "2026-11-30".into(),
            };
            outcome.baseline.known.insert("account.served".into(), known.clone());
            outcome.baseline.known.insert(row.id.clone(), known);
        }
    }
    outcome.baseline.today = "2026-11-21".into();
    outcome.stale_entries = outcome.baseline.apply(&mut outcome.rows);
    outcome
}

/// Returns an outcome in which all statements hold.
pub(crate) fn clean() -> Outcome {
    let rows = vec![
        row("account.served", "4, row 1", Level::Must, Verdict::Pass { note: None }),
        row("account.mode", "5 item 7", Level::Must, Verdict::Pass { note: None }),
    ];
    let mut outcome = outcome(rows, None);
    outcome.recording.without = BTreeSet::new();
    outcome
}

/// Returns the outcome of an unreachable target.
pub(crate) fn unreachable() -> Outcome {
    let mut outcome =
        outcome(Vec::new(), Some(Stop::Unreachable("Connection refused (os error 111)".into())));
    outcome.recording.exchanges.clear();
    outcome
}

/// Returns the outcome of a run that was stopped because a key was refused.
pub(crate) fn refused() -> Outcome {
    outcome(Vec::new(), Some(Stop::Configuration("the live key is refused with 401".into())))
}

fn outcome(rows: Vec<StatementResult>, stop: Option<Stop>) -> Outcome {
    // Samples must not change with the catalogue.
    let only = match rows.len() {
        0 => vec!["account.served".to_owned()],
        _ => rows.iter().map(|row| row.id.clone()).collect(),
    };
    Outcome {
        recording: recording(),
        rows,
        selection: Selection { profile: Profile::Spec, only, skip: Vec::new() },
        baseline: Baseline::default(),
        stale_entries: Vec::new(),
        is_redacted: false,
        stop,
        budget: conformance_probe::budget(&BTreeSet::new(), &plan()),
        ledger: Ledger { live: 3, test: 5, other: 1, in_bursts: 2, writes: 0, repeats: 0 },
        origin: Origin {
            version: Some("0.1.0".into()),
            started: Some("2026-11-22T06:00:00Z".into()),
            lasted: Some(Duration::from_millis(64_250)),
            interrupted: None,
        },
        accepted_gaps: AcceptedGaps::None,
        power: None,
    }
}

fn plan() -> Plan {
    let key = |text: &str| Secret::new(text);
    Plan::new("https://pay.example/api/".parse().expect("an address"), key("svc_live_x"), key("svc_test_x"))
}

fn row(id: &str, spec: &str, level: Level, verdict: Verdict) -> StatementResult {
    let requirement = Requirement {
        spec: spec.into(),
        level,
        text: format!("What {id} says."),
        source: Vec::new(),
        derived: None,
        unjudged: None,
    };
    StatementResult { id: id.into(), requirement, verdict }
}

fn recording() -> Recording {
    let id = "0190a5c4-7f3e-7abc-8def-0123456789ab";
    let page = |filters| {
        Purpose::Page(PageRequest { list: List::Charges, filters, page: None, per_page: Some(2), link: None })
    };
    let event = |side| Purpose::Event { id: id.into(), side, round: 1 };
    let absent_filter =
        Purpose::Filter { list: List::Events, filter: "type".into(), side: Side::AbsentBefore };
    let links =
        |next: &str| json!({ "first": "/v1/charges?page=1", "last": null, "prev": null, "next": next });
    let charges = json!({
        "data": [
            { "code": "a", "status": "paid", "created_at": "2026-01-05T09:00:00.000000Z" },
            { "code": "b", "status": "paid", "created_at": "2026-01-05T09:00:00+00:00" },
        ],
        "links": links("https://pay.example/v1/charges?page=2"),
        "meta": { "current_page": 1, "last_page": 2, "per_page": 2, "total": 3 },
    });
    let empty_page = json!({
        "data": [], "links": links("/x"),
        "meta": { "current_page": 1, "last_page": 0, "per_page": 2, "total": 0 },
    });
    let refusal = json!({ "message": "No." });
    let mut exchanges = vec![
        exchange(page(vec![]), "/v1/charges?per_page=2", 200, &charges),
        exchange(page(vec![("status".into(), "x".into())]), "/v1/charges?status=x", 200, &empty_page),
        exchange(event(Side::Foreign), &format!("/v1/events/{id}"), 403, &refusal),
        exchange(absent_filter, "/v1/events?type=x", 404, &refusal),
        exchange(Purpose::Burst(Burst::UntilRefused { series: 1 }), "/v1/account", 429, &refusal),
    ];
    for (number, exchange) in (1..).zip(&mut exchanges) {
        exchange.number = number;
    }
    Recording {
        format: FORMAT_VERSION,
        base: "https://pay.example/api/".into(),
        key_prefix: "svc".into(),
        without: [Part::Revoked].into(),
        no_burst: None,
        inserts: Inserts::default(),
        exact_amounts: true,
        exchanges,
        deliveries: None,
    }
}

fn exchange(purpose: Purpose, target: &str, status: u16, body: &Value) -> Exchange {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if status == 429 {
        headers.push(("retry-after".to_owned(), "60".to_owned()));
        headers.push(("x-ratelimit-remaining".to_owned(), "0".to_owned()));
    }
    Exchange {
        number: 0,
        caller: Caller::Own(Mode::Live),
        purpose,
        target: target.into(),
        sent: Duration::ZERO,
        ended: Duration::ZERO,
        outcome: ExchangeOutcome::Answered(ReceivedResponse {
            status,
            headers,
            body: body.to_string().into(),
        }),
    }
}
