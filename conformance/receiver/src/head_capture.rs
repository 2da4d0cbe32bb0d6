//! [`HeadCapture`]: stores the raw head of a request, because hyper normalizes the names and the order of headers.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use conformance_model::raw_bytes::RawBytes;

/// A stream whose first bytes are stored. It carries one request, so these bytes contain the head of that request.
pub(super) struct HeadCapture<S> {
    stream: S,
    head: CapturedHead,
    /// The number of bytes that may still be stored.
    left: usize,
}

/// The stored head, shared with the handler of the request.
#[derive(Clone, Default)]
pub(super) struct CapturedHead(Arc<Mutex<Vec<u8>>>);

impl<S> HeadCapture<S> {
    /// Creates a capture of at most `bytes_max` bytes.
    pub(super) fn new(stream: S, bytes_max: usize) -> HeadCapture<S> {
        HeadCapture { stream, head: CapturedHead::default(), left: bytes_max }
    }

    pub(super) fn head(&self) -> CapturedHead {
        self.head.clone()
    }
}

impl CapturedHead {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the first byte is that of a TLS handshake.
    pub(super) fn is_tls(&self) -> bool {
        self.bytes().first() == Some(&0x16)
    }

    /// Returns `true` if no byte arrived, as when a client only checks that the port is open.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Returns the method and the request target, verbatim.
    pub(super) fn request_line(&self) -> (String, String) {
        let bytes = self.bytes();
        let line = lines(&bytes).next().unwrap_or_default();
        let mut parts = line.split(|&b| b == b' ').map(|part| String::from_utf8_lossy(part).into_owned());
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    }

    /// Returns the headers in their order, with names verbatim and values trimmed.
    pub(super) fn headers(&self) -> Vec<(String, RawBytes)> {
        let bytes = self.bytes();
        lines(&bytes)
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter_map(|line| {
                let colon = line.iter().position(|&b| b == b':')?;
                let name = String::from_utf8_lossy(&line[..colon]).into_owned();
                Some((name, line[colon + 1..].trim_ascii().into()))
            })
            .collect()
    }
}

/// Returns the lines of a head. Empty lines before a request are allowed and skipped.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = bytes.iter().position(|b| !b"\r\n".contains(b)).unwrap_or(bytes.len());
    bytes[start..].split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadCapture<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let new = &buffer.filled()[before..];
        let stored = new.len().min(self.left);
        if stored > 0 {
            self.head.bytes().extend_from_slice(&new[..stored]);
            self.left -= stored;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadCapture<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
