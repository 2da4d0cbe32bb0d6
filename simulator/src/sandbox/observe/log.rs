//! The log of a world: its observable events, in order.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use reference_core::{
    asset::Asset,
    book::{Book, Notice},
    event::Subject,
    id::Code,
    mode::Mode,
    sighting::{Depth, Sighting},
    time::Timestamp,
};
use reference_wire::AttemptRequest;
use serde::{Deserialize, Serialize};

use super::{AccountBook, AttemptEnd, Observer, WorldView, stored};
use crate::api::{EventDetails, WorldEvent, WorldEventKind};

/// The maximum number of stored events. Readers that fall further behind miss events.
const KEPT_MAX: usize = 200_000;

/// The latest events of a world.
#[derive(Default, Serialize, Deserialize)]
pub struct WorldLog {
    #[serde(with = "stored")]
    kept: VecDeque<WorldEvent>,
    /// The number of events so far, including those no longer stored.
    count: u64,
}

impl WorldLog {
    /// Returns the number of events so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the stored events after the `n`th.
    pub fn events_after(&self, n: u64) -> impl Iterator<Item = &WorldEvent> {
        let first_kept = self.count - self.kept.len() as u64;
        let skip = usize::try_from(n.saturating_sub(first_kept)).unwrap_or(usize::MAX);
        self.kept.iter().skip(skip)
    }

    fn push(&mut self, at: Timestamp, kind: WorldEventKind) {
        self.count += 1;
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(WorldEvent { n: self.count, at, kind });
    }
}

/// The observer that writes the log.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct LogWriter {
    pub(super) log: WorldLog,
    /// The last reported confirmations of each transfer, by transaction and output; `None` after it disappeared.
    confirmations: BTreeMap<(String, u32), Option<u32>>,
}

impl LogWriter {
    /// Records a sighting of a transfer. Returns the new states for the log (none, one or two), and the confirmations.
    fn record_sighting(&mut self, sighting: &Sighting, required: u32) -> (Vec<&'static str>, u32) {
        let outpoint = (sighting.txid.clone(), sighting.output);
        let before = self.confirmations.get(&outpoint).copied().flatten();
        let after = match sighting.depth {
            Depth::Absent(_) => None,
            Depth::Confirmations(n) => Some(n),
        };
        self.confirmations.insert(outpoint, after);
        let is_confirmed = |n: u32| n >= required;
        let states = match (before, sighting.depth) {
            (_, Depth::Absent(reason)) => vec![reason.as_str()],
            (None, Depth::Confirmations(n)) if is_confirmed(n) => vec!["seen", "confirmed"],
            (None, Depth::Confirmations(_)) => vec!["seen"],
            (Some(old), Depth::Confirmations(n)) if !is_confirmed(old) && is_confirmed(n) => {
                vec!["confirmed"]
            }
            (Some(old), Depth::Confirmations(n)) if n < old => vec!["unconfirmed"],
            _ => Vec::new(),
        };
        (states, after.unwrap_or(0))
    }
}

impl Observer for LogWriter {
    fn on_sightings(&mut self, view: &WorldView<'_>, sightings: &[Sighting]) {
        for sighting in sightings {
            let required = sighting.asset.required_confirmations(sighting.mode);
            let (states, confirmations) = self.record_sighting(sighting, required);
            for state in states {
                let event = WorldEventKind::Transfer {
                    mode: sighting.mode,
                    asset: sighting.asset,
                    txid: sighting.txid.clone(),
                    output: sighting.output,
                    address: sighting.address.clone(),
                    charge: charge_at(view, sighting),
                    amount: sighting.amount.to_string(),
                    state: state.into(),
                    confirmations,
                    required,
                };
                self.log.push(view.now, event);
            }
        }
    }

    fn on_notice(&mut self, view: &WorldView<'_>, (account, mode): AccountBook, notice: &Notice) {
        let account = view.service.account(account);
        let book = account.book(mode);
        let account = Arc::clone(&account.id);
        let event = match notice {
            Notice::Event(no) => {
                let event = book.events().get(*no);
                WorldEventKind::Event {
                    mode,
                    account,
                    event: event.id,
                    kind: event.kind,
                    subject: code_of(book, event.subject),
                    details: EventDetails::Known(event.details.clone()),
                }
            }
            Notice::Mail { to, kind, invoice } => WorldEventKind::Mail {
                mode,
                account,
                to: to.clone(),
                kind: kind.as_str().into(),
                invoice: book.invoice(*invoice).code,
            },
            Notice::EndpointDisabled(no) => {
                let endpoint = book.endpoint(*no);
                let host = endpoint.url.host().to_string();
                WorldEventKind::EndpointDisabled { mode, account, endpoint: endpoint.id, host }
            }
        };
        self.log.push(view.now, event);
    }

    fn on_attempt_end(
        &mut self,
        view: &WorldView<'_>,
        (account, mode): AccountBook,
        attempt: &AttemptRequest,
        end: &AttemptEnd,
        next_at: Option<Timestamp>,
    ) {
        let account = view.service.account(account);
        let book = account.book(mode);
        let payload = &book.outbox().get(attempt.delivery).payload;
        let event = WorldEventKind::Attempt {
            mode,
            account: Arc::clone(&account.id),
            endpoint: book.endpoint(attempt.endpoint).id,
            host: attempt.url.host().to_string(),
            delivery: attempt.id,
            event: payload.event.map(|(_, id)| id),
            kind: attempt.kind,
            subject: payload.event.map(|(no, _)| code_of(book, book.events().get(no).subject)),
            attempt: attempt.attempt,
            answer: end.to_string(),
            next_at,
        };
        self.log.push(view.now, event);
    }

    fn on_reorg(&mut self, now: Timestamp, (mode, asset): (Mode, Asset), depth: u32) {
        self.log.push(now, WorldEventKind::Reorg { mode, asset, depth });
    }

    fn on_restart(&mut self, view: &WorldView<'_>) {
        self.log.push(view.now, WorldEventKind::Restart);
    }
}

/// Returns the code of the charge to whose address a transfer was sent, if it is in the charge's coin.
fn charge_at(view: &WorldView<'_>, sighting: &Sighting) -> Option<Code> {
    let mut books = view.service.books().filter(|(_, mode, _)| *mode == sighting.mode);
    books.find_map(|(_, _, book)| {
        let charge = book.charge(book.charge_by_address(&sighting.address)?);
        (charge.terms.asset == sighting.asset).then_some(charge.code)
    })
}

fn code_of(book: &Book, subject: Subject) -> Code {
    match subject {
        Subject::Charge(no) => book.charge(no).code,
        Subject::Invoice(no) => book.invoice(no).code,
    }
}
