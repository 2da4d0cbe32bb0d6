//! [`SendQueue`]: the order of deliveries. Accounts take turns, and so do the hosts of an account.
//!
//! Uses neither sockets nor time. A slow receiver delays only deliveries of its own account and host.
//!
//! The queue is unbounded, because the world stores every waiting delivery anyway, and refusing one would count as
//! a failed attempt.

use std::collections::{BTreeMap, VecDeque};

/// The reserve for accounts without a slot is the number of slots divided by this.
const RESERVE_DIVISOR: usize = 4;

/// Returns `true` if an account with `held` slots may take another slot. The first slot may be any free one. For a further
/// slot, more slots than the account holds must be free besides the reserve, so that a few busy accounts leave slots for
/// others.
pub(super) fn may_take_slot(held: usize, free: usize, total: usize) -> bool {
    held < if held == 0 { free } else { free.saturating_sub(total / RESERVE_DIVISOR) }
}

/// The maximum number of concurrent attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendLimits {
    /// The total.
    pub(super) total: usize,
    /// The limit for one account and host.
    pub(super) per_host: usize,
}

/// The classification of an attempt by its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    Quick,
    /// Long enough to be aborted if accounts without a slot are waiting.
    Slow,
}

/// Waiting deliveries by account and host.
pub(super) struct SendQueue<A, T> {
    limits: SendLimits,
    accounts: BTreeMap<A, AccountQueue<T>>,
    /// Accounts with a host that has a turn, in the order of their turns. Each occurs at most once.
    turns: VecDeque<A>,
    running: usize,
}

struct AccountQueue<T> {
    hosts: BTreeMap<String, HostQueue<T>>,
    /// Hosts with waiting deliveries and a free slot, in the order of their turns. Each occurs at most once.
    turns: VecDeque<String>,
    running: usize,
    /// `true` if the account is in the turns.
    has_turn: bool,
    /// The pace of its latest attempt since the queue was empty; quick if there is none.
    pace: Pace,
}

struct HostQueue<T> {
    waiting: VecDeque<T>,
    running: usize,
    /// `true` if the host is in the turns of its account.
    has_turn: bool,
}

impl<A: Copy + Ord, T> SendQueue<A, T> {
    pub(super) fn new(limits: SendLimits) -> SendQueue<A, T> {
        SendQueue { limits, accounts: BTreeMap::new(), turns: VecDeque::new(), running: 0 }
    }

    /// Appends an item to the queue of its host.
    pub(super) fn push(&mut self, account: A, host: &str, item: T) {
        let queue = self.accounts.entry(account).or_insert_with(|| AccountQueue {
            hosts: BTreeMap::new(),
            turns: VecDeque::new(),
            running: 0,
            has_turn: false,
            pace: Pace::Quick,
        });
        if !queue.hosts.contains_key(host) {
            let empty = HostQueue { waiting: VecDeque::new(), running: 0, has_turn: false };
            queue.hosts.insert(host.to_owned(), empty);
        }
        queue.hosts.get_mut(host).expect("the queue was just created").waiting.push_back(item);
        self.give_turn(account, host);
    }

    /// Takes the next item that may start, with its account and host.
    pub(super) fn start(&mut self) -> Option<(A, String, T)> {
        let (total, free) = (self.limits.total, self.limits.total - self.running);
        let slots_in_use = |account: &A| self.accounts[account].running;
        let prioritized =
            self.turns.iter().position(|account| self.has_priority(account)).filter(|_| free > 0);
        let next = || self.turns.iter().position(|account| may_take_slot(slots_in_use(account), free, total));
        let index = prioritized.or_else(next)?;
        let account = self.turns.remove(index)?;
        let queue = self.accounts.get_mut(&account).expect("only an account with a queue has a turn");
        queue.has_turn = false;
        let host =
            queue.turns.pop_front().expect("an account has a turn only while one of its hosts has one");
        let host_queue = queue.hosts.get_mut(&host).expect("only a host with a queue has a turn");
        host_queue.has_turn = false;
        let item = host_queue.waiting.pop_front().expect("only a host with a waiting item has a turn");
        host_queue.running += 1;
        queue.running += 1;
        self.running += 1;
        self.give_turn(account, &host);
        Some((account, host, item))
    }

    /// Returns `true` if an account has priority: it uses no slot, and its latest attempt was not slow.
    fn has_priority(&self, account: &A) -> bool {
        let queue = &self.accounts[account];
        queue.running == 0 && queue.pace == Pace::Quick
    }

    /// Returns the number of accounts with priority that wait because no slot is free.
    pub(super) fn starved_count(&self) -> usize {
        if self.running < self.limits.total {
            return 0;
        }
        self.turns.iter().filter(|account| self.has_priority(account)).count()
    }

    /// Returns the number of slots that an account uses.
    pub(super) fn slots_in_use(&self, account: &A) -> usize {
        self.accounts.get(account).map_or(0, |queue| queue.running)
    }

    /// Frees the slot of an item that was started for this account and host, and stores the pace of its attempt.
    pub(super) fn end(&mut self, account: A, host: &str, pace: Pace) {
        let queue =
            self.accounts.get_mut(&account).expect("an item that ends was started, so its queue exists");
        let host_queue =
            queue.hosts.get_mut(host).expect("an item that ends was started, so its queue exists");
        queue.pace = pace;
        host_queue.running -= 1;
        queue.running -= 1;
        self.running -= 1;
        if host_queue.running == 0 && host_queue.waiting.is_empty() {
            queue.hosts.remove(host);
        }
        if queue.hosts.is_empty() {
            self.accounts.remove(&account);
        }
        self.give_turn(account, host);
    }

