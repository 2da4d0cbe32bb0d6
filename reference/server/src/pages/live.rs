//! Live updates of pages: parts of a page, sent again whenever they change (server-sent events).
//!
//! Parts are rendered by the server only, so a page without scripts shows the same after a reload.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, StatusCode, header::CACHE_CONTROL};
use serde_json::json;
use sha2::{Digest, Sha256};
use simulator::api::WorldEventKind;
use tokio::sync::{Notify, Semaphore, mpsc, watch};

use super::WorldClient;
use crate::{
    activity::Activity,
    answer::{Answer, Content},
    config::Bounds,
    refusal::Refusal,
};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// The minimum time between two renderings of a page.
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum time between two messages, so that the connection does not count as dead; each message contains the
/// service time.
const HEARTBEAT_MAX: Duration = Duration::from_secs(15);
const MARK_BYTES: usize = 8;

/// The open streams.
pub(crate) struct Streams {
    places: Arc<Semaphore>,
    feeds: Feeds,
}

/// The feeds of all pages with open streams.
type Feeds = Mutex<BTreeMap<FeedKey, Weak<Feed>>>;

/// The renderings of a page for all its streams. Dropped with the last of them.
struct Feed {
    drawings: watch::Sender<Option<Arc<Drawing>>>,
    /// Requests a rendering although nothing happened.
    redraw: Notify,
}

/// The identity of a page: its world, its base URL, and the key of its topic.
type FeedKey = (usize, String, String);

impl Streams {
    /// Creates the streams. They may use half of all connections: the rest stays available for requests.
    pub(crate) fn new(bounds: &Bounds) -> Streams {
        let places = Arc::new(Semaphore::new((bounds.connections / 2).max(1)));
        Streams { places, feeds: Feeds::default() }
    }
}

/// The page that streams show, and the events that concern it.
pub(crate) struct Topic {
    /// The key; pages with the same key have the same content.
    key: String,
    /// Decides if an event may change the page.
    concerns: Box<dyn Fn(&WorldEventKind) -> bool + Send + Sync>,
}

impl Topic {
    pub(crate) fn new(
        key: String,
        concerns: impl Fn(&WorldEventKind) -> bool + Send + Sync + 'static,
    ) -> Topic {
        Topic { key, concerns: Box::new(concerns) }
    }
}

/// A part of a page that may change while the page is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The id of its element.
    pub(crate) id: &'static str,
    /// The content as HTML.
    pub(crate) html: String,
}

impl Part {
    /// Returns a digest of the content.
    fn mark(&self) -> String {
        hex::encode(&Sha256::digest(self.html.as_bytes())[..MARK_BYTES])
    }
}

/// Writes the part as an element that the script can find. Use with `|safe`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { id, html } = self;
        write!(f, r#"<div class="part" data-part="{id}" data-mark="{}">{html}</div>"#, self.mark())
    }
}

/// A rendering: the parts of a page at one moment.
struct Drawing {
    /// The number of the rendering.
    number: u64,
    parts: Vec<Part>,
    /// The message for a stream that has sent the previous rendering.
    piece: Bytes,
}

