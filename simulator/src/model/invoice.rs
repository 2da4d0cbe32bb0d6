//! What an invoice must do, by the contract.

use reference_core::time::{Span, Timestamp};

/// An invoice is not e-mailed again within this time.
const MAIL_PAUSE: Span = Span::mins(10);

/// Where an invoice stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the contract")]
pub enum Status {
    Open,
    Paid,
    Void,
}

impl Status {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Paid => "paid",
            Status::Void => "void",
        }
    }
}

/// An invoice as it must be.
#[derive(Clone, Debug)]
pub struct Invoice {
    /// Where it stands.
    pub status: Status,
    /// Its charges, in order.
    pub charges: Vec<String>,
    /// When it was settled.
    pub paid_at: Option<Timestamp>,
    viewed: bool,
    sent_at: Option<Timestamp>,
    /// Whom mail goes to.
    pub(super) reader: Option<String>,
}

impl Invoice {
    pub(super) fn issue(reader: Option<String>) -> Invoice {
        Invoice {
            status: Status::Open,
            charges: Vec::new(),
            paid_at: None,
            viewed: false,
            sent_at: None,
            reader,
        }
    }

    /// The answer to an e-mail that is asked for now.
    pub(super) fn may_send(&self, now: Timestamp, has_reader: bool) -> Option<u16> {
        if self.status != Status::Open {
            return Some(409);
        }
        if self.sent_at.is_some_and(|sent| now.since(sent) < MAIL_PAUSE) {
            return Some(429);
        }
        (!has_reader).then_some(422)
    }

    pub(super) fn send(&mut self, now: Timestamp) {
        self.sent_at = Some(now);
    }

    /// The first view is told.
    pub(super) fn view(&mut self) -> bool {
        !std::mem::replace(&mut self.viewed, true)
    }
}