    /// Removes and returns all items that were not started.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.turns.clear();
        let mut all = Vec::new();
        self.accounts.retain(|_, queue| {
            queue.has_turn = false;
            queue.turns.clear();
            queue.hosts.retain(|_, host_queue| {
                host_queue.has_turn = false;
                all.extend(host_queue.waiting.drain(..));
                host_queue.running > 0
            });
            !queue.hosts.is_empty()
        });
        all
    }

    /// Adds the host to the turns of its account if it has a waiting item and a free slot. Adds the account to the turns if
    /// one of its hosts has a turn.
    fn give_turn(&mut self, account: A, host: &str) {
        let Some(queue) = self.accounts.get_mut(&account) else { return };
        if let Some(host_queue) = queue.hosts.get_mut(host)
            && !host_queue.has_turn
            && !host_queue.waiting.is_empty()
            && host_queue.running < self.limits.per_host
        {
            host_queue.has_turn = true;
            queue.turns.push_back(host.to_owned());
        }
        if !queue.has_turn && !queue.turns.is_empty() {
            queue.has_turn = true;
            self.turns.push_back(account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `steps`: `Xa1` appends 1 for host a of account X; `-Xa` ends an item of it, `~Xa` a slow one; `?` starts all
    /// possible items; `!` counts the starved accounts. `expected`: the started items, `|` after each `?`, and the counts.
    #[track_caller]
    fn check(total: usize, per_host: usize, steps: &str, expected: &str) {
        let mut queue = SendQueue::new(SendLimits { total, per_host });
        let mut started = Vec::new();
        for step in steps.split(' ') {
            let letters: Vec<char> = step.chars().collect();
            match letters[..] {
                ['?'] => {
                    while let Some((account, host, item)) = queue.start() {
                        started.push(format!("{account}{host}{item}"));
                    }
                    started.push("|".to_owned());
                }
                ['!'] => started.push(format!("!{}", queue.starved_count())),
                ['-', account, host] => queue.end(account, &host.to_string(), Pace::Quick),
                ['~', account, host] => queue.end(account, &host.to_string(), Pace::Slow),
                [account, host, item] => queue.push(account, &host.to_string(), item),
                _ => panic!("{step} is not a step"),
            }
        }
        assert_eq!(started.join(" "), expected);
    }

    #[test]
    fn hosts_of_an_account_take_turns() {
        check(99, 9, "Xa1 Xa2 Xa3 Xb1 Xb2 Xc1 ?", "Xa1 Xb1 Xc1 Xa2 Xb2 Xa3 |");
    }

    #[test]
    fn accounts_take_turns_regardless_of_their_number_of_hosts() {
        check(99, 9, "Xa1 Xb1 Xc1 Xd1 Ya1 Ya2 ?", "Xa1 Ya1 Xb1 Ya2 Xc1 Xd1 |");
    }

    #[test]
    fn a_host_at_its_limit_does_not_delay_other_hosts() {
        check(99, 2, "Xa1 Xa2 Xa3 Xa4 Xb1 ? -Xb -Xa ?", "Xa1 Xb1 Xa2 | Xa3 |");
    }

    #[test]
    fn the_limit_of_a_host_is_per_account() {
        check(99, 1, "Xa1 Xa2 ? Ya1 ?", "Xa1 | Ya1 |");
    }

    #[test]
    fn an_account_leaves_the_reserve_and_as_many_slots_as_it_holds_free() {
        check(8, 9, "Xa1 Xa2 Xa3 Xa4 Xa5 Xa6 ? Ya1 Ya2 Ya3 ? Za1 Za2 ?", "Xa1 Xa2 Xa3 | Ya1 Ya2 | Za1 |");
        check(8, 9, "Xa1 Xa2 Xa3 Xa4 ? -Xa ?", "Xa1 Xa2 Xa3 | Xa4 |");
    }

    #[test]
    fn the_reserve_is_for_accounts_without_a_slot() {
        let steps = "Xa1 Xa2 Xa3 Xa4 ? Ya1 Ya2 ? Za1 Za2 ? Va1 Va2 ? Wa1 ? Ua1 ! ?";
        check(8, 9, steps, "Xa1 Xa2 Xa3 | Ya1 Ya2 | Za1 | Va1 | Wa1 | !1 |");
    }

    #[test]
    fn an_account_without_a_slot_has_priority_unless_its_latest_attempt_was_slow() {
        check(2, 9, "Xa1 Ya1 ? Xa2 Ya2 Za1 ! -Ya ?", "Xa1 Ya1 | !1 Ya2 |");
        check(2, 9, "Xa1 Ya1 ? Xa2 Ya2 Za1 ~Ya ! ?", "Xa1 Ya1 | !0 Za1 |");
        check(2, 9, "Xa1 Ya1 ? Ya2 ~Ya Xa2 Za1 ? !", "Xa1 Ya1 | Za1 | !0");
    }

    #[test]
    fn a_single_slot_is_shared_by_all_accounts() {
        check(1, 1, "Xa1 Xa2 Yb1 ? -Xa ? -Yb ?", "Xa1 | Yb1 | Xa2 |");
    }

    #[test]
    fn an_idle_host_can_get_new_deliveries() {
        check(9, 1, "Xa1 ? -Xa Xa2 Xa3 ? -Xa ?", "Xa1 | Xa2 | Xa3 |");
    }

    #[test]
    fn waiting_deliveries_can_be_removed() {
        let mut queue = SendQueue::new(SendLimits { total: 1, per_host: 1 });
        for (account, host, item) in [(1, "a", 1), (1, "a", 2), (2, "b", 3)] {
            queue.push(account, host, item);
        }
        assert_eq!(queue.start(), Some((1, "a".to_owned(), 1)));
        assert_eq!(queue.drain(), [2, 3]);
        queue.end(1, "a", Pace::Quick);
        assert_eq!(queue.start(), None);
    }
}
