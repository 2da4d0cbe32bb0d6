//! [`Connection`]: sends requests over HTTP/1 and reads the responses.

use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use crate::{
    response_parser::{self, BodyLength, ChunkParser, HEAD_MAX},
    stream::Stream,
};

/// The time limit of a request, and of opening a connection.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The parts of a response that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResponseSummary {
    pub(crate) status: u16,
    /// The size of the final head and of the body in bytes, without the framing of chunks.
    pub(crate) bytes: u64,
    pub(crate) keep_alive: bool,
    /// `Retry-After`, in seconds; `None` if it is absent or not a number.
    pub(crate) retry_after: Option<u64>,
}

/// The reason for a missing response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestError {
    Refused,
    Closed,
    TimedOut,
    Broken,
    /// The response is not valid HTTP/1, for this reason.
    InvalidResponse(&'static str),
}

impl RequestError {
    pub(crate) fn from_io_error(error: &io::Error) -> RequestError {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => RequestError::Refused,
            io::ErrorKind::TimedOut => RequestError::TimedOut,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => RequestError::Closed,
            _ => RequestError::Broken,
        }
    }

    /// Returns the name of the error in reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RequestError::Refused => "connection refused",
            RequestError::Closed => "connection closed",
            RequestError::TimedOut => "no response within 10 seconds",
            RequestError::Broken => "connection failed",
            RequestError::InvalidResponse(reason) => reason,
        }
    }
}

/// One connection and its buffer.
pub(crate) struct Connection {
    stream: Stream,
    buffer: Vec<u8>,
    /// `true` after the first read of the current response.
    has_read: bool,
    timeout: RequestTimeout,
}

impl Connection {
    pub(crate) fn new(stream: Stream) -> Connection {
        Connection { stream, buffer: vec![0; HEAD_MAX], has_read: false, timeout: RequestTimeout::new() }
    }

    /// Sends a request and reads the response. `now` is the current time.
    pub(crate) async fn send(
        &mut self,
        now: Instant,
        request: &[u8],
    ) -> Result<ResponseSummary, RequestError> {
        self.send_with_sink(now, request, |_| {}).await
    }

    /// Sends a request and passes the body of the response to `sink`.
    pub(crate) async fn send_with_sink(
        &mut self,
        now: Instant,
        request: &[u8],
        mut sink: impl FnMut(&[u8]),
    ) -> Result<ResponseSummary, RequestError> {
        self.timeout.deadline = now + REQUEST_TIMEOUT;
        self.has_read = false;
        self.write_all(request).await?;
        // Interim responses stay in the buffer with the head, so the size of the buffer bounds them together.
        let (mut start, mut filled) = (0, 0);
        let (head, head_len) = loop {
            if filled == self.buffer.len() {
                return Err(RequestError::InvalidResponse(
                    "response head and interim responses exceed 64 KiB",
                ));
            }
            let n = self.read(filled).await?;
            if n == 0 {
                return Err(RequestError::Closed);
            }
            filled += n;
            let mut parsed = response_parser::parse_head(&self.buffer[start..filled])
                .map_err(RequestError::InvalidResponse)?;
            // Skips interim responses.
            while let Some((_, len)) = parsed.filter(|(head, _)| head.status < 200) {
                start += len;
                parsed = response_parser::parse_head(&self.buffer[start..filled])
                    .map_err(RequestError::InvalidResponse)?;
            }
            if let Some(parsed) = parsed {
                break parsed;
            }
        };
        let buffered = start + head_len..filled;
        let body = match head.length {
            BodyLength::Known(n) => self.read_known_length(buffered, n, &mut sink).await?,
            BodyLength::Chunked => self.read_chunked(buffered, &mut sink).await?,
            BodyLength::UntilClose => self.read_until_close(buffered, &mut sink).await?,
        };
        let bytes = head_len as u64 + body;
        Ok(ResponseSummary {
            status: head.status,
            bytes,
            keep_alive: head.keep_alive,
            retry_after: head.retry_after,
        })
    }

