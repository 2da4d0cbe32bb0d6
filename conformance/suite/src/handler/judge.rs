//! The verdicts on a handler, as pure functions of its responses and actions.

use super::{
    HandlerPlan, HandlerRow,
    results::{HandlerResponse, SentDelivery, TrialResult, is_selected},
    trials::{ExpectedResponses, TRIALS, Trial, TrialStatement},
};
use conformance_model::verdict::{CheckError, CheckOutcome, CheckResult, Verdict, verdict};

const ACTIONS_UNKNOWN: &str = "actions of the handler cannot be observed from outside";
const COUNT_ACTIONS_REMEDY: &str = "use `--acted COMMAND`, which prints how often the handler acted on $CHARGEPROOF_CHARGE, or `--without acts`";

/// Returns the verdicts on the selected statements.
pub(super) fn judge_results(plan: &HandlerPlan, results: &[TrialResult]) -> Vec<HandlerRow> {
    let first = FirstTrial::from_results(results);
    let mut rows = Vec::new();
    for trial in TRIALS {
        let result = results.iter().find(|result| result.trial == trial.name);
        let mut push_row = |statement: TrialStatement, judge: &dyn Fn() -> Verdict| {
            let TrialStatement { id, level, text } = statement;
            if is_selected(plan, id) {
                rows.push(HandlerRow { id, level, text, verdict: judge() });
            }
        };
        if let Some((statement, expected)) = trial.responses {
            push_row(statement, &|| {
                verdict(statement.level, judge_responses(trial, expected, result, &first))
            });
        }
        if let Some((statement, action_count)) = trial.actions {
            push_row(statement, &|| match plan.without_actions {
                true => Verdict::LeftOut { by: "--without acts".to_owned() },
                false => verdict(statement.level, judge_actions(trial, action_count, result, &first)),
            });
        }
    }
    rows
}

/// The result of the first trial, a valid delivery. If the handler refuses it, refusals in other trials prove nothing.
struct FirstTrial {
    is_accepted: bool,
    actions: Option<u64>,
}

impl FirstTrial {
    fn from_results(results: &[TrialResult]) -> FirstTrial {
        let first = results.first();
        let is_accepted = first.is_some_and(|trial| trial.sent.iter().all(|sent| is_2xx(&sent.response)));
        let actions = first.and_then(|trial| trial.actions.clone()).and_then(Result::ok);
        FirstTrial { is_accepted, actions }
    }
}

fn is_first(trial: &Trial) -> bool {
    trial.name == TRIALS[0].name
}

fn is_2xx(response: &HandlerResponse) -> bool {
    matches!(response, HandlerResponse::Status(200..=299, _))
}

fn judge_responses(
    trial: &Trial,
    expected: ExpectedResponses,
    result: Option<&TrialResult>,
    first: &FirstTrial,
) -> CheckResult {
    let Some(result) = result else {
        return Err(CheckError::unjudged(
            "the trial did not run",
            "let the run finish, without --only and --skip",
        ));
    };
    let unjudgeable = || {
        Err(CheckError::unjudged(
            "the handler refuses valid deliveries, so its refusals prove nothing",
            "fix `answers.delivery` first: check the secret and the header prefix",
        ))
    };
    if !is_first(trial) && !first.is_accepted {
        return unjudgeable();
    }
    let violation = |expected: &str, sent: &SentDelivery| {
        Err(CheckError::violation(
            None,
            expected,
            format!("{}, to {}", response_text(&sent.response), sent.event_type),
        ))
    };
    let all = &result.sent;
    match expected {
        ExpectedResponses::Accepted => match all.iter().find(|sent| !is_2xx(&sent.response)) {
            Some(sent) => violation("2xx", sent),
            None => Ok(CheckOutcome::Holds),
        },
        ExpectedResponses::OneAccepted => match all.iter().any(|sent| is_2xx(&sent.response)) {
            true => Ok(CheckOutcome::Holds),
            false => violation("2xx to at least one", &all[0]),
        },
        ExpectedResponses::Refused => {
            // A missing response and a server error are refusals too: the sender retries.
            match all.iter().find(|sent| is_2xx(&sent.response)) {
                Some(sent) => violation("a refusal such as 400 or 401", sent),
                None => Ok(CheckOutcome::Holds),
            }
        }
        ExpectedResponses::NoServerError => {
            let is_below_500 =
                |sent: &&SentDelivery| matches!(sent.response, HandlerResponse::Status(..500, _));
            match all.iter().find(|sent| !is_below_500(sent)) {
                Some(sent) => violation("a status below 500", sent),
                None => Ok(CheckOutcome::Holds),
            }
        }
    }
}

fn judge_actions(
    trial: &Trial,
    expected: u64,
    result: Option<&TrialResult>,
    first: &FirstTrial,
) -> CheckResult {
    let unjudged = |why: String| Err(CheckError::unjudged(why, COUNT_ACTIONS_REMEDY));
    match result.and_then(|trial| trial.actions.as_ref()) {
        None => unjudged(ACTIONS_UNKNOWN.to_owned()),
        Some(Err(why)) => unjudged(why.clone()),
        Some(Ok(_)) if !is_first(trial) && first.actions != Some(1) => unjudged(
            "`--acted` did not report one action for a valid delivery, so its other results prove nothing"
                .to_owned(),
        ),
        Some(Ok(count)) if *count == expected => Ok(CheckOutcome::Holds),
        Some(Ok(count)) => Err(CheckError::violation(None, actions_text(expected), actions_text(*count))),
    }
}

fn actions_text(times: u64) -> String {
    match times {
        0 => "it does not act".to_owned(),
        1 => "it acts once".to_owned(),
        n => format!("it acts {n} times"),
    }
}

fn response_text(response: &HandlerResponse) -> String {
    match response {
        HandlerResponse::Status(status @ 300..=399, _) => format!("{status}, and senders follow no redirect"),
        HandlerResponse::Status(status, text) => format!("{status} {text}").trim_end().to_owned(),
        HandlerResponse::NoResponse(why) => format!("no response: {why}"),
    }
}
