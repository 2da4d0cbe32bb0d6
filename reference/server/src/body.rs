//! Reading a body: bounded in bytes and in time, and copied only if it comes in pieces.

use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::{activity::Activity, config::Bounds, refusal::Refusal};

/// Of a body that is too large, so many times the bound is read and thrown away before the answer, because a
/// client that is still sending when the connection closes may never see it.
const SWALLOWED: usize = 4;

/// The body of a request, read once its answer depends on it: whatever the head alone decides waits for no body.
pub(crate) struct RequestBody<'a> {
    headers: &'a HeaderMap,
    activity: &'a Activity,
    bounds: &'a Bounds,
    unread: Mutex<Option<Incoming>>,
}

impl<'a> RequestBody<'a> {
    /// The body of a request with these headers.
    pub(crate) fn new(
        headers: &'a HeaderMap,
        activity: &'a Activity,
        bounds: &'a Bounds,
        body: Incoming,
    ) -> RequestBody<'a> {
        let unread = Mutex::new(Some(body).filter(|body| !body.is_end_stream()));
        RequestBody { headers, activity, bounds, unread }
    }

    fn take(&self) -> Option<Incoming> {
        // Nothing that can panic happens under the lock.
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The client sends the body only when it is told to go on.
    fn is_held_back(&self) -> bool {
        self.headers.contains_key(EXPECT)
    }

    /// Returns `true` if there is none, or it was read.
    pub(crate) fn is_empty(&self) -> bool {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Reads all of it; empty the second time.
    pub(crate) async fn read(&self) -> Result<Bytes, Refusal> {
        let Some(body) = self.take() else { return Ok(Bytes::new()) };
        let _awaited = self.activity.await_body();
        // In a box, because most requests have no body, and every one would carry the room for reading it.
        Box::pin(read_some(body, self.is_held_back(), self.bounds)).await
    }

    /// Lets the body of an answered request go on arriving, in the background: a client that is still sending when the
    /// connection closes may never see its answer.
    pub(crate) fn drain(&self) {
        if let Some(body) = self.take().filter(|_| !self.is_held_back()) {
            // Ends with the body, or at its bound in bytes or time; whatever came of it, nobody asks.
            let bounds = *self.bounds;
            tokio::spawn(async move { drop(read_some(body, false, &bounds).await) });
        }
    }
}

/// `waits`: the client sends the body only when told to go on, so a refusal need not read it.
async fn read_some(body: Incoming, waits: bool, bounds: &Bounds) -> Result<Bytes, Refusal> {
    let most = bounds.body_bytes;
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most && (waits || announced > most.saturating_mul(SWALLOWED)) {
        return Err(Refusal::BodyTooLarge { most });
    }
    tokio::time::timeout(bounds.body_time, gather(body, most)).await.unwrap_or(Err(Refusal::BodyTooSlow))
}

async fn gather(mut body: Incoming, most: usize) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    let mut seen: usize = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Refusal::BodyCutShort)?.into_data() else { continue };
        seen = seen.saturating_add(data.len());
        if seen > most.saturating_mul(SWALLOWED) {
            break;
        }
        if seen > most {
            continue;
        }
        if first.is_empty() && more.is_empty() {
            first = data;
        } else {
            if more.is_empty() {
                more.extend_from_slice(&first);
            }
            more.extend_from_slice(&data);
        }
    }
    match seen {
        _ if seen > most => Err(Refusal::BodyTooLarge { most }),
        _ if more.is_empty() => Ok(first),
        _ => Ok(more.freeze()),
    }
}
