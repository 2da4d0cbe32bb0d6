//! What each deed does to the world.

use reference_core::{
    asset::Asset,
    sighting::Sighting,
    time::{Span, Timestamp},
};
use simulator::model::money;

use crate::{
    deed::{Astray, By, Deed, Name, Notice, Place},
    stage::sighting,
    world::{ANSWER_KEPT, Beat, Desire, Due, Kept, LONGEST, Reading, Standing, World},
};

/// A key's place in a list is remembered for so long.
const PLACE_KEPT: Span = Span::mins(10);
/// Whoever exhausts what waits does it for fewer deliveries, within so much time.
const EXHAUSTED_MAX: usize = 24;
const EXHAUSTION: Span = Span::days(5);

/// A write as idempotency sees it.
struct Asked {
    who: Place,
    path: String,
    body: String,
    once: Option<u8>,
}

impl World {
    /// Whether a deed can be done: it names what there is, and stays within the days of this world.
    pub(crate) fn allows(&self, deed: &Deed) -> bool {
        let has = |name: &Name| self.homes.contains_key(name);
        let free = |name: &Name| !self.homes.contains_key(name);
        let fits = |until: Timestamp| until >= self.now && until.since(crate::world::OPENING) < LONGEST;
        match deed {
            Deed::Wait(span) | Deed::Oversleep(span) => fits(self.now.plus(*span)),
            Deed::LockEnd { of, off } => has(of) && fits(shifted(self.charge(*of).it.end, *off)),
            Deed::Open { name, link, .. } => free(name) && link.as_ref().is_none_or(has),
            Deed::Cancel { charge, .. } | Deed::Refund { charge, .. } | Deed::Accept { charge, .. } => {
                has(charge)
            }
            Deed::Issue { name, .. } | Deed::MakeLink { name, .. } | Deed::Hook { name, .. } => free(name),
            Deed::Send { invoice, .. } | Deed::Void { invoice, .. } | Deed::View { invoice } => has(invoice),
            Deed::Choose { name, invoice, .. } => free(name) && has(invoice),
            Deed::Archive { link, .. } | Deed::Limit { link, .. } | Deed::ViewLink { link } => has(link),
            Deed::PayLink { name, link, .. } => free(name) && has(link),
            Deed::Tell(notices) => notices.iter().all(|notice| has(&notice.charge)),
            Deed::Choices { hook, .. }
            | Deed::Switch { hook, .. }
            | Deed::Unhook { hook }
            | Deed::Rotate { hook }
            | Deed::Test { hook } => has(hook),
            Deed::Resend { of, delivery } => *delivery < self.books[of.0].deliveries.len(),
            Deed::Land { of, delivery, .. } => {
                let delivery = self.books[of.0].deliveries.get(*delivery);
                delivery.is_some_and(|delivery| delivery.standing == Standing::Flying)
            }
            Deed::Exhaust(_) => {
                let waiting = self.books.iter().flat_map(|book| &book.deliveries);
                let waiting = waiting.filter(|delivery| matches!(delivery.standing, Standing::Waiting(_)));
                waiting.count() <= EXHAUSTED_MAX && fits(self.now.plus(EXHAUSTION))
            }
            _ => true,
        }
    }

    /// Does it.
    pub(crate) fn apply(&mut self, deed: &Deed) {
        self.due = Due::Nothing;
        self.beats.clear();
        if let Some(number) = deed.number() {
            self.names = self.names.max(number + 1);
        }
        match deed {
            Deed::Wait(span) => self.advance(self.now.plus(*span)),
            Deed::LockEnd { of, off } => self.advance(shifted(self.charge(*of).it.end, *off)),
            Deed::Oversleep(span) => {
                self.now = self.now.plus(*span);
                self.wake();
            }
            Deed::Rate { asset, currency, units } => drop(self.rates.insert((*asset, *currency), *units)),
            Deed::Bounds { account, tolerance, threshold } => {
                self.bounds[*account] = (*tolerance, *threshold)
            }
            Deed::Restart => {
                self.memories.clear();
                self.restart();
            }
            Deed::NewKey(place) => self.memories.retain(|(who, ..), _| who != place),
            Deed::Tell(notices) => self.tell_all(notices),
            Deed::Turn { who, list, per_page } => self.turn((*who, *list, *per_page)),
            Deed::Number { who, list, per_page, page } => self.number((*who, *list, *per_page), *page),
            _ if self.apply_to_hooks(deed) => {}
            _ => self.apply_write(deed),
        }
    }

    /// Time passes; the host wakes the service whenever a lock ends.
    pub(crate) fn advance(&mut self, until: Timestamp) {
        let ends = |world: &World| {
            let charges = world.books.iter().flat_map(|book| &book.charges);
            let open = charges.filter(|charge| !charge.rang && charge.it.waits());
            open.map(|charge| charge.it.end).min()
        };
        while let Some(end) = ends(self).filter(|end| *end <= until) {
            self.now = end.max(self.now);
            self.wake();
        }
        self.now = until;
        self.wake();
    }

