//! Access to the dashboard, and the check of its forms.
//!
//! Callers on this machine need no login. Others send the token once and get a cookie. The cookie and the form token
//! are random for each start and independent of the sandbox token.

use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};
use subtle::ConstantTimeEq;

use crate::{answer::Answer, gate, pages::Call, refusal::Refusal};

const SECRET_BYTES: usize = 20;

/// The random secrets of this run of the server: session cookie and form token.
pub(super) struct Access {
    session: String,
    form: String,
}

/// The result of an access check.
pub(super) enum AccessDecision {
    /// Access is granted.
    Open,
    /// The caller must log in with the token.
    Login,
}

impl Access {
    pub(super) fn generate() -> Result<Access, getrandom::Error> {
        Ok(Access { session: secret()?, form: secret()? })
    }

    /// Returns the form token.
    pub(super) fn form_token(&self) -> &str {
        &self.form
    }

    /// Checks the caller. Fails for host names and origins that are not the server's, whatever credentials it has.
    pub(super) fn judge(&self, call: &Call<'_>) -> Result<AccessDecision, Refusal> {
        let entry = match call.admit() {
            Ok(()) => AccessDecision::Open,
            Err(Refusal::SandboxToken) if self.has_cookie(call) => AccessDecision::Open,
            Err(Refusal::SandboxToken) => AccessDecision::Login,
            Err(refusal) => return Err(refusal),
        };
        gate::admit_site(call.head)?;
        Ok(entry)
    }

    /// Checks that a form has the form token, which only pages of this server contain.
    pub(super) fn judge_form(&self, token: Option<&str>) -> Result<(), Refusal> {
        if constant_time_eq(token.unwrap_or_default(), &self.form) {
            Ok(())
        } else {
            Err(Refusal::FormOrigin)
        }
    }

    /// Returns `true` if the text is the sandbox token.
    pub(super) fn is_token(call: &Call<'_>, text: &str) -> bool {
        constant_time_eq(text, call.backend.token.as_str())
    }

    fn has_cookie(&self, call: &Call<'_>) -> bool {
        cookie(&call.head.headers, &cookie_name(call))
            .is_some_and(|value| constant_time_eq(value, &self.session))
    }

    /// Logs the browser in.
    pub(super) fn log_in(&self, call: &Call<'_>, answer: &mut Answer) -> Result<(), Refusal> {
        set_cookie(call, answer, &self.session, "")
    }

    /// Logs the browser out.
    pub(super) fn log_out(call: &Call<'_>, answer: &mut Answer) -> Result<(), Refusal> {
        set_cookie(call, answer, "", "; Max-Age=0")
    }
}

fn set_cookie(call: &Call<'_>, answer: &mut Answer, value: &str, rest: &str) -> Result<(), Refusal> {
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

/// Returns `true` for a request by a loopback address: the browser would not store a secure cookie for plain http.
fn is_loopback_call(call: &Call<'_>) -> bool {
    !call.authority.is_some_and(|authority| {
        crate::address::Authority::parse(authority)
            .is_some_and(|authority| call.backend.addresses.is_public_host(authority.host))
    })
}

/// Returns the cookie's name. It contains the port, because browsers share cookies between all ports of a host.
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

/// Compares in constant time.
fn constant_time_eq(one: &str, other: &str) -> bool {
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
    fn every_start_generates_new_secrets() {
        let (one, two) = (Access::generate().expect("randomness"), Access::generate().expect("randomness"));
        let all = [&one.session, &one.form, &two.session, &two.form];
        for (index, text) in all.iter().enumerate() {
            assert_eq!(text.len(), 2 * SECRET_BYTES);
            assert!(!all[..index].contains(text));
        }
    }
}
