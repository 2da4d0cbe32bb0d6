//! [`Routes`]: scripted responses by path, for a receiver that represents several endpoints.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::response_script::{ResponseScript, ScriptedResponse};

/// The scripted responses by path. They can change while the receiver runs.
#[derive(Clone, Debug, Default)]
pub struct Routes(Arc<Mutex<BTreeMap<String, ResponseScript>>>);

impl Routes {
    /// Sets the responses for all paths with this ending.
    pub fn set(&self, path_ending: &str, script: ResponseScript) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path_ending.to_owned(), script);
    }

    /// Removes and returns the next response for a path, if its ending has a script. The query is ignored. Of
    /// several matching endings, the alphabetically first has precedence.
    pub(super) fn next_response(&self, path: &str) -> Option<ScriptedResponse> {
        let path = path.split('?').next().unwrap_or_default();
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let route = routes.iter_mut().find(|(ending, _)| path.ends_with(ending.as_str()));
        route.map(|(_, script)| script.next_response())
    }
}
