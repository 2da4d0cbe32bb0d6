//! Run files: their reports equal those of their runs, they contain no keys, and with redaction no personal values.

use ::mutants::fake::{EditableResponse, FakeServer, LIVE_KEY, TEST_KEY, ids_with_verdicts, run_with};
use conformance::{Baseline, KnownFailure, Outcome, Part, Plan, Redaction, report};
use report::{Format, Style, render};
use serde_json::json;

const FORMATS: [Format; 6] =
    [Format::Text, Format::Json, Format::Junit, Format::Markdown, Format::Html, Format::Github];

/// Writes the run file of a run, reads it, and compares the reports of both.
#[track_caller]
fn check(server: FakeServer, change: impl FnOnce(&mut Plan)) -> Outcome {
    let outcome = run_with(server, change);
    let text = outcome.to_file();
    let parsed = Outcome::from_file(&text).expect("a run file");
    assert_eq!(parsed.exit_code(), outcome.exit_code());
    for format in FORMATS {
        assert!(
            render(&parsed, format, Style::Plain) == render(&outcome, format, Style::Plain),
            "{format:?} differs"
        );
    }
    assert_eq!(parsed.to_file(), text, "writing the run file again changes it");
    outcome
}

/// Returns a server whose accepted assets are not an array.
fn server_with_invalid_assets() -> FakeServer {
    let mut server = FakeServer::default();
    server.rewrite_responses(|request, response| {
        if request.path == "/v1/account" && response.status == 200 {
            response.body["meta"]["accepted_assets"] = json!("BTC");
        }
    });
    server
}

#[test]
fn a_known_failure_is_reported_as_known_and_the_run_passes() {
    let failing = run_with(server_with_invalid_assets(), |_| {});
    let report: serde_json::Value = serde_json::from_str(&report::json(&failing)).expect("JSON");
    let mut baseline = Baseline { today: "2026-11-21".into(), ..Baseline::default() };
    for statement in report["statements"].as_array().expect("an array") {
        if statement["verdict"] == "fail" || statement["verdict"] == "warn" {
            let fingerprint = statement["fingerprint"].as_str().expect("a string").to_owned();
            let entry = KnownFailure { reason: "ticket 7".into(), fingerprint, expires: "2026-11-30".into() };
            baseline.known.insert(statement["id"].as_str().expect("a string").to_owned(), entry);
        }
    }
    assert!(baseline.known.contains_key("account.accepted_assets"), "{baseline:?}");
    let again = check(server_with_invalid_assets(), |plan| plan.baseline = baseline.clone());
    assert_eq!(ids_with_verdicts(&again, &["known"]).len(), baseline.known.len());
    assert_eq!(again.exit_code(), 0, "{:?}", again.stale_entries);
    baseline.today = "2026-12-01".into();
    let late = check(server_with_invalid_assets(), |plan| plan.baseline = baseline);
    assert_eq!((late.exit_code(), ids_with_verdicts(&late, &["known"]).len()), (1, 0));
}

#[test]
fn a_baseline_for_an_unknown_statement_is_a_configuration_error() {
    let entry = KnownFailure { reason: "x".into(), fingerprint: "0".into(), expires: "2999-01-01".into() };
    let baseline = Baseline { today: "2026-11-21".into(), known: [("no.such".to_owned(), entry)].into() };
    let outcome = check(FakeServer::default(), |plan| plan.baseline = baseline);
    assert_eq!(outcome.exit_code(), 2);
}

/// Returns a server that responds with 403 in place of 404, with the key in the response.
fn leaky_server() -> FakeServer {
    let mut server = FakeServer::default();
    server.rewrite_responses(|request, response| {
        if response.status == 404 {
            *response = EditableResponse::json(
                403,
                json!({ "message": "wrong mode", "given": request.authorization }),
            );
        }
    });
    server
}

