//! A world that can be made again: after its disk failed, and to go back.
//!
//! Making its calls again takes long, so it is done beside the world, which is replaced under its lock then.

use std::{io, pin::pin, sync::Arc, time::Duration};

use reference_core::{rng::Seed, time::Timestamp};
use reference_wire::{Request, Response};
use serde_json::{Value, json};
use simulator::sandbox::Setup;

use super::{Broken, Host};
use crate::{
    clock::{self, Clock, ClockKind},
    journal::{Journal, Keeping, Snapshot, Ticket, Writer},
    snapshots::{self, Ask},
    world::Succession,
};

/// The time before a failing disk is tried again.
const RETRY: Duration = Duration::from_secs(1);
/// The longest time that a read waits for the world to be back where the disk has it. Making its calls again takes less.
const READABLE_WITHIN: Duration = Duration::from_secs(30);
/// The name of the snapshot that is taken before the clock is reset.
const BEFORE_RESET: &str = "before --clock-reset";
/// The value of `Retry-After`, in seconds.
const RETRY_AFTER: &str = "2";

/// The journal of a world, and its start.
pub(crate) struct Keep {
    pub(crate) journal: Arc<Journal>,
    pub(crate) setup: Setup,
    pub(crate) clock: ClockKind,
}

/// Returns `true` if requests for this path are answered by the host, not the world.
pub(super) fn serves(path: &str) -> bool {
    snapshots::serves(path)
}

impl Host {
    /// Returns the seed of the world; `None` if it was not kept.
    pub(crate) fn seed(&self) -> Option<Seed> {
        self.keep.as_ref().map(|keep| keep.setup.seed)
    }

    /// The moments of it that were kept, the oldest first.
    pub(crate) fn snapshots(&self) -> Vec<Snapshot> {
        self.keep.as_ref().map(|keep| keep.journal.snapshots()).unwrap_or_default()
    }

