//! Live updates of pages: parts of a page, sent again whenever they change (server-sent events).
//!
//! Only the server renders parts, so a page without scripts shows the same after a reload.

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
    config::Bounds,
    refusal::Refusal,
    response::{HttpResponse, ResponseBody},
};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
/// The minimum time between two renderings of a page.
const RENDER_INTERVAL_MIN: Duration = Duration::from_millis(50);
/// The maximum time between two messages, so that the connection does not count as dead; each message contains the
/// service time.
const HEARTBEAT_MAX: Duration = Duration::from_secs(15);
/// The length of the digest by which the page's script detects a changed part.
const DIGEST_BYTES: usize = 8;

/// The open streams.
pub(crate) struct Streams {
    permits: Arc<Semaphore>,
    feeds: Feeds,
}

/// The feeds of all pages with open streams.
type Feeds = Mutex<BTreeMap<FeedKey, Weak<Feed>>>;

/// The renderings of a page for all its streams. Dropped with the last of them.
struct Feed {
    renderings: watch::Sender<Option<Arc<Rendering>>>,
    /// Requests a rendering although no event occurred.
    rerender: Notify,
}

/// The identity of a page: its world (the memory address of the backend), its base URL, and the key of its topic.
type FeedKey = (usize, String, String);

impl Streams {
    /// Creates the streams. They may use half of all connections: the rest stays available for requests.
    pub(crate) fn new(bounds: &Bounds) -> Streams {
        let permits = Arc::new(Semaphore::new((bounds.connections / 2).max(1)));
        Streams { permits, feeds: Feeds::default() }
    }
}

/// A page with live updates, and the events that may change it.
pub(crate) struct Topic {
    /// Pages with the same key have the same content.
    key: String,
    /// Returns `true` if an event may change the page.
    may_change: Box<dyn Fn(&WorldEventKind) -> bool + Send + Sync>,
}

impl Topic {
    pub(crate) fn new(
        key: String,
        may_change: impl Fn(&WorldEventKind) -> bool + Send + Sync + 'static,
    ) -> Topic {
        Topic { key, may_change: Box::new(may_change) }
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
    fn digest(&self) -> String {
        hex::encode(&Sha256::digest(self.html.as_bytes())[..DIGEST_BYTES])
    }
}

/// Writes the part as an element that the script can find. Use with `|safe`.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { id, html } = self;
        write!(f, r#"<div class="part" data-part="{id}" data-mark="{}">{html}</div>"#, self.digest())
    }
}

/// The parts of a page at one moment.
struct Rendering {
    /// The number of the rendering in its feed, from 0.
    number: u64,
    parts: Vec<Part>,
    /// The message for a stream that has sent the previous rendering.
    message: Bytes,
}

