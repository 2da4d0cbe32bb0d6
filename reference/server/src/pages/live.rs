//! Pages that change by themselves: parts of a page, sent again whenever they differ (server-sent events).
//!
//! A part is drawn here and never by a script, so a page without scripts shows the same after a reload.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::{Semaphore, mpsc};

use super::Asker;
use crate::{
    answer::{Answer, Content},
    config::Bounds,
    refusal::Refusal,
};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// A page is drawn again at most so often, however much happens.
const PAUSE: Duration = Duration::from_millis(50);
/// So often something is said, so that nobody takes the line for dead; it also tells the time.
const HEARTBEAT_MAX: Duration = Duration::from_secs(15);
const MARK_BYTES: usize = 8;

/// How many streams may be open.
pub(crate) struct Streams(Arc<Semaphore>);

impl Streams {
    /// At most half of all connections: the rest stays free for requests.
    pub(crate) fn new(bounds: &Bounds) -> Streams {
        Streams(Arc::new(Semaphore::new((bounds.connections / 2).max(1))))
    }
}

/// A part of a page that may change while the page is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its name on the page.
    pub(crate) id: &'static str,
    /// What is in it, as HTML.
    pub(crate) html: String,
}

impl Part {
    /// Changes when what is in it does.
    fn mark(&self) -> String {
        hex::encode(&Sha256::digest(self.html.as_bytes())[..MARK_BYTES])
    }
}

/// As it stands on the page: in an element that a script can find. Use with `|safe`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { id, html } = self;
        write!(f, r#"<div class="part" data-part="{id}" data-mark="{}">{html}</div>"#, self.mark())
    }
}

/// A stream of what `draw` draws, now and whenever something happens. Ends when `draw` has nothing more to
/// show, when the browser goes away or when the server stops.
pub(crate) fn follow<D, F>(asker: Asker, draw: D) -> Result<Answer, Refusal>
where
    D: Fn(Asker) -> F + Send + 'static,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send,
{
    let place =
        Arc::clone(&asker.pages.streams.0).try_acquire_owned().map_err(|_| Refusal::TooManyStreams)?;
    let heartbeat = HEARTBEAT_MAX.min(asker.backend.bounds.idle_time / 2);
    // One piece waits at most: a slow browser skips what it would have been too late for.
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut pulse = asker.backend.host.pulse();
        let mut sent: Vec<Part> = Vec::new();
        loop {
            let Ok(place) = sender.reserve().await else { return };
            if pulse.borrow_and_update().is_none() {
                return;
            }
            let Ok(parts) = draw(asker.clone()).await else { return };
            let Ok((now, pace)) = asker.backend.host.clock() else { return };
            let news: Vec<_> = parts
                .iter()
                .filter(|part| !sent.contains(part))
                .map(|part| json!({ "id": part.id, "mark": part.mark(), "html": part.html }))
                .collect();
            sent = parts;
            // JSON has no line breaks, so it is one line of the stream.
            let news = json!({ "now": now.0 / 1_000, "pace": pace, "parts": news });
            let piece = Bytes::from(format!("data: {news}\n\n"));
            // Without room for it the stream ends, and the browser comes back later.
            let Some(piece) = asker.backend.in_flight.hold(piece, &asker.activity).await else {
                return;
            };
            place.send(piece);
            tokio::select! {
                changed = pulse.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(heartbeat) => {}
                () = sender.closed() => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    let mut answer = Answer::new(Content::Stream { pieces, _place: place });
    *answer.status_mut() = StatusCode::OK;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}
