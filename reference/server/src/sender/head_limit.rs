//! A limit on what a receiver sends before its response begins.
//!
//! hyper reads interim responses (100, 102, 103) one after the other, however many there are. So the bytes are counted
//! below it, until the head of the final response has come.

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

/// Bytes of interim responses and of the head together.
pub(super) const HEAD_BYTES_MAX: usize = 32 * 1_024;
/// The head has come, and what follows is not counted.
const NO_LIMIT: usize = usize::MAX;

/// A stream that fails when its limit is used up.
pub(super) struct LimitedHead<S> {
    stream: S,
    left: Arc<AtomicUsize>,
}

/// Takes the limit of a stream away.
pub(super) struct HeadLimit(Arc<AtomicUsize>);

impl<S> LimitedHead<S> {
    pub(super) fn new(stream: S) -> (LimitedHead<S>, HeadLimit) {
        let left = Arc::new(AtomicUsize::new(HEAD_BYTES_MAX));
        (LimitedHead { stream, left: Arc::clone(&left) }, HeadLimit(left))
    }
}

impl HeadLimit {
    /// The head has come.
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
        let left = self.left.load(Relaxed);
        // The last read may take some bytes more: a head within the limit came with the beginning of its body.
        if left == 0 {
            let limit = HEAD_BYTES_MAX / 1_024;
            let why = format!("the response head and the interim responses before it exceed {limit} KiB");
            return Poll::Ready(Err(io::Error::other(why)));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if left != NO_LIMIT {
            self.left.store(left.saturating_sub(buffer.filled().len() - before), Relaxed);
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