/// Returns a stream of the parts that `render` returns, now and after each change. Ends when `render` fails, the
/// browser disconnects, the memory budget is used up, or the server stops. Streams with the same topic share their
/// renderings.
pub(crate) fn stream_parts<R, F>(
    client: WorldClient,
    topic: Topic,
    render: R,
) -> Result<HttpResponse, Refusal>
where
    R: Fn(WorldClient) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send + 'static,
{
    let streams = &client.pages.streams;
    let permit = Arc::clone(&streams.permits).try_acquire_owned().map_err(|_| Refusal::TooManyStreams)?;
    let key = (Arc::as_ptr(&client.backend) as usize, client.base.clone(), topic.key.clone());
    let renderings = {
        let mut feeds = lock(&streams.feeds);
        let running = feeds.get(&key).and_then(Weak::upgrade);
        // The page may have been loaded after the latest rendering.
        running.iter().for_each(|feed| feed.rerender.notify_one());
        let feed = running.unwrap_or_else(|| {
            let feed = Arc::new(Feed { renderings: watch::Sender::new(None), rerender: Notify::new() });
            feeds.insert(key.clone(), Arc::downgrade(&feed));
            // A feed outlives the connection that started it, so it gets its own activity.
            let client = WorldClient { activity: Arc::new(Activity::new()), ..client.clone() };
            tokio::spawn(run_feed(client, topic, render, Arc::clone(&feed), key));
            feed
        });
        feed.renderings.subscribe()
    };
    // At most one message is queued: a slow browser skips outdated renderings.
    let (sender, chunks) = mpsc::channel(1);
    tokio::spawn(send_changes(client, renderings, sender));
    let mut response = HttpResponse::new(ResponseBody::Stream { chunks, _permit: permit });
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Renders a page while it has streams.
async fn run_feed<R, F>(client: WorldClient, topic: Topic, render: R, feed: Arc<Feed>, key: FeedKey)
where
    R: Fn(WorldClient) -> F + Send + Sync,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send,
{
    loop {
        tokio::select! {
            () = render_changes(&client, &topic, &render, &feed) => {
                lock(&client.pages.streams.feeds).remove(&key);
                return;
            }
            () = feed.renderings.closed() => {
                // Streams are started under the same lock.
                let mut feeds = lock(&client.pages.streams.feeds);
                if feed.renderings.receiver_count() == 0 {
                    feeds.remove(&key);
                    return;
                }
            }
        }
    }
}

/// Renders a page now, after each event that may change it, for each new stream, and at intervals, until `render` fails
/// or the server stops.
async fn render_changes<R, F>(client: &WorldClient, topic: &Topic, render: &R, feed: &Feed)
where
    R: Fn(WorldClient) -> F,
    F: Future<Output = Result<Vec<Part>, Refusal>>,
{
    let host = &client.backend.host;
    let mut changes = host.subscribe();
    // No event has such a number: this only reads the number of events so far.
    let Ok((_, mut event_count)) = host.check_events_after(u64::MAX, |_| false) else { return };
    loop {
        // The number of times that the world changed as a whole, such as by a restore.
        let Some(replacements) = *changes.borrow_and_update() else { return };
        let Ok(parts) = render(client.clone()).await else { return };
        let previous = feed.renderings.borrow().clone();
        let old_parts = previous.as_ref().map_or(&[][..], |previous| &previous.parts);
        let Some(message) = change_message(client, old_parts, &parts) else { return };
        let number = previous.map_or(0, |previous| previous.number + 1);
        feed.renderings.send_replace(Some(Arc::new(Rendering { number, parts, message })));
        let mut rerender = pin!(async {
            tokio::select! {
                () = feed.rerender.notified() => {}
                () = tokio::time::sleep(heartbeat(client)) => {}
            }
        });
        loop {
            tokio::time::sleep(RENDER_INTERVAL_MIN).await;
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = &mut rerender => break,
            }
            let Ok((may_have_changed, count)) = host.check_events_after(event_count, &topic.may_change)
            else {
                return;
            };
            event_count = count;
            if may_have_changed || *changes.borrow() != Some(replacements) {
                break;
            }
        }
    }
}

/// Sends the changes of each rendering, and the time at intervals.
async fn send_changes(
    client: WorldClient,
    mut renderings: watch::Receiver<Option<Arc<Rendering>>>,
    sender: mpsc::Sender<Bytes>,
) {
    let mut sent: Option<Arc<Rendering>> = None;
    loop {
        tokio::select! {
            changed = renderings.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(heartbeat(&client)) => {}
            () = sender.closed() => return,
        }
        let Ok(permit) = sender.reserve().await else { return };
        let Some(latest) = renderings.borrow_and_update().clone() else { continue };
        let message = match &sent {
            Some(sent) if sent.number + 1 == latest.number => Some(latest.message.clone()),
            Some(sent) => change_message(&client, &sent.parts, &latest.parts),
            None => change_message(&client, &[], &latest.parts),
        };
        let Some(message) = message else { return };
        // If the memory budget is used up, the stream ends, and the browser reconnects later.
        let Some(chunk) = client.backend.in_flight.reserve(message, &client.activity).await else { return };
        permit.send(chunk);
        sent = Some(latest);
    }
}

/// Returns the message with the changed parts and the time; `None` after an internal error of the world.
fn change_message(client: &WorldClient, old_parts: &[Part], parts: &[Part]) -> Option<Bytes> {
    let (now, speed) = client.backend.host.time_and_speed().ok()?;
    let changed: Vec<_> = parts
        .iter()
        .filter(|part| !old_parts.contains(part))
        .map(|part| json!({ "id": part.id, "mark": part.digest(), "html": part.html }))
        .collect();
    // JSON without line breaks is one line of the stream.
    let message = json!({ "now": now.0 / 1_000, "pace": speed, "parts": changed });
    Some(Bytes::from(format!("data: {message}\n\n")))
}

/// Returns the maximum time between two messages of a stream, less than the idle timeout.
fn heartbeat(client: &WorldClient) -> Duration {
    HEARTBEAT_MAX.min(client.backend.bounds.idle_time / 2)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under the lock can panic.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
