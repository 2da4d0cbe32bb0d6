//! Shrinks a sequence to a shorter and simpler one that violates the same invariant.

use super::{Reproduction, client::FuzzClient, request_template::RequestTemplate};

/// The maximum number of requests to shrink one sequence, except those that reproduce it for the first time.
const REQUESTS_MAX: usize = 150;

/// Shrinks a sequence whose last request violates an invariant.
pub(super) async fn shrink(client: &mut FuzzClient<'_>, first: Reproduction) -> Reproduction {
    let mut best = Best { found: first, request_count: 0 };
    let all = best.found.templates.clone();
    let last_template = all.last().cloned().into_iter();
    // Most violations need one request, or one after the lists that provide identifiers.
    let lists = all.iter().filter(|template| template.target.contains("per_page=100")).cloned();
    for templates in [last_template.clone().collect(), lists.chain(last_template).collect(), all] {
        if best.attempt(client, templates).await {
            break;
        }
    }
    if best.found.is_reproducible {
        best.drop_requests(client).await;
        best.simplify(client).await;
    }
    best.found
}

/// The shortest sequence so far, and the number of requests sent to shrink it.
struct Best {
    found: Reproduction,
    request_count: usize,
}

impl Best {
    /// Sends a sequence, and keeps it if it violates the invariant too.
    async fn attempt(&mut self, client: &mut FuzzClient<'_>, templates: Vec<RequestTemplate>) -> bool {
        // The budget applies only after the violation was reproduced once.
        if self.found.is_reproducible && self.request_count + templates.len() > REQUESTS_MAX {
            return false;
        }
        self.request_count += templates.len();
        match client.reproduce(&self.found.violation.statement, &templates).await {
            Some(found) => {
                self.found = found;
                true
            }
            None => false,
        }
    }

    /// Removes requests, first half of them at once, then fewer.
    async fn drop_requests(&mut self, client: &mut FuzzClient<'_>) {
        let mut chunk = self.found.templates.len() / 2;
        while chunk >= 1 {
            let mut start = 0;
            // The last request shows the violation.
            while start + chunk < self.found.templates.len() {
                let mut remaining = self.found.templates.clone();
                remaining.drain(start..start + chunk);
                if !self.attempt(client, remaining).await {
                    start += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Removes the headers of each request that changes nothing, and parameters one at a time.
    async fn simplify(&mut self, client: &mut FuzzClient<'_>) {
        for template_index in 0..self.found.templates.len() {
            // Without its content type, a write would be another request.
            if !self.found.templates[template_index].headers.is_empty()
                && !self.found.templates[template_index].writes()
            {
                let mut simpler = self.found.templates.clone();
                simpler[template_index].headers.clear();
                self.attempt(client, simpler).await;
            }
            let mut part_index = 0;
            while let Some((path, query)) = self.found.templates[template_index].target.split_once('?') {
                let parts: Vec<&str> = query.split('&').collect();
                if part_index >= parts.len() {
                    break;
                }
                let remaining: Vec<&str> = parts
                    .iter()
                    .enumerate()
                    .filter(|(index, _)| *index != part_index)
                    .map(|(_, part)| *part)
                    .collect();
                let target = if remaining.is_empty() {
                    path.to_owned()
                } else {
                    format!("{path}?{}", remaining.join("&"))
                };
                let mut simpler = self.found.templates.clone();
                simpler[template_index].target = target;
                if !self.attempt(client, simpler).await {
                    part_index += 1;
                }
            }
        }
    }
}
