//! [`RequestBody`]: reads bodies, limited in bytes and in time, and copies only those that arrive in several chunks.

use std::sync::{Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::{activity::Activity, config::Bounds, refusal::Refusal};

/// An oversized body is read and discarded up to this multiple of the limit before the response: a client that is still
/// sending when the connection closes may never see the response.
const DISCARD_FACTOR: usize = 4;

/// The body of a request. It is read only once the response depends on it: a response that follows from the head alone
/// does not wait for the body.
pub(crate) struct RequestBody<'a> {
    headers: &'a HeaderMap,
    activity: &'a Activity,
    bounds: &'a Bounds,
    unread: Mutex<Option<Incoming>>,
}

impl<'a> RequestBody<'a> {
    /// Creates the body of a request with these headers.
    pub(crate) fn new(
        headers: &'a HeaderMap,
        activity: &'a Activity,
        bounds: &'a Bounds,
        body: Incoming,
    ) -> RequestBody<'a> {
        let unread = Mutex::new(Some(body).filter(|body| !body.is_end_stream()));
        RequestBody { headers, activity, bounds, unread }
    }

    fn take_unread(&self) -> Option<Incoming> {
        // No code under the lock can panic.
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns `true` if the client waits for `100 Continue` before it sends the body.
    fn expects_continue(&self) -> bool {
        self.headers.contains_key(EXPECT)
    }

    /// Returns `true` if there is no body, or it was already read.
    pub(crate) fn is_empty(&self) -> bool {
        self.unread.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Reads the whole body within the limits; returns an empty one if it was already read.
    pub(crate) async fn read(&self) -> Result<Bytes, Refusal> {
        let Some(body) = self.take_unread() else { return Ok(Bytes::new()) };
        let _wait = self.activity.start_body_wait();
        // Boxed, because most requests have no body and would otherwise carry the size of this future.
        Box::pin(read_limited(body, self.expects_continue(), self.bounds)).await
    }

    /// Receives an unread body in the background after the response: a client that is still sending when the connection
    /// closes may never see its response. A client that waits for `100 Continue` sends no body.
    pub(crate) fn drain(&self) {
        if let Some(body) = self.take_unread().filter(|_| !self.expects_continue()) {
            // Ends with the body, or at its limit in bytes or time. The result does not matter.
            let bounds = *self.bounds;
            tokio::spawn(async move { drop(read_limited(body, false, &bounds).await) });
        }
    }
}

/// Reads a body within the limits. A body whose declared length is over [`DISCARD_FACTOR`] times the limit is refused
/// unread; so is every oversized one if the client waits for `100 Continue`.
async fn read_limited(body: Incoming, expects_continue: bool, bounds: &Bounds) -> Result<Bytes, Refusal> {
    let bytes_max = bounds.body_bytes;
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > bytes_max && (expects_continue || declared > bytes_max.saturating_mul(DISCARD_FACTOR)) {
        return Err(Refusal::BodyTooLarge { bytes_max });
    }
    tokio::time::timeout(bounds.body_time, read_chunks(body, bytes_max))
        .await
        .unwrap_or(Err(Refusal::BodyTooSlow))
}

/// Reads and joins the chunks of a body. The data of an oversized body is discarded.
async fn read_chunks(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Refusal> {
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    let mut received: usize = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Refusal::BodyCutShort)?.into_data() else { continue };
        received = received.saturating_add(data.len());
        if received > bytes_max.saturating_mul(DISCARD_FACTOR) {
            break;
        }
        if received > bytes_max {
            continue;
        }
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            if joined.is_empty() {
                joined.extend_from_slice(&first);
            }
            joined.extend_from_slice(&data);
        }
    }
    match received {
        _ if received > bytes_max => Err(Refusal::BodyTooLarge { bytes_max }),
        _ if joined.is_empty() => Ok(first),
        _ => Ok(joined.freeze()),
    }
}
