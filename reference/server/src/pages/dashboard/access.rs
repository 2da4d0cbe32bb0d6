//! Access to the dashboard, and the check of its forms.
//!
//! This machine needs no login. Other callers send the token once and get a cookie. The cookie and the token in
//! every form are drawn anew at each start and reveal nothing of the sandbox token.

use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};
use subtle::ConstantTimeEq;

use crate::{answer::Answer, gate, pages::Call, refusal::Refusal};

const SECRET_BYTES: usize = 20;

/// The secrets by which a run of the server recognises its browsers and forms.
pub(super) struct Access {
    session: String,
    form: String,
}

/// The result of an access check.
pub(super) enum Entrance {
    /// They may.
    Open,
    /// Not before they show the token.
    Login,
}

impl Access {
    pub(super) fn draw() -> Result<Access, getrandom::Error> {
        Ok(Access { session: secret()?, form: secret()? })
    }

    /// Returns the form token.
    pub(super) fn form_word(&self) -> &str {
        &self.form
    }

    /// Judges the caller. Fails for names and pages that are not ours, whatever they show.
    pub(super) fn judge(&self, call: &Call<'_>) -> Result<Entrance, Refusal> {
        let entry = match call.admit() {
            Ok(()) => Entrance::Open,
            Err(Refusal::SandboxToken) if self.has_cookie(call) => Entrance::Open,
            Err(Refusal::SandboxToken) => Entrance::Login,
            Err(refusal) => return Err(refusal),
        };
        gate::admit_site(call.head)?;
        Ok(entry)
    }

    /// Whether a form from our origin is one of ours: it has the word that only our pages know.
    pub(super) fn judge_form(&self, word: Option<&str>) -> Result<(), Refusal> {
        if same(word.unwrap_or_default(), &self.form) { Ok(()) } else { Err(Refusal::FormOrigin) }
    }

    /// Returns `true` if it is the token that the server printed.
    pub(super) fn is_token(call: &Call<'_>, text: &str) -> bool {
        same(text, call.backend.token.as_str())
    }

    fn has_cookie(&self, call: &Call<'_>) -> bool {
        cookie(&call.head.headers, &cookie_name(call)).is_some_and(|value| same(value, &self.session))
    }

    /// Lets the browser in from now on.
    pub(super) fn open(&self, call: &Call<'_>, answer: &mut Answer) -> Result<(), Refusal> {
        set(call, answer, &self.session, "")
    }

    /// Lets the browser in no more.
    pub(super) fn close(call: &Call<'_>, answer: &mut Answer) -> Result<(), Refusal> {
        set(call, answer, "", "; Max-Age=0")
    }
}

fn set(call: &Call<'_>, answer: &mut Answer, value: &str, rest: &str) -> Result<(), Refusal> {
    let addresses = &call.backend.addresses;
    let secure =
        if addresses.url().starts_with("https:") && !is_loopback_call(call) { "; Secure" } else { "" };
    let cookie = format!(
        "{}={value}; Path={}/; HttpOnly; SameSite=Strict{secure}{rest}",
        cookie_name(call),
        addresses.prefix(),
    );
    let cookie = HeaderValue::try_from(cookie).map_err(|_| Refusal::Broken)?;
    answer.headers_mut().append(SET_COOKIE, cookie);
    Ok(())
}

/// A browser that calls a public https server by its plain local address keeps no secure cookie.
fn is_loopback_call(call: &Call<'_>) -> bool {
    !call.authority.is_some_and(|authority| {
        crate::address::Authority::parse(authority)
            .is_some_and(|authority| call.backend.addresses.is_public_host(authority.host))
    })
}

/// Browsers keep one jar for all ports of a host, so the port is in the name.
fn cookie_name(call: &Call<'_>) -> String {
    format!("chargeproof_{}", call.backend.addresses.port())
}

fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

fn secret() -> Result<String, getrandom::Error> {
    let mut bits = [0; SECRET_BYTES];
    getrandom::fill(&mut bits)?;
    Ok(hex::encode(bits))
}

/// In a time that says nothing about where they differ.
fn same(one: &str, other: &str) -> bool {
    bool::from(one.as_bytes().ct_eq(other.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; chargeproof_80=x; chargeproof_8402=yes"));
        assert_eq!(cookie(&headers, "chargeproof_8402"), Some("yes"));
        assert_eq!(cookie(&headers, "chargeproof_8"), None);
        assert_eq!(cookie(&headers, "proof_8402"), None);
    }

    #[test]
    fn every_start_draws_other_secrets() {
        let (one, two) = (Access::draw().expect("randomness"), Access::draw().expect("randomness"));
        let all = [&one.session, &one.form, &two.session, &two.form];
        for (place, text) in all.iter().enumerate() {
            assert_eq!(text.len(), 2 * SECRET_BYTES);
            assert!(!all[..place].contains(text));
        }
    }
}
