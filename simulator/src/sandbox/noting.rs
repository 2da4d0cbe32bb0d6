//! What is written down of a world: the chronicle for everybody, and the record for those who judge.

use std::{fmt, sync::Arc};

use reference_core::{
    book::{Book, Notice, Post},
    event::Subject,
    id::{AccountNo, Code},
    mode::Mode,
    outbox::Outcome,
    sighting::{Depth, Sighting},
    time::Timestamp,
    wire::http::{Request, Response},
};
use uuid::Uuid;

use super::{Sandbox, What};
use crate::{
    network::Reception,
    tamper::Tamper,
    witness::{self, Call, Posted, Record},
};

impl Sandbox {
    /// From now on everything that an outsider could see is written down.
    pub fn keep_record(&mut self) {
        self.record = Some(Record::default());
    }

    /// What was written down. From now on nothing is, until [`Sandbox::keep_record`].
    pub fn take_record(&mut self) -> Record {
        self.record.take().unwrap_or_default()
    }

    /// From now on the chronicle stays as it is, and answers to acts under `/sandbox` leave out what the act caused:
    /// both take time to write. What a script can name all the same is told by [`Sandbox::take_landed`].
    pub fn be_terse(&mut self) {
        self.terse = true;
    }

    /// The posts of a terse world whose end became known since the last time, in order.
    pub fn take_landed(&mut self) -> Vec<Landed> {
        std::mem::take(&mut self.landed)
    }

    /// Puts somebody between the service and the world: for tests of those who judge.
    pub fn tamper_with(&mut self, tamper: Box<dyn Tamper>) {
        self.tamper = Some(tamper);
    }

    pub(super) fn write_post(&mut self, account: AccountNo, mode: Mode, post: Post, reception: Reception) {
        if self.record.is_none() {
            return;
        }
        let endpoint = self.service().account(account).book(mode).endpoint(post.endpoint).id;
        let Reception { arrived, copies, signature } = reception;
        let posted = Posted {
            mode,
            endpoint,
            host: post.url.host().to_string(),
            delivery: post.id,
            kind: post.kind.as_str(),
            signature,
            body: post.body,
            arrived,
            copies,
        };
        if let Some(record) = &mut self.record {
            record.note(self.now, witness::What::Post(Box::new(posted)));
        }
    }

    pub(super) fn note_post(
        &mut self,
        account: AccountNo,
        mode: Mode,
        post: &Post,
        ended: &Ended,
        next_at: Option<Timestamp>,
    ) {
        if self.terse {
            let endpoint = self.service().account(account).book(mode).endpoint(post.endpoint).id;
            self.landed.push(Landed { mode, delivery: post.id, endpoint, next_at });
            return;
        }
        let account = self.service().account(account);
        let book = account.book(mode);
        let parcel = &book.outbox().get(post.delivery).parcel;
        let subject = parcel.event.map(|(no, _)| code_of(book, book.events().get(no).subject));
        let what = What::Post {
            mode: mode.as_str(),
            account: Arc::clone(&account.id),
            endpoint: book.endpoint(post.endpoint).id,
            host: post.url.host().to_string(),
            delivery: post.id,
            event: parcel.event.map(|(_, id)| id),
            kind: post.kind.as_str(),
            subject,
            attempt: post.attempt,
            answer: ended.to_string(),
            next_at,
        };
        self.note(what);
    }

