//! Shrinks a sequence to the shortest and simplest one that violates the same invariant.

use super::{Found, ask::Ask, client::FuzzClient};

/// The most requests per invariant.
const REQUESTS_MAX: usize = 150;

/// Shrinks a sequence whose last request violates an invariant.
pub(super) async fn shrink(talk: &mut FuzzClient<'_>, first: Found) -> Found {
    let mut best = Best { found: first, spent: 0 };
    let whole = best.found.asks.clone();
    let last = whole.last().cloned().into_iter();
    // Most violations need one request, or one after the lists that provide identifiers.
    let lists = whole.iter().filter(|ask| ask.target.contains("per_page=100")).cloned();
    for asks in [last.clone().collect(), lists.chain(last).collect(), whole] {
        if best.attempt(talk, asks).await {
            break;
        }
    }
    if best.found.repeats {
        best.drop_asks(talk).await;
        best.simplify(talk).await;
    }
    best.found
}

/// The best sequence so far.
struct Best {
    found: Found,
    spent: usize,
}

impl Best {
    /// Replaces the best sequence if this one violates the invariant too.
    async fn attempt(&mut self, talk: &mut FuzzClient<'_>, asks: Vec<Ask>) -> bool {
        // The budget applies only after the violation was reproduced once.
        if self.found.repeats && self.spent + asks.len() > REQUESTS_MAX {
            return false;
        }
        self.spent += asks.len();
        match talk.breaks(&self.found.violation.statement, &asks).await {
            Some(found) => {
                self.found = found;
                true
            }
            None => false,
        }
    }

    /// Removes requests, first many at a time.
    async fn drop_asks(&mut self, talk: &mut FuzzClient<'_>) {
        let mut chunk = self.found.asks.len() / 2;
        while chunk >= 1 {
            let mut at = 0;
            // The last request shows the violation.
            while at + chunk < self.found.asks.len() {
                let mut fewer = self.found.asks.clone();
                fewer.drain(at..at + chunk);
                if !self.attempt(talk, fewer).await {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Removes headers and parameters.
    async fn simplify(&mut self, talk: &mut FuzzClient<'_>) {
        for n in 0..self.found.asks.len() {
            if !self.found.asks[n].headers.is_empty() && !self.found.asks[n].writes() {
                let mut plainer = self.found.asks.clone();
                plainer[n].headers.clear();
                self.attempt(talk, plainer).await;
            }
            let mut at = 0;
            while let Some((path, query)) = self.found.asks[n].target.split_once('?') {
                let parts: Vec<&str> = query.split('&').collect();
                if at >= parts.len() {
                    break;
                }
                let rest: Vec<&str> = parts
                    .iter()
                    .enumerate()
                    .filter(|(place, _)| *place != at)
                    .map(|(_, part)| *part)
                    .collect();
                let target =
                    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
                let mut plainer = self.found.asks.clone();
                plainer[n].target = target;
                if !self.attempt(talk, plainer).await {
                    at += 1;
                }
            }
        }
    }
}
