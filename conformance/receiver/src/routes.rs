//! Answers by path, for a receiver that plays several endpoints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::answers::{Answers, Reply};

/// The answers by path. They can change while the receiver listens.
#[derive(Clone, Debug, Default)]
pub struct Routes(Arc<Mutex<BTreeMap<String, Answers>>>);

impl Routes {
    /// Sets the answers to requests for a path, or for paths that end in it.
    pub fn set(&self, path: &str, answers: Answers) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), answers);
    }

    /// The answer to the next request to a path, if it ends in one that has answers of its own. The query does
    /// not count.
    pub(super) fn take(&self, path: &str) -> Option<Reply> {
        let path = path.split('?').next().unwrap_or_default();
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = routes.iter_mut().find(|(end, _)| path.ends_with(end.as_str()));
        fitting.map(|(_, answers)| answers.take())
    }
}