#[test]
fn the_report_of_a_run_file_is_that_of_its_run() {
    check(FakeServer::default(), |_| {});
    check(FakeServer::default(), |plan| plan.only = vec!["paging.*".into(), "limits.refused".into()]);
    check(FakeServer::default(), |plan| {
        plan.skip = vec!["auth.*".into()];
        plan.without.insert(Part::OtherAccount);
    });
    check(FakeServer::default(), |plan| plan.quick = true);
    let broken = check(leaky_server(), |_| {});
    assert_eq!(broken.exit_code(), 1);
}

#[test]
fn a_run_with_a_configuration_error_has_a_run_file() {
    let outcome = check(FakeServer::default(), |plan| plan.only = vec!["nothing".into()]);
    assert_eq!(outcome.exit_code(), 2);
}

#[test]
fn no_report_and_no_run_file_contains_a_key() {
    let outcome = check(leaky_server(), |_| {});
    let mut written = outcome.to_file();
    for format in FORMATS {
        written += &render(&outcome, format, Style::Colour);
    }
    for key in [LIVE_KEY, TEST_KEY] {
        let tail = &key["svc_live_".len()..];
        assert!(
            !written.contains(tail) && !written.contains(&tail[..10]),
            "a part of a key is in a report or the run file"
        );
    }
}

/// Compares the verdicts of runs with and without redaction.
#[track_caller]
fn check_verdicts_with_redaction(server: impl Fn() -> FakeServer) {
    let verdicts = |outcome: &Outcome| {
        let rows = outcome.rows.iter();
        rows.map(|row| format!("{} {}", row.id, row.verdict.as_str())).collect::<Vec<_>>()
    };
    let unredacted = run_with(server(), |_| {});
    for key in [1, 2, 3] {
        let redacted = check(server(), |plan| plan.redaction = Some(Redaction::new([key; 32])));
        assert_eq!(verdicts(&redacted), verdicts(&unredacted));
        assert!(redacted.is_redacted);
    }
}

#[test]
fn redaction_changes_no_verdict() {
    check_verdicts_with_redaction(FakeServer::default);
    check_verdicts_with_redaction(leaky_server);
    check_verdicts_with_redaction(|| {
        // Redaction does not turn a list that is not JSON into JSON.
        let mut server = FakeServer::default();
        server.rewrite_responses(|request, response| {
            if request.path == "/v1/invoices" {
                response.raw = Some("<html>Sorry, Ann Lee</html>".into());
            }
        });
        server
    });
}

#[test]
fn personal_values_and_amounts_are_not_in_a_redacted_run_file() {
    let personal = || {
        let mut server = FakeServer::default();
        server.rewrite_responses(|_, response| {
            for row in response.body["data"].as_array_mut().into_iter().flatten() {
                row["customer"] = json!({ "name": "Ann Leerick", "email": "ann@shop.example" });
                row["metadata"] = json!({ "order": "A-4711-B" });
                row["amount"] = json!("4913.57");
                row["address"] = json!("bc1qxy2kgdygjrsqtzq2n0yrf2493p83kkfjhx0wlh");
            }
        });
        server
    };
    let parts = ["Leerick", "shop.example", "4711", "4913.57", "bc1qxy2kgd"];
    let unredacted = run_with(personal(), |_| {}).to_file();
    let redacted = run_with(personal(), |plan| plan.redaction = Some(Redaction::new([9; 32]))).to_file();
    for part in parts {
        assert!(unredacted.contains(part), "{part} is not in the unredacted run file");
        assert!(!redacted.contains(part), "{part} is in the redacted run file");
    }
}

#[track_caller]
fn check_refused(text: &str, expected: &str) {
    let err = Outcome::from_file(text).expect_err("the run file is invalid").to_string();
    assert!(err.contains(expected), "{err}");
}

#[test]
fn an_invalid_run_file_is_refused() {
    check_refused("", "not a recording of `chargeproof check --record`");
    check_refused("{}", "`recording.format` is missing");
    check_refused("[1]", "`recording.format` is missing");
    check_refused(r#"{"recording":{"format":99}}"#, "of format 99; this program reads 2");
    check_refused(r#"{"recording":{"format":2}}"#, "missing field");
    let text = run_with(FakeServer::default(), |plan| plan.quick = true).to_file();
    check_refused(&text[..text.len() / 2], "not a recording");
}
