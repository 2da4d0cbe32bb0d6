use insta::assert_snapshot;
use proptest::prelude::*;

use super::*;

/// Returns the error message for a file with these steps, which must be invalid.
#[track_caller]
fn error_of(steps: &str) -> String {
    let source = format!("title: A scenario\nsteps:\n{steps}\n");
    Script::parse("scenarios/charge/underpaid.yaml", &source).expect_err("the file is invalid").to_string()
}

#[track_caller]
fn parse(source: &str) -> Script {
    Script::parse("scenarios/charge/underpaid.yaml", source).unwrap_or_else(|error| panic!("{error}"))
}

const OPEN: &str = "  - open: { charge: c1, asset: BTC, amount: 49.90 EUR }\n";

#[test]
fn settings_have_defaults() {
    let script = parse("title: Nothing much\nsteps:\n  - endpoint: shop\n");
    assert_eq!(script.start.to_string(), "2026-01-05T09:00:00.000000Z");
    assert_eq!((script.seed, script.pace.to_string(), script.mode), (1, "1s".to_owned(), Mode::Live));
}

#[test]
fn a_name_alone_is_the_short_form_of_a_step() {
    let short = parse(&format!("title: Short\nsteps:\n{OPEN}  - pay: c1\n  - restart\n"));
    let long = parse(&format!("title: Long\nsteps:\n{OPEN}  - pay: {{ charge: c1 }}\n  - restart:\n"));
    let paid_charge = |script: &Script| match &script.steps[1].value {
        Step::Pay(pay) => pay.0.charge.as_ref().map(|name| name.value.0.clone()),
        other => panic!("{other:?} is not a payment"),
    };
    assert_eq!(paid_charge(&short), Some("c1".to_owned()));
    assert_eq!(paid_charge(&long), Some("c1".to_owned()));
}

#[test]
fn numbers_keep_their_digits_as_written() {
    let script = parse(&format!("title: Digits\nsteps:\n{OPEN}  - pay: {{ charge: c1, share: 0.50 }}\n"));
    let Step::Pay(pay) = &script.steps[1].value else { panic!("the second step pays") };
    assert_eq!(pay.0.share.as_ref().map(|share| share.value.0.as_str()), Some("0.50"));
}

