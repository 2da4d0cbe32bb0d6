//! A request as the service needs to see it, and its answer, both free of any HTTP library.

/// What a host hands over of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET`, `POST`, …
    pub method: &'a str,
    /// The path as received, still percent-encoded, without any prefix of the host's: `/v1/charges`.
    pub path: &'a str,
    /// What stands after `?`, still encoded.
    pub query: Option<&'a str>,
    /// The `Authorization` header; nothing if there is none or more than one.
    pub authorization: Option<&'a [u8]>,
    /// The `Content-Type` header.
    pub content_type: Option<&'a [u8]>,
    /// The `Idempotency-Key` header.
    pub idempotency_key: Option<&'a [u8]>,
    /// The address the client called, without a slash at the end: `http://127.0.0.1:8080`. Links start with it.
    pub base: &'a str,
    /// The body, already bounded by the host.
    pub body: &'a [u8],
}

/// What goes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, and their values.
    pub headers: Vec<(&'static str, String)>,
    /// The body, JSON unless the headers say otherwise.
    pub body: Vec<u8>,
}