    pub(super) fn note_transfer(&mut self, sighting: &Sighting) {
        let required = sighting.asset.required_confirmations(sighting.mode);
        let place = (sighting.txid.clone(), sighting.output);
        let before = self.noticed.get(&place).copied();
        let confirmed = |n: u32| n >= required;
        let (after, state) = match (before, sighting.depth) {
            (_, Depth::Gone(why)) => (None, Some(why.as_str())),
            (None | Some(None), Depth::Confirmations(n)) => (Some(n), Some("seen")),
            (Some(Some(old)), Depth::Confirmations(n)) => {
                let state = match (confirmed(old), confirmed(n)) {
                    (false, true) => Some("confirmed"),
                    _ if n < old => Some("unconfirmed"),
                    _ => None,
                };
                (Some(n), state)
            }
        };
        let first_is_confirmed = state == Some("seen") && after.is_some_and(confirmed);
        self.noticed.insert(place, after);
        for state in state.into_iter().chain(first_is_confirmed.then_some("confirmed")) {
            let charge = self.service().books().filter(|(_, mode, _)| *mode == sighting.mode).find_map(
                |(_, _, book)| {
                    let charge = book.charge(book.charge_at(&sighting.address)?);
                    (charge.terms.asset == sighting.asset).then(|| charge.code.to_string())
                },
            );
            self.note(What::Transfer {
                mode: sighting.mode.as_str(),
                asset: sighting.asset.code(),
                txid: sighting.txid.clone(),
                output: sighting.output,
                address: sighting.address.clone(),
                charge,
                amount: sighting.amount.to_string(),
                state,
                confirmations: after.unwrap_or(0),
                required,
            });
        }
    }

    /// Writes down what the service has to tell.
    pub(super) fn note_news(&mut self) {
        let notices = self.desk.take_notices();
        if self.terse {
            return;
        }
        for (account, mode, notice) in notices {
            let account = self.service().account(account);
            let book = account.book(mode);
            let (mode, account) = (mode.as_str(), Arc::clone(&account.id));
            let what = match notice {
                Notice::Event(no) => {
                    let event = book.events().get(no);
                    What::Event {
                        mode,
                        account,
                        event: event.id,
                        kind: event.kind.as_str(),
                        subject: code_of(book, event.subject),
                        details: event.details.clone(),
                    }
                }
                Notice::Mail { to, kind, invoice } => {
                    What::Mail { mode, account, to, kind: kind.as_str(), invoice: book.invoice(invoice).code }
                }
                Notice::EndpointOff(no) => {
                    let endpoint = book.endpoint(no);
                    let host = endpoint.url.host().to_string();
                    What::EndpointOff { mode, account, endpoint: endpoint.id, host }
                }
            };
            self.note(what);
        }
    }
}

/// A post whose end is known, as far as a script can name it.
#[derive(Clone, Copy, Debug)]
pub struct Landed {
    /// The mode of its book.
    pub mode: Mode,
    /// The delivery.
    pub delivery: Uuid,
    /// The endpoint.
    pub endpoint: Code,
    /// When it is tried again.
    pub next_at: Option<Timestamp>,
}

/// How a post ended, in the words of the chronicle.
pub(super) enum Ended {
    Answered(u16),
    Unreachable,
    TimedOut,
    Refused(String),
    Lost,
}

impl Ended {
    pub(super) fn of(outcome: &Outcome) -> Ended {
        match outcome {
            Outcome::Answered(status) => Ended::Answered(*status),
            Outcome::Unreachable(_) => Ended::Unreachable,
            Outcome::TimedOut => Ended::TimedOut,
            Outcome::Refused(why) => Ended::Refused(why.clone()),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Answered(status) => write!(f, "{status}"),
            Ended::Unreachable => f.write_str("unreachable"),
            Ended::TimedOut => f.write_str("timeout"),
            Ended::Refused(why) => write!(f, "refused: {why}"),
            Ended::Lost => f.write_str("lost"),
        }
    }
}

/// A request and its answer, as a bystander writes them down.
pub(super) fn written(request: &Request<'_>, response: &Response) -> Call {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let bearer = request.authorization.map(text);
    let header = |wanted: &str| {
        let found = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map(|(_, value)| value.as_str())
    };
    Call {
        method: request.method.to_owned(),
        path: request.path.to_owned(),
        query: request.query.map(str::to_owned),
        bearer: bearer.map(|text| text.strip_prefix("Bearer ").map(str::to_owned).unwrap_or(text)),
        idempotency_key: request.idempotency_key.map(text),
        body: request.body.to_vec(),
        status: response.status,
        retry_after: header("retry-after").and_then(|value| value.parse().ok()),
        replayed: header("idempotent-replayed") == Some("true"),
        answer: response.body.clone(),
    }
}

fn code_of(book: &Book, subject: Subject) -> Code {
    match subject {
        Subject::Charge(no) => book.charge(no).code,
        Subject::Invoice(no) => book.invoice(no).code,
    }
}
