//! Shrinks a sequence to the shortest and simplest sequence that violates the same invariant.

use super::{Reproduction, client::FuzzClient, request_template::RequestTemplate};

/// The most requests per invariant.
const REQUESTS_MAX: usize = 150;

/// Shrinks a sequence whose last request violates an invariant.
pub(super) async fn shrink(client: &mut FuzzClient<'_>, first: Reproduction) -> Reproduction {
    let mut best = Best { found: first, spent: 0 };
    let whole = best.found.templates.clone();
    let last = whole.last().cloned().into_iter();
    // Most violations need one request, or one after the lists that provide identifiers.
    let lists = whole.iter().filter(|template| template.target.contains("per_page=100")).cloned();
    for templates in [last.clone().collect(), lists.chain(last).collect(), whole] {
        if best.attempt(client, templates).await {
            break;
        }
    }
    if best.found.repeats {
        best.drop_requests(client).await;
        best.simplify(client).await;
    }
    best.found
}

/// The best sequence so far.
struct Best {
    found: Reproduction,
    spent: usize,
}

impl Best {
    /// Replaces the best sequence if this one violates the invariant too.
    async fn attempt(&mut self, client: &mut FuzzClient<'_>, templates: Vec<RequestTemplate>) -> bool {
        // The budget applies only after the violation was reproduced once.
        if self.found.repeats && self.spent + templates.len() > REQUESTS_MAX {
            return false;
        }
        self.spent += templates.len();
        match client.reproduce(&self.found.violation.statement, &templates).await {
            Some(found) => {
                self.found = found;
                true
            }
            None => false,
        }
    }

    /// Removes requests, first many at a time.
    async fn drop_requests(&mut self, client: &mut FuzzClient<'_>) {
        let mut chunk = self.found.templates.len() / 2;
        while chunk >= 1 {
            let mut at = 0;
            // The last request shows the violation.
            while at + chunk < self.found.templates.len() {
                let mut fewer = self.found.templates.clone();
                fewer.drain(at..at + chunk);
                if !self.attempt(client, fewer).await {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Removes headers and parameters.
    async fn simplify(&mut self, client: &mut FuzzClient<'_>) {
        for n in 0..self.found.templates.len() {
            if !self.found.templates[n].headers.is_empty() && !self.found.templates[n].writes() {
                let mut plainer = self.found.templates.clone();
                plainer[n].headers.clear();
                self.attempt(client, plainer).await;
            }
            let mut at = 0;
            while let Some((path, query)) = self.found.templates[n].target.split_once('?') {
                let parts: Vec<&str> = query.split('&').collect();
                if at >= parts.len() {
                    break;
                }
                let rest: Vec<&str> = parts
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| *index != at)
                    .map(|(_, part)| *part)
                    .collect();
                let target =
                    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
                let mut plainer = self.found.templates.clone();
                plainer[n].target = target;
                if !self.attempt(client, plainer).await {
                    at += 1;
                }
            }
        }
    }
}
