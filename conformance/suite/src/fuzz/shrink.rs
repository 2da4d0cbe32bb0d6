//! Looks for the shortest and plainest sequence in which the same law breaks.

use super::{Found, ask::Ask, talk::Talk};

/// So many requests are spent on one law.
const REQUESTS_MAX: usize = 150;

/// Shrinks a sequence whose last request breaks a law.
pub(super) async fn shrink(talk: &mut Talk<'_>, first: Found) -> Found {
    let mut best = Best { found: first, spent: 0 };
    let whole = best.found.asks.clone();
    let last = whole.last().cloned().into_iter();
    // Most laws break in one request, or in one after the lists that told what there is.
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
    /// Takes a sequence if it breaks the law as well.
    async fn attempt(&mut self, talk: &mut Talk<'_>, asks: Vec<Ask>) -> bool {
        // Until it was seen again at all, the cost does not count.
        if self.found.repeats && self.spent + asks.len() > REQUESTS_MAX {
            return false;
        }
        self.spent += asks.len();
        match talk.breaks(&self.found.breach.law, &asks).await {
            Some(found) => {
                self.found = found;
                true
            }
            None => false,
        }
    }

    /// Leaves out requests, first many at a time.
    async fn drop_asks(&mut self, talk: &mut Talk<'_>) {
        let mut chunk = self.found.asks.len() / 2;
        while chunk >= 1 {
            let mut at = 0;
            // The last request is the one that shows it.
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

    /// Leaves out headers and parameters.
    async fn simplify(&mut self, talk: &mut Talk<'_>) {
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
