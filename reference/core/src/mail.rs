//! The e-mail log. No e-mail leaves the server: the dashboard shows them.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{
    error::ApiError,
    id::InvoiceNo,
    time::{Span, Timestamp},
};

/// The largest number of e-mails of a book in an hour.
const PER_HOUR_MAX: usize = 100;
const HOUR: Span = Span::hours(1);
/// The largest number of e-mails in the log of a book.
const STORED_MAX: usize = 10_000;

/// The purpose of an e-mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MailKind {
    /// The invoice, for the first time.
    Invoice,
    /// The same invoice again.
    Reminder,
}

impl MailKind {
    /// Returns the name in responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            MailKind::Invoice => "invoice",
            MailKind::Reminder => "reminder",
        }
    }
}

/// An e-mail.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mail {
    /// The recipient.
    pub to: String,
    /// The purpose.
    pub kind: MailKind,
    /// The number of the invoice.
    pub invoice: InvoiceNo,
    /// The time of sending.
    pub sent_at: Timestamp,
}

/// The e-mails of one book, oldest first. Bounded: the oldest are dropped.
#[derive(Default, Serialize, Deserialize)]
pub struct MailLog {
    sent: VecDeque<Mail>,
}

impl MailLog {
    /// Checks that one more e-mail may be sent now.
    ///
    /// # Errors
    ///
    /// [`ApiError::RateLimited`] if the maximum number of e-mails was sent in the last hour.
    pub fn check_quota(&self, now: Timestamp) -> Result<(), ApiError> {
        let Some(index) = self.sent.len().checked_sub(PER_HOUR_MAX) else { return Ok(()) };
        let free_at = self.sent[index].sent_at.plus(HOUR);
        if free_at <= now {
            return Ok(());
        }
        Err(ApiError::RateLimited {
            message: format!("At most {PER_HOUR_MAX} e-mails per hour can be sent in one account and mode.")
                .into(),
            retry_after_secs: free_at.since(now).secs_rounded_up().max(1),
        })
    }

    /// Adds a sent e-mail.
    pub fn push(&mut self, mail: Mail) {
        if self.sent.len() == STORED_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(mail);
    }

    /// Returns the newest stored e-mails up to this number, oldest first.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = &Mail> {
        self.sent.range(self.sent.len().saturating_sub(count)..)
    }

    /// Returns all stored e-mails, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Mail> {
        self.sent.iter()
    }
}
