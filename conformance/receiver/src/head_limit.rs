//! [`LimitedHead`]: a limit on the size of a response before its body.
//!
//! hyper reads any number of interim responses (100, 102, 103), so this stream counts the bytes below hyper, from each
//! request to the end of the head of its final response.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum size of the interim responses and the final head together, in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1_024;

const PROTOCOL: &[u8] = b"HTTP/";
/// The index of the status in a status line.
const STATUS_INDEX: usize = "HTTP/1.1 ".len();

/// A client connection that fails if a response exceeds the limit before its body.
pub struct LimitedHead<S> {
    stream: S,
    heads: HeadParser,
}

impl<S> LimitedHead<S> {
    /// Wraps a connection before its first request.
    pub fn new(stream: S) -> LimitedHead<S> {
        LimitedHead { stream, heads: HeadParser::default() }
    }
}

/// A parser that finds the end of the final head of a response.
#[derive(Debug, Default)]
struct HeadParser {
    /// `true` after the final head, or if the bytes are not a head.
    is_done: bool,
    /// The number of bytes since the request.
    bytes: usize,
    /// `true` after the status line of the current head.
    in_headers: bool,
    /// `true` if the current head has a 1xx status.
    is_interim: bool,
    /// The number of bytes of the current line, without carriage returns.
    column: usize,
}

impl HeadParser {
    /// Resets the parser when a request is written.
    fn on_write(&mut self) {
        if self.is_done {
            *self = HeadParser::default();
        }
    }

    fn on_read(&mut self, bytes: &[u8]) {
        if self.is_done {
            return;
        }
        self.bytes += bytes.len();
        for byte in bytes {
            match byte {
                b'\r' => {}
                b'\n' if self.column > 0 => (self.in_headers, self.column) = (true, 0),
                b'\n' if self.in_headers && self.is_interim => self.in_headers = false,
                b'\n' if self.in_headers => self.is_done = true,
                // An empty line before a head.
                b'\n' => {}
                _ => {
                    if !self.in_headers {
                        // Bytes that are not a head belong to the body of a response that began before its request
                        // was written completely. They are not limited.
                        self.is_done = PROTOCOL.get(self.column).is_some_and(|expected| expected != byte);
                        if self.column == STATUS_INDEX {
                            self.is_interim = *byte == b'1';
                        }
                    }
                    self.column += 1;
                }
            }
            if self.is_done {
                return;
            }
        }
    }

    fn exceeds_limit(&self) -> bool {
        !self.is_done && self.bytes >= HEAD_BYTES_MAX
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedHead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let LimitedHead { stream, heads } = self.get_mut();
        if heads.exceeds_limit() {
            let limit = HEAD_BYTES_MAX / 1_024;
            let message = format!("the response head and the interim responses before it exceed {limit} KiB");
            return Poll::Ready(Err(io::Error::other(message)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buffer))?;
        heads.on_read(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedHead<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.heads.on_write();
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a response in pieces of each size up to 9 bytes. `expected` is `true` if the final head is complete.
    #[track_caller]
    fn check(text: &str, expected: bool) {
        for size in 1..=9 {
            let mut heads = HeadParser::default();
            text.as_bytes().chunks(size).for_each(|piece| heads.on_read(piece));
            assert_eq!(heads.is_done, expected, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn the_final_head_ends_the_limit() {
        check("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n", true);
        check("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r", false);
        check("HTTP/1.0 404 \n\n", true);
        check("HTTP/1.1 100 Continue\r\n\r\n", false);
        check("HTTP/1.1 103 Early Hints\r\nlink: 2\r\n\r\n\r\nHTTP/1.1 200 OK\r\n", false);
        check("HTTP/1.1 103 Early Hints\r\nlink: 2\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", true);
        check("a body", true);
    }

    #[test]
    fn each_request_resets_the_limit() {
        let mut heads = HeadParser::default();
        heads.on_write();
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(HEAD_BYTES_MAX / 25);
        heads.on_read(interim.as_bytes());
        assert!(!heads.exceeds_limit());
        heads.on_read(b"HTTP/1.1 200 OK\r\n\r\nbody");
        assert!(!heads.exceeds_limit());
        heads.on_write();
        heads.on_read(interim.as_bytes());
        heads.on_write();
        heads.on_read(interim.as_bytes());
        assert!(heads.exceeds_limit());
    }
}
