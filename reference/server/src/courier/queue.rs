//! Who is posted to next: a lane per host, and the lanes take turns.
//!
//! Pure: knows neither sockets nor time. A host that is slow fills its own lane and no other.

use std::collections::{BTreeMap, VecDeque};

/// How much goes on at a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// In all.
    pub(super) total: usize,
    /// With one host.
    pub(super) per_host: usize,
    /// Waiting, in all.
    pub(super) waiting: usize,
}

/// What waits to be posted, by host.
pub(super) struct Queue<T> {
    room: Room,
    lanes: BTreeMap<String, Lane<T>>,
    /// Hosts with something waiting and room for it, in the order of their turns. Each at most once.
    turns: VecDeque<String>,
    waiting: usize,
    under_way: usize,
}

struct Lane<T> {
    waiting: VecDeque<T>,
    under_way: usize,
    /// It stands in `turns`.
    has_turn: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(room: Room) -> Queue<T> {
        Queue { room, lanes: BTreeMap::new(), turns: VecDeque::new(), waiting: 0, under_way: 0 }
    }

    /// Puts something at the end of its host's lane; gives it back if too much waits already.
    pub(super) fn push(&mut self, host: &str, item: T) -> Result<(), T> {
        if self.waiting >= self.room.waiting {
            return Err(item);
        }
        if !self.lanes.contains_key(host) {
            let empty = Lane { waiting: VecDeque::new(), under_way: 0, has_turn: false };
            self.lanes.insert(host.to_owned(), empty);
        }
        let lane = self.lanes.get_mut(host).expect("it was just made");
        lane.waiting.push_back(item);
        self.waiting += 1;
        self.give_turn(host);
        Ok(())
    }

    /// Takes the next thing to post, and its host, if there is room for it.
    pub(super) fn start(&mut self) -> Option<(String, T)> {
        if self.under_way >= self.room.total {
            return None;
        }
        let host = self.turns.pop_front()?;
        let lane = self.lanes.get_mut(&host).expect("only lanes have turns");
        lane.has_turn = false;
        lane.under_way += 1;
        let item = lane.waiting.pop_front().expect("only a lane with something waiting has a turn");
        self.waiting -= 1;
        self.under_way += 1;
        self.give_turn(&host);
        Some((host, item))
    }

    /// Something that was started for this host is over.
    pub(super) fn end(&mut self, host: &str) {
        let lane = self.lanes.get_mut(host).expect("what ends was started, and its lane is kept");
        lane.under_way -= 1;
        self.under_way -= 1;
        if lane.under_way == 0 && lane.waiting.is_empty() {
            self.lanes.remove(host);
        } else {
            self.give_turn(host);
        }
    }

    /// Takes out everything that was not started.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.turns.clear();
        self.waiting = 0;
        let mut all = Vec::new();
        self.lanes.retain(|_, lane| {
            lane.has_turn = false;
            all.extend(lane.waiting.drain(..));
            lane.under_way > 0
        });
        all
    }

    fn give_turn(&mut self, host: &str) {
        let Some(lane) = self.lanes.get_mut(host) else { return };
        if !lane.has_turn && !lane.waiting.is_empty() && lane.under_way < self.room.per_host {
            lane.has_turn = true;
            self.turns.push_back(host.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `steps`: `a1` puts 1 into lane a; `-a` ends one of a; `?` starts what can be started.
    #[track_caller]
    fn check(room: Room, steps: &str, expected: &str) {
        let mut queue = Queue::new(room);
        let mut started = Vec::new();
        for step in steps.split(' ') {
            match step.split_at(1) {
                ("?", _) => {
                    while let Some((_, item)) = queue.start() {
                        started.push(item);
                    }
                    started.push("|".to_owned());
                }
                ("-", host) => queue.end(host),
                (host, _) => {
                    if let Err(item) = queue.push(host, step.to_owned()) {
                        started.push(format!("no:{item}"));
                    }
                }
            }
        }
        assert_eq!(started.join(" "), expected);
    }

    fn room(total: usize, per_host: usize, waiting: usize) -> Room {
        Room { total, per_host, waiting }
    }

    #[test]
    fn lanes_take_turns() {
        check(room(9, 9, 9), "a1 a2 a3 b1 b2 c1 ?", "a1 b1 c1 a2 b2 a3 |");
    }

    #[test]
    fn a_full_host_holds_up_no_other() {
        check(room(9, 2, 9), "a1 a2 a3 a4 b1 ? -b -a ?", "a1 b1 a2 | a3 |");
    }

    #[test]
    fn there_is_room_for_so_many_in_all() {
        check(room(2, 2, 9), "a1 b1 c1 d1 ? -a ? -c -b ?", "a1 b1 | c1 | d1 |");
    }

    #[test]
    fn so_many_wait_and_no_more() {
        check(room(1, 1, 2), "a1 b1 c1 ? c2 c3", "no:c1 a1 | no:c3");
    }

    #[test]
    fn a_host_that_comes_back_starts_anew() {
        check(room(9, 1, 9), "a1 ? -a a2 a3 ? -a ?", "a1 | a2 | a3 |");
    }

    #[test]
    fn what_has_not_started_can_be_taken_out() {
        let mut queue = Queue::new(room(1, 1, 9));
        for (host, item) in [("a", 1), ("a", 2), ("b", 3)] {
            queue.push(host, item).expect("there is room");
        }
        assert_eq!(queue.start(), Some(("a".to_owned(), 1)));
        assert_eq!(queue.drain(), [2, 3]);
        queue.end("a");
        assert_eq!(queue.start(), None);
    }
}