    fn wake(&mut self) {
        let now = self.now;
        self.beats.push(Beat::Wake(now));
        for book in &mut self.books {
            let mut over: Vec<(Timestamp, usize)> = Vec::new();
            for (no, charge) in book.charges.iter_mut().enumerate() {
                if !charge.rang && charge.it.end <= now {
                    charge.rang = true;
                    over.push((charge.it.end, no));
                }
            }
            over.sort_unstable();
            for (_, no) in over {
                let mut tales = Vec::new();
                book.charges[no].it.run_out(now, &mut tales);
                book.tell(now, no, tales);
            }
        }
    }

    fn tell_all(&mut self, notices: &[Notice]) {
        let now = self.now;
        for place in Place::ALL {
            let mut parts: Vec<(usize, Vec<Sighting>)> = Vec::new();
            for notice in notices {
                let (home, no) = self.home(notice.charge);
                if home != place || notice.astray != Astray::No {
                    continue;
                }
                let heard = sighting(notice, self.charge(notice.charge).asset, home, "");
                match parts.iter_mut().find(|(known, _)| *known == no) {
                    Some((_, part)) => part.push(heard),
                    None => parts.push((no, vec![heard])),
                }
            }
            let book = self.book(place);
            for (no, part) in parts {
                let charge = &mut book.charges[no];
                let unit = atto_per_unit(charge.asset);
                let part: Vec<&Sighting> = part.iter().collect();
                let tales = charge.it.hear(now, &part, unit);
                book.tell(now, no, tales);
            }
        }
    }

    fn turn(&mut self, desire: Desire) {
        let (who, list, per_page) = desire;
        let length = self.books[who.0].length(list);
        let reading = self.readings.entry(desire).or_insert(Reading { total: 0, page: 1 });
        if reading.page * per_page < reading.total {
            reading.page += 1;
        } else {
            *reading = Reading { total: length, page: 1 };
            self.memories.insert(desire, (self.now, length));
        }
        self.due = Due::Status(200);
    }

    /// Page 1 is fresh; later ones belong to the page 1 that this key read last, if that was not long ago.
    fn number(&mut self, desire: Desire, page: usize) {
        let (who, list, _) = desire;
        let length = self.books[who.0].length(list);
        if page == 1 {
            self.memories.insert(desire, (self.now, length));
        }
        let memory = self.memories.get(&desire).filter(|(at, _)| self.now.since(*at) < PLACE_KEPT);
        self.numbered = Reading { total: memory.map_or(length, |(_, total)| *total), page };
        self.due = Due::Status(200);
    }

    fn apply_write(&mut self, deed: &Deed) {
        let asked = asked(deed);
        if let Some(asked) = &asked
            && let Some(once) = asked.once
        {
            self.keyed.retain(|known| known != deed);
            self.keyed.push(deed.clone());
            let now = self.now;
            let scope = format!("{} {once}", asked.path);
            let kept = self.book(asked.who).kept.get(&scope);
            if let Some(kept) = kept.filter(|kept| now.since(kept.at) < ANSWER_KEPT) {
                self.due = if kept.asked == asked.body { Due::Replay(kept.answer) } else { Due::Status(409) };
                return;
            }
        }
        let answered = self.write(deed);
        self.due = Due::Status(answered.unwrap_or_else(|refused| refused));
        if let Some(Asked { who, path, body, once: Some(once) }) = asked
            && answered.is_ok()
        {
            let kept = Kept { at: self.now, asked: body, answer: self.answers };
            self.answers += 1;
            self.book(who).kept.insert(format!("{path} {once}"), kept);
        }
    }
}

/// What idempotency goes by: who, where, and all that is said. Names of what is made are not said.
fn asked(deed: &Deed) -> Option<Asked> {
    let asked = |who: &Place, path: String, body: String, once: &Option<u8>| {
        Some(Asked { who: *who, path, body, once: *once })
    };
    match deed {
        Deed::Open { who, asset, cents, currency, link, once, .. } => {
            // A link has a currency of its own.
            let currency = link.is_none().then_some(currency);
            asked(who, "charges".to_owned(), format!("{asset} {cents} {currency:?} {link:?}"), once)
        }
        Deed::Cancel { by: By::Key(who), charge, once } => {
            asked(who, format!("cancel {charge:?}"), String::new(), once)
        }
        Deed::Refund { who, charge, units, once } => {
            asked(who, format!("refund {charge:?}"), units.to_string(), once)
        }
        Deed::Issue { who, cents, reader, send, once, .. } => {
            asked(who, "invoices".to_owned(), format!("{cents} {reader:?} {send}"), once)
        }
        _ => None,
    }
}

/// The service counts in 10⁻¹⁸.
pub(crate) fn atto_per_unit(asset: Asset) -> u128 {
    10_u128.pow(18) / money::units_per_coin(asset)
}

fn shifted(at: Timestamp, off: i64) -> Timestamp {
    let span = Span(off.unsigned_abs());
    if off < 0 { at.minus(span) } else { at.plus(span) }
}
