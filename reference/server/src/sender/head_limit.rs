//! [`LimitedHead`]: a limit on the bytes that a receiver sends before the body of its response.
//!
//! hyper reads any number of interim responses (100, 102, 103), so this stream below it counts the bytes until the head
//! of the final response is complete.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The maximum bytes of interim responses and the final head together.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1_024;
/// The value of `remaining` once the head is complete: the bytes after it are not counted.
const NO_LIMIT: usize = usize::MAX;

/// A stream that fails once more bytes arrive than its limit, until the limit is lifted.
pub(super) struct LimitedHead<S> {
    stream: S,
    /// The number of bytes that may still arrive.
    remaining: Arc<AtomicUsize>,
}

/// The limit of a stream.
pub(super) struct HeadLimit(Arc<AtomicUsize>);

impl<S> LimitedHead<S> {
    pub(super) fn new(stream: S) -> (LimitedHead<S>, HeadLimit) {
        let remaining = Arc::new(AtomicUsize::new(HEAD_BYTES_MAX));
        (LimitedHead { stream, remaining: Arc::clone(&remaining) }, HeadLimit(remaining))
    }
}

impl HeadLimit {
    /// Removes the limit: the head is complete.
    pub(super) fn lift(&self) {
        self.0.store(NO_LIMIT, Relaxed);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedHead<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let remaining = self.remaining.load(Relaxed);
        // The last read may exceed the limit: a head within the limit may arrive together with the start of its body.
        if remaining == 0 {
            let limit = HEAD_BYTES_MAX / 1_024;
            let why = format!("the response head and the interim responses before it exceed {limit} KiB");
            return Poll::Ready(Err(io::Error::other(why)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if remaining != NO_LIMIT {
            self.remaining.store(remaining.saturating_sub(buffer.filled().len() - before), Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedHead<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
