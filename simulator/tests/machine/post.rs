//! Endpoints and deliveries: what is due when, and what comes of an answer.

use reference_core::{event::EventType, time::Timestamp};

use simulator::law::schedule::{DELAYS, FAILED_IN_A_ROW, TRIES};

use crate::{
    deed::{Answer, Deed, Name, Place},
    world::{Beat, Book, Delivery, Due, Hook, Standing, Switch, World},
};

impl World {
    /// Whether it was a deed at endpoints; then it is done.
    pub(crate) fn apply_to_hooks(&mut self, deed: &Deed) -> bool {
        let now = self.now;
        let status = match deed {
            Deed::Hook { name, of, kinds } => {
                let book = self.book(*of);
                let secret = book.next_secret();
                book.hooks.push(Hook { kinds: *kinds, switch: Switch::On, failed_in_a_row: 0, secret });
                let no = book.hooks.len() - 1;
                self.homes.insert(*name, (*of, no));
                200
            }
            Deed::Choices { hook, kinds } => self.at_hook(*hook, |book, no| book.hooks[no].kinds = *kinds),
            Deed::Switch { hook, on: true } => self.at_hook(*hook, |book, no| {
                (book.hooks[no].switch, book.hooks[no].failed_in_a_row) = (Switch::On, 0);
            }),
            Deed::Switch { hook, on: false } => self.at_hook(*hook, |book, no| book.close(no, Switch::Off)),
            Deed::Unhook { hook } => self.at_hook(*hook, |book, no| book.close(no, Switch::Gone)),
            Deed::Rotate { hook } => {
                self.at_hook(*hook, |book, no| book.hooks[no].secret = book.next_secret())
            }
            Deed::Test { hook } => {
                let (place, no) = self.home(*hook);
                match self.book(place).hooks[no].switch {
                    Switch::Gone => 404,
                    Switch::Off => 409,
                    Switch::On => {
                        self.book(place).deliver(now, None, no);
                        200
                    }
                }
            }
            Deed::Resend { of, delivery } => {
                let book = self.book(*of);
                let it = &book.deliveries[*delivery];
                if book.hooks[it.hook].switch != Switch::On || it.standing == Standing::Flying {
                    409
                } else {
                    let it = &mut book.deliveries[*delivery];
                    (it.standing, it.tries) = (Standing::Waiting(now), 0);
                    200
                }
            }
            Deed::Post(answer) => {
                self.post_one(Some(*answer));
                return true;
            }
            Deed::Take => {
                self.post_one(None);
                return true;
            }
            Deed::PostAll(answer) => {
                while self.post_one(Some(*answer)) {}
                return true;
            }
            Deed::Exhaust(answer) => {
                self.exhaust(*answer);
                return true;
            }
            Deed::Land { of, delivery, answer } => {
                self.book(*of).land(now, *delivery, *answer);
                return true;
            }
            _ => return false,
        };
        self.due = Due::Status(status);
        true
    }

    fn at_hook(&mut self, hook: Name, change: impl FnOnce(&mut Book, usize)) -> u16 {
        let (place, no) = self.home(hook);
        let book = self.book(place);
        if book.hooks[no].switch == Switch::Gone {
            return 404;
        }
        change(book, no);
        200
    }

    /// Whether something was due.
    fn post_one(&mut self, answer: Option<Answer>) -> bool {
        let now = self.now;
        let first = |place: Place| {
            let (at, delivery) = self.books[place.0].first_waiting()?;
            (at <= now).then_some((place, delivery))
        };
        let Some((of, delivery)) = Place::ALL.into_iter().find_map(first) else { return false };
        let attempt = self.books[of.0].deliveries[delivery].attempts + 1;
        self.beats.push(Beat::Post { of, delivery, at: now, attempt, answer });
        let book = self.book(of);
        let it = &mut book.deliveries[delivery];
        it.standing = Standing::Flying;
        it.tries += 1;
        if let Some(answer) = answer {
            book.land(now, delivery, answer);
        }
        true
    }

    /// Until nothing waits any more, however long that takes.
    fn exhaust(&mut self, answer: Answer) {
        loop {
            let next = self.books.iter().filter_map(Book::first_waiting).map(|(at, _)| at).min();
            let Some(next) = next else { return };
            if next > self.now {
                self.advance(next);
            }
            self.post_one(Some(answer));
        }
    }

    /// Nobody knows how a post in flight ended: it is due again, and that try does not count.
    pub(crate) fn restart(&mut self) {
        let now = self.now;
        for book in &mut self.books {
            for it in &mut book.deliveries {
                if it.standing == Standing::Flying {
                    it.tries -= 1;
                    let is_on = book.hooks[it.hook].switch == Switch::On;
                    it.standing = if is_on { Standing::Waiting(now) } else { Standing::Canceled };
                }
            }
        }
    }
}

impl Book {
    fn next_secret(&mut self) -> usize {
        self.secrets += 1;
        self.secrets - 1
    }

    /// The newest event goes to each endpoint that takes its type.
    pub(crate) fn fan_out(&mut self, at: Timestamp, kind: &str) {
        let event = self.events.len() - 1;
        let place = EventType::ALL.iter().position(|it| it.as_str() == kind).expect("one of the thirteen");
        for hook in 0..self.hooks.len() {
            let it = &self.hooks[hook];
            if it.switch == Switch::On && it.kinds & (1 << place) != 0 {
                self.deliver(at, Some(event), hook);
            }
        }
    }

    fn deliver(&mut self, at: Timestamp, event: Option<usize>, hook: usize) {
        let standing = Standing::Waiting(at);
        self.deliveries.push(Delivery { event, opened: at, hook, standing, attempts: 0, tries: 0 });
    }

    fn close(&mut self, hook: usize, switch: Switch) {
        self.hooks[hook].switch = switch;
        let waiting = |it: &&mut Delivery| it.hook == hook && matches!(it.standing, Standing::Waiting(_));
        for it in self.deliveries.iter_mut().filter(waiting) {
            it.standing = Standing::Canceled;
        }
    }

    /// What is due first, oldest first where that is the same.
    fn first_waiting(&self) -> Option<(Timestamp, usize)> {
        let waiting = self.deliveries.iter().enumerate().filter_map(|(no, it)| match it.standing {
            Standing::Waiting(at) => Some((at, no)),
            _ => None,
        });
        waiting.min()
    }

    fn land(&mut self, now: Timestamp, delivery: usize, answer: Answer) {
        let it = &mut self.deliveries[delivery];
        it.attempts += 1;
        let hook = it.hook;
        if answer.is_success() {
            it.standing = Standing::Delivered;
            self.hooks[hook].failed_in_a_row = 0;
        } else if self.hooks[hook].switch != Switch::On {
            it.standing = Standing::Canceled;
        } else if (it.tries as usize) < TRIES {
            let delay = DELAYS[(it.tries as usize - 1).min(DELAYS.len() - 1)];
            it.standing = Standing::Waiting(now.plus(delay));
        } else {
            it.standing = Standing::Failed;
            self.hooks[hook].failed_in_a_row += 1;
            if self.hooks[hook].failed_in_a_row >= FAILED_IN_A_ROW {
                self.close(hook, Switch::Off);
            }
        }
    }
}