/// Returns a stream of the parts that `draw` renders, now and after each change. Ends when `draw` returns no parts,
/// when the browser disconnects, or when the server stops. Streams with the same topic share their renderings.
pub(crate) fn follow<D, F>(client: WorldClient, topic: Topic, draw: D) -> Result<Answer, Refusal>
where
    D: Fn(WorldClient) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send + 'static,
{
    let streams = &client.pages.streams;
    let permit = Arc::clone(&streams.places).try_acquire_owned().map_err(|_| Refusal::TooManyStreams)?;
    let key = (Arc::as_ptr(&client.backend) as usize, client.base.clone(), topic.key.clone());
    let drawings = {
        let mut feeds = lock(&streams.feeds);
        let running = feeds.get(&key).and_then(Weak::upgrade);
        // The page may have been loaded after the latest rendering.
        running.iter().for_each(|feed| feed.redraw.notify_one());
        let feed = running.unwrap_or_else(|| {
            let feed = Arc::new(Feed { drawings: watch::Sender::new(None), redraw: Notify::new() });
            feeds.insert(key.clone(), Arc::downgrade(&feed));
            // A feed outlives the connection that started it.
            let client = WorldClient { activity: Arc::new(Activity::new()), ..client.clone() };
            tokio::spawn(run_feed(client, topic, draw, Arc::clone(&feed), key));
            feed
        });
        feed.drawings.subscribe()
    };
    // At most one message is queued: a slow browser skips outdated renderings.
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(send_pieces(client, drawings, sender));
    let mut answer = Answer::new(Content::Stream { pieces, _place: permit });
    *answer.status_mut() = StatusCode::OK;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Renders a page while it has streams.
async fn run_feed<D, F>(client: WorldClient, topic: Topic, draw: D, feed: Arc<Feed>, key: FeedKey)
where
    D: Fn(WorldClient) -> F + Send + Sync,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send,
{
    loop {
        tokio::select! {
            () = draw_changes(&client, &topic, &draw, &feed) => {
                lock(&client.pages.streams.feeds).remove(&key);
                return;
            }
            () = feed.drawings.closed() => {
                // Streams are started under the same lock.
                let mut feeds = lock(&client.pages.streams.feeds);
                if feed.drawings.receiver_count() == 0 {
                    feeds.remove(&key);
                    return;
                }
            }
        }
    }
}

/// Renders a page after each event that concerns it, until `draw` returns no parts.
async fn draw_changes<D, F>(client: &WorldClient, topic: &Topic, draw: &D, feed: &Feed)
where
    D: Fn(WorldClient) -> F,
    F: Future<Output = Result<Vec<Part>, Refusal>>,
{
    let host = &client.backend.host;
    let mut pulse = host.subscribe();
    let Ok((_, mut happened)) = host.has_event_after(u64::MAX, |_| false) else { return };
    loop {
        let Some(moves) = *pulse.borrow_and_update() else { return };
        let Ok(parts) = draw(client.clone()).await else { return };
        let before = feed.drawings.borrow().clone();
        let old = before.as_ref().map_or(&[][..], |before| &before.parts);
        let Some(piece) = piece(client, old, &parts) else { return };
        let number = before.map_or(0, |before| before.number + 1);
        feed.drawings.send_replace(Some(Arc::new(Drawing { number, parts, piece })));
        let mut redraw = pin!(async {
            tokio::select! {
                () = feed.redraw.notified() => {}
                () = tokio::time::sleep(heartbeat(client)) => {}
            }
        });
        loop {
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                changed = pulse.changed() => if changed.is_err() { return },
                () = &mut redraw => break,
            }
            let Ok((is_concerned, count)) = host.has_event_after(happened, &topic.concerns) else { return };
            happened = count;
            if is_concerned || *pulse.borrow() != Some(moves) {
                break;
            }
        }
    }
}

/// Sends the changes of each rendering, and the time at intervals.
async fn send_pieces(
    client: WorldClient,
    mut drawings: watch::Receiver<Option<Arc<Drawing>>>,
    sender: mpsc::Sender<Bytes>,
) {
    let mut sent: Option<Arc<Drawing>> = None;
    loop {
        tokio::select! {
            changed = drawings.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(heartbeat(&client)) => {}
            () = sender.closed() => return,
        }
        let Ok(permit) = sender.reserve().await else { return };
        let Some(latest) = drawings.borrow_and_update().clone() else { continue };
        let piece = match &sent {
            Some(sent) if sent.number + 1 == latest.number => Some(latest.piece.clone()),
            Some(sent) => piece(&client, &sent.parts, &latest.parts),
            None => piece(&client, &[], &latest.parts),
        };
        // Without memory for it the stream ends, and the browser reconnects later.
        let Some(piece) = piece else { return };
        let Some(piece) = client.backend.in_flight.reserve(piece, &client.activity).await else { return };
        permit.send(piece);
        sent = Some(latest);
    }
}

/// Returns the message with the changed parts and the time; `None` after an internal error of the world.
fn piece(client: &WorldClient, old: &[Part], parts: &[Part]) -> Option<Bytes> {
    let (now, pace) = client.backend.host.time_and_speed().ok()?;
    let news: Vec<_> = parts
        .iter()
        .filter(|part| !old.contains(part))
        .map(|part| json!({ "id": part.id, "mark": part.mark(), "html": part.html }))
        .collect();
    // JSON without line breaks is one line of the stream.
    let news = json!({ "now": now.0 / 1_000, "pace": pace, "parts": news });
    Some(Bytes::from(format!("data: {news}\n\n")))
}

fn heartbeat(client: &WorldClient) -> Duration {
    HEARTBEAT_MAX.min(client.backend.bounds.idle_time / 2)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under the lock can panic.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
