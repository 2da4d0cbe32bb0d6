//! Commands that repeat a request or a check. Keys are environment variables in them.

use url::Url;

use conformance_judge::uses_deliveries;
use conformance_model::deliveries::Deliveries;
use conformance_model::mode::Mode;
use conformance_model::recording::{Caller, Exchange, Forgery, Recording};

/// Returns a curl command that repeats the request of an exchange.
pub(super) fn curl(recording: &Recording, exchange: &Exchange) -> String {
    let origin = Url::parse(&recording.base).map(|base| base.origin().ascii_serialization());
    let address = format!("{}{}", origin.unwrap_or_default(), exchange.target);
    let flag = if exchange.method() == "HEAD" { "-I" } else { "-i" };
    match authorization(recording, exchange.caller) {
        None => format!("curl {flag} '{address}'"),
        Some(value) => format!("curl {flag} -H \"Authorization: {value}\" '{address}'"),
    }
}

/// Returns the command that checks one statement again.
pub(super) fn recheck_command(recording: &Recording, id: &str) -> String {
    let base = recording.base.trim_end_matches('/');
    let delivery_options = match recording.deliveries.as_ref().filter(|_| uses_deliveries(id)) {
        None => String::new(),
        Some(Deliveries { receiver: Some(address), public_url, .. }) => {
            let public_url = public_url.as_ref().map(|url| format!(" --public-url {url}"));
            format!(" --receiver {address}{}", public_url.unwrap_or_default())
        }
        Some(_) => " --deliveries FILE".to_owned(),
    };
    let statement_options = match id {
        _ if id.starts_with("extended.") => " --profile extended".to_owned(),
        _ if id.starts_with("paging.stable") => match &recording.inserts.options[..] {
            [] => " --allow-writes".to_owned(),
            options => options
                .iter()
                .map(|option| format!(" {option}").replace("--hook", "--hook COMMAND"))
                .collect(),
        },
        "endpoints.address" => " --register COMMAND".to_owned(),
        "webhooks.redirects" => " --redirect-trial".to_owned(),
        _ => String::new(),
    };
    format!("chargeproof check {base}{delivery_options} --only {id}{statement_options}")
}

/// Returns the value of the `Authorization` header in shell syntax.
fn authorization(recording: &Recording, caller: Caller) -> Option<String> {
    const TEST_KEY: &str = "CHARGEPROOF_TEST_KEY";
    const LIVE_KEY: &str = "CHARGEPROOF_LIVE_KEY";
    let [live, test] = Mode::BOTH.map(|mode| mode.mode_prefix(&recording.key_prefix));
    Some(match caller {
        Caller::NoKey => return None,
        Caller::Own(Mode::Live) => format!("Bearer ${LIVE_KEY}"),
        Caller::Own(Mode::Test) => format!("Bearer ${TEST_KEY}"),
        Caller::SecondKey => "Bearer $CHARGEPROOF_SECOND_KEY".into(),
        Caller::OtherAccount => "Bearer $CHARGEPROOF_OTHER_ACCOUNT_KEY".into(),
        Caller::Revoked => "Bearer $CHARGEPROOF_REVOKED_KEY".into(),
        Caller::Forged(Forgery::EmptyBearer) => "Bearer".into(),
        Caller::Forged(Forgery::NoScheme) => format!("${TEST_KEY}"),
        Caller::Forged(Forgery::OtherScheme) => format!("Token ${TEST_KEY}"),
        Caller::Forged(Forgery::BasicScheme) => format!("Basic ${TEST_KEY}"),
        Caller::Forged(Forgery::WordAppended) => format!("Bearer ${TEST_KEY} x"),
        Caller::Forged(Forgery::BasicUser) => format!("Basic $(printf %s \"${TEST_KEY}:\" | base64 -w0)"),
        Caller::Forged(Forgery::ListAppended) => format!("Bearer ${TEST_KEY},x"),
        Caller::Forged(Forgery::Encoded) => {
            format!("Bearer $(printf %s \"${TEST_KEY}\" | sed s/_/%5F/g)")
        }
        Caller::Forged(Forgery::Unknown) => format!("Bearer {test}0000000000000000000000000000000000000000"),
        Caller::Forged(Forgery::LastCharacter) => format!("Bearer ${{{TEST_KEY}%?}}~"),
        Caller::Forged(Forgery::LetterCase) => {
            format!("Bearer {test}$(printf %s \"${{{TEST_KEY}#{test}}}\" | tr a-zA-Z A-Za-z)")
        }
        Caller::Forged(Forgery::Shortened) => format!("Bearer ${{{TEST_KEY}%????}}"),
        Caller::Forged(Forgery::Appended) => format!("Bearer ${{{TEST_KEY}}}0"),
        Caller::Forged(Forgery::LiveKeyOtherPrefix) => format!("Bearer {test}${{{LIVE_KEY}#{live}}}"),
        Caller::Forged(Forgery::UnknownLive) => {
            format!("Bearer {live}0000000000000000000000000000000000000000")
        }
        Caller::Forged(Forgery::FirstCharacter) => format!("Bearer {test}~${{{TEST_KEY}#{test}?}}"),
        Caller::Forged(Forgery::OtherPrefix) => format!("Bearer {live}${{{TEST_KEY}#{test}}}"),
    })
}
