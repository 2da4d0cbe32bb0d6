//! Looks for the shortest and plainest sequence in which the same law breaks.

use super::{Found, ask::Ask, law::Breach, run::Talk};

/// So many requests are spent on one law.
const REQUESTS_MAX: u32 = 150;

/// Shrinks a sequence whose last request breaks a law.
pub(super) async fn shrink(talk: &mut Talk<'_>, breach: Breach, asks: Vec<Ask>) -> Found {
    let law = breach.law.clone();
    let mut best = Best { breach, asks, repeats: false, spent: 0 };
    // Most laws break in one request, or in one after a list that told what there is.
    let last = best.asks.last().cloned();
    let Some(last) = last else { return best.found() };
    best.attempt(talk, &law, vec![last.clone()]).await;
    if !best.repeats {
        let lists = best.asks.iter().filter(|ask| ask.target.contains("per_page=100")).cloned();
        let short: Vec<Ask> = lists.chain([last]).collect();
        best.attempt(talk, &law, short).await;
    }
    if !best.repeats {
        let whole = best.asks.clone();
        best.attempt(talk, &law, whole).await;
    }
    if best.repeats {
        best.drop_asks(talk, &law).await;
        best.simplify(talk, &law).await;
    }
    best.found()
}

/// The best sequence so far.
struct Best {
    breach: Breach,
    asks: Vec<Ask>,
    repeats: bool,
    spent: u32,
}

impl Best {
    fn found(self) -> Found {
        Found { breach: self.breach, asks: self.asks, repeats: self.repeats }
    }

    /// Takes a sequence if it breaks the law as well.
    async fn attempt(&mut self, talk: &mut Talk<'_>, law: &str, asks: Vec<Ask>) -> bool {
        let cost = u32::try_from(asks.len()).unwrap_or(u32::MAX);
        if self.spent + cost > REQUESTS_MAX.max(cost) && self.spent > 0 {
            return false;
        }
        self.spent += cost;
        match talk.breaks(law, &asks).await {
            Some(breach) => {
                *self = Best { breach, asks, repeats: true, spent: self.spent };
                true
            }
            None => false,
        }
    }

    /// Leaves out requests, first many at a time.
    async fn drop_asks(&mut self, talk: &mut Talk<'_>, law: &str) {
        let mut chunk = self.asks.len() / 2;
        while chunk >= 1 {
            let mut at = 0;
            // The last request is the one that shows it.
            while at + chunk < self.asks.len() {
                let mut fewer = self.asks.clone();
                fewer.drain(at..at + chunk);
                if !self.attempt(talk, law, fewer).await {
                    at += chunk;
                }
            }
            chunk /= 2;
        }
    }

    /// Leaves out headers and parameters.
    async fn simplify(&mut self, talk: &mut Talk<'_>, law: &str) {
        for n in 0..self.asks.len() {
            if !self.asks[n].headers.is_empty() && !self.asks[n].writes() {
                let mut plainer = self.asks.clone();
                plainer[n].headers.clear();
                self.attempt(talk, law, plainer).await;
            }
            let mut at = 0;
            while let Some((path, query)) = self.asks[n].target.split_once('?') {
                let parts: Vec<&str> = query.split('&').collect();
                if at >= parts.len() {
                    break;
                }
                let rest: Vec<&str> =
                    parts.iter().enumerate().filter(|(place, _)| *place != at).map(|(_, part)| *part).collect();
                let target = if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
                let mut plainer = self.asks.clone();
                plainer[n].target = target;
                if !self.attempt(talk, law, plainer).await {
                    at += 1;
                }
            }
        }
    }
}
