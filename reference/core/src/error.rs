//! The errors of API calls, with their HTTP statuses.

use std::{borrow::Cow, fmt};

/// The reason why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// The body is not JSON, or a header cannot be read.
    Malformed(Cow<'static, str>),
    /// The key is missing, revoked or unknown (`auth.no_header`, `auth.revoked_key`, `auth.unknown_key`).
    Unauthenticated,
    /// No such object in this book, or no such path (`isolation.not_found`).
    NotFound,
    /// The path does not allow this method.
    MethodNotAllowed {
        /// The allowed methods, for the `Allow` header.
        allow: Cow<'static, str>,
    },
    /// The object's state does not allow the call.
    Conflict(Cow<'static, str>),
    /// The body is too large.
    BodyTooLarge,
    /// The `Content-Type` of the body is not JSON.
    UnsupportedMediaType,
    /// Fields or query values are invalid.
    Invalid(FieldErrors),
    /// Too many requests with one key, or too many e-mails (`limits.refused`).
    RateLimited {
        /// The message, a sentence.
        message: Cow<'static, str>,
        /// The number of seconds after which the next request is accepted; at least 1.
        retry_after_secs: u64,
    },
    /// No exchange rate is available for the pair.
    NoRate(String),
}

impl ApiError {
    /// Returns the status code of the response.
    pub const fn status(&self) -> u16 {
        match self {
            ApiError::Malformed(_) => 400,
            ApiError::Unauthenticated => 401,
            ApiError::NotFound => 404,
            ApiError::MethodNotAllowed { .. } => 405,
            ApiError::Conflict(_) => 409,
            ApiError::BodyTooLarge => 413,
            ApiError::UnsupportedMediaType => 415,
            ApiError::Invalid(_) => 422,
            ApiError::RateLimited { .. } => 429,
            ApiError::NoRate(_) => 503,
        }
    }

    /// Returns an error about one field.
    pub fn field(name: impl Into<String>, message: impl Into<String>) -> ApiError {
        let mut errors = FieldErrors::default();
        errors.add(name, message);
        ApiError::Invalid(errors)
    }

    /// Returns an error about the state of an object.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> ApiError {
        ApiError::Conflict(message.into())
    }
}

/// Writes the message, a sentence.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Malformed(message) | ApiError::Conflict(message) => f.write_str(message),
            ApiError::Unauthenticated => f.write_str("Unauthenticated."),
            ApiError::NotFound => f.write_str("Not found."),
            ApiError::MethodNotAllowed { allow } => write!(f, "This path allows {allow} only."),
            ApiError::BodyTooLarge => f.write_str("The request body is larger than 256 KiB."),
            ApiError::UnsupportedMediaType => {
                f.write_str("The request body must be JSON: send Content-Type: application/json.")
            }
            ApiError::Invalid(errors) => errors.fmt(f),
            ApiError::RateLimited { message, .. } => f.write_str(message),
            ApiError::NoRate(pair) => write!(f, "No exchange rate is available for {pair}; try again later."),
        }
    }
}

impl std::error::Error for ApiError {}

/// The errors of each field, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldErrors(Vec<(String, Vec<String>)>);

impl FieldErrors {
    /// Adds an error about a field. The name of a nested field is its path, such as `items.0.quantity`.
    pub fn add(&mut self, name: impl Into<String>, message: impl Into<String>) {
        let (name, message) = (name.into(), message.into());
        match self.0.iter_mut().find(|(field, _)| *field == name) {
            Some((_, messages)) => messages.push(message),
            None => self.0.push((name, vec![message])),
        }
    }

    /// Returns `true` if there is no error.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the invalid fields with their messages.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(name, messages)| (name.as_str(), messages.as_slice()))
    }

    /// Returns `Ok` if there are no errors.
    ///
    /// # Errors
    ///
    /// [`ApiError::Invalid`] if any field is wrong.
    pub fn into_result(self) -> Result<(), ApiError> {
        if self.is_empty() { Ok(()) } else { Err(ApiError::Invalid(self)) }
    }
}

/// Writes the first message, and the number of further ones.
impl fmt::Display for FieldErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.0.iter().flat_map(|(_, messages)| messages);
        let first = all.next().map_or("The given data is invalid.", String::as_str);
        match all.count() {
            0 => f.write_str(first),
            1 => write!(f, "{first} (and 1 more error)"),
            more => write!(f, "{first} (and {more} more errors)"),
        }
    }
}
