//! One connection: hyper over a stream with time limits.
//!
//! The limits on heads and idleness are enforced here instead of by hyper, which would reset a timer for every request
//! and close without a response. One timer per connection is enough: it is reset only when it fires, or when a head
//! arrives in pieces.

use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::{rt::TokioIo, server::graceful::Watcher};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep},
};

use crate::{activity::Activity, config::Bounds, gate::ConnectionAddrs, refusal::Refusal, router::Router};

/// Serves one connection to its end.
pub(crate) async fn serve<S>(
    router: Arc<Router>,
    stream: S,
    addrs: ConnectionAddrs,
    activity: Arc<Activity>,
    stopping: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = router.backend.bounds;
    let timed = TimedStream::new(stream, &activity, bounds);
    let shared = Arc::new((router, Arc::clone(&activity)));
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move {
            let (router, activity) = &*shared;
            activity.on_turn();
            let answer = router.answer(addrs, activity, request).await;
            activity.on_turn();
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        // A client may close its sending side and still receive responses.
        .half_close(true)
        .header_read_timeout(None)
        .max_header_size(bounds.head_bytes)
        .serve_connection(TokioIo::new(timed), service);
    let mut connection = pin!(stopping.watch(connection));
    tokio::select! {
        biased;
        // Errors are the client's: it disconnected, or sent no HTTP and got 400.
        _ = &mut connection => {}
        // Another connection needs its slot, or another response its memory.
        () = activity.wait_for_close() => {}
    }
}

/// A stream that fails when a head takes too long or no byte moves.
struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    head_time: Duration,
    idle_time: Duration,
    stall_time: Duration,
    /// `true` if a byte moved since the clock was last read.
    moved: bool,
    /// The time of the latest byte, accurate to the latest reading of the clock.
    moved_at: Instant,
    /// The state of the incomplete head.
    head: HeadState,
    /// The number of turns at the latest check.
    turns_seen: u32,
    /// `true` if the client does not accept the latest write, so it may have received half a response.
    stalled: bool,
    timer: Pin<Box<Sleep>>,
}

/// The state of an incomplete head.
enum HeadState {
    /// No head has started.
    None,
    /// The first head, expected since this time.
    Awaited(Instant),
    /// A head that started since the clock was last read.
    Begun,
    /// A head that started at this time.
    Since(Instant),
}

impl<S: AsyncRead + AsyncWrite + Unpin> TimedStream<S> {
    fn new(stream: S, activity: &Arc<Activity>, bounds: Bounds) -> TimedStream<S> {
        let moved_at = Instant::now();
        TimedStream {
            stream,
            activity: Arc::clone(activity),
            head_time: bounds.head_time,
            idle_time: bounds.idle_time,
            stall_time: bounds.stall_time,
            moved: false,
            moved_at,
            head: HeadState::Awaited(moved_at),
            turns_seen: 0,
            stalled: false,
            timer: Box::pin(tokio::time::sleep_until(moved_at + bounds.idle_time.min(bounds.head_time))),
        }
    }

    fn on_read(&mut self) {
        self.moved = true;
        self.update_head();
        if matches!(self.head, HeadState::None | HeadState::Awaited(_)) && self.turns_seen.is_multiple_of(2) {
            self.head = HeadState::Begun;
        }
    }

    /// Updates the state of the head: a new turn means that the head is complete.
    fn update_head(&mut self) {
        let turns = self.activity.turn_count();
        if turns != self.turns_seen {
            self.turns_seen = turns;
            self.head = HeadState::None;
        }
    }

    /// Ready when the connection has exceeded a limit. Called whenever the stream has nothing to do, which is soon
    /// after every byte, so the clock is read only here.
    fn poll_time_limits(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.update_head();
        if self.moved {
            self.moved = false;
            self.moved_at = Instant::now();
            self.activity.on_traffic(self.moved_at);
        }
        if matches!(self.head, HeadState::Begun) {
            self.head = HeadState::Since(self.moved_at);
            self.activity.on_await(self.moved_at);
        }
        let idle_until = self.moved_at + if self.stalled { self.stall_time } else { self.idle_time };
        let deadline = match self.head {
            HeadState::Awaited(since) | HeadState::Since(since) => idle_until.min(since + self.head_time),
            HeadState::None | HeadState::Begun => idle_until,
        };
        // A later deadline can wait until the timer fires; an earlier one cannot.
        if deadline < self.timer.deadline() {
            self.timer.as_mut().reset(deadline);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if deadline <= self.timer.deadline() {
                break;
            }
            self.timer.as_mut().reset(deadline);
        }
        if matches!(self.head, HeadState::Since(_)) && !self.stalled {
            // The response is sent as far as possible: a client with such a slow head may not be reading.
            let _ =
                Pin::new(&mut self.stream).poll_write(cx, error_response(Refusal::HeadTooSlow).as_bytes());
        }
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Returns the result of a write, or the error that it took too long.
    fn finish_write<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.stalled = done.is_pending();
        match done {
            Poll::Pending => self.poll_time_limits(cx).map(Err),
            done => {
                self.moved = true;
                done
            }
        }
    }
}

/// Returns an error response that hyper cannot send, because there is no complete request.
fn error_response(refusal: Refusal) -> String {
    let status = refusal.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let body = refusal.body();
    format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        status.as_str(),
        body.len(),
    )
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Pending => self.poll_time_limits(cx).map(Err),
            done => {
                self.on_read();
                done
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.finish_write(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.finish_write(cx, done)
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

#[cfg(test)]
mod tests;