#[test]
fn an_unknown_step_or_key_gets_a_suggestion() {
    assert_snapshot!(error_of("  - payy: { charge: c1, share: 0.5 }"), @"
    error: unknown step
     --> scenarios/charge/underpaid.yaml:3:5
      |
    3 |   - payy: { charge: c1, share: 0.5 }
      |     ^^^^ did you mean `pay`?
    ");
    assert_snapshot!(error_of(&format!("{OPEN}  - pay: {{ charge: c1, shaer: 0.5 }}")), @"
    error: unknown key
     --> scenarios/charge/underpaid.yaml:4:24
      |
    4 |   - pay: { charge: c1, shaer: 0.5 }
      |                        ^^^^^ did you mean `share`?
    ");
}

#[test]
fn a_missing_duplicate_or_surplus_key_is_an_error() {
    assert_snapshot!(error_of("  - open: { asset: BTC, amount: 49.90 EUR }"), @"
    error: a key is missing
     --> scenarios/charge/underpaid.yaml:3:11
      |
    3 |   - open: { asset: BTC, amount: 49.90 EUR }
      |           ^ needs `charge`
    ");
    assert_snapshot!(error_of("  - open: { charge: c1, asset: BTC, asset: LTC }"), @"
    error: duplicate key
     --> scenarios/charge/underpaid.yaml:3:37
      |
    3 |   - open: { charge: c1, asset: BTC, asset: LTC }
      |                                     ^^^^^ `asset` is already given above
    ");
    assert_snapshot!(error_of("  - endpoint: shop\n    wait: 30s"), @"
    error: a step has two keys
     --> scenarios/charge/underpaid.yaml:4:5
      |
    4 |     wait: 30s
      |     ^^^^ a step has one key; begin the next step with `-`
    ");
}

#[test]
fn a_tab_and_an_open_bracket_are_reported_at_their_positions() {
    assert_snapshot!(error_of("\t- endpoint: shop"), @"
    error: tabs are not allowed in indentation
     --> scenarios/charge/underpaid.yaml:3:1
      |
    3 |     - endpoint: shop
      | ^^^^ indent with spaces
    ");
    assert_snapshot!(error_of("  - open: { charge: c1, asset: BTC, amount: 49.90 EUR\n  - pay: c1"), @"
    error: a bracket is not closed
     --> scenarios/charge/underpaid.yaml:3:11
      |
    3 |   - open: { charge: c1, asset: BTC, amount: 49.90 EUR
      |           ^ close it with `}`
    ");
    assert_snapshot!(error_of("  - endpoint: { name: shop, events: [charge.paid }"), @"
    error: a bracket is not closed
     --> scenarios/charge/underpaid.yaml:3:37
      |
    3 |   - endpoint: { name: shop, events: [charge.paid }
      |                                     ^ close it with `]`
    ");
}

#[test]
fn an_unknown_status_is_a_parse_error() {
    for expect in ["payed", "{ status: payed }"] {
        let error = error_of(&format!("{OPEN}  - expect: {{ c1: {expect} }}"));
        assert!(error.contains("`payed` is not a status; did you mean `paid`?"), "{error}");
        assert!(error.contains(":4:"), "{error}");
    }
}

#[test]
fn the_error_for_an_invalid_value_helps_to_correct_it() {
    assert_snapshot!(error_of("  - wait: 30"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:11
      |
    3 |   - wait: 30
      |           ^^ `30` is not a duration; write 250us, 40ms, 30s, 5m, 2h, 10d or a sum such as 1h30m
    ");
    assert_snapshot!(error_of("  - open: { charge: c1, asset: BTX, amount: 49.90 EUR }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:32
      |
    3 |   - open: { charge: c1, asset: BTX, amount: 49.90 EUR }
      |                                ^^^ `BTX` is not a known coin; did you mean `BTC`?
    ");
    assert_snapshot!(error_of("  - open: { charge: c1, asset: BTC, amount: 49.901 EUR }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:45
      |
    3 |   - open: { charge: c1, asset: BTC, amount: 49.901 EUR }
      |                                             ^^^^^^^^^^ `49.901` may have at most 2 decimal places
    ");
    assert_snapshot!(error_of("  - endpoint: Shop"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:15
      |
    3 |   - endpoint: Shop
      |               ^^^^ `Shop` is not a valid name; start with a lower-case letter, followed by lower-case letters, digits, `_` or `-`
    ");
    assert_snapshot!(error_of("  - endpoint: { name: shop, events: [charge.payd] }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:38
      |
    3 |   - endpoint: { name: shop, events: [charge.payd] }
      |                                      ^^^^^^^^^^^ `charge.payd` is not an event type; did you mean `charge.paid`?
    ");
    assert_snapshot!(error_of("  - endpoint: shop\n  - merchant: { shp: down }"), @"
    error: no endpoint is at `shp`
     --> scenarios/charge/underpaid.yaml:4:22
      |
    4 |   - merchant: { shp: down }
      |                      ^^^^ did you mean `shop`?
    ");
    assert_snapshot!(error_of("  - merchant: { shop: dwn }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:23
      |
    3 |   - merchant: { shop: dwn }
      |                       ^^^ `dwn` is not a behaviour of a merchant; allowed: up, down, slow, lost, twice, lagging, redirect, private or a status
    ");
}

#[test]
fn the_error_for_a_wrong_type_states_the_expected_type() {
    assert_snapshot!(error_of("  - mine: { asset: BTC, blocks: two }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:33
      |
    3 |   - mine: { asset: BTC, blocks: two }
      |                                 ^^^ expected a whole number
    ");
    assert_snapshot!(error_of("  - request: { path: /v1/charges, expect: { status: 70000 } }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:53
      |
    3 |   - request: { path: /v1/charges, expect: { status: 70000 } }
      |                                                     ^^^^^ expected a whole number from 0 to 65535
    ");
    assert_snapshot!(error_of("  - open"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:5
      |
    3 |   - open
      |     ^^^^ a value is missing; write `: ` and the value after this word
    ");
    assert_snapshot!(error_of("  - restart: now"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:14
      |
    3 |   - restart: now
      |              ^^^ must not have a value
    ");
    assert_snapshot!(error_of("  - mine: { asset: BTC, at_once: yes }"), @"
    error: invalid value
     --> scenarios/charge/underpaid.yaml:3:34
      |
    3 |   - mine: { asset: BTC, at_once: yes }
      |                                  ^^^ expected `true` or `false`
    ");
}

#[test]
fn a_name_must_be_defined_once_before_it_is_used() {
    assert_snapshot!(error_of(&format!("{OPEN}  - pay: c2")), @"
    error: no charge is called `c2`
     --> scenarios/charge/underpaid.yaml:4:10
      |
    4 |   - pay: c2
      |          ^^ did you mean `c1`?
    ");
    assert_snapshot!(error_of("  - endpoint: shop\n  - pay: shop"), @"
    error: no charge is called `shop`
     --> scenarios/charge/underpaid.yaml:4:10
      |
    4 |   - pay: shop
      |          ^^^^ no step above defines one
    ");
    assert_snapshot!(error_of(&format!("{OPEN}{OPEN}")), @"
    error: this name is already defined
     --> scenarios/charge/underpaid.yaml:4:21
      |
    4 |   - open: { charge: c1, asset: BTC, amount: 49.90 EUR }
      |                     ^^ `c1` is a charge already; choose another name
    ");
    assert_snapshot!(error_of("  - expect: { c1: paid }"), @"
    error: no object is called `c1`
     --> scenarios/charge/underpaid.yaml:3:19
      |
    3 |   - expect: { c1: paid }
      |                   ^^^^ no step above defines one
    ");
}

#[test]
fn a_step_with_two_alternatives_is_refused() {
    assert_snapshot!(error_of(&format!("{OPEN}  - pay: {{ charge: c1, share: 0.5, amount: 1 }}")), @"
    error: `pay` pays exactly one amount
     --> scenarios/charge/underpaid.yaml:4:44
      |
    4 |   - pay: { charge: c1, share: 0.5, amount: 1 }
      |                                            ^ give one of `share`, `amount`, `over` and `short`; with `address_of`, give `amount`
    ");
    assert_snapshot!(error_of(&format!("{OPEN}  - until: {{ at: 2026-01-05T09:00:00Z, expiry: c1 }}")), @"
    error: `until` needs exactly one time
     --> scenarios/charge/underpaid.yaml:4:48
      |
    4 |   - until: { at: 2026-01-05T09:00:00Z, expiry: c1 }
      |                                                ^^ give `at`, `expiry`, `attempt` or `event`
    ");
}

#[test]
fn a_file_that_is_not_a_scenario_is_refused() {
    assert_snapshot!(error_of("  - wait: [ 30s"), @"
    error: a bracket is not closed
     --> scenarios/charge/underpaid.yaml:3:11
      |
    3 |   - wait: [ 30s
      |           ^ close it with `]`
    ");
    assert_snapshot!(error_of("  - open: &again { charge: c1, asset: BTC }"), @"
    error: this file is too complex
     --> scenarios/charge/underpaid.yaml:3:18
      |
    3 |   - open: &again { charge: c1, asset: BTC }
      |                  ^ anchors, aliases and very large files are not allowed
    ");
    assert_snapshot!(error_of("  []"), @"
    error: the scenario has no steps
     --> scenarios/charge/underpaid.yaml:3:3
      |
    3 |   []
      |   ^ add a step, such as `- endpoint: shop`
    ");
    let empty = Script::parse("empty.yaml", "").expect_err("an empty file").to_string();
    assert_snapshot!(empty, @"
    error: a key is missing
     --> empty.yaml:1:1
      |
    1 |
      | ^ needs `title`
    ");
}

const EVERY_STEP: &str = include_str!("../../../scenarios/language/every_step.yaml");

proptest! {
    #[test]
    fn a_mutated_file_never_panics(
        cut in any::<prop::sample::Index>(),
        length in 0_usize..6,
        patch in "[ -~\n\t\u{e9}\u{1f600}]{0,4}",
    ) {
        let from = EVERY_STEP.floor_char_boundary(cut.index(EVERY_STEP.len()));
        let to = EVERY_STEP.floor_char_boundary((from + length).min(EVERY_STEP.len()));
        let mutated = format!("{}{patch}{}", &EVERY_STEP[..from], &EVERY_STEP[to..]);
        if let Err(error) = Script::parse("mutated.yaml", &mutated) {
            prop_assert!(error.to_string().contains("mutated.yaml"), "{error}");
        }
    }
}
