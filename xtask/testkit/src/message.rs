//! HTTP/1.1 messages: writes requests, and parses received requests and responses. Opens no socket.

use std::fmt;

use serde_json::Value;

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method.
    pub method: &'a str,
    /// The request target: path and query.
    pub path: &'a str,
    /// The value of `Host`.
    pub host: &'a str,
    /// The bearer token.
    pub key: Option<&'a str>,
    /// Further header lines, each with its line break. A `Content-Type` in them replaces `application/json`.
    pub header_lines: &'a str,
    /// The body.
    pub body: &'a str,
}

impl<'a> Request<'a> {
    /// Creates a `GET` request without a key or a body.
    pub fn get(path: &'a str) -> Request<'a> {
        Request { method: "GET", path, host: "localhost", key: None, header_lines: "", body: "" }
    }
}

impl fmt::Display for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Request { method, path, host, key, header_lines: lines, body } = *self;
        write!(f, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n")?;
        if let Some(key) = key {
            write!(f, "Authorization: Bearer {key}\r\n")?;
        }
        if !lines.contains("Content-Type: ") {
            write!(f, "Content-Type: application/json\r\n")?;
        }
        if path.ends_with("/mcp") {
            // The transport of MCP requires both types.
            write!(f, "Accept: application/json, text/event-stream\r\n")?;
        }
        write!(f, "{lines}Content-Length: {}\r\n\r\n{body}", body.len())
    }
}

/// Returns the text of a response that closes the connection.
pub fn response(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A received request or response.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The request line or the status line.
    pub start_line: String,
    /// The status of a response; 0 for anything else.
    pub status: u16,
    /// The headers as `Name: value`, in their order and capitalisation.
    pub headers: Vec<String>,
    /// The body. Bytes that are not UTF-8 are replaced.
    pub body: String,
}

impl Message {
    fn parse(head: &str) -> Message {
        let mut lines = head.lines().map(str::to_owned);
        let start = lines.next().unwrap_or_default();
        let status = start.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
        Message {
            status: status.unwrap_or(0),
            headers: lines.collect(),
            body: String::new(),
            start_line: start,
        }
    }

    /// Returns the value of the header with this name, in this capitalisation.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// Returns the start line and the headers as text.
    pub fn head(&self) -> String {
        format!("{}\r\n{}", self.start_line, self.headers.join("\r\n"))
    }

    /// Returns the target of a request: path and query.
    pub fn path(&self) -> &str {
        self.start_line.split(' ').nth(1).unwrap_or_default()
    }

    /// Returns the bearer token of a request; empty if it has none.
    pub fn key(&self) -> &str {
        self.header_ignoring_case("authorization")
            .and_then(|value| value.split_once(' '))
            .map_or("", |(_, key)| key)
    }

    /// Returns the body as JSON; `Null` if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// Returns the body of a successful response as JSON.
    ///
    /// # Errors
    /// The status is not 2xx; the message has the status and the start of the body.
    pub fn success(&self) -> Result<Value, String> {
        match self.status {
            200..=299 => Ok(self.json()),
            status => Err(format!("{status}: {}", self.body.chars().take(300).collect::<String>())),
        }
    }

    /// Returns the length of the body after the head: 0 without `Content-Length`, and for an interim response (1xx).
    pub(crate) fn body_length(&self) -> usize {
        let is_interim = (100..200).contains(&self.status);
        self.header_ignoring_case("content-length")
            .and_then(|text| text.parse().ok())
            .filter(|_| !is_interim)
            .unwrap_or(0)
    }

    /// Returns the value of a header, whatever its capitalisation.
    fn header_ignoring_case(&self, name: &str) -> Option<&str> {
        let pairs = self.headers.iter().filter_map(|line| line.split_once(':'));
        pairs.into_iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }
}

/// Received bytes that were not consumed yet.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    bytes: Vec<u8>,
}

impl ReceiveBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Consumes a head once it is complete.
    pub(crate) fn head(&mut self) -> Option<Message> {
        let end = self.bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = Message::parse(&self.take(end)?);
        self.bytes.drain(..4);
        Some(head)
    }

    /// Consumes a line, without its end, once it is complete.
    pub(crate) fn line(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
        Some(self.take(end + 1)?.trim_end().to_owned())
    }

    /// Consumes this many bytes once they have arrived.
    pub(crate) fn take(&mut self, length: usize) -> Option<String> {
        (self.bytes.len() >= length).then(|| {
            let rest = self.bytes.split_off(length);
            let consumed = std::mem::replace(&mut self.bytes, rest);
            String::from_utf8(consumed)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        })
    }

    /// Consumes all bytes.
    pub(crate) fn rest(&mut self) -> String {
        self.take(self.bytes.len()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_returned_once_it_is_complete() {
        let mut incoming = ReceiveBuffer::default();
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-LENGTH:  4\r\nX: y\r\n\r\nbodyPOST";
        let mut heads = Vec::new();
        for byte in bytes {
            incoming.push(&[*byte]);
            heads.extend(incoming.head());
        }
        assert_eq!(heads.iter().map(|head| head.status).collect::<Vec<_>>(), [100, 201]);
        let last = heads.pop().expect("the input has two heads");
        assert_eq!((last.body_length(), last.header("X"), last.header("x")), (4, Some("y"), None));
        assert_eq!((incoming.take(4).as_deref(), incoming.take(5)), (Some("body"), None));
        assert_eq!(incoming.rest(), "POST");
    }

    #[test]
    fn a_written_request_is_parsed_back() {
        let request = Request { key: Some("k"), body: "{}", method: "POST", ..Request::get("/v1/a?b=c") };
        let mut incoming = ReceiveBuffer::default();
        incoming.push(request.to_string().as_bytes());
        let head = incoming.head().expect("the input has a head");
        assert_eq!((head.path(), head.key(), head.status, head.body_length()), ("/v1/a?b=c", "k", 0, 2));
    }
}
