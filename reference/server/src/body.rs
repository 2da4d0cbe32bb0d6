//! Reading a body: bounded in bytes and in time, and copied only if it comes in pieces.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::{config::Bounds, refusal::Refusal};

/// Of a body that is too large, so many times the bound is read and thrown away before the answer, because a
/// client that is still sending when the connection closes may never see it.
const SWALLOWED: usize = 4;

/// The whole body of a request with these headers.
pub(crate) async fn read(headers: &HeaderMap, body: Incoming, bounds: &Bounds) -> Result<Bytes, Refusal> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    // In a box, because most requests have no body, and every one would carry the room for reading it.
    Box::pin(read_some(body, headers.contains_key(EXPECT), bounds)).await
}

/// Lets a refused request go on arriving, in the background: a client that is still sending when the connection closes
/// may never see its answer.
pub(crate) fn leave(headers: &HeaderMap, body: Incoming, bounds: &Bounds) {
    // One that waits to be told to go on sends nothing.
    if body.is_end_stream() || headers.contains_key(EXPECT) {
        return;
    }
    // Ends with the body, or at its bound in bytes or time; whatever came of it, nobody asks.
    let bounds = *bounds;
    tokio::spawn(async move { drop(read_some(body, false, &bounds).await) });
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
