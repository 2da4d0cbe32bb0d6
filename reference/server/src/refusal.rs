//! The host's own refusals, before or in place of the world's: one enum to branch on, one table to answer with.

use std::fmt;

use http::{
    HeaderValue, StatusCode,
    header::{ALLOW, CONNECTION, RETRY_AFTER},
};

use crate::{
    answer::{self, Answer},
    host::Broken,
};

/// The reason why the host does not pass a request on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No such page.
    NotFound,
    /// The page is only read.
    ReadOnly,
    /// HTTP/1.1 wants one `Host`, and no more.
    HostHeader,
    /// The head did not arrive in time.
    HeadTooSlow,
    /// The client stopped in the middle, or its chunks are none.
    BodyCutShort,
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The body is over the bound.
    BodyTooLarge {
        /// The bound in bytes.
        most: usize,
    },
    /// `/sandbox` or `/mcp` was called by a name that is not ours: a page may have made its own name point here.
    SandboxHost,
    /// `/sandbox` or `/mcp` was called by a page of somebody else.
    SandboxOrigin,
    /// `/sandbox` was called from another machine without the token.
    SandboxToken,
    /// A body for `/sandbox` that a foreign page could have sent.
    SandboxNotJson,
    /// A form of a page that is not ours.
    FormOrigin,
    /// A body that is no form.
    NotAForm,
    /// The page takes other methods.
    PageMethod,
    /// As many pages follow what happens as may.
    TooManyStreams,
    /// Other clients have yet to take so much that there is no room for this answer.
    TooMuchInFlight,
    /// A forward that somebody on another machine wants to add.
    ForwardFromHere,
    /// A new world while time goes by itself.
    WorldNeedsFrozenClock,
    /// A path or a call names a world that is not open.
    UnknownWorld,
    /// The sandbox was called with a key that no world has.
    KeyOfNoWorld,
    /// The world can't be read: its disk failed.
    Unreadable,
    /// The world met a bug of its own.
    Broken,
}

impl Refusal {
    /// The status that says so.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Refusal::NotFound | Refusal::UnknownWorld => StatusCode::NOT_FOUND,
            Refusal::ReadOnly | Refusal::PageMethod => StatusCode::METHOD_NOT_ALLOWED,
            Refusal::HostHeader | Refusal::BodyCutShort => StatusCode::BAD_REQUEST,
            Refusal::HeadTooSlow | Refusal::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Refusal::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::SandboxHost
            | Refusal::SandboxOrigin
            | Refusal::SandboxToken
            | Refusal::FormOrigin
            | Refusal::ForwardFromHere
            | Refusal::KeyOfNoWorld => StatusCode::FORBIDDEN,
            Refusal::TooManyStreams | Refusal::TooMuchInFlight | Refusal::Unreadable => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Refusal::SandboxNotJson | Refusal::NotAForm => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Refusal::WorldNeedsFrozenClock => StatusCode::CONFLICT,
            Refusal::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns `true` if the next request on the connection cannot be told from the refused body.
    fn ends_the_connection(self) -> bool {
        matches!(
            self,
            Refusal::HeadTooSlow
                | Refusal::BodyCutShort
                | Refusal::BodyTooSlow
                | Refusal::BodyTooLarge { .. }
        )
    }

    /// The same in words, as JSON.
    pub(crate) fn body(self) -> String {
        serde_json::json!({ "message": self.to_string() }).to_string()
    }

    /// The refusal on its way out.
    pub(crate) fn answer(self) -> Answer {
        let mut answer = answer::json(self.status(), self.body());
        if self.ends_the_connection() {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self == Refusal::TooMuchInFlight {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self == Refusal::ReadOnly {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        answer
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::NotFound => "Not found.",
            Refusal::ReadOnly => "This page takes GET and HEAD only.",
            Refusal::HostHeader => "An HTTP/1.1 request has exactly one Host header.",
            Refusal::HeadTooSlow => "The request did not arrive in time. Send it again.",
            Refusal::BodyCutShort => "The body ended early or is not framed as announced.",
            Refusal::BodyTooSlow => "The body did not arrive in time. Send it again.",
            Refusal::BodyTooLarge { most } => return write!(f, "The body may have at most {most} bytes."),
            Refusal::SandboxHost => {
                "This path does not answer to this Host. Call it by localhost or by the address of the server, \
                 or start the server with this address as its --public-url."
            }
            Refusal::SandboxOrigin => {
                "This path does not answer to pages of another origin. Call it from a page of this server, or \
                 without a browser."
            }
            Refusal::SandboxToken => {
                "From another machine, or through a proxy, the sandbox takes the token that the server printed at \
                 start: Authorization: Bearer <token>."
            }
            Refusal::SandboxNotJson => "The sandbox takes bodies with Content-Type: application/json.",
            Refusal::FormOrigin => {
                "This form was sent by a page of another origin. Open the page here and send it again."
            }
            Refusal::NotAForm => {
                "A page takes forms with Content-Type: application/x-www-form-urlencoded. Programs call the API."
            }
            Refusal::PageMethod => "This page does not take that method. The Allow header says what it takes.",
            Refusal::TooManyStreams => {
                "As many pages as possible already follow what happens. Close one, or reload this page by hand."
            }
            Refusal::TooMuchInFlight => {
                "Too many large answers are on their way to other clients. Ask again in a second, or for a smaller page."
            }
            Refusal::ForwardFromHere => {
                "A forward is added from the machine that the server runs on, without a proxy, or at start with \
                 --forward-to: the token does not open the network behind the server."
            }
            Refusal::WorldNeedsFrozenClock => {
                "A new world needs a clock that only the sandbox moves. Start the server with a frozen clock."
            }
            Refusal::UnknownWorld => {
                "No world of this name is open: it has ended, or it is another server's. POST /sandbox/worlds opens one, \
                 and GET /sandbox/worlds lists those that are open."
            }
            Refusal::KeyOfNoWorld => {
                "A key says which world the sandbox call is for, and no open world has this one. Call without a key for the \
                 server's own world, or open another: POST /sandbox/worlds."
            }
            Refusal::Unreadable => {
                "The directory of this world can't be written to now, so it can't be read either. Make room or mend the disk, \
                 and try again."
            }
            Refusal::Broken => {
                "The server met a bug of its own and answers nothing more. What failed is in its output; restart it."
            }
        })
    }
}

impl From<Broken> for Refusal {
    fn from(Broken: Broken) -> Refusal {
        Refusal::Broken
    }
}
