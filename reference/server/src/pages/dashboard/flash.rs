//! [`Notices`]: messages that the next page shows once, such as a result or a secret.
//!
//! Stored on the server and not in the URL, so that neither the browser's history nor a log contains a secret.

use std::{collections::VecDeque, sync::Mutex};

use super::paths::is_id;

/// The maximum number of waiting notices; the oldest is evicted.
const NOTICES_MAX: usize = 64;
/// The number of random bytes in the name of a notice.
const NAME_BYTES: usize = 8;

/// The result of an action, for the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Notice {
    /// A sentence about the result.
    pub(super) text: String,
    /// The secret that is shown once.
    pub(super) secret: Option<Secret>,
    /// A link beside the text: label and URL.
    pub(super) link: Option<(&'static str, String)>,
}

/// A secret with its label.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret {
    /// The label: `API key, mode live`.
    pub(super) label: String,
    pub(super) value: String,
    /// A command that uses the secret through a shell variable.
    pub(super) hint: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({}, …)", self.label)
    }
}

impl Notice {
    pub(super) fn text(text: impl Into<String>) -> Notice {
        Notice { text: text.into(), ..Notice::default() }
    }
}

/// The waiting notices.
#[derive(Default)]
pub(super) struct Notices(Mutex<VecDeque<(String, Notice)>>);

impl Notices {
    /// Stores a notice and returns its random name; `None` if the operating system provides no randomness.
    pub(super) fn put(&self, notice: Notice) -> Option<String> {
        let mut bytes = [0; NAME_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        let name = hex::encode(bytes);
        let mut notices = self.0.lock().ok()?;
        if notices.len() == NOTICES_MAX {
            notices.pop_front();
        }
        notices.push_back((name.clone(), notice));
        Some(name)
    }

    /// Removes a notice and returns it.
    pub(super) fn take(&self, name: &str) -> Option<Notice> {
        if !is_id(name) {
            return None;
        }
        let mut notices = self.0.lock().ok()?;
        let index = notices.iter().position(|(stored, _)| stored == name)?;
        notices.remove(index).map(|(_, notice)| notice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_shown_once() {
        let notices = Notices::default();
        let name = notices.put(Notice::text("Done.")).expect("the system has randomness");
        assert_eq!(notices.take(&name), Some(Notice::text("Done.")));
        assert_eq!(notices.take(&name), None);
    }

    #[test]
    fn the_oldest_notices_are_evicted() {
        let notices = Notices::default();
        let names: Vec<_> = (0..=NOTICES_MAX)
            .map(|n| notices.put(Notice::text(n.to_string())).expect("the system has randomness"))
            .collect();
        assert_eq!(notices.take(&names[0]), None);
        assert_eq!(notices.take(&names[1]), Some(Notice::text("1")));
        assert_eq!(notices.take(&names[NOTICES_MAX]), Some(Notice::text(NOTICES_MAX.to_string())));
    }

    #[test]
    fn debug_output_contains_no_secret() {
        let secret = Secret { label: "Key".to_owned(), value: "svc_live_x".to_owned(), hint: String::new() };
        assert!(!format!("{secret:?}").contains("svc_live_x"));
    }
}
