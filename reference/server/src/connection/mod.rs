//! One connection: hyper over a stream with time limits.
//!
//! The time limits on request heads and idle connections are enforced here instead of by hyper, which would reset a
//! timer for every request and close without a response. One timer per connection is enough: it is reset only when it
//! fires too early, or when the deadline becomes earlier.

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

use crate::{
    activity::Activity, config::Bounds, refusal::Refusal, router::Router, sandbox_access::ConnectionAddrs,
};

/// Serves one connection to its end.
pub(crate) async fn serve<S>(
    router: Arc<Router>,
    stream: S,
    addrs: ConnectionAddrs,
    activity: Arc<Activity>,
    shutdown: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = router.backend.bounds;
    let timed = TimedStream::new(stream, &activity, bounds);
    let router_and_activity = Arc::new((router, Arc::clone(&activity)));
    let service = service_fn(move |request| {
        let router_and_activity = Arc::clone(&router_and_activity);
        async move {
            let (router, activity) = &*router_and_activity;
            activity.on_request_boundary();
            let response = router.respond(addrs, activity, request).await;
            activity.on_request_boundary();
            Ok::<_, Infallible>(response)
        }
    });
    let connection = http1::Builder::new()
        // A client may close its sending side and still receive responses.
        .half_close(true)
        .header_read_timeout(None)
        .max_header_size(bounds.head_bytes)
        .serve_connection(TokioIo::new(timed), service);
    let mut connection = pin!(shutdown.watch(connection));
    tokio::select! {
        biased;
        // Errors are caused by the client: it disconnected, exceeded a time limit, or sent invalid HTTP and got 400.
        _ = &mut connection => {}
        // Another connection needs the slot of this one, or another response its memory.
        () = activity.wait_for_close() => {}
    }
}

/// A stream that fails when a request head takes too long or no byte is received or sent for too long.
struct TimedStream<S> {
    stream: S,
    activity: Arc<Activity>,
    head_timeout: Duration,
    idle_timeout: Duration,
    /// The idle timeout while the client does not accept a write.
    stall_timeout: Duration,
    /// `true` if bytes were received or sent since the clock was last read.
    has_new_bytes: bool,
    /// The time of the latest byte, accurate to the latest reading of the clock.
    last_byte_at: Instant,
    /// The state of the incomplete head.
    head: HeadState,
    /// The value of [`Activity::request_boundary_count`] at the latest check: odd while a request is processed.
    last_boundary_count: u32,
    /// `true` if the client does not accept the latest write, so it may have received half a response.
    is_stalled: bool,
    timer: Pin<Box<Sleep>>,
}

/// The state of an incomplete head.
enum HeadState {
    /// No head is expected, and none has started to arrive.
    None,
    /// The first head is expected since this time.
    Expected(Instant),
    /// A head started to arrive since the clock was last read.
    Arriving,
    /// A head started to arrive at this time.
    ArrivingSince(Instant),
}

impl<S: AsyncRead + AsyncWrite + Unpin> TimedStream<S> {
    fn new(stream: S, activity: &Arc<Activity>, bounds: Bounds) -> TimedStream<S> {
        let last_byte_at = Instant::now();
        TimedStream {
            stream,
            activity: Arc::clone(activity),
            head_timeout: bounds.head_time,
            idle_timeout: bounds.idle_time,
            stall_timeout: bounds.stall_time,
            has_new_bytes: false,
            last_byte_at,
            head: HeadState::Expected(last_byte_at),
            last_boundary_count: 0,
            is_stalled: false,
            timer: Box::pin(tokio::time::sleep_until(last_byte_at + bounds.idle_time.min(bounds.head_time))),
        }
    }

    /// Records that bytes were received; they start a head if no request is being processed.
    fn on_read(&mut self) {
        self.has_new_bytes = true;
        self.update_head();
        if matches!(self.head, HeadState::None | HeadState::Expected(_))
            && self.last_boundary_count.is_multiple_of(2)
        {
            self.head = HeadState::Arriving;
        }
    }

    /// Updates the state of the head: it is complete if a request has started or ended since the latest check.
    fn update_head(&mut self) {
        let boundary_count = self.activity.request_boundary_count();
        if boundary_count != self.last_boundary_count {
            self.last_boundary_count = boundary_count;
            self.head = HeadState::None;
        }
    }

    /// Returns an error once the connection has exceeded a time limit. Called whenever a read or a write is pending, which
    /// is soon after every byte, so it is enough to read the clock here.
    fn poll_time_limits(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.update_head();
        if self.has_new_bytes {
            self.has_new_bytes = false;
            self.last_byte_at = Instant::now();
            self.activity.on_traffic(self.last_byte_at);
        }
        if matches!(self.head, HeadState::Arriving) {
            self.head = HeadState::ArrivingSince(self.last_byte_at);
            self.activity.on_wait_for_client(self.last_byte_at);
        }
        let idle_until =
            self.last_byte_at + if self.is_stalled { self.stall_timeout } else { self.idle_timeout };
        let deadline = match self.head {
            HeadState::Expected(since) | HeadState::ArrivingSince(since) => {
                idle_until.min(since + self.head_timeout)
            }
            HeadState::None | HeadState::Arriving => idle_until,
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
        if matches!(self.head, HeadState::ArrivingSince(_)) && !self.is_stalled {
            // Only one write is tried: a client that sends its head so slowly may not read the response.
            let _ =
                Pin::new(&mut self.stream).poll_write(cx, error_response(Refusal::HeadTooSlow).as_bytes());
        }
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Records the result of a write and returns it; a pending write fails once a time limit is exceeded.
    fn finish_write<T>(&mut self, cx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.is_stalled = result.is_pending();
        match result {
            Poll::Pending => self.poll_time_limits(cx).map(Err),
            done => {
                self.has_new_bytes = true;
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
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.finish_write(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.finish_write(cx, result)
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
