//! Access to the dashboard, and the check of its forms.
//!
//! Callers on this machine need no login, unless the server has a public address. Others send the token once and get a
//! cookie. The cookie and the form token are random for each start and independent of the sandbox token.

use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, SET_COOKIE},
};
use subtle::ConstantTimeEq;

use crate::{pages::PageRequest, refusal::Refusal, response::HttpResponse, sandbox_access};

/// The name of the hidden form field with the form token.
pub(super) const FORM_TOKEN_FIELD: &str = "word";
const SECRET_BYTES: usize = 20;

/// The access control of the dashboard, with the random secrets of this run of the server.
pub(super) struct AccessControl {
    /// The value of the session cookie.
    session: String,
    form_token: String,
}

/// The result of an access check.
pub(super) enum AccessDecision {
    Granted,
    /// The caller must log in with the sandbox token.
    LoginRequired,
}

impl AccessControl {
    pub(super) fn generate() -> Result<AccessControl, getrandom::Error> {
        Ok(AccessControl { session: random_secret()?, form_token: random_secret()? })
    }

    /// Returns the form token, which every form of the owner contains.
    pub(super) fn form_token(&self) -> &str {
        &self.form_token
    }

    /// Decides if the caller has access. Fails for host names and origins that are not the server's, even with valid
    /// credentials.
    pub(super) fn decide(&self, request: &PageRequest<'_>) -> Result<AccessDecision, Refusal> {
        let decision = match request.admit() {
            Ok(()) => AccessDecision::Granted,
            Err(Refusal::MissingToken) if self.has_cookie(request) => AccessDecision::Granted,
            Err(Refusal::MissingToken) => AccessDecision::LoginRequired,
            Err(refusal) => return Err(refusal),
        };
        sandbox_access::admit_site(request.head)?;
        Ok(decision)
    }

    /// Checks that a form has the form token, which only pages of this server contain.
    pub(super) fn check_form_token(&self, token: Option<&str>) -> Result<(), Refusal> {
        if constant_time_eq(token.unwrap_or_default(), &self.form_token) {
            Ok(())
        } else {
            Err(Refusal::ForeignForm)
        }
    }

    pub(super) fn is_sandbox_token(request: &PageRequest<'_>, token: &str) -> bool {
        constant_time_eq(token, request.backend.token.as_str())
    }

    fn has_cookie(&self, request: &PageRequest<'_>) -> bool {
        cookie(&request.head.headers, &cookie_name(request))
            .is_some_and(|value| constant_time_eq(value, &self.session))
    }

    /// Adds the session cookie to a response.
    pub(super) fn log_in(
        &self,
        request: &PageRequest<'_>,
        response: &mut HttpResponse,
    ) -> Result<(), Refusal> {
        set_cookie(request, response, &self.session, "")
    }

    /// Adds the removal of the session cookie to a response.
    pub(super) fn log_out(request: &PageRequest<'_>, response: &mut HttpResponse) -> Result<(), Refusal> {
        set_cookie(request, response, "", "; Max-Age=0")
    }
}

fn set_cookie(
    request: &PageRequest<'_>,
    response: &mut HttpResponse,
    value: &str,
    attributes: &str,
) -> Result<(), Refusal> {
    let addresses = &request.backend.addresses;
    let secure = if addresses.url().starts_with("https:") && !is_request_to_other_host(request) {
        "; Secure"
    } else {
        ""
    };
    let cookie = format!(
        "{}={value}; Path={}/; HttpOnly; SameSite=Strict{secure}{attributes}",
        cookie_name(request),
        addresses.prefix(),
    );
    let cookie = HeaderValue::try_from(cookie).map_err(|_| Refusal::Broken)?;
    response.headers_mut().append(SET_COOKIE, cookie);
    Ok(())
}

/// Returns `true` if the request does not name the public host. Such a request may come over http, where a browser
/// stores no `Secure` cookie.
fn is_request_to_other_host(request: &PageRequest<'_>) -> bool {
    !request.authority.is_some_and(|authority| {
        crate::address::Authority::parse(authority)
            .is_some_and(|authority| request.backend.addresses.is_public_host(authority.host))
    })
}

/// Returns the cookie's name. It contains the port, because browsers share cookies between all ports of a host.
fn cookie_name(request: &PageRequest<'_>) -> String {
    format!("chargeproof_{}", request.backend.addresses.port())
}

/// Returns the value of the cookie with this name.
fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

fn random_secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
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
        let (one, two) = (
            AccessControl::generate().expect("the system has randomness"),
            AccessControl::generate().expect("the system has randomness"),
        );
        let secrets = [&one.session, &one.form_token, &two.session, &two.form_token];
        for (index, secret) in secrets.iter().enumerate() {
            assert_eq!(secret.len(), 2 * SECRET_BYTES);
            assert!(!secrets[..index].contains(secret));
        }
    }
}
