//! Pages that change by themselves: parts of a page, sent again whenever they differ (server-sent events).
//!
//! A part is drawn here and never by a script, so a page without scripts shows the same after a reload.

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

use super::Asker;
use crate::{
    activity::Activity,
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

/// The streams that are open.
pub(crate) struct Streams {
    places: Arc<Semaphore>,
    feeds: Feeds,
}

/// The feeds of the pages that have streams.
type Feeds = Mutex<BTreeMap<FeedKey, Weak<Feed>>>;

/// The drawings of a page for all its streams. It ends with the last of them.
struct Feed {
    drawings: watch::Sender<Option<Arc<Drawing>>>,
    /// Asks for a drawing even if nothing happened.
    redraw: Notify,
}

/// A page: its world, the address that its links begin with, and its own key.
type FeedKey = (usize, String, String);

impl Streams {
    /// At most half of all connections: the rest stays free for requests.
    pub(crate) fn new(bounds: &Bounds) -> Streams {
        let places = Arc::new(Semaphore::new((bounds.connections / 2).max(1)));
        Streams { places, feeds: Feeds::default() }
    }
}

/// The topic that the streams of a page follow.
pub(crate) struct Topic {
    /// Pages with the same key look the same.
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
    /// Its name on the page.
    pub(crate) id: &'static str,
    /// The content as HTML.
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

/// The parts of a page as they were drawn at a moment.
struct Drawing {
    /// Drawings of a page are numbered.
    number: u64,
    parts: Vec<Part>,
    /// The piece for a stream that has sent the drawing before.
    piece: Bytes,
}

/// A stream of what `draw` draws, now and whenever it changes. Ends when `draw` has nothing more to show, when the browser
/// goes away or when the server stops. Streams with the same topic share their drawings.
pub(crate) fn follow<D, F>(asker: Asker, topic: Topic, draw: D) -> Result<Answer, Refusal>
where
    D: Fn(Asker) -> F + Send + Sync + 'static,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send + 'static,
{
    let streams = &asker.pages.streams;
    let place = Arc::clone(&streams.places).try_acquire_owned().map_err(|_| Refusal::TooManyStreams)?;
    let key = (Arc::as_ptr(&asker.backend) as usize, asker.base.clone(), topic.key.clone());
    let drawings = {
        let mut feeds = lock(&streams.feeds);
        let running = feeds.get(&key).and_then(Weak::upgrade);
        // The page may have been drawn after the latest drawing.
        running.iter().for_each(|feed| feed.redraw.notify_one());
        let feed = running.unwrap_or_else(|| {
            let feed = Arc::new(Feed { drawings: watch::Sender::new(None), redraw: Notify::new() });
            feeds.insert(key.clone(), Arc::downgrade(&feed));
            // A feed outlives the connection that it began with.
            let asker = Asker { activity: Arc::new(Activity::new()), ..asker.clone() };
            tokio::spawn(run_feed(asker, topic, draw, Arc::clone(&feed), key));
            feed
        });
        feed.drawings.subscribe()
    };
    // One piece waits at most: a slow browser skips what it would have been too late for.
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(send_pieces(asker, drawings, sender));
    let mut answer = Answer::new(Content::Stream { pieces, _place: place });
    *answer.status_mut() = StatusCode::OK;
    let headers = answer.headers_mut();
    headers.insert(http::header::CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Draws a page for as long as it has streams.
async fn run_feed<D, F>(asker: Asker, topic: Topic, draw: D, feed: Arc<Feed>, key: FeedKey)
where
    D: Fn(Asker) -> F + Send + Sync,
    F: Future<Output = Result<Vec<Part>, Refusal>> + Send,
{
    loop {
        tokio::select! {
            () = draw_changes(&asker, &topic, &draw, &feed) => {
                lock(&asker.pages.streams.feeds).remove(&key);
                return;
            }
            () = feed.drawings.closed() => {
                // A stream begins under the same lock.
                let mut feeds = lock(&asker.pages.streams.feeds);
                if feed.drawings.receiver_count() == 0 {
                    feeds.remove(&key);
                    return;
                }
            }
        }
    }
}

/// Draws a page whenever something happened that concerns it, until there is nothing to draw any more.
async fn draw_changes<D, F>(asker: &Asker, topic: &Topic, draw: &D, feed: &Feed)
where
    D: Fn(Asker) -> F,
    F: Future<Output = Result<Vec<Part>, Refusal>>,
{
    let host = &asker.backend.host;
    let mut pulse = host.pulse();
    let Ok((_, mut happened)) = host.happened_after(u64::MAX, |_| false) else { return };
    loop {
        let Some(moves) = *pulse.borrow_and_update() else { return };
        let Ok(parts) = draw(asker.clone()).await else { return };
        let before = feed.drawings.borrow().clone();
        let old = before.as_ref().map_or(&[][..], |before| &before.parts);
        let Some(piece) = piece(asker, old, &parts) else { return };
        let number = before.map_or(0, |before| before.number + 1);
        feed.drawings.send_replace(Some(Arc::new(Drawing { number, parts, piece })));
        let mut redraw = pin!(async {
            tokio::select! {
                () = feed.redraw.notified() => {}
                () = tokio::time::sleep(heartbeat(asker)) => {}
            }
        });
        loop {
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                changed = pulse.changed() => if changed.is_err() { return },
                () = &mut redraw => break,
            }
            let Ok((is_concerned, count)) = host.happened_after(happened, &topic.concerns) else { return };
            happened = count;
            if is_concerned || *pulse.borrow() != Some(moves) {
                break;
            }
        }
    }
}

/// Sends what is new of each drawing, and the time now and then.
async fn send_pieces(
    asker: Asker,
    mut drawings: watch::Receiver<Option<Arc<Drawing>>>,
    sender: mpsc::Sender<Bytes>,
) {
    let mut sent: Option<Arc<Drawing>> = None;
    loop {
        tokio::select! {
            changed = drawings.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(heartbeat(&asker)) => {}
            () = sender.closed() => return,
        }
        let Ok(place) = sender.reserve().await else { return };
        let Some(latest) = drawings.borrow_and_update().clone() else { continue };
        let piece = match &sent {
            Some(sent) if sent.number + 1 == latest.number => Some(latest.piece.clone()),
            Some(sent) => piece(&asker, &sent.parts, &latest.parts),
            None => piece(&asker, &[], &latest.parts),
        };
        // Without room for it the stream ends, and the browser comes back later.
        let Some(piece) = piece else { return };
        let Some(piece) = asker.backend.in_flight.hold(piece, &asker.activity).await else { return };
        place.send(piece);
        sent = Some(latest);
    }
}

/// What is new in these parts, and the time; `None` if the world is broken.
fn piece(asker: &Asker, old: &[Part], parts: &[Part]) -> Option<Bytes> {
    let (now, pace) = asker.backend.host.clock().ok()?;
    let news: Vec<_> = parts
        .iter()
        .filter(|part| !old.contains(part))
        .map(|part| json!({ "id": part.id, "mark": part.mark(), "html": part.html }))
        .collect();
    // JSON has no line breaks, so it is one line of the stream.
    let news = json!({ "now": now.0 / 1_000, "pace": pace, "parts": news });
    Some(Bytes::from(format!("data: {news}\n\n")))
}

fn heartbeat(asker: &Asker) -> Duration {
    HEARTBEAT_MAX.min(asker.backend.bounds.idle_time / 2)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that can panic happens under the lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