    async fn read_known_length(
        &mut self,
        buffered: std::ops::Range<usize>,
        length: u64,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<u64, RequestError> {
        const TOO_LONG: RequestError = RequestError::InvalidResponse("more bytes than Content-Length states");
        let mut left = length.checked_sub(buffered.len() as u64).ok_or(TOO_LONG)?;
        sink(&self.buffer[buffered]);
        while left > 0 {
            let n = self.read(0).await?;
            if n == 0 {
                return Err(RequestError::Closed);
            }
            left = left.checked_sub(n as u64).ok_or(TOO_LONG)?;
            sink(&self.buffer[..n]);
        }
        Ok(length)
    }

    async fn read_chunked(
        &mut self,
        buffered: std::ops::Range<usize>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<u64, RequestError> {
        let mut chunks = ChunkParser::default();
        let mut part = buffered;
        loop {
            let len = part.len();
            match chunks.parse(&self.buffer[part], &mut *sink).map_err(RequestError::InvalidResponse)? {
                (consumed, true) if consumed < len => {
                    return Err(RequestError::InvalidResponse("bytes after the last chunk"));
                }
                (_, true) => return Ok(chunks.bytes),
                (_, false) => {}
            }
            let n = self.read(0).await?;
            if n == 0 {
                return Err(RequestError::Closed);
            }
            part = 0..n;
        }
    }

    async fn read_until_close(
        &mut self,
        buffered: std::ops::Range<usize>,
        sink: &mut impl FnMut(&[u8]),
    ) -> Result<u64, RequestError> {
        let mut bytes = buffered.len() as u64;
        sink(&self.buffer[buffered]);
        loop {
            let n = self.read(0).await?;
            if n == 0 {
                return Ok(bytes);
            }
            sink(&self.buffer[..n]);
            bytes += n as u64;
        }
    }

    async fn write_all(&mut self, request: &[u8]) -> Result<(), RequestError> {
        let Connection { stream, timeout, .. } = self;
        let mut sent = 0;
        while sent < request.len() {
            let write = poll_fn(|cx| {
                let progress = Pin::new(&mut *stream).poll_write(cx, &request[sent..]);
                if progress.is_pending() { timeout.poll(cx).map(Err) } else { progress }
            });
            match write.await {
                Ok(0) => return Err(RequestError::Closed),
                Ok(n) => sent += n,
                Err(error) => return Err(RequestError::from_io_error(&error)),
            }
        }
        if matches!(stream, Stream::Tls(_)) {
            let flush = poll_fn(|cx| {
                let progress = Pin::new(&mut *stream).poll_flush(cx);
                if progress.is_pending() { timeout.poll(cx).map(Err) } else { progress }
            });
            flush.await.map_err(|error| RequestError::from_io_error(&error))?;
        }
        Ok(())
    }

    /// Reads into the buffer, starting at an index. Returns the number of bytes, which is 0 at the end.
    async fn read(&mut self, from: usize) -> Result<usize, RequestError> {
        // The timer is not polled while a server sends continuously.
        if self.has_read && Instant::now() >= self.timeout.deadline {
            return Err(RequestError::TimedOut);
        }
        self.has_read = true;
        let Connection { stream, buffer, timeout, .. } = self;
        let mut buffer = ReadBuf::new(&mut buffer[from..]);
        let read = poll_fn(|cx| {
            let progress = Pin::new(&mut *stream).poll_read(cx, &mut buffer);
            if progress.is_pending() { timeout.poll(cx).map(Err) } else { progress }
        });
        read.await.map_err(|error| RequestError::from_io_error(&error))?;
        Ok(buffer.filled().len())
    }
}

/// The timeout of the requests of a connection. The timer is reset only when it fires, which is rare.
struct RequestTimeout {
    deadline: Instant,
    timer: Pin<Box<Sleep>>,
}

impl RequestTimeout {
    fn new() -> RequestTimeout {
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        RequestTimeout { deadline, timer: Box::pin(tokio::time::sleep_until(deadline)) }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        while self.timer.as_mut().poll(cx).is_ready() {
            if self.deadline <= self.timer.deadline() {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.timer.as_mut().reset(self.deadline);
        }
        Poll::Pending
    }
}
