//! Responses by path, for a receiver that represents several endpoints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::answers::{Answers, Reply};

/// The scripted responses by path. They can change while the receiver runs.
#[derive(Clone, Debug, Default)]
pub struct Routes(Arc<Mutex<BTreeMap<String, Answers>>>);

impl Routes {
    /// Sets the responses for a path and for all paths with this ending.
    pub fn set(&self, path: &str, answers: Answers) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned(), answers);
    }

    /// Returns the response to the next request for a path, without its query, if a script is set for its ending.
    pub(super) fn take(&self, path: &str) -> Option<Reply> {
        let path = path.split('?').next().unwrap_or_default();
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = routes.iter_mut().find(|(end, _)| path.ends_with(end.as_str()));
        fitting.map(|(_, answers)| answers.take())
    }
}
