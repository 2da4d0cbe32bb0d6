//! One connection: hyper over a stream that knows how long it may take.
//!
//! The limits on heads and idleness are kept here and not by hyper, which would set a timer anew for every
//! request and close without a word. One timer per connection is enough: it is only moved when it fires, or
//! when a head comes in pieces.

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

use crate::{activity::Activity, config::Bounds, gate::Ends, refusal::Refusal, router::Router};

/// Serves one connection to its end.
pub(crate) async fn serve<S>(
    router: Arc<Router>,
    stream: S,
    ends: Ends,
    activity: Arc<Activity>,
    stopping: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = router.backend.bounds;
    let timed = Timed::new(stream, &activity, bounds);
    let shared = Arc::new((router, Arc::clone(&activity)));
    let service = service_fn(move |request| {
        let shared = Arc::clone(&shared);
        async move {
            let (router, activity) = &*shared;
            activity.on_turn();
            let answer = router.answer(ends, activity, request).await;
            activity.on_turn();
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        // A client that sends all it has and then listens is a good client.
        .half_close(true)
        .header_read_timeout(None)
        .max_header_size(bounds.head_bytes)
        .serve_connection(TokioIo::new(timed), service);
    let mut connection = pin!(stopping.watch(connection));
    tokio::select! {
        biased;
        // What can go wrong here is the client's: it went away, or spoke no HTTP and has been told so.
        _ = &mut connection => {}
        // Others need its place, or the room that its answer takes.
        () = activity.closing() => {}
    }
}

/// A stream that fails once a head takes too long or nothing moves any more.
struct Timed<S> {
    stream: S,
    activity: Arc<Activity>,
    head_time: Duration,
    idle_time: Duration,
    stall_time: Duration,
    /// A byte moved since the last look at the clock.
    moved: bool,
    /// The time at which a byte last moved, as of that check.
    moved_at: Instant,
    /// The head that is still incomplete.
    head: Head,
    /// The count of turns at the last look.
    seen: u32,
    /// The client does not take what was last written, so what it has may end in the middle of an answer.
    stalled: bool,
    timer: Pin<Box<Sleep>>,
}

/// A head that has not come to its end.
enum Head {
    /// There is none.
    None,
    /// It is the first one, and has been awaited since then.
    Awaited(Instant),
    /// It has begun since the last look at the clock.
    Begun,
    /// It began then.
    Since(Instant),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Timed<S> {
    fn new(stream: S, activity: &Arc<Activity>, bounds: Bounds) -> Timed<S> {
        let moved_at = Instant::now();
        Timed {
            stream,
            activity: Arc::clone(activity),
            head_time: bounds.head_time,
            idle_time: bounds.idle_time,
            stall_time: bounds.stall_time,
            moved: false,
            moved_at,
            head: Head::Awaited(moved_at),
            seen: 0,
            stalled: false,
            timer: Box::pin(tokio::time::sleep_until(moved_at + bounds.idle_time.min(bounds.head_time))),
        }
    }

    fn on_read(&mut self) {
        self.moved = true;
        self.look();
        if matches!(self.head, Head::None | Head::Awaited(_)) && self.seen.is_multiple_of(2) {
            self.head = Head::Begun;
        }
    }

    /// A turn since the last look means that the head has come to its end.
    fn look(&mut self) {
        let turns = self.activity.turns();
        if turns != self.seen {
            self.seen = turns;
            self.head = Head::None;
        }
    }

    /// Ready when the connection has used up its time. Called whenever the stream has nothing to do, which is soon
    /// after every byte that moves: so this is where the clock is looked at, once for all of them.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.look();
        if self.moved {
            self.moved = false;
            self.moved_at = Instant::now();
            self.activity.on_move(self.moved_at);
        }
        if matches!(self.head, Head::Begun) {
            self.head = Head::Since(self.moved_at);
            self.activity.on_await(self.moved_at);
        }
        let idle_until = self.moved_at + if self.stalled { self.stall_time } else { self.idle_time };
        let deadline = match self.head {
            Head::Awaited(since) | Head::Since(since) => idle_until.min(since + self.head_time),
            Head::None | Head::Begun => idle_until,
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
        if matches!(self.head, Head::Since(_)) && !self.stalled {
            // The last word, as far as it goes: whoever sends a head in drops may not be listening.
            let _ = Pin::new(&mut self.stream).poll_write(cx, last_word(Refusal::HeadTooSlow).as_bytes());
        }
        Poll::Ready(io::ErrorKind::TimedOut.into())
    }

    /// Passes on what a write did, or says that it took too long.
    fn settle<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        self.stalled = done.is_pending();
        match done {
            Poll::Pending => self.poll_late(cx).map(Err),
            done => {
                self.moved = true;
                done
            }
        }
    }
}

/// A refusal that hyper cannot send, because there is no request that it answers.
fn last_word(refusal: Refusal) -> String {
    let status = refusal.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let body = refusal.body();
    format!(
        "HTTP/1.1 {} {reason}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        status.as_str(),
        body.len(),
    )
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Pending => self.poll_late(cx).map(Err),
            done => {
                self.on_read();
                done
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.settle(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.settle(cx, done)
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