    /// Returns `true` if the journal is on a disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.writer().is_some()
    }

    /// Returns notices about how the world was opened, a sentence each.
    pub(crate) fn notices(&self) -> Vec<String> {
        let Some((keep, writer)) = self.keep.as_ref().zip(self.writer()) else { return Vec::new() };
        let stood = writer.stood();
        let clock = stood.and_then(|(tip, wall)| {
            let now = Clock::set_back(keep.clock, wall)?;
            Some(format!(
                "this machine's clock was set back: it showed {} when the world was last written to, and shows {now}. The \
                 world stands at {} and goes on from there; `--clock-reset` takes it back to its last moment that is not in \
                 the future",
                Timestamp(wall),
                Timestamp(tip.now)
            ))
        });
        writer.notices().iter().cloned().chain(clock).collect()
    }

    /// Takes a world whose clock is ahead of real time back to its last moment that is not in the future, as
    /// `POST /sandbox/restore` does. Where it stood stays as a snapshot. Returns a sentence about it; `None` if the clock is
    /// not ahead.
    ///
    /// # Errors
    ///
    /// `InvalidInput`: the clock does not follow real time, or the world began in the future.
    pub(crate) async fn reset_clock(&self) -> io::Result<Option<String>> {
        let refused =
            |why: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("`--clock-reset`: {why}"));
        if self.keep.as_ref().is_none_or(|keep| keep.clock != ClockKind::Wall) {
            return Err(refused(
                "it takes a world in `--data` whose clock follows real time (`--clock wall`)",
            ));
        }
        let broken = |_: Broken| refused("the world met a bug of its own");
        // In this order: a clock that is right shows more the later it is read.
        let (stood, _) = self.times().map_err(broken)?;
        let now = clock::time_of_day();
        if stood <= now {
            return Ok(None);
        }
        for (path, body) in [
            ("/sandbox/snapshots", json!({ "name": BEFORE_RESET })),
            ("/sandbox/restore", json!({ "at": now.to_string() })),
        ] {
            let body = body.to_string();
            let response = self.respond(&Request::json("", "POST", path, &body)).await.map_err(broken)?;
            if response.status != 200 {
                let answer: Value = serde_json::from_slice(&response.body).unwrap_or_default();
                return Err(refused(answer["message"].as_str().unwrap_or_default()));
            }
        }
        Ok(Some(format!(
            "the world stood at {stood}, and was taken back to {now}; the snapshot \"{BEFORE_RESET}\" leads forward again"
        )))
    }

    /// Writes what is left. What the world is told from now on is lost.
    pub(crate) fn close_journal(&self) {
        if let Some(writer) = self.writer() {
            writer.close();
        }
    }

    /// The same, and waits until its file is closed.
    pub(crate) fn finish_journal(&self) {
        if let Some(writer) = self.writer() {
            writer.finish();
        }
    }

    /// Takes away what was written. Nobody tells the world anything any more.
    pub(crate) fn discard_journal(&self) -> Option<Ticket> {
        self.writer()?.discard()
    }

    /// So many worlds were opened beside this one.
    pub(crate) fn count_worlds(&self, worlds: u64) {
        if let Some(keep) = &self.keep {
            keep.journal.count_worlds(worlds);
        }
    }

    /// Returns the number of worlds opened beside this one, before this server and since.
    pub(crate) fn worlds_counted(&self) -> u64 {
        self.keep.as_ref().map_or(0, |keep| keep.journal.worlds())
    }

    /// Waits until all that has to be on the disk is; else says why it is not.
    pub(crate) async fn all_settled(&self) -> Result<(), Response> {
        if self.is_settled(self.ticket()).await { Ok(()) } else { Err(self.unkept()) }
    }

    fn writer(&self) -> Option<&Writer> {
        self.keep.as_ref()?.journal.writer()
    }

    /// Returns the present state of durability.
    pub(super) fn kept(&self) -> Keeping {
        self.writer().map_or(Keeping::Yes, |writer| writer.kept())
    }

    pub(super) fn keeps(&self) -> bool {
        self.kept() == Keeping::Yes
    }

    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.keep.as_ref()?.journal.ticket()
    }

    /// The answer, once what it tells is on the disk; or that it will not be.
    pub(super) async fn settled(&self, response: Response, ticket: Option<Ticket>) -> Response {
        if self.is_settled(ticket).await { response } else { self.unkept() }
    }

    pub(crate) async fn is_settled(&self, ticket: Option<Ticket>) -> bool {
        match (self.writer(), ticket) {
            (Some(writer), Some(ticket)) => writer.wait(ticket).await,
            _ => true,
        }
    }

    /// Returns the refusal of changes, with its reason.
    pub(crate) fn unkept(&self) -> Response {
        let why = self.writer().map(Writer::why);
        let message = format!(
            "The directory of this world can't be written to now ({}), so nothing was changed. Reading goes on. Make \
             room or mend the disk, and try again.",
            why.unwrap_or_default()
        );
        unavailable(&message)
    }

    /// The answer to what would change a world that was opened on request, while all worlds hold as much memory as they may.
    pub(super) fn no_room(&self) -> Option<Response> {
        let exceeded = self.memory.exceeded()?;
        Some(unavailable(&format!(
            "{exceeded}, so nothing was changed. Reading goes on. End worlds that nobody needs (DELETE /sandbox/worlds/{{world}}), \
             or start the server with more, and try again."
        )))
    }

    /// Mends what a failing disk leaves: the world goes back to where the disk has it, and on once that can be written
    /// to again. For ever.
    pub(crate) async fn keep_records(self: &Arc<Self>) {
        let mut failures = 0;
        while let Some(writer) = self.writer() {
            failures = writer.fails(failures).await;
            loop {
                let host = Arc::clone(self);
                // An error is that of the disk, or a bug in the replay; both are tried again.
                let mended = tokio::task::spawn_blocking(move || host.mend()).await.unwrap_or(false);
                if mended {
                    break;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Waits until the world is back where the disk has it, after the disk failed: until then it holds changes that will not
    /// be kept. Ends without that after [`READABLE_WITHIN`].
    pub(crate) async fn until_readable(&self) {
        let readable = async {
            loop {
                let mut mended = pin!(self.mended.notified());
                mended.as_mut().enable();
                if self.kept() != Keeping::No {
                    return;
                }
                mended.await;
            }
        };
        // A read that comes later is answered 503 then.
        let _ = tokio::time::timeout(READABLE_WITHIN, readable).await;
    }

    /// Says whether changes are kept again.
    fn mend(&self) -> bool {
        let (Some(keep), Some(writer)) = (&self.keep, self.writer()) else { return true };
        let Ok((replayed, disk)) = writer.reopen(&keep.setup) else { return false };
        let is_writable = disk.is_some();
        let mended = self.locked(|held| {
            held.world.replace(replayed.sandbox, Succession::Kept);
            // Its posts have left already: they do when what led to them is on the disk.
            held.world.take_outgoing();
            let now = writer
                .stood()
                .map_or(held.world.now(), |(_, wall)| Clock::resumed(keep.clock, held.world.now(), wall));
            let reading = held.clock.read();
            held.clock.set(reading, now);
            held.armed = None;
            self.memory.set(held.world.held_bytes());
            writer.recover(disk);
            if is_writable {
                let late = std::mem::take(&mut held.late);
                for (id, report) in late {
                    held.world.on_attempt_result(now, id, report);
                }
                self.send_out(held);
            }
        });
        self.beat(super::Beat::Moved);
        self.rearm.notify_one();
        self.attempt_ended.notify_waiters();
        self.mended.notify_waiters();
        is_writable && mended.is_ok()
    }

    /// Answers what the world itself can't: its snapshots, and what was done in it.
    pub(super) async fn respond_to_keeper(
        self: &Host,
        keep: &Keep,
        request: &Request<'_>,
    ) -> Result<Response, Broken> {
        let ask = match snapshots::read(request, &keep.journal.snapshots()) {
            Ok(ask) => ask,
            Err(error) => return Ok(Response::refusal(&error)),
        };
        if ask.changes() && !self.keeps() {
            return Ok(self.unkept());
        }
        self.until_readable().await;
        // All that a snapshot leads back to is on the disk before anybody reads it.
        if self.keeps() && !self.is_settled(self.ticket()).await {
            return Ok(self.unkept());
        }
        match ask {
            Ask::List => self.locked(|held| snapshots::list(&keep.journal, held.world.now())),
            Ask::Take { name } => {
                if let Some(refusal) = self.no_room() {
                    return Ok(refusal);
                }
                // What was due happens first, so that the moment is whole.
                let stepped = self.step(super::Effect::Changes, |world, now| {
                    world.advance_to(now);
                    snapshots::take(&keep.journal, name, world)
                })?;
                match stepped {
                    Err(unkept) => Ok(unkept),
                    Ok((response, ticket)) => Ok(self.settled(response, ticket).await),
                }
            }
            Ask::Drop { n } => {
                let answer = self.locked(|held| snapshots::drop(&keep.journal, n, held.world.now()))?;
                Ok(self.settled(answer, self.ticket()).await)
            }
            Ask::File { n } => Ok(snapshots::file(Arc::clone(&keep.journal), keep.setup.clone(), n).await),
            Ask::Restore(moment) => self.go_back(keep, moment).await,
            Ask::Tell => Ok(match self.written(keep).await? {
                Ok((now, position)) => {
                    snapshots::tell(Arc::clone(&keep.journal), keep.setup.clone(), position, now).await
                }
                Err(refusal) => refusal,
            }),
        }
    }
}

fn unavailable(message: &str) -> Response {
    Response {
        status: 503,
        headers: vec![("retry-after", RETRY_AFTER.to_owned())],
        body: json!({ "message": message }).to_string().into(),
    }
}
