//! The `Authorization` headers of all callers: keys, and tokens that resemble keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use conformance_model::mode::Mode;
use conformance_model::reading::unused_id_like;
use conformance_model::recording::{Caller, Forgery};

use crate::plan::Plan;

/// The number of characters that are removed from a shortened key.
const REMOVED_CHARACTERS: usize = 4;

/// Returns the value of the `Authorization` header.
pub(crate) fn authorization(plan: &Plan, caller: Caller) -> Option<String> {
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    let test_key = plan.test_key.expose();
    let test_tail = plan.test_key.secret_part(&plan.key_prefix);
    let prefix = |mode| plan.mode_prefix(mode);
    match caller {
        Caller::Own(mode) => bearer(plan.key(mode).expose()),
        Caller::SecondKey => bearer(plan.second_key.as_ref()?.expose()),
        Caller::OtherAccount => bearer(plan.other_account_key.as_ref()?.expose()),
        Caller::Revoked => bearer(plan.revoked_key.as_ref()?.expose()),
        Caller::NoKey => None,
        Caller::Forged(Forgery::EmptyBearer) => Some("Bearer".into()),
        Caller::Forged(Forgery::NoScheme) => Some(test_key.to_owned()),
        Caller::Forged(Forgery::OtherScheme) => Some(format!("Token {test_key}")),
        Caller::Forged(Forgery::BasicScheme) => Some(format!("Basic {test_key}")),
        Caller::Forged(Forgery::BasicUser) => {
            Some(format!("Basic {}", STANDARD.encode(format!("{test_key}:"))))
        }
        Caller::Forged(Forgery::WordAppended) => bearer(&format!("{test_key} x")),
        Caller::Forged(Forgery::ListAppended) => bearer(&format!("{test_key},x")),
        Caller::Forged(Forgery::Encoded) => bearer(&test_key.replace('_', "%5F")),
        Caller::Forged(Forgery::Unknown) => {
            bearer(&format!("{}{}", prefix(Mode::Test), unused_id(plan, test_tail, 0)))
        }
        Caller::Forged(Forgery::LastCharacter) => bearer(&format!(
            "{}{}",
            &test_key[..test_key.len() - 1],
            other_character(test_key.ends_with('a'))
        )),
        Caller::Forged(Forgery::Shortened) => {
            bearer(&test_key[..test_key.len() - REMOVED_CHARACTERS.min(test_tail.len())])
        }
        Caller::Forged(Forgery::LetterCase) => {
            bearer(&format!("{}{}", prefix(Mode::Test), swap_letter_case(test_tail)))
        }
        Caller::Forged(Forgery::Appended) => bearer(&format!("{test_key}0")),
        Caller::Forged(Forgery::OtherPrefix) => bearer(&format!("{}{test_tail}", prefix(Mode::Live))),
        Caller::Forged(Forgery::LiveKeyOtherPrefix) => {
            bearer(&format!("{}{}", prefix(Mode::Test), plan.live_key.secret_part(&plan.key_prefix)))
        }
        Caller::Forged(Forgery::UnknownLive) => {
            bearer(&format!("{}{}", prefix(Mode::Live), unused_id(plan, test_tail, 1)))
        }
        Caller::Forged(Forgery::FirstCharacter) => bearer(&format!(
            "{}{}{}",
            prefix(Mode::Test),
            other_character(test_tail.starts_with('a')),
            &test_tail[1..]
        )),
    }
}

/// Returns a nonexistent identifier of the same format. Different values of `variant` give different ones.
pub(crate) fn unused_id(plan: &Plan, id: &str, variant: u64) -> String {
    unused_id_like(id, plan.seed.wrapping_add(variant.wrapping_mul(0x5851_f42d_4c95_7f2d)))
}

/// Returns a character that differs from one of a key. `is_a`: the character of the key is `a`.
fn other_character(is_a: bool) -> char {
    if is_a { 'b' } else { 'a' }
}

/// Returns the text with lower-case letters in upper case, and the reverse.
fn swap_letter_case(text: &str) -> String {
    let swap = |character: char| {
        if character.is_ascii_lowercase() {
            character.to_ascii_uppercase()
        } else {
            character.to_ascii_lowercase()
        }
    };
    text.chars().map(swap).collect()
}
