//! [`Refusal`]: the error responses of the server itself, with their statuses and messages. Errors of the world are not
//! here.

use std::fmt;

use http::{
    HeaderValue, StatusCode,
    header::{ALLOW, CONNECTION, RETRY_AFTER},
};

use crate::{
    host::InternalError,
    response::{self, HttpResponse},
};

/// The reason why the server does not pass a request to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There is no page at this path.
    NotFound,
    /// The page accepts `GET` and `HEAD` only.
    ReadOnly,
    /// An HTTP/1.1 request without a `Host` header, or with several.
    HostHeader,
    /// The head did not arrive in time.
    HeadTooSlow,
    /// The body ended early, or its chunked encoding is invalid.
    BodyCutShort,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The body exceeds the limit.
    BodyTooLarge {
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// `/sandbox` or `/mcp` was requested with a host name that is not the server's, possibly by DNS rebinding.
    UnknownHost,
    /// `/sandbox` or `/mcp` was requested by a page of another origin.
    ForeignOrigin,
    /// `/sandbox` was requested without the token from another machine, or through a proxy.
    MissingToken,
    /// A body for `/sandbox` without the content type of JSON, which a page of another origin can send.
    SandboxNotJson,
    /// A form was sent by a page of another origin, or without the form token.
    ForeignForm,
    /// A body that is not a form.
    NotAForm,
    /// The page does not accept this method.
    MethodNotAllowed,
    /// The maximum number of event streams is open.
    TooManyStreams,
    /// The memory budget for responses is used by other clients that have not received theirs yet.
    ResponseBudgetExceeded,
    /// A caller on another machine tried to add a forward.
    RemoteForward,
    /// A new world was requested, but the clock is not frozen.
    WorldNeedsFrozenClock,
    /// A path or a call names a world that is not open.
    UnknownWorld,
    /// The sandbox was called with a key that belongs to no open world.
    KeyWithoutWorld,
    /// The world cannot be read, because its storage failed.
    StorageUnavailable,
    /// The world stopped after an internal error.
    Broken,
}

impl Refusal {
    /// Returns the status of the response.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Refusal::NotFound | Refusal::UnknownWorld => StatusCode::NOT_FOUND,
            Refusal::ReadOnly | Refusal::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::HostHeader | Refusal::BodyCutShort => StatusCode::BAD_REQUEST,
            Refusal::HeadTooSlow | Refusal::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Refusal::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::UnknownHost
            | Refusal::ForeignOrigin
            | Refusal::MissingToken
            | Refusal::ForeignForm
            | Refusal::RemoteForward
            | Refusal::KeyWithoutWorld => StatusCode::FORBIDDEN,
            Refusal::TooManyStreams | Refusal::ResponseBudgetExceeded | Refusal::StorageUnavailable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Refusal::SandboxNotJson | Refusal::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::WorldNeedsFrozenClock => StatusCode::CONFLICT,
            Refusal::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns `true` if the connection must be closed, because the end of the refused body is unknown.
    fn closes_connection(self) -> bool {
        matches!(
            self,
            Refusal::HeadTooSlow
                | Refusal::BodyCutShort
                | Refusal::BodyTooSlow
                | Refusal::BodyTooLarge { .. }
        )
    }

    /// Returns the body of the response: JSON with a message.
    pub(crate) fn body(self) -> String {
        serde_json::json!({ "message": self.to_string() }).to_string()
    }

    /// Returns the response.
    pub(crate) fn response(self) -> HttpResponse {
        let mut response = response::json(self.status(), self.body());
        if self.closes_connection() {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self == Refusal::ResponseBudgetExceeded {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self == Refusal::ReadOnly {
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotFound => "Not found.",
            Refusal::ReadOnly => "This page accepts GET and HEAD only.",
            Refusal::HostHeader => "An HTTP/1.1 request has exactly one Host header.",
            Refusal::HeadTooSlow => "The request did not arrive in time. Send it again.",
            Refusal::BodyCutShort => "The body ended early, or its chunked encoding is invalid.",
            Refusal::BodyTooSlow => "The body did not arrive in time. Send it again.",
            Refusal::BodyTooLarge { bytes_max } => return write!(f, "The body may have at most {bytes_max} bytes."),
            Refusal::UnknownHost => {
                "This Host is not allowed for this path. Use localhost or the address of the server, \
                 or start the server with this address as its --public-url."
            }
            Refusal::ForeignOrigin => {
                "Pages of another origin may not use this path. Call it from a page of this server, or \
                 without a browser."
            }
            Refusal::MissingToken => {
                "From another machine, or through a proxy, the sandbox requires the token that the server printed at \
                 start: Authorization: Bearer <token>."
            }
            Refusal::SandboxNotJson => "The sandbox accepts bodies with Content-Type: application/json only.",
            Refusal::ForeignForm => {
                "This form was sent by a page of another origin. Open the page here and send it again."
            }
            Refusal::NotAForm => {
                "A page accepts forms with Content-Type: application/x-www-form-urlencoded only. Programs use the API."
            }
            Refusal::MethodNotAllowed => "This page does not accept that method. The Allow header lists the allowed ones.",
            Refusal::TooManyStreams => {
                "The maximum number of pages with live updates is open. Close one, or reload this page manually."
            }
            Refusal::ResponseBudgetExceeded => {
                "Too many large responses are being sent to other clients. Retry in a second, or request a smaller page."
            }
            Refusal::RemoteForward => {
                "A forward can only be added from the server's machine, without a proxy, or at start with \
                 --forward-to: the token gives no access to the network behind the server."
            }
            Refusal::WorldNeedsFrozenClock => {
                "A new world needs a clock that only the sandbox moves. Start the server with a frozen clock."
            }
            Refusal::UnknownWorld => {
                "No world with this name is open: it was closed, or belongs to another server. POST /sandbox/worlds opens one, \
                 and GET /sandbox/worlds lists the open ones."
            }
            Refusal::KeyWithoutWorld => {
                "The API key selects the world of a sandbox call, and no open world has this key. Call without a key for the \
                 server's own world, or open another with POST /sandbox/worlds."
            }
            Refusal::StorageUnavailable => {
                "The directory of this world cannot be written, so the world cannot be read. Free disk space or repair the disk, \
                 then try again."
            }
            Refusal::Broken => {
                "The server failed with an internal error and no longer processes requests. See its output, then restart it."
            }
        })
    }
}

impl From<InternalError> for Refusal {
    fn from(InternalError: InternalError) -> Refusal {
        Refusal::Broken
    }
}
